"""One training run, every composition theorem: what each of them makes of the same steps."""

import math
from collections.abc import Callable

import numpy as np

from auditor import _validate
from auditor._format import given
from auditor.choices import DPSGD, Adjacency
from auditor.theory._step_epsilons import step_epsilons
from auditor.theory._step_pairs import StepPair
from auditor.theory.accountant import epsilon
from auditor.theory.composition import advanced_epsilon, basic_epsilon, optimal_epsilon, sharper_epsilon
from auditor.theory.gaussian import gaussian_epsilon
from auditor.theory.gdp import FIXED_SIZE, mu_clt, mu_without_sampling
from auditor.theory.renyi import renyi_epsilon
from auditor.values import Claim, Floats

__all__ = ["compare_compositions"]

# Shares of delta that the steps themselves may take, tried one after the other; each is valid, so the best counts.
_SHARES = (0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99, 1.0)

_BASIC = "basic composition"
_ADVANCED = "advanced composition (Dwork, Rothblum and Vadhan 2010)"
_SHARPER = "advanced composition (Kairouz, Oh and Viswanath 2015, Theorem 3.4)"
_OPTIMAL = "optimal composition of (epsilon, delta) steps (Kairouz, Oh and Viswanath 2015, Theorem 3.3)"
_RENYI = "Renyi divergences (RDP accountant)"
_LOSSES = "privacy loss distributions (dp-accounting)"
_EVERYONE = "Gaussian differential privacy without sampling"
_LIMIT = "Gaussian differential privacy by the central limit theorem"
_METHODS = (_BASIC, _ADVANCED, _SHARPER, _OPTIMAL, _RENYI, _LOSSES, _EVERYONE, _LIMIT)
_VACUOUS = "Infinite: the theorem promises nothing here."

_Theorem = Callable[[Floats, Floats, float, float], float]
"""From epsilons of the kinds of step, their counts, the delta of one step and all of delta to a total epsilon."""


def compare_compositions(
    training: DPSGD, *, delta: float, adjacency: Adjacency = Adjacency.ADD_REMOVE
) -> tuple[Claim, ...]:
    """Return the epsilon of one training run by every composition theorem, side by side.

    The theorems about (epsilon, delta) steps are given each step's exact (epsilon, delta), sampling included: of the
    pair of laws that the step gives with and without the record, or with one of two records. Every step gets the same
    share of delta: all of it by basic composition; by the others as much as is best among fixed shares from 1% on, and
    the rest is the theorem's own.

    Args:
        training: Noise multipliers, sampling rates and steps.
        delta: In [0, 1); at 0 every epsilon is infinite.
        adjacency: Which training sets count as neighbours.

    Returns:
        ``epsilon`` claims, each with its ``method``: basic; advanced in two forms; optimal for (epsilon, delta) steps;
        Renyi divergences; privacy loss distributions (`auditor.theory.epsilon`); Gaussian DP without sampling; and,
        if there is sampling, Gaussian DP by its central limit theorem. Only the last one is not proven, and says where
        it is on the unsafe side. All are null for batches of a fixed size and added or removed records.

    Raises:
        InputError: The run is no DPSGD, delta is outside [0, 1), or the adjacency is unknown.

    Source: Dwork and Roth 2014; Kairouz, Oh and Viswanath 2015; Balle, Barthe and Gaboardi 2018; Dong, Roth and Su 2022.

    >>> claims = compare_compositions(DPSGD(0.6, 0.01, 100), delta=1e-5)
    >>> [round(claims[place].value, 3) for place in (0, 5, 7)]  # basic, privacy losses, central limit
    [343.107, 3.816, 1.505]
    """
    _validate.instance("training", training, [DPSGD])
    delta = _validate.fraction("delta", delta, zero=True)
    relation = Adjacency(_validate.known("adjacency", adjacency, [str(item) for item in Adjacency]))
    if training.fixed_size and relation is Adjacency.ADD_REMOVE:
        return tuple(
            Claim("epsilon", None, delta, relation, method, proven=True, note=FIXED_SIZE)
            for method in _METHODS
        )
    steps = _Steps(training, relation)
    accounted = epsilon(training, delta=delta, adjacency=relation)
    rows = (
        steps.claim(
            _BASIC, lambda epsilons, counts, _each, _total: basic_epsilon(epsilons, counts), delta, (1.0,)
        ),
        steps.claim(_ADVANCED, _with_slack(advanced_epsilon), delta, _SHARES),
        steps.claim(_SHARPER, _with_slack(sharper_epsilon), delta, _SHARES),
        steps.claim(_OPTIMAL, _worst_step, delta, _SHARES),
        renyi_epsilon(training, delta=delta, adjacency=relation),
        accounted,
        _gaussian(_EVERYONE, mu_without_sampling(training, adjacency=relation), delta),
    )
    limit = mu_clt(training, adjacency=relation)
    if limit.proven:  # no sampling: the row before is exact
        return rows
    return (*rows, _gaussian(_LIMIT, limit, delta, accounted=accounted.value))


