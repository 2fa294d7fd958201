"""What the PyTorch tracker does with networks and tensors."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from auditor.errors import InputError
from auditor.sensitivity.completions import Completions, Rewritten
from auditor.sensitivity.distances import Approximate, Distance

__all__ = [
    "StepHook",
    "Watched",
    "clipped",
    "completed",
    "has_dropout",
    "inner",
    "largest",
    "shuffled",
    "tensor",
    "undisturbed",
    "weighs_evenly",
]


def inner(model: Any, torch: Any) -> Any:
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


def has_dropout(model: Any, torch: Any) -> bool:
    """Return whether a layer drops units in training; what a `forward` drops by itself cannot be seen."""
    layer = torch.nn.modules.dropout._DropoutNd  # noqa: SLF001  the base of all of them
    # Recurrent and attention layers drop by a number of their own.
    rates = [part.p if isinstance(part, layer) else getattr(part, "dropout", 0) for part in model.modules()]
    return any(isinstance(rate, int | float) and rate > 0 for rate in rates)


def weighs_evenly(loss_fn: Any, torch: Any) -> None:
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


def shuffled(loader: Any, torch: Any) -> bool:
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


def tensor(name: str, values: Any, torch: Any) -> Any:
    """Return a tensor, or an array or list as one."""
    try:
        return torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(
            f"{name} must be a tensor or an array of numbers, got {type(values).__name__}."
        ) from None


class Watched:
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
def undisturbed(model: Any) -> Iterator[None]:
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


class StepHook:
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


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def _of_opacus(hook: Any) -> bool:
    while isinstance(hook, partial):
        hook = hook.func
    return str(getattr(hook, "__module__", "")).startswith("opacus.")


def completed(torch: Any, completions: Completions, features: Any) -> Any:
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


def clipped(torch: Any, gradients: Any, norm: float) -> Any:
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
    """Return what `auditor.sensitivity.distances.largest_distance` does, where the tensors are; overwrites the points."""
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
