"""The directions of canary gradients: disjoint blocks of coordinates with random signs, so that canaries are orthogonal [own]."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from auditor.core import Booleans, Floats, InputError

Shapes = Mapping[str, tuple[int, ...]]
Limits = float | Mapping[str, float]  # one clipping norm, or one for each tensor
_Integers = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of the canaries, over all coordinates of all parameter tensors in their order.

    With one clipping norm each canary has one block, inside one tensor, and each tensor has a canary at least. With a
    clipping norm for each tensor, a canary in one tensor adds little beside noise that is scaled by all norms: canaries
    then have a block in every tensor that is large enough, and each tensor has one more canary of its own.

    Attributes:
        shapes: Shape of each tensor, by name.
        vector: Shape (d,): unit length on each block, with random signs.
        owner: Shape (d,): the canary of each coordinate.
        whole: The canaries that are judged together.
        tensors: The canaries of each tensor that is judged alone, one array for each.
        by_tensor: Whether each tensor has a clipping norm of its own.
    """

    shapes: Shapes
    vector: npt.NDArray[np.float32]
    owner: npt.NDArray[np.int32]
    whole: _Integers
    tensors: Sequence[_Integers]
    by_tensor: bool

    @classmethod
    def of(cls, shapes: Shapes, *, canaries: int, by_tensor: bool, rng: np.random.Generator) -> "Blocks":
        """Return blocks for about this many canaries: more where there are more tensors, fewer where coordinates are few.

        Raises:
            InputError: There are no parameters.
        """
        sizes = np.array([math.prod(shape) for shape in shapes.values()], dtype=np.int64)
        if not sizes.size or sizes.min(initial=1) < 1:
            raise InputError(
                "shapes must name parameter tensors with 1 number each or more, got"
                f" {dict(shapes) if sizes.size else 'none'}."
            )
        if by_tensor:
            together = int(min(canaries, sizes.max() - 1))
            # First the tensor's own canary, then the others, if it has room for them.
            kinds = [
                np.array([together + place, *(range(together) if size > together else ())])
                for place, size in enumerate(sizes)
            ]
            tensors = [kind[:1] for kind in kinds]
            whole = np.arange(together) if together else np.arange(sizes.size)
        else:
            share = np.maximum(np.floor(sizes / sizes.sum() * canaries), 1)
            starts = np.concatenate([[0], np.cumsum(np.minimum(share, sizes))]).astype(np.intp)
            kinds = tensors = [np.arange(low, high) for low, high in itertools.pairwise(starts)]
            whole = np.arange(starts[-1])
        parts = [
            (one, part.size)
            for kind, size in zip(kinds, sizes, strict=True)
            for one, part in zip(kind, np.array_split(np.empty(size), len(kind)), strict=True)
        ]
        owner = np.repeat(*np.array(parts, dtype=np.int32).T)
        length = np.repeat(np.sqrt([size for _, size in parts]), [size for _, size in parts])
        signs = rng.integers(0, 2, owner.size) * 2 - 1
        return cls(dict(shapes), (signs / length).astype(np.float32), owner, whole, tensors, by_tensor)

    @property
    def canaries(self) -> int:
        """Number of canaries."""
        return int(self.owner.max()) + 1

    @cached_property
    def slices(self) -> dict[str, slice]:
        """The coordinates of each tensor."""
        ends = np.cumsum([0, *map(math.prod, self.shapes.values())]).tolist()
        return dict(zip(self.shapes, itertools.starmap(slice, itertools.pairwise(ends)), strict=True))

    def limits(self, clipping_norm: Limits) -> Floats:
        """Return the clipping norm of each tensor, shape (tensors,).

        Raises:
            InputError: It is no number above 0, or a tensor has none.
        """
        names = list(self.shapes)
        if self.by_tensor != isinstance(clipping_norm, Mapping):
            raise InputError("clipping_norm must stay one number, or one for each tensor, in every step.")
        values = [clipping_norm.get(name) for name in names] if isinstance(clipping_norm, Mapping) else None
        if values is not None and (None in values or set(clipping_norm) != set(names)):  # type: ignore[arg-type]
            raise InputError(f"clipping_norm must have one number for each tensor: {', '.join(names)}.")
        result = np.array([clipping_norm] * len(names) if values is None else values, dtype=np.float64)
        if not (np.isfinite(result) & (result > 0)).all():
            raise InputError(f"clipping_norm must be above 0 and finite, got {clipping_norm!r}.")
        return result

    @cached_property
    def _inside(self) -> Booleans:
        """Whether a canary has a block in a tensor; shape (tensors, m)."""
        result = np.zeros((len(self.shapes), self.canaries), dtype=bool)
        for place, part in enumerate(self.slices.values()):
            result[place, self.owner[part]] = True
        return result

    def squares(self, limits: Floats) -> Floats:
        """Return the squared norm that clipping leaves of each canary, shape (m,)."""
        return limits**2 @ self._inside if self.by_tensor else np.full(self.canaries, limits[0] ** 2)

    def shares(self, limits: Floats) -> Floats:
        """Return the share of the clipping norm of all tensors together that clipping leaves of each canary, shape (m,)."""
        norm = np.linalg.norm(limits) if self.by_tensor else limits[0]
        return np.asarray(np.sqrt(self.squares(limits)) / norm)

    def readers(self, limits: Floats) -> npt.NDArray[np.float32]:
        """Return the weights of the coordinates in the scores, by which a clipped canary scores 1; shape (d,)."""
        sizes = [part.stop - part.start for part in self.slices.values()]
        return np.asarray(
            self.vector * (np.repeat(limits, sizes) / self.squares(limits)[self.owner]).astype(np.float32)
        )

    def rows(self, which: _Integers, limits: Floats, *, scale: float) -> dict[str, npt.NDArray[np.float32]]:
        """Return the gradients of these canaries before clipping, by tensor, each of shape (canaries, *shape)."""
        result = {}
        for (name, part), limit in zip(self.slices.items(), limits, strict=True):
            owner, values = self.owner[part], (self.vector[part] * (scale * limit)).astype(np.float32)
            rows = np.where(owner == which[:, None], values, np.float32(0))
            result[name] = rows.reshape(len(which), *self.shapes[name])
        return result

    def scores(self, flat: npt.NDArray[np.floating], limits: Floats) -> Floats:
        """Return the projection of a flat vector on each canary, in units of what a clipped canary adds; shape (m,)."""
        weights = flat * self.readers(limits)
        return np.bincount(self.owner, weights=weights, minlength=self.canaries).astype(np.float64)
