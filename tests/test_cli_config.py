"""Settings from files: the search, precedence and refusals."""

import dataclasses
import enum
import json
import os
import re
import tomllib
import typing
from pathlib import Path

import numpy as np
import pytest
from command_line import answer, leaking, refused as refused_line, run

import auditor
from auditor.cli import app, console, parsing, settings
from auditor.verdicts import parse

COMMANDS = {name: app.command_of(name) for group in app.COMMANDS.values() for name in group}
OPTIONS = {
    name: {item.key: item for item in parsing.options_of(command)} for name, command in COMMANDS.items()
}


def required(name, *arguments):
    """Return the other required options of a command; every value is a file that does not exist."""
    values = {"out": "o.parquet", "reference": "o.csv"}
    needed = [
        item
        for item in OPTIONS[name].values()
        if item.default is dataclasses.MISSING and item.key not in arguments
    ]
    named = [f"{item.spelled}={values[item.key]}" for item in needed if "argument" not in item.about]
    return [*named, *("one.json" for item in needed if "argument" in item.about)]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The current directory, the root of a repository, with a table of losses that leak."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    leaking(tmp_path / "losses.csv", np.random.default_rng(0), member=40, nonmember=40)
    return tmp_path


def audited(capsys, *arguments, code=0):
    """The result of an audit with these arguments, as JSON."""
    return answer(capsys, "audit", "losses.csv", *arguments, code=code)


def refused(capsys, *arguments):
    """The one sentence by which a command, or an audit without arguments, is refused."""
    return refused_line(capsys, *(arguments or ("audit", "losses.csv")))


def save(content, name="auditor.toml"):
    """Write a file in the current directory."""
    with open(name, "wb") as file:  # noqa: PTH123
        file.write(content if isinstance(content, bytes) else content.encode())


def facts(raw):
    """A result without what differs from run to run."""
    stored = {key: value for key, value in raw.items() if key != "provenance"}
    return stored | {"seed": raw["provenance"]["seed"], "hash": raw["provenance"]["input_sha256"]}


# --- Where settings come from ---------------------------------------------------------------------


@pytest.mark.parametrize(("name", "prefix"), [("auditor.toml", ""), ("pyproject.toml", "tool.auditor.")])
def test_a_file_in_the_current_directory_sets_options(capsys, name, prefix):
    """Options in auditor.toml, or in [tool.auditor] of pyproject.toml, do what they do on the command line."""
    chosen = {"delta": 0.01, "split": "random", "claim-epsilon": 9, "claim-delta": 0.01}
    typed = audited(
        capsys, *(f"--{key}={value}" for key, value in chosen.items()), "--set", "threshold=melded", code=3
    )
    chosen["threshold"] = "melded"
    lines = [f"{key} = {json.dumps(value)}" for key, value in chosen.items()]
    save("\n".join([f"[{prefix}audit]", *lines]), name)
    result = audited(
        capsys, code=3
    )  # so wide a claim promises nothing on the scale of the split, and cannot be judged
    assert facts(result) == facts(typed)
    assert result["data"]["delta"] == 0.01
    origin = {"file": name, "table": f"[{prefix}audit]", "settings": chosen}
    assert result["provenance"]["config"] == origin
    assert "config" not in typed["provenance"]


def test_the_command_line_wins_over_the_file_and_the_file_over_the_default(capsys):
    """Typed options override the file (of Windows here); the provenance lists only the used settings."""
    save(b"\xef\xbb\xbf[audit]\r\nconfidence = 0.8\r\nseed = 7\r\n")
    result = audited(capsys)
    assert (result["data"]["confidence"], result["provenance"]["seed"]) == (0.8, 7)
    result = audited(capsys, "--confidence", "0.9")
    assert (result["data"]["confidence"], result["provenance"]["seed"]) == (0.9, 7)
    assert result["provenance"]["config"]["settings"] == {"seed": 7}
    assert audited(capsys, "--no-config")["data"]["confidence"] == 0.95
    assert audited(capsys, "--confidence", "0.95")["data"]["confidence"] == 0.95


