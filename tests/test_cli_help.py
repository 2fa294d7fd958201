"""Help that does not go stale: every example is taken, every option has its place, every slip its hint."""

import json
import re
import shlex
from collections import Counter

import pytest
from command_line import answer, leaking, refused, run
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


def printed(*arguments, capsys):
    """Run the command line in this process and return its standard output."""
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
    assert parsing.parsed(COMMANDS[name], name, words[1:]) or name == "demo"
    if name == "demo" or "https:" in line:
        return
    code = app.run(words)
    assert code in {0, 2}
    assert code == 0 or re.search(
        "No such file|does not exist|there is none at that path", capsys.readouterr().err
    )


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_help_shows_each_option_once_with_examples_and_exit_codes(name, capsys):
    """Three spellings show the same; the rare options are named there, and described with --help-all."""
    texts = {printed(*words, capsys=capsys) for words in (["help", name], [name, "--help"], [name, "-h"])}
    assert len(texts) == 1
    text = texts.pop()
    assert ("\nExit codes:\n" in text) == (name in WITH_CODES)
    assert "\x1b" not in text
    options = parsing.options_of(COMMANDS[name])
    whole = printed(name, "--help-all", capsys=capsys)
    rows = Counter(line.split()[0].rstrip(",") for line in whole.splitlines() if line.startswith("  -"))
    rare = [item for item in options if item.rare]
    assert rows.pop("--set", 0) == len(rare)
    assert rows == {item.dashed: 1 for item in options if not item.rare and "argument" not in item.about}
    assert all(item.key in text for item in rare)


def test_the_bare_command_says_where_to_begin(capsys):
    """`auditor`, `auditor --help`, `auditor -h` and `auditor help` show the first steps and every command by purpose."""
    first = printed(capsys=capsys)
    assert {printed(*words, capsys=capsys) for words in (["--help"], ["-h"], ["help"])} == {first}
    assert first.index("Audit a model:") < first.index("Promise and plan:")
    assert all(f"\n  {name} " in first for name in COMMANDS)
    assert printed("--version", capsys=capsys) == f"auditor {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("audti", "no such command 'audti'; did you mean 'audit'? See 'auditor --help'."),
        ("audit x -z", "unknown option: -z. See 'auditor audit --help'."),
        ("audit x --hmtl=p", "unknown option: --hmtl. Did you mean --html? See 'auditor audit --help'."),
        ("xyz", "no such command 'xyz'. See 'auditor --help'."),
        ("dmoe", "no such command 'dmoe'; did you mean 'demo'? See 'auditor --help'."),
        ("audit x --threshold 0.6", ["threshold must be one of 'rank-grid'"]),
        (
            "audit x --factory m:f",
            ["unknown option: --factory. It is an option of auditor collect."],
        ),
        (
            "audit x --group region",
            "unknown option: --group. Did you mean --group-column? See 'auditor audit --help'.",
        ),
        (
            "audit x --memory 1XB",
            "--memory must be a number of bytes or a size such as 1GB or 512MiB, got '1XB'.",
        ),
        (
            "--bogus",
            "no such option '--bogus' in front of the command; options follow it. See 'auditor --help'.",
        ),
        ("audit x --hmtl p", "unknown option: --hmtl. Did you mean --html? See 'auditor audit --help'."),
        (
            "audit x --epsilon 3",
            "unknown option: --epsilon. It is an option of auditor power. See 'auditor audit --help'.",
        ),
        ("audit x --looks y", "--looks must be a whole number, got 'y'."),
        ("audit x --set delta=0.1", "--set is for rare options, got 'delta=0.1'; write --delta."),
        ("audit x --set lokks=3", ["--set must be one of", "got 'lokks'; did you mean 'looks'?"]),
        ("audit x --set looks", "--set must be NAME=VALUE, got 'looks'."),
        ("audit x --set =3", "--set must be NAME=VALUE, got '=3'; --help-all lists the names."),
        ("audit x --delta y", "--delta must be a number, got 'y'."),
        ("audit x --split randm", ["split must be one of 'unknown', 'random'", "did you mean 'random'?"]),
        ("audit my losses.csv", ["'losses.csv' is one argument too many", "See 'auditor audit --help'."]),
        ("audit x --delta", "--delta needs a value, got none. See 'auditor audit --help'."),
        ("audit x --config", "--config needs a value, got none."),
        ("collect m", "--out must be given: output file of losses (.parquet). See 'auditor collect --help'."),
    ],
)
def test_a_slip_is_one_sentence_with_the_nearest(arguments, sentence, capsys):
    """A parse error is exit code 2 and one sentence: the argument, its constraint, the nearest name, the help."""
    said = refused(capsys, *shlex.split(arguments))
    words = [f"error: {sentence}\n"] if isinstance(sentence, str) else sentence
    assert [word for word in words if word not in said] == []


def test_a_rare_option_is_taken_as_any_other(tmp_path, rng, capsys):
    """Behind two dashes and by ``--set`` it is the same, negative numbers and sizes with a unit too."""
    table = leaking(tmp_path / "losses.csv", rng)
    for typed in (("--looks", 3, "--memory", "1MB"), ("--set", "looks=3", "--set", "memory=0.5MiB")):
        stored = answer(capsys, "audit", table, *typed)["provenance"]["choices"]
        assert stored["looks"] == 3
    for size in ("1kB", "1000", "1e3"):
        assert " 1e-06 GB" in refused(capsys, "audit", table, "--memory", size)


def test_the_help_says_what_an_option_needs(capsys):
    """The help marks required options, and names the options that others need."""
    text = " ".join(printed("audit", "--help", capsys=capsys).split())
    for name, other in (
        ("claim-epsilon", "claim-delta"),
        ("claim-delta", "claim-epsilon"),
        ("steps", "noise-multiplier"),
        ("members", "nonmembers"),
    ):
        assert re.search(rf"--{name} [A-Z]+ [^.]*(\.[^-]*)*Needs (--[\w-]+ and )?--{other}", text)
    assert "Output file of losses (.parquet). Required." in printed("collect", "--help", capsys=capsys)


def test_the_last_of_repeated_options_counts(tmp_path, monkeypatch, capsys, rng):
    """A script can override the options of an alias, rare options too; a name with a dash comes behind two dashes."""
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
    stored = json.loads((tmp_path / "r.json").read_text())["provenance"]["choices"]
    assert (stored["seed"], stored["looks"]) == (2, 4)
    assert "Wrote r.json.\n" in printed("audit", "--json", "r.json", "--", "-l=1,2.csv", capsys=capsys)


def test_completion_is_installed_for_every_command(tmp_path, monkeypatch, capsys):
    """The file that the shell reads has the commands and their options."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/bin/bash")
    assert "open a new shell" in printed("--install-completion", capsys=capsys)
    text = "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    assert [word for word in (*COMMANDS, "--fail-if", "--claim-epsilon") if word not in text] == []


def test_no_name_commands_a_build_server(capsys):
    """A command at the start of a line is preceded by a backslash, and one within a line is escaped; other text stays."""
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
    text = " ".join(printed("audit", str(table), *claim, "--set", "allow-unjudged", capsys=capsys).split())
    assert text.count("it was not declared how membership was decided") == 1
    assert "It was not declared" not in text
