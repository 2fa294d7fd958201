"""The closed forms over whole grids of settings, forwards and backwards: for choosing parameters interactively.

They are the formulas of `auditor.theory.closed_form`, with their regimes and their status: approximations.
"""

import math
from collections.abc import Mapping
from typing import get_args

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.errors import InputError
from auditor.theory._gaussian_form import (
    UNCOVERED,
    ClosedForm,
    Corollary7,
    covers,
    log_k,
    log_wanted,
    noise_of,
    overlap,
)
from auditor.training import PoissonSampling, Sampling
from auditor.values import Floats

__all__ = ["bayes_security_grid", "noise_multiplier_grid", "sampling_rate_grid"]


def bayes_security_grid(
    noise_multiplier: npt.ArrayLike,
    sampling_rate: npt.ArrayLike,
    steps: npt.ArrayLike,
    *,
    form: ClosedForm = Corollary7(),  # noqa: B008  a frozen value
    sampling: Sampling = PoissonSampling(),  # noqa: B008
) -> Floats:
    """Return the Bayes security of many settings at once, by a closed form.

    Args:
        noise_multiplier: Any shape, above 0.
        sampling_rate: Any shape that broadcasts with it, in (0, 1].
        steps: Likewise, whole numbers of 1 or more.
        form: `Corollary7` (default) or `MomentMatched`.
        sampling: `PoissonSampling` (default) or `FixedSizeSampling`.

    Returns:
        In [0, 1], replace-one, of the shape that the three broadcast to; a million in well under a second.

    Raises:
        InputError: A number out of range, shapes that do not broadcast, or `Corollary7` for sampled batches of a fixed
            size, which it is not about.

    Source: as `bayes_security_closed_form` and `bayes_security_moment_matched`.

    >>> bayes_security_grid([[1.0], [2.0]], [0.001, 0.01], 1000).round(4)
    array([[0.9748, 0.7518],
           [0.9874, 0.8744]])
    """
    noise, rate, count = _settings(
        noise_multiplier=noise_multiplier, sampling_rate=sampling_rate, steps=steps
    )
    _check_choices(form, sampling, sampled=bool(np.any(rate < 1)))
    log_half = np.log(rate) + (np.log(count) + log_k(noise, form=form, sampling=sampling)) / 2
    return overlap(log_half)


def sampling_rate_grid(
    bayes_security: npt.ArrayLike,
    noise_multiplier: npt.ArrayLike,
    steps: npt.ArrayLike,
    *,
    form: ClosedForm = Corollary7(),  # noqa: B008
    sampling: Sampling = PoissonSampling(),  # noqa: B008
) -> Floats:
    """Return the largest sampling rates that reach wanted Bayes securities, by a closed form.

    Args:
        bayes_security: Any shape, in (0, 1).
        noise_multiplier: Any shape that broadcasts with it, above 0.
        steps: Likewise, whole numbers of 1 or more.
        form: `Corollary7` (default) or `MomentMatched`.
        sampling: `PoissonSampling` (default) or `FixedSizeSampling`.

    Returns:
        In [0, 1]: 1 where every rate will do, 0 where none does that a double can hold.

    Raises:
        InputError: A number out of range, shapes that do not broadcast, or `Corollary7` for sampled batches of a fixed
            size, which it is not about.

    Source: Cherubin et al. 2024, Eq. 4.

    >>> sampling_rate_grid(0.98, [1.0, 2.0], 5000).round(9)
    array([0.00035453, 0.00070906])
    """
    wanted, noise, count = _settings(
        bayes_security=bayes_security, noise_multiplier=noise_multiplier, steps=steps
    )
    _check_choices(form, sampling, sampled=True)
    log_rate = log_wanted(wanted) - (np.log(count) + log_k(noise, form=form, sampling=sampling)) / 2
    return np.exp(np.minimum(log_rate, 0.0))


def noise_multiplier_grid(
    bayes_security: npt.ArrayLike,
    sampling_rate: npt.ArrayLike,
    steps: npt.ArrayLike,
    *,
    form: ClosedForm = Corollary7(),  # noqa: B008
    sampling: Sampling = PoissonSampling(),  # noqa: B008
) -> Floats:
    """Return the smallest noise multipliers that reach wanted Bayes securities, by a closed form.

    Args:
        bayes_security: Any shape, in (0, 1).
        sampling_rate: Any shape that broadcasts with it, in (0, 1].
        steps: Likewise, whole numbers of 1 or more.
        form: `Corollary7` (default) or `MomentMatched`.
        sampling: `PoissonSampling` (default) or `FixedSizeSampling`.

    Returns:
        Above 0, of the shape that the three broadcast to.

    Raises:
        InputError: A number out of range, shapes that do not broadcast, or `Corollary7` for sampled batches of a fixed
            size, which it is not about.

    Source: Cherubin et al. 2024, Eq. 4, solved for the noise.

    >>> noise_multiplier_grid([0.9, 0.98], 0.001, 5000).round(4)
    array([0.5627, 2.8207])
    """
    wanted, rate, count = _settings(bayes_security=bayes_security, sampling_rate=sampling_rate, steps=steps)
    _check_choices(form, sampling, sampled=bool(np.any(rate < 1)))
    return noise_of(2 * (log_wanted(wanted) - np.log(rate)) - np.log(count), form=form, sampling=sampling)


_LIMITS: Mapping[str, tuple[float, bool, str]] = {
    "noise_multiplier": (math.inf, False, "finite and above 0"),
    "sampling_rate": (1.0, True, "in (0, 1]"),
    "steps": (math.inf, False, "whole numbers of 1 or more"),
    "bayes_security": (1.0, False, "in (0, 1)"),
}


def _settings(**columns: npt.ArrayLike) -> list[Floats]:
    """Return the columns as arrays of numbers in range, checked to broadcast."""
    arrays = [_grid(name, values) for name, values in columns.items()]
    try:
        np.broadcast_shapes(*(array.shape for array in arrays))
    except ValueError:
        listed = ", ".join(f"{name} has {array.shape}" for name, array in zip(columns, arrays, strict=True))
        raise InputError(f"the shapes of a grid must broadcast: {listed}.") from None
    return arrays


def _grid(name: str, values: npt.ArrayLike) -> Floats:
    most, ends, words = _LIMITS[name]
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be an array of numbers, got {type(values).__name__}.") from None
    good = (array > 0) & ((array <= most) if ends else (array < most))
    if name == "steps":
        good &= array == np.floor(array)
    if not good.all():
        at = int(np.argmin(good))
        where = f" at position {at}, counting from 0" if array.ndim else ""
        raise InputError(f"{name} must be {words}, got {array.ravel()[at]:g}{where}.")
    return array


def _check_choices(form: ClosedForm, sampling: Sampling, *, sampled: bool) -> None:
    _validate.instance("form", form, get_args(ClosedForm))
    _validate.instance("sampling", sampling, get_args(Sampling))
    if not covers(form, sampling=sampling, sampled=sampled):
        raise InputError(f"form and sampling do not fit: {UNCOVERED}, form=MomentMatched().")
