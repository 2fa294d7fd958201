"""Where the outputs of an audit go: checked before any work, written together or not at all, and the exit explained."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from auditor.commands import arguments, console
from auditor.errors import InputError
from auditor.gates import ExitCode, GateOutcome, exit_code
from auditor.result import AuditResult
from auditor.values import Verdict

__all__ = ["Outputs", "explain"]

_LEAST = 30  # columns of a terminal that a result can be read on


@dataclass(frozen=True)
class Outputs:
    """Where each output was asked for; JSON also at ``-``, standard output.

    Attributes:
        html: The report.
        json: The result.
        markdown: The summary for a pull request.
        junit: The test results for build servers.
        sarif: The findings for code hosts.
        more: Other files with their contents, written with the rest.
    """

    html: Path | None = None
    json: str | None = None
    markdown: Path | None = None
    junit: Path | None = None
    sarif: Path | None = None
    more: Mapping[Path, str | bytes] = field(default_factory=dict)

    def check(self, *, others: Sequence[Path | None] = (), inputs: Sequence[Path | None] = ()) -> None:
        """Refuse what cannot be written, before any work is done.

        Args:
            others: Further files that will be written.
            inputs: Files that are read, which no output may replace.

        Raises:
            InputError: ``-`` for an output that goes to a file.
            OutputError: A path cannot be written, is an input, or is named twice.
        """
        named = {"--markdown": self.markdown, "--junit": self.junit, "--sarif": self.sarif}
        for option, path in named.items():
            if str(path) == "-":
                raise InputError(
                    f"{option} - is not offered: it goes to a file; name one, or use --json - for the data."
                )
        arguments.check_outputs(self.html, self.json, others=(*named.values(), *others), inputs=tuple(inputs))

    def write(self, result: AuditResult, gates: Sequence[GateOutcome], *, quiet: bool) -> ExitCode:
        """Make every text first, so that the files appear together or not at all; print, explain, return the exit code.

        Args:
            result: What the audit found.
            gates: What became of the gates.
            quiet: Whether only JSON that was asked for, and the reason for an exit code other than 0, are printed.
        """
        from auditor.report.files import write_all

        makers = (
            (self.html, result.to_html),
            (self.markdown, result.to_markdown),
            (self.junit, result.to_junit),
            (self.sarif, result.to_sarif),
        )
        texts = dict(self.more) | {path: make(gates=gates) for path, make in makers if path is not None}
        data = "" if self.json is None else result.to_json()
        if self.json not in (None, "-"):
            texts[Path(str(self.json))] = data
        write_all(texts)
        if self.json == "-":
            console.hand_out(data)
        elif not quiet:
            _print(result, gates)
        explain(_reasons(result, gates))
        return exit_code(result, gates)


def _print(result: AuditResult, gates: Sequence[GateOutcome]) -> None:
    from auditor.report.table import text

    passed = "".join(f"✓ {item.sentence}\n" for item in gates if item.passed)
    shown = text(result, width=console.width(least=_LEAST), color=console.colour(), gates=gates)
    console.say(shown + passed + "\n")


def _reasons(result: AuditResult, gates: Sequence[GateOutcome]) -> list[str]:
    """Why the exit code is not 0: the refuted claim, then the gates that failed, then those that cannot be evaluated."""
    from auditor.report.known import known
    from auditor.report.wording import verdict_sentence

    refuted = [verdict_sentence(known(result))] if result.verdict is Verdict.REFUTED else []
    stopped = [item for item in gates if not item.passed]
    return [*refuted, *(item.sentence for item in sorted(stopped, key=lambda item: item.code))]


def explain(reasons: Sequence[str]) -> None:
    """Tell on standard error why the exit code is not 0, one line each; with --quiet too, since nothing else would."""
    from auditor.report.formatting import clean

    if sys.stderr is None:
        return
    for reason in reasons:
        try:
            print(re.sub(r"\s+", " ", clean(reason)).strip(), file=sys.stderr)  # noqa: T201 - this is the terminal
        except OSError:
            return  # nobody can be told; the exit code remains
