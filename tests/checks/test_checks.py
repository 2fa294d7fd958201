"""Each check answers its question both ways, with a sentence."""

import numpy as np
import pytest

from auditor import audit, checks, collect
from auditor.core import (
    Adjacency,
    Claim,
    InputError,
    Losses,
    Mixture,
    OnePerPerson,
    RandomSplit,
    Status,
    UnknownSplit,
)
from auditor.curves import count, fit_gaussian_pair, fit_mixture_pair, published
from auditor.estimators import alternatives, auc, clopper_pearson, one_run_bound, parametric
from auditor.report import Row, advice


def losses_of(rng, shift, n=800):
    """Two normal groups that far apart."""
    return Losses(member=rng.normal(-shift, 1, n), nonmember=rng.normal(0, 1, n))


@pytest.mark.parametrize(("shift", "status"), [(-1.0, Status.WARN), (1.0, Status.OK), (0.0, Status.OK)])
def test_direction_warns_when_swapped(rng, shift, status):
    """Swapped groups warn, in their right order and with no difference they do not."""
    assert checks.direction(auc(count(losses_of(rng, shift)))).status is status


def test_saturation_counts(rng):
    """Saturated losses are counted by group."""
    plain = losses_of(rng, 1.0)
    clipped = Losses(member=plain.member, nonmember=plain.nonmember, saturated=(1200, 3))
    assert checks.saturation(plain).status is Status.OK
    assert checks.saturation(clipped).status is Status.WARN
    assert checks.saturation(clipped).message.startswith("About 1,200 member and fewer than 10 non-member")


# --- Ties, and confidences that are masked ----------------------------------------------------------


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
        (lambda p: -np.log(p.astype(np.float32)), None),
    ],
)
def test_the_mask_is_named(rng, mask, named):
    """Of a confident model rounded, label-only, top-1 and cut-off outputs each have their name; untouched ones none."""
    found = checks.ties(Losses(*(mask(p) for p in rng.beta(4, 1, (2, 4000)))))
    assert found.details.get("masked") == named
    assert found.status is (Status.WARN if named else Status.OK)
    assert ("the leak may be larger than measured" in found.message) == bool(named)


def classified(rng, *, accuracy, lower=0.0, n=3000):
    """Losses of a model whose confidence tells right from wrong and ``lower`` for members, at these two accuracies."""
    right = tuple(rng.random(n) < share for share in accuracy)
    member, nonmember = (np.where(side, -1, 1) * rng.exponential(size=n) for side in right)
    return Losses(member - lower, nonmember, correct=right)


@pytest.mark.parametrize(
    ("case", "status"),
    [
        ({"accuracy": (0.95, 0.75)}, Status.UNKNOWN),
        ({"accuracy": (0.95, 0.75), "lower": 0.5}, Status.OK),
        ({"accuracy": (0.8, 0.8)}, Status.OK),
    ],
)
def test_losses_that_tell_no_more_than_accuracy_are_asked_about(rng, case, status):
    """The baseline is 1/2 + gap/2; a question is raised where there is a gap and the AUC is hardly above that."""
    losses = classified(rng, **case)
    result = audit(losses, delta=1e-5, disclosure="insiders")
    found, area = result.check("masking"), result.estimate("auc")
    first, second = (np.mean(column) for column in losses.correct)
    # The area of the one score that right and wrong answers are, by the estimator for any score.
    answers = Losses(*(1.0 - column for column in losses.correct))
    assert area.details["accuracy_baseline"] == pytest.approx(auc(count(answers)).value)
    assert found.details["accuracy"] == [first, second]
    assert found.details["auc"] == pytest.approx(area.value)
    assert found.status is status
    assert ("hardly more: either the model's confidence was masked" in found.message) == (
        status is Status.UNKNOWN
    )
    assert (
        f"; right and wrong answers alone give 0.{round(500 + 500 * (first - second))}" in Row(area).context
    )


