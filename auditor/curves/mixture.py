"""Mixtures of normals in one dimension: the density, its fit, and the number of components that survive their test."""

import math
import operator
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import NamedTuple

import numpy as np
from scipy import special

from auditor.core import FittedPair, Floats, GoodnessOfFit, KSGrid, Losses, Mixture
from auditor.curves import gaussian

_HALVINGS = 200
_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class MixtureOfGaussians:
    """A mixture of normals; one single component may have ``sds`` 0, a point mass (every record has the same loss).

    Attributes:
        weights: Shares of the components, above 0, summing to 1.
        means: Their means.
        sds: Their standard deviations, above 0 where there is more than one.

    >>> two = MixtureOfGaussians(weights=(0.25, 0.75), means=(0.0, 4.0), sds=(1.0, 1.0))
    >>> two.components, two.mean, round(two.sd, 6)
    (2, 3.0, 2.0)
    >>> round(float(two.log_cdf(np.array(-40.0))), 4)
    -805.9947
    """

    weights: tuple[float, ...]
    means: tuple[float, ...]
    sds: tuple[float, ...]

    @property
    def components(self) -> int:
        """Number of components."""
        return len(self.weights)

    @property
    def mean(self) -> float:
        """Mean."""
        return math.fsum(w * m for w, m in zip(self.weights, self.means, strict=True))

    @property
    def sd(self) -> float:
        """Standard deviation, without overflow at any scale."""
        centre, parts = self.mean, zip(self.weights, self.means, self.sds, strict=True)
        return math.hypot(*(math.sqrt(w) * part for w, m, s in parts for part in (s, m - centre)))

    def _z(self, x: Floats) -> Floats:
        """Shape (..., components): distances from each mean in standard units."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            z = (np.asarray(x, dtype=np.float64)[..., None] - np.array(self.means)) / np.array(self.sds)
        # A point mass: everything at or above it counts as above.
        return np.where(np.isnan(z), np.inf, z) if self.sds == (0.0,) else z

    def _total(self, logs: Floats) -> Floats:
        terms = logs + np.log(self.weights)
        top = terms.max(axis=-1, keepdims=True)
        top = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.exp(terms - top).sum(axis=-1)) + top[..., 0])

    def log_cdf(self, x: Floats) -> Floats:
        """Return the log of P[X <= x]."""
        return np.minimum(self._total(special.log_ndtr(self._z(x))), 0.0)

    def log_sf(self, x: Floats) -> Floats:
        """Return the log of P[X > x]."""
        return np.minimum(self._total(special.log_ndtr(-self._z(x))), 0.0)

    def log_pdf(self, x: Floats) -> Floats:
        """Return the log-density; infinite at a point mass."""
        if self.sds == (0.0,):
            return np.where(np.asarray(x) == self.means[0], np.inf, -np.inf)
        z = self._z(x)
        with np.errstate(over="ignore"):
            return self._total(-0.5 * z * z - _LOG_SQRT_2PI - np.log(self.sds))

    def quantile(self, probability: Floats) -> Floats:
        """Return the smallest points with at least this much probability at or below them, by halving between the components'."""
        level = np.asarray(probability, dtype=np.float64)
        means, sds = np.array(self.means), np.array(self.sds)
        if self.sds == (0.0,):
            return np.full_like(level, self.means[0])
        each = means + sds * special.ndtri(level)[..., None]
        low, high = each.min(axis=-1), each.max(axis=-1)
        # In the smaller tail, where nothing is lost to rounding.
        upper = level > 0.5  # noqa: PLR2004
        with np.errstate(divide="ignore"):
            below, above = np.log(level), np.log1p(-level)
        for _ in range(_HALVINGS):
            middle = low + (high - low) / 2
            if ((middle <= low) | (middle >= high)).all():
                break
            short = np.where(upper, self.log_sf(middle) > above, self.log_cdf(middle) < below)
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return np.asarray(high)

    def spread(self, z: Floats) -> Floats:
        """Return the points at these standard distances from every mean, ascending."""
        points = np.array(self.means) + np.array(self.sds) * np.asarray(z)[..., None]
        return np.sort(points, axis=None)

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        """Return independent draws."""
        share = np.array(self.weights)
        which = rng.choice(self.components, size=size, p=share / share.sum())
        return rng.normal(np.array(self.means)[which], np.array(self.sds)[which])