class _Steps:
    """The kinds of step of a training run, as (epsilon, delta) mechanisms."""

    def __init__(self, training: DPSGD, relation: Adjacency) -> None:
        phases = training.phases
        self.relation, self.steps = relation, training.steps
        self.pair = StepPair.of(training, relation)
        self.noise = np.array([phase.noise_multiplier for phase in phases])
        self.rates = np.array([phase.sampling_rate for phase in phases])
        self.counts = np.array([float(phase.steps) for phase in phases])

    def claim(self, method: str, theorem: _Theorem, delta: float, shares: tuple[float, ...]) -> Claim:
        """Return the theorem's claim at the best share of delta."""
        each = np.array(shares) * delta / self.steps
        epsilons = step_epsilons(self.noise, self.rates, self.pair, deltas=each[:, None])
        totals = [
            theorem(row, self.counts, one, delta) if one > 0 else math.inf
            for row, one in zip(epsilons, each.tolist(), strict=True)
        ]
        best = int(np.argmin(totals))
        note = _VACUOUS
        if math.isfinite(totals[best]):
            most = given(float(epsilons[best].max()))
            note = (
                f"Each step's exact (epsilon, delta), sampling included: at most epsilon {most} at delta"
                f" {given(float(each[best]))}."
            )
            if theorem is _worst_step and self.counts.size > 1:
                note += " Every step counts as the worst one, so it may be looser than the others."
        return Claim("epsilon", totals[best], delta, self.relation, method, proven=True, note=note)


def _with_slack(form: Callable[[Floats, Floats, float], float]) -> _Theorem:
    """Give a form of advanced composition what the steps leave of delta."""

    def theorem(epsilons: Floats, counts: Floats, each: float, total: float) -> float:
        slack = total - each * float(counts.sum())
        return form(epsilons, counts, slack) if slack > 0 else math.inf

    return theorem


def _worst_step(epsilons: Floats, counts: Floats, each: float, total: float) -> float:
    # (epsilon, delta)-DP is also (more than epsilon, delta)-DP, and the theorem needs equal steps.
    return optimal_epsilon(float(epsilons.max()), each, int(counts.sum()), total)


def _gaussian(method: str, mu: Claim, delta: float, *, accounted: float | None = None) -> Claim:
    """Return the epsilon that a mu implies."""
    largest = math.inf if mu.value is None else mu.value
    value = gaussian_epsilon(largest, delta=delta)
    note = f"mu is {given(largest)}. {mu.note}".rstrip()
    if math.isinf(value):
        note = f"{_VACUOUS} {mu.note}".rstrip()
    elif accounted is not None and value < accounted < math.inf:
        note += f" Here it lies {given(accounted - value)} below the accountant's."
    return Claim("epsilon", value, delta, mu.adjacency, method, proven=mu.proven, note=note)
