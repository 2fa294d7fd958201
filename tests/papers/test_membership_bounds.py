"""Mahloujifar et al. 2022, optimal membership inference bounds: what the paper prints and claims, against the package.

Elsewhere: Theorem 6 (`test_total_variation.py`), Corollary 11 (`test_rates.py`), Definition 20 and the corrected Theorem 21
(`test_priors.py`), Pinsker's bound (`test_renyi.py`), Theorem 3 (`test_advantage.py`); the errata to Algorithm 1, Lemma 5,
Theorem 21, Equation 14 and Appendix H, and the loose Proposition 8 (`test_errata.py` here).

The games of Appendices F.1 and I are held to closed forms of their attacks: a coordinate of the model is a binomial number of
clipped gradients plus normal noise. Simulations are seeded; their tolerance is five standard errors, so that a change of a
random number generator does not fail them.
"""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from experiments import adult, games, gaussian, grid, membership, one_hot, private_logistic
from oracles import dp_accounting_law, gaussian_mechanism_delta
from scipy import stats
from scipy.special import expit, ndtr

from auditor import DPSGD, theory

ADDED, REPLACED = "add-remove", "replace-one"
SIGMAS = 5
ONE_HOT = {"sampling_rate": 0.1, "epochs": 5}


def exact(training, adjacency=ADDED):
    """The bound of Theorem 6."""
    return theory.total_variation(training, adjacency=adjacency).value


def likelihood_by_enumeration(moves, problem, records):
    """The likelihood of the moves of one game of Yeom et al., summed over who is on the coordinate and in each batch.

    ``records`` holds, for each record, how likely it is to be on the watched coordinate.
    """
    q, total = problem.sampling_rate, 0.0
    for there in itertools.product((0, 1), repeat=len(records)):
        chance = math.prod(p if on else 1 - p for p, on in zip(records, there, strict=True))
        for move in moves:
            step = 0.0
            for drawn in itertools.product((0, 1), repeat=len(records)):
                batch = math.prod(q if taken else 1 - q for taken in drawn)
                centre = sum(on * taken for on, taken in zip(there, drawn, strict=True))
                step += batch * stats.norm.pdf(move, centre, problem.noise_multiplier)
            chance *= step
        total += chance
    return total


@pytest.mark.parametrize(
    ("noise", "rate", "steps"),
    [(0.5, 0.001, 10_000), (1.5, 0.001, 10_000), (0.5, 0.02, 2_500), (2.0, 0.02, 2_500)],
)
def test_section_5_bounds_agree_with_another_library(noise, rate, steps):
    """At the ends of MNIST's and CIFAR's printed settings the bound is dp-accounting's delta at epsilon 0.

    Its grid rounds losses up, by about the square root of the number of steps times the grid, hence 2e-3.
    """
    other = dp_accounting_law(noise, rate, steps).get_delta_for_epsilon(0.0)
    assert exact(DPSGD(noise, rate, steps)) == pytest.approx(other, abs=2e-3)


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
    assert gaussian_mechanism_delta(mu, 10) == pytest.approx(1e-5, rel=1e-3)
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
    other = dp_accounting_law(0.5567, 0.01, 5_000).get_delta_for_epsilon(0.0)
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
    problem = games.OneHot(dimension=2_000, noise_multiplier=noise, **ONE_HOT)
    share = (1 + games.final_model_advantage(problem, game=game)) / 2
    assert abs(result["won_final"] / 20_000 - share) <= SIGMAS * math.sqrt(share * (1 - share) / 20_000)


def test_appendix_i_likelihood_counts_the_others():
    """In Yeom's game the likelihood attack sums over the unknown number of other records: a slow enumeration agrees."""
    problem = games.OneHot(
        dimension=3, noise_multiplier=0.6, sampling_rate=0.3, epochs=1, records=4, clipping_norm=0.1
    )
    moves = np.random.default_rng(11).normal(0.6, 1.0, (problem.steps, 20))
    watcher = games._watcher(problem, "yeom", 20)
    for step, move in enumerate(moves, start=1):
        watcher(step, move)
    third = 1 / 3
    for found, seen in zip(watcher.ratio(), moves.T, strict=True):
        member = likelihood_by_enumeration(seen, problem, [1.0, third, third, third])
        fresh = likelihood_by_enumeration(seen, problem, [third] * 4)
        assert found == pytest.approx(math.log(member / fresh), abs=1e-9)


@pytest.mark.parametrize("noise", [0.5, 4.0])
def test_appendix_i_likelihood_is_the_best_attack_of_yeoms_game(noise):
    """With half a record of others on each coordinate the likelihood loses to no other attack that is played."""
    case = {"game": "yeom", "dimension": 2_000, "noise_multiplier": noise, "games": 40_000, "whole": False}
    result = games.play({**case, **ONE_HOT}, seed=12)
    for other in ("final", "iterates", "gradients"):
        error = SIGMAS * math.sqrt(40_000)
        assert result["won_likelihood"] >= result[f"won_{other}"] - error
    if noise < 1:
        assert result["ahead_likelihood"] - result["behind_likelihood"] > SIGMAS * math.sqrt(
            result["ahead_likelihood"] + result["behind_likelihood"]
        )


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
        games.final_model_advantage(games.OneHot(dimension=d, noise_multiplier=noise, **ONE_HOT), game="yeom")
        for d in (2_000, 10_000, 100_000)
    ]
    assert reached == sorted(reached)
    assert reached[-1] < limit


