"""Gates: what they read, what they decide, how they say it, and that nothing passes silently."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

import auditor
from auditor import AuditResult
from auditor.core import Adjacency, Check, Estimate, InputError, Status, Subject, Verdict
from auditor.verdicts import ExitCode, check_gates, exit_code, judged, known_names, named_number, parse


@pytest.fixture(scope="module")
def result():
    """An audit without a claim."""
    rng = np.random.default_rng(20261121)
    losses = auditor.Losses(member=rng.normal(-1, 1, 400), nonmember=rng.normal(0, 1, 400))
    return auditor.audit(losses)


def made(*estimates, checks=(), verdict=None):
    """A result by hand that holds no more than these."""
    names = ("claims", "comparisons", "curves", "histograms")
    about = {"data": {}, "estimates": estimates, "checks": checks, "verdict": verdict, "provenance": {}}
    return AuditResult(**about, **dict.fromkeys(names, ()))


def row(value, lower=None, upper=None, *, name="auc", **rest):
    """An estimate by hand."""
    fields = {"confidence": 0.95, "method": "by hand", "subject": Subject.MODEL} | rest
    return Estimate(name, value, lower, upper, **fields)


def code(result, *gates):
    """The exit code of a result under these gates."""
    return exit_code(result, check_gates(result, gates))


OUTCOMES = {
    ExitCode.FAILED: """auc > 0.5|auc.value > 0.5|auc.lower >= 0.6|epsilon_bound.clopper_pearson > 0
        tpr_at_fpr.0.1.lower > 0.2|checks.ties == ok|checks.shift == unknown""",
    ExitCode.DONE: "auc<0.5|bayes_security.upper < 0.1|epsilon_star.gaussian > 100|checks.ties == warn",
    ExitCode.NOT_EVALUABLE: """bayes_security.lower < 0.9|epsilon_bound.clopper_pearson.upper > 0
        tpr_at_fpr.0.001.lower > 0.1|epsilon_bound.one_run > 1|epsilon_star.mixture > 1|epsilon_star.mixture.lower > 1
        verdict == refuted|verdict != not_refuted|checks.placebo == fail|checks.shift == fail""",
}


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (outcome, text.strip())
        for outcome, gates in OUTCOMES.items()
        for text in gates.replace("\n", "|").split("|")
    ],
)
def test_outcomes(result, expected, text):
    """A true gate fails, a false one passes, and what has no value is not evaluable."""
    assert code(result, text) == expected


@pytest.mark.parametrize("verdict", list(Verdict))
def test_verdict_gates(result, verdict):
    """A gate on the verdict is decided by a decided verdict, and by an undecided one only when it asks for it."""
    with_verdict = dataclasses.replace(result, verdict=verdict)
    expected = {
        Verdict.REFUTED: ExitCode.FAILED,
        Verdict.NOT_REFUTED: ExitCode.DONE,
        Verdict.INCONCLUSIVE: ExitCode.NOT_EVALUABLE,
        Verdict.NOT_EVALUABLE: ExitCode.NOT_EVALUABLE,
    }
    assert code(with_verdict, "verdict == refuted") == expected[verdict]
    assert code(with_verdict, f"verdict == {verdict}") == ExitCode.FAILED


@pytest.mark.parametrize("status", list(Status))
@pytest.mark.parametrize("wanted", list(Status))
def test_check_gates(status, wanted):
    """A gate on a check is decided by how it came out, and by an unknown outcome only when it asks for it."""
    checked = made(checks=(Check("ties", status, "by hand"),))
    undecided = status is Status.UNKNOWN and wanted is not Status.UNKNOWN
    truth = ExitCode.FAILED if status is wanted else ExitCode.DONE
    assert code(checked, f"checks.ties == {wanted}") == (ExitCode.NOT_EVALUABLE if undecided else truth)
    other = ExitCode.DONE if status is wanted else ExitCode.FAILED
    assert code(checked, f"checks.ties != {wanted}") == (ExitCode.NOT_EVALUABLE if undecided else other)


@pytest.mark.parametrize("name", ["duplicates", "shift", "placebo", "label_shuffle", "persons"])
def test_a_failed_validity_check_decides_nothing(name):
    """Where a validity check failed, a number does not measure leakage: no gate on one passes or fails."""
    failed = made(row(0.9, 0.8, 0.99), checks=(Check(name, Status.FAIL, "by hand"),))
    assert code(failed, "auc > 0.5") == code(failed, "auc < 0.5") == ExitCode.NOT_EVALUABLE
    assert code(failed, f"checks.{name} == fail") == ExitCode.FAILED
    assert name in check_gates(failed, "auc > 0.5")[0].sentence


@pytest.mark.parametrize(
    ("value", "symbol", "true"),
    [
        (math.inf, ">", True),
        (math.inf, "==", False),
        (-math.inf, "<=", True),
        (1.0, ">", False),
        (1.0, ">=", True),
        (1.0, "!=", False),
        (math.nextafter(1.0, 2.0), ">", True),
    ],
)
def test_numbers_compare_as_they_should(value, symbol, true):
    """Infinite numbers and neighbours of the bound are on the side on which they are."""
    outcome = check_gates(made(row(value)), f"auc {symbol} 1")[0]
    assert outcome.code is (ExitCode.FAILED if true else ExitCode.DONE)
    assert outcome.actual == value


@pytest.mark.parametrize("value", [math.nan, None])
def test_a_number_that_is_none_is_not_evaluable(value):
    """NaN, which no comparison catches, and a missing number do not pass."""
    assert code(made(row(value)), "auc > 0.5") == ExitCode.NOT_EVALUABLE


def test_the_worst_of_two_checks_counts():
    """Where a result has two checks of one name, neither can hide the other."""
    checked = made(checks=(Check("ties", Status.FAIL, ""), Check("ties", Status.OK, "")))
    assert code(checked, "checks.ties == fail") == ExitCode.FAILED
    warned = made(checks=(Check("ties", Status.OK, ""), Check("ties", Status.WARN, "")))
    assert code(warned, "checks.ties == warn") == ExitCode.FAILED


@given(st.floats(allow_nan=False), st.floats(allow_nan=False, allow_infinity=False))
def test_a_sentence_never_contradicts_its_outcome(value, bound):
    """The number in the sentence is on the same side of the bound as the number itself."""
    outcome = check_gates(made(row(value, value)), f"auc.lower > {bound!r}")[0]
    words = outcome.sentence.split("auc.lower is ")[1].split(" (")[0]
    shown = float(words.replace("−", "-").replace("∞", "inf"))  # noqa: RUF001 the true minus sign
    assert (shown > bound) == (value > bound) == (not outcome.passed)
    assert shown <= value  # a lower bound is never rounded up


@pytest.mark.parametrize(
    ("end", "told"), [("", "as observed"), (".lower", "the lower end at"), (".upper", "the upper end at")]
)
def test_a_gate_on_a_rate_names_the_number_that_it_uses(end, told):
    """By name alone it is what was observed, 7.7%, and not what a conservative rank shows; an end is named as such."""
    rate = row(0.077, 0.015, 0.19, name="tpr_at_fpr.0.01", details={"rate": 0.01})
    outcome = check_gates(made(rate), f"tpr_at_fpr.0.01{end} > 0.05")[0]
    assert told in outcome.sentence
    assert outcome.passed is (end == ".lower")


# --- Audits that could not have failed ------------------------------------------------------------


@pytest.fixture(scope="module")
def blind():
    """Two audits that look the wrong way or nowhere: members with the higher losses, and one loss for everybody."""
    rng = np.random.default_rng(20261121)
    wrong = auditor.Losses(member=rng.normal(1, 1, 400), nonmember=rng.normal(0, 1, 400))
    nothing = auditor.Losses(member=np.full(400, 0.5), nonmember=np.full(400, 0.5))
    return {"members have the higher losses": wrong, "all losses are equal": nothing}


@pytest.mark.parametrize(
    ("why", "gate", "expected"),
    [
        *(
            ("members have the higher losses", f"{gate} > 0.6", ExitCode.NOT_EVALUABLE)
            for gate in ("auc", "auc.upper")
        ),
        ("members have the higher losses", "bayes_security.value < 0.01", ExitCode.NOT_EVALUABLE),
        ("members have the higher losses", "epsilon_star.gaussian > 1", ExitCode.FAILED),
        ("all losses are equal", "tpr_at_fpr.0.1 > 0.9", ExitCode.NOT_EVALUABLE),
        ("all losses are equal", "auc <= 0.5", ExitCode.FAILED),
    ],
)
def test_a_blind_audit_lets_nothing_pass(blind, why, gate, expected):
    """Where no leak could have shown, a gate that is not true has not passed and says why; one that is true has failed."""
    outcome = check_gates(auditor.audit(blind[why]), gate)[0]
    assert outcome.code is expected
    assert isinstance(outcome.actual, float)
    assert expected is ExitCode.FAILED or why in outcome.sentence


@given(st.floats(0, 10), st.floats(0, 10), st.floats(-1, 11), st.sampled_from([">", ">="]))
def test_a_gate_above_the_ceiling_cannot_pass(one, other, wanted, symbol):
    """A bound passes a gate only where a perfect attack on the same records would have failed it."""
    low, top = sorted([one, other])
    bound = row(low, low, name="epsilon_bound.clopper_pearson", delta=1e-5, details={"ceiling": top})
    outcome = check_gates(made(bound), f"epsilon_bound.clopper_pearson {symbol} {wanted!r}")[0]
    fails, could_fail = (x > wanted or (symbol == ">=" and x == wanted) for x in (low, top))
    expected = ExitCode.FAILED if fails else ExitCode.DONE if could_fail else ExitCode.NOT_EVALUABLE
    assert outcome.code is expected
    assert outcome.actual == low


def test_the_ceiling_of_an_audit_decides_what_it_may_pass():
    """Of an audit of 6 records, whose ceiling is 0, not even a bound above 0 can be refused; of 800 it can."""
    rng = np.random.default_rng(20261121)
    few, many = (
        auditor.audit(
            auditor.Losses(member=rng.normal(size=n), nonmember=rng.normal(size=n)), disclosure="insiders"
        )
        for n in (3, 400)
    )
    assert few.estimate("epsilon_bound.clopper_pearson").details["ceiling"] <= 0
    assert code(few, "epsilon_bound.clopper_pearson > 0") == ExitCode.NOT_EVALUABLE
    assert code(few, "epsilon_bound.clopper_pearson.lower > 3") == ExitCode.NOT_EVALUABLE
    top = many.estimate("epsilon_bound.clopper_pearson").details["ceiling"]
    assert 1 < top < 100
    assert code(many, "epsilon_bound.clopper_pearson > 1") == ExitCode.DONE
    assert code(many, "epsilon_bound.clopper_pearson > 100") == ExitCode.NOT_EVALUABLE
    assert code(many, "epsilon_bound.clopper_pearson < 100") == ExitCode.FAILED


FITTED = {"confidence": None, "delta": 1e-5}
CERTIFIED = "epsilon_bound.clopper_pearson"


@pytest.mark.parametrize("name", ["epsilon_star.gaussian", "epsilon_star.mixture"])
@pytest.mark.parametrize(
    ("rejected", "bound", "expected"),
    [
        (True, {}, ExitCode.NOT_EVALUABLE),
        (False, {}, ExitCode.DONE),
        (True, {"delta": 1e-6}, ExitCode.DONE),
        (True, {"subject": Subject.MECHANISM, "adjacency": Adjacency.REPLACE_ONE}, ExitCode.DONE),
        (True, {"lower": 1.0}, ExitCode.DONE),
        (True, {"name": "epsilon_bound.gdp"}, ExitCode.DONE),
    ],
)
def test_a_rejected_fit_below_what_is_certified_decides_nothing(name, rejected, bound, expected):
    """A rejected fit passes a gate unless the certified bound, about the same and at the same delta, is above it."""
    star = row(0.6, name=name, **FITTED, details={"fit": {"rejected": rejected}})
    fields = {"lower": 1.25, "name": CERTIFIED, "delta": 1e-5} | bound
    certified = row(fields["lower"], **fields)
    assert code(made(star, certified), f"{name} > 1") == expected
    assert code(made(star, certified), f"{name} > 0.5") == ExitCode.FAILED
    assert code(made(star, certified), f"{name} > 2") == ExitCode.DONE
    assert code(made(star, certified), f"{name} < 0.5") == ExitCode.DONE


def test_what_decides_nothing_is_told():
    """The sentence of a gate that could not be true holds the number, what it is and is about, and why it says nothing."""
    low = row(0.1, 0.1, name=CERTIFIED, delta=1e-5, details={"ceiling": 1.2})
    star = row(0.6, name="epsilon_star.gaussian", **FITTED, details={"fit": {"rejected": True}})
    bound = row(1.00004, 1.00004, name=CERTIFIED, delta=1e-5)
    about = "certified at 95% confidence, ceiling 1.2, about this model, delta 1e-5"
    for rows, gate, words in (
        ([low], f"{CERTIFIED} > 2", f"is 0.1 ({about})"),
        (
            [star, bound],
            "epsilon_star.gaussian > 1",
            "is 0.6 (point estimate, the fit is rejected, about this",
        ),
        ([star, bound], "epsilon_star.gaussian > 1", "at the same delta is 1.00004: gate"),
    ):
        said = check_gates(made(*rows), gate)[0].sentence
        assert words in said
        assert said.endswith(f"gate {gate!r} cannot be evaluated, so it does not pass.")


# --- Sentences ------------------------------------------------------------------------------------


def test_a_sentence_is_one_line_whatever_a_result_holds():
    """A reason from another's result is on one line, with control characters made visible."""
    hostile = row(None, confidence=None, details={"reason": "a\nb\x1b[31m\u202ec"})
    found = check_gates(made(hostile), "auc > 0.6")[0].sentence
    assert "a b⟨U+001B⟩[31m⟨U+202E⟩c" in found
    assert found.isprintable()


