"""Sensitivities of DP-SGD in TensorFlow: per-example gradients by `tf.vectorized_map`, for `fit` or a loop of your own."""

import math
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any, final

import numpy as np

from auditor.core import DPSGD, InputError, PoissonSampling, Sampling
from auditor.training.tracker import Batch, ModelSteps

_POISSON = PoissonSampling()


@final
class TensorFlowSensitivityTracker(ModelSteps):
    """Sensitivity of the clipped gradients of a TensorFlow training run to a sensitive attribute, step by step.

    With ``model.fit``, for a DP optimizer or a DP model of tensorflow-privacy::

        model.compile(optimizer=DPKerasSGDOptimizer(...), loss=loss_fn)
        tracker = TensorFlowSensitivityTracker(model, loss_fn, completions=Columns(0, ages), clipping_norm=1.0)
        tracker.attach()  # after compile; fit then observes every batch before it trains on it
        model.fit(batches, ...)  # batches that draw each record by a coin of probability 256 / n
        for claim in tracker.claims(tracker.training(sampling_rate=256 / n)):
            print(claim.metric, claim.value, claim.note)

    In a loop of your own, call `observe` for each batch before its update and `end_step` after it.

    Every record of every batch is looked at, with every completion, at the weights that its update starts from. Nothing
    of the training changes, neither weights nor random numbers. The network is evaluated as for prediction
    (``training=False``), because dropout would add its own randomness to the distances: with dropout the distances of
    training can be larger than those measured, up to 2 C, and the claims say so.

    The promise is that of batches drawn independently in every step. ``fit`` on arrays passes over shuffled records, which
    no claim here covers and which this cannot see: the numbers then assume draws that did not happen.

    The numbers come from the training records: do not publish them where membership matters.

    Args:
        model: The Keras model, built.
        loss_fn: ``loss_fn(labels, outputs)`` for a batch of one record, with or without reduction: all of the loss
            whose gradients training clips. Training must average it with equal weights for all records; one that divides
            by something of the whole batch (a sum of weights, a number of tokens) would be measured too small.
        completions: The columns of the attribute and its values.
        clipping_norm: C of DP-SGD, above 0.
        distance: `Full` (default) or `Approximate`.

    Raises:
        InputError: A bad argument, a model that is not built or has BatchNormalization.
        MissingExtraError: TensorFlow is not installed.

    Source: Cherubin et al. 2024, Algorithm 4.
    """

    _framework = ("TensorFlow", "tensorflow")
    _steady = False

    def attach(self) -> None:
        """Observe every batch of ``model.fit`` and end a step with every update; call it after ``compile``.

        The batch is seen in front of the model's own training step, so that the whole of ``fit`` cannot be compiled by
        XLA (the step of a DP model still can), nor several steps at once. Training that cannot be tracked is refused inside ``fit``;
        the update of that batch is then not made.

        Raises:
            InputError: The model is not compiled, its updates are not those of DP-SGD record by record, or this tracker
                is attached.
        """
        if self._undo is not None:
            raise InputError("attach must be called once for a tracker; call detach before attaching again.")
        fitted(self._model)
        self._same_norm()
        self._undo = TrainFunction(self._library, self._model, self._whole_step).remove

    def training(self, *, sampling_rate: float, sampling: Sampling = _POISSON) -> DPSGD:
        """Return the tracked steps as a run, with the noise of the DP optimizer or DP model, for `claims`.

        Args:
            sampling_rate: Probability that a record enters a step, which TensorFlow does not know.
            sampling: Sampling of the batches; DP-SGD is accounted for `PoissonSampling`, and `ShuffledBatches` is what
                ``fit`` does by itself.

        Raises:
            InputError: The model does not train by tensorflow-privacy with the clipping norm that is tracked, or no step
                has ended.
        """
        noise, steps = self._same_norm(), len(self.sensitivities)
        return DPSGD(noise, sampling_rate, steps, clipping_norm=self.clipping_norm, sampling=sampling)

    def _same_norm(self) -> float:
        """Return the noise multiplier, after a look at the clipping norm, which another compile may have changed."""
        private = noise_of(self._model)
        if private is None or not math.isclose(
            private[0], self.clipping_norm, rel_tol=1e-6
        ):  # single precision
            raise InputError(
                f"model must train by tensorflow-privacy with the clipping norm that is tracked, {self.clipping_norm:g},"
                f" got {format(private[0], 'g') if private else 'none'}; describe any other run with DPSGD."
            )
        return private[1]

    def _usable(self, model: Any) -> Any:
        tf = self._library
        self._failures = (TypeError, ValueError, tf.errors.OpError)
        if not isinstance(model, tf.keras.Model):
            raise InputError(f"model must be a Keras model, got {type(model).__name__}.")
        if not model.built:
            raise InputError(
                "model must be built before it is tracked; call model.build with the input shape."
            )
        for part in model.submodules:
            if isinstance(part, tf.keras.layers.BatchNormalization):
                raise InputError(
                    f"model must have no BatchNormalization, which mixes the records of a batch, got {part.name!r};"
                    " replace it, for example with LayerNormalization."
                )
        self._taken = _per_record(tf, model, self._loss_fn)
        return model

    def _sizes(self) -> int:
        return sum(math.prod(variable.shape) for variable in self._model.trainable_variables)

    def _gradients(self, records: Batch, labels: Batch) -> Batch:
        if not self._steady:
            tf, first = self._library, records[:1]
            once, again = (tf.nest.flatten(self._model(first, training=False)) for _ in range(2))
            if not all(
                np.allclose(a, b, rtol=1e-3, equal_nan=True) for a, b in zip(once, again, strict=True)
            ):
                # Two outputs for one record would be mistaken for a distance.
                raise InputError(
                    "model must not be random at prediction (training=False), got two outputs for one record; give its"
                    " random layers the argument training."
                )
            self._steady = True
        return self._taken(records, labels).numpy()  # type: ignore[no-any-return]

    def _whole_step(self, features: Any, labels: Any, weights: Any) -> None:
        """Observe one batch of `fit`, which is one update."""
        if weights is not None:
            raise InputError(
                "fit must be without sample weights, which are not tracked; put them into the loss."
            )
        if not hasattr(features, "shape") or not hasattr(labels, "shape"):
            raise InputError(
                "fit must be given one array of features and one of labels; train in a loop of your own with observe and"
                " end_step for others."
            )
        fitted(self._model)
        self._same_norm()
        for owner in (self._model, self._model.optimizer):
            one_each(getattr(owner, "_num_microbatches", None), len(features))
        self.observe(features, labels)
        self.end_step()


