"""Identity of a record: ids, groups and people, compared by content, and the combination of several records of a person."""

import math
import warnings
import weakref
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast, get_args

import numpy as np

from auditor.core import (
    Array,
    Booleans,
    Floats,
    Integers,
    Losses,
    OutputPolicy,
    PerGroup,
    about,
    options,
    validate,
)
from auditor.core.errors import InputError

# --- Labels of records (ids, groups, people), compared by content rather than by type ---
#
# A whole number is the same label as an integer, as a float and as text; blanks, None and NaN are no labels.


_NO_LABEL = ("", "None", "nan", "NaN", "NaT", "<NA>")


@dataclass(frozen=True, eq=False)
class Codes:
    """One column of labels as numbers: equal labels have equal codes in both groups, and -1 means no label.

    Attributes:
        member: Shape (n1,), codes from 0, in the order in which the labels first appear.
        nonmember: Shape (n0,), with the same codes.
        labels: The label of each code.
    """

    member: Integers
    nonmember: Integers
    labels: Array

    @property
    def pooled(self) -> Integers:
        """The codes of both groups, members first."""
        return np.concatenate([self.member, self.nonmember])

    @property
    def in_both(self) -> Integers:
        """The codes that occur in both groups."""
        seen = [
            np.bincount(side + 1, minlength=self.labels.size + 1)[1:] > 0
            for side in (self.member, self.nonmember)
        ]
        return np.flatnonzero(seen[0] & seen[1])

    @property
    def units(self) -> PerGroup:
        """The unit of each record; a record without a label is one of its own."""
        pooled = self.pooled.copy()
        blank = pooled < 0
        pooled[blank] = self.labels.size + np.arange(int(blank.sum()))
        return PerGroup(*np.split(pooled, [self.member.size]))


def text(column: Array) -> tuple[Array, Booleans]:
    """Return the labels as text, and which records have none.

    >>> text(np.array([7.0, np.nan]))
    (array(['7', 'nan'], dtype=object), array([False,  True]))
    """
    at, words, missing = _spelled(column)
    return words.astype(object)[at], missing[at]


def _spelled(column: Array, *, whole: bool = False) -> tuple[Integers, Array, Booleans]:
    """Return the place of each label among some that include all distinct ones, these as text, and which of them are none.

    With ``whole``, the column is of integers, and they stay so.
    """
    kind = column.dtype.kind
    values = column if whole or kind in "fOSU" else column.astype(np.str_)  # of times, what NumPy writes
    at, items = _distinct(values)
    stripped = items.dtype.kind == "U" and items is not values and np.array_equal(np.char.strip(items), items)
    # Objects, for an array of text is as wide in every row as the longest.
    spelled = items if whole or stripped else np.array([*map(_word, items.tolist())], dtype=object)
    # Text is taken at its word, so that a person called None is one; other types spell missing values like this.
    return at, spelled, np.isin(spelled, () if whole else ("",) if kind in "US" else _NO_LABEL)


_PLAIN = {str, type(None)}  # types that Arrow spells as Python does
_SEVERAL = 1_000  # rows that repay its import
_WORD = 8  # bytes that it compares as one number


def _distinct(values: Array) -> tuple[Integers, Array]:
    """Return the place of each entry among the distinct ones in order of appearance, and these; all where Arrow cannot tell."""
    every, kind = (np.arange(values.size), values), values.dtype.kind
    if values.size < _SEVERAL or (kind == "O" and not {*map(type, values.tolist())} <= _PLAIN):
        return every
    import pyarrow as pa

    if kind == "O":
        try:
            entries = pa.array(values)
        except (ValueError, pa.ArrowException):  # text with half a character
            return every
    else:  # as bytes, which need not be decoded row by row; of text, as few for each letter as will do
        letters = np.ascontiguousarray(values).view(np.uint32 if kind == "U" else np.uint8)
        letters = letters.reshape(values.size, -1)
        rows = np.zeros((values.size, max(_WORD, letters.shape[1])), np.min_scalar_type(letters.max()))
        rows[:, : letters.shape[1]] = letters
        row = pa.int64() if rows.strides[0] == _WORD else pa.binary(rows.strides[0])
        entries = pa.Array.from_buffers(row, values.size, [None, pa.py_buffer(rows)])
    at = entries.dictionary_encode(null_encoding="encode").indices.to_numpy()
    return at, values[np.flatnonzero(np.diff(np.maximum.accumulate(at), prepend=-1))]


