"""Policies: what they say, the three outcomes of a release, and that they are judged as gates are."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from command_line import leaking, refused, run
from test_gates import made, row

import auditor
from auditor.core import InputError, Status, Verdict
from auditor.report import render, view_of
from auditor.results import Slice, SliceKind
from auditor.verdicts import check_gates, exit_code, outcomes, parse_policy
from auditor.verdicts.gates import OPPOSITE

RELEASE, REFUSE, REVISE = (0, "release"), (1, "refuse"), (3, "revise")


def decided(result, policy):
    """The exit code, the decision and its sentence under a policy."""
    limited = result.with_policy(policy)
    code = exit_code(limited, outcomes(limited))
    return (int(code), str(limited.decision)), view_of(limited).decision.sentence


# --- How policies are read ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "gates"),
    [
        ("advantage.upper < 0.1", [("advantage.upper", ">=", 0.1)]),
        ("auc<=1;\n bayes_security > .5 ;", [("auc", ">", 1), ("bayes_security", "<=", 0.5)]),
        ("auc == 1; auc != 1", [("auc", "!=", 1), ("auc", "==", 1)]),
        ("bayes_security.lower.replace-one >= 0", [("bayes_security.lower.replace-one", "<", 0)]),
        ("No  GROUP above 0.2; no class above 2e-1", [("group.advantage.upper", ">", 0.2)] * 2),
        ("claim not refuted; the claim is not refuted", [("verdict", "==", Verdict.REFUTED)] * 2),
        ("checks.shift != fail", [("checks.shift", "==", Status.FAIL)]),
    ],
)
def test_a_policy_is_read_as_gates_on_the_opposite(text, gates):
    """Each condition that must hold is a gate that fails where it does not, under the words of its author."""
    read = parse_policy(text)
    assert [(gate.name, gate.symbol, gate.bound) for gate in read] == gates
    assert all(gate.is_policy and gate.text in " ".join(text.split()) for gate in read)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *((text, "policy must be conditions that must hold") for text in ("", " ;\n", None, 3, ["auc < 1"])),
        ("auc < 1; " * 101, "policy must have at most 100 conditions"),
        *(
            (text, "policy must have conditions such as")
            for text in ("auc", "claim refuted", "auc < 1, auc > 0")
        ),
        ("x" * 10_000, "policy must have conditions such as"),
        *((f"auc < 1; auc < {bound}", "must be finite") for bound in ("nan", "1e999")),
        *((f"auc < 1; auc < {bound}", "must be a number") for bound in ("x", "1\u202e")),
        ("no group above x", "gate 'no group above x' must be a number, got 'x'"),
        ("verdict > refuted", "takes == or !="),
        ("verdict == fine", "must be one of 'refuted'"),
    ],
)
def test_a_policy_that_cannot_be_read_is_refused(text, words):
    """One sentence on one line names what is wrong, however long the text is."""
    with pytest.raises(InputError, match=words) as error:
        parse_policy(text)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    ("condition", "right"),
    [
        ("advantage.upper > 0.1", "advantage.upper < 0.1"),
        ("auc >= 0.625", "auc <= 0.625"),
        ("group.auc.upper > 0.6", "group.auc.upper < 0.6"),
        ("tpr_at_fpr.0.01.upper > 1e-3", "tpr_at_fpr.0.01.upper < 0.001"),
        ("epsilon_bound.clopper_pearson > 1", "epsilon_bound.clopper_pearson < 1"),
        ("epsilon.add-remove > 2", "epsilon.add-remove < 2"),
        ("bayes_security.upper < 0.9", "bayes_security.upper > 0.9"),
        ("bayes_security <= 0.9", "bayes_security >= 0.9"),
    ],
)
def test_a_policy_that_demands_leakage_is_refused(condition, right):
    """A policy states what must hold: a gate in its place would release a model because it leaks."""
    with pytest.raises(InputError, match="policy must state what has to hold") as error:
        parse_policy(f"auc < 1; {condition}")
    assert f"{condition!r} demands leakage" in str(error.value)
    assert str(error.value).endswith(f"write {right!r}.")
    assert parse_policy(right)
    with pytest.raises(InputError, match="names 'auk', which no audit has"):
        made(row(0.55, 0.5, 0.65)).with_policy("auk > 0.6")
    with pytest.raises(InputError, match="demands leakage"):
        auditor.audit([0.1, 0.2], [0.3, 0.4], policy=condition)


# --- What policies decide -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "outcome", "said"),
    [
        # Of an AUC of 0.55, whose interval is 0.5 to 0.65.
        ("auc.upper < 0.7", RELEASE, "Passes your policy (1 of 1)."),
        ("auc < 0.7; auc.upper <= 0.65", RELEASE, "Passes your policy (2 of 2)."),
        ("auc < 0.6", RELEASE, "Passes your policy (1 of 1); by point estimate only: auc < 0.6."),
        (
            "auc.lower < 0.6",
            RELEASE,
            "Passes your policy (1 of 1); by one end of the interval only: auc.lower < 0.6.",
        ),
        ("auc < 0.55", REFUSE, "AUC 0.55 is at your limit 0.55."),
        ("auc.upper < 0.5", REFUSE, "AUC at least 0.5 is at your limit 0.5."),
        (
            "auc.upper < 0.4; auc < 0.49",
            REFUSE,
            "AUC at least 0.5 is above your limit 0.4. Also failed: “auc < 0.49”.",
        ),
        # An interval that contains the limit decides nothing.
        (
            "auc.upper < 0.6",
            REVISE,
            "Score more records to decide: AUC could be 0.65, beyond your limit 0.6.",
        ),
        ("auc.upper < 0.6; auc < 0.49", REFUSE, "AUC at least 0.5 is above your limit 0.49."),
        (
            "auc.upper < 0.6; auc.upper < 0.7",
            REVISE,
            "Score more records to decide: AUC could be 0.65, beyond your limit 0.6.",
        ),
        (
            "claim not refuted",
            REVISE,
            "No claim was given, so there is no verdict; give a claim, or leave this condition out (claim not refuted).",
        ),
        ("epsilon_star.mixture < 1", REVISE, "(epsilon_star.mixture < 1)."),
    ],
)
def test_three_outcomes(policy, outcome, said):
    """A limit that is exceeded refuses, one that is undecided revises, and a release says by what it is met."""
    code, sentence = decided(made(row(0.55, 0.5, 0.65)), policy)
    assert code == outcome
    assert sentence.endswith(said)


@pytest.mark.parametrize("verdict", [None, *Verdict])
def test_a_claim_decides_with_or_without_a_policy(verdict):
    """A refuted claim refuses, an unjudged one revises, and one that stands needs a limit to release."""
    bound = row(0.1, 0.1, name="epsilon_bound.one_run", delta=0.0)
    claim = auditor.core.Claim(
        "epsilon", 1.0, 0.0, auditor.core.Adjacency.REPLACE_ONE, "by hand", proven=True
    )
    judged = () if verdict is None else (auditor.core.Comparison(claim, bound.name, verdict, "by hand"),)
    result = replace(made(bound, verdict=verdict), claims=(claim,) if judged else (), comparisons=judged)
    codes = {Verdict.REFUTED: REFUSE, Verdict.NOT_REFUTED: RELEASE, None: REVISE}
    assert decided(result, "claim not refuted")[0] == codes.get(verdict, REVISE)
    without = {Verdict.REFUTED: "refuse", Verdict.NOT_REFUTED: "None", None: "None"}
    assert str(result.decision) == without.get(verdict, "revise")


def groups(*advantages):
    """An audit of groups A, B ... with these values and limits of the advantage."""
    rows = (row(*item, name="advantage") for item in advantages)
    return replace(
        made(row(0.55, 0.5, 0.65)),
        slices=tuple(
            Slice(SliceKind.GROUP, label, 50, 60, 0.95, len(advantages), (item,))
            for label, item in zip("ABCDEFG", rows, strict=False)
        ),
    )


@pytest.mark.parametrize(
    ("advantages", "outcome", "said"),
    [
        ([(0.1, 0.0, 0.2), (0.05, 0.0, 0.19)], RELEASE, "Passes your policy (1 of 1)."),
        ([(0.1, 0.0, 0.15), (0.4, 0.25, 0.5)], REFUSE, "of group “B” at least 0.25 is above your limit 0.2."),
        (
            [(0.1, 0.0, 0.15), (0.15, 0.1, 0.21)],
            REVISE,
            "of group “B” could be 0.21, beyond your limit 0.2",
        ),
        # Whichever group reaches further: another one that surely exceeds the limit decides.
        ([(0.3, 0.1, 0.9), (0.4, 0.25, 0.5)], REFUSE, "of group “B” at least 0.25 is above your limit 0.2."),
        ([(0.1, 0.0, 0.15), (None, None, None)], REVISE, "Group “B” has too few records (50 and 60)"),
        (
            [(0.4, 0.25, 0.5), (None, None, None)],
            REFUSE,
            "of group “A” at least 0.25 is above your limit 0.2.",
        ),
        ([], REVISE, "No record of this audit has a class or a group (no group above 0.2)."),
    ],
)
def test_no_group_above_a_limit(advantages, outcome, said):
    """The largest upper limit decides; a group without one, or no group, leaves it open unless another exceeds it."""
    code, sentence = decided(groups(*advantages), "no group above 0.2")
    assert code == outcome
    assert said in sentence


def test_a_policy_and_the_opposite_gate_agree(rng):
    """One evaluator: they differ where an end of an interval meets a limit in it, which a policy leaves open and no gate."""
    symbols, ends, seen = list(OPPOSITE), ("", ".value", ".lower", ".upper"), set()
    for _ in range(2000):
        low, value, high = np.round(np.sort(rng.random(3)), 1)
        symbol, end, bound = rng.choice(symbols), rng.choice(ends), np.round(rng.random(), 1)
        name = "auc" if symbol in ("<", "<=") else "bayes_security"
        result = made(row(float(value), float(low), float(high), name=name))
        (gate,) = check_gates(result, f"{name}{end} {OPPOSITE[symbol]} {bound}")
        (code, _), _ = decided(result, f"{name}{end} {symbol} {bound}")
        inside = {
            "<": low < bound <= high,
            "<=": low <= bound < high,
            ">": low <= bound < high,
            ">=": low < bound <= high,
        }
        outer = {"<": ".upper", "<=": ".upper", ">": ".lower", ">=": ".lower"}.get(symbol)
        undecided = end == outer and inside[symbol]
        assert code == (3 if undecided else int(gate.code))
        seen.add((code, undecided))
    assert seen == {(0, False), (1, False), (3, True)}


# --- Limits in a result ---------------------------------------------------------------------------


def test_gates_are_no_policy_and_names_are_whole():
    """A condition that must hold is refused among those that must not, and a name that begins like another is unknown."""
    result = made(row(0.55, 0.5, 0.65))
    with pytest.raises(
        InputError, match=r"gates must be conditions that must not hold, got the policy 'auc < 0\.6'"
    ):
        result.with_policy(gates=parse_policy("auc < 0.6"))
    with pytest.raises(InputError, match=r"names 'group\.aucs', which no audit has"):
        result.with_policy("group.aucs < 0.6")
    with pytest.raises(InputError, match="policy must have at most 100 conditions, got 101"):
        result.with_policy("auc < 1;" * 101)


@pytest.mark.parametrize(
    "stored",
    [
        {"policy": "auc > 0.5"},
        {"policy": "be good"},
        {"policy": 3},
        {"gates": ["auc"]},
        {"gates": ["auk > 1"]},
        {"gates": 7},
    ],
)
def test_limits_that_cannot_be_read_stop_a_release(stored, tmp_path):
    """A result that others wrote may hold any text as its limits: it is not released, here or from its file."""
    result = replace(made(row(0.55, 0.5, 0.65)), data={**stored, "disclosure": "public"})
    result.to_json(tmp_path / "r.json")
    for item in (result, auditor.read_result(tmp_path / "r.json")):
        assert item.decision == "revise"
        assert "? Revise" in str(item)
        assert "Revise" in render([item])
    assert run("report", tmp_path / "r.json", "--quiet") == 3


def test_a_stored_policy_shows_again_and_an_altered_one_is_noticed(table, tmp_path, capsys):
    """A result keeps its limits and its decision in its file; other limits replace them; an edit of them stops a release."""
    first, again = tmp_path / "r.json", tmp_path / "again.json"
    policy = "auc.upper < 0.6; claim not refuted"
    assert run("audit", table, "--policy", policy, "--fail-if", "auc > 0.9", "--json", first) == 1
    said = capsys.readouterr().out.splitlines()[0]
    assert said.startswith("✕ Do not release. AUC at least 0.9")
    assert run("report", first, "--json", again) == 1
    assert capsys.readouterr().out.splitlines()[0] == said
    assert again.read_bytes() == first.read_bytes()
    assert auditor.read_result(first).decision == "refuse"
    assert run("report", first, "--policy", "auc < 1", "--fail-if", "auc > 1", "--quiet") == 0
    raw = json.loads(first.read_text(encoding="utf-8"))
    raw["data"] |= {"policy": "auc < 1", "gates": ["auc > 1"]}
    first.write_text(json.dumps(raw), encoding="utf-8")
    assert run("report", first, "--quiet") == 3


# --- The command line -----------------------------------------------------------------------------

CLAIM = ("--claim-epsilon", "0.5", "--claim-delta", "1e-5")


@pytest.mark.parametrize(
    ("policy", "arguments", "code", "word"),
    [
        ("auc.upper <= 1", (), 0, "✓ Release"),
        (
            "auc < 1; no group above 1; claim not refuted",
            ("--split", "random", *CLAIM),
            1,
            "✕ Do not release",
        ),
        ("auc < 0.9", (), 1, "✕ Do not release"),
        ("no group above 1", (), 3, "? Revise"),
        ("claim not refuted", CLAIM, 3, "? Revise"),
        ("auc <", (), 2, "policy must have conditions"),
        ("auk < 1", (), 2, "did you mean"),
        ("advantage.upper > 0.1", (), 2, "write 'advantage.upper < 0.1'"),
    ],
)
@pytest.mark.parametrize("file", [None, "pyproject.toml", "auditor.toml"])
def test_a_policy_sets_the_exit_code(tmp_path, monkeypatch, rng, capsys, policy, arguments, code, word, file):
    """The command line and a file, for all commands or for one, give the same decision and exit code."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    leaking(tmp_path / "losses.csv", rng)
    line = ["audit", "losses.csv", *arguments]
    if file is None:
        line += ["--policy", policy]
    else:
        head = "[tool.auditor]\n" if file == "pyproject.toml" else ""
        (tmp_path / file).write_text(f"{head}policy = '{policy}'\n", encoding="utf-8")
    if code == 2:
        assert word in refused(capsys, *line)
        return
    assert run(*line) == code
    assert capsys.readouterr().out.startswith(word)
    if file is not None:
        assert run(*line, "--policy", "auc <= 1", "--quiet") == (code if arguments else 0)


