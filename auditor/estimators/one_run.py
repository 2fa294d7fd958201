"""``epsilon_bound.one_run``: a lower bound on the training mechanism's epsilon from one trained model.

It needs to know how membership was decided, and refuses otherwise. Which test judges the guesses is a choice; each
holds its level for any mechanism and any score.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from auditor.core import options, validate
from auditor.core.values import Estimate, Losses, PerGroup, Subject
from auditor.curves.tradeoff import TradeoffCurve
from auditor.estimators import guess_tests
from auditor.estimators.evidence import Evidence
from auditor.estimators.guess_tests import any_guesses_bound, biased_bound, steinke_bound
from auditor.records.labels import claim_reason, codes, mechanism_reason


def mechanism_bound(evidence: Evidence) -> tuple[Estimate, ...]:
    """Return what the declared split says about the training algorithm."""
    asked, test = evidence.setting, evidence.setting.one_run_test
    # The one test that can use the whole curve, which is that of replaced records under a random split.
    whole = isinstance(test, options.FDP) and isinstance(asked.split, options.RandomSplit)
    found = one_run_bound(
        evidence.losses,
        split=usable_split(evidence),
        delta=0.0 if isinstance(test, options.AnyGuesses) else stated_delta(evidence),
        confidence=asked.confidence,
        rng=evidence.rng("one run"),
        test=test,
        curve=evidence.promised if whole else None,
    )
    return (of_units(found, evidence),)


def usable_split(evidence: Evidence) -> options.MembershipSplit:
    """Return the declared split; where the units of the audit contradict it, none."""
    return options.UnknownSplit() if mechanism_reason(evidence.persons) else evidence.setting.split


def stated_delta(evidence: Evidence) -> float:
    """Return the delta that a bound on the training algorithm is stated at: that of the audited claim, if it has one."""
    claim = evidence.audited
    return evidence.setting.delta if claim is None or claim.delta is None else claim.delta


def of_units(found: Estimate, evidence: Evidence) -> Estimate:
    """Return a number about the training algorithm with what follows for it from the units of the audit."""
    if isinstance(evidence.setting.split, options.UnknownSplit):
        return found
    refusal, about = mechanism_reason(evidence.persons), claim_reason(evidence.persons)
    details, assumptions = dict(found.details), found.assumptions
    if refusal is not None:
        details["reason"] = refusal
    elif about is not None:
        details["not_for_claim"] = about
    if about is not None:
        person = "a score stands for a person: neighbours differ in all records of one person"
        assumptions = (*assumptions, person)
    return replace(found, details=details, assumptions=assumptions)


_NAME = "epsilon_bound.one_run"
_PURE = "pure epsilon: the bound is stated at delta 0 whatever delta the audit has, and judges no claim at a larger delta"
_FAIR_ONLY = (
    "the f-DP recursion is proven for inclusion coins of probability 0.5 only, not {inclusion:g}; take the test of"
    " Steinke et al. or the one over every number of guesses"
)
_CURVE_NEEDS_FDP = "a whole claimed curve is judged by the f-DP recursion only; choose that test"


def one_run_bound(
    losses: Losses,
    *,
    split: options.MembershipSplit,
    delta: float,
    confidence: float = 0.95,
    rng: np.random.Generator,
    test: options.OneRunTest = options.Steinke(),  # noqa: B008 - a frozen value
    curve: TradeoffCurve | None = None,
) -> Estimate:
    """Return the lower bound on the mechanism's epsilon that the declared split supports.

    Args:
        losses: Smaller means more like a member.
        split: How membership was decided. `RandomSplit` gives the replace-one adjacency, `BernoulliSplit` the
            add/remove adjacency, `UnknownSplit` an estimate without a value and the reason. A stratified
            `RandomSplit` pairs within the strata named by ``losses.group``.
        delta: In [0, 1). The bound of `AnyGuesses`, and that of `Steinke` on a `BernoulliSplit`, is stated at delta 0
            whatever is asked.
        confidence: In (0, 1).
        rng: Draws the pairs and breaks ties.
        test: `Steinke` (default), `FDP` (of inclusion coins only fair ones) or `AnyGuesses`.
        curve: The whole claimed trade-off curve, for the adjacency that the split audits and for both orders of two
            neighbours. With `FDP`, ``details["claimed_curve"]`` says whether the same guesses reject it. That costs
            no further error: whenever one of the two statements is wrong, the mechanism's true curve was rejected.

    Raises:
        InputError: delta outside [0, 1), confidence outside (0, 1), or a test that is not one.

    Source: Steinke, Nasr and Jagielski 2023; Mahloujifar, Melis and Chaudhuri 2024; `AnyGuesses` and the biased coins
    are [own], derived where they are computed.

    >>> from auditor.core.options import RandomSplit
    >>> losses = Losses(member=np.linspace(0, 1, 100), nonmember=np.linspace(2, 3, 100))
    >>> estimate = one_run_bound(losses, split=options.RandomSplit(), delta=1e-5, rng=np.random.default_rng(0))
    >>> estimate.value == estimate.details["ceiling"]
    True
    """
    delta = validate.fraction("delta", delta, zero=True)
    alpha = 1 - validate.confidence(confidence)
    validate.instance("test", test, (options.Steinke, options.FDP, options.AnyGuesses))
    guesses = draw_guesses(losses, split=split, rng=rng)
    without = partial(Estimate.missing, _NAME, method="one-run audit", subject=Subject.MECHANISM, delta=delta)
    if isinstance(guesses, NoGuesses):
        return without(guesses.reason)
    if isinstance(test, options.FDP) and not guesses.fair:
        return without(_FAIR_ONLY.format(inclusion=guesses.inclusion))
    judged = _judge(guesses, test, delta, alpha)
    best = max(judged.tried, key=lambda row: row["bound"])
    details = {**guesses.details, "ceiling": judged.ceiling, **best, "tried": judged.tried}
    del details["bound"]
    if curve is not None and isinstance(test, options.FDP):
        details["claimed_curve"] = _claimed_curve(curve, judged.tried, guesses.right.size, alpha)
    elif curve is not None:
        details["claimed_curve"] = {"rejected": None, "reason": _CURVE_NEEDS_FDP}
    return Estimate(
        name=_NAME,
        value=best["bound"],
        lower=best["bound"],
        upper=None,
        confidence=round(1 - alpha, 12),
        method=f"one-run audit on {guesses.evidence}; {judged.method}",
        subject=Subject.MECHANISM,
        delta=judged.delta,
        adjacency=guesses.adjacency,
        assumptions=(*judged.assumptions, *guesses.assumptions),
        details=details,
    )


# --- What there is to judge: guesses about fair or biased membership coins, most confident first ---
#
# The guesses may depend only on the model's output and on the unordered records, never on who is a member. Without a
# declaration of how membership was decided there are no coins, and so no guesses.


# Numbers of guesses to try, as shares of the bits, fixed before any data are seen; they share the error.
_SHARES = (1.0, 0.25, 0.05)
# Group sizes this unlikely under the declared coins mean that the declaration is not true of these records.
_CONTRADICTION = 1e-3
_FAIR = 0.5
_UNDECLARED = (
    "it was not declared how membership was decided; a statement about the training algorithm needs members and"
    " non-members split uniformly at random, or independent inclusion coins, and the auditor's word for it"
)
_NO_STRATA = (
    "a stratified split ties the coins of different strata together, and the losses carry no group labels to pair"
    " within; give the strata as the group of each record"
)
_NO_PAIRS = (
    "no stratum has both members and non-members, so there are no random pairs to guess about; check that the group"
    " labels are the strata of the split and are spelt alike for both"
)
_NO_HOLD_OUT_LEAK = "the hold-out took no part in training, early stopping or selection"


@dataclass(frozen=True, eq=False)
class Guesses:
    """Guesses about membership coins, in an order fixed without looking at membership.

    Attributes:
        right: Shape (m,), whether each guess is right. Of inclusion coins the guesses are "out" and "in" in turn.
        inclusion: Probability that a coin says "in"; a half for pairs.
        adjacency: Which neighbours the coins tell apart.
        evidence: What the coins are, in words.
        assumptions: What must hold for them to be coins.
        details: Counts of pairs or records.
    """

    right: npt.NDArray[np.bool_]
    inclusion: float
    adjacency: options.Adjacency
    evidence: str
    assumptions: tuple[str, ...]
    details: dict[str, Any]

    @property
    def fair(self) -> bool:
        """Whether the coins are fair."""
        return self.inclusion == _FAIR


@dataclass(frozen=True)
class NoGuesses:
    """Why there are no coins to guess about."""

    reason: str


def numbers_of_guesses(bits: int) -> tuple[int, ...]:
    """Return the numbers of guesses to try on so many bits, largest first, whatever the data.

    >>> numbers_of_guesses(1000)
    (1000, 250, 50)
    """
    return tuple(sorted({max(1, round(share * bits)) for share in _SHARES}, reverse=True))


def draw_guesses(
    losses: Losses, *, split: options.MembershipSplit, rng: np.random.Generator
) -> Guesses | NoGuesses:
    """Return the guesses that the declared split allows, or why it allows none.

    Args:
        losses: Smaller means more like a member.
        split: How membership was decided.
        rng: Draws the pairs and breaks ties.

    >>> losses = Losses(member=[0.0, 0.1], nonmember=[0.2, 0.3])
    >>> draw_guesses(losses, split=options.RandomSplit(), rng=np.random.default_rng(0)).right.tolist()
    [True, True]
    """
    match split:
        case options.RandomSplit():
            return _of_pairs(losses, rng, stratified=split.stratified)
        case options.BernoulliSplit():
            return _of_coins(losses, split.inclusion, rng)
        case _:
            return NoGuesses(_UNDECLARED)


def _of_pairs(losses: Losses, rng: np.random.Generator, *, stratified: bool) -> Guesses | NoGuesses:
    if stratified and losses.group is None:
        return NoGuesses(_NO_STRATA)
    pairs = random_pairs(losses, strata=losses.group if stratified else None, rng=rng)
    if pairs.right.size == 0:
        return NoGuesses(_NO_PAIRS)
    where = "within each stratum (group label), " if stratified else ""
    return Guesses(
        right=pairs.right,
        inclusion=_FAIR,
        adjacency=options.Adjacency.REPLACE_ONE,
        evidence="random pairs within strata" if stratified else "random pairs",
        assumptions=(
            f"{where}members and non-members were split uniformly at random before training (declared, not checked)",
            _NO_HOLD_OUT_LEAK,
        ),
        details={
            "pairs": int(pairs.right.size),
            "left_out": pairs.left_out,
            **({"strata": pairs.strata} if stratified else {}),
        },
    )


def _of_coins(losses: Losses, inclusion: float, rng: np.random.Generator) -> Guesses | NoGuesses:
    refusal = _wrong_proportion(losses, inclusion)
    if refusal is not None:
        return NoGuesses(refusal)
    # Membership in ascending order of loss, ties in random order.
    values = np.concatenate([losses.member, losses.nonmember])
    shuffle = rng.permutation(values.size)
    is_member = shuffle[np.argsort(values[shuffle], kind="stable")] < losses.n_member
    return Guesses(
        right=_in_turn(is_member),
        inclusion=inclusion,
        adjacency=options.Adjacency.ADD_REMOVE,
        evidence="inclusion coins",
        assumptions=(
            f"each record was included by an independent coin of probability {inclusion:g} (declared, not checked)",
            "every record that had a coin was scored, or a sample of them drawn without looking at membership",
            _NO_HOLD_OUT_LEAK,
        ),
        details={"records": int(is_member.size), "inclusion": inclusion},
    )


def _wrong_proportion(losses: Losses, inclusion: float) -> str | None:
    """Why the groups' sizes contradict the declared coin, if they do: then the declared odds are not the real ones."""
    from scipy import stats

    records = losses.n_member + losses.n_nonmember
    if stats.binomtest(losses.n_member, records, inclusion).pvalue >= _CONTRADICTION:
        return None
    return (
        f"{losses.n_member:,} members among {records:,} scored records do not come from coins of probability"
        f" {inclusion:g}; score every record that had a coin, or a sample of them drawn without looking at membership"
    )


