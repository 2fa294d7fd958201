"""Groups at risk, and the effect of answering less: the audit repeated, with one error probability for all of it.

Every quantity (the certified bound, the AUC, the advantage, the members' share of a percentile band) holds for all
slices at once with the stated confidence: each of m slices gets the error alpha/m (Bonferroni). Which slices are
compared depends on numbers of records and never on losses, so slices that are left out spend nothing. Tests of no separation of
the classes and groups have p-values by Holm's procedure beside, which needs less than Bonferroni's but gives no interval.

Members always count as draws here, also where every training record was scored. Limits that take the members of a slice
for all there are would be positive in some slice by chance alone, the more so the smaller it is, and the question
who is at risk is about records like these.

By policies the same records are audited by the losses of coarser answers, with alpha/m for each of m policies. An
attacker who sees the full outputs can make them coarser, so the best attacker learns no more from less; this one, who goes
by the loss, may. A lower limit for the best attacker under one policy is therefore one under each that it follows from, and
all hold at once: the largest is taken [own].
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, permutations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from auditor.core.numbers import LEAST_SHOWN, percent
from auditor.core.options import NO_CHANCE, Melded, RankGrid, Sample, UnknownSplit
from auditor.core.values import Estimate, Floats, Integers, Losses, OutputPolicy, PerGroup, Subject, weighted
from auditor.curves.cells import STEP, Partition
from auditor.curves.tradeoff import count, distinct
from auditor.estimators.adaptive import ADAPTIVE
from auditor.estimators.certified import clopper_pearson, grid_ceiling
from auditor.estimators.evidence import Evidence
from auditor.estimators.gap import advantage
from auditor.estimators.limits import lower_limit, upper_limit
from auditor.estimators.one_run import mechanism_bound, stated_delta
from auditor.estimators.rates import auc, guaranteed_rates, interval, placements_of
from auditor.estimators.setting import Inputs
from auditor.records.labels import Codes, codes
from auditor.results.document import PolicyFound, Slice, SliceKind, find

if TYPE_CHECKING:
    from auditor.core.fields import Placements


# Where bands of losses end, as shares of all records.
_BANDS = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
# With more groups than this those with most records of both kinds are compared; one slice stands for the rest of those
# that are not too small.
_MOST = 50
_QUICK = RankGrid(interval=Melded())  # there may be many slices
_BOUND, _SHARE = "epsilon_bound.clopper_pearson", "member_share"
_P_VALUES = ("p_value", "holm_p_value")
_COARSE = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # p-values of a shared result
_SMALLEST = 1e-12  # the least error that a confidence may leave; see auditor.core.validate
_NOUNS = {SliceKind.CLASS: ("class", "classes"), SliceKind.GROUP: ("group", "groups")}


@dataclass(frozen=True, eq=False)
class _Part:
    """A slice before it is audited: with the ``reason`` if it is not compared, and with ``losses`` if it is a group."""

    kind: SliceKind
    label: str
    n_member: int
    n_nonmember: int
    losses: Losses | None = None
    reason: str = ""


def slices_of(
    losses: Losses,
    *,
    delta: float,
    confidence: float = 0.95,
    partition: Partition | None = None,
    is_shared: bool = False,
) -> tuple[Slice, ...]:
    """Return the audit of each group and of each band of loss percentiles, all valid at once.

    A group is audited like the whole. Within a band that is cut out by the loss itself separation means nothing: there
    the members' share is given beside their share of all records, which is how often an attacker is right who calls
    such records members. Bands are cut at quantiles of all losses together, so they do not depend on who is a member:
    given the losses, the members in a band are a sum of independent coins, or of coins tied only by their total, and
    such a sum is less spread than a binomial of the same mean (Hoeffding 1956), which Clopper-Pearson limits cover. The cuts of
    a shared result lie near these quantiles, where no cell has few records of a group, and so depend on membership a little:
    simulated audits without a leak keep the level, without a proof.

    Args:
        losses: Losses with ``label`` for slices by class and ``group`` for slices by group.
        delta: In [0, 1), of the certified bounds.
        confidence: Confidence level of each quantity, for all slices at once, in (0, 1).
        partition: Cuts of the bands, if the result is shared; without one a shared result has no bands.
        is_shared: Whether the result is shared.

    >>> rng = np.random.default_rng(0)
    >>> losses = Losses(
    ...     member=np.concatenate([rng.normal(-3, 1, 500), rng.normal(0, 1, 500)]),
    ...     nonmember=rng.normal(0, 1, 1000),
    ...     group=(np.repeat(["cat", "dog"], 500), np.repeat(["cat", "dog"], 500)),
    ... )
    >>> cat, dog = slices_of(losses, delta=1e-5)[:2]
    >>> cat.estimate("epsilon_bound.clopper_pearson").value > 1, dog.estimate("epsilon_bound.clopper_pearson").value
    (True, 0.0)
    """
    alpha = 1 - confidence
    ranks = np.ceil(np.array(_BANDS) * (losses.n_member + losses.n_nonmember))
    upto = None if partition is None else partition.at_ranks(ranks)
    in_bands = () if is_shared and upto is None else bands(losses, LEAST_SHOWN, _BANDS, upto)
    parts = [*_groups(losses, LEAST_SHOWN, _MOST), *in_bands]
    if alpha / max(1, len(parts)) < _SMALLEST:
        reason = "the confidence is too high to be shared among slices"
        parts = [replace(part, losses=None, reason=reason) for part in parts]
    parts = _certifiable(parts, delta, alpha)
    compared = sum(not part.reason for part in parts)
    level = alpha / max(1, compared)
    tests = no_separation([part.losses for part in parts], is_shared=is_shared)
    return tuple(
        Slice(
            kind=part.kind,
            label=part.label,
            n_member=part.n_member,
            n_nonmember=part.n_nonmember,
            confidence=confidence,
            compared=compared,
            estimates=_estimates(part, losses, delta, level, test, slack=STEP - 1 if is_shared else 0),
        )
        for part, test in zip(parts, tests, strict=True)
    )


def no_separation(groups: Sequence[Losses | None], *, is_shared: bool = False) -> list[dict[str, float]]:
    """Return the p-values of no separation of each group, its own and Holm's for all at once; empty where there are no losses.

    The test is that of Mann and Whitney, two-sided and with ties, by its normal limit. Holm's p-value at or below alpha
    rejects with an error of at most alpha for all groups together, whatever they share.

    To be shared, each p-value is the next of .001, .002, .005, .01 and so on up to 1: three digits of a small one would give
    the AUC behind it to six.

    Source: Holm 1979; Mann and Whitney 1947.
    """
    tested = [losses for losses in groups if losses is not None]
    if not tested:
        return [{} for _ in groups]
    from statsmodels.stats.multitest import multipletests

    own = list(map(_mann_whitney, tested))
    if is_shared:
        own = [_COARSE[int(np.searchsorted(_COARSE, min(p, 1.0)))] for p in own]
    together = multipletests(own, method="holm")[1].tolist()
    values = iter(zip(own, together, strict=True))
    return [{} if one is None else dict(zip(_P_VALUES, next(values), strict=True)) for one in groups]


def _mann_whitney(losses: Losses) -> float:
    """Return the p-value of SciPy's ``mannwhitneyu(method="asymptotic")``, from the sorted groups that the audit of a slice uses."""
    n1, n0, counts = losses.n_member, losses.n_nonmember, count(losses)
    pooled = np.concatenate([losses.sorted_member, losses.sorted_nonmember])
    ties = np.diff(distinct(np.sort(pooled))[1]).astype(np.float64)
    twice = int(np.sum((counts.fp_upto - counts.fp_below) * (counts.tp_below + counts.tp_upto)))
    n = n1 + n0
    variance = n1 * n0 / 12 * (n + 1 - float(np.sum(ties**3 - ties)) / (n * (n - 1)))
    beyond = (abs(twice - n1 * n0) - 1) / 2  # less half a step, for continuity
    return 1.0 if variance <= 0 else min(1.0, 2 * float(special.ndtr(-beyond / math.sqrt(variance))))