def test_a_result_without_a_limit_says_where_one_is_set(rng):
    """The hint names the file, the option and the argument of Python, each of which sets a limit."""
    result = made(row(0.55, 0.5, 0.65, name="advantage"))
    said = view_of(result).decision.sentence
    assert said == (
        'For a decision, set a limit: policy = "advantage.upper < 0.1" in [tool.auditor] of pyproject.toml, --policy, or in'
        " Python auditor.audit(..., policy=...)."
    )
    runs = auditor.audit_runs(auditor.Losses(rng.normal(-1, 1, 200), rng.normal(0, 1, 200)), delta=0.1)
    assert "in Python result.with_policy(...)" in view_of(runs).decision.sentence


def test_a_test_asserts_a_policy():
    """`assert_gates` stops at a condition that does not hold, with the words of its author."""
    result = made(row(0.55, 0.5, 0.65))
    auditor.assert_gates(result, policy="auc.upper < 0.7")
    with pytest.raises(AssertionError, match=r"auc\.upper < 0\.6: .* contains 0\.6: policy .* does not pass"):
        auditor.assert_gates(result, policy="auc.upper < 0.6")
    assert math.isnan(outcomes(replace(result, data={"policy": "?"}))[0].gate.bound)


def test_the_policy_of_a_project_is_for_audits_of_models(tmp_path, monkeypatch, rng):
    """It decides on audits and on a folder of them, stops no promise, and leaves what another kind lacks undecided."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "auditor.toml").write_text('policy = "advantage.upper < 0.1"', encoding="utf-8")
    (tmp_path / "in").mkdir()
    losses = auditor.Losses(rng.normal(-2, 1, 200), rng.normal(0, 1, 200))
    auditor.audit(losses, delta=1e-5).to_json("in/audit.json")
    auditor.audit_runs(losses, delta=1e-5).to_json("in/runs.json")
    assert run("report", "in/audit.json") == 1
    assert run("report", "in/audit.json", "--verify") == 0
    assert run("report", "in/audit.json", "--verify", "--policy", "auc < 1") == 2
    assert run("report", "in/audit.json", "--set", "severity=0.1,0.3") == 2
    assert run("report", "in/audit.json", "--set", "severity=0.1,0.3,0.6") == 1
    assert run("report", "in/runs.json") == 3
    assert run("report", "in", "--html", "site") == 0
    index = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert index.count("Do not release</span><small>") == 1
    training = "--noise-multiplier 1 --sampling-rate 0.01 --steps 10 --delta 1e-5 --quiet"
    assert run("claim", *training.split()) == 0
