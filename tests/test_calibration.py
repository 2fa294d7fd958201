"""The calibration table: its laws against slow versions, its rows against what they claim."""

import json
import math

import calibration
import numpy as np
import pytest
from calibration import BOUNDS, LAWS, Bound, calibrate, main, set_epsilon
from scipy import integrate, stats

from auditor.core import InputError

NULL, RESPONSE, LAPLACE, NORMAL, HIGH, FIVE = LAWS
# Both laws of the continuous pairs by SciPy, to compute every truth a second way.
SCIPY = {
    NULL.name: (stats.norm(0, 1), stats.norm(0, 1)),
    LAPLACE.name: (stats.laplace(-1, 1), stats.laplace(0, 1)),
    NORMAL.name: (stats.norm(-1, 1), stats.norm(0, 1)),
}


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_draws_follow_their_distribution_function(rng, law):
    """Draws of the non-members agree with the stated distribution function, and of the members with its shift."""
    drawn = law.nonmember(rng, 40_000)
    for at in (-1.5, 0.0, 0.3, 1.0):
        assert np.mean(drawn <= at) == pytest.approx(float(law.cdf(np.array(at))), abs=0.015)
    if law.name in SCIPY:
        assert stats.kstest(law.member(rng, 5000), SCIPY[law.name][0].cdf).pvalue > 1e-3


@pytest.mark.parametrize("law", [NULL, LAPLACE, NORMAL], ids=lambda law: law.name)
def test_truths_against_a_scan(law):
    """Epsilon, advantage, TPR at FPR and AUC agree with a dense scan of thresholds and with quadrature."""
    member, nonmember = SCIPY[law.name]
    q = np.linspace(-12, 12, 480_001)
    tpr, fpr, tnr, fnr = member.cdf(q), nonmember.cdf(q), nonmember.sf(q), member.sf(q)
    for delta in (1e-3, 0.05):
        scanned = max(0.0, np.log(np.max([(tpr - delta) / fpr, (tnr - delta) / fnr])))
        assert law.epsilon(delta) == pytest.approx(scanned, abs=2e-5)
    assert law.advantage == pytest.approx(np.max(tpr - fpr), abs=1e-8)
    for rate in (0.01, 0.1, 0.3, 0.7):
        assert law.tpr_at(rate) == pytest.approx(np.max(tpr[fpr <= rate]), abs=1e-4)
    area = integrate.quad(lambda x: member.cdf(x) * nonmember.pdf(x), -40, 40, points=[-1, 0], limit=200)[0]
    assert law.auc == pytest.approx(area, abs=1e-7)


def test_a_swapped_pair_by_the_hockey_stick(rng):
    """The epsilon of a swapped pair makes E(1 - e^(eps - L))+ equal to delta, L being the pair's log-ratio."""
    delta = 0.02
    for law, ratio in (
        (RESPONSE, lambda x: np.where(x == 0, 1.0, -1.0)),
        (LAPLACE, lambda x: np.abs(x) - np.abs(x + 1)),
        (NORMAL, lambda x: -x - 0.5),
        (HIGH, lambda x: np.log(np.where(x < 1, (1 - 0.1 / math.e) / 0.9, 1 / math.e))),
        (FIVE, lambda x: -x / 2),
    ):
        loss = ratio(law.member(rng, 400_000)) - ratio(law.nonmember(rng, 400_000))
        terms = np.maximum(0.0, 1 - np.exp(law.pair_epsilon(delta) - loss))
        assert terms.mean() == pytest.approx(delta, abs=5 * terms.std() / math.sqrt(terms.size))


@pytest.mark.parametrize("law", [HIGH, FIVE], ids=lambda law: law.name)
def test_truths_of_steps_against_many_draws(rng, law):
    """Epsilon, AUC, advantage and TPR at FPR agree with counts of a million draws at every threshold."""
    member, nonmember = (np.sort(draw(rng, 1_000_000)) for draw in (law.member, law.nonmember))
    scan = np.linspace(-0.5, 5, 1101)
    tpr, fpr = (np.searchsorted(group, scan, side="right") / 1e6 for group in (member, nonmember))
    assert law.cdf(scan) == pytest.approx(fpr, abs=5 / 2000)
    inside = (fpr > 0.01) & (tpr < 0.99)
    for delta in (0.0, 0.05):
        ratios = np.concatenate(
            [(tpr - delta)[inside] / fpr[inside], (1 - fpr - delta)[inside] / (1 - tpr)[inside]]
        )
        assert law.epsilon(delta) == pytest.approx(
            math.log(max(1, ratios.max())), abs=0.1 if law is HIGH else 0.02
        )
    assert law.advantage == pytest.approx((tpr - fpr).max(), abs=0.005)
    for rate in (0.05, 0.35, 0.95):
        assert law.tpr_at(rate) == pytest.approx(tpr[fpr <= rate + 1e-3].max(), abs=0.01)
    ties = np.mean(rng.permutation(member) == nonmember) / 2
    assert law.auc == pytest.approx(
        np.mean(rng.permutation(member) < rng.permutation(nonmember)) + ties, abs=0.005
    )