def test_a_named_file_is_used(capsys):
    """--config works anywhere behind the command, and leaves the file of the directory alone."""
    save("[audit]\nconfidence = 0.8\n")
    save("[audit]\nconfidence = 0.7\n", "other.toml")
    save("[audit]\nconfidence = 0.6\n", "third.toml")
    for arguments, level in (
        (("audit", "losses.csv", "--config", "other.toml"), 0.7),
        (("audit", "--config=other.toml", "losses.csv"), 0.7),
        (("audit", "--config", "third.toml", "losses.csv", "--config", "other.toml"), 0.7),
        (("audit", "losses.csv"), 0.8),
        (("audit", "--no-config", "losses.csv"), 0.95),
    ):
        assert answer(capsys, *arguments)["data"]["confidence"] == level
    words = refused(capsys, "audit", "--no-config", "losses.csv", "--config", "other.toml")
    assert "--config and --no-config contradict each other" in words


def test_two_files_that_configure_are_refused(capsys):
    """auditor.toml beside a configuring pyproject.toml is a contradiction; beside any other it is not."""
    save("[audit]\nconfidence = 0.8\n")
    save("[tool.auditor.audit]\nconfidence = 0.7\n", "pyproject.toml")
    assert "both 'auditor.toml' and [tool.auditor] in 'pyproject.toml' contain settings" in refused(capsys)
    assert audited(capsys, "--config", "auditor.toml")["data"]["confidence"] == 0.8
    assert audited(capsys, "--config", "pyproject.toml")["data"]["confidence"] == 0.7
    for other in ("[project]\nname = 'auditor-of-mine'\n", "[tool.other]\nx = 1\n", "not TOML", b"\xff\xfe"):
        save(other, "pyproject.toml")
        assert audited(capsys)["data"]["confidence"] == 0.8


def below(folder, monkeypatch, *names):
    """Go to a folder below, made on the way."""
    inner = folder.joinpath(*names)
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)


def confidence(capsys, *arguments):
    """The confidence of an audit of the table beside the first folder: what a file may have set."""
    table = next(path for path in ("losses.csv", "../losses.csv", "../../losses.csv") if os.path.exists(path))  # noqa: PTH110
    return answer(capsys, "audit", table, *arguments)["data"]["confidence"]


@pytest.mark.parametrize(("name", "prefix"), [("auditor.toml", ""), ("pyproject.toml", "tool.auditor.")])
def test_a_file_in_a_folder_above_is_used(folder, capsys, monkeypatch, name, prefix):
    """From a subfolder the file above counts, gates too; its paths are beside it, and the result says which it was."""
    save(f"[{prefix}audit]\nconfidence = 0.8\nfail-if = ['auc > 0.5']\nhtml = 'page.html'\n", name)
    below(folder, monkeypatch, "a", "b")
    assert run("audit", "../../losses.csv", "--json", "r.json", "--quiet") == 1
    config = auditor.read_result("r.json").provenance["config"]
    assert (config["file"], config["table"]) == (name, f"[{prefix}audit]")
    assert (folder / "page.html").exists()
    place = os.path.join("..", "..", name)  # noqa: PTH118
    assert f"Set in [{prefix}audit] of {place!r}: fail-if." in capsys.readouterr().err


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


def test_the_search_ends_with_the_repository(folder, capsys, monkeypatch):
    """A folder with .git, which is a file in a worktree, is the last that is looked at."""
    save("[audit]\nconfidence = 0.8\n")
    below(folder, monkeypatch, "a")
    assert confidence(capsys) == 0.8
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
    assert answer(capsys, "audit", folder / "losses.csv")["data"]["confidence"] == 0.95


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
    words = "'../auditor.toml' belongs to another user and is in a folder where everyone can write"
    assert words in refused(capsys, "audit", "../l.csv")
    assert run("audit", "../l.csv", "--config", "../auditor.toml", "--quiet") == 0
    folder.chmod(0o755)
    assert run("audit", "../l.csv", "--quiet") == 0


# --- Reports of the file --------------------------------------------------------------------------


