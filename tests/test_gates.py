"""Gates: what they read, what they decide, how they say it, and that nothing passes silently."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

import auditor
from auditor import AuditResult
from auditor.core import Adjacency, Check, Estimate, InputError, Status, Subject, Verdict
from auditor.verdicts import ExitCode, GateOutcome, check_gates, exit_code, found, judged, known_names, parse


@pytest.fixture(scope="module")
def result():
    """An audit without a claim."""
    rng = np.random.default_rng(20261121)
    losses = auditor.Losses(member=rng.normal(-1, 1, 400), nonmember=rng.normal(0, 1, 400))
    return auditor.audit(losses)


def made(*estimates, checks=(), verdict=None):
    """A result by hand that holds no more than these."""
    return AuditResult({}, estimates, (), (), checks, (), (), verdict, {})


def row(value, lower=None, upper=None, *, name="auc", **rest):
    """An estimate by hand."""
    fields = {"confidence": 0.95, "method": "by hand", "subject": Subject.MODEL} | rest
    return Estimate(name, value, lower, upper, **fields)


def code(result, *gates):
    """The exit code of a result under these gates."""
    return exit_code(result, check_gates(result, gates))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("auc > 0.5", ExitCode.FAILED),
        ("auc<0.5", ExitCode.DONE),
        ("auc.value > 0.5", ExitCode.FAILED),
        ("auc.lower >= 0.6", ExitCode.FAILED),
        ("bayes_security.upper < 0.1", ExitCode.DONE),
        ("bayes_security.lower < 0.9", ExitCode.NOT_EVALUABLE),
        ("epsilon_star.gaussian > 100", ExitCode.DONE),
        ("epsilon_bound.clopper_pearson > 0", ExitCode.FAILED),
        ("epsilon_bound.clopper_pearson.upper > 0", ExitCode.NOT_EVALUABLE),
        ("tpr_at_fpr.0.001 > 0.1", ExitCode.NOT_EVALUABLE),
        ("tpr_at_fpr.0.1.lower > 0.2", ExitCode.FAILED),
        ("epsilon_bound.one_run > 1", ExitCode.NOT_EVALUABLE),
        ("epsilon_star.mixture > 1", ExitCode.NOT_EVALUABLE),
        ("epsilon_star.mixture.lower > 1", ExitCode.NOT_EVALUABLE),
        ("verdict == refuted", ExitCode.NOT_EVALUABLE),
        ("verdict != not_refuted", ExitCode.NOT_EVALUABLE),
        ("checks.ties == warn", ExitCode.DONE),
        ("checks.ties == ok", ExitCode.FAILED),
        ("checks.placebo == fail", ExitCode.NOT_EVALUABLE),
        ("checks.shift == fail", ExitCode.NOT_EVALUABLE),
        ("checks.shift == unknown", ExitCode.FAILED),
    ],
)
def test_outcomes(result, text, expected):
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
@pytest.mark.parametrize("asked", list(Status))
def test_check_gates(status, asked):
    """A gate on a check is decided by how it came out, and by an unknown outcome only when it asks for it."""
    checked = made(checks=(Check("ties", status, "by hand"),))
    undecided = status is Status.UNKNOWN and asked is not Status.UNKNOWN
    truth = ExitCode.FAILED if status is asked else ExitCode.DONE
    assert code(checked, f"checks.ties == {asked}") == (ExitCode.NOT_EVALUABLE if undecided else truth)
    other = ExitCode.DONE if status is asked else ExitCode.FAILED
    assert code(checked, f"checks.ties != {asked}") == (ExitCode.NOT_EVALUABLE if undecided else other)


def test_a_refuted_claim_fails_without_a_gate(result):
    """A refuted claim is exit code 1 by itself; other verdicts are not."""
    assert exit_code(dataclasses.replace(result, verdict=Verdict.REFUTED), ()) == ExitCode.FAILED
    assert exit_code(dataclasses.replace(result, verdict=Verdict.INCONCLUSIVE), ()) == ExitCode.DONE


def test_failed_comes_before_not_evaluable(result):
    """With one gate true and one not evaluable, the exit code is 1, in whatever order they are given."""
    gates = ["epsilon_bound.one_run > 1", "auc > 0.5"]
    assert code(result, *gates) == code(result, *reversed(gates)) == ExitCode.FAILED


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
        (math.inf, "<", False),
        (math.inf, "==", False),
        (-math.inf, "<=", True),
        (-math.inf, ">", False),
        (1.0, ">", False),
        (1.0, ">=", True),
        (1.0, "==", True),
        (1.0, "!=", False),
        (math.nextafter(1.0, 2.0), ">", True),
        (math.nextafter(1.0, 0.0), "<", True),
    ],
)
def test_numbers_compare_as_they_should(value, symbol, true):
    """Infinite numbers and neighbours of the bound are on the side on which they are."""
    outcome = check_gates(made(row(value)), f"auc {symbol} 1")[0]
    assert outcome.code is (ExitCode.FAILED if true else ExitCode.DONE)
    assert outcome.actual == value
    assert outcome.passed is not true


@pytest.mark.parametrize("value", [math.nan, 10**400, "0.4", True, None])
def test_a_number_that_is_none_is_not_evaluable(value):
    """NaN, which no comparison catches, and what else is no number in a result that somebody made, do not pass."""
    assert code(made(row(value)), "auc > 0.5") == ExitCode.NOT_EVALUABLE


def test_a_number_that_is_there_twice_is_not_evaluable():
    """Where a result has two numbers of one name, neither can hide the other."""
    twice = made(row(0.9), row(0.1))
    assert code(twice, "auc > 0.5") == code(twice, "auc.lower > 0.5") == ExitCode.NOT_EVALUABLE
    assert "2 numbers named auc" in check_gates(twice, "auc > 0.5")[0].sentence
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
    assert shown <= value  # a lower bound is never told larger than it is


# --- Audits that could not have failed ------------------------------------------------------------


@pytest.fixture(scope="module")
def blind():
    """Two audits that look the wrong way or nowhere: members with the higher losses, and one loss for everybody."""
    rng = np.random.default_rng(20261121)
    wrong = auditor.Losses(member=rng.normal(1, 1, 400), nonmember=rng.normal(0, 1, 400))
    nothing = auditor.Losses(member=np.full(400, 0.5), nonmember=np.full(400, 0.5))
    return {"members have the higher losses": wrong, "all losses are equal": nothing}


@pytest.mark.parametrize("why", ["members have the higher losses", "all losses are equal"])
@pytest.mark.parametrize(
    "gate",
    ["auc > 0.6", "auc >= 0.6", "auc.upper > 0.6", "bayes_security.value < 0.01", "tpr_at_fpr.0.1 > 0.9"],
)
def test_a_blind_audit_lets_nothing_pass(blind, why, gate):
    """Where no leak could have shown, a gate that is not true has not passed, and its sentence holds number and reason."""
    found = check_gates(auditor.audit(blind[why]), gate)[0]
    assert found.code is ExitCode.NOT_EVALUABLE
    assert why in found.sentence
    assert isinstance(found.actual, float)


@pytest.mark.parametrize(
    ("why", "gate"),
    [
        ("members have the higher losses", "auc < 0.5"),
        ("members have the higher losses", "epsilon_star.gaussian > 1"),
        ("all losses are equal", "auc <= 0.5"),
    ],
)
def test_a_blind_audit_still_stops(blind, why, gate):
    """A gate that is true has failed, also where no leak could have shown."""
    assert code(auditor.audit(blind[why]), gate) == ExitCode.FAILED


@pytest.mark.parametrize("junk", [None, "x", [], 3])
def test_odd_details_stop_no_gate(junk):
    """Details of another's result that are none at all are no reason to fail in another way."""
    odd = made(
        row(0.4, name="epsilon_star.gaussian", details=junk), checks=(Check("ties", Status.WARN, "", junk),)
    )
    assert code(odd, "epsilon_star.gaussian > 1") == ExitCode.DONE


