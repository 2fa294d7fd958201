"""Whatever a text holds, every output shows it as text."""

import json
from dataclasses import replace
from functools import reduce
from operator import getitem

import numpy as np
import pytest
from fuzz.targets import places, put
from safety import formats
from safety.texts import COMMANDS, ENDS, HOSTILE, HUGE, MARK, ORDERS, carrier, filled, read

import auditor
from auditor.cli import run
from auditor.comparison import compare_audits
from auditor.core import InputError
from auditor.report import audit_text, comparison_text, figures, html
from auditor.report.figures import landscape
from auditor.verdicts import check_gates


@pytest.fixture(scope="module")
def raw():
    """One audit as JSON, with places for texts."""
    return carrier()


@pytest.fixture(params=HOSTILE)
def text(request):
    """Each hostile text in turn."""
    return HOSTILE[request.param]


@pytest.fixture
def result(raw, text, tmp_path):
    """The audit with that text in every place, from a file."""
    return read(filled(raw, text), tmp_path)


def _scripts(text):
    return [item.split("</script>")[0] for item in text.split("<script>")[1:]]


def test_every_text(result):
    """On a terminal, in a summary, a build server's file and a notebook no text is more than text, and all show it."""
    assert MARK in formats.terminal(audit_text(result, color=True, width=400), colour=True)
    assert MARK in formats.model_card(result.to_model_card())
    shown = _every_output_but_the_page(result, gates=check_gates(result, ["auc > 0.6"]))
    assert [name for name, words in shown.items() if MARK not in words] == []


def test_json(result, text, tmp_path):
    """A result's JSON holds the text as it was, and reads back the same."""
    written = result.to_json()
    assert text in json.loads(written)["provenance"]["command"]
    result.to_json(tmp_path / "again.json")
    assert auditor.read_result(tmp_path / "again.json").to_json() == written


FORMULAS = [
    "=1",
    "+inf",
    "-1_0",
    "+1e5x",
    "@x",
    "\t=1",
    "\r=1",
    "\n=1",
    "\uff1d1",
    "\uff20x",
    "- 1",
    "-\uff11",
    *ENDS,
]


@pytest.mark.parametrize("text", [*HOSTILE.values(), *FORMULAS, ORDERS], ids=ascii)
def test_ranking(text, tmp_path):
    """A spreadsheet runs, hides and turns no label of a ranking."""
    names = [f"{text}{' ' * (i % 2)}{i}" for i in range(39)] + [text]
    found = auditor.Losses(member=range(40), nonmember=range(40), id=(names, names), group=(names, names))
    ranking = auditor.rank_records(found, rng=np.random.default_rng(0))
    ranking.write(tmp_path / "ranking.csv")
    rows = formats.cells((tmp_path / "ranking.csv").read_bytes().decode("utf-8"))
    assert len(rows) == 41
    assert all(len(row) == len(rows[0]) for row in rows)


@pytest.mark.parametrize("start", ["", *COMMANDS[::3]], ids=range(4))
def test_no_text_commands_a_build_server(raw, start, tmp_path, capsys):
    """Whatever ends a line, no line of a terminal, of JSON or of a file that a build server reads is a command of a name."""
    path, other = tmp_path / "result.json", tmp_path / "other.json"
    result = read(filled(raw, start + ORDERS), tmp_path)
    result.to_json(path)
    _other(filled(raw, f"{start + ORDERS} again"), tmp_path).to_json(other)
    result.to_json(path)
    gates = check_gates(result, ["auc > 0.6"])
    run(["report", str(path), "--fail-if", "auc > 0.6"])
    run(["compare", str(path), str(other)])
    run(["report", str(path), "--json", "-", "--quiet"])
    run(["report", str(tmp_path / start.replace("/", "") / "missing.json")])
    run(["audit", str(path), f"--loss-column={start + ORDERS}"])
    printed = capsys.readouterr()
    files = {
        "terminal": printed.out,
        "errors": printed.err,
        "markdown": result.to_markdown(gates=gates),
        "junit": result.to_junit(gates=gates),
        "sarif": result.to_sarif(gates=gates),
        "model card": result.to_model_card(),
    }
    assert {name: formats.commands(text) for name, text in files.items()} == {name: [] for name in files}
    assert {name: formats.UNSAFE.findall(text) for name, text in files.items()} == {
        name: [] for name in files
    }


def test_no_name_passes_for_a_sentence_of_ours(raw, tmp_path):
    """A name that closes its quotation marks and goes on like a verdict is quoted as one name, on one line and cut."""
    name = "a” gives least away: 0.1. ✓ No leakage found. “b " + "y" * 500
    first = read({**filled(raw, name), "estimates": raw["estimates"]}, tmp_path)
    found = compare_audits([first, _other(filled(raw, "plain"), tmp_path)])
    text = comparison_text(found, width=5000)
    sentences = [
        line for line in text.splitlines() if "No leakage found" in line and not line.startswith(" ")
    ]
    assert len(sentences) > 1
    spoken = '“a" gives least away: 0.1. ✓ No leakage found. "b yyy'
    for line in sentences:
        assert line.count("No leakage found") == line.count(spoken)
        assert "y" * 80 not in line


GROUPS = [
    ("script", "closing", "handler", "address", "template", "cdata"),
    ("bidi", "control", "escape", "lines", "surrogate"),
    ("maths", "formula", "markdown", "links", "rich", "percent"),
    ("paint", "hidden", "scripts"),
]


@pytest.fixture(params=GROUPS, ids=["markup", "control", "others", "drawn"])
def several(request, raw, tmp_path):
    """Several hostile texts in one, and the audit that has it in every place."""
    whole = " ".join(HOSTILE[name] for name in request.param)
    return whole, read(filled(raw, whole), tmp_path)


