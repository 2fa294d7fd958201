"""Goodness of fit: does a density survive records that it was not fitted on?

Two tests of one partition. The published one compares held-out records with a sample drawn from the fit. The one that
decides compares them with the fitted distribution function itself, which is more powerful, and pays for the noise of
the fit: its p-value is that of a distance at the effective size of two samples, m n/(m + n), with m held-out and n
fitting records [own]. A distribution function fitted by maximum likelihood varies no more than the empirical one of
the same records, so that the level is held: normals and mixtures are rejected in 1% to 3% of the runs for 5%.
"""

import math
import warnings
from collections.abc import Callable, Sequence

import numpy as np
from scipy import special

from auditor import _validate
from auditor.values import Density, Floats, GoodnessOfFit, KSGrid

__all__ = [
    "LARGEST_HELD_OUT",
    "SAMPLE_SIZES",
    "distance_test",
    "held_out_ks",
    "held_out_test",
    "held_out_tests",
    "partition",
    "published_tests",
    "two_sample_ks",
]

LARGEST_HELD_OUT = 10_000
# The published procedure's evaluation sets; Negoescu et al. 2024, Appendix B.2 and Figure 6.
SAMPLE_SIZES = tuple(range(100, 1001, 100))
_LARGEST_PUBLISHED = SAMPLE_SIZES[-1]


def partition(
    values: Floats, sizes: tuple[int, ...], *, rng: np.random.Generator
) -> tuple[Floats, tuple[Floats, ...]]:
    """Return the records that are kept for fitting, and random disjoint parts of these sizes."""
    drawn = rng.choice(values.size, size=sum(sizes), replace=False)
    keep = np.ones(values.size, dtype=np.bool_)
    keep[drawn] = False
    cuts = np.cumsum(sizes)[:-1]
    return values[keep], tuple(values[part] for part in np.split(drawn, cuts))


def distance_test(held: Floats, density: Density, *, n_fit: int, level: float = 0.05) -> GoodnessOfFit:
    """Return the one-sample Kolmogorov-Smirnov test of held-out records, at the effective size of two samples.

    Args:
        held: Shape (m,), records that the density was not fitted on.
        density: The fit.
        n_fit: Number of records that it was fitted on.
        level: For `GoodnessOfFit.rejected`.
    """
    ordered = np.sort(held)
    m = ordered.size
    steps = np.arange(m + 1) / m
    # Just below and at each record, so that a point mass is met exactly.
    below = np.exp(density.log_cdf(np.nextafter(ordered, -math.inf)))
    distance = max(
        0.0, float((below - steps[:-1]).max()), float((steps[1:] - np.exp(density.log_cdf(ordered))).max())
    )
    effective = m * (n_fit / (m + n_fit))
    return GoodnessOfFit(
        test=f"Kolmogorov-Smirnov distance of {m} held-out records from a density fitted on {n_fit} others",
        statistic=distance,
        p_value=float(special.kolmogorov(math.sqrt(effective) * distance)),
        n=m,
        level=level,
    )


def two_sample_ks(
    held: Floats, density: Density, *, rng: np.random.Generator, level: float = 0.05
) -> GoodnessOfFit:
    """Return the published test: held-out records against as many draws from the fit; Negoescu et al. 2024, Appendix B.2.

    Args:
        held: Shape (m,), records that the density was not fitted on.
        density: The fit.
        rng: Draws the sample.
        level: For `GoodnessOfFit.rejected`.
    """
    from scipy import stats

    m = held.size
    with warnings.catch_warnings():
        # The exact p-value now and then gives way to the asymptotic one, with a warning.
        warnings.simplefilter("ignore", RuntimeWarning)
        test = stats.ks_2samp(held, density.sample(m, rng))
    return GoodnessOfFit(
        test=f"two-sample Kolmogorov-Smirnov, {m} held-out records against {m} draws from the fit",
        statistic=float(test.statistic),
        p_value=float(test.pvalue),
        n=m,
        level=level,
    )


