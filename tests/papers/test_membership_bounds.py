"""Mahloujifar et al. 2022, optimal membership inference bounds: what the paper prints and claims, against the package.

Elsewhere: Algorithm 1, its vectors and the m = 5e5 of Section 5 (`tests/theory/test_monte_carlo.py` and
`tests/statistical/test_monte_carlo.py`), Theorem 6 (`test_total_variation.py`), Corollary 11 (`test_rates.py`), Definition 20
and the corrected Theorem 21 (`test_priors.py`), Pinsker's bound (`test_renyi.py`), Theorem 3 (`test_advantage.py`); the errata
to Algorithm 1, Lemma 5, Proposition 8, Theorem 21 and Appendix H (`test_errata.py` here).

The games of Appendices F.1 and I are held to closed forms of their attacks: a coordinate of the model is a binomial number of
clipped gradients plus normal noise. Simulations are seeded; their tolerance is five standard errors, so that a change of a
random number generator does not fail them.
"""

import math
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, ndtr

import auditor
from auditor import DPSGD, theory

NOTEBOOKS = str(Path(__file__).parents[2] / "notebooks")
if NOTEBOOKS not in sys.path:
    sys.path.append(NOTEBOOKS)

from experiments import adult, games, gaussian, grid, membership, private_logistic  # noqa: E402

ADDED, REPLACED = "add-remove", "replace-one"
SIGMAS = 5
ONE_HOT = {"sampling_rate": 0.1, "epochs": 5}


def exact(training, adjacency=ADDED):
    """The bound of Theorem 6."""
    return theory.total_variation(training, adjacency=adjacency).value


def final_model_attack(problem, game):
    """The advantage of the paper's final-model attack in closed form: sums over records, then over their batches."""
    steps, q = problem.steps, problem.sampling_rate
    shared = problem.records / problem.dimension if game == "yeom" else 0.0
    cut = steps * q * (0.5 + shared)
    spread = problem.noise_multiplier * math.sqrt(steps)

    def accused(records):
        drawn = np.arange(records * steps + 1)
        return stats.binom.pmf(drawn, records * steps, q) @ ndtr((drawn - cut) / spread)

    if game == "ours":
        return accused(1) - accused(0)
    others = np.arange(30)
    present, absent = (stats.binom.pmf(others, problem.records - b, 1 / problem.dimension) for b in (1, 0))
    return present @ [accused(k + 1) for k in others] - absent @ [accused(k) for k in others]


@pytest.mark.parametrize(
    ("noise", "rate", "steps"),
    [(0.5, 0.001, 10_000), (1.5, 0.001, 10_000), (0.5, 0.02, 2_500), (2.0, 0.02, 2_500)],
)
def test_section_5_bounds_agree_with_another_library(noise, rate, steps):
    """At the ends of MNIST's and CIFAR's printed settings the bound is dp-accounting's delta at epsilon 0.

    Its grid rounds losses up, by about the square root of the number of steps times the grid, hence 2e-3.
    """
    training = DPSGD(noise, rate, steps)
    other = theory.total_variation_by_accountant(training, adjacency=ADDED).value
    assert exact(training) == pytest.approx(other, abs=2e-3)


def test_section_5_mnist_is_not_close_to_0_01():
    """10 epochs at q = .001 with noise up to 1.5 allow .0298 at the least; the printed .01 is that of one epoch, or noise 4.

    By the Gaussian limit: mu = q sqrt(T (e^(1/s^2) - 1)) and 2 Phi(mu/2) - 1, good to 1e-3 for so many small steps.
    """
    least = exact(DPSGD(1.5, 0.001, 10_000))
    mu = 0.001 * math.sqrt(10_000 * math.expm1(1 / 1.5**2))
    assert least == pytest.approx(2 * ndtr(mu / 2) - 1, abs=1e-3)
    assert least > 0.0295
    assert exact(DPSGD(1.5, 0.001, 1_000)) == pytest.approx(0.01, abs=0.001)
    assert exact(DPSGD(4.0, 0.001, 10_000)) == pytest.approx(0.01, abs=0.001)