def _certifiable(parts: list[_Part], delta: float, alpha: float) -> list[_Part]:
    """Leave out, smallest first, the groups in which not even a perfect attack would be certified."""
    while True:
        level = alpha / max(1, sum(not part.reason for part in parts))
        ceiling = partial(grid_ceiling, delta=delta, alpha=level, rule=_QUICK, coverage=Sample())
        lost = [
            part
            for part in parts
            if part.losses is not None and ceiling(part.n_member, part.n_nonmember) <= 0
        ]
        if not lost:
            return parts
        smallest = min(lost, key=lambda part: min(part.n_member, part.n_nonmember))
        reason = "too few records: not even a perfect attack would be certified beside the other slices"
        parts = [replace(part, losses=None, reason=reason) if part is smallest else part for part in parts]


def _estimates(
    part: _Part, losses: Losses, delta: float, level: float, test: Mapping[str, float], *, slack: int
) -> tuple[Estimate, ...]:
    none = partial(
        Estimate.missing, reason=part.reason, method="not computed for this slice", subject=Subject.MODEL
    )
    if part.kind is SliceKind.PERCENTILE:
        return (none(_SHARE) if part.reason else _share(part, losses, level, slack),)
    if part.losses is None:
        return none(_BOUND, delta=delta), none("auc"), none("advantage")
    counts, confidence = count(part.losses), 1 - level
    area = auc(counts, confidence=confidence)
    return (
        clopper_pearson(part.losses, delta=delta, confidence=confidence, rule=_QUICK),
        replace(area, details={**area.details, **test}),
        advantage(counts, confidence=confidence),
    )


