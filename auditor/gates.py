"""Gates: conditions on a result that stop a pipeline.

A gate is ``NAME OPERATOR NUMBER``, ``verdict == WORD`` or ``checks.NAME == WORD``, and fails when it is true. A name
alone means the estimate's value, which for a certified bound is the bound; ``.value``, ``.lower`` and ``.upper`` pick
one.

What cannot be evaluated never passes. That is a missing number, an undecided verdict or check, and any number after a
failed validity check. It is also a gate on a number that is not true, but says nothing by that:

* the audit could not have shown any leak: all losses are equal, or members have the higher losses;
* ``>`` or ``>=`` asks of a bound (``epsilon_bound.*``) what its ceiling does not reach either, so that no model could
  have failed the gate on these records;
* ``>`` or ``>=`` asks of a parametric Epsilon* whose fit is rejected, and the certified bound of the same model at the
  same delta is above the gate's number. A rejected fit alone changes no outcome: the sentence tells it.

A gate that is true has failed in any case, except after a failed validity check.
"""

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from auditor import _format, _validate, gate_limits, gate_names, gate_words
from auditor.compare import failed_validity
from auditor.errors import InputError
from auditor.gate_names import CHECKS
from auditor.result import AuditResult
from auditor.values import Status, Verdict

__all__ = ["ExitCode", "Gate", "GateOutcome", "check_gates", "exit_code", "judged", "parse"]


