"""An estimate, a check, a claim and an output policy, each as the strings that every output shows."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from auditor.checks.registry import CHECKS
from auditor.core import InputError, Metric, Role, numbers
from auditor.core.values import WORST_FIRST, Check, Claim, Comparison, Estimate, OutputPolicy, Status, Subject
from auditor.report.words import (
    ABOUT,
    FIT,
    STATUS,
    VERDICT,
    Sign,
    advice,
    check_title,
    short_title,
    shown_value,
    star_notes,
    worded,
)
from auditor.results import document, metrics
from auditor.results.document import Document, PolicyFound, Slice, detail, find

_POINT = "point estimate"
# Titles in a line of numbers.
_BRIEF = {metrics.named(Role.JUDGE): "epsilon of the training", "advantage": "advantage"}


def condition(item: Estimate) -> str:
    """Return the condition of a conditional bound; most assume a Gaussian curve."""
    return metrics.metric(item.name).condition or "the curve is Gaussian"


# The end of the losses behind a number, if it is not the expected one.
_OF_OTHERS = "It comes from high losses, which identify non-members."
_REVERSED = "It comes from members with higher losses than others, the reverse of memorisation."
_ENDS = {"m2": _OF_OTHERS, "upper": _OF_OTHERS, "m3": _REVERSED, "m4": _REVERSED}


@dataclass(frozen=True, eq=False)
class Row:
    """One estimate as the strings that every output shows.

    Attributes:
        estimate: The number itself.
        alone: Whether it exceeds guessing only individually, and not jointly with the other tests of the finding.
        subject: Noun for what was audited: a model or a synthetic table.
    """

    estimate: Estimate
    alone: bool = False
    subject: str = "model"

    @cached_property
    def metric(self) -> Metric:
        """The entry of the metric: title, sentence and glossary term."""
        return metrics.describe(self.estimate)

    @property
    def name(self) -> str:
        """The name in JSON and gates."""
        return self.estimate.name

    @property
    def title(self) -> str:
        """The title for readers."""
        return self.metric.title

    @property
    def has_value(self) -> bool:
        """Whether the estimate has a value."""
        return self.estimate.value is not None

    @property
    def is_rejected(self) -> bool:
        """Whether it depends on a rejected fit."""
        return bool(detail(self.estimate, "fit", "rejected"))

    @property
    def promised(self) -> str | None:
        """The proof status of a promised number; None for measurements."""
        result: str | None = detail(self.estimate, "promised")
        return result

    @property
    def toward(self) -> str:
        """The direction of rounding: a bound remains valid, an observation goes to the nearest."""
        item = self.estimate
        if self.promised == "proven":
            return "up" if self.metric.more_is_worse else "down"
        if item.lower is None and item.value == item.upper:
            return "up"
        if not self.metric.lower_bound or item.lower == item.upper:
            return "nearest"
        if item.value == item.lower:
            return "down"
        return "up" if item.value == item.upper else "nearest"

    @cached_property
    def value(self) -> str:
        """The value, or a dash; "not shown" for a bound that is above 0 only individually."""
        if self.alone and self.metric.lower_bound:
            return "not shown"
        return self._shown(self.estimate.value, toward=self.toward)

    @cached_property
    def ends(self) -> str:
        """The ends of the interval, rounded outwards.

        >>> from auditor.core.values import Subject
        >>> Row(Estimate("auc", 0.6, 0.58, None, 0.95, "ranks", Subject.MODEL)).ends
        'at least 0.58'
        """
        item = self.estimate
        low, high = self._shown(item.lower, toward="down"), self._shown(item.upper, toward="up")
        if numbers.MISSING not in (low, high):
            return f"{low} to {high}"
        if low != numbers.MISSING:
            return f"at least {low}"
        return f"at most {high}" if high != numbers.MISSING else numbers.MISSING

    def _shown(self, x: float | None, *, toward: str) -> str:
        return shown_value(x, name=self.name, toward=toward)

    @cached_property
    def ceiling(self) -> str:
        """The ceiling in words; empty if the estimate has none."""
        top = document.ceiling(self.estimate)
        if top is None:
            return ""
        return f"ceiling {numbers.number(top, toward='down')}{self._of_score}"

    @property
    def _of_score(self) -> str:
        score = document.ceiling_of_score(self.estimate)
        return "" if score is None else f", of guesses like these {numbers.number(score, toward='up')}"

    @property
    def delta(self) -> str:
        """The delta of the number, or a dash if it has none."""
        return numbers.as_stated(self.estimate.delta)

    @property
    def adjacency(self) -> str:
        """The adjacency of a number about the training algorithm."""
        return str(self.estimate.adjacency or "")

    @property
    def about(self) -> str:
        """The subject of the number."""
        return ABOUT[self.estimate.subject].replace("model", self.subject)

    @property
    def about_fully(self) -> str:
        """The subject of the number, with its adjacency."""
        return f"{self.about} ({self.adjacency})" if self.adjacency else self.about

    @property
    def confidence(self) -> str:
        """The confidence with its condition, or that the number is a point estimate."""
        if not self.has_value:
            return numbers.MISSING
        level = self.estimate.confidence
        return self.promised or _POINT if level is None else self.level + self._condition

    @property
    def level(self) -> str:
        """The stated confidence; "about" if it is asymptotic."""
        return f"{'about ' if self.metric.approximate else ''}{numbers.percent(self.estimate.confidence)}"

    @property
    def _condition(self) -> str:
        """The condition of the stated confidence that no audit can check, if any."""
        if detail(self.estimate, "conditional"):
            return f", if {condition(self.estimate)}"
        return ", if the fit holds" if self.metric.curve and self.estimate.lower is not None else ""

    @cached_property
    def interval(self) -> str:
        """The interval with its confidence, or the reason why there is none."""
        item = self.estimate
        if not self.has_value:
            return f"no value: {numbers.tidy(item.reason or 'no reason was given')}"
        if self.promised:
            return f"promised, {self.promised}"
        if item.confidence is None:
            return ", ".join([_POINT, *self._no_interval])
        level = f"at {self.level} confidence{self._condition}"
        if self.alone:
            result = f"{self.ends} when taken alone, {level}"
            result = result if self.metric.lower_bound else f"not shown: {result}"
        elif not self.metric.lower_bound:
            return ", ".join([f"{self.ends} {level}", *(self._no_interval if item.lower is None else [])])
        elif not item.value:
            if document.powerless(item):
                return f"too few {self._counted} to certify anything at this delta"
            result = f"no evidence {level}"
        else:
            result = f"{'at least this' if self._condition else 'certified'} {level}"
        return ", ".join(part for part in (result, self.ceiling) if part)

    @property
    def _counted(self) -> str:
        return "runs" if detail(self.estimate, "unit") == "runs" else "records"

    @property
    def brief(self) -> str:
        """The number with its interval, in short form."""
        title = _BRIEF.get(self.name) or self.metric.short or self.title
        if self.metric.role is Role.CERTIFIED and self.estimate.subject is Subject.MODEL:
            title = f"epsilon of the {self.subject}"
        delta = "" if self.estimate.delta is None else f"delta {self.delta}"
        if self.metric.lower_bound:
            least = f"at least {self.value}" if self.estimate.value else "not shown"
            return f"{title} {least}{f' ({delta})' if delta else ''}"
        ends = self.ends if self.estimate.confidence else _POINT
        return f"{title} {self.value} ({', '.join(filter(None, (ends, delta)))})"

    @property
    def line(self) -> str:
        """The number in full, on one line."""
        return f"{self.title}: {self.value} ({self.interval}; about {self.about_fully}; delta {self.delta})"

    @property
    def _no_interval(self) -> list[str]:
        """Notes in place of a missing interval or lower end."""
        if self.is_rejected:
            return ["the fit is rejected"]
        reason = detail(self.estimate, "lower_reason")
        missing = reason and self.estimate.lower is None
        what = "no interval" if self.estimate.upper is None else "no lower end"
        return [f"{what}: {numbers.tidy(reason).rstrip('.')}"] if missing else []

    @property
    def context(self) -> str:
        """The subject and the delta, the values by guessing and by accuracy alone, and the effect of chance."""
        guessing = self.metric.guessing
        base = detail(self.estimate, "accuracy_baseline")
        alone = "" if base is None else f"right and wrong answers alone give {numbers.number(base)}"
        at = "" if self.estimate.delta is None else f"delta {self.delta}"
        parts = (f"about {self.about}", at, guessing and f"guessing gives {guessing}", alone, self._by_chance)
        return "; ".join(part for part in parts if part)

    @property
    def _by_chance(self) -> str:
        finite = metrics.is_finite(self.estimate)
        return "describes this finite training set and can be positive by chance alone" if finite else ""

    @property
    def caveat(self) -> str:
        """The caveats of the number in sentences, or the reason for a missing value."""
        item = self.estimate
        if not self.has_value:
            return numbers.sentence(item.reason or "No reason was given")
        if self.metric.lower_bound and item.value == 0:
            few = f"There are too few {self._counted} to certify anything at this delta."
            none = "There is no evidence above 0, which is not proof of privacy."
            none = none if detail(item, "off") is None else "No evidence remains if D is off by this factor."
            return few if document.powerless(item) else none
        if self.is_rejected:
            return "The fit is rejected, so there is no interval: do not rely on this number."
        finite = f"It {self._by_chance}." if self._by_chance else ""
        texts = [*map(numbers.sentence, self._no_interval), self._reach, finite]
        return " ".join(text for text in texts if text)

    @property
    def _reach(self) -> str:
        """The error rates behind a number without a fit, if the certified bound uses more."""
        clip = detail(self.estimate, "clip") if self.metric.role is Role.OBSERVED else None
        if clip is None or not 0 < clip < 1 / 2:
            return ""
        return FIT["reach"].format(low=numbers.percent(clip), high=numbers.percent(1 - clip))

    @property
    def notes(self) -> list[str]:
        """Notes on the computation of the value, in sentences."""
        item = self.estimate
        result = star_notes(item) if self.metric.curve else []
        if place := detail(item, "at"):
            rates = {"alarms": numbers.percent(place.get("fpr")), "misses": numbers.percent(place.get("fnr"))}
            edge = ", on the edge of the allowed range" if place.get("on_clip") else ""
            result.append(FIT["attained"].format(edge=edge, **rates))
        ends = _ENDS if self._counted == "records" else {}
        end = ends.get(str(detail(item, "branch") or detail(item, "tail")))
        pairs = (
            ("Without a limit on the rates", detail(item, "unclipped")),
            ("By the best region instead of a threshold", detail(item, "best_region")),
            ("On losses that were not rescaled", detail(item, "scale_free")),
            ("Average between two groups without any difference", detail(item, "noise_floor", "mean")),
            ("Standard deviation of the models' true values (tau)", detail(item, "tau")),
            ("Share of the models' spread beyond their errors (I^2)", detail(item, "i_squared")),
            ("P-value of equal models (Cochran's Q)", detail(item, "heterogeneity_p_value")),
        )
        others = [f"{text}: {numbers.number(x)}." for text, x in pairs if x is not None]
        return [*result, *([end] if end else []), *others]


def row_of(holder: Document | Slice | PolicyFound, name: str) -> Row | None:
    """Return the row of the estimate of that name, or None."""
    item = find(holder, name)
    return None if item is None else Row(item)


# --- One policy of answering less, as strings ---


_OF_TRAINING = metrics.named(Role.JUDGE)


@dataclass(frozen=True, eq=False)
class PolicyRow:
    """The results under one output policy.

    Attributes:
        outcome: The policy and its estimates.
        rate: Name of the displayed true positive rate.
    """

    outcome: PolicyFound
    rate: str = "tpr_at_fpr.0.01"

    @property
    def words(self) -> str:
        """The answer in words, as in "with the label alone"; an unknown name is returned as it is."""
        try:
            return OutputPolicy(self.outcome.policy).words
        except InputError:
            return numbers.tidy(self.outcome.policy)

    @property
    def title(self) -> str:
        """The answer as the head of a row."""
        words = self.words.removeprefix("the ")
        return words[:1].upper() + words[1:]

    @cached_property
    def auc(self) -> Row | None:
        """The AUC, if it has both limits."""
        row = row_of(self.outcome, "auc")
        options = row is not None and None not in (row.estimate.value, row.estimate.lower, row.estimate.upper)
        return row if options else None

    @property
    def bound(self) -> Row | None:
        """The largest bound on the training algorithm by such answers; None if the split allows none."""
        row, low = row_of(self.outcome, _OF_TRAINING), self.outcome.at_least.get(_OF_TRAINING)
        return None if row is None or low is None else Row(replace(row.estimate, value=low, lower=low))

    @property
    def best(self) -> str:
        """The lower limit of the best attacker's advantage."""
        low = shown_value(self.outcome.at_least.get("advantage"), name="advantage", toward="down")
        return low if low == numbers.MISSING else f"at least {low}"

    @cached_property
    def cells(self) -> tuple[tuple[str, str, str], ...]:
        """A title, a value and its interval for each column."""
        named = ("AUC", "auc"), (short_title(self.rate), self.rate), ("Advantage", "advantage")
        rows = [(title, row_of(self.outcome, name)) for title, name in named]
        cells = [(title, row.value, row.ends) if row else (title, numbers.MISSING, "") for title, row in rows]
        best = ("Best attacker's advantage", self.best, "")
        bound = () if self.bound is None else (("Bound on the training algorithm", self.bound.ends, ""),)
        return (*cells, best, *bound)


