"""Checks that members and non-members come from one population."""

from typing import Any

import numpy as np

from auditor.checks.answers import answer, said
from auditor.core import Check, Estimate, Floats, Losses, PerGroup, about, percent, unit
from auditor.core.values import Array, Booleans, Integers
from auditor.curves.tradeoff import count
from auditor.records.features import (
    CLASSIFIERS,
    Features,
    Table,
    classified,
    differences,
    encoded,
    fingerprints,
)
from auditor.records.labels import codes

_FALSE_ALARMS = 0.01  # where the groups are alike
_CHANCE = 0.5
_FEWEST = 25  # records of a group, of which a fifth is only learnt from
_LARGEST = 20_000
_SMALLEST = 2_000
_CELLS = 4_000_000  # of many columns fewer records are looked at
_COMMON = 10  # records of one content from which they are a common value, and not copies


def shift(
    features: Features | None,
    *,
    person: PerGroup | None = None,
    inclusion: PerGroup | None = None,
    coins: bool = False,
    rng: np.random.Generator,
) -> Check:
    """Fail when the features alone, without the model, separate members from non-members.

    A classifier two-sample test on at most 20,000 records (fewer of very many columns): each block of records, in
    random order, is scored by classifiers that saw only the blocks before it. One record counts of each person, and one
    of each content, so that copies are no evidence; but every record of a content that ten or more records have, which
    is a common value and no copy.

    Args:
        features: Features of the audited records; None if only the losses are known.
        person: The data subject of each record, if known: `Losses.person`.
        inclusion: The odds of membership, where those were declared and unlike: so many records are kept that coins are fair.
        coins: Whether coins of one probability were declared to have decided membership: then the groups cannot differ.
        rng: Orders the records.

    Raises:
        InputError: Cells that are no plain values.

    Source: Lopez-Paz and Oquab 2017, with the order of the blocks [own].

    >>> rng = np.random.default_rng(0)
    >>> shift(Features(member=rng.normal(1, 1, 300), nonmember=rng.normal(0, 1, 300)), rng=rng).status
    <Status.FAIL: 'fail'>
    >>> shift(None, rng=rng).status
    <Status.UNKNOWN: 'unknown'>
    """
    if features is None:
        return answer("shift", "ok/by design" if coins else "unknown/no features")
    member, nonmember = features.tables
    (first, second), left_out = _looked_at(features, person, inclusion, rng)
    if min(first.size, second.size) < _FEWEST:
        words = {"members": first.size, "others": second.size, "needed": _FEWEST}
        return answer("shift", "unknown/few", {"left_out": left_out}, **words)
    result = _tested(member.rows(first), nonmember.rows(second), 1 - 2 * _FALSE_ALARMS, rng)
    return _judged({**result, "left_out": left_out})


