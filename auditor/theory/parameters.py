"""The noise, sampling rate or number of steps that a wanted promise takes.

Every answer is rounded to the side that protects better, and the promise is then worked out again at the answer.
"""

import math
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from auditor import _validate
from auditor._format import number
from auditor.choices import DPSGD, Adjacency
from auditor.errors import InputError
from auditor.theory._boundary import Axis, boundary
from auditor.theory._gaussian_form import ClosedForm
from auditor.theory._promise import (
    exact_beside,
    excess,
    gaussian_half_mu,
    guessed_noise,
    harmless_draw,
    keeps,
    log_share_of,
    promise,
    seldom_enough,
)
from auditor.theory.targets import Exact, FoundParameter, Method, Target, WantedEpsilon, on_its_side
from auditor.training import PoissonSampling, Sampling
from auditor.values import Claim

__all__ = ["FoundParameter", "noise_multiplier_for", "sampling_rate_for", "steps_for"]

_NOISE = (1e-6, 1e12)
_RATE = (1e-300, 1.0)
_STEPS = (1.0, 1e12)


def noise_multiplier_for(
    target: Target,
    *,
    sampling_rate: Any,
    steps: int | None = None,
    sampling: Sampling = PoissonSampling(),  # noqa: B008  a frozen value
    method: Method = Exact(),  # noqa: B008
) -> FoundParameter:
    """Return the smallest noise multiplier that keeps a promise.

    Args:
        target: `WantedBayesSecurity`, `WantedAdvantage`, `WantedEpsilon` or `WantedTPR`, with its neighbours.
        sampling_rate: As in `DPSGD`: a number, or one for each step.
        steps: Number of steps; may be left out with a vector.
        sampling: How batches are drawn.
        method: `Exact` (default; a fraction of a second, an epsilon some seconds), or the closed forms `Corollary7`
            (Eq. 4) and `MomentMatched`, which are approximations and for replaced records.

    Returns:
        The noise multiplier, within about 1e-5 (relatively) of the smallest and never below what the method needs.

    Raises:
        InputError: A number out of range; a target that every noise keeps, with what almost no noise gives; one that no
            noise up to 1e12 was found to keep; a closed form that says nothing about the target.

    Source: Cherubin et al. 2024, Eq. 4, for the closed form.

    >>> from auditor.theory.closed_form import Corollary7
    >>> from auditor.theory.targets import WantedBayesSecurity
    >>> found = noise_multiplier_for(WantedBayesSecurity(0.98), sampling_rate=0.001, steps=5000, method=Corollary7())
    >>> found.value, found.status
    (2.82066, 'approximation')
    """
    _check(target, method)
    base = _covered(target, DPSGD(1.0, sampling_rate, steps, sampling=sampling))
    if isinstance(method, Exact):
        _refuse_any_noise(target, base)
    shares = [math.log(phase.steps) + 2 * math.log(phase.sampling_rate) for phase in base.phases]
    log_share = 2 * math.log(gaussian_half_mu(target, method=method)) - float(np.logaddexp.reduce(shares))
    guess = guessed_noise(target, log_share, method=method, sampling=sampling)
    axis = Axis(
        "noise multiplier",
        lambda noise: replace(base, noise_multiplier=noise),
        upward=True,
        whole=False,
        least=_NOISE[0],
        most=_NOISE[1],
    )
    return _found(axis, target, method, guess)


def sampling_rate_for(
    target: Target,
    *,
    noise_multiplier: Any,
    steps: int | None = None,
    sampling: Sampling = PoissonSampling(),  # noqa: B008
    method: Method = Exact(),  # noqa: B008
) -> FoundParameter:
    """Return the largest sampling rate that keeps a promise; 1 where every rate does.

    Args:
        target: As in `noise_multiplier_for`.
        noise_multiplier: As in `DPSGD`: a number, or one for each step.
        steps: Number of steps; may be left out with a vector.
        sampling: How batches are drawn.
        method: As in `noise_multiplier_for`.

    Returns:
        The sampling rate, within about 1e-5 (relatively) of the largest and never above what the method allows. By the
        exact method there is one for every target that is not absurdly small: one so small that the record is hardly
        ever drawn.

    Raises:
        InputError: A number out of range, or a closed form that says nothing about the target.

    Source: Cherubin et al. 2024, Eq. 4, for the closed form.

    >>> from auditor.theory.closed_form import Corollary7
    >>> from auditor.theory.targets import WantedBayesSecurity
    >>> found = sampling_rate_for(WantedBayesSecurity(0.98), noise_multiplier=1.0, steps=5000, method=Corollary7())  # Eq. 4: 0.0003545279
    >>> found.value
    0.000354527
    """
    _check(target, method)
    base = _covered(target, DPSGD(noise_multiplier, 1.0, steps, sampling=sampling))
    shares = [
        math.log(phase.steps) + log_share_of(target, phase.noise_multiplier, method=method, sampling=sampling)
        for phase in base.phases
    ]
    log_rate = math.log(gaussian_half_mu(target, method=method)) - float(np.logaddexp.reduce(shares)) / 2
    axis = Axis(
        "sampling rate",
        lambda rate: replace(base, sampling_rate=rate),
        upward=False,
        whole=False,
        least=_RATE[0],
        most=_RATE[1],
    )
    everyone = promise(target, base, method=method)
    if keeps(target, everyone):
        return FoundParameter("sampling_rate", 1.0, target, base, everyone, method)
    guess = math.exp(max(-700.0, min(0.0, log_rate)))
    if isinstance(method, Exact):
        guess = max(guess, seldom_enough(target, steps=base.steps))
    return _found(axis, target, method, guess)


