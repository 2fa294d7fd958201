"""Where results go: checked before any work, written together or not at all, and the exit code explained."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from auditor.api import AuditResult
from auditor.cli import console
from auditor.cli.options import Options, option, spelled
from auditor.cli.settings_file import used_file
from auditor.core.errors import InputError
from auditor.core.files import check_writable, write_all
from auditor.core.numbers import clean
from auditor.core.values import Verdict
from auditor.verdicts.gates import ExitCode, GateOutcome, exit_code

_LEAST = 30  # columns of a terminal that a result can be read on

Html = Annotated[
    Path | None, typer.Option("--html", metavar="PATH", help="Write the report as one offline HTML page.")
]
Json = Annotated[
    str | None,
    typer.Option("--json", metavar="PATH", help="Write the result as JSON; - for standard output."),
]


@dataclass(frozen=True)
class JsonFile(Options):
    """The result as JSON: in a file, or at ``-``, standard output."""

    json: Json = None

    def check(self, *, inputs: Sequence[Path | None] = ()) -> None:
        """Refuse a file that cannot be written, or that is an input, before any work is done."""
        check_outputs(None, self.json, inputs=inputs)

    def write(self, data: str, *, shown: str, quiet: bool) -> None:
        """Write the JSON where it was asked for, and print what a person reads."""
        deliver({}, self.json, data, shown=shown, quiet=quiet)


@dataclass(frozen=True)
class ResultFile(JsonFile, title="What is written"):
    """The same, of a command whose help has sections."""


@dataclass(frozen=True)
class AuditFiles(Options, title="What is written"):
    """Every form of the result of an audit."""

    html: Html = None
    json: Json = None
    markdown: Path | None = option("Write a summary for a pull request (Markdown).", metavar="PATH")
    junit: Path | None = option("Write claim, gates and checks as test results (JUnit XML).", metavar="PATH")
    sarif: Path | None = option("Write what needs a look as SARIF 2.1.0, for code hosts.", metavar="PATH")

    def check(self, *, others: Sequence[Path | None] = (), inputs: Sequence[Path | None] = ()) -> None:
        """Refuse what cannot be written, before any work is done.

        Args:
            others: Further files that will be written.
            inputs: Files that are read, which no output may replace.

        Raises:
            InputError: ``-`` for an output that goes to a file.
            OutputError: A path cannot be written, is an input, or is named twice.
        """
        named = {name: getattr(self, name) for name in ("markdown", "junit", "sarif")}
        for name, path in named.items():
            if str(path) == "-":
                raise InputError(
                    f"{spelled(name)} - is not offered: it goes to a file; name one, or use --json - for the data."
                )
        check_outputs(self.html, self.json, others=(*named.values(), *others), inputs=inputs)

    def write(
        self,
        result: AuditResult,
        gates: Sequence[GateOutcome],
        *,
        quiet: bool,
        more: Mapping[Path, str | bytes] | None = None,
    ) -> ExitCode:
        """Make every text first, so that the files appear together or not at all; print, explain, return the exit code.

        Args:
            result: What the audit found.
            gates: What became of the gates.
            quiet: Whether only JSON that was asked for, and the reason for an exit code other than 0, are printed.
            more: Other files with their contents, written with the rest.
        """
        makers = (
            (self.html, result.to_html),
            (self.markdown, result.to_markdown),
            (self.junit, result.to_junit),
            (self.sarif, result.to_sarif),
        )
        texts = dict(more or {}) | {path: make(gates=gates) for path, make in makers if path is not None}
        data = "" if self.json is None else result.to_json()
        shown = "" if quiet or self.json == "-" else _shown(result, gates)
        deliver(texts, self.json, data, shown=shown, quiet=quiet)
        explain(_reasons(result, gates))
        return exit_code(result, gates)


def check_outputs(
    html: Path | None,
    json: str | None,
    *,
    others: Sequence[Path | None] = (),
    inputs: Sequence[Path | None] = (),
) -> None:
    """Refuse outputs that cannot be written, or would replace an input or the settings, before any work is done."""
    if str(html) == "-":
        raise InputError(
            "--html - is not offered: the page goes to a file; name one, or use --json - for the data."
        )
    paths = [path for path in (html, *others) if path is not None]
    paths += [] if json in (None, "-") else [Path(str(json))]
    check_writable(paths, inputs=[*(path for path in inputs if path is not None), *used_file()])


def deliver(
    texts: Mapping[Path, str | bytes], json: str | None, data: str, *, shown: str, quiet: bool
) -> None:
    """Write all files together, the JSON too; print what a person reads, unless the JSON goes to standard output."""
    if json not in (None, "-"):
        texts = {**texts, Path(str(json)): data}
    write_all(texts)
    if json == "-":
        console.hand_out(data)
    elif not quiet:
        console.say(shown)


def _shown(result: AuditResult, gates: Sequence[GateOutcome]) -> str:
    from auditor.report.terminal import audit_text

    passed = "".join(f"✓ {item.sentence}\n" for item in gates if item.passed)
    return f"{audit_text(result, width=console.width(least=_LEAST), color=console.colour(), gates=gates)}{passed}\n"


def _reasons(result: AuditResult, gates: Sequence[GateOutcome]) -> list[str]:
    """Why the exit code is not 0: the refuted claim, then the gates that failed, then those that cannot be evaluated."""
    from auditor.report.findings import verdict_sentence

    refuted = [verdict_sentence(result)] if result.verdict is Verdict.REFUTED else []
    stopped = [item for item in gates if not item.passed]
    return [*refuted, *(item.sentence for item in sorted(stopped, key=lambda item: item.code))]


def explain(reasons: Sequence[str]) -> None:
    """Tell on standard error why the exit code is not 0, one line each; with --quiet too, since nothing else would."""
    if sys.stderr is None:
        return
    for reason in reasons:
        try:
            print(re.sub(r"\s+", " ", clean(reason)).strip(), file=sys.stderr)  # noqa: T201 - this is the terminal
        except OSError:
            return  # nobody can be told; the exit code remains
