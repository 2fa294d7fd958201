"""`auditor report FOLDER`: a folder of results as pages that link to each other."""

import json
import math
import re
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from command_line import refused, run
from report.conftest import HOSTILE, no_figures  # noqa: F401 - a fixture
from safety.formats import Markup

import auditor
from auditor.report import folder as room, site
from auditor.results.document import content_hash

# The sentences of the index and of the page on an altered result.
MARKS = ["Altered since it was written", "it was altered since it was written"]


@cache
def audited(seed, shift, model):
    """An audit of so large a leak."""
    rng = np.random.default_rng(seed)
    losses = auditor.Losses(member=rng.normal(-shift, 1, 300), nonmember=rng.normal(0, 1, 300))
    return auditor.audit(losses, model=model)


def written(folder, *, name, model, shift=1.0, created="2026-01-02T03:04:05+00:00"):
    """Write an audit of so large a leak, made at that time."""
    result = audited(len(name), shift, model)
    raw = {**result.to_dict(), "provenance": {**result.provenance, "created": created}}
    raw["provenance"]["content_sha256"] = content_hash(raw)
    path = folder / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(json.dumps(raw), encoding="utf-8")
    return Path(auditor.read_result(path).to_json(path)).read_text(encoding="utf-8")


@pytest.fixture
def results(tmp_path):
    """Two audits of one model, a hostile one, runs, and a claim, in folders; an altered one, a copy, and other files."""
    folder = tmp_path / "results"
    old = written(folder, name="old.json", model="Release")
    written(
        folder / "deep" / "er", name="new.json", model="Release", shift=2.0, created="2026-03-02T00:00:00Z"
    )
    written(folder, name="hostile.json", model=HOSTILE)
    rng = np.random.default_rng(5)
    runs = auditor.Losses(member=rng.normal(-1, 1, 50), nonmember=rng.normal(0, 1, 50))
    auditor.audit_runs(runs, delta=1e-5).to_json(folder / "runs.json")
    training = ("--noise-multiplier", 1, "--sampling-rate", 1, "--steps", 1, "--delta", 1e-5)
    assert run("claim", *training, "--json", folder / "claim.json", "--quiet") == 0
    (folder / "altered.json").write_text(old.replace("Release", "Altered"), encoding="utf-8")
    raw = json.loads(old.replace("Release", "Removed"))
    del raw["provenance"]["content_sha256"]
    (folder / "Removed.json").write_text(json.dumps(raw), encoding="utf-8")
    (folder / "copy.json").write_text(old, encoding="utf-8")
    (folder / "package.json").write_text("{}", encoding="utf-8")
    (folder / "notes.txt").write_text("{}", encoding="utf-8")
    (tmp_path / "outside.json").write_text(old.replace("Release", "Outside"), encoding="utf-8")
    (folder / "link.json").symlink_to(tmp_path / "outside.json")
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    return folder


def test_a_site(results, tmp_path, capsys):
    """The index leads to a page for each result and the history of a model, offline; a file that is no result is named."""
    out = tmp_path / "public"
    assert run("report", results, "--html", out) == 0
    said = capsys.readouterr().out
    for words in (
        "package.json' is not an audit",
        "link.json' is a link that leads out",
        "is the same as another one",
    ):
        assert words in said
    pages = {path.name: path.read_text(encoding="utf-8") for path in out.iterdir()}
    assert len(pages) == 9
    assert all(re.fullmatch(r"[a-z0-9-]+\.html", name) for name in pages)
    links = {
        name: [to["href"] for _, to in Markup(text).elements if "href" in to] for name, text in pages.items()
    }
    ids = {name: {of.get("id") for _, of in Markup(text).elements} for name, text in pages.items()}
    for name, targets in links.items():
        assert [to for to in targets if to.startswith("#") and to[1:] not in ids[name]] == []
        assert [
            to
            for to in targets
            if not to.startswith(("#", "data:")) and (name != "index.html" or to not in pages)
        ] == []
        assert "default-src 'none'" in pages[name]
    assert set(links["index.html"]) >= pages.keys() - {"index.html"}
    index = pages["index.html"]
    # Two scripts, of this package alone: they sort and filter.
    assert index.count("<script>") == index.count("sha256-") == 2
    assert HOSTILE not in index
    # The newest first.
    dates = re.findall(r'Made \(UTC\)">([^<]+)', index)
    rows = [re.sub("<[^>]+>", " ", text) for text in index.split("<tr")[2:]]
    releases = [place for place, text in enumerate(rows) if "Release " in text[:60]]
    assert [dates[place] for place in releases] == ["2026-03-02 00:00", "2026-01-02 03:04"]
    assert dates == sorted(dates, reverse=True)
    assert sum("History of this model" in text for text in rows) == 2
    names = {
        name: text for text in rows for name in ("Altered ", "Removed ", "Release ") if name in text[:60]
    }
    assert {name: [words for words in MARKS if words in text] for name, text in names.items()} == {
        "Altered ": MARKS,  # the hash does not fit
        "Removed ": MARKS,  # there is none
        "Release ": [],
    }
    assert any("Promised, not measured" in text and "DP-SGD" in text for text in rows)
    # The row of the runs has the bound, rounded down.
    (row,) = (text for text in rows if "many runs" in text[:150])
    bound = auditor.read_result(results / "runs.json").estimates[0]
    assert f"{math.floor(100 * bound.lower) / 100:.2f}" in row
    page = next(name for name in pages if name.startswith("release-2026-03"))
    assert pages[page] == auditor.read_result(results / "deep" / "er" / "new.json").to_html()


