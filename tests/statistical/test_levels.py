"""True claims are refuted in at most one of twenty audits: laws exactly at their claim, at the level of the verdict.

Each cell is a law, a number of runs or coins, and a kind of audit. Where the verdict is a plain function of an estimate it is
that function that is called; whole audits follow. A cell fails where the lower limit of its rate of refutations, at 99.9%,
lies above 5%. With ``--long -s`` every cell has 4,000 audits (whole ones: 300) and prints its rate.
"""

import math

import numpy as np
import pytest
from scipy import special
from simulation import ALPHA, at_most, rate_of

from auditor import DPSGD, Sequential, audit, audit_instances, audit_runs
from auditor.core import BernoulliSplit, Losses, PerGroup, RandomSplit, StatedClaim, Verdict
from auditor.core.options import IndependentRuns
from auditor.curves import TradeoffCurve
from auditor.estimators import (
    draw_guesses,
    of_epsilon_delta,
    of_gdp,
    pure_p_value,
    rejects,
)
from auditor.estimators.betting import Bets, Lines
from auditor.estimators.guess_tests import pure_step
from auditor.estimators.guesses import of_coins
from auditor.estimators.joint_test import of_curve
from auditor.theory import claimed_curve

GAUSSIAN = claimed_curve(DPSGD(1.0, 1.0, 1)).curve
PURE = TradeoffCurve.from_epsilon_delta(1.0, delta=0.0)
DELTA = TradeoffCurve.from_epsilon_delta(0.5, delta=0.05)
NONE = TradeoffCurve.from_epsilon_delta(0.0, delta=0.0)


def rate_is_kept(request, name, refuted, *, seed, runs, long=4000):
    """Whether a true claim was refuted seldom enough."""
    return at_most(*rate_of(request, name, refuted, seed=seed, runs=runs, long=long))


# --- Many runs -----------------------------------------------------------------------------------------


def on_curve(fpr, tpr):
    """Scores whose trade-off curve has these corners: uniform without the canary."""
    return lambda rng, n1, n0: Losses(np.interp(rng.random(n1), tpr, fpr), rng.random(n0))


def one_tail(curve, rate):
    """The same curve up to a rate of alarms, where all that leaks is in the low scores, and a straight line beyond."""
    allowed = float(np.interp(rate, curve.fpr, curve.tpr))
    below = curve.fpr < rate
    return on_curve(np.append(curve.fpr[below], [rate, 1.0]), np.append(curve.tpr[below], [allowed, 1.0]))


def mirrored(law):
    """The same in the high scores: the two worlds exchanged and the scores turned round."""

    def drawn(rng, n1, n0):
        losses = law(rng, n0, n1)
        return Losses(-losses.nonmember, -losses.member)

    return drawn


def rounded(law, values):
    """The same with few different scores."""

    def drawn(rng, n1, n0):
        losses = law(rng, n1, n0)
        return Losses(np.floor(values * losses.member), np.floor(values * losses.nonmember))

    return drawn


RUNS = {
    "noise": (NONE, on_curve(NONE.fpr, NONE.tpr)),
    "gaussian": (GAUSSIAN, lambda rng, n1, n0: Losses(rng.normal(-1, 1, n1), rng.normal(0, 1, n0))),
    "laplace": (PURE, lambda rng, n1, n0: Losses(rng.laplace(-1, 1, n1), rng.laplace(0, 1, n0))),
    "worst pure": (PURE, on_curve(PURE.fpr, PURE.tpr)),
    "worst delta": (DELTA, on_curve(DELTA.fpr, DELTA.tpr)),
    "response": (PURE, rounded(on_curve(PURE.fpr, PURE.tpr), 1 + math.e)),
    "low tail": (GAUSSIAN, one_tail(GAUSSIAN, 0.03)),
    "high tail": (GAUSSIAN, mirrored(one_tail(GAUSSIAN, 0.03))),
    "low tail of a pure claim": (PURE, one_tail(PURE, 0.1)),
    "high tail of a pure claim": (PURE, mirrored(one_tail(PURE, 0.1))),
    "five values": (GAUSSIAN, rounded(on_curve(GAUSSIAN.fpr, GAUSSIAN.tpr), 5)),
}


