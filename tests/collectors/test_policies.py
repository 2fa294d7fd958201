"""Restricted answers in place of the full outputs, scored from the same outputs."""

import numpy as np
import pytest
from scipy.special import logit, softmax

import auditor
from auditor import (
    Classification,
    GaussianLogLoss,
    InputError,
    Losses,
    MultiLabel,
    OnePerPerson,
    SquaredError,
)
from auditor.collectors import Output, RecordTable, collect, collect_to, read_losses
from auditor.collectors.base import Records
from auditor.core import OutputPolicy
from auditor.records import per_person
from tests.collectors.common import QUIET, refused

pytestmark = QUIET
N, CLASSES = 60, 4
LOGITS = np.random.default_rng(3).normal(size=(N, CLASSES)) * 3
Y = np.random.default_rng(4).integers(0, CLASSES, N)


def under(outputs, y, policies, **more):
    """The losses of these outputs, of which the first half are members."""
    return auditor.losses_from_probabilities(
        outputs, y, member=np.arange(len(y)) < len(y) // 2, policies=policies, **more
    )


def whole(pair):
    """Both groups of a column."""
    return np.concatenate([pair[0], pair[1]])


def full(losses):
    """The ordinary losses of both groups."""
    return whole((losses.member, losses.nonmember))


def test_digits_are_those_of_the_answer():
    """Rounded to two decimals .126 is .13, .874 is .87, and a 0 counts as a quarter of a hundredth, worked out by hand."""
    losses = under([[0.126, 0.874], [0.001, 0.999], [0.999, 0.001], [0.5, 0.5]], [0, 0, 0, 1], "digits=2")
    expected = np.log([0.87 / 0.13, 1 / 0.0025, 0.0025 / 1, 1])
    np.testing.assert_allclose(whole(losses.policies["digits=2"]), expected)


def test_the_rest_is_spread_evenly():
    """Of the largest probability alone the other classes share what is left, worked out by hand."""
    losses = under([[0.7, 0.2, 0.1]] * 2 + [[0.1, 0.6, 0.3]] * 2, [0, 1, 0, 2], "top1")
    expected = -logit([0.7, 0.15, 0.2, 0.2])
    np.testing.assert_allclose(whole(losses.policies["top1"]), expected)


def test_all_but_one_probability_tell_the_last():
    """The K - 1 largest of K probabilities are as good as all, and of two classes the largest is."""
    p = softmax(LOGITS, axis=1)
    losses = under(p, Y, f"top{CLASSES - 1},top{CLASSES + 5}")
    for pair in losses.policies.values():
        np.testing.assert_allclose(whole(pair), full(losses), rtol=1e-8)
    two = under(p[:, 0], Y % 2, "top1")
    np.testing.assert_allclose(whole(two.policies["top1"]), full(two), rtol=1e-8)


def test_equal_answers_have_equal_losses():
    """Outputs that round to the same numbers cannot be distinguished: the losses are bit for bit the same."""
    rng = np.random.default_rng(5)
    coarse = rng.integers(1, 9, (N, CLASSES)) * 1.0
    coarse = np.round(coarse / coarse.sum(axis=1, keepdims=True), 2)
    coarse[:, 0] += 1 - coarse.sum(axis=1)
    moved = coarse + rng.uniform(-0.004, 0.004, (N, 1)) * np.array([1, -1, 0, 0])
    first, second = (
        whole(under(p, Y, "digits=2", classes=range(CLASSES)).policies["digits=2"]) for p in (coarse, moved)
    )
    assert (first == second).all()
    # And an order of the other classes makes none either.
    turned = whole(under(coarse[:, ::-1], CLASSES - 1 - Y, "digits=2").policies["digits=2"])
    assert (first == turned).all()


def test_a_label_alone_says_whether_it_is_right():
    """Its loss is 0 where the largest output is the true class's, else 1, so its AUC is that of the accuracy gap."""
    losses = under(softmax(LOGITS, axis=1), Y, ["label"])
    wrong = LOGITS.argmax(axis=1) != Y
    assert (whole(losses.policies["label"]) == wrong).all()
    assert (whole(losses.correct) == ~wrong).all()


@pytest.mark.parametrize("two", [False, True])
def test_outputs_of_every_kind_give_the_same(two):
    """Probabilities, their logs and logits, of two classes or more, are rounded and cut alike."""
    p = softmax(LOGITS, axis=1)
    y = Y
    if two:
        p, y = p[:, 0], Y % 2
    kinds = {
        Output.PROBABILITIES: p,
        Output.LOG_PROBABILITIES: np.log(p),
        Output.LOGITS: logit(p) if two else LOGITS,
    }
    found = [under(values, y, "digits=3,top1,label", output=kind).policies for kind, values in kinds.items()]
    for name in ("digits=3", "top1", "label"):
        for other in found[1:]:
            np.testing.assert_allclose(whole(other[name]), whole(found[0][name]), rtol=1e-9)


def test_certain_outputs_have_finite_losses():
    """Probabilities of exactly 0 and 1 and infinite logits lie beyond all others, at a finite place."""
    p = np.array([[1, 0, 0], [0, 1, 0], [0.6, 0.3, 0.1], [0.1, 0.3, 0.6]])
    logs = np.log(p, out=np.full(p.shape, -np.inf), where=p > 0)
    for outputs, kind in ((p, Output.PROBABILITIES), (logs, Output.LOG_PROBABILITIES), (logs, Output.LOGITS)):
        pairs = under(outputs, [0, 0, 0, 0], "digits=1,top1,top2", output=kind).policies
        for pair in pairs.values():
            losses = whole(pair)
            assert np.isfinite(losses).all()
            assert losses[0] < losses[2] < losses[3] < losses[1]