def steps_for(
    target: Target,
    *,
    noise_multiplier: float,
    sampling_rate: float,
    sampling: Sampling = PoissonSampling(),  # noqa: B008
    method: Method = Exact(),  # noqa: B008
) -> FoundParameter:
    """Return the largest number of equal steps that keeps a promise.

    Args:
        target: As in `noise_multiplier_for`.
        noise_multiplier: Above 0.
        sampling_rate: In (0, 1].
        sampling: How batches are drawn.
        method: As in `noise_multiplier_for`.

    Returns:
        The number of steps, within about 1e-5 (relatively) of the largest, which is exact below 100,000.

    Raises:
        InputError: A number out of range; a target that one step breaks, with what it gives; a target that 1e12 steps
            keep; a closed form that says nothing about the target.

    Source: Cherubin et al. 2024, Eq. 4, solved for the steps.

    >>> from auditor.theory.closed_form import Corollary7
    >>> from auditor.theory.targets import WantedBayesSecurity
    >>> steps_for(WantedBayesSecurity(0.98), noise_multiplier=1.0, sampling_rate=0.001, method=Corollary7()).value
    628
    """
    _check(target, method)
    noise = _validate.positive("noise_multiplier", noise_multiplier)
    rate = _validate.fraction("sampling_rate", sampling_rate, one=True)
    base = _covered(target, DPSGD(noise, rate, 1, sampling=sampling))
    first = promise(target, base, method=method)
    if not keeps(target, first):
        raise InputError(
            f"no number of steps keeps the wanted {target.in_words()}: one step alone gives {number(first.value)}; take"
            " more noise or a smaller sampling rate."
        )
    log_share = log_share_of(target, noise, method=method, sampling=sampling)
    log_steps = 2 * (math.log(gaussian_half_mu(target, method=method)) - math.log(rate)) - log_share
    axis = Axis(
        "steps",
        lambda steps: replace(base, steps=int(steps)),
        upward=False,
        whole=True,
        least=_STEPS[0],
        most=_STEPS[1],
    )
    guess = math.exp(max(0.0, min(100.0, log_steps)))
    if isinstance(method, Exact) and rate < 1:  # so few that the record is seldom enough drawn at all
        guess = max(guess, min(_STEPS[1], math.log1p(-harmless_draw(target)) / math.log1p(-rate)))
    found = _found(axis, target, method, guess)
    if found.value >= _STEPS[1] - 1:
        raise InputError(
            f"even {number(_STEPS[1])} steps keep the wanted {target.in_words()}; want more than that, or take less noise or"
            " a larger sampling rate."
        )
    return replace(found, value=int(found.value))


def _check(target: Target, method: Method) -> None:
    _validate.instance("target", target, get_args(Target))
    _validate.instance("method", method, (Exact, *get_args(ClosedForm)))


def _covered(target: Target, training: DPSGD) -> DPSGD:
    """Return the run if the wish is about something that batches drawn like its promise."""
    if training.fixed_size and target.adjacency is Adjacency.ADD_REMOVE:
        raise InputError(
            f"batches of a fixed size are accounted for replaced records only, got the wanted {target.in_words()};"
            " want it for replace-one."
        )
    return training


def _refuse_any_noise(target: Target, base: DPSGD) -> None:
    drawn = -math.expm1(
        sum(phase.steps * math.log1p(-min(phase.sampling_rate, 1 - 1e-16)) for phase in base.phases)
    )
    if drawn > harmless_draw(target):
        return
    if isinstance(target, WantedEpsilon):
        raise InputError(
            f"every noise multiplier keeps the wanted {target.in_words()}: the record is drawn at all with a chance of"
            f" only {number(drawn, toward='up')}, which delta covers; want a smaller delta, or take a larger sampling rate"
            " or more steps."
        )
    raise InputError(
        f"every noise multiplier keeps the wanted {target.in_words()}: at this sampling rate and number of steps it"
        f" runs from {number(target.worst(drawn))} with almost no noise to {number(target.worst(0.0))} with endless"
        " noise; want one in between, or take a larger sampling rate or more steps."
    )


def _found(axis: Axis, target: Target, method: Method, guess: float) -> FoundParameter:
    """Return the parameter of least protection that keeps the promise, with the promise it keeps."""

    def above(value: float) -> float:
        return excess(target, promise(target, axis.make(value), method=method))

    value: float | None = axis.safer(guess)
    if isinstance(method, Exact) or above(axis.safer(guess)) > 0:  # a closed form is its own answer
        value = boundary(axis, above, guess=guess)
    if value is None:
        raise InputError(_unreachable(axis, target, promise(target, axis.make(_end(axis)), method=method)))
    training = axis.make(value)
    kept = promise(target, training, method=method)
    name = axis.name.replace(" ", "_")
    return FoundParameter(name, value, target, training, kept, method, exact_beside(target, training, kept))


def _end(axis: Axis) -> float:
    return axis.at(axis.ends[1])


def _unreachable(axis: Axis, target: Target, reached: Claim) -> str:
    """No value in range was found, which does not say that none exists: the bounds may be loose out there."""
    noise = axis.upward
    still = on_its_side(target, reached.value, toward="nearest")
    return (
        f"no {axis.name} {'up' if noise else 'down'} to {number(_end(axis))} was found that keeps the wanted"
        f" {target.in_words()}: at {number(_end(axis))} the bound is still {still}"
        f" ({reached.method}); ask for less protection, or take"
        f" {'a smaller sampling rate' if noise else 'more noise'} or fewer steps."
    )
