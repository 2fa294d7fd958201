"""Whatever fails, and however a command is stopped: its outputs are whole, all old or all new, and nothing else is left."""

import builtins
import errno
import io
import itertools
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from command_line import printed, refused, run
from report.conftest import no_figures  # noqa: F401 - a fixture

import auditor
from auditor.core import files
from auditor.core.files import scratch, whole, write_all, write_folder

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals, modes and handles of a Unix system")

COMMANDS = {
    "report": "report result.json --json a.json --markdown b.md --junit c.xml --quiet",
    "canaries": "canaries --kind text --template secret-###### --size 20 --seed 1 --out c.csv --coins k.csv --overwrite --quiet",
    "summarise": "summarise losses.csv --out s.parquet --quiet",
    "site": "report results --html pages --quiet",
}
OUTPUTS = re.compile(r"\S+\.(?:json|md|xml|csv|parquet|toml)\b|pages")


@pytest.fixture(scope="module")
def stored():
    """A small result, as JSON."""
    rng = np.random.default_rng(0)
    losses = auditor.Losses(member=rng.normal(-1, 1, 60), nonmember=rng.normal(0, 1, 60))
    return auditor.audit(losses).to_json()


@pytest.fixture
def here(stored, tmp_path, monkeypatch):
    """A folder with what the commands read."""
    monkeypatch.chdir(tmp_path)
    Path("result.json").write_text(stored, encoding="utf-8")
    Path("results").mkdir()
    Path("results", "one.json").write_text(stored, encoding="utf-8")
    Path("losses.csv").write_text("loss,member\n" + "0.1,1\n0.9,0\n0.2,1\n0.7,0\n" * 5, encoding="utf-8")
    return tmp_path


def outputs(name):
    """The outputs of a command."""
    return OUTPUTS.findall(COMMANDS[name].split(" --", 1)[1])


def content(folder):
    """All that a folder holds, by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def names(folder):
    """The names that a folder holds."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def code_of(line):
    """The exit code of a command, interrupted or not."""
    try:
        return run(*line.split())
    except SystemExit as end:
        return end.code


# --- A fault at every step ---


class _File:
    """An open file whose writing is a step."""

    def __init__(self, file, step):
        self._file, self._step = file, step

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __enter__(self):
        self._file.__enter__()
        return self

    def __exit__(self, *error):
        return self._file.__exit__(*error)

    def write(self, data):
        self._step()
        return self._file.write(data)


class Faults:
    """Steps of one kind in a folder, of which that with the number ``at`` raises an error instead."""

    def __init__(self, patch, folder, kind, *, at, error):
        self.count, self.at, self.error, self.folder = 0, at, error, str(folder)
        if kind in ("replace", "rename", "fsync", "mkdir"):
            plain = getattr(os, kind)
            patch.setattr(os, kind, lambda one, *more, **named: self._do(one, plain, one, *more, **named))
        elif kind == "open":
            plain = os.open
            patch.setattr(
                os,
                "open",
                lambda path, how, *more, **named: self._do(
                    path if how & (os.O_WRONLY | os.O_RDWR) else None, plain, path, how, *more, **named
                ),
            )
        else:
            plain = io.open

            def opened(path, mode="r", *more, **named):
                ours = self._ours(path) and set(mode) & set("wxa+")
                if not ours or kind == "create":
                    return self._do(path if ours else None, plain, path, mode, *more, **named)
                return _File(plain(path, mode, *more, **named), self._step)

            patch.setattr(io, "open", opened)
            patch.setattr(builtins, "open", opened)

    def _ours(self, path):
        return isinstance(path, int) or str(Path(path).absolute()).startswith(self.folder)

    def _do(self, path, plain, *arguments, **named):
        if path is not None and self._ours(path):
            self._step()
        return plain(*arguments, **named)

    def _step(self):
        self.count += 1
        if self.count == self.at:
            raise self.error


KINDS = ("replace", "rename", "fsync", "mkdir", "open", "create", "write")
ERRORS = [(kind, OSError(errno.ENOSPC, "full")) for kind in KINDS] + [
    ("replace", KeyboardInterrupt()),
    ("fsync", KeyboardInterrupt()),
]
pages_are_quick = pytest.mark.usefixtures("no_figures")


