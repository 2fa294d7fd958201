"""Sensitivities of DP-SGD in PyTorch: per-example gradients by `torch.func`, steps by a hook on Opacus's optimizer."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, final

from auditor.core import DPSGD, InputError, PoissonSampling, Sampling
from auditor.training.tracker import Batch, ModelSteps

_POISSON = PoissonSampling()


@final
class TorchSensitivityTracker(ModelSteps):
    """Sensitivity of the clipped gradients of a PyTorch training run to a sensitive attribute, step by step.

    ::

        tracker = TorchSensitivityTracker(model, loss_fn, completions=Columns(0, ages), clipping_norm=1.0)
        tracker.attach(optimizer)  # the optimizer of PrivacyEngine.make_private
        for features, labels in tracker.watch(loader):
            ...  # the training step, as it was
        for claim in tracker.claims(tracker.training(privacy_engine)):
            print(claim.metric, claim.value, claim.note)

    Every record of every batch is looked at, with every completion, at the parameters that its update starts from.
    Nothing of the training changes: not the weights, the gradients, the hooks or the random numbers. The network is
    evaluated as for prediction (`eval`), because dropout would add its own randomness to the distances: with dropout
    the distances of training can be larger than those measured, up to 2 C, and the claims say so.
    The gradients are those of the parameters that require one. All processes of a distributed training would need to be
    merged, which this does not do.

    The promise is that of batches drawn independently in every step. A run with ``make_private(poisson_sampling=False)``
    passes over shuffled records, which no claim here covers; where the loader shows it, the claims say so.

    The numbers come from the training records: do not publish them where membership matters.

    Args:
        model: The network, before or after `make_private`.
        loss_fn: ``loss_fn(outputs, labels)`` for a batch of one record: the loss that training averages, with equal
            weights for all records. One that divides by something of the whole batch (the sum of class weights, the
            number of tokens that count) would be measured too small.
        completions: The columns of the attribute and its values.
        clipping_norm: C of DP-SGD, above 0.
        distance: `Full` (default) or `Approximate`.

    Raises:
        InputError: A bad argument, or a network with BatchNorm, whose gradients are not of single records.
        MissingExtraError: PyTorch is not installed.

    Source: Cherubin et al. 2024, Algorithm 4.
    """

    _framework = ("PyTorch", "torch")

    def attach(self, optimizer: Any) -> None:
        """End a step with every update of an Opacus optimizer, after the accountant's hook.

        Batches that `BatchMemoryManager` splits are one step. A step that was not observed is refused before the
        accountant counts it.

        Args:
            optimizer: The `DPOptimizer` that `make_private` returned.

        Raises:
            InputError: Another optimizer, one with another or a changing clipping norm, or a tracker that is attached.
        """
        if self._undo is not None:
            raise InputError("attach must be called once for a tracker; call detach before attaching again.")
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
        earlier, on = optimizer.step_hook, [True]

        def around(stepping: Any) -> None:
            if on:  # refused before the accountant counts the step
                self._same_norm(stepping)
                self._observed()
            if earlier is not None:
                earlier(stepping)
            if on:
                self.end_step()

        def undo() -> None:
            on.clear()  # a hook around this one still passes on to it
            if optimizer.step_hook is around:
                optimizer.attach_step_hook(earlier)

        self._undo = undo
        optimizer.attach_step_hook(around)

    def watch(self, batches: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield the batches of a loader, each observed just before it is handed out.

        A batch that was handed out and not trained on counts into the next step, which errs on the safe side.

        Args:
            batches: Pairs of features and labels; the loader of `make_private` or of `BatchMemoryManager`.

        Raises:
            InputError: As in `observe`, or batches that are no pairs.
        """
        sampler: Any = getattr(batches, "batch_sampler", None)
        while hasattr(sampler, "sampler"):  # BatchMemoryManager splits the batches of another one
            sampler = sampler.sampler
        data = self._library.utils.data
        passing = data.RandomSampler | data.SequentialSampler | data.DistributedSampler
        self._shuffled = self._shuffled or isinstance(sampler, passing)
        for batch in batches:
            if not isinstance(batch, tuple | list) or len(batch) != 2:  # noqa: PLR2004  a pair
                raise InputError(
                    f"batches must be pairs of features and labels, got {type(batch).__name__}; call observe for each."
                )
            self.observe(*batch)
            yield batch[0], batch[1]

    def training(self, engine: Any, *, sampling: Sampling = _POISSON) -> DPSGD:
        """Return the run as the accountant of an Opacus engine recorded it, to give to `claims`.

        Args:
            engine: The `PrivacyEngine`, after training.
            sampling: Sampling of the batches: `PoissonSampling`, which `make_private` sets up, or `ShuffledBatches`
                (``poisson_sampling=False``).

        Raises:
            InputError: No engine, or one that has not seen a step.
        """
        return DPSGD.from_opacus(engine, sampling=sampling, clipping_norm=self.clipping_norm)

    def _same_norm(self, optimizer: Any) -> None:
        norm = getattr(optimizer, "max_grad_norm", None)
        if not isinstance(norm, int | float) or not math.isclose(norm, self.clipping_norm, rel_tol=1e-9):
            raise InputError(
                f"optimizer must clip whole gradients to the norm that is tracked, {self.clipping_norm:g}, in every"
                f" step, got max_grad_norm {norm!r}."
            )

    def _usable(self, model: Any) -> Any:
        torch, loss_fn = self._library, self._loss_fn
        weighted = torch.nn.CrossEntropyLoss | torch.nn.NLLLoss
        if isinstance(loss_fn, weighted) and loss_fn.weight is not None and loss_fn.reduction == "mean":
            # It divides by the weights of the batch, which for one record cancels them.
            raise InputError(
                f"loss_fn must average over records with equal weights, got {type(loss_fn).__name__} with weight and"
                " reduction 'mean', which divides by the weights of the batch; train on the mean of the loss with"
                " reduction 'none' and give that loss here."
            )
        if not isinstance(model, torch.nn.Module):
            raise InputError(f"model must be a torch.nn.Module, got {type(model).__name__}.")
        while type(model).__module__.startswith(_WRAPPERS):
            model = model._module if hasattr(model, "_module") else model.module  # noqa: SLF001  as in Opacus
        for name, part in model.named_modules():
            if isinstance(part, torch.nn.modules.batchnorm._BatchNorm):  # noqa: SLF001  the base of all of them
                raise InputError(
                    f"model must have no BatchNorm, which mixes the records of a batch, got {name!r}; replace it,"
                    " for example with opacus.validators.ModuleValidator.fix(model)."
                )
        return model

    @contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """Set the network to prediction, without the hooks of Opacus, and then back exactly as it was."""
        names = ("training", *_HOOKS)
        parts = [(part, {name: getattr(part, name) for name in names}) for part in self._model.modules()]
        try:
            for part, own in parts:
                part.training = False
                for name in _HOOKS:
                    others = {key: hook for key, hook in own[name].items() if not _of_opacus(hook)}
                    setattr(part, name, type(own[name])(others))
            yield
        finally:
            for part, own in parts:
                for name, value in own.items():
                    setattr(part, name, value)

    def _trained(self) -> dict[str, Any]:
        named = self._model.named_parameters()
        return {name: parameter.detach() for name, parameter in named if parameter.requires_grad}

    def _sizes(self) -> int:
        return sum(parameter.numel() for parameter in self._trained().values())

    def _gradients(self, records: Batch, labels: Batch) -> Batch:
        torch, trained = self._library, self._trained()

        def loss(values: dict[str, Any], record: Any, label: Any) -> Any:
            output = torch.func.functional_call(self._model, values, (record.unsqueeze(0),))
            return self._loss_fn(output, label.unsqueeze(0)).sum()

        each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
        device = next(iter(trained.values())).device
        with self._undisturbed():
            parts = each(trained, *(torch.as_tensor(array, device=device) for array in (records, labels)))
        flat = torch.cat([gradient.reshape(len(records), -1) for gradient in parts.values()], dim=1)
        return flat.double().cpu().numpy()  # type: ignore[no-any-return]


_WRAPPERS = ("opacus.grad_sample", "opacus.distributed", "torch.nn.parallel")
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def _of_opacus(hook: Any) -> bool:
    hook = getattr(hook, "func", hook)  # of a partial
    return str(getattr(hook, "__module__", "")).startswith("opacus.")
