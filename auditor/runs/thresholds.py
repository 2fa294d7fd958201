"""One threshold, chosen without the runs that are judged by it, and the counts that it gives."""

from dataclasses import dataclass

import numpy as np

from auditor import _validate
from auditor.choices import ClopperPearson, FixedThreshold, RankGrid, Split, ThresholdRule
from auditor.errors import InputError
from auditor.estimators.single_threshold import Counts
from auditor.estimators.split import halves, most_telling
from auditor.provenance import input_hash
from auditor.values import Losses

__all__ = ["Judged", "judged"]

_LEAST = 2
_FEW = 3  # scores that two collections may share
_SHARE = 0.01  # or as a part of them
_ERRORS = 5.0  # standard errors


@dataclass(frozen=True)
class Judged:
    """The runs that are judged, and the threshold they are judged at.

    Attributes:
        losses: The runs that are judged.
        rule: The name of the rule that chose the threshold.
        threshold: "With the canary" at or below it; null for a grid of ranks.
        chosen_on: How many runs with and without the canary chose it; null where none did.
    """

    losses: Losses
    rule: str
    threshold: float | None
    chosen_on: tuple[int, int] | None = None

    @property
    def counts(self) -> Counts | None:
        """How many runs of each world are called "with the canary"; null for a grid of ranks."""
        if self.threshold is None:
            return None
        groups = self.losses.sorted_member, self.losses.sorted_nonmember
        hits, alarms = (int(np.searchsorted(group, self.threshold, side="right")) for group in groups)
        return Counts(hits, self.losses.n_member, alarms, self.losses.n_nonmember)

    @property
    def in_words(self) -> str:
        """How the threshold was chosen, as a clause."""
        if self.threshold is None:
            return "thresholds at ranks fixed in advance"
        if self.chosen_on is None:
            return "one threshold fixed in advance"
        first, second = self.chosen_on
        return f"one threshold chosen on {first:,} other runs with the canary and {second:,} without"


def judged(
    losses: Losses, *, rule: ThresholdRule, threshold_runs: Losses | None, delta: float, alpha: float
) -> Judged:
    """Return which runs are judged, and where.

    Raises:
        InputError: Too few runs, the same runs twice, or a rule that says what the rows say for themselves.
    """
    if threshold_runs is not None:
        return _on_others(losses, threshold_runs, rule, delta, alpha)
    match rule:
        case RankGrid():
            return Judged(losses, "RankGrid", None)
        case FixedThreshold():
            if rule.interval != ClopperPearson():
                raise InputError(
                    "threshold must leave its interval at ClopperPearson(), got"
                    f" {type(rule.interval).__name__}(); Katz limits have a row of their own."
                )
            return Judged(losses, "FixedThreshold", rule.threshold)
        case Split():
            return _on_a_part(losses, rule, delta, alpha)


def _on_others(losses: Losses, others: Losses, rule: ThresholdRule, delta: float, alpha: float) -> Judged:
    if rule != Split():
        raise InputError(
            f"threshold_runs choose the threshold, so threshold={type(rule).__name__}(...) would choose it twice; give"
            " one of them."
        )
    if input_hash(others) == input_hash(losses):
        raise InputError(
            "threshold_runs must be other runs than those that are judged, got the same scores; collect them with another"
            " seed, because a threshold chosen on the runs that it judges makes every bound too high."
        )
    shared, total = _shared(losses, others), others.n_member + others.n_nonmember
    if shared is not None:
        raise InputError(
            f"threshold_runs must be other runs than those that are judged, but {shared:,} of their {total:,} scores are"
            " among the judged ones; collect them with another seed, because a threshold chosen on the runs that it judges"
            " makes every bound too high."
        )
    chosen = most_telling(others, delta, alpha)
    return Judged(losses, "threshold_runs", chosen, (others.n_member, others.n_nonmember))


def _shared(losses: Losses, others: Losses) -> int | None:
    """How many scores of the others occur among the judged ones, where that is more than chance; null where it is not.

    A new run has the score of a judged one about as often as one of the judged runs has that of another: hardly ever
    where scores are fine, and nearly always where they take few values, which then shows nothing.
    """
    shared, expected, variance = 0, 0.0, 0.0
    for judged, other in (
        (losses.sorted_member, others.sorted_member),
        (losses.sorted_nonmember, others.sorted_nonmember),
    ):
        values, counts = np.unique(judged, return_counts=True)
        # Two more runs that do and two that do not, so that few runs without a repetition do not exclude one.
        repeated = (float(counts[counts > 1].sum()) + 2) / (judged.size + 4)
        shared += int(np.isin(other, values).sum())
        expected += repeated * other.size
        variance += repeated * (1 - repeated) * other.size * (1 + other.size / judged.size)
    margin = max(_FEW, _SHARE * (others.n_member + others.n_nonmember))
    return shared if shared - expected > margin + _ERRORS * variance**0.5 else None


def _on_a_part(losses: Losses, rule: Split, delta: float, alpha: float) -> Judged:
    sizes = losses.n_member, losses.n_nonmember
    parts = [(round(rule.fraction * size), size - round(rule.fraction * size)) for size in sizes]
    least = min(min(part) for part in parts)
    if least < _LEAST:
        raise InputError(
            f"threshold=Split({rule.fraction:g}) needs at least {_LEAST} runs of each world on each side, got"
            f" {least}; collect more runs."
        )
    rng = np.random.default_rng(_validate.at_least("seed", rule.seed, least=0))
    (choose1, judge1), (choose0, judge0) = (
        halves(values, rule.fraction, rng) for values in (losses.member, losses.nonmember)
    )
    chosen = most_telling(Losses(member=choose1, nonmember=choose0), delta, alpha)
    rest = Losses(member=judge1, nonmember=judge0)
    return Judged(rest, "Split", chosen, (choose1.size, choose0.size))
