"""Sensitivities of DP-SGD in TensorFlow: per-example gradients by `tf.vectorized_map`, for `fit` or a loop of your own."""

import math
from collections.abc import Callable
from typing import Any, final

from auditor import _validate
from auditor.choices import DPSGD
from auditor.errors import InputError
from auditor.sensitivity._extra import framework
from auditor.sensitivity._tensorflow import checked, clipped, completed, largest, per_record
from auditor.sensitivity.completions import Columns, Completions, Rewritten
from auditor.sensitivity.distances import Distance, Full
from auditor.sensitivity.tracker import Steps
from auditor.training import PoissonSampling, Sampling

__all__ = ["TensorFlowSensitivityTracker"]


_POISSON = PoissonSampling()


@final
class TensorFlowSensitivityTracker(Steps):
    """How far a sensitive attribute moves the clipped gradients of a TensorFlow training, step by step.

    With ``model.fit``, for a DP optimizer or a DP model of tensorflow-privacy::

        model.compile(optimizer=DPKerasSGDOptimizer(...), loss=loss_fn)
        tracker = TensorFlowSensitivityTracker(model, loss_fn, completions=Columns(0, ages), clipping_norm=1.0)
        tracker.attach()  # after compile; fit then observes every batch before it trains on it
        model.fit(...)
        print(tracker.summary(tracker.training(sampling_rate=256 / n)))

    In a loop of your own, call `observe` for each batch before its update and `end_step` after it.

    Every record of every batch is looked at, with every completion, at the weights that its update starts from. Nothing
    of the training changes, neither weights nor random numbers. The network is evaluated as for prediction
    (``training=False``), because dropout would add its own randomness to the distances.

    The numbers come from the training records: do not publish them where membership matters (`summary` says so).

    Args:
        model: The Keras model, built.
        loss_fn: ``loss_fn(labels, outputs)`` for a batch of one record, with or without reduction: all of the loss
            whose gradients training clips.
        completions: The values of the attribute: `Columns` or `Rewritten`.
        clipping_norm: C of DP-SGD, above 0.
        distance: `Full` (default) or `Approximate`.
        most_numbers: Gradient entries held at once; memory is a few times 4 bytes of it, and a processor's cache likes
            the default. One record's completions are always held together, however many that is.

    Raises:
        InputError: A bad argument, a model that is not built or has BatchNormalization.
        MissingExtraError: TensorFlow is not installed.

    Source: Cherubin et al. 2024, Algorithm 4.
    """

    def __init__(
        self,
        model: Any,
        loss_fn: Callable[[Any, Any], Any],
        *,
        completions: Completions,
        clipping_norm: float,
        distance: Distance = Full(),  # noqa: B008  a frozen value
        most_numbers: int = 2**22,
    ) -> None:
        tf = framework("tensorflow", called="TensorFlow", extra="tensorflow")
        super().__init__(
            clipping_norm=clipping_norm,
            distance=distance,
            extremes_only=getattr(completions, "extremes_only", False),
        )
        _validate.instance("completions", completions, (Columns, Rewritten))
        self._completions = completions
        self._most = _validate.at_least("most_numbers", most_numbers, least=1)
        self._model = checked(model, tf)
        self._gradients = per_record(tf, self._model, loss_fn)

    def attach(self) -> None:
        """Let ``model.fit`` observe every batch and end a step with every update; call it after ``compile``.

        The batch is seen by a Python function in front of the model's own training step, so that the whole of ``fit``
        cannot be compiled by XLA (the step of a DP model still can).

        Raises:
            InputError: The model is not compiled, or its updates are not those of DP-SGD record by record.
        """
        tf = framework("tensorflow", called="TensorFlow", extra="tensorflow")
        optimizer = getattr(self._model, "optimizer", None)
        if optimizer is None:
            raise InputError("model must be compiled before it is attached to; call model.compile first.")
        if getattr(optimizer, "gradient_accumulation_steps", 1) != 1:
            raise InputError(
                "model must update with every batch, got an optimizer that accumulates several; train in a loop of your"
                " own with observe and end_step."
            )
        norm = self._noise()[0]
        if norm is None or not math.isclose(norm, self.clipping_norm, rel_tol=1e-6):  # single precision
            raise InputError(
                f"model must train by tensorflow-privacy with the clipping norm that is tracked, {self.clipping_norm:g},"
                f" got {norm if norm is None else format(norm, 'g')}."
            )
        original = self._model.train_step

        def train_step(data: Any) -> Any:
            features, labels, weights = tf.keras.utils.unpack_x_y_sample_weight(data)
            if weights is not None:
                raise InputError(
                    "fit must be without sample weights, which are not tracked; put them into the loss."
                )
            seen = tf.py_function(self._whole_step, [features, labels], tf.float32)
            with tf.control_dependencies([seen]):
                return original(data)

        self._model.train_step = train_step
        self._model.train_function = None  # a compiled one would not know of it

    def observe(self, features: Any, labels: Any) -> None:
        """Take in one batch, or a part of it, before its update.

        Args:
            features: Tensor or array whose first axis counts the records; none are fine, and count as distance 0.
            labels: Tensor or array with one label, or one row of labels, for each.

        Raises:
            InputError: Gradients that are not finite, or completions that do not fit.
        """
        tf = framework("tensorflow", called="TensorFlow", extra="tensorflow")
        features, labels = tf.convert_to_tensor(features), tf.convert_to_tensor(labels)
        count, farthest = self._completions.count, self._open or 0.0
        each = sum(math.prod(variable.shape) for variable in self._model.trainable_variables) * count
        rows = max(1, self._most // max(each, 1))
        for start in range(0, int(features.shape[0]), rows):
            records = completed(tf, self._completions, features[start : start + rows])
            repeated = tf.repeat(labels[start : start + rows], count, axis=0)
            gradients = self._gradients(records, repeated)
            if not bool(tf.reduce_all(tf.math.is_finite(gradients))):
                self._raise_to(math.nan)
            points = tf.reshape(clipped(tf, gradients, self.clipping_norm), (-1, count, gradients.shape[-1]))
            farthest = largest(tf, points, distance=self.distance, known=farthest)
        self._raise_to(farthest)

    def training(self, *, sampling_rate: float, sampling: Sampling = _POISSON) -> DPSGD:
        """Return the tracked steps as a run, with the noise of the DP optimizer or DP model, for `claims` and `summary`.

        Args:
            sampling_rate: Probability that a record enters a step, which TensorFlow does not know.
            sampling: How batches are drawn; `PoissonSampling` is what DP-SGD is accounted for, and shuffled batches are
                neither of the two choices.

        Raises:
            InputError: The model does not train by tensorflow-privacy, or no step has ended.
        """
        norm, noise = self._noise()
        if norm is None or noise is None:
            raise InputError(
                "model must train by tensorflow-privacy, got no noise; describe the run with DPSGD."
            )
        steps = len(self.sensitivities)
        return DPSGD(noise, sampling_rate, steps, clipping_norm=self.clipping_norm, sampling=sampling)

    def _noise(self) -> tuple[float | None, float | None]:
        """Return the clipping norm and the noise multiplier of the DP model or the DP optimizer, if it is one."""
        if hasattr(self._model, "_l2_norm_clip"):
            return float(self._model._l2_norm_clip), float(self._model._noise_multiplier)  # noqa: SLF001  no public name
        state = getattr(getattr(self._model, "optimizer", None), "_global_state", None)
        if state is None or not hasattr(state, "l2_norm_clip"):
            return None, None
        norm = float(state.l2_norm_clip)
        return norm, float(state.stddev) / norm

    def _whole_step(self, features: Any, labels: Any) -> float:
        """Observe one batch of `fit`, which is one update."""
        owners = (self._model, self._model.optimizer)
        parts = next(
            (size for size in (getattr(owner, "_num_microbatches", None) for owner in owners) if size), None
        )
        if parts is not None and parts != len(features):
            raise InputError(
                f"model must clip record by record, got {parts} microbatches for a batch of {len(features)};"
                " leave num_microbatches out."
            )
        self.observe(features, labels)
        self.end_step()
        return 0.0
