"""The command `auditor compare`: several results beside each other, and the new one against the old."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.commands import arguments, console
from auditor.commands import options as given
from auditor.commands.outputs import explain
from auditor.errors import InputError
from auditor.gates import ExitCode

if TYPE_CHECKING:
    from auditor.audits.comparison import AuditsComparison

__all__ = ["compare"]

_CODES = {True: ExitCode.FAILED, False: ExitCode.DONE, None: ExitCode.NOT_EVALUABLE}

About = Annotated[
    Path | None,
    typer.Option(
        metavar="TABLE",
        help="A table (.csv, .parquet) with a column result (file, model or number) and any of utility, utility_name,"
        " higher_is_better, strategy, category, model.",
    ),
]
Measure = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Estimate on the privacy axis; default: epsilon_star.gaussian, or advantage where a fit is rejected.",
    ),
]
Baseline = Annotated[
    Path | None,
    typer.Option(
        metavar="RESULT", help="Result that the others are set against; default: the first of exactly two."
    ),
]
FailIfWorse = Annotated[
    bool,
    typer.Option(
        "--fail-if-worse",
        help="Exit 1 if a result is shown to give away more than the baseline, by the membership advantage or the AUC; 3 if"
        " one cannot be compared with it.",
    ),
]


def compare(
    results: Annotated[list[Path], typer.Argument(help="Results of audits (.json), two or more.")],
    about: About = None,
    measure: Measure = None,
    baseline: Baseline = None,
    fail_if_worse: FailIfWorse = False,
    html: given.Html = None,
    json: given.Json = None,
    quiet: given.Quiet = False,
    debug: given.Debug = False,  # noqa: ARG001 - read by run()
) -> int:
    """Set several audits beside each other: privacy against utility, and each against a baseline."""
    from auditor.audits.comparison import compare_audits
    from auditor.report.comparison_words import stopped

    arguments.check_outputs(html, json, inputs=(*results, about, baseline))
    paths, base = _with_baseline(results, baseline)
    announce = console.announcer(quiet=quiet)
    announce(f"Reading {len(paths)} results ...")
    found = compare_audits(paths, about=about, baseline=base, measure=measure)
    if fail_if_worse and found.baseline is None:
        raise InputError(
            f"--fail-if-worse needs a baseline, got {len(paths)} results and none named; name one with --baseline."
        )
    announce("Writing ...")
    _write(found, html=html, json=json, quiet=quiet)
    if fail_if_worse:
        explain(stopped(found))
    return int(_CODES[found.got_worse] if fail_if_worse else ExitCode.DONE)


def _with_baseline(results: list[Path], baseline: Path | None) -> tuple[list[Path], Path | None]:
    """The results, with the baseline first where it is not among them, and the baseline as it is named there."""
    if baseline is None:
        return results, None
    same = next((path for path in results if path.resolve() == baseline.resolve()), None)
    return (results, same) if same is not None else ([baseline, *results], baseline)


def _write(found: "AuditsComparison", *, html: Path | None, json: str | None, quiet: bool) -> None:
    """Make every text first, so that the files appear together or not at all; print only what was not written."""
    from auditor.report.comparison_table import text
    from auditor.report.files import write_all

    texts: dict[Path, str | bytes] = {} if html is None else {html: found.to_html()}
    as_json = "" if json is None else found.to_json()
    if json not in (None, "-"):
        texts[Path(str(json))] = as_json
    shown = text(found, width=console.width(), color=console.colour())
    write_all(texts)
    if json == "-":
        console.hand_out(as_json)
    elif not quiet:
        console.say(shown + "\n")