def test_pinsker_says_nothing_from_a_divergence_of_2():
    """Section 3.2: sqrt(KL/2) reaches 1 at KL = 2, which without sampling is T/(2 s^2) = 2, and not before."""
    assert theory.pinsker_renyi(DPSGD(0.5, 1.0, 1)).value == pytest.approx(1, abs=1e-12)
    assert theory.pinsker_renyi(DPSGD(0.49, 1.0, 1)).value == 1
    assert theory.pinsker_renyi(DPSGD(1.0, 1.0, 3)).value == pytest.approx(math.sqrt(3 / 4), abs=1e-12)


def test_epsilon_above_10_is_not_certainty():
    """The abstract: a Gaussian mechanism of epsilon 10 at delta 1e-5 allows .683, where epsilon alone allows .9999."""
    noise = theory.noise_multiplier_for(
        theory.WantedEpsilon(10.0, delta=1e-5), sampling_rate=1.0, steps=1
    ).value
    mu = 1 / noise
    # Balle and Wang 2018: delta(eps) of two normals mu apart.
    delta = ndtr(mu / 2 - 10 / mu) - math.exp(10) * ndtr(-mu / 2 - 10 / mu)
    assert delta == pytest.approx(1e-5, rel=1e-3)
    assert exact(DPSGD(noise, 1.0, 1)) == pytest.approx(2 * ndtr(mu / 2) - 1, abs=1e-9)
    assert exact(DPSGD(noise, 1.0, 1)) == pytest.approx(0.683, abs=5e-4)
    alone = theory.humphries(theory.epsilon(DPSGD(noise, 1.0, 1), delta=1e-5)).value
    assert alone == pytest.approx(2 * expit(10) - 1, abs=1e-5)


def test_one_epsilon_several_advantages():
    """The introduction: at epsilon 20 the advantage is .915 without subsampling and .817 with q = .01, for 50 epochs.

    The first in closed form, as 50 steps are two normals sqrt(50)/s apart; the second by dp-accounting's delta at 0.
    """
    alike = DPSGD(2.0509, 1.0, 50), DPSGD(0.5567, 0.01, 5_000)
    for run in alike:
        assert theory.epsilon(run, delta=1e-5).value == pytest.approx(20, abs=0.01)
    all_of_them, few = (exact(run) for run in alike)
    assert all_of_them == pytest.approx(2 * ndtr(math.sqrt(50) / 2.0509 / 2) - 1, abs=1e-9)
    other = theory.total_variation_by_accountant(alike[1], adjacency=ADDED).value
    assert few == pytest.approx(other, abs=2e-3)
    assert all_of_them - few > 0.09


def test_figure_3_at_noise_one_half():
    """Section 5: at noise .5 and 5 epochs the bounds by epsilon and by Pinsker say nothing while the optimal one does."""
    for rate in (0.2, 0.5, 1.0):
        run = membership.five_epochs(0.5, rate)
        assert run.steps == 5 / rate
        assert membership.from_epsilon(run) > 0.9999
        assert membership.pinsker(run) == 1
        assert exact(run) < 0.98
    # Without sampling: 5 steps at noise .5 are two normals sqrt(5)/.5 apart.
    assert exact(membership.five_epochs(0.5, 1.0)) == pytest.approx(2 * ndtr(math.sqrt(5)) - 1, abs=1e-9)


@pytest.mark.parametrize("noise", [1.0, 2.0])
def test_figure_3_oscillations_are_whole_numbers_of_steps(noise):
    """Both bounds grow with the sampling rate at a fixed number of steps, and can fall only where int(5/q) does."""
    rates = np.linspace(0.3, 0.9, 60)
    runs = [membership.five_epochs(noise, rate) for rate in rates.tolist()]
    fewer = np.diff([run.steps for run in runs]) < 0
    for of in (exact, membership.pinsker):
        change = np.diff([of(run) for run in runs])
        assert np.all(change[~fewer] >= 0)
        assert np.any(change[fewer] < 0)


