"""Everything a run promises: complete, in order, on the safe side of the exact numbers, and the same in words."""

import numpy as np
import pytest

from auditor.core import DPSGD, Adjacency, FixedSizeSampling, InputError
from auditor.theory import Hoeffding, in_words, leading, overview, total_variation_monte_carlo

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
RUNS = [
    DPSGD(1.0, 0.01, 1000),
    DPSGD(2.0, 1.0, 20),
    DPSGD([0.8, 1.5, 3.0] * 10, [0.1, 0.02, 0.3] * 10),
    DPSGD(3.0, 0.02, 100, sampling=FixedSizeSampling()),
]


def by_metric(rows, adjacency):
    """The values of the proven rows of one adjacency, by metric, in order."""
    found = {}
    for row in rows:
        if row.adjacency is adjacency and row.proven and row.value is not None:
            found.setdefault(row.metric, []).append(row)
    return found


@pytest.mark.parametrize("training", RUNS, ids=lambda run: run.in_words())
def test_every_proven_number_is_on_the_safe_side(training):
    """No proven bound is below the exact advantage, success rate or TPR, and no Bayes security is above the exact one."""
    rows = overview(training, delta=1e-5, rates=(0.1, 0.001))
    for adjacency in Adjacency:
        found = by_metric(rows, adjacency)
        if training.fixed_size and adjacency is ADD_REMOVE:
            assert found == {}
            continue
        for metric in ("advantage", "tpr_at_fpr.0.1", "tpr_at_fpr.0.001"):
            exact, *others = [row.value for row in found[metric]]
            assert others
            assert min(others) >= exact - 1e-9, metric
        assert found["bayes_security"][0].value == 1 - found["advantage"][0].value
        assert found["success_rate"][0].value == pytest.approx(
            (1 + found["advantage"][0].value) / 2, abs=1e-6
        )
        same_delta = [row.value for row in found["epsilon"] if row.delta == 1e-5]
        assert same_delta[0] <= min(same_delta) * (1 + 1e-9)


@pytest.mark.parametrize("training", RUNS[:3], ids=lambda run: run.in_words())
@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_exact_accountant_and_simulation_agree(training, adjacency):
    """The exact advantage lies in the simulation's interval, and the accountant's is no lower and within .002."""
    exact, accountant = by_metric(overview(training, delta=1e-5), adjacency)["advantage"][:2]
    seen = total_variation_monte_carlo(
        training,
        adjacency=adjacency,
        samples=40_000,
        confidence=0.9999,
        interval=Hoeffding(),
        rng=np.random.default_rng(5),
    )
    assert seen.lower <= exact.value <= seen.upper
    if "delta at epsilon 0" in accountant.method:  # else this accountant has no replace-one
        assert exact.value - 1e-9 <= accountant.value <= exact.value + 2e-3


def test_leading_has_one_row_for_each_quantity():
    """The leading rows are the best proven ones; mu alone has two, one proven and one asymptotic."""
    rows = leading(overview(DPSGD(1.0, 0.01, 100), delta=1e-5))
    for adjacency in Adjacency:
        names = [row.metric for row in rows if row.adjacency is adjacency]
        assert names == [
            "epsilon",
            "mu",
            "mu",
            "advantage",
            "bayes_security",
            "success_rate",
            "tpr_at_fpr.0.1",
            "tpr_at_fpr.0.01",
            "tpr_at_fpr.0.001",
        ]
    assert [row.proven for row in rows if row.metric == "mu"] == [True, False] * 2
    assert all(row.proven for row in rows if row.metric != "mu" and row.value is not None)


def test_one_adjacency_alone():
    """Asked for one kind of neighbours, the words are about those."""
    rows = overview(DPSGD(1.0, 0.1, 5), delta=1e-5, adjacencies=[ADD_REMOVE], rates=(0.01,))
    assert {row.adjacency for row in rows} == {ADD_REMOVE}
    words = in_words(rows, rates=(0.01,))
    assert words[0].startswith("About one record that is added or removed")
    assert words[1].startswith("If you do not participate,")
    assert len(words) == 4


def test_the_words_follow_the_numbers():
    """Rounded to the worse: with TV .2643522, 37 out of 100 become at most 63.4, and 63.2 guesses are right."""
    rows = overview(DPSGD(1.0, 0.01, 1000), delta=1e-5)
    who, first, second, *_ = in_words(rows)
    assert "replaced" in who
    assert "37 out of 100" in first
    assert "at most 64 out of 100" in first
    assert "at most 64 out of 100" in second


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"delta": 1.0}, "delta must lie in"),
        ({"delta": 1e-5, "prior": 0.0}, "prior must lie in"),
        ({"delta": 1e-5, "rates": (0.0,)}, "fpr must lie in"),
        ({"delta": 1e-5, "rates": ()}, "rates must be false positive rates"),
        ({"delta": 1e-5, "rates": 0.1}, "rates must be false positive rates"),
        ({"delta": 1e-5, "adjacencies": ["add"]}, "adjacency must be one of"),
    ],
)
def test_bad_input(arguments, words):
    """Numbers out of range are refused in one sentence."""
    with pytest.raises(InputError, match=words):
        overview(DPSGD(1.0, 0.1, 5), **arguments)
    with pytest.raises(InputError, match=r"training must be auditor\.DPSGD"):
        overview("x", delta=1e-5)
    assert {row.adjacency for row in overview(DPSGD(1.0, 1.0, 1), delta=1e-5, adjacencies="replace-one")} == {
        REPLACE_ONE
    }
