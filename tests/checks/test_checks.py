"""Each check answers its question both ways, with a sentence."""

import numpy as np
import pytest

from auditor import checks
from auditor.core import Adjacency, Claim, Losses, RandomSplit, Status, UnknownSplit
from auditor.curves import count, fit_gaussian, fit_gaussian_pair, published
from auditor.estimators import alternatives, auc, clopper_pearson, gaussian, one_run_bound
from auditor.estimators.epsilon_star import _condensed
from auditor.results import advice


def losses_of(rng, shift, n=800):
    """Two normal groups that far apart."""
    return Losses(member=rng.normal(-shift, 1, n), nonmember=rng.normal(0, 1, n))


def test_direction_warns_when_swapped(rng):
    """Swapped groups warn, in their right order and with no difference they do not."""
    assert checks.direction(auc(count(losses_of(rng, -1.0)))).status is Status.WARN
    assert checks.direction(auc(count(losses_of(rng, 1.0)))).status is Status.OK
    assert checks.direction(auc(count(losses_of(rng, 0.0)))).status is Status.OK


def test_ties_say_how_many(rng):
    """No ties are fine, a repeated extreme warns, constant losses say that every bound is 0."""
    smooth = losses_of(rng, 1.0)
    piled = Losses(
        member=np.minimum(smooth.member, np.quantile(smooth.member, 0.7)), nonmember=smooth.nonmember
    )
    constant = Losses(member=np.ones(5), nonmember=np.ones(9))
    assert checks.ties(smooth).status is Status.OK
    assert checks.ties(piled).details["member_share"] == pytest.approx(0.3, abs=0.01)
    assert checks.ties(piled).status is Status.WARN
    assert "every bound is 0" in checks.ties(constant).message


def test_constant_groups_apart_are_not_called_equal():
    """Two different constants are tied within each group, but not all equal."""
    found = checks.ties(Losses(member=np.zeros(5), nonmember=np.ones(5)))
    assert found.status is Status.WARN
    assert "All losses are equal" not in found.message


def test_saturation_counts(rng):
    """Saturated losses are counted by group."""
    plain = losses_of(rng, 1.0)
    clipped = Losses(member=plain.member, nonmember=plain.nonmember, saturated=(1200, 3))
    assert checks.saturation(plain).status is Status.OK
    assert checks.saturation(clipped).status is Status.WARN
    assert checks.saturation(clipped).message.startswith("1,200 member and 3 non-member")


@pytest.mark.parametrize(
    ("member", "nonmember", "status", "across"),
    [
        (["a", "b"], ["c", "d"], Status.OK, 0),
        (["a", "a"], ["c", "d"], Status.WARN, 0),
        (["a", "b"], ["b", "d"], Status.FAIL, 1),
        ([1, 2], ["2", "3"], Status.FAIL, 1),
        ([1, 2], [2.0, 3.0], Status.FAIL, 1),
        ([1.5, 2.0], [2.5, 3.0], Status.OK, 0),
    ],
)
def test_duplicates_by_id(member, nonmember, status, across):
    """An id in both groups fails, within a group warns, and numbers meet their own text."""
    found = checks.duplicates(Losses(member=[0.0, 1.0], nonmember=[0.0, 1.0], id=(member, nonmember)))
    assert found.status is status
    assert found.details["across"] == across


@pytest.mark.parametrize("blank", ["", "  ", None, float("nan")])
def test_blank_ids_are_no_ids(blank):
    """Records without an id are not taken for duplicates of each other; the check says how many there are."""
    ids = np.array([blank, blank, "a"], object), np.array([blank, "x", "y"], object)
    found = checks.duplicates(Losses(member=[0.0, 1.0, 2.0], nonmember=[0.0, 1.0, 2.0], id=ids))
    assert found.status is Status.UNKNOWN
    assert found.details["without_id"] == 3


def test_duplicates_without_ids_are_unknown():
    """Without ids nothing is claimed."""
    assert checks.duplicates(Losses(member=[0.0, 1.0], nonmember=[0.0, 1.0])).status is Status.UNKNOWN


def test_shift_is_never_decided_from_losses():
    """From losses alone a shift is unknown, and the sentence says what is assumed."""
    assert checks.shift().status is Status.UNKNOWN