# --- Expectation-maximisation for weighted values in one dimension, accelerated ---
#
# A step takes the memberships of every value under the present mixture and refits the components to them. Three steps
# in a row give a direction and a step length (SQUAREM; Varadhan and Roland 2008, scheme S3): far fewer steps where
# components overlap and the plain iteration crawls.


_EXACT_TAIL = 500
_RUNS = 1000
# Smallest component spread, beside the sample's own scale of 1: without it a component collapses onto one record.
_LEAST_VARIANCE = 1e-6
_LEAST_WEIGHT = 1e-300
_GAIN = 1e-3  # in nats of the whole log-likelihood, for one cycle of three steps
_CYCLES = 60


class _Parameters(NamedTuple):
    """Shares, means and variances of the components."""

    weights: Floats
    means: Floats
    variances: Floats


@dataclass(frozen=True, eq=False)
class Runs:
    """A sample as runs of neighbouring values: their means, the numbers of records, and the variance within each."""

    values: Floats
    counts: Floats
    within: Floats


def condensed(
    ordered: Floats, *, tail: int = _EXACT_TAIL, runs: int = _RUNS, length: int | None = None
) -> Runs:
    """Return runs that stand for a long ascending sample: every record in both tails, short runs between.

    The mean and variance of the whole sample are kept exactly, so that one component is fitted as on all records.

    Args:
        ordered: The sample, ascending.
        tail: Records of each tail that stand for themselves.
        runs: Number of runs between.
        length: Records of a run; by default as many as it takes. Without runs of two or more all stand for themselves.
    """
    length = (ordered.size - 2 * tail) // runs if length is None else length
    if length <= 1 or runs <= 0:
        return Runs(ordered, np.ones(ordered.size), np.zeros(ordered.size))
    end = tail + runs * length
    middle = ordered[tail:end].reshape(runs, length)
    rest = ordered.size - end
    return Runs(
        np.concatenate([ordered[:tail], middle.mean(axis=1), ordered[end:]]),
        np.repeat([1.0, length, 1.0], [tail, runs, rest]),
        np.concatenate([np.zeros(tail), middle.var(axis=1), np.zeros(rest)]),
    )


def _step(runs: Runs, at: _Parameters) -> tuple[_Parameters, float]:
    """Return one step, and the log-likelihood (up to a constant) at its start."""
    distance = runs.values[:, None] - at.means
    terms = distance * distance
    terms += runs.within[:, None]
    terms /= -2.0 * at.variances
    terms += np.log(at.weights) - 0.5 * np.log(at.variances)
    top = terms.max(axis=1, keepdims=True)
    terms -= top
    share = np.exp(terms, out=terms)
    total = share.sum(axis=1, keepdims=True)
    likelihood = float((runs.counts * (np.log(total) + top)[:, 0]).sum())
    share *= runs.counts[:, None] / total
    mass = np.maximum(share.sum(axis=0), _LEAST_WEIGHT)
    means = np.einsum("ij,i->j", share, runs.values) / mass
    offset = runs.values[:, None] - means
    offset *= offset
    offset += runs.within[:, None]
    variances = np.maximum(np.einsum("ij,ij->j", share, offset) / mass, _LEAST_VARIANCE)
    weights = np.maximum(mass / mass.sum(), _LEAST_WEIGHT)
    return _Parameters(weights, means, variances), likelihood


def _packed(at: _Parameters) -> Floats:
    return np.concatenate([np.log(at.weights), at.means, np.log(at.variances)])


def _unpacked(theta: Floats) -> _Parameters:
    logs, means, spreads = np.split(theta, 3)
    weights = np.exp(logs - logs.max())
    variances = np.exp(np.clip(spreads, math.log(_LEAST_VARIANCE), 500.0))
    return _Parameters(np.maximum(weights / weights.sum(), _LEAST_WEIGHT), means, variances)