def policy_rows(result: Document) -> tuple[PolicyRow, ...]:
    """Return a row for each policy, full outputs first, with the TPR at 1% FPR or else the first available rate."""
    outcome: tuple[PolicyFound, ...] = getattr(result, "policies", ())
    names = [item.name for one in outcome[:1] for item in one.estimates if metrics.rate_of(item) is not None]
    rate = PolicyRow.rate if PolicyRow.rate in names else next(iter(names), PolicyRow.rate)
    return tuple(PolicyRow(item, rate) for item in outcome)


class ScoreRow(NamedTuple):
    """An attack by one score of the records, or by all of them together, as the cells of a table."""

    title: str
    value: str
    lower: str
    upper: str
    certified: str

    @property
    def interval(self) -> str:
        """The interval of the AUC; empty without one."""
        return "" if self.value == numbers.MISSING else f"{self.lower} to {self.upper}"


_OUTWARD = {"value": "nearest", "lower": "down", "upper": "up"}


def score_rows(result: Document) -> tuple[ScoreRow, ...]:
    """Return a row for each of several scores of the records, and one for all of them together where that was learnt."""
    return tuple(
        ScoreRow(
            title=_attack(item["score"]),
            **{end: shown_value(item[end], name="auc", toward=to) for end, to in _OUTWARD.items()},
            certified=numbers.number(item["certified"], toward="down"),
        )
        for item in result.data.get("scores", ())
    )


