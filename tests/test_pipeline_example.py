"""What a pipeline does: the README's gate, word for word, lets a quiet model pass and stops everything else."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer

from auditor.cli import app

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
SCRIPT = re.search(r"<!-- command: pipeline -->\n```sh\n(.*?)```", README, re.DOTALL)[1]
WORKFLOWS = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
REPORTS = ("privacy.html", "privacy.json", "privacy.md", "privacy.xml", "privacy.sarif")
N = 1000


@pytest.fixture(scope="module")
def tables():
    """What a pipeline may meet: losses.csv of a leaking and a quiet model, a broken one, and one of the same records."""
    rng = np.random.default_rng(20261121)
    member = np.repeat([1, 0], N)
    quiet = pd.DataFrame({"loss": rng.normal(0, 1, 2 * N), "member": member})
    same = np.tile(np.arange(N), 2)
    return {
        "leaking": quiet.assign(loss=quiet["loss"] - 2 * member).to_csv(index=False),
        "quiet": quiet.to_csv(index=False),
        "broken": quiet.assign(loss=quiet["loss"].where(quiet.index != 7)).to_csv(index=False),
        "same records": quiet.assign(id=same).to_csv(index=False),
        "too few": quiet.iloc[[0, 1, 2, -3, -2, -1]].to_csv(index=False),
    }


def stop(folder, text=None):
    """Run the README's script in bash, as a pipeline does; return the exit code and what it said."""
    if text is not None:
        (folder / "losses.csv").write_text(text, encoding="utf-8")
    programs = folder / "bin"
    programs.mkdir()
    (programs / "auditor").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m auditor "$@"\n')
    (programs / "auditor").chmod(0o755)
    found = subprocess.run(
        ["/bin/bash", "-euo", "pipefail", "-c", f"{SCRIPT}\necho released"],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "CI": "true"},
    )
    assert (found.returncode == 0) == (found.stdout == "released\n")
    return found


@pytest.mark.parametrize(
    ("name", "code", "why"),
    [
        ("leaking", 1, "gate 'epsilon_bound.clopper_pearson > 1' failed"),
        ("quiet", 0, ""),
        ("broken", 2, "first at row 9"),
        (None, 2, "does not exist"),
        ("same records", 3, "cannot be evaluated, so it does not pass"),
        ("too few", 1, "gate 'auc.upper > 0.6' failed"),
    ],
)
def test_only_a_quiet_model_is_released(tables, tmp_path, name, code, why):
    """Leaking: 1. Quiet: 0. Broken or missing: 2. Not evaluable: 3. And the reason is told in any case."""
    found = stop(tmp_path, None if name is None else tables[name])
    assert found.returncode == code, found.stderr
    assert why in found.stderr
    assert "Traceback" not in found.stderr
    assert (found.stderr == "") == (code == 0)
    # Where there was an audit, all reports are written, also to those who have to explain the stop; otherwise none is.
    assert {path for path in REPORTS if (tmp_path / path).exists()} == (set() if code == 2 else set(REPORTS))


@pytest.mark.parametrize("text", WORKFLOWS)
def test_the_workflows_parse(text):
    """Both workflows are YAML, and every auditor command in them is taken by the command's own parser."""
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load(text)
    if "jobs" in found:
        steps = found["jobs"]["privacy"]["steps"]
        commands = [step["run"] for step in steps if "run" in step]
        assert next(step for step in steps if "upload-sarif" in step.get("uses", ""))["if"] == "always()"
    else:
        commands = found["privacy"]["script"]
        assert found["privacy"]["artifacts"]["when"] == "always"
    audits = [shlex.split(command) for command in commands if command.startswith("auditor ")]
    assert len(audits) == 1
    program = typer.main.get_command(app.app).commands[audits[0][1]]
    given = program.make_context(audits[0][1], audits[0][2:]).params
    assert given["fail_if"] == ["auc.upper > 0.6"]
