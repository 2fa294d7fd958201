"""One-run audits: Steinke's test and its biased form against published values, an oracle and hand counts."""

import numpy as np
import pytest
from oracles import steinke_p_value as slow_p_value
from scipy import stats

from auditor.choices import BernoulliSplit, RandomSplit, UnknownSplit
from auditor.errors import InputError
from auditor.estimators.one_run import one_run
from auditor.estimators.steinke import biased_bound, biased_p_value, steinke_bound, steinke_p_value
from auditor.values import Losses, Subject


@pytest.mark.parametrize(
    ("m", "r", "v", "expected"),
    [
        (1000, 600, 600, 5.270399),
        (1000, 1000, 600, 0.297227),
        (1000, 1000, 700, 0.731740),
        (1000, 100, 95, 2.165176),
    ],
)
def test_steinke_references(m, r, v, expected):
    """eps_L at delta 1e-5, alpha .05 as in the design's reference values."""
    assert steinke_bound(bits=m, guesses=r, correct=v, delta=1e-5, alpha=0.05) == pytest.approx(
        expected, abs=1e-6
    )


def test_steinke_p_value_references():
    """p(1000,600,600, eps 4, delta 1e-5) = .0012625634 and p(10,10,9, eps 0, delta 0) = 11/1024."""
    found = steinke_p_value(bits=1000, guesses=600, correct=600, epsilon=4.0, delta=1e-5)
    assert found == pytest.approx(0.0012625634, abs=5e-11)
    assert steinke_p_value(bits=10, guesses=10, correct=9, epsilon=0.0, delta=0.0) == pytest.approx(11 / 1024)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0, 7.0])
@pytest.mark.parametrize(
    ("m", "r", "v"), [(50, 50, 50), (80, 40, 33), (300, 200, 90), (20, 5, 0), (900, 900, 700)]
)
def test_steinke_against_every_term(m, r, v, epsilon):
    """The p-value equals Theorem 5.2 with every term of the maximum written out."""
    found = steinke_p_value(bits=m, guesses=r, correct=v, epsilon=epsilon, delta=1e-3)
    assert found == pytest.approx(slow_p_value(m, r, v, epsilon, 1e-3), rel=1e-8)


def test_biased_references():
    """Coins of .8, 200 guesses, 190 right: 1.011577; fair coins, 100 guesses, 90 right: 1.630823 (design)."""
    biased = biased_bound(guesses=(200, 0), correct=190, inclusion=0.8, alpha=0.05)
    fair = biased_bound(guesses=(100, 0), correct=90, inclusion=0.5, alpha=0.05)
    assert biased == pytest.approx(1.011577, abs=1e-6)
    assert fair == pytest.approx(1.630823, abs=1e-6)


def test_fair_coins_for_a_biased_split_would_invent_a_leak():
    """160 right of 200 at .8 inclusion is what no leakage gives: the right coin finds 0, a fair coin above 1 (1.09)."""
    assert biased_bound(guesses=(200, 0), correct=160, inclusion=0.8, alpha=0.05) == 0.0
    assert biased_bound(guesses=(200, 0), correct=160, inclusion=0.5, alpha=0.05) == pytest.approx(
        1.09, abs=5e-3
    )


@pytest.mark.parametrize("guesses", [(7, 0), (0, 9), (6, 8)])
def test_biased_p_value_against_all_outcomes(guesses):
    """The p-value equals the tail of a sum over both kinds of guesses, convolved term by term."""
    epsilon, inclusion = 0.7, 0.3
    prior = np.log(inclusion / (1 - inclusion))
    masses = [
        stats.binom.pmf(np.arange(n + 1), n, 1 / (1 + np.exp(-epsilon - sign * prior)))
        for n, sign in zip(guesses, (1, -1), strict=True)
    ]
    tail = np.convolve(*masses)[::-1].cumsum()[::-1]
    for correct in range(sum(guesses) + 1):
        found = biased_p_value(guesses=guesses, correct=correct, inclusion=inclusion, epsilon=epsilon)
        assert found == pytest.approx(tail[correct], rel=1e-10)


def test_an_undeclared_split_is_refused_with_the_reason(rng):
    """Without a declared split the row has no value and says what must be declared."""
    found = one_run(
        Losses(member=[0.0, 1.0], nonmember=[0.0, 1.0]), split=UnknownSplit(), delta=1e-5, rng=rng
    )
    assert found.value is None
    assert found.subject is Subject.MECHANISM
    assert "split uniformly at random" in found.reason


def test_a_perfect_attack_reaches_the_ceiling(rng):
    """Separated groups reach the ceiling of both kinds of split, and say which adjacency they audit."""
    losses = Losses(member=np.linspace(0, 1, 300), nonmember=np.linspace(2, 3, 300))
    by_pairs = one_run(losses, split=RandomSplit(), delta=1e-5, rng=rng)
    by_coins = one_run(losses, split=BernoulliSplit(0.5), delta=1e-5, rng=rng)
    assert by_pairs.value == by_pairs.details["ceiling"] > 3
    assert by_coins.value == by_coins.details["ceiling"] > 3
    assert (by_pairs.adjacency, by_coins.adjacency) == ("replace-one", "add-remove")
    assert by_coins.delta == 0


def test_the_wrong_way_round_certifies_nothing(rng):
    """An attack whose guesses are all wrong gives 0, not a bound for the reverse."""
    losses = Losses(member=np.linspace(2, 3, 300), nonmember=np.linspace(0, 1, 300))
    assert one_run(losses, split=RandomSplit(), delta=1e-5, rng=rng).value == 0
    assert one_run(losses, split=BernoulliSplit(0.5), delta=1e-5, rng=rng).value == 0


@pytest.mark.parametrize("split", [RandomSplit(), BernoulliSplit(0.4)])
def test_constant_losses_certify_nothing(rng, split):
    """All-equal losses give 0 for both kinds of split."""
    losses = Losses(member=np.ones(200), nonmember=np.ones(300))
    assert one_run(losses, split=split, delta=1e-5, rng=rng).value == 0


def test_unequal_groups_pair_the_smaller(rng):
    """Pairs are as many as the smaller group."""
    losses = Losses(member=rng.normal(0, 1, 50), nonmember=rng.normal(0, 1, 400))
    assert one_run(losses, split=RandomSplit(), delta=1e-5, rng=rng).details["pairs"] == 50


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ((10, 12, 5), "correct guesses <= guesses <= bits"),
        ((10, 5, 6), "correct guesses"),
        ((10, 0, 0), "guesses must"),
    ],
)
def test_counts_that_do_not_fit(counts, sentence):
    """Counts in the wrong order are refused."""
    bits, guesses, correct = counts
    with pytest.raises(InputError, match=sentence):
        steinke_bound(bits=bits, guesses=guesses, correct=correct, delta=0.0, alpha=0.05)


def test_coins_that_the_group_sizes_contradict_are_refused(rng):
    """A balanced sample of coins of .9 has other odds than declared, so there is no bound and the reason says why."""
    losses = Losses(member=rng.normal(-1, 1, 500), nonmember=rng.normal(0, 1, 500))
    found = one_run(losses, split=BernoulliSplit(0.9), delta=0.0, rng=rng)
    assert found.value is None
    assert "500 members among 1,000 scored records do not come from coins of probability 0.9" in found.reason
    assert one_run(losses, split=BernoulliSplit(0.5), delta=0.0, rng=rng).value is not None
