"""Groups of options that several commands share, each described once."""

import dataclasses
import math
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from auditor.cli import console
from auditor.cli.parsing import Options, Typed, option
from auditor.cli.settings import used_file
from auditor.core import ExitCode, InputError, Losses, Verdict, options as choices, validate
from auditor.core.files import MEMORY, check_writable, write_all
from auditor.verdicts.limits import exit_code, limits, outcomes, with_limits
from auditor.verdicts.severities import cut_points


def is_used(value: Any) -> bool:
    """Whether an option without a default was used; 0 is a value."""
    return value is not None and value is not False and value not in ((), [])


def used(group: Options | Typed, *names: str) -> list[str]:
    """Return the used ones among these options of a group, as a user types them."""
    if isinstance(group, Typed):
        there, here = [name for name in names if is_used(group.get(name))], dict(group.of.renamed)
        return [spelled(here.get(name, name), rare=name not in group.of.common) for name in there]
    rare = {item.name for item in dataclasses.fields(group) if item.metadata.get("rare")}  # type: ignore[arg-type]  # a dataclass
    return [spelled(name, rare=name in rare) for name in names if is_used(getattr(group, name))]


def refuse(group: Options | Typed, *names: str, goes: str) -> None:
    """Refuse these options of a group, which have no effect here; ``goes`` states where they belong, and why."""
    for name in used(group, *names):
        raise InputError(f"{name} goes {goes}.")


def refuse_ending(option: str, *paths: Path | None, endings: Sequence[str] = (".csv", ".parquet")) -> None:
    """Refuse files with other extensions than these."""
    for path in paths:
        if path is not None and path.suffix.lower() not in endings:
            raise InputError(
                f"{option} must end in {' or '.join(endings)}, got {str(path)!r}; rename the file."
            )


def spelled(name: str, *, rare: bool = False) -> str:
    """Return an option as a user types it.

    >>> spelled("claim_epsilon"), spelled("claim_mu", rare=True)
    ('--claim-epsilon', '--set claim-mu')
    """
    return f"{'--set ' if rare else '--'}{name.replace('_', '-')}"


# --- Options of every command ---


@dataclass(frozen=True)
class Common(Options, title="General"):
    """Verbosity and the configuration file; ``--debug`` is read before the command runs.

    Attributes:
        quiet: Print errors only (and JSON, if requested).
        config: Read settings from this file; default: auditor.toml, or [tool.auditor] in pyproject.toml, in this folder or
            the nearest parent folder with either, up to the root of the repository.
        no_config: Read no settings from a file.
        debug: Show the traceback of an error.
    """

    quiet: bool = option(default=False, short="q")
    config: Path | None = None
    no_config: bool = False
    debug: bool = False


# --- Options of several commands ---


@dataclass(frozen=True)
class Columns(Options):
    """Columns that identify records.

    Attributes:
        id_column: Column of record ids, if present.
        group_column: Column of groups to report by (class, region), if present.
        person_column: Column of data subjects, if present.
    """

    id_column: str = option(default="id", rare=True)
    group_column: str = option(default="group", rare=True)
    person_column: str = option(default="person", rare=True)


def _bytes(text: str) -> float:
    """Parse a number of bytes, or a size with a unit."""
    from pydantic import ByteSize, TypeAdapter

    with suppress(ValueError):
        return float(text)
    try:
        return float(TypeAdapter(ByteSize).validate_python(text))
    except ValueError:
        raise InputError(
            f"must be a number of bytes or a size such as 1GB or 512MiB, got {text!r}."
        ) from None


@dataclass(frozen=True, kw_only=True)
class InMemory(Options):
    """The limit on the size of a table.

    Attributes:
        memory: Maximum size of a decoded table, in bytes or with a unit (512MB, 2GiB); default: 1GB. A larger table is
            refused before it is read.
    """

    memory: float = option(default=MEMORY, convert=_bytes, rare=True)