def _looked_at(
    features: Features, person: PerGroup | None, inclusion: PerGroup | None, rng: np.random.Generator
) -> tuple[tuple[Integers, Integers], int]:
    """Return the positions of the records to test, and how many were left out as copies, or as of a person already seen."""
    from scipy.special import logit

    from auditor.estimators.guesses import fair_coins

    n, hashes = features.n_member, np.concatenate(fingerprints(features))
    unit, size = np.unique(hashes, return_inverse=True, return_counts=True)[1:]
    # In random order, the first of each content and person stays: which group it comes from is left to chance.
    content = np.where(size[unit] < _COMMON, unit, -1 - np.arange(unit.size))
    rows = _first_of(rng.permutation(hashes.size), content)
    if person is not None:
        rows = _first_of(rows, np.concatenate(codes(person).units))
    if inclusion is not None:
        rows = rows[fair_coins(logit(np.concatenate(inclusion)), n, rng)[rows]]
    sides = rows[rows < n], rows[rows >= n] - n
    limit = int(np.clip(_CELLS // max(1, len(features.names)), _SMALLEST, _LARGEST))
    small = min(limit // 2, *(side.size for side in sides))
    chosen = tuple(side[: limit - small] for side in sides)
    return (chosen[0], chosen[1]), int(hashes.size - rows.size)


def _first_of(order: Integers, labels: Array) -> Integers:
    """Return the first of each label, in the given order."""
    return order[np.sort(np.unique(labels[order], return_index=True)[1])]


def _tested(member: Table, nonmember: Table, confidence: float, rng: np.random.Generator) -> dict[str, Any]:
    values, names = encoded(member, nonmember, rng=rng)
    label = np.arange(member.n + nonmember.n) < member.n
    details: dict[str, Any] = {
        "members": member.n,
        "nonmembers": nonmember.n,
        "columns": len(set(names)),
        "confidence": confidence,
    }
    if not names:
        return {**details, "auc": _CHANCE, "lower": _CHANCE, "upper": _CHANCE, "most_different": None}
    area = _separation(values, member=label, confidence=confidence, rng=rng)
    most = names[int(np.argmax(differences(values, member=label)))]
    return {**details, "auc": area.value, "lower": area.lower, "upper": area.upper, "most_different": most}


def _judged(details: dict[str, Any]) -> Check:
    ends = {end: unit(details[end], toward=way) for end, way in (("lower", "down"), ("upper", "up"))}
    sizes = {"members": about(details["members"]), "others": about(details["nonmembers"])}
    level = percent(details["confidence"], toward="down")
    result = said("shift", "seen", auc=unit(details["auc"]), level=level, **ends, **sizes)
    key = "fail" if details["lower"] > _CHANCE else "ok"
    return answer("shift", key, details, seen=result, column=details["most_different"])


# --- The classifier two-sample test: can membership be predicted from the features alone? ---
#
# Records come in blocks in random order; each block is scored by classifiers that saw only the blocks before it. Given
# those, the labels of a block are exchangeable if the groups are alike, so the blocks' rank statistics are martingale
# differences and the AUC of all scores has the variance of one sample [own]. Ordinary cross-fitting, where every block
# is scored by classifiers that saw all the others, has not: its AUC varies 1.2 to 1.5 times as much as its standard error
# says, which makes 1% false alarms 3% to 6%.
#
# Of a linear and a tree classifier, the one that did better in the blocks before scores the next: a choice made in the past.


_BLOCKS = 5


def _separation(values: Floats, *, member: Booleans, confidence: float, rng: np.random.Generator) -> Estimate:
    """Return the AUC of held-out members against held-out non-members, members scoring higher.

    Args:
        values: Shape (n, k), without gaps.
        member: Shape (n,).
        confidence: Confidence level of the two-sided interval.
        rng: Orders the records.
    """
    from threadpoolctl import threadpool_limits

    from auditor.estimators.rates import auc

    # Random blocks with equal shares of both groups.
    sides = [rng.permutation(np.flatnonzero(side)) for side in (member, ~member)]
    blocks = [np.concatenate([side[turn::_BLOCKS] for side in sides]) for turn in range(_BLOCKS)]
    scores, at = [], []
    gains = np.zeros(CLASSIFIERS)
    # One thread: the result does not depend on their number, and waits for no core that others hold.
    with threadpool_limits(limits=1):
        for turn in range(1, _BLOCKS):
            earlier, held = np.concatenate(blocks[:turn]), blocks[turn]
            scored = classified(values[earlier], member[earlier], values[held])
            ranks = np.array([_ranked(row) for row in scored])
            best = gains == gains.max()
            scores.append(_ranked(ranks[best].sum(axis=0)))
            at.append(held)
            gains += ranks[:, member[held]].mean(axis=1) - ranks[:, ~member[held]].mean(axis=1)
    score, label = np.concatenate(scores), member[np.concatenate(at)]
    return auc(count(Losses(member=-score[label], nonmember=-score[~label])), confidence=confidence)


def _ranked(scores: Floats) -> Floats:
    from scipy import stats

    return np.asarray((stats.rankdata(scores) - 0.5) / scores.size)
