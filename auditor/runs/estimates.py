"""The rows of an audit of many runs: four methods at one threshold, of which one certifies and alone can judge."""

import dataclasses
from typing import Any

from scipy import special

from auditor.choices import Adjacency, ClopperPearson, FixedThreshold, Katz, RankGrid, Sample, ThresholdRule
from auditor.estimators.binomial import upper_limit
from auditor.estimators.clopper_pearson import clopper_pearson
from auditor.estimators.member_limits import MemberLimits
from auditor.estimators.single_threshold import Counts, threshold_bound
from auditor.runs.bayesian import credible_lower
from auditor.runs.thresholds import Judged
from auditor.theory.gaussian import gaussian_epsilon
from auditor.values import Estimate, Subject

__all__ = ["BAYESIAN", "CERTIFIED", "GDP", "KATZ", "estimates"]

CERTIFIED, KATZ = "epsilon_bound.clopper_pearson", "epsilon_bound.katz"
BAYESIAN, GDP = "epsilon_bound.bayesian", "epsilon_bound.gdp"

_ONE_THRESHOLD = "it needs one threshold, and a grid of ranks has many; fix one in advance, or have it chosen on other runs"
_EMPTY = "{}: the variance of the ratio that the certified bound comes from is not known then"
_NO_ALARM = "no run without the canary was called one with it"
_NO_MISS = "no run with the canary was missed"
_BLIND = "all judged scores are equal, so this score could not have shown any leak"
_NO_EPSILON = "a Gaussian trade-off curve has no finite epsilon at delta 0; give a delta above 0"


def estimates(
    found: Judged, *, delta: float, confidence: float, adjacency: Adjacency, rule: ThresholdRule
) -> tuple[Estimate, ...]:
    """Return the certified row, and the approximate, the credible and the conditional one beside it.

    Args:
        found: The runs that are judged, and the threshold.
        delta: To state epsilon at.
        confidence: Of every row.
        adjacency: What the two worlds differ by.
        rule: How the threshold was chosen.
    """
    shown = _Shown(found, delta, confidence, adjacency)
    return _certified(shown, rule), _katz(shown), _bayesian(shown), _gdp(shown)


@dataclasses.dataclass(frozen=True)
class _Shown:
    """What all rows share."""

    found: Judged
    delta: float
    confidence: float
    adjacency: Adjacency

    @property
    def alpha(self) -> float:
        return 1 - self.confidence

    @property
    def details(self) -> dict[str, Any]:
        """The threshold and its counts."""
        found, counts = self.found, self.found.counts
        chosen = None if found.chosen_on is None else list(found.chosen_on)
        details = {"unit": "runs", "rule": found.rule, "threshold": found.threshold, "chosen_on": chosen}
        return details if counts is None else {**details, **vars(counts)}

    @property
    def assumptions(self) -> tuple[str, ...]:
        other = "without it" if self.adjacency is Adjacency.ADD_REMOVE else "with another record in its place"
        chosen = "no threshold was chosen by looking at the runs that it judges"
        return (
            "every run drew its randomness anew, so that the scores are independent (declared, not checked)",
            f"the runs differ by nothing but one record: with the canary, or {other} (declared, not checked)",
            chosen if self.found.chosen_on is None else "the threshold was chosen on other runs",
        )

    def row(self, name: str, value: float, method: str, *assumptions: str, **details: Any) -> Estimate:
        """A lower bound; the value is the bound."""
        return Estimate(
            name=name,
            value=value,
            lower=value,
            upper=None,
            confidence=self.confidence,
            method=f"{method}; {self.found.in_words}",
            subject=Subject.MECHANISM,
            delta=self.delta,
            adjacency=self.adjacency,
            assumptions=(*assumptions, *self.assumptions),
            details={**self.details, **details},
        )

    def without(self, name: str, method: str, reason: str, **details: Any) -> Estimate:
        """The same row without a value."""
        row = self.row(name, 0.0, method, reason=reason, **details)
        return dataclasses.replace(row, value=None, lower=None, confidence=None, assumptions=())


def _certified(shown: _Shown, rule: ThresholdRule) -> Estimate:
    threshold = shown.found.threshold
    used = rule if threshold is None else FixedThreshold(threshold)
    base = clopper_pearson(shown.found.losses, delta=shown.delta, confidence=shown.confidence, rule=used)
    details = {**base.details, "rule": shown.found.rule}
    if shown.found.counts is not None:
        details |= _limits(shown.found.counts, shown.alpha)
    melded = isinstance(rule, RankGrid) and details["interval"] == "Melded"
    method = "melded Clopper-Pearson limits" if melded else "Clopper-Pearson limits of both error rates"
    return shown.row(CERTIFIED, base.value or 0.0, method, **details)


