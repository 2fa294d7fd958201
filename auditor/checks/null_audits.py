"""Checks that the audit finds nothing where there is nothing to find, and something where there is much."""

from dataclasses import replace
from typing import Any

import numpy as np

from auditor.checks.answers import answer, said
from auditor.core.errors import InputError
from auditor.core.numbers import as_stated, number, percent
from auditor.core.options import EachRecord, RankGrid, Sample, ThresholdRule
from auditor.core.values import Array, Booleans, Check, Estimate, Floats, Integers, Losses, PerGroup
from auditor.estimators.evidence import Evidence
from auditor.estimators.one_run import mechanism_bound
from auditor.estimators.setting import Inputs
from auditor.records.labels import codes, default_units, per_person, per_record, without_split

# --- placebo: a reference model that was trained on none of the records ---


_FALSE_ALARMS = 0.01  # of both directions, where the groups are alike
_TELLING = 10  # so many different losses are no coincidence when all of them agree


def placebo(reference: Losses | None, *, audited: Losses | None = None, delta: float) -> Check | None:
    """Fail when a reference model, trained on neither group, separates members from non-members; None without one.

    Both directions are looked at, with half of the error each: members that are easier for any model make the audit
    find too much, members that are harder make it find too little. Members count as a sample even in a census: the
    question is about the population they were drawn from.

    Args:
        reference: Losses of a model that was trained on none of these records, grouped like the audited ones.
        audited: The losses that are audited, if the reference is to be held against them: the same ids in the same
            groups, in any order, or equally many records in each group where either has no ids.
        delta: In [0, 1); as in the audit.

    Raises:
        InputError: A reference of other records or other groups than the audited ones, or one whose losses are the audited
            losses.

    >>> easier = Losses(member=np.linspace(0, 1, 500), nonmember=np.linspace(2, 3, 500))
    >>> placebo(easier, delta=1e-5).status
    <Status.FAIL: 'fail'>
    """
    if reference is None:
        return None
    from auditor.estimators.certified import clopper_pearson

    if audited is not None:
        _require_same_records(reference, audited)
    units = default_units(reference).losses
    easier, harder = (
        clopper_pearson(side, delta=delta, confidence=1 - _FALSE_ALARMS / 2, coverage=Sample())
        for side in (units, units.swapped)
    )
    return _judged_placebo(easier, harder, percent(1 - _FALSE_ALARMS, toward="down"))


def _require_same_records(
    reference: Losses, audited: Losses, *, name: str = "reference", trained: str = "on neither group"
) -> None:
    """Refuse losses of another model that are not of the audited records in their groups, or that are the audited model's."""
    sizes = (reference.n_member, reference.n_nonmember)
    wanted = (audited.n_member, audited.n_nonmember)
    if sizes != wanted:
        raise InputError(
            f"{name} must hold the audited records, {wanted[0]:,} members and {wanted[1]:,} non-members, got"
            f" {sizes[0]:,} and {sizes[1]:,}; give the losses of exactly those records, in the same groups."
        )
    if reference.id is not None and audited.id is not None:
        missing = [_missing(*columns) for columns in zip(audited.id, reference.id, strict=True)]
        if any(missing):
            raise InputError(
                f"{name} must hold the audited records in the same groups, but {missing[0]:,} of {wanted[0]:,}"
                f" member ids and {missing[1]:,} of {wanted[1]:,} non-member ids are not in that group of the {name};"
                " give the losses of exactly those records, marked as in the audit."
            )
    if _same_losses(reference, audited):
        raise InputError(
            f"{name} losses are the audited losses themselves (all {sum(wanted):,} of them); give the losses of the same"
            f" records under a model that was trained {trained}."
        )


def _missing(wanted: Array, present: Array) -> int:
    """Return the number of ids that are not there, each counted as often as it occurs; blanks are equal."""
    both = codes(PerGroup(wanted, present))
    counts = [np.bincount(side + 1, minlength=both.labels.size + 1) for side in (both.member, both.nonmember)]
    return int(np.maximum(counts[0] - counts[1], 0).sum())


