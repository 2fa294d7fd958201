"""Every command checks the names of its outputs, and options that decide nothing, before it reads or computes anything."""

import shlex

import pytest
from command_line import refused, run

from auditor.cli import console

# No file that is named exists, so that a command which reads first complains of that instead.
STEPS = "--noise-multiplier 1 --sampling-rate 0.1 --steps 3"
COLLECT = "collect none.skops --members none.csv --nonmembers other.csv --label y"
COMMANDS = {
    "audit": "audit none.csv",
    "instances": "instances none.json other.json --split random --delta 1e-5",
    "runs": "runs none.csv --delta 1e-5",
    "report": "report none.json",
    "compare": "compare none.json other.json",
    "claim": f"claim {STEPS} --delta 1e-5",
    "power": "power --epsilon 1 --delta 1e-5 --split random",
    "claim --solve-for": "claim --solve-for steps --target epsilon:2,delta=1e-5 --noise-multiplier 1 --sampling-rate 0.01",
}
OTHERS = [
    (f"{COLLECT} --out gone/losses.parquet", "does not exist; create it first"),
    ("summarise none.csv --out gone/summary.parquet", "does not exist; create it first"),
    ("canaries none.csv --label y --out gone/canaries.csv", "does not exist; create it first"),
    ("demo --html gone/page.html", "does not exist; create it first"),
    ("report . --html gone/site", "is not there or not writable; name another"),
    # Names that do not end as they must.
    (f"{COLLECT} --out losses.csv", "must end in .parquet, got"),
    ("summarise none.csv --out summary.csv", "--out must end in .parquet"),
    ("canaries none.csv --label y --out canaries.txt", "must end in .csv or .parquet"),
    ("audit none.csv --set records=ranking.json", "--set records must end in .csv or .parquet"),
    # Outputs that would replace what is read.
    (
        f"{COLLECT.replace('none.csv', 'a.parquet')} --out a.parquet --overwrite",
        "a file that this command reads",
    ),
    # Options that decide nothing, or contradict each other.
    (f"{COLLECT} --out losses.parquet --set repeats=0", "repeats must be a whole number of 1 or more"),
    (f"{COLLECT} --out losses.parquet --batch-size 0", "batch_size must be a whole number of 1 or more"),
    ("runs none.csv", "delta must be given"),
    ("instances none.json other.json --split random", "delta must be given"),
    ("instances none.json other.json --delta 1e-5 --split bernoulli:2", "inclusion must lie in (0, 1)"),
    (
        "compare none.json other.json third.json --fail-if-worse",
        "--fail-if-worse needs a baseline, got 3 results",
    ),
]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        *((f"{line} --json gone/a.json", "does not exist; create it first") for line in COMMANDS.values()),
        (f"{COMMANDS['audit']} --html gone/a.html", "does not exist; create it first"),
        *OTHERS,
    ],
)
def test_outputs_and_idle_options_are_checked_first(tmp_path, monkeypatch, capsys, line, words):
    """A command whose inputs do not exist refuses the output, or the option, before it looks for them."""
    monkeypatch.chdir(tmp_path)
    assert words in refused(capsys, *shlex.split(line))
    assert list(tmp_path.iterdir()) == []


def test_progress_is_reported_off_a_terminal(tmp_path, monkeypatch, capsys):
    """Where standard error is no terminal, a line now and then says how far the fit of mixtures is; none if quiet."""
    monkeypatch.setattr(console, "_SECONDS", 0.0)
    rows = [f"{loss},{member}" for loss in range(20) for member in (0, 1)]
    table = tmp_path / "losses.csv"
    table.write_text("\n".join(["loss,member", *rows]))
    line = ("audit", table, "--set", "mixture=2")
    assert run(*line) == 0
    # Two numbers of components for either group, and the fit to all of it.
    assert "Fitting mixtures: 100% done (6 of 6)" in capsys.readouterr().err
    assert run(*line, "--quiet") == 0
    assert capsys.readouterr().err == ""
