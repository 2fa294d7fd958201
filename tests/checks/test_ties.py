"""Masked confidences are named in plain words."""

import numpy as np
import pytest

from auditor.checks import ties
from auditor.core import Losses, Status


def confident(rng, n=4000):
    """Probabilities of the true class of a confident model."""
    return rng.beta(4, 1, n)


def top_only(p):
    """The loss when only the top class is answered: what is wrong gets probability 0, cut off at 1e-7."""
    return -np.log(np.where(p > 0.5, p, 1e-7))


@pytest.mark.parametrize(
    ("mask", "named"),
    [
        (lambda p: -np.log(np.round(p, 2) + 1e-3), "rounding"),
        (lambda p: -np.log(np.round(p, 3) + 1e-4), "rounding"),
        (lambda p: (p < 0.5) + 0.0, "labels"),
        (top_only, "end of scale"),
        (lambda p: -np.log(np.minimum(p, 0.9)), "end of scale"),
        (lambda p: np.where(np.abs(p - 0.7) < 0.1, 0.0, np.log(p) - np.log1p(-p) - 0.8), "one value"),
    ],
)
def test_the_mask_is_named(rng, mask, named):
    """Rounded, label-only, top-1 and cut-off outputs each have their name and a warning about the Gaussian value."""
    found = ties(Losses(member=mask(confident(rng)), nonmember=mask(confident(rng))))
    assert found.status is Status.WARN
    assert found.details["masked"] == named
    assert "the leak may be larger than measured" in found.message
    assert "Gaussian Epsilon* larger" in found.message


def test_unmasked_losses_are_fine(rng):
    """Untouched confidences share nothing, in float32 too."""
    p = confident(rng).astype(np.float32)
    assert ties(Losses(member=-np.log(p), nonmember=-np.log(confident(rng)))).status is Status.OK


@pytest.mark.parametrize("losses", [([0.0, 1.0], [2.0, 3.0]), ([0.0, 1.0], [0.0, 1.0])])
def test_two_records_are_no_ties(losses):
    """A handful of losses, each once in its group, is not called rounded, though two may be met in the other group."""
    found = ties(Losses(member=losses[0], nonmember=losses[1]))
    assert found.status is Status.OK
    assert found.details["distinct"] == len({*losses[0], *losses[1]})
