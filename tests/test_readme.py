"""Every block of the README does what it says."""

import re
import shlex
from pathlib import Path

import pytest
import typer

import auditor
from auditor.cli import app

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")
BLOCKS = re.findall(r"(<!-- command: \w+ -->\n)?```(\w+)\n(.*?)```", TEXT, re.DOTALL)
COMMANDS = typer.main.get_command(app.app).commands
# Worth a new reader's time, without the folded table of calibration.


def lines_of(text):
    """The commands of a block, each unfolded to one line."""
    return text.replace("\\\n", " ").splitlines()


def test_the_blocks_run_in_order(tmp_path, monkeypatch, capsys):
    """Python blocks run one after the other in one namespace, `auditor` commands in between, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    names, codes = {}, {}
    for command, language, text in BLOCKS:
        if language == "python":
            exec(compile(text, "README.md", "exec"), names)  # noqa: S102 - our own README
        elif language == "sh" and not command:
            for line in lines_of(text):
                assert line.startswith("auditor "), line
                codes[line] = app.run(shlex.split(line)[1:])
    printed = capsys.readouterr()
    assert codes
    # One stops on purpose: the next release is made to leak more.
    assert {line: code for line, code in codes.items() if code} == {
        line: 1 for line in codes if "--fail-if-worse" in line
    }, printed.err
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert (tmp_path / "again.html").read_bytes()[:15] == b"<!doctype html>"
    assert (tmp_path / "comparison.html").stat().st_size > 10_000
    assert "certified at 95%" in printed.out
    assert names["result"].verdict is not None
    assert "0.2644, replace-one, proven" in printed.out


@pytest.mark.parametrize("name", ["demo", "tests"])
def test_the_two_commands_are_there_once(name):
    """Both commands exist once, on one line, and begin by making their own environment."""
    found = [text for command, _, text in BLOCKS if f"command: {name}" in command]
    assert len(found) == 1
    assert found[0].startswith("python3 -m venv ")
    assert found[0].count("\n") == 1


def test_what_needs_a_server_is_taken_by_the_parser_too():
    """Commands that are only shown (a server, a language model) have options that exist."""
    shown = [
        line[2:]
        for _, language, text in BLOCKS
        if language == "console"
        for line in lines_of(text)
        if line.startswith("$ auditor ")
    ]
    assert len(shown) > 2
    for line in shown:
        _, name, *words = shlex.split(line)
        assert COMMANDS[name].make_context(name, words).params


def test_what_is_pointed_to_exists():
    """Every path in the repository that the README links to is there, and pictures have words for who cannot see them."""
    links = re.findall(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)", TEXT)
    places = [place for _, _, place in links if "://" not in place]
    assert "reports/sample/report.png" in places
    assert [place for place in places if not (README.parent / place).exists()] == []
    assert all(len(words) > 20 for picture, words, _ in links if picture)


def test_every_option_that_is_named_exists():
    """An option in the running text belongs to some command, pip or nothing."""
    prose = re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL)
    known = {name for command in COMMANDS.values() for param in command.params for name in param.opts}
    known |= {"--install-completion"}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+[a-z]", prose)) - known == set()


def test_every_name_of_the_package_exists():
    """What the README calls auditor.something is there to be called."""
    named = set(re.findall(r"\bauditor\.([A-Za-z_]+)\b", TEXT)) - {"toml"}
    assert {name for name in named if not hasattr(auditor, name)} - {"scores", "sensitivity"} == set()
