"""The gates of a pipeline and how each came out, as strings."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from auditor.gates import ExitCode
from auditor.report import formatting
from auditor.report.labels import Sign
from auditor.result import AuditResult
from auditor.values import Verdict

if TYPE_CHECKING:
    from auditor.gates import GateOutcome

__all__ = ["gate_section", "gates_first"]

_SIGNS = {
    ExitCode.DONE: Sign("Passed", "✓", "good"),
    ExitCode.FAILED: Sign("Stopped", "✕", "bad"),
    ExitCode.NOT_EVALUABLE: Sign("Not evaluable", "?", "caution"),
    ExitCode.BAD_INPUT: Sign("Bad input", "✕", "bad"),
}


def gates_first(outcomes: Sequence["GateOutcome"]) -> str:
    """Return how many gates stopped the pipeline, for the first lines of an output; nothing where all passed.

    >>> gates_first([])
    ''
    """
    failed = sum(item.code is ExitCode.FAILED for item in outcomes)
    undecided = sum(not item.passed for item in outcomes) - failed
    if not failed + undecided:
        return ""
    many = len(outcomes)
    one = failed + undecided == 1
    which = (
        "The gate stops" if many == 1 else f"{failed + undecided} of {many} gates stop{'s' if one else ''}"
    )
    kinds = {"failed": failed, "could not be evaluated": undecided}
    told = [f"{'it' if one else count} {words}" for words, count in kinds.items() if count]
    return f"{which} the pipeline: {' and '.join(told)}."


def gate_section(outcomes: Sequence["GateOutcome"], results: Sequence[AuditResult]) -> dict[str, Any] | None:
    """Return a row for each gate and what they mean together; null without a gate."""
    if not outcomes:
        return None
    codes = {item.code for item in outcomes}
    refuted = any(result.verdict is Verdict.REFUTED for result in results)
    notes = []
    if refuted:
        notes.append("The claim is refuted, which stops a pipeline with or without a gate.")
    if ExitCode.NOT_EVALUABLE in codes:
        notes.append(
            "A gate that could not be evaluated has not passed: it stops the pipeline with exit code 3, unless another"
            " stops it with 1."
        )
    if codes == {ExitCode.DONE} and not refuted:
        notes.append("Every condition was looked at, and none was met: the pipeline goes on.")
    return {
        "first": gates_first(outcomes),
        "rows": [
            {
                "text": formatting.tidy(item.gate.text),
                "outcome": asdict(_SIGNS[item.code]),
                "sentence": formatting.tidy(item.sentence),
            }
            for item in outcomes
        ],
        "note": " ".join(notes),
    }
