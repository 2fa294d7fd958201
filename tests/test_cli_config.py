"""Settings from files: where they are found, what wins, what is refused, and what `auditor init` writes."""

import json
import os
import tomllib

import pandas as pd
import pytest
import typer

import auditor
from auditor import cli
from auditor.commands.init import EXAMPLE, text
from auditor.commands.settable import options_of
from auditor.gates import parse

GROUP = typer.main.get_command(cli.app)
COMMANDS = {command.__name__: command for command in cli._CONFIGURED}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The current directory, with a table of losses that leak."""
    monkeypatch.chdir(tmp_path)
    losses = [i / 40 for i in range(40)] + [0.9 + i / 40 for i in range(40)]
    pd.DataFrame({"loss": losses, "member": [1] * 40 + [0] * 40}).to_csv("losses.csv", index=False)
    return tmp_path


def run(*arguments):
    """Run the command line in this process."""
    return cli.run([str(argument) for argument in arguments])


def audited(capsys, *arguments, code=0):
    """The result of an audit with these arguments, as JSON."""
    capsys.readouterr()
    assert run("audit", "losses.csv", "--json", "-", *arguments) == code
    return json.loads(capsys.readouterr().out)


def refused(capsys, *arguments):
    """The one sentence on standard error."""
    capsys.readouterr()
    assert run(*(arguments or ("audit", "losses.csv"))) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    return printed.err


def save(content, name="auditor.toml"):
    """Write a file in the current directory."""
    with open(name, "wb") as file:  # noqa: PTH123
        file.write(content if isinstance(content, bytes) else content.encode())


def facts(raw):
    """A result without what differs from run to run."""
    kept = {key: value for key, value in raw.items() if key != "provenance"}
    return kept | {"seed": raw["provenance"]["seed"], "hash": raw["provenance"]["input_sha256"]}


# --- Where settings come from ---------------------------------------------------------------------


@pytest.mark.parametrize(("name", "prefix"), [("auditor.toml", ""), ("pyproject.toml", "tool.auditor.")])
def test_a_file_in_the_current_directory_sets_options(capsys, name, prefix):
    """Options in auditor.toml, or in [tool.auditor] of pyproject.toml, do what they do on the command line."""
    options = (
        "--delta",
        "0.01",
        "--split",
        "random",
        "--claim-epsilon",
        "9",
        "--claim-delta",
        "0.01",
        "--melded",
    )
    typed = audited(capsys, *options)
    save(
        f"[{prefix}audit]\ndelta = 0.01\nsplit = 'random'\nclaim-epsilon = 9\nclaim-delta = 0.01\nmelded = true\n",
        name,
    )
    found = audited(capsys)
    assert facts(found) == facts(typed)
    assert found["data"]["delta"] == 0.01
    assert found["provenance"]["config"] == {
        "file": name,
        "table": f"[{prefix}audit]",
        "settings": {
            "delta": 0.01,
            "split": "random",
            "claim-epsilon": 9,
            "claim-delta": 0.01,
            "melded": True,
        },
    }
    assert "config" not in typed["provenance"]


def test_the_command_line_wins_over_the_file_and_the_file_over_the_default(capsys):
    """What is typed overrules the file, a list as a whole; the provenance names only what counted."""
    save("[audit]\nconfidence = 0.8\nseed = 7\nfail-if = ['auc > 0.5']\n")
    found = audited(capsys, code=1)
    assert (found["data"]["confidence"], found["provenance"]["seed"]) == (0.8, 7)
    found = audited(capsys, "--confidence", "0.9", "--fail-if", "auc > 2")
    assert (found["data"]["confidence"], found["provenance"]["seed"]) == (0.9, 7)
    assert found["provenance"]["config"]["settings"] == {"seed": 7}
    assert audited(capsys, "--no-config")["data"]["confidence"] == 0.95


def test_what_is_typed_as_the_default_still_wins(capsys):
    """An option typed with its default value overrules the file too."""
    save("[audit]\nconfidence = 0.8\n")
    found = audited(capsys, "--confidence", "0.95")
    assert found["data"]["confidence"] == 0.95
    assert "config" not in found["provenance"]


def test_gates_of_a_file_stop_the_pipeline():
    """Gates in the file set the exit code: failed, not evaluable, and passed."""
    for gates, code in (("['auc > 0.9', 'auc > 2']", 1), ("['epsilon_bound.one_run > 1']", 3), ("[]", 0)):
        save(f"[audit]\nfail-if = {gates}\nquiet = true\n")
        assert run("audit", "losses.csv") == code


def test_a_named_file_is_used_before_and_after_the_command(capsys):
    """--config works in front of the command and behind it, and leaves the file of the directory alone."""
    save("[audit]\nconfidence = 0.8\n")
    save("[audit]\nconfidence = 0.7\n", "other.toml")
    save("[audit]\nconfidence = 0.6\n", "third.toml")
    for arguments, level in (
        (("--config", "other.toml", "audit", "losses.csv"), 0.7),
        (("audit", "losses.csv", "--config", "other.toml"), 0.7),
        (("audit", "--config=other.toml", "losses.csv"), 0.7),
        (("--config", "third.toml", "audit", "losses.csv", "--config", "other.toml"), 0.7),
        (("audit", "losses.csv"), 0.8),
        (("--no-config", "audit", "losses.csv"), 0.95),
        (("audit", "losses.csv", "--no-config"), 0.95),
    ):
        assert run(*arguments, "--json", "-") == 0
        assert json.loads(capsys.readouterr().out)["data"]["confidence"] == level
    words = refused(capsys, "--no-config", "audit", "losses.csv", "--config", "other.toml")
    assert "--config and --no-config contradict each other" in words


def test_a_named_pyproject_needs_its_table(capsys):
    """--config pyproject.toml takes [tool.auditor] from there, and says so where there is none."""
    save("[tool.other]\nx = 1\n", "pyproject.toml")
    words = refused(capsys, "audit", "losses.csv", "--config", "pyproject.toml")
    assert "configuration file 'pyproject.toml' has no table [tool.auditor]." in words


def test_two_files_that_configure_are_refused(capsys):
    """auditor.toml beside a configuring pyproject.toml is a contradiction; beside any other it is not."""
    save("[audit]\nconfidence = 0.8\n")
    save("[tool.auditor.audit]\nconfidence = 0.7\n", "pyproject.toml")
    assert "both 'auditor.toml' and [tool.auditor] in 'pyproject.toml' hold settings" in refused(capsys)
    assert audited(capsys, "--config", "auditor.toml")["data"]["confidence"] == 0.8
    assert audited(capsys, "--config", "pyproject.toml")["data"]["confidence"] == 0.7
    for other in (
        "[project]\nname = 'auditor-of-mine'\n",
        "[tool.other]\nx = 1\n",
        "not TOML at all",
        b"\xff\xfe",
    ):
        save(other, "pyproject.toml")
        assert audited(capsys)["data"]["confidence"] == 0.8


def test_files_in_other_folders_are_not_looked_for(folder, capsys, monkeypatch):
    """Only the current directory counts, not the folders above it."""
    save("[audit]\nconfidence = 0.8\n")
    (folder / "inner").mkdir()
    monkeypatch.chdir(folder / "inner")
    assert run("audit", "../losses.csv", "--json", "-") == 0
    assert json.loads(capsys.readouterr().out)["data"]["confidence"] == 0.95


def test_paths_are_meant_from_the_folder_of_the_file(folder, capsys):
    """A path in a file elsewhere is beside that file; a dash and an absolute path stay what they are."""
    (folder / "ci").mkdir()
    save(
        f"[audit]\nhtml = 'page.html'\njson = 'r.json'\nmarkdown = '{folder}/m.md'\nquiet = true\n",
        "ci/a.toml",
    )
    assert run("audit", "losses.csv", "--config", "ci/a.toml") == 0
    assert {path.name for path in (folder / "ci").iterdir()} == {"a.toml", "page.html", "r.json"}
    assert (folder / "m.md").exists()
    config = auditor.read_result("ci/r.json").provenance["config"]
    assert (config["file"], config["settings"]["html"]) == ("ci/a.toml", "page.html")
    save("[audit]\njson = '-'\n", "ci/a.toml")
    capsys.readouterr()
    assert run("audit", "losses.csv", "--config", "ci/a.toml") == 0
    assert json.loads(capsys.readouterr().out)["verdict"] is None


def test_a_required_option_may_come_from_a_file(capsys):
    """`auditor power` needs an epsilon and a delta: a file can give them."""
    assert "epsilon" in refused(capsys, "power", "--quiet")
    save("[power]\nepsilon = 1\ndelta = 1e-5\n")
    assert run("power") == 0


def test_files_of_windows_are_read(capsys):
    """A byte order mark and CR LF are no error."""
    save(b"\xef\xbb\xbf[audit]\r\nconfidence = 0.8\r\n")
    assert audited(capsys)["data"]["confidence"] == 0.8


def test_help_and_version_need_no_good_file():
    """Whoever mends a broken file can still ask for help, and `init` can replace it."""
    save("[")
    for arguments in (("audit", "--help"), ("--help",), ("--version",), ("init", "--force"), ("schema",)):
        assert run(*arguments) == 0
    assert run("audit", "losses.csv", "--quiet") == 0


# --- What is refused ------------------------------------------------------------------------------

REFUSED = {
    "unknown table": ("[audti]\n", "there is no command 'audti' that takes settings; did you mean 'audit'?"),
    "init has no table": ("[init]\n", "there is no command 'init' that takes settings"),
    "unknown key": (
        "[audit]\nconfidense = 0.9\n",
        "table [audit] has the unknown key 'confidense'; did you mean 'confidence'?",
    ),
    "underscore": ("[audit]\nfail_if = ['auc > 1']\n", "unknown key 'fail_if'; did you mean 'fail-if'?"),
    "dashes in front": ("[audit]\n--delta = 1\n", "did you mean 'delta'?"),
    "nothing near": ("[audit]\nqqqq = 1\n", "unknown key 'qqqq'. 'auditor audit --help' lists the options."),
    "nested": ("[audit.inner]\ndelta = 1\n", "unknown key 'inner'"),
    "argument": ("[audit]\nlosses = 'x.csv'\n", "'losses': it is an argument, not an option; give it on the command line."),
    "outside": ("delta = 1e-5\n", "the key 'delta' stands outside every table; put it below the line [audit]."),
    "no table": ("audit = 3\n", "'audit' must be a table, written [audit]."),
    "text for number": (
        "[audit]\ndelta = '1e-5'\n",
        "the key 'delta' in table [audit] must be a number, got a text ('1e-5'); leave out its quotation marks.",
    ),
    "truth for number": ("[audit]\ndelta = true\n", "must be a number, got true or false (true)."),
    "date for number": ("[audit]\ndelta = 2026-01-01\n", "must be a number, got a date or time (2026-01-01)."),
    "table for number": ("[audit]\ndelta = {a = 1}\n", "must be a number, got a table."),
    "fraction for whole": ("[audit]\nseed = 1.5\n", "the key 'seed' in table [audit] must be a whole number, got a number (1.5)."),
    "number for text": ("[audit]\nmodel-name = 3\n", "must be a text in quotation marks, got a number (3)."),
    "number for path": ("[audit]\nhtml = 3\n", "must be a path in quotation marks, got a number (3)."),
    "number for choice": ("[audit]\nsplit = 3\n", "must be one of 'unknown', 'random', 'bernoulli', got 3."),
    "wrong choice": ("[audit]\nsplit = 'randm'\n", "got 'randm'; did you mean 'random'?"),
    "text for flag": ("[audit]\nmelded = 'yes'\n", "must be true or false, got a text ('yes')"),
    "number for flag": ("[audit]\nmelded = 1\n", "must be true or false, got a number (1)."),
    "list for single": ("[audit]\ndelta = [1]\n", "must be a number, got a list; it takes one value."),
    "single for list": ("[audit]\nfail-if = 'auc > 1'\n", "must be a list, since it can be given several times, got a text ('auc > 1')"),
    "number in list": ("[audit]\nfail-if = ['auc > 1', 2]\n", "(entry 1, counting from 0) must be a text in quotation marks, got a number (2)."),
    "code": ("[collect]\ntrust-pickle = true\n", "cannot be set in a file, because it lets a model run code; give --trust-pickle on the command line."),
    "factory": ("[collect]\nfactory = 'm:f'\n", "cannot be set in a file, because it runs code"),
    "debug": ("[audit]\ndebug = true\n", "the key 'debug' in table [audit] cannot be set in a file"),
    "another command's table": ("[claim]\ndelt = 1\n", "table [claim] has the unknown key 'delt'; did you mean 'delta'?"),
    "twice": ("[audit]\nseed = 1\nseed = 2\n", "is not valid TOML: Cannot overwrite a value (at line 3"),
    "broken": ("[audit\n", "is not valid TOML"),
    "not UTF-8": (b"[audit]\nmodel-name = '\xe4'\n", "is not text in UTF-8 (byte 22); save it as UTF-8."),
    "deep": ("x = " + "[" * 50_000, "is nested too deeply"),
    "digits": ("[audit]\nseed = " + "9" * 5000, "is not valid TOML"),
    "large": ("#" * 1_000_001, "is larger than 1 MB (1,000,001 bytes)"),
    "NUL": ("[audit]\nmodel-name = '\x00'\n", "is not valid TOML"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_bad_files_are_refused_in_one_sentence(capsys, kind):
    """What is wrong in a file is told with its file, table and key, before any work, and nothing is written."""
    content, words = REFUSED[kind]
    save(content)
    said = refused(capsys, "audit", "nowhere.csv", "--html", "page.html")
    assert said.startswith("error: configuration file 'auditor.toml'")
    assert words in said
    assert len(said) < 600
    assert not os.path.lexists("page.html")


def test_tables_of_pyproject_are_named_as_they_stand(capsys):
    """A fault in pyproject.toml names [tool.auditor.audit]."""
    save("[tool.auditor.audit]\ndelt = 1\n", "pyproject.toml")
    words = "configuration file 'pyproject.toml': table [tool.auditor.audit] has the unknown key 'delt'"
    assert words in refused(capsys)
    save("[tool]\nauditor = 3\n", "pyproject.toml")
    assert "[tool.auditor] must be a table" in refused(capsys)


@pytest.mark.parametrize("kind", ["folder", "pipe", "missing"])
def test_only_ordinary_files_are_read(folder, capsys, kind):
    """A folder, a pipe that nobody writes to, or nothing in place of the file is refused at once."""
    if kind == "folder":
        (folder / "auditor.toml").mkdir()
    elif kind == "pipe":
        if not hasattr(os, "mkfifo"):
            pytest.skip("the system has no named pipes")
        os.mkfifo("auditor.toml")
    words = refused(capsys, "audit", "losses.csv", "--config", "auditor.toml")
    expected = {"folder": "is a folder", "pipe": "is a pipe", "missing": "cannot be read: No such file"}
    assert f"configuration file 'auditor.toml' {expected[kind]}" in words
    if kind != "missing":
        assert expected[kind] in refused(capsys)


@pytest.mark.parametrize(
    ("content", "arguments", "words"),
    [
        ("delta = 2", (), "--delta must lie in [0, 1), got 2 ('delta' is set in [audit] of 'auditor.toml')."),
        ("delta = nan", (), "got nan ('delta' is set in [audit] of 'auditor.toml')."),
        ("fail-if = ['auc >']", (), "('fail-if' is set in [audit] of 'auditor.toml')."),
        ("html = 'no/such.html'", (), "create it first ('html' is set in [audit] of 'auditor.toml')."),
        ("inclusion = 0.5", (), "('inclusion' is set in [audit] of 'auditor.toml')."),
        ("claim-epsilon = -1\nclaim-delta = 0", (), "('claim-epsilon' is set in [audit]"),
        ("loss-column = 'los'", (), "('loss-column' is set in [audit] of 'auditor.toml')."),
        ("loss-column = 'los'\nmodel-name = 'i'", (), "('loss-column' is set in [audit] of 'auditor.toml')."),
    ],
)
def test_a_value_out_of_range_names_the_file(capsys, content, arguments, words):
    """The option's own sentence about a value is followed by where the value was set."""
    save(f"[audit]\n{content}\n")
    assert words in refused(capsys, "audit", "losses.csv", *arguments)