class ExitCode(IntEnum):
    """What the process says to a pipeline.

    0, done: nothing to stop for. 1, failed: a gate is true, or the claim is refuted, with or without a gate. 2, bad
    input: a file, an option or a gate that cannot be used; nothing was written. 3, not evaluable: a gate asks for what
    this audit cannot answer (a missing number, an undecided verdict or check, a failed validity check, an audit that
    could not have shown what the gate asks for), which never counts as passed. Where several hold, 2 comes before 1,
    and 1 before 3.
    """

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
_SAME = ("==", "!=")
_SAID = {">": "above ", ">=": "at least ", "<": "below ", "<=": "at most ", "==": "", "!=": "other than "}
_PATTERN = re.compile(r"\s*([A-Za-z_][\w.*+-]*)\s*(>=|<=|==|!=|>|<)\s*(\S+)\s*", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_LONGEST = 200  # of a gate, in characters: nobody's is longer, and it is quoted in full


@dataclass(frozen=True)
class Gate:
    """One condition; when it is true the gate has failed.

    Attributes:
        text: As it was given.
        name: Of an estimate (with or without an end), ``verdict``, or ``checks.NAME``.
        symbol: One of > >= < <= == !=.
        bound: What it is compared with.
    """

    text: str
    name: str
    symbol: str
    bound: float | Verdict | Status

    def judge(self, result: AuditResult) -> "GateOutcome":
        """Return whether the gate holds for a result, in a code and a sentence.

        Raises:
            InputError: There is nothing of that name; the message names the nearest.
        """
        if isinstance(self.bound, Verdict):
            return self._of_verdict(result)
        return self._of_check(result) if isinstance(self.bound, Status) else self._of_number(result)

    def _of_verdict(self, result: AuditResult) -> "GateOutcome":
        undecided = (Verdict.NOT_EVALUABLE, Verdict.INCONCLUSIVE)
        if result.verdict is None:
            return self._undecided("no claim was given, so there is no verdict")
        if result.verdict in undecided and result.verdict is not self.bound:
            return self._undecided(f"the verdict is {result.verdict}", str(result.verdict))
        return self._decided(str(result.verdict), f"the verdict is {result.verdict}")

    def _of_check(self, result: AuditResult) -> "GateOutcome":
        actual, reason = gate_names.status(self.name, gate=self.text, result=result)
        if actual is None:
            return self._undecided(reason)
        words = f"the check {self.name.removeprefix(CHECKS)} came out as {actual}"
        if actual is Status.UNKNOWN and self.bound is not Status.UNKNOWN:
            return self._undecided(words, str(actual))
        return self._decided(str(actual), words)

    def _of_number(self, result: AuditResult) -> "GateOutcome":
        from auditor.report.lookup import number

        estimate, end, reason = gate_names.found(self.name, gate=self.text, result=result)
        if estimate is None:
            return self._undecided(reason)
        actual = number(getattr(estimate, end))
        if actual is None:
            return self._undecided(gate_words.missing(estimate, end, self.name))
        failed = dict.fromkeys(check.name for check in failed_validity(result.checks))
        if failed:
            names = ", ".join(failed)
            words = f"a validity check failed ({names}), so {self.name} does not measure leakage"
            return self._undecided(words, actual)
        bound = float(self.bound)
        shown = gate_words.apart(actual, bound=bound, toward=gate_words.toward(estimate, end))
        words = f"{self.name} is {shown} ({gate_words.terms(estimate, end)})"
        why = None
        if not self._holds(actual):
            why = gate_limits.why_no_pass(
                estimate, result=result, symbol=self.symbol, bound=bound, holds=self._holds
            )
        return self._decided(actual, words) if why is None else self._undecided(f"{words}, but {why}", actual)

    def _holds(self, actual: float | str) -> bool:
        return bool(_OPERATORS[self.symbol](actual, self.bound))

    def _decided(self, actual: float | str, words: str) -> "GateOutcome":
        true = self._holds(actual)
        code, outcome = (ExitCode.FAILED, "failed") if true else (ExitCode.DONE, "passed")
        if isinstance(self.bound, float):
            words += f", {'' if true else 'not '}{_SAID[self.symbol]}{_format.number(self.bound, digits=gate_words.EXACT)}"
        return GateOutcome(self, code, actual, gate_words.sentence(f"{words}: gate {self.text!r} {outcome}."))

    def _undecided(self, words: str, actual: float | str | None = None) -> "GateOutcome":
        end = f": gate {self.text!r} cannot be evaluated, so it does not pass."
        return GateOutcome(self, ExitCode.NOT_EVALUABLE, actual, gate_words.sentence(words + end))


@dataclass(frozen=True)
class GateOutcome:
    """What became of a gate.

    Attributes:
        gate: The condition.
        code: DONE where it passed, FAILED where it is true, NOT_EVALUABLE where nobody can tell.
        actual: The number, the verdict or the check's status that was found; null where there is none.
        sentence: All of this in words, with what the number is about, its confidence and its delta.
    """

    gate: Gate
    code: ExitCode
    actual: float | str | None
    sentence: str

    @property
    def passed(self) -> bool:
        """Whether the gate lets the pipeline go on."""
        return self.code is ExitCode.DONE


def parse(text: str) -> Gate:
    """Read a gate.

    Raises:
        InputError: It is not NAME OPERATOR NUMBER, nor ``verdict`` or ``checks.NAME`` with == or != and a word.

    >>> parse("epsilon_star.gaussian > 1").bound
    1.0
    >>> parse("verdict == refuted").bound
    <Verdict.REFUTED: 'refuted'>
    >>> parse("checks.shift == fail").bound
    <Status.FAIL: 'fail'>
    """
    match = _PATTERN.fullmatch(text) if isinstance(text, str) and len(text) <= _LONGEST else None
    if match is None:
        shown = repr(text) if len(repr(text)) <= _LONGEST else f"{repr(text)[:_LONGEST]}..."
        raise InputError(
            "gate must be NAME OPERATOR NUMBER, such as 'epsilon_star.gaussian > 1' (or 'verdict == refuted', or"
            f" 'checks.shift == fail'), got {shown}."
        )
    name, symbol, bound = match.groups()
    words = Verdict if name == "verdict" else Status if name.startswith(CHECKS) else None
    if words is None:
        _refuse_word(text, name, bound)
        return Gate(text, name, symbol, _number(text, bound))
    if symbol not in _SAME:
        raise InputError(f"gate on a word takes == or !=, got {symbol!r} in {text!r}.")
    return Gate(
        text, name, symbol, words(_validate.known(f"gate {text!r}:", bound, [str(word) for word in words]))
    )


def _refuse_word(text: str, name: str, bound: str) -> None:
    """A word that only the verdict or a check can be: whoever compares another name with it has misspelt that one."""
    check = CHECKS + name.rpartition(".")[2]
    meant = "verdict" if bound in list(Verdict) else check if bound in list(Status) else None
    if meant is not None:
        raise InputError(
            f"gate {text!r} compares {name!r} with a word, which only verdict and {CHECKS}NAME can be; did you mean"
            f" {meant!r}?"
        )


def _number(text: str, bound: str) -> float:
    """A finite number as people write it: not what else Python takes for one, such as 1_0."""
    if not _NUMBER.fullmatch(bound):
        raise InputError(
            f"gate must compare with a finite number, such as 1, 0.5 or 1e-3, got {bound!r} in {text!r}."
        )
    return _validate.number(f"number in the gate {text!r}", bound)


def judged(result: AuditResult, gates: Iterable[Gate]) -> tuple[GateOutcome, ...]:
    """Return what becomes of each gate, in their order.

    Raises:
        InputError: A gate names nothing that an audit has.
    """
    return tuple(gate.judge(result) for gate in gates)


def check_gates(
    result: AuditResult, gates: str | Sequence[str | Gate | GateOutcome]
) -> tuple[GateOutcome, ...]:
    """Judge a result by gates, as ``auditor audit --fail-if`` does.

    Args:
        result: What an audit found.
        gates: One gate or several, such as ``"epsilon_star.gaussian > 1"``, ``"bayes_security.upper < 0.9"``,
            ``"verdict == refuted"`` or ``"checks.shift == fail"``; an outcome stays as it is.

    Returns:
        One outcome for each gate; ``outcome.passed`` says whether it lets a pipeline go on.

    Raises:
        InputError: A gate cannot be read, or names nothing that an audit has; the message names the nearest.

    >>> import auditor
    >>> result = auditor.audit(auditor.Losses(member=[0.1, 0.2, 0.3], nonmember=[0.2, 0.4, 0.9]))
    >>> [outcome.code.name for outcome in check_gates(result, ["auc > 0.5", "auc > 0.9", "verdict == refuted"])]
    ['FAILED', 'DONE', 'NOT_EVALUABLE']
    """
    listed: Sequence[str | Gate | GateOutcome] = [gates] if isinstance(gates, str) else gates
    if not isinstance(listed, list | tuple):
        raise InputError(f"gates must be a list of texts such as 'auc > 0.6', got {gates!r}.")
    read = [item if isinstance(item, Gate | GateOutcome) else parse(item) for item in listed]
    return tuple(item.judge(result) if isinstance(item, Gate) else item for item in read)


def exit_code(result: AuditResult, outcomes: Iterable[GateOutcome]) -> ExitCode:
    """Return the exit code of an audit: a refuted claim fails with or without a gate."""
    codes = {outcome.code for outcome in outcomes}
    if result.verdict is Verdict.REFUTED or ExitCode.FAILED in codes:
        return ExitCode.FAILED
    return ExitCode.NOT_EVALUABLE if ExitCode.NOT_EVALUABLE in codes else ExitCode.DONE