def _attack(name: str | None) -> str:
    if name is None:
        return "All together, learnt"
    try:
        policy = OutputPolicy(name)
    except InputError:
        return numbers.tidy(name)
    return policy.of_score or ("Loss" if name == OutputPolicy.FULL else f"Loss, {policy.words}")


class ExtractionRow(NamedTuple):
    """The secrets extracted within a number of tries, as the cells of a table.

    Attributes:
        tries: Number of tries.
        members: Share of the members' secrets, and its interval.
        others: Share of the non-members' secrets, and its interval.
        beyond: Least difference of the two.
        likely: Share of the members with a secret that the tries write with a probability of a half or more, and its interval.
    """

    tries: str
    members: tuple[str, str]
    others: tuple[str, str]
    beyond: str
    likely: tuple[str, str]


def extraction_rows(result: Document) -> tuple[ExtractionRow, ...]:
    """Return a row for each number of tries, ascending; none where the losses are not of secrets."""
    return tuple(
        ExtractionRow(
            f"{tries:,}",
            _share(*share_of(item)),
            _share(*share_of(item, "nonmember")),
            Row(beyond).ends if (beyond := find(result, f"extraction_beyond.{tries}")) else numbers.MISSING,
            _share(*share_of(item, "records")),
        )
        for tries, item in extracted(result)
    )


