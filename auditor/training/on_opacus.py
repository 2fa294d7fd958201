"""Step audits of Opacus: canary gradients beside those of the batch, and the gradients that the optimizer gets."""

import math
from collections.abc import Iterable, Iterator, Mapping
from types import MethodType
from typing import Any, Unpack

import numpy as np

from auditor.core import DPSGD, Floats, InputError, PoissonSampling, import_optional
from auditor.training.on_function import CheckedStep, check_step
from auditor.training.step_audit import Options, StepAudit
from auditor.training.watch import Watch

_NUMBERS = 2**18  # of a gradient that are converted to double precision at a time
_REFUSED = {
    "FastGradientClipping": "clips without per-example gradients (ghost clipping), and canaries are such gradients",
    "Distributed": "adds the noise in one process of several, and each sees a part of the batch",
    "FSDP": "divides the parameters among processes",
}


def opacus(
    optimizer: Any, *, claim: DPSGD | float, loader: Any = None, model: Any = None, **options: Unpack[Options]
) -> "OpacusWatch":
    """Watch a training by Opacus: its noise, its clipping, the parameters that both cover, and its sampler.

    ::

        watch = auditor.training.opacus(optimizer, claim=auditor.DPSGD(1.0, 0.01, 1000), loader=loader)
        ...  # train as always; stop when watch.refuted
        watch.result().to_html("training.html")

    It takes flat, per-layer and adaptive clipping, gradient accumulation, `BatchMemoryManager` and mixed precision. The
    canaries change the model, and with adaptive clipping they push the clipping norm up: use a training that is made for
    the audit. The canaries of a step are added as one more physical batch of it, by the optimizer's own clipping, and the
    scores are taken from the gradients that the inner optimizer gets, so that whatever the optimizer does in between is seen.

    Args:
        optimizer: The `DPOptimizer` that ``make_private`` returned.
        claim: As in `StepAudit`.
        loader: The loader that ``make_private`` returned, before `BatchMemoryManager` splits its batches: with it the
            sampler of a claim of Poisson sampling is tested too, by sizes and indices of the logical batches, empty ones too.
        model: The network, for the names of its parameters; they are counted without it.
        **options: Canaries, scale, confidence and seed, as in `StepAudit`.

    Raises:
        InputError: An optimizer that is not private, or one of ghost clipping or distributed training; a bad argument.
        MissingExtraError: PyTorch is not installed.
    """
    torch = import_optional("torch", purpose="auditing a training by Opacus", extra="torch")
    require_private(optimizer)
    kind = type(optimizer).__name__
    for word, why in _REFUSED.items():
        if word in kind:
            raise InputError(f"optimizer must clip per-example gradients in one process: {kind} {why}.")
    if isinstance(vars(optimizer).get("clip_and_accumulate"), MethodType) and isinstance(
        optimizer.clip_and_accumulate.__self__, Watch
    ):
        raise InputError("optimizer must have one watch at a time; detach the other first.")
    records = None if loader is None else _records(loader, claim)
    audit = StepAudit(claim, records=records, **options)
    return OpacusWatch(audit, optimizer, loader, model, torch)


def require_private(optimizer: Any) -> None:
    """Raise an `InputError` for an optimizer that is not private."""
    if not all(
        hasattr(optimizer, name) for name in ("clip_and_accumulate", "original_optimizer", "max_grad_norm")
    ):
        raise InputError(
            f"optimizer must be the one that Opacus's make_private returned, got {type(optimizer).__name__}, which is not"
            " private."
        )


def divisor(optimizer: Any) -> float:
    """Return the number by which a private optimizer divides the noisy sum of a step."""
    if optimizer.loss_reduction != "mean":
        return 1.0
    return float(optimizer.expected_batch_size * optimizer.accumulated_iterations)


def _records(loader: Any, claim: DPSGD | float) -> int:
    """Return the number of training records behind a loader that draws its batches as claimed.

    Raises:
        InputError: Another loader or claim.
    """
    sampler = getattr(loader, "batch_sampler", None)
    if sampler is None or not hasattr(getattr(loader, "dataset", None), "__len__"):
        raise InputError(
            f"loader must be the one that make_private returned, got {type(loader).__name__} without a batch sampler."
        )
    if hasattr(sampler, "max_batch_size"):
        raise InputError("loader must be the one that make_private returned, before BatchMemoryManager.")
    if not isinstance(claim, DPSGD) or not isinstance(claim.sampling, PoissonSampling):
        raise InputError("loader must be left out unless the claim is a DPSGD with Poisson sampling.")
    rate = getattr(sampler, "sample_rate", None)
    if rate is not None and not math.isclose(rate, np.max(claim.sampling_rate), rel_tol=1e-6):
        raise InputError(
            f"claim must have the sampling rate of the loader, {rate:g}, got {claim.sampling_rate!r}; that of make_private is"
            " 1 / len(loader)."
        )
    return len(loader.dataset)


