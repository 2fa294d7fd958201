"""Help that does not go stale: every example is parsed and run, every option has its place, every slip its hint."""

import contextlib
import os
import shlex
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import typer

from auditor.cli import EXAMPLES, EXIT_CODES, GENERAL, app

GROUP = typer.main.get_command(app.app)
COMMANDS = GROUP.commands
LINES = [(name, line) for name, found in EXAMPLES.items() for line in found.values() if name in COMMANDS]
# What needs a model of one's own, a server, or minutes; the demo has a test of its own.
NOT_RUN = (
    "auditor demo --html",
    "auditor collect https:",
    "auditor collect ./",
    "--factory",
    "--engine ray",
    "--runs 1000",
    "auditor demo",
)
LONG = 16  # options of its own that a command can have without sections


def words_of(line):
    """The words after `auditor`, without the shell's own redirection."""
    words = shlex.split(line)
    return words[1 : words.index(">")] if ">" in words else words[1:]


def shown(*arguments, capsys):
    """Run the command line in this process and return what it printed to standard output."""
    assert app.run(list(arguments)) == 0
    return capsys.readouterr().out


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A folder with everything that the examples name."""
    import skops.io
    from sklearn.linear_model import LogisticRegression

    folder = tmp_path_factory.mktemp("examples")
    rng = np.random.default_rng(0)
    member = np.repeat([1, 0], 300)
    loss = rng.normal(1 - 0.5 * member, 1.0)
    pd.DataFrame({"loss": loss, "member": member}).to_csv(folder / "losses.csv", index=False)
    for name, kind in (("train", 1), ("holdout", 0)):
        x = rng.normal(size=(300, 3)) + kind / 10
        table = pd.DataFrame(x, columns=list("abc"))
        table["score"] = -loss[member == kind]
        (table.drop(columns="score").assign(diagnosis=rng.integers(0, 2, 300))).to_csv(
            folder / f"{name}.csv", index=False
        )
        table[["score"]].to_csv(folder / f"{name}-scores.csv", index=False)
    x = pd.read_csv(folder / "train.csv")
    skops.io.dump(LogisticRegression().fit(x[list("abc")], x["diagnosis"]), folder / "model.skops")
    pd.DataFrame({"noise_multiplier": [1.0, 2.0], "sampling_rate": 0.01, "steps": [100, 50]}).to_csv(
        folder / "steps.csv", index=False
    )
    pd.DataFrame({"result": ["first.json", "second.json"], "utility": [0.8, 0.9]}).to_csv(
        folder / "models.csv", index=False
    )
    for name in ("scores", "earlier"):
        pd.DataFrame({"loss": rng.normal(-0.1 * member, 1.0), "member": member}).to_csv(
            folder / f"{name}.csv", index=False
        )
    (folder / "audits").mkdir()
    with contextlib.chdir(folder):
        for name in ("result", "last", "this", "first", "second", "third"):
            # Every model has losses of its own.
            pd.DataFrame({"loss": rng.normal(1 - 0.5 * member, 1.0), "member": member}).to_csv("own.csv")
            arguments = f"audit own.csv --split random --delta 1e-5 --json {name}.json --quiet"
            assert app.run(shlex.split(arguments)) == 0
    return folder


def test_every_command_has_two_to_five_examples():
    """No command goes without worked examples, and each begins with its own name."""
    assert {name: 2 <= len(EXAMPLES.get(name, ())) <= 5 for name in COMMANDS} == dict.fromkeys(COMMANDS, True)
    assert all(line.split()[:2] == ["auditor", name] for name, line in LINES)


@pytest.mark.parametrize(("name", "line"), LINES)
def test_every_example_is_taken_by_the_commands_own_parser(name, line):
    """An option that is renamed, or a value that is no longer offered, makes its example fail here."""
    context = COMMANDS[name].make_context(
        name, words_of(line)[1:], parent=typer.Context(GROUP, info_name="auditor")
    )
    assert context.params


def test_the_parser_would_refuse_a_stale_example():
    """The test above can fail: an option that is not there is an error of the parser."""
    with pytest.raises(Exception, match="No such option"):
        COMMANDS["audit"].make_context("audit", ["losses.csv", "--htlm", "x"])


@pytest.mark.parametrize("line", [line for _, line in LINES if not any(part in line for part in NOT_RUN)])
def test_every_example_runs(house, line, monkeypatch, capsys):
    """Each example that needs nothing but files does what it says, in a folder with those files."""
    monkeypatch.chdir(house)
    line = line.replace(
        "train.csv --nonmember-file holdout.csv", "train-scores.csv --nonmember-file holdout-scores.csv"
    )
    code = app.run(words_of(line))
    printed = capsys.readouterr()
    # A gate may fail on these losses; and power answers 3 where no number of records is enough.
    assert code in {0, 1}, printed.err
    assert code == 0 or "--fail-if" in line, printed.err


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_help_shows_examples_and_the_exit_codes(name, capsys):
    """Every command's help ends with its examples, word for word once unfolded, and its exit codes where they matter."""
    text = shown(name, "--help", capsys=capsys)
    unfolded = " ".join(text.replace("\\\n", " ").split())
    assert all(" ".join(line.split()) in unfolded for line in EXAMPLES[name].values())
    assert ("Exit codes:" in text) == (name in EXIT_CODES)
    assert "\x1b" not in text
    assert "<" not in text.split("Examples:")[0].replace("<clipping", "")


