"""The decision: the same in every output and first in it, the terminal of twelve lines, and the sentence for a person."""

import html
import json
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from command_line import run
from report.conftest import HOSTILE
from safety.formats import Markup

import auditor
from auditor.report import audit_text, card, junit, markdown, render, sarif, site, view_of
from auditor.report.words import pair_words

pytestmark = pytest.mark.usefixtures("no_figures")
DELTA = 1e-5
POLICY = "advantage.upper < 0.1; no group above 0.2; claim not refuted"
PLACES = "Report: page.html   Details: auditor report result.json --full"


def losses(rng, gap, n=150):
    """Members whose losses are lower by so much."""
    return auditor.Losses(rng.normal(-gap, 1, n), rng.normal(0, 1, n))


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    """A result of every kind, with and without limits."""
    rng, split, claim = np.random.default_rng(40), auditor.RandomSplit(), auditor.StatedClaim(0.1, DELTA)
    promise = auditor.DPSGD(noise_multiplier=1.0, sampling_rate=1.0, steps=1)
    path = tmp_path_factory.mktemp("claim") / "claim.json"
    training = "--noise-multiplier 1 --sampling-rate 1 --steps 1 --delta 1e-5 --quiet --json"
    assert run("claim", *training.split(), path) == 0
    group = np.repeat(["north wing", "south wing"], 150)
    member = rng.normal(0, 1, 300) - 2.5 * (group == "south wing")
    x, y = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    half = np.full((300, 2), 0.5)
    made = {
        "leak": auditor.audit(losses(rng, 1.5), delta=DELTA),
        "nothing": auditor.audit(losses(rng, 0.0), delta=DELTA),
        "thirty": auditor.audit(losses(rng, 0.0, 30), delta=DELTA),
        "wrong way round": auditor.audit(losses(rng, -1.5), delta=DELTA),
        "group": auditor.audit(
            auditor.Losses(member, rng.normal(0, 1, 300), group=(group, group)), delta=DELTA
        ),
        "refuted": auditor.audit(losses(rng, 2.0), delta=DELTA, split=split, claim=claim),
        "not judged": auditor.audit(losses(rng, 2.0), delta=DELTA, claim=claim),
        "stands": auditor.audit(losses(rng, 0.0), delta=DELTA, split=split, claim=claim),
        "runs": auditor.audit_runs(losses(rng, 2.0), delta=DELTA, claim=claim),
        "sequential": auditor.audit_runs(
            losses(rng, 2.0), delta=DELTA, claim=promise, test=auditor.Sequential()
        ),
        "models": auditor.audit_instances([losses(rng, 1.0) for _ in range(4)], delta=DELTA, split=split),
        "labels": auditor.audit_labels(lambda _: half, (x, y), probabilities=half),
        "promise": auditor.read_result(path),
    }
    models = ("leak", "nothing", "thirty", "group", "refuted", "not judged", "stands")
    limited = {f"{name}, limited": made[name].with_policy(POLICY, ["auc > 0.99"]) for name in models}
    kept = {f"{name}, kept": made[name].with_policy("auc < 1") for name in ("leak", "nothing", "stands")}
    return made | limited | kept


def words(text):
    """The words of an output, whatever its marks."""
    return re.sub(r"[\s*|]+", " ", re.sub(r"[\u200b\\]", "", html.unescape(Markup(text).text)))


OUTPUTS = {
    "terminal": lambda result: audit_text(result, width=2000),
    "short terminal": lambda result: audit_text(result, width=2000, full=False),
    "page": lambda result: (page := render([result]))[page.index('<section class="verdict') :],
    "markdown": markdown,
    "card": card,
    "junit": lambda result: ET.fromstring(junit(result)).find("testsuite/system-out").text,  # noqa: S314 ours
}


@pytest.mark.parametrize("output", OUTPUTS)
def test_every_output_says_the_same_decision_first(kinds, output):
    """The decision, its reason, and only then the finding and the verdict; without a limit how to set one."""
    seen = set()
    for name, result in kinds.items():
        view, told = view_of(result), words(OUTPUTS[output](result))
        sign, sentence = view.decision
        seen.add(view.decided)
        assert told.count(sign.word) >= 1, name
        place = told.index(" ".join(sentence.split()))
        if view.decided or output != "page":  # the page without a limit says so below the finding
            assert place < told.index(" ".join(view.finding.sentence.split())[:40]), name
    assert seen == {None, *auditor.verdicts.Decision}


