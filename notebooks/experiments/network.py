"""One network and one optimiser, with or without TensorFlow Privacy's DP-SGD, and a pass over the records as one graph.

The optimiser is `VectorizedDPKerasSGDOptimizer`: the batch of B records is cut into m microbatches, each microbatch's
*mean* gradient is clipped to norm C, the m clipped means are added, N(0, (C s)^2) noise is added to every coordinate, and
the whole is divided by m. What that promises is in `experiments.guarantee`.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

__all__ = [
    "clipped_sum",
    "load_tensorflow",
    "log_odds_losses",
    "logits_of",
    "make_network",
    "make_optimiser",
    "make_pass",
]


def log_odds_losses(logits: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return each record's loss, -(log f_y - log(1 - f_y)), from logits, so that nothing saturates.

    Args:
        logits: Shape (n, 1), the log-odds of class 1, or (n, classes).
        y: Shape (n,), the true classes.

    Source: Negoescu et al. 2024, footnote 1; for two classes (1 - 2y)(log f - log(1 - f)).
    """
    z = np.asarray(logits, np.float64)
    if z.shape[1] == 1:
        return (1 - 2 * y) * z[:, 0]
    rows = np.arange(len(y))
    own = z[rows, y].copy()
    z = z.copy()
    z[rows, y] = -np.inf
    top = z.max(axis=1)
    return np.log(np.exp(z - top[:, None]).sum(axis=1)) + top - own


def clipped_sum(
    gradients: np.ndarray, *, microbatches: int, clip: float, noise: float = 0.0, seed: int = 0
) -> np.ndarray:
    """Return what the optimiser's one step adds up (before it divides by m) for records of known gradients.

    A model that is linear in its weights has the gradients that one wants: loss_i = w . g_i.

    Args:
        gradients: Shape (B, d), one for each record; microbatches are runs of B/m of them.
        microbatches: m.
        clip: C.
        noise: Noise multiplier.
        seed: Of the noise.
    """
    tf = load_tensorflow()
    tf.keras.utils.set_random_seed(seed)
    weights = tf.Variable(np.zeros(gradients.shape[1], np.float32))
    case = {"epsilon": 1.0, "clip": clip, "microbatches": microbatches, "learning_rate": 1.0, "momentum": 0.0}
    optimiser = make_optimiser(tf, case, noise=noise)
    optimiser.minimize(lambda: tf.linalg.matvec(tf.constant(gradients, tf.float32), weights), [weights])
    return -weights.numpy() * microbatches


def load_tensorflow() -> Any:
    """Import TensorFlow, quietly and with one thread."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
    os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")
    import tensorflow as tf

    tf.get_logger().setLevel("ERROR")
    return tf


def make_network(tf: Any, case: Mapping[str, Any], *, features: int, classes: int) -> Any:
    """Return hidden layers of tanh units and one logit for two classes, or one for each of more."""
    widths = [int(width) for width in str(case["hidden"]).split("-")]
    layers = [tf.keras.layers.Dense(width, activation="tanh") for width in widths]
    outputs = 1 if classes == 2 else classes
    return tf.keras.Sequential([tf.keras.layers.Input((features,)), *layers, tf.keras.layers.Dense(outputs)])


def make_optimiser(tf: Any, case: Mapping[str, Any], *, noise: float) -> Any:
    """Return SGD with momentum, or its DP-SGD form where the case has an epsilon."""
    settings = {"learning_rate": float(case["learning_rate"]), "momentum": float(case["momentum"])}
    if case["epsilon"] is None:
        return tf.keras.optimizers.legacy.SGD(**settings)
    from tensorflow_privacy import VectorizedDPKerasSGDOptimizer

    return VectorizedDPKerasSGDOptimizer(
        l2_norm_clip=float(case["clip"]),
        noise_multiplier=float(noise),
        num_microbatches=int(case["microbatches"]),
        **settings,
    )


def make_pass(
    tf: Any, model: Any, optimiser: Any, data: Any, *, case: Mapping[str, Any], binary: bool
) -> Callable[..., Any]:
    """Return a graph that takes the records in an order and makes one step for each whole batch."""
    x = tf.constant(data.x_train)
    y = tf.constant(data.y_train, tf.float32 if binary else tf.int32)
    batch, private = int(case["batch"]), case["epsilon"] is not None
    variables = model.trainable_variables
    optimiser._create_all_weights(variables)  # noqa: SLF001  a loop in a graph cannot create its momentum

    def losses(rows: Any, x: Any, y: Any) -> Any:
        logits, labels = model(tf.gather(x, rows), training=True), tf.gather(y, rows)
        if binary:
            return tf.nn.sigmoid_cross_entropy_with_logits(labels, logits[:, 0])
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)

    @tf.function
    def one_pass(order: Any, x: Any, y: Any) -> None:
        for step in tf.range(tf.shape(order)[0] // batch):
            rows = tf.reshape(order[step * batch : (step + 1) * batch], [batch])
            if private:
                optimiser.minimize(lambda rows=rows: losses(rows, x, y), variables)
            else:
                optimiser.minimize(lambda rows=rows: tf.reduce_mean(losses(rows, x, y)), variables)

    return lambda order: one_pass(tf.constant(order, tf.int32), x, y)


def logits_of(model: Any, x: np.ndarray) -> np.ndarray:
    """Return the model's logits, shape (n, 1) or (n, classes)."""
    return np.concatenate(
        [model(part, training=False).numpy() for part in np.array_split(x, max(1, len(x) // 8192))]
    )