def _before(here, name):
    """The files before a command, which are all its outputs but the last, changed; the files after it; its outputs."""
    nothing = content(here)
    assert code_of(COMMANDS[name]) == 0
    new = content(here)
    written = sorted(new.keys() - nothing.keys())
    for place in written[:-1] if len(written) > 1 else written:
        Path(place).write_bytes(new[place] + b"<!-- old -->")
    if len(written) > 1:
        Path(written[-1]).unlink()
    return content(here), new, written


def _restore(here, old):
    for place in content(here).keys() - old.keys():
        Path(place).unlink()
    for place, held in old.items():
        Path(place).write_bytes(held)


@pages_are_quick
@pytest.mark.parametrize(("name", "swaps"), [*((name, True) for name in COMMANDS), ("site", False)])
def test_a_fault_at_every_step_leaves_all_outputs_old_or_all_new(here, monkeypatch, capsys, name, swaps):
    """Each rename, sync, folder, opening and writing of a command fails in turn: all outputs are as they were, or all new."""
    if not swaps:
        monkeypatch.setattr(files, "_exchanged", lambda *_: False)
    old, new, written = _before(here, name)
    ends = ("No space left on device.\n", f"of {len(written)} outputs none was written.\n")
    faults = 0
    for kind, error in ERRORS:
        for at in itertools.count(1):
            _restore(here, old)
            capsys.readouterr()
            with monkeypatch.context() as patch:
                found = Faults(patch, here, kind, at=at, error=error)
                code = code_of(COMMANDS[name])
            said, after = capsys.readouterr().err, content(here)
            where = f"{name}, {kind} {at}, {error!r}: {said}"
            assert _left(here) == [], where
            if found.count < at:
                assert (code, after) == (0, new), where
                break
            faults += 1
            if isinstance(error, KeyboardInterrupt):
                assert (code, said) == (130, "interrupted.\n"), where
                assert after == old or (name == "site" and after == new), where
            elif code == 0:  # a step that nothing depends on
                assert after == new, where
            else:
                assert (code, after) == (2, old), where
                assert re.match("error: output path '.*'", said), where
                assert any(output in said for output in outputs(name)), where
                assert said.endswith(ends), where
    assert faults >= 5


@pytest.mark.parametrize("number", [errno.EBUSY, errno.EPERM, errno.EACCES], ids=["EBUSY", "EPERM", "EACCES"])
@pytest.mark.parametrize("stays", [{"a"}, {"c"}, {"a", "b", "c"}], ids=["a", "c", "abc"])
def test_a_file_whose_name_stays_is_written_in_place(tmp_path, monkeypatch, number, stays):
    """Where a rename is refused for the name's sake the same file gets the content; a later fault puts it back."""
    paths = {name: tmp_path / name for name in "abcd"}
    plain, broken = os.replace, []

    def replace(draft, target):
        if Path(target).name in stays:
            raise OSError(number, "stays")
        if Path(target).name in broken:
            raise OSError(errno.EIO, "broken")
        plain(draft, target)

    monkeypatch.setattr(os, "replace", replace)
    for name in "abc":
        paths[name].write_text(f"old and longer {name}")
        paths[name].chmod(0o640)
    files_before = {name: paths[name].stat().st_ino for name in stays}
    broken.append("d")
    with pytest.raises(
        auditor.OutputError,
        match=r"/d' cannot be written: Input/output error; of 4 outputs none was written\.$",
    ):
        write_all({path: f"new {name}" for name, path in paths.items()})
    assert content(tmp_path) == {name: f"old and longer {name}".encode() for name in "abc"}
    broken.clear()
    write_all({path: f"new {name}" for name, path in paths.items()})
    assert content(tmp_path) == {name: f"new {name}".encode() for name in "abcd"}
    assert {name: paths[name].stat().st_ino for name in stays} == files_before
    assert {stat.S_IMODE(paths[name].stat().st_mode) for name in "abc"} == {0o640}