def claimed(epsilon):
    """A replace-one claim at delta 1e-5."""
    return Claim("epsilon", epsilon, 1e-5, Adjacency.REPLACE_ONE, "stated", proven=True)


def test_power_against_a_claim(rng):
    """A ceiling above the claim has power, one below does not; without a claim it only states the ceiling."""
    losses = losses_of(rng, 1.0, n=300)
    certified = clopper_pearson(losses, delta=1e-5)
    by_pairs = one_run_bound(losses, split=RandomSplit(), delta=1e-5, rng=rng)
    nothing = one_run_bound(losses, split=UnknownSplit(), delta=1e-5, rng=rng)
    assert checks.power(certified, by_pairs, claimed(1.0)).status is Status.OK
    assert checks.power(certified, by_pairs, claimed(50.0)).status is Status.WARN
    assert checks.power(certified, nothing, claimed(50.0)).status is Status.OK
    few = clopper_pearson(losses_of(rng, 1.0, n=10), delta=1e-5)
    assert checks.power(few, nothing, None).status is Status.WARN
    # What to do is said once, in the advice that stands beside the message.
    for found in (checks.power(few, nothing, None), checks.power(certified, by_pairs, claimed(50.0))):
        assert f"{found.message} {advice(found, {})}".lower().count("audit more records") == 1


def published_row(losses, rng):
    """The parametric row of raw losses at delta 1e-5, with its alternatives."""
    pair = fit_gaussian_pair(published()(losses), rng=rng)
    return gaussian(pair, delta=1e-5, extra=alternatives(losses, delta=1e-5))


def test_sensitivity_finds_one_record(rng):
    """One huge loss moves the published value by far more than 10%, and the check says so."""
    plain = Losses(member=rng.gamma(2, 0.2, 10_000), nonmember=rng.gamma(3, 0.2, 10_000))
    spoiled = Losses(member=plain.member, nonmember=np.append(plain.nonmember, 20 * plain.nonmember.max()))
    upset = checks.sensitivity(published_row(spoiled, rng))
    # The design's reference: one outlier at 20x the maximum moves 4.93 to 8.46, and the log-odds value of 4.80 to 3.62.
    assert upset.details["value"] == pytest.approx(8.46, abs=0.3)
    assert upset.details["without_extremes"] == pytest.approx(4.93, abs=0.3)
    assert upset.details["scale_free"] == pytest.approx(3.62, abs=0.3)
    assert upset.status is Status.WARN
    assert checks.sensitivity(published_row(plain, rng)).status is Status.OK


def test_sensitivity_without_a_value_is_unknown(rng):
    """Where the parametric row has no value there is nothing to vary, and the reason is passed on."""
    found = checks.sensitivity(gaussian(fit_gaussian_pair(losses_of(rng, 1.0), rng=rng), delta=0.0))
    assert found.status is Status.UNKNOWN
    assert "delta is 0" in found.message


def test_condensing_a_long_sample_changes_nothing_that_matters(rng):
    """The moments of a condensed long sample are those of all its records to 1e-5."""
    ordered = np.sort(rng.gamma(2, 5, 400_000))
    values, weights = _condensed(ordered)
    assert values.size < ordered.size / 10
    assert weights.sum() == ordered.size
    whole, short = (
        fit_gaussian(published()(Losses(member=x, nonmember=x)).member, w)
        for x, w in ((ordered, None), (values, weights))
    )
    assert short.mean == pytest.approx(whole.mean, rel=1e-5)
    assert short.sd == pytest.approx(whole.sd, rel=1e-5)


def test_goodness_of_fit_names_the_group(rng):
    """Only the group that does not look normal is named."""
    pair = fit_gaussian_pair(
        Losses(member=rng.normal(size=4000), nonmember=rng.exponential(size=4000)), rng=rng
    )
    found = checks.goodness_of_fit(pair)
    assert found.status is Status.WARN
    assert "The non-member losses do not look normal" in found.message
    good = fit_gaussian_pair(Losses(member=rng.normal(size=400), nonmember=rng.normal(size=400)), rng=rng)
    assert checks.goodness_of_fit(good).status is Status.OK
    few = fit_gaussian_pair(Losses(member=rng.normal(size=12), nonmember=rng.normal(size=400)), rng=rng)
    assert checks.goodness_of_fit(few).status is Status.UNKNOWN