def _in_turn(is_member: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Guess "out" for the highest loss, "in" for the lowest, "out" for the next highest and so on: which are right."""
    n_in = is_member.size // 2
    right = np.empty_like(is_member)
    right[0::2] = ~is_member[n_in:][::-1]
    right[1::2] = is_member[:n_in]
    return right


# --- What the chosen test makes of the guesses ---


@dataclass(frozen=True)
class _Judged:
    """What one test makes of the guesses: the rows it tried, and what a perfect attack would have shown."""

    tried: list[dict[str, Any]]
    ceiling: float
    delta: float
    method: str
    assumptions: tuple[str, ...] = ()


def _judge(guesses: Guesses, test: options.OneRunTest, delta: float, alpha: float) -> _Judged:
    bits = guesses.right.size
    if isinstance(test, options.AnyGuesses):
        return _any_number(guesses, alpha)
    if isinstance(test, options.FDP):
        rows = tried(guesses, partial(guess_tests.epsilon_bound, bits=bits, delta=delta), alpha=alpha)
        return _Judged(*rows, delta, "f-DP recursion, Mahloujifar, Melis and Chaudhuri 2024")
    if guesses.adjacency is options.Adjacency.REPLACE_ONE:
        rows = tried(guesses, partial(steinke_bound, bits=bits, delta=delta), alpha=alpha)
        return _Judged(*rows, delta, "Steinke, Nasr and Jagielski 2023, Theorem 5.2")

    def biased(*, guesses: int, **given: Any) -> float:
        return biased_bound(guesses=(guesses // 2, guesses - guesses // 2), inclusion=inclusion, **given)

    inclusion = guesses.inclusion
    method = "Poisson-binomial form of Steinke, Nasr and Jagielski 2023"
    return _Judged(*tried(guesses, biased, alpha=alpha), 0.0, method)


def tried(
    guesses: Guesses, bound: Callable[..., float], *, alpha: float, name: str = "bound"
) -> tuple[list[dict[str, Any]], float]:
    """Return the row of every number of guesses of the fixed list, and the largest bound that a perfect attack has.

    Args:
        guesses: To judge.
        bound: From ``guesses``, ``correct`` and ``alpha`` to the bound of one number of guesses.
        alpha: The error that all of them share.
        name: What the bound is called in a row.
    """
    numbers = numbers_of_guesses(guesses.right.size)
    found = partial(bound, alpha=alpha / len(numbers))
    rows = [{"guesses": r, "correct": int(guesses.right[:r].sum())} for r in numbers]
    return [{**row, name: found(**row)} for row in rows], max(found(guesses=r, correct=r) for r in numbers)


def _claimed_curve(
    curve: TradeoffCurve, tried: list[dict[str, Any]], bits: int, alpha: float
) -> dict[str, Any]:
    """Whether any of the numbers of guesses refutes the whole curve, and the first that does."""
    smallest_fpr, share = guess_tests.of_curve(curve), alpha / len(tried)
    rejects = partial(guess_tests.rejects, smallest_fpr, bits=bits, alpha=share)
    for row in tried:
        r, v = row["guesses"], row["correct"]
        if rejects(guesses=r, correct=v):
            return {"rejected": True, "guesses": r, "correct": v}
    perfect = any(rejects(guesses=row["guesses"], correct=row["guesses"]) for row in tried)
    return {"rejected": False, "could_have_been": perfect}


def _any_number(guesses: Guesses, alpha: float) -> _Judged:
    prior = guesses.inclusion / (1 - guesses.inclusion)
    odds = (1.0,) if guesses.fair else (1 / prior, prior)  # "out" and "in" guesses in turn
    found, perfect = (
        any_guesses_bound(right, alpha=alpha, odds=odds)
        for right in (guesses.right, np.ones_like(guesses.right))
    )
    row = {"guesses": found.guesses, "correct": found.correct, "bound": found.bound}
    method = "e-process over every number of guesses"
    return _Judged([row], perfect.bound, 0.0, method, assumptions=(_PURE,))


# --- Random pairs of one member and one non-member, in an order that does not depend on which is which ---


_Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Guesses that the lower loss of a pair is the member's.

    Attributes:
        right: Shape (m,), whether each guess is right, most confident pair first; a tie counts as wrong.
        left_out: Records that are in no pair.
        strata: Number of strata that gave pairs; null if the pairs were drawn from all records alike.
    """

    right: npt.NDArray[np.bool_]
    left_out: int
    strata: int | None = None


def random_pairs(losses: Losses, *, strata: PerGroup | None = None, rng: np.random.Generator) -> _Pairs:
    """Pair members with non-members at random, as many as the smaller side allows.

    Args:
        losses: Smaller means more like a member.
        strata: Labels of the records, if only records with the same one may be paired. Records without a label, and
            strata that lack members or non-members, give no pairs.
        rng: Draws the pairs and breaks ties.

    >>> found = random_pairs(Losses(member=[0, 1], nonmember=[2, 3, 4]), rng=np.random.default_rng(0))
    >>> found.right.tolist(), found.left_out
    ([True, True], 1)
    """
    members, nonmembers = rng.permutation(losses.n_member), rng.permutation(losses.n_nonmember)
    used = None
    if strata is not None:
        label = codes(strata)
        members, nonmembers = _same_stratum(members, nonmembers, label.member, label.nonmember)
        used = int(np.unique(label.member[members]).size)
        shuffle = rng.permutation(members.size)
        members, nonmembers = members[shuffle], nonmembers[shuffle]
    bits = min(members.size, nonmembers.size)
    right = _ordered(losses.member[members[:bits]], losses.nonmember[nonmembers[:bits]])
    return _Pairs(right, losses.n_member + losses.n_nonmember - 2 * bits, used)


def _ordered(member: npt.NDArray[np.float64], nonmember: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Whether the lower loss is the member's, by falling distance of the two losses in pooled ranks.

    That distance depends on the unordered pair only, and no increasing map of the losses changes it. The sort is
    stable over randomly ordered pairs, so ties in confidence are broken by chance. A tied pair counts as a wrong
    guess, which can only lower the bound.
    """
    _, rank = np.unique(np.concatenate([member, nonmember]), return_inverse=True)
    gap = np.abs(rank[: member.size] - rank[member.size :])
    return np.asarray((member < nonmember)[np.argsort(-gap, kind="stable")])


def _same_stratum(
    members: _Integers, nonmembers: _Integers, of_members: _Integers, of_nonmembers: _Integers
) -> tuple[_Integers, _Integers]:
    """Positions whose k-th entries share a stratum: the first of each stratum's shuffled members and non-members."""
    size = 1 + max(int(of_members.max()), int(of_nonmembers.max()))
    fewer = np.minimum(
        *(np.bincount(side[side >= 0], minlength=size) for side in (of_members, of_nonmembers))
    )
    kept = []
    for positions, stratum in ((members, of_members), (nonmembers, of_nonmembers)):
        known = positions[stratum[positions] >= 0]
        known = known[np.argsort(stratum[known], kind="stable")]
        label = stratum[known]
        place = np.arange(known.size) - np.searchsorted(label, label, side="left")
        kept.append(known[place < fewer[label]])
    return kept[0], kept[1]