# --- What cannot be read --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("epsilon_star.gausian > 1", "did you mean 'epsilon_star.gaussian'"),
        ("checks.plcebo == fail", "did you mean 'checks.placebo'"),
        ("epsilon_star > 1", "did you mean 'epsilon_star.gaussian'"),  # the one that this audit has
        ("zzz > 1", "which no audit has\\. The names are epsilon_bound"),
    ],
)
def test_unknown_names_meet_the_nearest(result, text, nearest):
    """A gate on a misspelt name, or a misspelt end of one, names the nearest instead of passing."""
    with pytest.raises(InputError, match=nearest):
        check_gates(result, [text])


def test_every_name_of_an_audit_can_be_a_gate(result):
    """Whatever the audit has can be named, with and without an end, and means the number of that name."""
    words = {"verdict": "refuted", "checks": "fail"}
    for name in known_names(result):
        assert check_gates(result, f"{name} == {words.get(name.partition('.')[0], 1)}")[0].sentence
    for estimate in result.estimates:
        for end in ("value", "lower", "upper"):
            meant = named_number(f"{estimate.name}.{end}", gate="", result=result)
            assert getattr(meant.estimate, meant.end) == getattr(estimate, end)


def test_gates_are_given_as_texts_or_values(result):
    """One text, and a list of texts and gates, give the same."""
    outcome = judged(result, [parse("auc > 0.5")])
    assert outcome == check_gates(result, "auc > 0.5") == check_gates(result, [parse("auc > 0.5")])


def test_a_claim_that_could_not_be_judged_fails_a_test_too():
    """`assert_gates` stops at it without any gate, and lets it pass where that is allowed; one that stands passes."""
    rng = np.random.default_rng(0)
    losses = auditor.Losses(member=rng.normal(size=400), nonmember=rng.normal(size=400))
    claim = auditor.StatedClaim(0.5, 0.0, adjacency="replace-one")
    for split, claimed in (
        (auditor.UnknownSplit(), claim),
        (auditor.RandomSplit(), auditor.StatedClaim(20.0, 0.0)),
    ):
        result = auditor.audit(losses, split=split, claim=claimed, delta=0.0)
        assert result.verdict in ("not_evaluable", "inconclusive")
        with pytest.raises(AssertionError, match="the claim is judged: The claim could not be judged"):
            auditor.assert_gates(result)
        auditor.assert_gates(result, allow_unjudged=True)
    auditor.assert_gates(auditor.audit(losses, split=auditor.RandomSplit(), claim=claim, delta=0.0))
    auditor.assert_gates(auditor.audit(losses, delta=0.0))  # nothing is claimed, so nothing is to be judged
