"""Does a mixture need more components? A test that looks at the tails too, and whose level holds for any sample size.

A Kolmogorov-Smirnov distance hardly sees a tail that is too heavy, and Epsilon* is read off the tails. The likelihood
of held-out records sees it. With f_j the mixture of j components that was fitted to other records,

    E = mean over j > k of prod f_j(x) / max over mixtures g of k components of prod g(x)

has expectation at most 1 when the records come from a mixture of k components, whatever their number and although
the components are not identified: 1/E is a p-value (universal inference; Wasserman, Ramdas and Balakrishnan 2020).
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import special

from auditor.fitters.goodness_of_fit import distance_test
from auditor.fitters.mixture import MixtureOfGaussians
from auditor.fitters.mixture_fit import fit_mixture
from auditor.values import Floats, GoodnessOfFit

__all__ = ["combined_test", "log_evidence"]


def log_evidence(
    held: Floats, candidates: Sequence[MixtureOfGaussians], components: int, *, rng: np.random.Generator
) -> float:
    """Return log E for more than so many components; minus infinity where there is no candidate with more.

    Args:
        held: Shape (m,), records that no candidate was fitted on.
        candidates: Fits with 1, 2, ... components to other records.
        components: How many the null hypothesis allows.
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
    level: float,
    rng: np.random.Generator,
) -> GoodnessOfFit:
    """Return the distance test of a candidate joined with the test for more components, each at half of the level.

    Args:
        held: Shape (m,), records that no candidate was fitted on.
        candidates: Fits with 1, 2, ... components.
        components: The candidate to test.
        n_fit: Number of records that they were fitted on.
        level: For `GoodnessOfFit.rejected`.
        rng: Draws the starts of the null's fit.

    The p-value is twice the smaller of the two; with no candidate of more components, the distance test's alone.
    """
    distance = distance_test(held, candidates[components - 1], n_fit=n_fit, level=level)
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
