"""Promises of a training description: all quantities at once, the claims that an audit judges, and plain words."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

import numpy as np

from auditor.core import DPSGD, Adjacency, Claim, StatedClaim, StatedCurve, TrainingClaim, number, validate
from auditor.core.errors import InputError
from auditor.theory import attackers
from auditor.theory.accountant import claimed_curve, delta_of, epsilon, implied, of_records, replace_one
from auditor.theory.closed_form import bayes_security_closed_form, bayes_security_moment_matched
from auditor.theory.gaussian import as_accounted, mu_clt, mu_without_sampling
from auditor.theory.renyi import pinsker_renyi, renyi_epsilon

# --- Everything that one DP-SGD description promises, for both kinds of neighbours, each number by every method ---

_RATES = (0.1, 0.01, 0.001)
_ALIKE = 1e-6
_NEAREST = "nearest Gaussian curve above"
_WHICH = {Adjacency.ADD_REMOVE: "added or removed", Adjacency.REPLACE_ONE: "replaced by another"}


def overview(
    training: DPSGD,
    *,
    delta: float,
    rates: Sequence[float] = _RATES,
    prior: float = 0.5,
    adjacencies: Sequence[Adjacency] = (Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE),
) -> tuple[Claim, ...]:
    """Return the epsilon, mu, advantage, Bayes security, success rate and true positive rates of a training run.

    Args:
        training: Noise, sampling rate and steps.
        delta: In [0, 1), to state epsilon at.
        rates: False positive rates, in (0, 1].
        prior: Chance that the record was in, before the attacker looks; in (0, 1).
        adjacencies: Kinds of neighbours.

    Returns:
        For each adjacency in turn, each quantity by every method; `leading` picks the best. A number
        that cannot be computed is there, None, with the reason in its note.

    Raises:
        InputError: A number out of range, or an unknown adjacency.

    >>> rows = overview(DPSGD(1.0, 0.01, 1000), delta=1e-5, rates=(0.1,))
    >>> [(row.metric, round(row.value, 3)) for row in leading(rows) if row.adjacency == "replace-one"][3:]
    [('advantage', 0.264), ('bayes_security', 0.736), ('success_rate', 0.632), ('tpr_at_fpr.0.1', 0.272)]
    """
    validate.instance("training", training, [DPSGD])
    delta = validate.fraction("delta", delta, zero=True)
    belief = validate.fraction("prior", prior)
    if not isinstance(rates, Iterable) or not list(rates):
        raise InputError(f"rates must be false positive rates such as (0.1, 0.01), got {rates!r}.")
    setting = [adjacencies] if isinstance(adjacencies, str) else adjacencies
    relations = [Adjacency.named(item) for item in setting]
    about = delta, tuple(rates), belief
    return tuple(row for relation in relations for row in _rows(training, relation, *about))


def _rows(
    training: DPSGD, adjacency: Adjacency, delta: float, rates: tuple[float, ...], prior: float
) -> Iterator[Claim]:
    accounted = epsilon(training, delta=delta, adjacency=adjacency)
    if training.records_per_person is not None:
        yield from _of_people(training, accounted, rates, prior)
        return
    converted = None
    if adjacency is Adjacency.REPLACE_ONE and not training.fixed_size:
        converted = replace_one(epsilon(training, delta=delta))
    yield accounted
    yield renyi_epsilon(training, delta=delta, adjacency=adjacency)
    if converted is not None:
        yield converted
    if adjacency is Adjacency.REPLACE_ONE:
        yield attackers.rough_epsilon(bayes_security_closed_form(training), delta=delta)
    everyone = mu_without_sampling(training, adjacency=adjacency)
    yield everyone
    if training.sampled:
        yield mu_claim(training, adjacency=adjacency)
        yield mu_clt(training, adjacency=adjacency)
    advantage = attackers.total_variation(training, adjacency=adjacency)
    yield advantage
    yield pinsker_renyi(training, adjacency=adjacency)
    yield attackers.humphries(converted if converted is not None and accounted.value is None else accounted)
    yield attackers.bayes_security_from_advantage(advantage)
    if adjacency is Adjacency.REPLACE_ONE:  # both forms are about replaced records
        yield bayes_security_closed_form(training)
        yield bayes_security_moment_matched(training)
    yield attackers.success_rate(training, prior=prior, adjacency=adjacency)
    for rate in rates:
        yield attackers.tpr_exact(training, fpr=rate, adjacency=adjacency)
        yield attackers.tpr_from_advantage(advantage, fpr=rate)


def _of_people(training: DPSGD, accounted: Claim, rates: tuple[float, ...], prior: float) -> Iterator[Claim]:
    """Return all quantities for people with several records, from the whole curve."""
    curve = claimed_curve(training, adjacency=accounted.adjacency).curve
    yield accounted
    yield mu_claim(training, adjacency=accounted.adjacency)
    names = ("advantage", attackers.named("success_rate", prior), *map(attackers.tpr_metric, rates))
    values: list[float | None] = [None] * len(names)
    if curve is not None:
        right = float(np.max(prior * curve.tpr + (1 - prior) * (1 - curve.fpr)))
        values = [curve.advantage, right, *map(curve.tpr_at, rates)]
    for name, value in zip(names, values, strict=True):
        result = replace(accounted, metric=name, value=value, delta=None)
        yield result
        if name == "advantage":
            yield attackers.bayes_security_from_advantage(result)


def leading(claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """Return one claim for each quantity and adjacency: the best proven one, else the first with a value, else the first.

    An epsilon competes with others at its delta only. Of mu both kinds remain where records are sampled: a proven one and
    the asymptotic one.

    >>> from auditor.core.options import Adjacency
    >>> rows = [Claim("epsilon", value, 0.0, Adjacency.ADD_REMOVE, "by hand", value > 1) for value in (1.0, 3.0, 2.0)]
    >>> leading(rows)[0].value
    2.0
    """
    result: dict[tuple[str, Adjacency, bool], Claim] = {}
    for claim in claims:
        key = (claim.metric, claim.adjacency, claim.metric == "mu" and claim.proven)
        best = result.setdefault(key, claim)
        if claim.delta == best.delta and _better(claim, best):
            result[key] = claim
    return tuple(result.values())


def _better(claim: Claim, best: Claim) -> bool:
    """Return whether a claim is stronger than the best so far."""
    if claim.value is None or best.value is None:
        return claim.value is not None
    if not (claim.proven and best.proven):
        return claim.proven
    # Rounding decides nothing between two methods that agree.
    gain = (claim.value - best.value) * (1 if claim.metric == "bayes_security" else -1)
    return gain > _ALIKE * abs(best.value)


def in_words(
    claims: Sequence[Claim],
    *,
    rates: Sequence[float] = _RATES,
    prior: float = 0.5,
    records: int | None = None,
) -> tuple[str, ...]:
    """Return the leading claims on replaced records as sentences with "out of 100", or on added ones without those.

    The first sentence states the subject of the others, and the last states the limit of the count.

    Args:
        claims: From `overview`, with the same rates and prior.
        rates: As for `overview`.
        prior: As for `overview`.
        records: The largest number of records of a person, where the claims are about people.

    >>> print(in_words(overview(DPSGD(2.0, 0.01, 100), delta=1e-6, rates=(0.1,)), rates=(0.1,))[2])
    The attacker is right about at most 52 out of 100 records; guessing without the model is right about 50 out of 100.
    """
    selected = leading(claims)
    relations = [claim.adjacency for claim in selected]
    relation = Adjacency.REPLACE_ONE if Adjacency.REPLACE_ONE in relations else Adjacency.ADD_REMOVE
    by_metric = {claim.metric: claim for claim in selected if claim.adjacency is relation}
    success = next(claim for metric, claim in by_metric.items() if metric.startswith("success_rate"))
    about, which = "one record that is", _WHICH[relation]
    if records is not None:
        about = f"one person, whose up to {records:,} records are all"
        which = which.removesuffix(" by another")
    sentences = [
        f"About {about} {which}, and an attacker who sees every iterate of the training.",
        odds_in_words(by_metric["advantage"]),
        success_in_words(success, prior=prior),
    ]
    sentences += [rates_in_words(by_metric[f"tpr_at_fpr.{rate:g}"], fpr=rate) for rate in rates]
    return (*sentences, _ONE_RUN)


_ONE_RUN = "This run alone is counted: runs that only tried other settings on the same records, as tuning does, are not."

# --- One mu for a whole curve, and its overstatement ---

_LEAST_RATE = 1e-10
_MUCH_REGRET = 0.01


@as_accounted
def mu_claim(claim: TrainingClaim, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Claim:
    """Return the smallest mu whose Gaussian curve lies above the claimed one at error rates of 1e-10 and more.

    For DP-SGD without sampling, and for a stated mu, it is exact: that of `mu_without_sampling`, or the stated one; for
    people with up to k records k times that.

    Unlike `mu_clt` it is proven, and unlike `mu_without_sampling` it counts the sampling. At ever smaller error rates a
    sampled run tends to the mu without sampling, which is why there is a smallest one, that of Gomez et al.

    Args:
        claim: DP-SGD parameters, a stated (epsilon, delta), or a stated curve.
        adjacency: Relation between neighbouring training sets.

    Returns:
        ``mu``, with its regret in the note: how much the Gaussian curve overstates either error rate at most. None, with
        the reason, where there is no curve.

    Raises:
        InputError: The claim is of another type, or the adjacency is unknown.

    Source: Gomez et al. 2025; `TradeoffCurve.mu_and_regret`.

    >>> from auditor.core.options import DPSGD
    >>> claim = mu_claim(DPSGD(9.4, 0.328, 2000))
    >>> round(claim.value, 2), claim.note[:14]
    (1.57, 'Regret 0.00115')
    """
    relation = Adjacency.named(adjacency)
    whole = claimed_curve(claim, adjacency=relation)
    records = claim.records_per_person or 1
    if isinstance(claim, DPSGD) and not claim.sampled:
        single = mu_without_sampling(of_records(claim), adjacency=relation)
        if records == 1 or single.value is None:
            return single
        return replace(single, value=records * single.value, method=whole.note)
    if isinstance(claim, StatedCurve) and claim.mu is not None and whole.curve is not None:
        mu = claim.mu * records * (1 + (claim.adjacency is not relation))
        return Claim("mu", mu, None, relation, whole.note, proven=True)
    if whole.curve is None:
        reason = f"{whole.note[:1].upper()}{whole.note[1:]}."
        return Claim("mu", None, None, relation, _NEAREST, proven=True, note=reason)
    mu, regret = whole.curve.mu_and_regret(least_rate=_LEAST_RATE)
    smallest = attackers.gaussian_tpr(_LEAST_RATE, mu)
    note = (
        f"Regret {number(regret, toward='up')}: how much the Gaussian curve overstates at most"
        f"{'; mu alone overstates' if regret > _MUCH_REGRET else ''}. It holds for error rates of"
        f" {number(_LEAST_RATE)} and more, and deltas of {number(smallest, toward='up')} and more."
    )
    return Claim("mu", mu, None, relation, f"{_NEAREST}; {whole.note}", proven=True, note=note)


# --- Claims that an audit compares its numbers with ---


def claims(claim: TrainingClaim, *, delta: float) -> tuple[Claim, ...]:
    """Return every number that follows from one training description.

    Membership inference on train-versus-fresh records is a question about replaced records, so advantage and
    Bayes security are those for replaced records: exact for DP-SGD, from the (converted) epsilon for a statement.

    Args:
        claim: DP-SGD parameters, a stated (epsilon, delta), or a stated curve.
        delta: In [0, 1), for DP-SGD and a curve; a stated (epsilon, delta) keeps its own.

    Returns:
        For DP-SGD: the add/remove epsilon, the replace-one epsilon by the exact law and by conversion, the advantage,
        the Bayes security it leaves, and the two approximations of it; for batches of a fixed size only what is about replaced records, and for shuffled ones nothing is proven.
        For a statement: its epsilon, the replace-one conversion of an add/remove one, advantage, Bayes security; for a
        curve in the same way, the replace-one epsilon at the same delta, and the advantage by the whole curve.

    Raises:
        InputError: Delta is outside [0, 1).

    >>> from auditor.core.options import DPSGD
    >>> [item.metric for item in claims(DPSGD(1.0, 0.5, 2), delta=1e-5)][3:]
    ['advantage', 'bayes_security', 'bayes_security', 'bayes_security']
    """
    delta = validate.fraction("delta", delta, zero=True)
    if isinstance(claim, StatedClaim):
        delta = implied(claim, claim.adjacency).delta or claim.delta
        own = epsilon(claim, delta=delta, adjacency=claim.adjacency)
        converted = replace_one(own)
        advantage = attackers.humphries(converted)
        rows = (own,) if converted is own else (own, converted)
        return (*rows, advantage, attackers.bayes_security_from_advantage(advantage))
    return _of_curve(claim, delta) if isinstance(claim, StatedCurve) else _of_training(claim, delta)


def _of_curve(claim: StatedCurve, delta: float) -> tuple[Claim, ...]:
    setting = dict.fromkeys((claim.adjacency, Adjacency.REPLACE_ONE))
    rows = [epsilon(claim, delta=delta, adjacency=adjacency) for adjacency in setting]
    curve = claimed_curve(claim, adjacency=Adjacency.REPLACE_ONE)
    value = None if curve.curve is None else curve.curve.advantage
    method = f"largest TPR - FPR of {curve.note}"
    advantage = Claim("advantage", value, None, Adjacency.REPLACE_ONE, method, proven=True)
    return (*rows, advantage, attackers.bayes_security_from_advantage(advantage))


def _of_training(claim: DPSGD, delta: float) -> tuple[Claim, ...]:
    accounted = epsilon(claim, delta=delta, adjacency=Adjacency.REPLACE_ONE)
    if claim.records_per_person is not None:
        kinds = [Adjacency.REPLACE_ONE] if claim.fixed_size else list(Adjacency)
        own = [epsilon(claim, delta=delta, adjacency=kind) for kind in kinds]
        about = _of_people(claim, own[-1], (), 0.5)
        return (*own, *(row for row in about if row.metric in ("advantage", "bayes_security")))
    advantage = attackers.total_variation(claim, adjacency=Adjacency.REPLACE_ONE)
    rest = (
        advantage,
        attackers.bayes_security_from_advantage(advantage),
        bayes_security_closed_form(claim),
        bayes_security_moment_matched(claim),
    )
    if claim.fixed_size:
        return (accounted, *rest)
    add_remove = epsilon(claim, delta=delta)
    return (add_remove, accounted, replace_one(add_remove), *rest)


# --- The meaning of a promise for one person, in whole numbers "out of 100" ---
#
# Nanayakkara et al. 2023 found that people understand a privacy promise best as two frequencies side by side: what
# happens if they do not take part, and what if they do. The numbers here are whole and rounded toward the worst case,
# so that no sentence promises more than its claim; rare events are stated as "1 in 1,000".

# The largest number to count out of.
_LARGEST = 1_000_000_000
# A double's rounding error must not turn 61 into 62.
_PRECISE = Context(prec=12, rounding=ROUND_HALF_EVEN)
_ROUNDING = {"down": ROUND_FLOOR, "up": ROUND_CEILING, "nearest": ROUND_HALF_EVEN}


def out_of(share: float, *, toward: str = "up") -> str:
    """Return a share as a whole number out of 100, or of more where it is nearly none or nearly all.

    Args:
        share: In [0, 1].
        toward: ``up`` (for upper bounds), ``down`` or ``nearest``.

    Raises:
        InputError: The share is outside [0, 1], or ``toward`` is unknown.

    >>> out_of(0.128), out_of(0.0004), out_of(0.001), out_of(0.9996), out_of(0.5, toward="down")
    ('13 out of 100', '4 in 10,000', '1 in 1,000', '9,996 out of 10,000', '50 out of 100')
    """
    exact = _decimal(validate.fraction("share", share, zero=True, one=True))
    rounding = _ROUNDING[validate.one_of("toward", toward, tuple(_ROUNDING))]
    rest = min(exact, 1 - exact)
    if toward == "nearest" and 0 < rest < Decimal(1) / _LARGEST:
        return f"{'' if exact == rest else 'all but '}fewer than 1 in {_LARGEST:,}"
    base = _base(rest)
    count = int((exact * base).to_integral_value(rounding))
    while base > 100 and count % 10 == 0:  # noqa: PLR2004
        count, base = count // 10, base // 10
    # A rare event reads as "1 in 1,000", a common one as "13 out of 100".
    return f"{count:,} in {base:,}" if base > 100 and 2 * count < base else f"{count:,} out of {base:,}"  # noqa: PLR2004


def odds_in_words(claim: Claim) -> str:
    """Return the meaning of an (epsilon, delta), or an advantage, for a person who decides about taking part.

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
    validate.one_of("claim metric", claim.metric, ("epsilon", "advantage"))
    if claim.value is None:
        return _unknown(claim)
    value, delta = (0.0, claim.value) if claim.metric == "advantage" else (claim.value, delta_of(claim))
    claim = replace(claim, metric="epsilon", value=value, delta=delta)
    added = claim.adjacency is Adjacency.ADD_REMOVE
    apart = "you do not participate" if added else "someone else takes your place"
    corner = _decimal((1 - delta) / (1 + math.exp(min(value, 700.0))))
    if corner < Decimal(1) / _LARGEST:
        return (
            f"If {apart}, fewer than 1 in {_LARGEST:,} potential outcomes will lead an observer to believe"
            " that you did. If you participate, all of them may."
        )
    base = _base(corner)
    # Of the two whole numbers next to the best point of the curve, the stronger one, or else the nearer.
    pairs = []
    for rounding in (ROUND_FLOOR, ROUND_CEILING):
        without = int((corner * base).to_integral_value(rounding))
        share = attackers.tpr_from_epsilon(claim, fpr=without / base).value or 1.0
        pairs.append((without, int((_decimal(share) * base).to_integral_value(ROUND_CEILING))))
    without, with_you = max(pairs, key=lambda pair: (pair[1] - pair[0], -abs(pair[0] - corner * base)))
    return (
        f"If {apart}, {without:,} out of {base:,} potential outcomes will lead an observer to believe that"
        f" you did. If you participate, {_most(claim)} {with_you:,} out of {base:,} potential outcomes will lead the"
        " observer to believe so."
    )


