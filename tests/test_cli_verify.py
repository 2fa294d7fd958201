"""`auditor verify`, and what is declared of a release on the command line and in files."""

import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from command_line import answer, leaking, refused, run

import auditor


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The current directory, with a table of losses that leak."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    leaking(tmp_path / "losses.csv", np.random.default_rng(0))
    return tmp_path


def text_of(name):
    """What a file of the current directory holds."""
    return Path(name).read_text(encoding="utf-8")


def audited(*arguments):
    """Audit the table into r.json; return its JSON."""
    assert run("audit", "losses.csv", "--json", "r.json", "--quiet", *arguments) in (0, 1)
    return json.loads(text_of("r.json"))


def save(raw, name="r.json"):
    """Write JSON, or text as it is."""
    Path(name).write_text(raw if isinstance(raw, str) else json.dumps(raw), encoding="utf-8")


def said(capsys, *arguments, code):
    """What verify prints, lines of both streams, with the exit code that is expected."""
    capsys.readouterr()
    assert run("verify", "r.json", *arguments) == code
    printed = capsys.readouterr()
    return (printed.out + printed.err).splitlines()


CHOICES = [
    (),
    ("--split", "random", "--claim-epsilon", "2", "--claim-delta", "1e-5", "--seed", "3"),
    ("--members", "census", "--confidence", "0.9", "--melded", "--delta", "1e-3"),
    ("--split", "bernoulli", "--inclusion", "0.5", "--claim-mu", "1", "--looks", "4"),
    ("--split", "random", "--noise-multiplier", "1", "--sampling-rate", "0.1", "--steps", "10", "--one-run-test", "steinke"),
    ("--members", "subset", "--training-size", "900", "--clopper-pearson", "--persons", "each"),
]  # fmt: skip


@pytest.mark.parametrize("arguments", CHOICES, ids=[" ".join(item) or "defaults" for item in CHOICES])
def test_an_untouched_result_is_verified_with_its_losses(capsys, arguments):
    """Whatever was chosen and claimed, the settings in the result give its numbers again."""
    audited(*arguments)
    lines = said(capsys, "--losses", "losses.csv", code=0)
    assert [line[:2] for line in lines] == ["✓ "] * 3
    assert lines[2].endswith("computed again, and agree to 1e-9.")
    assert said(capsys, "--losses", "losses.csv", "--quiet", code=0) == []


def test_a_result_that_python_made_is_verified(capsys):
    """Choices that only Python has, such as a threshold, rates and a curve of points, are kept too."""
    losses = auditor.collectors.read_losses("losses.csv")
    auditor.audit(
        losses,
        threshold=auditor.FixedThreshold(-1.5, interval=auditor.Katz()),
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
        lambda raw: raw["provenance"].update(content_sha256={"a": "\x1b[31m\n::error::x"}),
    ],
)
def test_any_change_is_found(capsys, change):
    """Whatever was changed, added, taken away or put in place of the hash, the hash does not match: exit code 1."""
    raw = audited()
    change(raw)
    save(raw)
    (line,) = said(capsys, code=1)
    assert line.startswith("✕ SHA-256 of the content: ")
    assert "but the result keeps" in line
    assert "\x1b" not in line


def test_blanks_and_the_order_of_keys_are_no_change(capsys):
    """The hash is of the content: a file that another program wrote again is the same result."""
    raw = audited()
    save(json.dumps(dict(reversed(raw.items())), indent=7))
    assert len(said(capsys, code=0)) == 1


def test_each_number_that_differs_is_told(capsys):
    """A number that was changed is named with both values, though the hash was made anew; and a verdict too."""
    raw = audited("--split", "random", "--claim-epsilon", "0.1", "--claim-delta", "1e-5")
    assert raw["verdict"] == "refuted"
    place = next(i for i, item in enumerate(raw["estimates"]) if item["name"] == "auc")
    true = raw["estimates"][place]["value"]
    raw["estimates"][place]["value"] = 0.5
    raw["verdict"] = "not_refuted"
    raw["estimates"][0]["value"] *= 1 + 1e-12
    save(raw)
    auditor.read_result("r.json").to_json("r.json")
    lines = said(capsys, "--losses", "losses.csv", code=1)
    assert lines[0].startswith("✓ SHA-256 of the content")
    assert lines[2] == f"✕ Number value of auc (estimate {place + 1}): 0.5 in the result, {true} again."
    assert lines[3] == "✕ Number verdict: not_refuted in the result, refuted again."
    assert lines[4].endswith(" differ.")


def test_other_losses_are_not_taken_for_those(capsys, folder):
    """Losses with another hash are told, and nothing is computed from them."""
    audited()
    leaking(folder / "others.csv", np.random.default_rng(1))
    lines = said(capsys, "--losses", "others.csv", code=1)
    assert [line[:25] for line in lines] == ["✓ SHA-256 of the content:", "✕ SHA-256 of the losses: "]


def test_what_is_not_kept_is_not_verified(capsys):
    """An older release kept no hash and no settings: neither yes nor no, exit code 3; what is no result is refused."""
    save("[]")
    assert "is not an audit result: it has no schema_version." in refused(capsys, "verify", "r.json")
    raw = audited()
    del raw["provenance"]["content_sha256"], raw["provenance"]["choices"]
    save(raw)
    lines = said(capsys, "--losses", "losses.csv", code=3)
    assert "? SHA-256 of the content: no hash kept in this result." in lines
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
        ({"members": {"choice": ["Census"]}}, "stored choice must be one of "),
    ],
)
def test_settings_of_somebody_else_build_choices_and_nothing_more(capsys, choices, words):
    """What a foreign result keeps as its settings is refused where it is no choice of an audit."""
    raw = audited()
    raw["provenance"]["choices"].update(choices)
    save(raw)
    capsys.readouterr()
    assert run("verify", "r.json", "--losses", "losses.csv") == 2
    assert words in capsys.readouterr().err


# --- What is declared of the release --------------------------------------------------------------

STATED = {"release": "open weights", "query-limits": "none", "next_audit": "2027-01-31"}


def declared(raw):
    """What the result says was declared."""
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
    """TOML and JSON say the same; the cards are written beside the result."""
    save(text, name)
    arguments = ("--context", name, "--cyclonedx", "bom.json", "--model-card", "card.md")
    assert declared(answer(capsys, "audit", "losses.csv", *arguments)) == EXPECTED
    assert json.loads(text_of("bom.json"))["specVersion"] == "1.6"
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
    assert declared(answer(capsys, "audit", "losses.csv", "--context", "c.toml")) == {"release": "internal"}
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
    named = () if name == "auditor.toml" else ("--context", name)
    assert words in refused(capsys, "audit", "losses.csv", "--json", "r.json", *named)
    assert "Error" not in refused(capsys, "audit", "losses.csv", "--context", "nowhere.toml")


def test_a_card_replaces_no_input(capsys):
    """The file of the context is read, so that no output may take its place."""
    save("release = 'API'", "c.toml")
    words = refused(capsys, "audit", "losses.csv", "--context", "c.toml", "--cyclonedx", "c.toml")
    assert "is a file that this command reads" in words


def test_a_stored_result_has_the_cards_too():
    """`auditor report` writes them from a stored result."""
    audited()
    assert run("report", "r.json", "--cyclonedx", "bom.json", "--model-card", "card.md", "--quiet") == 0
    result = auditor.read_result("r.json")
    assert (text_of("bom.json"), text_of("card.md")) == (result.to_cyclonedx(), result.to_model_card())
