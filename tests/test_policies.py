"""The effect of answering less: each policy is audited like the full outputs, and no best attacker gains by less."""

from dataclasses import replace

import jsonschema
import numpy as np
import pytest

import auditor
from auditor import Losses, OnePerPerson, RandomSplit, StatedClaim
from auditor.core import OutputPolicy
from auditor.results import find, schema
from auditor.risk import policies_of
from tests.simulation import evidence_of, runs_for, seldom

# Answers of a model of three classes, the first of them the true one, and how often each is given to members and others.
ANSWERS = np.array(
    [[0.62, 0.23, 0.15], [0.64, 0.21, 0.15], [0.54, 0.31, 0.15], [0.38, 0.4, 0.22], [0.2, 0.4, 0.4]]
)
MEMBER, OTHER = np.array([0.6, 0.1, 0.1, 0.1, 0.1]), np.array([0.1, 0.4, 0.2, 0.1, 0.2])
NAMES = ("full", "digits=2", "digits=1", "top1", "label")


def seen(name, answer):
    """Return the visible part of an answer under a policy, as a text."""
    order = np.argsort(-answer, kind="stable")
    kinds = {
        "full": answer,
        "digits=2": [f"{x:.2f}" for x in answer],
        "digits=1": [f"{x:.1f}" for x in answer],
        "top1": (order[0], answer[order[0]]),
        "label": order[0],
    }
    return str(kinds[name])


def best(name):
    """The advantage of the best attacker: the total variation of the laws of what is seen."""
    shown = [seen(name, answer) for answer in ANSWERS]
    gaps = [sum((MEMBER - OTHER)[[other == one for other in shown]]) for one in set(shown)]
    return sum(map(abs, gaps)) / 2


def collected(counts):
    """The losses of so many members and others with each answer, under every policy."""
    rows = np.concatenate([np.repeat(ANSWERS, counts[side], axis=0) for side in (0, 1)])
    member = np.repeat([1, 0], [sum(counts[0]), sum(counts[1])])
    return auditor.losses_from_probabilities(rows, np.zeros(len(rows), int), member=member, policies=NAMES)


def exactly(n=1000):
    """The losses of groups that follow both laws exactly."""
    return collected([(law * n).round().astype(int) for law in (MEMBER, OTHER)])


@pytest.fixture(scope="module")
def result():
    """An audit with policies."""
    return auditor.audit(exactly(), delta=1e-5, split=RandomSplit(), claim=StatedClaim(0.1, delta=1e-5))


def test_no_best_attacker_gains_by_less(request):
    """Of any policy the best attacker has no more than of the full outputs, and the lower limits hold for him all at once."""
    truth = np.array([best(name) for name in NAMES])
    assert (truth <= truth[0] + 1e-12).all()
    rng, wrong = np.random.default_rng(0), []
    for _ in range(runs_for(request, 60, 1000)):
        losses = collected([rng.multinomial(200, MEMBER), rng.multinomial(200, OTHER)])
        found = policies_of(evidence_of(losses))
        assert [item.policy for item in found] == list(NAMES)
        wrong.append([any(item.at_least["advantage"] > at for item, at in zip(found, truth, strict=True))])
    assert seldom(np.array(wrong))


def test_without_leakage_no_policy_shows_any(request):
    """Where the groups follow one law, hardly ever any lower limit of any policy is beyond guessing."""
    rng, wrong = np.random.default_rng(1), []
    for _ in range(runs_for(request, 60, 1000)):
        found = policies_of(evidence_of(collected(rng.multinomial(200, OTHER, 2))))
        limits = [(find(item, "auc").lower, item.at_least["advantage"]) for item in found]
        wrong.append([any(low > 0.5 for low, _ in limits), any(low > 0 for _, low in limits)])
    assert seldom(np.array(wrong))


def test_a_fixed_score_may_gain(result):
    """Rounding joins .62 with .64, which the loss alone puts in the wrong order: of this score, not of the best, the AUC rises."""
    found = {item.policy: find(item, "auc").value for item in result.policies}
    assert found["digits=1"] > found["full"]


def test_what_is_shown_by_less_counts_for_more():
    """Members in the middle of others' losses, distinguished by their label: its lower limits hold for the full outputs too."""
    losses = Losses(
        member=np.ones(300),
        nonmember=np.repeat([0, 2], 150),
        policies={"label": (np.zeros(300), np.ones(300)), "digits=1": (np.ones(300), np.ones(300))},
    )
    full, label, digits = auditor.audit(losses, delta=1e-5, split=RandomSplit()).policies
    for name in ("advantage", "epsilon_bound.one_run"):
        low = find(label, name).lower
        assert full.at_least[name] == label.at_least[name] == low > find(full, name).lower
        assert digits.at_least[name] == 0


