"""Fourier inversion of a composed privacy loss, on panels that halve until they are resolved."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from auditor.values import Floats

__all__ = ["Inversion", "invert"]

# Nodes, weights and 1 - psi.
_Piece = tuple[Floats, Floats, npt.NDArray[np.complex128]]
_NONE: _Piece = (np.zeros(1), np.zeros(1), np.zeros(1, dtype=np.complex128))

_NODES = 33
# Of the coarse rule against the fine one: the fine one is then right to about the square of it.
_COARSE = 1e-5
_TAIL = 1e-11
_NARROWEST = 2.0**-10
# How far a last doubling may go beyond the budget.
_OVERDRAFT = 2.5
# Log of the mass that two laws share, below which no digit of anything is left to compute.
_LEAST = -42.0
# Of a sum of many terms, relative to the sum of their sizes.
_ROUNDING = 4e-16
_BLOCK = 2_000_000


@dataclass(frozen=True, eq=False)
class Inversion:
    """The transform on nodes, and what follows from it.

    Attributes:
        t: Shape (k,), nodes.
        weight: Shape (k,), of each node, over pi (t^2 + 1/4).
        psi: Shape (k,), the transform without its atom.
        total_variation: To within the error.
        error: Bound on what lies beyond the last node, with what the panels left unresolved.
        atom: Mass of the atom at loss 0.
    """

    t: Floats
    weight: Floats
    psi: npt.NDArray[np.complex128]
    total_variation: float
    error: float
    atom: float

    def excess(self, epsilon: Floats, *, backward: bool = False) -> Floats:
        """Return sup P(A) - e^eps Q(A) at each epsilon, or that with P and Q exchanged, whose transform is conjugate."""
        flat = np.atleast_1d(epsilon).ravel()
        found = []
        real, imaginary = self.weight * self.psi.real, self.weight * self.psi.imag * (-1 if backward else 1)
        for block in np.array_split(flat, max(1, -(-flat.size * self.t.size // _BLOCK))):
            angle = np.multiply.outer(block, self.t)
            found.append(
                np.einsum("ij,j->i", np.cos(angle), real) + np.einsum("ij,j->i", np.sin(angle), imaginary)
            )
        integral = np.concatenate(found)
        smooth = np.exp(flat / 2) * integral + self.atom * np.exp(np.minimum(flat, 0.0))
        return np.asarray((1 - smooth).reshape(np.shape(epsilon)))


def invert(
    log_psi: Callable[[Floats], npt.NDArray[np.complex128]],
    *,
    frequency: float,
    deviation: float,
    mean: float,
    atom: float,
    work: Callable[[float], int],
    budget: float,
) -> Inversion:
    """Return the inversion of a transform, resolved for epsilons up to ``frequency``.

    Args:
        log_psi: Log of the transform at ascending nodes.
        frequency: Largest epsilon that will be asked for.
        deviation: Standard deviation of the loss.
        mean: Its mean.
        atom: Its mass at 0.
        work: Numbers that one node costs at t.
        budget: Numbers evaluated before giving up on more digits.
    """
    least = float(log_psi(np.zeros(1))[0].real)
    if least < _LEAST:
        # The two laws hardly share anything: the shared mass bounds everything that is left out.
        none = np.zeros(1)
        return Inversion(none, none, none.astype(complex), 1.0, math.exp(least), 0.0)
    scale = min(1.0, deviation)
    swings = frequency + abs(mean) + 6 * deviation
    pieces: list[_Piece] = []
    low, high, spent, rest, rough = 0.0, 0.5, 0.0, 1.0, 0.0
    while rest > _TAIL * scale:
        parts = max(1, math.ceil((high - low) * swings / 12))
        cost = _NODES * work(high)
        if spent + parts * cost > budget and (pieces or parts * cost > _OVERDRAFT * budget):
            break
        edges = np.linspace(low, high, parts + 1).tolist()
        # The lowest last, to be taken first.
        open_panels = list(zip(edges[-2::-1], edges[:0:-1], strict=True))
        ends = []
        while open_panels:
            panel = open_panels.pop()
            piece, gap = _piece(log_psi, panel, frequency)
            spent += cost
            narrow = panel[1] - panel[0] < (high - low) / parts * _NARROWEST
            if gap > _COARSE * scale and not narrow and spent < _OVERDRAFT * budget:
                middle = sum(panel) / 2
                open_panels += [(middle, panel[1]), (panel[0], middle)]
                continue
            rough += gap if gap > _COARSE * scale else 0.0
            pieces.append(piece)
            ends.append(float(np.max(np.abs((1 - atom) - piece[2]))))
        rest = max(ends) / (math.pi * high)
        low, high = high, 2 * high
    t, weight, unlike = (np.concatenate(column) for column in zip(*pieces or [_NONE], strict=True))
    tv = float(np.einsum("i,i", weight, unlike.real))
    psi = np.asarray((1 - atom) - unlike, dtype=np.complex128)
    # Beyond the last node psi is the atom, to within the rest.
    tv += (1 - atom) * (1 - 2 / math.pi * math.atan(2 * low))
    rounding = _ROUNDING * (atom + float(np.einsum("i,i", weight, np.abs(psi))))
    return Inversion(t, weight, psi, min(max(tv, 0.0), 1.0), rest + rough + rounding, atom)


def _piece(
    log_psi: Callable[[Floats], npt.NDArray[np.complex128]], panel: tuple[float, float], frequency: float
) -> tuple[_Piece, float]:
    """Nodes, weights and 1 - psi on one panel, and how far two rules are apart there."""
    x, fine, coarse = _rules()
    half = (panel[1] - panel[0]) / 2
    t = panel[0] + half * (1 + x)
    kernel = half / (math.pi * (t**2 + 0.25))
    unlike = -_expm1(log_psi(t))
    values = np.stack([unlike, unlike * np.exp(-1j * frequency * t), unlike * np.exp(1j * frequency * t)])
    two = [np.einsum("ij,j->i", values[:, ::k], rule * kernel[::k]) for k, rule in ((2, coarse), (1, fine))]
    return (t, fine * kernel, unlike), float(np.max(np.abs(two[0] - two[1])))


def _expm1(z: npt.NDArray[np.complex128]) -> npt.NDArray[np.complex128]:
    """e^z - 1, with the digits of small z."""
    with np.errstate(invalid="ignore"):  # minus infinity times an angle
        found = (
            np.expm1(z.real) * np.cos(z.imag)
            - 2 * np.sin(z.imag / 2) ** 2
            + 1j * np.exp(z.real) * np.sin(z.imag)
        )
    return np.asarray(np.where(np.isneginf(z.real), -1.0, found))


@cache
def _rules() -> tuple[Floats, Floats, Floats]:
    """Clenshaw-Curtis nodes in [-1, 1], ascending, their weights, and those of every other node."""
    return (
        -np.cos(np.pi * np.arange(_NODES) / (_NODES - 1)),
        _weights(_NODES - 1),
        _weights((_NODES - 1) // 2),
    )


def _weights(n: int) -> Floats:
    """Clenshaw-Curtis weights for n + 1 nodes, n even (Waldvogel 2006)."""
    angle = np.pi * np.arange(n + 1) / n
    k = np.arange(1, n // 2 + 1)
    factor = np.where(k == n // 2, 1.0, 2.0) / (4.0 * k**2 - 1)
    weight = (1 - np.cos(2 * np.multiply.outer(angle, k)) @ factor) * 2 / n
    weight[0] /= 2
    weight[-1] /= 2
    return np.asarray(weight)
