"""The program in terminals, pipes and consoles as they are: colours, progress, encodings, closed streams, odd names."""

import fcntl
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
import pytest
from command_line import leaking

from auditor.cli import app, console
from auditor.report import STATUS, VERDICT

CODE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
PROGRAM = [sys.executable, "-m", "auditor"]
PLAIN = {
    name: value
    for name, value in os.environ.items()
    if name not in {"NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS", "LINES", "PYTHONIOENCODING", "PYTHONUTF8"}
}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A small table of losses with a clear leak."""
    path = tmp_path_factory.mktemp("terminal") / "losses.csv"
    return leaking(path, np.random.default_rng(0), member=150, nonmember=150)


def auditor(*arguments, folder, **environment):
    """Run the program with both streams in pipes."""
    line = [*PROGRAM, *map(str, arguments)]
    return subprocess.run(line, check=False, capture_output=True, cwd=folder, env={**PLAIN, **environment})


def shell(line, folder):
    """Run the program by a line of the shell."""
    line = ["/bin/sh", "-c", f"{shlex.join(PROGRAM)} {line}"]
    return subprocess.run(line, check=False, capture_output=True, cwd=folder, env=PLAIN)


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
    output = b""
    while True:
        ready, _, _ = select.select([here], [], [], 60)
        try:
            part = os.read(here, 65536) if ready else b""
        except OSError:  # the other end is closed
            break
        if not part:
            break
        output += part
    os.close(here)
    return process.wait(60), output.decode()


# --- Colours and control codes --------------------------------------------------------------------


def test_a_pipe_gets_no_control_codes_and_no_progress(table):
    """Into pipes goes plain text, and nothing on standard error, unless FORCE_COLOR asks for colours."""
    line = ("audit", table, "--set", "mixture=2")
    result = auditor(*line, folder=table.parent)
    assert (result.returncode, result.stderr) == (0, b"")
    assert CODE.search(result.stdout.decode()) is None
    assert b"\r" not in result.stdout
    assert CODE.search(auditor("audit", table, folder=table.parent, FORCE_COLOR="1").stdout.decode())


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


def test_a_terminal_sees_progress_and_colours_where_it_can_show_them(table):
    """A terminal shows progress in colours, without cursor movement if it is dumb; --quiet shows nothing."""
    arguments = ("audit", table, "--set", "mixture=2")
    code, output = in_terminal(*arguments, folder=table.parent)
    assert code == 0
    assert "Auditing" in output
    assert re.search(r"\x1b\[[0-9;]*m", output)
    dumb = in_terminal(*arguments, folder=table.parent, TERM="dumb")[1]
    assert "Auditing" in dumb
    assert "\x1b" not in dumb
    assert in_terminal(*arguments, "--quiet", folder=table.parent) == (0, "")


# --- Streams that are closed, full or read by head --------------------------------------------------


@pytest.mark.parametrize("arguments", ["--help", "audit losses.csv --json -"])
def test_a_reader_that_goes_away(table, arguments):
    """`| head -1` leaves no message behind."""
    result = shell(f"{arguments} | head -n 1", table.parent)
    assert result.stderr == b""
    assert result.stdout.count(b"\n") == 1


@pytest.mark.parametrize(
    ("line", "code", "sentences"),
    [
        ("audit losses.csv > /dev/full", 2, 1),
        ("audit losses.csv --json - > /dev/full", 2, 1),
        ("--help > /dev/full", 2, 1),
        ("audit --help > /dev/full", 2, 1),
        ("audit --help >&-", 2, 1),
        ("audit losses.csv --quiet >&-", 0, 0),
        ("audit losses.csv --json - >&-", 2, 1),
        ("--version 2>&-", 0, 0),
        ("audit nowhere.csv 2>&-", 2, 0),
        ("audit losses.csv --fail-if 'auc > 0.9' --quiet 2>&-", 1, 0),
        ("audit losses.csv --quiet <&-", 0, 0),
    ],
)
def test_closed_streams(table, line, code, sentences):
    """The exit code is the same when nobody listens, and needs no input; what cannot be said is one sentence."""
    result = shell(line, table.parent)
    assert (result.returncode, result.stderr.count(b"\n")) == (code, sentences)
    full = b"error: standard output cannot be written: No space left on device.\n"
    assert result.stderr == full if "/dev/full" in line else b"Traceback" not in result.stderr


# --- Quiet and debug --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        "claim --noise-multiplier 1 --sampling-rate 0.01 --steps 10 --delta 1e-5",
        "claim --solve-for noise-multiplier --target advantage:0.05 --sampling-rate 0.01 --steps 1000",
        "power --epsilon 2 --delta 1e-5 --split random",
    ],
)
def test_every_command_is_quiet(arguments, capfd):
    """--quiet is the same promise for every command that prints something."""
    assert app.run([*shlex.split(arguments), "--quiet"]) in (0, 1)
    assert capfd.readouterr() == ("", "")


def test_debug_adds_the_traceback(tmp_path, capfd):
    """--debug shows where an error came from, and ends with the same sentence."""
    line = ["audit", str(tmp_path / "nowhere.csv")]
    app.run(line)
    plain = capfd.readouterr().err
    app.run([*line, "--debug"])
    result = capfd.readouterr().err
    assert "Traceback" in result
    assert "Traceback" not in plain
    assert result.endswith(plain)


# --- Consoles that cannot show every sign -----------------------------------------------------------


def test_a_console_of_few_signs(table):
    """Characters that a console lacks are replaced, without a failure, on success and on errors."""
    for arguments in (("audit", table), ("--help",), ("audit", "数据.csv")):
        result = auditor(*arguments, folder=table.parent, PYTHONIOENCODING="ascii")
        assert result.returncode == (2 if "数据.csv" in arguments else 0)
        assert b"Traceback" not in result.stderr
        (result.stdout + result.stderr).decode("ascii")


def test_a_sign_that_a_console_lacks_keeps_its_meaning():
    """A question mark means unknown, so the signs of the other outcomes have plain forms; foreign signs have none."""
    console.forgive_unknown_signs()
    signs = [sign.symbol for sign in (*VERDICT.values(), *STATUS.values())]
    plain = [sign.encode("ascii", "plain-signs").decode() for sign in signs]
    assert [x for x, sign in zip(plain, signs, strict=True) if "?" in x and sign != "?"] == []
    assert len(set(plain)) == len(set(signs))
    assert "1—2 数".encode("ascii", "plain-signs") == b"1-2 ?"
    assert "≤ 数".encode("cp437", "plain-signs").decode("cp437") == "≤ ?"


# --- Names and paths ----------------------------------------------------------------------------------


def test_odd_names_on_the_real_command_line(table, tmp_path):
    """The same through a shell, with the page, and with a name that begins with a dash behind two dashes."""
    (tmp_path / "-größe 数据\n.csv").write_bytes(table.read_bytes())
    name = "-größe 数据\n.html"
    result = auditor("audit", "--quiet", "--html", name, "--", "-größe 数据\n.csv", folder=tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")
    assert (tmp_path / name).read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    "path",
    [r"C:\Users\Jörg Müller\losses.csv", r"\\server\share\losses.csv", r"C:losses.csv", "C:/data/losses.csv"],
)
def test_windows_paths_are_reported_as_typed(tmp_path, monkeypatch, capsys, path):
    """Backslashes and drive letters are reported unchanged, in quotes, and are not parsed as options."""
    monkeypatch.chdir(tmp_path)
    assert PureWindowsPath(path).name == "losses.csv"
    for arguments in (["audit", path], ["audit", "--members", path, "--nonmembers", path]):
        assert app.run(arguments) == 2
        assert repr(path) in capsys.readouterr().err


# --- Interrupted, at any moment ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "imported", ["cyclopts", "auditor.cli.app", "auditor.pipeline", "auditor.report.html"]
)
def test_an_interruption_is_one_line_and_code_130(table, imported):
    """Whatever module is loading when Ctrl-C comes, before a command runs or in it: one line, and no traceback."""
    finder = f"""
import os, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {imported!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
sys.argv[1:] = ["audit", {str(table)!r}, "--html", "page.html"]
from auditor.__main__ import main
main()
"""
    result = subprocess.run(
        [sys.executable, "-c", finder], check=False, capture_output=True, cwd=table.parent, env=PLAIN
    )
    assert (result.returncode, result.stdout, result.stderr) == (130, b"", b"interrupted.\n")
    assert not (table.parent / "page.html").exists()


def test_no_warning_of_python_reaches_a_user(table):
    """A warning that a library raises, which names a source file, is hidden by default, and shown on request."""
    code = f"""
import sys, warnings
import auditor.cli.app as app
inner = app.run
app.run = lambda line: [warnings.simplefilter("always"), warnings.warn("overflow"), inner(line)][2]
sys.argv[1:] = ["audit", {str(table)!r}, "--quiet"]
from auditor.__main__ import main
main()
"""
    for options, output in (((), b""), (("-Walways",), b"UserWarning: overflow")):
        line = [sys.executable, *options, "-c", code]
        result = subprocess.run(line, check=True, capture_output=True, cwd=table.parent, env=PLAIN)
        assert (output in result.stderr) if output else result.stderr == b""
