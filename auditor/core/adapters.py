"""Adapters for the DP-SGD records of other libraries: noise multipliers, sampling rates and steps."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from auditor.core import validate
from auditor.core.errors import InputError


def by_step(rows: Sequence[Sequence[Any]]) -> tuple[Any, Any, int]:
    """Return noise multipliers, sampling rates and the number of steps, from rows of (noise, rate, steps, ...)."""
    steps = [validate.at_least("steps", row[2], least=1) for row in rows]
    if len(rows) == 1:
        return rows[0][0], rows[0][1], steps[0]
    noise, rate = (
        np.repeat([validate.number(name, row[place]) for row in rows], steps)
        for place, name in enumerate(("noise_multiplier", "sampling_rate"))
    )
    return noise, rate, sum(steps)


def draws_coins(data_loader: Any) -> bool:
    """Return whether a PyTorch loader draws its batches by coins, as it does if any of its samplers has a rate.

    Raises:
        InputError: A loader without a batch sampler.
    """
    sampler = getattr(data_loader, "batch_sampler", None)
    if sampler is None:
        raise InputError(
            f"data_loader must be a loader with a batch_sampler, got {type(data_loader).__name__}; give sampling instead."
        )
    while sampler is not None:
        if hasattr(sampler, "sample_rate"):
            return True
        # Opacus' BatchMemoryManager splits the batches of another one.
        sampler = getattr(sampler, "sampler", None)
    return False


def steps_of(event: Any) -> Iterator[tuple[float, float, int]]:
    """Yield noise multiplier, sampling rate and number of the steps of an event, known by its class's name."""
    kind = type(event).__name__
    if kind == "GaussianDpEvent":
        yield validate.positive("noise_multiplier of GaussianDpEvent", event.noise_multiplier), 1.0, 1
    elif kind == "SelfComposedDpEvent":
        for noise, rate, steps in steps_of(event.event) if event.count else ():
            yield noise, rate, steps * event.count
    elif kind == "ComposedDpEvent":
        for part in event.events:
            yield from steps_of(part)
    elif kind == "PoissonSampledDpEvent":
        inner = list(steps_of(event.event))
        if any(rate < 1 for _, rate, _ in inner):
            raise InputError(f"event must not draw a sample of a sample, got a {kind} in another.")
        if inner:
            once = sum(steps for *_, steps in inner) == 1
            noise = inner[0][0] if once else 1 / math.hypot(*(math.sqrt(n) / noise for noise, _, n in inner))
            yield noise, event.sampling_probability, 1
    elif kind != "NoOpDpEvent":
        fix = _instead(event, kind)
        raise InputError(f"event must be made of Poisson-sampled Gaussian steps, got {kind}; {fix}.")


def _instead(event: Any, kind: str) -> str:
    """Return a clause with the claim to state where an event has none."""
    if kind == "SampledWithoutReplacementDpEvent":
        return (
            "its accountants take the noise over how far a replaced record moves a sum, two clipping norms at most:"
            " describe it by DPSGD(..., sampling=FixedSizeSampling()), whose noise multiplier is over one"
        )
    if kind == "SingleEpochTreeAggregationDpEvent":  # each record is in one node of every level of one tree
        depth = math.ceil(math.log2(int(np.max(event.step_counts)) + 1))
        mu = math.sqrt(depth) / validate.positive(f"noise_multiplier of {kind}", event.noise_multiplier)
        return f"one such tree of DP-FTRL is claimed by StatedClaim.from_mu({mu:.6g}), for a record that is left empty"
    if kind == "ZCDpEvent" and event.xi == 0:
        return f"claim it by StatedClaim.from_rho({event.rho:g})"
    return "claim its accountant's promise by StatedClaim.from_points"