def test_a_file_holds_the_same_without_further_requests(tmp_path):
    """In memory, in a file and in a frame the losses are the same; the model is called as often as without policies."""
    asked = []

    def model(table):
        rows = np.asarray(table)[:, :CLASSES].astype(float)
        asked.append(len(rows))
        return softmax(rows, axis=1)

    members, others = ((LOGITS[part], Y[part]) for part in (slice(0, 30), slice(30, N)))
    here = collect(model, members=members, nonmembers=others, policies="digits=2,top1,label")
    columns = [dict(zip("abcd", x.T, strict=True)) | {"y": y} for x, y in (members, others)]
    tables = dict(
        zip(("members", "nonmembers"), (RecordTable(item, label="y") for item in columns), strict=True)
    )
    assert asked == [30, 30]
    counts = {}
    for name, policies in (("plain", ()), ("under", ["digits=2", "top1", "label"])):
        asked.clear()
        collect_to(tmp_path / f"{name}.parquet", model, **tables, policies=policies)
        counts[name] = sum(asked)
    assert counts["plain"] == counts["under"]
    for there in (
        read_losses(tmp_path / "under.parquet"),
        read_losses(here.to_frame()),
        collect(model, **tables, policies="digits=2,top1,label"),
    ):
        assert list(there.policies) == ["digits=2", "top1", "label"]
        for name, pair in here.policies.items():
            assert (whole(there.policies[name]) == whole(pair)).all()
    assert not read_losses(tmp_path / "plain.parquet").policies
    alone = read_losses(tmp_path / "under.parquet", loss_column="loss.label")
    assert (full(alone) == whole(here.policies["label"])).all()
    assert not alone.policies
    with refused("policies was"):
        collect_to(tmp_path / "under.parquet", model, **tables, policies="label")


def test_they_stay_beside_their_records():
    """Records that are taken take theirs with them; combined or changed scores have none."""
    pair = (np.arange(4.0), np.arange(5.0))
    losses = Losses(
        member=pair[0] + 10,
        nonmember=pair[1] + 10,
        person=(list("aabc"), list("defgh")),
        policies={"label": pair},
    )
    some = losses.take(member=np.array([2, 0]), nonmember=np.array([4, 1]))
    assert (some.policies["label"].member == some.member - 10).all()
    assert (some.policies["label"].nonmember == some.nonmember - 10).all()
    assert "label" in repr(losses)
    assert not per_person(losses, choice=OnePerPerson()).losses.policies


def test_numbers_are_rounded_where_a_model_predicts_them():
    """Of a regression the predictions are rounded, and returned deviations are kept above 0."""
    records = Records("member", [], np.array([[1.0], [2.0]]))
    policies = OutputPolicy.several("digits=1")
    said = {"records": records, "output": None, "classes": None, "policies": policies}
    found = SquaredError().losses([1.26, 1.94], **said).more["loss.digits=1"]
    np.testing.assert_allclose(found, [0.3**2, 0.1**2])
    found = GaussianLogLoss().losses([[1.26, 0.51], [1.94, 0.01]], **said).more["loss.digits=1"]
    z, s = np.array([0.3 / 0.5, 0.1 / 0.025]), np.array([0.5, 0.025])
    np.testing.assert_allclose(found, z**2 / 2 + np.log(s) + np.log(2 * np.pi) / 2)


def test_every_label_of_several_is_rounded():
    """Of several labels each probability is rounded, and their losses are added."""
    records = Records("member", [], np.array([[True, False]]))
    policies = OutputPolicy.several("digits=1")
    found = MultiLabel().losses(
        [[0.77, 0.33]], records=records, output=Output.PROBABILITIES, classes=None, policies=policies
    )
    np.testing.assert_allclose(found.more["loss.digits=1"], [-logit(0.8) + logit(0.3)])


@pytest.mark.parametrize(
    ("policies", "words"),
    [
        ("digits=0", "digits=N with N from 1 to 15.* got 'digits=0'"),
        ("digits=2,,label", "got ''"),
        (["top0"], "got 'top0'"),
        (7, "got 7"),
        (None, "got None"),
    ],
)
def test_a_policy_that_is_none_is_refused(policies, words):
    """A name that is no policy is refused with those that are."""
    with refused(words):
        under(softmax(LOGITS, axis=1), Y, policies)


def test_policies_that_a_score_does_not_have_are_refused():
    """A regression has no label, an average of answers no policy, and losses under one are of every record."""
    xy = (np.zeros((4, 1)), [1.0, 2.0, 3.0, 4.0])
    with refused("got 'label'; name only numbers of digits"):
        collect(lambda x: x, members=xy, nonmembers=xy, task=SquaredError(), policies="digits=1,label")
    with refused("left out where answers are averaged, got repeats=3"):
        collect(lambda x: x, members=xy, nonmembers=xy, task=Classification(), repeats=3, policies="label")
    with refused("member losses has 3, member label losses has 2"):
        Losses(member=[1.0, 2, 3], nonmember=[1.0, 2], policies={"label": ([0.0, 1], [0.0, 1])})
    with pytest.raises(InputError, match=r"policies\['label'\] must be a pair"):
        Losses(member=[1.0, 2], nonmember=[1.0, 2], policies={"label": [0.0, 1, 2]})
