"""Gates: what they read, what they decide, and that nothing passes silently."""

import dataclasses

import pytest

import auditor
from auditor.errors import InputError
from auditor.gates import ExitCode, exit_code, parse
from auditor.values import Verdict


@pytest.fixture
def result(rng):
    """An audit without a claim."""
    losses = auditor.Losses(member=rng.normal(-1, 1, 400), nonmember=rng.normal(0, 1, 400))
    return auditor.audit(losses)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("auc > 0.5", ExitCode.FAILED),
        ("auc<0.5", ExitCode.DONE),
        ("auc.lower >= 0.6", ExitCode.FAILED),
        ("bayes_security.upper < 0.1", ExitCode.DONE),
        ("epsilon_star.gaussian > 100", ExitCode.DONE),
        ("epsilon_bound.clopper_pearson > 0", ExitCode.FAILED),
        ("epsilon_bound.clopper_pearson.upper > 0", ExitCode.NOT_EVALUABLE),
        ("tpr_at_fpr.0.001 > 0.1", ExitCode.NOT_EVALUABLE),
        ("tpr_at_fpr.0.1.lower > 0.2", ExitCode.FAILED),
        ("epsilon_bound.one_run > 1", ExitCode.NOT_EVALUABLE),
        ("verdict == refuted", ExitCode.NOT_EVALUABLE),
        ("verdict != not_refuted", ExitCode.NOT_EVALUABLE),
    ],
)
def test_outcomes(result, text, expected):
    """A true gate fails, a false one passes, and what has no value is not evaluable."""
    assert exit_code(result, [parse(text)]) == expected


@pytest.mark.parametrize("verdict", list(Verdict))
def test_verdict_gates(result, verdict):
    """A gate on the verdict is decided by a decided verdict, and by an undecided one only when it asks for it."""
    judged = dataclasses.replace(result, verdict=verdict)
    expected = {
        Verdict.REFUTED: ExitCode.FAILED,
        Verdict.NOT_REFUTED: ExitCode.DONE,
        Verdict.INCONCLUSIVE: ExitCode.NOT_EVALUABLE,
        Verdict.NOT_EVALUABLE: ExitCode.NOT_EVALUABLE,
    }
    assert exit_code(judged, [parse("verdict == refuted")]) == expected[verdict]
    assert exit_code(judged, [parse(f"verdict == {verdict}")]) == ExitCode.FAILED


def test_a_refuted_claim_fails_without_a_gate(result):
    """A refuted claim is exit code 1 by itself; other verdicts are not."""
    assert exit_code(dataclasses.replace(result, verdict=Verdict.REFUTED), []) == ExitCode.FAILED
    assert exit_code(dataclasses.replace(result, verdict=Verdict.INCONCLUSIVE), []) == ExitCode.DONE


def test_failed_comes_before_not_evaluable(result):
    """With one gate true and one not evaluable, the exit code is 1."""
    gates = [parse("epsilon_bound.one_run > 1"), parse("auc > 0.5")]
    assert exit_code(result, gates) == ExitCode.FAILED


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("auc", "NAME OPERATOR NUMBER"),
        ("auc > x", "must be a number"),
        ("auc > nan", "must be finite"),
        ("verdict > refuted", "takes == or !="),
        ("verdict == refused", "did you mean 'refuted'"),
        ("", "NAME OPERATOR NUMBER"),
    ],
)
def test_bad_gates(text, sentence):
    """A gate that cannot be read says what it should look like."""
    with pytest.raises(InputError, match=sentence):
        parse(text)


def test_unknown_names_meet_the_nearest(result):
    """A gate on a misspelt name names the nearest instead of passing."""
    with pytest.raises(InputError, match=r"did you mean 'epsilon_star.gaussian'"):
        exit_code(result, [parse("epsilon_star.gausian > 1")])
