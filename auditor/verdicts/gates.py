"""Gates: conditions on a result that stop a pipeline.

A gate is ``NAME OPERATOR NUMBER``, ``verdict == WORD`` or ``checks.NAME == WORD``, and fails when it is true. A name
alone means the estimate's value, which for a certified bound is the bound, and for a rate, an area or an advantage what
was observed; ``.value``, ``.lower`` and ``.upper`` pick one, and the sentence says which.

What cannot be evaluated never passes. That is a missing number, an undecided verdict or check, and any number after a
failed validity check. It is also a gate on a number that is not true, but says nothing by that:

* the audit could not have shown any leak: all losses are equal, or members have the higher losses;
* ``>`` or ``>=`` asks of a bound (``epsilon_bound.*``) what its ceiling does not reach either, so that no model could
  have failed the gate on these records;
* ``>`` or ``>=`` asks of a parametric Epsilon* whose fit is rejected, and the certified bound of the same model at the
  same delta is above the gate's number. A rejected fit alone changes no outcome: the sentence tells it.

A gate that is true has failed in any case, except after a failed validity check.
"""

import math
import operator
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from auditor.checks.registry import CHECKS
from auditor.core import numbers, validate
from auditor.core.errors import ExitCode, InputError
from auditor.core.registry import Role, Unit
from auditor.core.values import WORST_FIRST, Estimate, Status, Subject, Verdict
from auditor.report.rows import Row
from auditor.report.words import ABOUT
from auditor.results.document import Document, ceiling, detail
from auditor.results.metrics import METRICS, describe
from auditor.verdicts.judging import failed_validity, why_blind

# --- What a gate may name in a result: estimates with or without an end, the verdict, and checks ---


_CHECKS = "checks."
_ENDS = {"value": "value", "lower": "lower end", "upper": "upper end"}


class _Found(NamedTuple):
    """An estimate and which of its numbers is meant, or why this audit has none of that name."""

    estimate: Estimate | None
    end: str
    reason: str = ""


def found(name: str, *, gate: str, result: Document) -> _Found:
    """Return what a name means in a result.

    Raises:
        InputError: No audit has it; the message names the nearest.
    """
    names = _names(result)
    head, _, last = name.rpartition(".")
    stem, end = (head, last) if last in _ENDS and name not in names else (name, "value")
    if names.count(stem) > 1:  # in a result that somebody made: whichever was taken, another might not pass
        return _Found(None, end, f"the result has {names.count(stem)} numbers named {stem}")
    if stem in names:
        return _Found(result.estimates[names.index(stem)], end)
    if result.kind is None and stem in METRICS and METRICS[stem].absent:
        return _Found(None, end, f"this audit has no {stem}: {METRICS[stem].absent}")
    raise _unknown(name, gate=gate, result=result)


def _names(result: Document) -> list[str]:
    """The names of all estimates; what a training promises has each twice, for two kinds of neighbours."""
    twice = result.kind == "claim"
    return [f"{item.name}.{item.adjacency}" if twice else item.name for item in result.estimates]


def _status(name: str, *, gate: str, result: Document) -> tuple[Status | None, str]:
    """Return how a check came out, the worst where there are several, or why there is none.

    Raises:
        InputError: No audit has it; the message names the nearest.
    """
    check = name.removeprefix(_CHECKS)
    outcomes = [item.status for item in result.checks if item.name == check]
    if outcomes:
        return min(outcomes, key=WORST_FIRST.index), ""
    if result.kind is None and check in CHECKS and CHECKS[check].absent:
        return None, f"the check {check} was not made: {CHECKS[check].absent}"
    raise _unknown(name, gate=gate, result=result)


def known_names(result: Document) -> tuple[str, ...]:
    """Return every name that a gate on this result may have."""
    absent = [item.name for item in METRICS if item.absent and result.kind is None]
    estimates = [*_names(result), *absent]
    ends = [f"{name}.{end}" for name in estimates for end in _ENDS]
    absent = [item.name for item in CHECKS if item.absent and result.kind is None]
    checks = [_CHECKS + name for name in [*(item.name for item in result.checks), *absent]]
    return tuple(dict.fromkeys([*estimates, "verdict", *checks, *ends]))