@pytest.mark.parametrize("a", [0.2, 0.7, 1.0, 3.0])
def test_lemma_5_grows_with_the_distance(a):
    """The slope of TV_a in the distance r is a phi((r - x*)/s)/s, x* from the corrected lemma: positive for every a.

    By the envelope theorem, since x* is where the two densities cross.
    """
    s, step = 0.7, 1e-5
    for r in (0.3, 1.3, 2.5):
        cross = (r**2 - 2 * s**2 * math.log(a)) / (2 * r)
        slope = a * stats.norm.pdf((r - cross) / s) / s
        above, below = (theory.total_variation_a(DPSGD(s / (r + d), 1.0, 1), a=a) for d in (step, -step))
        assert (above - below) / (2 * step) == pytest.approx(slope, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("a", [0.5, 1.0, 1.6, 6.0])
def test_lemma_7_scales_the_weight(a):
    """TV_a of a sampled step is q TV of weight (a + q - 1)/q, also where that leaves Definition 4 by being negative."""
    q, s = 0.4, 0.8
    # The package has the record's law second, so that its TV_a is a TV_{1/a} the other way round.
    weight = (1 / a + q - 1) / q
    whole = (1 - weight) / 2 if weight <= 0 else theory.total_variation_a(DPSGD(s, 1.0, 1), a=weight)
    assert theory.total_variation_a(DPSGD(s, q, 1), a=a) == pytest.approx(a * q * whole, abs=1e-9)
    assert (weight < 0) == (a == 6.0)


def test_appendix_g_equation_14_does_not_hold():
    """(1, .1269)-DP for Gaussians one apart, and yet |loss| exceeds 1 with probability .3753: delta does not bound that."""
    delta = theory.delta_from_mu(1.0, epsilon=1.0)
    with mpmath.workdps(30):
        hockey = mpmath.quad(lambda x: max(0, mpmath.npdf(x, 1) - mpmath.e * mpmath.npdf(x)), [-8, 1.5, 12])
        beyond = 1 - mpmath.quad(lambda x: mpmath.npdf(x, 0.5), [-1, 0, 1])
    assert delta == pytest.approx(float(hockey), abs=1e-9)
    assert (float(hockey), float(beyond)) == pytest.approx((0.126937, 0.375345), abs=1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_appendix_g_sigmoid_is_the_bound_by_epsilon(epsilon):
    """An accuracy of sigmoid(epsilon) is an advantage of 2 sigmoid - 1, which is Theorem 3 at delta 0."""
    claim = auditor.Claim("epsilon", epsilon, 0.0, auditor.Adjacency.ADD_REMOVE, "stated", proven=True)
    assert theory.humphries(claim).value == pytest.approx(2 * expit(epsilon) - 1, abs=1e-12)


@pytest.mark.parametrize(("noise", "rate", "steps"), [(7.0, 1.0, 50), (0.8, 0.1, 50)])
def test_figure_1_attack_attains_the_bound(noise, rate, steps):
    """The likelihood attack of Appendix F.1 has the bound as its advantage."""
    runs = 20_000
    case = {"noise_multiplier": noise, "sampling_rate": rate, "steps": steps, "runs": runs, "prior": 0.5}
    seen = gaussian.observe(case, seed=1)
    won = np.mean((seen["score"] > 0) == seen["present"])
    truth = (1 + exact(DPSGD(noise, rate, steps))) / 2
    assert abs(won - truth) <= SIGMAS * math.sqrt(truth * (1 - truth) / runs)


def test_figure_1_rates_come_from_other_runs():
    """At noise 1 and one step the attack has Phi(Phi^-1(FPR) + 1), and its intervals hold that and the rate it aimed at."""
    case = {"noise_multiplier": 1.0, "sampling_rate": 1.0, "steps": 1, "runs": 40_000, "prior": 0.5}
    seen = gaussian.observe(case, seed=2)
    for aim in (0.01, 0.1, 0.5):
        fpr, tpr = gaussian.rates_at(seen["score"], seen["present"], fpr=aim, confidence=1 - 1e-5)
        # The threshold is itself estimated, from 10,000 runs.
        assert abs(fpr[0] - aim) <= SIGMAS * math.sqrt(2 * aim * (1 - aim) / 10_000)
        assert tpr[1] <= ndtr(stats.norm.ppf(fpr[2]) + 1)
        assert tpr[2] >= ndtr(stats.norm.ppf(fpr[1]) + 1)


def test_figure_1_prior_attack_attains_the_corrected_theorem_21():
    """With a prior of .3 the attack gains what the corrected Theorem 21 allows."""
    case = {"noise_multiplier": 0.5, "sampling_rate": 0.5, "steps": 1, "runs": 200_000, "prior": 0.3}
    table = membership.prior_table([case], [gaussian.observe(case, seed=3)])
    error = 2 * math.sqrt(0.77 * 0.23 / 200_000)
    assert abs(table.attack[0] - 0.136631) <= SIGMAS * error  # errata.md
    assert table.bound[0] == pytest.approx(0.136631, abs=5e-7)


@pytest.mark.parametrize("game", ["yeom", "ours"])
@pytest.mark.parametrize("noise", [0.5, 2.0])
def test_appendix_i_final_model_attack_by_its_closed_form(game, noise):
    """The played final-model attack has the advantage that binomial sums and the normal law give."""
    case = {"game": game, "dimension": 2_000, "noise_multiplier": noise, "games": 20_000, "whole": False}
    result = games.play({**case, **ONE_HOT}, seed=4)
    truth = final_model_attack(games.OneHot(dimension=2_000, noise_multiplier=noise, **ONE_HOT), game)
    share = (1 + truth) / 2
    assert abs(result["won_final"] / 20_000 - share) <= SIGMAS * math.sqrt(share * (1 - share) / 20_000)


@pytest.mark.parametrize("game", list(games.GAMES))
def test_appendix_i_one_coordinate_stands_for_the_model(game):
    """Training whole models and training the watched coordinate alone give every attack the same share of wins."""
    problem = games.OneHot(dimension=60, noise_multiplier=1.0, records=120, **ONE_HOT)
    shares, count = [], {True: 500, False: 20_000}
    for whole in (True, False):
        member, guesses = games.simulate(
            problem, game=game, games=count[whole], whole=whole, rng=np.random.default_rng(5)
        )
        shares.append(
            {(name, b): guess[member == b].mean() for name, guess in guesses.items() for b in (0, 1)}
        )
    for key, alone in shares[1].items():
        error = math.sqrt(alone * (1 - alone) * 2 * (1 / count[True] + 1 / count[False]))
        assert abs(shares[0][key] - alone) <= SIGMAS * error, key


@pytest.mark.parametrize("noise", [0.5, 1.0, 2.0])
def test_figure_4_gap_shrinks_as_the_dimension_grows(noise):
    """In Yeom's game the attack comes closer to the bound with more dimensions: the text is right, the caption is not."""
    limit = exact(DPSGD(noise, 0.1, 50))
    reached = [
        final_model_attack(games.OneHot(dimension=d, noise_multiplier=noise, **ONE_HOT), "yeom")
        for d in (2_000, 10_000, 100_000)
    ]
    assert reached == sorted(reached)
    assert reached[-1] < limit


def test_figure_4_gap_stays_where_the_noise_is_small():
    """Not "almost 0": at noise .5 the final-model attack has at most .49 in any dimension where the bound is .69."""
    at_most = final_model_attack(games.OneHot(dimension=2_000, noise_multiplier=0.5, **ONE_HOT), "ours")
    assert at_most == pytest.approx(0.486, abs=1e-3)
    assert exact(DPSGD(0.5, 0.1, 50)) == pytest.approx(0.688, abs=1e-3)
    late = games.OneHot(dimension=2_000, noise_multiplier=4.0, **ONE_HOT)
    assert exact(DPSGD(4.0, 0.1, 50)) - final_model_attack(late, "ours") < 0.002


def test_figure_5_likelihood_opens_the_gap_and_votes_do_not():
    """At q = .1 and noise .5 the likelihood of all gradients attains the bound; votes do worse than the final model."""
    case = {"game": "ours", "dimension": 2_000, "noise_multiplier": 0.5, "games": 20_000, "whole": False}
    result = games.play({**case, **ONE_HOT}, seed=6)
    share = {name: result[f"won_{name}"] / 20_000 for name in games.ATTACKS}
    error = SIGMAS * math.sqrt(0.25 / 20_000)
    assert abs(share["likelihood"] - (1 + exact(DPSGD(0.5, 0.1, 50))) / 2) <= error
    assert share["likelihood"] > share["final"] + 2 * error
    assert max(share["iterates"], share["gradients"]) < share["final"] - error


@pytest.mark.parametrize("noise", [0.5, 1.0, 2.0])
def test_appendix_h_opposite_labels_beat_theorem_6(noise):
    """In the paper's own game OIG two records of opposite labels attain the replace-one bound, far above Theorem 6's."""
    case = {
        "game": "opposite",
        "dimension": 2_000,
        "noise_multiplier": noise,
        "games": 20_000,
        "whole": False,
    }
    result, run = games.play({**case, **ONE_HOT}, seed=7), DPSGD(noise, 0.1, 50)
    error = SIGMAS * math.sqrt(0.25 / 20_000)
    assert abs(result["won_likelihood"] / 20_000 - (1 + exact(run, REPLACED)) / 2) <= error
    assert result["won_final"] / 20_000 - error > (1 + exact(run)) / 2


def test_intervals_of_an_advantage():
    """An advantage is twice a share less 1, with Clopper and Pearson's limits of that share."""
    found = gaussian.advantage(560, games=1_000, confidence=0.95)
    lower, upper = stats.beta.ppf([0.025, 0.975], [560, 561], [441, 440])
    assert (found.value, found.lower, found.upper) == pytest.approx((0.12, 2 * lower - 1, 2 * upper - 1))


def test_blocks_of_games_add_up():
    """Blocks of one setting are one line for each attack, with the wins of all of them."""
    plan = [("ours", 500, 0.1, 5, 300)]
    cases = membership.cases_of_games(plan, noises=(1.0,), whole=False, block=100)
    results = [games.play(case, seed=number) for number, case in enumerate(cases)]
    table = membership.one_hot_table(cases, results)
    assert len(cases) == 3
    assert list(table.by) == list(games.ATTACKS)
    won = sum(result["won_final"] for result in results)
    assert table.attack[0] == pytest.approx(2 * won / 300 - 1)
    assert table.added[0] == exact(DPSGD(1.0, 0.1, 50))


def test_full_settings_are_announced_and_resumed(monkeypatch, tmp_path, capsys):
    """Full settings say how long they take, keep each result, and do not run again what is there."""
    monkeypatch.setenv("RUNS", str(tmp_path))
    case = {"noise_multiplier": 1.0, "sampling_rate": 1.0, "steps": 1, "prior": 0.5, "runs": 50}
    arguments = {"name": "test", "full": True, "alike": ("steps",), "size": "runs", "trial": 5}
    first = grid.run_grid(gaussian.observe, [case], **arguments)
    kept = list((tmp_path / "test").glob("*.npz"))
    changed = kept[0].stat().st_mtime_ns
    again = grid.run_grid(gaussian.observe, [case], **arguments)
    assert "1 cases: about" in capsys.readouterr().out
    assert len(kept) == 1
    assert kept[0].stat().st_mtime_ns == changed
    assert np.array_equal(first[0]["score"], again[0]["score"])


def test_private_logistic_regression_is_clipped_gradient_descent():
    """With every record in the batch and no noise, one step is the mean of clipped gradients, by hand."""
    data = adult.stand_in(n_train=50, n_test=20)
    x = np.column_stack([data.x_train, np.ones(50)])
    case = {
        "clipping_norm": 0.4,
        "sampling_rate": 1.0,
        "epochs": 1,
        "noise_multiplier": 0.0,
        "learning_rate": 2.0,
    }
    found = private_logistic._trained(x, data.y_train, case, rng=np.random.default_rng(8))
    gradients = (0.5 - data.y_train)[:, None] * x
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    assert norms.min() > 0.4
    assert found == pytest.approx(-2.0 * (gradients * 0.4 / norms).mean(axis=0), abs=1e-12)


def test_private_logistic_regression_adds_the_promised_noise():
    """The noise on the sum has standard deviation noise multiplier times clipping norm in each coordinate."""
    x, y = np.zeros((10, 20_000)), np.zeros(10)
    case = {
        "clipping_norm": 0.4,
        "sampling_rate": 1.0,
        "epochs": 1,
        "noise_multiplier": 3.0,
        "learning_rate": 10.0,
    }
    found = private_logistic._trained(x, y, case, rng=np.random.default_rng(9))
    assert found.std() == pytest.approx(3.0 * 0.4, rel=SIGMAS / math.sqrt(2 * 20_000))
