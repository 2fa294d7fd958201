"""The first screen of every output: the decision on a release, and the size of a leak in words and as a picture."""

from collections.abc import Sequence
from typing import NamedTuple

from auditor.core import Basis, Decision, ExitCode, Severity, Verdict, numbers
from auditor.report.findings import said
from auditor.report.words import SEVERITY, Sign, signs
from auditor.results.document import Document, Slice, find
from auditor.results.metrics import describe
from auditor.verdicts.gates import GateOutcome, apart_from, rounded_toward
from auditor.verdicts.judging import failed_validity

_UNDECIDED = Sign("No limit was set: not decided", "–", "plain")  # noqa: RUF001 a dash is meant
SIGNS = signs("decision", Decision) | {None: _UNDECIDED}


def decision_sentence(result: Document, decided: Decision | None, outcomes: Sequence[GateOutcome]) -> str:
    """Return why the decision is as it is, as a sentence."""
    if decided is None:
        invalid = failed_validity(result.checks)
        python = "result.with_policy(...)" if result.kind else "auditor.audit(..., policy=...)"
        return said("no_limit_yet" if invalid else "no_limit", example=_EXAMPLES[result.kind], python=python)
    if decided is Decision.RELEASE:
        return _passed(outcomes)
    refuted = result.verdict is Verdict.REFUTED
    code = ExitCode.FAILED if decided is Decision.REFUSE else ExitCode.NOT_EVALUABLE
    failed = [
        item
        for item in outcomes
        if item.code is code and not (refuted and isinstance(item.gate.bound, Verdict))
    ]
    reason = _refuted(result) if refuted else _limit(failed[0])
    others = [numbers.quoted(item.gate.text) for item in (failed if refuted else failed[1:])]
    also = "failed" if decided is Decision.REFUSE else "open"
    rest = f" Also {also}: {', '.join(others)}." if others else ""
    return f"{numbers.sentence(numbers.tidy(reason))}{rest}"


_EXAMPLES: dict[str | None, str] = {
    None: "advantage.upper < 0.1",
    "claim": "epsilon < 2",
    **dict.fromkeys(("runs", "instances", "training"), "claim not refuted"),
    "labels": "epsilon_bound.labels < 1",
}


def _passed(outcomes: Sequence[GateOutcome]) -> str:
    """Return the number of limits that are met, and those that are not met by the whole interval."""
    policy = any(item.gate.is_policy for item in outcomes)
    words = f"Passes your {'policy' if policy else 'gates'} ({len(outcomes)} of {len(outcomes)})"
    for basis, text in (
        (Basis.POINT, "by point estimate only"),
        (Basis.SAFER_END, "by one end of the interval only"),
    ):
        names = [item.gate.text for item in outcomes if item.basis is basis]
        if names:
            words += f"; {text}: {', '.join(names)}"
    return f"{words}."


def _refuted(result: Document) -> str:
    """Return the epsilon of a refuted claim, as stated and as judged, and the measured one."""
    item = next((item for item in result.comparisons if item.verdict is Verdict.REFUTED), None)
    row = None if item is None else find(result, item.estimate)
    if item is not None and row is not None and item.claim.metric != "epsilon" and (row.upper or 1.0) < 1:
        at_most = numbers.number(row.upper, toward="up")
        return f"The claim is refuted: noise at most {at_most} times the claimed noise"
    if item is None or row is None or item.claim.value is None or (row.lower or 0.0) <= item.claim.value:
        return "The claim is refuted"
    made, audited = (numbers.as_stated(claim.value) for claim in (result.claims[0], item.claim))
    scale = "" if made == audited else f" ({audited} for this audit)"
    least, level = numbers.number(row.lower, toward="down"), numbers.percent(row.confidence, toward="down")
    terms = f"(delta {numbers.as_stated(row.delta)}, {level} confidence)"
    return f"The claim is refuted: epsilon {made} claimed{scale}, at least {least} measured {terms}"


_BEYOND = {">": "above", ">=": "above", "<": "below", "<=": "below", "==": "equal to", "!=": "not"}


