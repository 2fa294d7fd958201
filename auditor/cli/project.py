"""The commands that need nothing of one's own: `auditor demo`, `auditor schema`, and `auditor init`."""

import json
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from auditor.api import AuditResult, audit
from auditor.cli import console, settings
from auditor.cli.options import Common, Options, Quietly, argument
from auditor.core.errors import InputError, OutputError
from auditor.core.files import check_writable, write_all
from auditor.core.options import RandomSplit

# --- The demo: two classifiers on the digits that come with scikit-learn, audited and shown side by side ---
#
# Half of the records, drawn at random, train both models; the other half are the non-members. So the split is a random
# one, every training record is scored, and nothing is tuned: the page shows what the audit finds.


def run_demo(*, seed: int = 0, announce: Callable[[str], None] = lambda _: None) -> list[AuditResult]:
    """Train and audit both models.

    Args:
        seed: Of the split, the training and the audits.
        announce: Told what is being done, one line at a time.
    """
    from sklearn.datasets import load_digits
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import train_test_split

    from auditor.collectors import collect

    features, labels = load_digits(return_X_y=True)
    x_in, x_out, y_in, y_out = train_test_split(features / 16.0, labels, test_size=0.5, random_state=seed)
    results = []
    for name, model in _models(seed):
        announce(f"Training {name} on {len(y_in)} of {len(labels)} digits ...")
        with warnings.catch_warnings():
            # The network is trained for a fixed number of passes on purpose, past any sign of convergence.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(x_in, y_in)
        announce(f"Auditing {name} ...")
        losses = collect(model, members=(x_in, y_in), nonmembers=(x_out, y_out))
        accuracy = f"accuracy {model.score(x_in, y_in):.3f} on members, {model.score(x_out, y_out):.3f} on non-members"
        source = f"scikit-learn digits, random halves; {accuracy}"
        results.append(
            audit(losses, split=RandomSplit(), seed=seed, model=name, source=source, command="auditor demo")
        )
    return results


def _models(seed: int) -> Iterator[tuple[str, Any]]:
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    yield (
        "an over-fitted neural network",
        MLPClassifier((256,), alpha=0.0, max_iter=200, tol=0.0, n_iter_no_change=200, random_state=seed),
    )
    yield "a regularised logistic regression", LogisticRegression(C=0.01, max_iter=1000)


# --- The command `auditor demo`: two classifiers on data that comes with scikit-learn ---


@dataclass(frozen=True)
class _Demo(Options):
    """Where the page goes.

    Attributes:
        html: Write the report as one offline HTML page.
        seed: Of the split, the training and the audits.
    """

    html: Path = Path("auditor-demo.html")
    seed: int = 0


def demo(asked: _Demo, common: Common) -> None:
    """Audit two classifiers on data that comes with scikit-learn, and write one page comparing them.

    Examples:
        See a whole audit, of two models on data that is here already:
          auditor demo

        Put the page elsewhere:
          auditor demo --html "my first audit.html"
    """
    from auditor.report import html
    from auditor.report.terminal import audit_text

    check_writable([asked.html], inputs=settings.used_file())
    results = run_demo(seed=asked.seed, announce=console.announcer(quiet=common.quiet))
    write_all({asked.html: html.render(results, title="Privacy audit: two classifiers on the digits data")})
    if common.quiet:
        return
    for result in results:
        console.say(audit_text(result, width=console.width(least=30), color=console.colour()) + "\n")
    console.say(f"Report: {asked.html.resolve()}\n")


# --- The command `auditor schema`: what a result looks like, for other programs ---


@dataclass(frozen=True)
class _Schema(Options):
    """What a result is of.

    Attributes:
        kind: result, of one audit; instances, of `auditor instances`; or runs, of `auditor runs`.
    """

    kind: Literal["result", "instances", "runs"] = argument("KIND", default="result")


def schema(asked: _Schema) -> None:
    """Print the JSON Schema (2020-12) that the results of `auditor audit --json` validate against.

    Examples:
        Print the JSON schema of results:
          auditor schema

        Keep it beside them:
          auditor schema > result.schema.json
    """
    from auditor.results.reading import instances_schema, result_schema, runs_schema

    made = {"result": result_schema, "instances": instances_schema, "runs": runs_schema}
    console.say(json.dumps(made[asked.kind](), indent=2) + "\n")


_HEAD = """\
# Settings of auditor. It reads auditor.toml, or the table [tool.auditor] of pyproject.toml, of the folder where it runs
# or the nearest one above it that has either, up to the root of the repository (which has .git), the home folder or the
# root of the file system. --config FILE names another file, and --no-config reads none.
#
# Each command has a table: [audit], [collect], [claim], ... Its keys are the long options of the command without
# dashes in front. The command line wins over this file; of an option that can be repeated it replaces the whole list.
# Paths are meant from the folder of this file. An unknown table, key or type stops the command with exit code 2.
# Secrets do not belong here: options name the environment variables that hold them.
#
# Take away the # of what you want to set. 'auditor COMMAND --help' lists the options of each command.

[audit]
# For example, a pipeline that stops when the claim is refuted or the certified epsilon is too large:
#
"""
# What most pipelines need; a test reads it as a file and runs it.
EXAMPLE = """\
split = "random"
claim-epsilon = 3.0
claim-delta = 1e-5
fail-if = ["epsilon_bound.clopper_pearson > 3", "verdict == refuted"]
html = "privacy-report.html"
"""


@dataclass(frozen=True)
class _Init(Options):
    """Where the file goes.

    Attributes:
        path: Where the file goes.
        force: Replace a file that is there.
    """

    path: Path = Path(settings.OWN)
    force: bool = False


def init(asked: _Init, shown: Quietly) -> None:
    """Write a file of settings that sets nothing yet, with an explanation and an example.

    Examples:
        Write auditor.toml, with an explanation and an example:
          auditor init

        Write it elsewhere:
          auditor init --path audits/auditor.toml
    """
    path = asked.path
    if path.name == "pyproject.toml":
        raise InputError(
            "--path must not be pyproject.toml, which holds more than these settings; write auditor.toml and move what"
            " you set to a table [tool.auditor.audit]."
        )
    if os.path.lexists(path) and not asked.force:
        raise OutputError(
            f"output path {str(path)!r} is there already; name another, or replace it with --force."
        )
    write_all({path: _HEAD + "".join(f"# {line}\n" for line in EXAMPLE.splitlines())})
    if not shown.quiet:
        console.say(f"Wrote {path}: it sets nothing until you take away a #.\n")