def _share(part: _Part, losses: Losses, level: float, slack: int) -> Estimate:
    """Return the members' share of a band, with limits that hold however far both counts are off, up to the slack."""
    k, others = part.n_member, part.n_nonmember
    overall = losses.n_member / (losses.n_member + losses.n_nonmember)
    fewest, most = max(0, k - slack), k + slack
    value, low = k / (k + others), float(lower_limit(fewest, fewest + others + slack, level / 2))
    high = float(upper_limit(most, most + max(0, others - slack), level / 2))
    return Estimate(
        name=_SHARE,
        value=value,
        lower=low,
        upper=high,
        confidence=1 - level,
        method="Clopper-Pearson limits of the members' share of the records in this band",
        subject=Subject.MODEL,
        assumptions=("records are independent", "membership labels are right"),
        details={
            "overall_share": overall,
            "lift": value / overall,
            "lift_lower": low / overall,
            "lift_upper": high / overall,
        },
    )


# --- The class or group that stands out ---


def stands_out(one: Slice, slices: Sequence[Slice]) -> bool:
    """Return whether the AUC of a class or group is surely larger than that of the others of its kind.

    The AUC of the others is the mean of their own AUCs, weighted by the inverse of each one's variance where nothing leaks.
    So records are compared within a class or group only: others that are easier or harder change nothing. The two intervals
    have the error of one slice and must not overlap, so all comparisons together have at most the error of the audit [own].
    """
    others = [item for item in slices if item.kind is one.kind and item is not one]
    rows = [(item, row) for item in others if (row := find(item, "auc")) and row.value is not None]
    own, options = find(one, "auc"), [result for _, row in rows if (result := placements_of(row))]
    if own is None or own.lower is None or not rows or len(options) < len(rows):
        return False
    sizes = np.array([(item.n_member, item.n_nonmember) for item, _ in rows])
    weights = sizes.prod(axis=1) / sizes.sum(axis=1)
    weights /= weights.sum()
    together: Placements = {
        "variances": (weights**2 @ [result["variances"] for result in options]).tolist(),
        "least": np.min([result["least"] for result in options], axis=0).tolist(),
        "largest": np.max([result["largest"] for result in options], axis=0).tolist(),
    }
    value = float(weights @ [row.value for _, row in rows])
    n1, n0 = map(int, sizes.sum(axis=0))
    return own.lower > interval(value, together, sizes=(n1, n0), alpha=1 - (own.confidence or 0.0))[1]


# --- The audit repeated under restricted answers ---


_OF_THE_BEST = ("advantage", "epsilon_bound.one_run")  # whose lower limits are those of any attacker


