"""``epsilon_bound.propensity``: evidence of one run by estimated odds, if nobody decided by chance who was a member.

A classifier that is learnt from a random half of the records estimates the odds of membership of the others, and these are
guessed like coins of those odds. Membership of different records is taken to be independent given the features.

The half that is learnt from is never audited. In plain cross-fitting, where each half is scored by what the other half teaches,
the odds of one guess depend on the coins of others, and many right guesses are no longer evidence against an epsilon. If the true odds
of every guessed record, given who else was a member, lie within e^k of the estimated ones, the bound less k holds at the same
level (`auditor.estimators.guess_tests.pure_bound`). So the bound itself is how far the estimates would have to be off to
explain the guesses without any leak: by facts that the features do not show, by facts that the classifier did not learn from them, or by
records that came together [own]. That both halves have the same share of members is part of it: it ties each coin to all others
together, by one part in their number, which simulations at the level do not see.

Odds that are learnt fold after fold, with bets on the coins in this order (`auditor.estimators.adaptive`), would leave only the
first quarter unaudited, at a level that holds. In simulations of randomised response with epsilon 1 they certify less all the same:
.76 on average where a half gives .83, at 8,000 records, and .60 where it gives .74, at 2,000. Nor can each fold have the test of
today by the odds of the folds before it: estimates from fewer records are worse. Without a leak, where the loss is a function of six
features, a logistic model of the odds leads to a bound above 0 in 12% of 500 audits of 1,000 records if it is learnt from 1,000 others,
in 18% from 500, and in 30% from 250, where 5% are allowed. The rows ``off_...`` say how much is left if odds are off.
"""

import math
import warnings
from dataclasses import replace
from typing import Any, cast

import numpy as np
from scipy import special

from auditor.core import options
from auditor.core.values import Booleans, Estimate, Floats, Losses, PerGroup, Subject
from auditor.curves.tradeoff import count
from auditor.estimators.evidence import Evidence
from auditor.estimators.guesses import Guesses, of_coins, quarters
from auditor.estimators.one_run import bound_of
from auditor.estimators.rates import auc
from auditor.records.features import CLASSIFIERS, MOST_COLUMNS, Table, classified, encoded

_NAME = "epsilon_bound.propensity"
_METHOD = "one-run audit on estimated odds of membership"
FEWEST = 50  # records of a group, in each half
_BARS = 20  # of the picture of the overlap
_CONDITION = (
    "conditional on estimated odds of membership that are right for every audited record, independently of the others, which no"
    " audit can check: they are wrong where the features lack something, and where the classifier missed something that they contain"
)
_ALL_IT_USES = "the features hold all that the score uses of a record, its label too"
_PERSONS = "several records belong to one person or id, and their membership is not independent; audit one record of each"


ALLOWED = (0.1, 0.25, 0.5, 1.0)  # nats by which odds may be off, of the rows for reading


def propensity_bound(evidence: Evidence) -> tuple[Estimate, ...]:
    """Return the bound by estimated odds if the split needs it, and its remainder if the odds are off."""
    split = evidence.setting.split
    if not isinstance(split, options.Propensity):
        return ()
    result = _bound(evidence, split.overlap)
    about: dict[str, Any] = {"subject": Subject.MECHANISM, "delta": 0.0}
    if isinstance(result, Estimate):
        return (*if_odds_are_off(result, _WITHIN), _off_as_estimated(result))
    return (Estimate.missing(_NAME, result, method=_METHOD, details={"conditional": True}, **about),)


_WITHIN = (
    "conditional on estimated odds of membership that are within a factor of {} of the true ones for every audited record,"
    " independently of the others (declared, not checked)"
)


def if_odds_are_off(estimate: Estimate, within: str) -> tuple[Estimate, ...]:
    """Return a bound that rests on odds, and its remainder if they are off by the factors of `ALLOWED`.

    Args:
        estimate: The bound; its first assumption is about the odds.
        within: That assumption in the other rows, with a place for the factor.
    """
    rows = [estimate]
    for off in ALLOWED:
        row = replace(estimate, name=f"{estimate.name}.off_{off:g}")
        assumed = within.format(f"{math.exp(off):.3g} (e^{off:g})")
        rows.append(row if row.value is None else _less(row, off, assumed, off=off))
    return tuple(rows)