def test_a_typed_value_out_of_range_does_not(capsys):
    """A sentence about what was typed does not speak of the file."""
    save("[audit]\ndelta = 0.5\nseed = 3\n")
    assert (
        refused(capsys, "audit", "losses.csv", "--delta", "2")
        == "error: --delta must lie in [0, 1), got 2.\n"
    )


# --- Every option of every command ----------------------------------------------------------------


def toml(option):
    """Some value for an option, as it is typed and as it stands in a file."""
    typed = option.choices[-1] if option.choices else {int: "3", float: "0.25"}.get(option.kind, "some text")
    one = typed if option.kind in (int, float) else f"'{typed}'"
    return typed, ("true" if option.kind is bool else f"[{one}, {one}]" if option.many else one)


@pytest.mark.parametrize(
    ("name", "key"), [(name, key) for name, command in COMMANDS.items() for key in options_of(command)]
)
def test_every_option_is_the_same_in_a_file(name, key):
    """Each option of each command has the same value from a file as from the command line, or is refused there."""
    command, option = GROUP.commands[name], options_of(COMMANDS[name])[key]
    typed, written = toml(option)
    save(f"[{name}]\n{key} = {written}\n")
    given = [f"--{key}"] if option.kind is bool else [f"--{key}", typed] * (2 if option.many else 1)
    required = {"epsilon": "1", "delta": "1", "out": "o.parquet"}
    others = [part for other, value in required.items() if other in options_of(COMMANDS[name]) and other != key
              for part in (f"--{other}", value)] + ["one.json"] * 2  # fmt: skip
    if not any(item.param_type_name == "argument" for item in command.params):
        others = others[:-2]
    elif all(item.nargs == 1 for item in command.params if item.param_type_name == "argument"):
        others = others[:-1]
    expected = command.make_context(name, [*given, *others, "--no-config"]).params[option.name]
    if option.refusal:
        with pytest.raises(auditor.InputError, match="cannot be set in a file"):
            command.make_context(name, list(others))
        return
    found = command.make_context(name, list(others)).params[option.name]
    assert found == expected
    assert type(found) is type(expected)
    assert found not in (None, [], ())