def held_out_ks(
    values: Floats,
    fit: Callable[[Floats], Density],
    *,
    rng: np.random.Generator,
    size: int | None = None,
    level: float = 0.05,
) -> GoodnessOfFit:
    """Fit on one part, draw a sample from the fit, and compare it with the held-out part by a two-sample KS test.

    The procedure of Negoescu et al. 2024, Appendix B.2. A p-value above the level is not proof of fit.

    Args:
        values: Shape (n,), n >= 2.
        fit: The fitter.
        rng: Draws the partition and the sample.
        size: Number of held-out records and of draws; by default a fifth of the records, at most 1,000 (the
            paper goes up to 1,000).
        level: For `GoodnessOfFit.rejected`.
    """
    size = max(1, min(_LARGEST_PUBLISHED, values.size // 5)) if size is None else size
    kept, (held,) = partition(values, (size,), rng=rng)
    return two_sample_ks(held, fit(kept), rng=rng, level=level)


def published_tests(
    held: Floats,
    density: Density,
    *,
    rng: np.random.Generator,
    sizes: Sequence[int] = SAMPLE_SIZES,
    level: float = 0.05,
) -> list[GoodnessOfFit]:
    """Return the published test at every sample size that the held-out records allow, or at all of them where they are few.

    Args:
        held: Shape (m,), records that the density was not fitted on, in random order.
        density: The fit.
        rng: Draws the samples.
        sizes: Numbers of records to compare with as many draws, ascending.
        level: For `GoodnessOfFit.rejected`.
    """
    possible = [size for size in sizes if size <= held.size] or [held.size]
    return [two_sample_ks(held[:size], density, rng=rng, level=level) for size in possible]


def held_out_test(
    values: Floats, fit: Callable[[Floats], Density], *, rng: np.random.Generator, level: float = 0.05
) -> GoodnessOfFit:
    """Fit on one half, test the other half by its distance from the fit, and keep the published test beside it.

    Args:
        values: Shape (n,), n >= 2.
        fit: The fitter.
        rng: Draws the partition and the published test's sample.
        level: For `GoodnessOfFit.rejected`.

    At most 10,000 records are held out: a larger part would reject for departures that change nothing. The published
    test takes up to 1,000 of them.

    >>> from auditor.fitters import fit_gaussian
    >>> rng = np.random.default_rng(0)
    >>> test = held_out_test(rng.normal(size=1000), fit_gaussian, rng=rng)
    >>> test.rejected, test.n, test.paper.n
    (False, 500, 500)
    """
    return held_out_tests(values, fit, rng=rng, level=level)[0]


def held_out_tests(
    values: Floats,
    fit: Callable[[Floats], Density],
    *,
    rng: np.random.Generator,
    level: float = 0.05,
    sample_sizes: Sequence[int] = (),
) -> tuple[GoodnessOfFit, KSGrid | None]:
    """Return `held_out_test`, and the published test of the same fit at several sample sizes.

    Args:
        values: Shape (n,), n >= 2.
        fit: The fitter.
        rng: Draws the partition and the published test's sample; the others come from a generator spawned from it, so
            that asking for them changes nothing else.
        level: For `GoodnessOfFit.rejected`.
        sample_sizes: Where to repeat the published test; nowhere by default, and then there is no grid.

    >>> from auditor.fitters import fit_gaussian
    >>> rng = np.random.default_rng(0)
    >>> test, grid = held_out_tests(rng.normal(size=1000), fit_gaussian, rng=rng, sample_sizes=SAMPLE_SIZES)
    >>> grid.sample_sizes, grid.p_values[0][-1] == test.paper.p_value
    ((100, 200, 300, 400, 500), True)
    """
    _validate.fraction("level", level)
    size = min(LARGEST_HELD_OUT, values.size // 2)
    kept, (held,) = partition(values, (size,), rng=rng)
    density = fit(kept)
    decided = distance_test(held, density, n_fit=kept.size, level=level)
    paper = two_sample_ks(held[:_LARGEST_PUBLISHED], density, rng=rng, level=level)
    test = GoodnessOfFit(decided.test, decided.statistic, decided.p_value, decided.n, level, paper)
    if not sample_sizes:
        return test, None
    (other,) = rng.spawn(1)
    row = published_tests(held, density, rng=other, sizes=sample_sizes, level=level)
    # The published test of that size is there already: one number for one question.
    row = [paper if found.n == paper.n else found for found in row]
    grid = KSGrid(
        components=(1,),
        sample_sizes=tuple(found.n for found in row),
        p_values=(tuple(found.p_value for found in row),),
        choice_p_values=(test.p_value,),
    )
    return test, grid