def policies_of(evidence: Evidence) -> tuple[PolicyFound, ...]:
    """Return the result of the attacker by the loss under each output policy, the full outputs first; empty if none was scored.

    Args:
        evidence: Evidence of the audit by the full outputs, whose losses may hold those under policies.
    """
    values = evidence.inputs.by_record
    scored = {name: pair for name, pair in _scored(values).items() if not OutputPolicy(name).of_score}
    if len(scored) <= 1:
        return ()
    confidence, result = evidence.setting.confidence, {}
    level = (1 - confidence) / len(scored)
    stricter = replace(
        evidence.setting, confidence=1 - level, coverage=Sample(), claim=None, delta=stated_delta(evidence)
    )
    # No chance decided: nothing of the training algorithm, and no features from which to estimate odds.
    split = UnknownSplit() if isinstance(stricter.split, NO_CHANCE) else stricter.split
    for name, pair in scored.items():
        losses = replace(values, member=pair.member, nonmember=pair.nonmember, policies={})
        setting = replace(stricter, split=split, features=None, reference=None)
        result[OutputPolicy(name)] = _under(Evidence(Inputs(losses, setting), setting))
    return tuple(
        PolicyFound(policy.name, confidence, len(result), rows, _of_anyone(policy, result))
        for policy, rows in result.items()
    )


def _scored(losses: Losses) -> dict[str, PerGroup]:
    return {OutputPolicy.FULL: PerGroup(losses.member, losses.nonmember), **losses.policies}


def scores_of(evidence: Evidence) -> list[dict[str, Any]]:
    """Return the AUC and a certified epsilon by each score of the records; each column holds together. Empty for one score.

    Where chance decided who is a member, the epsilon is that of the training algorithm at delta 0, by guesses learnt from
    revealed coins, and the last row has that by all scores together. Else it is that of the model, at the delta of the audit.
    """
    losses, setting = evidence.losses, evidence.setting
    if not losses.policies:
        return []
    scored, rows = _scored(losses), list[dict[str, Any]]()
    alpha = (1 - setting.confidence) / len(scored)
    learnt = next((row for row in evidence.estimates if row.name == ADAPTIVE and row.value is not None), None)
    for name, pair in scored.items():
        one = replace(losses, member=pair.member, nonmember=pair.nonmember, policies={})
        area = auc(count(one), confidence=1 - alpha)
        if learnt is None:
            low = clopper_pearson(one, delta=setting.delta, confidence=1 - alpha).lower
        else:
            low = learnt.details["scores"][name]
        ends = {"value": area.value, "lower": area.lower, "upper": area.upper}
        rows.append({"score": name, **ends, "certified": low})
    if learnt is not None:
        rows.append({"score": None, "value": None, "lower": None, "upper": None, "certified": learnt.value})
    return rows


def _of_anyone(policy: OutputPolicy, rows: Mapping[OutputPolicy, tuple[Estimate, ...]]) -> dict[str, float]:
    """Return the largest lower limits among a policy and those whose answers follow from its answers."""
    follow = (own for less, own in rows.items() if less.tells_no_more_than(policy))
    limits: dict[str, float] = {}
    for row in chain.from_iterable(follow):
        if row.name in _OF_THE_BEST and row.lower is not None:
            limits[row.name] = max(row.lower, limits.get(row.name, 0.0))
    return limits


def _under(evidence: Evidence) -> tuple[Estimate, ...]:
    setting, counts = evidence.setting, evidence.counts
    return (
        auc(counts, confidence=setting.confidence),
        advantage(counts, confidence=setting.confidence, coverage=setting.coverage),
        *guaranteed_rates(evidence),
        *(row for row in mechanism_bound(evidence) if row.value is not None),
    )


# --- Records of a slice: the groups, and the bands of loss percentiles; numbers of records decide, losses never ---


def bands(
    losses: Losses,
    least: int,
    quantiles: tuple[float, ...],
    upto: tuple[Integers, Integers] | None = None,
) -> Iterator[_Part]:
    """Return the bands between quantiles of all losses; ties stay together, and the labels state the resulting share.

    Args:
        losses: Losses of both groups.
        least: Records of a band.
        quantiles: Ends of the bands, as shares of all records.
        upto: Numbers of members and non-members below the ends of the bands that replace these.
    """
    n1, n0 = losses.n_member, losses.n_nonmember
    size = n1 + n0
    if upto is None:
        ranks = np.minimum(np.ceil(np.asarray(quantiles) * size).astype(np.int64), size) - 1
        edges = np.unique(_pooled_at(losses, ranks)) if ranks.size else np.empty(0)
        upto1 = np.append(np.searchsorted(losses.sorted_member, edges, side="right"), n1)
        upto0 = np.append(np.searchsorted(losses.sorted_nonmember, edges, side="right"), n0)
    else:
        upto1, upto0 = upto
    total = upto1 + upto0
    keep = np.diff(total, prepend=0) > 0
    upto1, upto0, total = upto1[keep], upto0[keep], total[keep]
    if total.size == 1:
        reason = "there is only one band: the losses are equal"
        yield _Part(SliceKind.PERCENTILE, "all records", n1, n0, reason=reason)
        return
    starts = np.concatenate([[0], total[:-1]])
    inside = [np.diff(upto, prepend=0) for upto in (upto1, upto0)]
    for start, end, k1, k0 in np.column_stack([starts, total, *inside]).tolist():
        few = f"fewer than {least} records" if k1 + k0 < least else ""
        yield _Part(SliceKind.PERCENTILE, _label(start, end, size), k1, k0, reason=few)


