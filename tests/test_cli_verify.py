"""`auditor report --verify`, and what is declared of a release on the command line and in files."""

import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from command_line import answer, leaking, refused, run

import auditor
from auditor.results.document import content_hash


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The current directory, with a table of losses that leak."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    leaking(tmp_path / "losses.csv", np.random.default_rng(0))
    return tmp_path


def text_of(name):
    """Return the JSON of a file in the current directory."""
    return Path(name).read_text(encoding="utf-8")


def audited(*arguments):
    """Audit the table into r.json; return its JSON."""
    assert run("audit", "losses.csv", "--json", "r.json", "--quiet", *arguments) in (0, 1, 3)
    return json.loads(text_of("r.json"))


def save(raw, name="r.json"):
    """Write JSON, or text as it is."""
    Path(name).write_text(raw if isinstance(raw, str) else json.dumps(raw), encoding="utf-8")


def said(capsys, *arguments, code):
    """Return the output of verify, as lines of both streams, with the expected exit code."""
    capsys.readouterr()
    assert run("report", "r.json", "--verify", *arguments) == code
    printed = capsys.readouterr()
    return (printed.out + printed.err).splitlines()


CHOICES = [
    (),
    ("--split", "random", "--claim-epsilon", "2", "--claim-delta", "1e-5", "--seed", "3"),
    ("--set", "coverage=census", "--confidence", "0.9", "--set", "threshold=melded", "--delta", "1e-3"),
    ("--split", "bernoulli:0.5", "--set", "claim-mu=1", "--set", "looks=4"),
    ("--split", "random", "--noise-multiplier", "1", "--sampling-rate", "0.1", "--steps", "10", "--set", "one-run-test=f-dp"),
    ("--set", "coverage=subset:900", "--set", "threshold=clopper-pearson", "--set", "persons=each"),
]  # fmt: skip


@pytest.mark.parametrize("arguments", CHOICES, ids=[" ".join(item) or "defaults" for item in CHOICES])
def test_an_untouched_result_is_verified_with_its_losses(capsys, arguments):
    """The settings in the result reproduce its numbers, for any choices and claims."""
    audited(*arguments)
    lines = said(capsys, "--losses", "losses.csv", code=0)
    assert [line[:2] for line in lines] == ["✓ "] * 3
    assert lines[2].endswith("computed again and agree to 1e-9.")
    assert said(capsys, "--losses", "losses.csv", "--quiet", code=0) == []


def test_a_result_that_python_made_is_verified(capsys):
    """Choices of Python only, such as a threshold, rates and a curve of points, are stored too."""
    losses = auditor.collectors.read_losses("losses.csv")
    auditor.audit(
        losses,
        threshold=auditor.FixedThreshold(-1.5),
        fpr=iter((0.2, 0.05)),
        claim=auditor.StatedClaim.from_points([(1.0, 1e-3), (2.0, 1e-6)]),
        mixture=auditor.Mixture(2),
        seed=10**30,
        delta=Decimal("1e-3"),
    ).to_json("r.json")
    assert len(said(capsys, "--losses", "losses.csv", code=0)) == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw["data"].update(model="another"),
        lambda raw: raw["estimates"][0].update(value=0.0),
        lambda raw: raw["provenance"].update(seed=1),
        lambda raw: raw["checks"].pop(),
        lambda raw: raw.update(more=1),
        lambda raw: raw["provenance"].update(content_sha256="0" * 64),
        lambda raw: raw["provenance"].pop("content_sha256"),
        lambda raw: raw["provenance"].update(content_sha256=None),
        lambda raw: raw["provenance"].update(content_sha256={"a": "\x1b[31m\n::error::x"}),
    ],
)
def test_any_change_is_detected(capsys, change):
    """After any change, addition or removal, of the hash too, the hash does not match: exit code 1."""
    raw = audited()
    change(raw)
    save(raw)
    (line,) = said(capsys, code=1)
    assert line.startswith("✕ SHA-256 of the content: ")
    assert "but the result has" in line
    assert "\x1b" not in line


def test_blanks_and_the_order_of_keys_are_no_change(capsys):
    """The hash is of the content: a file that another program wrote again is the same result."""
    raw = audited()
    save(json.dumps(dict(reversed(raw.items())), indent=7))
    assert len(said(capsys, code=0)) == 1


