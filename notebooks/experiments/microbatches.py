"""One step of TensorFlow Privacy's own optimiser with a microbatch of several records, for audits that run it many times.

Three records pull a weight one way; the canary, where it is there, pulls harder the other way. All are in one microbatch, so
the clipped mean turns from C to -C with the canary: the step is a Gaussian mechanism of sensitivity 2C, and by the usual
accounting (sensitivity C, noise multiplier s) it would be mu-GDP with mu = 1/s, where it is 2/s.
"""

from typing import Any

import numpy as np

import auditor
from auditor import theory
from experiments.network import load_tensorflow, make_optimiser

__all__ = ["CANARY", "DELTA", "NOISE_MULTIPLIER", "OTHERS", "claim", "losses", "steps"]

OTHERS = np.full((3, 1), -1.0)
CANARY = np.full((1, 1), 10.0)
NOISE_MULTIPLIER, DELTA = 1.25, 0.01


def claim(*, sensitivity: float) -> auditor.StatedClaim:
    """Return what the step claims if one record moves the sum by so many clipping norms: 1 as usually stated, 2 in truth.

    Args:
        sensitivity: In clipping norms.
    """
    return auditor.StatedClaim(
        float(theory.gaussian_epsilon(sensitivity / NOISE_MULTIPLIER, delta=DELTA)), DELTA
    )


def steps(*, with_canary: bool, runs: int, together: bool = True, seed: int = 0) -> np.ndarray:
    """Make the step so many times, each from the same weight with its own noise, and return the weight after each.

    Args:
        with_canary: Whether the canary is among the records; the weight then moves down, else up.
        runs: Steps.
        together: All records in one microbatch, of sensitivity 2C; else one for each, of sensitivity C.
        seed: Of the noise; another one for the runs without the canary.
    """
    tf = load_tensorflow()
    tf.keras.utils.set_random_seed(seed)
    records = tf.constant(np.concatenate([OTHERS, CANARY]) if with_canary else OTHERS, tf.float32)
    weight = tf.Variable([0.0])
    count = 1 if together else len(records)
    case = {"epsilon": 1.0, "clip": 1.0, "microbatches": count, "learning_rate": 1.0, "momentum": 0.0}
    optimiser = make_optimiser(tf, case, noise=NOISE_MULTIPLIER)
    optimiser._create_all_weights([weight])  # noqa: SLF001  as in `make_pass`

    @tf.function
    def repeated() -> Any:
        found = tf.TensorArray(tf.float32, runs)
        for run in tf.range(runs):
            weight.assign([0.0])
            optimiser.minimize(lambda: tf.linalg.matvec(records, weight), [weight])
            found = found.write(run, weight.read_value()[0])
        return found.stack()

    return np.asarray(repeated(), np.float64) * count


def losses(*, runs: int, together: bool = True, seed: int = 0) -> auditor.Losses:
    """Return the weights after half of the runs with the canary (members) and half without, for `auditor.audit_runs`.

    Args:
        runs: Of both kinds together.
        together: As in `steps`.
        seed: As in `steps`.
    """
    made = [
        steps(with_canary=which, runs=runs // 2, together=together, seed=2 * seed + which)
        for which in (True, False)
    ]
    return auditor.Losses(member=made[0], nonmember=made[1])