def _less(row: Estimate, by: float, assumed: str, **details: float) -> Estimate:
    """Return the rest of a bound, and of its ceiling, where the odds are off by so much."""
    value, ceiling = (max(0.0, most - by) for most in (row.value or 0.0, row.details["ceiling"]))
    about = {"ceiling": ceiling, "conditional": True, **details}
    return replace(row, value=value, lower=value, assumptions=(assumed, *row.assumptions[1:]), details=about)


def _off_as_estimated(estimate: Estimate) -> Estimate:
    """Return the rest of a bound where the odds are off by the upper limit of their estimated error.

    The bound less the true error exceeds epsilon with one error probability, and the limit misses the true error with another.
    """
    row = replace(estimate, name=f"{estimate.name}.off_estimated")
    confidence = round(2 * (estimate.confidence or 0.0) - 1, 12)
    if estimate.value is None or confidence <= 0:
        return row.emptied("the confidence leaves no error to estimate the odds with", adjacency=None)
    off = estimate.details["odds"]["error"]["upper"]
    return replace(_less(row, off, _AS_FITTED, off_upper=off), confidence=confidence)


_AS_FITTED = (
    "conditional on odds of membership that depend on the estimates alone, along a logistic line that is fitted to the audited"
    " records (binomial GLM, large-sample limits), independently of the others"
)


def odds_error(odds: PerGroup, *, confidence: float) -> dict[str, float]:
    """Return by how many nats estimated odds of membership are off at most, as a calibration line has it, with its limit.

    log-odds = a + b (estimated log-odds), a generalised linear model of the membership of the audited records; at a = 0 and
    b = 1 the estimates are right. Its distance from the estimates, with Scheffe's limits for all of them at once, is
    largest at one of the ends.

    Args:
        odds: The estimated probabilities of members and of non-members.
        confidence: Confidence level of ``upper``, in (0, 1).

    Source: Cox 1958, Two further applications of a model for binary regression.
    """
    from statsmodels.genmod.families import Binomial
    from statsmodels.genmod.generalized_linear_model import GLM

    estimated = special.logit(np.concatenate(odds))
    is_member = np.arange(estimated.size) < odds.member.size
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # estimates that separate all records: the limits are wide then
        fit = GLM(is_member, np.stack([np.ones_like(estimated), estimated], axis=1), Binomial()).fit()
    ends = np.array([[1.0, estimated.min()], [1.0, estimated.max()]])
    off = np.abs(ends @ fit.params - ends[:, 1])
    spread = np.sqrt(np.einsum("ij,jk,ik->i", ends, fit.cov_params(), ends))
    reach = math.sqrt(float(special.chdtri(2, 1 - confidence)))
    return {"value": float(off.max()), "upper": float((off + reach * spread).max())}