def test_a_terminal_shows_the_used_file(capsys, monkeypatch):
    """On a terminal standard error names the file, its settings and the overridden ones; elsewhere, and with --quiet, nothing."""
    save("[audit]\nconfidence = 0.8\nseed = 3\n")
    assert run("audit", "losses.csv") == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(console, "_is_watched", lambda *, quiet: not quiet)
    monkeypatch.setenv("TERM", "dumb")
    assert run("audit", "losses.csv", "--seed", "1") == 0
    message = "Settings: [audit] of 'auditor.toml' sets confidence; the command line overrides seed.\n"
    assert capsys.readouterr().err.startswith(message)
    assert run("audit", "losses.csv", "--quiet") == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("name", "top"), [("auditor.toml", "the top level"), ("pyproject.toml", "[tool.auditor]")]
)
def test_a_setting_outside_the_tables_is_reported_where_it_is(capsys, name, top):
    """A policy of all commands is named with its own table, beside the settings of the table of the command."""
    prefix = "tool.auditor." if name == "pyproject.toml" else ""
    head = "[tool.auditor]\n" if prefix else ""
    save(f"{head}policy = 'auc < 0.5'\n[{prefix}audit]\nconfidence = 0.9\n", name)
    assert run("audit", "losses.csv", "--json", "r.json") == 1
    assert f"Set in {top} of {name!r}: policy." in capsys.readouterr().err
    assert auditor.read_result("r.json").provenance["config"]["table"] == f"{top} and [{prefix}audit]"
    save(f"{head}policy = 'auc > 0.5'\n", name)
    said = refused(capsys)
    assert "demands leakage" in said
    assert f"('policy' is set in {top} of {name!r})." in said
    save(f"{head}policy = true\n", name)
    assert f"the key 'policy' in {top} must be one value" in refused(capsys)


@pytest.mark.parametrize("more", [(), ("--quiet",)])
@pytest.mark.parametrize("name", ["auditor.toml", "pyproject.toml", "ci/other.toml"])
def test_typed_gates_never_weaken_those_of_a_file(folder, capsys, name, more):
    """A typed gate is added to those of the file, which still stop the pipeline, are named, and stand in the result."""
    (folder / "ci").mkdir()
    prefix = "tool.auditor." if name == "pyproject.toml" else ""
    save(f"[{prefix}audit]\nfail-if = ['auc > 0.9']\n", name)
    line = ["audit", "losses.csv", *more, *(["--config", name] if "/" in name else [])]
    assert run(*line, "--fail-if", "auc > 2", "--json", "r.json") == 1
    said = capsys.readouterr().err
    assert "auc > 0.9" in said
    assert f"Set in [{prefix}audit] of {name!r}: fail-if." in said
    assert auditor.read_result("r.json").provenance["config"]["settings"] == {"fail-if": ["auc > 0.9"]}
    assert run(*line, "--fail-if", "auc > 0.1", "--junit", "r.xml") == 1
    both = (folder / "r.xml").read_text()
    assert "auc &gt; 0.9" in both
    assert "auc &gt; 0.1" in both
    assert run(*line, "--fail-if", "auc > 2", "--no-config") == (2 if "/" in name else 0)


OUTPUTS = [
    (name, key)
    for name, options in OPTIONS.items()
    for key in options
    if key in settings.OUTPUTS and (key != "records" or name == "audit")
]


def test_every_path_of_every_command_is_an_input_or_an_output():
    """No option that is a path is missing among those that write a file, but for those that are read."""
    read = {
        "about",
        "base",
        "baseline",
        "ca-file",
        "config",
        "context",
        "control",
        "losses",
        "members",
        "nonmembers",
        "outputs",
        "reference",
    }
    read |= {"request-template", "schedule", "threshold-runs"}
    paths = {
        key
        for options in OPTIONS.values()
        for key, item in options.items()
        if "argument" not in item.about and "Path" in str(item.kind)
    }
    assert paths - read == settings.OUTPUTS


@pytest.mark.parametrize(
    ("name", "key", "kind"),
    [
        *((name, key, "absolute") for name, key in OUTPUTS),
        *(("audit", "json", kind) for kind in ("above", "link", "link to a folder")),
    ],
)
def test_a_file_writes_nothing_outside_its_folder(folder, capsys, name, key, kind):
    """An output of a file of settings that leads out of its folder is refused before any work, unless it is typed."""
    (folder / "ci").mkdir()
    (folder / "away").mkdir()
    (folder / "ci" / "link.json").symlink_to(folder / "away" / "x.json")
    (folder / "ci" / "links").symlink_to(folder / "away")
    ending = {"records": "csv", "out": "parquet", "coins": "csv"}.get(key, "json")
    places = {"absolute": folder / "away" / f"x.{ending}", "above": f"../away/x.{ending}"}
    value = str({**places, "link": "link.json", "link to a folder": f"links/x.{ending}"}[kind])
    save(f"[{name}]\n{key} = {json.dumps(value)}\n", "ci/a.toml")
    said = refused(capsys, name, *required(name, key), "--config", "ci/a.toml")
    assert (
        f"the key {key!r} in table [{name}] must name a file in the folder of the configuration file" in said
    )
    assert list((folder / "away").iterdir()) == []