@pytest.mark.parametrize("sizes", [(20, 20), (60, 400), (500, 500)])
@pytest.mark.parametrize("law", RUNS)
def test_a_fixed_number_of_runs(request, law, sizes):
    """The joint test at a claim that is exactly true."""
    curve, draw = RUNS[law]
    test = of_curve(*sizes, curve)

    def refuted(rng):
        return test.p_value(draw(rng, *sizes), alpha=ALPHA) <= ALPHA

    assert rate_is_kept(request, f"fixed runs, {law}, {sizes}", refuted, seed=71, runs=100)


@pytest.mark.parametrize("law", RUNS)
def test_runs_that_stop_at_any_time(request, law):
    """Bets against a claim that is exactly true, looked at after each of 100 pairs."""
    curve, draw = RUNS[law]
    lines = Lines.of_curve(curve)

    def refuted(rng):
        bets, losses = Bets(lines), draw(rng, 100, 100)
        bets.add(losses.member, losses.nonmember)
        return bets.most >= -math.log(ALPHA)

    assert rate_is_kept(request, f"sequential runs, {law}", refuted, seed=72, runs=30)


# --- One run -------------------------------------------------------------------------------------------


def refutes(losses, split, rng, *, epsilon=None, finv=None):
    """Whether the default test refutes a pure epsilon, or a whole curve by its finv."""
    guesses = draw_guesses(losses, split=split, rng=rng, thin=finv is not None)
    if finv is not None:
        counts = ({"guesses": item.guesses, "correct": item.correct} for item in guesses.sets)
        return any(
            rejects(finv, bits=guesses.bits, **item, alpha=ALPHA / len(guesses.sets)) for item in counts
        )
    # The bound exceeds the claim only where the next point of its grid is refuted.
    step = pure_step(guesses.bits)
    following = step * (math.floor(epsilon / step) + 1)
    if guesses.fair:
        right, made = np.array([(item.correct, item.guesses) for item in guesses.sets]).T
        if (special.bdtrc(right + 0.0, made, special.expit(following))[right > 0] > ALPHA).all():
            return False  # the joint p-value is above the chance of more right guesses in any one set
    return pure_p_value(guesses, guesses.sets, epsilon=following, alpha=ALPHA) <= ALPHA


def paired(loss, centre=0.5):
    """One stratum for each pair, which tells its orientation at a privacy loss; positive where it tells the truth.

    The centre says which loss of a pair shows how sure it is: 0 the smaller, 1 the larger.
    """
    size = np.minimum(np.abs(loss), 99.0)
    low, high, strata = -size * (1 - centre), size * centre, np.arange(loss.size)
    member, nonmember = np.where(loss > 0, low, high), np.where(loss > 0, high, low)
    return Losses(member, nonmember, group=PerGroup(strata, strata))


def response(rng, size, epsilon=1.0, delta=0.0):
    """Privacy losses of randomised response; with chance delta the truth is revealed."""
    told = np.where(rng.random(size) < special.expit(epsilon), epsilon, -epsilon)
    return np.where(rng.random(size) < delta, np.inf, told)


def coarse(loss):
    """Few different sizes of the privacy loss."""
    return np.sign(loss) * np.ceil(np.abs(loss))


def blurred(rng, loss):
    """The same with losses that are all different, which says nothing more about the orientation."""
    return loss * (1 + rng.random(loss.size) / 1e3)


def shared(rng, size):
    """One |L| of the Gaussian mechanism for all pairs, each of which then tells the truth by a coin of its own."""
    drawn = abs(rng.normal(0.5, 1))
    return response(rng, size, drawn)


PURE_1 = {"epsilon": 1.0}
GDP_1 = {"finv": of_gdp(1.0)}
PAIRS = {
    "noise": ({"epsilon": 0.0}, lambda rng, m: paired(rng.normal(0, 1, m))),
    "response": (PURE_1, lambda rng, m: paired(response(rng, m))),
    "response and delta": (
        {"finv": of_epsilon_delta(1.0, delta=0.02)},
        lambda rng, m: paired(response(rng, m, 1.0, 0.02)),
    ),
    "gaussian": (GDP_1, lambda rng, m: paired(rng.normal(0.5, 1, m))),
    "gaussian, low tail": (GDP_1, lambda rng, m: paired(rng.normal(0.5, 1, m), 0.0)),
    "gaussian, high tail": (GDP_1, lambda rng, m: paired(rng.normal(0.5, 1, m), 1.0)),
    "gaussian, discrete": (GDP_1, lambda rng, m: paired(coarse(rng.normal(0.5, 1, m)))),
    "one |L|": (GDP_1, lambda rng, m: paired(shared(rng, m))),
}


