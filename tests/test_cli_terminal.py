"""The program in terminals, pipes and consoles as they are: colours, progress, encodings, closed streams, odd names."""

import fcntl
import json
import os
import pty
import re
import select
import shlex
import struct
import subprocess
import sys
import termios
from pathlib import PureWindowsPath

import numpy as np
import pandas as pd
import pytest
import typer

from auditor.cli import app, console
from auditor.results import STATUS, VERDICT

CODE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
PROGRAM = [sys.executable, "-m", "auditor"]
PLAIN = {
    name: value
    for name, value in os.environ.items()
    if name not in {"NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS", "LINES", "PYTHONIOENCODING", "PYTHONUTF8"}
}
ODD_NAMES = [
    "a b",
    "größe",
    "数据",
    "it's",
    'a "b"',
    "$HOME",
    "-dash",
    "a;b",
    "a\nb",
    "%PATH%",
    "#1",
    "עברית",
    "e\u0301",
]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A small table of losses with a clear leak."""
    rng = np.random.default_rng(0)
    member = np.repeat([1, 0], 150)
    path = tmp_path_factory.mktemp("terminal") / "losses.csv"
    pd.DataFrame({"loss": rng.normal(0, 1, 300) - 3 * member, "member": member}).to_csv(path, index=False)
    return path


def auditor(*arguments, folder, **environment):
    """Run the program with both streams in pipes."""
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        check=False,
        capture_output=True,
        cwd=folder,
        env={**PLAIN, **environment},
    )


def in_terminal(*arguments, folder, columns=100, **environment):
    """Run the program with all streams on a terminal of its own; return its exit code and everything it shows."""
    here, there = pty.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [*PROGRAM, *map(str, arguments)],
        stdin=there,
        stdout=there,
        stderr=there,
        cwd=folder,
        env={"TERM": "xterm-256color", **PLAIN, **environment},
    )
    os.close(there)
    shown = b""
    while True:
        ready, _, _ = select.select([here], [], [], 60)
        try:
            part = os.read(here, 65536) if ready else b""
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(here)
    return process.wait(60), shown.decode()


# --- Colours and control codes --------------------------------------------------------------------


def test_a_pipe_gets_no_control_codes_and_no_progress(table):
    """Into pipes goes plain text: no codes on standard output, and nothing at all on standard error."""
    found = auditor("audit", table, "--mixture", "--max-components", 2, folder=table.parent)
    assert found.returncode == 0
    assert found.stderr == b""
    assert CODE.search(found.stdout.decode()) is None
    assert b"\r" not in found.stdout


@pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_on_a_terminal(table, environment, coloured):
    """A terminal gets colours, and none where NO_COLOR is set; there it sees what is done."""
    code, shown = in_terminal("audit", table, folder=table.parent, **environment)
    assert code == 0
    assert "Auditing" in shown
    assert bool(re.search(r"\x1b\[[0-9;]*m", shown)) == coloured


@pytest.mark.parametrize(
    ("environment", "terminal", "coloured"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": ""}, False, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
    ],
)
def test_who_wants_colours(monkeypatch, environment, terminal, coloured):
    """NO_COLOR, where it is not empty, comes first; then FORCE_COLOR; then whether it is a terminal that is not dumb."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal, raising=False)
    assert console.colour() is coloured


def test_colours_are_forced_into_a_pipe(table):
    """FORCE_COLOR colours a pipe too, as somebody wants who pages the output."""
    assert CODE.search(auditor("audit", table, folder=table.parent, FORCE_COLOR="1").stdout.decode())


def test_progress_on_a_dumb_terminal_and_when_quiet(table):
    """A dumb terminal is told what goes on without moving the cursor; --quiet tells a terminal nothing."""
    arguments = ("audit", table, "--mixture", "--max-components", 2)
    dumb = in_terminal(*arguments, folder=table.parent, TERM="dumb")[1]
    assert "Auditing" in dumb
    assert "\x1b" not in dumb
    assert in_terminal(*arguments, "--quiet", folder=table.parent) == (0, "")


@pytest.mark.parametrize("command", ["--help", "collect --help"])
def test_narrow_terminals(table, command):
    """In 40 columns the help loses no option, and has more and shorter lines."""
    wide = in_terminal(*shlex.split(command), folder=table.parent, columns=200)[1].splitlines()
    narrow = in_terminal(*shlex.split(command), folder=table.parent, columns=40)[1].splitlines()
    options = [[line.split()[0] for line in lines if line.startswith("  -")] for lines in (wide, narrow)]
    assert options[0] == options[1] != []
    assert len(narrow) > len(wide)


