"""The records that are named: those of the ranking, with how many share their place, and nobody without a reason to."""

import numpy as np
import pytest
from scipy import stats

import auditor
from auditor.core import Check, EachRecord, Losses, Status
from auditor.records import per_person
from auditor.risk import most_exposed, rank_records


def named_losses(rng, n=800, shift=1.5, **labels):
    """Normal losses with ids; lower by the shift for members."""
    ids = ([f"m{row}" for row in range(n)], [f"o{row}" for row in range(n)])
    return Losses(member=rng.normal(-shift, 1, n), nonmember=rng.normal(0, 1, n), **{"id": ids, **labels})


def exposed(losses, *, most=10, checks=(), seed=3):
    """The named records of the records themselves."""
    found = per_person(losses, choice=EachRecord())
    return most_exposed(found, checks=checks, most=most, rng=np.random.default_rng(seed))


@pytest.mark.parametrize("shift", [0.5, 1.5, 4.0])
@pytest.mark.parametrize("most", [1, 10, 5000])
def test_the_named_are_the_first_of_the_ranking(rng, shift, most):
    """Rank, id and odds are those of `rank_records` with the same generator, whatever the number requested."""
    losses = named_losses(rng, shift=shift)
    first = rank_records(losses, rng=np.random.default_rng(3)).top(most)
    assert [(item.rank, item.id, item.odds) for item in exposed(losses, most=most).records] == [
        (item["rank"], item["id"], item["odds"]) for item in first
    ]


def test_it_is_counted_how_many_share_a_place(rng):
    """`shared` is the number of members with just the same odds, by counting; among them the lowest losses are named."""
    losses = named_losses(rng, shift=3.0)
    odds = rank_records(losses, rng=np.random.default_rng(3)).odds.member
    found = exposed(losses, most=20).records
    assert [item.shared for item in found] == [int((odds == item.odds).sum()) for item in found]
    best = np.flatnonzero(odds == odds.max())
    by_loss = best[np.argsort(losses.member[best])]
    assert [item.id for item in found][: best.size] == [f"m{row}" for row in by_loss[:20]]


def test_saturated_losses_share_one_place():
    """Where 500 of 600 members have one loss that no other record has, the ten named say that they are 10 of 500."""
    member = np.concatenate([np.zeros(500), np.full(100, 2.0)])
    losses = Losses(member=member, nonmember=np.full(600, 2.0), id=(np.arange(600), np.arange(600)))
    found = exposed(losses).records
    assert [(item.rank, item.shared, item.id) for item in found] == [(1, 500, str(row)) for row in range(10)]


def test_nobody_is_named_without_a_leak(request):
    """Where members and others have the same law, someone is named in at most 5% of the audits, ties or not."""
    runs = 1500 if request.config.getoption("--long") else 150
    rng = np.random.default_rng(8)
    for draw in (lambda n: rng.normal(size=n), lambda n: rng.integers(0, 4, n) + 0.0):
        for n in (15, 60, 700):
            ids = (np.arange(n), np.arange(n))
            named = sum(
                bool(exposed(Losses(member=draw(n), nonmember=draw(n), id=ids), seed=seed).records)
                for seed in range(runs)
            )
            assert stats.binom.sf(named - 1, runs, 0.05) > 1e-3, (n, named)


@pytest.mark.parametrize("kind", ["shift", "tail", "middle"])
def test_a_leak_is_named(rng, kind):
    """A shifted law, a leak of 2% of the members, and one in the middle of the losses are each enough to name records."""
    n = 4000
    member = {
        "shift": rng.normal(-0.3, 1, n),
        "tail": np.where(np.arange(n) < n // 50, rng.normal(-6, 0.1, n), rng.normal(0, 1, n)),
        "middle": rng.normal(0, 0.7, n),
    }[kind]
    losses = Losses(member=member, nonmember=rng.normal(0, 1, n), id=(np.arange(n), np.arange(n)))
    found = exposed(losses)
    assert len(found.records) == 10
    if kind == "tail":
        assert all(int(item.id) < n // 50 for item in found.records)


def test_a_reason_is_given_where_nobody_is_named(rng):
    """None requested, no ids, a failed validity check, members with higher losses, and no leak: each says so."""
    losses = named_losses(rng)
    failed, turned = Check("shift", Status.FAIL, "It did."), Check("direction", Status.WARN, "They have.")
    same = Losses(member=[1.0] * 90, nonmember=[1.0] * 90, id=(range(90), range(90)))
    for found, words in (
        (exposed(losses, most=0), "top_records=N names the most exposed"),
        (exposed(Losses(member=losses.member, nonmember=losses.nonmember)), "no ids"),
        (exposed(losses, checks=(failed,)), "validity check failed (shift)"),
        (exposed(losses, checks=(turned,)), "may be swapped"),
        (exposed(same), "no better than chance"),
    ):
        assert found.records == ()
        assert words in found.reason
    assert exposed(losses).reason is None


def test_persons_are_named_where_they_are_the_units(rng):
    """One score per person: the id is the person, whose lowest loss decides; a record of nobody keeps no name."""
    person = np.repeat(np.arange(300), 3).astype(str)
    person[-3:] = ""
    member = rng.normal(-1, 1, 900)
    member[30:33] = -9.0
    member[-1] = -9.0
    losses = named_losses(rng, n=900, person=(person, np.repeat(np.arange(1000, 1300), 3).astype(str)))
    losses = Losses(member=member, nonmember=losses.nonmember, id=losses.id, person=losses.person)
    result = auditor.audit(losses, persons=auditor.OnePerPerson("min"), top_records=300)
    assert (result.data["unit"], result.data["combined"]) == ("person", "min")
    by_id = {item.id: item for item in result.top_records}
    assert (by_id["10"].person, by_id["10"].rank) == ("10", 1)
    nobody = [item for item in result.top_records if item.id == "(not named)"]
    assert (len(nobody), nobody[0].rank, nobody[0].person) == (3, 1, None)
    each = auditor.audit(losses, persons=EachRecord(), top_records=900)
    at = next(item for item in each.top_records if item.id == "m30")
    assert (at.person, at.rank) == ("10", 1)


def test_missing_and_long_labels(rng):
    """A record without an id is said to have none, and a very long id is cut."""
    ids = np.array([f"m{row}" for row in range(800)], dtype=object)
    losses = named_losses(rng, shift=3.0)
    first = int(np.argmin(losses.member))
    ids[:] = [f"{row}{'x' * 5000}" for row in range(800)]
    ids[first] = None
    found = exposed(Losses(member=losses.member, nonmember=losses.nonmember, id=(ids, ids)), most=800).records
    assert max(len(item.id) for item in found) < 120
    assert sum(item.id == "(not named)" for item in found) == 1


def test_many_losses_are_scored_on_cells(rng, monkeypatch):
    """Scoring held-out records on few cells changes neither the choice nor any of the odds."""
    from auditor.risk import ranking

    for draw in (rng.normal(-1, 1, 4000), rng.normal(0, 0.6, 4000)):
        losses = Losses(member=draw, nonmember=rng.normal(0, 1, 4000))
        exact = rank_records(losses, rng=np.random.default_rng(1))
        monkeypatch.setattr(ranking, "_CELLS", 1024)
        coarse = rank_records(losses, rng=np.random.default_rng(1))
        monkeypatch.undo()
        assert (exact.monotone, exact.told) == (coarse.monotone, coarse.told)
        np.testing.assert_array_equal(exact.odds.member, coarse.odds.member)
