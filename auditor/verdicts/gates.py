"""Gates: conditions on a result that stop a pipeline.

A gate is ``NAME OPERATOR NUMBER``, ``verdict == WORD`` or ``checks.NAME == WORD``, and fails when it is true. A name
alone means the estimate's value, which for a certified bound is the bound, and for a rate, an area or an advantage what
was observed; ``.value``, ``.lower`` and ``.upper`` pick one, and the sentence says which.

A gate that cannot be evaluated never passes: its number is missing, its verdict or check is undecided, or a validity check
failed. The same holds for a gate that is not true, but uninformative:

* the audit could not have shown any leak: all losses are equal, or members have the higher losses;
* ``>`` or ``>=`` compares a bound (``epsilon_bound.*``) with a number above its ceiling, so that no model could have
  failed the gate on these records;
* ``>`` or ``>=`` compares a parametric Epsilon* whose fit is rejected, and the certified bound of the same model at the
  same delta is above the gate's number. A rejected fit alone changes no outcome: the sentence reports it.

A gate that is true has always failed, except after a failed validity check.

A gate with ``is_policy`` is read from a condition that must hold (`auditor.verdicts.limits`). If the condition names the
end of an interval that is nearer to the limit, it is exceeded only if the whole interval is beyond the limit; if the
interval contains the limit, the outcome is undecided. ``group.NAME`` is the largest number of that name over classes and groups,
whose intervals hold together.
"""

import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from auditor.checks.registry import CHECKS
from auditor.core import Basis, ExitCode, InputError, Role, Unit, numbers, validate
from auditor.core.values import WORST_FIRST, Check, Estimate, Status, Subject, Verdict
from auditor.report.rows import Row
from auditor.report.words import ABOUT
from auditor.results.document import Document, Slice, SliceKind, ceiling, detail, find
from auditor.results.metrics import METRICS, describe
from auditor.verdicts.judging import failed_validity, why_blind

# --- The names in gates: estimates with or without an end, the verdict, and checks ---


_CHECKS = "checks."
GROUP = "group."
_ESTIMATES_OF_GROUPS = ("epsilon_bound.clopper_pearson", "auc", "advantage")
_ENDS = {"value": "value", "lower": "lower end", "upper": "upper end"}
_NUMBERS_OF_GROUPS = [
    *_ESTIMATES_OF_GROUPS,
    *(f"{name}.{end}" for name in _ESTIMATES_OF_GROUPS for end in _ENDS),
]


class _Number(NamedTuple):
    """An estimate and the meant end of it, with its class or group, or why this audit has none of that name."""

    estimate: Estimate | None
    end: str
    reason: str = ""
    group: Slice | None = None


def named_number(name: str, *, gate: str, result: Document) -> _Number:
    """Return the number with this name in a result.

    Raises:
        InputError: No audit has it; the message names the nearest.
    """
    names = _names(result)
    head, _, last = name.rpartition(".")
    stem, end = (head, last) if last in _ENDS and name not in names else (name, "value")
    if stem in names:
        return _Number(result.estimates[names.index(stem)], end)
    entry = METRICS.get(stem)
    if result.kind is None and entry is not None and entry.absent:
        return _Number(None, end, f"this audit has no {stem}: {entry.absent}")
    raise _unknown(name, gate=gate, result=result)


def _of_groups(name: str, result: Document) -> "list[_Number]":
    """Return the number with this name of each class and group; one without an estimate if the audit has none."""
    stem, _, last = name.rpartition(".")
    stem, end = (stem, last) if last in _ENDS else (name, "value")
    numbers_of = []
    for one in getattr(result, "slices", ()):
        estimate = find(one, stem)
        if one.kind is not SliceKind.PERCENTILE and estimate is not None:
            few = f"{one.kind} {numbers.quoted(one.label)} has too few records ({one.n_member:,} and {one.n_nonmember:,})"
            known = estimate.value is not None
            numbers_of.append(_Number(estimate, end, "", one) if known else _Number(None, end, few, one))
    return numbers_of or [_Number(None, end, "no record of this audit has a class or a group")]


def _names(result: Document) -> list[str]:
    """Return the names of all estimates; a promise has each twice, for two adjacencies."""
    twice = result.kind == "claim"
    return [f"{item.name}.{item.adjacency}" if twice else item.name for item in result.estimates]


