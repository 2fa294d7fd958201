"""Help that does not go stale: every example is taken, every option has its place, every slip its hint."""

import json
import re
import shlex
from collections import Counter

import pytest
import typer
from command_line import answer, leaking, refused
from safety import formats

from auditor.cli import app, console

GROUP = typer.main.get_command(app.app)
COMMANDS = GROUP.commands
LINES = [
    (name, line.strip())
    for name, command in COMMANDS.items()
    for line in command.epilog.replace("\\\n", "").splitlines()
    if line.strip().startswith("auditor ")
]
WITH_CODES = {
    "audit",
    "claim",
    "report",
    "compare",
    "instances",
    "runs",
    "power",
    "collect",
    "verify",
}


def words_of(line):
    """The words after `auditor`, without the shell's own redirection."""
    words = shlex.split(line)
    return words[1 : words.index(">")] if ">" in words else words[1:]


def shown(*arguments, capsys):
    """Run the command line in this process and return what it printed to standard output."""
    assert app.run(list(arguments)) == 0
    return capsys.readouterr().out


def test_every_command_has_two_to_five_examples():
    """No command goes without worked examples, and each begins with its own name."""
    counted = Counter(name for name, _ in LINES)
    assert {name: 2 <= counted[name] <= 5 for name in COMMANDS} == dict.fromkeys(COMMANDS, True)
    assert all(line.split()[:2] == ["auditor", name] for name, line in LINES)


@pytest.mark.parametrize(("name", "line"), LINES)
def test_every_example_is_taken_by_the_commands_own_parser(name, line):
    """An option that is renamed, or a value that is no longer offered, makes its example fail here."""
    parent = typer.Context(GROUP, info_name="auditor")
    assert COMMANDS[name].make_context(name, words_of(line)[1:], parent=parent).params


@pytest.mark.parametrize("line", [line for name, line in LINES if name != "demo" and "https:" not in line])
def test_every_example_needs_its_files_alone(line, tmp_path, monkeypatch, capsys):
    """In an empty folder each example runs, or is refused for a file that is not there, not for its options."""
    monkeypatch.chdir(tmp_path)
    code = app.run(words_of(line))
    assert code in {0, 2}
    assert code == 0 or re.search("No such file|does not exist", capsys.readouterr().err)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_help_shows_examples_and_the_exit_codes(name, capsys):
    """Three spellings show the same: examples and exit codes, then each option once; of very many the rest on request."""
    shown_by = {shown(*words, capsys=capsys) for words in (["help", name], [name, "--help"], [name, "-h"])}
    assert len(shown_by) == 1
    text = shown_by.pop()
    assert text.index(COMMANDS[name].epilog) < text.index("\nGeneral:\n")
    assert ("\nExit codes:\n" in text) == (name in WITH_CODES)
    assert "\x1b" not in text
    context = typer.Context(COMMANDS[name], info_name=name)
    options = [
        param
        for param in COMMANDS[name].get_params(context)
        if param.param_type_name == "option" and not param.hidden
    ]
    whole = shown(name, "--help-all", capsys=capsys) if "--help-all" in text else text
    for words in (text, whole):
        rows = [
            line.split()[0].rstrip(",")
            for line in words.split(COMMANDS[name].epilog)[1].splitlines()
            if line.startswith("  -")
        ]
        assert len(rows) == len(set(rows))
        assert len(rows) == len(options) if words is whole else 8 <= len(rows) <= 20


