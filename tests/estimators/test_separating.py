"""Thresholds in a result sort the records as they should, and are no record's loss."""

import numpy as np
import pytest

import auditor
from auditor.core import FixedThreshold, Losses, Split
from auditor.estimators import clopper_pearson, just_above, just_below, tpr_at_fpr


@pytest.mark.parametrize("scale", [1e-300, 1e-3, 1.0, 1e300])
def test_the_numbers_lie_between_neighbours(rng, scale):
    """Every loss, the smallest and the largest too, has as many records below and above as the number beside it."""
    losses = Losses(member=rng.normal(size=40).round(1) * scale, nonmember=rng.normal(size=40) * scale)
    pooled = np.concatenate([losses.member, losses.nonmember])
    for loss in pooled:
        below, above = just_below(losses, loss), just_above(losses, loss)
        assert below < loss < above
        assert (pooled < below).sum() == (pooled <= below).sum() == (pooled < loss).sum()
        assert (pooled > above).sum() == (pooled >= above).sum() == (pooled > loss).sum()


def test_few_digits_are_told():
    """The number is as short as the gap allows."""
    losses = Losses(member=[0.123456789, 0.987654321], nonmember=[0.123456987, 2.0])
    assert just_above(losses, 0.123456789) == 0.1234569
    assert just_below(losses, 0.987654321) == 0.6


@pytest.mark.parametrize("losses", [[0.0, 0.0], [5.0, 5.0], [1.7e308, -1.7e308], [5e-324, 0.0]])
def test_extreme_losses(losses):
    """Equal, huge and tiny losses: a finite number on the right side, or none where no double is free."""
    both = Losses(member=losses, nonmember=losses)
    for loss in losses:
        below, above = just_below(both, loss), just_above(both, loss)
        assert below is None or -np.inf < below < loss
        assert above is None or loss < above < np.inf


def test_no_threshold_of_a_result_is_a_loss(rng):
    """All thresholds of an audit give the counts beside them and equal no record's loss, with a split too."""
    losses = Losses(member=rng.normal(-1.5, 1, 700), nonmember=rng.normal(size=500))
    pooled = set(np.concatenate([losses.member, losses.nonmember]).tolist())
    rows = [*auditor.audit(losses).estimates, clopper_pearson(losses, delta=1e-3, rule=Split())]
    found = [
        row.details[key] for row in rows for key in ("threshold", "threshold_below") if key in row.details
    ]
    assert len(found) >= 4
    assert not pooled & set(found)
    rate = tpr_at_fpr(losses, rate=0.1)
    assert (losses.member < rate.details["threshold_below"]).sum() == rate.details["true_positives"]
    upper = clopper_pearson(Losses(member=-losses.nonmember, nonmember=-losses.member), delta=1e-3).details
    lower = clopper_pearson(losses, delta=1e-3).details
    assert {upper["tail"], lower["tail"]} == {"upper", "lower"}
    assert (losses.member < lower["threshold"]).sum() == lower["true_positives"]
    assert (-losses.member > upper["threshold"]).sum() == upper["true_negatives"]
    own = clopper_pearson(losses, delta=1e-3, rule=FixedThreshold(-1.0)).details
    assert own["threshold"] == -1.0