def _status(name: str, *, gate: str, result: Document) -> tuple[Status | None, str]:
    """Return the status of a check, the worst of several, or why there is none.

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
    """Return every name that a gate on this result may use."""
    absent = [item.name for item in METRICS if item.absent and result.kind is None]
    estimates = [*_names(result), *absent]
    ends = [f"{name}.{end}" for name in estimates for end in _ENDS]
    absent = [item.name for item in CHECKS if item.absent and result.kind is None]
    checks = [_CHECKS + name for name in [*(item.name for item in result.checks), *absent]]
    groups = [GROUP + name for name in _NUMBERS_OF_GROUPS if getattr(result, "slices", ())]
    return tuple(dict.fromkeys([*estimates, "verdict", *checks, *ends, *groups]))


def _unknown(name: str, *, gate: str, result: Document) -> InputError:
    options = known_names(result)  # names in this audit come first
    begun = next((whole for whole in options if whole.startswith(name.lower())), None)
    guess = validate.did_you_mean(begun or validate.nearest(name.lower(), options))
    estimates = ", ".join(_names(result))
    checks = "".join(f", {_CHECKS}{check.name}" for check in result.checks)
    like = "" if result.kind is None else " of this kind"
    return InputError(
        f"gate {gate!r} names {name!r}, which no audit{like} has{guess} The names are {estimates} (each alone, or with"
        f" .value, .lower or .upper), verdict{checks}."
    )


# --- The words of a gate's outcome ---


_EXACT = 17  # digits that hold any number


def rounded_toward(estimate: Estimate, end: str) -> str:
    """Return the direction of rounding that does not overstate the number."""
    return {"lower": "down", "upper": "up"}.get(end) or Row(estimate).toward


def apart_from(actual: float, *, bound: float, toward: str) -> str:
    """Return the number with enough digits to see on which side of the bound it is."""
    if not math.isfinite(actual):
        return numbers.number(actual)
    side = actual > bound, actual < bound
    return numbers.enough_digits(
        lambda digits: numbers.number(actual, toward=toward, digits=digits),
        lambda text: (float(text) > bound, float(text) < bound) == side,
    )


def _terms(estimate: Estimate, end: str) -> str:
    """Return the kind, subject and delta of a number."""
    rate, toward = describe(estimate).unit is Unit.RATE, rounded_toward(estimate, end)
    share = numbers.percent(getattr(estimate, end), toward=toward) if rate else None
    level = f"at {Row(estimate).level} confidence" if estimate.confidence else "of no stated confidence"
    kind = Row(estimate).interval if end == "value" else f"the {_ENDS[end]} {level}"
    if end == "value" and estimate.confidence and not describe(estimate).lower_bound:
        kind = f"as observed, {kind}"
    delta = None if estimate.delta is None else f"delta {numbers.as_stated(estimate.delta)}"
    parts = (share, kind, f"about {ABOUT[estimate.subject]}", delta, estimate.adjacency)
    return ", ".join(map(str, filter(None, parts)))


def sentence(words: str) -> str:
    """Return the words on one line, with a capital unless they start with a name."""
    line = numbers.tidy(numbers.clean(re.sub(r"\s+", " ", words)))
    return line[0].upper() + line[1:] if words.startswith(("the ", "this ", "no ", "a ")) else line


# --- Gates that are not true and yet do not pass: the audit could not have made them true, or contradicts itself ---


_UPWARD = (">", ">=")


def _why_no_pass(
    estimate: Estimate, *, result: Document, symbol: str, bound: float, holds: Callable[[float], bool]
) -> str | None:
    """Return why a gate that is not true is uninformative, as a clause without a capital; None if it has passed.

    Args:
        estimate: The estimate that the gate names.
        result: The audit.
        symbol: The gate's operator.
        bound: The gate's number.
        holds: Whether the gate is true for a number.

    Three things keep a gate from passing: an audit that could not have shown any leak; a bound with a ceiling at which
    the gate would not be true either; a rejected fit whose number lies below what the same audit certifies.
    """
    blind = why_blind(result.checks)
    if blind is not None or symbol not in _UPWARD:
        return blind
    top = ceiling(estimate) if describe(estimate).lower_bound else None
    if top is not None and not holds(top):
        largest = numbers.number(top, toward="down")
        return f"its ceiling is {largest}, so with these records it could not have been larger, whatever the model leaks"
    if not describe(estimate).curve or detail(estimate, "fit", "rejected") is not True:
        return None
    same = (Role.CERTIFIED, Subject.MODEL, estimate.delta)
    bounds = [item for item in result.estimates if (describe(item).role, item.subject, item.delta) == same]
    certified = max((item.lower for item in bounds if item.lower is not None), default=math.nan)
    if not holds(certified):
        return None
    largest = apart_from(certified, bound=bound, toward="down")
    return f"its fit is rejected and the certified bound of the same model at the same delta is {largest}"


def _why_unusable(name: str, estimate: Estimate, end: str, failed: Sequence[Check]) -> str:
    """Return why a number is missing or does not measure leakage; nothing if it does."""
    actual = getattr(estimate, end)
    if actual is not None and not math.isnan(actual):
        names = ", ".join(dict.fromkeys(check.name for check in failed))
        return f"a validity check failed ({names}), so {name} does not measure leakage" if failed else ""
    if estimate.value is None and estimate.reason:
        return f"{name} has no value ({estimate.reason.rstrip('.')})"
    return f"{name} has no value" if end == "value" else f"{estimate.name} has no {_ENDS[end]} here"


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
_SAME = ("==", "!=")
ALTERED = "the result was altered since it was written"
_NO_CLAIM = "no claim was given, so there is no verdict; give a claim, or leave this condition out"
_OPEN = (Verdict.NOT_EVALUABLE, Verdict.INCONCLUSIVE, Status.UNKNOWN)
_SAID = {">": "above ", ">=": "at least ", "<": "below ", "<=": "at most ", "==": "", "!=": "other than "}
PATTERN = re.compile(r"\s*([A-Za-z_][\w.*+-]*)\s*(>=|<=|==|!=|>|<)\s*(\S+)\s*", re.ASCII)
LONGEST = 200  # characters of a gate, which is quoted in full
OPPOSITE = {">": "<=", ">=": "<", "<": ">=", "<=": ">", "==": "!=", "!=": "=="}


@dataclass(frozen=True)
class Gate:
    """One condition; when it is true the gate has failed.

    Attributes:
        text: As the user wrote it.
        name: Of an estimate (with or without an end), ``verdict``, or ``checks.NAME``.
        symbol: One of > >= < <= == !=.
        bound: Number or word to compare with.
        is_policy: Whether the text states the opposite, which must hold.
    """

    text: str
    name: str
    symbol: str
    bound: float | Verdict | Status
    is_policy: bool = False

    def judge(self, result: Document) -> "GateOutcome":
        """Return whether the gate holds for a result, in a code and a sentence.

        Raises:
            InputError: There is nothing of that name; the message names the nearest.
        """
        word = isinstance(self.bound, Verdict | Status)
        try:
            outcome = self._of_word(result) if word else self._of_number(result)
        except InputError:
            if not self.is_policy or result.kind is None:
                raise
            # A policy may be for results of all kinds.
            outcome = self._undecided(f"no audit of this kind has {self.name}")
        return self._undecided(ALTERED) if result.altered else outcome

    def _of_word(self, result: Document) -> "GateOutcome":
        """Return the outcome of a gate on the verdict or on a check."""
        actual: Verdict | Status | None = result.verdict
        if isinstance(self.bound, Verdict):
            reason, words = _NO_CLAIM, "the verdict is"
        else:
            actual, reason = _status(self.name, gate=self.text, result=result)
            words = f"the check {self.name.removeprefix(_CHECKS)} came out as"
        if actual is None:
            return self._undecided(reason)
        text = self._undecided if actual in _OPEN and actual is not self.bound else self._decided
        return text(f"{words} {actual.replace('_', ' ')}", str(actual))

    def _of_number(self, result: Document) -> "GateOutcome":
        name = self.name.removeprefix(GROUP)
        if name != self.name and name in _NUMBERS_OF_GROUPS:
            options = [self._of_estimate(item, result) for item in _of_groups(name, result)]
            largest = sorted(options, key=lambda item: -float(item.actual or 0.0))
            return min(largest, key=lambda item: _WORST_FIRST.index(item.code))
        return self._of_estimate(named_number(self.name, gate=self.text, result=result), result)

    def _of_estimate(self, number: _Number, result: Document) -> "GateOutcome":
        outcome = self._compared(number, result)
        return replace(outcome, estimate=number.estimate, end=number.end, group=number.group)

    def _compared(self, number: _Number, result: Document) -> "GateOutcome":
        estimate, end, reason, group = number
        if estimate is None:
            return self._undecided(reason)
        actual = getattr(estimate, end)
        unusable = _why_unusable(self.name, estimate, end, failed_validity(result.checks))
        if actual is None or unusable:
            return self._undecided(unusable, actual)
        bound = float(self.bound)
        rounded = apart_from(actual, bound=bound, toward=rounded_toward(estimate, end))
        of = "" if group is None else f" for {group.kind} {numbers.quoted(group.label)}"
        words = f"{self.name} is {rounded}{of} ({_terms(estimate, end)})"
        inner, outer = (estimate.lower, "upper") if self.symbol in _UPWARD else (estimate.upper, "lower")
        by_outer = self.is_policy and self.symbol not in _SAME and end == outer
        if not self.is_true(actual):
            why = _why_no_pass(estimate, result=result, symbol=self.symbol, bound=bound, holds=self.is_true)
            if why is not None:
                return self._undecided(f"{words}, but {why}", actual)
        elif by_outer and inner is not None and not self.is_true(inner):
            why = f"its interval contains {numbers.number(bound, digits=_EXACT)}"
            return replace(self._undecided(f"{words}, but {why}", actual), basis=Basis.PART)
        return replace(self._decided(words, actual), basis=self._basis(estimate, end, outer))

    def _basis(self, estimate: Estimate, end: str, outer: str) -> Basis:
        """Return the part of the interval that meets the limit."""
        worst = getattr(estimate, outer)
        if worst is not None and not self.is_true(worst):
            return Basis.ALL
        return Basis.POINT if end == "value" and not describe(estimate).lower_bound else Basis.SAFER_END

    def is_true(self, actual: float | str) -> bool:
        """Return whether the gate would be true of a number or a word."""
        return bool(_OPERATORS[self.symbol](actual, self.bound))

    def _decided(self, words: str, actual: float | str) -> "GateOutcome":
        failed = self.is_true(actual)
        if isinstance(self.bound, float):
            bound = numbers.number(self.bound, digits=_EXACT)
            stated = OPPOSITE[self.symbol] if self.is_policy else self.symbol
            words += f", {'' if failed is not self.is_policy else 'not '}{_SAID[stated]}{bound}"
        return GateOutcome(self, ExitCode.FAILED if failed else ExitCode.DONE, actual, words)

    def _undecided(self, words: str, actual: float | str | None = None) -> "GateOutcome":
        return GateOutcome(self, ExitCode.NOT_EVALUABLE, actual, words)


_WORST_FIRST = (ExitCode.FAILED, ExitCode.NOT_EVALUABLE, ExitCode.DONE)
_OUTCOMES = {
    ExitCode.DONE: "passed.",
    ExitCode.FAILED: "failed.",
    ExitCode.NOT_EVALUABLE: "cannot be evaluated, so it does not pass.",
}


@dataclass(frozen=True)
class GateOutcome:
    """The outcome of a gate.

    Attributes:
        gate: The condition.
        code: DONE if it passed, FAILED if it is true, NOT_EVALUABLE if neither can be shown.
        actual: The number, the verdict or the check's status; None if there is none.
        reason: The comparison, with the subject, confidence and delta of the number; or why there is none.
        estimate: The estimate that the gate names, if there is one.
        end: Value, lower or upper.
        group: The class or group of the estimate.
        basis: Part of its interval that meets the limit, if the estimate decides.
    """

    gate: Gate
    code: ExitCode
    actual: float | str | None
    reason: str
    estimate: Estimate | None = None
    end: str = "value"
    group: Slice | None = None
    basis: Basis | None = None

    @property
    def sentence(self) -> str:
        """The reason and the outcome."""
        called = f"{'policy' if self.gate.is_policy else 'gate'} {self.gate.text!r}" if self.gate.name else ""
        return sentence(f"{self.reason}: {called} {_OUTCOMES[self.code]}" if called else self.reason)

    @property
    def passed(self) -> bool:
        """Whether the pipeline may continue."""
        return self.code is ExitCode.DONE


def parse(text: str, *, meaning: str | None = None) -> Gate:
    """Read a gate; ``meaning`` is the same in its own form if the text has another one.

    Raises:
        InputError: It is not NAME OPERATOR NUMBER, nor ``verdict`` or ``checks.NAME`` with == or != and a word.

    >>> parse("epsilon_star.gaussian > 1").bound
    1.0
    >>> parse("verdict == refuted").bound
    <Verdict.REFUTED: 'refuted'>
    >>> parse("checks.shift == fail").bound
    <Status.FAIL: 'fail'>
    """
    match = PATTERN.fullmatch(meaning or text) if isinstance(text, str) and len(text) <= LONGEST else None
    if match is None:
        quoted = repr(text) if len(repr(text)) <= LONGEST else f"{repr(text)[:LONGEST]}..."
        raise InputError(
            "gate must be NAME OPERATOR NUMBER, such as 'epsilon_star.gaussian > 1' (or 'verdict == refuted', or"
            f" 'checks.shift == fail'), got {quoted}."
        )
    name, symbol, bound = match.groups()
    words = Verdict if name == "verdict" else Status if name.startswith(_CHECKS) else None
    if words is None:
        _refuse_word(text, name, bound)
        return Gate(text, name, symbol, validate.number(f"number in the gate {text!r}", bound))
    if symbol not in _SAME:
        raise InputError(f"gate on a word takes == or !=, got {symbol!r} in {text!r}.")
    options = validate.one_of(f"gate {text!r}:", bound, list(map(str, words)))
    return Gate(text, name, symbol, words(options))


def _refuse_word(text: str, name: str, bound: str) -> None:
    """Raise an error for a word that only the verdict or a check can have, as after a misspelt name."""
    check = _CHECKS + name.rpartition(".")[2]
    meant = "verdict" if bound in list(Verdict) else check if bound in list(Status) else None
    if meant is not None:
        raise InputError(
            f"gate {text!r} compares {name!r} with a word, which only verdict and {_CHECKS}NAME can be; did you mean"
            f" {meant!r}?"
        )


def judged(result: Document, gates: Iterable[Gate]) -> tuple[GateOutcome, ...]:
    """Return the outcome of each gate, in their order.

    Raises:
        InputError: A gate names nothing that an audit has.
    """
    return tuple(each.judge(result) for gate in gates for each in _for_all_neighbours(gate, result))


def _for_all_neighbours(gate: Gate, result: Document) -> list[Gate]:
    """Return the gate, or one gate for each adjacency if it names a promise without one."""
    names = _names(result) if result.kind == "claim" else []
    meant = [name for name in names if name.rpartition(".")[0] == gate.name]
    return [replace(gate, name=name) for name in meant] or [gate]


Gates = str | Sequence[str | Gate | GateOutcome]


def check_gates(result: Document, gates: Gates) -> tuple[GateOutcome, ...]:
    """Judge a result by gates, as ``auditor audit --fail-if`` does.

    Args:
        result: The result of an audit.
        gates: One gate or several, such as ``"epsilon_star.gaussian > 1"``, ``"bayes_security.upper < 0.9"``,
            ``"verdict == refuted"`` or ``"checks.shift == fail"``.

    Returns:
        One outcome for each gate; ``outcome.passed`` says whether a pipeline may continue.

    Raises:
        InputError: A gate cannot be read, or names nothing that an audit has; the message names the nearest.

    >>> import auditor
    >>> result = auditor.audit(auditor.Losses(member=[0.1, 0.2, 0.3] * 4, nonmember=[0.2, 0.4, 0.9] * 4))
    >>> [outcome.code.name for outcome in check_gates(result, ["auc > 0.5", "auc > 0.9", "verdict == refuted"])]
    ['FAILED', 'DONE', 'NOT_EVALUABLE']
    """
    return judged(result, as_gates(gates))


def as_gates(gates: Gates) -> list[Gate]:
    """Return gates from their texts; an outcome stands for its gate.

    Raises:
        InputError: One cannot be read.
    """
    listed: Sequence[str | Gate | GateOutcome] = [gates] if isinstance(gates, str) else gates
    if not isinstance(listed, list | tuple):
        raise InputError(f"gates must be a list of texts such as 'auc > 0.6', got {gates!r}.")
    read = (item.gate if isinstance(item, GateOutcome) else item for item in listed)
    return [item if isinstance(item, Gate) else parse(item) for item in read]