@dataclass(frozen=True, kw_only=True)
class LossColumns(InMemory):
    """Columns of the losses in a table of both groups.

    Attributes:
        loss_column: Column of losses.
        member_column: Column of membership, 0 or 1.
        higher_is_member: The column is a score; a larger score is more typical of a member.
    """

    loss_column: str = "loss"
    member_column: str = "member"
    higher_is_member: bool = False

    def columns(self) -> dict[str, Any]:
        """Return the columns as arguments of `read_losses`."""
        named = {name: value for name, value in vars(self).items() if name.endswith("_column")}
        return {**named, "higher_is_member": self.higher_is_member, "memory": self.memory}

    def read_table(self, data: Any) -> Losses:
        """Return the losses of a table of both groups, or their counts in a summary."""
        from auditor.collectors import Summary, read_losses
        from auditor.collectors.streaming.summaries import is_summary
        from auditor.collectors.tables.opening import open_table

        table = open_table(data, memory=self.memory)
        if is_summary(table):
            present = [name for name in ("label_column", "higher_is_member") if hasattr(self, name)]
            refuse(self, *present, goes="with a table of losses: a summary contains counts")
            return Summary.read(data).losses
        return read_losses(table, **self.columns())


def names(name: str, text: str) -> list[str]:
    """Return the names between the commas; an empty name is refused."""
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise InputError(
            f"{name} must be names separated by single commas, got {text!r} with an empty name; remove it."
        )
    return parts


# --- The claim ---


def _rate(typed: object) -> float | Fraction:
    """Parse a rate: a number, or a ratio such as batch size over records."""
    text = str(typed)
    try:
        rate = float(Fraction(text) if "/" in text else text)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise InputError(f"must be a number or a ratio such as 256/60000, got {text!r}.") from None
    # A fraction keeps every digit, which for 1e999999999 would be a billion.
    return Fraction(text) if "/" in text else rate


PARAMETERS = ("noise_multiplier", "sampling_rate", "steps")


@dataclass(frozen=True)
class Training(Options):
    """A DP-SGD description.

    Attributes:
        noise_multiplier: DP-SGD: noise standard deviation over the clipping norm. Needs --sampling-rate and --steps.
        sampling_rate: DP-SGD: probability that a record is in a step, also as batch size over records, such as 256/60000.
            Needs --noise-multiplier and --steps.
        steps: DP-SGD: number of steps. Needs --noise-multiplier and --sampling-rate.
        sampler: Sampling of batches: independent inclusion of each record (poisson, default), batches of a fixed size, or
            consecutive batches of shuffled records, accounted as if poisson.
        epochs: DP-SGD: number of passes over the records, instead of --steps; a pass has records over batch size steps, rounded up.
        schedule: DP-SGD in phases: a table with noise_multiplier, sampling_rate and, optionally, steps.
        records_per_person: Convert a claim for records, by group privacy, to a claim for people with up to this number of records.
    """

    noise_multiplier: float | None = None
    sampling_rate: float | None = option(convert=_rate)
    steps: int | None = None
    sampler: Literal["poisson", "fixed-size", "shuffled"] = option(default="poisson", rare=True)

    epochs: float | None = option(rare=True)
    schedule: Path | None = option(rare=True)
    records_per_person: int | None = option(rare=True)

    def sampling(self) -> choices.Sampling:
        """Return the sampling of batches."""
        return choices.SAMPLERS[self.sampler]()

    def unit(self) -> choices.PrivacyUnit:
        """Return the privacy unit of the claim: a person if the number of records per person is set."""
        return choices.PrivacyUnit("record" if self.records_per_person is None else "person")

    def described(self) -> choices.DPSGD:
        """Return the DP-SGD description, for the privacy unit of the claim."""
        people: Any = {"unit": self.unit(), "records_per_person": self.records_per_person}
        return dataclasses.replace(self._steps(), **people)

    def _steps(self) -> choices.DPSGD:
        """Return the DP-SGD description, from three numbers or a table of steps."""
        there = used(self, *PARAMETERS, "epochs")
        if self.schedule is not None:
            if there:
                raise InputError(
                    f"--set schedule describes every step and cannot be combined with {', '.join(there)}; give one of the two."
                )
            from auditor.collectors import read_schedule

            return read_schedule(self.schedule, sampling=self.sampling())
        wanted = list(map(spelled, PARAMETERS))
        # Epochs replace steps.
        missing = [name for name in wanted if name not in (*there, "--steps" if self.epochs else "")]
        if missing:
            raise InputError(
                f"a DP-SGD description needs {', '.join(wanted)} (or --set epochs), or --set schedule; missing: {', '.join(missing)}."
            )
        return choices.DPSGD(
            self.noise_multiplier, self.sampling_rate, self._counted(), sampling=self.sampling()
        )

    def _counted(self) -> int | None:
        """Return the number of steps, or of epochs times batches; both are rounded up, which weakens the promise."""
        if self.epochs is None:
            return self.steps
        if self.steps is not None:
            raise InputError("--set epochs replaces --steps; give one of the two.")
        rate = validate.fraction("sampling_rate", self.sampling_rate, one=True)
        share: Any = self.sampling_rate
        batches = math.ceil(1 / share) if isinstance(share, Fraction) else 1 / rate
        return math.ceil(validate.positive("epochs", self.epochs) * batches - 1e-9)


