"""Everything that one DP-SGD description promises, for both kinds of neighbours, each number by every method."""

from collections.abc import Iterable, Iterator, Sequence

from auditor import _validate
from auditor.choices import DPSGD, Adjacency
from auditor.errors import InputError
from auditor.theory.accountant import epsilon, replace_one
from auditor.theory.advantage import bayes_security_from_advantage, humphries, rough_epsilon
from auditor.theory.closed_form import bayes_security_closed_form, bayes_security_moment_matched
from auditor.theory.gdp import mu_clt, mu_without_sampling
from auditor.theory.priors import success_rate
from auditor.theory.rates import tpr_from_advantage
from auditor.theory.renyi import pinsker_renyi, renyi_epsilon
from auditor.theory.total_variation import total_variation, total_variation_by_accountant
from auditor.theory.training_rates import tpr_exact, tpr_from_curve
from auditor.theory.wording import odds_in_words, rates_in_words, success_in_words
from auditor.values import Claim

__all__ = ["in_words", "leading", "overview"]

RATES = (0.1, 0.01, 0.001)
_ALIKE = 1e-6
_WHICH = {Adjacency.ADD_REMOVE: "added or removed", Adjacency.REPLACE_ONE: "replaced by another"}


def overview(
    training: DPSGD,
    *,
    delta: float,
    rates: Sequence[float] = RATES,
    prior: float = 0.5,
    adjacencies: Sequence[Adjacency] = (Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE),
) -> tuple[Claim, ...]:
    """Return the epsilon, mu, advantage, Bayes security, success rate and true positive rates of a training run.

    Args:
        training: Noise, sampling rate and steps.
        delta: In [0, 1), to state epsilon at.
        rates: False positive rates, in (0, 1].
        prior: Chance that the record was in, before the attacker looks; in (0, 1).
        adjacencies: Which kinds of neighbours.

    Returns:
        For each adjacency in turn, each quantity by every method; `leading` picks the best. A number
        that cannot be computed is there, null, with the reason in its note.

    Raises:
        InputError: A number out of range, or an unknown adjacency.

    >>> rows = overview(DPSGD(1.0, 0.01, 1000), delta=1e-5, rates=(0.1,))
    >>> [(row.metric, round(row.value, 3)) for row in leading(rows) if row.adjacency == "replace-one"][3:]
    [('advantage', 0.264), ('bayes_security', 0.736), ('success_rate', 0.632), ('tpr_at_fpr.0.1', 0.272)]
    """
    _validate.instance("training", training, [DPSGD])
    delta = _validate.fraction("delta", delta, zero=True)
    belief = _validate.fraction("prior", prior)
    if not isinstance(rates, Iterable) or not list(rates):
        raise InputError(f"rates must be false positive rates such as (0.1, 0.01), got {rates!r}.")
    known = [str(item) for item in Adjacency]
    asked = [adjacencies] if isinstance(adjacencies, str) else adjacencies
    relations = [Adjacency(_validate.known("adjacency", item, known)) for item in asked]
    return tuple(
        row for relation in relations for row in _rows(training, relation, delta, tuple(rates), belief)
    )


def _rows(
    training: DPSGD, adjacency: Adjacency, delta: float, rates: tuple[float, ...], prior: float
) -> Iterator[Claim]:
    accounted = epsilon(training, delta=delta, adjacency=adjacency)
    converted = None
    if adjacency is Adjacency.REPLACE_ONE and not training.fixed_size:
        converted = replace_one(epsilon(training, delta=delta))
    yield accounted
    yield renyi_epsilon(training, delta=delta, adjacency=adjacency)
    if converted is not None:
        yield converted
    if adjacency is Adjacency.REPLACE_ONE:
        yield rough_epsilon(bayes_security_closed_form(training), delta=delta)
    everyone = mu_without_sampling(training, adjacency=adjacency)
    yield everyone
    if any(phase.sampling_rate < 1 for phase in training.phases):
        yield mu_clt(training, adjacency=adjacency)
    advantage = total_variation(training, adjacency=adjacency)
    yield advantage
    yield total_variation_by_accountant(training, adjacency=adjacency)
    yield pinsker_renyi(training, adjacency=adjacency)
    yield humphries(converted if converted is not None and accounted.value is None else accounted)
    yield bayes_security_from_advantage(advantage)
    if adjacency is Adjacency.REPLACE_ONE:  # both forms are about replaced records
        yield bayes_security_closed_form(training)
        yield bayes_security_moment_matched(training)
    yield success_rate(training, prior=prior, adjacency=adjacency)
    for rate in rates:
        yield tpr_exact(training, fpr=rate, adjacency=adjacency)
        yield tpr_from_curve(training, fpr=rate, adjacency=adjacency)
        yield tpr_from_advantage(advantage, fpr=rate)


def leading(claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """Return one claim for each quantity and adjacency: the best proven one, else the first with a value, else the first.

    An epsilon competes with others at its delta only. Of mu both remain where records are sampled: the proven one ignores
    the sampling, the other is asymptotic.

    >>> from auditor.choices import Adjacency
    >>> rows = [Claim("epsilon", value, 0.0, Adjacency.ADD_REMOVE, "by hand", value > 1) for value in (1.0, 3.0, 2.0)]
    >>> leading(rows)[0].value
    2.0
    """
    found: dict[tuple[str, Adjacency, bool], Claim] = {}
    for claim in claims:
        key = (claim.metric, claim.adjacency, claim.metric == "mu" and claim.proven)
        best = found.setdefault(key, claim)
        if claim.delta == best.delta and _better(claim, best):
            found[key] = claim
    return tuple(found.values())


def _better(claim: Claim, best: Claim) -> bool:
    """Whether a claim says more than the best so far."""
    if claim.value is None or best.value is None:
        return claim.value is not None
    if not (claim.proven and best.proven):
        return claim.proven
    # Rounding decides nothing between two methods that agree.
    gain = (claim.value - best.value) * (1 if claim.metric == "bayes_security" else -1)
    return gain > _ALIKE * abs(best.value)


def in_words(
    claims: Sequence[Claim], *, rates: Sequence[float] = RATES, prior: float = 0.5
) -> tuple[str, ...]:
    """Return the leading claims on replaced records as sentences with "out of 100", or on added ones without those.

    The first sentence says whom the others are about.

    Args:
        claims: From `overview`, with the same rates and prior.
        rates: As there.
        prior: As there.

    >>> print(in_words(overview(DPSGD(2.0, 0.01, 100), delta=1e-6, rates=(0.1,)), rates=(0.1,))[2])
    The attacker is right about at most 52 out of 100 records; guessing without the model is right about 50 out of 100.
    """
    shown = leading(claims)
    relations = [claim.adjacency for claim in shown]
    relation = Adjacency.REPLACE_ONE if Adjacency.REPLACE_ONE in relations else Adjacency.ADD_REMOVE
    by_metric = {claim.metric: claim for claim in shown if claim.adjacency is relation}
    success = next(claim for metric, claim in by_metric.items() if metric.startswith("success_rate"))
    sentences = [
        f"About one record that is {_WHICH[relation]}, and an attacker who sees every iterate of the training.",
        odds_in_words(by_metric["advantage"]),
        success_in_words(success, prior=prior),
    ]
    sentences += [rates_in_words(by_metric[f"tpr_at_fpr.{rate:g}"], fpr=rate) for rate in rates]
    return tuple(sentences)
