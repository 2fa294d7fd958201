"""Which records first? The audited records in the order of their posterior membership odds: a ranking, no certificate.

The odds that a record with loss l is a member are the prior odds times the likelihood ratio f1(l)/f0(l), which is taken
to be monotone in the loss and estimated by isotonic regression of membership, cross-fitted: no record's own membership
enters its own odds. They describe records with such a loss, on average; nothing is certified for any one person, and a
record far down the list may be given away by a stronger attack.
"""

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor._labels import Integers
from auditor.values import Floats, Losses, PerGroup

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMN", "NOTE", "Ranking", "rank_records"]

NOTE = "a ranking, not a certified probability for any one person"
COLUMN = "posterior_odds_ranking_only"
_LABELS = ("id", "group", "person")
_LONGEST = 80
_FOLDS = 5
_HALF = 0.5


@dataclass(frozen=True, eq=False)
class Ranking:
    """The records of an audit and their posterior membership odds; every pair is (members, non-members).

    Attributes:
        rank: Place of each record among all audited records, 1 for the loss that speaks most for membership; records
            of equal loss share a place.
        odds: Estimated odds that a record with this loss is a member, above 0: prior odds times likelihood ratio.
            Each fold has its own estimate, so odds of neighbours in rank may be slightly out of order.
        prior: Share of members among the records that an attacker chooses from.
        low_is_member: Whether low losses speak for membership, as they do unless the groups are swapped.
        losses: The losses, with the labels of their records.
        note: What the numbers are not.
    """

    rank: PerGroup
    odds: PerGroup
    prior: float
    low_is_member: bool
    losses: Losses
    note: str = NOTE

    def top(self, most: int = 10) -> list[dict[str, Any]]:
        """Return the members that come first, as plain values: rank, row in their group, labels, odds."""
        most = _validate.at_least("most", most, least=1)
        first = np.argsort(self.rank.member, kind="stable")[:most]
        labels = {name: pair.member for name in _LABELS if (pair := getattr(self.losses, name)) is not None}
        return [
            {
                "rank": int(self.rank.member[row]),
                "row": row,
                **{name: _short(column[row]) for name, column in labels.items()},
                "odds": float(self.odds.member[row]),
            }
            for row in first.tolist()
        ]

    def to_frame(self, *, nonmembers: bool = False, with_losses: bool = False) -> "pd.DataFrame":
        """Return the members, first ones first, as a table; its column of odds says in its name what it is not.

        Args:
            nonmembers: Whether to list the non-members too, with a column ``member``.
            with_losses: Whether to add the losses.
        """
        import pandas as pd

        sides = ("member", "nonmember") if nonmembers else ("member",)
        columns: dict[str, list[npt.NDArray[Any]]] = {"rank": [getattr(self.rank, side) for side in sides]}
        columns["row"] = [np.arange(column.size) for column in columns["rank"]]
        if nonmembers:
            columns["member"] = [
                np.full(part.size, side == "member") for side, part in zip(sides, columns["row"], strict=True)
            ]
        for name in _LABELS:
            if (pair := getattr(self.losses, name)) is not None:
                columns[name] = [getattr(pair, side) for side in sides]
        columns[COLUMN] = [getattr(self.odds, side) for side in sides]
        if with_losses:
            columns["loss"] = [getattr(self.losses, side) for side in sides]
        frame = pd.DataFrame({name: _joined(parts) for name, parts in columns.items()})
        frame = frame.sort_values("rank", kind="stable", ignore_index=True)
        frame.attrs["note"] = self.note
        return frame

    def write(
        self, path: str | os.PathLike[str], *, nonmembers: bool = False, with_losses: bool = False
    ) -> None:
        """Write the table of `to_frame` to a ``.csv`` or ``.parquet`` file, whole or not at all.

        In a CSV file a label that a spreadsheet would run as a formula gets an apostrophe in front; Parquet keeps labels
        as they are, and holds the note in its metadata.

        Raises:
            InputError: A path with another ending.
            OutputError: The path cannot be written.
        """
        from auditor.report.files import write_all

        file = Path(path)
        write_all({file: self.as_file(file, nonmembers=nonmembers, with_losses=with_losses)})

    def as_file(self, path: Path, *, nonmembers: bool = False, with_losses: bool = False) -> str | bytes:
        """Return what `write` writes to a file of this name.

        Raises:
            InputError: A path with another ending than ``.csv`` and ``.parquet``.
        """
        from auditor._export import encoded

        return encoded(self.to_frame(nonmembers=nonmembers, with_losses=with_losses), path, note=self.note)


