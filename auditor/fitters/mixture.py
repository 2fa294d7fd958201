"""Mixtures of normals in one dimension: the density, computed in logs."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from auditor import _validate
from auditor.errors import InputError
from auditor.values import Floats

__all__ = ["MixtureOfGaussians"]

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_TOLERANCE = 1e-9
_HALVINGS = 200


@dataclass(frozen=True)
class MixtureOfGaussians:
    """A mixture of normals; one single component may have ``sds`` 0, a point mass (every record has the same loss).

    Attributes:
        weights: Shares of the components, above 0, summing to 1.
        means: Their means.
        sds: Their standard deviations, above 0 where there is more than one.

    Raises:
        InputError: Columns of different lengths, shares that do not sum to 1, or a component without spread.

    >>> two = MixtureOfGaussians(weights=(0.25, 0.75), means=(0.0, 4.0), sds=(1.0, 1.0))
    >>> two.components, two.mean, round(two.sd, 6)
    (2, 3.0, 2.0)
    >>> round(float(two.log_cdf(np.array(-40.0))), 4)
    -805.9947
    """

    weights: tuple[float, ...]
    means: tuple[float, ...]
    sds: tuple[float, ...]

    def __post_init__(self) -> None:
        for name, check in (
            ("weights", _validate.positive),
            ("means", _validate.number),
            ("sds", _validate.nonnegative),
        ):
            object.__setattr__(self, name, tuple(check(name, item) for item in getattr(self, name)))
        _validate.same_length(
            ("weights", "means", "sds"), (len(self.weights), len(self.means), len(self.sds))
        )
        total = math.fsum(self.weights)
        if abs(total - 1) > _TOLERANCE:
            raise InputError(f"weights must sum to 1, got {total:g}; divide each by their sum.")
        if len(self.sds) > 1 and min(self.sds) == 0:
            raise InputError(
                f"sds must be above 0 where there is more than one component, got 0 (component {self.sds.index(0)},"
                " counting from 0); give it a small spread."
            )

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
        centre = self.mean
        return math.hypot(
            *(
                math.sqrt(w) * part
                for w, m, s in zip(self.weights, self.means, self.sds, strict=True)
                for part in (s, m - centre)
            )
        )

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
        """Log of P[X <= x]."""
        return np.minimum(self._total(special.log_ndtr(self._z(x))), 0.0)

    def log_sf(self, x: Floats) -> Floats:
        """Log of P[X > x]."""
        return np.minimum(self._total(special.log_ndtr(-self._z(x))), 0.0)

    def log_pdf(self, x: Floats) -> Floats:
        """Log-density; infinite at a point mass."""
        if self.sds == (0.0,):
            return np.where(np.asarray(x) == self.means[0], np.inf, -np.inf)
        z = self._z(x)
        with np.errstate(over="ignore"):
            return self._total(-0.5 * z * z - _LOG_SQRT_2PI - np.log(self.sds))

    def quantile(self, probability: Floats) -> Floats:
        """Smallest points with at least this much probability at or below them, by halving between the components'."""
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
        """Points at these standard distances from every mean, ascending."""
        points = np.array(self.means) + np.array(self.sds) * np.asarray(z)[..., None]
        return np.sort(points, axis=None)

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        """Independent draws."""
        share = np.array(self.weights)
        which = rng.choice(self.components, size=size, p=share / share.sum())
        return rng.normal(np.array(self.means)[which], np.array(self.sds)[which])
