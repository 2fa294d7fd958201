"""What the TensorFlow tracker does with models and tensors."""

from collections.abc import Callable
from typing import Any

import numpy as np

from auditor.errors import InputError
from auditor.sensitivity.completions import Completions, Rewritten
from auditor.sensitivity.distances import Approximate, Distance

__all__ = [
    "TrainStep",
    "checked",
    "clipped",
    "completed",
    "has_dropout",
    "largest",
    "microbatches",
    "noise",
    "per_record",
    "steadily",
    "tensor",
]


def checked(model: Any, tf: Any) -> Any:
    if not isinstance(model, tf.keras.Model):
        raise InputError(f"model must be a Keras model, got {type(model).__name__}.")
    if not model.built:
        raise InputError("model must be built before it is tracked; call model.build with the input shape.")
    for part in model.submodules:
        if isinstance(part, tf.keras.layers.BatchNormalization):
            raise InputError(
                f"model must have no BatchNormalization, which mixes the records of a batch, got {part.name!r};"
                " replace it, for example with LayerNormalization."
            )
    return model


def has_dropout(model: Any, tf: Any) -> bool:
    """Return whether a layer is random in training; what a `call` drops by itself cannot be seen."""
    layers = tf.keras.layers
    random = (layers.Dropout, layers.AlphaDropout, layers.GaussianDropout, layers.GaussianNoise)
    rates = [
        getattr(part, name, 0)
        for part in model.submodules
        # Recurrent layers drop by numbers of their own.
        for name in (("rate", "stddev") if isinstance(part, random) else ("dropout", "recurrent_dropout"))
    ]
    return any(isinstance(rate, int | float) and rate > 0 for rate in rates)


def noise(model: Any) -> tuple[float | None, float | None]:
    """Return the clipping norm and the noise multiplier of the DP model or the DP optimizer, if it is one."""
    owners: tuple[Any, Any] = (model, getattr(model, "optimizer", None))
    for owner in owners:
        if getattr(owner, "_l2_norm_clip", None) is not None:
            return float(owner._l2_norm_clip), float(owner._noise_multiplier)  # noqa: SLF001  no public name
    state = getattr(owners[1], "_global_state", None)
    if state is None or not hasattr(state, "l2_norm_clip"):
        return None, None
    norm = float(state.l2_norm_clip)
    return norm, float(state.stddev) / norm


def microbatches(model: Any, records: int) -> None:
    """Refuse clipping by groups of records."""
    owners = (model, model.optimizer)
    parts = next(
        (size for size in (getattr(owner, "_num_microbatches", None) for owner in owners) if size), None
    )
    if parts is not None and parts != records:
        raise InputError(
            f"model must clip record by record, got {parts} microbatches for a batch of {records};"
            " leave num_microbatches out."
        )


def steadily(tf: Any, model: Any, record: Any) -> None:
    """Refuse a model that gives another output each time, which would be mistaken for a distance."""
    once, again = (tf.nest.flatten(model(record, training=False)) for _ in range(2))
    if not all(np.allclose(a, b, rtol=1e-3, equal_nan=True) for a, b in zip(once, again, strict=True)):
        raise InputError(
            "model must not be random at prediction (training=False), got two outputs for one record; give its random"
            " layers the argument training."
        )


def tensor(name: str, values: Any, tf: Any) -> Any:
    """Return a tensor, or an array or list as one."""
    try:
        found = tf.convert_to_tensor(values)
    except (TypeError, ValueError):
        raise InputError(
            f"{name} must be a tensor or an array of numbers, got {type(values).__name__}."
        ) from None
    if found.dtype == tf.string:
        raise InputError(f"{name} must be a tensor or an array of numbers, got text.")
    return found


def per_record(tf: Any, model: Any, loss_fn: Callable[[Any, Any], Any]) -> Any:
    """Return the function from records and labels to one gradient for each, shape (records, parameters)."""

    def one(pair: tuple[Any, Any]) -> Any:
        record, label = pair
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(loss_fn(label[None], model(record[None], training=False)))
        gradients = tape.gradient(
            loss, model.trainable_variables, unconnected_gradients=tf.UnconnectedGradients.ZERO
        )
        return tf.concat([tf.reshape(gradient, [-1]) for gradient in gradients], axis=0)

    @tf.function(reduce_retracing=True)  # type: ignore[untyped-decorator]  # batches of many sizes
    def every(records: Any, labels: Any) -> Any:
        return tf.vectorized_map(one, (records, labels))

    return every