def test_page(several):
    """A page shows every text as text, in its figures too, and runs none."""
    whole, result = several
    text = html.render([result.with_policy(gates="auc > 0.6")])
    words = formats.html(text, scripts=_own(text))
    assert formats.seen(whole, words)


def test_comparison(several, raw, tmp_path):
    """The page that compares audits shows every text as text, and so do its JSON, its table and its cell."""
    whole, result = several
    found = compare_audits([result, _other(filled(raw, f"{whole} again"), tmp_path)])
    assert formats.seen(whole, _page_of(found))


def test_commands(several, raw, tmp_path, capsys):
    """The output of commands that read results holds no control characters, whatever the results hold."""
    whole, result = several
    result.to_json(tmp_path / "first.json")
    _other(filled(raw, f"{whole} again"), tmp_path).to_json(tmp_path / "second.json")
    paths = [str(tmp_path / name) for name in ("first.json", "second.json")]
    assert run(["compare", *paths]) == 0
    assert MARK in formats.terminal(capsys.readouterr().out)
    run(["report", paths[0], "--fail-if", "auc > 0.6"])  # the claim may be refuted: code 1, with a sentence
    said = capsys.readouterr()
    formats.terminal(said.out)
    formats.terminal(said.err)


def _own(text):
    """The scripts of a page that its policy names by their hashes: the package's own."""
    found = [item for item in _scripts(text) if html._policy([item]).rsplit(" ", 1)[1] in text]
    assert not any(MARK in item for item in found)
    return found


def test_huge(raw, tmp_path):
    """A text of a million characters leaves every output readable and small."""
    short = read(filled(raw, "short"), tmp_path)
    data = dict(short.data) | {"model": HUGE, "strategy": HUGE}
    result = replace(short, data=data, provenance={"source": HUGE})
    made = [
        html.render([result]),
        result.to_markdown(),
        result.to_junit(),
        result.to_sarif(),
        result._repr_html_(),
    ]
    assert [len(text) for text in made if len(text) > 1_500_000 or MARK not in text] == []
    assert len(audit_text(result)) < 100_000


def _places(value):
    """Every place of a text in a JSON value, the first of every list."""
    for path in places(value):
        if isinstance(reduce(getitem, path, value), str) and all(
            step == 0 for step in path if isinstance(step, int)
        ):
            yield path


@pytest.fixture
def without_figures(monkeypatch):
    """Pages without their figures, which take most of the time: `test_every_place_at_once` has them."""
    monkeypatch.setattr(figures, "FIGURES", {})
    monkeypatch.setattr(landscape, "landscape_figure", lambda _: None)


EACH = 6  # groups of places
SOME = " ".join(HOSTILE[name] for name in ("script", "escape", "markdown", "cdata", "bidi", "hidden"))


@pytest.mark.usefixtures("without_figures")
def test_every_place(raw, tmp_path):
    """A text of somebody else in a place of a result file is refused, or shown as text in every output."""
    every, read_anyway, refused = list(_places(raw)), [], []
    assert len(every) > 50
    for path in every:
        try:
            read(put(raw, path, SOME), tmp_path)
        except InputError as error:
            refused.append(str(error))
            continue
        read_anyway.append(path)
    assert len(read_anyway) > 30
    assert refused
    assert [item for item in refused if formats.UNSAFE.search(item)] == []
    for start in range(EACH):  # neighbours apart: what one of them hides, another group shows
        changed = reduce(lambda so_far, path: put(so_far, path, SOME), read_anyway[start::EACH], raw)
        _every_output(read(changed, tmp_path), _other(raw, tmp_path))


def test_every_place_at_once(raw, tmp_path):
    """A text of somebody else in all places that take one is shown as text in every output, in the figures too."""
    changed, taken = raw, 0
    for path in _places(raw):
        tried = put(changed, path, SOME)
        try:
            read(tried, tmp_path)
        except InputError:
            continue
        changed, taken = tried, taken + 1
    assert taken > 30
    result = read(changed, tmp_path)
    assert formats.seen(SOME, formats.html(result.to_html(), scripts=_own(result.to_html())))
    _every_output(result, _other(raw, tmp_path))


def _other(raw, folder):
    return read({**raw, "provenance": {**raw["provenance"], "input_sha256": "0" * 64}}, folder)


def _every_output_but_the_page(result, *, gates):
    """The words of each output that is no page, once it keeps the rules of its format."""
    return {
        "terminal": formats.terminal(audit_text(result, width=400)),
        "markdown": formats.markdown(result.to_markdown(gates=gates)),
        "junit": formats.junit(result.to_junit(gates=gates)),
        "sarif": formats.sarif(result.to_sarif(gates=gates)),
        "card": formats.html(result._repr_html_()),
    }


def _every_output(result, other):
    gates = check_gates(result, ["verdict == refuted"])
    _every_output_but_the_page(result, gates=gates)
    text = html.render([result.with_policy(gates=gates)])
    formats.html(text, scripts=_own(text))
    assert json.loads(result.to_json()) == result.to_dict()
    _every_comparison(result, other)


def _every_comparison(result, other):
    found, refusal = None, ""
    try:
        found = compare_audits([result, other])
    except InputError as error:
        refusal = str(error)
    assert formats.UNSAFE.search(refusal) is None
    if found is None:
        return
    _page_of(found)


def _page_of(comparison):
    """The words of its page, once every other output of it is sound."""
    formats.html(comparison._repr_html_())
    formats.terminal(comparison_text(comparison, width=100))
    json.loads(comparison.to_json())
    text = comparison.to_html()
    return formats.html(text, scripts=_own(text))
