"""Every block of the README does what it says."""

import re
import shlex
from pathlib import Path

import pytest

from auditor import cli

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(
    r"(<!-- command: \w+ -->\n)?```(\w+)\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL
)


def test_the_blocks_run_in_order(tmp_path, monkeypatch, capsys):
    """Python blocks run one after the other in one namespace, `auditor` commands in between, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    names, codes = {}, []
    for command, language, text in BLOCKS:
        if language == "python":
            exec(compile(text, "README.md", "exec"), names)  # noqa: S102 - our own README
        elif not command:
            codes += [
                cli.run(shlex.split(line)[1:]) for line in text.splitlines() if line.startswith("auditor ")
            ]
    printed = capsys.readouterr()
    assert codes
    assert set(codes) <= {0, 1}, printed.err
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert "certified at 95%" in printed.out
    assert names["result"].verdict is not None


@pytest.mark.parametrize("name", ["demo", "tests"])
def test_the_two_commands_are_there_once(name):
    """Both commands exist once, on one line, and begin by making their own environment."""
    found = [text for command, _, text in BLOCKS if f"command: {name}" in command]
    assert len(found) == 1
    assert found[0].startswith("python3 -m venv ")
    assert found[0].count("\n") == 1