@given(st.floats(0, 10), st.floats(0, 10), st.floats(-1, 11), st.sampled_from([">", ">="]))
def test_a_gate_above_the_ceiling_cannot_pass(one, other, asked, symbol):
    """A bound passes a gate only where a perfect attack on the same records would have failed it."""
    low, top = sorted([one, other])
    bound = row(low, low, name="epsilon_bound.clopper_pearson", delta=1e-5, details={"ceiling": top})
    outcome = check_gates(made(bound), f"epsilon_bound.clopper_pearson {symbol} {asked!r}")[0]
    fails, could_fail = (x > asked or (symbol == ">=" and x == asked) for x in (low, top))
    expected = ExitCode.FAILED if fails else ExitCode.DONE if could_fail else ExitCode.NOT_EVALUABLE
    assert outcome.code is expected
    assert outcome.actual == low


def test_the_ceiling_of_an_audit_decides_what_it_may_pass():
    """Of an audit of 6 records, whose ceiling is 0, not even a bound above 0 can be refused; of 800 it can."""
    rng = np.random.default_rng(20261121)
    few, many = (
        auditor.audit(auditor.Losses(member=rng.normal(size=n), nonmember=rng.normal(size=n)))
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
        (True, {"details": {"approximate": True}}, ExitCode.DONE),
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
    """The sentence of a gate that could not be true holds the number, and why it says nothing."""
    low = row(0.1, 0.1, name=CERTIFIED, delta=1e-5, details={"ceiling": 1.2})
    assert check_gates(made(low), f"{CERTIFIED} > 2")[0].sentence == (
        "epsilon_bound.clopper_pearson is 0.1 (certified at 95% confidence, ceiling 1.2, about this model, delta 1e-5),"
        " but its ceiling is 1.2, so with these records it could not have been larger, whatever the model leaks: gate"
        " 'epsilon_bound.clopper_pearson > 2' cannot be evaluated, so it does not pass."
    )
    star = row(0.6, name="epsilon_star.gaussian", **FITTED, details={"fit": {"rejected": True}})
    certified = row(1.00004, 1.00004, name=CERTIFIED, delta=1e-5)
    assert check_gates(made(star, certified), "epsilon_star.gaussian > 1")[0].sentence == (
        "epsilon_star.gaussian is 0.6 (point estimate, the fit is rejected, about this model, delta 1e-5), but its fit is"
        " rejected and the certified bound of the same model at the same delta is 1.00004: gate"
        " 'epsilon_star.gaussian > 1' cannot be evaluated, so it does not pass."
    )


# --- Sentences ------------------------------------------------------------------------------------

EPSILON = row(
    1.8361, name="epsilon_star.gaussian", confidence=None, delta=1e-5, details={"fit": {"rejected": False}}
)
ONE_RUN = row(
    1.8361,
    1.8361,
    name="epsilon_bound.one_run",
    subject=Subject.MECHANISM,
    delta=1e-5,
    adjacency=Adjacency.REPLACE_ONE,
    details={"ceiling": 5.0},
)


@pytest.mark.parametrize(
    ("estimate", "gate", "sentence"),
    [
        (
            EPSILON,
            "epsilon_star.gaussian > 1",
            (
                "epsilon_star.gaussian is 1.84 (point estimate, about this model, delta 1e-5), above 1:"
                " gate 'epsilon_star.gaussian > 1' failed."
            ),
        ),
        (
            EPSILON,
            "epsilon_star.gaussian >= 2.5",
            (
                "epsilon_star.gaussian is 1.84 (point estimate, about this model, delta 1e-5), not at least 2.5:"
                " gate 'epsilon_star.gaussian >= 2.5' passed."
            ),
        ),
        (
            ONE_RUN,
            "epsilon_bound.one_run > 1.8360",
            (
                "epsilon_bound.one_run is 1.8361 (certified at 95% confidence, ceiling 5, about the training algorithm,"
                " delta 1e-5, replace-one), above 1.836: gate 'epsilon_bound.one_run > 1.8360' failed."
            ),
        ),
        (
            row(0.7, None, 0.7519, name="bayes_security"),
            "bayes_security.upper < 0.9",
            (
                "bayes_security.upper is 0.752 (the upper end at 95% confidence, about this model), below 0.9:"
                " gate 'bayes_security.upper < 0.9' failed."
            ),
        ),
        (
            row(0.25, 0.2, name="tpr_at_fpr.0.01"),
            "tpr_at_fpr.0.01.lower > 0.1",
            (
                "tpr_at_fpr.0.01.lower is 0.2 (20%, the lower end at 95% confidence, about this model), above 0.1:"
                " gate 'tpr_at_fpr.0.01.lower > 0.1' failed."
            ),
        ),
        (
            row(None, confidence=None, details={"reason": "all losses are equal."}),
            "auc > 0.6",
            "auc has no value (all losses are equal): gate 'auc > 0.6' cannot be evaluated, so it does not pass.",
        ),
    ],
)
def test_sentences(estimate, gate, sentence):
    """A sentence holds the number, what it is about, its confidence and delta, the bound, the gate and its outcome."""
    assert check_gates(made(estimate), gate)[0].sentence == sentence


def test_a_sentence_is_one_line_whatever_a_result_holds():
    """A reason from another's result is told on one line, with control characters made visible."""
    hostile = row(None, confidence=None, details={"reason": "a\nb\x1b[31m\u202ec"})
    found = check_gates(made(hostile), "auc > 0.6")[0].sentence
    assert "a b⟨U+001B⟩[31m⟨U+202E⟩c" in found
    assert found.isprintable()


# --- What cannot be read --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("auc", "NAME OPERATOR NUMBER"),
        ("", "NAME OPERATOR NUMBER"),
        ("auc > ", "NAME OPERATOR NUMBER"),
        ("auc = 1", "NAME OPERATOR NUMBER"),
        ("auc => 1", "NAME OPERATOR NUMBER"),
        ("auc > 1 or auc < 2", "NAME OPERATOR NUMBER"),
        ("auc > 1\nauc > 2", "NAME OPERATOR NUMBER"),
        ("a" * 300 + " > 1", "NAME OPERATOR NUMBER"),
        (None, "NAME OPERATOR NUMBER"),
        ("auc > x", "finite number"),
        ("auc > nan", "finite number"),
        ("auc > inf", "finite number"),
        ("auc > -infinity", "finite number"),
        ("auc > 1_0", "finite number"),
        ("auc > ٣", "finite number"),
        ("auc > 5%", "finite number"),
        ("auc > 1e999", "must be finite"),
        ("verdict > refuted", "takes == or !="),
        ("checks.shift > ok", "takes == or !="),
        ("verdict == refused", "did you mean 'refuted'"),
        ("checks.shift == failed", "did you mean 'fail'"),
    ],
)
def test_bad_gates(text, sentence):
    """A gate that cannot be read says what it should look like, in one line."""
    with pytest.raises(InputError, match=sentence) as error:
        parse(text)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("epsilon_star.gausian > 1", "epsilon_star.gaussian"),
        ("auc.lowr > 1", "auc.lower"),
        ("tpr_at_fpr.0.02 > 1", "tpr_at_fpr.0.01"),
        ("checks.shfit == fail", "checks.shift"),
        ("checks.plcebo == fail", "checks.placebo"),
        ("verdct > 1", "verdict"),
        ("AUC > 0.5", "auc"),
        ("Epsilon_Star.Gaussian.Value > 1", "epsilon_star.gaussian.value"),
        ("epsilon_star > 1", "epsilon_star.gaussian"),  # the one that this audit has
        ("epsilon_star.mixtur > 1", "epsilon_star.mixture"),
    ],
)
def test_unknown_names_meet_the_nearest(result, text, nearest):
    """A gate on a misspelt name, or a misspelt end of one, names the nearest instead of passing."""
    with pytest.raises(InputError, match=rf"did you mean '{nearest}'\?"):
        check_gates(result, [text])


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("check.shift == fail", "checks.shift"),
        ("shift == warn", "checks.shift"),
        ("verdct == refuted", "verdict"),
        ("Verdict != not_refuted", "verdict"),
    ],
)
def test_a_word_tells_what_was_meant(text, meant):
    """A misspelt verdict or check is told by the word that it is compared with."""
    with pytest.raises(InputError, match=rf"did you mean '{meant}'\?"):
        parse(text)


