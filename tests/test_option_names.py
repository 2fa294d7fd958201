"""Every option that a sentence, a text or a page of the documentation names is one of the command line, and given as it is named."""

import re
from pathlib import Path

import pytest

import auditor
from auditor.cli.app import COMMANDS, command_of
from auditor.cli.parsing import options_of

ROOT = Path(auditor.__file__).parent.parent
NAMES = [name for group in COMMANDS.values() for name in group]
OPTIONS = [item for name in NAMES for item in options_of(command_of(name))]
PLAIN = {item.key for item in OPTIONS if not item.rare} | {
    *("set", "help", "help-all", "version", "install-completion"),
    *("upgrade", "require-hashes", "no-deps"),  # of pip
}
RARE = {item.key for item in OPTIONS if item.rare}
TEXTS = [
    *(path for path in sorted((ROOT / "auditor").rglob("*")) if path.suffix in (".py", ".toml", ".jinja")),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "README.md",
    ROOT / "action.yml",
]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_option_exists(path):
    """A name behind two dashes is an option of its own, and a name behind ``--set`` is a rare one."""
    text = path.read_text(encoding="utf-8")
    plain = set(re.findall(r"(?<![\w-])--([a-z][a-z-]+[a-z])(?![\w-])", text))
    rare = set(re.findall(r"--set [\"']?([a-z][a-z_-]+[a-z])(?=[=\s`)\"'.,]|$)", text))
    ours = path.is_relative_to(ROOT / "auditor")
    assert not {name for name in plain - PLAIN if ours or name in RARE}
    assert not {name for name in rare if name.replace("_", "-") not in RARE}
