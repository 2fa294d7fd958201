"""What a promise means for one person, in whole numbers "out of 100".

Nanayakkara et al. 2023 found that people understand a privacy promise best as two frequencies side by side: what
happens if they do not take part, and what if they do. The numbers here are whole and rounded toward the worst case,
so that no sentence promises more than its claim; rare events are told as "1 in 1,000".
"""

import math
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

from auditor import _validate
from auditor.choices import Adjacency
from auditor.errors import InputError
from auditor.theory.priors import posterior_from_epsilon, precision_from_tpr
from auditor.theory.rates import tpr_from_epsilon, tpr_metric
from auditor.values import Claim

__all__ = [
    "accusations_in_words",
    "belief_in_words",
    "odds_in_words",
    "out_of",
    "rates_in_words",
    "success_in_words",
]

# The largest number to count out of.
_LARGEST = 1_000_000_000
# A double's rounding error must not turn 61 into 62.
_PRECISE = Context(prec=12, rounding=ROUND_HALF_EVEN)
_ROUNDING = {"down": ROUND_FLOOR, "up": ROUND_CEILING, "nearest": ROUND_HALF_EVEN}


def out_of(share: float, *, toward: str = "up") -> str:
    """Return a share as a whole number out of 100, or of more where it is nearly none or nearly all.

    Args:
        share: In [0, 1].
        toward: ``up`` (for what must not be exceeded), ``down`` or ``nearest``.

    Raises:
        InputError: The share is outside [0, 1], or ``toward`` is unknown.

    >>> out_of(0.128), out_of(0.0004), out_of(0.001), out_of(0.9996), out_of(0.5, toward="down")
    ('13 out of 100', '4 in 10,000', '1 in 1,000', '9,996 out of 10,000', '50 out of 100')
    """
    exact = _decimal(_validate.fraction("share", share, zero=True, one=True))
    rounding = _ROUNDING[_validate.known("toward", toward, tuple(_ROUNDING))]
    rest = min(exact, 1 - exact)
    if toward == "nearest" and 0 < rest < Decimal(1) / _LARGEST:
        return f"{'' if exact == rest else 'all but '}fewer than 1 in {_LARGEST:,}"
    base = _base(rest)
    count = int((exact * base).to_integral_value(rounding))
    return _counted(count, base)


def odds_in_words(claim: Claim) -> str:
    """Return what an (epsilon, delta), or an advantage, means for a person who decides about taking part.

    Of all events that an observer may go by, it names the one that the promise separates best: it happens to x out of
    100 who do not take part, and then to at most y who do, by the trade-off curve of (epsilon, delta). An advantage is
    the delta at epsilon 0.

    Args:
        claim: An ``epsilon`` claim, in nats, with its delta, or an ``advantage`` claim; a replace-one claim compares
            with someone else's taking part instead.

    Raises:
        InputError: The claim is neither an epsilon with its delta nor an advantage.

    Source: Nanayakkara et al. 2023 (ODDS-TEXT); Kairouz, Oh and Viswanath 2015 for the bound.

    >>> print(odds_in_words(Claim("epsilon", 0.447, 0.0, Adjacency.ADD_REMOVE, "stated", True)))
    If you do not participate, 39 out of 100 potential outcomes will lead an observer to believe that you did. If you participate, at most 61 out of 100 potential outcomes will lead the observer to believe so.
    """
    _validate.known("claim metric", claim.metric, ("epsilon", "advantage"))
    if claim.value is None:
        return _unknown(claim)
    if claim.metric == "advantage":
        claim = replace(claim, metric="epsilon", value=0.0, delta=claim.value)
    if claim.value is None or claim.delta is None:
        raise InputError("an epsilon claim needs its delta, got none; state the delta of the claim.")
    apart = (
        "you do not participate"
        if claim.adjacency is Adjacency.ADD_REMOVE
        else "someone else takes your place"
    )
    corner = _decimal((1 - claim.delta) / (1 + math.exp(min(claim.value, 700.0))))
    if corner < Decimal(1) / _LARGEST:
        return (
            f"If {apart}, fewer than 1 in {_LARGEST:,} potential outcomes will lead an observer to believe"
            " that you did. If you participate, all of them may."
        )
    base = _base(corner)
    # Of the two whole numbers next to the best point of the curve, the one that tells more, or else the nearer.
    beside = {int((corner * base).to_integral_value(rounding)) for rounding in (ROUND_FLOOR, ROUND_CEILING)}
    pairs = [(without, _reached(claim, without, base)) for without in sorted(beside)]
    without, with_you = max(pairs, key=lambda pair: (pair[1] - pair[0], -abs(pair[0] - corner * base)))
    return (
        f"If {apart}, {without:,} out of {base:,} potential outcomes will lead an observer to believe that"
        f" you did. If you participate, {_most(claim)} {with_you:,} out of {base:,} potential outcomes will lead the"
        " observer to believe so."
    )


def _reached(claim: Claim, without: int, base: int) -> int:
    """Return out of how many an event may happen with the person that happens so often without, rounded up."""
    share = tpr_from_epsilon(claim, fpr=without / base).value
    return int((_decimal(1.0 if share is None else share) * base).to_integral_value(ROUND_CEILING))