def test_figure_4_gap_stays_where_the_noise_is_small():
    """Not "almost 0": at noise .5 the final-model attack has at most .49 in any dimension where the bound is .69."""
    at_most, late = (
        games.final_model_advantage(
            games.OneHot(dimension=2_000, noise_multiplier=noise, **ONE_HOT), game="ours"
        )
        for noise in (0.5, 4.0)
    )
    assert at_most == pytest.approx(0.486, abs=1e-3)
    assert exact(DPSGD(0.5, 0.1, 50)) == pytest.approx(0.688, abs=1e-3)
    assert exact(DPSGD(4.0, 0.1, 50)) - late < 0.002


@pytest.mark.parametrize(
    ("rate", "epochs", "noise", "count"),
    [(0.1, 5, 0.5, 20_000), (0.01, 50, 0.5, 4_000), (0.01, 50, 1.0, 12_000)],
)
def test_figure_5_likelihood_opens_the_gap_and_votes_do_not(rate, epochs, noise, count):
    """The likelihood of all gradients attains the bound; votes lose to the final model in the same games (McNemar).

    The settings of Figures 4 and 5. At q = .01 and noise 1 the vote of the models is .04 behind, four standard errors of
    6,000 games; 12,000 make that 5.8, and three are requested.
    """
    case = {"game": "ours", "dimension": 2_000, "noise_multiplier": noise, "games": count, "whole": False}
    result = games.play({**case, "sampling_rate": rate, "epochs": epochs}, seed=6)
    attained = (1 + exact(DPSGD(noise, rate, round(epochs / rate)))) / 2
    assert abs(result["won_likelihood"] / count - attained) <= SIGMAS * math.sqrt(0.25 / count)
    z = {}
    for name in ("iterates", "gradients", "likelihood"):
        ahead, behind = result[f"ahead_{name}"], result[f"behind_{name}"]
        z[name] = (ahead - behind) / math.sqrt(ahead + behind)
    assert z["likelihood"] > SIGMAS
    assert max(z["iterates"], z["gradients"]) < -3


@pytest.mark.parametrize(("noise", "within"), [(2.0, 0.01), (4.0, 0.002)])
def test_figure_5_final_model_is_nearly_the_best_test_at_large_noise(noise, within):
    """At q = .01 and noise 2 or more the final-model attack, in closed form, is within .01 of what any test can do."""
    problem = games.OneHot(dimension=2_000, noise_multiplier=noise, sampling_rate=0.01, epochs=50)
    assert 0 <= exact(DPSGD(noise, 0.01, 5_000)) - games.final_model_advantage(problem, game="ours") < within


def test_paired_counts_are_of_the_same_games():
    """The games that only one attack won, less those that only the final-model attack won, are the difference of their wins."""
    case = {"game": "yeom", "dimension": 500, "noise_multiplier": 1.0, "games": 3_000, "whole": False}
    result = games.play({**case, **ONE_HOT}, seed=13)
    for name in ("iterates", "gradients", "likelihood"):
        ahead, behind = result[f"ahead_{name}"], result[f"behind_{name}"]
        assert ahead - behind == result[f"won_{name}"] - result["won_final"]
        assert 0 < ahead + behind <= 3_000


def test_paired_table_is_mcnemars_test():
    """20 discordant games split 18 to 2 have p = 4.0e-4, shown at .05/3; split 12 to 8 they are not distinguished."""
    counts = {"ahead_iterates": 2, "behind_iterates": 18, "ahead_gradients": 12, "behind_gradients": 8}
    line = dict(zip(one_hot.OF_A_GAME, ("ours", 500, 0.1, 5, 1.0), strict=True)) | {"games": 100}
    table = one_hot.paired_table(
        pd.DataFrame([line | counts | {"ahead_likelihood": 0, "behind_likelihood": 0}])
    )
    assert 2 * sum(math.comb(20, k) for k in range(3)) / 2**20 == pytest.approx(4.0e-4, rel=0.01)
    assert table.shown.tolist() == [-1, 0, 0]
    assert table.more.tolist() == pytest.approx([-0.32, 0.08, 0])
    assert table.z.tolist() == pytest.approx([-16 / math.sqrt(20), 4 / math.sqrt(20), 0])


def test_same_law_can_fail():
    """500 whole models that win 270 agree with a coordinate that wins 54% of its games, and differ if they win 400."""
    line = dict(zip(one_hot.OF_A_GAME, ("ours", 500, 0.1, 5, 1.0), strict=True))
    wins = [f"won_{attack}" for attack in games.ATTACKS]
    alone = pd.DataFrame([line | {"games": 20_000} | dict.fromkeys(wins, 10_800)])
    for won, apart in ((270, 0), (400, 4)):
        whole = pd.DataFrame([line | {"games": 500} | dict.fromkeys(wins, won)])
        assert f"500 whole models: {apart} of 4 shares" in one_hot.same_law(alone, whole)


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
    cases = one_hot.cases_of_games(plan, noises=(1.0,), whole=False, block=100)
    results = [games.play(case, seed=number) for number, case in enumerate(cases)]
    table = one_hot.one_hot_table(one_hot.added_up(cases, results))
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


def test_a_result_depends_on_its_case_alone():
    """Other cases, their order and the number of processes leave the result of a case as it is; each has draws of its own."""
    case = {"noise_multiplier": 1.0, "sampling_rate": 1.0, "steps": 1, "prior": 0.5}
    cases = [{**case, "runs": runs} for runs in (30, 31, 32)]
    forwards, backwards = (
        grid.run_all(gaussian.observe, cases, workers=1),
        grid.run_all(gaussian.observe, cases[::-1], workers=2),
    )
    scores = [result["score"] for result in forwards]
    for here, there in zip(scores, [result["score"] for result in backwards[::-1]], strict=True):
        np.testing.assert_array_equal(here, there)
    assert len({score[0] for score in scores}) == 3


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
