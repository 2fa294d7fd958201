"""Resources that a command needs and does not have: standard input that is closed, room on the disk, memory."""

import io
import json

import pytest
from command_line import leaking, printed, refused, run


@pytest.mark.parametrize("command", ["audit -", "report result.json --verify --losses -"])
def test_closed_standard_input_is_one_sentence(command, tmp_path, rng, capsys, monkeypatch):
    """A command that reads a table from a closed standard input says so, and what helps."""
    monkeypatch.chdir(tmp_path)
    assert run("audit", leaking(tmp_path / "losses.csv", rng), "--quiet", "--json", "result.json") == 0
    monkeypatch.setattr("sys.stdin", None)
    said = refused(capsys, *command.split())
    assert (
        said == "error: standard input is closed; send a table with | or <, or name a file in place of -.\n"
    )


# With files of 1,000 bytes at most, as on a disk that is full; what each command prints and what it leaves behind.
FULL = """
import contextlib, io, json, os, resource, sys
import auditor
from auditor.cli.app import run
auditor.audit  # all that is loaded is loaded
found = {}
sys.dont_write_bytecode = True  # a file that Python cannot write whole would stay, for every other test
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
for command in json.loads(sys.argv[1]):
    before = sorted(os.listdir())
    out, err = io.StringIO(), io.StringIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(open("losses.csv", "rb").read()))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(command.split())
    found[command] = [code, err.getvalue(), sorted(os.listdir()) == before]
model = lambda features: 0.5 + 0 * features["a"].to_numpy()
tables = [auditor.RecordTable({"a": [float(i) for i in range(500)], "y": [i % 2 for i in range(500)],
    "member": [i // 2 % 2 for i in range(500)]}, label="y") for _ in range(1)]
try:
    auditor.collect(model, records=tables[0])
except auditor.AuditorError as error:
    found["collect"] = [2, f"error: {error}\\n", True]
print(json.dumps(found))
"""
WRITERS = {
    "audit - --quiet": "temporary file 'standard input.csv' cannot be written: File too large; make room, or name another folder",
    "report result.json --verify --losses -": "temporary file 'standard input.csv' cannot be written: File too large",
    "audit losses.csv --quiet --json more.json": "output path 'more.json' cannot be written: File too large.",
    "report result.json --html page.html": "output path 'page.html' cannot be written: File too large.",
    "compare result.json other.json --html page.html": "output path 'page.html' cannot be written: File too large.",
    "claim --noise-multiplier 1 --sampling-rate 0.1 --steps 9 --delta 1e-5 --html c.html": "output path 'c.html'",
    "summarise losses.csv --out summary.parquet": "output path 'summary.parquet' cannot be written: File too large.",
    "report . --html site": "output path 'site' cannot be written: File too large.",
    "collect": "part-00000000' cannot be written: File too large.",
}


def test_a_full_disk_is_one_sentence_and_nothing_half_written(tmp_path, rng, monkeypatch):
    """Every writer, temporary files included, ends with one sentence on a full disk, and leaves no part of a file."""
    pytest.importorskip("resource", reason="limits of a process are those of POSIX")
    monkeypatch.chdir(tmp_path)
    for name in ("result.json", "other.json"):
        assert run("audit", leaking(tmp_path / "losses.csv", rng), "--quiet", "--json", name) == 0
    commands = [name for name in WRITERS if name != "collect"]
    found = json.loads(printed(FULL, json.dumps(commands)))
    assert list(found) == list(WRITERS)
    for name, (code, err, same) in found.items():
        assert (code, same, err.count("\n")) == (2, True, 1), name
        assert WRITERS[name] in err, name


@pytest.mark.parametrize(
    ("command", "place", "words"),
    [
        ("report result.json", "json.loads", "there is not enough memory (3 GiB); free some, or use fewer"),
        (
            "compare result.json other.json",
            "json.loads",
            "there is not enough memory (3 GiB); free some, or use fewer",
        ),
        (
            "report result.json --verify",
            "json.loads",
            "there is not enough memory (3 GiB); free some, or use fewer",
        ),
        ("report . --html site", "json.loads", "there is not enough memory (3 GiB); free some, or use fewer"),
        ("audit losses.csv", "pyarrow.csv.open_csv", "'losses.csv' does not fit in memory (3 GiB)"),
        ("audit -", "pyarrow.csv.open_csv", "standard input does not fit in memory (3 GiB)"),
        ("summarise losses.csv --out s.parquet", "pyarrow.csv.open_csv", "does not fit in memory (3 GiB)"),
        (
            "audit losses.csv",
            "auditor.pipeline.simultaneous_band",
            "there is not enough memory (3 GiB); free some, or use fewer",
        ),
    ],
)
def test_too_little_memory_is_one_sentence(command, place, words, tmp_path, rng, capsys, monkeypatch):
    """Where memory runs out, while a file is read or later, a command says so, and does not call it a bug."""
    monkeypatch.chdir(tmp_path)
    leaking(tmp_path / "losses.csv", rng)
    assert run("audit", "losses.csv", "--quiet", "--json", "result.json") == 0
    assert run("audit", "losses.csv", "--quiet", "--json", "other.json", "--model", "Another") == 0
    content = (tmp_path / "losses.csv").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))

    def full(*_, **__):
        raise MemoryError("3 GiB")

    monkeypatch.setattr(place, full)
    assert words in refused(capsys, *command.split())
