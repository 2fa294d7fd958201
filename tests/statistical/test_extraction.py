"""Shares of secrets extracted: their limits hold at their level, all numbers of tries together, and match slow oracles."""

import math

import numpy as np
import pytest
from scipy import optimize, special, stats
from simulation import ALPHA, at_most, seldom

import auditor
from auditor.estimators.evidence import Evidence
from auditor.estimators.extraction import TRIES, extraction, mean_limit
from auditor.estimators.setting import AuditOptions, Inputs

LAWS = {
    "rare": lambda rng, n: np.where(rng.random(n) < 0.02, 1.0, 0.0),
    "even": lambda rng, n: rng.integers(0, 2, n) + 0.0,
    "common": lambda rng, n: np.where(rng.random(n) < 0.97, 1.0, 0.0),
    "alike": lambda rng, n: rng.beta(5, 5, n),
    "skewed": lambda rng, n: np.exp(-rng.gamma(3, 6, n)),
    "tiny": lambda rng, n: 1e-6 * rng.random(n),
}
MEANS = {
    "rare": 0.02, "even": 0.5, "common": 0.97, "alike": 0.5, "skewed": 7.0**-3, "tiny": 5e-7,
}  # fmt: skip


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n", [12, 300])
def test_a_limit_of_a_mean_holds_at_its_level(simulated, law, n):
    """The lower limit is above the mean, or that of the mirrored values is, at most as often as the error says."""

    def outside(rng):
        values = LAWS[law](rng, n)
        return (
            mean_limit(values, error=ALPHA) > MEANS[law] * (1 + 1e-9),
            mean_limit(1 - values, error=ALPHA) > 1 - MEANS[law] * (1 - 1e-9),
        )

    assert seldom(simulated(outside, seed=1, runs=(60, 4000)))


def directly(values, error):
    """The same limit by a product for each bet, without a grid of values."""
    least = 0.3 / math.sqrt(len(values))
    bets = [*np.geomspace(least, 0.7, 1 + math.ceil(-math.log2(least))), 0.9, 0.99, 0.999]

    def excess(mean):
        wealth = [sum(math.log1p(bet * (x / mean - 1)) for x in values) for bet in bets]
        return special.logsumexp(wealth) - math.log(len(bets)) - math.log(1 / error)

    return optimize.brentq(excess, 1e-12, float(np.mean(values))) if excess(1e-12) > 0 else 0.0


@pytest.mark.parametrize("law", LAWS)
def test_the_grid_of_values_costs_nearly_nothing_and_never_helps(law):
    """On the grid the limit is at most the one computed value by value, and within half a percent of it."""
    values = LAWS[law](np.random.default_rng(3), 200)
    exact, found = directly(values, 0.01), mean_limit(values, error=0.01)
    assert 0.995 * exact - 1e-9 <= found <= exact * (1 + 1e-9)


def test_counts_stand_for_repeated_values():
    """A value that stands for seven records counts as seven values."""
    values, counts = np.array([0.1, 0.9, 0.0]), np.array([7, 2, 30])
    assert mean_limit(values, error=0.05, counts=counts) == pytest.approx(
        mean_limit(np.repeat(values, counts), error=0.05), rel=1e-12
    )


def secrets(member, nonmember, **facts):
    """Losses of secrets with these chances of one sample."""
    return auditor.Losses(-np.log(member), -np.log(nonmember), attacks={"extraction": "run"}, **facts)


def estimated(member, nonmember, **facts):
    """The estimates of extraction alone, by name."""
    inputs = Inputs(secrets(member, nonmember, **facts), AuditOptions(delta=1e-5))
    return {row.name: row for row in extraction(Evidence(inputs, inputs.setting))}


def test_all_limits_hold_together_over_the_tries(simulated):
    """Intervals of members at all numbers of tries hold together at the confidence, and so do the differences."""
    shares = (3.0, 6.0), (6.0, 4.0)  # shape and scale of the losses of members, of others
    draws = np.random.default_rng(9)
    chance = [np.exp(-draws.gamma(*law, 2_000_000)) for law in shares]
    truth = np.array([[np.mean(-np.expm1(n * np.log1p(-p))) for p in chance] for n in TRIES])

    def outside(rng):
        member, nonmember = (np.exp(-rng.gamma(*law, 150)) for law in shares)
        result = estimated(member, nonmember)
        rows = [result[f"extraction.{n}"] for n in TRIES]
        beyond = [result[f"extraction_beyond.{n}"].lower for n in TRIES]
        within = [row.lower <= share <= row.upper for row, share in zip(rows, truth[:, 0], strict=True)]
        return not all(within), bool(np.any(beyond > np.maximum(truth[:, 0] - truth[:, 1], 0) + 1e-9))

    assert seldom(simulated(outside, seed=1, runs=(20, 2000)))


def test_nothing_is_beyond_guessing_where_the_groups_are_alike(simulated):
    """Where others' secrets are as likely, or a template's are, no difference is certified more often than the error says."""

    def found(rng):
        chance = np.exp(-rng.gamma(3.0, 6.0, 200))
        alike = estimated(chance[:100], chance[100:])
        space = 500
        law = rng.dirichlet(
            np.full(space, 0.02)
        )  # a model that likes a few secrets, not those of the members
        drawn = np.maximum(law[rng.integers(0, space, 200)], 1e-300)
        facts = auditor.core.facts.Released(secrets=auditor.core.facts.Secrets(space))
        template = estimated(drawn[:100], drawn[100:], released=facts)
        return tuple(
            any(result[f"extraction_beyond.{n}"].lower > 0 for n in TRIES) for result in (alike, template)
        )

    assert seldom(simulated(found, seed=1, runs=(20, 2000)))