def _limit(outcome: GateOutcome) -> str:
    """Return the limit that is exceeded, or why a limit could not be evaluated."""
    estimate, gate, bound, end = outcome.estimate, outcome.gate, outcome.gate.bound, outcome.end
    compared = outcome.code is ExitCode.FAILED or outcome.basis is Basis.PART
    if not gate.name and bound is Verdict.NOT_EVALUABLE:  # the reason stands beside the verdict
        return "The claim could not be judged"
    if estimate is None or not isinstance(bound, float) or not compared:
        return f"{outcome.reason} ({gate.text})" if gate.name and not compared else outcome.reason
    of = "" if outcome.group is None else f" of {outcome.group.kind} {numbers.quoted(outcome.group.label)}"
    at = "" if estimate.delta is None else f" (delta {numbers.as_stated(estimate.delta)})"
    title, limit = f"{describe(estimate).title}{at}{of}", f"your limit {numbers.number(bound)}"
    if outcome.basis is Basis.PART:
        furthest = numbers.number(getattr(estimate, end), toward=rounded_toward(estimate, end))
        return f"Score more records to decide: {title} could be {furthest}, beyond {limit}"
    upward = gate.symbol in (">", ">=")
    near = "lower" if upward else "upper"
    safer = getattr(estimate, near)
    if safer is not None and gate.is_true(safer):  # all of the interval is beyond the limit
        end = near
    actual = apart_from(getattr(estimate, end), bound=bound, toward=rounded_toward(estimate, end))
    beyond = "at" if getattr(estimate, end) == bound else _BEYOND[gate.symbol]
    return f"{title} {_ENDS.get(end, '')}{actual} is {beyond} {limit}"


_ENDS = {"lower": "at least ", "upper": "at most "}


# --- The size of a leak ---


COIN = 50  # of 100 pairs


def label_words(one: Slice) -> str:
    """Return the label of a class or group, quoted if it has several words."""
    label = numbers.tidy(one.label)
    return numbers.quoted(label) if len(label.split()) > 1 else label


class Picture(NamedTuple):
    """A pictogram of 100 pairs: the number that an attacker picks correctly, and a caption."""

    hits: int
    caption: str

    @property
    def kinds(self) -> tuple[tuple[str, range], ...]:
        """The places of the pairs that a coin picks, of those that only the attacker picks, and of the rest."""
        return ("coin", range(COIN)), ("hit", range(COIN, self.hits)), ("rest", range(self.hits, 2 * COIN))


class Bar(NamedTuple):
    """The severity of a leak, the lower limit of the advantage behind it, its class or group, and the cut points."""

    level: Severity
    low: float
    points: tuple[float, ...]
    group: Slice | None = None

    @property
    def steps(self) -> list[tuple[str, str, bool]]:
        """Every level, its range in words (of the reached level the lower limit itself), and whether it is reached."""
        first, *others = map(numbers.number, self.points)
        ranges = ("none found", f"found, or from {first}", *(f"advantage from {point}" for point in others))
        of = "advantage" if self.group is None else f"{self.group.kind} {label_words(self.group)}:"
        low = f"{of} at least {numbers.number(self.low, toward='down')}" if self.low > 0 else ""
        return [
            (level.capitalize(), (here and low) or words, here)
            for level, words in zip(Severity, ranges, strict=True)
            for here in (level is self.level,)
        ]

    @property
    def sign(self) -> Sign:
        """The level as a sign."""
        return SEVERITY[self.level]

    @property
    def sentence(self) -> str:
        """The lower limit behind the severity, its class or group, and the cut points."""
        pairs = zip(list(Severity)[1:], self.points, strict=True)
        words = ", ".join(f"{level} from {numbers.number(point)}" for level, point in pairs)
        of = "" if self.group is None else f" of {self.group.kind} {label_words(self.group)}"
        low = f"by the lower limit: advantage{of} at least {numbers.number(self.low, toward='down')}; "
        return f"{low if self.low > 0 else ''}{words}"
