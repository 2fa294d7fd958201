"""The command `auditor calibration`: how often each bound misses."""

from typing import Annotated

import typer

from auditor.commands import arguments, console
from auditor.commands import options as given
from auditor.gates import ExitCode

__all__ = ["calibration"]


def calibration(
    runs: Annotated[int, typer.Option(help="Runs of each bound, law and size.")] = 1000,
    sizes: Annotated[str, typer.Option(help="Records in each group, separated by commas.")] = "100,1000",
    confidence: given.Confidence = 0.95,
    bounds: Annotated[
        str | None, typer.Option(help="Names of bounds, separated by commas; default: all.")
    ] = None,
    json: given.Json = None,
    seed: given.Seed = 0,
    quiet: given.Quiet = False,
    debug: given.Debug = False,  # noqa: ARG001 - read by run()
) -> int:
    """Measure how often every bound misses on laws whose truth is known, and print the table (Markdown)."""
    from auditor.calibration import calibrate

    arguments.check_outputs(None, json)
    table = calibrate(
        runs=runs,
        sizes=arguments.whole_numbers("--sizes", sizes),
        confidence=confidence,
        seed=seed,
        bounds=None if bounds is None else arguments.names("--bounds", bounds),
        announce=console.announcer(quiet=quiet),
    )
    arguments.write_text(table.to_json(), json=json, quiet=quiet, shown=table.to_markdown())
    return int(ExitCode.DONE if table.ok else ExitCode.FAILED)
