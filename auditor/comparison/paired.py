"""Two releases on the same records, from the losses of both: McNemar's exact test.

**The membership game.** A fair coin says whether a member or a non-member is drawn, and the attacker of each release calls
a record a member where its loss lies below the threshold of that release. The advantage is 2 P(right) - 1 = TPR - FPR, so
that "worse" means more hits than the false alarms pay for, and not merely lower losses everywhere. With p+ the chance that
the attacker is right in the newer release alone, p- in the older alone, d = p+ + p- and q = p+/d,

    new - old advantage = 2 (p+ - p-) = 2 d (2 q - 1)

**Exact, once the thresholds are fixed [own].** They are set on a quarter of the records, drawn at random and not judged (of
a small group on 100, or on half of it). Coins choose how many of the judged records are members, and the records of each
group are taken in random order: so the N draws are independent and of one law, whatever the sizes of the groups. Given
that D = m of them are decided differently, those that only the newer release gets right are Bin(m, q): McNemar's test,
exact, of the hypothesis q <= 1/2, that the advantage did not rise; Clopper and Pearson's limits of q are that test
inverted. D itself is Bin(N, d). Nine tenths of the error go to q and one to d, so that both limits, and the difference
made of them, hold together:

    [2 (2 q_L - 1) d', 2 (2 q_U - 1) d'']    d', d'' the limits of d that make the interval the longer one

The coins are tossed again where a group has too few records for them, which has a chance of 1% at most and can raise an
error by no more than 1/0.99; the error is divided by that. Two fixed numbers of records, half and half, would not prove
it: q may be another in each group, and then those that the newer release alone gets right are not binomial given m.

**The thresholds.** The same share of the non-members put aside lies below both, the share at which the sum of the two
advantages is largest there. Near that place the advantage is flat and both thresholds err alike, so that two releases that
leak equally are not distinguished by the places of the thresholds; the best threshold of each, chosen apart, would say so.

McNemar 1947; Clopper and Pearson 1934; the game is that of Yeom et al. 2018, Section 3.
"""

from bisect import bisect_right
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from auditor.core import Floats, InputError, Losses, OnePerPerson, PerGroup
from auditor.estimators.limits import lower_limit, upper_limit
from auditor.records.labels import codes, per_person, per_record

_ASIDE = 4  # one record in so many sets the thresholds
_LEAST_ASIDE = 100  # and no more than half of them
_OVERDRAWN = 0.01  # chance that the coins ask for more records of a group than there are
_OF_Q = 0.9  # part of the error


class SameRecords(NamedTuple):
    """The losses of the same records under two releases: each group of shape (2, n), the older release first."""

    member: Floats
    nonmember: Floats


def same_records(old: Losses, new: Losses, *, people: str | None = None) -> SameRecords:
    """Return the losses of both in the order of the ids, so that the order in a file changes nothing.

    Args:
        old: Losses of the older audit, with ids.
        new: Losses of the newer audit, with the same ids in each group, in any order.
        people: Where a unit is a person: which of the losses of a person stands for all, as in `OnePerPerson`.

    Raises:
        InputError: Ids that are missing, not unique, or not the same in both; or people that are not named.

    >>> first = Losses(member=[1, 2], nonmember=[3, 4], id=(["a", "b"], ["c", "d"]))
    >>> second = Losses(member=[5, 6], nonmember=[7, 8], id=(["b", "a"], ["c", "d"]))
    >>> same_records(first, second).member
    array([[1., 2.],
           [6., 5.]])
    """
    for which, item in (("older", old), ("newer", new)):
        if item.id is None:
            raise InputError(
                f"losses must have ids to be compared record by record, got none in the {which} audit; read them with"
                " their id column."
            )
    if people is None:
        old, new = (per_record(item).losses for item in (old, new))
    members, others = (_orders(old, new, group) for group in ("member", "nonmember"))
    first, second = (
        item.take(member=members[at], nonmember=others[at]) for at, item in enumerate((old, new))
    )
    if people is not None:
        if first.person is None:
            raise InputError(
                "losses must have a person column where an audit counts each person, got none; read them with it."
            )
        # The people of the older release are used for both, so that the same scores are made of the same records.
        by = OnePerPerson(people)
        first, second = (
            per_person(replace(item, person=first.person), choice=by).losses for item in (first, second)
        )
    return SameRecords(np.stack([first.member, second.member]), np.stack([first.nonmember, second.nonmember]))


def _orders(old: Losses, new: Losses, group: str) -> tuple[Any, Any]:
    """Return the positions of a group's records in both losses, sorted by id."""
    columns = codes(PerGroup(getattr(old.id, group), getattr(new.id, group)))
    called = {"member": "members", "nonmember": "non-members"}[group]
    for which, code in (("older", columns.member), ("newer", columns.nonmember)):
        unclear = code.size - np.unique(code[code >= 0]).size
        if unclear:
            raise InputError(
                f"the {called} of the {which} audit must each have an id of their own to be compared record by record, got"
                f" {unclear:,} without one or with that of another."
            )
    apart = 2 * columns.labels.size - columns.member.size - columns.nonmember.size
    if apart:
        raise InputError(
            f"the {called} must be the same records in both audits to be compared record by record, got {apart:,} ids that"
            " only one of them has; leave the losses out to compare the results alone."
        )
    by_name = np.argsort(columns.labels)
    return np.argsort(columns.member)[by_name], np.argsort(columns.nonmember)[by_name]