def test_of_a_label_the_auc_is_that_of_the_accuracy_gap(result):
    """1/2 + (gap of the accuracies)/2, as of Yeom et al. 2018, which the audit tells beside the AUC; ties count half."""
    gap = MEMBER[:3].sum() - OTHER[:3].sum()
    (label,) = (item for item in result.policies if item.policy == "label")
    assert find(label, "auc").value == pytest.approx(0.5 + gap / 2)
    assert find(label, "auc").value == pytest.approx(result["auc"].details["accuracy_baseline"])
    assert find(label, "advantage").value == pytest.approx(gap)


def test_every_policy_is_audited_like_losses_of_its_own():
    """Its rows are those of an audit of its losses at the shared level, also for people."""
    losses = exactly(200)
    persons = (np.arange(200) // 2, 1000 + np.arange(200) // 2)
    losses = replace(losses, person=persons, policies={"label": losses.policies["label"]})
    alone = replace(losses, member=losses.policies["label"][0], nonmember=losses.policies["label"][1])
    asked = {"delta": 1e-5, "persons": OnePerPerson("mean"), "split": RandomSplit(), "seed": 3}
    full, label = auditor.audit(losses, **asked).policies
    assert label.compared == full.compared == 2
    for found, of in ((full, losses), (label, alone)):
        expected = auditor.audit(replace(of, policies={}), confidence=0.975, **asked)
        for row in found.estimates:
            assert row.value == expected[row.name].value
            assert row.lower == pytest.approx(expected[row.name].lower, abs=1e-9)
            assert row.confidence == pytest.approx(0.975)


def test_nothing_else_of_an_audit_depends_on_them(result):
    """Numbers, checks and the verdict are those of the audit without policies, which has none."""
    plain = auditor.audit(
        replace(exactly(), policies={}), delta=1e-5, split=RandomSplit(), claim=StatedClaim(0.1, delta=1e-5)
    )
    assert plain.policies == ()
    # Bets on learnt guesses go by all scores of a record.
    rows, others = (
        [row for row in item.estimates if row.name != "epsilon_bound.adaptive"] for item in (plain, result)
    )
    assert (rows, plain.checks, plain.verdict) == (others, result.checks, result.verdict)


def test_they_stand_in_the_file(result, tmp_path):
    """The JSON follows its schema and is read back as it was."""
    jsonschema.validate(result.to_dict(), schema())
    result.to_json(tmp_path / "result.json")
    assert auditor.read_result(tmp_path / "result.json").policies == result.policies


@pytest.mark.parametrize(
    ("less", "more", "follows"),
    [
        ("label", "full", True),
        ("label", "top1", True),
        ("top1", "top3", True),
        ("top3", "top1", False),
        ("label", "digits=1", False),
        ("digits=1", "digits=2", False),  # .0449 is .045 to three decimals, and that .05 or .04 to two
        ("full", "label", False),
    ],
)
def test_which_answers_follow_from_which(less, more, follows):
    """A label follows from the largest probability, fewer largest ones from more, and all from the full outputs."""
    assert OutputPolicy(less).tells_no_more_than(OutputPolicy(more)) is follows


def test_verify_looks_at_policies_too(rng, tmp_path, capsys):
    """Losses under a policy that were altered since give other numbers, which verify tells; the same ones agree."""
    from auditor.cli import app

    pair = rng.normal(-1, 1, 200), rng.normal(0, 1, 200)
    file, result = tmp_path / "losses.csv", tmp_path / "result.json"
    losses = auditor.Losses(*pair, policies={"digits=1": tuple(np.round(side, 1) for side in pair)})
    frame = losses.to_frame()
    frame.to_csv(file, index=False)
    auditor.audit(file).to_json(result)
    assert app.run(["report", str(result), "--verify", "--losses", str(file)]) == 0
    assert "agree" in capsys.readouterr().out
    frame["loss.digits=1"] = frame["loss.digits=1"].to_numpy()[::-1]
    frame.to_csv(file, index=False)
    assert app.run(["report", str(result), "--verify", "--losses", str(file)]) == 1
    assert "under digits=1" in capsys.readouterr().err
