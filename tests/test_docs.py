"""Every block of the README and of the documentation's pages does what it says."""

import importlib.util
import re
import shlex
import tomllib
import types
from importlib import metadata
from pathlib import Path

import pytest

import auditor
from auditor.cli import app, parsing

ROOT = Path(__file__).parents[1]
# Each command unfolded to one line.
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8").replace("\\\n", " ")
    for path in (ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")))
}
README = PAGES["README.md"]
MARKDOWN = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for folder in (".", ".github", "docs", "notebooks", "reports")
    for path in (ROOT / folder).glob("*.md" if folder == "." else "**/*.md")
}
COMMANDS = {name: app.command_of(name) for group in app.COMMANDS.values() for name in group}


def blocks(text):
    """The blocks of code on a page: the marker before it, the language, and what is in it."""
    return re.findall(r"(<!-- command: \w+ -->\n)?```(\w+)\n(.*?)```", text, re.DOTALL)


def are_run(text):
    """The blocks of a page that are run, each with its language."""
    return [
        (language, code)
        for marker, language, code in blocks(text)
        if language == "python" or (language == "sh" and not marker)
    ]


def needs(text):
    """The modules beside the core that the code of a page imports: `<!-- needs: xgboost -->`."""
    return [name for line in re.findall(r"<!-- needs: (.*?) -->", text) for name in line.split(", ")]


@pytest.mark.parametrize("name", [name for name, text in PAGES.items() if are_run(text) and not needs(text)])
def test_the_blocks_run_in_order(name, tmp_path, monkeypatch, capsys):
    """Each page in a folder and a namespace of its own: Python, and `auditor` commands; they print what the page says."""
    run(name, tmp_path, monkeypatch, capsys)


def run(name, tmp_path, monkeypatch, capsys):
    """Run the blocks of a page, and compare what they print and write with the page."""
    monkeypatch.chdir(tmp_path)
    names, text = {}, ""
    for language, code in are_run(PAGES[name]):
        text += code
        if language == "python":
            exec(compile(code, name, "exec"), names)  # noqa: S102 - our own pages
            continue
        for line in code.splitlines():
            command, _, exits = line.partition(" # exits ")
            assert command.startswith("auditor "), line
            assert app.run(shlex.split(command)[1:]) == int(exits or 0), (line, capsys.readouterr().err)
    printed = capsys.readouterr().out.splitlines()
    assert [
        words for words in re.findall(r"^ *print\(.*\)  # (.*)$", text, re.MULTILINE) if words not in printed
    ] == []
    for shown in re.findall(r"<!-- output -->\n```text\n(.*?)```", PAGES[name], re.DOTALL):
        lines = shown.splitlines()
        whole = lines.index("...") if "..." in lines else len(lines)
        assert "\n".join(lines[:whole]) in "\n".join(line.rstrip() for line in printed)
    for page in re.findall(r'(?:--html |to_html\(")([\w-]+\.html)', text):
        assert (tmp_path / page).read_bytes()[:15] == b"<!doctype html>"
        assert (tmp_path / page).stat().st_size > 10_000


@pytest.mark.parametrize("name", ["demo", "tests"])
def test_the_two_commands_are_there_once(name):
    """Both commands exist once, on one line, and begin by making their own environment."""
    found = [text for command, _, text in blocks(README) if f"command: {name}" in command]
    assert len(found) == 1
    assert found[0].startswith("python3 -m venv ")
    assert found[0].count("\n") == 1


def test_what_is_only_shown_is_taken_by_the_parser_too():
    """Commands that need a server, a language model or a pipeline have options that exist."""
    shown = [
        found
        for page in PAGES.values()
        for _, language, text in blocks(page)
        if language in {"console", "yaml"}
        for found in re.findall(r"^(?:\$| *-(?: run:)?) (auditor .*)", text, re.MULTILINE)
    ]
    assert len(shown) > 8
    for line in shown:
        _, name, *words = shlex.split(line)
        assert parsing.parsed(COMMANDS[name], name, words) is not None