def extracted(result: Document) -> list[tuple[int, Estimate]]:
    """Return the shares of secrets extracted, each with its number of tries, ascending."""
    rows = [
        (item.name.removeprefix("extraction."), item) for item in result.estimates if item.value is not None
    ]
    return sorted(((int(tries), item) for tries, item in rows if tries.isdecimal()), key=lambda pair: pair[0])


def share_of(item: Estimate, group: str = "") -> tuple[float | None, float | None, float | None]:
    """Return the share of secrets extracted and both ends of its interval: of the members, or of another group in the details."""
    value, lower, upper = (detail(item, group, end) if group else getattr(item, end) for end in _OUTWARD)
    return value, lower, upper


def _share(value: float | None, lower: float | None, upper: float | None) -> tuple[str, str]:
    """Return a share and its interval, rounded outwards."""
    low, high = numbers.percent(lower, toward="down"), numbers.percent(upper, toward="up")
    return numbers.percent(value), "" if value is None else f"{low} to {high}"


@dataclass(frozen=True)
class CheckLine:
    """One check as strings: its name, question, outcome and advice."""

    name: str
    title: str
    question: str
    status: Status
    sign: Sign
    message: str
    advice: str

    @classmethod
    def of(cls, item: Check, data: Mapping[str, Any]) -> "CheckLine":
        """Return the line of a check in an audit of these data."""
        spec = CHECKS.get(item.name)
        return cls(
            name=item.name,
            title=check_title(item.name),
            question="" if spec is None else worded(spec.title, data),
            status=item.status,
            sign=STATUS[item.status],
            message=worded(numbers.sentence(item.message), data),
            advice=worded(advice(item, data), data),
        )

    @property
    def words(self) -> str:
        """The message and the advice."""
        return f"{self.message} {self.advice}".rstrip()

    @property
    def rank(self) -> int:
        """Its place in the order of urgency."""
        return WORST_FIRST.index(self.status)


