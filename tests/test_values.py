"""Losses and the choices: valid once built, and every bad argument has its sentence."""

import numpy as np
import pytest

from auditor.core import Losses


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