@pytest.mark.parametrize("law", [RESPONSE, NORMAL], ids=lambda law: law.name)
@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_the_epsilon_of_a_set_by_counting(rng, law, delta):
    """A finite set's epsilon is the largest ratio over a dense scan of thresholds, with one miss at least."""
    training = law.member(rng, 15)
    scan = np.sort(np.concatenate([np.linspace(-6, 6, 20_001), training]))
    tpr = np.array([np.mean(training <= q) for q in scan])
    fpr = law.cdf(scan)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [(tpr - delta) / fpr, (1 - fpr - delta) / np.maximum(1 - tpr, 1 / 15)]
    expected = math.log(max(1.0, float(np.nanmax(ratios))))
    assert set_epsilon(training, law, delta=delta) == pytest.approx(expected, abs=1e-3)


def test_every_bound_runs_under_every_law():
    """A small calibration of everything holds every level, and skips only what promises nothing there."""
    found = calibrate(runs=8, sizes=[60])
    assert found.ok
    assert len(found.rows) == len(BOUNDS) * len(LAWS)
    skipped = {(row.bound, row.law) for row in found.rows if not row.claimed}
    assert {("epsilon_star.gaussian", law.name) for law in LAWS} <= skipped  # 60 records are too few for it
    assert all("one_run" in bound and law == NORMAL.name for bound, law in skipped if "star" not in bound)


def test_rows_count_what_they_say():
    """A row holds the misses, their rate and the exact binomial interval of it."""
    coin = Bound(
        "coin", "A coin", "q", "heads", lambda _law, _delta: 0.0, lambda trial: trial.rng.random() < 0.3
    )
    row = calibration._row(coin, NULL, 100, runs=400, confidence=0.95, seed=1)
    expected = stats.binomtest(row.misses, 400).proportion_ci(0.95, method="exact")
    assert row.rate == row.misses / 400 == pytest.approx(0.3, abs=0.1)
    assert (row.low, row.high) == pytest.approx((expected.low, expected.high))
    assert not row.ok


def test_a_bound_that_promises_too_much_is_caught(monkeypatch):
    """The best of all thresholds with normal-approximation limits, a popular default, is marked in the table."""

    def missed(trial):
        losses = trial.losses()
        tpr = np.searchsorted(losses.sorted_member, losses.sorted_nonmember) / trial.size
        fpr = np.arange(trial.size) / trial.size
        low, high = (p + side * 1.96 * np.sqrt(p * (1 - p) / trial.size) for p, side in ((tpr, -1), (fpr, 1)))
        return bool(np.any(low > high))

    bad = Bound(
        "bad", "Best threshold", "q", "m", lambda _law, _delta: 0.0, missed, lambda law, _: law is NULL
    )
    monkeypatch.setattr(calibration, "BOUNDS", (bad,))
    found = calibrate(runs=400, sizes=[500])
    assert not found.ok
    assert "too many**" in found.to_markdown()


def test_cells_do_not_depend_on_each_other():
    """The same seed gives the same counts, whatever other bounds and sizes are run beside them."""
    names = ["split", "auc"]
    alone = calibrate(runs=30, sizes=[80], bounds=["auc"], seed=5).rows
    beside = calibrate(runs=30, sizes=[60, 80], bounds=names, seed=5).rows
    assert [row for row in beside if row.bound == "auc" and row.n == 80] == list(alone)
    assert calibrate(runs=30, sizes=[80], bounds=["auc"], seed=6).rows != alone


def test_the_table_in_three_forms():
    """Markdown has a line for each bound and size and the truths, JSON has no bare infinity, the frame every row."""
    found = calibrate(runs=5, sizes=[60, 90], bounds=["rank_grid.census", "one_run.coins.any"])
    text = found.to_markdown()
    assert text.count("| Certified bound, census |") == 2
    assert "| epsilon of the mechanism, add/remove, at delta 0 | 0 | 1 | 1 | infinite | 1 | 1.148 |" in text
    data = json.loads(found.to_json())
    assert (data["runs"], data["sizes"], data["ok"]) == (5, [60, 90], True)
    assert {row["truth"] for row in data["rows"] if row["law"] == NORMAL.name} == {None, "inf"}
    assert list(found.to_frame()["n"].unique()) == [60, 90]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"runs": 0}, "runs must be a whole number of 1 or more"),
        ({"sizes": [10]}, "sizes must be a whole number of 50 or more, got 10"),
        ({"bounds": ["rank_gird"]}, "did you mean 'rank_grid'"),
    ],
)
def test_bad_settings_are_named(options, sentence):
    """Settings out of range, unknown bounds and empty lists are refused in one sentence."""
    with pytest.raises(InputError, match=sentence):
        calibrate(**{"runs": 1, "sizes": [60], **options})


def test_the_script_prints_the_table(capsys):
    """A small calibration prints its table in Markdown and succeeds; unknown bounds are refused."""
    assert main(["--runs", "20", "--sizes", "60", "--bounds", "rank_grid,auc"]) == 0
    assert "| Certified bound | 60 |" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        main(["--bounds", "rank_gird"])
    assert stop.value.code == 2
    assert "did you mean 'rank_grid'" in capsys.readouterr().err
