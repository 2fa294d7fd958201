"""Settings from files: where they are found, what wins, what is refused, and what `auditor init` writes."""

import json
import os
import tomllib

import pandas as pd
import pytest
import typer

import auditor
from auditor.cli import EXAMPLE, app, console, options_of, text
from auditor.verdicts import parse

GROUP = typer.main.get_command(app.app)
COMMANDS = {command.__name__: command for command in app._CONFIGURED}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The current directory, the root of a repository, with a table of losses that leak."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    losses = [i / 40 for i in range(40)] + [0.9 + i / 40 for i in range(40)]
    pd.DataFrame({"loss": losses, "member": [1] * 40 + [0] * 40}).to_csv("losses.csv", index=False)
    return tmp_path


def run(*arguments):
    """Run the command line in this process."""
    return app.run([str(argument) for argument in arguments])


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


def below(folder, monkeypatch, *names):
    """Go to a folder below, made on the way."""
    inner = folder.joinpath(*names)
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)


def confidence(capsys, *arguments):
    """The confidence of an audit of the table beside the first folder: what a file may have set."""
    capsys.readouterr()
    table = next(path for path in ("losses.csv", "../losses.csv", "../../losses.csv") if os.path.exists(path))  # noqa: PTH110
    assert run("audit", table, "--json", "-", *arguments) == 0
    return json.loads(capsys.readouterr().out)["data"]["confidence"]


@pytest.mark.parametrize(("name", "prefix"), [("auditor.toml", ""), ("pyproject.toml", "tool.auditor.")])
def test_a_file_in_a_folder_above_is_found(folder, capsys, monkeypatch, name, prefix):
    """From a subfolder the file above counts, gates too; its paths are beside it, and the result says which it was."""
    save(f"[{prefix}audit]\nconfidence = 0.8\nfail-if = ['auc > 0.5']\nhtml = 'page.html'\n", name)
    below(folder, monkeypatch, "a", "b")
    assert run("audit", "../../losses.csv", "--json", "r.json", "--quiet") == 1
    config = auditor.read_result("r.json").provenance["config"]
    assert (config["file"], config["table"]) == (os.path.join("..", "..", name), f"[{prefix}audit]")  # noqa: PTH118
    assert (folder / "page.html").exists()
    assert f"Set in [{prefix}audit] of {config['file']!r}: fail-if." in capsys.readouterr().err


def test_the_nearest_file_decides_alone(folder, capsys, monkeypatch):
    """Of two files the nearer one is read, and nothing of the other; a pyproject.toml of others is passed over."""
    save("[audit]\nconfidence = 0.8\nseed = 5\n")
    below(folder, monkeypatch, "a")
    save("[tool.other]\nx = 1\n", "pyproject.toml")
    assert confidence(capsys) == 0.8
    save("[tool.auditor.audit]\nconfidence = 0.7\n", "pyproject.toml")
    assert confidence(capsys) == 0.7
    save("", "pyproject.toml")
    save("[power]\n")
    assert confidence(capsys) == 0.95
    assert confidence(capsys, "--config", "../auditor.toml") == 0.8
    assert confidence(capsys, "--no-config") == 0.95


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_the_search_ends_with_the_repository(folder, capsys, monkeypatch, kind):
    """A folder with .git, which is a file in a worktree, is the last that is looked at."""
    save("[audit]\nconfidence = 0.8\n")
    below(folder, monkeypatch, "a")
    assert confidence(capsys) == 0.8
    if kind == "folder":
        os.mkdir(".git")  # noqa: PTH102
    else:
        save("gitdir: elsewhere\n", ".git")
    assert confidence(capsys) == 0.95
    save("[audit]\nconfidence = 0.7\n")
    assert confidence(capsys) == 0.7


def test_the_search_ends_with_the_home_folder(folder, capsys, monkeypatch):
    """The home folder is looked at, also where a link leads to it, and no folder above it."""
    save("[audit]\nconfidence = 0.8\n")
    below(folder, monkeypatch, "home", "project")
    (folder / "link").symlink_to(folder / "home")
    monkeypatch.setenv("HOME", str(folder / "link"))
    monkeypatch.setenv("USERPROFILE", str(folder / "link"))
    assert confidence(capsys) == 0.95
    save("[audit]\nconfidence = 0.7\n", "../auditor.toml")
    assert confidence(capsys) == 0.7