@pytest.mark.usefixtures("no_figures")
def test_a_site_again(results, tmp_path):
    """The same results give the same site, which replaces the earlier one, and nothing else that is there."""
    out = tmp_path / "public"
    first = site(results, out)
    texts = {path.name: path.read_bytes() for path in out.iterdir()}
    assert sorted(first.pages) == sorted(texts)
    (results / "runs.json").unlink()
    assert site(results, out).pages == tuple(name for name in first.pages if "many-runs" not in name)
    assert {name: texts[name] for name in texts if (out / name).exists()} | {"index.html": b""} == {
        path.name: b"" if path.name == "index.html" else path.read_bytes() for path in out.iterdir()
    }
    (out / "mine.html").write_text("mine", encoding="utf-8")
    with pytest.raises(auditor.OutputError, match="holds other files than a site"):
        site(results, out)
    assert (out / "mine.html").exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.fixture
def drawn(monkeypatch):
    """The titles of the pages that are drawn; an audit has none."""
    titles, draw = [], room._Page.drawn
    monkeypatch.setattr(room._Page, "drawn", lambda page: titles.append(page.title) or draw(page))
    return titles


@pytest.mark.usefixtures("no_figures")
def test_pages_that_changed(results, tmp_path, monkeypatch, drawn):
    """Only pages whose result, limits, version or own text changed are drawn again, and each result is read once."""
    out = tmp_path / "public"
    read, take = [], room.raw_result
    monkeypatch.setattr(room, "raw_result", lambda path: read.append(path) or take(path))
    pages = site(results, out).pages
    assert len(drawn) == len(pages) - 1
    assert sorted(read) == sorted(set(read))
    history = next(name for name in pages if name.startswith("history"))
    made = {path.name: path.stat().st_ino for path in out.iterdir()}

    def again(**options):
        drawn.clear()
        site(results, out, **options)
        return drawn

    assert again() == []
    assert {path.name: path.stat().st_ino for path in out.iterdir()} == made  # nothing is written
    text = (out / history).read_text(encoding="utf-8")
    (out / history).write_text(text.replace("Release", "Edited"), encoding="utf-8")
    (out / pages[1]).unlink()
    assert again() == ["", "Audits of Release"]
    assert (out / history).read_text(encoding="utf-8") == text
    assert (out / pages[1]).exists()
    written(results, name="old.json", model="Release", shift=1.5)
    (results / "copy.json").unlink()
    assert again() == ["", "Audits of Release"]
    limits = {"limited": lambda result: result.with_policy("advantage.upper < 0.1")}
    assert again(**limits) == [""] * 5 + ["Audits of Release"]  # runs and a claim have no such limits
    assert again(**limits) == []
    monkeypatch.setattr(room, "__version__", "0.0.0")
    assert len(again(**limits)) == len(pages) - 1


def test_pages_by_processes(tmp_path, monkeypatch):
    """New processes draw the same pages, and an interruption while they are drawn leaves nothing behind."""
    folder = tmp_path / "results"
    for shift, name in ((1.0, "old.json"), (2.0, "new.json")):
        written(folder, name=name, model="Release", shift=shift)
    one, two = (tmp_path / name for name in ("one", "two"))
    monkeypatch.undo()  # other processes draw the figures too
    pages = site(folder, one).pages
    monkeypatch.setattr(room, "_FEW", 2)
    assert site(folder, two, workers=2).pages == pages
    assert [(one / name).read_bytes() for name in pages] == [(two / name).read_bytes() for name in pages]

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(room._Page, "drawn", interrupted)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(KeyboardInterrupt):
        site(folder, tmp_path / "three")
    assert sorted(tmp_path.iterdir()) == before


def test_pages_whose_process_is_killed(results, tmp_path, monkeypatch):
    """The process that waits for them draws them."""

    class Killed:
        def __init__(self, *_, **__):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def map(self, draw, pages):
            yield draw(next(iter(pages)))
            raise BrokenProcessPool

    pages = site(results, tmp_path / "one").pages
    monkeypatch.setattr(room, "_FEW", 2)
    monkeypatch.setattr(room, "ProcessPoolExecutor", Killed)
    assert site(results, tmp_path / "two", workers=2).pages == pages


def test_what_cannot_be_a_site(results, tmp_path, capsys):
    """One sentence, and nothing is written: no result, a folder that is in use, a folder that nobody may write to."""
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "holds no result (.json)." in refused(capsys, "report", empty, "--html", tmp_path / "public")
    (empty / "package.json").write_text("{}", encoding="utf-8")
    assert "of 1 other files the first: result file" in refused(
        capsys, "report", empty, "--html", tmp_path / "public"
    )
    assert "holds other files than a site" in refused(capsys, "report", results, "--html", results)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "index.html").write_text("<p>Somebody else's", encoding="utf-8")
    assert "holds other files than a site" in refused(capsys, "report", results, "--html", foreign)
    assert "Not a directory" in refused(capsys, "report", results, "--html", results / "old.json")
    assert "is not there or not writable; name another" in refused(
        capsys, "report", results, "--html", tmp_path / "not" / "there"
    )
    assert not (tmp_path / "public").exists()
    assert [path.name for path in foreign.iterdir()] == ["index.html"]
