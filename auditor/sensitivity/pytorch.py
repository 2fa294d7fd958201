"""Sensitivities of DP-SGD in PyTorch: per-example gradients by `torch.func`, steps by a hook on Opacus's optimizer."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, final

from auditor import _validate
from auditor.choices import DPSGD
from auditor.errors import InputError
from auditor.sensitivity._extra import framework
from auditor.sensitivity._torch import clipped, completed, inner, largest, undisturbed
from auditor.sensitivity.completions import Columns, Completions, Rewritten
from auditor.sensitivity.distances import Distance, Full
from auditor.sensitivity.tracker import Steps
from auditor.training import PoissonSampling, Sampling

__all__ = ["TorchSensitivityTracker"]


_POISSON = PoissonSampling()


@final
class TorchSensitivityTracker(Steps):
    """How far a sensitive attribute moves the clipped gradients of a PyTorch training, step by step.

    ::

        tracker = TorchSensitivityTracker(model, loss_fn, completions=Columns(0, ages), clipping_norm=1.0)
        tracker.attach(optimizer)  # the optimizer of PrivacyEngine.make_private
        for features, labels in tracker.watch(loader):
            ...  # the training step, as it was
        print(tracker.summary(tracker.training(privacy_engine)))

    Every record of every batch is looked at, with every completion, at the parameters that its update starts from.
    Nothing of the training changes: not the weights, the gradients, the hooks or the random numbers. The network is
    evaluated as for prediction (`eval`), because dropout would add its own randomness to the distances. The gradients
    are those of the parameters that require one. All processes of a distributed training would need to be merged,
    which this does not do.

    The numbers come from the training records: do not publish them where membership matters (`summary` says so).

    Args:
        model: The network, before or after `make_private`.
        loss_fn: ``loss_fn(outputs, labels)`` for a batch of one record: the loss that training averages.
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
            clipping_norm=clipping_norm,
            distance=distance,
            extremes_only=getattr(completions, "extremes_only", False),
        )
        _validate.instance("completions", completions, (Columns, Rewritten))
        self._completions = completions
        self._most = _validate.at_least("most_numbers", most_numbers, least=1)
        self._model = inner(model, torch)
        self._loss_fn = loss_fn

    def attach(self, optimizer: Any) -> None:
        """Let every update of an Opacus optimizer end a step; its own hook, the accountant's, runs first.

        Batches that `BatchMemoryManager` splits are one step.

        Args:
            optimizer: The `DPOptimizer` that `make_private` returned.

        Raises:
            InputError: Another optimizer, or one with another clipping norm.
        """
        if not callable(getattr(optimizer, "attach_step_hook", None)):
            raise InputError(
                f"optimizer must be the one that Opacus's make_private returned, got {type(optimizer).__name__};"
                " without it, call end_step after each update."
            )
        self._same_norm(optimizer)
        earlier = optimizer.step_hook

        def hook(stepping: Any) -> None:
            if earlier is not None:
                earlier(stepping)
            self._same_norm(stepping)
            self.end_step()

        optimizer.attach_step_hook(hook)

    def watch(self, batches: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        """Yield the batches of a loader, each observed just before it is handed out.

        Args:
            batches: Pairs of features and labels; the loader of `make_private` or of `BatchMemoryManager`.

        Raises:
            InputError: As in `observe`.
        """
        for features, labels in batches:
            self.observe(features, labels)
            yield features, labels

    def observe(self, features: Any, labels: Any) -> None:
        """Take in one batch, or a part of it, before its update.

        Args:
            features: Tensor whose first axis counts the records; none are fine, and count as distance 0.
            labels: Tensor with one label, or one row of labels, for each.

        Raises:
            InputError: Gradients that are not finite or cannot be had record by record, or completions that do not fit.
        """
        torch = framework("torch", called="PyTorch", extra="torch")
        farthest = self._open or 0.0
        with undisturbed(self._model):
            parameters = {
                name: parameter.detach()
                for name, parameter in self._model.named_parameters()
                if parameter.requires_grad
            }
            each = sum(parameter.numel() for parameter in parameters.values()) * self._completions.count
            rows = max(1, self._most // max(each, 1))
            for start in range(0, len(features), rows):
                part = slice(start, start + rows)
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
            sampling: `PoissonSampling` unless `make_private` was told otherwise.

        Raises:
            InputError: The engine has not seen a step.
        """
        history = engine.accountant.history
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
        except RuntimeError as error:
            raise InputError(
                f"model must allow gradients record by record, without randomness: {_validate.one_line(error)}."
            ) from error
        flat = torch.cat([gradient.reshape(len(records), -1) for gradient in found.values()], dim=1)
        return flat.to(torch.promote_types(flat.dtype, torch.float32)).reshape(len(features), count, -1)