def completed(tf: Any, completions: Completions, features: Any) -> Any:
    """Return the records with every value of the attribute, shape (records x completions, ...)."""
    if isinstance(completions, Rewritten):
        stacked = tf.stack(completions.batches(features), axis=1)
        return tf.reshape(stacked, (-1, *features.shape[1:]))
    rows, written = completions.rows(int(features.shape[-1]))
    values = tf.cast(rows, features.dtype)
    if not features.dtype.is_floating and (tf.cast(values, tf.float64).numpy() != rows).any():
        raise InputError(
            f"completions must be whole numbers for features of type {features.dtype.name}; convert the features first."
        )
    # One axis for the completions after the records', and the columns on the last.
    shape = (1, len(rows), *(1,) * (len(features.shape) - 2), features.shape[-1])
    completed = tf.where(written, tf.reshape(values, shape), features[:, None])
    return tf.reshape(completed, (-1, *features.shape[1:]))


class TrainStep:
    """The training step of a model with an observer in front of it."""

    def __init__(
        self,
        tf: Any,
        model: Any,
        *,
        check: Callable[[Any, Any], None],
        observe: Callable[[Any, Any], float],
    ) -> None:
        self._tf, self._model, self._check, self._observe = tf, model, check, observe
        # The class's own method is found again without an attribute; that of another tracker is one.
        self._earlier = vars(model).get("train_step")
        self._original = model.train_step
        self._on = True
        model.train_step = self
        model.train_function = None  # a compiled one would not know of it

    def __call__(self, data: Any) -> Any:
        if not self._on:
            return self._original(data)
        tf = self._tf
        features, labels, weights = tf.keras.utils.unpack_x_y_sample_weight(data)
        if weights is not None:
            raise InputError(
                "fit must be without sample weights, which are not tracked; put them into the loss."
            )
        self._check(features, labels)
        seen = tf.py_function(self._observe, [features, labels], tf.float32)
        with tf.control_dependencies([seen]):
            return self._original(data)

    def remove(self) -> None:
        """Restore the earlier step; where another was put around this one, only pass on to it."""
        self._on = False
        self._model.train_function = None
        if self._model.train_step is not self:
            return
        if self._earlier is None:
            del self._model.train_step
        else:
            self._model.train_step = self._earlier


def clipped(tf: Any, gradients: Any, norm: float) -> Any:
    """Return gradients scaled to the clipping norm, g / max(1, |g| / C), with no square beyond the type."""
    largest = tf.maximum(tf.reduce_max(tf.abs(gradients), axis=-1, keepdims=True), norm)
    scaled = gradients / largest
    return scaled * tf.minimum(largest, tf.math.divide_no_nan(norm, tf.norm(scaled, axis=-1, keepdims=True)))


def largest(tf: Any, points: Any, *, distance: Distance, known: float) -> float:
    """Return what `auditor.sensitivity.distances.largest_distance` does, where the tensors are."""
    centred = points - tf.reduce_mean(points, axis=1, keepdims=True)
    radii = tf.norm(centred, axis=2)
    if isinstance(distance, Approximate):
        return max(known, 2 * float(tf.reduce_max(radii)))
    top = tf.reduce_sum(tf.math.top_k(radii, k=2).values, axis=1)
    first = tf.gather(centred, tf.argmax(radii, axis=1), batch_dims=1)
    apart = radii**2 - 2 * tf.linalg.matvec(centred, first)
    pairs = tf.gather(centred, tf.argmax(apart, axis=1), batch_dims=1) - first
    best = max(known, float(tf.reduce_max(tf.norm(pairs, axis=1))))
    for row in tf.where(top > best)[:, 0].numpy().tolist():
        squares = radii[row] ** 2
        gram = tf.matmul(centred[row], centred[row], transpose_b=True)
        place = int(tf.argmax(tf.reshape(squares[:, None] + squares - 2 * gram, [-1])))
        pair = centred[row][place // len(squares)] - centred[row][place % len(squares)]
        best = max(best, float(tf.norm(pair)))
    return best