def test_what_cannot_be_put_back_is_named(tmp_path, monkeypatch):
    """Where a file was replaced and can neither be put back nor written to, the sentence says that it was written."""
    plain, calls = os.replace, []

    def replace(draft, target):
        calls.append(target)
        if len(calls) > 1:
            raise OSError(errno.EROFS, "read-only from now on")
        plain(draft, target)

    monkeypatch.setattr(os, "replace", replace)
    for name in "abc":
        (tmp_path / name).write_text("old")
    with pytest.raises(
        auditor.OutputError,
        match=r"/b' cannot be written: Read-only file system; of 3 outputs '\S*/a' was written\.$",
    ):
        write_all({tmp_path / name: "new" for name in "abc"})
    assert content(tmp_path) == {"a": b"new", "b": b"old", "c": b"old"}


@pytest.fixture
def mounted():
    """A function that mounts one path on another until the test ends."""
    done = []

    def mount(what, where):
        found = subprocess.run(
            [shutil.which("mount"), "--bind", what, where], check=False, capture_output=True
        )
        if found.returncode:
            pytest.skip("this user mounts nothing")
        done.append(where)

    if os.geteuid() != 0:
        pytest.skip("only root mounts files")
    yield mount
    for where in done:
        subprocess.run([shutil.which("umount"), where], check=True)


@pages_are_quick
def test_outputs_that_are_mounts(here, mounted, stored):
    """A file and a folder that are mounted, as in a container, are written through the mount."""
    Path("outside.json").write_text("old and " * 20_000)
    Path("mounted.json").touch()
    mounted("outside.json", "mounted.json")
    assert run("report", "result.json", "--json", "mounted.json", "--markdown", "b.md", "--quiet") == 0
    assert json.loads(Path("outside.json").read_text(encoding="utf-8")) == json.loads(stored)
    Path("outside").mkdir()
    Path("pages").mkdir()
    mounted("outside", "pages")
    for _ in range(2):
        assert run("report", "results", "--html", "pages", "--quiet") == 0
    assert Path("outside", "index.html").exists()
    assert not list(here.glob(".auditor-*"))


@pytest.mark.skipif(os.geteuid() != 0, reason="takes two users")
def test_another_users_file_in_a_sticky_folder():
    """There only the owner renames; others who may write to the file do so in place, and it stays the owner's."""
    code = """
import os, pathlib, sys
from auditor.core.files import write_all
folder = pathlib.Path(sys.argv[1])
folder.chmod(0o1777)
(folder / "a").write_text("old")
(folder / "a").chmod(0o666)
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
write_all({folder / "a": "new", folder / "b": "new"})
print((folder / "a").stat().st_uid, (folder / "b").stat().st_uid, sorted(p.name for p in folder.iterdir()))
"""
    with tempfile.TemporaryDirectory() as folder:  # where every user gets to
        Path(folder).chmod(0o755)
        inner = Path(folder, "sticky")
        inner.mkdir()
        assert printed(code, inner) == "0 65534 ['a', 'b']"
        assert content(inner) == {"a": b"new", "b": b"new"}


# --- Handles by their names ---


def _names_of(handle, folder):
    link, second = folder / "link", folder / "second"
    link.symlink_to(f"/dev/fd/{handle}")
    second.symlink_to("link")
    found = [
        f"/dev/fd/{handle}",
        f"/proc/self/fd/{handle}",
        f"/proc/{os.getpid()}/fd/{handle}",
        f"/proc/thread-self/fd/{handle}",
    ]
    return [path for path in (*found, str(link), str(second)) if Path(path).parent.exists()]


def test_names_of_handles_are_written_through(here, stored):
    """An open file that is named as a handle gets the content at its end or place, is never replaced, and links stay links."""
    Path("log").write_text("before\n")
    handle = os.open("log", os.O_WRONLY | os.O_APPEND)
    there = Path("log").stat().st_ino
    given = _names_of(handle, here)
    assert len(given) > 2
    for number, path in enumerate(given, 1):
        assert run("report", "result.json", "--markdown", path, "--json", "a.json", "--quiet") == 0
        text = Path("log").read_text(encoding="utf-8")
        assert text.startswith("before\n")
        assert text.count("# ") == number * auditor.read_result("result.json").to_markdown().count("# ")
    os.close(handle)
    assert Path("log").stat().st_ino == there
    assert Path("link").is_symlink()
    assert Path("a.json").read_text(encoding="utf-8") == stored