def _pooled_at(losses: Losses, ranks: Integers) -> Floats:
    """Return the losses at these ranks among all of both groups."""
    groups = [weighted(group) for group in (losses.member, losses.nonmember)]
    pooled = np.concatenate([values for values, _ in groups])
    if losses.bits is None:
        return np.partition(pooled, ranks)[ranks]
    order = np.argsort(pooled, kind="stable")
    upto = np.cumsum(np.concatenate([counts for _, counts in groups])[order])
    return np.asarray(pooled[order][np.searchsorted(upto, ranks, side="right")])


def _label(start: int, end: int, size: int) -> str:
    end_named, ranks = (
        ("lowest", (start, end)) if start < size / 2 else ("highest", (size - end, size - start))
    )
    near, far = (percent(round(rank / size, 3)) for rank in ranks)
    return f"{end_named} {f'{near} to ' if ranks[0] else ''}{far} of losses"


@dataclass(frozen=True)
class _Joint:
    """Labels that make one slice: ``codes`` are 1 above those of `auditor.records.labels.codes`, and 0 stands for no label."""

    codes: list[int]
    label: str
    reason: str = ""
    is_named: bool = False


def _groups(losses: Losses, least: int, most: int) -> Iterator[_Part]:
    """Return the classes and the groups, each as `_joints` has them; groups that are the classes are not said twice."""
    if losses.bits is not None:
        reason = "a summary keeps no labels of its records; audit a summary of each group"
        yield _Part(SliceKind.GROUP, "(no label)", losses.n_member, losses.n_nonmember, reason=reason)
    pairs = {SliceKind.CLASS: losses.label, SliceKind.GROUP: losses.group}
    result = {kind: codes(pair) for kind, pair in pairs.items() if pair is not None}
    columns = {kind: PerGroup(one.member + 1, one.nonmember + 1) for kind, one in result.items()}
    if len(result) > 1 and all(map(np.array_equal, *columns.values())):
        del result[SliceKind.CLASS]
    people = {kind: _of_people(losses.person, column)[0] for kind, column in columns.items()}
    both = dict(zip(result, _of_people(losses.person, *(columns[kind] for kind in result)), strict=True))
    hidden: dict[SliceKind, list[int]] = {kind: [] for kind in result}
    while True:
        joints = {
            kind: _joints(one, people[kind], kind, least, most, hidden[kind]) for kind, one in result.items()
        }
        few = _few_between(joints, both, least)
        if few is None:
            break
        if few[1]:
            hidden[few[0]].append(few[1])
        else:
            del result[SliceKind.GROUP]
    for kind, several in joints.items():
        place = np.full(len(result[kind].labels) + 1, len(several), dtype=np.int16)
        for at, one in enumerate(several):
            place[one.codes] = at
        sides = []
        for values, of in zip((losses.member, losses.nonmember), columns[kind], strict=True):
            where = place[of]  # small numbers, which NumPy sorts in one pass
            ordered = values[np.argsort(where, kind="stable")]
            sides.append(np.split(ordered, np.cumsum(np.bincount(where, minlength=len(several)))))
        for one, member, nonmember in zip(several, *sides, strict=False):
            own = None if one.reason else Losses(member=member, nonmember=nonmember)
            yield _Part(kind, one.label, member.size, nonmember.size, losses=own, reason=one.reason)


def _of_people(person: PerGroup | None, *columns: PerGroup) -> list[PerGroup]:
    """Return one entry for each combination of a person's labels, if records name their person, so that people are counted."""
    if person is None or not columns:
        return list(columns)
    named, combinations = codes(person), []
    for own, owner in zip(zip(*columns, strict=True), (named.member, named.nonmember), strict=True):
        each = np.where(owner < 0, len(named.labels) + np.arange(owner.size), owner)
        combinations.append(np.unique(np.stack([each, *own]), axis=1)[1:])
    return [PerGroup(*sides) for sides in zip(*combinations, strict=True)]


