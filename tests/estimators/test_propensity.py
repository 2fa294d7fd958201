"""Audits on estimated odds of membership: what they say, what they refuse, and where a report shows them."""

import json

import numpy as np
import pytest
from scipy import special

from auditor import Features, Losses, Propensity, RandomSplit, StatedClaim, audit, records_needed
from auditor.core import EachRecord, InputError, PerGroup
from auditor.core.numbers import number
from auditor.estimators import odds_error
from auditor.report import audit_text


@pytest.fixture
def groups(rng):
    """Losses that give membership away, and features that decide its odds."""
    features = rng.normal(0, 1, (3000, 2))
    coin = rng.random(3000) < special.expit(features[:, 0])
    says_out = coin == (rng.random(3000) > special.expit(3.0))
    loss = says_out - 0.3 * features[:, 0] + 0.2 * rng.random(3000)
    return Losses(loss[coin], loss[~coin]), Features(features[coin], features[~coin])


def row_of(result):
    """The bound by estimated odds."""
    return result.estimate("epsilon_bound.propensity")


def test_it_is_conditional_and_never_a_verdict(groups):
    """A bound far above the claim refutes nothing; it is about the training algorithm, under a condition."""
    losses, features = groups
    found = audit(
        losses,
        split=Propensity(features),
        claim=StatedClaim(epsilon=0.1, delta=0.0),
        disclosure="insiders",
    )
    row = row_of(found)
    assert 1 < row.value < 3
    assert (row.subject, row.delta, row.adjacency, row.confidence) == ("mechanism", 0, "add-remove", 0.95)
    assert row.details["conditional"]
    assert found.verdict == "not_evaluable"
    assert found.estimate("epsilon_bound.one_run").value is None
    odds = row.details["odds"]
    assert odds["learnt_from"] + odds["held"] == 3000
    assert (
        sum(odds["members"]) + sum(odds["others"]) == odds["held"] >= odds["kept"] == row.details["records"]
    )
    # As the truth by construction has it: features alone tell about .69 within the overlap.
    assert odds["by_features"]["lower"] < 0.7 < odds["by_features"]["upper"] + 0.03
    assert odds["by_losses"]["value"] > odds["by_features"]["value"]


def test_rows_for_odds_that_are_off(groups):
    """The bound less the log of the factor, in the result, on the page, in the terminal and for gates; none judges a claim."""
    losses, features = groups
    found = audit(losses, split=Propensity(features), claim=StatedClaim(epsilon=0.1, delta=0.0))
    row, again = row_of(found), json.loads(found.to_json())["estimates"]
    for off, factor in ((0.1, "1.1"), (0.25, "1.28"), (0.5, "1.65"), (1, "2.72")):
        left = found.estimate(f"{row.name}.off_{off:g}")
        assert left.value == left.lower == pytest.approx(row.value - off)
        assert left.details["ceiling"] == pytest.approx(row.details["ceiling"] - off)
        assert left.details["conditional"]
        assert f"factor of {np.exp(off):.3g} (e^{off:g})" in left.assumptions[0]
        assert left.assumptions[1:] == row.assumptions[1:]
        assert next(item for item in again if item["name"] == left.name)["value"] == left.value
        words = f"odds off by a factor of {factor}"
        assert words in found.to_html()
        assert f"at least {number(left.value, toward='down')}" in audit_text(found)
    assert found.verdict == "not_evaluable"


def test_the_odds_may_be_off_by_their_estimated_error(groups):
    """The row takes the upper limit off the bound, spends both error probabilities, and stands on the page with the factor."""
    losses, features = groups
    found = audit(losses, split=Propensity(features), disclosure="insiders")
    row, left = row_of(found), found.estimate("epsilon_bound.propensity.off_estimated")
    error = row.details["odds"]["error"]
    assert 0 < error["value"] < error["upper"] == left.details["off_upper"]
    assert left.value == left.lower == pytest.approx(row.value - error["upper"])
    assert left.confidence == 0.9
    assert "calibration line over the audited records" in found.to_html()
    wary = audit(losses, split=Propensity(features), confidence=0.4).estimate(left.name)
    assert wary.value is None


def test_the_error_of_odds_by_newtons_method(rng):
    """The calibration line and Scheffe's limits are those of the logistic likelihood, maximised step by step."""
    chance = rng.uniform(0.2, 0.8, 400)
    coin = rng.random(400) < special.expit(0.4 + 0.7 * special.logit(chance))
    x = np.stack([np.ones(400), special.logit(chance)], axis=1)
    beta = np.zeros(2)
    for _ in range(20):
        p = special.expit(x @ beta)
        inverse = np.linalg.inv(x.T @ (x * (p * (1 - p))[:, None]))
        beta = beta + inverse @ x.T @ (coin - p)
    off = np.abs(x @ beta - x[:, 1])
    limit = off + np.sqrt(-2 * np.log(0.05) * np.einsum("ij,jk,ik->i", x, inverse, x))
    found = odds_error(PerGroup(chance[coin], chance[~coin]), confidence=0.95)
    assert (found["value"], found["upper"]) == pytest.approx((off.max(), limit.max()), rel=1e-6)


def test_features_may_be_given_to_the_audit_and_the_seed_decides(groups):
    """Both ways of giving features are one, and the same seed gives the same bound."""
    losses, features = groups
    values = {
        row_of(audit(losses, split=split, features=own)).value
        for split, own in ((Propensity(features), None), (Propensity(), features))
    }
    assert len(values) == 1


