"""Projections of a training's noisy sums on the gradient of a canary, for audits that train many times."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.core import DPSGD, Adjacency, Floats, InputError, import_optional, validate
from auditor.scores import step_likelihood_ratio
from auditor.training.on_opacus import divisor, require_private
from auditor.training.tracker import clipped

Tensors = npt.ArrayLike | Sequence[npt.ArrayLike]


class Projections:
    """The noisy sums of one training along a canary, which is a record that the training draws or not, and their score.

    The direction of a step is the canary's gradient at the weights of that step, with the canary and without, so that the
    sampler and the accounting are audited too. Choose a canary whose gradient other records do not share, such as
    one of `auditor.canaries.own_feature`: their part of the sums is not subtracted and hides it, which costs power only.

    In a loop of your own, in any framework, call `add` once for each noisy sum; for Opacus, `from_opacus` does.

    Attributes:
        values: Projection of each noisy sum on the unit vector along the canary's gradient, in clipping norms.
        sizes: Norm of the canary's clipped gradient of each step, in clipping norms.

    >>> record = Projections()
    >>> record.add([0.3, 1.0, -0.8], gradient=[0.0, 5.0, 0.0])
    >>> record.values, record.sizes, record.score(DPSGD(1.0, sampling_rate=1.0, steps=1))
    ([1.0], [1.0], -0.5)
    """

    def __init__(self) -> None:
        self.values: list[float] = []
        self.sizes: list[float] = []

    def add(self, noisy_sum: Tensors, *, gradient: Tensors, clipping_norm: npt.ArrayLike = 1.0) -> None:
        """Add a step.

        Args:
            noisy_sum: Sum of the clipped gradients with its noise, before any division: an array, or a list of one for each tensor.
            gradient: The canary's gradient at the weights before the update, not clipped, in the same form.
            clipping_norm: The clipping norm C, above 0; of clipping by tensor one for each.

        Raises:
            InputError: No numbers, other parameters in one of the two, or values that are not finite.
        """
        total, own = np.concatenate(_flat("noisy_sum", noisy_sum)), _flat("gradient", gradient)
        limits = np.ravel(
            validate.numbers(
                "clipping_norm", clipping_norm, lambda c: (c > 0) & np.isfinite(c), "be above 0 and finite"
            )
        )
        groups = own if limits.size > 1 else [np.concatenate(own)]
        if limits.size != len(groups) or total.size != sum(each.size for each in groups):
            raise InputError(
                f"gradient must have as many numbers as noisy_sum, {total.size:,}, and clipping_norm 1 or one for each"
                f" tensor, got {sum(each.size for each in groups):,} in {len(own)} tensors and {limits.size} clipping norms."
            )
        pairs = zip(groups, limits, strict=True)
        canary = np.concatenate([clipped(each, clipping_norm=float(limit)) for each, limit in pairs])
        length, norm = float(np.linalg.norm(canary)), float(np.linalg.norm(limits))
        self.values.append(float(total @ canary) / (length * norm) if length else 0.0)
        self.sizes.append(length / norm)

    @classmethod
    def from_opacus(cls, optimizer: Any, *, model: Any, loss: Callable[[], Any]) -> "Projections":
        """Return projections to which each update of an Opacus optimizer adds a step.

        ::

            steps = auditor.training.Projections.from_opacus(
                optimizer, model=model, loss=lambda: cross_entropy(model(canary_x), canary_y)
            )
            ...  # train as always
            return steps.score(claim)

        A step is one update: accumulated gradients and the physical batches of `BatchMemoryManager` are one, skipped steps
        none. The sums are taken behind the clipping and the noise, multiplied by the expected batch size of the optimizer.
        With adaptive clipping, the clipping norm of a step is the one adapted at its end.

        Args:
            optimizer: The optimizer that ``make_private`` returned.
            model: The model that it returned.
            loss: Returns the loss of the canary alone, as the training computes it; called in each step.

        Raises:
            InputError: Another optimizer or another model.
            MissingExtraError: PyTorch is not installed.
        """
        torch = import_optional("torch", purpose="auditing a training by Opacus", extra="torch")
        require_private(optimizer)
        if not hasattr(model, "disable_hooks"):
            raise InputError(
                f"model must be the one that Opacus's make_private returned, got {type(model).__name__}."
            )
        result = cls()

        def before_update(*_: Any) -> None:
            model.disable_hooks()
            try:
                with torch.enable_grad():
                    gradient = torch.autograd.grad(
                        loss(), optimizer.params, allow_unused=True, materialize_grads=True
                    )
            finally:
                model.enable_hooks()
            total = [each.grad * divisor(optimizer) for each in optimizer.params]
            norms = getattr(optimizer, "max_grad_norms", optimizer.max_grad_norm)
            result.add(total, gradient=gradient, clipping_norm=norms)

        optimizer.original_optimizer.register_step_pre_hook(before_update)
        return result

    def score(self, claim: DPSGD, *, adjacency: Adjacency | str = Adjacency.ADD_REMOVE) -> float:
        """Return the score of the run, smaller with the canary; see `auditor.scores.step_likelihood_ratio`.

        Args:
            claim: The claimed training, the same in every run.
            adjacency: As in `auditor.audit_runs`.

        Raises:
            InputError: No step was added.
        """
        return float(step_likelihood_ratio(self.values, claim=claim, sizes=self.sizes, adjacency=adjacency))


def _flat(name: str, tensors: Any) -> list[Floats]:
    listed = tensors if isinstance(tensors, list | tuple) else [tensors]
    if not listed:
        raise InputError(f"{name} must have 1 number or more, got an empty list.")
    return [np.ravel(validate.numbers(name, each, np.isfinite, "be finite")) for each in listed]