def test_a_typed_output_may_lie_anywhere(folder):
    """An output that the command line names may be outside the folder of the file."""
    (folder / "ci").mkdir()
    save("[audit]\nhtml = '../a.html'\n", "ci/a.toml")
    assert run("audit", "losses.csv", "--config", "ci/a.toml", "--html", "b.html", "--quiet") == 0
    assert (folder / "b.html").exists()
    assert not (folder / "a.html").exists()


def test_paths_are_meant_from_the_folder_of_the_file(folder, capsys):
    """A path in a file elsewhere is beside that file; a dash and an absolute path there stay what they are."""
    (folder / "ci").mkdir()
    save(
        f"[audit]\nhtml = 'page.html'\njson = 'r.json'\nmarkdown = '{folder}/ci/m.md'\nquiet = true\n",
        "ci/a.toml",
    )
    assert run("audit", "losses.csv", "--config", "ci/a.toml") == 0
    assert {path.name for path in (folder / "ci").iterdir()} == {"a.toml", "m.md", "page.html", "r.json"}
    config = auditor.read_result("ci/r.json").provenance["config"]
    assert (config["file"], config["settings"]["html"]) == ("a.toml", "page.html")
    assert config["settings"]["markdown"] == "m.md"
    save("[audit]\njson = '-'\n", "ci/a.toml")
    capsys.readouterr()
    assert run("audit", "losses.csv", "--config", "ci/a.toml") == 0
    assert json.loads(capsys.readouterr().out)["verdict"] is None


def test_help_and_version_need_no_good_file():
    """A broken file keeps no help from who repairs it."""
    save("[")
    for arguments in (("audit", "--help"), ("--help",), ("--version",)):
        assert run(*arguments) == 0


# --- What is refused ------------------------------------------------------------------------------

BAD = {
    "unknown table": ("[audti]\n", "got 'audti'; did you mean 'audit'?"),
    "unknown key": ("[audit]\nconfidense = 1\n", "table [audit] has the unknown key 'confidense'; did you mean 'confidence'?"),
    "underscore": ("[audit]\nfail_if = ['auc > 1']\n", "unknown key 'fail_if'; did you mean 'fail-if'?"),
    "outside": ("delta = 1e-5\n", "the key 'delta' is outside every table, where only policy and severity may be; move it below the line [audit]"),
    "truth for number": ("[audit]\ndelta = true\n", "the key 'delta' in table [audit] must be one value, neither true nor false, got True."),
    "text for flag": ("[audit]\nquiet = 'yes'\n", "must be true or false, got 'yes'."),
    "truth in list": ("[audit]\nfail-if = ['auc > 1', true]\n", "must be a list of texts, got ['auc > 1', True]."),
    "code": ("[collect]\ntrust-pickle = true\n", "cannot be set in a file, because it lets a model run code; give it on the command line."),
    "not UTF-8": (b"[audit]\nmodel = '\xe4'\n", "is not text in UTF-8 (byte 17); save it as UTF-8."),
    "deep": ("x = " + "[" * 50_000, "is nested too deeply"),
    "digits": ("[audit]\nseed = " + "9" * 5000, "is not valid TOML"),
    "parts": ("[audit]\n# a\na" + " . 'a b'.\"\\\"\"" * 4000 + " = 1\n", "has a key of more than 32 parts (at line 3)."),
    "parts of a table": ("[a" + ".a" * 30_000 + "]", "has a key of more than 32 parts (at line 1)."),
    "large": ("#" * 64_001, "is larger than 64,000 bytes (64,001 bytes)"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_bad_files_are_refused_in_one_sentence(capsys, kind):
    """An error in a file names the file, the table and the key, before any work, and nothing is written."""
    content, words = BAD[kind]
    save(content)
    said = refused(capsys, "audit", "nowhere.csv", "--html", "page.html")
    assert said.startswith("error: configuration file 'auditor.toml'")
    assert words in said
    assert len(said) < 600
    assert not os.path.lexists("page.html")


@pytest.mark.parametrize(
    ("content", "words"),
    [("[tool]\nauditor = 3\n", "must be a table"), ("[tool.other]\nx = 1\n", "has no table [tool.auditor]")],
)
def test_a_named_pyproject_needs_our_table(capsys, content, words):
    """A file of a project that is named must hold [tool.auditor], and that must be a table."""
    save(content, "pyproject.toml")
    assert words in refused(capsys, "audit", "losses.csv", "--config", "pyproject.toml")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("delta = 2", "delta must lie in [0, 1), got 2 ('delta' is set in [audit] of 'auditor.toml')."),
        ("fail-if = ['auc >']", "(with settings from [audit] of 'auditor.toml')."),
        ("delta = 'x'", "--delta must be a number, got 'x' ('delta' is set in [audit] of 'auditor.toml')."),
    ],
)
def test_a_value_out_of_range_names_the_file(capsys, content, words):
    """The option's own sentence about a value is followed by where the value was set."""
    save(f"[audit]\n{content}\n")
    assert words in refused(capsys)


