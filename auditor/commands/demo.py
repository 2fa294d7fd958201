"""The command `auditor demo`: two classifiers on data that comes with scikit-learn."""

from pathlib import Path
from typing import Annotated

import typer

from auditor.commands import console
from auditor.commands import options as given
from auditor.commands.configuration_used import used_file
from auditor.report.files import check_writable, write_all

__all__ = ["demo"]


def demo(
    html: Annotated[
        Path, typer.Option("--html", metavar="PATH", help="Write the report as one offline HTML page.")
    ] = Path("auditor-demo.html"),
    seed: Annotated[int, typer.Option(help="Of the split, the training and the audits.")] = 0,
    quiet: given.Quiet = False,
    debug: given.Debug = False,  # noqa: ARG001 - read by run()
) -> None:
    """Audit two classifiers on data that comes with scikit-learn, and write one page comparing them."""
    from auditor import demo as example
    from auditor.report import html as page
    from auditor.report.table import text

    check_writable([html], inputs=used_file())
    results = example.run(seed=seed, announce=console.announcer(quiet=quiet))
    write_all({html: page.render(results, title="Privacy audit: two classifiers on the digits data")})
    if quiet:
        return
    for result in results:
        console.say(text(result, width=console.width(least=30), color=console.colour()) + "\n")
    console.say(f"Report: {html.resolve()}\n")
