"""What DP-SGD with microbatches and shuffled passes promises: as it is usually stated, and as it really is.

Two things are easily overlooked.

* **Microbatches.** TensorFlow Privacy averages the gradients of a microbatch and then clips the average to norm C. One
  record of a microbatch of several can turn that average from one side of the ball to the other, so it moves the sum of
  clipped averages by up to 2C, not C: for privacy the noise multiplier counts half (Ponomareva et al. 2023, How to DP-fy
  ML, Section 5.6). In TensorFlow Privacy 0.9.0 `compute_dp_sgd_privacy_statement` halves it; `compute_dp_sgd_privacy`,
  the function of the paper's version 0.5.1, does not, and now says so in a warning.
* **Shuffled passes.** The accountant assumes that each step draws every record by an independent coin (Poisson
  sampling). Keras passes over shuffled records instead. Without that assumption a proven epsilon is the one of one
  Gaussian mechanism for each pass: records of other batches of the pass do not matter, and a random order, the same for
  both neighbours, cannot help an attacker more than a known one.
"""

import math
from dataclasses import dataclass
from functools import cache

import auditor
from auditor import theory

__all__ = ["Guarantee", "default_delta", "guarantee", "noise_multiplier"]


@dataclass(frozen=True)
class Guarantee:
    """What one training run promises, three times, in nats at ``delta``.

    Attributes:
        delta: At which.
        noise_multiplier: Standard deviation of the noise over the clipping norm.
        sampling_rate: Batch size over the number of training records.
        steps: Number of steps.
        passes: Number of passes over the training set.
        microbatch_size: Records of each clipped average.
        stated: As it is usually stated: sensitivity C, Poisson sampling; added or removed records.
        corrected: With the sensitivity 2C of microbatches of more than one record, Poisson sampling; added or removed
            records.
        shuffled: With the right sensitivity and no gain from sampling, as shuffled passes deserve; replaced records
            (which for microbatches of one record is 2C too).
    """

    delta: float
    noise_multiplier: float
    sampling_rate: float
    steps: int
    passes: int
    microbatch_size: int
    stated: float
    corrected: float
    shuffled: float


def default_delta(records: int) -> float:
    """Return the paper's delta, 1 / (n log n)."""
    return 1.0 / (records * math.log(records))


@cache
def noise_multiplier(*, epsilon: float, delta: float, sampling_rate: float, steps: int) -> float:
    """Return the noise multiplier at which the run's usually stated epsilon is the wanted one, by binary search.

    Args:
        epsilon: Wanted, in nats, for added or removed records.
        delta: At which.
        sampling_rate: Batch size over the number of training records.
        steps: Number of steps.
    """
    wanted = theory.WantedEpsilon(epsilon, delta)
    return float(theory.noise_multiplier_for(wanted, sampling_rate=sampling_rate, steps=steps).value)


@cache
def guarantee(*, epsilon: float, records: int, batch: int, microbatches: int, epochs: int) -> Guarantee:
    """Return what training to a wanted epsilon promises, at the paper's delta.

    Args:
        epsilon: Wanted, as usually stated: the noise is found by binary search.
        records: Training records.
        batch: Records of a step; what is left at the end of a pass is dropped.
        microbatches: Of each batch.
        epochs: Passes.
    """
    delta, rate, steps = default_delta(records), batch / records, epochs * (records // batch)
    noise = noise_multiplier(epsilon=epsilon, delta=delta, sampling_rate=rate, steps=steps)
    size = batch // microbatches
    return Guarantee(
        delta=delta,
        noise_multiplier=noise,
        sampling_rate=rate,
        steps=steps,
        passes=epochs,
        microbatch_size=size,
        stated=_epsilon(noise, rate, steps, delta),
        corrected=_epsilon(noise / 2 if size > 1 else noise, rate, steps, delta),
        shuffled=_number(theory.gaussian_epsilon(2 * math.sqrt(epochs) / noise, delta=delta)),
    )


def _epsilon(noise: float, rate: float, steps: int, delta: float) -> float:
    return _number(theory.epsilon(auditor.DPSGD(noise, rate, steps), delta=delta))


def _number(found: auditor.results.Claim | float) -> float:
    value = getattr(found, "value", found)
    return math.nan if value is None else float(value)
