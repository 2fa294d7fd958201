"""Train one network with plain SGD or with TensorFlow Privacy's DP-SGD: a task for `experiments.grid.run_all`.

The network is the fully connected benchmark of Shokri et al. 2017 (Section VI: one hidden layer of 128 tanh units), or
any other stack of tanh layers; the optimiser is in `experiments.network`, and what it promises in `experiments.guarantee`.

A pass over shuffled records is one call of a TensorFlow graph, which is what makes a grid of hundreds of models cheap.
What is left of a pass after the last whole batch is dropped, so that microbatches always come out even.
"""

import gc
import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

import auditor
from experiments import adult, location30, purchase100
from experiments.guarantee import default_delta, guarantee
from experiments.network import (
    load_tensorflow,
    log_odds_losses,
    logits_of,
    make_network,
    make_optimiser,
    make_pass,
)

__all__ = ["DATA", "records_of", "seconds_of_steps", "train"]

# Where the files are, by the name of the data in a case: an environment variable, never a path in a result.
DATA = {"adult": "ADULT", "location30": "LOCATION30", "purchase100": "PURCHASE100"}
_LOADERS: dict[str, Callable[[str], Any]] = {
    "adult": cache(adult.load),
    "location30": location30.load,
    "purchase100": purchase100.load,
}


def train(case: Mapping[str, Any], *, seed: int) -> dict[str, Any]:
    """Train one model and return its losses on members and non-members, its utility and what it promises.

    Args:
        case: As `experiments.strategies.Strategy.case` makes it: ``data``, ``epochs``, ``batch``, ``hidden`` (such as
            "128" or "100-100-100"), ``learning_rate``, ``momentum``; for DP-SGD also ``epsilon``, ``clip`` and
            ``microbatches``, which are null for a baseline; ``n_train`` and ``n_test`` of the stand-in.
        seed: Of the initial weights, the shuffling and the noise.

    Returns:
        ``member_loss`` and ``nonmember_loss`` (float64, negative log-odds of the true class: smaller means more like a
        member), ``utility`` (AUROC on the non-members for two classes, else accuracy), accuracies, the guarantee's
        numbers (an infinite epsilon for a baseline), ``seconds``, ``megabytes`` (the process's peak) and ``diverged``.
    """
    started = time.perf_counter()
    tf = load_tensorflow()
    gc.collect()  # graphs of the models before
    tf.keras.backend.clear_session()
    tf.keras.utils.set_random_seed(seed)
    data = records_of(case)
    classes = int(max(data.y_train.max(), data.y_test.max())) + 1
    promise = _promise(case, records=len(data.y_train))
    model = make_network(tf, case, features=data.x_train.shape[1], classes=classes)
    optimiser = make_optimiser(tf, case, noise=promise["noise_multiplier"])
    one_pass = make_pass(tf, model, optimiser, data, case=case, binary=classes == 2)
    order = np.random.default_rng(seed)
    for _ in range(int(case["epochs"])):
        one_pass(order.permutation(len(data.y_train)))
    scores = [logits_of(model, x) for x in (data.x_train, data.x_test)]
    return {
        **_measured(scores, data),
        **promise,
        "records": len(data.y_train),
        "source": data.source,
        "seconds": time.perf_counter() - started,
        "megabytes": _peak_megabytes(),
    }


def seconds_of_steps(case: Mapping[str, Any], *, steps: int = 40) -> tuple[float, float]:
    """Return how long a model takes before its first step (seconds) and for one step (seconds), measured here.

    Args:
        case: As in `train`; the noise is not searched for.
        steps: To time; fewer where the training set is small.
    """
    tf = load_tensorflow()
    data, started = records_of(case), time.perf_counter()
    classes = int(max(data.y_train.max(), data.y_test.max())) + 1
    model = make_network(tf, case, features=data.x_train.shape[1], classes=classes)
    optimiser = make_optimiser(tf, case, noise=1.0)
    one_pass = make_pass(tf, model, optimiser, data, case=case, binary=classes == 2)
    rows = np.arange(len(data.y_train))[: steps * int(case["batch"])]
    one_pass(rows)  # makes the graph, which is for so many rows
    _measured([logits_of(model, x) for x in (data.x_train, data.x_test)], data)
    before = time.perf_counter()
    one_pass(rows)
    each = (time.perf_counter() - before) / (len(rows) // int(case["batch"]))
    return before - started, each


def records_of(case: Mapping[str, Any]) -> Any:
    """Return the arrays that a case trains on, read once in each process.

    Raises:
        auditor.InputError: The environment variable that says where the data are is not set, or they are not there.
    """
    name = case["data"]
    if name == "stand-in":
        return _stand_in(int(case["n_train"]), int(case["n_test"]))
    path = os.environ.get(DATA[name])
    if not path:
        raise auditor.InputError(
            f"the environment variable {DATA[name]} must say where the data {name!r} are, got none; "
            f"{ {'location30': location30.WHERE, 'purchase100': purchase100.WHERE}.get(name, adult.WHERE) }."
        )
    return _LOADERS[name](path)


_stand_in = cache(lambda n_train, n_test: adult.stand_in(n_train=n_train, n_test=n_test))


def _promise(case: Mapping[str, Any], *, records: int) -> dict[str, Any]:
    """Return the guarantee's numbers, flat; a baseline has no noise and no finite epsilon."""
    steps = int(case["epochs"]) * (records // int(case["batch"]))
    if case["epsilon"] is None:
        none = dict.fromkeys(("epsilon_stated", "epsilon_corrected", "epsilon_shuffled"), float("inf"))
        return {"noise_multiplier": 0.0, "delta": default_delta(records), "steps": steps, **none}
    found = guarantee(
        epsilon=float(case["epsilon"]),
        records=records,
        batch=int(case["batch"]),
        microbatches=int(case["microbatches"]),
        epochs=int(case["epochs"]),
    )
    return {
        "noise_multiplier": found.noise_multiplier,
        "delta": found.delta,
        "steps": found.steps,
        "epsilon_stated": found.stated,
        "epsilon_corrected": found.corrected,
        "epsilon_shuffled": found.shuffled,
    }


def _measured(scores: list[np.ndarray], data: Any) -> dict[str, Any]:
    """Return losses and utilities of the two groups' logits."""
    losses = [log_odds_losses(z, y) for z, y in zip(scores, (data.y_train, data.y_test), strict=True)]
    right = [_accuracy(z, y) for z, y in zip(scores, (data.y_train, data.y_test), strict=True)]
    diverged = not all(np.isfinite(loss).all() for loss in losses)
    binary = scores[1].shape[1] == 1
    return {
        "member_loss": losses[0],
        "nonmember_loss": losses[1],
        "train_accuracy": right[0],
        "test_accuracy": right[1],
        "utility": right[1] if diverged or not binary else _auroc(scores[1][:, 0], data.y_test),
        "utility_name": "AUROC on non-members" if binary else "accuracy on non-members",
        "diverged": diverged,
    }


def _accuracy(logits: np.ndarray, y: np.ndarray) -> float:
    predicted = logits[:, 0] > 0 if logits.shape[1] == 1 else logits.argmax(axis=1)
    return float(np.mean(predicted == y))


def _auroc(score: np.ndarray, y: np.ndarray) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(y, score))


def _peak_megabytes() -> float:
    """Return the most memory this process has held, or not a number where the system does not say."""
    try:
        import resource
    except ImportError:
        return float("nan")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10