@pytest.mark.parametrize("pairs", [20, 300, 5000])
@pytest.mark.parametrize("law", PAIRS)
def test_pairs_within_strata(request, law, pairs):
    """One run on pairs whose orientation is revealed exactly as far as the claim allows."""
    claim, draw = PAIRS[law]

    def refuted(rng):
        return refutes(draw(rng, pairs), RandomSplit(stratified=True), rng, **claim)

    runs = {20: 200, 300: 60, 5000: 15}[pairs]
    assert rate_is_kept(request, f"pairs, {law}, {pairs}", refuted, seed=73, runs=runs)


RECORDS = {
    "laplace": ({"epsilon": 2.0}, RUNS["laplace"][1]),
    "response": ({"epsilon": 2.0}, RUNS["response"][1]),
    "gaussian": ({"finv": of_gdp(math.sqrt(2))}, RUNS["gaussian"][1]),
    "low tail": ({"finv": of_gdp(math.sqrt(2))}, RUNS["low tail"][1]),
    "high tail": ({"finv": of_gdp(math.sqrt(2))}, RUNS["high tail"][1]),
}


@pytest.mark.parametrize("law", RECORDS)
def test_random_pairs_of_records(request, law):
    """One run on random pairs of records, each at half of the claim: replacing one changes two."""
    claim, draw = RECORDS[law]

    def refuted(rng):
        return refutes(draw(rng, 150, 150), RandomSplit(), rng, **claim)

    assert rate_is_kept(request, f"random pairs, {law}", refuted, seed=74, runs=60)


COINS = {
    "noise": ({"epsilon": 0.0}, RUNS["noise"][1]),
    "laplace": (PURE_1, RUNS["laplace"][1]),
    "response": (PURE_1, RUNS["response"][1]),
    "low tail of a pure claim": (PURE_1, RUNS["low tail of a pure claim"][1]),
    "gaussian": (GDP_1, RUNS["gaussian"][1]),
    "low tail": (GDP_1, RUNS["low tail"][1]),
    "high tail": (GDP_1, RUNS["high tail"][1]),
    "delta": ({"finv": of_epsilon_delta(0.5, delta=0.05)}, RUNS["worst delta"][1]),
}


@pytest.mark.parametrize("inclusion", [0.5, 0.8])
@pytest.mark.parametrize("law", COINS)
def test_inclusion_coins(request, law, inclusion):
    """One run on inclusion coins, fair or thinned to fair ones, and unequal ones at delta 0."""
    claim, draw = COINS[law]

    def refuted(rng):
        # Sizes so unlikely that the declaration is doubted would give no verdict at all.
        mean, reach = 300 * inclusion, 3 * math.sqrt(300 * inclusion * (1 - inclusion))
        members = int(
            np.clip(rng.binomial(300, inclusion), math.ceil(mean - reach), math.floor(mean + reach))
        )
        return refutes(draw(rng, members, 300 - members), BernoulliSplit(inclusion), rng, **claim)

    assert rate_is_kept(request, f"coins {inclusion}, {law}", refuted, seed=75, runs=60)


def answers(rng, coin, epsilon, leak):
    """Losses that tell membership by randomised response: of all, of all or none by one chance, or at one end alone."""
    sure = epsilon * {"all": 1.0, "one |L|": rng.random() < 0.5, "one end": rng.random(coin.size) < 0.5}[leak]
    says_in = coin == (rng.random(coin.size) < special.expit(sure))
    return np.where(np.greater(sure, 0), 1.0 - 2.0 * says_in, 0.0) * (2 + rng.random(coin.size))


