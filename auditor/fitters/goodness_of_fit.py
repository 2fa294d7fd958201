"""Goodness of fit: does a density survive records that it was not fitted on?"""

import warnings
from collections.abc import Callable

import numpy as np

from auditor.values import Density, Floats, GoodnessOfFit

__all__ = ["held_out_ks"]

_LARGEST_HELD_OUT = 1000


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
    from scipy import stats

    n_held = max(1, min(_LARGEST_HELD_OUT, values.size // 5)) if size is None else size
    held = rng.choice(values.size, size=n_held, replace=False, shuffle=False)
    keep = np.ones(values.size, dtype=np.bool_)
    keep[held] = False
    density = fit(values[keep])
    with warnings.catch_warnings():
        # The exact p-value now and then gives way to the asymptotic one, with a warning.
        warnings.simplefilter("ignore", RuntimeWarning)
        test = stats.ks_2samp(values[held], density.sample(n_held, rng))
    return GoodnessOfFit(
        test=f"two-sample Kolmogorov-Smirnov, {n_held} held-out records against {n_held} draws from the fit",
        statistic=float(test.statistic),
        p_value=float(test.pvalue),
        n=n_held,
        level=level,
    )
