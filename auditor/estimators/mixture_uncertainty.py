"""Uncertainty of the Epsilon* of two mixtures [own].

By the envelope theorem only the laws move, not the threshold. With h the branch's hazard, the variance is h^2 times
the sum over both laws of g' I^-1 g / n, where g is the gradient of the law's quantile at the threshold in its
parameters and I the Fisher information of one record under the fitted law, by quadrature. For one component this is
the normal's sd^2/n (1 + z^2/2). A census knows its law. Where components can hardly be told apart I is close to
singular, the likelihood is far from quadratic, and there is no standard error; nor is there one where components lie
so far apart that the numbers leave the range of a double.
"""

import math

import numpy as np
from scipy import special

from auditor.estimators.branches import BRANCHES, Branch
from auditor.fitters.mixture import MixtureOfGaussians
from auditor.values import Floats

__all__ = ["QuantileVariance", "standard_error"]

_NODES = np.linspace(-9.0, 9.0, 361)
_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
# Parameters are in natural units, so an eigenvalue this small beside the largest is a direction without information.
_SINGULAR = 1e-7


class QuantileVariance:
    """The variance of a fitted law's quantile, for one record, at any point."""

    def __init__(self, law: MixtureOfGaussians) -> None:
        self.law = law
        x = law.spread(_NODES)
        scores = _scores(law, x)
        with np.errstate(over="ignore", invalid="ignore"):
            weight = np.exp(law.log_pdf(x)) * _widths(law, x)
            information = np.einsum("ni,nj->ij", scores * weight[:, None], scores)
        # Numbers beyond the range of a double are no information.
        values, self._vectors = np.linalg.eigh(
            information if np.isfinite(information).all() else np.zeros_like(information)
        )
        self._values = values
        self.singular = bool(not values[0] > _SINGULAR * values[-1])

    def at(self, point: float, *, upper: bool) -> float:
        """Return n times the variance of the quantile at a point of a tail; infinite where it is not known."""
        if self.singular:
            return math.inf
        with np.errstate(over="ignore", invalid="ignore"):
            along = np.einsum("ij,i->j", self._vectors, _quantile_gradient(self.law, point, upper=upper))
            variance = float((along * along / self._values).sum())
        return variance if math.isfinite(variance) else math.inf


def _shares(law: MixtureOfGaussians, x: Floats) -> tuple[Floats, Floats]:
    """Distances in standard units, and the posterior share of each component, both of shape (n, components)."""
    with np.errstate(over="ignore", invalid="ignore"):
        z = (x[..., None] - np.array(law.means)) / np.array(law.sds)
        logs = -0.5 * z * z - _LOG_SQRT_2PI - np.log(law.sds) + np.log(law.weights)
        return z, np.exp(logs - law.log_pdf(x)[..., None])


def _widths(law: MixtureOfGaussians, x: Floats) -> Floats:
    """The width that each node of the quadrature stands for.

    Within a component's nodes it is never above their step. Between components without common nodes it would be the
    whole gap, which at enough standard deviations makes much of next to no density, so every component caps it.
    """
    _, share = _shares(law, x)
    caps = (_NODES[1] - _NODES[0]) * np.array(law.sds)
    return np.asarray((share * np.minimum(np.gradient(x)[:, None], caps)).sum(axis=-1))


def _scores(law: MixtureOfGaussians, x: Floats) -> Floats:
    """Derivatives of the log-density in mean/sd, log sd and all but the first log-weight; shape (n, 3 k - 1)."""
    z, share = _shares(law, x)
    z = np.where(share == 0, 0.0, z)  # of a component without a share its distance, squared, may overflow
    return np.concatenate([share * z, share * (z * z - 1), (share - law.weights)[..., 1:]], axis=-1)


def _quantile_gradient(law: MixtureOfGaussians, point: float, *, upper: bool) -> Floats:
    """Minus the derivatives of the distribution function over the density, in the same parameters.

    The sign of the tail does not matter: the square is what counts.
    """
    x = np.array(point)
    z, share = _shares(law, x)
    sds = np.array(law.sds)
    sign = -1.0 if upper else 1.0
    tails = np.log(law.weights) + special.log_ndtr(sign * z)
    tail = law.log_sf(x) if upper else law.log_cdf(x)
    density = law.log_pdf(x)
    # The weight of a component moves its own tail up and, since all weights sum to 1, everything down.
    by_weight = np.exp(tails - density) - np.array(law.weights) * np.exp(tail - density)
    z = np.where(share == 0, 0.0, z)
    return np.concatenate([share * sds, share * sds * z, -sign * by_weight[1:]])


def standard_error(
    branch: Branch,
    member: QuantileVariance,
    nonmember: QuantileVariance,
    *,
    sizes: tuple[float, float],
) -> float:
    """Return the standard error of one branch's epsilon; infinite where there is none.

    Args:
        branch: From `auditor.estimators.mixture_supremum.supremum`.
        member: Of the fitted member law.
        nonmember: Of the fitted non-member law.
        sizes: Members and non-members they were fitted on; ``math.inf`` members for a census.
    """
    if branch.epsilon == 0:
        return 0.0
    if math.isnan(branch.hazard):
        return math.inf
    upper = BRANCHES[branch.name][1]
    variance = sum(
        law.at(branch.threshold, upper=upper) / n
        for law, n in ((member, sizes[0]), (nonmember, sizes[1]))
        if math.isfinite(n)
    )
    error = branch.hazard * math.sqrt(variance)
    return error if math.isfinite(error) else math.inf
