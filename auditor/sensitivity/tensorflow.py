"""Sensitivities of DP-SGD in TensorFlow: per-example gradients by `tf.vectorized_map`, for `fit` or a loop of your own."""

import math
from collections.abc import Callable
from typing import Any, final

from auditor import _validate
from auditor.choices import DPSGD
from auditor.errors import InputError
from auditor.sensitivity._extra import framework
from auditor.sensitivity._model_steps import ModelSteps
from auditor.sensitivity._tensorflow import (
    TrainStep,
    checked,
    clipped,
    completed,
    has_dropout,
    largest,
    microbatches,
    noise,
    per_record,
    steadily,
    tensor,
)
from auditor.sensitivity.completions import Completions
from auditor.sensitivity.distances import Distance, Full
from auditor.training import PoissonSampling, Sampling

__all__ = ["TensorFlowSensitivityTracker"]


_POISSON = PoissonSampling()


@final
class TensorFlowSensitivityTracker(ModelSteps):
    """How far a sensitive attribute moves the clipped gradients of a TensorFlow training, step by step.

    With ``model.fit``, for a DP optimizer or a DP model of tensorflow-privacy::

        model.compile(optimizer=DPKerasSGDOptimizer(...), loss=loss_fn)
        tracker = TensorFlowSensitivityTracker(model, loss_fn, completions=Columns(0, ages), clipping_norm=1.0)
        tracker.attach()  # after compile; fit then observes every batch before it trains on it
        model.fit(batches, ...)  # batches that draw each record anew by a coin of probability 256 / n
        print(tracker.summary(tracker.training(sampling_rate=256 / n)))

    In a loop of your own, call `observe` for each batch before its update and `end_step` after it.

    Every record of every batch is looked at, with every completion, at the weights that its update starts from. Nothing
    of the training changes, neither weights nor random numbers. The network is evaluated as for prediction
    (``training=False``), because dropout would add its own randomness to the distances: with dropout the distances of
    training can be larger than those measured, up to 2 C, and the claims say so where a layer has it.

    What is promised is that of batches drawn anew in every step. ``fit`` on arrays passes over shuffled records, which
    no claim here covers and which this cannot see: the numbers then assume draws that did not happen.

    The numbers come from the training records: do not publish them where membership matters (`summary` says so).

    Args:
        model: The Keras model, built.
        loss_fn: ``loss_fn(labels, outputs)`` for a batch of one record, with or without reduction: all of the loss
            whose gradients training clips. Training must average it with equal weights for all records; one that divides
            by something of the whole batch (a sum of weights, a number of tokens) would be measured too small.
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
            loss_fn,
            completions=completions,
            clipping_norm=clipping_norm,
            distance=distance,
            most_numbers=most_numbers,
        )
        self._model = checked(model, tf)
        self._dropout(present=has_dropout(self._model, tf))
        self._steady = False
        self._gradients = per_record(tf, self._model, loss_fn)
        self._step: TrainStep | None = None

    def attach(self) -> None:
        """Let ``model.fit`` observe every batch and end a step with every update; call it after ``compile``.

        The batch is seen by a Python function in front of the model's own training step, so that the whole of ``fit``
        cannot be compiled by XLA (the step of a DP model still can). What is refused inside ``fit`` arrives as an error of
        TensorFlow's own, whose message holds the sentence; the update of that batch is then not made.

        Raises:
            InputError: The model is not compiled, its updates are not those of DP-SGD record by record, or this tracker
                is attached.
        """
        if self._step is not None:
            raise InputError("attach must be called once for a tracker; call detach before attaching again.")
        tf = framework("tensorflow", called="TensorFlow", extra="tensorflow")
        optimizer = getattr(self._model, "optimizer", None)
        if optimizer is None:
            raise InputError("model must be compiled before it is attached to; call model.compile first.")
        if getattr(optimizer, "gradient_accumulation_steps", 1) != 1:
            raise InputError(
                "model must update with every batch, got an optimizer that accumulates several; train in a loop of your"
                " own with observe and end_step."
            )
        if getattr(self._model, "jit_compile", False):
            raise InputError(
                "model must be compiled without jit_compile, got jit_compile=True, which observes no batch."
            )
        self._same_norm()
        self._step = TrainStep(tf, self._model, check=self._before, observe=self._whole_step)

    def detach(self) -> None:
        """Let ``fit`` go on without this tracker, whose steps stay; nothing happens where it is not attached."""
        if self._step is not None:
            self._step.remove()
            self._step = None

    def observe(self, features: Any, labels: Any) -> None:
        """Take in one batch, or a part of it, before its update.

        Args:
            features: Tensor or array whose first axis counts the records; none are fine, and count as distance 0.
            labels: Tensor or array with one label, or one row of labels, for each.

        Raises:
            InputError: No batch, gradients that are not finite, completions that do not fit, or a model that is random at
                prediction.
        """
        tf = framework("tensorflow", called="TensorFlow", extra="tensorflow")
        features, labels = tensor("features", features, tf), tensor("labels", labels, tf)
        self._checked(features, labels)
        count, farthest = self._completions.count, self._open or 0.0
        numbers = sum(math.prod(variable.shape) for variable in self._model.trainable_variables)
        for part in self._parts(int(features.shape[0]), parameters=numbers):
            gradients = self._gradients_of(tf, features[part], labels[part])
            if not bool(tf.reduce_all(tf.math.is_finite(gradients))):
                self._raise_to(math.nan)
            points = tf.reshape(clipped(tf, gradients, self.clipping_norm), (-1, count, gradients.shape[-1]))
            farthest = largest(tf, points, distance=self.distance, known=farthest)
        self._raise_to(farthest)

    def _gradients_of(self, tf: Any, features: Any, labels: Any) -> Any:
        """Return one gradient for each record and completion, shape (records x completions, parameters)."""
        records = completed(tf, self._completions, features)
        repeated = tf.repeat(labels, self._completions.count, axis=0)
        try:
            if not self._steady:
                steadily(tf, self._model, records[:1])
                self._steady = True
            return self._gradients(records, repeated)
        except InputError:
            raise
        except (TypeError, ValueError, tf.errors.OpError) as error:
            raise InputError(
                "gradients must be possible for one record at a time, got from model or loss_fn:"
                f" {_validate.one_line(error)}."
            ) from error

    def training(self, *, sampling_rate: float, sampling: Sampling = _POISSON) -> DPSGD:
        """Return the tracked steps as a run, with the noise of the DP optimizer or DP model, for `claims` and `summary`.

        Args:
            sampling_rate: Probability that a record enters a step, which TensorFlow does not know.
            sampling: How batches are drawn; `PoissonSampling` is what DP-SGD is accounted for, and shuffled batches are
                neither of the two choices.

        Raises:
            InputError: The model does not train by tensorflow-privacy with the clipping norm that is tracked, or no step
                has ended.
        """
        multiplier = self._same_norm()
        steps = len(self.sensitivities)
        return DPSGD(multiplier, sampling_rate, steps, clipping_norm=self.clipping_norm, sampling=sampling)

    def _same_norm(self) -> float:
        """Return the noise multiplier, after a look at the clipping norm, which another compile may have changed."""
        norm, multiplier = noise(self._model)
        if (
            norm is None
            or multiplier is None
            or not math.isclose(norm, self.clipping_norm, rel_tol=1e-6)  # single precision
        ):
            raise InputError(
                f"model must train by tensorflow-privacy with the clipping norm that is tracked, {self.clipping_norm:g},"
                f" got {'none' if norm is None else format(norm, 'g')}; describe any other run with DPSGD."
            )
        return multiplier

    def _before(self, features: Any, labels: Any) -> None:
        """Check what is known of the batches of `fit` before the first one comes."""
        if not hasattr(features, "shape") or not hasattr(labels, "shape"):
            raise InputError(
                "fit must be given one array of features and one of labels; train in a loop of your own with observe and"
                " end_step for others."
            )
        axes, labelled = features.shape, labels.shape
        if axes.rank is not None and labelled.rank is not None:
            self._checked(features, labels)

    def _whole_step(self, features: Any, labels: Any) -> float:
        """Observe one batch of `fit`, which is one update."""
        self._same_norm()
        microbatches(self._model, len(features))
        self.observe(features, labels)
        self.end_step()
        return 0.0
