"""A claim for records, read for people with several: closed forms, curves in turn, and what refuses to be read so."""

import numpy as np
import pytest
from command_line import answer, refused
from scipy import optimize, stats

from auditor.core import DPSGD, Adjacency, FixedSizeSampling, InputError, ShuffledBatches, StatedClaim
from auditor.curves import TradeoffCurve
from auditor.theory import (
    claimed_curve,
    claims,
    epsilon,
    group_curve,
    leading,
    mu_claim,
    overview,
    replace_one,
    total_variation,
)
from auditor.theory.accountant import for_group
from auditor.theory.promises import in_words

RATES = [1e-12, 1e-6, 1e-3, 0.01, 0.1, 0.4, 0.8]


def gaussian(mu, delta):
    """The epsilon of mu-GDP, by the formula of Balle and Wang and a root."""

    def excess(eps):
        a = mu / 2 - eps / mu
        return stats.norm.cdf(a) - np.exp(eps + stats.norm.logcdf(a - mu)) - delta

    return optimize.brentq(excess, 0, 700)


@pytest.mark.parametrize("records", [1, 2, 3, 10])
@pytest.mark.parametrize("eps", [0.0, 0.3, 2.0])
def test_each_record_of_a_group_adds_its_delta(records, eps):
    """(k eps, d + e^eps d + ... + e^((k-1) eps) d), added one after the other."""
    found = for_group(epsilon(StatedClaim(eps, 1e-12), delta=1e-12), records)
    delta = 0.0
    for _ in range(records):
        delta = np.exp(eps) * delta + 1e-12
    assert found.value == pytest.approx(records * eps)
    assert found.delta == pytest.approx(delta)
    assert for_group(epsilon(StatedClaim(eps, 0.0), delta=0.0), records).delta == 0


def test_two_records_are_one_replaced():
    """Removing and then adding are two steps, and five records replaced are ten."""
    one = epsilon(StatedClaim(0.4, 1e-6), delta=1e-6)
    two, replaced = for_group(one, 2), replace_one(one)
    assert (two.value, two.delta) == (replaced.value, pytest.approx(replaced.delta))
    five = claims(StatedClaim(0.4, 1e-6, unit="person", records_per_person=5), delta=1e-6)[1]
    ten = for_group(one, 10)
    assert (five.value, five.delta) == (pytest.approx(ten.value), pytest.approx(ten.delta))


def test_a_delta_of_one_promises_nothing():
    """A delta that grows to 1 implies nothing, and the note says so."""
    found = for_group(epsilon(StatedClaim(2.0, 1e-5), delta=1e-5), 20)
    assert (found.value, found.delta) == (None, None)
    assert "implies nothing" in found.note


@pytest.mark.parametrize("records", [2, 8, 30])
def test_gaussian_differences_grow_with_the_records(records):
    """mu-GDP for a record is k mu-GDP for k: the curve lies just above that one, also where it has very many corners."""
    curve = group_curve(claimed_curve(StatedClaim.from_mu(0.1)).curve, records)
    exact = stats.norm.cdf(stats.norm.ppf(RATES[1:]) + 0.1 * records)
    found = np.array([curve.tpr_at(rate) for rate in RATES[1:]])
    assert np.all(found >= exact * (1 - 1e-9))
    assert np.all(found <= exact * 1.05)
    stated = StatedClaim.from_mu(0.1, unit="person", records_per_person=records)
    assert epsilon(stated, delta=1e-5).value == pytest.approx(gaussian(0.1 * records, 1e-5), rel=1e-6)
    assert mu_claim(stated).value == pytest.approx(0.1 * records, rel=1e-12)
    assert mu_claim(stated, adjacency="replace-one").value == pytest.approx(0.2 * records, rel=1e-12)