def test_each_different_number_is_reported(capsys):
    """A number that was changed is named with both values, although the hash was computed again; and a verdict too."""
    raw = audited("--split", "random", "--claim-epsilon", "0.1", "--claim-delta", "1e-5")
    assert raw["verdict"] == "refuted"
    place = next(i for i, item in enumerate(raw["estimates"]) if item["name"] == "auc")
    true = raw["estimates"][place]["value"]
    raw["estimates"][place]["value"] = 0.5
    raw["verdict"] = "not_refuted"
    for end in ("value", "lower"):  # of a bound, which are one number
        raw["estimates"][0][end] *= 1 + 1e-12
    raw["provenance"]["content_sha256"] = content_hash(raw)
    save(raw)
    lines = said(capsys, "--losses", "losses.csv", code=1)
    assert lines[0].startswith("✓ SHA-256 of the content")
    assert lines[2] == f"✕ Number value of auc (estimate {place + 1}): 0.5 in the result, {true} again."
    assert lines[3] == "✕ Number verdict: not_refuted in the result, refuted again."
    assert lines[4].endswith(" differ.")


def test_other_losses_are_not_taken_for_those(capsys, folder):
    """Losses with another hash are reported, and not audited."""
    audited()
    leaking(folder / "others.csv", np.random.default_rng(1))
    lines = said(capsys, "--losses", "others.csv", code=1)
    assert [line[:25] for line in lines] == ["✓ SHA-256 of the content:", "✕ SHA-256 of the losses: "]


def test_missing_data_is_not_verified(capsys):
    """Without settings the exit code is 3; a file that is no result is refused."""
    save("[]")
    assert "is not an audit result: it has no schema_version." in refused(
        capsys, "report", "r.json", "--verify"
    )
    raw = audited()
    del raw["provenance"]["choices"]
    raw["provenance"]["content_sha256"] = content_hash(raw)
    save(raw)
    lines = said(capsys, "--losses", "losses.csv", code=3)
    assert any(line.startswith("? Numbers: not computed again") for line in lines)


def test_results_of_runs_are_verified_by_their_hash(capsys):
    """The hash is in every kind of result; the losses of one model can be audited again, and those of runs cannot."""
    rng = np.random.default_rng(0)
    runs = auditor.Losses(member=rng.normal(-3, 1, 50), nonmember=rng.normal(0, 1, 50))
    auditor.audit_runs(runs, delta=1e-5).to_json("r.json")
    assert len(said(capsys, code=0)) == 1


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"claim": {"choice": "Popen", "args": "ls"}}, "stored choice must be one of "),
        ({"split": {"choice": "RandomSplit", "more": 1}}, "stored choice cannot be made again"),
        ({"claim": {"choice": "Census"}}, "claim must be"),
        ({"delta": [1]}, "must be a number"),
        ({"fpr": 3}, "fpr must be a sequence of rates"),
        ({"coverage": {"choice": ["Census"]}}, "stored choice must be one of "),
    ],
)
def test_settings_of_somebody_else_build_choices_and_nothing_more(capsys, choices, words):
    """Stored settings that are no valid choices of an audit are refused."""
    raw = audited()
    raw["provenance"]["choices"].update(choices)
    save(raw)
    capsys.readouterr()
    assert run("report", "r.json", "--verify", "--losses", "losses.csv") == 2
    assert words in capsys.readouterr().err


# --- What is declared of the release --------------------------------------------------------------

STATED = {"release": "open weights", "query-limits": "none", "next_audit": "2027-01-31"}


def declared(raw):
    """Return the declared context of the result."""
    return {name: value for name, value in raw["data"]["context"].items() if value is not None}


EXPECTED = {"release": "open weights", "query_limits": "none", "next_audit": "2027-01-31"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.toml", 'release = "open weights"\nquery-limits = "none"\nnext_audit = 2027-01-31\n'),
        ("c.json", json.dumps(STATED)),
    ],
)
def test_a_context_is_read_from_a_file(capsys, name, text):
    """TOML and JSON say the same; the card is written beside the result."""
    save(text, name)
    arguments = ("--set", f"context={name}", "--set", "model-card=card.md")
    assert declared(answer(capsys, "audit", "losses.csv", *arguments)) == EXPECTED
    assert "- Release: open weights\n" in text_of("card.md")