@pytest.mark.parametrize("inclusion", [0.5, 0.1, 0.8, "own"])
@pytest.mark.parametrize("leak", ["all", "one |L|", "one end"])
@pytest.mark.parametrize("size", [20, 50, 100, 300])
def test_a_pure_epsilon_is_refuted_at_its_level(request, size, leak, inclusion):
    """Randomised response exactly at the claim, on shared coins and on each record's own, is refuted in at most 5%."""

    def refuted(rng):
        chance = special.expit(rng.normal(0, 1.5, size)) if inclusion == "own" else np.full(size, inclusion)
        coin = rng.random(size) < chance
        if not 1 < coin.sum() < size - 1:
            return False  # two groups are needed
        loss = answers(rng, coin, 1.0, leak)
        losses = Losses(loss[coin], loss[~coin], inclusion=(chance[coin], chance[~coin]))
        guesses = of_coins(losses, BernoulliSplit(), rng, declared=False)
        return pure_p_value(guesses, guesses.sets, epsilon=1.0, alpha=ALPHA) <= ALPHA

    assert rate_is_kept(request, f"response, {leak}, {inclusion}, {size}", refuted, seed=78, runs=30)


# --- Whole audits --------------------------------------------------------------------------------------


def whole_runs(rng):
    """audit_runs() of the Gaussian mechanism at its claim."""
    losses = RUNS["gaussian"][1](rng, 60, 60)
    return audit_runs(losses, delta=1e-5, claim=DPSGD(1.0, 1.0, 1))


def whole_sequence(rng):
    """audit_runs() by bets."""
    losses = RUNS["high tail"][1](rng, 60, 60)
    return audit_runs(losses, delta=1e-5, claim=DPSGD(1.0, 1.0, 1), test=Sequential())


def whole_run(rng):
    """audit() of pairs by randomised response at a pure claim."""
    losses = paired(blurred(rng, response(rng, 200)))
    claim = StatedClaim(1.0, 0.0, adjacency="replace-one")
    return audit(losses, delta=0.0, split=RandomSplit(stratified=True), claim=claim)


def tossed(rng, records, inclusion):
    """Records of the Gaussian mechanism, each a member by its own coin."""
    members = int(rng.binomial(records, inclusion))
    return RUNS["gaussian"][1](rng, members, records - members)


def whole_coins(rng):
    """audit() of thinned coins at a Gaussian claim."""
    losses = tossed(rng, 300, 0.8)
    return audit(losses, delta=1e-5, split=BernoulliSplit(0.8), claim=DPSGD(1.0, 1.0, 1))


def pooled(draw, claim, split=RandomSplit(stratified=True), **options):  # noqa: B008 - a frozen value
    """audit_instances() of three models whose runs were independent."""

    def audited(rng):
        models = [draw(rng) for _ in range(3)]
        return audit_instances(models, claim=claim, split=split, together=IndependentRuns(), **options)

    return audited


WHOLE = {
    "runs": whole_runs,
    "sequence": whole_sequence,
    "pairs": whole_run,
    "coins": whole_coins,
    "pooled response": pooled(
        lambda rng: paired(blurred(rng, response(rng, 150))),
        StatedClaim(1.0, 1e-6, adjacency="replace-one"),
        delta=1e-6,
    ),
    "pooled noise": pooled(
        lambda rng: paired(blurred(rng, response(rng, 150) * np.where(rng.random(150) < 0.5, 1, -1))),
        StatedClaim(0.0, 1e-6, adjacency="replace-one"),
        delta=1e-6,
    ),
    "pooled |L|": pooled(
        lambda rng: paired(blurred(rng, shared(rng, 150))),
        DPSGD(2.0, 1.0, 1),  # replaced: mu = 2/2
        delta=1e-5,
    ),
    "pooled coins": pooled(
        lambda rng: tossed(rng, 200, 0.5),
        DPSGD(1.0, 1.0, 1),
        split=BernoulliSplit(0.5),
        delta=1e-5,
    ),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_whole_audits(request, kind):
    """The verdict of whole audits on a claim that is exactly true."""
    assert rate_is_kept(
        request,
        f"whole audit, {kind}",
        lambda rng: WHOLE[kind](rng).verdict is Verdict.REFUTED,
        seed=76,
        runs=8,
        long=300,
    )


def test_the_table_can_fail(request):
    """The same check refuses a claim that is a little too small: what it counts is not always nothing."""
    test = of_curve(500, 500, TradeoffCurve.from_epsilon_delta(0.8, delta=0.0))

    def refuted(rng):
        return test.p_value(RUNS["worst pure"][1](rng, 500, 500), alpha=ALPHA) <= ALPHA

    assert not rate_is_kept(request, "claim too small", refuted, seed=77, runs=200)