def test_an_audit_in_a_folder_that_is_gone_needs_no_settings(folder, monkeypatch, capsys):
    """Where the current directory was deleted there is nothing to look for."""
    below(folder, monkeypatch, "a")
    os.rmdir(folder / "a")  # noqa: PTH106
    assert run("audit", folder / "losses.csv", "--json", "-") == 0
    assert json.loads(capsys.readouterr().out)["data"]["confidence"] == 0.95


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="the system has no owners of this kind")
def test_a_file_that_another_user_put_above_is_refused(folder, capsys, monkeypatch):
    """In a folder where everyone can write, such as /tmp, somebody else's file is refused; one's own is not."""
    save("[audit]\nconfidence = 0.8\n")
    (folder / "losses.csv").rename(folder / "l.csv")
    below(folder, monkeypatch, "a")
    me = os.geteuid()
    folder.chmod(0o777)
    assert run("audit", "../l.csv", "--json", "-") == 0
    os.chmod("../auditor.toml", 0o644)  # noqa: PTH101
    lstat = type(folder).lstat
    other = os.stat_result([0o100644, 1, 1, 1, me + 1, 0, 0, 0, 0, 0])
    monkeypatch.setattr(
        type(folder), "lstat", lambda path: other if path.name == "auditor.toml" else lstat(path)
    )
    words = refused(capsys, "audit", "../l.csv")
    assert (
        "'../auditor.toml' belongs to another user and stands in a folder where everyone can write" in words
    )
    assert run("audit", "../l.csv", "--config", "../auditor.toml", "--quiet") == 0
    folder.chmod(0o755)
    assert run("audit", "../l.csv", "--quiet") == 0


# --- Names that are nearly right ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "table"),
    [
        ("[tool.auditro.audit]\n", "tool.auditro"),
        ("[tool.Auditor.audit]\n", "tool.Auditor"),
        ("[tool.auditors]\n", "tool.auditors"),
        ("[tool.audtor.audit]\n", "tool.audtor"),
        ("[tool.audit]\nfail_if = ['auc > 1']\n", "tool.audit"),
        ("[tool.audit.audit]\n", "tool.audit"),
        ("[tool.privacy-auditor.audit]\n", "tool.privacy-auditor"),
        ("[auditor.audit]\n", "auditor"),
        ("[tools.auditor.audit]\n", "tools.auditor"),
        ("[tool.auditor.audit]\nseed = 1\n[tool.auditr.compare]\n", "tool.auditr"),
    ],
)
def test_a_table_nearly_right_is_refused(folder, capsys, monkeypatch, content, table):
    """A table of pyproject.toml that misses tool.auditor by a letter or two stops the command, from below too."""
    save(content, "pyproject.toml")
    words = f"'pyproject.toml' has the table [{table}], which nothing reads; did you mean [tool.auditor]?"
    assert words in refused(capsys)
    assert run("audit", "losses.csv", "--no-config", "--quiet") == 0
    below(folder, monkeypatch, "a")
    assert f"[{table}], which nothing reads" in refused(capsys, "audit", "../losses.csv")


@pytest.mark.parametrize(
    "content",
    [
        "[tool.audit]\nlevel = 1\n",
        "[tool.author]\njson = 1\n",
        "[tool.editor]\nquiet = 1\n",
        "[tool.auditwheel]\nseed = 1\n",
        "[tool]\nauditro = 1\n",
        "tool = 3\n",
        "[project]\nname = 'auditro'\n[project.scripts]\nauditr = 'auditr:main'\n",
        "[dependency-groups]\nauditor = ['privacy-auditor']\n",
    ],
)
def test_tables_of_others_are_left_alone(capsys, content):
    """What belongs to other tools, or holds no settings, stops nothing."""
    save(content, "pyproject.toml")
    assert "config" not in audited(capsys)["provenance"]


NEARLY = ("Auditor.toml", "AUDITOR.TOML", ".auditor.toml", "auditor.yaml", "auditor.yml", "auditor.ini", "auditor.cfg",
          "auditro.toml", "auditors.toml", "privacy-auditor.toml", "auditor.toml.txt", "auditor.json")  # fmt: skip


@pytest.mark.parametrize("name", NEARLY)
def test_a_file_nearly_right_is_refused(folder, capsys, monkeypatch, name):
    """A file whose name is nearly auditor.toml stops the command unless the right one is there, from below too."""
    if name.casefold() == "auditor.toml" and (folder / "LOSSES.CSV").exists():
        pytest.skip("the file system takes it for auditor.toml")
    save('{"audit": {"fail-if": ["auc > 0.5"]}}', name)
    assert f"{name!r} looks like settings, which are read from 'auditor.toml', in TOML" in refused(capsys)
    assert run("audit", "losses.csv", "--no-config", "--quiet") == 0
    below(folder, monkeypatch, "a")
    assert "looks like settings" in refused(capsys, "audit", "../losses.csv")
    save("[audit]\nconfidence = 0.8\n", "../auditor.toml")
    assert confidence(capsys) == 0.8