def test_the_bare_command_says_where_to_begin(capsys):
    """`auditor`, `auditor --help`, `auditor -h` and `auditor help` show the first steps and every command by purpose."""
    first = shown(capsys=capsys)
    assert {shown(*words, capsys=capsys) for words in (["--help"], ["-h"], ["help"])} == {first}
    assert first.index("Audit a model:") < first.index("Promise and plan:") < first.index("auditor demo  ")
    assert all(f"\n  {name} " in first for name in COMMANDS)
    assert "..." not in first.split("Audit a model")[1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("audti", "No such command 'audti'. Did you mean 'audit'? See 'auditor --help'."),
        ("xyz", "No such command 'xyz'. See 'auditor --help'."),
        ("audit x --hmtl p", "no such option '--hmtl'; did you mean '--html'? See 'auditor audit --help'."),
        ("audit x --epsilon 3", ["no such option '--epsilon'; did you mean '--claim-epsilon'?"]),
        ("audit x --delta y", ["--delta cannot be 'y'", "number", "See 'auditor audit --help'."]),
        ("audit x --split randm", ["--split cannot be 'randm'", "'unknown', 'random', 'bernoulli'"]),
        ("audit my losses.csv", ["losses.csv", "See 'auditor audit --help'."]),
        ("audit x --delta", ["--delta", "requires an argument"]),
        ("collect m", "--out must be given: where the losses go (.parquet). See 'auditor collect --help'."),
        ("claim", "--delta must be given: delta to state epsilon at. See 'auditor claim --help'."),
    ],
)
def test_a_slip_is_one_sentence_with_the_nearest(arguments, sentence, capsys):
    """What cannot be parsed is exit code 2 and one sentence: what it is, what it must be, the nearest, where to look."""
    said = refused(capsys, *shlex.split(arguments))
    words = [f"error: {sentence}\n"] if isinstance(sentence, str) else sentence
    assert [word for word in words if word not in said] == []


# --- Completion -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "offered", "not_offered"),
    [
        ("auditor au", ["audit"], ["claim"]),
        ("auditor audit --split r", ["random"], ["unknown", "bernoulli"]),
        ("auditor help au", ["audit"], ["claim"]),
        ("auditor audit --fail-if epsilon_star.g", ["epsilon_star.gaussian"], ["auc"]),
        ("auditor audit --fail-if auc.", ["auc.lower", "auc.upper"], ["advantage"]),
    ],
)
def test_words_are_completed(monkeypatch, capsys, words, offered, not_offered):
    """The tabulator key offers commands, options, the values of an option, and the names that a gate may have."""
    for name, value in (("_AUDITOR_COMPLETE", "complete_bash"), ("COMP_WORDS", words)):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    with pytest.raises(SystemExit):
        app.run([])
    found = set(capsys.readouterr().out.split())
    assert set(offered) <= found
    assert not set(not_offered) & found


def test_every_number_that_is_offered_exists(rng):
    """What completion offers for a gate is what an ordinary audit finds, no more and no less, but the verdict."""
    import auditor as package
    from auditor.checks import CHECKS
    from auditor.results import offered

    losses = package.Losses(member=rng.normal(-1, 1, 300), nonmember=rng.normal(0, 1, 300))
    found = package.audit(
        losses, delta=1e-3, split=package.RandomSplit(), mixture=package.Mixture(max_components=2)
    )
    features = package.Features(rng.normal(0, 1, 300), rng.normal(0, 1, 300))
    odds = package.audit(losses, delta=1e-3, split=package.Propensity(features))
    names = {estimate.name for result in (found, odds) for estimate in result.estimates}
    assert names == set(offered())
    assert {check.name for check in found.checks} <= {item.name for item in CHECKS if item.hint}


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


def test_members_are_a_table_and_the_old_words_are_still_read(tmp_path, monkeypatch, capsys, rng):
    """`--coverage census` is `--coverage census`; a file of that name is `./census`; what was written is said."""
    monkeypatch.chdir(tmp_path)
    leaking(tmp_path / "losses.csv", rng)
    found = [
        answer(capsys, "audit", "losses.csv", "--delta", "1e-5", *words)
        for words in (("--coverage", "census"), ("--coverage", "census"), ())
    ]
    assert [item["data"]["members"] for item in found] == ["census", "census", "sample"]
    files = ("--members", "./census", "--nonmembers", "losses.csv")
    assert "'census'" in refused(capsys, "audit", *files)  # a table, and none that is there
    assert "Wrote r.json.\n" in shown(
        "audit", "losses.csv", "--delta", "1e-5", "--json", "r.json", capsys=capsys
    )


def test_a_reason_is_printed_once(table, capsys):
    """Where the verdict says why a number is missing, the number does not say it again."""
    claim = ("--claim-epsilon", "1", "--claim-delta", "1e-5")
    text = " ".join(shown("audit", str(table), *claim, "--set", "allow-unjudged", capsys=capsys).split())
    assert text.count("it was not declared how membership was decided") == 1
    assert "It was not declared" not in text