class OpacusWatch(Watch):
    """The watch of an Opacus optimizer."""

    def __init__(self, audit: StepAudit, optimizer: Any, loader: Any, model: Any, torch: Any) -> None:
        super().__init__(audit)
        self._torch, self._optimizer, self._model = torch, optimizer, model
        self._buffers: list[Any] = []
        self._coins: Any = None
        self._centre: Any = None
        own = vars(optimizer).get("clip_and_accumulate")
        self._clip, self._leaving = optimizer.clip_and_accumulate, False
        optimizer.clip_and_accumulate = self._clip_and_accumulate
        hook = optimizer.original_optimizer.register_step_pre_hook(self._before_update)

        def restore() -> None:
            delattr(optimizer, "clip_and_accumulate")
            vars(optimizer).update({} if own is None else {"clip_and_accumulate": own})

        self._undo += [restore, hook.remove]
        if loader is not None and audit.sampler is not None:
            sampler = loader.batch_sampler
            object.__setattr__(loader, "batch_sampler", _Seen(sampler, audit))
            self._undo.append(lambda: object.__setattr__(loader, "batch_sampler", sampler))

    def detach(self) -> None:
        """Restore the training as it was, after the update of a step that has canaries; the evidence stays."""
        self._leaving = self._coins is not None
        if not self._leaving:
            super().detach()

    def check(self, *, seed: int = 0) -> CheckedStep:
        """Return whether the optimizer clips one canary to the clipping norm: exact, and before any noise; see `check_step`.

        Call it between two steps. The optimizer is left as it was.

        Args:
            seed: Seed of the canary and of the batch beside it.
        """
        torch, optimizer = self._torch, self._optimizer
        parameters = optimizer.params
        self._shapes = self._shapes_of(parameters)
        saved = [(getattr(one, "grad_sample", None), one.summed_grad) for one in parameters]
        counted = {
            name: getattr(optimizer, name)
            for name in ("sample_size", "unclipped_num")
            if hasattr(optimizer, name)
        }
        sizes = [one.numel() for one in parameters]

        def sums(rows: Floats) -> Floats:
            parts = np.split(rows, np.cumsum(sizes)[:-1], axis=1)
            for one, part in zip(parameters, parts, strict=True):
                one.summed_grad = None
                one.grad_sample = torch.as_tensor(part, dtype=one.dtype, device=one.device).reshape(
                    -1, *one.shape
                )
            self._clip()
            return np.concatenate([one.summed_grad.flatten().float().cpu().numpy() for one in parameters])

        try:
            return check_step(sums, self._shapes, clipping_norm=self._norms, seed=seed)
        finally:
            for one, (samples, total) in zip(parameters, saved, strict=True):
                one.grad_sample, one.summed_grad = samples, total
            vars(optimizer).update(counted)

    def _shapes_of(self, parameters: list[Any]) -> dict[str, tuple[int, ...]]:
        """Return the shape of each parameter, by its name in the model without Opacus's prefix, or by its number."""
        named = {} if self._model is None else {id(one): name for name, one in self._model.named_parameters()}
        return {
            named.get(id(one), f"parameter {place}").removeprefix("_module."): tuple(one.shape)
            for place, one in enumerate(parameters)
        }

    @property
    def _norms(self) -> float | dict[str, float]:
        """The clipping norm of this step, or that of each parameter tensor."""
        each = getattr(self._optimizer, "max_grad_norms", None)
        if each is not None:
            return dict(zip(self._shapes, map(float, each), strict=True))
        return float(self._optimizer.max_grad_norm)

    def _clip_and_accumulate(self) -> None:
        """Add the canaries once in each logical step, as a physical batch of their own, after the centre of each real one."""
        parameters, blocks = self._optimizer.params, None
        if self._coins is None:
            self._shapes = self._shapes_of(parameters)
            self._coins = self.audit.toss(self._shapes, clipping_norm=self._norms)
            blocks, self._centre = self.audit.blocks, 0.0
            self._limits = blocks.limits(self._norms)  # an adaptive norm changes before the update
            if not self._buffers:
                self._prepare(parameters)
        self._centre = self._centre + self._batch_sum(parameters)
        self._clip()
        if blocks is not None:
            self._clip_canaries(parameters)

    def _prepare(self, parameters: list[Any]) -> None:
        """Keep, for each tensor, rows of zeros that the canaries of a step are written into and taken out of."""
        torch, blocks = self._torch, self.audit.blocks
        self._vector, self._owner = self._as_tensors(blocks.vector), self._as_tensors(blocks.owner)
        self._buffers = [
            torch.zeros((0, one.numel()), device=one.device, dtype=_first(one.grad_sample).dtype)
            for one in parameters
        ]

    def _clip_canaries(self, parameters: list[Any]) -> None:
        """Let the optimizer clip the canaries whose coin is heads, as a physical batch."""
        torch, coins = self._torch, self._coins
        count = int(coins.sum())
        place, samples, written = np.where(coins, np.cumsum(coins) - 1, -1), [], []
        for index, (one, limit) in enumerate(zip(parameters, self._limits, strict=True)):
            if len(self._buffers[index]) < count:
                self._buffers[index] = self._buffers[index].new_zeros((count, one.numel()))
            owner = torch.as_tensor(place, device=one.device)[self._owner[index].long()]
            inside = (owner >= 0).nonzero()[:, 0]
            at, rows = (owner[inside], inside), self._buffers[index]
            rows[at] = (self._vector[index][inside] * (self.audit.scale * float(limit))).to(rows.dtype)
            written.append((rows, at))
            samples.append(one.grad_sample)
            one.grad_sample = rows[:count].reshape(-1, *one.shape)
        self._clip()
        for one, sample, (rows, at) in zip(parameters, samples, written, strict=True):
            one.grad_sample = sample
            rows[at] = 0.0

    def _as_tensors(self, flat: Any) -> list[Any]:
        """Return a flat array as one flat tensor for each parameter, on its device."""
        blocks = self.audit.blocks
        return [
            self._torch.as_tensor(flat[part], device=one.device)
            for part, one in zip(blocks.slices.values(), self._optimizer.params, strict=True)
        ]

    def _batch_sum(self, parameters: list[Any]) -> Any:
        """Return the scores of the batch's own gradients, clipped as claimed; computed here, before the canaries."""
        torch = self._torch
        samples = [self._optimizer._get_flat_grad_sample(one).flatten(1) for one in parameters]  # noqa: SLF001
        if not len(samples[0]):
            return 0.0
        lengths = [
            torch.linalg.vector_norm(each, dim=1, dtype=torch.promote_types(each.dtype, torch.float32))
            for each in samples
        ]
        norms = self._norms
        if isinstance(norms, Mapping):
            factors = [
                (limit / (length + 1e-6)).clamp(max=1)
                for limit, length in zip(norms.values(), lengths, strict=True)
            ]
        else:
            whole = torch.linalg.vector_norm(torch.stack([x.to(lengths[0].device) for x in lengths]), dim=0)
            factors = [(norms / (whole + 1e-6)).clamp(max=1).to(x.device) for x in lengths]
        return self._scores(
            factor.to(each.dtype) @ each for factor, each in zip(factors, samples, strict=True)
        )

    def _scores(self, flat: Iterable[Any]) -> Any:
        """Return the scores of a gradient that is given by tensor, flat."""
        blocks = self.audit.blocks
        result = np.zeros(blocks.canaries)
        for each, vector, owner, limit in zip(flat, self._vector, self._owner, self._limits, strict=True):
            part = self._torch.zeros(result.size, device=each.device, dtype=self._torch.float64)
            for some in zip(*(whole.split(_NUMBERS) for whole in (each, vector, owner)), strict=True):
                part.index_add_(0, some[2], (some[0].float() * some[1]).double())
            result += limit * part.cpu().numpy()
        return result / blocks.squares(self._limits)

    def _before_update(self, *_: Any) -> None:
        """Observe the gradients that the inner optimizer gets, without the division by the batch size."""
        optimizer = self._optimizer
        if self._coins is None:
            raise InputError(
                "optimizer must step through Opacus, got an update without clipping; call step of the private optimizer."
            )
        flat = (one.grad.detach().flatten() for one in optimizer.params)
        self._coins = None
        self.audit.observe_scores(self._scores(flat) * divisor(optimizer), self._centre)
        if self._leaving:
            self.detach()


def _first(samples: Any) -> Any:
    return samples[0] if isinstance(samples, list) else samples


class _Seen:
    """A batch sampler whose batches are observed as they are drawn, before a loader or `BatchMemoryManager` changes them."""

    def __init__(self, sampler: Any, audit: StepAudit) -> None:
        self._sampler, self._audit = sampler, audit

    def __iter__(self) -> Iterator[Any]:
        for batch in self._sampler:
            self._audit.observe_batch(len(batch), batch)
            yield batch

    def __len__(self) -> int:
        return len(self._sampler)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # not there yet, in a copy
            raise AttributeError(name)
        return getattr(self._sampler, name)
