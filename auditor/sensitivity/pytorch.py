"""Sensitivities of DP-SGD in PyTorch: per-example gradients by `torch.func`, steps by a hook on Opacus's optimizer."""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, final

from auditor.core import validate
from auditor.core.errors import InputError
from auditor.core.training import DPSGD, PoissonSampling, Sampling
from auditor.sensitivity.tracker import (
    Approximate,
    Completions,
    Distance,
    Full,
    ModelSteps,
    Rewritten,
    framework,
)

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
        _weighs_evenly(loss_fn, torch)
        self._model = _inner(model, torch)
        self._dropout(present=_has_dropout(self._model, torch))
        self._hook: _StepHook | None = None

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

        self._hook = _StepHook(optimizer, before=before, after=self.end_step)

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
        self._shuffled = self._shuffled or _shuffled(batches, torch)
        return _Watched(batches, observe=self.observe)

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
        features, labels = _tensor("features", features, torch), _tensor("labels", labels, torch)
        self._checked(features, labels)
        farthest = self._open or 0.0
        with _undisturbed(self._model):
            parameters = {
                name: parameter.detach()
                for name, parameter in self._model.named_parameters()
                if parameter.requires_grad
            }
            numbers = sum(parameter.numel() for parameter in parameters.values())
            for part in self._parts(len(features), parameters=numbers):
                gradients = self._gradients(torch, parameters, features[part], labels[part])
                points = _clipped(torch, gradients, self.clipping_norm)
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
        records = _completed(torch, self._completions, features)
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
                f" model or loss_fn: {validate.one_line(error)}."
            ) from error
        flat = torch.cat([gradient.reshape(len(records), -1) for gradient in found.values()], dim=1)
        return flat.to(torch.promote_types(flat.dtype, torch.float32)).reshape(len(features), count, -1)


# --- What the PyTorch tracker does with networks and tensors ---


def _inner(model: Any, torch: Any) -> Any:
    """Return the network inside the wrappers of Opacus and of distributed training, without BatchNorm."""
    if not isinstance(model, torch.nn.Module):
        raise InputError(f"model must be a torch.nn.Module, got {type(model).__name__}.")
    while True:
        home = type(model).__module__
        if home.startswith("opacus.") and hasattr(model, "_module"):
            model = model._module  # noqa: SLF001  Opacus's own code reaches the network so
        elif home.startswith("torch.nn.parallel"):
            model = model.module
        else:
            break
    for name, part in model.named_modules():
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm):  # noqa: SLF001  the base of all of them
            raise InputError(
                f"model must have no BatchNorm, which mixes the records of a batch, got {name!r}; replace it,"
                " for example with opacus.validators.ModuleValidator.fix(model)."
            )
    return model


def _has_dropout(model: Any, torch: Any) -> bool:
    """Return whether a layer drops units in training; what a `forward` drops by itself cannot be seen."""
    layer = torch.nn.modules.dropout._DropoutNd  # noqa: SLF001  the base of all of them
    # Recurrent and attention layers drop by a number of their own.
    rates = [part.p if isinstance(part, layer) else getattr(part, "dropout", 0) for part in model.modules()]
    return any(isinstance(rate, int | float) and rate > 0 for rate in rates)


def _weighs_evenly(loss_fn: Any, torch: Any) -> None:
    """Refuse a loss that averages with weights: it divides by those of the batch, which for one record cancels them."""
    loss = torch.nn.modules.loss
    even = (loss.BCELoss, loss.BCEWithLogitsLoss, loss.MultiMarginLoss, loss.MultiLabelSoftMarginLoss)
    if (
        getattr(loss_fn, "weight", None) is not None
        and getattr(loss_fn, "reduction", None) == "mean"
        and not isinstance(loss_fn, even)
    ):
        raise InputError(
            f"loss_fn must average over records with equal weights, got {type(loss_fn).__name__} with weight and"
            " reduction 'mean', which divides by the weights of the batch; train on the mean of the loss with reduction"
            " 'none' and give that loss here."
        )


def _shuffled(loader: Any, torch: Any) -> bool:
    """Return whether a loader is seen to pass over its records instead of drawing each batch anew."""
    sampler: Any = getattr(loader, "batch_sampler", None)
    while type(sampler).__module__.startswith("opacus.") and hasattr(sampler, "max_batch_size"):
        sampler = sampler.sampler  # BatchMemoryManager splits the batches of another one
    passing = (
        torch.utils.data.RandomSampler,
        torch.utils.data.SequentialSampler,
        torch.utils.data.DistributedSampler,
    )
    return isinstance(getattr(sampler, "sampler", None), passing)


def _tensor(name: str, values: Any, torch: Any) -> Any:
    """Return a tensor, or an array or list as one."""
    try:
        return torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(
            f"{name} must be a tensor or an array of numbers, got {type(values).__name__}."
        ) from None