def _joined(parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """One column of both groups; values of different types stay what they are."""
    if len({part.dtype.kind for part in parts}) > 1:
        parts = [part.astype(object) for part in parts]
    return np.concatenate(parts)


def _short(label: object) -> str:
    words = str(label)
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."


def rank_records(losses: Losses, *, prior: float = 0.5, rng: np.random.Generator) -> Ranking:
    """Return every record's rank by its estimated posterior odds of being a member.

    In five folds (fewer with fewer records) the membership of the other records is regressed on the loss, falling or
    rising as the AUC says. An isotonic fit is too extreme at its ends, so pseudo-records that are neutral as to
    membership stand there: at the end of the members they hold n0^(1/3)/2 non-members, at least one, and likewise at the
    other (a Laplace rule whose weight grows as the penalty of Woodroofe and Sun 1993 does). Where members have both the
    lowest and the highest losses a monotone function cannot follow, and the odds at one of these ends are too low.

    Args:
        losses: Smaller means more like a member; at least two of each group.
        prior: In (0, 1): the odds are stated for records of which this share are members, however many were audited.
        rng: Deals the folds.

    Raises:
        InputError: prior outside (0, 1).

    >>> rng = np.random.default_rng(0)
    >>> losses = Losses(member=rng.normal(-1, 1, 4000), nonmember=rng.normal(0, 1, 4000), id=(range(4000), range(4000)))
    >>> found = rank_records(losses, rng=rng)
    >>> found.top(1)[0]["row"] == int(np.argmin(losses.member)), bool(found.odds.member.max() > 5)
    (True, True)
    """
    _validate.instance("losses", losses, (Losses,))
    prior = _validate.fraction("prior", prior)
    n1, n0 = losses.n_member, losses.n_nonmember
    levels, place = np.unique(np.concatenate([losses.member, losses.nonmember]), return_inverse=True)
    membership = np.concatenate([np.ones(n1, dtype=np.bool_), np.zeros(n0, dtype=np.bool_)])
    falling = _falling(place, membership, levels.size)
    if not falling:
        place = levels.size - 1 - place
    folds = np.concatenate([_deal(n, min(_FOLDS, n1, n0), rng) for n in (n1, n0)])
    share = np.empty(place.size)
    for fold in range(int(folds.max()) + 1):
        held = folds == fold
        share[held] = _fitted(place[~held], membership[~held], levels.size)[place[held]]
    # A cross-fitted share is for the audited mix of members and non-members: divide its odds out, put the prior's in.
    odds = share / (1 - share) * (n0 / n1) * (prior / (1 - prior))
    records = np.bincount(place, minlength=levels.size)
    rank = 1 + np.concatenate([[0], np.cumsum(records)[:-1]])[place]
    return Ranking(
        rank=PerGroup(rank[:n1], rank[n1:]),
        odds=PerGroup(odds[:n1], odds[n1:]),
        prior=prior,
        low_is_member=falling,
        losses=losses,
    )


def _falling(place: Integers, membership: npt.NDArray[np.bool_], size: int) -> bool:
    """Whether a member's loss is more often below a non-member's than above it, or as often."""
    member = np.bincount(place[membership], minlength=size)
    other = np.bincount(place[~membership], minlength=size)
    below = np.cumsum(member) - member
    return bool((other * (below + _HALF * member)).sum() >= _HALF * member.sum() * float(other.sum()))


def _deal(size: int, folds: int, rng: np.random.Generator) -> Integers:
    """A fold for each record, as many in each as can be."""
    return np.asarray(rng.permutation(size) % folds, dtype=np.int64)


def _fitted(place: Integers, membership: npt.NDArray[np.bool_], size: int) -> Floats:
    """The isotonic share of members at every place, falling, and straight between the places that were seen."""
    from sklearn.isotonic import isotonic_regression

    total = np.bincount(place, minlength=size)
    member = np.bincount(place[membership], minlength=size)
    seen = np.flatnonzero(total)
    n1, n0 = int(member.sum()), int(total.sum() - member.sum())
    # Pseudo-records in the proportion of the sample: counted in non-members at the members' end, and the reverse.
    first, last = _pseudo(n0) * (n1 + n0) / n0, _pseudo(n1) * (n1 + n0) / n1
    values = np.concatenate([[n1 / (n1 + n0)], member[seen] / total[seen], [n1 / (n1 + n0)]])
    weights = np.concatenate([[first], total[seen], [last]])
    fit = isotonic_regression(values, sample_weight=weights, increasing=False)[1:-1]
    return np.interp(np.arange(size), seen, np.asarray(fit, dtype=np.float64))


def _pseudo(size: int) -> float:
    return max(1.0, _HALF * math.cbrt(size))
