"""audit(): mixtures, people, one-run tests, features, placebo, slices, and which number leads the report."""

from dataclasses import replace

import numpy as np
import pytest

import auditor
from auditor import (
    DPSGD,
    FDP,
    AnyGuesses,
    EachRecord,
    Features,
    Losses,
    Mixture,
    OnePerPerson,
    RandomSplit,
    StatedClaim,
    Subset,
    Verdict,
)
from auditor.core import InputError, PerGroup
from auditor.report import rows, view_of
from auditor.results import Status

CONDITIONS = {
    "order_statistics": "records are independent",
    "one_run_gdp": "the curve is Gaussian",
    "gdp": "the curve is Gaussian",
}


def two_humps(rng, n, shift):
    """Two normals far apart: no single normal fits."""
    return np.concatenate([rng.normal(-4 - shift, 0.5, n // 2), rng.normal(3 - shift, 1.0, n - n // 2)])


@pytest.fixture
def humps(rng):
    """Losses that are mixtures of two normals in each group."""
    return Losses(member=two_humps(rng, 3000, 1.0), nonmember=two_humps(rng, 3000, 0.0))


# --- Mixtures, and what leads ---------------------------------------------------------------------


def test_a_rejected_gaussian_gives_way_to_the_certified_bound(humps):
    """Where the normals are rejected the headline is the certified bound, and a check warns."""
    result = auditor.audit(humps, delta=1e-4)
    assert view_of(result).headline.estimate.name == "epsilon_bound.clopper_pearson"
    assert result.estimate("epsilon_star.gaussian").value > 0
    assert result.check("goodness_of_fit").status is Status.WARN


def test_a_mixture_that_was_asked_for_is_shown_and_never_leads(humps):
    """A mixture that fits stands beside the certified bound, which leads; it is not fitted unless requested."""
    assert "epsilon_star.mixture" not in {item.name for item in auditor.audit(humps, delta=1e-4).estimates}
    result = auditor.audit(humps, delta=1e-4, mixture=Mixture(max_components=4))
    mixture = result.estimate("epsilon_star.mixture")
    assert view_of(result).headline.estimate.name == "epsilon_bound.clopper_pearson"
    assert mixture.lower is None
    assert mixture.value > 0
    assert mixture.details["fit"]["rejected"] is False
    assert [mixture.details["fit"][side]["components"] for side in ("member", "nonmember")] == [2, 2]
    assert "mixture" in {curve.name for curve in result.curves}
    assert "2 normals for the members" in result.to_html()


def masked(probabilities):
    """A defence that hides how sure the model is: the predicted class gets .55, every other class .05."""
    shown = np.full_like(probabilities, 0.05)
    shown[np.arange(len(shown)), probabilities.argmax(axis=1)] = 0.55
    return shown


@pytest.mark.parametrize("mixture", [None, Mixture(3)])
def test_masked_confidences_never_lead_with_a_fit(rng, mixture):
    """Masking makes the fitted Epsilon* of a defended model go up; it stays in the result, warned about, and never leads."""
    margins = np.concatenate([rng.normal(3.2, 1.4, 1500), rng.normal(2.9, 1.5, 1500)])
    sure = 1 / (1 + np.exp(-margins))  # of class 0, which is true; the rest is on class 1
    honest = np.column_stack([sure, 1 - sure, np.zeros((3000, 8))])
    values = {}
    for name, shown in (("honest", honest), ("masked", masked(honest))):
        rows = iter((shown[:1500], shown[1500:]))
        losses = auditor.collect(
            lambda _, rows=rows: next(rows),
            members=(np.zeros((1500, 1)), np.zeros(1500, dtype=int)),
            nonmembers=(np.zeros((1500, 1)), np.zeros(1500, dtype=int)),
        )
        result = auditor.audit(losses, delta=1e-5, mixture=mixture)
        values[name] = result.estimate("epsilon_star.gaussian").value
    assert values["masked"] > values["honest"]
    assert view_of(result).headline.estimate.name == "epsilon_bound.clopper_pearson"
    assert {result.check(name).status for name in ("ties", "goodness_of_fit")} == {Status.WARN}


# --- People --------------------------------------------------------------------------------------


@pytest.fixture
def families(rng):
    """Four records of each of 300 + 300 people; the person decides most of the loss."""
    member, nonmember = (np.repeat(rng.normal(0, 2, 300), 4) + rng.normal(0, 0.1, 1200) for _ in range(2))
    people = np.repeat(np.arange(600), 4)
    return Losses(member=member, nonmember=nonmember, person=(people[:1200], people[1200:]))


def test_persons_are_counted_where_they_are_named(families):
    """With a person column each person has one score by default, and the numbers are stated."""
    result = auditor.audit(families, split=RandomSplit())
    assert (result.data["n_member"], result.data["records"], result.data["persons"]) == (
        300,
        [1200, 1200],
        [300, 300],
    )
    assert result.check("persons").status is Status.OK
    assert result.estimate("epsilon_bound.one_run").value is not None
    assert "1,200 records of 300 members" in result.to_html()


def test_each_record_can_be_asked_for_with_a_warning(families):
    """Counting clustered records one by one is possible, with the effective number and a warning."""
    result = auditor.audit(families, persons=EachRecord(), split=RandomSplit())
    assert result.data["n_member"] == 1200
    assert result.data["effective"][0] < 400
    assert result.check("persons").status is Status.WARN
    assert result.estimate("epsilon_bound.one_run").value is None  # the coins were tossed by person


def test_the_training_size_counts_records(families):
    """Delta and a census go by the records of the training set, whatever is counted as one unit."""
    result = auditor.audit(families)
    assert result.data["training_size"] == 1200
    assert result.data["delta"] == pytest.approx(1 / (1200 * np.log(1200)))
    assert auditor.audit(families, coverage=auditor.Census(), training_size=1200).data["members"] == "census"
    with pytest.raises(InputError, match="training set is not known"):
        auditor.audit(families, coverage=Subset(of=5000))


def test_persons_in_both_groups_are_counted_by_record(rng):
    """Where people stand in both groups, membership was decided by record, so records are what is counted."""
    people = rng.integers(0, 300, 2400)
    losses = Losses(
        member=rng.normal(size=1200), nonmember=rng.normal(size=1200), person=(people[:1200], people[1200:])
    )
    result = auditor.audit(losses, split=RandomSplit())
    assert result.data["unit"] == "record"
    assert result.estimate("epsilon_bound.one_run").value is not None
    joined = auditor.audit(losses, split=RandomSplit(), persons=OnePerPerson("min"))
    assert "both groups" in joined.estimate("epsilon_bound.one_run").reason


# --- The training algorithm -----------------------------------------------------------------------


@pytest.fixture
def leaky(rng):
    """A clear leak."""
    return Losses(member=rng.normal(-2, 1, 800), nonmember=rng.normal(0, 1, 800))


@pytest.mark.parametrize(
    ("test", "words", "delta"),
    [
        (FDP(), "Mahloujifar", 1e-5),
        (AnyGuesses(), "every order and number", 0.0),
    ],
)
def test_every_one_run_test_can_be_chosen(leaky, test, words, delta):
    """Each test gives the row with its own method, and the one of all orders and numbers together states delta 0."""
    found = auditor.audit(leaky, delta=1e-5, split=RandomSplit(), one_run_test=test)
    row = found.estimate("epsilon_bound.one_run")
    assert words.lower() in row.method.lower()
    assert row.delta == delta
    assert row.value > 1


def test_a_pure_bound_judges_only_pure_claims(leaky):
    """A bound stated at delta 0 refutes a claim at delta 0 and judges none at another; it says what to take instead."""
    options = {"split": RandomSplit(), "one_run_test": AnyGuesses()}
    pure = auditor.audit(leaky, claim=StatedClaim(0.2, 0.0, "replace-one"), **options)
    assert pure.verdict is Verdict.REFUTED
    approximate = auditor.audit(leaky, claim=StatedClaim(0.2, 1e-5, "replace-one"), **options)
    assert approximate.verdict is Verdict.NOT_EVALUABLE
    assert "FDP()" in approximate.comparisons[0].reason
    # Where it was not requested, the default is the one that can judge.
    for claim in (StatedClaim(0.2, 0.0, "replace-one"), StatedClaim(0.2, 1e-5, "replace-one")):
        found = auditor.audit(leaky, claim=claim, split=RandomSplit())
        assert found.verdict is Verdict.REFUTED
        assert found.comparisons[0].p_value < 1e-3
        assert found.comparisons[0].e_value > 20


def test_a_weak_audit_says_so(rng):
    """Where the model's losses certify far more than the guesses about the training, the verdict says what would do."""
    member, nonmember = rng.normal(-3, 1, 40), rng.normal(0, 1, 40)
    losses = Losses(member=member, nonmember=np.concatenate([nonmember, rng.normal(0, 1, 4000)]))
    result = auditor.audit(losses, split=RandomSplit(), claim=StatedClaim(2.5, 1e-5, "replace-one"))
    bound, model = (result.estimate(f"epsilon_bound.{name}") for name in ("one_run", "clopper_pearson"))
    assert model.lower > bound.lower + 1
    assert result.verdict is not Verdict.REFUTED
    assert "even a perfect attack would have shown only" in result.comparisons[0].reason
    assert "the losses of this model alone certify" in result.comparisons[0].reason
    assert "at 95% confidence (delta 1e-5), far more" in result.comparisons[0].reason


def test_declared_looks_share_the_error(leaky):
    """Ten looks at 95% are ten at 99.5%, in every interval, and the page says so."""
    shared = auditor.audit(leaky, split=RandomSplit(), delta=1e-5, looks=10, claim=StatedClaim(1.0, 1e-5))
    one = auditor.audit(
        leaky, split=RandomSplit(), delta=1e-5, confidence=0.995, claim=StatedClaim(1.0, 1e-5)
    )
    assert [item.lower for item in shared.estimates] == [item.lower for item in one.estimates]
    assert "one of 10 declared looks" in shared.to_html()
    assert "declared looks" not in one.to_html()


def test_the_whole_claimed_curve_is_judged(leaky):
    """By default the trade-off curve that DP-SGD promises is tested whole, where the accountant has it."""
    result = auditor.audit(leaky, delta=1e-5, split=RandomSplit(), claim=DPSGD(2.0, 0.01, 100))
    found = result.estimate("epsilon_bound.one_run").details.get("claimed_curve")
    assert result.verdict is Verdict.REFUTED
    assert found is None or found["rejected"] is True


def test_noise_without_a_pure_epsilon_is_judged_by_its_curve_at_delta_zero(leaky):
    """DP-SGD has no finite epsilon at delta 0, but a curve, which the guesses reject all the same."""
    claim = DPSGD(5.0, 0.01, 100)
    result = auditor.audit(leaky, delta=0.0, split=auditor.BernoulliSplit(0.5), claim=claim)
    assert result.estimate("epsilon_bound.one_run").details["claimed_curve"]["rejected"] is True
    assert result.verdict is Verdict.REFUTED


def test_strata_are_paired_apart(rng):
    """A stratified split without its strata is refused; with them pairs are drawn within strata."""
    losses = Losses(member=rng.normal(-1, 1, 600), nonmember=rng.normal(0, 1, 600))
    split = RandomSplit(stratified=True)
    assert "group" in auditor.audit(losses, split=split).estimate("epsilon_bound.one_run").reason
    groups = rng.integers(0, 3, 600)
    with_strata = Losses(member=losses.member, nonmember=losses.nonmember, group=(groups, groups))
    row = auditor.audit(with_strata, split=split).estimate("epsilon_bound.one_run")
    assert row.details["strata"] == 3
    assert row.details["pairs"] == 600


def test_the_gaussian_reading_is_labelled(rng):
    """The GDP conversion stands beside the bound, marked conditional, and a claim that only it exceeds is not refuted."""
    losses = Losses(member=rng.normal(-1, 1, 800), nonmember=rng.normal(0, 1, 800))
    result = auditor.audit(losses, delta=1e-5, split=RandomSplit())
    bound, gaussian = (result.estimate(f"epsilon_bound.{name}").value for name in ("one_run", "one_run_gdp"))
    assert bound < gaussian
    assert result.estimate("epsilon_bound.one_run_gdp").details["conditional"] is True
    between = StatedClaim((bound + gaussian) / 2, 1e-5, "replace-one")
    judged = auditor.audit(losses, delta=1e-5, split=RandomSplit(), claim=between)
    assert judged.verdict is Verdict.NOT_REFUTED
    assert "if the curve is Gaussian" in judged.to_html()


def test_each_conditional_bound_states_its_own_condition(rng):
    """A bound that holds if records are independent says so wherever it is shown, and not that a curve is Gaussian."""
    losses = Losses(member=rng.normal(-1, 1, 800), nonmember=rng.normal(0, 1, 800))
    result = auditor.audit(losses, delta=1e-5, split=RandomSplit())
    said = {name: rows.row_of(result, f"epsilon_bound.{name}").confidence for name in CONDITIONS}
    assert said == {name: f"95%, if {words}" for name, words in CONDITIONS.items()}
    twin = auditor.audit(Losses(losses.member + 1, losses.nonmember), delta=1e-5, split=RandomSplit())
    for name, words in CONDITIONS.items():
        shown = str(auditor.compare([result, twin], measure=f"epsilon_bound.{name}"))
        assert f"only if {words.replace('curve', 'trade-off curve')}" in " ".join(shown.split())


def test_a_subset_needs_no_second_size(leaky):
    """The size of a subset's training set is the training size; another one is refused."""
    result = auditor.audit(leaky, coverage=Subset(of=4000))
    assert (result.data["training_size"], result.data["members"]) == (4000, "subset")
    with pytest.raises(InputError, match="training_size must be that of the subset"):
        auditor.audit(leaky, coverage=Subset(of=4000), training_size=5000)


# --- Trust ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "wrong"),
    [
        ("shift", lambda member, nonmember: {"features": Features(member + 1, nonmember)}),
        ("placebo", lambda member, nonmember: {"reference": Losses(member[:, 0] - 2, nonmember[:, 0])}),
        (
            "duplicates",
            lambda member, _: {"features": Features(member, member + np.arange(800)[:, None] // 400)},
        ),
        ("duplicates", lambda *_: {"id": PerGroup(np.arange(800), np.arange(799, 1599))}),
    ],
    ids=["shift", "placebo", "twins", "ids"],
)
def test_what_makes_the_groups_unlike_makes_the_claim_not_evaluable(rng, leaky, check, wrong):
    """Groups apart by features or by a model trained on neither, and records in both, end the question; else it is judged."""
    member, nonmember = rng.normal(0, 1, (2, 800, 3))
    fair = {"features": Features(member, nonmember), "reference": Losses(member[:, 0], nonmember[:, 0])}
    for given, status, verdict in (
        (wrong(member, nonmember), Status.FAIL, Verdict.NOT_EVALUABLE),
        ({**fair, "id": PerGroup(np.arange(800), np.arange(800, 1600))}, Status.OK, Verdict.REFUTED),
    ):
        losses = replace(leaky, id=given.pop("id", None))
        result = auditor.audit(losses, split=RandomSplit(), claim=StatedClaim(0.1, 1e-5), **given)
        assert result.check(check).status is status
        assert result.verdict is verdict
        judged = next(row.reason for row in result.comparisons if row.verdict)
        assert (check in judged) == (status is Status.FAIL)


def test_a_threshold_of_this_model_is_not_asked_of_the_placebo(rng, leaky):
    """A fixed threshold is of this model's scale; the placebo finds a confounded reference anyway."""
    confounded = Losses(member=rng.normal(98, 1, 800), nonmember=rng.normal(100, 1, 800))
    result = auditor.audit(leaky, threshold=auditor.FixedThreshold(-1.0), reference=confounded)
    assert result.check("placebo").status is Status.FAIL


def test_a_rejected_fit_does_not_stop_a_verdict(humps):
    """A rejected fit is a warning: the claim is judged all the same."""
    result = auditor.audit(humps, split=RandomSplit(), claim=StatedClaim(0.01, 1e-6))
    assert result.check("goodness_of_fit").status is Status.WARN
    assert result.verdict is Verdict.REFUTED


# --- Slices ---------------------------------------------------------------------------------------


def test_classes_are_slices_of_a_collected_model(rng):
    """A collected model is reported by its true classes, and by groups beside them; groups that are the classes are reported once."""
    labels, regions = np.tile(["cat", "dog"], 300), np.repeat(["north", "south"], 300)
    sign = np.where(labels == "cat", 1, -1)
    member, nonmember = (
        (sign * (rng.normal(0, 1, 600) + gain)).reshape(-1, 1)
        for gain in (np.where(labels == "cat", 2.0, 0.0), 0)
    )

    def audited(groups):
        losses = auditor.collect(
            lambda features: np.column_stack([features[:, 0], -features[:, 0]]),
            members=(member, labels),
            nonmembers=(nonmember, labels),
            classes=["cat", "dog"],
            output=auditor.collectors.Output.LOGITS,
            groups=(groups, groups),
        )
        return {(str(item.kind), item.label): item for item in auditor.audit(losses).slices}

    found = audited(regions)
    assert found["class", "cat"].estimate("epsilon_bound.clopper_pearson").value > 1
    assert found["class", "dog"].estimate("epsilon_bound.clopper_pearson").value == 0
    assert ("group", "north") in found
    assert len({item.compared for item in found.values()}) == 1
    assert {kind for kind, _ in audited(labels)} == {"group", "percentile"}


@pytest.mark.parametrize("looks", [1, 50])
def test_a_finding_has_its_direction_at_any_error(leaky, looks):
    """Lower members are found by the test of all losses, and at an error too small for its draws by the limits alone."""
    shown = auditor.audit(leaky, looks=looks).data["shown"]
    assert shown["differs"] == ["lower"]
    assert "auc" in shown["limits"]
    swapped = auditor.audit(leaky.swapped, looks=looks).data["shown"]
    assert (swapped["differs"], swapped["names"]) == (["higher"], ["auc.upper"])
    assert swapped["reversed"] > 0