@pytest.mark.parametrize("width", [40, 60, 80, 200])
@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_help_keeps_to_the_width(name, width, capsys, monkeypatch):
    """Prose is never wider than the terminal, nor than can be read; only names that cannot be broken are."""
    monkeypatch.setenv("COLUMNS", str(width))
    lines = shown(name, "--help", capsys=capsys).splitlines()
    limit = min(width, 100)
    assert [line for line in lines if len(line) > limit and len(line.split()) > 3 and width > 60] == []


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_many_options_stand_in_sections(name, capsys):
    """Where a command has many options, each has a section, and none is shown twice or lost."""
    options = [param for param in COMMANDS[name].params if param.param_type_name == "option"]
    planned = [str(param.name) for param in options if param.rich_help_panel]
    assert len(set(planned)) == len(planned)
    if len({str(param.name) for param in options} - set(GENERAL)) > LONG:
        assert {str(param.name) for param in options} - {*planned, *GENERAL} == set()
    text = shown(name, "--help", capsys=capsys).split("Examples:")[0]
    rows = [line.split()[0].rstrip(",") for line in text.splitlines() if line.startswith("  -")]
    assert len(rows) == len(set(rows)) == len(options) + 1


def test_the_bare_command_says_where_to_begin(capsys):
    """`auditor`, `auditor --help`, `auditor -h` and `auditor help` show the first steps and every command."""
    first = shown(capsys=capsys)
    assert {shown(*words, capsys=capsys) for words in (["--help"], ["-h"], ["help"])} == {first}
    assert first.index("Where to begin") < first.index("auditor demo") < first.index("Audit a model")
    assert all(f"  {name} " in first for name in COMMANDS)
    assert "..." not in first.split("Audit a model")[1]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_of_a_command_by_three_spellings(name, capsys):
    """`auditor help X`, `auditor X --help` and `auditor X -h` are the same."""
    spellings = (["help", name], [name, "--help"], [name, "-h"])
    assert len({shown(*words, capsys=capsys) for words in spellings}) == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("audti", "no such command 'audti'; did you mean 'audit'? See 'auditor --help'."),
        ("help audti", "no such command 'audti'; did you mean 'audit'? See 'auditor --help'."),
        ("xyz", "no such command 'xyz'. See 'auditor --help'."),
        (
            "losses.csv",
            "no such command 'losses.csv'; to audit a table: 'auditor audit losses.csv'. See 'auditor --help'.",
        ),
        ("audit x --hmtl p", "no such option '--hmtl'; did you mean '--html'? See 'auditor audit --help'."),
        ("audit x -html p", "no such option '-html'; did you mean '--html'? See 'auditor audit --help'."),
        (
            "audit x --epsilon 3",
            "no such option '--epsilon'; did you mean '--claim-epsilon'? See 'auditor audit --help'.",
        ),
        ("audit x --zzzzzz", "no such option '--zzzzzz'. See 'auditor audit --help'."),
        ("--verison", "no such option '--verison'; did you mean '--version'? See 'auditor --help'."),
        ("audit x --delta y", "--delta must be a number, got 'y'. See 'auditor audit --help'."),
        ("audit x --delta=y", "--delta must be a number, got 'y'. See 'auditor audit --help'."),
        (
            "audit x --top-records -1",
            "--top-records must be 0 or more, got '-1'. See 'auditor audit --help'.",
        ),
        (
            "audit x --top-records 1.5",
            "--top-records must be a whole number, got '1.5'. See 'auditor audit --help'.",
        ),
        ("audit x --seed 1.5", "--seed must be a whole number, got '1.5'. See 'auditor audit --help'."),
        (
            "audit x --split randm",
            (
                "--split must be one of 'unknown', 'random', 'bernoulli', got 'randm'; did you mean 'random'?"
                " See 'auditor audit --help'."
            ),
        ),
        (
            "audit my losses.csv",
            (
                "too many arguments, namely 'losses.csv'; put quotation marks around a name with blanks."
                " See 'auditor audit --help'."
            ),
        ),
        ("audit x --delta", "--delta must be followed by a value. See 'auditor audit --help'."),
        (
            "audit x --quiet=3",
            "--quiet takes no value; leave out what follows the sign =. See 'auditor audit --help'.",
        ),
        (
            "collect m",
            "--out must be given: where the losses go (.parquet). See 'auditor collect --help'.",
        ),
        ("claim", "--delta must be given: delta to state epsilon at. See 'auditor claim --help'."),
    ],
)
def test_a_slip_is_one_sentence_with_the_nearest(arguments, sentence, capsys):
    """What cannot be parsed is exit code 2 and one sentence: what it is, what it must be, the nearest, where to look."""
    assert app.run(shlex.split(arguments)) == 2
    printed = capsys.readouterr()
    assert printed.err == f"error: {sentence}\n"
    assert printed.out == ""