@pytest.mark.parametrize(
    ("content", "arguments"),
    [
        ("delta = 0.5", "losses.csv --delta 2"),
        ("model = 'loss'", "losses.csv --loss-column l"),
        ("html = 'nowhere.csv'", "nowhere.csv"),
    ],
)
def test_a_file_is_not_blamed_for_what_was_typed(capsys, content, arguments):
    """A sentence about another option, or about a value that was typed, does not speak of the file."""
    save(f"[audit]\n{content}\n")
    assert "is set in" not in refused(capsys, "audit", *arguments.split())


@pytest.mark.parametrize(
    "arguments",
    [
        "audit losses.csv --json",
        "audit losses.csv --html",
        "claim --noise-multiplier 1 --sampling-rate 0.01 --steps 10 --delta 1e-5 --json",
        "demo --html",
    ],
)
def test_the_settings_in_use_are_never_written_over(folder, capsys, monkeypatch, arguments):
    """An output that would take the place of the file with the gates is refused, named or found, from below too."""
    content = "[tool.auditor.audit]\nseed = 1\n"
    save(content, "pyproject.toml")
    for more in ((), ("--config", "pyproject.toml")):
        said = refused(capsys, *arguments.split(), "pyproject.toml", *more)
        assert "is a file that this command reads" in said
    if not arguments.startswith("audit"):
        below(folder, monkeypatch, "a")
        said = refused(capsys, *arguments.split(), folder / "pyproject.toml")
        assert "is a file that this command reads" in said
    assert (folder / "pyproject.toml").read_text() == content


# --- Every option of every command ----------------------------------------------------------------


def some(item):
    """Some value for an option, as it is typed and as it stands in a file."""
    if item.is_flag:
        return [item.spelled], "true"
    kinds = typing.get_args(item.kind) or (item.kind,)
    if len(kinds) > 2 and kinds[0] is int:
        return [item.spelled, *["3"] * len(kinds)], json.dumps([3] * len(kinds))
    texts = list(map(str, kinds[0])) if isinstance(kinds[0], type) and issubclass(kinds[0], enum.Enum) else []
    texts += kinds if typing.get_origin(item.kind) is typing.Literal else []
    value = texts[-1] if texts else {int: 3, float: 0.25}.get(kinds[0], "some text")
    typed = f"{item.spelled}={value}"
    written = json.dumps(value)
    return ([typed, typed], f"[{written}, {written}]") if item.repeats else ([typed], written)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_the_same_in_a_file(name, capsys):
    """Each option of each command has the same value from a file as from the command line, or is refused there."""
    command = COMMANDS[name]
    for key, item in OPTIONS[name].items():
        typed, written = some(item)
        if "argument" in item.about:
            continue
        save(f"[{name}]\n{key} = {written}\n")
        if key in settings.REFUSED:
            assert "cannot be set in a file" in refused(capsys, name, *required(name, key))
            continue
        others = required(name, key)
        tokens, _ = settings.tokens_of(app.command_of, COMMANDS, name, {})
        expected, result = (
            parsing.parsed(command, name, [*words, *others])[item.name] for words in (typed, tokens)
        )
        assert result == expected, key
        assert type(result) is type(expected)
        assert result not in (None, [], ())


def test_the_example_of_the_documentation_runs(folder):
    """Its settings are valid, and its gates are gates."""
    page = (Path(__file__).parents[1] / "docs/how-to/pipelines.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)
    save(example)
    assert run("audit", "losses.csv", "--quiet") in (0, 1, 3)
    assert (folder / "privacy-report.html").exists()
    assert [parse(gate).name for gate in tomllib.loads(example)["audit"]["fail-if"]]
