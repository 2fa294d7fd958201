"""Random pairs: how many, from which strata, and in an order that membership does not decide."""

import numpy as np
import pytest

from auditor.core import Losses, PerGroup
from auditor.estimators import random_pairs


def in_strata(rng, sizes, names):
    """Losses in which a member is below the non-members of its own stratum only, and above those of earlier ones."""
    level, names = 10.0 * np.arange(len(sizes)), np.array(names)
    sides = []
    for side, above in enumerate((0, 1)):
        at = rng.permutation(np.repeat(np.arange(len(sizes)), [pair[side] for pair in sizes]))
        sides.append((level[at] + above, names[at]))
    (member, first), (nonmember, second) = sides
    return Losses(member=member, nonmember=nonmember, group=PerGroup(first, second))


def test_pairs_stay_within_strata(rng):
    """Each stratum gives as many pairs as its smaller side, all of them with the member below by construction."""
    losses = in_strata(rng, [(5, 8), (30, 10), (7, 0), (0, 9)], ["a", "b", "c", "d"])
    found = random_pairs(losses, strata=losses.group, rng=rng)
    assert found.right.size == 5 + 10
    assert found.right.all()
    assert (found.left_out, found.strata) == (42 + 27 - 30, 2)
    # Across strata the lower loss is often the non-member's, so this data can tell the two ways apart.
    assert not random_pairs(losses, rng=rng).right.all()


def test_records_without_a_label_give_no_pairs(rng):
    """A blank label is no stratum: its records are left out on both sides."""
    losses = in_strata(rng, [(5, 5), (20, 20)], ["a", ""])
    found = random_pairs(losses, strata=losses.group, rng=rng)
    assert (found.right.size, found.left_out, found.strata) == (5, 40, 1)


@pytest.mark.parametrize("stratified", [False, True])
def test_the_widest_gap_comes_first(rng, stratified):
    """In each order the first guesses are right more often than the rest, and each holds half of the pairs."""
    losses = Losses(member=rng.normal(-1.5, 1, 400), nonmember=rng.normal(0, 1, 400))
    strata = PerGroup(np.arange(400) % 2, np.arange(400) % 2) if stratified else None
    found = random_pairs(losses, strata=strata, rng=rng)
    for name, order in found.orders.items():
        assert np.unique(order).size == order.size == 200
        rest = np.setdiff1d(np.arange(400), order)
        first, last = found.right[order[:100]].mean(), found.right[rest].mean()
        assert first > last + 0.05, name
        if name.startswith("distance"):
            assert first > 0.97
            assert last < 0.8


def test_no_order_knows_who_is_the_member(rng):
    """With the losses of any pairs exchanged, every order stays as it was: it depends on the unordered pairs alone."""
    member, nonmember, exchanged = rng.normal(-1, 1, 300), rng.normal(0, 1, 300), rng.random(300) < 0.5
    strata = PerGroup(np.arange(300), np.arange(300))  # one pair in each, so that the pairs are known
    sides = [
        (member, nonmember),
        (np.where(exchanged, nonmember, member), np.where(exchanged, member, nonmember)),
    ]
    one, other = (
        random_pairs(Losses(member=a, nonmember=b), strata=strata, rng=np.random.default_rng(1))
        for a, b in sides
    )
    assert (one.right != other.right).sum() == exchanged.sum()
    for name, order in one.orders.items():
        assert order.tolist() == other.orders[name].tolist()


def test_a_tie_is_a_wrong_guess(rng):
    """All losses equal: no guess is right, whatever the order."""
    assert not random_pairs(Losses(member=np.ones(30), nonmember=np.ones(40)), rng=rng).right.any()