@dataclass(frozen=True)
class ClaimOptions(Training, title="The claim: an epsilon, a curve, or DP-SGD"):
    """At most one claim: stated as epsilon and delta, as a privacy curve, or as a DP-SGD description.

    Attributes:
        claim_epsilon: Claimed epsilon. Needs --claim-delta.
        claim_delta: Delta of the claim, 0 for pure differential privacy. Needs --claim-epsilon.
        claim_mu: Claimed mu of Gaussian differential privacy.
        claim_rho: Claimed rho of zero-concentrated differential privacy.
        claim_points: Claimed points of one privacy curve, each epsilon:delta, such as 0.5:1e-3,2:1e-6.
        claim_adjacency: Adjacency of the claim; default: add-remove. Needs --claim-epsilon.
        claim_unit: Privacy unit, in which two neighbours differ: a record (default), or all records of a person.
    """

    claim_epsilon: float | None = None
    claim_delta: float | None = None
    claim_mu: float | None = option(rare=True)
    claim_rho: float | None = option(rare=True)
    claim_points: str | None = option(rare=True)
    claim_adjacency: choices.Adjacency | None = option(default=None, rare=True)
    claim_unit: choices.PrivacyUnit | None = option(rare=True)

    def unit(self) -> choices.PrivacyUnit:
        """Return the privacy unit of the claim, as stated or implied by other options."""
        return self.claim_unit or super().unit()

    def claim(self) -> choices.TrainingClaim | None:
        """Return the claim, if there is one."""
        point = used(self, "claim_epsilon", "claim_delta")
        curve = used(self, "claim_mu", "claim_rho", "claim_points")
        stated = [*point, *curve, *used(self, "claim_adjacency")]
        trained = used(self, *PARAMETERS, "epochs", "schedule")
        if stated and trained:
            raise InputError(
                f"one claim at a time: {', '.join(stated)} {'states an epsilon' if point else 'states a claim'} and"
                f" {', '.join(trained)} describes DP-SGD; give one of the two."
            )
        people = self.records_per_person
        if trained:
            return self.described()
        if len(curve) + bool(point) > 1:
            raise InputError(f"one claim at a time: {', '.join([*point, *curve])} state several; give one.")
        if not stated and self.claim_unit is None and people is None:
            return None
        adjacency = self.claim_adjacency or choices.Adjacency.ADD_REMOVE
        if curve:
            points = () if self.claim_points is None else _pairs(self.claim_points)
            return choices.StatedCurve(self.claim_mu, self.claim_rho, points, adjacency, self.unit(), people)
        if self.claim_epsilon is None or self.claim_delta is None:
            missing = [name for name in ("--claim-epsilon", "--claim-delta") if name not in point]
            raise InputError(
                "a stated claim needs --claim-epsilon and --claim-delta (0 for pure differential privacy), or one of"
                f" claim-mu, claim-rho and claim-points (by --set); missing: {', '.join(missing)}."
            )
        return choices.StatedClaim(self.claim_epsilon, self.claim_delta, adjacency, self.unit(), people)