def belief_in_words(claim: Claim, *, prior: float = 0.5) -> str:
    """Return how far any outcome can move the belief of someone who suspects that a person took part.

    Args:
        claim: An ``epsilon`` claim at delta 0, in nats.
        prior: Their belief beforehand, in (0, 1).

    Raises:
        InputError: The claim is not an epsilon with its delta, or the prior is outside (0, 1).

    >>> from auditor.choices import Adjacency
    >>> print(belief_in_words(Claim("epsilon", 0.447, 0.0, Adjacency.ADD_REMOVE, "stated", True)))
    Someone who gives your participation a chance of 50 out of 100 beforehand gives it at least 39 out of 100 and at most 61 out of 100 afterwards, whatever the outcome.
    """
    highest = posterior_from_epsilon(claim, prior=prior)
    if highest.value is None:
        return _unknown(highest)
    absent = posterior_from_epsilon(claim, prior=1 - prior).value or 0.0
    least = "at least" if claim.proven else "about"
    return (
        f"Someone who gives your participation a chance of {out_of(prior, toward='nearest')} beforehand gives it {least}"
        f" {out_of(1 - absent, toward='down')} and {_most(claim)} {out_of(highest.value)} afterwards, whatever the outcome."
    )


def rates_in_words(claim: Claim, *, fpr: float) -> str:
    """Return what a true positive rate at a false positive rate means for records in and outside the training set.

    Args:
        claim: A ``tpr_at_fpr.<fpr>`` claim.
        fpr: The false positive rate that it is about, in (0, 1].

    Raises:
        InputError: The claim is about another rate, or the rate is out of range.

    >>> from auditor.choices import Adjacency
    >>> print(rates_in_words(Claim("tpr_at_fpr.0.01", 0.038204, None, Adjacency.REPLACE_ONE, "stated", True), fpr=0.01))
    An attacker who wrongly accuses 1 out of 100 records outside the training set finds at most 4 out of 100 of those in it.
    """
    _validate.known("claim metric", claim.metric, (tpr_metric(fpr),))
    if claim.value is None:
        return _unknown(claim)
    return (
        f"An attacker who wrongly accuses {out_of(fpr, toward='nearest')} records outside the training set finds"
        f" {_most(claim)} {out_of(claim.value)} of those in it."
    )


def accusations_in_words(claim: Claim, *, fpr: float, prior: float) -> str:
    """Return how many of the records that an attacker accuses were in the training set.

    Args:
        claim: A ``tpr_at_fpr.<fpr>`` claim.
        fpr: The false positive rate that it is about, in (0, 1].
        prior: The share of members among the records that the attacker looks at, in (0, 1).

    Raises:
        InputError: The claim is about another rate, or a number is out of range.

    >>> from auditor.choices import Adjacency
    >>> claim = Claim("tpr_at_fpr.0.01", 0.038204, None, Adjacency.REPLACE_ONE, "stated", True)
    >>> print(accusations_in_words(claim, fpr=0.01, prior=0.1))
    Of 100 records that the attacker accuses, at most 30 were in the training set, where 10 out of 100 were expected beforehand (false alarms: 1 out of 100).
    """
    precision = precision_from_tpr(claim, fpr=fpr, prior=prior)
    if precision.value is None:
        return _unknown(claim)
    base = _base(min(_decimal(precision.value), 1 - _decimal(precision.value)))
    count = int((_decimal(precision.value) * base).to_integral_value(ROUND_CEILING))
    were = "was" if count == 1 else "were"
    return (
        f"Of {base:,} records that the attacker accuses, {_most(claim)} {count:,} {were} in the training set, where"
        f" {out_of(prior, toward='nearest')} were expected beforehand (false alarms: {out_of(fpr, toward='nearest')})."
    )


def success_in_words(claim: Claim, *, prior: float = 0.5) -> str:
    """Return how often an attacker is right, beside how often guessing is.

    Args:
        claim: A ``success_rate`` claim of `auditor.theory.priors` for this prior.
        prior: In (0, 1).

    Raises:
        InputError: The claim is another quantity or about another prior, or the prior is outside (0, 1).

    >>> from auditor.choices import Adjacency
    >>> print(success_in_words(Claim("success_rate", 0.51, None, Adjacency.REPLACE_ONE, "stated", True)))
    The attacker is right about at most 51 out of 100 records; guessing without the model is right about 50 out of 100.
    """
    guess = max(_validate.fraction("prior", prior), 1 - prior)
    names = ("success_rate",) if guess == 0.5 else _names(prior)  # noqa: PLR2004
    _validate.known("claim metric", claim.metric, names)
    if claim.value is None:
        return _unknown(claim)
    return (
        f"The attacker is right about {_most(claim)} {out_of(claim.value)} records; guessing without the model is right"
        f" about {out_of(guess, toward='nearest')}."
    )


def _names(prior: float) -> tuple[str, ...]:
    """A success rate is the same for a prior and its complement when it follows from Bayes security."""
    return f"success_rate_at_prior.{prior:g}", f"success_rate_at_prior.{max(prior, 1 - prior):g}"


def _decimal(x: float) -> Decimal:
    return _PRECISE.create_decimal(repr(float(x)))


def _base(rest: Decimal) -> int:
    """Return the smallest of 100, 1,000, ... out of which this share makes one or more."""
    base = 100
    while 0 < rest * base < 1 and base < _LARGEST:
        base *= 10
    return base


def _counted(count: int, base: int) -> str:
    while base > 100 and count % 10 == 0:  # noqa: PLR2004
        count, base = count // 10, base // 10
    # A rare event reads as "1 in 1,000", a common one as "13 out of 100".
    return f"{count:,} in {base:,}" if base > 100 and 2 * count < base else f"{count:,} out of {base:,}"  # noqa: PLR2004


def _most(claim: Claim) -> str:
    return "at most" if claim.proven else "about"


def _unknown(claim: Claim) -> str:
    return f"This cannot be said in numbers here. {claim.note}".strip()