def test_every_option_has_a_kind():
    """The options of the commands are of kinds that a file can hold, and keys are what one types."""
    for name, command in COMMANDS.items():
        typed = {opt for item in GROUP.commands[name].params for opt in item.opts if opt.startswith("--")}
        keys = {f"--{key}" for key in options_of(command)}
        assert typed - keys <= {"--config", "--no-config", "--help"}
        assert keys <= typed


# --- auditor init ---------------------------------------------------------------------------------


def test_init_writes_a_file_that_changes_nothing(capsys):
    """The file parses, sets nothing, and an audit with it equals one without."""
    without = audited(capsys)
    assert run("init") == 0
    assert "auditor.toml" in capsys.readouterr().out
    with open("auditor.toml", "rb") as file:  # noqa: PTH123
        assert tomllib.load(file) == {"audit": {}}
    found = audited(capsys)
    assert facts(found) == facts(without)
    assert "config" not in found["provenance"]


def test_init_explains_every_option_with_its_default(capsys):
    """Every option of an audit is there with its help; uncommented, the defaults are valid and change nothing."""
    without = audited(capsys)
    lines = text().splitlines()
    options = {key: option for key, option in options_of(COMMANDS["audit"]).items() if not option.refusal}
    settings = []
    body = lines[lines.index(next(line for line in lines if "All options" in line)) :]
    for key, option in options.items():
        entry = [line for line in body if line.startswith(f"# {key} = ")]
        assert len(entry) == 1
        at = body.index(entry[0])
        words = []
        while body[at - 1].startswith("# "):
            at -= 1
            words.insert(0, body[at][2:])
        assert option.help in " ".join(words)
        if option.default is not None:
            settings.append(entry[0][2:])
    assert max(map(len, lines)) <= 120
    save("[audit]\n" + "\n".join(settings) + "\n")
    assert len(settings) >= 10
    assert facts(audited(capsys)) == facts(without)