def _maximise(runs: Runs, start: _Parameters, *, cycles: int = _CYCLES) -> tuple[_Parameters, float]:
    """Return the nearest maximum of the log-likelihood, and its height in nats up to a constant.

    Args:
        runs: Values of a scale near 1.
        start: Where to begin.
        cycles: Largest number of accelerated cycles.
    """
    at, best = start, -math.inf
    for _ in range(cycles):
        first, likelihood = _step(runs, at)
        if likelihood - best < _GAIN and best > -math.inf:
            break
        best = likelihood
        second, reached = _step(runs, first)
        at = _leap(runs, at, first, second, least=reached)
    return at, _step(runs, at)[1]


def _leap(
    runs: Runs, origin: _Parameters, first: _Parameters, second: _Parameters, *, least: float
) -> _Parameters:
    """Extrapolate two steps to their limit; back to the second one where that is no gain."""
    theta, one, two = map(_packed, (origin, first, second))
    r, v = one - theta, two - 2 * one + theta
    bend = float(np.sqrt((v * v).sum()))
    if bend == 0:
        return second
    length = -max(1.0, float(np.sqrt((r * r).sum())) / bend)
    third, reached = _step(runs, _unpacked(theta - 2 * length * r + length * length * v))
    return third if math.isfinite(reached) and reached >= least else second


# --- The mixture fitter: scikit-learn finds the components, a weighted maximisation over all records settles them ---


# scikit-learn sees at most so many records; every record takes part in the later steps.
_LARGEST_START = 5000
_START_STEPS = 30
# Enough to see which start leads highest.
_FIRST_CYCLES = 10
_STARTS = ("kmeans", "random_from_data", "random")
# A robust scale this far below the standard deviation would overflow when the outliers are squared.
_FARTHEST = 1e100


def fit_mixture(values: Floats, *, components: int, rng: np.random.Generator) -> MixtureOfGaussians:
    """Fit a mixture of normals by maximum likelihood.

    scikit-learn's ``GaussianMixture`` places the components on a random 5,000 of the records, in three ways; from each the
    likelihood of all records, condensed to about 2,000 short runs, is maximised, and the highest maximum is taken. A component's standard deviation is
    at least a thousandth of the sample's scale, so a tie of many records is fitted, badly, by a narrow normal, and
    left for the test of the fit to reject. Equal values give a point mass. There are never more components than
    distinct values.

    Args:
        values: Shape (n,), finite.
        components: Number of components, 1 or more.
        rng: Draws the records of the start and its seed; the same generator gives the same fit.

    >>> rng = np.random.default_rng(0)
    >>> sample = np.concatenate([rng.normal(0, 1, 4000), rng.normal(10, 2, 6000)])
    >>> fit = fit_mixture(sample, components=2, rng=rng)
    >>> sorted(round(weight, 2) for weight in fit.weights), sorted(round(mean) for mean in fit.means)
    ([0.4, 0.6], [0, 10])
    >>> fit_mixture(np.array([3.0, 3.0, 3.0]), components=2, rng=rng)
    MixtureOfGaussians(weights=(1.0,), means=(3.0,), sds=(0.0,))
    """
    ordered = np.sort(values)
    if components == 1 or ordered[0] == ordered[-1]:
        one = gaussian.fit_gaussian(ordered)
        return MixtureOfGaussians((1.0,), (one.mean,), (one.sd,))
    centre, scale = _scale(ordered)
    standard = ordered / scale - centre / scale
    runs = condensed(standard)
    # The likelihood has many maxima, and no single way to start finds the highest.
    ends = [_maximise(runs, _start(standard, components, way, rng), cycles=_FIRST_CYCLES) for way in _STARTS]
    fitted, _ = _maximise(runs, max(ends, key=operator.itemgetter(1))[0])
    order = np.argsort(fitted.means, kind="stable")
    weights = fitted.weights[order] / fitted.weights.sum()
    means = (fitted.means[order] + centre / scale) * scale
    sds = np.sqrt(fitted.variances[order]) * scale
    return MixtureOfGaussians(*(tuple(map(float, column)) for column in (weights, means, sds)))