def belief_in_words(claim: Claim, *, prior: float = 0.5) -> str:
    """Return how far any outcome can move the belief of someone who suspects that a person took part.

    Args:
        claim: An ``epsilon`` claim at delta 0, in nats.
        prior: Their belief beforehand, in (0, 1).

    Raises:
        InputError: The claim is not an epsilon with its delta, or the prior is outside (0, 1).

    >>> from auditor.core.options import Adjacency
    >>> print(belief_in_words(Claim("epsilon", 0.447, 0.0, Adjacency.ADD_REMOVE, "stated", True)))
    Someone who gives your participation a chance of 50 out of 100 beforehand gives it at least 39 out of 100 and at most 61 out of 100 afterwards, whatever the outcome.
    """
    highest = attackers.posterior_from_epsilon(claim, prior=prior)
    if highest.value is None:
        return _unknown(highest)
    absent = attackers.posterior_from_epsilon(claim, prior=1 - prior).value or 0.0
    least = "at least" if claim.proven else "about"
    return (
        f"Someone who gives your participation a chance of {out_of(prior, toward='nearest')} beforehand gives it {least}"
        f" {out_of(1 - absent, toward='down')} and {_most(claim)} {out_of(highest.value)} afterwards, whatever the outcome."
    )


def rates_in_words(claim: Claim, *, fpr: float) -> str:
    """Return the meaning of a true positive rate at a false positive rate for records in and outside the training set.

    Args:
        claim: A ``tpr_at_fpr.<fpr>`` claim.
        fpr: The false positive rate that it is about, in (0, 1].

    Raises:
        InputError: The claim is about another rate, or the rate is out of range.

    >>> from auditor.core.options import Adjacency
    >>> print(rates_in_words(Claim("tpr_at_fpr.0.01", 0.038204, None, Adjacency.REPLACE_ONE, "stated", True), fpr=0.01))
    An attacker who wrongly accuses 1 out of 100 records outside the training set finds at most 4 out of 100 of those in it.
    """
    validate.one_of("claim metric", claim.metric, (attackers.tpr_metric(fpr),))
    if claim.value is None:
        return _unknown(claim)
    return (
        f"An attacker who wrongly accuses {out_of(fpr, toward='nearest')} records outside the training set finds"
        f" {_most(claim)} {out_of(claim.value)} of those in it."
    )