def test_a_context_stands_in_the_configuration(capsys):
    """[audit.context] says it too, or names a file beside it; the command line wins, and the result says what was set."""
    save(
        '[audit.context]\nrelease = "open weights"\nquery-limits = "none"\nnext_audit = 2027-01-31\n',
        "auditor.toml",
    )
    raw = answer(capsys, "audit", "losses.csv")
    assert declared(raw) == EXPECTED
    assert raw["provenance"]["config"]["settings"]["context"]["next_audit"] == "2027-01-31"
    save('release = "internal"', "c.toml")
    assert declared(answer(capsys, "audit", "losses.csv", "--set", "context=c.toml")) == {
        "release": "internal"
    }
    save('[audit]\ncontext = "c.toml"\n', "auditor.toml")
    assert declared(answer(capsys, "audit", "losses.csv")) == {"release": "internal"}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("c.toml", "release = 3", "context file 'c.toml': release of the context must be a text that is not empty, got 3."),
        ("c.toml", "relaese = 'API'", "context file 'c.toml': the key must be one of 'release', "),
        ("c.toml", "relaese = 'API'", "did you mean 'release'?"),
        ("c.toml", "release = ", "context file 'c.toml' is not valid TOML"),
        ("c.toml", "query-limits = 'a'\nquery_limits = 'b'", "states a field twice"),
        ("c.toml", "next_audit = 'soon'", "must be a date such as 2027-01-31"),
        ("c.json", "[1]", "context file 'c.json' must be a table of texts, got [1]."),
        ("c.json", '{"release": ["a\\n::error::b"]}', "must be a text"),
        ("c.json", '{"release": NaN}', "is not valid JSON"),
        ("c.json", '{"owner": "%s"}' % ("x" * 2000), "owner of the context must have at most 1,000 characters"),
        ("auditor.toml", "[audit.context]\nrelease = true", "table [audit.context]: release of the context must be a text"),
        ("auditor.toml", "[audit]\ncontext = true", "the key 'context' in table [audit] must be one value"),
    ],
)  # fmt: skip
def test_a_bad_context_is_refused_before_any_work(capsys, name, text, words):
    """A wrong type, an unknown or doubled field and a file that cannot be read are one sentence, and nothing is written."""
    save(text, name)
    named = () if name == "auditor.toml" else ("--set", f"context={name}")
    assert words in refused(capsys, "audit", "losses.csv", "--json", "r.json", *named)
    assert "Error" not in refused(capsys, "audit", "losses.csv", "--set", "context=nowhere.toml")


def test_a_stored_result_has_the_card_too():
    """`auditor report` writes it from a stored result."""
    audited()
    assert run("report", "r.json", "--set", "model-card=card.md", "--quiet") == 0
    result = auditor.read_result("r.json")
    assert text_of("card.md") == result.to_model_card()


# --- What was altered stays marked, through whatever door it comes ---------------------------------


def refuted_claim():
    """An audit that refutes a claim, in r.json."""
    return audited("--split", "random", "--claim-epsilon", "0.1", "--claim-delta", "1e-5")


def altered(raw, name="altered.json", **changes):
    """Write the result with another model name and other changes, and its original hash."""
    save({**raw, "data": {**raw["data"], "model": "Release 7"}, **changes}, name)
    return name


def test_an_altered_result_passes_no_door_unmarked(capsys):
    """Page, summary, card, JUnit, SARIF and terminal say so; its verdict is gone, and every gate of it is undecided."""
    name = altered(refuted_claim(), verdict="not_refuted")
    outputs = {"--html": "r.html", "--markdown": "r.md", "--junit": "r.xml", "--sarif": "r.sarif"}
    typed = [*(word for pair in outputs.items() for word in pair), "--set", "model-card=card.md"]
    outputs["card"] = "card.md"
    gates = (
        "--fail-if",
        "auc > 0.999",
        "--fail-if",
        "checks.direction == fail",
        "--fail-if",
        "verdict == refuted",
    )
    capsys.readouterr()
    assert run("report", name, *typed, *gates, "--quiet", "--set", "allow-unjudged") == 3
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert all(line.startswith("The result was altered since it was written") for line in lines)
    for path in outputs.values():
        assert "altered since it was written" in text_of(path).lower()
    assert run("report", name) == 3
    assert "Altered since it was written" in capsys.readouterr().out
    result = auditor.read_result(name)
    assert (result.altered, result.verdict) == (True, "not_evaluable")
    assert {item.verdict for item in result.comparisons} == {None, "not_evaluable"}
    for output in (str(result), result._repr_html_(), repr(result) + str(result)):
        assert "Altered since it was written" in output
    assert {item.code.name for item in auditor.check_gates(result, ["auc > 0", "auc > 1"])} == {
        "NOT_EVALUABLE"
    }
    with pytest.raises(AssertionError, match="altered since it was written"):
        auditor.assert_gates(result, allow_unjudged=True)


