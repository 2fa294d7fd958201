"""The pages of audits of a training algorithm, by many runs and by several models, and of what a training promises."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from command_line import leaking, run
from safety.formats import Markup, html as safe

import auditor
from auditor import DPSGD, Losses, RandomSplit, Sequential, StatedClaim
from auditor.core import Status
from auditor.report import texts


def made(rng, *, runs=150, gap=2.5):
    """Scores of so many runs of each world."""
    return Losses(member=rng.normal(-gap, 1, runs), nonmember=rng.normal(0, 1, runs))


@pytest.fixture
def stopped(rng):
    """A sequential audit that refutes a DP-SGD claim."""
    return auditor.audit_runs(made(rng), delta=1e-5, claim=DPSGD(1.0, 1.0, 1), test=Sequential())


@pytest.fixture
def models(rng):
    """An audit of six models that refutes a claim."""
    found = [made(rng, runs=300) for _ in range(6)]
    return auditor.audit_instances(found, delta=1e-5, split=RandomSplit(), claim=StatedClaim(0.2, 1e-5))


def told(page):
    """The words of a page, without its style and its drawings, with single blanks."""
    return Markup(re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL)).text


def curves(result):
    """The curves of a result by their names."""
    return {curve.name: curve for curve in result.curves}


# --- What the results keep -------------------------------------------------------------------------


def test_the_evidence_is_kept_as_it_grew(stopped):
    """A point for each pair; the claim is refuted at the first pair after which the evidence is 20."""
    found = stopped.estimates[0].details["claimed_curve"]
    logs, at = found["growth"]["log_evidence"], found["refuted_at_pair"]
    assert found["growth"]["pairs"] == list(range(1, 151))
    assert logs[at - 1] >= math.log(20) > max(logs[: at - 1])
    assert math.exp(logs[-1]) == pytest.approx(found["e_value"])
    assert math.exp(-max(logs)) == pytest.approx(found["p_value"])


def test_at_most_three_hundred_points_of_the_evidence_are_kept(rng):
    """Of many pairs some are kept, the first and the last among them."""
    result = auditor.audit_runs(
        made(rng, runs=700, gap=0.2), delta=1e-5, claim=StatedClaim(1.0, 1e-5), test=Sequential()
    )
    pairs = result.estimates[0].details["claimed_curve"]["growth"]["pairs"]
    assert (pairs[0], pairs[-1]) == (1, 700)
    assert len(pairs) <= 300


def test_the_certified_line_is_that_of_the_bound(rng):
    """At small rates of false alarms the line of (epsilon, delta) is e^epsilon FPR + delta, and guessing's at epsilon 0."""
    result = auditor.audit_runs(made(rng), delta=1e-3, claim=StatedClaim(0.5, 1e-3))
    line, bound = curves(result)["certified"], result.estimates[0].lower
    fpr, tpr = np.array(line.fpr), np.array(line.tpr)
    early = (fpr > 0) & (fpr < 0.01)
    assert tpr[early] == pytest.approx(math.exp(bound) * fpr[early] + 1e-3, rel=1e-4)
    same = Losses(member=np.arange(50.0), nonmember=np.arange(50.0))
    assert "certified" not in curves(auditor.audit_runs(same, delta=1e-3))


def test_a_band_needs_a_number_of_runs_that_was_fixed(rng, stopped):
    """Runs that could stop have a measured curve without limits; those of a fixed number have the band around it."""
    assert set(curves(stopped)) == {"empirical", "certified", "claimed_training"}
    found = curves(auditor.audit_runs(made(rng), delta=1e-5, claim=StatedClaim(4.0, 1e-5)))
    assert set(found) == {"empirical", "band_lower", "band_upper", "certified", "claim"}
    grid = np.linspace(0, 1, 50)
    low, mid, high = (
        np.interp(grid, found[name].fpr, found[name].tpr)
        for name in ("band_lower", "empirical", "band_upper")
    )
    assert (low <= mid + 1e-9).all()
    assert (mid <= high + 1e-9).all()


def test_the_curve_of_several_models_is_the_mean_of_their_hits():
    """One model that tells all apart and one that tells nothing: half of what the attack finds beyond its errors."""
    perfect = Losses(member=np.arange(100.0) / 1000 - 5, nonmember=np.arange(100.0) / 1000)
    nothing = Losses(member=np.arange(100.0) + 200, nonmember=np.arange(100.0))
    found = auditor.audit_instances(
        [perfect, nothing], delta=1e-5, split=RandomSplit(), disclosure="insiders"
    )
    measured = curves(found)["empirical"]
    # At the smallest known error rate, 1 in 100, all members of one model and none of the other are called.
    assert dict(zip(measured.fpr, measured.tpr, strict=True))[0.01] == pytest.approx(0.5)
    assert (measured.fpr[0], measured.tpr[-1]) == (0.0, 1.0)
    assert list(measured.tpr) == sorted(measured.tpr)


