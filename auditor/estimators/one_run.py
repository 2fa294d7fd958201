"""``epsilon_bound.one_run``: a lower bound on the training mechanism's epsilon from one trained model.

It needs to know how membership was decided, and refuses otherwise. The guesses may depend only on the model's output
and on the unordered records, never on who is a member.
"""

from typing import Any

import numpy as np

from auditor import _validate
from auditor.choices import Adjacency, BernoulliSplit, MembershipSplit, RandomSplit
from auditor.estimators.steinke import biased_bound, steinke_bound
from auditor.values import Estimate, Losses, Subject

__all__ = ["one_run"]

# Numbers of guesses to try, as shares of the bits, fixed before any data are seen; they share the error.
_SHARES = (1.0, 0.25, 0.05)
_NAME = "epsilon_bound.one_run"
# Group sizes this unlikely under the declared coins mean that the declaration is not true of these records.
_CONTRADICTION = 1e-3


def one_run(
    losses: Losses,
    *,
    split: MembershipSplit,
    delta: float,
    confidence: float = 0.95,
    rng: np.random.Generator,
) -> Estimate:
    """Return the lower bound on the mechanism's epsilon that the declared split supports.

    Args:
        losses: Smaller means more like a member.
        split: How membership was decided. `RandomSplit` gives the replace-one adjacency, `BernoulliSplit` the
            add/remove adjacency (at delta 0), `UnknownSplit` an estimate without a value and the reason.
        delta: In [0, 1); for a `BernoulliSplit` the bound is stated at delta 0 whatever is asked.
        confidence: In (0, 1).
        rng: Draws the pairs and breaks ties.

    Raises:
        InputError: delta outside [0, 1) or confidence outside (0, 1).

    >>> losses = Losses(member=np.linspace(0, 1, 100), nonmember=np.linspace(2, 3, 100))
    >>> estimate = one_run(losses, split=RandomSplit(), delta=1e-5, rng=np.random.default_rng(0))
    >>> estimate.value == estimate.details["ceiling"]
    True
    """
    delta = _validate.fraction("delta", delta, zero=True)
    alpha = 1 - _validate.confidence(confidence)
    match split:
        case RandomSplit():
            return _random(losses, delta, alpha, rng)
        case BernoulliSplit():
            return _bernoulli(losses, split.inclusion, alpha, rng)
        case _:
            return _without_value(delta, _UNDECLARED)


_UNDECLARED = (
    "it was not declared how membership was decided; a statement about the training algorithm needs members and"
    " non-members split uniformly at random, or independent inclusion coins, and the auditor's word for it"
)


def _without_value(delta: float, reason: str) -> Estimate:
    return Estimate(
        name=_NAME,
        value=None,
        lower=None,
        upper=None,
        confidence=None,
        method="one-run audit",
        subject=Subject.MECHANISM,
        delta=delta,
        details={"reason": reason},
    )


def _numbers_of_guesses(bits: int) -> tuple[int, ...]:
    return tuple(sorted({max(1, round(share * bits)) for share in _SHARES}, reverse=True))


# --- Random pairs, replace-one -------------------------------------------------------------------


def _random(losses: Losses, delta: float, alpha: float, rng: np.random.Generator) -> Estimate:
    right = _pair_outcomes(losses, rng)
    bits = right.size
    tried = _numbers_of_guesses(bits)
    share = alpha / len(tried)
    found = []
    for guesses in tried:
        correct = int(right[:guesses].sum())
        bound = steinke_bound(bits=bits, guesses=guesses, correct=correct, delta=delta, alpha=share)
        found.append({"guesses": guesses, "correct": correct, "bound": bound})
    ceiling = max(steinke_bound(bits=bits, guesses=r, correct=r, delta=delta, alpha=share) for r in tried)
    return _estimate(
        found,
        {"pairs": bits, "ceiling": ceiling},
        delta=delta,
        adjacency=Adjacency.REPLACE_ONE,
        confidence=1 - alpha,
        method="one-run audit on random pairs; Steinke, Nasr and Jagielski 2023, Theorem 5.2",
        assumptions=(
            "members and non-members were split uniformly at random before training (declared, not checked)",
            "the hold-out took no part in training, early stopping or selection",
        ),
    )


def _pair_outcomes(losses: Losses, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Pair members with non-members at random, most confident pair first; true where the lower loss is the member's.

    Confidence is the distance of the two losses in pooled ranks: it depends on the unordered pair only, and no
    increasing map of the losses changes it. A tied pair counts as a wrong guess, which can only lower the bound.
    """
    bits = min(losses.n_member, losses.n_nonmember)
    member = losses.member[rng.permutation(losses.n_member)[:bits]]
    nonmember = losses.nonmember[rng.permutation(losses.n_nonmember)[:bits]]
    _, rank = np.unique(np.concatenate([member, nonmember]), return_inverse=True)
    gap = np.abs(rank[:bits] - rank[bits:])
    # The sort is stable over randomly ordered pairs, so ties in confidence are broken by chance.
    order = np.argsort(-gap, kind="stable")
    return np.asarray((member < nonmember)[order])


# --- Inclusion coins, add/remove ------------------------------------------------------------------


def _bernoulli(losses: Losses, inclusion: float, alpha: float, rng: np.random.Generator) -> Estimate:
    refusal = _wrong_proportion(losses, inclusion)
    if refusal is not None:
        return _without_value(0.0, refusal)
    is_member = _ordered_membership(losses, rng)
    tried = _numbers_of_guesses(is_member.size)
    share = alpha / len(tried)
    found, ceilings = [], []
    for guesses in tried:
        n_in, n_out = guesses // 2, guesses - guesses // 2
        correct = int(is_member[:n_in].sum() + (~is_member[is_member.size - n_out :]).sum())
        bound, ceiling = (
            biased_bound(guesses=(n_in, n_out), correct=right, inclusion=inclusion, alpha=share)
            for right in (correct, guesses)
        )
        ceilings.append(ceiling)
        found.append({"guesses": guesses, "correct": correct, "bound": bound})
    return _estimate(
        found,
        {"records": int(is_member.size), "inclusion": inclusion, "ceiling": max(ceilings)},
        delta=0.0,
        adjacency=Adjacency.ADD_REMOVE,
        confidence=1 - alpha,
        method="one-run audit on inclusion coins; Poisson-binomial form of Steinke, Nasr and Jagielski 2023",
        assumptions=(
            f"each record was included by an independent coin of probability {inclusion:g} (declared, not checked)",
            "every record that had a coin was scored, or a sample of them drawn without looking at membership",
            "the hold-out took no part in training, early stopping or selection",
        ),
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


def _ordered_membership(losses: Losses, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Membership of all records in ascending order of loss, ties in random order."""
    values = np.concatenate([losses.member, losses.nonmember])
    shuffle = rng.permutation(values.size)
    order = shuffle[np.argsort(values[shuffle], kind="stable")]
    return np.asarray(order < losses.n_member)


def _estimate(
    found: list[dict[str, Any]],
    extra: dict[str, Any],
    *,
    delta: float,
    adjacency: Adjacency,
    confidence: float,
    method: str,
    assumptions: tuple[str, ...],
) -> Estimate:
    best = max(found, key=lambda row: row["bound"])
    return Estimate(
        name=_NAME,
        value=best["bound"],
        lower=best["bound"],
        upper=None,
        confidence=round(confidence, 12),
        method=method,
        subject=Subject.MECHANISM,
        delta=delta,
        adjacency=adjacency,
        assumptions=assumptions,
        details={**extra, "guesses": best["guesses"], "correct": best["correct"], "tried": found},
    )
