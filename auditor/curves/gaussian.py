"""The Gaussian fitter, by maximum likelihood, and the tests of any fit on held-out records."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import special

from auditor.core import Array, Counted, Density, FittedPair, Floats, GoodnessOfFit, KSGrid, Losses, weighted


@dataclass(frozen=True)
class Gaussian:
    """A normal density; ``sd`` 0 is a point mass (every record has the same loss).

    Attributes:
        mean: Mean.
        sd: Standard deviation, 0 or more.
        skew: Third standardised moment of the sample it was fitted on (0 for a normal).
        kurtosis: Fourth standardised moment of that sample (3 for a normal).

    >>> round(float(Gaussian(0.0, 1.0).log_cdf(np.array(-40.0))), 4)
    -804.6084
    """

    mean: float
    sd: float
    skew: float = 0.0
    kurtosis: float = 3.0

    def _z(self, x: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            z = (np.asarray(x, dtype=np.float64) - self.mean) / self.sd
        # A point mass: everything at or above it counts as above.
        return np.where(np.isnan(z), np.inf, z) if self.sd == 0 else z

    def log_cdf(self, x: Floats) -> Floats:
        """Return the log of P[X <= x]."""
        return np.asarray(special.log_ndtr(self._z(x)))

    def log_sf(self, x: Floats) -> Floats:
        """Return the log of P[X > x]."""
        return np.asarray(special.log_ndtr(-self._z(x)))

    def quantile(self, probability: Floats) -> Floats:
        """Return the smallest points with at least this much probability at or below them."""
        with np.errstate(invalid="ignore"):
            points = self.mean + self.sd * special.ndtri(probability)
        return np.full_like(points, self.mean) if self.sd == 0 else np.asarray(points)

    def spread(self, z: Floats) -> Floats:
        """Return the points at these standard distances from the mean, ascending."""
        return np.sort(self.mean + self.sd * np.asarray(z))

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        """Return independent draws."""
        return rng.normal(self.mean, self.sd, size)


def fit_gaussian(values: Floats, weights: Array | None = None) -> Gaussian:
    """Fit a normal by maximum likelihood and keep the sample's skewness and kurtosis.

    Args:
        values: Shape (n,), finite.
        weights: Shape (n,), how many records each value stands for; by default one each, or as many as a group counts.

    >>> fit_gaussian(np.array([1.0, 1.0, 1.0]))
    Gaussian(mean=1.0, sd=0.0, skew=0.0, kurtosis=3.0)
    >>> fit_gaussian(np.array([0.0, 1.0]), np.array([1.0, 3.0])).mean
    0.75
    """
    values, weights = weighted(values) if weights is None else (values, weights)
    low, high = float(values.min()), float(values.max())
    if low == high:
        return Gaussian(low, 0.0)
    average = partial(np.average, weights=weights)
    # A power of two, so that scaling is exact; the sums below can then neither overflow nor underflow.
    scale = 2.0 ** (math.frexp(max(abs(high), abs(low)))[1] - 1)
    scaled = values / scale
    mean = float(average(scaled))
    centred = scaled - mean
    width = float(np.abs(centred).max())
    if width == 0:
        return Gaussian(low, 0.0)
    np.divide(centred, width, out=centred)
    squares = centred * centred
    variance = float(average(squares))
    if variance == 0:  # all the weight is on one value
        return Gaussian(mean * scale, 0.0)
    np.multiply(centred, squares, out=centred)
    third = float(average(centred))
    np.multiply(squares, squares, out=squares)
    sd = math.sqrt(variance)
    kurtosis = float(average(squares)) / variance**2
    return Gaussian(mean * scale, sd * width * scale, third / (variance * sd), kurtosis)


def fit_gaussian_pair(
    losses: Losses, *, rng: np.random.Generator, transform: str = "none", sample_sizes: Sequence[int] = ()
) -> FittedPair:
    """Fit a normal to each group and test each fit on held-out records; the published test is kept beside it.

    Args:
        losses: Transformed losses.
        rng: Draws the held-out records and the samples from the fit.
        transform: Steps applied to the losses, for the record.
        sample_sizes: Where to repeat the published test, for `FittedPair.member_grid`; nowhere by default.

    >>> rng = np.random.default_rng(0)
    >>> pair = fit_gaussian_pair(Losses(member=rng.normal(size=500), nonmember=rng.normal(size=500)), rng=rng)
    >>> pair.member_fit.n, pair.rejected
    (250, False)
    """
    member, nonmember = (
        (fit_gaussian(values), *held_out_tests(values, fit_gaussian, rng=rng, sample_sizes=sample_sizes))
        for values in (losses.member, losses.nonmember)
    )
    return paired(losses, member, nonmember, transform=transform)


FittedGroup = tuple[Density, GoodnessOfFit, KSGrid | None]


def paired(losses: Losses, member: FittedGroup, nonmember: FittedGroup, *, transform: str) -> FittedPair:
    """Return the fits of both groups as one value."""
    (first, first_fit, first_grid), (second, second_fit, second_grid) = member, nonmember
    sizes = losses.n_member, losses.n_nonmember
    return FittedPair(first, second, first_fit, second_fit, *sizes, transform, first_grid, second_grid)


# --- Goodness of fit: does a density survive records that it was not fitted on? ---
#
# Two tests of one partition. The published one compares held-out records with a sample drawn from the fit. The one that
# decides compares them with the fitted distribution function itself, which is more powerful, and pays for the noise of
# the fit: its p-value is that of a distance at the effective size of two samples, m n/(m + n), with m held-out and n
# fitting records [own]. A distribution function fitted by maximum likelihood varies no more than the empirical one of
# the same records, so that the level is held: normals and mixtures are rejected in 1% to 3% of the runs for 5%.

LARGEST_HELD_OUT = 10_000
# The published procedure's evaluation sets; Negoescu et al. 2024, Appendix B.2 and Figure 6.
SAMPLE_SIZES = tuple(range(100, 1001, 100))
_LARGEST_PUBLISHED = SAMPLE_SIZES[-1]


def distance_test(held: Floats, density: Density, *, n_fit: int) -> GoodnessOfFit:
    """Return the one-sample Kolmogorov-Smirnov test of held-out records, at the effective size of two samples.

    Args:
        held: Shape (m,), records that the density was not fitted on.
        density: The fit.
        n_fit: Number of records that it was fitted on.
    """
    ordered = np.sort(held)
    m = ordered.size
    steps = np.arange(m + 1) / m
    # Just below and at each record, so that a point mass is met exactly.
    below = np.exp(density.log_cdf(np.nextafter(ordered, -math.inf)))
    upto = np.exp(density.log_cdf(ordered))
    distance = max(0.0, float((below - steps[:-1]).max()), float((steps[1:] - upto).max()))
    effective = m * (n_fit / (m + n_fit))
    return GoodnessOfFit(
        test=f"Kolmogorov-Smirnov distance of {m} held-out records from a density fitted on {n_fit} others",
        statistic=distance,
        p_value=float(special.kolmogorov(math.sqrt(effective) * distance)),
        n=m,
    )


def two_sample_ks(held: Floats, density: Density, *, rng: np.random.Generator) -> GoodnessOfFit:
    """Return the published test: held-out records against as many draws from the fit; Negoescu et al. 2024, Appendix B.2.

    Args:
        held: Shape (m,), records that the density was not fitted on.
        density: The fit.
        rng: Draws the sample.
    """
    m = held.size
    drawn = density.sample(m, rng)
    both = np.concatenate([held, drawn])
    below = [np.searchsorted(np.sort(side), both, side="right") for side in (held, drawn)]
    apart = int(np.abs(below[0] - below[1]).max())
    return GoodnessOfFit(
        test=f"two-sample Kolmogorov-Smirnov, {m} held-out records against {m} draws from the fit",
        statistic=apart / m,
        p_value=_exact_ks_p_value(apart, m),
        n=m,
    )


def _exact_ks_p_value(apart: int, m: int) -> float:
    """Return the probability that two samples of m are so many records apart: 2 sum_k (-1)^(k-1) C(2m, m - k apart)/C(2m, m).

    Gnedenko and Korolyuk 1951. Here and not from SciPy, because its statistics take longer to load than an audit takes.
    """
    if apart == 0:
        return 1.0
    k = np.arange(1, m // apart + 1)
    fewer, more = (special.gammaln(m + sign * k * apart + 1) for sign in (-1, 1))
    logs = 2 * special.gammaln(m + 1) - fewer - more
    return float(np.clip(2 * (np.exp(logs) * (-1.0) ** (k - 1)).sum(), 0.0, 1.0))


def published_tests(
    held: Floats, density: Density, *, rng: np.random.Generator, sizes: Sequence[int] = SAMPLE_SIZES
) -> list[GoodnessOfFit]:
    """Return the published test at every sample size that the held-out records allow, or at all of them where they are few.

    Args:
        held: Shape (m,), records that the density was not fitted on, in random order.
        density: The fit.
        rng: Draws the samples.
        sizes: Numbers of records to compare with as many draws, ascending.
    """
    possible = [size for size in sizes if size <= held.size] or [held.size]
    return [two_sample_ks(held[:size], density, rng=rng) for size in possible]


def held_out_tests(
    values: Floats,
    fit: Callable[[Floats], Density],
    *,
    rng: np.random.Generator,
    sample_sizes: Sequence[int] = (),
) -> tuple[GoodnessOfFit, KSGrid | None]:
    """Fit on one half, test the other half by its distance from the fit, and keep the published tests beside it.

    At most 10,000 records are held out: a larger part would reject for departures that change nothing. The published
    test takes up to 1,000 of them.

    Args:
        values: Shape (n,), n >= 2.
        fit: The fitter.
        rng: Draws the partition and the published test's sample; the others come from a generator spawned from it, so
            that requesting them changes nothing else.
        sample_sizes: Where to repeat the published test; nowhere by default, and then there is no grid.

    >>> rng = np.random.default_rng(0)
    >>> test, grid = held_out_tests(rng.normal(size=1000), fit_gaussian, rng=rng, sample_sizes=SAMPLE_SIZES)
    >>> grid.sample_sizes, grid.p_values[0][-1] == test.paper.p_value
    ((100, 200, 300, 400, 500), True)
    """
    size = min(LARGEST_HELD_OUT, values.size // 2)
    rest, (held,) = partition(values, (size,), rng=rng)
    density = fit(rest)
    decided = distance_test(held, density, n_fit=rest.size)
    paper = two_sample_ks(held[:_LARGEST_PUBLISHED], density, rng=rng)
    test = replace(decided, paper=paper)
    if not sample_sizes:
        return test, None
    (other,) = rng.spawn(1)
    row = published_tests(held, density, rng=other, sizes=sample_sizes)
    # The published test of that size is there already: one number for one question.
    row = [paper if item.n == paper.n else item for item in row]
    grid = KSGrid(
        components=(1,),
        sample_sizes=tuple(item.n for item in row),
        p_values=(tuple(item.p_value for item in row),),
        choice_p_values=(test.p_value,),
    )
    return test, grid


def partition(
    values: Any, sizes: tuple[int, ...], *, rng: np.random.Generator
) -> tuple[Floats, tuple[Floats, ...]]:
    """Return the records that are kept for fitting, and random disjoint parts of these sizes."""
    drawn = rng.choice(values.size, size=sum(sizes), replace=False)
    cuts = np.cumsum(sizes)[:-1]
    rest: Any = values.without(drawn) if isinstance(values, Counted) else np.delete(values, drawn)
    return rest, tuple(values[part] for part in np.split(drawn, cuts))
