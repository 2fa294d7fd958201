"""Do members and non-members come from one population?"""

from typing import Any

import numpy as np
import numpy.typing as npt

from auditor import _validate
from auditor._format import percent, unit
from auditor._labels import codes
from auditor.errors import InputError
from auditor.features import Features, Table
from auditor.fingerprints import fingerprints
from auditor.values import Check, PerGroup, Status

__all__ = ["shift"]

Rows = npt.NDArray[np.intp]

_CHANCE = 0.5
_FEWEST = 25  # records of a group, of which a fifth is only learnt from
_LARGEST = 20_000
_SMALLEST = 2_000
_CELLS = 4_000_000  # of many columns fewer records are looked at
_COMMON = 10  # records of one content from which they are a common value, and not copies


def shift(
    features: Features | None = None,
    *,
    person: PerGroup | None = None,
    rng: np.random.Generator | None = None,
    false_alarms: float = 0.01,
) -> Check:
    """Fail when the features alone, without the model, tell members from non-members.

    A classifier two-sample test on at most 20,000 records (fewer of very many columns): each block of records, in
    random order, is scored by classifiers that saw only the blocks before it. One record counts of each person, and one
    of each content, so that copies are no evidence; but every record of a content that ten or more records have, which
    is a common value and no copy.

    Args:
        features: Of the audited records; None where only the losses are known.
        person: The data subject of each record, if known: `Losses.person`.
        rng: Orders the records; needed with features.
        false_alarms: Probability of a failure where the groups are alike, in (0, 0.5).

    Raises:
        InputError: Features without an ``rng``, or cells that are no plain values.

    Source: Lopez-Paz and Oquab 2017, with the order of the blocks [own].

    >>> rng = np.random.default_rng(0)
    >>> shift(Features(member=rng.normal(1, 1, 300), nonmember=rng.normal(0, 1, 300)), rng=rng).status
    <Status.FAIL: 'fail'>
    >>> shift(None).status
    <Status.UNKNOWN: 'unknown'>
    """
    if features is None:
        message = (
            "From losses alone, a difference between the two populations cannot be told from memorisation: every number"
            " here assumes that the non-members are drawn like the members (same time, source and filters)."
        )
        return Check("shift", Status.UNKNOWN, message)
    _validate.instance("features", features, (Features,))
    if rng is None:
        raise InputError("shift needs an rng with features, got None; pass rng=numpy.random.default_rng(0).")
    false_alarms = _validate.fraction("false_alarms", false_alarms)
    member, nonmember = features.tables
    (first, second), left_out = _looked_at(features, person, rng)
    if min(first.size, second.size) < _FEWEST:
        message = (
            f"Only {first.size:,} member and {second.size:,} non-member records are left, one of each content and person: too few to look"
            f" for a shift between the groups, which needs {_FEWEST} of each."
        )
        return Check("shift", Status.UNKNOWN, message, {"left_out": left_out})
    found = _tested(member.rows(first), nonmember.rows(second), 1 - 2 * false_alarms, rng)
    return _judged({**found, "left_out": left_out})


def _looked_at(
    features: Features, person: PerGroup | None, rng: np.random.Generator
) -> tuple[tuple[Rows, Rows], int]:
    """Positions of the records to test, and how many were left out as copies, or as of a person already seen."""
    n, hashes = features.n_member, np.concatenate(fingerprints(features))
    unit, size = np.unique(hashes, return_inverse=True, return_counts=True)[1:]
    # In random order, the first of each content and person stays: which group it comes from is left to chance.
    kept = _first_of(
        rng.permutation(hashes.size), np.where(size[unit] < _COMMON, unit, -1 - np.arange(unit.size))
    )
    if person is not None:
        found = codes(person)
        owner = np.concatenate([found.member, found.nonmember])
        blank = owner < 0
        owner[blank] = owner.size + np.arange(int(blank.sum()))
        kept = _first_of(kept, owner)
    sides = kept[kept < n], kept[kept >= n] - n
    limit = int(np.clip(_CELLS // max(1, len(features.names)), _SMALLEST, _LARGEST))
    small = min(limit // 2, *(side.size for side in sides))
    chosen = tuple(side[: limit - small] for side in sides)
    return (chosen[0], chosen[1]), int(hashes.size - kept.size)


def _first_of(order: Rows, labels: npt.NDArray[Any]) -> Rows:
    """The first of each label, in the given order."""
    return order[np.sort(np.unique(labels[order], return_index=True)[1])]


def _tested(member: Table, nonmember: Table, confidence: float, rng: np.random.Generator) -> dict[str, Any]:
    from auditor.checks._encoding import encoded
    from auditor.checks._two_sample import differences, separation

    columns = encoded(member, nonmember, rng=rng)
    label = np.arange(member.n + nonmember.n) < member.n
    details: dict[str, Any] = {
        "members": member.n,
        "nonmembers": nonmember.n,
        "columns": len(set(columns.names)),
        "confidence": confidence,
    }
    if not columns.names:
        return {**details, "auc": _CHANCE, "lower": _CHANCE, "upper": _CHANCE, "most_different": None}
    area = separation(columns.values, member=label, confidence=confidence, rng=rng)
    most = columns.names[int(np.argmax(differences(columns.values, member=label)))]
    return {**details, "auc": area.value, "lower": area.lower, "upper": area.upper, "most_different": most}


def _judged(details: dict[str, Any]) -> Check:
    level = percent(details["confidence"], toward="down")
    seen = (
        f"AUC {unit(details['auc'])}, {unit(details['lower'], toward='down')} to {unit(details['upper'], toward='up')}"
        f" at {level} confidence, on {details['members']:,} members and {details['nonmembers']:,} non-members; 0.5 is chance"
    )
    if details["lower"] > _CHANCE:
        message = (
            f"Members and non-members differ before any model is asked: a classifier tells them apart by their features"
            f" alone ({seen}; most by {details['most_different']!r}). A difference in their losses is then no evidence of"
            " memorisation: draw the non-members like the members and audit again."
        )
        return Check("shift", Status.FAIL, message, details)
    message = (
        f"By the features alone, a classifier does not tell members from non-members ({seen}): no shift was found, which is"
        " no proof that there is none."
    )
    return Check("shift", Status.OK, message, details)