def test_a_result_that_is_written_again_keeps_the_mark(capsys):
    """An altered result that `report --json` or Python writes has a new hash and keeps the mark, which verify reports."""
    name = altered(refuted_claim())
    assert run("report", name, "--json", "r.json", "--quiet") == 3
    lines = said(capsys, code=1)
    assert lines[0].startswith("✓ SHA-256 of the content")
    assert lines[1:] == ["✕ The result was altered after it was written, before its present hash."]
    auditor.read_result("r.json").to_json("r.json")
    assert run("report", "r.json", "--quiet") == 3
    raw = json.loads(text_of("r.json"))
    raw["checks"] = raw["checks"][1:]  # without the mark the new hash no longer fits
    save(raw)
    assert run("report", "r.json", "--quiet") == 3
    assert run("report", "r.json", "--verify", "--quiet") == 1


def test_an_altered_result_is_not_compared(capsys, folder):
    """A comparison with an altered result shows no change: --fail-if-worse ends with 3, and its page and JSON name it."""
    raw = audited()
    leaking(folder / "losses.csv", np.random.default_rng(1))
    audited()
    name = altered(raw)
    assert (
        run("compare", name, "r.json", "--fail-if-worse", "--quiet", "--html", "c.html", "--json", "c.json")
        == 3
    )
    assert "altered since it was written" in capsys.readouterr().err
    assert "altered since it was written" in text_of("c.html")
    assert "altered since it was written" in text_of("c.json")


def test_models_of_which_one_result_is_altered_judge_nothing(capsys, folder):
    """The audit of several models has the worst of their checks: with an altered result among them no verdict is reached."""
    names = []
    for seed in range(3):
        leaking(folder / "losses.csv", np.random.default_rng(seed))
        raw = audited("--split", "random", "--disclosure", "insiders")
        names.append(altered(raw, name=f"{seed}.json") if seed == 1 else f"{seed}.json")
        if seed != 1:
            save(raw, f"{seed}.json")
    claim = ("--claim-epsilon", "0.1", "--claim-delta", "1e-5")
    result = answer(capsys, "instances", *names, "--split", "random", *claim, code=3)
    assert result["verdict"] == "not_evaluable"
    assert "altered_since_it_was_written" in [item["name"] for item in result["checks"]]


def others():
    """A result of each other kind."""
    rng = np.random.default_rng(0)
    runs = auditor.Losses(member=rng.normal(-3, 1, 50), nonmember=rng.normal(0, 1, 50))
    models = [auditor.Losses(member=rng.random(60), nonmember=rng.random(60)) for _ in range(2)]
    halves = np.full((200, 2), 0.5)
    return {
        "runs": auditor.audit_runs(runs, delta=1e-5),
        "instances": auditor.audit_instances(models, delta=1e-5),
        "labels": auditor.audit_labels(np.asarray, (halves, rng.integers(0, 2, 200)), probabilities=halves),
    }


@pytest.mark.parametrize("kind", ["runs", "instances", "labels", "claim"])
def test_each_kind_of_result_is_marked_where_it_was_altered(kind):
    """Runs, models, labels and promises alike: the page says it, the exit code is 3, and written again the mark is there."""
    if kind == "claim":
        typed = ("--noise-multiplier", 1, "--sampling-rate", 0.01, "--steps", 10, "--delta", 1e-5)
        assert run("claim", *typed, "--json", "r.json", "--quiet") == 0
    else:
        others()[kind].to_json("r.json")
    assert run("report", "r.json", "--quiet") == 0
    raw = json.loads(text_of("r.json"))
    raw["data"]["delta"] = 0.5
    save(raw)
    for _ in range(2):
        assert run("report", "r.json", "--quiet", "--html", "r.html", "--json", "again.json") == 3
        assert "Altered since it was written" in text_of("r.html")
        save(json.loads(text_of("again.json")))


@pytest.mark.parametrize("kind", ["audit", "runs"])
def test_a_bound_whose_value_is_not_its_lower_end_is_refused(kind, capsys):
    """A certified bound is one number, written twice: where the two differ the result is damaged, whatever its hash."""
    raw = audited() if kind == "audit" else json.loads(others()["runs"].to_json())
    row = next(item for item in raw["estimates"] if item["name"] == "epsilon_bound.clopper_pearson")
    row["value"] = row["lower"] / 2
    raw["provenance"]["content_sha256"] = content_hash(raw)
    save(raw)
    assert "is damaged: epsilon_bound.clopper_pearson must equal its lower end" in refused(
        capsys, "report", "r.json"
    )