def test_many_corners_are_replaced_by_lines_above():
    """A curve of 3,000 corners, eight times in turn, is nowhere below the rates in turn, and hardly above."""
    eps = np.linspace(0, 3, 1500)
    a = 0.25 - eps / 0.5
    one = TradeoffCurve.from_profile(eps, deltas=stats.norm.cdf(a) - np.exp(eps) * stats.norm.cdf(a - 0.5))
    found = group_curve(one, 8)
    assert found.fpr.size < 8 * one.fpr.size
    for rate in RATES[2:]:
        reached = rate
        for _ in range(8):
            reached = one.tpr_at(reached)
        assert reached * (1 - 1e-9) <= found.tpr_at(rate) <= reached * 1.01


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_a_run_without_sampling_is_gaussian(adjacency):
    """Every record in every step: k records lie k times as far apart, whatever the neighbours."""
    run = DPSGD(20.0, 1.0, 9, unit="person", records_per_person=4)
    mu = 4 * (2 if adjacency is Adjacency.REPLACE_ONE else 1) * 3 / 20
    assert epsilon(run, delta=1e-5, adjacency=adjacency).value == pytest.approx(gaussian(mu, 1e-5), rel=1e-6)
    rows = {row.metric: row.value for row in leading(overview(run, delta=1e-5, adjacencies=[adjacency]))}
    assert rows["advantage"] == pytest.approx(2 * stats.norm.cdf(mu / 2) - 1, rel=1e-4)
    assert rows["success_rate"] == pytest.approx(stats.norm.cdf(mu / 2), rel=1e-4)
    assert rows["tpr_at_fpr.0.01"] == pytest.approx(stats.norm.cdf(stats.norm.ppf(0.01) + mu), rel=1e-2)
    assert rows["mu"] == pytest.approx(mu, rel=1e-9)
    assert {row.metric for row in claims(run, delta=1e-5)} == {"epsilon", "advantage", "bayes_security"}


def test_a_sampled_run_promises_less_to_more_records():
    """One record gives what the run promises; each more gives less, and no more than conversion of any epsilon."""
    plain = epsilon(DPSGD(4.0, 0.01, 1000), delta=1e-5)
    found = [
        epsilon(DPSGD(4.0, 0.01, 1000, unit="person", records_per_person=k), delta=1e-5).value
        for k in (1, 2, 4, 8)
    ]
    assert found[0] == pytest.approx(plain.value, rel=1e-3)
    assert sorted(found) == found
    for power in (5, 8, 12, 20):
        group = for_group(epsilon(DPSGD(4.0, 0.01, 1000), delta=10.0**-power), 8)
        assert group.delta > 1e-5 or found[3] <= group.value * (1 + 1e-9)


def test_nothing_is_promised_where_nothing_follows():
    """Batches of a fixed size know replaced records, a Gaussian has no pure epsilon, and shuffled batches prove nothing."""
    fixed = DPSGD(2.0, 0.1, 10, sampling=FixedSizeSampling(), unit="person", records_per_person=2)
    assert epsilon(fixed, delta=1e-5).value is None
    assert epsilon(fixed, delta=1e-5, adjacency="replace-one").value > 0
    assert [row.adjacency for row in claims(fixed, delta=1e-5)] == ["replace-one"] * 3
    assert epsilon(DPSGD(2.0, 0.1, 10, unit="person", records_per_person=2), delta=0.0).value == np.inf
    shuffled = DPSGD(2.0, 0.1, 10, sampling=ShuffledBatches(), unit="person", records_per_person=2)
    assert not any(row.proven for row in overview(shuffled, delta=1e-5))


def test_numbers_about_single_records_refuse_people():
    """A claim for single records alone says so, and a group of single records is no claim."""
    run = DPSGD(2.0, 0.1, 10, unit="person", records_per_person=2)
    with pytest.raises(
        InputError, match="records_per_person must be left out for a number about single records"
    ):
        total_variation(run)
    with pytest.raises(InputError, match='must be given with unit="person"'):
        StatedClaim(1.0, 0.0, records_per_person=2)
    with pytest.raises(InputError, match="records_per_person must be a whole number of 1 or more"):
        StatedClaim.from_rho(1.0, unit="person", records_per_person=0)


def test_people_on_the_command_line(capsys):
    """``--records-per-person`` converts, says for whom and what is not counted, and refuses what it cannot convert."""
    run = [
        "claim",
        "--noise-multiplier",
        "4",
        "--sampling-rate",
        "0.01",
        "--steps",
        "1000",
        "--delta",
        "1e-5",
    ]
    found = answer(capsys, *run, "--set", "records-per-person=3")
    expected = epsilon(DPSGD(4.0, 0.01, 1000, unit="person", records_per_person=3), delta=1e-5).value
    assert next(row for row in found["claims"] if row["metric"] == "epsilon")["value"] == pytest.approx(
        expected
    )
    assert "one person, whose up to 3 records are all replaced" in found["in_words"][0]
    assert "tuning" in found["in_words"][-1]
    assert "single records" in refused(capsys, *run, "--set", "records-per-person=3", "--compositions")
    assert in_words(overview(DPSGD(2.0, 0.1, 10), delta=1e-5))[0].startswith("About one record")