def test_the_example_runs(folder):
    """The short example, without its #, is valid, and its gates are gates."""
    commented = "".join(f"# {line}\n" for line in EXAMPLE.splitlines())
    assert commented in text()
    save(text().replace(commented, EXAMPLE))
    assert run("audit", "losses.csv", "--quiet") in (0, 1, 3)
    assert (folder / "privacy-report.html").exists()
    assert [parse(gate).name for gate in tomllib.loads(EXAMPLE)["fail-if"]] == [
        "epsilon_bound.clopper_pearson",
        "verdict",
    ]


def test_init_never_overwrites(folder, capsys):
    """A file that is there, or a link to nowhere, stays; --force replaces it; pyproject.toml is never written."""
    save("# mine\n")
    assert (
        "output path 'auditor.toml' is there already; name another, or replace it with --force."
        in refused(capsys, "init")
    )
    assert (folder / "auditor.toml").read_text() == "# mine\n"
    assert run("init", "--force", "--quiet") == 0
    assert capsys.readouterr().out == ""
    assert (folder / "auditor.toml").read_text(encoding="utf-8") == text()
    (folder / "link.toml").symlink_to(folder / "nowhere.toml")
    assert "is there already" in refused(capsys, "init", "--path", "link.toml")
    assert "must not be pyproject.toml" in refused(capsys, "init", "--path", "pyproject.toml", "--force")
    assert run("init", "--path", "other name.toml") == 0
    assert "does not exist; create it first" in refused(capsys, "init", "--path", "no/such/auditor.toml")