def test_standard_output_by_its_name(here, capfd, stored):
    """/dev/stdout is standard output, whatever that is: a file that a shell opened is not replaced."""
    assert run("report", "result.json", "--json", "/dev/stdout", "--quiet") == 0
    assert capfd.readouterr().out == stored
    line = [sys.executable, "-m", "auditor", "report", "result.json", "--json", "/dev/stdout", "--quiet"]
    with Path("out").open("wb") as file:
        file.write(b"before\n")
        file.flush()
        there = Path("out").stat().st_ino
        subprocess.run(line, check=True, stdout=file, env=_environment(here))
    assert Path("out").read_text(encoding="utf-8") == "before\n" + stored
    assert Path("out").stat().st_ino == there
    found = subprocess.run(line, check=True, stdout=subprocess.PIPE, env=_environment(here))
    assert found.stdout.decode() == stored


def test_a_handle_that_fails_takes_the_files_back(here, capsys):
    """A handle is written to last; where that fails the files are as they were, and one that is not open is refused first."""
    Path("a.json").write_text("old", encoding="utf-8")
    before = content(here)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    os.write(writer, b"x" * 10**7)  # as much as it takes
    line = [
        "report",
        "result.json",
        "--json",
        "a.json",
        "--junit",
        "b.xml",
        "--markdown",
        f"/dev/fd/{writer}",
    ]
    said = refused(capsys, *line)
    os.close(reader)
    os.close(writer)
    words = (
        f"/dev/fd/{writer}' cannot be written: {os.strerror(errno.EAGAIN)}; of 3 outputs none was written."
    )
    assert words in said
    assert content(here) == before
    assert "is not a path that can be written" in refused(capsys, *line)
    reading = os.open("a.json", os.O_RDONLY)
    assert "is not a path that can be written" in refused(capsys, *line[:-1], f"/dev/fd/{reading}")
    os.close(reading)
    assert content(here) == before


@pytest.mark.usefixtures("here")
def test_one_handle_by_two_names_is_refused(capsys):
    """Two outputs that lead to one handle are named twice; a reader that went away is no error."""
    reader, writer = os.pipe()
    line = ["report", "result.json", "--markdown", f"/dev/fd/{writer}", "--quiet"]
    assert "is named twice" in refused(capsys, *line, "--json", f"/proc/self/fd/{writer}")
    os.close(reader)
    assert run(*line, "--json", "a.json") == 0
    os.close(writer)
    assert Path("a.json").exists()


# --- Modes ---


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_modes_are_those_of_open_and_the_umask_is_never_touched(tmp_path, monkeypatch, mask):
    """A new file has the mode that open gives it, a replaced one keeps its own, and so do folders."""
    kept = os.umask(mask)
    try:
        with (tmp_path / "plain").open("w"):
            (tmp_path / "plain folder").mkdir()
        monkeypatch.setattr(os, "umask", lambda _: pytest.fail("the umask was changed"))
        for round_ in range(2):
            write_all({tmp_path / "one": "text", tmp_path / "two": b"bytes"})
            write_folder(tmp_path / "folder", {"index.html": "text", "page.html": "text"})
            with whole(tmp_path / "three", folder=tmp_path) as draft:
                draft.write_text("text")
            found = {path: stat.S_IMODE((tmp_path / path).stat().st_mode) for path in names(tmp_path)}
            for path, mode in found.items():
                plain = found["plain folder" if (tmp_path / path).is_dir() else "plain"]
                assert mode == (plain if not round_ or "plain" in path else 0o705), path
            for path in names(tmp_path):
                if "plain" not in path:
                    (tmp_path / path).chmod(0o705)
    finally:
        monkeypatch.undo()
        os.umask(kept)


# --- Signals, and what processes leave that were killed ---


def _environment(folder):
    """The environment of a command whose temporary files go to this folder's ``tmp``."""
    (folder / "tmp").mkdir(exist_ok=True)
    return {
        **os.environ,
        "TMPDIR": str(folder / "tmp"),
        "OMP_NUM_THREADS": "1",
        "MPLCONFIGDIR": str(folder / "fonts"),
    }


def _left(folder):
    return [path for path in names(folder) if ".auditor-" in path]


def _read(folder):
    return {path for path in _left(folder) if path.endswith(".csv")}


