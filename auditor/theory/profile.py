"""The whole trade-off curve that a training description allows, not only its epsilon at one delta."""

from dataclasses import dataclass
from typing import get_args

import numpy as np

from auditor import _validate
from auditor.choices import DPSGD, Adjacency, StatedClaim, TrainingClaim
from auditor.theory import _sampled_gaussian as sampled
from auditor.theory._loss_grid import in_range, loss_grid, resolvable
from auditor.theory._merging import kinds_of
from auditor.theory._step_pairs import StepPair
from auditor.theory.accountant import epsilon, replace_one
from auditor.theory.dpsgd import FIXED_SIZE_NEEDS_REPLACE_ONE, ever_drawn, merging_note, unsampled_mu
from auditor.theory.gaussian import gaussian_epsilon
from auditor.tradeoff import TradeoffCurve
from auditor.values import Floats

__all__ = ["ClaimedCurve", "claimed_curve"]

_POINTS = 200
_LARGEST_EPSILON = 700.0
# What a double may lose in the difference of two normal tails.
_ROUNDING = 1e-15
_NEEDS = (
    "the replace-one curve of sampled DP-SGD needs dp-accounting 0.6.0 or later: pip install -U dp-accounting"
)


@dataclass(frozen=True, eq=False)
class ClaimedCurve:
    """A claim's trade-off curve.

    Attributes:
        curve: For both orders of two neighbours, never below the true one; null if there is none.
        note: How the curve was made, or why there is none.
    """

    curve: TradeoffCurve | None
    note: str


def claimed_curve(claim: TrainingClaim, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> ClaimedCurve:
    """Return the largest trade-off curve that a training description allows an attacker who sees every iterate.

    For DP-SGD it is the lowest of the curves of (epsilon, delta) at many epsilons, each delta an upper bound: by the
    accountant, without sampling, and from how rarely the record is drawn at all. So it never lies below the truth.

    Args:
        claim: DP-SGD parameters, or a stated (epsilon, delta).
        adjacency: Which training sets count as neighbours.

    Raises:
        InputError: The adjacency is unknown.

    Source: Dong, Roth and Su 2022, Proposition 2.12; Doroshenko et al. 2022 for the deltas.

    >>> round(claimed_curve(DPSGD(1.0, 1.0, 1)).curve.tpr_at(0.1), 3)  # Phi(Phi^-1(.1) + 1) = .3891
    0.389
    """
    _validate.instance("claim", claim, get_args(TrainingClaim))
    relation = Adjacency(_validate.known("adjacency", adjacency, [str(item) for item in Adjacency]))
    if isinstance(claim, StatedClaim):
        return _stated(claim, relation)
    if claim.fixed_size and relation is Adjacency.ADD_REMOVE:
        return ClaimedCurve(None, _as_phrase(FIXED_SIZE_NEEDS_REPLACE_ONE))
    unsampled = all(phase.sampling_rate == 1 for phase in claim.phases)
    poisson = StepPair.of(claim, relation) is StepPair.REPLACE_ONE
    if poisson and not unsampled and not sampled.accountant_has_replace_one():
        return ClaimedCurve(None, _NEEDS)
    parts = [_unsampled(claim, relation), _rarely_drawn(claim)]
    accounted = None if unsampled else _accounted(claim, relation)
    if accounted is not None:
        parts.append(accounted)
    note = "the whole privacy profile of the accountant (dp-accounting)"
    if unsampled:
        note = "exact Gaussian composition"
    elif accounted is None:
        note = "Gaussian composition without sampling, so it may be loose"
    elif merging := merging_note(claim):
        note += f"; {_as_phrase(merging)}"
    epsilons, deltas = (np.concatenate(column) for column in zip(*parts, strict=True))
    return ClaimedCurve(TradeoffCurve.from_profile(epsilons, deltas=deltas), note)


def _stated(claim: StatedClaim, adjacency: Adjacency) -> ClaimedCurve:
    implied = epsilon(claim, delta=claim.delta, adjacency=claim.adjacency)
    if adjacency is not claim.adjacency:
        if adjacency is Adjacency.ADD_REMOVE:
            return ClaimedCurve(
                None, "a replace-one statement implies nothing about adding or removing a record"
            )
        implied = replace_one(implied)
    if implied.value is None or implied.delta is None:
        return ClaimedCurve(None, "the statement implies nothing about replaced records")
    curve = TradeoffCurve.from_epsilon_delta(implied.value, delta=implied.delta)
    return ClaimedCurve(curve, f"the stated epsilon and delta; {implied.method}")


def _unsampled(training: DPSGD, adjacency: Adjacency) -> tuple[Floats, Floats]:
    """Every record in every step: delta(eps) = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu); Balle and Wang 2018."""
    from scipy.special import log_ndtr

    mu = unsampled_mu(training, adjacency=adjacency)
    furthest = min(gaussian_epsilon(mu, delta=_ROUNDING), _LARGEST_EPSILON)
    epsilons = furthest * np.linspace(0.0, 1.0, _POINTS)
    upper = np.exp(log_ndtr(mu / 2 - epsilons / mu))
    lower = np.exp(epsilons + log_ndtr(-mu / 2 - epsilons / mu))
    return epsilons, np.clip(upper - lower + _ROUNDING, 0.0, 1.0)


def _rarely_drawn(training: DPSGD) -> tuple[Floats, Floats]:
    """The two worlds differ only if the record is ever drawn: delta at most the sum of the rates at epsilon 0."""
    return np.zeros(1), np.full(1, ever_drawn(training))


def _accounted(training: DPSGD, adjacency: Adjacency) -> tuple[Floats, Floats] | None:
    """The accountant's deltas, or null beyond its range."""
    raised, pair = resolvable(training.phases), StepPair.of(training, adjacency)
    if not in_range(raised):
        return None
    kinds = kinds_of(raised, pair=pair)
    grid = loss_grid(kinds, pair=pair)
    if grid is None:
        return None
    return sampled.accountant_deltas(kinds, pair=pair, grid=grid, points=_POINTS)


def _as_phrase(sentence: str) -> str:
    words = sentence.strip().rstrip(".")
    return words[0].lower() + words[1:]