def test_the_share_is_that_of_samples():
    """The share at n tries is the mean frequency of n samples that hit at least once, and 0 or 1 at certain secrets."""
    rng, chance = np.random.default_rng(5), np.exp(-np.random.default_rng(4).gamma(2, 2, 300))
    result = auditor.audit(secrets(chance, chance), delta=1e-5, disclosure="insiders")
    hit = rng.binomial(100, np.tile(chance, (200, 1))) > 0
    error = hit.std() / np.sqrt(hit.size)
    assert result["extraction.100"].value == pytest.approx(hit.mean(), abs=4 * error)
    losses = auditor.Losses([0.0] * 10, [746.0] * 10, attacks={"extraction": "run"})
    certain = auditor.audit(losses, delta=1e-5)["extraction.10000"]
    assert certain.value == 1.0
    assert certain.details["nonmember"]["value"] == 0.0


def test_the_records_with_an_even_chance_are_counted_and_named():
    """The share of (n, 0.5)-extractable members has Clopper-Pearson limits, and their ids come with the tries they need."""
    member = np.full(50, 1e-9)
    member[[3, 7]] = 0.5, 0.01
    losses = secrets(
        member, np.full(50, 1e-9), id=([f"m{n}" for n in range(50)], [f"o{n}" for n in range(50)])
    )
    records = auditor.audit(losses, delta=1e-5, disclosure="insiders")["extraction.100"].details["records"]
    assert records["extractable"] == 2
    error = ALPHA / (2 * len(TRIES))
    assert records["lower"] == pytest.approx(stats.beta.ppf(error, 2, 49))
    assert records["upper"] == pytest.approx(stats.beta.ppf(1 - error, 3, 48))
    named = auditor.risk.extractable(losses, tries=100, probability=0.5)
    assert named["id"].tolist() == ["m3", "m7"]
    assert named["tries_needed"].tolist() == [1, 69]  # ln 0.5 / ln 0.99 = 68.97
    assert auditor.risk.extractable(losses, tries=10)["id"].tolist() == ["m3"]


def test_losses_that_are_no_chances_are_refused():
    """A loss below 0 is no negative log of a chance."""
    losses = auditor.Losses([-0.1] * 20, [1.0] * 20, attacks={"extraction": "run"})
    with pytest.raises(
        auditor.InputError, match=r"losses must be 0 or more where the attack extraction was run"
    ):
        auditor.audit(losses, delta=1e-5)


def test_gates_go_by_the_share():
    """A gate on the share of secrets within 100 tries fails where it is exceeded, and is open without secrets."""
    chance = np.exp(-np.random.default_rng(0).gamma(2, 2, 300))
    result = auditor.audit(secrets(chance, chance), delta=1e-5)
    assert auditor.check_gates(result, ["extraction.100 > 0.01"])[0].code == 1
    other = auditor.audit(auditor.Losses(chance, chance), delta=1e-5)
    assert auditor.check_gates(other, ["extraction.100 > 0.01"])[0].code == 3


def test_a_simulation_would_show_a_limit_without_the_error_of_the_tries():
    """The test of the level has teeth: 16% of misses are not compatible with 5% in 40 runs ten times larger."""
    assert not at_most(int(0.16 * 400), 400)


def test_adjusted_losses_are_no_chances_of_extraction():
    """Losses less those of a reference model are no negative logs of chances, so the audit states no share of them."""
    chance = np.exp(-np.random.default_rng(0).gamma(2, 2, 60))
    losses = secrets(chance[:30], chance[30:])
    references = auditor.scores.References(member=np.ones(30), nonmember=np.ones(30))
    adjusted = auditor.scores.difficulty(references)(losses)
    assert "extraction" not in adjusted.attacks
    assert not any(row.name.startswith("extraction") for row in auditor.audit(adjusted, delta=1e-5).estimates)


def test_a_shared_result_counts_no_few_likely_secrets():
    """Two likely secrets of 50 are left out of a result that may be shared; none, and ten, are counted."""
    for likely, shown in ((0, True), (2, False), (10, True)):
        member = np.where(np.arange(50) < likely, 0.5, 1e-9)
        result = auditor.audit(secrets(member, np.full(50, 1e-9)), delta=1e-5)
        assert ("records" in result["extraction.100"].details) is shown


def test_extractable_records_at_a_probability_of_1():
    """A certain secret needs one try; one that rounds to 1 within the tries needs no more than these."""
    losses = auditor.Losses([0.0, 0.1, 9.0], [9.0, 9.0], attacks={"extraction": "run"})
    assert auditor.risk.extractable(losses, tries=100, probability=1)["tries_needed"].tolist() == [1, 100]
    with pytest.raises(
        auditor.InputError, match=r"single secrets, as of auditor.collect_texts with secret, got losses"
    ):
        auditor.risk.extractable(auditor.Losses([0.1, 0.2], [0.3, 0.4]))
