"""The command `auditor init`: a file of settings to begin with, every option of an audit explained in it."""

import json
import os
import textwrap
import warnings
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from auditor.api import AuditResult, audit as audit_losses
from auditor.cli import console
from auditor.cli.audit import audit
from auditor.cli.options import Common, Debug, Quiet
from auditor.cli.settings_file import Option, options_of, search, used_file
from auditor.collectors.streaming.collecting import collect
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
            audit_losses(
                losses, split=RandomSplit(), seed=seed, model=name, source=source, command="auditor demo"
            )
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


def demo(
    html: Annotated[
        Path, typer.Option("--html", metavar="PATH", help="Write the report as one offline HTML page.")
    ] = Path("auditor-demo.html"),
    seed: Annotated[int, typer.Option(help="Of the split, the training and the audits.")] = 0,
    *,
    common: Common,
) -> None:
    """Audit two classifiers on data that comes with scikit-learn, and write one page comparing them."""
    from auditor.report import html as page
    from auditor.report.terminal import audit_text

    check_writable([html], inputs=used_file())
    results = run_demo(seed=seed, announce=console.announcer(quiet=common.quiet))
    write_all({html: page.render(results, title="Privacy audit: two classifiers on the digits data")})
    if common.quiet:
        return
    for result in results:
        console.say(audit_text(result, width=console.width(least=30), color=console.colour()) + "\n")
    console.say(f"Report: {html.resolve()}\n")


# --- The command `auditor schema`: what a result looks like, for other programs ---


class _ResultKind(StrEnum):
    """What a result is of."""

    RESULT = "result"
    INSTANCES = "instances"
    RUNS = "runs"


def schema(
    kind: Annotated[
        _ResultKind,
        typer.Argument(help="Of the result of one audit, of `auditor instances`, or of `auditor runs`."),
    ] = _ResultKind.RESULT,
    debug: Debug = False,  # noqa: ARG001 - read by run()
) -> None:
    """Print the JSON Schema (2020-12) that the results of `auditor audit --json` validate against."""
    from auditor.results.reading import instances_schema, result_schema, runs_schema

    made = {
        _ResultKind.RESULT: result_schema,
        _ResultKind.INSTANCES: instances_schema,
        _ResultKind.RUNS: runs_schema,
    }
    console.say(json.dumps(made[kind](), indent=2) + "\n")


_WIDTH = 100
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
# Take away the # of what you want to set.

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
_BODY = """
# All options of `auditor audit`, each with its default, or with a word in capitals where it has none. Other commands
# have tables of their own: 'auditor COMMAND --help' lists their options.
"""
_PLACES = {int: "NUMBER", float: "NUMBER", str: '"TEXT"', Path: '"PATH"'}


def init(
    path: Annotated[Path, typer.Option("--path", metavar="PATH", help="Where the file goes.")] = Path(
        "auditor.toml"
    ),
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001 - read by run()
) -> None:
    """Write a file of settings that sets nothing yet, with every option of an audit explained."""
    if path.name == "pyproject.toml":
        raise InputError(
            "--path must not be pyproject.toml, which holds more than these settings; write auditor.toml and move what"
            " you set to a table [tool.auditor.audit]."
        )
    if os.path.lexists(path) and not force:
        raise OutputError(
            f"output path {str(path)!r} is there already; name another, or replace it with --force."
        )
    hidden = _hidden_by(path)
    write_all({path: text()})
    if not quiet:
        console.say(f"Wrote {path}: it sets nothing until you take away a #.{hidden}\n")


def _hidden_by(path: Path) -> str:
    """What a file in this directory puts out of force, in a sentence: only the nearest one is read."""
    if path != Path("auditor.toml"):
        return ""
    try:
        file = search(commands=(audit,), above=True).file
    except InputError:  # which an audit will tell, if it comes so far
        return ""
    return (
        "" if file is None else f" In this folder it takes the place of {str(file.path)!r}, gates included."
    )


def text() -> str:
    r"""Return the file: an explanation, a short example, and every option of an audit, all of it commented out.

    >>> print(*text().splitlines()[-2:], sep="\n")
    # Print nothing but errors (and JSON, if asked for).
    # quiet = false
    """
    example = "".join(f"# {line}\n" if line else "#\n" for line in EXAMPLE.splitlines())
    entries = [_entry(option) for option in options_of(audit).values() if not option.refusal]
    return _HEAD + example + _BODY + "".join(f"\n{entry}" for entry in entries)


def _entry(option: Option) -> str:
    words = option.help if option.help.endswith((".", "?", ")")) else f"{option.help}."
    if option.choices:
        words += f" One of: {', '.join(option.choices)}."
    lines = textwrap.wrap(words, _WIDTH, initial_indent="# ", subsequent_indent="# ")
    return "\n".join([*lines, f"# {option.key} = {_value(option)}"]) + "\n"


def _value(option: Option) -> str:
    """The default as TOML, or what stands for a value where there is none: in capitals, to be replaced."""
    if option.default is not None:
        return _toml(option.default)
    one = f'"{option.choices[0]}"' if option.choices else _PLACES[Path if option.is_path else option.kind]
    return f"[{one}]" if option.many else one


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, int | float) else f'"{value}"'