def _few_between(
    joints: Mapping[SliceKind, Sequence[_Joint]], columns: Mapping[SliceKind, PerGroup], least: int
) -> tuple[SliceKind, int] | None:
    """Return a label that must not be named, as a slice less those of the other kind that lie within it is small.

    Its code is 0 where no label is left to join to others; all is None where each such difference is large enough, or empty.
    """
    if len(joints) < 2:  # noqa: PLR2004 - nothing to compare
        return None
    table = np.zeros((2, *map(len, joints.values())), dtype=np.int64)
    for side, both in zip(table, zip(*(columns[kind] for kind in joints), strict=True), strict=True):
        width = int(both[1].max()) + 1
        used, counts = np.unique(both[0] * width + both[1], return_counts=True)
        places = [{code: at for at, one in enumerate(some) for code in one.codes} for some in joints.values()]
        where = [
            [place[code] for code in of.tolist()]
            for place, of in zip(places, divmod(used, width), strict=True)
        ]
        np.add.at(side, tuple(where), counts)
    for counts, (own, other) in zip((table, table.transpose(0, 2, 1)), permutations(joints), strict=True):
        within = (counts == counts.sum(axis=1, keepdims=True)).all(axis=0)
        left = counts.sum(axis=2) - (counts * within).sum(axis=2)
        small = within.any(axis=1) & left.any(axis=0) & (left.min(axis=0) < least)
        for at in np.flatnonzero(small).tolist():
            # The smallest that may be joined to others is the last of those within, or else the slice itself.
            inner = [one for one, is_within in zip(joints[other], within[at], strict=True) if is_within]
            named = [
                (kind, one.codes[0])
                for kind, one in [(own, joints[own][at]), *((other, one) for one in inner)]
                if one.is_named
            ]
            return named[-1] if named else (own, 0)
    return None


def _joints(
    groups_of: Codes, column: PerGroup, kind: SliceKind, least: int, most: int, hide: Sequence[int]
) -> list[_Joint]:
    """Return the groups, the one that can be seen best first; then the slices for all others, and for no group.

    A group with fewer than ``least`` members or non-members is not named: its counts could reveal which side a record of
    its own was on. All such groups make one part together, with records of no group where these are few; where that part
    is still below ``least`` the next smallest group joins it, so that no difference from the totals is smaller. Those to
    ``hide`` join it too, and are never alone there.
    """
    one, several = _NOUNS[kind]
    size = groups_of.labels.size
    n1, n0 = (np.bincount(side, minlength=size + 1) for side in column)
    order = np.lexsort((-(n1 + n0)[1:], -np.minimum(n1, n0)[1:])) + 1
    enough = int((np.minimum(n1, n0)[1:] >= least).sum())
    named, hidden = [code for code in order[:enough].tolist() if code not in hide], order[enough:].tolist()

    def is_small(codes: list[int]) -> bool:
        return bool(codes) and min(n1[codes].sum(), n0[codes].sum()) < least

    blank = [0] if n1[0] or n0[0] else []
    if is_small(blank) or is_small(hidden):
        hidden, blank = [*hidden, *blank], []
    too_few = len(hidden)
    hidden += hide
    while named and (is_small(hidden) or len(hidden) == len(hide) == 1):
        hidden.append(named.pop())
    joints = [_Joint([code], str(groups_of.labels[code - 1]), is_named=True) for code in named[:most]]
    reason = f"only the {most} largest of {size} {several} are compared (by the smaller of the numbers of members and non-members)"
    few = f"fewer than {least} members or fewer than {least} non-members"
    joined = len(hidden) > too_few
    small = "together, as some are too small to audit" if joined else "too small to audit"
    rest = named[most:]
    for some, words, why in ((rest, "smaller {}", reason), (hidden, f"{{}} {small}", "" if joined else few)):
        if some:
            groups = len(some) - (0 in some)
            label = f"({groups} {words.format(one if groups == 1 else several)}{', and no label' if 0 in some else ''})"
            joints.append(_Joint(some, label, why))
    if blank:
        joints.append(_Joint(blank, "(no label)", f"these records carry no {one} label"))
    return joints