class AttackChange(NamedTuple):
    """Change of the success of the attacker in the module's docstring.

    Attributes:
        old: Advantage against the older release, of the records drawn.
        new: Against the newer one.
        lower: Lower end of the interval of new - old.
        upper: Upper end of that interval.
        gained: Records on which the attacker is right in the newer release alone.
        lost: Records on which the attacker is right in the older release alone.
        drawn: Records drawn by the coins.
    """

    old: float
    new: float
    lower: float
    upper: float
    gained: int
    lost: int
    drawn: int


def attack_change(records: SameRecords, *, alpha: float) -> AttackChange:
    """Return by how much the advantage rose, with an exact interval; the module's docstring proves it.

    Nothing here can be chosen, not even a seed, so that nobody looks for the one with the wanted answer.

    Args:
        records: From `same_records`: independent draws within each group, given both releases.
        alpha: The error of the interval, in (0, 1), half of it on either side.

    >>> rng = np.random.default_rng(0)
    >>> member, nonmember = rng.normal(-0.5, 1, 1000), rng.normal(0, 1, 1000)
    >>> change = attack_change(SameRecords(np.stack([member, member - 1]), np.stack([nonmember] * 2)), alpha=0.05)
    >>> change.lower > 0, change.lost
    (True, 0)
    """
    rng = np.random.default_rng(0)
    sizes = [group.shape[1] for group in records]
    mixed = [group[:, rng.permutation(size)] for group, size in zip(records, sizes, strict=True)]
    aside = [max(size // _ASIDE, min(_LEAST_ASIDE, size // 2)) for size in sizes]
    thresholds = _thresholds(*(group[:, :some] for group, some in zip(mixed, aside, strict=True)))
    member, nonmember = (group[:, some:] for group, some in zip(mixed, aside, strict=True))
    enough = min(member.shape[1], nonmember.shape[1])
    drawn = most_draws(enough)
    heads = -1
    while not drawn - enough <= heads <= enough:
        heads = int(rng.binomial(drawn, 0.5))
    chosen = member[:, :heads], nonmember[:, : drawn - heads]
    hit, alarm = (group < thresholds[:, None] for group in chosen)
    right = np.concatenate([hit, ~alarm], axis=1)
    gained, lost = int((right[1] > right[0]).sum()), int((right[0] > right[1]).sum())
    lower, upper = mcnemar_interval(gained, lost, drawn, alpha=alpha * (1 - _OVERDRAWN))
    old, new = (2 * float(share) - 1 for share in right.mean(axis=1))
    return AttackChange(old, new, lower, upper, gained, lost, drawn)


def _thresholds(member: Floats, nonmember: Floats) -> Floats:
    """Return one threshold for each release, below which the same share of these non-members lies."""
    candidates: Floats = np.sort(nonmember, axis=1)
    hits, alarms = (
        np.stack(
            [np.searchsorted(np.sort(row), at) / row.size for row, at in zip(group, candidates, strict=True)]
        )
        for group in (member, nonmember)
    )
    # Where losses are tied, equal ranks need not be equal shares.
    rank = int(np.argmax((hits - alarms).sum(axis=0) - np.abs(alarms[1] - alarms[0])))
    return candidates[:, rank]


def most_draws(enough: int) -> int:
    """Return how many coins can be tossed so that neither side comes up more than ``enough`` times, but for 1%.

    >>> most_draws(750), most_draws(1)
    (1404, 1)
    """
    # P[Bin(N, 1/2) > n] = I_{1/2}(n + 1, N - n)
    more = range(1, enough + 1)
    return enough + bisect_right(
        more, _OVERDRAWN, key=lambda more: 2 * float(special.betainc(enough + 1, more, 0.5))
    )


def mcnemar_interval(gained: int, lost: int, drawn: int, *, alpha: float) -> tuple[float, float]:
    """Return both ends of the interval of 2 (p+ - p-), of one sign just where McNemar's exact test at 0.45 alpha rejects.

    Args:
        gained: Records that only the newer release gets right.
        lost: Records that only the older release gets right.
        drawn: All records, of one law.
        alpha: In (0, 1).

    >>> [round(end, 3) for end in mcnemar_interval(30, 10, 400, alpha=0.05)]
    [0.021, 0.224]
    """
    differ = gained + lost
    for_q, for_d = _OF_Q * alpha / 2, (1 - _OF_Q) * alpha / 2
    tilts = [
        2 * float(limit(gained, differ, for_q)) - 1 if differ else end
        for limit, end in ((lower_limit, -1.0), (upper_limit, 1.0))
    ]
    few, many = (float(limit(differ, drawn, for_d)) for limit in (lower_limit, upper_limit))
    return (2 * tilts[0] * (few if tilts[0] > 0 else many), 2 * tilts[1] * (many if tilts[1] > 0 else few))