def _waiting(folder, **more):
    """A process of ``audit -`` that waits for its losses."""
    seen = _read(folder)
    line = [sys.executable, "-m", "auditor", "audit", "-", "--json", "a.json", "--quiet"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(line, stdin=pipe, stderr=pipe, cwd=folder, env=_environment(folder), **more)
    deadline = time.monotonic() + 60
    while not _read(folder) - seen and time.monotonic() < deadline:
        time.sleep(0.02)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_losses_are_read(here, number):
    """Stopped while it waits for standard input, a command leaves no losses behind and exits as a shell expects."""
    process = _waiting(here)
    assert _left(here)
    process.send_signal(number)
    process.send_signal(number)  # as when a terminal closes
    said = process.communicate(timeout=60)[1]
    assert (process.returncode, said) == (128 + number, b"interrupted.\n")
    assert names(here / "tmp") == []
    assert not Path("a.json").exists()


_STOPS = """
import os, sys
steps, seen, number, moment = [], set(), int(sys.argv[1]), sys.argv[2]
def counted(kind, plain):
    def step(*arguments, **named):
        steps.append(kind)
        seen.add(f"{kind} {steps.count(kind)}")
        if moment == f"{kind} {steps.count(kind)}":
            os.kill(os.getpid(), number)
        if kind == "unlink" and moment in seen:  # while what was begun is taken back
            os.kill(os.getpid(), number)
        return plain(*arguments, **named)
    return step
os.replace, os.fsync = counted("replace", os.replace), counted("fsync", os.fsync)
os.unlink = counted("unlink", os.unlink)
os.supports_dir_fd.add(os.unlink)
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == moment:
            os.kill(os.getpid(), number)
sys.meta_path.insert(0, Finder())
sys.argv[1:] = sys.argv[3:]
from auditor.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("number", "moment"),
    [
        *(
            (signal.SIGTERM, moment)
            for moment in ("cyclopts", "auditor.report.terminal", "fsync 2", "replace 3")
        ),
        (signal.SIGHUP, "fsync 2"),
        *(
            pytest.param(signal.SIGHUP, moment, marks=pytest.mark.long)
            for moment in ("cyclopts", "auditor.report.terminal", "replace 3")
        ),
    ],
)
def test_a_signal_at_any_moment(here, number, moment):
    """Stopped while modules load, before a command writes or while it does, it leaves its outputs as they were.

    So it does where the signal comes again while it clears up, as when a terminal closes.
    """
    Path("a.json").write_text("old")
    before = content(here)
    line = COMMANDS["report"].replace("--quiet", "")
    found = subprocess.run(
        [sys.executable, "-c", _STOPS, str(int(number)), moment, *line.split()],
        check=False, capture_output=True, cwd=here, env=_environment(here), timeout=60,
    )  # fmt: skip
    assert (found.returncode, found.stdout, found.stderr) == (128 + number, b"", b"interrupted.\n")
    assert {name: held for name, held in content(here).items() if not name.startswith("fonts")} == before
    assert _left(here) == []


_FORKS = """
import os, signal, sys, time
plain = os.replace
def replace(*arguments):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, b"ready")
        time.sleep(20)
        os._exit(0)
    os.read(reader, 5)
    os.kill(child, signal.SIGTERM)
    print(os.waitpid(child, 0)[1])
    return plain(*arguments)
