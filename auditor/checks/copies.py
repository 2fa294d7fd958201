"""Does a record appear twice, or in both groups?"""

import numpy as np

from auditor.core.numbers import LEAST_SHOWN, about, percent, sentence
from auditor.core.options import EachRecord, Rows
from auditor.core.values import WORST_FIRST, Check, Floats, Losses, PerGroup, Status
from auditor.estimators.twins import SURELY, distinct_contents, twins
from auditor.records.labels import PersonsFound, codes, per_person

_LEVEL = 1e-3


def duplicates(losses: Losses, *, units: PersonsFound | None = None) -> Check:
    """Fail when the groups overlap or hold copies; warn of other duplicates; unknown without ids and fingerprints.

    An id in both groups fails. Rows that share an id within a group are one record; the check fails where they could not be
    combined, and where combined scores differ without any leak because ids have more rows in one group. Equal content need
    not be an overlap: records with few or coarse features have natural twins, and a fresh record of the population may equal
    a training record. So the contents that occur in both groups are compared with how many a random split of all records
    would put there: more than that fails at the 1% level, whatever their share. Copies within a group, beyond what a random
    split explains, fail too.

    Args:
        losses: The rows.
        units: What is audited of them; by default each id.

    >>> duplicates(Losses(member=[0.1, 0.2], nonmember=[0.3, 0.4], id=(["a", "b"], ["b", "c"]))).status
    <Status.FAIL: 'fail'>
    """
    answers, found = [], per_person(losses, choice=EachRecord()) if units is None else units
    if losses.id is not None:
        answers.append(_by_id(losses.id, found))
    if losses.fingerprint is not None:
        answers.append(_by_content(distinct_contents(losses, found)))
    if not answers:
        message = "Records carry neither ids nor features, so duplicates cannot be looked for."
        return Check("duplicates", Status.UNKNOWN, message)
    worst = min(answers, key=lambda answer: WORST_FIRST.index(answer.status)).status
    alike = " ".join(answer.message for answer in answers if answer.status is worst)
    details = {name: value for answer in answers for name, value in answer.details.items()}
    return Check("duplicates", worst, alike, details)


def _by_id(ids: PerGroup, units: PersonsFound) -> Check:
    found = codes(ids)
    member, nonmember = (column[column >= 0] for column in (found.member, found.nonmember))
    counted = twins(PerGroup(member, nonmember))
    blank = found.member.size + found.nonmember.size - member.size - nonmember.size
    within = counted.repeats
    details: dict[str, object] = {
        "across": counted.shared,
        "within_members": within[0],
        "within_nonmembers": within[1],
        "without_id": blank,
    }
    if units.by_id.combined and not counted.shared:
        details["trained"] = list(units.trained)
    return Check("duplicates", *_of_ids(units, counted.shared, within, blank), details)


def _of_ids(units: PersonsFound, shared: int, within: tuple[int, int], blank: int) -> tuple[Status, str]:
    if shared:
        return Status.FAIL, (
            f"{about(shared).capitalize()} ids are both member and non-member: the groups overlap, so the comparison is not valid. Remove"
            " those records from one group and audit again."
        )
    if units.by_id.combined:
        return _of_rows(units)
    repeat = sentence(
        f"{about(within[0])} member and {about(within[1])} non-member records repeat an id"
    ).rstrip(".")
    if units.by_id.largest > 1:
        return Status.FAIL, (
            f"{repeat}, and a group has fewer than two ids: records are not independent. Keep one record for each id, or leave"
            " the id out if it names something else."
        )
    if any(within):
        words = "records are not independent, so the intervals are too narrow. Keep one record for each id."
        return Status.WARN, f"{repeat}: {words}"
    if blank:
        words = f"No id appears twice, but {about(blank)} records have no id and could not be compared."
        return Status.UNKNOWN, words
    return Status.OK, "No id appears twice."


def _of_rows(units: PersonsFound) -> tuple[Status, str]:
    """Of rows that were combined by id."""
    found, sizes = units.by_id, units.by_id.sizes
    if found.sizes_p_value < _LEVEL:
        means = [float(size.mean()) for size in sizes]
        return Status.FAIL, (
            f"Ids have {means[0]:.3g} rows each among the members and {means[1]:.3g} among the non-members, spread differently than"
            " chance explains: scores that combine more rows differ without any leak, so the comparison is not valid. Keep"
            " equally many rows of each id."
        )
    what = "scorings of one training record" if units.choice.rows is Rows.SCORINGS else "training records"
    message = (
        f"{sum(found.rows):,} rows have {sizes.member.size + sizes.nonmember.size:,} ids, up to {found.largest:,} rows each: each id has"
        f" one score, the {units.choice.by} of its rows, which are taken for {what}."
    )
    if units.group > 1:
        message += f" A claim about single records is judged for groups of {units.group:,}."
    return Status.OK, message