# --- Completion -----------------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch, capsys):
    """What the program prints when a shell asks it, by arguments and variables, and the exit code."""

    def ask(*arguments, **environment):
        with monkeypatch.context() as changed:
            for name, value in environment.items():
                changed.setenv(name, value)
            with pytest.raises(SystemExit) as stop:
                app.run(list(arguments))
        printed = capsys.readouterr()
        assert printed.err == ""
        return printed.out, stop.value.code

    return ask


# Otherwise the shell is found out by looking at the processes above.
NAMED = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_the_completion_script_is_printed(shell, asked):
    """--show-completion prints the script of the shell, which calls auditor back."""
    script, code = asked("--show-completion", shell, **NAMED)
    assert code == 0
    assert f"_AUDITOR_COMPLETE{' = ' if shell == 'powershell' else '='}" in script
    assert f"complete_{shell}" in script


@pytest.mark.parametrize(
    ("shell", "place"), [("bash", ".bash_completions"), ("zsh", ".zfunc"), ("fish", ".config")]
)
def test_the_completion_script_is_installed(shell, place, tmp_path, asked):
    """--install-completion writes below the home folder, into the place of the shell."""
    assert asked("--install-completion", shell, HOME=str(tmp_path), **NAMED)[1] == 0
    scripts = [path for path in (tmp_path / place).rglob("*auditor*") if path.is_file()]
    assert len(scripts) == 1
    assert "_AUDITOR_COMPLETE" in scripts[0].read_text(encoding="utf-8")


def completed(asked, shell, words):
    """Return what the shell would offer for the last of the words."""
    if shell == "bash":
        listed = words.split(" ")
        environment = {"COMP_WORDS": words, "COMP_CWORD": str(len(listed) - 1)}
    else:
        environment = {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    return asked(_AUDITOR_COMPLETE=f"complete_{shell}", **environment)[0]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("words", "offered", "not_offered"),
    [
        ("auditor au", ["audit"], ["claim"]),
        ("auditor ", ["audit", "demo", "claim"], []),
        ("auditor audit --split r", ["random"], ["unknown", "bernoulli"]),
        ("auditor audit --split ", ["random", "unknown", "bernoulli"], []),
        ("auditor audit --claim-", ["--claim-epsilon", "--claim-delta"], ["--html"]),
        ("auditor help au", ["audit"], ["claim"]),
        ("auditor audit --fail-if epsilon_star.g", ["epsilon_star.gaussian"], ["auc"]),
        ("auditor audit --fail-if auc.", ["auc.lower", "auc.upper"], ["advantage"]),
        ("auditor audit --fail-if checks.sh", ["checks.shift"], ["checks.ties"]),
    ],
)
def test_words_are_completed(asked, shell, words, offered, not_offered):
    """The tabulator key offers commands, options, the values of an option, and the names that a gate may have."""
    found = completed(asked, shell, words)
    assert all(word in found for word in offered), found
    assert not any(word in found for word in not_offered), found


def test_files_are_left_to_the_shell(asked):
    """For a path nothing is offered, so that the shell offers files: bash by its default, zsh and fish when asked."""
    assert completed(asked, "bash", "auditor audit --html re").strip() == ""
    assert completed(asked, "zsh", "auditor audit --html re").strip() == "_files"
    environment = {"_TYPER_COMPLETE_ARGS": "auditor audit re", "_TYPER_COMPLETE_FISH_ACTION": "is-args"}
    assert asked(_AUDITOR_COMPLETE="complete_fish", **environment)[1] == 1
    assert "complete -o default " in asked("--show-completion", "bash", **NAMED)[0]


@pytest.mark.skipif(not os.path.exists("/bin/bash"), reason="needs bash")  # noqa: PTH110
def test_bash_itself_completes(tmp_path):
    """The script that bash is given, sourced as one does, completes in a real bash."""
    program = tmp_path / "auditor"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m auditor "$@"\n')
    program.chmod(0o755)
    found = subprocess.run(
        [
            "/bin/bash",
            "--norc",
            "-c",
            (
                "source <(auditor --show-completion); COMP_WORDS=(auditor audit --split r); COMP_CWORD=3;"
                ' _auditor_completion auditor; printf "%s\\n" "${COMPREPLY[@]}"'
            ),
        ],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    assert found.stdout == "random\n"


def test_every_number_that_is_offered_exists(rng):
    """What completion offers for a gate is what an ordinary audit finds, no more and no less, but the verdict."""
    import auditor as package
    from auditor.checks import CHECKS
    from auditor.results import offered

    losses = package.Losses(member=rng.normal(-1, 1, 300), nonmember=rng.normal(0, 1, 300))
    found = package.audit(
        losses,
        delta=1e-3,
        split=package.RandomSplit(),
        mixture=package.Mixture(max_components=2),
    )
    names = {estimate.name for estimate in found.estimates}
    assert names == set(offered())
    assert {check.name for check in found.checks} <= {item.name for item in CHECKS if item.hint}