@pytest.mark.parametrize(
    "name",
    ["audit.toml", "author.toml", "auditor.toml.bak", "auditor.md", "auditor.py", "auditor.example.toml"],
)
def test_files_of_others_are_left_alone(capsys, name):
    """Other files stop nothing, and neither does a folder."""
    save("x = 1\n", name)
    os.mkdir("auditor.cfg")  # noqa: PTH102
    assert "config" not in audited(capsys)["provenance"]


@pytest.mark.parametrize(
    "command",
    [
        "audit losses.csv",
        "claim --noise-multiplier 1 --sampling-rate 0.01 --steps 10 --delta 1e-5",
        "power --epsilon 1 --delta 1e-5",
    ],
)
def test_outputs_called_auditor_are_no_settings(command):
    """A result, claim or plan that is written to auditor.json does not stop the next run."""
    for _ in range(2):
        assert run(*command.split(), "--json", "auditor.json", "--quiet") == 0
    save("{", "auditor.json")
    assert run(*command.split(), "--quiet") == 2


# --- What is told ---------------------------------------------------------------------------------


def test_a_terminal_is_told_which_file_is_used(capsys, monkeypatch):
    """On a terminal standard error names the file, what it sets and what was overruled; elsewhere and quietly nothing."""
    save("[audit]\nconfidence = 0.8\nseed = 3\n")
    assert run("audit", "losses.csv") == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(console, "_is_watched", lambda *, quiet: not quiet)
    monkeypatch.setenv("TERM", "dumb")
    assert run("audit", "losses.csv", "--seed", "1") == 0
    told = "Settings: [audit] of 'auditor.toml' sets confidence; the command line overrules seed.\n"
    assert capsys.readouterr().err.startswith(told)
    save("[power]\n")
    assert run("audit", "losses.csv") == 0
    assert capsys.readouterr().err.startswith("Settings: [audit] of 'auditor.toml' sets nothing here.\n")
    assert run("audit", "losses.csv", "--quiet") == 0
    assert capsys.readouterr().err == ""


def test_debug_tells_where_settings_were_looked_for(folder, capsys, monkeypatch):
    """--debug names every file that was looked for, in order, and why the search ended."""
    below(folder, monkeypatch, "a")
    save("[project]\n", "pyproject.toml")
    own, project = (os.path.join("..", name) for name in ("auditor.toml", "pyproject.toml"))  # noqa: PTH118
    looked = "settings: looked for 'auditor.toml' (not there), 'pyproject.toml' (has no [tool.auditor]), "
    assert run("audit", "../losses.csv", "--debug") == 0
    end = "(not there); the search ended at the root of a repository.\n"
    assert capsys.readouterr().err == f"{looked}{own!r} (not there), {project!r} {end}"
    save("[audit]\nseed = 1\n", "../auditor.toml")
    assert run("audit", "../losses.csv", "--debug") == 0
    assert capsys.readouterr().err == f"{looked}{own!r} (there), {project!r} (not there); {own!r} is used.\n"
    assert run("audit", "../losses.csv", "--debug", "--config", own) == 0
    assert capsys.readouterr().err == f"settings: {own!r}, by --config.\n"
    assert run("audit", "../losses.csv", "--debug", "--no-config") == 0
    assert capsys.readouterr().err == "settings: no file, by --no-config.\n"


@pytest.mark.parametrize(
    ("gate", "code"), [("auc > 0.9", 1), ("epsilon_bound.one_run > 1", 3), ("auc > 2", 0)]
)
def test_gates_of_a_file_are_told_as_such(capsys, gate, code):
    """Where gates of a file stop the pipeline the last line says where they stand; typed gates are not the file's."""
    save(f"[audit]\nseed = 1\nfail-if = ['{gate}']\n")
    assert run("audit", "losses.csv", "--quiet") == code
    told = capsys.readouterr().err.splitlines()
    assert told[1:] == (["Set in [audit] of 'auditor.toml': fail-if."] if code else [])
    assert run("audit", "losses.csv", "--quiet", "--fail-if", gate) == code
    assert "Set in" not in capsys.readouterr().err