def test_without_answers_nothing_is_said_of_accuracy(rng):
    """Losses of unknown answers, and people with right and wrong ones, have no baseline; other values are refused."""
    losses = losses_of(rng, 1.0)
    assert checks.masking(losses) is None
    answers = (np.tile([1, 0], 400), np.ones(800))
    for persons, known in ((np.arange(800) // 2, False), (np.arange(800) % 2, True)):
        owned = Losses(losses.member, losses.nonmember, correct=answers, person=(persons, persons + 800))
        result = audit(owned, delta=1e-5, persons=OnePerPerson(), disclosure="insiders")
        assert ("accuracy_baseline" in result.estimate("auc").details) == known
    with pytest.raises(InputError, match="nonmember correct must be true or false"):
        Losses([0.0, 1.0], [0.0, 1.0], correct=([1, 0], [0, np.nan]))


@pytest.mark.parametrize("columns", [1, 2, 4])
def test_collected_losses_know_the_right_answers(rng, columns):
    """A record is classified correctly where the largest output, or one above 0 of a single logit, is of its class."""
    logits, y = rng.normal(size=(2, 50, columns)), rng.integers(0, max(2, columns), (2, 50))
    groups = [(table, labels) for table, labels in zip(logits, y, strict=True)]
    losses = collect(
        lambda rows: rows[:, 0] if columns == 1 else rows,
        members=groups[0],
        nonmembers=groups[1],
        output="logits",
    )
    guesses = logits[..., 0] > 0 if columns == 1 else logits.argmax(axis=2)
    np.testing.assert_array_equal(losses.correct, guesses == y)


@pytest.mark.parametrize(
    ("member", "nonmember", "status", "all_equal"),
    [
        ([0.0, 1.0], [2.0, 3.0], Status.OK, False),
        # Each once in its group, and met in the other one.
        ([0.0, 1.0], [0.0, 1.0], Status.OK, False),
        ([0.0] * 5, [1.0] * 5, Status.WARN, False),
        ([1.0] * 5, [1.0] * 9, Status.WARN, True),
    ],
)
def test_few_and_constant_losses(member, nonmember, status, all_equal):
    """A handful of losses is not called rounded, and only where all are equal it is said that every bound is 0."""
    found = checks.ties(Losses(member=member, nonmember=nonmember))
    assert found.status is status
    assert found.details["distinct"] == len({*member, *nonmember})
    assert ("every bound is 0" in found.message) == all_equal


def test_ties_say_how_many(rng):
    """The share of a group at a repeated extreme is in the details."""
    smooth = losses_of(rng, 1.0)
    piled = np.minimum(smooth.member, np.quantile(smooth.member, 0.7))
    found = checks.ties(Losses(member=piled, nonmember=smooth.nonmember))
    assert found.details["member_share"] == pytest.approx(0.3, abs=0.01)


# --- Power ------------------------------------------------------------------------------------------


def claimed(epsilon):
    """A replace-one claim at delta 1e-5."""
    return Claim("epsilon", epsilon, 1e-5, Adjacency.REPLACE_ONE, "stated", proven=True)


@pytest.mark.parametrize(
    ("n", "split", "claim", "status"),
    [
        (300, RandomSplit(), claimed(1.0), Status.OK),
        (300, RandomSplit(), claimed(50.0), Status.WARN),
        (300, UnknownSplit(), claimed(50.0), Status.OK),
        (5, UnknownSplit(), None, Status.WARN),
    ],
)
def test_power_against_a_claim(rng, n, split, claim, status):
    """A ceiling above the claim has power, one below does not; without a claim it only states the ceiling."""
    losses = losses_of(rng, 1.0, n=n)
    mechanism = one_run_bound(losses, split=split, delta=1e-5, rng=rng)
    found = checks.power(clopper_pearson(losses, delta=1e-5), mechanism, claim, sizes=(n, n), error=0.03)
    assert found.status is status
    # What to do is said once, in the advice that stands beside the message.
    said = f"{found.message} {advice(found, {})}".lower()
    assert said.count("audit more records") == (status is Status.WARN)


# --- Sensitivity ------------------------------------------------------------------------------------


def published_row(losses, rng):
    """The parametric row of raw losses at delta 1e-5, with its alternatives."""
    pair = fit_gaussian_pair(published(losses), rng=rng)
    return parametric(pair, delta=1e-5, extra=alternatives(losses, delta=1e-5))


def test_sensitivity_finds_one_record(rng):
    """One huge loss moves the published value by far more than 10%, and the check says so."""
    plain = Losses(member=rng.gamma(2, 0.2, 10_000), nonmember=rng.gamma(3, 0.2, 10_000))
    spoiled = Losses(member=plain.member, nonmember=np.append(plain.nonmember, 20 * plain.nonmember.max()))
    upset = checks.sensitivity(published_row(spoiled, rng))
    # The design's reference: one outlier at 20x the maximum moves 4.93 to 8.46, and the log-odds value of 4.80 to 3.62.
    assert upset.details["value"] == pytest.approx(8.46, abs=0.3)
    assert upset.details["without_extremes"] == pytest.approx(4.93, abs=0.3)
    assert upset.details["scale_free"] == pytest.approx(3.62, abs=0.3)
    assert upset.status is Status.WARN
    assert checks.sensitivity(published_row(plain, rng)).status is Status.OK


def test_sensitivity_without_a_value_is_unknown(rng):
    """Where the parametric row has no value there is nothing to vary, and the reason is passed on."""
    found = checks.sensitivity(parametric(fit_gaussian_pair(losses_of(rng, 1.0), rng=rng), delta=0.0))
    assert found.status is Status.UNKNOWN
    assert "delta is 0" in found.message


# --- Goodness of fit --------------------------------------------------------------------------------


def two_humps(rng, n):
    """A clear mixture of two normals."""
    return np.where(rng.random(n) < 0.5, rng.normal(-4, 1, n), rng.normal(4, 1, n))


MEMBERS = {
    "normal": lambda rng: rng.normal(size=3000),
    "two humps": lambda rng: two_humps(rng, 3000),
    "five values": lambda rng: rng.integers(0, 5, 3000) + 0.0,
    "one value": lambda _: np.full(100, 2.0),
    "a dozen": lambda _: np.arange(12.0),
}


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize(
    ("member", "status", "words", "components"),
    [
        ("normal", Status.OK, "A normal is not rejected for either group", 1),
        ("two humps", Status.WARN, "The member losses do not look normal", 2),
        ("five values", Status.WARN, "The member losses do not look normal", None),
        ("one value", Status.UNKNOWN, "one single loss", 1),
        ("a dozen", Status.UNKNOWN, "6 held-out records", 1),
    ],
)
def test_goodness_of_fit_names_the_group(mixed, member, status, words, components):
    """Only the group that does not look normal is named, and beside it what became of the mixtures, if they were requested."""
    rng = np.random.default_rng(1)
    losses = Losses(member=MEMBERS[member](rng), nonmember=rng.normal(size=3000))
    mixture = fit_mixture_pair(losses, choice=Mixture(3), rng=rng) if mixed else None
    found = checks.goodness_of_fit(fit_gaussian_pair(losses, rng=rng), mixture)
    assert found.status is status
    assert words in found.message
    assert found.details["rejected"] == (status is Status.WARN)
    if mixed and components:
        assert found.details["mixture"]["components"] == {"member": components, "nonmember": 1}
        assert not found.details["mixture"]["rejected"]
    elif mixed:
        assert found.details["mixture"]["rejected"]
        assert "do not look like a mixture of normals either" in found.message