def _by_content(fingerprint: PerGroup) -> Check:
    found = twins(fingerprint)
    share = found.nonmembers_with_twin / fingerprint.nonmember.size
    details = {
        "contents_in_both": found.shared,
        "contents_in_both_expected": found.expected,
        "more_than_chance_p_value": found.p_more,
        "fewer_than_chance_p_value": found.p_fewer,
        "nonmembers_with_twin": found.nonmembers_with_twin,
        "nonmembers_with_twin_share": share,
        "repeated_content_members": found.repeats[0],
        "repeated_content_nonmembers": found.repeats[1],
    }
    telling = min(found.nonmembers_with_twin, found.shared) < LEAST_SHOWN
    much = f" ({percent(share)})", f", where chance gives about {found.expected:,.0f}"
    much = ("", "") if telling else much  # which would tell how many
    seen = (
        f"{about(found.nonmembers_with_twin).capitalize()} non-member records{much[0]} have an exact twin among the members (equal in"
        f" every feature; {about(found.shared)} different contents{much[1]})"
    )
    repeats = f"{about(found.repeats[0])} member and {about(found.repeats[1])} non-member records repeat"
    if found.shared and found.p_more < SURELY:
        return Check("duplicates", Status.FAIL, f"{seen}, {_OVERLAP}", details)
    words = [f"{seen}, {_NATURAL}"] if found.shared else []
    if found.p_fewer < SURELY:
        words.append(f"{repeats[0].upper()}{repeats[1:]} the features of another of their group, {_COPIES}")
    few = f"No record is in both groups by its features; {repeats} those of another of their group, no more than chance explains."
    message = " ".join(words) or (few if any(found.repeats) else "No two records have the same features.")
    return Check("duplicates", Status.FAIL if found.p_fewer < SURELY else Status.OK, message, details)


_OVERLAP = (
    "more than a random split of these records explains: the groups overlap, so the comparison is not valid. Remove"
    " those records and their twins from both groups and audit again."
)
_COPIES = (
    "far more often than such twins are in different groups: they look like copies, which are not independent. Keep one of"
    " each and audit again, or give copies of one record one id."
)
_NATURAL = (
    "no more than a random split of records with natural twins gives: they are not truly unseen, so the leak of the others"
    " may be larger than measured. To leave them out, remove their twins among the members too."
)


# --- Runs that are counted twice, in an audit of many runs ---


_FEW_VALUES = 20  # of a score, such as a decision, which repeats itself by nature
_FEW = 3  # values that may repeat themselves
_SHARE = 0.01  # or as a part of all
_ERRORS = 5.0  # standard errors
_ALIKE = 1e-9  # of the spread of the scores: a rounding error, and no step


def repeats(losses: Losses) -> Check:
    """Fail when runs repeat each other: a run that is counted twice is one run.

    A training that ignores its seed separates the worlds perfectly.

    Args:
        losses: The scores of runs with the canary and of runs without it.
    """
    worlds = losses.sorted_member, losses.sorted_nonmember
    constant = [bool(values[0] == values[-1]) for values in worlds]
    distinct, repeated, beside = (sum(item) for item in zip(*map(_repeated, worlds), strict=True))
    details = {
        "constant_with": constant[0],
        "constant_without": constant[1],
        "distinct": distinct,
        "repeated": repeated,
    }
    if all(constant) and not all_equal(losses):
        message = (
            "Every run of a world gave the same score: check that the training draws its randomness from the seed of the"
            " run; repeated runs count as one, and no bound here holds for them. If it has no randomness, it is not"
            " differentially private, and no audit is needed to say so."
        )
        return Check("repeats", Status.FAIL, message, details)
    if distinct > _FEW_VALUES and repeated - beside > repetitions_allowed(distinct, variance=beside):
        message = (
            f"{repeated:,} of {distinct:,} different scores occur more than once in the same world: check that every run has"
            " a seed of its own and is listed once, because no bound here holds for runs that are counted twice; if the"
            " score moves in steps, return it in whole steps, such as a count or a rank."
        )
        return Check("repeats", Status.FAIL, message, details)
    return Check("repeats", Status.OK, "Scores do not repeat more often than chance allows.", details)


def repetitions_allowed(scores: int, *, variance: float) -> float:
    """Return how many repetitions beyond those expected are no sign of runs that were counted twice."""
    return float(max(_FEW, _SHARE * scores) + _ERRORS * variance**0.5)


def _repeated(values: Floats) -> tuple[int, int, int]:
    """How many different scores there are, how many occur more than once, and how many might by chance.

    Scores that move in steps, as rounded ones and counts do, repeat themselves by chance. Then they also fall on
    neighbouring steps, and whatever the law, if it is smooth, at least as often: (1 - e^-k)^2 >= 1 - (1 + k) e^-k, where
    k runs are expected on a step. Runs that were made twice have equal scores without such neighbours.
    """
    scores, counts = np.unique(values, return_counts=True)
    if scores.size == 1:
        return 1, int(counts[0] > 1), 1
    gaps = np.diff(scores)
    # Of the bulk, so that one score of a training that diverged decides nothing.
    alike = _ALIKE * float(scores[int(0.9 * scores.size)] - scores[int(0.1 * scores.size)])
    even = gaps[gaps > alike]
    beside = [int((gaps < even.min() + alike).sum())]
    for kind in (np.float16, np.float32):  # whose steps grow with the number
        with np.errstate(over="ignore"):
            short = scores.astype(kind)
        if np.array_equal(short.astype(np.float64), scores):
            beside.append(int((np.nextafter(short, kind(np.inf))[:-1] == short[1:]).sum()))
    return int(scores.size), int((counts > 1).sum()), max(beside)


def all_equal(losses: Losses) -> bool:
    """Return whether all losses of both groups are one number."""
    first, second = losses.sorted_member, losses.sorted_nonmember
    return bool(first[0] == first[-1] == second[0] == second[-1])