os.replace = replace
from auditor.__main__ import main
main()
"""


def test_a_signal_ends_a_forked_process_as_ever(here, stored):
    """A process that a library forks, as a pool of workers, ends by SIGTERM itself, and the command goes on."""
    line = ("report", here / "result.json", "--json", here / "a.json", "--quiet")
    assert printed(_FORKS, *line) == str(int(signal.SIGTERM))
    assert Path("a.json").read_text(encoding="utf-8") == stored


def test_a_signal_that_is_ignored_stays_ignored(here):
    """Under ``nohup`` a hang-up stops nothing."""
    process = _waiting(here, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    process.send_signal(signal.SIGHUP)
    said = process.communicate(b"no table at all", timeout=60)[1]
    assert (process.returncode, said[:7]) == (2, b"error: ")


def test_what_a_killed_process_left_is_swept_and_nothing_of_a_living_one(here):
    """The next start removes the losses of a process that was killed, and leaves those of one that still reads."""
    killed, living = _waiting(here), None
    try:
        left = _left(here / "tmp")
        assert len(left) == 2  # a folder and a file
        killed.kill()
        killed.communicate()
        assert _left(here / "tmp") == left
        living = _waiting(here)
        now = _left(here / "tmp")
        assert len(now) == 2
        assert not set(left) & set(now)
        other = _waiting(here)
        assert set(now) < set(_left(here / "tmp"))
        other.communicate(b"no table at all", timeout=60)
        assert _left(here / "tmp") == now
        assert living.poll() is None
    finally:
        for process in (killed, living):
            if process is not None and process.poll() is None:
                process.kill()
                process.communicate()


def test_only_own_folders_are_swept(tmp_path):
    """Other names, links, other kinds and folders that are held stay; what nobody holds goes."""
    ours = [f".auditor-{digit * 32}.tmp" for digit in "0123"]
    others = [".auditor-mine.tmp", ".auditor.tmp", f"auditor-{'0' * 32}.tmp", f".auditor-{'0' * 32}"]
    for name in (ours[0], *others):
        (tmp_path / name).mkdir()
        (tmp_path / name / "draft").touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "draft").touch()
    (tmp_path / ours[1]).symlink_to("elsewhere")
    os.mkfifo(tmp_path / ours[2])
    (tmp_path / ours[3]).touch()
    with scratch(tmp_path) as held:
        (held / "draft").touch()
        write_all({tmp_path / "out": "text"})
        assert (held / "draft").exists()
    assert not held.exists()
    found = {path.name for path in tmp_path.iterdir()}
    assert found == {*others, *ours[1:], "elsewhere", "out"}
    assert (tmp_path / "elsewhere" / "draft").exists()


@pages_are_quick
def test_a_site_whose_writer_was_killed_in_it_is_made_again(here):
    """Drafts that a killed process left in the folder of a site are no other files, and go."""
    assert code_of(COMMANDS["site"]) == 0
    left = here / "pages" / f".auditor-{'a' * 32}.tmp"
    left.mkdir()
    (left / "draft").touch()
    assert code_of(COMMANDS["site"]) == 0
    assert not left.exists()


_KILLED = """
import json, os, pathlib, shutil, signal, sys
from auditor.core import files
folder, exchanges = pathlib.Path(sys.argv[1]), sys.argv[2] == "exchange"
old = {"index.html": "old", "a.html": "old a", "b.html": "b"}
new = {"index.html": "new", "a.html": "new a", "c.html": "c"}
def content(path):
    return {item.name: item.read_text() for item in path.iterdir() if item.is_file()} if path.exists() else None
def deadly(at):
    left = [at]
    def counted(plain):
        def step(*arguments, **named):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return plain(*arguments, **named)
        return step
    for name in ("fsync", "rename", "replace", "mkdir", "rmdir", "unlink", "open"):
        setattr(os, name, counted(getattr(os, name)))
    files._exchanged = counted(files._exchanged if exchanges else lambda *_: False)
found, at, status = [], 0, 1
while status:
    target = folder / "site"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for name, text in old.items():
        (target / name).write_text(text)
    child = os.fork()
    if child == 0:
        deadly(at)
        files.write_folder(target, new)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    one = {"after": content(target)}
    files.write_folder(target, new)
    one |= {"again": content(target), "left": sorted(os.listdir(folder))}
    found.append(one)
    at += 1
print(json.dumps([old, new, found]))
"""


@pytest.mark.parametrize("how", ["exchange", "no exchange"])
def test_a_folder_is_there_whenever_its_writer_is_killed(tmp_path, how):
    """Killed at any step, a site is the old one or the new one; where names are not exchanged, each page and the index is."""
    old, new, found = json.loads(printed(_KILLED, tmp_path, how))
    assert len(found) > 15
    assert found[0]["after"] == old
    assert found[-1]["after"] == new
    for one in found:
        assert one["again"] == new
        assert one["left"] == ["site"]
        after = one["after"]
        if how == "exchange" and sys.platform == "linux":
            assert after in (old, new)
        else:
            assert all(text in (old.get(name), new.get(name)) for name, text in after.items())
            assert set(after) >= set(old if after["index.html"] == "old" else new)