# --- Streams that are closed, full or read by head --------------------------------------------------


@pytest.mark.parametrize("arguments", ["--help", "audit losses.csv --json -", "--version"])
def test_a_reader_that_goes_away(table, arguments):
    """`| head -1` leaves no message behind."""
    line = f"{shlex.join(PROGRAM)} {arguments} | head -n 1"
    found = subprocess.run(
        ["/bin/sh", "-c", line], check=False, capture_output=True, cwd=table.parent, env=PLAIN
    )
    assert found.stderr == b""
    assert found.stdout.count(b"\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [("audit losses.csv --quiet", 0), ("audit losses.csv --json -", 2)],
)
def test_a_closed_standard_output(table, arguments, code):
    """Nobody listens: one sentence and exit code 2, unless nothing was to be said."""
    line = f"{shlex.join(PROGRAM)} {arguments} >&-"
    found = subprocess.run(
        ["/bin/sh", "-c", line], check=False, capture_output=True, cwd=table.parent, env=PLAIN
    )
    assert found.returncode == code
    assert found.stderr.count(b"\n") == (code != 0)
    assert b"Traceback" not in found.stderr


@pytest.mark.parametrize(
    ("arguments", "code"), [("--version", 0), ("audit nowhere.csv", 2), ("audit --nonsense", 2)]
)
def test_a_closed_standard_error(table, arguments, code):
    """The exit code is the same when nobody reads the messages."""
    line = f"{shlex.join(PROGRAM)} {arguments} 2>&-"
    found = subprocess.run(
        ["/bin/sh", "-c", line], check=False, capture_output=True, cwd=table.parent, env=PLAIN
    )
    assert found.returncode == code


def test_no_standard_input_is_needed(table):
    """Nothing is ever asked: the program runs with standard input closed."""
    line = f"{shlex.join(PROGRAM)} audit losses.csv --quiet <&-"
    found = subprocess.run(
        ["/bin/sh", "-c", line], check=False, capture_output=True, cwd=table.parent, env=PLAIN
    )
    assert (found.returncode, found.stdout, found.stderr) == (0, b"", b"")


# --- Quiet and debug --------------------------------------------------------------------------------


def test_quiet_prints_nothing(table):
    """With --quiet a success prints nothing on either stream, and JSON only where it was asked for."""
    silent = auditor("audit", table, "--quiet", folder=table.parent)
    assert (silent.returncode, silent.stdout, silent.stderr) == (0, b"", b"")
    found = auditor("audit", table, "--quiet", "--json", "-", folder=table.parent)
    assert json.loads(found.stdout)["schema_version"]
    assert found.stderr == b""


QUIET = [
    "claim --noise-multiplier 1 --sampling-rate 0.01 --steps 10 --delta 1e-5",
    "parameters --advantage 0.05 --sampling-rate 0.01 --steps 1000",
    "power --epsilon 2 --delta 1e-5 --split random",
]


@pytest.mark.parametrize("arguments", QUIET)
def test_every_command_is_quiet(arguments, capfd):
    """--quiet is the same promise for every command that prints something."""
    assert app.run([*shlex.split(arguments), "--quiet"]) in (0, 1)
    assert capfd.readouterr() == ("", "")


def test_quiet_does_not_hide_errors(tmp_path, capfd):
    """With --quiet an error is still one sentence."""
    assert app.run(["audit", str(tmp_path / "nowhere.csv"), "--quiet"]) == 2
    told = capfd.readouterr().err
    assert told.startswith("error: ")
    assert told.count("\n") == 1


def test_debug_adds_the_traceback(tmp_path, capfd):
    """--debug shows where an error came from, and ends with the same sentence."""
    line = ["audit", str(tmp_path / "nowhere.csv")]
    app.run(line)
    plain = capfd.readouterr().err
    app.run([*line, "--debug"])
    found = capfd.readouterr().err
    assert "Traceback" in found
    assert "Traceback" not in plain
    assert found.endswith(plain)


# --- Consoles that cannot show every sign -----------------------------------------------------------


@pytest.mark.parametrize("encoding", ["ascii", "cp437"])
def test_consoles_of_every_encoding(table, encoding):
    """What a console cannot show becomes another sign; nothing fails, on success and on errors."""
    for arguments in (("audit", table), ("--help",), ("audit", "数据.csv")):
        found = auditor(*arguments, folder=table.parent, PYTHONIOENCODING=encoding)
        assert found.returncode == (2 if "数据.csv" in arguments else 0)
        assert b"Traceback" not in found.stderr
        (found.stdout + found.stderr).decode(encoding)