def _pairs(text: str) -> list[list[str]]:
    """Return both sides of the colon of each point; the claim parses the numbers."""
    pairs = [part.split(":") for part in text.split(",")]
    if any(len(pair) != 2 for pair in pairs):  # noqa: PLR2004
        raise InputError(
            f"--set claim-points must be epsilon:delta pairs separated by commas, such as 0.5:1e-3,2:1e-6, got {text!r}."
        )
    return pairs


# --- Gates ---


@dataclass(frozen=True)
class Gates(Options, title="Limits that stop a pipeline"):
    """Conditions on the result that set the decision and the exit code.

    Attributes:
        policy: Conditions that must hold for a release, such as 'advantage.upper < 0.1; no group above 0.2; claim not refuted': exit
            1 if a condition fails, 3 if one cannot be evaluated.
        fail_if: Condition that must not hold: exit 1 if it is true, such as 'epsilon_star.gaussian > 1', 'auc.lower >
            0.6', 'verdict == refuted' or 'checks.shift == fail'; exit 3 if it cannot be evaluated; repeatable.
        severity: Lower limits of the advantage from which a leak is slight, marked and severe; default: 0.05,0.2,0.5.
    """

    policy: str | None = None
    fail_if: tuple[str, ...] = ()
    severity: str | None = option(default=None, rare=True)

    def __post_init__(self) -> None:
        """Refuse conditions that cannot be parsed, before any work."""
        limits({"policy": self.policy, "gates": self.fail_if or None})
        if self.severity is not None:
            cut_points(self.severity)

    def on(self, result: Any) -> Any:
        """Return the result with these limits; missing ones are unchanged."""
        allowed = getattr(self, "allow_unjudged", False)
        return with_limits(result, self.policy, self.fail_if, allow_unjudged=allowed, severity=self.severity)


@dataclass(frozen=True)
class ClaimGates(Gates):
    """Limits of a command that judges a claim.

    Attributes:
        allow_unjudged: Exit 0 instead of 3 if the claim could not be judged (not evaluable or inconclusive).
    """

    allow_unjudged: bool = option(default=False, rare=True)


# --- Output files: checked before any work, written together or not at all, with reasons for the exit code ---


_LEAST = 30  # minimum columns of a terminal

STANDARD = Path("-")  # input or output


@dataclass(frozen=True)
class JsonFile(Options, title="Output"):
    """The result as JSON, in a file or on standard output (``-``).

    Attributes:
        json: Write the result as JSON; - for standard output.
    """

    json: Path | None = None

    def check(self, *, inputs: Sequence[Path | None] = ()) -> None:
        """Refuse outputs that cannot be written, or would replace an input or the settings, before any work.

        Args:
            inputs: Input files, which no output may replace.

        Raises:
            InputError: An output other than JSON is ``-``.
            OutputError: A path cannot be written, is an input, or is named twice.
        """
        for name, path in vars(self).items():
            if path == STANDARD and name != "json":
                raise InputError(
                    f"{spelled(name)} - is not offered: name a file, or use --json - for the data."
                )
        if getattr(self, "open", False) and vars(self)["html"] is None:
            raise InputError("--open needs the page of --html FILE; add it.")
        paths = [path for path in vars(self).values() if isinstance(path, Path) and path != STANDARD]
        check_writable(paths, inputs=[*(path for path in inputs if path is not None), *used_file()])

    def write(
        self, data: str, *, summary: str, quiet: bool, texts: Mapping[Path, str | bytes] | None = None
    ) -> None:
        """Write all files together; print the summary, unless the JSON goes to standard output.

        Args:
            data: The JSON.
            summary: Text for the terminal.
            quiet: Whether to omit the summary.
            texts: Other files with their contents.
        """
        files = dict(texts or {})
        write_all(files if self.json in (None, STANDARD) else {**files, self.json: data})
        if self.json == STANDARD:
            console.hand_out(data)
        elif not quiet:
            written = [str(path) for path in (*files, self.json) if path is not None]
            console.say(summary + (f"Wrote {', '.join(written)}.\n" if written else ""))


