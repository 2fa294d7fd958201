"""Everything a run promises: complete, in order, on the safe side of the exact numbers, and the same in words."""

import pytest

from auditor.core import DPSGD, Adjacency, FixedSizeSampling
from auditor.theory import leading, overview

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


def test_leading_has_one_row_for_each_quantity():
    """The leading rows are the best proven ones; mu alone has two, one proven and one asymptotic."""
    rows = leading(overview(DPSGD(1.0, 0.01, 100), delta=1e-5))
    for adjacency in Adjacency:
        names = [row.metric for row in rows if row.adjacency is adjacency]
        single = ["advantage", "bayes_security", "success_rate"]
        assert names == [
            "epsilon",
            "mu",
            "mu",
            *single,
            *(f"tpr_at_fpr.{rate}" for rate in (0.1, 0.01, 0.001)),
        ]
    assert [row.proven for row in rows if row.metric == "mu"] == [True, False] * 2
    assert all(row.proven for row in rows if row.metric != "mu" and row.value is not None)