def success_in_words(claim: Claim, *, prior: float = 0.5) -> str:
    """Return how often an attacker is right, beside how often guessing is.

    Args:
        claim: A ``success_rate`` claim of `auditor.theory.attackers` for this prior.
        prior: In (0, 1).

    Raises:
        InputError: The claim is another quantity or about another prior, or the prior is outside (0, 1).

    >>> from auditor.core.options import Adjacency
    >>> print(success_in_words(Claim("success_rate", 0.51, None, Adjacency.REPLACE_ONE, "stated", True)))
    The attacker is right about at most 51 out of 100 records; guessing without the model is right about 50 out of 100.
    """
    guess = max(validate.fraction("prior", prior), 1 - prior)
    # A success rate is the same for a prior and its complement when it follows from Bayes security.
    named = [f"success_rate_at_prior.{belief:g}" for belief in (prior, guess)]
    validate.one_of("claim metric", claim.metric, ["success_rate"] if guess == 1 / 2 else named)
    if claim.value is None:
        return _unknown(claim)
    return (
        f"The attacker is right about {_most(claim)} {out_of(claim.value)} records; guessing without the model is right"
        f" about {out_of(guess, toward='nearest')}."
    )


def _decimal(x: float) -> Decimal:
    return _PRECISE.create_decimal(repr(float(x)))


def _base(rest: Decimal) -> int:
    """Return the smallest of 100, 1,000, ... out of which this share makes one or more."""
    base = 100
    while 0 < rest * base < 1 and base < _LARGEST:
        base *= 10
    return base


def _most(claim: Claim) -> str:
    return "at most" if claim.proven else "about"


def _unknown(claim: Claim) -> str:
    return f"This cannot be said in numbers here. {claim.note}".strip()
