"""What the TensorFlow tracker does with models and tensors."""

from collections.abc import Callable
from typing import Any

from auditor.errors import InputError
from auditor.sensitivity.completions import Completions, Rewritten
from auditor.sensitivity.distances import Approximate, Distance

__all__ = ["checked", "clipped", "completed", "largest", "per_record"]


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