def test_typed_gates_in_place_of_those_of_a_file_are_told(capsys):
    """That a typed gate puts the gates of the file out of force is said on standard error, in a pipe too."""
    save("[audit]\nfail-if = ['auc > 0.5']\n")
    assert run("audit", "losses.csv", "--fail-if", "auc > 2") == 0
    words = "--fail-if on the command line replaces 'fail-if' in [audit] of 'auditor.toml'.\n"
    assert capsys.readouterr().err == words


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
    "table of pyproject": ("[tool.auditor.audit]\n", "[tool.auditor.audit] is for pyproject.toml; here its name is [audit]."),
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
    "digits": ("[audit]\nseed = " + "9" * 5000, "has a whole number of thousands of digits."),
    "parts": ("[audit]\n# a\na" + " . 'a b'.\"\\\"\"" * 4000 + " = 1\n", "has a key of more than 32 parts (at line 3)."),
    "parts of a table": ("[a" + ".a" * 30_000 + "]", "has a key of more than 32 parts (at line 1)."),
    "large": ("#" * 64_001, "is larger than 64,000 bytes (64,001 bytes)"),
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


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("top-records = -1", "--top-records must be 0 or more, got '-1' ('top-records' is set in [audit] of 'auditor.toml').\n"),
        ("seed = -3", "('seed' is set in [audit] of 'auditor.toml')."),
    ],
)  # fmt: skip
def test_a_value_that_the_parser_refuses_names_the_file(capsys, content, words):
    """The parser's own sentence about a value from the file has the value and the place; about a typed one it has not."""
    save(f"[audit]\n{content}\n")
    assert words in refused(capsys)
    key = content.split(" ", maxsplit=1)[0]
    assert "auditor.toml" not in refused(capsys, "audit", "losses.csv", f"--{key}", "-2")


@pytest.mark.parametrize(
    ("content", "arguments"),
    [
        ("model-name = 'loss'", ("losses.csv", "--loss-column", "l")),
        ("id-column = 'l'", ("losses.csv", "--loss-column", "l")),
        ("html = 'nowhere.csv'", ("nowhere.csv",)),
        ("strategy = 'nowhere.csv'", ("nowhere.csv",)),
        ("html = 'no/a.html'", ("losses.csv", "--html", "no/a.html")),
    ],
)
def test_a_file_is_not_blamed_for_what_was_typed(capsys, content, arguments):
    """A sentence about another option, or about a text that was typed, does not speak of the file."""
    save(f"[audit]\n{content}\n")
    assert "is set in" not in refused(capsys, "audit", *arguments)


@pytest.mark.parametrize("name", ["auditor.toml", "pyproject.toml", "other.toml"])
@pytest.mark.parametrize(
    "arguments",
    [
        "audit losses.csv --json",
        "audit losses.csv --ranking",
        "audit losses.csv --html",
        "claim --noise-multiplier 1 --sampling-rate 0.01 --steps 10 --delta 1e-5 --json",
        "power --epsilon 1 --delta 1e-5 --json",
        "demo --html",
    ],
)
def test_the_settings_in_use_are_never_written_over(folder, capsys, monkeypatch, name, arguments):
    """An output that would take the place of the file with the gates is refused, from below too."""
    content = "[tool.auditor.audit]\nseed = 1\n" if name == "pyproject.toml" else "[audit]\nseed = 1\n"
    save(content, name)
    more = ("--config", name) if name == "other.toml" else ()
    if "--ranking" in arguments:
        assert refused(capsys, *arguments.split(), name, *more)
    else:
        assert "is a file that this command reads" in refused(capsys, *arguments.split(), name, *more)
    assert (folder / name).read_text() == content
    if not more and not arguments.startswith("audit"):
        below(folder, monkeypatch, "a")
        assert "is a file that this command reads" in refused(capsys, *arguments.split(), folder / name)


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


def test_init_tells_which_file_it_hides(folder, capsys, monkeypatch):
    """A new file in a subfolder takes the place of the one above, gates included, and says so."""
    save("[audit]\nfail-if = ['auc > 0.5']\n")
    below(folder, monkeypatch, "a")
    assert run("init", "--path", "other.toml") == 0
    assert "takes the place" not in capsys.readouterr().out
    assert run("init") == 0
    above = os.path.join("..", "auditor.toml")  # noqa: PTH118
    assert f"In this folder it takes the place of {above!r}, gates included." in capsys.readouterr().out
