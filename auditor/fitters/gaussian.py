"""The Gaussian fitter: mean and standard deviation by maximum likelihood, with skewness and kurtosis kept."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import special

from auditor import _validate
from auditor.fitters.goodness_of_fit import held_out_tests
from auditor.values import FittedPair, Floats, Losses

__all__ = ["Gaussian", "fit_gaussian", "fit_gaussian_pair"]

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


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

    def __post_init__(self) -> None:
        _validate.number("mean", self.mean)
        _validate.nonnegative("sd", self.sd)

    def _z(self, x: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            z = (np.asarray(x, dtype=np.float64) - self.mean) / self.sd
        # A point mass: everything at or above it counts as above.
        return np.where(np.isnan(z), np.inf, z) if self.sd == 0 else z

    def log_cdf(self, x: Floats) -> Floats:
        """Log of P[X <= x]."""
        return np.asarray(special.log_ndtr(self._z(x)))

    def log_sf(self, x: Floats) -> Floats:
        """Log of P[X > x]."""
        return np.asarray(special.log_ndtr(-self._z(x)))

    def log_pdf(self, x: Floats) -> Floats:
        """Log-density; infinite at a point mass."""
        if self.sd == 0:
            return np.where(np.asarray(x) == self.mean, np.inf, -np.inf)
        z = self._z(x)
        with np.errstate(over="ignore"):
            return np.asarray(-0.5 * z * z - _LOG_SQRT_2PI - np.log(self.sd))

    def quantile(self, probability: Floats) -> Floats:
        """Smallest points with at least this much probability at or below them."""
        with np.errstate(invalid="ignore"):
            found = self.mean + self.sd * special.ndtri(probability)
        return np.full_like(found, self.mean) if self.sd == 0 else np.asarray(found)

    def spread(self, z: Floats) -> Floats:
        """Points at these standard distances from the mean, ascending."""
        return np.sort(self.mean + self.sd * np.asarray(z))

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        """Independent draws."""
        return rng.normal(self.mean, self.sd, size)


def fit_gaussian(values: Floats, weights: Floats | None = None) -> Gaussian:
    """Fit a normal by maximum likelihood and keep the sample's skewness and kurtosis.

    Args:
        values: Shape (n,), finite.
        weights: Shape (n,), how many records each value stands for; one each by default.

    >>> fit_gaussian(np.array([1.0, 1.0, 1.0]))
    Gaussian(mean=1.0, sd=0.0, skew=0.0, kurtosis=3.0)
    >>> fit_gaussian(np.array([0.0, 1.0]), np.array([1.0, 3.0])).mean
    0.75
    """
    low, high = float(values.min()), float(values.max())
    if low == high:
        return Gaussian(low, 0.0)
    average = np.mean if weights is None else partial(_weighted_mean, weights=weights)
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
    return Gaussian(
        mean * scale, sd * width * scale, third / (variance * sd), float(average(squares)) / variance**2
    )


def _weighted_mean(values: Floats, *, weights: Floats) -> float:
    # einsum and not @: a threaded dot product waits for cores that other processes hold.
    return float(np.einsum("i,i->", weights, values) / weights.sum())


def fit_gaussian_pair(
    losses: Losses,
    *,
    rng: np.random.Generator,
    transform: str = "none",
    level: float = 0.05,
    sample_sizes: Sequence[int] = (),
) -> FittedPair:
    """Fit a normal to each group and test each fit on held-out records; the published test is kept beside it.

    Args:
        losses: Transformed losses.
        rng: Draws the held-out records and the samples from the fit.
        transform: What was done to the losses, for the record.
        level: Each fit is rejected when its p-value is below.
        sample_sizes: Where to repeat the published test, for `FittedPair.member_grid`; nowhere by default.

    >>> rng = np.random.default_rng(0)
    >>> pair = fit_gaussian_pair(Losses(member=rng.normal(size=500), nonmember=rng.normal(size=500)), rng=rng)
    >>> pair.member_fit.n, pair.rejected
    (250, False)
    """
    (member_fit, member_grid), (nonmember_fit, nonmember_grid) = (
        held_out_tests(values, fit_gaussian, rng=rng, level=level, sample_sizes=sample_sizes)
        for values in (losses.member, losses.nonmember)
    )
    return FittedPair(
        member=fit_gaussian(losses.member),
        nonmember=fit_gaussian(losses.nonmember),
        member_fit=member_fit,
        nonmember_fit=nonmember_fit,
        n_member=losses.n_member,
        n_nonmember=losses.n_nonmember,
        transform=transform,
        member_grid=member_grid,
        nonmember_grid=nonmember_grid,
    )
