"""Logistic regression by DP-SGD in plain numpy: Poisson batches, clipped gradients, Gaussian noise.

Small and fast, for figures that need many private models of a table and no particular framework.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["accuracy", "train_and_score"]


def train_and_score(case: Mapping[str, Any], seed: int) -> dict[str, float]:
    """Train on Adult (or its stand-in) and return the accuracy on records that were not trained on.

    Args:
        case: ``folder`` of Adult's files, or None for the stand-in with ``n_train`` records; ``noise_multiplier`` (0 is no
            privacy), ``sampling_rate``, ``epochs``, ``clipping_norm``, ``learning_rate``, ``repeat``.
        seed: Of batches and noise.
    """
    from experiments.adult import load, stand_in

    data = (
        load(case["folder"])
        if case["folder"]
        else stand_in(n_train=case["n_train"], n_test=case["n_train"] // 2)
    )
    weights = _trained(_with_intercept(data.x_train), data.y_train, case, rng=np.random.default_rng(seed))
    return {"accuracy": accuracy(weights, _with_intercept(data.x_test), data.y_test)}


def accuracy(weights: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    """Return the share of records that a linear model puts on the right side."""
    return float(np.mean((x @ weights > 0) == (y == 1)))


def _with_intercept(x: np.ndarray) -> np.ndarray:
    return np.column_stack([x, np.ones(len(x), dtype=x.dtype)])


def _trained(
    x: np.ndarray, y: np.ndarray, case: Mapping[str, Any], *, rng: np.random.Generator
) -> np.ndarray:
    """Return the weights after all steps (Algorithm 2); the sum is divided by the expected size of a batch."""
    clip, rate = case["clipping_norm"], case["sampling_rate"]
    norms = np.linalg.norm(x, axis=1)
    weights, expected = np.zeros(x.shape[1]), rate * len(x)
    for _ in range(round(case["epochs"] / rate)):
        drawn = np.flatnonzero(rng.random(len(x)) < rate)
        batch = x[drawn]
        # The gradient of one record is (prediction - label) x.
        slope = 1 / (1 + np.exp(-(batch @ weights))) - y[drawn]
        slope *= np.minimum(1.0, clip / np.maximum(np.abs(slope) * norms[drawn], 1e-12))
        noise = rng.normal(0.0, case["noise_multiplier"] * clip, weights.size)
        weights -= case["learning_rate"] * (slope @ batch + noise) / expected
    return weights