@dataclass(frozen=True)
class PageFiles(JsonFile):
    """The result as JSON and as a page.

    Attributes:
        html: Write the report as one offline HTML page.
        open: Open the page in the browser.
    """

    html: Path | None = None
    open: bool = False


@dataclass(frozen=True)
class AuditFiles(PageFiles):
    """The formats of the result of an audit.

    Attributes:
        markdown: Write a summary for a pull request (Markdown).
        junit: Write the claim, gates and checks as test results (JUnit XML).
        sarif: Write the findings that need review as SARIF 2.1.0, for code hosts.
        full: Print the full result instead of at most twelve lines.
    """

    markdown: Path | None = None
    junit: Path | None = None
    sarif: Path | None = None
    full: bool = False

    def write_all(
        self,
        result: Any,
        *,
        quiet: bool,
        more: Mapping[Path, str | bytes] | None = None,
        text: str | None = None,
    ) -> ExitCode:
        """Write all files together or not at all, print the summary and the reasons, and return the exit code.

        Args:
            result: Result of the audit.
            quiet: Whether to print only requested JSON and the reasons for a nonzero exit code.
            more: Other files with their contents, written with the rest.
            text: Text for the terminal; default: the result as text.
        """
        makers = (
            (self.html, result.to_html),
            (self.markdown, result.to_markdown),
            (self.junit, result.to_junit),
            (self.sarif, result.to_sarif),
        )
        texts = dict(more or {}) | {path: make() for path, make in makers if path is not None}
        summary = "" if quiet or self.json == STANDARD else self._summary(result, text)
        self.write(result.to_json(), summary=summary, quiet=quiet, texts=texts)
        console.explain(_reasons(result))
        if self.open and self.html is not None:
            console.open_page(self.html)
        return exit_code(result, outcomes(result))

    def _summary(self, result: Any, text: str | None) -> str:
        from auditor.report.terminal import audit_text, limits_text

        if text:
            return f"{text}\n{limits_text(result)}"
        report = "" if self.html is None else f"Report: {self.html}   "
        again = ["auditor", "report", str(self.json)] if self.json else []
        places = f"{report}Details: {shlex.join([*again, '--full'])}"
        width, color = console.width(least=_LEAST), console.colour()
        return audit_text(result, width=width, color=color, full=self.full, places=places)


@dataclass(frozen=True)
class ModelFiles(AuditFiles):
    """The formats of the result of one model, which include a model card.

    Attributes:
        model_card: Write metadata and a section for a model card on the Hugging Face Hub (Markdown).
    """

    model_card: Path | None = option(rare=True)

    def cards(self, result: Any) -> dict[Path, str | bytes]:
        """Return the requested model card by its path."""
        if self.model_card is None:
            return {}
        if not hasattr(result, "to_model_card"):
            raise InputError("--set model-card is for the audit of one model; leave it out.")
        return {self.model_card: result.to_model_card()}


def _reasons(result: Any) -> list[str]:
    """Return the reasons for a nonzero exit code: the refuted claim, failed limits, then undecided limits."""
    from auditor.report.findings import verdict_sentence

    stopped = sorted((item for item in outcomes(result) if not item.passed), key=lambda item: item.code)
    reasons = [item.sentence for item in stopped]
    refuted = result.verdict is Verdict.REFUTED
    return [f"The claim is refuted. {verdict_sentence(result)}", *reasons] if refuted else reasons
