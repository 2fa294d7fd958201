"""Gates: conditions on a result that stop a pipeline.

A gate is ``NAME OPERATOR NUMBER`` or ``verdict == WORD``. A name alone means the estimate's value; ``.lower`` and
``.upper`` pick an end of its interval. What cannot be evaluated never passes silently.
"""

import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from auditor import _validate
from auditor.compare import failed_validity
from auditor.errors import InputError
from auditor.result import AuditResult
from auditor.values import Verdict

__all__ = ["ExitCode", "Gate", "exit_code", "parse"]


class ExitCode(IntEnum):
    """What the process says to a pipeline; the smaller of 2, 1, 3 in that order wins."""

    DONE = 0
    FAILED = 1
    BAD_INPUT = 2
    NOT_EVALUABLE = 3


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
_PATTERN = re.compile(r"^\s*([A-Za-z_][\w.]*)\s*(>=|<=|==|!=|>|<)\s*(\S+)\s*$")
_ENDS = ("value", "lower", "upper")


@dataclass(frozen=True)
class Gate:
    """One condition; when it is true the gate has failed."""

    text: str
    name: str
    symbol: str
    bound: float | Verdict

    def outcome(self, result: AuditResult) -> ExitCode:
        """Return FAILED when the condition is true, NOT_EVALUABLE when there is nothing to compare.

        Where a validity check failed no number measures leakage, so none passes and none fails.

        Raises:
            InputError: No estimate of that name; the message names the nearest.
        """
        if isinstance(self.bound, Verdict):
            if (
                result.verdict in (None, Verdict.NOT_EVALUABLE, Verdict.INCONCLUSIVE)
                and result.verdict != self.bound
            ):
                return ExitCode.NOT_EVALUABLE
            actual: Any = result.verdict
        else:
            actual = _looked_up(self.name, result)
            if failed_validity(result.checks):
                return ExitCode.NOT_EVALUABLE  # the number is there, and does not measure leakage
        if actual is None:
            return ExitCode.NOT_EVALUABLE
        return ExitCode.FAILED if _OPERATORS[self.symbol](actual, self.bound) else ExitCode.DONE


def parse(text: str) -> Gate:
    """Read a gate.

    Raises:
        InputError: It is not NAME OPERATOR NUMBER, nor ``verdict`` with == or != and a verdict.

    >>> parse("epsilon_star.gaussian > 1").bound
    1.0
    >>> parse("verdict == refuted").bound
    <Verdict.REFUTED: 'refuted'>
    """
    match = _PATTERN.match(text)
    if match is None:
        raise InputError(
            f"--fail-if must be NAME OPERATOR NUMBER, such as 'epsilon_star.gaussian > 1', got {text!r}."
        )
    name, symbol, bound = match.groups()
    if name == "verdict":
        if symbol not in ("==", "!="):
            raise InputError(f"--fail-if on the verdict takes == or !=, got {text!r}.")
        return Gate(text, name, symbol, Verdict(_validate.known("verdict", bound, [str(v) for v in Verdict])))
    return Gate(text, name, symbol, _validate.number(f"--fail-if bound in {text!r}", bound))


def _looked_up(name: str, result: AuditResult) -> float | None:
    names = [estimate.name for estimate in result.estimates]
    head, _, end = name.rpartition(".")
    if end in _ENDS and head in names:
        found: float | None = getattr(result.estimate(head), end)
        return found
    return result.estimate(_validate.known("--fail-if name", name, [*names, "verdict"])).value


def exit_code(result: AuditResult, gates: Iterable[Gate]) -> ExitCode:
    """Return the exit code of an audit: a refuted claim fails with or without a gate.

    Raises:
        InputError: A gate names no estimate.
    """
    outcomes = {gate.outcome(result) for gate in gates}
    if result.verdict is Verdict.REFUTED or ExitCode.FAILED in outcomes:
        return ExitCode.FAILED
    return ExitCode.NOT_EVALUABLE if ExitCode.NOT_EVALUABLE in outcomes else ExitCode.DONE
