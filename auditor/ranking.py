"""Which records first? The audited records in the order of their posterior membership odds: a ranking, no certificate.

The odds that a record with loss l is a member are the prior odds times the likelihood ratio f1(l)/f0(l), which is
estimated once, from all records, as a function of the loss: monotone in it unless the data clearly say otherwise. They
describe records with such a loss, on average; nothing is certified for any one person, and a record far down the list may
be given away by a stronger attack.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor._ratio import estimate
from auditor.values import Losses, PerGroup

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMN", "NOTE", "Ranking", "rank_records"]

NOTE = "a ranking, not a certified probability for any one person"
COLUMN = "posterior_odds_ranking_only"
_LABELS = ("id", "group", "person")
_LONGEST = 80
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, eq=False)
class Ranking:
    """The records of an audit and their posterior membership odds; every pair is (members, non-members).

    Attributes:
        rank: Place of each record among all audited records, 1 for the highest odds; records of equal odds share a
            place, so the order of the ranks is the order of the odds.
        odds: Estimated odds that a record with this loss is a member, above 0: prior odds times likelihood ratio.
        prior: Share of members among the records that an attacker chooses from.
        monotone: Whether the odds only fall, or only rise, with the loss; if not, the leak is in other losses than the
            lowest or the highest, and an attack by one threshold on the loss understates it.
        low_is_member: Whether a member's loss is more often below a non-member's than above it, or as often; if
            ``monotone``, whether low losses speak for membership.
        losses: The losses, with the labels of their records.
        note: What the numbers are not.
        told: Whether the odds say more about held-out records than the numbers of members and non-members alone do, by
            their log-likelihood and more than two standard errors; if not, the order is as good as random.
    """

    rank: PerGroup
    odds: PerGroup
    prior: float
    monotone: bool
    low_is_member: bool
    losses: Losses
    note: str = NOTE
    told: bool = True

    def top(self, most: int = 10) -> list[dict[str, Any]]:
        """Return the members that come first, as plain values: rank, row in their group, labels, odds.

        Of records with equal odds those whose losses are further on the members' side come first.
        """
        most = _validate.at_least("most", most, least=1)
        rank = self.rank.member
        last = np.partition(rank, most - 1)[most - 1] if most < rank.size else rank.max()
        chosen = np.flatnonzero(rank <= last)
        side = self.losses.member[chosen] * (1 if self.low_is_member else -1)
        first = chosen[np.lexsort((side, rank[chosen]))][:most]
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
                columns[name] = [_encodable(getattr(pair, side)) for side in sides]
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


def _encodable(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Labels that a file can hold: a lone surrogate becomes a backslash escape."""
    if column.dtype.kind not in "UO":
        return column
    words = column.tolist()
    if not any(isinstance(word, str) and _SURROGATE.search(word) for word in words):
        return column
    escaped = [
        word.encode("utf-8", "backslashreplace").decode() if isinstance(word, str) else word for word in words
    ]
    return np.array(escaped, dtype=object)


def _short(label: object) -> str:
    words = str(label)
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."


def rank_records(losses: Losses, *, prior: float = 0.5, rng: np.random.Generator) -> Ranking:
    """Return every record's rank by its estimated posterior odds of being a member.

    Two estimates of the likelihood ratio compete in five folds (fewer with fewer records): isotonic regression of
    membership on the loss, falling or rising as the AUC says, and the ratio within 4, 8, ... or 256 bands of equally many
    records, which may go up and down. Bands are taken if the log-likelihood of the held-out records is higher than with
    the isotonic fit by more than two standard errors, and then with their best number; members and non-members must be
    at least 20 a band on average. The estimate chosen is fitted to all records, and equal odds share a rank. Where there are
    more than 65,536 different losses, held-out records are scored on so many cells of them.

    Pseudo-records that are neutral as to membership keep odds from being too extreme and from following single records:
    with n records in the smaller group n^(1/3)/2 of its kind, at least one, in each band; of the isotonic fit n0^(1/3)/2
    non-members at the end of the members and likewise at the other (a Laplace rule whose weight grows as the penalty of
    Woodroofe and Sun 1993 does). A record is one of those that its own odds are fitted to.

    Args:
        losses: Smaller means more like a member; at least two of each group.
        prior: In (0, 1): the odds are stated for records of which this share are members, however many were audited.
        rng: Deals the folds that choose the estimate.

    Raises:
        InputError: prior outside (0, 1).

    >>> rng = np.random.default_rng(0)
    >>> losses = Losses(member=rng.normal(-1, 1, 4000), nonmember=rng.normal(0, 1, 4000), id=(range(4000), range(4000)))
    >>> found = rank_records(losses, rng=rng)
    >>> first = losses.member[found.rank.member == found.rank.member.min()]
    >>> found.monotone, bool(first.max() < np.sort(losses.member)[400]), bool(found.odds.member.max() > 5)
    (True, True, True)
    """
    _validate.instance("losses", losses, (Losses,))
    prior = _validate.fraction("prior", prior)
    n1, n0 = losses.n_member, losses.n_nonmember
    levels, place = np.unique(np.concatenate([losses.member, losses.nonmember]), return_inverse=True)
    membership = np.concatenate([np.ones(n1, dtype=np.bool_), np.zeros(n0, dtype=np.bool_)])
    ratio = estimate(place, membership, levels.size, rng=rng)
    # Ranked before the prior comes in: a tiny one could make different odds equal.
    values, order = np.unique(-ratio.levels, return_inverse=True)
    records = np.bincount(order[place], minlength=values.size)
    rank = (1 + np.cumsum(records) - records)[order[place]]
    odds = ratio.levels[place] * (prior / (1 - prior))
    return Ranking(
        rank=PerGroup(rank[:n1], rank[n1:]),
        odds=PerGroup(odds[:n1], odds[n1:]),
        prior=prior,
        monotone=ratio.monotone,
        low_is_member=ratio.falling,
        losses=losses,
        told=ratio.told,
    )
