"""Help that does not go stale: every example is taken, every option has its place, every slip its hint."""

import json
import re
import shlex
from collections import Counter

import pytest
from command_line import leaking, refused, run
from safety import formats

from auditor import __version__
from auditor.cli import app, console, parsing

COMMANDS = {name: app.command_of(name) for names in app.COMMANDS.values() for name in names}
LINES = [
    (name, line.strip())
    for name, command in COMMANDS.items()
    for line in command.__doc__.replace("\\\n", "").splitlines()
    if line.strip().startswith("auditor ")
]
WITH_CODES = {"audit", "claim", "report", "compare", "instances", "runs", "power", "collect"}


def shown(*arguments, capsys):
    """Run the command line in this process and return what it printed to standard output."""
    assert run(*arguments) == 0
    return capsys.readouterr().out


def test_every_command_has_two_to_five_examples_and_at_most_thirty_options():
    """No command goes without worked examples, each begins with its own name, and the help of each can be read."""
    counted = Counter(name for name, _ in LINES)
    assert {name: 2 <= counted[name] <= 5 for name in COMMANDS} == dict.fromkeys(COMMANDS, True)
    assert all(line.split()[:2] == ["auditor", name] for name, line in LINES)
    for command in COMMANDS.values():
        options = parsing.options_of(command)
        assert sum(not item.rare and "argument" not in item.about for item in options) <= 30
        assert all(item.words for item in options)
        assert len({item.name for item in options}) == len(options)


@pytest.mark.parametrize(("name", "line"), LINES)
def test_every_example_needs_its_files_alone(name, line, tmp_path, monkeypatch, capsys):
    """In an empty folder each example is taken by the parser, and runs, or is refused for a file that is not there."""
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line)[1:]
    assert parsing.given(COMMANDS[name], name, words[1:]) or name == "demo"
    if name == "demo" or "https:" in line:
        return
    code = app.run(words)
    assert code in {0, 2}
    assert code == 0 or re.search("No such file|does not exist", capsys.readouterr().err)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_help_shows_each_option_once_with_examples_and_exit_codes(name, capsys):
    """Three spellings show the same; the rare options are named there, and described with --help-all."""
    shown_by = {shown(*words, capsys=capsys) for words in (["help", name], [name, "--help"], [name, "-h"])}
    assert len(shown_by) == 1
    text = shown_by.pop()
    assert ("\nExit codes:\n" in text) == (name in WITH_CODES)
    assert "\x1b" not in text
    options = parsing.options_of(COMMANDS[name])
    whole = shown(name, "--help-all", capsys=capsys)
    rows = Counter(line.split()[0].rstrip(",") for line in whole.splitlines() if line.startswith("  -"))
    rare = [item for item in options if item.rare]
    assert rows.pop("--set", 0) == len(rare)
    assert rows == {item.dashed: 1 for item in options if not item.rare and "argument" not in item.about}
    assert all(item.key in text for item in rare)


