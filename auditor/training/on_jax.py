"""Step audits of JAX Privacy: canaries as losses that are linear in the parameters, and the gradients behind the noise."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import Any, Unpack

import numpy as np

from auditor.core import DPSGD, InputError, import_optional
from auditor.training.step_audit import Options, StepAudit
from auditor.training.watch import Watch

_OF_CLIPPING = ("l2_clip_norm", "rescale_to_unit_norm", "normalize_by", "nan_safe", "dtype")


def jax_privacy(*, claim: DPSGD | float, **options: Unpack[Options]) -> "JaxWatch":
    """Watch a training by JAX Privacy: its noise, its clipping, and the parameters that both cover.

    Two lines of the training change::

        watch = auditor.training.jax_privacy(claim=auditor.DPSGD(1.0, 0.01, 1000))
        grad_fn = watch.clipped_grad(loss_fn, l2_clip_norm=1.0)  # in place of jax_privacy.clipped_grad
        privatizer = watch.privatizer(gaussian_privatizer(stddev=grad_fn.sensitivity(), prng_key=key))
        ...  # train as always, compiled or not
        watch.result().to_html("training.html")

    Canaries are records whose loss is linear in the parameters: a batch of their own, whose gradients the library's
    ``clipped_grad`` clips by the same options and which is added to that of the real records. The coins come to a
    compiled step, and the scores leave it, by ordered callbacks. A step that sums several calls of ``grad_fn`` has its
    canaries in the first.

    Args:
        claim: As in `StepAudit`.
        **options: Canaries, scale, confidence and seed, as in `StepAudit`.

    Raises:
        InputError: A bad argument.
        MissingExtraError: JAX Privacy is not installed.
    """
    need = partial(import_optional, purpose="auditing a training by JAX Privacy", extra="jax-privacy ")
    return JaxWatch(StepAudit(claim, **options), need("jax"), need("jax_privacy"))


class JaxWatch(Watch):
    """The watch of a clipped gradient function and a privatizer of JAX Privacy."""

    def __init__(self, audit: StepAudit, jax: ModuleType, library: ModuleType) -> None:
        super().__init__(audit)
        self._jax, self._library = jax, library
        self._left: Any = None  # places of canaries that the step has not used yet
        self._tossed = False
        self._flat: list[Any] = []

    def clipped_grad(self, fun: Callable[..., Any], argnums: int | Sequence[int] = 0, **options: Any) -> Any:
        """Return `jax_privacy.clipped_grad` of a loss function, with canaries; all arguments are those of that function.

        Raises:
            InputError: A ``pre_clipping_transform``.
        """
        if "pre_clipping_transform" in options:
            raise InputError(
                "clipped_grad must be without pre_clipping_transform, which canaries cannot pass."
            )
        plain = self._library.clipped_grad(fun, argnums, **options)
        shared = {name: options[name] for name in _OF_CLIPPING if name in options}
        of_canaries = self._library.clipped_grad(self._loss, keep_batch_dim=False, **shared)

        def watched(*args: Any, **kwargs: Any) -> Any:
            result = plain(*args, **kwargs)
            if not self._undo:
                return result
            total, *rest = result if plain.has_aux else (result,)
            params = args[argnums] if isinstance(argnums, int) else tuple(args[each] for each in argnums)
            places = self._places(params, float(plain.l2_norm_bound))
            canaries = of_canaries(params, places, self.audit.scale * options["l2_clip_norm"])
            total = self._jax.tree.map(lambda own, more: own + more, total, canaries)
            return (total, *rest) if plain.has_aux else total

        return replace(plain, fun=watched)

    def privatizer(self, privatizer: Any) -> Any:
        """Return a Gaussian privatizer whose results are observed.

        Raises:
            InputError: In a step, gradients from another function than that of `clipped_grad`, or noise that depends on
                earlier noise.
        """
        jax = self._jax

        def update(sum_of_clipped_grads: Any, noise_state: Any, params: Any = None) -> Any:
            leaves = jax.tree.leaves(sum_of_clipped_grads)
            noised, state = privatizer.update(sum_of_clipped_grads, noise_state, params)
            if not self._undo:
                return noised, state
            if [leaf.size for leaf in leaves] != [each[0].size for each in self._flat]:
                raise InputError("privatizer must get the gradients of the watch's clipped_grad, got others.")
            kinds = {(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(noise_state)}
            if (leaves[0].shape, leaves[0].dtype) in kinds:
                raise InputError(
                    "privatizer must draw fresh noise in each step, got one that keeps earlier noise."
                )
            parts = [
                jax.ops.segment_sum(leaf.ravel() * reader, owner, self._left.size)
                for leaf, (_, reader, owner) in zip(jax.tree.leaves(noised), self._flat, strict=True)
            ]
            jax.experimental.io_callback(self._observe, None, sum(parts), ordered=True)
            return noised, state

        return privatizer._replace(update=update)

    def _places(self, params: Any, norm: float) -> Any:
        """Return the number of each canary of heads, and -1 for the others, when the step runs."""
        jax = self._jax
        paths = jax.tree_util.tree_leaves_with_path(params)
        name = partial(jax.tree_util.keystr, simple=True, separator="/")
        shapes = {name(path) or "parameters": leaf.shape for path, leaf in paths}
        self._toss = partial(self.audit.toss, shapes, clipping_norm=norm)
        self._begin()
        blocks = self.audit.blocks
        flat = (blocks.vector, blocks.readers(blocks.limits(norm)), blocks.owner)
        self._flat = [[each[part] for each in flat] for part in blocks.slices.values()]
        shape = jax.ShapeDtypeStruct(self._left.shape, self._left.dtype)
        return jax.experimental.io_callback(self._once, shape, ordered=True)

    def _loss(self, params: Any, place: Any, scale: float) -> Any:
        """Return the loss of a canary, linear in the parameters."""
        parts = [
            (leaf.ravel() * gradient * (owner == place)).sum()
            for leaf, (gradient, _, owner) in zip(self._jax.tree.leaves(params), self._flat, strict=True)
        ]
        return scale * sum(parts)

    # --- What a step calls when it runs ---

    def _begin(self) -> None:
        if not self._tossed and self._undo:
            coins, self._tossed = self._toss(), True
            self._left = np.where(coins, np.arange(coins.size), -1).astype(np.int32)

    def _once(self) -> Any:
        """Return the places of a step; none for more gradients of the same step, and after `detach`."""
        self._begin()
        left, self._left = self._left, np.full_like(self._left, -1)
        return left if self._undo else self._left

    def _observe(self, scores: Any) -> None:
        if self._tossed and self._undo:
            self._tossed = False
            self.audit.observe_scores(np.asarray(scores, dtype=np.float64))