def anchors(path):
    """The anchors of a Markdown file, by the rule of code hosts."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    heads = re.findall(r"^#+ (.*)$", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("name", sorted(MARKDOWN))
def test_every_link_leads_somewhere(name):
    """Each file and each heading that a Markdown file links to is in the repository; a picture has a text in its place."""
    links = re.findall(
        r"(!?)\[([^\]]*)\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", MARKDOWN[name], flags=re.DOTALL)
    )
    dead = []
    for _, _, place in links:
        file, _, anchor = place.partition("#")
        path = (ROOT / name).parent / file if file else ROOT / name
        if not re.match("https?:|mailto:", place):
            dead += [place] if not path.exists() or (anchor and anchor not in anchors(path)) else []
    assert dead == []
    assert all(len(words) > 20 for picture, words, _ in links if picture)


def test_the_package_index_has_the_readme_with_addresses():
    """On the package index the README's links are addresses, all below the project's home."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert set(re.findall(r"https://github.com/[\w-]+/[\w-]+", project)) == {
        tomllib.loads(project)["project"]["urls"]["Home"]
    }


def test_the_readme_is_short():
    """At most 900 words."""
    assert len(README.split()) <= 900


def test_the_generated_pages_are_those_of_the_code():
    """Command line, numbers and tables of names: `python docs/pages.py` writes them again."""
    spec = importlib.util.spec_from_file_location("pages", ROOT / "docs/pages.py")
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    found = pages.generated()
    assert len(found) > 8
    assert [path.name for path, text in found.items() if path.read_text(encoding="utf-8") != text] == []


@pytest.mark.parametrize("name", PAGES)
def test_every_option_and_name_on_a_page_exists(name):
    """An option in the running text belongs to some command, and what is called auditor.something is there."""
    prose = re.sub(r"```.*?```|^ +options: .*?$", "", PAGES[name], flags=re.DOTALL | re.MULTILINE)
    known = {item.dashed for command in COMMANDS.values() for item in parsing.options_of(command)}
    known |= {"--set", "--help-all", "--help", "--version"}
    assert (
        set(re.findall(r"(?<![\w!<-])--[a-z][a-z-]+[a-z]", prose))
        - known
        - {"--install-completion", "--require-hashes", "--no-deps", "--group"}
        == set()
    )
    named = set(re.findall(r"\bauditor\.([A-Za-z_]+)\b", PAGES[name])) - {"toml"}
    assert [
        one for one in named if not hasattr(auditor, one) and not importlib.util.find_spec(f"auditor.{one}")
    ] == []


def test_the_reference_has_every_public_name_once():
    """The names of the package and its families are in the reference, each in one place."""
    named = [
        found
        for name, text in PAGES.items()
        if "/reference/" in name
        for found in re.findall(r"^\| \[`auditor\.([\w.]+)`\]", text, re.MULTILINE)
    ]
    families = [name for name in dir(auditor) if isinstance(getattr(auditor, name), types.ModuleType)]
    public = {
        f"{room}.{name}" for room in families for name in getattr(auditor, room).__dict__.get("__all__", ())
    }
    public = {name for name in public if name.split(".")[1] not in auditor.__all__}
    assert len(named) == len(set(named))
    assert (set(auditor.__all__) - {"__version__"}) | public <= set(named)


# What a licence's text, or what a package says of it, has in it.
LICENCES = {
    "BSD-2-Clause": "BSD",
    "BSD-3-Clause": "BSD|Redistribution and use in source and binary forms",
    "MIT": "MIT",
    "Apache-2.0": "Apache",
    "Matplotlib (PSF-based)": "Python Software Foundation",
}


def test_the_licences_are_those_of_what_is_installed():
    """The page names each requirement with its versions, and the licence that the installed package states."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = re.findall(
        r"^\| ([\w-]+) \| (>=[\d.]+) \| (.+) \|$", PAGES["docs/reference/licences.md"], re.MULTILINE
    )
    assert [f"{name}{versions}" for name, versions, _ in rows] == project["dependencies"]
    for name, _, licence in rows:
        found = metadata.distribution(name)
        about = found.metadata
        stated = [about.get("License-Expression"), about.get("License"), *(about.get_all("Classifier") or [])]
        files = [item for item in found.files or () if ".dist-info" in str(item) and "LICENSE" in str(item)]
        text = " ".join([*filter(None, stated), *(item.read_text(encoding="utf-8") for item in files)])
        # Of what is bundled with it too, as in "BSD-3-Clause AND MIT".
        assert licence in about.get("License-Expression", licence).split(" AND "), name
        assert re.search(LICENCES[licence], text), name