def _scale(ordered: Floats) -> tuple[float, float]:
    """Return the median, and a power of two near the spread of the middle half, or of the whole where that is nothing."""
    centre, low, high = (float(ordered[int(q * (ordered.size - 1))]) for q in (0.5, 0.25, 0.75))
    widest = max(abs(ordered[0] / 2 - centre / 2), abs(ordered[-1] / 2 - centre / 2))
    spread = high / 2 - low / 2
    if spread <= widest / _FARTHEST:
        spread = gaussian.fit_gaussian(ordered).sd
    # Within the powers of two that a float holds without loss.
    return centre, 2.0 ** min(max(math.frexp(spread)[1], -1020), 1023)


def _start(standard: Floats, components: int, way: str, rng: np.random.Generator) -> _Parameters:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture
    from threadpoolctl import threadpool_limits

    seen = standard
    if standard.size > _LARGEST_START:
        seen = rng.choice(standard, size=_LARGEST_START, replace=False)
    seed = int(rng.integers(2**31))
    components = min(components, np.unique(seen).size)
    model = GaussianMixture(components, max_iter=_START_STEPS, init_params=way, random_state=seed)
    # One thread: so few records gain nothing from more, and wait for cores that others hold.
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        # It need not converge here: the maximisation does, and the test of the fit judges the result.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(seen[:, None])
    variances = np.maximum(model.covariances_[:, 0, 0], _LEAST_VARIANCE)
    return _Parameters(np.maximum(model.weights_, _LEAST_WEIGHT), model.means_[:, 0], variances)


# --- Does a mixture need more components? A test that looks at the tails too, and whose level holds for any sample size ---
#
# A Kolmogorov-Smirnov distance hardly sees a tail that is too heavy, and Epsilon* is read off the tails. The likelihood
# of held-out records sees it. With f_j the mixture of j components that was fitted to other records,
#
#     E = mean over j > k of prod f_j(x) / max over mixtures g of k components of prod g(x)
#
# has expectation at most 1 when the records come from a mixture of k components, whatever their number and although
# the components are not identified: 1/E is a p-value (universal inference; Wasserman, Ramdas and Balakrishnan 2020).


def log_evidence(
    held: Floats, candidates: Sequence[MixtureOfGaussians], components: int, *, rng: np.random.Generator
) -> float:
    """Return log E for more than so many components; minus infinity where there is no candidate with more.

    Args:
        held: Shape (m,), records that no candidate was fitted on.
        candidates: Fits with 1, 2, ... components to other records.
        components: Number of components under the null hypothesis.
        rng: Draws the starts of the null's fit.
    """
    more = candidates[components:]
    if not more or held.size == 0:
        return -math.inf
    # Every fit that the null allows counts: a search that stops short of the maximum must not speak against it.
    allowed = [*candidates[:components], fit_mixture(held, components=components, rng=rng)]
    highest = max(_log_likelihood(law, held) for law in allowed)
    if not math.isfinite(highest):  # a point mass in its place, or every fit far from some record
        return -math.inf
    against = [_log_likelihood(law, held) for law in more]
    return float(special.logsumexp(against)) - math.log(len(more)) - highest


def _log_likelihood(law: MixtureOfGaussians, held: Floats) -> float:
    logs = law.log_pdf(held)
    # A point mass: impossible beside it, whatever it gives to the records in its place.
    return -math.inf if np.isneginf(logs).any() else float(logs.sum())


def combined_test(
    held: Floats,
    candidates: Sequence[MixtureOfGaussians],
    components: int,
    *,
    n_fit: int,
    rng: np.random.Generator,
) -> GoodnessOfFit:
    """Return the distance test of a candidate joined with the test for more components, each at half of the level.

    Args:
        held: Shape (m,), records that no candidate was fitted on.
        candidates: Fits with 1, 2, ... components.
        components: The candidate to test.
        n_fit: Number of records that they were fitted on.
        rng: Draws the starts of the null's fit.

    The p-value is twice the smaller of the two; with no candidate of more components, the distance test's alone.
    """
    distance = gaussian.distance_test(held, candidates[components - 1], n_fit=n_fit)
    if components >= len(candidates):
        return distance
    against = log_evidence(held, candidates, components, rng=rng)
    by_likelihood = math.exp(min(0.0, -against))
    return replace(
        distance,
        test=f"{distance.test}; with their likelihood ratio against more components",
        p_value=min(1.0, 2 * min(distance.p_value, by_likelihood)),
        distance_p_value=distance.p_value,
        likelihood_p_value=by_likelihood,
    )