def test_the_checks_of_several_models_are_told_at_their_worst(rng):
    """A check that is not fine for one model is reported with that model; one that is fine for all, without."""
    swapped = Losses(member=rng.normal(3, 1, 200), nonmember=rng.normal(0, 1, 200))
    found = auditor.audit_instances([made(rng), swapped], delta=1e-5)
    assert found.check("direction").status is Status.WARN
    assert found.check("direction").message.startswith("Model 2: Members have clearly higher losses")
    assert found.check("ties").message.startswith("No loss is shared by more than 1%")
    assert len({item.name for item in found.checks}) == len(found.checks)


# --- The pages -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["stopped", "models"])
def test_the_page_of_a_refuted_claim(name, request):
    """The verdict first, then what to do, then the pictures with their words; offline, and the same bytes again."""
    result = request.getfixturevalue(name)
    page = result.to_html()
    words = told(page).partition("Provenance")[2]  # behind the links to the sections
    order = [
        "Decision ✕ Do not release The claim is refuted",
        "How bad ! Leakage found",
        "Who Anyone whose record is in the training data",
        "What now Do not publish that epsilon",
        "Claimed against measured Claimed: epsilon",
        "The numbers",
        "Can these numbers be relied on?",
        "Provenance",
    ]
    places = [words.index(text) for text in order]
    assert places == sorted(places)
    figures = re.findall(r'<svg[^>]*role="img"[^>]*><title[^>]*>([^<]+)</title>', page)
    assert len(figures) == page.count("<figure>") == (3 if name == "stopped" else 2)
    assert all(len(text) > 60 for text in figures)
    assert "default-src 'none'" in page
    safe(page)
    assert result.to_html() == page


def test_the_evidence_is_drawn_and_told(stopped):
    """The picture of a sequential audit says how much evidence refutes, and how much there was."""
    found = next(
        text for text in re.findall(r"<title[^>]*>([^<]+)</title>", stopped.to_html()) if "e-value" in text
    )
    assert "over 150 pairs of runs" in found
    assert "Evidence of 20 at any time refutes the claim" in found
    assert stopped.figure("growth") is not None
    assert set(stopped.figures()) == {"tradeoff-log", "tradeoff", "growth"}
    assert stopped.figure("losses") is None


@pytest.mark.parametrize("kind", ["runs", "instances"])
def test_every_verdict_has_at_most_three_lines_of_advice(kind):
    """Each verdict that there can be, and the lack of a claim, says what to do in one to three lines."""
    advice = texts("what_now")[kind]
    verdicts = {"refuted", "not_refuted", "inconclusive", "not_evaluable", "no_claim"}
    own = {"reversed"} if kind == "runs" else {"not_refuted_coins", "inconclusive_coins"}
    assert set(advice) == verdicts | own
    assert all(1 <= len(lines) <= 3 for lines in advice.values())


@pytest.mark.parametrize(
    ("claim", "runs", "words"),
    [
        (None, 100, "Until then, only the certified bound holds"),
        (StatedClaim(6.0, 1e-5), 2000, "This is not proof."),
        (StatedClaim(8.0, 1e-5), 20, "Neither publish nor withdraw"),
    ],
)
def test_what_now_follows_the_verdict(rng, claim, runs, words):
    """Without a claim, not refuted and inconclusive each have their own advice."""
    assert words in told(auditor.audit_runs(made(rng, runs=runs), delta=1e-5, claim=claim).to_html())


def test_repeated_runs_are_not_evaluable():
    """A failed check has its advice on the page and in the files for build servers."""
    same = Losses(member=np.zeros(50), nonmember=np.ones(50))
    result = auditor.audit_runs(same, delta=1e-5, claim=StatedClaim(1.0, 1e-5))
    words = told(result.to_html())
    assert "? Not evaluable" in words
    assert "Give every run its own seed" in words
    assert "1 failed check: repeats" in words
    assert 'type="not_evaluable"' in result.to_junit()


def test_what_a_file_says_stays_text(stopped, tmp_path):
    """Markup in a stored result is text on the page, and a result without data still has one."""
    raw = json.loads(stopped.to_json())
    raw["data"]["claim"] = raw["provenance"]["command"] = "<img src=x onerror=alert(1)>\u202e"
    raw["data"] |= {"judged": [1], "chosen_on": [1], "threshold": 1e300, "n_with": "<b>"}
    for content in (
        raw,
        raw | {"data": {}, "provenance": {}, "estimates": [], "comparisons": [], "curves": []},
    ):
        (tmp_path / "r.json").write_text(json.dumps(content), encoding="utf-8")
        found = auditor.read_result(tmp_path / "r.json")
        for text in (found.to_html(), found._repr_html_()):
            assert "<img" not in text
            assert "\u202e" not in text
        assert "\u202e" not in found.to_markdown() + found.to_sarif() + found.to_junit()


# --- The command line ------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path, rng):
    """Scores of 200 runs of each world, three standard deviations apart."""
    return leaking(tmp_path / "scores.csv", rng, member=200, nonmember=200)


