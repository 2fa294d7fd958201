"""Slices: each is audited like a set of its own, what is too small is said and costs nothing, bands follow the losses."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import auditor
from auditor.core import Losses, Melded, RankGrid
from auditor.curves import count
from auditor.estimators import advantage, auc, clopper_pearson
from auditor.results import SliceKind
from auditor.risk import bands, slices_of

BOUND = "epsilon_bound.clopper_pearson"
MELDED = RankGrid(interval=Melded())


def grouped(rng, sizes, shift=1.0):
    """Normal losses with these numbers of members and of non-members in groups 0, 1, 2..."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    n = labels.size
    return Losses(member=rng.normal(-shift, 1, n), nonmember=rng.normal(0, 1, n), group=(labels, labels))


def of_kind(found, kind):
    """The slices of one kind."""
    return [part for part in found if part.kind is kind]


def test_a_group_is_audited_like_a_set_of_its_own(rng):
    """Each group's numbers are the estimators' at the shared level alpha/m on the group's records alone."""
    losses = grouped(rng, [300, 200, 100])
    found = slices_of(losses, delta=1e-5, confidence=0.9)
    groups, compared = of_kind(found, SliceKind.GROUP), len(found)
    assert [part.label for part in groups] == ["0", "1", "2"]
    assert {part.compared for part in found} == {compared} == {3 + 10}
    level = 1 - 0.1 / compared
    for label, part in enumerate(groups):
        alone = Losses(
            member=losses.member[losses.group.member == label],
            nonmember=losses.nonmember[losses.group.nonmember == label],
        )
        counts = count(alone)
        bound, area, gap = part.estimates
        area = replace(area, details={k: v for k, v in area.details.items() if "p_value" not in k})
        assert (bound, area, gap) == (
            clopper_pearson(alone, delta=1e-5, confidence=part.estimates[0].confidence, rule=MELDED),
            auc(counts, confidence=part.estimates[1].confidence),
            advantage(counts, confidence=part.estimates[2].confidence),
        )
        assert [item.confidence for item in part.estimates] == pytest.approx([level] * 3)


@pytest.mark.parametrize("digits", [15, 1, 0])
def test_p_values_of_no_separation_are_holms(rng, digits):
    """SciPy's p-values of Mann and Whitney, sorted, times how many are left, never falling; they stand in the result."""
    losses = grouped(rng, [60, 80, 40], shift=0.0)
    labels = losses.group[0]
    member, nonmember = np.round(losses.member - (labels == 1), digits), np.round(losses.nonmember, digits)
    losses = replace(losses, member=member, nonmember=nonmember)
    found = auditor.audit(losses, delta=1e-5, disclosure="insiders")
    parts = [(losses.member[labels == i], losses.nonmember[labels == i]) for i in range(3)]
    own = np.array([stats.mannwhitneyu(*part, method="asymptotic").pvalue for part in parts])
    order = np.argsort(own)
    holm = np.empty(3)
    holm[order] = np.minimum(np.maximum.accumulate(own[order] * [3, 2, 1]), 1.0)
    details = {one.label: one.estimate("auc").details for one in of_kind(found.slices, SliceKind.GROUP)}
    assert [details[str(i)]["p_value"] for i in range(3)] == pytest.approx(own.tolist())
    assert [details[str(i)]["holm_p_value"] for i in range(3)] == pytest.approx(holm.tolist())


def test_bands_hold_what_a_sort_puts_there(rng):
    """The members' share in each band of percentiles is that of the sorted records, with SciPy's exact interval."""
    losses = Losses(member=rng.normal(-1, 1, 700), nonmember=rng.normal(0, 1, 1300))
    found = slices_of(losses, delta=1e-5)
    order = np.argsort(np.concatenate([losses.member, losses.nonmember]))
    inside = order < 700
    ends = [0, 20, 100, 200, 500, 1000, 1500, 1800, 1900, 1980, 2000]
    assert [part.label for part in found[:2]] == ["lowest 1% of losses", "lowest 1% to 5% of losses"]
    assert [part.label for part in found[-2:]] == ["highest 1% to 5% of losses", "highest 1% of losses"]
    for part, start, end in zip(found, ends[:-1], ends[1:], strict=True):
        members = int(inside[start:end].sum())
        item = part.estimate("member_share")
        exact = stats.binomtest(members, end - start).proportion_ci(1 - 0.05 / 10, method="exact")
        assert (part.n_member, part.n_nonmember) == (members, end - start - members)
        assert (item.value, item.lower, item.upper) == pytest.approx((members / (end - start), *exact))
        assert item.details["lift"] == pytest.approx(members / (end - start) / 0.35)


