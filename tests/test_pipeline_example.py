"""The example pipeline: the gate of the documentation, the action and the template, each word for word, stops all but a quiet model."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/how-to/pipelines.md").read_text(encoding="utf-8")
SCRIPTS = {
    "page": re.search(r"<!-- command: pipeline -->\n```sh\n(.*?)```", PAGE, re.DOTALL)[1],
    "action": yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["runs"]["steps"][-1]["run"],
    "template": yaml.safe_load((ROOT / "templates/privacy-audit.gitlab-ci.yml").read_text(encoding="utf-8"))[
        ".privacy-audit"
    ]["script"][-1],
}
# What the host hands to the scripts of the action and of the template.
GIVEN = {
    "LOSSES": "losses.csv",
    "GATES": "epsilon_bound.clopper_pearson > 1\nauc.upper > 0.6\n",
    "REPORTS": ".",
}
GIVEN |= {"OPTIONS": "--delta=1e-5\n", "RUNNER_TEMP": ".", "GITHUB_STEP_SUMMARY": "summary.md", "CI": "true"}
REPORTS = ("privacy.html", "privacy.json", "privacy.md", "privacy.xml", "privacy.sarif")
N = 1000


@pytest.fixture(scope="module")
def tables():
    """Inputs that a pipeline may meet: losses.csv of a leaking and a quiet model, a broken one, and one of the same records."""
    rng = np.random.default_rng(20261121)
    member = np.repeat([1, 0], N)
    quiet = pd.DataFrame({"loss": rng.normal(0, 1, 2 * N), "member": member})
    same = np.tile(np.arange(N), 2)
    return {
        "leaking": quiet.assign(loss=quiet["loss"] - 2 * member).to_csv(index=False),
        "quiet": quiet.to_csv(index=False),
        "broken": quiet.assign(loss=quiet["loss"].where(quiet.index != 7)).to_csv(index=False),
        "same records": quiet.assign(id=same).to_csv(index=False),
        "too few": quiet.iloc[[*range(12), *range(-12, 0)]].to_csv(index=False),
    }


def stop(folder, text, script, **more):
    """Run a script in bash, as a pipeline does, with more variables; return the exit code and what it said."""
    if text is not None:
        (folder / "losses.csv").write_text(text, encoding="utf-8")
    programs = folder / ".privacy-auditor/bin"
    programs.mkdir(parents=True)
    (programs / "auditor").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m auditor "$@"\n')
    (programs / "auditor").chmod(0o755)
    found = subprocess.run(
        ["/bin/bash", "-euo", "pipefail", "-c", f"({script}\n)\necho released"],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **GIVEN, **more, "PATH": f"{programs}:{os.environ['PATH']}"},
    )
    assert (found.returncode == 0) == (found.stdout == "released\n")
    return found


@pytest.mark.parametrize(
    ("script", "name", "code", "why"),
    [
        ("page", None, 2, "does not exist"),
        ("page", "same records", 3, "cannot be evaluated, so it does not pass"),
        ("page", "too few", 1, "gate 'auc.upper > 0.6' failed"),
        *((script, "leaking", 1, "gate 'epsilon_bound.clopper_pearson > 1' failed") for script in SCRIPTS),
        *((script, "quiet", 0, "") for script in SCRIPTS),
        ("page", "broken", 2, "first at row 9"),
        *(
            pytest.param(script, "broken", 2, "first at row 9", marks=pytest.mark.long)
            for script in SCRIPTS
            if script != "page"
        ),
    ],
)
def test_only_a_quiet_model_is_released(tables, tmp_path, script, name, code, why):
    """Leaking: 1. Quiet: 0. Broken or missing: 2. Not evaluable: 3. And the reason is reported in any case."""
    found = stop(tmp_path, None if name is None else tables[name], SCRIPTS[script])
    assert found.returncode == code, found.stderr
    assert why in found.stderr
    assert "Traceback" not in found.stderr
    assert (found.stderr == "") == (code == 0)
    # Where there was an audit, all reports are written, also to those who have to explain the stop; otherwise none is.
    asked = {path for path in REPORTS if path in SCRIPTS[script]}
    assert {path for path in REPORTS if (tmp_path / path).exists()} == (set() if code == 2 else asked)
    assert len(asked) > 2


@pytest.mark.parametrize("script", ["action", "template"])
def test_a_file_of_settings_in_the_repository_is_read_only_where_it_is_named(tables, tmp_path, script):
    """Settings beside the losses change nothing of what the action and the job find, unless the pipeline names the file."""
    (tmp_path / "auditor.toml").write_text("[audit]\nconfidence = 0.5\n")

    def confidence(folder, **more):
        folder.mkdir()
        assert stop(folder, tables["quiet"], SCRIPTS[script], **more).returncode == 0
        return json.loads((folder / "privacy.json").read_text())["data"]["confidence"]

    named = {"OPTIONS": "--config=../auditor.toml", "CONFIG": "../auditor.toml"}
    assert confidence(tmp_path / "unnamed") == 0.95
    assert confidence(tmp_path / "named", **named) == 0.5


def test_the_workflows_keep_what_was_found_where_they_stop():
    """The uploads of the example of each host, which is YAML, happen where the audit stops the pipeline, too."""
    github, gitlab = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
    *_, upload = github["jobs"]["privacy"]["steps"]
    assert ("upload-sarif" in upload["uses"], upload["if"]) == (True, "always()")
    assert gitlab["privacy"]["artifacts"]["when"] == "always"