def _unknown(name: str, *, gate: str, result: Document) -> InputError:
    options = known_names(result)  # those that this audit has come first
    begun = next((whole for whole in options if whole.startswith(name.lower())), None)
    guess = validate.did_you_mean(begun or validate.nearest(name.lower(), options))
    estimates = ", ".join(_names(result))
    checks = "".join(f", {_CHECKS}{check.name}" for check in result.checks)
    like = "" if result.kind is None else " of this kind"
    return InputError(
        f"gate {gate!r} names {name!r}, which no audit{like} has{guess} The names are {estimates} (each alone, or with"
        f" .value, .lower or .upper), verdict{checks}."
    )


# --- The words in which a gate's outcome is told ---


_EXACT = 17  # digits that hold any number


def _toward(estimate: Estimate, end: str) -> str:
    """Return how a number is rounded so that the sentence promises no more than was found."""
    return {"lower": "down", "upper": "up"}.get(end) or Row(estimate).toward


def _real(value: Any) -> float | None:
    """Return a number; null for what is none, as in a result that somebody made by hand."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # noqa: PLR0124 - NaN
        return None
    return value if abs(value) <= sys.float_info.max or abs(value) == math.inf else None


def _apart(actual: float, *, bound: float, toward: str) -> str:
    """Return the number with as many digits as it takes to see on which side of the bound it is."""
    if not math.isfinite(actual):
        return numbers.number(actual)
    side = actual > bound, actual < bound
    return numbers.enough_digits(
        lambda digits: numbers.number(actual, toward=toward, digits=digits),
        lambda text: (float(text) > bound, float(text) < bound) == side,
    )


def _terms(estimate: Estimate, end: str) -> str:
    """Return what a number is, what it is about, and at which delta."""
    rate, toward = describe(estimate).unit is Unit.RATE, _toward(estimate, end)
    share = numbers.percent(getattr(estimate, end), toward=toward) if rate else None
    level = f"at {Row(estimate).level} confidence" if estimate.confidence else "of no stated confidence"
    kind = Row(estimate).interval if end == "value" else f"the {_ENDS[end]} {level}"
    if end == "value" and estimate.confidence and not describe(estimate).lower_bound:
        kind = f"as observed, {kind}"
    delta = None if estimate.delta is None else f"delta {numbers.given(estimate.delta)}"
    parts = (share, kind, f"about {ABOUT[estimate.subject]}", delta, estimate.adjacency)
    return ", ".join(map(str, filter(None, parts)))


def _sentence(words: str) -> str:
    """Return the words on one line, with a capital only where they do not start with a name."""
    line = numbers.tidy(numbers.clean(re.sub(r"\s+", " ", words)))
    return line[0].upper() + line[1:] if words.startswith(("the ", "this ", "no ", "a ")) else line


# --- Why a gate that is not true may not be taken as passed: the audit could not have made it true, or contradicts itself ---


_UPWARD = (">", ">=")


def _why_no_pass(
    estimate: Estimate, *, result: Document, symbol: str, bound: float, holds: Callable[[float], bool]
) -> str | None:
    """Return why a gate that does not hold says nothing, as a clause without a capital; null where it has passed.

    Args:
        estimate: The one that the gate names.
        result: The audit that it comes from.
        symbol: The gate's operator.
        bound: The gate's number.
        holds: Whether the gate would be true of a number.

    Three things keep a gate from passing: an audit that could not have shown any leak; a bound with a ceiling at which
    the gate would not be true either; a rejected fit whose number lies below what the same audit certifies.
    """
    blind = why_blind(result.checks)
    if blind is not None or symbol not in _UPWARD:
        return blind
    top = ceiling(estimate) if describe(estimate).lower_bound else None
    if top is not None and not holds(top):
        shown = numbers.number(top, toward="down")
        return f"its ceiling is {shown}, so with these records it could not have been larger, whatever the model leaks"
    if not describe(estimate).curve or detail(estimate, "fit", "rejected") is not True:
        return None
    bounds = [item for item in result.estimates if describe(item).role is Role.CERTIFIED]
    contradict = [
        item.lower
        for item in bounds
        if (item.subject, item.delta) == (Subject.MODEL, estimate.delta)
        and item.lower is not None
        and not detail(item, "approximate")
        and holds(item.lower)
    ]
    if not contradict:
        return None
    shown = _apart(max(contradict), bound=bound, toward="down")
    return f"its fit is rejected and the certified bound of the same model at the same delta is {shown}"


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
_SAME = ("==", "!=")
_ALTERED = "the result was altered since it was written"
_OPEN = (Verdict.NOT_EVALUABLE, Verdict.INCONCLUSIVE, Status.UNKNOWN)
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

    def judge(self, result: Document) -> "GateOutcome":
        """Return whether the gate holds for a result, in a code and a sentence.

        Raises:
            InputError: There is nothing of that name; the message names the nearest.
        """
        word = isinstance(self.bound, Verdict | Status)
        outcome = self._of_word(result) if word else self._of_number(result)
        return self._undecided(_ALTERED) if result.altered else outcome

    def _of_word(self, result: Document) -> "GateOutcome":
        """Of the verdict, or of a check."""
        actual: Verdict | Status | None = result.verdict
        if isinstance(self.bound, Verdict):
            reason, words = "no claim was given, so there is no verdict", "the verdict is"
        else:
            actual, reason = _status(self.name, gate=self.text, result=result)
            words = f"the check {self.name.removeprefix(_CHECKS)} came out as"
        if actual is None:
            return self._undecided(reason)
        text = self._undecided if actual in _OPEN and actual is not self.bound else self._decided
        return text(f"{words} {actual.replace('_', ' ')}", str(actual))

    def _of_number(self, result: Document) -> "GateOutcome":
        estimate, end, reason = found(self.name, gate=self.text, result=result)
        if estimate is None:
            return self._undecided(reason)
        actual = _real(getattr(estimate, end))
        if actual is None:
            if estimate.value is None and estimate.reason:
                return self._undecided(f"{self.name} has no value ({estimate.reason.rstrip('.')})")
            missing = f"{estimate.name} has no {_ENDS[end]} here"
            return self._undecided(f"{self.name} has no value" if end == "value" else missing)
        failed = dict.fromkeys(check.name for check in failed_validity(result.checks))
        if failed:
            names = ", ".join(failed)
            words = f"a validity check failed ({names}), so {self.name} does not measure leakage"
            return self._undecided(words, actual)
        bound = float(self.bound)
        shown = _apart(actual, bound=bound, toward=_toward(estimate, end))
        words = f"{self.name} is {shown} ({_terms(estimate, end)})"
        why = None
        if not self._holds(actual):
            why = _why_no_pass(estimate, result=result, symbol=self.symbol, bound=bound, holds=self._holds)
        return self._decided(words, actual) if why is None else self._undecided(f"{words}, but {why}", actual)

    def _holds(self, actual: float | str) -> bool:
        return bool(_OPERATORS[self.symbol](actual, self.bound))

    def _decided(self, words: str, actual: float | str) -> "GateOutcome":
        true = self._holds(actual)
        code, outcome = (ExitCode.FAILED, "failed") if true else (ExitCode.DONE, "passed")
        if isinstance(self.bound, float):
            bound = numbers.number(self.bound, digits=_EXACT)
            words += f", {'' if true else 'not '}{_SAID[self.symbol]}{bound}"
        return GateOutcome(self, code, actual, _sentence(f"{words}: gate {self.text!r} {outcome}."))

    def _undecided(self, words: str, actual: float | str | None = None) -> "GateOutcome":
        end = f": gate {self.text!r} cannot be evaluated, so it does not pass."
        return GateOutcome(self, ExitCode.NOT_EVALUABLE, actual, _sentence(words + end))


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
    words = Verdict if name == "verdict" else Status if name.startswith(_CHECKS) else None
    if words is None:
        _refuse_word(text, name, bound)
        return Gate(text, name, symbol, _number(text, bound))
    if symbol not in _SAME:
        raise InputError(f"gate on a word takes == or !=, got {symbol!r} in {text!r}.")
    options = validate.known(f"gate {text!r}:", bound, list(map(str, words)))
    return Gate(text, name, symbol, words(options))


def _refuse_word(text: str, name: str, bound: str) -> None:
    """A word that only the verdict or a check can be: whoever compares another name with it has misspelt that one."""
    check = _CHECKS + name.rpartition(".")[2]
    meant = "verdict" if bound in list(Verdict) else check if bound in list(Status) else None
    if meant is not None:
        raise InputError(
            f"gate {text!r} compares {name!r} with a word, which only verdict and {_CHECKS}NAME can be; did you mean"
            f" {meant!r}?"
        )


def _number(text: str, bound: str) -> float:
    """A finite number as people write it: not what else Python takes for one, such as 1_0."""
    if not _NUMBER.fullmatch(bound):
        wanted = "a finite number, such as 1, 0.5 or 1e-3"
        raise InputError(f"gate must compare with {wanted}, got {bound!r} in {text!r}.")
    return validate.number(f"number in the gate {text!r}", bound)


def judged(result: Document, gates: Iterable[Gate]) -> tuple[GateOutcome, ...]:
    """Return what becomes of each gate, in their order.

    Raises:
        InputError: A gate names nothing that an audit has.
    """
    return tuple(each.judge(result) for gate in gates for each in _for_all_neighbours(gate, result))


def _for_all_neighbours(gate: Gate, result: Document) -> list[Gate]:
    """The gate; of a promise that it names without the kind of neighbours, one for each kind."""
    names = _names(result) if result.kind == "claim" else []
    meant = [name for name in names if name.rpartition(".")[0] == gate.name]
    return [replace(gate, name=name) for name in meant] or [gate]


def standing(result: Document, *, allow_unjudged: bool = False) -> tuple[GateOutcome, ...]:
    """Return what stops a pipeline that asks for no gate: an altered result, or a claim that could not be judged."""
    claimed = result.kind != "claim" and bool(result.claims or result.comparisons)
    settled = not claimed or result.verdict in (Verdict.REFUTED, Verdict.NOT_REFUTED)
    if result.altered:
        text, words = "the result is as it was written", _ALTERED
    elif settled or allow_unjudged:
        return ()
    else:
        reasons = (item.reason for item in result.comparisons if item.verdict is result.verdict)
        reason = next(reasons, "no measurement here is about the training algorithm")
        text = "the claim is judged"
        words = f"the claim could not be judged (allow_unjudged lets it pass): {reason}"
    gate = Gate(text, "verdict", "!=", result.verdict or Verdict.NOT_EVALUABLE)
    return (GateOutcome(gate, ExitCode.NOT_EVALUABLE, None, numbers.sentence(_sentence(words))),)


Gates = str | Sequence[str | Gate | GateOutcome]


def check_gates(result: Document, gates: Gates) -> tuple[GateOutcome, ...]:
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
    >>> result = auditor.audit(auditor.Losses(member=[0.1, 0.2, 0.3] * 4, nonmember=[0.2, 0.4, 0.9] * 4))
    >>> [outcome.code.name for outcome in check_gates(result, ["auc > 0.5", "auc > 0.9", "verdict == refuted"])]
    ['FAILED', 'DONE', 'NOT_EVALUABLE']
    """
    listed: Sequence[str | Gate | GateOutcome] = [gates] if isinstance(gates, str) else gates
    if not isinstance(listed, list | tuple):
        raise InputError(f"gates must be a list of texts such as 'auc > 0.6', got {gates!r}.")
    read = [item if isinstance(item, Gate | GateOutcome) else parse(item) for item in listed]
    outcomes = ((item,) if isinstance(item, GateOutcome) else judged(result, [item]) for item in read)
    return tuple(outcome for value_found in outcomes for outcome in value_found)


def exit_code(result: Document, outcomes: Iterable[GateOutcome]) -> ExitCode:
    """Return the exit code of an audit: a refuted claim fails with or without a gate."""
    codes = {outcome.code for outcome in outcomes}
    if result.verdict is Verdict.REFUTED or ExitCode.FAILED in codes:
        return ExitCode.FAILED
    return ExitCode.NOT_EVALUABLE if ExitCode.NOT_EVALUABLE in codes else ExitCode.DONE