# --- The choice of a mixture: the smallest number of components that survives, then a test that the choice never saw ---
#
# Half of the records fit every candidate. Three tenths choose: numbers of components are tried in ascending order, each
# at the level, until one survives. The last fifth confirms that one, so that trying many does not spoil the level [own].
# Both times the distance from the held-out records and their likelihood under more components decide. The density that is
# used is fitted to all records. Beside this stands the published grid: the two-sample test for every number of
# components and sample size; Negoescu et al. 2024, Appendix B.2 and Figure 6.


# Shares of the records that choose and that confirm; the rest fit the candidates. The choice is the stricter of the
# two, so that too small a number is seldom chosen and then found out.
_CHOOSE, _CONFIRM = 0.3, 0.2

_Progress = Callable[[int, int], None]


def fit_mixture_pair(
    losses: Losses,
    *,
    choice: Mixture = Mixture(),  # noqa: B008 - a frozen value
    rng: np.random.Generator,
    transform: str = "none",
    progress: _Progress | None = None,
) -> FittedPair:
    """Fit a mixture of normals to each group, with the smallest number of components that is not rejected.

    Args:
        losses: Transformed losses.
        choice: Up to how many components.
        rng: Draws the partitions, the starts and the samples; the same generator gives the same pair.
        transform: Steps applied to the losses, for the record.
        progress: Called with the number of fits done and the number of all, for a progress bar.

    Where every number is rejected, the one with the largest p-value (or the least distance) is taken and its fit is
    rejected.

    >>> from auditor.core.options import Mixture
    >>> rng = np.random.default_rng(0)
    >>> two = np.concatenate([rng.normal(-4, 1, 1000), rng.normal(4, 1, 1000)])
    >>> pair = fit_mixture_pair(Losses(member=two, nonmember=rng.normal(size=2000)), choice=Mixture(3), rng=rng)
    >>> pair.member.components, pair.nonmember.components, pair.rejected
    (2, 1, False)
    """
    total, fits = 2 * (choice.max_components + 1), count(1)

    def tick() -> None:
        if progress is not None:
            progress(next(fits), total)

    groups = losses.member, losses.nonmember
    member, nonmember = (_fitted(values, choice.max_components, rng, tick) for values in groups)
    return gaussian.paired(losses, member, nonmember, transform=transform)


def _fitted(
    values: Floats, largest: int, rng: np.random.Generator, tick: Callable[[], None]
) -> tuple[MixtureOfGaussians, GoodnessOfFit, KSGrid]:
    wanted = (int(share * values.size) for share in (_CHOOSE, _CONFIRM))
    sizes = tuple(max(1, min(gaussian.LARGEST_HELD_OUT, size)) for size in wanted)
    if sum(sizes) >= values.size:  # two records: nothing can be both kept and tested twice
        sizes = (1, 0)
    rest, (choose, confirm) = gaussian.partition(values, sizes, rng=rng)
    candidates = []
    for components in range(1, largest + 1):
        candidates.append(fit_mixture(rest, components=components, rng=rng))
        tick()
    held = np.concatenate([choose, confirm])
    published = [gaussian.published_tests(held, item, rng=rng) for item in candidates]
    judge = partial(combined_test, candidates=candidates, n_fit=rest.size, rng=rng)
    tests: list[GoodnessOfFit] = []
    while len(tests) < largest and (not tests or tests[-1].rejected):
        tests.append(judge(choose, components=len(tests) + 1))
    best = len(tests) - 1
    if tests[-1].rejected:
        best = max(range(largest), key=lambda index: (tests[index].p_value, -tests[index].statistic))
    test = tests[best]
    if not test.rejected and confirm.size:
        test = judge(confirm, components=best + 1)
    density = fit_mixture(values, components=best + 1, rng=rng)
    tick()
    grid = KSGrid(
        components=tuple(range(1, largest + 1)),
        sample_sizes=tuple(fit.n for fit in published[0]),
        p_values=tuple(tuple(fit.p_value for fit in row) for row in published),
        choice_p_values=tuple(test.p_value for test in tests),
    )
    return density, replace(test, paper=published[best][-1]), grid
