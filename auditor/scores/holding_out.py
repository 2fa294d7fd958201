"""Holding records out of an audit, so that a score can be calibrated on them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor.errors import InputError
from auditor.scores._labels import coded
from auditor.values import Losses, PerGroup

__all__ = ["HoldOut", "hold_out", "units"]

Positions = npt.NDArray[np.intp]
_FEWEST = 2  # records that each group keeps on each side


@dataclass(frozen=True)
class HoldOut:
    """Two disjoint parts of one set of losses; unpacks as ``audited, calibration``.

    Attributes:
        audited: The records to audit.
        calibration: The records to calibrate a score on; their non-members are what most scores use.
        audited_rows: Positions of the audited records in the whole, a pair (members, non-members): for `References` and
            feature matrices without ids.
        calibration_rows: Positions of the calibration records, likewise.
    """

    audited: Losses
    calibration: Losses
    audited_rows: PerGroup
    calibration_rows: PerGroup

    def __iter__(self) -> Iterator[Losses]:
        return iter((self.audited, self.calibration))


def hold_out(losses: Losses, *, fraction: float = 0.5, rng: np.random.Generator) -> HoldOut:
    """Return a random split of the records into an audited and a calibration part.

    Records are drawn without looking at membership, so that what was declared about the split into members and
    non-members still holds. Records with an id, a person or a fingerprint in common stay on one side. The audited
    members are then a sample of the training set, so declare `Sample`, and give `audit` the ``training_size``.

    Args:
        losses: All records.
        fraction: Share of the records that calibrate, in (0, 1).
        rng: Draws the split.

    Raises:
        InputError: A fraction outside (0, 1), or fewer than two members or non-members on a side.

    >>> losses = Losses(member=np.arange(40.0), nonmember=np.arange(60.0))
    >>> audited, calibration = hold_out(losses, fraction=0.4, rng=np.random.default_rng(0))
    >>> audited.n_member + audited.n_nonmember, calibration.n_member + calibration.n_nonmember
    (60, 40)
    """
    _validate.instance("losses", losses, (Losses,))
    share = _validate.fraction("fraction", fraction)
    labels = (None if pair is None else np.concatenate(_as_text(pair)) for pair in _linking(losses))
    unit = units(
        [column for column in labels if column is not None], size=losses.n_member + losses.n_nonmember
    )
    held = random_part(unit, share=share, rng=rng)
    parts = (_rows(~held, losses), _rows(held, losses))
    for name, rows in zip(("audited", "calibration"), parts, strict=True):
        _enough(name, rows, share)
    audited, calibration = (
        losses.take(member=rows.member, nonmember=rows.nonmember, step=f"hold_out: {text}, {_counts(rows)}")
        for rows, text in zip(parts, ("the audited part", "the calibration part"), strict=True)
    )
    return HoldOut(audited, calibration, *parts)


def units(labels: list[npt.NDArray[Any]], *, size: int) -> npt.NDArray[np.intp]:
    """Return the unit of each record: records that share a label, directly or through others, are one unit."""
    if not labels:
        return np.arange(size)
    from scipy.sparse import coo_array, csgraph

    records, ends, n_nodes = [], [], size
    for column in labels:
        code, given = coded(column)
        records.append(np.flatnonzero(given))
        ends.append(n_nodes + code)
        n_nodes += code.size
    edges = (np.concatenate(records), np.concatenate(ends))
    graph = coo_array((np.ones(edges[0].size, dtype=np.int8), edges), shape=(n_nodes, n_nodes))
    component = csgraph.connected_components(graph, directed=False)[1][:size]
    return np.asarray(np.unique(component, return_inverse=True)[1])


def random_part(
    unit: npt.NDArray[np.intp], *, share: float, rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Return a mask of the records of a random share of the units."""
    n_units = int(unit.max()) + 1
    chosen = np.zeros(n_units, dtype=bool)
    chosen[rng.permutation(n_units)[: round(share * n_units)]] = True
    return np.asarray(chosen[unit])


def _linking(losses: Losses) -> tuple[PerGroup | None, ...]:
    return losses.id, losses.person, losses.fingerprint


def _as_text(pair: PerGroup) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Both groups' labels in one type, without turning a number into another number's text."""
    if pair.member.dtype.kind == pair.nonmember.dtype.kind:
        return pair.member, pair.nonmember
    return pair.member.astype(object), pair.nonmember.astype(object)


def _rows(mask: npt.NDArray[np.bool_], losses: Losses) -> PerGroup:
    return PerGroup(np.flatnonzero(mask[: losses.n_member]), np.flatnonzero(mask[losses.n_member :]))


def _enough(name: str, rows: PerGroup, share: float) -> None:
    fewest = min(rows.member.size, rows.nonmember.size)
    if fewest < _FEWEST:
        raise InputError(
            f"hold_out needs at least {_FEWEST} members and {_FEWEST} non-members on each side, got {rows.member.size:,}"
            f" and {rows.nonmember.size:,} in the {name} part at fraction {share:g}; give more records, another fraction,"
            " or labels that tie fewer records together."
        )


def _counts(rows: PerGroup) -> str:
    return f"{rows.member.size:,} members and {rows.nonmember.size:,} non-members drawn without looking at membership"