class _Watched:
    """The batches of a loader, each observed before it is handed out; it still shows how they are drawn."""

    def __init__(self, batches: Iterable[Any], *, observe: Callable[[Any, Any], None]) -> None:
        self.batch_sampler = getattr(batches, "batch_sampler", None)
        self._batches, self._observe = iter(batches), observe

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return self

    def __next__(self) -> tuple[Any, Any]:
        batch = next(self._batches)
        if not isinstance(batch, tuple | list) or len(batch) != 2:  # noqa: PLR2004  a pair
            size = f" of {len(batch)}" if isinstance(batch, tuple | list) else ""
            raise InputError(
                f"batches must be pairs of features and labels, got a {type(batch).__name__}{size}; call observe for"
                " each batch."
            )
        self._observe(*batch)
        return batch[0], batch[1]


@contextmanager
def _undisturbed(model: Any) -> Iterator[None]:
    """Set a network to prediction, without the hooks of Opacus, and then back exactly as it was."""
    parts = list(model.modules())
    modes = [part.training for part in parts]
    hooks = [{name: getattr(part, name) for name in _HOOKS} for part in parts]
    try:
        for part, kept in zip(parts, hooks, strict=True):
            part.training = False
            for name, registered in kept.items():
                others = {key: hook for key, hook in registered.items() if not _of_opacus(hook)}
                setattr(part, name, type(registered)(others))
        yield
    finally:
        for part, mode, kept in zip(parts, modes, hooks, strict=True):
            part.training = mode
            for name, registered in kept.items():
                setattr(part, name, registered)


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class _StepHook:
    """A hook on Opacus's optimizer around the one that was there."""

    def __init__(self, optimizer: Any, *, before: Callable[[Any], None], after: Callable[[], None]) -> None:
        self._optimizer, self._before, self._after = optimizer, before, after
        self._earlier = optimizer.step_hook
        self._on = True
        optimizer.attach_step_hook(self)

    def __call__(self, stepping: Any) -> None:
        on = self._on
        if on:  # refused before the accountant counts the step
            self._before(stepping)
        if self._earlier is not None:
            self._earlier(stepping)
        if on:
            self._after()

    def remove(self) -> None:
        """Restore the earlier hook; where another was put around this one, only pass on to it."""
        self._on = False
        if self._optimizer.step_hook is self:
            self._optimizer.attach_step_hook(self._earlier)


def _of_opacus(hook: Any) -> bool:
    while isinstance(hook, partial):
        hook = hook.func
    return str(getattr(hook, "__module__", "")).startswith("opacus.")


def _completed(torch: Any, completions: Completions, features: Any) -> Any:
    """Return the records with every value of the attribute, shape (records x completions, ...)."""
    if isinstance(completions, Rewritten):
        return torch.stack(completions.batches(features), dim=1).flatten(0, 1)
    rows, written = completions.rows(features.shape[-1])
    values = torch.as_tensor(rows, device=features.device).to(features.dtype)
    if not features.is_floating_point() and (values.double().cpu().numpy() != rows).any():
        raise InputError(
            f"completions must be whole numbers for features of type {features.dtype}; convert the features first."
        )
    mask = torch.as_tensor(written, device=features.device)
    # One axis for the completions after the records', and the columns on the last.
    shape = (1, len(values), *(1,) * (features.dim() - 2), features.shape[-1])
    return torch.where(mask, values.reshape(shape), features.unsqueeze(1)).flatten(0, 1)


def _clipped(torch: Any, gradients: Any, norm: float) -> Any:
    """Clip gradients in place, g / max(1, |g| / C); None where one is not finite."""
    length = torch.linalg.vector_norm(gradients, dim=-1, keepdim=True)
    if not torch.isfinite(length).all():  # not finite, or with a square beyond the type
        if not torch.isfinite(gradients).all():
            return None
        largest = gradients.abs().amax(dim=-1, keepdim=True).clamp(min=norm)
        gradients = gradients / largest
        length = torch.linalg.vector_norm(gradients, dim=-1, keepdim=True)
        return gradients.mul_((norm / length).clamp(max=largest))
    return gradients.div_((length / norm).clamp(min=1.0))


def largest(torch: Any, points: Any, *, distance: Distance, known: float) -> float:
    """Return what `auditor.sensitivity.tracker.largest_distance` does, where the tensors are; overwrites the points."""
    centred = points.sub_(points.mean(dim=1, keepdim=True))  # in place: this is most of the memory
    radii = torch.linalg.vector_norm(centred, dim=2)
    if isinstance(distance, Approximate):
        return max(known, 2 * float(radii.max()))
    top = radii.topk(2, dim=1).values.sum(dim=1)
    sets, first = torch.arange(len(radii), device=radii.device), radii.argmax(dim=1)
    apart = radii**2 - 2 * (centred @ centred[sets, first, :, None])[..., 0]
    pairs = centred[sets, apart.argmax(dim=1)] - centred[sets, first]
    best = max(known, float(torch.linalg.vector_norm(pairs, dim=1).max()))
    for row in (top > best).nonzero().flatten().tolist():
        squares = radii[row] ** 2
        gram = centred[row] @ centred[row].T
        place = int((squares[:, None] + squares - 2 * gram).argmax())
        pair = centred[row][place // len(squares)] - centred[row][place % len(squares)]
        best = max(best, float(torch.linalg.vector_norm(pair)))
    return best
