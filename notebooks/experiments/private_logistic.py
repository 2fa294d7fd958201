"""Logistic regression by DP-SGD in plain numpy: Poisson batches, clipped gradients, Gaussian noise.

Small and fast, for figures that need many private models of a table and no particular framework.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import auditor

__all__ = ["accuracy", "softmax_regression", "train_and_score"]


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


def softmax_regression(
    x: np.ndarray,
    y: np.ndarray,
    run: auditor.DPSGD,
    *,
    expected: float,
    clips: bool = True,
    noisy: bool = True,
) -> Callable[[np.ndarray], np.ndarray]:
    """Train on several classes, with clipping norm 1 and learning rate 1, and return the function from features to probabilities.

    Args:
        x: Shape (n, d), of norms about 1 to 10.
        y: Shape (n,), classes from 0.
        run: What is promised of the training.
        expected: Size of a batch that the sum is divided by: a constant, whoever is in the training set.
        clips: Whether gradients are clipped; if not, that is a bug.
        noisy: Whether there is noise; likewise.
    """
    from scipy.special import softmax

    rng, x = np.random.default_rng(0), _with_intercept(x)
    truth, norms = np.eye(y.max() + 1)[y], np.linalg.norm(x, axis=1)
    weights = np.zeros((x.shape[1], truth.shape[1]))
    for _ in range(run.steps):
        drawn = rng.random(len(x)) < run.sampling_rate
        # The gradient of one record is the product of its features and these slopes.
        slopes = softmax(x[drawn] @ weights, axis=1) - truth[drawn]
        if clips:
            slopes /= np.maximum(1.0, np.linalg.norm(slopes, axis=1) * norms[drawn])[:, None]
        noise = rng.normal(0.0, run.noise_multiplier if noisy else 0.0, weights.shape)
        weights -= (x[drawn].T @ slopes + noise) / expected
    return lambda x: softmax(_with_intercept(x) @ weights, axis=1)


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