@dataclass(frozen=True)
class ClaimLine:
    """A claim beside a measurement.

    Attributes:
        comparison: The claim and its outcome beside this measurement.
        row: The measurement, or None.
    """

    comparison: Comparison
    row: Row | None

    @property
    def claim(self) -> Claim:
        """The claim."""
        return self.comparison.claim

    @property
    def metric(self) -> str:
        """The title of the claimed metric."""
        return metrics.metric(self.claim.metric).title

    @property
    def claimed(self) -> str:
        """The claimed value."""
        if self.claim.metric == "epsilon":
            return numbers.as_stated(self.claim.value)
        return shown_value(self.claim.value, name=self.claim.metric)

    @property
    def outcome(self) -> Sign:
        """The verdict, or the reason for its absence."""
        if self.comparison.verdict is not None:
            return VERDICT[self.comparison.verdict]
        return Sign("Shown for comparison" if self.row else "Not measured", "", "plain")

    @property
    def deltas(self) -> tuple[str, str]:
        """The delta of the measurement, and that of the claim if it differs."""
        measured = None if self.row is None else self.row.estimate.delta
        if measured is None:
            return "", ""
        if self.claim.delta is None or math.isclose(self.claim.delta, measured, rel_tol=1e-9):
            return numbers.as_stated(measured), ""
        claimed, audited = numbers.distinct(self.claim.delta, measured)
        return audited, claimed
