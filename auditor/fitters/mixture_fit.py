"""The mixture fitter: scikit-learn finds the components, a weighted maximisation over all records settles them."""

import math
import operator
import warnings

import numpy as np

from auditor import _validate
from auditor.fitters.gaussian import fit_gaussian
from auditor.fitters.maximisation import LEAST_VARIANCE, LEAST_WEIGHT, Parameters, condensed, maximise
from auditor.fitters.mixture import MixtureOfGaussians
from auditor.values import Floats

__all__ = ["fit_mixture"]

# scikit-learn sees at most so many records; every record takes part in what follows.
_LARGEST_START = 5000
_START_STEPS = 30
# Enough to tell which start leads highest.
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

    Raises:
        InputError: ``components`` is not a whole number of 1 or more.

    >>> rng = np.random.default_rng(0)
    >>> sample = np.concatenate([rng.normal(0, 1, 4000), rng.normal(10, 2, 6000)])
    >>> fit = fit_mixture(sample, components=2, rng=rng)
    >>> sorted(round(weight, 2) for weight in fit.weights), sorted(round(mean) for mean in fit.means)
    ([0.4, 0.6], [0, 10])
    >>> fit_mixture(np.array([3.0, 3.0, 3.0]), components=2, rng=rng)
    MixtureOfGaussians(weights=(1.0,), means=(3.0,), sds=(0.0,))
    """
    components = _validate.at_least("components", components, least=1)
    ordered = np.sort(values)
    if components == 1 or ordered[0] == ordered[-1]:
        one = fit_gaussian(ordered)
        return MixtureOfGaussians((1.0,), (one.mean,), (one.sd,))
    centre, scale = _scale(ordered)
    standard = ordered / scale - centre / scale
    fitted = _highest(standard, components, rng)
    order = np.argsort(fitted.means, kind="stable")
    weights = fitted.weights[order] / fitted.weights.sum()
    means = (fitted.means[order] + centre / scale) * scale
    sds = np.sqrt(fitted.variances[order]) * scale
    return MixtureOfGaussians(*(tuple(map(float, column)) for column in (weights, means, sds)))


def _scale(ordered: Floats) -> tuple[float, float]:
    """The median, and a power of two near the spread of the middle half, or of the whole where that is nothing."""
    centre, low, high = (float(ordered[int(q * (ordered.size - 1))]) for q in (0.5, 0.25, 0.75))
    widest = max(abs(ordered[0] / 2 - centre / 2), abs(ordered[-1] / 2 - centre / 2))
    spread = high / 2 - low / 2
    if spread <= widest / _FARTHEST:
        spread = fit_gaussian(ordered).sd
    # Within the powers of two that a float holds without loss.
    return centre, 2.0 ** min(max(math.frexp(spread)[1], -1020), 1023)


def _highest(standard: Floats, components: int, rng: np.random.Generator) -> Parameters:
    """The best of several starts: the likelihood has many maxima, and no single way to start finds the highest."""
    runs = condensed(standard)
    ends = [maximise(runs, _start(standard, components, way, rng), cycles=_FIRST_CYCLES) for way in _STARTS]
    return maximise(runs, max(ends, key=operator.itemgetter(1))[0])[0]


def _start(standard: Floats, components: int, way: str, rng: np.random.Generator) -> Parameters:
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
    variances = np.maximum(model.covariances_[:, 0, 0], LEAST_VARIANCE)
    return Parameters(np.maximum(model.weights_, LEAST_WEIGHT), model.means_[:, 0], variances)