def test_the_bare_command_says_where_to_begin(capsys):
    """`auditor`, `auditor --help`, `auditor -h` and `auditor help` show the first steps and every command by purpose."""
    first = shown(capsys=capsys)
    assert {shown(*words, capsys=capsys) for words in (["--help"], ["-h"], ["help"])} == {first}
    assert first.index("Audit a model:") < first.index("Promise and plan:")
    assert all(f"\n  {name} " in first for name in COMMANDS)
    assert shown("--version", capsys=capsys) == f"auditor {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("audti", "no such command 'audti'; did you mean 'audit'? See 'auditor --help'."),
        ("xyz", "no such command 'xyz'. See 'auditor --help'."),
        ("--bogus", "no such option '--bogus'. See 'auditor --help'."),
        ("audit x --hmtl p", "unknown option: --hmtl. Did you mean --html? See 'auditor audit --help'."),
        (
            "audit x --epsilon 3",
            "unknown option: --epsilon. Did you mean --claim-epsilon? See 'auditor audit --help'.",
        ),
        (
            "audit x --looks 3",
            "--looks is a rare option: write --set looks=VALUE. See 'auditor audit --help'.",
        ),
        ("audit x --set delta=0.1", "--set is for rare options, got 'delta=0.1'; write --delta."),
        ("audit x --set lokks=3", ["--set must be one of", "got 'lokks'; did you mean 'looks'?"]),
        ("audit x --set looks", "--set must be NAME=VALUE, got 'looks'."),
        ("audit x --set =3", "--set must be NAME=VALUE, got '=3'; --help-all lists the names."),
        ("audit x --delta y", "--delta must be a number, got 'y'."),
        ("audit x --split randm", ["split must be one of 'unknown', 'random'", "did you mean 'random'?"]),
        ("audit my losses.csv", ["'losses.csv' is one argument too many", "See 'auditor audit --help'."]),
        ("audit x --delta", "--delta needs a value, got none. See 'auditor audit --help'."),
        ("audit x --config", "--config needs a value, got none."),
        ("collect m", "--out must be given: where the losses go (.parquet). See 'auditor collect --help'."),
    ],
)
def test_a_slip_is_one_sentence_with_the_nearest(arguments, sentence, capsys):
    """What cannot be parsed is exit code 2 and one sentence: what it is, what it must be, the nearest, where to look."""
    said = refused(capsys, *shlex.split(arguments))
    words = [f"error: {sentence}\n"] if isinstance(sentence, str) else sentence
    assert [word for word in words if word not in said] == []


def test_the_last_of_repeated_options_counts(tmp_path, monkeypatch, capsys, rng):
    """A script can overrule what an alias typed before, rare options too; a name with a dash comes behind two dashes."""
    monkeypatch.chdir(tmp_path)
    leaking(tmp_path / "-l=1,2.csv", rng)
    typed = (
        "--seed",
        1,
        "--seed",
        "2",
        "--set",
        "looks=3",
        "--set",
        "looks=4",
        "-q",
        "-q",
        "--json",
        "r.json",
    )
    assert run("audit", *typed, "--", "-l=1,2.csv") == 0
    kept = json.loads((tmp_path / "r.json").read_text())["provenance"]["choices"]
    assert (kept["seed"], kept["looks"]) == (2, 4)
    assert "Wrote r.json.\n" in shown("audit", "--json", "r.json", "--", "-l=1,2.csv", capsys=capsys)


def test_completion_is_installed_for_every_command(tmp_path, monkeypatch, capsys):
    """The file that the shell reads has the commands and their options."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/bin/bash")
    assert "open a new shell" in shown("--install-completion", capsys=capsys)
    text = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    assert [word for word in (*COMMANDS, "--fail-if", "--claim-epsilon") if word not in text] == []


def test_no_name_commands_a_build_server(capsys):
    """What begins a line like a command begins with a backslash, one within a line is broken; others stay."""
    console.say("::error::x\n a :: b\n  ##vso[x]\n## heading\nsection_start:1:x\rsection_end:1:x\n")
    console.explain(["::stop-commands::x"])
    printed = capsys.readouterr()
    assert printed.out == (
        "\\::error::x\n a :: b\n  ⟨U+0023⟩#vso[x]\n## heading\n\\section_start:1:x⟨U+000D⟩section_end:1:x\n"
    )
    assert printed.err == "\\::stop-commands::x\n"
    console.hand_out(json.dumps({"a": "##VSO[x] ##[error] ##teamcity[y] ## z"}))
    printed = capsys.readouterr().out
    assert formats.commands(printed) == []
    assert json.loads(printed) == {"a": "##VSO[x] ##[error] ##teamcity[y] ## z"}


def test_a_reason_is_printed_once(table, capsys):
    """Where the verdict says why a number is missing, the number does not say it again."""
    claim = ("--claim-epsilon", "1", "--claim-delta", "1e-5")
    text = " ".join(shown("audit", str(table), *claim, "--set", "allow-unjudged", capsys=capsys).split())
    assert text.count("it was not declared how membership was decided") == 1
    assert "It was not declared" not in text