def _same_losses(reference: Losses, audited: Losses) -> bool:
    """Return whether all losses agree, in any order; a few values, such as right and wrong, may agree by coincidence."""
    ours = (audited.sorted_member, audited.sorted_nonmember)
    theirs = (reference.sorted_member, reference.sorted_nonmember)
    if not all(np.array_equal(*pair) for pair in zip(ours, theirs, strict=True)):
        return False
    records = audited.n_member + audited.n_nonmember
    return np.unique(np.concatenate(ours)).size > min(_TELLING, records // 2)


def _judged_placebo(easier: Estimate, harder: Estimate, level: str) -> Check:
    bounds = {"easier": easier.value or 0.0, "harder": harder.value or 0.0}
    way = max(bounds, key=lambda name: bounds[name])
    ceiling = easier.details["ceiling"]
    details = {
        "bound_members_easier": easier.value,
        "bound_members_harder": harder.value,
        "ceiling": ceiling,
        "confidence_each": easier.confidence,
    }
    words = {"level": level, "way": way, "bound": number(bounds[way], toward="down")}
    top = number(ceiling, toward="down")
    return answer("placebo", "fail" if bounds[way] > 0 else "ok", details, ceiling=top, **words)


# --- control: the same canaries in a training without noise ---


def control(evidence: Evidence) -> Check | None:
    """Warn when a training without noise is not refuted by the audited canaries either; None without such a training.

    Its losses are audited with the options of the audit. The check says nothing about the audited training: it is the power
    of the attack that was used, where a perfect attack's is an upper limit.

    Raises:
        InputError: Losses of other canaries, or of other coins, than the audited ones.
    """
    losses, audited, claim = evidence.setting.control, evidence.inputs.losses, evidence.audited
    if losses is None or claim is None:
        return None
    _require_same_records(losses, audited, name="control", trained="without noise")
    if (losses.inclusion is None) != (audited.inclusion is None):
        raise InputError(
            "control must have the column of inclusion of the audited losses, got it in one of them."
        )
    plain = replace(evidence.inputs.options, control=None, features=None, reference=None)
    inputs = Inputs(losses, plain)
    bound = mechanism_bound(Evidence(inputs, inputs.setting))[0]
    lower, curve = bound.lower or 0.0, bound.details.get("claimed_curve") or {}
    refuted = bool(curve.get("rejected") or (claim.value is not None and lower > claim.value))
    details = {"refuted": refuted, "lower": lower, "confidence": bound.confidence, "delta": bound.delta}
    words = {name: said("control", name) for name in ("alike", "could")}
    words |= {"least": number(lower, toward="down"), "delta": as_stated(bound.delta)}
    return answer("control", "ok" if refuted else "warn", details, **words)


# --- label_shuffle: the audited losses with membership shuffled ---


_LARGEST = 400  # records of each group that are shuffled
_FEWEST_UNITS = 10
_SURELY = 1e-4  # a bound that spends all of its error has about as many positives as it promises


def label_shuffle(
    losses: Losses,
    *,
    delta: float,
    confidence: float = 0.95,
    rule: ThresholdRule = RankGrid(),  # noqa: B008 - a frozen value
    rng: np.random.Generator,
    shuffles: int = 100,
) -> Check:
    """Test the audit on its own records: with membership shuffled, the certified bound should hardly ever be positive.

    Membership is shuffled among records, all rows of one id moving together; among people, all of whose records then move
    together, where membership was decided by person. The latter fails where records of one person are counted as
    independent and are not. At most 400 records of each group are shuffled, drawn at random.

    Args:
        losses: Audited losses.
        delta: In [0, 1); as in the audit.
        confidence: Confidence level of the certified bound, in (0, 1).
        rule: How the certified bound picks its threshold.
        rng: Draws the records and shuffles them.
        shuffles: Number of shuffles.

    >>> rng = np.random.default_rng(0)
    >>> losses = Losses(member=rng.normal(-1, 1, 500), nonmember=rng.normal(0, 1, 500))
    >>> label_shuffle(losses, delta=1e-5, rng=rng).status
    <Status.OK: 'ok'>
    """
    from scipy import special

    from auditor.estimators.certified import positive_bounds

    alpha = 1 - confidence
    units = per_person(losses, choice=EachRecord())
    whole = without_split(units)[0].losses if units.in_both and units.by_person else losses
    values, unit, is_member, by = _units(whole, rng)
    details: dict[str, Any] = {"shuffled": by, "records": int(values.size), "units": int(is_member.size)}
    if min(is_member.sum(), (~is_member).sum()) < _FEWEST_UNITS:
        return answer("label_shuffle", "unknown", details, units=by, needed=_FEWEST_UNITS)
    labels = (rng.permutation(is_member)[unit] for _ in range(shuffles))
    shuffled = [Losses(member=values[label], nonmember=values[~label]) for label in labels]
    positives = positive_bounds(shuffled, delta=delta, confidence=confidence, rule=rule)
    p_value = float(special.bdtrc(positives - 1, shuffles, alpha))
    details |= {"shuffles": shuffles, "positive": positives, "alpha": alpha, "p_value": p_value}
    words = {"units": by, "allowed": percent(alpha, toward="nearest")}
    result = said("label_shuffle", "seen", units=by, positive=positives, shuffles=shuffles)
    key = ("fail/persons" if by == "persons" else "fail") if p_value < _SURELY else "ok"
    return answer("label_shuffle", key, details, seen=result, **words)


def _units(losses: Losses, rng: np.random.Generator) -> tuple[Floats, Integers, Booleans, str]:
    """Return the losses of a sample of records, the unit of each, which units are members, and the name of a unit."""
    sides, (owners, kind) = (losses.member, losses.nonmember), _owners(losses)
    at = [_drawn(side.size, owner, rng) for side, owner in zip(sides, owners, strict=True)]
    firsts = (0, losses.n_member)
    pooled = np.concatenate(
        [
            first + rows if owner is None else owner[rows]
            for first, owner, rows in zip(firsts, owners, at, strict=True)
        ]
    )
    first, unit = np.unique(pooled, return_index=True, return_inverse=True)[1:]
    values = np.concatenate([side[rows] for side, rows in zip(sides, at, strict=True)])
    return values, unit, first < at[0].size, "records" if first.size == values.size else kind


def _owners(losses: Losses) -> tuple[list[Integers | None], str]:
    """Return the person of each record, or its id, and which; none where these are in both groups, or none are there."""
    n1, n0 = losses.n_member, losses.n_nonmember
    ids = losses.id if per_record(losses).combined else None
    for labels, kind in ((losses.person, "persons"), (ids, "ids")):
        columns = None if labels is None else codes(labels)
        if columns is None or np.isin(columns.member[columns.member >= 0], columns.nonmember).any():
            continue
        sides = ((columns.member, np.arange(n1)), (columns.nonmember, n1 + np.arange(n0)))
        return [np.where(column >= 0, n1 + n0 + column, row) for column, row in sides], kind
    return [None, None], "records"


def _drawn(size: int, owner: Integers | None, rng: np.random.Generator) -> Integers:
    """Return the positions of all records of people drawn at random, until there are enough records."""
    if size <= _LARGEST:
        return np.arange(size)
    if owner is None or (owner[1:] > owner[:-1]).all():  # every record by itself
        return rng.choice(size, _LARGEST, replace=False)
    unit, inverse = np.unique(owner, return_inverse=True)
    turn = rng.permutation(unit.size)[inverse]
    order = np.argsort(turn, kind="stable")
    last = turn[order[_LARGEST - 1]]
    return np.flatnonzero(turn <= last)
