"""Groups of options that several commands have, each described once."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from auditor.cli import console
from auditor.cli.parsing import Of, Options, option
from auditor.cli.settings import used_file
from auditor.core import options as choices, validate
from auditor.core.errors import ExitCode, InputError
from auditor.core.files import MEMORY, check_writable, write_all
from auditor.core.values import Losses, Verdict
from auditor.verdicts.gates import Gate, GateOutcome, exit_code, judged, parse, standing

_RARE: dict[str, Any] = {"rare": True}


def is_used(value: Any) -> bool:
    """Whether an option without a default was used; 0 is a value."""
    return value is not None and value is not False and value not in ((), [])


def used(group: Options, *names: str) -> list[str]:
    """Return which of these options of a group were used, as one types them."""
    rare = {item.name for item in dataclasses.fields(group) if item.metadata.get("rare")}  # type: ignore[arg-type]  # a dataclass
    return [spelled(name, rare=name in rare) for name in names if is_used(getattr(group, name))]


def refuse(group: Options, *names: str, goes: str) -> None:
    """Refuse these options of a group, which mean nothing here; ``goes`` says with what they go, and why."""
    for name in used(group, *names):
        raise InputError(f"{name} goes {goes}.")


def refuse_values(values: Mapping[str, Any], group: Of, *names: str, goes: str) -> None:
    """Refuse these options of a dataclass of the package, where they were given, which mean nothing here."""
    for name in names:
        if is_used(values.get(name)):
            here = dict(group.renamed).get(name, name)
            raise InputError(f"{spelled(here, rare=name not in group.common)} goes {goes}.")


def refuse_ending(option: str, *paths: Path | None, endings: Sequence[str] = (".csv", ".parquet")) -> None:
    """Refuse files, where they were given, of other kinds than these."""
    for path in paths:
        if path is not None and path.suffix.lower() not in endings:
            raise InputError(
                f"{option} must end in {' or '.join(endings)}, got {str(path)!r}; name the file so."
            )


def spelled(name: str, *, rare: bool = False) -> str:
    """Return an option as one types it.

    >>> spelled("claim_epsilon"), spelled("claim_mu", rare=True)
    ('--claim-epsilon', '--set claim-mu')
    """
    return f"{'--set ' if rare else '--'}{name.replace('_', '-')}"


# --- Of every command ---


@dataclass(frozen=True)
class Common(Options, title="General"):
    """What is printed beside the result, and where settings are; ``--debug`` is read before the command runs.

    Attributes:
        quiet: Print nothing but errors (and JSON, where it is wanted).
        config: Take settings from this file; default: auditor.toml, or [tool.auditor] in pyproject.toml, of this folder or
            the nearest one above it that has either, up to the root of the repository.
        no_config: Take no settings from any file.
        debug: Show the traceback of an error.
    """

    quiet: bool = option(default=False, short="q")
    config: Path | None = None
    no_config: bool = False
    debug: bool = False


# --- Of several commands ---


@dataclass(frozen=True)
class Columns(Options):
    """Who a record is.

    Attributes:
        id_column: Column of record ids, if there is one.
        group_column: Column of groups to report by (class, region), if any.
        person_column: Column of data subjects, if there is one.
    """

    id_column: str = option(default="id", **_RARE)
    group_column: str = option(default="group", **_RARE)
    person_column: str = option(default="person", **_RARE)


@dataclass(frozen=True, kw_only=True)
class InMemory(Options):
    """How large a table may be.

    Attributes:
        memory: Bytes that a table may take once decoded; a larger one is refused before it is read.
    """

    memory: float = option(default=MEMORY, **_RARE)


@dataclass(frozen=True, kw_only=True)
class LossColumns(InMemory):
    """Where the losses are in a table of both groups.

    Attributes:
        loss_column: Column of losses.
        member_column: Column of membership, 0 or 1.
        higher_is_member: The column is a score: larger means more like a member.
    """

    loss_column: str = "loss"
    member_column: str = "member"
    higher_is_member: bool = False

    def columns(self) -> dict[str, Any]:
        """Return what a reader of losses is told of the columns."""
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
            refuse(self, *present, goes="with a table of losses: a summary is counts of its own")
            return Summary.read(data).losses
        return read_losses(table, **self.columns())


def names(name: str, text: str) -> list[str]:
    """Return the names between the commas, none of them empty."""
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise InputError(
            f"{name} must be names with one comma between each two, got {text!r}, which has an empty name; take it out."
        )
    return parts


# --- What is claimed ---


def _rate(typed: object) -> float | Fraction:
    """A rate as a number, or as one number over another: batch size over records."""
    text = str(typed)
    try:
        rate = float(Fraction(text) if "/" in text else text)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise InputError(f"must be a number, or one over another such as 256/60000, got {text!r}.") from None
    # A fraction keeps every digit: of 1e999999999 that would be a billion.
    return Fraction(text) if "/" in text else rate


@dataclass(frozen=True)
class Training(Options):
    """A DP-SGD description.

    Attributes:
        noise_multiplier: DP-SGD: noise standard deviation over the clipping norm.
        sampling_rate: DP-SGD: chance that a record is in a step, also as batch size over records, such as 256/60000.
        steps: DP-SGD: number of steps.
        sampler: How batches are drawn: by coins (default), each anew of a fixed size, or cut from shuffled records but
            accounted as if by coins.
        epochs: DP-SGD: passes over the records, in place of --steps; each has records over batch size steps, rounded up.
        schedule: DP-SGD step by step: a table with noise_multiplier, sampling_rate and, if wanted, steps.
        records_per_person: Convert a claim for records, by group privacy, to one for people with up to so many of them.
    """

    noise_multiplier: float | None = None
    sampling_rate: float | None = option(convert=_rate)
    steps: int | None = None
    sampler: Literal["poisson", "fixed-size", "shuffled"] = option(default="poisson", **_RARE)

    epochs: float | None = option(**_RARE)
    schedule: Path | None = option(**_RARE)
    records_per_person: int | None = option(**_RARE)

    def sampling(self) -> choices.Sampling:
        """Return how batches are drawn."""
        return choices.SAMPLERS[self.sampler]()

    def unit(self) -> choices.PrivacyUnit:
        """Return for whom the claim is made: for people where the number of their records is given."""
        return choices.PrivacyUnit("record" if self.records_per_person is None else "person")

    def described(self) -> choices.DPSGD:
        """Return a DP-SGD description, for those for whom the claim is made."""
        people: Any = {"unit": self.unit(), "records_per_person": self.records_per_person}
        return dataclasses.replace(self._steps(), **people)

    def _steps(self) -> choices.DPSGD:
        """Three numbers for all steps, or a table of steps."""
        parameters = ("noise_multiplier", "sampling_rate", "steps")
        there = used(self, *parameters, "epochs")
        if self.schedule is not None:
            if there:
                raise InputError(
                    f"--set schedule describes every step, so it cannot stand beside {', '.join(there)}; give one of the two."
                )
            from auditor.collectors import read_schedule

            return read_schedule(self.schedule, sampling=self.sampling())
        wanted = list(map(spelled, parameters))
        # Epochs stand in for steps.
        missing = [name for name in wanted if name not in (*there, "--steps" if self.epochs else "")]
        if missing:
            raise InputError(
                f"a DP-SGD description needs {', '.join(wanted)} (or --set epochs), or --set schedule; missing: {', '.join(missing)}."
            )
        return choices.DPSGD(
            self.noise_multiplier, self.sampling_rate, self._counted(), sampling=self.sampling()
        )

    def _counted(self) -> int | None:
        """The number of steps, as given or by epochs; the batches of a pass, and steps, are rounded up, which promises less."""
        if self.epochs is None:
            return self.steps
        if self.steps is not None:
            raise InputError("--set epochs stands in place of --steps; give one of the two.")
        rate = validate.fraction("sampling_rate", self.sampling_rate, one=True)
        share: Any = self.sampling_rate
        batches = math.ceil(1 / share) if isinstance(share, Fraction) else 1 / rate
        return math.ceil(validate.positive("epochs", self.epochs) * batches - 1e-9)


@dataclass(frozen=True)
class ClaimOptions(Training, title="What is claimed: an epsilon, a curve, or DP-SGD"):
    """One claim or none: stated in epsilon and delta, as a curve of them, or as a DP-SGD description.

    Attributes:
        claim_epsilon: Claimed epsilon.
        claim_delta: Delta of the claim.
        claim_mu: Claimed mu of Gaussian differential privacy.
        claim_rho: Claimed rho of zero-concentrated differential privacy.
        claim_points: Claimed points of one curve, each epsilon:delta, such as 0.5:1e-3,2:1e-6.
        claim_adjacency: Of the claim; default: add-remove.
        claim_unit: What two neighbours differ in: a record (default), or all records of a person.
    """

    claim_epsilon: float | None = None
    claim_delta: float | None = None
    claim_mu: float | None = option(**_RARE)
    claim_rho: float | None = option(**_RARE)
    claim_points: str | None = option(**_RARE)
    claim_adjacency: choices.Adjacency | None = None
    claim_unit: choices.PrivacyUnit | None = option(**_RARE)

    def unit(self) -> choices.PrivacyUnit:
        """Return for whom the claim is made, as said or by what else was given."""
        return self.claim_unit or super().unit()

    def claim(self) -> choices.TrainingClaim | None:
        """Return the claim, if there is one."""
        point = used(self, "claim_epsilon", "claim_delta")
        curve = used(self, "claim_mu", "claim_rho", "claim_points")
        stated = [*point, *curve, *used(self, "claim_adjacency")]
        steps = ("noise_multiplier", "sampling_rate", "steps", "epochs", "schedule")
        trained = used(self, *steps)
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
    """Return what stands on both sides of the colon of each point; the claim reads the numbers."""
    pairs = [part.split(":") for part in text.split(",")]
    if any(len(pair) != 2 for pair in pairs):  # noqa: PLR2004
        raise InputError(
            f"--set claim-points must be epsilon:delta with commas between, such as 0.5:1e-3,2:1e-6, got {text!r}."
        )
    return pairs


# --- Gates ---


@dataclass(frozen=True)
class Gates(Options, title="When to stop a pipeline"):
    """Conditions on the result that set the exit code.

    Attributes:
        fail_if: Exit 1 when true, such as 'epsilon_star.gaussian > 1', 'auc.lower > 0.6', 'verdict == refuted' or
            'checks.shift == fail'; exit 3 when it cannot be evaluated; repeatable.
    """

    fail_if: tuple[str, ...] = ()

    def parsed(self) -> list[Gate]:
        """Return the gates, each read before any work is done."""
        return [parse(text) for text in self.fail_if]

    def judged(self, result: Any, gates: Sequence[Gate]) -> tuple[GateOutcome, ...]:
        """Return what becomes of each gate, and what stops a pipeline without one."""
        allowed = getattr(self, "allow_unjudged", False)
        return (*judged(result, gates), *standing(result, allow_unjudged=allowed))


@dataclass(frozen=True)
class ClaimGates(Gates):
    """Those of a command that judges a claim.

    Attributes:
        allow_unjudged: Exit 0, and not 3, where the claim could not be judged (not evaluable or inconclusive).
    """

    allow_unjudged: bool = option(default=False, **_RARE)


# --- Where results go: checked before any work, written together or not at all, and the exit code explained ---


_LEAST = 30  # columns of a terminal that a result can be read on

STANDARD = Path("-")  # input or output


@dataclass(frozen=True)
class JsonFile(Options, title="What is written"):
    """The result as JSON: in a file, or at ``-``, standard output.

    Attributes:
        json: Write the result as JSON; - for standard output.
    """

    json: Path | None = None

    def check(self, *, inputs: Sequence[Path | None] = ()) -> None:
        """Refuse what cannot be written, or would replace an input or the settings, before any work is done.

        Args:
            inputs: Files that are read, which no output may replace.

        Raises:
            InputError: ``-`` for an output that goes to a file.
            OutputError: A path cannot be written, is an input, or is named twice.
        """
        for name, path in vars(self).items():
            if path == STANDARD and name != "json":
                raise InputError(
                    f"{spelled(name)} - is not offered: it goes to a file; name one, or use --json - for the data."
                )
        paths = [path for path in vars(self).values() if isinstance(path, Path) and path != STANDARD]
        check_writable(paths, inputs=[*(path for path in inputs if path is not None), *used_file()])

    def write(
        self, data: str, *, shown: str, quiet: bool, texts: Mapping[Path, str | bytes] | None = None
    ) -> None:
        """Write all files together; print what a person reads, unless the JSON goes to standard output.

        Args:
            data: The JSON.
            shown: What a person reads.
            quiet: Whether that is left out.
            texts: Other files with their contents.
        """
        files = dict(texts or {})
        write_all(files if self.json in (None, STANDARD) else {**files, self.json: data})
        if self.json == STANDARD:
            console.hand_out(data)
        elif not quiet:
            written = [str(path) for path in (*files, self.json) if path is not None]
            console.say(shown + (f"Wrote {', '.join(written)}.\n" if written else ""))


@dataclass(frozen=True)
class PageFiles(JsonFile):
    """The result as a page too.

    Attributes:
        html: Write the report as one offline HTML page.
    """

    html: Path | None = None


@dataclass(frozen=True)
class AuditFiles(PageFiles):
    """Every form of the result of an audit.

    Attributes:
        markdown: Write a summary for a pull request (Markdown).
        junit: Write claim, gates and checks as test results (JUnit XML).
        sarif: Write what needs a look as SARIF 2.1.0, for code hosts.
    """

    markdown: Path | None = None
    junit: Path | None = None
    sarif: Path | None = None

    def write_all(
        self,
        result: Any,
        gates: Sequence[GateOutcome],
        *,
        quiet: bool,
        more: Mapping[Path, str | bytes] | None = None,
        text: str | None = None,
    ) -> ExitCode:
        """Make every text first, so that the files appear together or not at all; print, explain, return the exit code.

        Args:
            result: What the audit found.
            gates: What became of the gates.
            quiet: Whether only JSON that was asked for, and the reason for an exit code other than 0, are printed.
            more: Other files with their contents, written with the rest.
            text: What a person reads first; default: the result as text.
        """
        makers = (
            (self.html, result.to_html),
            (self.markdown, result.to_markdown),
            (self.junit, result.to_junit),
            (self.sarif, result.to_sarif),
        )
        texts = dict(more or {}) | {path: make(gates=gates) for path, make in makers if path is not None}
        shown = "" if quiet or self.json == STANDARD else _shown(result, gates, text)
        self.write(result.to_json(), shown=shown, quiet=quiet, texts=texts)
        console.explain(_reasons(result, gates))
        return exit_code(result, gates)


@dataclass(frozen=True)
class ModelFiles(AuditFiles):
    """Those of the audit of one model, which has a card too.

    Attributes:
        model_card: Write metadata and a section for a model card on the Hugging Face Hub (Markdown).
    """

    model_card: Path | None = option(**_RARE)

    def cards(self, result: Any) -> dict[Path, str | bytes]:
        """Return the card that was asked for, by where it goes."""
        if self.model_card is None:
            return {}
        if not hasattr(result, "to_model_card"):
            raise InputError("--set model-card is for the audit of one model; leave it out here.")
        return {self.model_card: result.to_model_card()}


def _shown(result: Any, gates: Sequence[GateOutcome], text: str | None) -> str:
    from auditor.report.terminal import audit_text

    passed = "".join(f"✓ {item.sentence}\n" for item in gates if item.passed)
    shown = text or audit_text(result, width=console.width(least=_LEAST), color=console.colour(), gates=gates)
    return f"{shown}{passed}\n"


def _reasons(result: Any, gates: Sequence[GateOutcome]) -> list[str]:
    """Why the exit code is not 0: the refuted claim, then the gates that failed, then those that cannot be evaluated."""
    from auditor.report.findings import verdict_sentence

    stopped = sorted((item for item in gates if not item.passed), key=lambda item: item.code)
    outcome = [item.sentence for item in stopped]
    refuted = result.verdict is Verdict.REFUTED
    return [f"The claim is refuted. {verdict_sentence(result)}", *outcome] if refuted else outcome
