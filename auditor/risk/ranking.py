"""Ranking of the audited records by their posterior membership odds, without a certificate.

The odds that a record with loss l is a member are the prior odds times the likelihood ratio f1(l)/f0(l), which is
estimated once, from all records, as a function of the loss: monotone in it unless the data clearly say otherwise. They
describe records with such a loss, on average; nothing is certified for any one person, and a record far down the list may
be given away by a stronger attack.
"""

import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from auditor.core import InputError, clean, table_content, validate, write_all
from auditor.core.values import Array, Booleans, Check, Floats, Integers, Losses, PerGroup, Status
from auditor.estimators.extraction import are_chances, written
from auditor.records.labels import PersonsFound, per_record, text
from auditor.results.document import TopRecord
from auditor.verdicts.judging import failed_validity

if TYPE_CHECKING:
    import pandas as pd


NOTE = "a ranking, not a certified probability for any one person"
COLUMN = "posterior_odds_ranking_only"
_LABELS = ("id", "group", "person")
_LONGEST = 80


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
        note: Limit of the numbers.
        told: Whether the odds say more about held-out records than the numbers of members and non-members alone do, by
            their log-likelihood and more than two standard errors; if not, the order is as good as random.
    """

    rank: PerGroup
    odds: PerGroup
    prior: float
    monotone: bool
    low_is_member: bool
    losses: Losses
    note: str = f"{NOTE}; for the data's owner only"
    told: bool = True

    def top(self, most: int = 10) -> list[dict[str, Any]]:
        """Return the members that come first, as plain values: rank, row in their group, labels, odds.

        Of records with equal odds those whose losses are further on the members' side come first.
        """
        most = validate.at_least("most", most, least=1)
        rank = self.rank.member
        last = np.partition(rank, most - 1)[most - 1] if most < rank.size else rank.max()
        chosen = np.flatnonzero(rank <= last)
        side = self.losses.member[chosen] * (1 if self.low_is_member else -1)
        first = chosen[np.lexsort((side, rank[chosen]))][:most]
        columns: dict[str, Any] = {"rank": rank[first].tolist(), "row": first.tolist()}
        for name, labels in _labels(self.losses).items():
            columns[name] = [validate.shortened(str(label), most=_LONGEST) for label in labels[first]]
        columns["odds"] = self.odds.member[first].tolist()
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def to_frame(self) -> "pd.DataFrame":
        """Return the members, first ones first, as a table; the name of its column of odds states that they are no certificate."""
        import pandas as pd

        columns: dict[str, Any] = {"rank": self.rank.member, "row": np.arange(self.rank.member.size)}
        columns |= {name: _encodable(column) for name, column in _labels(self.losses).items()}
        frame = pd.DataFrame({**columns, COLUMN: self.odds.member})
        frame = frame.sort_values("rank", kind="stable", ignore_index=True)
        frame.attrs["note"] = self.note
        return frame

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the table of `to_frame` to a ``.csv`` or ``.parquet`` file, whole or not at all.

        In a CSV file a label that a spreadsheet would run as a formula gets an apostrophe in front; Parquet keeps labels
        as they are, and holds the note in its metadata.

        Raises:
            InputError: A path with another ending.
            OutputError: The path cannot be written.
        """
        file = Path(path)
        write_all({file: self.as_file(file)})

    def as_file(self, path: Path) -> str | bytes:
        """Return the content that `write` writes to a file of this name.

        Raises:
            InputError: A path with another ending than ``.csv`` and ``.parquet``.
        """
        plain = _as_text(self.to_frame(), harmless=path.suffix.lower() == ".csv")
        return table_content(plain, path, note=self.note)


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
    non-members at the end of the members and the same at the other end (a Laplace rule whose weight grows as the penalty of
    Woodroofe and Sun 1993 does). A record is one of those that its own odds are fitted to.

    Args:
        losses: Smaller means more like a member; at least two of each group. Rows of one id are ranked as one record.
        prior: In (0, 1): the odds are stated for records of which this share are members, however many were audited.
        rng: Deals the folds that choose the estimate.

    Raises:
        InputError: prior outside (0, 1).

    >>> rng = np.random.default_rng(0)
    >>> losses = Losses(member=rng.normal(-1, 1, 4000), nonmember=rng.normal(0, 1, 4000), id=(range(4000), range(4000)))
    >>> ranking = rank_records(losses, rng=rng)
    >>> first = losses.member[ranking.rank.member == ranking.rank.member.min()]
    >>> ranking.monotone, bool(first.max() < np.sort(losses.member)[400]), bool(ranking.odds.member.max() > 5)
    (True, True, True)
    """
    validate.instance("losses", losses, (Losses,))
    if losses.bits is not None:
        raise InputError(
            "losses must be those of single records to be ranked, got a summary; rank the losses themselves."
        )
    prior = validate.fraction("prior", prior)
    losses = per_record(losses).losses
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
        told=ratio.informative,
    )


def _labels(losses: Losses) -> dict[str, Array]:
    """Return the ids, groups and people of the members, as far as the losses have them."""
    return {name: pair.member for name in _LABELS if (pair := getattr(losses, name)) is not None}


def _encodable(column: Array) -> Array:
    """Return labels that a file can hold: a lone surrogate becomes a backslash escape."""
    if column.dtype.kind not in "UO":
        return column
    words = [
        word.encode("utf-8", "backslashreplace").decode() if isinstance(word, str) else word
        for word in column.tolist()
    ]
    return np.array(words, dtype=object)


# --- Training records to name as the most exposed ones, and when to name none ---
#
# To name a person is a statement about that person, so it is made only where the losses carry information about membership:
# the odds must predict the membership of held-out records better than chance does, and the audit must be one whose order
# means something. A record that is not named is not therefore safe.

_UNNAMED = "(not named)"


@dataclass(frozen=True)
class _Exposed:
    """The training records that come first, or the reason why none is named.

    Attributes:
        records: First ones first.
        reason: Reason why there are none, as a sentence; None if there are some.
    """

    records: tuple[TopRecord, ...]
    reason: str | None


def most_exposed(
    units: PersonsFound, *, checks: Iterable[Check], most: int, rng: np.random.Generator
) -> _Exposed:
    """Return the training records that come first in the ranking, by id; or the people, if they are the units.

    They are those of ``rank_records(units.losses, rng=rng).top(most)``: of records with equal odds those whose
    losses are further on the members' side.

    Args:
        units: Units of the audit.
        checks: Checks of the audit: none is named where a validity check failed or members have the higher losses.
        most: Largest number to name, 0 or more.
        rng: Deals the folds of the ranking.

    >>> from auditor.core.options import EachRecord
    >>> from auditor.records.labels import per_person
    >>> rng = np.random.default_rng(0)
    >>> ids = ([f"a{row}" for row in range(500)], [f"b{row}" for row in range(500)])
    >>> losses = Losses(member=rng.normal(-2, 1, 500), nonmember=rng.normal(0, 1, 500), id=ids)
    >>> named = most_exposed(per_person(losses, choice=EachRecord()), checks=(), most=2, rng=rng)
    >>> [item.rank for item in named.records], named.reason
    ([1, 1], None)
    """
    reason = _why_none(units, checks, most)
    if reason is not None:
        return _Exposed((), reason)
    ranking = rank_records(units.losses, rng=rng)
    if not ranking.told:
        return _Exposed(
            (),
            "No record is named: the losses predict the membership of held-out records no better than chance, so that"
            " any order of the records would be arbitrary.",
        )
    return _Exposed(_named(ranking, persons=units.combined, most=most), None)


def _why_none(units: PersonsFound, checks: Iterable[Check], most: int) -> str | None:
    checks = tuple(checks)
    if most == 0:
        return "No record is named; top_records=N names the most exposed by id, for the data's owner alone."
    if units.combined and units.losses.person is None:
        return "No record is named: scores stand for people, and people have no names."
    if not units.combined and units.losses.id is None:
        why = "records have no ids. Give the losses an id column to see which are most exposed"
        return f"No record is named: {why if units.losses.bits is None else 'a summary keeps no single records'}."
    if failed := failed_validity(checks):
        return (
            f"No record is named: a validity check failed ({failed[0].name}), so that the order may show how the groups were"
            " made up rather than the leakage of the model."
        )
    if any(check.name == "direction" and check.status is Status.WARN for check in checks):
        return (
            "No record is named: members have the higher losses, so the two groups may be swapped, and those named would"
            " then not be training records."
        )
    return None


def _named(ranking: Ranking, *, persons: bool, most: int) -> tuple[TopRecord, ...]:
    first, ranks = ranking.top(most), ranking.rank.member
    rows = np.array([item["row"] for item in first])
    for name, labels in _labels(ranking.losses).items():
        for item, missing in zip(first, text(labels[rows])[1].tolist(), strict=True):
            item[name] = None if missing else item[name]
    shared = {rank: int((ranks == rank).sum()) for rank in {item["rank"] for item in first}}
    return tuple(
        TopRecord(
            rank=item["rank"],
            id=str((item.get("person") if persons else None) or item.get("id") or _UNNAMED),
            group=item.get("group"),
            person=item.get("person"),
            odds=item["odds"],
            shared=shared[item["rank"]],
        )
        for item in first
    )


# --- The likelihood ratio of membership as a function of the loss: monotone, unless bands of losses are clearly more informative ---

_FOLDS = 5
_HALF = 0.5
_FEWEST_BANDS, _MOST_BANDS = 4, 256
_PER_BAND = 20  # records of the smaller group that a band holds on average, at least
_ERRORS = 2.0  # standard errors by which one estimate must do better than another
_GAIN = 1.0  # and by this much log-likelihood in all: below it the two fits are the same but for rounding
# Held-out records are scored on this many cells at most, of about equally many records: an isotonic fit has far fewer
# steps, so that more cells change its score by less than its rounding.
_CELLS = 1 << 16


@dataclass(frozen=True, eq=False)
class _Ratio:
    """The estimated ratio of members' to non-members' density.

    Attributes:
        levels: The ratio at each level of the loss, lowest first; above 0 and finite.
        monotone: Whether it is the isotonic estimate.
        falling: Whether a member's loss is more often below a non-member's than above it, or as often.
        informative: Whether it says more about held-out records than the numbers of members and non-members alone.
    """

    levels: Floats
    monotone: bool
    falling: bool
    informative: bool


def estimate(place: Integers, membership: Booleans, size: int, *, rng: np.random.Generator) -> _Ratio:
    """Return the ratio at each of so many levels, by the one of two estimates that does better on held-out records.

    Args:
        place: Level of each record's loss, in [0, size).
        membership: Mask of the members; at least two are and two are not.
        size: Number of levels.
        rng: Deals the folds.
    """
    member = np.bincount(place[membership], minlength=size)
    other = np.bincount(place[~membership], minlength=size)
    n1, n0 = int(member.sum()), int(other.sum())
    below = np.cumsum(member) - member
    falling = bool((other * (below + _HALF * member)).sum() >= _HALF * n1 * float(n0))
    if not falling:
        place, member, other = size - 1 - place, member[::-1], other[::-1]
    folds = np.empty(place.size, dtype=np.int8)
    deals = min(_FOLDS, n1, n0)
    for side, n in ((membership, n1), (~membership, n0)):
        folds[side] = rng.permutation(n) % deals
    # Where the middle of each level lies among all records, in (0, 1): ties stay together, membership has no say.
    records = member + other
    middle = (np.cumsum(records) - _HALF * records) / records.sum()
    # The cell of each level, without empty ones: every level its own, or parts that no band cuts.
    cells = np.arange(size)
    if size > _CELLS:
        parts = _parts(middle, _CELLS)
        cells = np.cumsum(np.diff(parts, prepend=parts[0]) > 0)
    width = int(cells[-1]) + 1
    key = (folds.astype(np.int64) * 2 + membership) * width + cells[place]
    counts = np.bincount(key, minlength=deals * 2 * width).reshape(deals, 2, width)
    held = np.stack([_isotonic(fold[1], fold.sum(axis=0)) for fold in _of_other_folds(counts)])
    # The largest power of two of bands for so many records of the smaller group.
    fit = min(_MOST_BANDS, min(n1, n0) // _PER_BAND)
    finest = 1 << (fit.bit_length() - 1) if fit >= _FEWEST_BANDS else 0
    starts = np.flatnonzero(np.diff(cells, prepend=-1))
    banded = _banded(counts, _parts(middle[starts], finest), finest) if finest else None
    monotone = banded is None or not _better(counts, banded.held, held)
    if banded is None or monotone:
        share = _isotonic(member, member + other)
    else:
        held, share = banded.held, banded.shares[_parts(middle, finest) // banded.width]
    # The shares of the other folds alone, whatever the loss.
    chance = _of_other_folds(counts.sum(axis=2))
    # A share is for the audited mix of members and non-members: divide its odds out.
    ratio = share / (1 - share) * (n0 / n1)
    return _Ratio(
        levels=ratio if falling else ratio[::-1],
        monotone=monotone,
        falling=falling,
        informative=_better(counts, held, chance[:, 1:] / chance.sum(axis=1, keepdims=True)),
    )


def _parts(middle: Floats, number: int) -> Integers:
    """Return the part that each level is in, of parts with equally many records."""
    return np.minimum(np.floor(middle * number).astype(np.int64), number - 1)


def _of_other_folds(counts: Integers) -> Integers:
    return np.asarray(counts.sum(axis=0) - counts)


def _better(counts: Integers, shares: Floats, rivals: Floats) -> bool:
    """Return whether these shares are clearly better for the records of the folds that they were not fitted to.

    Args:
        counts: Shape (folds, 2, cells), non-members first.
        shares: Shares of members, shape (folds, cells) or one that broadcasts to it.
        rivals: The shares that they are compared with.
    """
    gain = np.stack([np.log1p(-shares) - np.log1p(-rivals), np.log(shares) - np.log(rivals)], axis=1)
    n, total = int(counts.sum()), float((counts * gain).sum())
    variance = max(0.0, float((counts * np.square(gain)).sum()) / n - (total / n) ** 2)
    return total > max(_GAIN, _ERRORS * math.sqrt(n * variance))


@dataclass(frozen=True, eq=False)
class _Bands:
    """The number of bands that separates best, as the finest bands that make one, and the shares of members.

    Attributes:
        width: Number of the finest bands that make one.
        held: Shape (folds, cells), the shares by the other folds.
        shares: One for each band, from all records.
    """

    width: int
    held: Floats
    shares: Floats


def _banded(counts: Integers, band: Integers, finest: int) -> _Bands:
    rows = [np.bincount(band, weights=row, minlength=finest) for row in counts.reshape(-1, band.size)]
    in_bands = np.stack(rows).reshape(*counts.shape[:2], finest)
    best, result = -math.inf, np.empty((counts.shape[0], 0))
    number = _FEWEST_BANDS
    while number <= finest:
        merged = in_bands.reshape(*in_bands.shape[:2], number, -1).sum(axis=-1)
        shares = _smoothed(merged.sum(axis=0) - merged)
        words = float((merged[:, 1] * np.log(shares) + merged[:, 0] * np.log1p(-shares)).sum())
        if words > best:
            best, result = words, shares
        number *= 2
    width = finest // result.shape[1]
    whole = in_bands.sum(axis=0).reshape(1, 2, result.shape[1], width).sum(axis=-1)
    return _Bands(width, result[:, band // width], _smoothed(whole)[0])


def _smoothed(counts: Floats) -> Floats:
    """Return the shares of members in bands, from counts (set, side, band), with pseudo-records in the proportion of each set."""
    total = counts.sum(axis=2)
    weight = np.array([_pseudo(least) / least for least in total.min(axis=1).tolist()])
    member, other = ((weight * total[:, side])[:, None] for side in (1, 0))
    return np.asarray((counts[:, 1] + member) / (counts.sum(axis=1) + member + other), dtype=np.float64)


def _isotonic(member: Integers, total: Integers) -> Floats:
    """Return the isotonic share of members at every level, falling, and straight between the levels that have records."""
    seen = np.flatnonzero(total)
    n1, n0 = int(member.sum()), int(total.sum() - member.sum())
    # Pseudo-records in the proportion of the sample: counted in non-members at the members' end, and the reverse.
    first, last = _pseudo(n0) * (n1 + n0) / n0, _pseudo(n1) * (n1 + n0) / n1
    prior = n1 / (n1 + n0)
    values = np.concatenate([[prior], member[seen] / total[seen], [prior]])
    weights = np.concatenate([[first], total[seen], [last]])
    fit = scipy.optimize.isotonic_regression(values, weights=weights, increasing=False).x[1:-1]
    if seen.size == total.size:
        return np.asarray(fit, dtype=np.float64)
    return np.interp(np.arange(total.size), seen, np.asarray(fit, dtype=np.float64))


def _pseudo(size: int) -> float:
    return max(1.0, _HALF * math.cbrt(size))


# --- Secrets that so many tries write with some probability, by record ---


def extractable(losses: Losses, *, tries: int = 100, probability: float = 0.5) -> "pd.DataFrame":
    """Return the members whose secret so many tries write with at least this probability, most likely first.

    For the data's owner only: it names records. Another sampling rule or prompt may extract others.

    Args:
        losses: Negative logs of the chances of one sample, from `auditor.collect_texts` with a secret.
        tries: Number of samples for each record, 1 or more.
        probability: In (0, 1].

    Returns:
        A row for each of them: ``row`` in the members, their labels, ``probability`` of ``tries`` samples, and
        ``tries_needed`` for the given probability.

    Raises:
        InputError: Losses that are not of secrets.

    Source: Hayes et al. 2025, Definition 2, (n, p)-discoverable extraction.

    >>> losses = Losses([0.5, 9.0, 2.0], [9.0, 9.0], id=(["a", "b", "c"], ["d", "e"]), attacks={"extraction": "run"})
    >>> extractable(losses, tries=10)[["id", "tries_needed"]].values.tolist()
    [['a', 1], ['c', 5]]
    """
    import pandas as pd

    if losses.bits is not None or not are_chances(losses):
        raise InputError(
            "losses must be those of single secrets, as of auditor.collect_texts with secret, got"
            f" {'losses of another attack' if losses.bits is None else 'a summary'}."
        )
    tries = validate.at_least("tries", tries, least=1)
    probability = validate.fraction("probability", probability, one=True)
    chance = written(losses.member, tries)[0]
    order = np.argsort(-chance, kind="stable")
    order = order[chance[order] >= probability]
    labels = {name: column[order] for name, column in _labels(losses).items()}
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.ceil(np.log1p(-probability) / np.log1p(-np.exp(-losses.member[order])))
    # A chance of 1 needs one try; where the probability is 1, another chance has rounded to it within the tries.
    needed = np.nan_to_num(np.maximum(needed, 1), nan=1, posinf=tries).astype(np.int64)
    return pd.DataFrame({"row": order, **labels, "probability": chance[order], "tries_needed": needed})


# --- Tables of records as the content of files that other programs open ---

_STARTS_A_FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")  # the last four are wide ones
_PLAIN_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?", re.ASCII)


def _as_text(frame: "pd.DataFrame", *, harmless: bool) -> "pd.DataFrame":
    """Return labels of any type as text, with missing ones as missing."""
    result = frame.copy()
    for name in frame.columns:
        column = np.asarray(frame[name])
        if column.dtype.kind not in "iufb":
            words, missing = text(column)
            labels = [_harmless(word) if harmless else word for word in words.tolist()]
            result[name] = np.where(missing, np.array(None), np.array(labels, dtype=object))
    return result


def _harmless(label: str) -> str:
    """Return a label for a spreadsheet, with nothing that it would run, hide or turn; a plain number stays one."""
    runs = label.startswith(_STARTS_A_FORMULA) and not _PLAIN_NUMBER.fullmatch(label)
    return f"'{clean(label)}" if runs else clean(label)