def test_the_page_says_on_what_it_hangs(groups):
    """The report has the factor of a hidden difference, the attack by features alone, what was left out, and no verdict."""
    losses, features = groups
    found = audit(losses, split=Propensity(features))
    page, bound = found.to_html(), row_of(found).value
    factor = np.exp(bound)
    for words in (
        "If the estimated odds of membership are right",
        "without any model",
        "refutes no claim",
    ):
        assert words in page
    shown = float(page.split("are off by a factor of ")[1].split(" ")[0])
    assert shown == pytest.approx(factor, rel=0.01)
    assert shown <= factor
    assert "Estimated probabilities of membership of both groups" in page
    assert "is conditional, and not a verdict" in page


def test_a_failed_shift_offers_it(groups):
    """Where features tell the groups apart, the advice of the check names the split."""
    losses, features = groups
    page = audit(losses, features=features, split=RandomSplit()).to_html()
    assert "--split propensity" not in page  # a declared random split is to be looked into
    assert "--split propensity" in audit(losses, features=features).to_html()


def reason(losses, features, **asked):
    """Why there is no bound."""
    row = row_of(audit(losses, split=Propensity(features), **asked))
    assert row.value is None
    return row.details["reason"]


def test_what_allows_no_bound(groups):
    """Features that separate the groups, too few records, and several records of one person are said so."""
    losses, features = groups
    n = losses.n_member
    apart = Features(np.arange(n) + 1.0, -np.arange(losses.n_nonmember) - 1.0)
    assert "the features separate the groups" in reason(losses, apart)
    few = np.arange(40)
    part = Features(features.member[few], features.nonmember[few])
    assert "fewer than 50" in reason(losses.take(member=few, nonmember=few), part)
    person = np.arange(n) // 2, n + np.arange(losses.n_nonmember)
    named = Losses(losses.member, losses.nonmember, person=person)
    assert "several records belong to one person" in reason(named, features)
    of_both = Losses(losses.member, losses.nonmember, person=(np.arange(n), np.arange(losses.n_nonmember)))
    assert "several records belong to one person" in reason(of_both, features, persons=EachRecord())


def test_features_that_say_nothing_are_fair_odds(groups):
    """A constant feature gives every record the odds of the group's size."""
    losses, _ = groups
    constant = Features(np.ones(losses.n_member), np.ones(losses.n_nonmember))
    row = row_of(audit(losses, split=Propensity(constant), disclosure="insiders"))
    share = losses.n_member / (losses.n_member + losses.n_nonmember)
    assert row.details["inclusion_range"] == pytest.approx([share, share], abs=0.01)


def test_ties_in_the_estimates_are_no_misfit(rng):
    """One feature of two values gives two odds; the estimates are right, and no quarter ends within one of them."""
    feature = rng.integers(0, 2, 6000)
    coin = rng.random(6000) < np.where(feature, 0.65, 0.35)
    loss = rng.random(6000)
    row = row_of(
        audit(Losses(loss[coin], loss[~coin]), split=Propensity(Features(feature[coin], feature[~coin])))
    )
    assert row.details["odds"]["misfit"] < 0.25
    assert row.value == 0


def test_the_page_says_what_the_classifier_saw(rng):
    """Of more than a hundred columns those that differ most are used, and the page says how many."""
    wide = rng.normal(0, 1, (400, 130))
    losses = Losses(rng.random(200), rng.random(200))
    page = audit(losses, split=Propensity(Features(wide[:200], wide[200:]))).to_html()
    assert "Of the 130 columns that the features make, each classifier used the 100 that differ most" in page


def test_verify_says_what_it_cannot_compute_again(groups, tmp_path, capsys):
    """Features are not kept, so the numbers of such a result cannot be made again: exit code 3, and why."""
    from auditor.cli import app

    losses, features = groups
    losses.to_frame().to_csv(tmp_path / "losses.csv", index=False)
    found = audit(tmp_path / "losses.csv", split=Propensity(features))
    found.to_json(tmp_path / "result.json")
    assert (
        app.run(
            ["report", str(tmp_path / "result.json"), "--verify", "--losses", str(tmp_path / "losses.csv")]
        )
        == 3
    )
    assert "depend on features" in capsys.readouterr().err


def test_bad_input(groups):
    """Features given twice or not at all, of another length, and overlaps beyond a half are refused."""
    losses, features = groups
    with pytest.raises(InputError, match=r"features must be auditor\.Features"):
        audit(losses, split=Propensity(features.member))
    for given in ({"split": Propensity()}, {"split": Propensity(features), "features": features}):
        with pytest.raises(InputError, match="features must be given once"):
            audit(losses, **given)
    with pytest.raises(InputError, match="one row for each loss"):
        audit(losses, split=Propensity(Features([[1]], [[2]])))
    for overlap in (0, 0.5, -1):
        with pytest.raises(InputError, match=r"overlap must lie in \(0, 0.5\)"):
            Propensity(overlap=overlap)
    with pytest.raises(InputError, match="delta must be 0"):
        records_needed(1.0, delta=1e-5, split=Propensity())


def test_its_plan_needs_twice_the_records():
    """Half of the records are learnt from: twice as many as fair coins need at the same error, of which these have four fifths."""
    from auditor import BernoulliSplit
    from auditor.many import RandomisedResponse

    asked = {"delta": 0.0, "attack": RandomisedResponse(2.0)}
    clean = records_needed(1.0, split=BernoulliSplit(), confidence=1 - 0.05 / 0.8, **asked)
    own = records_needed(1.0, split=Propensity(), **asked)
    assert own.estimate == "epsilon_bound.propensity"
    total, twice = own.n_member + own.n_nonmember, 2 * (clean.n_member + clean.n_nonmember)
    assert total == pytest.approx(twice, abs=4)
