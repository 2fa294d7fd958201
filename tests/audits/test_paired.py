"""Two releases on the same records: McNemar's limits, who is paired with whom, and what decides."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import auditor
from auditor import InputError, Losses
from auditor.comparison import (
    Change,
    SameRecords,
    attack_change,
    compare_audits,
    differences,
    headline,
    mcnemar_interval,
    most_draws,
    same_records,
)


@pytest.mark.parametrize("gained", [0, 1, 7, 19, 24, 30, 60])
@pytest.mark.parametrize("lost", [0, 5, 12, 30])
def test_the_limits_are_the_exact_test_inverted(gained, lost):
    """An end leaves 0 just where SciPy's binomial test rejects, and both are products of its Clopper-Pearson limits."""
    alpha, drawn, differ = 0.05, 200, gained + lost
    lower, upper = mcnemar_interval(gained, lost, drawn, alpha=alpha)
    if not differ:
        assert -lower == upper == pytest.approx(2 * stats.beta.isf(0.05 * alpha, 1, drawn))
        return
    test = stats.binomtest(gained, differ)
    for end, side in ((lower, "greater"), (-upper, "less")):
        p_value = stats.binomtest(gained, differ, alternative=side).pvalue
        assert (end > 0) == (p_value < 0.45 * alpha)
    tilts = [2 * q - 1 for q in test.proportion_ci(1 - 0.9 * alpha)]
    often = stats.binomtest(differ, drawn).proportion_ci(1 - 0.1 * alpha)
    products = [2 * tilt * rate for tilt in tilts for rate in often]
    assert (lower, upper) == pytest.approx((min(products), max(products)))


@pytest.mark.parametrize("enough", [1, 2, 10, 300, 750])
def test_the_coins_seldom_ask_for_too_many(enough):
    """With so many coins one side comes up too often in at most 1%, and with one more in more, or there is no more."""
    drawn = most_draws(enough)
    assert 2 * stats.binom.sf(enough, drawn, 0.5) <= 0.01
    assert 2 * stats.binom.sf(enough, drawn + 1, 0.5) > 0.01


def losses(rng, shift, noise, n=1200):
    """Losses of the same records, in another order for each release; the noise is the release's own."""
    shared = np.random.default_rng(7).normal(size=(2, n))
    member, nonmember = shared + noise * rng.normal(size=(2, n)) - np.array([[shift], [0.0]])
    made = Losses(member=member, nonmember=nonmember, id=(np.arange(n), np.arange(n, 2 * n)))
    return made.take(member=rng.permutation(n), nonmember=rng.permutation(n))


@pytest.fixture(scope="module")
def releases():
    """Losses and audits of a release, one that leaks a little more, and one like the first."""
    rng = np.random.default_rng(8)
    made = [losses(rng, shift, 0.3) for shift in (0.5, 0.68, 0.5)]
    return made, [auditor.audit(item, delta=1e-5) for item in made]


def test_only_ranks_and_ids_matter(releases, rng):
    """Rows in another order, ids as text, and losses on another scale are the same; swapped releases mirror the ends."""
    old, new = releases[0][:2]
    records = same_records(old, new)
    for of, found in zip((old, new), records.member, strict=True):
        assert found.tolist() == of.member[np.argsort(of.id.member)].tolist()
    expected = attack_change(records, alpha=0.05)
    orders = [rng.permutation(1200) for _ in range(2)]
    assert (
        attack_change(same_records(old, new.take(member=orders[0], nonmember=orders[1])), alpha=0.05)
        == expected
    )
    scaled = SameRecords(*(np.stack([group[0], np.exp(group[1])]) for group in records))
    assert attack_change(scaled, alpha=0.05) == expected
    mirrored = attack_change(SameRecords(*(group[::-1] for group in records)), alpha=0.05)
    assert (mirrored.lower, mirrored.upper) == pytest.approx((-expected.upper, -expected.lower))


def test_the_losses_decide_where_the_results_cannot(releases):
    """A rise that the results do not show is shown record by record, and the paired row alone decides."""
    made, audits = releases
    assert compare_audits(audits[:2]).got_worse is False
    found = compare_audits(audits[:2], losses=made[1::-1])
    assert found.got_worse is True
    (paired,) = found.changes[0].differences
    assert (paired.name, paired.verdict) == ("advantage.paired", Change.WORSE)
    assert found.changes[0].headline.sentence == paired.sentence
    three = compare_audits(audits, losses=made, baseline=1)
    assert [item.headline.verdict for item in three.changes] == [Change.WORSE, Change.NO_CHANGE_SHOWN]
    assert three.changes[0].differences[0].lower < paired.lower