OUTPUTS = ("html", "markdown", "junit", "sarif", "json")


def test_runs_write_every_output_and_report_writes_them_again(table, tmp_path, capsys):
    """All forms of a refuted audit are written with exit code 1, and once more, the same, from the stored result."""
    files = {name: tmp_path / f"runs.{name}" for name in OUTPUTS}
    asked = [word for name, path in files.items() for word in (f"--{name}", path)]
    gate = ("--fail-if", "epsilon_bound.order_statistics > 1")
    assert run("runs", table, "--claim-epsilon", 0.5, "--claim-delta", 1e-5, *gate, *asked) == 1
    assert "gate 'epsilon_bound.order_statistics > 1' failed" in capsys.readouterr().err
    assert "Claim refuted" in files["markdown"].read_text(encoding="utf-8")
    assert json.loads(files["sarif"].read_text(encoding="utf-8"))["runs"][0]["artifacts"][0]["location"] == {
        "uri": "scores.csv"
    }
    before = {name: path.read_bytes() for name, path in files.items()}
    stored = files.pop("json")
    asked = [word for name, path in files.items() for word in (f"--{name}", path)]
    assert run("report", stored, *gate, *asked, "--quiet") == 1
    assert {name: path.read_bytes() for name, path in files.items()} == {name: before[name] for name in files}


def test_a_gate_stops_runs_without_a_claim(table, tmp_path):
    """A gate decides the exit code: 0 passed, 1 true, 3 nobody can tell, 2 of what no runs have, and then no page is written."""
    page = tmp_path / "page.html"
    for gate, code in (
        ("checks.repeats == fail", 0),
        ("epsilon_bound.order_statistics > 1", 1),
        ("verdict == refuted", 3),
        ("auc > 1", 2),
    ):
        page.unlink(missing_ok=True)
        assert run("runs", table, "--delta", 1e-5, "--fail-if", gate, "--html", page, "--quiet") == code
        assert page.exists() == (code != 2)


def test_instances_write_a_page(tmp_path, rng):
    """Results of several models make one page with their verdict and a gate's outcome."""
    paths = [tmp_path / f"{number}.json" for number in range(6)]
    for path in paths:
        auditor.audit(made(rng, runs=300), disclosure="insiders").to_json(path)
    page = tmp_path / "page.html"
    claim = ("--claim-epsilon", 0.2, "--claim-delta", 1e-5, "--split", "random")
    assert (
        run(
            "instances", *paths, *claim, "--fail-if", "epsilon_bound.instances > 9", "--html", page, "--quiet"
        )
        == 1
    )
    words = told(page.read_text(encoding="utf-8"))
    assert words.startswith(
        "Privacy audit: Training that claims epsilon 0.2 at delta 1e-5, add-remove: several models"
    )
    assert "Limits of the release" in words


def test_the_page_of_a_claim(tmp_path, capsys):
    """The numbers that the terminal prints, their status, the curve for both kinds of neighbours, and that none is measured."""
    page = tmp_path / "claim.html"
    training = ("--noise-multiplier", 1, "--sampling-rate", 1, "--steps", 1)
    assert run("claim", *training, "--delta", 1e-5, "--compositions", "--html", page) == 0
    text = page.read_text(encoding="utf-8")
    words = told(text)
    # Of one unsampled step with noise 1: mu is 1, and 2 for a replaced record; the advantage is 2 Phi(mu/2) - 1.
    assert "Advantage (TPR - FPR) For every attacker" in words
    assert "0.3830 proven" in words
    assert "0.6827 proven" in words
    assert "not measured" in words
    assert "By other methods" in words
    assert text.count("<figure>") == 4
    safe(text)
    assert run("claim", *training, "--delta", 1e-5, "--html", "-") == 2
    assert "--html - is not offered" in capsys.readouterr().err


def test_a_claim_that_covers_one_kind_of_neighbours(tmp_path):
    """Batches of a fixed size promise nothing for added records: a sentence stands where the table would."""
    page = tmp_path / "claim.html"
    training = ("--noise-multiplier", 2, "--sampling-rate", 0.1, "--steps", 5, "--set", "sampler=fixed-size")
    assert run("claim", *training, "--delta", 1e-5, "--html", page, "--quiet") == 0
    text = page.read_text(encoding="utf-8")
    assert text.count("<table") == 2
    assert text.count("By other methods</summary>") == 1
    assert "accounted for replaced records only" in told(text)


def test_a_card_tells_the_verdict_and_every_number(stopped):
    """The card of runs has the decision, the verdict and how to get the page, which has what was counted too."""
    counted = "150 runs with the canary and 150 without"
    for text in ("Do not release", "Claim refuted", ".to_html(path)"):
        assert text in told(stopped._repr_html_())
    assert counted in told(stopped.to_html()).partition("Claimed against measured")[2]
    assert stopped.check("repeats").status is Status.OK
    assert replace(stopped, verdict=None).to_html() != stopped.to_html()
