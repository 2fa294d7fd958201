"""Sensitivities of DP-SGD in PyTorch: per-example gradients by `torch.func`, steps by a hook on Opacus's optimizer."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, final

from auditor import _validate
from auditor.choices import DPSGD
from auditor.errors import InputError
from auditor.sensitivity._extra import framework
from auditor.sensitivity._model_steps import ModelSteps
from auditor.sensitivity._torch import (
    StepHook,
    Watched,
    clipped,
    completed,
    has_dropout,
    inner,
    largest,
    shuffled,
    tensor,
    undisturbed,
    weighs_evenly,
)
from auditor.sensitivity.completions import Completions
from auditor.sensitivity.distances import Distance, Full
from auditor.training import PoissonSampling, Sampling

__all__ = ["TorchSensitivityTracker"]


_POISSON = PoissonSampling()


@final
class TorchSensitivityTracker(ModelSteps):
    """How far a sensitive attribute moves the clipped gradients of a PyTorch training, step by step.

    ::

        tracker = TorchSensitivityTracker(model, loss_fn, completions=Columns(0, ages), clipping_norm=1.0)
        tracker.attach(optimizer)  # the optimizer of PrivacyEngine.make_private
        for features, labels in tracker.watch(loader):
            ...  # the training step, as it was
        print(tracker.summary(tracker.training(privacy_engine)))

    Every record of every batch is looked at, with every completion, at the parameters that its update starts from.
    Nothing of the training changes: not the weights, the gradients, the hooks or the random numbers. The network is
    evaluated as for prediction (`eval`), because dropout would add its own randomness to the distances: with dropout
    the distances of training can be larger than those measured, up to 2 C, and the claims say so where a layer has it.
    The gradients are those of the parameters that require one. All processes of a distributed training would need to be
    merged, which this does not do.

    What is promised is that of batches drawn anew in every step. A run with ``make_private(poisson_sampling=False)``
    passes over shuffled records, which no claim here covers; where the loader shows it, the claims say so.

    The numbers come from the training records: do not publish them where membership matters (`summary` says so).

    Args:
        model: The network, before or after `make_private`.
        loss_fn: ``loss_fn(outputs, labels)`` for a batch of one record: the loss that training averages, with equal
            weights for all records. One that divides by something of the whole batch (the sum of class weights, the
            number of tokens that count) would be measured too small.
        completions: The values of the attribute: `Columns` or `Rewritten`.
        clipping_norm: C of DP-SGD, above 0.
        distance: `Full` (default) or `Approximate`.
        most_numbers: Gradient entries held at once; memory is a few times 4 bytes of it, and a processor's cache likes
            the default. One record's completions are always held together, however many that is.

    Raises:
        InputError: A bad argument, or a network with BatchNorm, whose gradients are not of single records.
        MissingExtraError: PyTorch is not installed.

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
        torch = framework("torch", called="PyTorch", extra="torch")
        super().__init__(
            loss_fn,
            completions=completions,
            clipping_norm=clipping_norm,
            distance=distance,
            most_numbers=most_numbers,
        )
        weighs_evenly(loss_fn, torch)
        self._model = inner(model, torch)
        self._dropout(present=has_dropout(self._model, torch))
        self._hook: StepHook | None = None

    def attach(self, optimizer: Any) -> None:
        """Let every update of an Opacus optimizer end a step, after its own hook, the accountant's.

        Batches that `BatchMemoryManager` splits are one step. A step that was not observed is refused before the
        accountant counts it.

        Args:
            optimizer: The `DPOptimizer` that `make_private` returned.

        Raises:
            InputError: Another optimizer, one with another or a changing clipping norm, or a tracker that is attached.
        """
        if self._hook is not None:
            raise InputError(
                "attach must be called once for a tracker; call detach before another optimizer."
            )
        if not callable(getattr(optimizer, "attach_step_hook", None)):
            raise InputError(
                f"optimizer must be the one that Opacus's make_private returned, got {type(optimizer).__name__};"
                " without it, call end_step after each update."
            )
        if hasattr(optimizer, "clipbound_learning_rate"):
            raise InputError(
                "optimizer must keep one clipping norm, got one whose norm adapts to the gradients; clip flat."
            )
        self._same_norm(optimizer)

        def before(stepping: Any) -> None:
            self._same_norm(stepping)
            self._observed()

        self._hook = StepHook(optimizer, before=before, after=self.end_step)

    def detach(self) -> None:
        """Let the optimizer go on without this tracker, whose steps stay; nothing happens where none is attached."""
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def watch(self, batches: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        """Yield the batches of a loader, each observed just before it is handed out.

        A batch that was handed out and not trained on counts into the next step, which errs on the safe side.

        Args:
            batches: Pairs of features and labels; the loader of `make_private` or of `BatchMemoryManager`.

        Raises:
            InputError: As in `observe`, or batches that are no pairs.
        """
        torch = framework("torch", called="PyTorch", extra="torch")
        self._shuffled = self._shuffled or shuffled(batches, torch)
        return Watched(batches, observe=self.observe)

    def observe(self, features: Any, labels: Any) -> None:
        """Take in one batch, or a part of it, before its update.

        Args:
            features: Tensor whose first axis counts the records; none are fine, and count as distance 0.
            labels: Tensor with one label, or one row of labels, for each.

        Raises:
            InputError: No batch, gradients that are not finite or cannot be had record by record, or completions that do
                not fit.
        """
        torch = framework("torch", called="PyTorch", extra="torch")
        features, labels = tensor("features", features, torch), tensor("labels", labels, torch)
        self._checked(features, labels)
        farthest = self._open or 0.0
        with undisturbed(self._model):
            parameters = {
                name: parameter.detach()
                for name, parameter in self._model.named_parameters()
                if parameter.requires_grad
            }
            numbers = sum(parameter.numel() for parameter in parameters.values())
            for part in self._parts(len(features), parameters=numbers):
                gradients = self._gradients(torch, parameters, features[part], labels[part])
                points = clipped(torch, gradients, self.clipping_norm)
                if points is None:
                    self._raise_to(math.nan)
                farthest = largest(torch, points, distance=self.distance, known=farthest)
        self._raise_to(farthest)

    def training(self, engine: Any, *, sampling: Sampling = _POISSON) -> DPSGD:
        """Return the run as the accountant of an Opacus engine recorded it, to give to `claims` and `summary`.

        Args:
            engine: The `PrivacyEngine`, after training.
            sampling: How batches were drawn: `PoissonSampling`, which is what `make_private` sees to. Shuffled batches
                (``poisson_sampling=False``) are neither of the two choices.

        Raises:
            InputError: No engine, or one that has not seen a step.
        """
        history = getattr(getattr(engine, "accountant", None), "history", None)
        if not isinstance(history, list):
            raise InputError(
                f"engine must be the PrivacyEngine of the training, got {type(engine).__name__}."
            )
        if not history:
            raise InputError("engine must have seen at least 1 step, got none; call this after training.")
        noise, rate = ([entry[place] for entry in history for _ in range(int(entry[2]))] for place in (0, 1))
        return DPSGD(noise, rate, clipping_norm=self.clipping_norm, sampling=sampling)

    def _same_norm(self, optimizer: Any) -> None:
        norm = getattr(optimizer, "max_grad_norm", None)
        if not isinstance(norm, int | float) or not math.isclose(norm, self.clipping_norm, rel_tol=1e-9):
            raise InputError(
                f"optimizer must clip whole gradients to the norm that is tracked, {self.clipping_norm:g}, in every"
                f" step, got max_grad_norm {norm!r}."
            )

    def _gradients(self, torch: Any, parameters: dict[str, Any], features: Any, labels: Any) -> Any:
        """Return one gradient for each record and completion, shape (records, completions, parameters)."""
        count = self._completions.count
        records = completed(torch, self._completions, features)
        repeated = labels.repeat_interleave(count, dim=0)

        def loss(values: dict[str, Any], record: Any, label: Any) -> Any:
            output = torch.func.functional_call(self._model, values, (record.unsqueeze(0),))
            return self._loss_fn(output, label.unsqueeze(0)).sum()

        try:
            found = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(
                parameters, records, repeated
            )
        except (IndexError, RuntimeError, TypeError, ValueError) as error:
            raise InputError(
                "gradients must be possible for one record at a time, by torch.func and without randomness, got from"
                f" model or loss_fn: {_validate.one_line(error)}."
            ) from error
        flat = torch.cat([gradient.reshape(len(records), -1) for gradient in found.values()], dim=1)
        return flat.to(torch.promote_types(flat.dtype, torch.float32)).reshape(len(features), count, -1)