# --- Models and tensors of the TensorFlow tracker ---


def noise_of(model: Any) -> tuple[float, float] | None:
    """Return the clipping norm and the noise multiplier of a DP model, its DP optimizer, or a DP optimizer."""
    owners: tuple[Any, Any] = (model, getattr(model, "optimizer", None))
    for owner in owners:
        if getattr(owner, "_l2_norm_clip", None) is not None:
            return float(owner._l2_norm_clip), float(owner._noise_multiplier)  # noqa: SLF001  no public name
        state: Any = getattr(owner, "_global_state", None)
        if hasattr(state, "l2_norm_clip"):
            return float(state.l2_norm_clip), float(state.stddev) / float(state.l2_norm_clip)
    return None


def every_batch(optimizer: Any) -> None:
    """Refuse an optimizer that accumulates gradients."""
    if getattr(optimizer, "gradient_accumulation_steps", 1) != 1:
        raise InputError("optimizer must update with every batch, got one that accumulates several.")


def fitted(model: Any) -> None:
    """Refuse a model that is not compiled, or whose batches in `fit` are not one update each that Python sees."""
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None:
        raise InputError("model must be compiled before it is attached to; call model.compile first.")
    every_batch(optimizer)
    if getattr(model, "jit_compile", False):
        raise InputError(
            "model must be compiled without jit_compile, got jit_compile=True, which observes no batch."
        )
    steps = int(getattr(model, "_steps_per_execution", None) or 1)
    if steps != 1:
        raise InputError(
            f"model must be compiled without steps_per_execution, got {steps}, of which only the first would be observed."
        )


def one_each(microbatches: int | None, records: int | None) -> None:
    """Refuse clipping by groups of records; both may be unknown."""
    if None not in (microbatches, records) and microbatches != records:
        raise InputError(
            f"model must clip record by record, got {microbatches} microbatches for a batch of {records};"
            " leave num_microbatches out."
        )


def _per_record(tf: ModuleType, model: Any, loss_fn: Callable[[Any, Any], Any]) -> Any:
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


class TrainFunction:
    """Train function of `fit`, one batch a call, with Python code before and after it.

    It runs outside the compiled step: inside, TensorFlow would wait for its own threads, without end where it has only one.
    """

    def __init__(self, tf: Any, model: Any, before: Callable[..., Any], after: Any = lambda: None) -> None:
        self._tf, self._model, self._before, self._after = tf, model, before, after
        # The class's own method is found again without an attribute; that of another tracker is one.
        self._earlier = vars(model).get("make_train_function")
        self._original = model.make_train_function
        self._made: Callable[[Any], Any] | None = None
        self._on = True
        model.make_train_function = self
        model.train_function = None  # one that is there does not know of it

    def __call__(self, force: bool = False) -> Any:  # noqa: FBT001, FBT002 - as Keras declares it
        """Return the function from an iterator of batches to the logs of one step, as `make_train_function` does."""
        if not self._on:
            return self._original(force)
        model = self._model
        if force or self._made is None or model.train_function is not self._made:
            self._made = self._observed(self._original(True))
            model.train_function = self._made
        return self._made

    def _observed(self, train: Any) -> Callable[[Any], Any]:
        tf = self._tf
        compiled: Any = None
        current: Any = None

        def observed(iterator: Any) -> Any:
            nonlocal compiled, current
            data, spec = next(iterator), iterator.element_spec
            self._before(*tf.keras.utils.unpack_x_y_sample_weight(data))
            step = partial(train, _Batch(data, spec))
            if hasattr(train, "python_function"):  # compiled, and not another tracker's
                if current != spec:  # once for batches of every size: each would draw its noise again
                    current = spec
                    compiled = tf.function(
                        lambda batch: train.python_function(iter([batch])), input_signature=[spec]
                    )
                step = partial(compiled, data)
            logs = step()
            self._after()
            return logs

        return observed

    def remove(self) -> None:
        """Restore the earlier function; where another was put around this one, only pass on to it."""
        self._on = False
        self._model.train_function = None
        if self._model.make_train_function is not self:
            return
        if self._earlier is None:
            del self._model.make_train_function
        else:
            self._model.make_train_function = self._earlier


class _Batch:
    """An iterator of one batch, as the training function of Keras takes one."""

    def __init__(self, data: Any, element_spec: Any) -> None:
        self._left, self.element_spec = [data], element_spec

    def __next__(self) -> Any:
        return self._left.pop()