def _numbered(words: Array) -> tuple[Integers, Array]:
    """Return the place of each word among the distinct ones in order of appearance, and these."""
    at, labels = _distinct(words)
    if labels is not words:
        return at, labels
    places = {word: place for place, word in enumerate(dict.fromkeys(words.tolist()))}
    at = np.array([places[word] for word in words.tolist()], dtype=np.int64)
    return at, np.array([*places], dtype=object)


def is_missing(value: Any) -> bool:
    """Return whether a cell holds no value: None, NaN, or the missing number or time of pandas.

    >>> [is_missing(value) for value in (None, float("nan"), "", 0)]
    [True, True, False, False]
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    unequal = value != value  # noqa: PLR0124 - as NaN is to itself; of an array this is no truth value
    return isinstance(unequal, bool | np.bool_) and bool(unequal)


def codes(pair: PerGroup) -> Codes:
    """Return a column of labels as numbers that are equal where the labels are, in both groups.

    >>> coded = codes(PerGroup(np.array(["b", "a", ""]), np.array([" a", "c"])))
    >>> coded.member, coded.nonmember, coded.labels.tolist()
    (array([ 0,  1, -1]), array([1, 2]), ['b', 'a', 'c'])
    """
    key = id(pair.member), id(pair.nonmember)
    if (known := _CODED.get(key)) is not None:
        return known
    whole = pair.member.dtype == pair.nonmember.dtype and pair.member.dtype.kind in "iu"
    (member, *first), (nonmember, *second) = (_spelled(column, whole=whole) for column in pair)
    words, missing = map(np.concatenate, zip(first, second, strict=True))
    numbers = np.full(words.size, -1)
    numbers[~missing], labels = _numbered(words[~missing] if missing.any() else words)
    sides = np.split(numbers, [first[0].size])
    result = Codes(sides[0][member], sides[1][nonmember], labels)
    if not any(column.flags.writeable for column in pair):
        _keep(pair, result)
    return result


def _keep(pair: PerGroup, result: Codes) -> None:
    key = id(pair.member), id(pair.nonmember)
    _CODED[key] = result
    for column in pair:
        column.setflags(write=False)
        weakref.finalize(column, _CODED.pop, key, None)


# Of the read-only columns that are alive: an audit reads each several times.
_CODED: dict[tuple[int, int], Codes] = {}
# Before an audit: such columns may be views of what the caller changed since the last one.
forget = _CODED.clear


def _word(item: Any) -> str:
    if type(item) is str:  # most are
        return item.strip()
    if isinstance(item, bytes):
        item = item.decode("utf-8", errors="backslashreplace")
    return (str(int(item)) if isinstance(item, float) and item.is_integer() else str(item)).strip()


# --- How many independent records are clustered ones worth? The design effect of people with several records ---


_LEAST = 2


def effective_numbers(losses: Losses, owners: PerGroup) -> tuple[float, float]:
    """Return n / (1 + (m - 1) ICC) of each group, with m the size of a random record's person, sum(m_j^2)/n.

    The intraclass correlation is that of the placements (the share of the other group above each record), since the
    variance of the AUC is the variance of their means (DeLong et al. 1988) and the mean of n records in clusters of
    m_j with correlation ICC has the variance s^2/n (1 + (sum(m_j^2)/n - 1) ICC) (Kish 1965).

    Args:
        losses: The records.
        owners: The person of each record, as whole numbers.

    >>> losses = Losses(member=[0.0, 0.0, 1.0, 1.0], nonmember=[0.5, 0.5])
    >>> effective_numbers(losses, PerGroup(np.array([0, 0, 1, 1]), np.array([2, 3])))
    (2.0, 2.0)
    """
    result = []
    sides = ((losses.member, losses.sorted_nonmember), (losses.nonmember, losses.sorted_member))
    for (values, other), owner in zip(sides, owners, strict=True):
        counts = np.bincount(owner)
        sizes = counts[counts > 0]
        if sizes.size == values.size:
            result.append(float(values.size))
            continue
        unit = (np.cumsum(counts > 0) - 1)[owner]
        order, placements = np.argsort(values), np.empty(values.size)
        ordered = values[order]  # neighbours are found near each other
        below = np.searchsorted(other, ordered)
        tied = other[np.minimum(below, other.size - 1)] == ordered
        placements[order] = 2 * below
        placements[order[tied]] += np.searchsorted(other, ordered[tied], side="right") - below[tied]
        icc = _intraclass(placements / (2 * other.size), unit, sizes)
        weighted = float(np.square(sizes, dtype=np.float64).sum()) / values.size
        result.append(values.size / (1 + (weighted - 1) * icc))
    return result[0], result[1]


def _intraclass(scores: Floats, unit: Integers, sizes: Integers) -> float:
    """Return the intraclass correlation by one-way analysis of variance, in [0, 1]; 1 where it cannot be known."""
    n, persons = scores.size, sizes.size
    if persons < _LEAST:
        return 1.0
    means = np.bincount(unit, weights=scores) / sizes
    between = float((sizes * np.square(means - scores.mean())).sum()) / (persons - 1)
    within = float(np.square(scores - means[unit]).sum()) / (n - persons)
    typical = (n - float(np.square(sizes, dtype=np.float64).sum()) / n) / (persons - 1)
    spread = between + (typical - 1) * within
    return min(1.0, max(0.0, (between - within) / spread)) if spread > 0 else 1.0


# --- Data subjects: several records of one become one score, and the consequences for an audit ---
#
# Records of one person are not independent, so intervals that count records are too narrow. Privacy is promised to
# people, so the units to count are people.


MIXED = "(mixed)"
_SURELY = 1e-3
_EXACT = 10_000  # pairs of people up to which the exact law of the test of sizes is counted out


@dataclass(frozen=True, eq=False)
class RecordsFound:
    """The losses with one score per id, and the combined rows; pairs are (members, non-members).

    Attributes:
        losses: One score per id and group, or the rows as they were.
        rows: Numbers of rows.
        sizes: Number of rows behind each score.
        largest: Most rows of one id within a group.
        sizes_p_value: p-value of the hypothesis that ids have as many rows among the members as among the non-members; 1 where all
            rows of an id have one loss, so that their number does not show.
        combined: Whether any score stands for several rows.
    """

    losses: Losses
    rows: tuple[int, int]
    sizes: PerGroup
    largest: int = 1
    sizes_p_value: float = 1.0
    combined: bool = False


def per_record(losses: Losses, *, by: str = "mean") -> RecordsFound:
    """Return one score per id and group: rows that share an id are one record, and not independent ones.

    An id counts within a person, where records name their person. Rows stay as they are where no id repeats within a group,
    and where fewer than two ids are in one.

    Args:
        losses: Losses with ``id``, or none is combined.
        by: ``mean``, ``min`` or ``max`` of the losses.

    >>> losses = Losses(member=[0.1, 0.5, 0.4], nonmember=[0.3, 0.9], id=(["a", "a", "b"], ["c", "d"]))
    >>> records = per_record(losses, by="min")
    >>> records.losses.member, records.sizes.member, records.largest
    (array([0.1, 0.4]), array([2, 1]), 2)
    """
    rows = losses.n_member, losses.n_nonmember
    ones = PerGroup(*(np.broadcast_to(np.int64(1), 0 if losses.bits else n) for n in rows))
    if not losses.ids_may_repeat:
        return RecordsFound(losses, rows, ones)
    sides = _in_units(losses, _within_persons(losses), by)
    sizes = PerGroup(*(np.diff(np.append(side.starts, side.order.size)) for side in sides))
    largest = int(max(side.max() for side in sizes))
    if largest == 1 or min(side.size for side in sizes) < _LEAST:
        return RecordsFound(losses, rows, ones, largest)
    p_value = 1.0 if all(side.alike for side in sides) else _sizes_p_value(*sizes)
    losses = _combined(losses, sides, by, f"one score per id: the {by} of the losses of its rows")
    return RecordsFound(losses, rows, sizes, largest, p_value, combined=True)


def _within_persons(losses: Losses) -> Codes:
    """Return the ids as numbers; equal ids of different people are different records."""
    ids = codes(cast("PerGroup", losses.id))
    if losses.person is None:
        return ids
    who = codes(losses.person)
    code, owner = ids.pooled, who.pooled
    joined = np.where(code < 0, -1, code * (who.labels.size + 1) + owner + 1)
    numbers = np.where(code < 0, -1, np.unique(joined, return_inverse=True)[1])
    member, nonmember = np.split(numbers, [ids.member.size])
    return Codes(member, nonmember, np.arange(numbers.max() + 1))


@dataclass(frozen=True, eq=False)
class PersonsFound:
    """The losses with one score per unit, and the spread of records and people; pairs are (members, non-members).

    Attributes:
        losses: One score per person and group, or one per record.
        choice: The units that were chosen.
        by_id: The records, of which several rows may have had one id.
        named: Whether records name their person at all.
        records: Numbers of records.
        persons: Numbers of people; a record that names none counts as a person of its own.
        unlabelled: Numbers of records that name no person.
        largest: Most records of one person within a group.
        in_both: People with records in both groups.
        in_both_by_chance: Expected number, had a coin decided for each record.
        several: People with two or more records, in both groups together.
        sizes_p_value: p-value of the hypothesis that people have as many records among the members as among the non-members.
        left_out: People with records in both groups who were left out, since membership was decided by person.
        trained: Fewest and most training records behind a score.
    """

    losses: Losses
    choice: options.Persons
    by_id: RecordsFound
    named: bool
    records: tuple[int, int]
    persons: tuple[int, int]
    unlabelled: tuple[int, int] = (0, 0)
    largest: int = 1
    in_both: int = 0
    in_both_by_chance: float = 0.0
    several: int = 0
    sizes_p_value: float = 1.0
    left_out: tuple[str, ...] = ()
    trained: tuple[int, int] = (1, 1)

    @cached_property
    def effective(self) -> tuple[float, float]:
        """Records divided by the design effect of their people; see `effective_numbers`."""
        losses = self.by_id.losses
        return (
            self.records if losses.person is None else effective_numbers(losses, codes(losses.person).units)
        )

    @property
    def combined(self) -> bool:
        """Whether any score stands for several records."""
        return isinstance(self.choice, options.OnePerPerson) and self.largest > 1

    @property
    def by_person(self) -> bool:
        """Whether fewer people have records in both groups than independent coins of the records would have put there."""
        seen, expected = self.in_both, self.in_both_by_chance
        return seen < expected and _tail(seen, expected, self.several) < _SURELY

    @property
    def group(self) -> int:
        """Number of records for which a claim about single ones is judged: 1 if a score stands for a person, or for one record."""
        return 1 if self.combined else self.trained[1]


def per_person(losses: Losses, *, choice: options.Persons) -> PersonsFound:
    """Return one score per person and group, or per record, with the numbers of both.

    Members and non-members are combined apart. A person with records in both groups is left out of `OnePerPerson` where
    membership was decided by person (see `mechanism_reason`), and has one score in each group elsewhere. The
    result keeps a person's group where all records agree and says ``(mixed)`` where they do not; ids and
    fingerprints, and whether records are classified correctly, and odds of membership,
    are kept only if they agree within every person. Rows of one id are combined first, `per_record`.

    Args:
        losses: Losses with ``person``, for `OnePerPerson`.
        choice: `EachRecord` or `OnePerPerson`.

    Raises:
        InputError: One score per person, of records that do not name their person, or a group has records of fewer than two.

    >>> losses = Losses(
    ...     member=[0.1, 0.5, 0.4], nonmember=[0.3, 0.9], person=(["ann", "ann", "bob"], ["cy", "di"])
    ... )
    >>> units = per_person(losses, choice=options.OnePerPerson("min"))
    >>> units.losses.member, units.records, units.persons
    (array([0.1, 0.4]), (3, 2), (2, 2))
    """
    validate.instance("losses", losses, (Losses,))
    validate.instance("persons", choice, get_args(options.Persons))
    units = _spread(per_record(losses, by=choice.by), choice)
    return _per_person(units) if isinstance(choice, options.OnePerPerson) else units


def _per_person(units: PersonsFound) -> PersonsFound:
    """Return one score per person and group, from units that are records."""
    if not units.named:
        raise InputError(
            "persons must be auditor.EachRecord() where records do not name their person, got"
            f" {units.choice!r}; give the losses a person column."
        )
    if units.in_both and units.by_person:
        by_id, names = without_split(units)
        units = replace(_spread(by_id, units.choice), left_out=names)
    sides = _in_units(units.losses, codes(cast("PerGroup", units.losses.person)), units.choice.by)
    for side, items in zip(("member", "non-member"), sides, strict=True):
        if items.scores.size < _LEAST:
            raise InputError(
                f"{side} losses must belong to at least {_LEAST} people, got {items.scores.size}; audit each record, or"
                " add persons."
            )
    pairs = zip(_trained(units.by_id, units.choice), sides, strict=True)
    held = np.concatenate([np.add.reduceat(size[items.order], items.starts) for size, items in pairs])
    by = units.choice.by
    combined = _combined(units.losses, sides, by, f"one score per person: the {by} of their losses")
    return replace(units, losses=combined, trained=(int(held.min()), int(held.max())))


def default_units(losses: Losses) -> PersonsFound:
    """Return people, where the records name them and were not split record by record; else one unit per record."""
    units = per_person(losses, choice=options.EachRecord())
    split = units.in_both and not units.by_person
    if units.largest == 1 or split or min(units.persons) < _LEAST:
        return units
    return _per_person(replace(units, choice=options.OnePerPerson()))


def _spread(by_id: RecordsFound, choice: options.Persons) -> PersonsFound:
    """Return how records and people are spread, with the records as they are."""
    losses = by_id.losses
    records = losses.n_member, losses.n_nonmember
    held = _trained(by_id, choice)
    trained = (1, 1)
    if held.member.size:
        trained = (int(min(side.min() for side in held)), int(max(side.max() for side in held)))
    if losses.person is None:
        return PersonsFound(losses, choice, by_id, False, records, records, trained=trained)
    persons = codes(losses.person)
    sizes = [np.trim_zeros(np.sort(np.bincount(owner))) for owner in persons.units]
    both, by_chance = _in_both(persons, losses.inclusion)
    together = np.bincount(persons.pooled + 1)[1:]
    return PersonsFound(
        losses=losses,
        choice=choice,
        by_id=by_id,
        named=True,
        records=records,
        persons=(sizes[0].size, sizes[1].size),
        unlabelled=(int((persons.member < 0).sum()), int((persons.nonmember < 0).sum())),
        largest=int(max(sizes[0].max(), sizes[1].max())),
        in_both=both,
        in_both_by_chance=by_chance,
        several=int((together > 1).sum()),
        sizes_p_value=_sizes_p_value(*sizes),
        trained=trained,
    )


def _trained(by_id: RecordsFound, choice: options.Persons) -> PerGroup:
    """Return the number of training records behind each record: its rows, unless they are scorings of one."""
    return PerGroup(*map(np.ones_like, by_id.sizes)) if choice.rows is options.Rows.SCORINGS else by_id.sizes


def row_units(losses: Losses, *, persons: bool) -> PerGroup:
    """Return the unit of each row as a whole number: its person with ``persons``, else its id; itself where it has none."""
    if persons and losses.person is not None:
        return codes(losses.person).units
    if losses.id is not None:
        return _within_persons(losses).units
    return PerGroup(np.arange(losses.n_member), losses.n_member + np.arange(losses.n_nonmember))


def without_split(units: PersonsFound) -> tuple[RecordsFound, tuple[str, ...]]:
    """Return the records of all people but those with records in both groups, and the names of these; all where too few are left."""
    by_id = units.by_id
    persons = codes(cast("PerGroup", by_id.losses.person))
    both = persons.in_both
    remaining = [~np.isin(column, both) for column in (persons.member, persons.nonmember)]
    left = [np.unique(owner[side]).size for owner, side in zip(persons.units, remaining, strict=True)]
    if min(left) < _LEAST:
        return by_id, ()
    step = f"{about(both.size)} people with records in both groups left out"
    losses = by_id.losses.take(member=remaining[0], nonmember=remaining[1], step=step)
    sizes = PerGroup(*(size[side] for size, side in zip(by_id.sizes, remaining, strict=True)))
    return replace(by_id, losses=losses, sizes=sizes), tuple(map(str, persons.labels[both].tolist()))


def _tail(seen: int, expected: float, count: int) -> float:
    """Return a bound on the chance that a sum of so many independent coins is as far from its mean as this, to the same side.

    exp(-n KL(s/n, p)) with p the mean of their probabilities, whatever these are: Hoeffding 1963, Theorem 1.
    """
    from scipy.special import rel_entr

    share, mean = seen / count, min(expected / count, 1.0)
    return math.exp(-count * float(rel_entr(share, mean) + rel_entr(1 - share, 1 - mean)))


def mechanism_reason(units: PersonsFound, *, strata: bool = False) -> str | None:
    """Return why these units support no statement about the training algorithm, or None.

    Three things forbid one. A combined score of a person in both groups rests on as many records as happened to be
    members, so it depends on membership without any leak. And records whose people are never, or hardly ever, split
    had one coin per person: a test that counts a coin for each record is wrong then (the number of split people is
    compared with independent coins by Hoeffding's bound, at 1e-3). So were the records of people that are split too often
    dealt out between the groups, unless pairs are drawn within people. So were rows of one id that could not be combined.

    Args:
        units: The units.
        strata: Whether pairs are drawn within strata, which people may be.
    """
    if units.by_id.largest > 1 and not units.by_id.combined:
        return "ids repeat, and a group has fewer than two of them, so that records are not independent"
    if units.combined and units.in_both:
        return (
            f"{about(units.in_both)} people have records in both groups, so how many records their combined score rests on"
            " depends on which of them were members; audit each record, or split by person"
        )
    expected, seen = units.in_both_by_chance, units.in_both
    if not units.combined and units.by_person:
        return (
            f"{about(seen)} people have records in both groups where independent coins would have put about"
            f" {expected:,.0f}: membership was decided by person, so records are not independent; audit one score per"
            " person"
        )
    if not (units.combined or strata) and seen > expected and _tail(seen, expected, units.several) < _SURELY:
        return (
            f"{about(seen)} people have records in both groups where independent coins would have put about {expected:,.0f}: the"
            " records of a person were dealt between the groups, so they are not independent; give the person as the group of each"
            " record and declare a stratified random split"
        )
    return None


def claim_reason(units: PersonsFound, claim: options.TrainingClaim | None = None) -> str | None:
    """Return why a bound on these units cannot judge a claim, or None.

    Adding or removing a person with k records moves a training algorithm by up to k times the epsilon of one record. A
    claim for people, or for groups of records (`PersonsFound.group`), allows for that.
    """
    most = units.trained[1]
    if units.combined and most > 1 and not options.for_persons(claim):
        return (
            f"scores combine up to {most:,} records of one person, so the bound is about adding or removing a person,"
            " and a claim about single records allows a person with several records a larger epsilon"
        )
    return group_reason(units.trained, claim)


def group_reason(trained: tuple[int, int], claim: options.TrainingClaim | None) -> str | None:
    """Return why scores that stand for so few and so many records cannot judge a claim that is converted for them, or None."""
    least, most = trained
    stated = None if claim is None else claim.records_per_person
    if stated is not None and stated < most:
        return (
            f"a score stands for up to {most:,} records, and the claim is for people with up to {stated:,}; state it for"
            f" records_per_person={most}"
        )
    converted = stated is not None or not options.for_persons(claim)
    if claim is not None and converted and least < most and options.for_equal_groups(claim):
        return (
            f"scores stand for {least:,} to {most:,} records, and a claim about replaced records alone says nothing of"
            " training sets of different sizes; audit equally many rows of each"
        )
    return None


def _in_both(persons: Codes, inclusion: PerGroup | None) -> tuple[int, float]:
    """Return the number of people with records in both groups, and the number expected by independent coins, of known odds if any."""
    count, owner = persons.labels.size, persons.pooled
    sums: list[Array]
    if inclusion is None:
        share, held = persons.member.size / owner.size, np.bincount(owner + 1, minlength=count + 1)[1:]
        sums = [math.log(share) * held, math.log1p(-share) * held]
    else:
        odds, names = np.concatenate(inclusion), owner >= 0
        logs = np.log(odds), np.log1p(-odds)
        sums = [np.bincount(owner[names], weights=log[names], minlength=count) for log in logs]
    alone = sum(map(np.exp, sums))
    return persons.in_both.size, max(0.0, float(np.sum(1 - alone)))


def _sizes_p_value(member: Integers, nonmember: Integers) -> float:
    """Return the p-value of Kolmogorov and Smirnov's two-sample test of the records per person, which ties make conservative.

    The asymptotic law calls three people against three surely different, where chance alone gives one in ten.
    """
    if max(member.max(), nonmember.max()) == 1 or min(member.size, nonmember.size) < _LEAST:
        return 1.0
    from scipy import stats

    if member.size * nonmember.size > _EXACT:
        return float(stats.ks_2samp(member, nonmember, method="asymp").pvalue)
    with warnings.catch_warnings():
        # Rounding can lift an exact p of 1 above 1, and SciPy then says that it takes the asymptotic one.
        warnings.simplefilter("ignore", RuntimeWarning)
        return float(stats.ks_2samp(member, nonmember, method="exact").pvalue)


# --- One score per person --------------------------------------------------------------------------


def _in_units(losses: Losses, units: Codes, by: str) -> list["_PerPerson"]:
    """Return both groups in order of their units."""
    pairs = zip((losses.member, losses.nonmember), units.units, strict=True)
    return [_PerPerson.of(values, owner, by) for values, owner in pairs]


def _combined(losses: Losses, sides: list["_PerPerson"], by: str, step: str) -> Losses:
    labels: dict[str, Any] = {
        name: _one_label_each(pair, sides, mixed=name in ("group", "label"))
        for name, pair in losses.labelled.items()
    }
    # Losses under a policy of outputs are audited like these, from the records on.
    scores = {
        name: PerGroup(*(side.again(values, by) for side, values in zip(sides, pair, strict=True)))
        for name, pair in losses.policies.items()
        if OutputPolicy(name).of_score
    }
    labels |= {"policies": scores, "history": (*losses.history, step)}
    return replace(losses, member=sides[0].scores, nonmember=sides[1].scores, **labels)


@dataclass(frozen=True, eq=False)
class _PerPerson:
    """One group in order of person and then of loss: the order, where each person's records begin, and their scores.

    ``alike`` says whether the losses of each person are equal.
    """

    order: Integers
    starts: Integers
    scores: Floats
    alike: bool

    @classmethod
    def of(cls, values: Floats, owner: Integers, by: str) -> "_PerPerson":
        by_value = np.argsort(values)
        # Owner and rank in one number: NumPy sorts numbers faster than it finds their order.
        owned, rank = np.divmod(np.sort(owner[by_value] * owner.size + np.arange(owner.size)), owner.size)
        order = by_value[rank]
        starts = np.flatnonzero(np.concatenate([[True], owned[1:] != owned[:-1]]))
        ordered = values[order]
        low, high = (_scores(ordered, starts, end) for end in ("min", "max"))
        return cls(order, starts, _scores(ordered, starts, by), np.array_equal(low, high))

    def again(self, values: Floats, by: str) -> Floats:
        """Return one score per person from other scores of the same records."""
        owner = np.empty(values.size, dtype=np.int64)
        owner[self.order] = np.repeat(
            np.arange(self.starts.size), np.diff(np.append(self.starts, values.size))
        )
        return type(self).of(values, owner, by).scores


def _scores(ordered: Floats, starts: Integers, by: str) -> Floats:
    """Return one score per person, from losses in order of person and then of loss."""
    counts = np.diff(np.append(starts, ordered.size))
    low, high = ordered[starts], ordered[starts + counts - 1]
    if by != "mean":
        return low if by == "min" else high
    # Divided before they are added, so that losses near the largest double do not overflow; rounding may still lead
    # just outside the losses, and equal losses must have exactly their value as mean.
    with np.errstate(over="ignore"):
        mean = np.add.reduceat(ordered / np.repeat(counts, counts), starts)
    return np.clip(mean, low, high)


def _one_label_each(pair: PerGroup, sides: list[_PerPerson], *, mixed: bool) -> PerGroup | None:
    """Return one label per person: the shared one. If they differ it is "(mixed)", or the column is dropped."""
    coded = codes(pair)
    parts: list[tuple[Array, Booleans, Integers]] = []
    for column, code, side in zip(pair, (coded.member, coded.nonmember), sides, strict=True):
        ordered = code[side.order]
        same = np.minimum.reduceat(ordered, side.starts) == np.maximum.reduceat(ordered, side.starts)
        parts.append((column[side.order[side.starts]], same, ordered[side.starts]))
    firsts, agree, numbers = zip(*parts, strict=True)
    if all(map(np.all, agree)):
        result = PerGroup(*firsts)
        if all((np.diff(side[side >= 0]) >= 0).all() for side in numbers):  # still in order of appearance
            _keep(result, Codes(numbers[0], numbers[1], coded.labels))
        return result
    if not mixed:
        return None
    spelled = zip(map(text, firsts), agree, strict=True)
    return PerGroup(
        *(np.where(same, np.where(missing, "", words), MIXED) for (words, missing), same in spelled)
    )