@pytest.mark.parametrize(("columns", "narrow", "table"), [("50", 50, 80), ("10", 30, 80), ("120", 120, 120)])
def test_the_width_is_the_terminals(monkeypatch, columns, narrow, table):
    """What can be read on a narrow terminal is as wide as it; a table is no narrower than its columns."""
    monkeypatch.setenv("COLUMNS", columns)
    assert (console.width(least=30), console.width()) == (narrow, table)


def test_a_sign_that_a_console_lacks_keeps_its_meaning():
    """A question mark means unknown, so the signs of the other outcomes have plain forms; foreign signs have none."""
    console.forgive_unknown_signs()
    signs = [sign.symbol for sign in (*VERDICT.values(), *STATUS.values())]
    plain = [sign.encode("ascii", "plain-signs").decode() for sign in signs]
    assert [x for x, sign in zip(plain, signs, strict=True) if "?" in x and sign != "?"] == []
    assert len(set(plain)) == len(set(signs))
    assert "1—2 数".encode("ascii", "plain-signs") == b"1-2 ?"
    assert "≤ 数".encode("cp437", "plain-signs").decode("cp437") == "≤ ?"


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_json_stays_json_in_every_encoding(table, encoding):
    """JSON on standard output reads back as the same text, whatever the console can show."""
    name = "größe 数据 😀"
    found = auditor(
        "audit", table, "--json", "-", "--model-name", name, folder=table.parent, PYTHONIOENCODING=encoding
    )
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout.decode(encoding))["data"]["model"] == name


# --- Names and paths ----------------------------------------------------------------------------------


OUTPUTS = {"--json": ".json", "--ranking": ".ranking.csv"} | {
    option: end
    for option, end in {"--markdown": ".md", "--junit": ".xml", "--sarif": ".sarif"}.items()
    if any(option in param.opts for param in typer.main.get_command(app.app).commands["audit"].params)
}


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_in_every_path(table, tmp_path, name):
    """Blanks, signs of the shell, other scripts and a newline are a part of the name, as input and as every output."""
    folder = tmp_path / name
    folder.mkdir()
    source = folder / f"{name}.csv"
    source.write_bytes(table.read_bytes())
    outputs = {option: folder / f"{name}{end}" for option, end in OUTPUTS.items()}
    arguments = [str(word) for option, path in outputs.items() for word in (option, path)]
    assert app.run(["audit", str(source), *arguments, "--quiet"]) == 0
    assert {path.name for path in folder.iterdir()} == {
        source.name,
        *(path.name for path in outputs.values()),
    }
    stored = json.loads(outputs["--json"].read_text(encoding="utf-8"))
    assert shlex.split(stored["provenance"]["command"])[2] == str(source)


def test_odd_names_on_the_real_command_line(table, tmp_path):
    """The same through a shell, with the page, and with a name that begins with a dash behind two dashes."""
    (tmp_path / "-größe 数据\n.csv").write_bytes(table.read_bytes())
    name = "-größe 数据\n.html"
    found = auditor("audit", "--quiet", "--html", name, "--", "-größe 数据\n.csv", folder=tmp_path)
    assert (found.returncode, found.stdout, found.stderr) == (0, b"", b"")
    assert (tmp_path / name).read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize("name", ODD_NAMES)
def test_an_error_with_an_odd_name_is_one_line(tmp_path, monkeypatch, capsys, name):
    """A file that is not there is named in one line, whatever its name."""
    monkeypatch.chdir(tmp_path)
    assert app.run(["audit", f"./{name}.csv"]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "\x1b" not in told


@pytest.mark.parametrize(
    "path",
    [r"C:\Users\Jörg Müller\losses.csv", r"\\server\share\losses.csv", r"C:losses.csv", "C:/data/losses.csv"],
)
def test_windows_paths_are_told_as_they_were_given(tmp_path, monkeypatch, capsys, path):
    """Backslashes and drive letters are told back unchanged but for being quoted, and are options of nothing."""
    monkeypatch.chdir(tmp_path)
    assert PureWindowsPath(path).name == "losses.csv"
    for arguments in (["audit", path], ["audit", "--member-file", path, "--nonmember-file", path]):
        assert app.run(arguments) == 2
        assert repr(path) in capsys.readouterr().err


def test_windows_paths_as_names(table, tmp_path):
    """Where a backslash is an ordinary sign, such a name is read and written like any other."""
    source = tmp_path / r"C:\data\losses.csv"
    source.write_bytes(table.read_bytes())
    found = auditor("audit", source.name, "--json", r"D:\out\result.json", "--quiet", folder=tmp_path)
    assert found.returncode == 0, found.stderr
    assert (tmp_path / r"D:\out\result.json").exists()
