"""Losses and the choices: valid once built, and every bad argument has its sentence."""

import numpy as np
import pytest

from auditor.core import (
    DPSGD,
    BernoulliSplit,
    FixedThreshold,
    InputError,
    Losses,
    RankGrid,
    Split,
    StatedClaim,
)


def test_losses_are_read_only_copies():
    """Changing the caller's array changes nothing, and the losses cannot be written to."""
    mine = np.array([1.0, 2.0, 3.0])
    losses = Losses(member=mine, nonmember=[1, 2])
    mine[0] = 99
    assert losses.member[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        losses.member[0] = 5
    assert losses.nonmember.dtype == np.float64


def test_what_losses_say_of_themselves_holds_no_data():
    """Alone on a line of a notebook, losses show counts and columns: no loss, no id and no label gets into its outputs."""
    losses = Losses(
        member=[0.123456, 7.0],
        nonmember=[8.5, 9.5, 6.5],
        id=(["anna", "bert"], ["c", "d", "e"]),
        scale="log-odds",
    )
    assert repr(losses) == str(losses) == "Losses(2 members, 3 non-members, scale log-odds, with id)"


@pytest.mark.parametrize(
    ("member", "nonmember", "sentence"),
    [
        (
            [0.1, np.nan, np.nan],
            [1, 2],
            r"member losses must be finite, got 2 NaN \(first at row 1, counting from 0\)",
        ),
        (
            [1, 2],
            [1.0, 2.0, np.inf],
            r"nonmember losses must be finite, got 1 infinite values \(first at row 2",
        ),
        ([np.inf, -np.inf], [1, 2], "member losses must be finite, got 2 infinite values"),
        ([], [1, 2], "member losses need at least 2 records, got 0"),
        ([1, 2], [1], "nonmember losses need at least 2 records, got 1"),
        ([[1, 2]], [1, 2], r"member losses must be one-dimensional, got shape \(1, 2\)"),
        (["a", "b"], [1, 2], "member losses must be numbers"),
        ([1j, 2], [1, 2], "member losses must be numbers"),
    ],
)
def test_bad_losses_are_named(member, nonmember, sentence):
    """NaN, infinities, empty and one-record groups, wrong shapes and types are refused with name, count and row."""
    with pytest.raises(InputError, match=sentence):
        Losses(member=member, nonmember=nonmember)


def test_opposite_infinities_do_not_hide():
    """Infinities that cancel in a sum are still found."""
    with pytest.raises(InputError, match="got 2 infinite values"):
        Losses(member=[np.inf, 1.0, -np.inf], nonmember=[0, 1])


def test_huge_losses_are_accepted():
    """A sum that overflows is not mistaken for an infinite loss."""
    assert Losses(member=[1.7e308, 1.7e308], nonmember=[0, 1]).n_member == 2


def test_labels_must_fit():
    """Ids of another length are refused, naming both."""
    with pytest.raises(InputError, match="member losses has 2, member id has 3"):
        Losses(member=[1, 2], nonmember=[1, 2], id=([1, 2, 3], [4, 5]))


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: DPSGD(0.0, 0.1, 10), "noise_multiplier must be above 0, got 0"),
        (lambda: DPSGD(1.0, 0.0, 10), r"sampling_rate must lie in \(0, 1\], got 0"),
        (lambda: DPSGD(1.0, 1.5, 10), r"sampling_rate must lie in \(0, 1\]"),
        (lambda: DPSGD(1.0, 0.1, 0), "steps must be a whole number of 1 or more, got 0"),
        (lambda: DPSGD(1.0, 0.1, 2.5), "steps must be a whole number"),
        (lambda: StatedClaim(1.0), "a claimed epsilon needs its delta, got epsilon 1 alone"),
        (lambda: StatedClaim(-1.0, 1e-5), "claimed epsilon must be 0 or more, got -1"),
        (lambda: StatedClaim(1.0, 1.0), r"claimed delta must lie in \[0, 1\), got 1"),
        (lambda: StatedClaim(1.0, 0.1, "addremove"), "did you mean 'add-remove'"),
        (lambda: BernoulliSplit(1.0), r"inclusion must lie in \(0, 1\)"),
        (lambda: RankGrid("left"), "tails must be one of 'both', 'lower', 'upper'"),
        (lambda: FixedThreshold(np.nan), "threshold must be finite, got nan"),
        (lambda: Split(1.0), r"fraction must lie in \(0, 1\)"),
        (lambda: Split(seed=-1), "seed must be a whole number of 0 or more"),
    ],
)
def test_bad_choices_are_named(build, sentence):
    """Every choice is checked when it is built."""
    with pytest.raises(InputError, match=sentence):
        build()