def test_a_change_of_method_is_no_change_of_the_model(releases, valued):
    """Numbers of one name by two methods have no difference and no common axis; what was worse by another row stays so."""
    made, audits = releases
    older = valued(audits[0], "advantage", method="an earlier one")
    found = compare_audits([older, audits[1]], measure="advantage")
    row = found.changes[0].differences[0]
    assert (row.verdict, row.value, found.got_worse) == (Change.NOT_COMPARABLE, None, None)
    assert "changed from 'an earlier one' in the older audit to 'largest gap" in row.reason
    assert "audit the losses of the older one again" in found.to_html()
    assert "another method" in found.measurements[0].marks
    leaking = auditor.audit(losses(np.random.default_rng(1), 2.0, 0.3), delta=1e-5)
    assert compare_audits([older, leaking]).got_worse is True  # by the AUC
    assert compare_audits([older, audits[1]], losses=made[:2]).got_worse is True  # made again from the losses


def test_values_by_two_methods_are_not_ranked(trained, valued):
    """A strategy is not called better by a value that was made in another way."""
    results = [trained(shift, 1, name, 0.7) for shift, name in ((0.2, "a"), (0.5, "b"))]
    assert compare_audits(results).no_frontier is None
    mixed = compare_audits([valued(results[0], "advantage", method="an earlier one"), results[1]])
    for reason in (mixed.no_frontier, mixed.no_order):
        assert "made by different methods ('an earlier one' and" in reason
    assert mixed.history == ()


def test_a_failed_audit_is_not_compared_with_its_losses_either(releases, failed):
    """Losses do not fix a validity check that failed."""
    made, audits = releases
    found = compare_audits([audits[0], failed(audits[1])], losses=made[:2])
    assert found.got_worse is None
    assert "duplicates" in found.changes[0].headline.sentence


def test_persons_are_paired_as_persons(rng):
    """Where audits count people, each release has one score for each person, whatever the order of their records."""
    n, who = 400, np.arange(400) // 2
    made = []
    for shift in (0.0, 2.0):
        values = rng.normal(size=(2, n)) - np.array([[shift], [0.0]])
        item = Losses(*values, id=(np.arange(n), n + np.arange(n)), person=(who, who + n))
        made.append(item.take(member=rng.permutation(n), nonmember=np.arange(n)))
    found = same_records(*made, people="min")
    first = made[0].member[np.argsort(made[0].id.member)]
    assert found.member[0].tolist() == first.reshape(-1, 2).min(axis=1).tolist()
    audits = [auditor.audit(item, persons=auditor.OnePerPerson("min")) for item in made]
    assert headline(differences(*audits, losses=tuple(made))).verdict is Change.WORSE


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"id": None}, "must have ids to be compared record by record, got none in the newer audit"),
        # Two rows of one id are one record, and the third is missing.
        ({"id": ([1, 1, 2], [4, 5])}, "members must be the same records in both audits .* got 1 ids"),
        (
            {"id": ([1, 2, 3], ["x", ""])},
            "non-members of the newer audit must each have an id .* got 1 without",
        ),
        (
            {"id": ([1, 2, 9], [4, 5])},
            "members must be the same records in both audits .* got 2 ids that only one",
        ),
        ({"id": ([1, 2, 4], [3, 5])}, "members must be the same records in both audits"),
        ({"people": "mean"}, "must have a person column where an audit counts each person"),
    ],
)
def test_losses_of_other_records_are_refused(changed, words):
    """Ids that are missing, repeated, blank, of other records or of the other group, and people that nobody named."""
    people = changed.pop("people", None)
    old = Losses(member=[1, 2, 3], nonmember=[1, 2], id=([1, 2, 3], [4, 5]))
    with pytest.raises(InputError, match=words):
        same_records(old, replace(old, **changed), people=people)


def test_losses_must_be_those_of_the_results(releases):
    """Losses that no result was made of, of one result alone, without a baseline, or that are none are refused."""
    made, audits = releases
    for given, results, words in (
        ([made[0], made[2]], audits[:2], "losses 2 must be the losses of one of the results"),
        ([made[0]], audits[:2], "must be given of every result or of none, got none of result 2"),
        (made, audits, "compared with those of a baseline"),
        ([made[0], "b.csv"], audits[:2], "losses must be"),
    ):
        with pytest.raises(InputError, match=words):
            compare_audits(results, losses=given)
