"""The command `auditor report`: every output again, from a stored result."""

from auditor.commands import arguments
from auditor.commands import options as given
from auditor.commands.outputs import Outputs
from auditor.gates import judged

__all__ = ["report"]


def report(
    result: given.StoredResult,
    fail_if: given.FailIf = None,
    html: given.Html = None,
    json: given.Json = None,
    markdown: given.Markdown = None,
    junit: given.Junit = None,
    sarif: given.Sarif = None,
    quiet: given.Quiet = False,
    debug: given.Debug = False,  # noqa: ARG001 - read by run()
) -> int:
    """Show a stored result again: print it, write its reports, and judge it by gates, without the losses."""
    from auditor.reading import read_result

    gates = arguments.gates(fail_if)
    outputs = Outputs(html=html, json=json, markdown=markdown, junit=junit, sarif=sarif)
    outputs.check(inputs=(result,))
    found = read_result(result)
    return int(outputs.write(found, judged(found, gates), quiet=quiet))