def _limits(counts: Counts, alpha: float) -> dict[str, float]:
    """Both rates with half of the error each: what the certified and the Gaussian row rest on."""
    fnr, fpr = _upper_limits(counts, alpha)
    return {"tpr_lower": 1 - fnr, "fpr_upper": fpr, "fnr_upper": fnr}


def _upper_limits(counts: Counts, alpha: float) -> tuple[float, float]:
    misses = counts.members - counts.true_positives
    fnr = float(upper_limit(misses, counts.members, alpha / 2))
    return fnr, float(upper_limit(counts.false_positives, counts.nonmembers, alpha / 2))


def _katz(shown: _Shown) -> Estimate:
    method = "Katz log-ratio limits, an approximation for many runs; Katz et al. 1978"
    threshold, counts = shown.found.threshold, shown.found.counts
    if threshold is None or counts is None:
        return shown.without(KATZ, method, _ONE_THRESHOLD, approximate=True)
    empty = _empty_cell(counts, shown)
    if empty is not None:
        return shown.without(KATZ, method, _EMPTY.format(empty), approximate=True)
    base = clopper_pearson(
        shown.found.losses,
        delta=shown.delta,
        confidence=shown.confidence,
        rule=FixedThreshold(threshold, Katz()),
    )
    note = "approximate limits: with few runs in a cell it can exceed the truth more often than its confidence says"
    return shown.row(KATZ, base.value or 0.0, method, note, ceiling=base.details["ceiling"], approximate=True)


def _empty_cell(counts: Counts, shown: _Shown) -> str | None:
    """Why the ratio that certifies has no variance, if so; the other one, shown in its place, would be much too low."""
    limits, exact = MemberLimits(Sample(), counts.members), ClopperPearson()
    found = threshold_bound(counts, limits, delta=shown.delta, alpha=shown.alpha, interval=exact)
    if found.details["tail"] == "lower":
        return _NO_ALARM if counts.false_positives == 0 else None
    return _NO_MISS if counts.true_positives == counts.members else None


def _bayesian(shown: _Shown) -> Estimate:
    method = "posterior of both error rates under Jeffreys' priors, the reversed guess included; Zanella-Beguelin et al. 2023"
    counts = shown.found.counts
    if counts is None:
        return shown.without(BAYESIAN, method, _ONE_THRESHOLD, credible=True)
    first, second = shown.found.losses.sorted_member, shown.found.losses.sorted_nonmember
    if first[0] == first[-1] == second[0] == second[-1]:
        return shown.without(BAYESIAN, method, _BLIND, credible=True)
    value = credible_lower(counts, delta=shown.delta, alpha=shown.alpha)
    perfect = Counts(counts.members, counts.members, 0, counts.nonmembers)
    return shown.row(
        BAYESIAN,
        value,
        method,
        "credible: its probability is over a prior, and for one mechanism it can be wrong more often than it says",
        ceiling=credible_lower(perfect, delta=shown.delta, alpha=shown.alpha),
        credible=True,
    )


def _gdp(shown: _Shown) -> Estimate:
    """mu_L = Phi^-1(1 - FPR_U) - Phi^-1(FNR_U): both upper limits (erratum to the lecture slides, which take a lower)."""
    method = "Gaussian trade-off curve through Clopper-Pearson limits; Nasr et al. 2023"
    counts = shown.found.counts
    if counts is None:
        return shown.without(GDP, method, _ONE_THRESHOLD, conditional=True)
    perfect = Counts(counts.members, counts.members, 0, counts.nonmembers)
    limits = _limits(counts, shown.alpha)
    mu, most = _mu(counts, shown.alpha), _mu(perfect, shown.alpha)
    details = {"mu": mu, "ceiling_mu": most, "conditional": True, **limits}
    if shown.delta == 0:
        return shown.without(GDP, method, _NO_EPSILON, **details)
    return shown.row(
        GDP,
        gaussian_epsilon(mu, delta=shown.delta),
        method,
        "conditional on a Gaussian trade-off curve: on other mechanisms it can exceed the truth",
        ceiling=gaussian_epsilon(most, delta=shown.delta),
        **details,
    )


def _mu(counts: Counts, alpha: float) -> float:
    # As two lower tails, so that small rates keep their digits; a rate of 1 gives minus infinity, and so 0.
    fnr, fpr = _upper_limits(counts, alpha)
    return max(0.0, float(-special.ndtri(fpr) - special.ndtri(fnr)))
