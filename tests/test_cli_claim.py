"""`auditor claim`: the table, the JSON, the words, and what it refuses."""

import json
from xml.etree import ElementTree as ET

import pytest
from command_line import answer, run

import auditor

RUN = ("--noise-multiplier", "1", "--sampling-rate", "0.01", "--steps", "1000")
CLAIM = ("claim", *RUN, "--delta", "1e-5")
QUANTITIES = ["epsilon", "mu", "advantage", "bayes_security", "success_rate"]
RATES = ["tpr_at_fpr.0.1", "tpr_at_fpr.0.01", "tpr_at_fpr.0.001"]


@pytest.fixture(scope="module")
def description(tmp_path_factory):
    """The JSON of one description, with every extra."""
    path = tmp_path_factory.mktemp("claim") / "c.json"
    extras = ("--compositions", "--json", path, "--quiet")
    assert run(*CLAIM, *extras) == 0
    return json.loads(path.read_text())


def test_every_quantity_for_both_neighbours(description):
    """Epsilon, mu, advantage, Bayes security, success rate and three TPRs, each with a method and a status."""
    for adjacency in ("add-remove", "replace-one"):
        rows = [row for row in description["claims"] if row["adjacency"] == adjacency]
        assert {row["metric"] for row in rows} == {*QUANTITIES, *RATES}
        assert all(row["method"] and row["status"] in {"proven", "approximation"} for row in rows)
        assert all(row["proven"] == (row["status"] == "proven") for row in rows)


def test_extras(description):
    """The composition theorems stand after the overview."""
    methods = [row["method"] for row in description["claims"] if row["metric"] == "epsilon"]
    assert any("basic composition" in method for method in methods)
    assert any("advanced composition" in method for method in methods)


def test_the_table(capsys):
    """The table shows each quantity once for each kind of neighbours, rounded so that bounds stay bounds, and words."""
    assert run(*CLAIM) == 0
    text = capsys.readouterr().out
    for words in ("Epsilon at delta 1e-5", "TPR at 0.1% FPR", "proven", "0.2644", "approximation", "0.7356"):
        assert words in text
    assert text.count("Advantage") == 2
    assert run(*CLAIM, "--every-method") == 0
    assert capsys.readouterr().out.count("Advantage") > 4


def test_batches_and_epochs(capsys):
    """A rate is batch size over records; an epoch has as many steps as a loader makes batches: 60,000 / 256 = 234.4, so 235."""
    described = ("--noise-multiplier", "1.1", "--sampling-rate", "256/60000", "--set", "epochs=10")
    assert run("claim", *described, "--delta", "1e-5") == 0
    assert "2,350 steps" in capsys.readouterr().out
    # Without the two numbers only their quotient is known.
    assert run("claim", *described[:3], "0.01", "--set", "epochs=2.345", "--delta", "1e-5") == 0
    assert "235 steps" in capsys.readouterr().out


def test_steps_from_a_table(tmp_path, capsys):
    """A schedule of two kinds of steps gives one promise, with ranges of the parameters."""
    path = tmp_path / "steps.csv"
    path.write_text("noise_multiplier,sampling_rate,steps\n1.0,0.01,50\n2.0,0.02,50\n")
    described = answer(capsys, "claim", "--set", f"schedule={path}", "--delta", "1e-5")["description"]
    assert (described["noise_multiplier"], described["steps"]) == (None, 100)
    assert [phase["steps"] for phase in described["phases"]] == [50, 50]


def test_shuffled_batches(capsys):
    """They have the numbers of Poisson sampling, none of them proven."""
    poisson, shuffled = (
        answer(capsys, *CLAIM, "--set", f"sampler={name}") for name in ("poisson", "shuffled")
    )
    assert shuffled["description"]["sampling"] == "shuffled"
    assert [row["value"] for row in shuffled["claims"]] == [row["value"] for row in poisson["claims"]]
    assert not any(row["proven"] for row in shuffled["claims"])
    assert "auditor.theory.shuffled_mu gives the proven bound" in shuffled["claims"][0]["note"]


def test_prior_and_rates(capsys):
    """The names of the rows state the prior and the rates."""
    result = answer(capsys, *CLAIM, "--prior", "0.1", "--fpr", "0.05")
    metrics = {row["metric"] for row in result["claims"]}
    assert {"success_rate_at_prior.0.1", "tpr_at_fpr.0.05"} <= metrics


# One unsampled step with noise 1: mu is 1, and 2 for a replaced record; the advantage is 2 Phi(mu/2) - 1.
STEP = ("claim", "--noise-multiplier", "1", "--sampling-rate", "1", "--steps", "1", "--delta", "1e-5")


@pytest.mark.parametrize(
    ("gate", "code", "words"),
    [
        (
            "mu > 1.5",
            1,
            "mu.replace-one is 2 (promised, proven, about the training algorithm, replace-one), above 1.5",
        ),
        ("mu.add-remove > 1.5", 0, ""),
        ("mu.replace-one.value <= 2", 1, "at most 2: gate 'mu.replace-one.value <= 2' failed"),
        ("advantage > 0.6827", 0, ""),
        ("advantage > 0.6826", 1, "advantage.replace-one is 0.683 (promised"),
        ("bayes_security < 0.3174", 1, "bayes_security.replace-one is 0.317 (promised"),
        ("epsilon.add-remove.lower > 1", 3, "epsilon has no lower end here"),
        ("mu == refuted", 2, "compares 'mu' with a word"),
        ("auc > 1", 2, "names 'auc', which no audit of this kind has. The names are epsilon.add-remove, "),
    ],
)
def test_gates(capsys, gate, code, words):
    """A promised number passes or fails exactly, without a kind of neighbours for both; an unknown name is one error."""
    assert run(*STEP, "--quiet", "--fail-if", gate) == code
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == int(code != 0)


def test_every_output(tmp_path, capsys):
    """Markdown, JUnit and SARIF say what is promised and which gate stopped; a stored claim gives the same page again."""
    paths = {name: tmp_path / f"claim.{name}" for name in ("json", "html", "markdown", "junit", "sarif")}
    outputs = [word for name, path in paths.items() for word in (f"--{name}", path)]
    gate = ("--fail-if", "advantage > 0.6", "--fail-if", "epsilon > 1e9")
    assert run(*STEP, *outputs, *gate) == 1
    assert "✓ epsilon.add-remove is" in capsys.readouterr().out
    text = {name: path.read_text(encoding="utf-8") for name, path in paths.items()}
    assert text["markdown"].startswith(
        "## Privacy claim: DP-SGD with noise multiplier 1, sampling rate 1 and 1 step"
    )
    assert (
        "| Membership advantage | 0.683 | promised, proven | — | the training algorithm (replace-one) |"
        in text["markdown"]
    )
    suite = ET.fromstring(text["junit"])[0]  # noqa: S314 - our own
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["5", "1", "0", "1"]
    assert [item["ruleId"] for item in json.loads(text["sarif"])["runs"][0]["results"]] == ["gate/failed"]
    assert "<h1>DP-SGD with noise multiplier 1" in text["html"]
    again = tmp_path / "again.html"
    assert run("report", paths["json"], "--html", again, *gate) == 1
    assert "replace-one" in capsys.readouterr().out
    assert again.read_text(encoding="utf-8") == text["html"]
    assert run("report", paths["json"], "--verify") == 0
    assert isinstance(auditor.read_result(paths["json"]), auditor.ClaimResult)
    assert auditor.read_result(paths["json"]).to_json() == text["json"]