def test_the_files_of_build_servers_and_the_index_have_it_too(kinds, tmp_path):
    """SARIF has the word as a property, with the exit code; the index of a folder has every result's decision."""
    for number, result in enumerate(kinds.values()):
        result.to_json(tmp_path / f"{number}.json")
        run = json.loads(sarif(result))["runs"][0]
        assert run["properties"]["decision"] == str(result.decision or "none")
        code = {"release": 0, "refuse": 1, "revise": 3}.get(str(result.decision), 0)
        assert run["invocations"][0]["exitCode"] == code
    site(tmp_path, tmp_path / "site")
    index = words((tmp_path / "site" / "index.html").read_text(encoding="utf-8"))
    for result in kinds.values():
        sign, sentence = view_of(result).decision
        assert f"{sign.symbol} {sign.word} {sentence if result.decision else ''}" in index


# --- The terminal ---------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [80, 100])
def test_the_short_terminal_has_twelve_lines(kinds, hostile, width):
    """Of every kind of result, and of names that are as long as they can be: none wider than the terminal."""
    long = kinds["group"]
    slices = tuple(replace(item, label=f"{HOSTILE} {item.label}") for item in long.slices)
    data = {**long.data, "model": HOSTILE, "claim": HOSTILE}
    odd = replace(long, slices=slices, data=data, provenance={**long.provenance, "source": HOSTILE})
    policy = "; ".join(f"checks.{name} != fail" for name in ("ties", "shift", "power") * 30)
    named = [replace(item, data={**item.data, "model": HOSTILE}) for item in kinds.values()]
    limited = [odd.with_policy(text) for text in (policy, "no group above 0.01")]
    for result in (*kinds.values(), *named, hostile, odd, *limited):
        lines = audit_text(result, width=width, full=False, places=PLACES).splitlines()
        assert len(lines) <= 12
        assert max(map(len, lines)) <= width
        assert lines[-1].strip() == PLACES
        assert any(view_of(result).decision.sign.word in line for line in lines[:2])
        assert all("\x1b" not in line and line.isprintable() for line in lines)


def test_the_decision_is_the_last_line_of_all_of_it(kinds):
    """A user who sees the end of the long form sees what was decided, or else what was found or became of the claim."""
    for result in kinds.values():
        view = view_of(result)
        sign, sentence = view.decision if view.decided else view.opening[0]
        assert audit_text(result, width=5000).splitlines()[-1] == f"{sign.symbol} {sign.word}. {sentence}"


# --- The sentence for a person --------------------------------------------------------------------

_PAIR = re.compile(
    r"[Ss]hown one training record and one other record, an attacker (picks the right one at least ([\d,]+) times in ([\d,]+)"
    r" \(coin: ([\d,]+)\)|is not shown to pick the right one more often than a coin)\."
)


def test_the_sentence_has_one_form(kinds):
    """Of every audit of one model that is valid and not reversed: a count that the lower limit of the AUC keeps, or none."""
    seen = set()
    for name, result in kinds.items():
        if result.kind is not None or name == "wrong way round":
            continue
        limit = result.data["shown"].get("limits", {}).get("auc", 0.0)
        (found,) = _PAIR.finditer(view_of(result).finding.sentence)
        seen.add(found[2] is not None)
        assert (found[2] is not None) == (limit > 0.5)
        if found[2]:
            hits, base, coin = (int(text.replace(",", "")) for text in found.groups()[1:])
            assert coin == base / 2 < hits <= limit * base < hits + 1
    assert seen == {True, False}


def test_a_group_leads_where_it_is_worse(kinds):
    """The group comes first in the finding, with its own count, and in what to do now."""
    view = view_of(kinds["group"])
    assert re.match(
        r"Most exposed: “south wing”, at least 9\d times in 100 \(coin: 50\);", view.finding.sentence
    )
    assert "Fix “south wing” first." in view.now[-1]
    assert "south wing" in view.picture.caption
    assert view.severity.sentence.startswith(
        "by the lower limit: advantage of group “south wing” at least 0."
    )


def test_a_count_keeps_what_is_above_a_coin(rng):
    """Rounded down, never to a coin's own count, with at least four fifths of what is above it."""
    for share in 0.5 + 0.5 * 10 ** rng.uniform(-5, 0, 500):
        hits, base = (int(text.replace(",", "")) for text in pair_words(share)[0].split(" times in "))
        assert hits <= share * base + 1e-6
        assert (hits - base / 2) >= 0.8 * (share - 0.5) * base - 1e-6 or base == 1_000_000
    assert pair_words(0.62) == ("62 times in 100", "50")
    assert pair_words(1.0) == ("100 times in 100", "50")
