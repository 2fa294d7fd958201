"""The score of a DP-SGD training run from its noisy sums, for audits that train many times with a canary and without.

Let v be the unit vector along the canary's clipped gradient of a step, c its norm and g the projection of the noisy sum on v,
both in clipping norms. Where the other records add nothing along v, the claim with noise multiplier s and sampling rate q is

    without the canary:  g ~ N(0, s^2)
    with the canary:     g ~ (1 - q) N(0, s^2) + q N(c, s^2),

given all earlier steps, and noise across v is the same in both. So the likelihood ratio of the whole run is the product of

    (1 - q) + q exp(c (2 g - c)/(2 s^2))

over the steps, and by Neyman and Pearson's lemma no score separates the claimed pair of worlds better. Under a training
that breaks its claim another score may be better, and other records along v act as more noise. Neither costs validity: any
function of the noisy sums is covered by the claim, and the level of the test does not depend on the score.
"""

import numpy as np
import numpy.typing as npt

from auditor.core import DPSGD, Adjacency, Floats, InputError, validate


def step_likelihood_ratio(
    projections: npt.ArrayLike,
    *,
    claim: DPSGD,
    sizes: npt.ArrayLike = 1.0,
    adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
) -> Floats:
    """Return minus the log-likelihood ratio of each run's noisy sums; smaller means more like a run with the canary.

    It is the score of a run for `auditor.audit_runs`; `auditor.training.Projections` records the projections.

    Args:
        projections: Shape (..., steps): the noisy sum of each step, before any division, projected on the unit vector along the
            canary's gradient, in clipping norms. Subtract the part of the other records where you know it.
        claim: The claimed training. Steps beyond the claim have the noise and the sampling rate of its last.
        sizes: Norm of the canary's clipped gradient in clipping norms, of each step or of all, 0 or more.
        adjacency: As in `auditor.audit_runs`; with ``replace-one`` the record in the canary's place has the opposite gradient.

    Returns:
        Scores in nats, shape (...): of a single run an array without axes.

    Raises:
        InputError: No steps, values that are not finite, sizes of another shape, or a claim that is no `DPSGD`.

    Source: Neyman and Pearson 1933, for the claimed pair of Abadi et al. 2016; gradients along a canary follow Nasr et al. 2023.

    >>> claim = DPSGD(noise_multiplier=1.0, sampling_rate=1.0, steps=2)
    >>> step_likelihood_ratio([[1.0, 1.0], [0.0, 0.5]], claim=claim).tolist()
    [-1.0, 0.5]
    """
    validate.instance("claim", claim, (DPSGD,))
    values = validate.numbers("projections", projections, np.isfinite, "be finite")
    if not values.ndim or not values.shape[-1]:
        raise InputError(f"projections must have 1 step or more on the last axis, got shape {values.shape}.")
    size = validate.numbers(
        "sizes", sizes, lambda each: np.isfinite(each) & (each >= 0), "be 0 or more and finite"
    )
    try:
        size = np.broadcast_to(size, values.shape)
    except ValueError:
        raise InputError(
            f"sizes must be one number, or as many as projections, {values.shape}, got {size.shape}."
        ) from None
    place = np.minimum(np.arange(values.shape[-1]), claim.steps - 1)
    columns = claim.noise_multiplier, claim.sampling_rate
    noise, rate = (np.broadcast_to(column, claim.steps)[place] for column in columns)

    def log_ratio(along: Floats) -> Floats:
        with np.errstate(divide="ignore"):  # at rate 1
            absent, present = np.log1p(-rate), np.log(rate)
        each = np.logaddexp(absent, present + size * (2 * along - size) / (2 * noise**2))
        return np.asarray(each.sum(axis=-1))

    replaced = Adjacency.named(adjacency) is Adjacency.REPLACE_ONE
    return np.asarray((log_ratio(-values) if replaced else 0.0) - log_ratio(values))