def test_without_a_near_name_the_sentence_is_still_one(result):
    """Where nothing is near, the names follow in the same sentence."""
    with pytest.raises(InputError, match="which no audit has; the names are epsilon_bound"):
        check_gates(result, "zzz > 1")


def test_every_name_of_an_audit_can_be_a_gate(result):
    """Whatever the audit has can be named, with and without an end, and means the number of that name."""
    for name in known_names(result):
        expected = name == "verdict" or name.startswith("checks.")
        outcome = check_gates(
            result, f"{name} == {'refuted' if name == 'verdict' else 'fail' if expected else 1}"
        )
        assert outcome[0].sentence
    for estimate in result.estimates:
        for end in ("value", "lower", "upper"):
            meant = found(f"{estimate.name}.{end}", gate="", result=result)
            assert getattr(meant.estimate, meant.end) == getattr(estimate, end)


def test_gates_are_given_as_texts_or_values(result):
    """One text, a list of texts and gates, and outcomes that are there already give the same; nothing else is taken."""
    outcome = judged(result, [parse("auc > 0.5")])
    assert outcome == check_gates(result, "auc > 0.5") == check_gates(result, [parse("auc > 0.5")])
    assert check_gates(result, outcome) == outcome
    assert isinstance(outcome[0], GateOutcome)
    with pytest.raises(InputError, match="gates must be a list of texts"):
        check_gates(result, {"auc": 0.5})