def test_small_slices_spend_nothing(rng):
    """Groups of few records have no numbers but a reason, and the level of the others is as if they were not there."""
    losses = grouped(rng, [300, 300, 8, 9, 12])
    found = of_kind(slices_of(losses, delta=1e-5, confidence=1 - 1e-7), SliceKind.GROUP)
    assert [part.label for part in found] == ["0", "1", "4", "(2 groups too small to audit)"]
    assert [part.reason for part in found[:2]] == [None, None]
    assert "not even a perfect attack" in found[2].reason
    assert "fewer than 10" in found[3].reason
    assert {item.value for part in found[2:] for item in part.estimates} == {None}
    assert found[3].estimate(BOUND).delta == 1e-5
    assert found[0].compared == 2 + 10


@pytest.mark.parametrize("seed", range(60))
def test_no_group_of_few_is_shown_or_found_by_subtraction(seed):
    """In designs of all kinds each shown part has 10 members and 10 non-members or more, parts sum to all, and names of small ones are out."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([0, 1, 3, 9, 10, 12, 40, 200], size=(rng.integers(2, 7), 2))
    sizes[0] = rng.integers(30, 300, 2)
    labels = [
        np.repeat([f"name{at}" for at in range(len(sizes))], column).astype(object) for column in sizes.T
    ]
    for column in labels:
        column[rng.random(column.size) < rng.choice([0, 0.01, 0.2])] = None
    losses = Losses(*(rng.normal(size=column.size) for column in labels), group=tuple(labels))
    kept = [[int((column == f"name{at}").sum()) for column in labels] for at in range(len(sizes))]
    found = of_kind(slices_of(losses, delta=1e-5), SliceKind.GROUP)
    parts = [(part.n_member, part.n_nonmember) for part in found]
    assert tuple(map(sum, zip(*parts, strict=True))) == (losses.n_member, losses.n_nonmember)
    assert len(parts) == 1 or min(map(min, parts)) >= 10
    shown = {part.label for part in found}
    assert not {f"name{at}" for at, both in enumerate(kept) if min(both) < 10} & shown


@pytest.mark.parametrize("seed", range(60))
def test_no_difference_between_kinds_is_small(seed):
    """A class less the groups within it, and a group less the classes within it, is empty or has 10 of each side or more.

    Regions lie in countries here, some of them small, and of a few records one or the other may be wrong.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.choice([2, 5, 9, 12, 40, 200], (rng.integers(4, 12), 2), p=[0.1, 0.1, 0.1, 0.2, 0.3, 0.2])
    regions = [np.repeat(np.arange(len(sizes)), column) for column in sizes.T]
    countries = [column // rng.integers(2, 5) for column in regions]
    for column in rng.choice(2, rng.integers(0, 3), replace=False):
        moved = rng.choice(regions[column].size, rng.integers(1, 14), replace=False)
        [regions, countries][rng.integers(2)][column][moved] = rng.integers(0, 3)
    kinds = [SliceKind.CLASS, SliceKind.GROUP]
    order = kinds if rng.integers(2) else kinds[::-1]
    columns = dict(zip(order, (regions, countries), strict=True))
    losses = Losses(
        *(rng.normal(size=column.size) for column in regions),
        label=columns[SliceKind.CLASS],
        group=columns[SliceKind.GROUP],
    )
    found = slices_of(losses, delta=1e-5)
    held = {kind: held_by(of_kind(found, kind), columns[kind]) for kind in columns}
    assert held[SliceKind.CLASS]
    for kind, other in (order, order[::-1]):
        for whole in held[kind]:
            rest = [side.copy() for side in whole]
            for part in held[other]:
                if all(not (inner & ~outer).any() for inner, outer in zip(part, whole, strict=True)):
                    rest = [left & ~inner for left, inner in zip(rest, part, strict=True)]
            left = [int(side.sum()) for side in rest]
            assert left == [0, 0] or min(left) >= 10 or all(map(np.array_equal, rest, whole)), (kind, left)


def held_by(slices, columns):
    """Which members and non-members each slice holds: those with its label, or with none that is named."""
    named = [part.label for part in slices if not part.label.startswith("(")]
    found = [[column.astype(str) == label for column in columns] for label in named]
    if len(named) < len(slices):
        found.append([~np.isin(column.astype(str), named) for column in columns])
    for part, sides in zip(slices, found, strict=True):
        assert [part.n_member, part.n_nonmember] == [int(side.sum()) for side in sides]
    return found


def test_rows_of_few_people_make_no_group(rng):
    """Where records name their person, a group of 37 rows of one person is not named, however rows are audited."""
    group = np.repeat(["large", "other", "Smallville"], [300, 300, 37])
    person = np.append(np.arange(600), np.full(37, 600))
    losses = Losses(
        *rng.normal(size=(2, 637)),
        label=tuple(rng.choice(["ill", "well"], (2, 637))),
        group=(group, group),
        person=(person, person + 1000),
    )
    result = auditor.audit(losses, persons=auditor.EachRecord())
    assert "Smallville" not in result.to_json()
    assert "Smallville" in auditor.audit(replace(losses, person=None)).to_json()


def test_a_small_group_joins_the_next_smallest(rng):
    """One group of 9 joins the next one, which is then audited together with it, so that subtraction finds neither."""
    found = of_kind(slices_of(grouped(rng, [300, 200, 9]), delta=1e-5), SliceKind.GROUP)
    assert [part.label for part in found] == ["0", "(2 groups together, as some are too small to audit)"]
    assert (found[1].n_member, found[1].n_nonmember) == (209, 209)
    assert found[1].estimate(BOUND).value is not None


def test_groups_too_small_to_audit_are_not_named(rng, monkeypatch):
    """Groups with few members or few non-members are one slice with their summed counts, however many are compared."""
    labels = [f"r{at}" for at in range(30)]
    losses = Losses(
        member=rng.normal(size=240),
        nonmember=rng.normal(size=235),
        group=(
            [*["a"] * 100, *["b"] * 50, *["c"] * 60, *labels],
            [*["a"] * 100, *["b"] * 50, *["c"] * 70, *labels[:15]],
        ),
    )
    found = of_kind(slices_of(losses, delta=0.0), SliceKind.GROUP)
    assert [part.label for part in found] == ["a", "c", "b", "(30 groups too small to audit)"]
    assert (found[3].n_member, found[3].n_nonmember) == (30, 15)
    assert found[3].reason == "fewer than 10 members or fewer than 10 non-members"
    monkeypatch.setattr("auditor.risk.slices._MOST", 2)
    few = of_kind(slices_of(losses, delta=0.0), SliceKind.GROUP)
    assert [part.label for part in few] == ["a", "c", "(1 smaller group)", "(30 groups too small to audit)"]
    assert [(part.n_member, part.n_nonmember) for part in few[2:]] == [(50, 50), (30, 15)]


def test_every_compared_group_could_be_certified(rng):
    """Each compared slice has a ceiling above 0, with many tiny groups and with delta near 1."""
    for delta in (0.0, 0.9):
        found = of_kind(slices_of(grouped(rng, range(10, 60)), delta=delta), SliceKind.GROUP)
        kept = [part for part in found if part.reason is None]
        assert all(part.estimate(BOUND).details["ceiling"] > 0 for part in kept)
        assert delta > 0.5 or len(kept) > 20


def test_only_the_largest_groups_are_compared(rng):
    """Of 60 groups the 50 largest are audited, and one slice says how many records are in the others."""
    found = of_kind(slices_of(grouped(rng, range(41, 101)), delta=1e-5), SliceKind.GROUP)
    assert len(found) == 51
    assert {part.label for part in found[:50]} == {str(label) for label in range(10, 60)}
    assert found[50].label == "(10 smaller groups)"
    assert found[50].n_member == sum(range(41, 51))
    assert "only the 50 largest of 60 groups" in found[50].reason


def test_records_without_a_group_are_counted():
    """Blank labels form no slice, labels of one side only join them, and types do not matter."""
    losses = Losses(
        member=np.arange(40.0),
        nonmember=np.arange(60.0),
        group=(np.repeat([1.0, np.nan], 20), np.repeat(["1", "only here", None], 20)),
    )
    found = {part.label: part for part in slices_of(losses, delta=0.0)}
    assert (found["1"].n_member, found["1"].n_nonmember) == (20, 20)
    together = found["(1 group too small to audit, and no label)"]
    assert (together.n_member, together.n_nonmember) == (20, 40)
    assert "fewer than 10 members" in together.reason


def test_ties_stay_in_one_band():
    """Losses with three values give at most three bands, named by the share of the records they hold."""
    losses = Losses(np.repeat([0.0, 1.0, 2.0], [60, 30, 10]), np.repeat([0.0, 1.0, 2.0], 100))
    found = slices_of(losses, delta=0.0)
    assert [(part.n_member, part.n_nonmember) for part in found] == [(60, 100), (30, 100), (10, 100)]
    assert [part.label for part in found] == [
        "lowest 40% of losses",
        "lowest 40% to 72.5% of losses",
        "highest 27.5% of losses",
    ]


def test_equal_losses_and_two_records_have_reasons():
    """Nothing to compare is said, with no warning and no number."""
    for losses in (
        Losses(member=np.ones(50), nonmember=np.ones(60)),
        Losses(member=[1, 2], nonmember=[3, 4]),
    ):
        found = slices_of(losses, delta=0.0)
        assert {part.reason is None for part in found} == {False}
        assert {part.compared for part in found} == {0}
    assert "only one band" in slices_of(Losses(np.ones(50), np.ones(60)), delta=0.0)[0].reason


def test_extreme_losses_are_sliced(rng):
    """Losses near the largest double, and a confidence too high to be shared, neither warn nor fail."""
    values = rng.uniform(-1, 1, size=400) * 1.7e308
    losses = Losses(member=values[:200], nonmember=values[200:], group=(["a"] * 200, ["a"] * 200))
    assert slices_of(losses, delta=0.0)[0].reason is None
    assert "too high" in slices_of(losses, delta=0.0, confidence=1 - 2e-12)[0].reason


def test_bands_cover_every_record_once(rng):
    """Whatever the quantiles and the ties, the bands hold all members and all non-members."""
    for size in (2, 3, 17, 400):
        for values in (rng.normal(size=2 * size), rng.integers(0, 3, 2 * size) + 0.0):
            losses = Losses(member=values[:size], nonmember=values[size:])
            for ends in ((), (0.5,), (0.001, 0.33, 0.999), tuple(np.arange(1, 100) / 100)):
                found = list(bands(losses, 10, ends))
                assert sum(part.n_member for part in found) == size
                assert sum(part.n_nonmember for part in found) == size


def test_a_shared_result_gives_no_digits_of_a_small_p_value(rng):
    """Three digits of 1e-20 would tell the AUC to six: shared p-values are coarse, never smaller than the exact ones, and Holm's of those."""
    code = np.repeat(np.arange(3), 200)
    shift = np.array([0.05, 0.3, 1.5])[code]
    losses = auditor.Losses(rng.normal(size=600) - shift, rng.normal(size=600), group=(code, code))
    exact, coarse = (
        [
            item.estimate("auc").details
            for item in auditor.audit(losses, disclosure=kind).slices
            if item.kind == "group"
        ]
        for kind in ("insiders", "public")
    )
    grid = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0]
    for mine, other in zip(exact, coarse, strict=True):
        assert other["p_value"] == min(p for p in grid if p >= mine["p_value"])
        assert other["holm_p_value"] >= mine["holm_p_value"]
    assert coarse[2]["p_value"] == 0.001 > exact[2]["p_value"]
