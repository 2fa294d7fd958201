"""records_needed() and ceiling(): what an audit of a given size can certify, and the size that a target takes."""

from dataclasses import dataclass
from typing import Any, get_args

from auditor import _validate
from auditor._format import given, number
from auditor.choices import (
    Adjacency,
    BernoulliSplit,
    Members,
    MembershipSplit,
    RandomSplit,
    Sample,
    Subset,
    UnknownSplit,
)
from auditor.planning.attacks import Attack, PerfectAttack
from auditor.planning.coins import CoinAudit
from auditor.planning.model import ModelAudit
from auditor.planning.pairs import PairAudit
from auditor.planning.search import fewest
from auditor.result import plain
from auditor.values import Subject

__all__ = ["MOST", "Plan", "ceiling", "records_needed"]

MOST = 10**9
_AUDITS = ModelAudit | PairAudit | CoinAudit
_PERFECT = PerfectAttack()


@dataclass(frozen=True)
class Plan:
    """How many records certify an epsilon.

    Attributes:
        epsilon: The target, in nats.
        delta: The delta at which it would be certified.
        confidence: Of the bound.
        n_member: Members to score, or null if no number suffices; of a `BernoulliSplit` the expected number.
        n_nonmember: Likewise for the non-members.
        chance: That so many records certify the target if the attack is as assumed; 1 where nothing is random.
        power: The chance that was asked for.
        ceiling: What a perfect attack on so many records would be certified at.
        limit: The largest epsilon that the assumed attack shows by this method, however many records there are.
        subject: Whether the bound is about the model or about the training algorithm.
        adjacency: The neighbouring relation, for a bound about the training algorithm.
        estimate: The name of the planned bound.
        method: How it is computed, in words.
        attack: The assumed attack, in words.
        reason: Why no number suffices, or null.
    """

    epsilon: float
    delta: float
    confidence: float
    n_member: int | None
    n_nonmember: int | None
    chance: float | None
    power: float
    ceiling: float | None
    limit: float
    subject: Subject
    adjacency: Adjacency | None
    estimate: str
    method: str
    attack: str
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values, infinities as strings."""
        found: dict[str, Any] = plain(self)
        return found


def records_needed(
    epsilon: float,
    *,
    delta: float,
    confidence: float = 0.95,
    members: Members = Sample(),  # noqa: B008 - a frozen value
    split: MembershipSplit = UnknownSplit(),  # noqa: B008
    attack: Attack = _PERFECT,
    power: float = 0.8,
) -> Plan:
    """Return how many records in each group certify an epsilon, if the attack is as assumed.

    Without a declared split the plan is for the model's own bound, with a `RandomSplit` or a `BernoulliSplit` for the
    one-run bound on the training algorithm (its default test). A perfect attack gives the fewest records that any
    attack could do with. The plan is the smallest number from which on every larger one suffices too, up to the
    rounding of counts.

    Args:
        epsilon: The target in nats, above 0.
        delta: In [0, 1); inclusion coins are audited at delta 0 whatever is asked.
        confidence: Of the bound, in (0, 1).
        members: What the scored members will be; only the model's own bound depends on it.
        split: How membership will be decided.
        attack: `PerfectAttack`, `GaussianAttack` or `RandomisedResponse`.
        power: The chance of certifying the target that the plan should give, in (0, 1).

    Raises:
        InputError: An argument that cannot be used; the message says which and why.

    >>> plan = records_needed(1.0, delta=1e-5, split=RandomSplit())
    >>> plan.n_member, plan.estimate
    (14, 'epsilon_bound.one_run')
    """
    epsilon = _validate.positive("epsilon", epsilon)
    power = _validate.fraction("power", power)
    _validate.instance("attack", attack, get_args(Attack))
    audit, delta, confidence = _audit(delta, confidence, members, split)
    limit = audit.limit(attack)
    most = min(MOST, members.of) if isinstance(audit, ModelAudit) and isinstance(members, Subset) else MOST
    n = None
    if epsilon < limit:
        n = fewest(lambda size: audit.chance(size, epsilon=epsilon, attack=attack) >= power, most)
    sizes = (None, None) if n is None else _sizes(n, split)
    return Plan(
        epsilon=epsilon,
        delta=delta,
        confidence=confidence,
        n_member=sizes[0],
        n_nonmember=sizes[1],
        chance=None if n is None else min(1.0, audit.chance(n, epsilon=epsilon, attack=attack)),
        power=power,
        ceiling=None if sizes[0] is None or sizes[1] is None else audit.ceiling(sizes[0], sizes[1]),
        limit=limit,
        attack=attack.in_words(),
        reason=None
        if n is not None
        else _why_not(epsilon, limit, most, delta=delta, split=split, attack=attack),
        **_about(split),
    )


def ceiling(
    n_member: int,
    n_nonmember: int,
    *,
    delta: float,
    confidence: float = 0.95,
    members: Members = Sample(),  # noqa: B008 - a frozen value
    split: MembershipSplit = UnknownSplit(),  # noqa: B008
) -> float:
    """Return the most that so many records can certify: what a perfect attack would show.

    Args:
        n_member: Members, 2 or more.
        n_nonmember: Non-members, 2 or more.
        delta: In [0, 1); inclusion coins are audited at delta 0 whatever is asked.
        confidence: Of the bound, in (0, 1).
        members: What the scored members are.
        split: How membership was decided; see `records_needed`.

    Raises:
        InputError: An argument that cannot be used; the message says which and why.

    >>> round(ceiling(1000, 1000, delta=0.0), 6)
    4.936418
    """
    sizes = [
        _validate.at_least(name, size, least=2)
        for name, size in (("n_member", n_member), ("n_nonmember", n_nonmember))
    ]
    audit, _, _ = _audit(delta, confidence, members, split)
    return audit.ceiling(sizes[0], sizes[1])


def _audit(
    delta: float, confidence: float, members: Members, split: MembershipSplit
) -> tuple[_AUDITS, float, float]:
    """The bound that is planned, and the delta and confidence that it is stated at."""
    delta = _validate.fraction("delta", delta, zero=True)
    confidence = _validate.confidence(confidence)
    _validate.instance("members", members, get_args(Members))
    _validate.instance("split", split, get_args(MembershipSplit))
    alpha = 1 - confidence
    match split:
        case RandomSplit():
            return PairAudit(delta, alpha), delta, confidence
        case BernoulliSplit():
            return CoinAudit(split.inclusion, alpha), 0.0, confidence
        case _:
            return ModelAudit(delta, alpha, members), delta, confidence


def _about(split: MembershipSplit) -> dict[str, Any]:
    """What the planned bound is about."""
    if isinstance(split, UnknownSplit):
        return {
            "subject": Subject.MODEL,
            "adjacency": None,
            "estimate": "epsilon_bound.clopper_pearson",
            "method": "Clopper-Pearson limits at ranks fixed in advance",
        }
    coins = isinstance(split, BernoulliSplit)
    return {
        "subject": Subject.MECHANISM,
        "adjacency": Adjacency.ADD_REMOVE if coins else Adjacency.REPLACE_ONE,
        "estimate": "epsilon_bound.one_run",
        "method": f"one-run audit on {'inclusion coins' if coins else 'random pairs'}, test of Steinke, Nasr and Jagielski 2023",
    }


def _sizes(n: int, split: MembershipSplit) -> tuple[int, int]:
    if not isinstance(split, BernoulliSplit):
        return n, n
    inside = min(max(round(n * split.inclusion), 1), n - 1)
    return inside, n - inside


def _why_not(
    epsilon: float, limit: float, most: int, *, delta: float, split: MembershipSplit, attack: Attack
) -> str:
    target, at = given(epsilon), f"at delta {given(delta)}"
    if epsilon >= limit:
        return (
            f"with {attack.in_words()} this bound shows at most {number(limit, toward='down')} {at}, however many"
            f" records are audited, and the target is {target}"
        )
    where = "" if isinstance(split, BernoulliSplit) else " in each group"
    few = f"the {most:,} records of the training set" if most < MOST else f"{most:,} records{where}"
    return f"even {few} do not certify {target} {at}"