def _bound(evidence: Evidence, overlap: float) -> Estimate | str:
    """Return the bound, or why there is none."""
    units, losses = evidence.inputs.units, evidence.losses
    if units.largest > 1 or units.in_both or units.by_id.largest > 1:
        return _PERSONS
    is_member = np.arange(losses.n_member + losses.n_nonmember) < losses.n_member
    rng = evidence.rng("propensity")
    # With the same share of members in both halves, so that how many there are is no estimate: its error alone raised an alarm
    # in one of ten groups of 2,000 records without a leak. It ties a coin to all others together by one part in their number.
    learnt = np.zeros(is_member.size, dtype=bool)
    for side in (is_member, ~is_member):
        rows = rng.permutation(np.flatnonzero(side))
        learnt[rows[: rows.size // 2]] = True
    fewest = min(int((learnt & side).sum()) for side in (is_member, ~is_member))
    if fewest < FEWEST:
        return f"odds of membership are estimated from half of the records, and {fewest} of one group are fewer than {FEWEST}"
    features: Any = evidence.inputs.options.features
    values = _values(features.tables, losses.label, rng)
    chance = special.expit(estimated_odds(values, is_member, learnt))
    overlapping = ~learnt & (chance >= overlap) & (chance <= 1 - overlap)
    counts = {
        "learnt_from": int(learnt.sum()),
        "held": int((~learnt).sum()),
        "kept": int(overlapping.sum()),
        "overlap": overlap,
        "columns": values.shape[1],
        "used": min(values.shape[1], MOST_COLUMNS),
        "members": _bars(chance[~learnt & is_member]),
        "others": _bars(chance[~learnt & ~is_member]),
    }
    if min(int((overlapping & side).sum()) for side in (is_member, ~is_member)) < FEWEST:
        return (
            f"the features separate the groups: of {counts['held']:,} records only {counts['kept']:,} have estimated odds of membership"
            f" between {overlap:g} and {1 - overlap:g}, too few of one group; audit records that could have been in either"
        )
    return _of_estimated(evidence, chance, overlapping, counts)


def _of_estimated(
    evidence: Evidence, chance: Floats, overlapping: Booleans, counts: dict[str, Any]
) -> Estimate | str:
    n = evidence.losses.n_member
    odds = PerGroup(chance[:n][overlapping[:n]], chance[n:][overlapping[n:]])
    held = replace(evidence.losses.take(member=overlapping[:n], nonmember=overlapping[n:]), inclusion=odds)
    rng = evidence.rng("estimated coins")
    guesses = cast("Guesses", of_coins(held, options.BernoulliSplit(), rng, declared=False))
    confidence = evidence.setting.confidence
    # Members have the larger estimated odds, as they have the smaller losses.
    blind = auc(count(Losses(member=-odds.member, nonmember=-odds.nonmember)), confidence=confidence)
    model = auc(count(held), confidence=confidence)
    result = bound_of(
        replace(guesses, evidence="estimated odds of membership", least=evidence.fewest_guesses),
        test=options.AnyGuesses(),
        delta=0.0,
        confidence=confidence,
        curve=None,
        claimed=None,
    )
    areas = {
        name: {"value": row.value, "lower": row.lower, "upper": row.upper}
        for name, row in (("by_features", blind), ("by_losses", model))
    }
    errors = {"misfit": _misfit(odds), "error": odds_error(odds, confidence=confidence)}
    return replace(
        result,
        name=_NAME,
        assumptions=(_CONDITION, _ALL_IT_USES, *result.assumptions[-1:]),
        details={**result.details, "odds": {**counts, **areas, **errors}, "conditional": True},
    )


def _values(tables: tuple[Table, Table], label: PerGroup | None, rng: np.random.Generator) -> Floats:
    """Return the features of all records as columns of numbers, members first, with their true classes where those are known."""
    values, _ = encoded(*tables, rng=rng)
    if label is None:
        return values
    classes, others = (Table(("label",), (np.asarray(column),), column.size) for column in label)
    return np.hstack([values, encoded(classes, others, rng=rng)[0]])


def estimated_odds(values: Floats, is_member: Booleans, learnt: Booleans) -> Floats:
    """Return the log-odds of membership of every record, in nats, learnt from the learning half.

    Logistic regression of membership on the scores of a linear and a tree classifier; what it is fitted to is scored by
    classifiers that saw the other folds of the learnt records (stacking, Wolpert 1992).

    Args:
        values: Shape (n, k), without gaps.
        is_member: Shape (n,).
        learnt: Shape (n,), the records to learn from; nothing depends on who is a member among the others.
    """
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    if values.shape[1] == 0:
        values = np.zeros((values.shape[0], 1))
    names, taught = values[learnt], is_member[learnt]
    fold = np.empty(taught.size, dtype=np.int64)
    for side in (taught, ~taught):
        fold[side] = np.arange(int(side.sum())) % _FOLDS
    with threadpool_limits(limits=1):
        apart = np.empty((taught.size, CLASSIFIERS))
        for turn in range(_FOLDS):
            seen = fold != turn
            apart[~seen] = classified(names[seen], taught[seen], names[~seen]).T
        final = LogisticRegression(C=1e3).fit(apart, taught)
        return np.asarray(final.decision_function(classified(names, taught, values).T))


_FOLDS = 5


def _misfit(odds: PerGroup) -> float:
    """Return the error of the odds of membership, in nats, in the quarter of the records where they fit worst.

    The records are put in order of their estimates; their members are counted as if there were half a one more, and others too.
    """
    chance = np.concatenate(odds)
    gaps = []
    for part in quarters(chance):
        members = int((part < odds.member.size).sum())
        gaps.append(
            math.log((members + 0.5) / (part.size - members + 0.5))
            - float(special.logit(chance[part].mean()))
        )
    return max(map(abs, gaps))


def _bars(chance: Floats) -> list[int]:
    """Return a histogram of probabilities in equal parts of (0, 1)."""
    return list(map(int, np.histogram(chance, bins=_BARS, range=(0, 1))[0]))
