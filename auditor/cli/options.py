"""Options that several commands have, each declared once; those that belong together are read as one value."""

import dataclasses
import inspect
import math
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import typer

from auditor.api import AnyResult, AuditResult
from auditor.cli import console
from auditor.cli.settings import chosen, used_file
from auditor.core import options as choices, validate
from auditor.core.errors import InputError
from auditor.core.files import MEMORY, check_writable, write_all
from auditor.core.lazy import docstring
from auditor.core.values import Losses, Verdict
from auditor.verdicts.gates import ExitCode, Gate, GateOutcome, exit_code, judged, parse, standing

# --- Groups of options ---


class Options:
    """Options that belong together: a frozen dataclass, whose docstring says what `--help` writes of each of its attributes.

    Every parameter of a command is such a group; `declared` tells the parser what is in it.
    """

    title: ClassVar[str | None] = None

    def __init_subclass__(cls, *, title: str | None = None) -> None:
        """Keep what `--help` writes above the group; without a title its options stand with those of no group."""
        cls.title = title or cls.title


def option(*, default: Any = None, **more: Any) -> Any:
    """Return a field of a group with what else `typer.Option` takes; ``also`` are other spellings."""
    return dataclasses.field(default=default, metadata={"option": more})


def argument(metavar: str, *, default: Any = dataclasses.MISSING) -> Any:
    """Return a field of a group that has no dashes, by the name that texts call it."""
    return dataclasses.field(default=default, metadata={"argument": metavar})


def declared(command: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the options and arguments in the groups of a command, by their names."""
    groups = typing.get_type_hints(command).values()
    return {name: item for group in groups if _is_group(group) for name, item in _of_group(group).items()}


def packed(command: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a command, from the values of everything that `declared` names."""
    return {
        name: group(**{item.name: given[item.name] for item in dataclasses.fields(group)})
        for name, group in typing.get_type_hints(command).items()
        if _is_group(group)
    }


def _is_group(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Options)


def _of_group(group: Any) -> dict[str, inspect.Parameter]:
    found, words = {}, _words(group)
    hints = typing.get_type_hints(group)
    for item in dataclasses.fields(group):
        name = item.name
        more: dict[str, Any] = {"help": words.get(name, ""), "rich_help_panel": group.title}
        if "argument" in item.metadata:
            about = typer.Argument(metavar=item.metadata["argument"], **more)
        else:
            more |= item.metadata.get("option", {})
            # Spelled out, so that a flag has no --no-...
            about = typer.Option(spelled(name), *more.pop("also", ()), **more)
        found[name] = inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if item.default is dataclasses.MISSING else item.default,
            annotation=Annotated[hints[name], about],
        )
    return found


def _words(group: type) -> dict[str, str]:
    """What the docstrings of a group, and of what it extends, say of its attributes."""
    documents = "\n".join(docstring(kind) for kind in reversed(group.__mro__) if kind is not object)
    entries = re.findall(r"^ {4}(\w+): (.*(?:\n {8,}.*)*)", documents, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in entries}


def is_given(value: Any) -> bool:
    """Whether an option without a default was used; 0 is a value."""
    return value is not None and value is not False and value != []


def given(group: Options, *names: str) -> list[str]:
    """Return which of these options of a group were used, as one types them."""
    return [spelled(name) for name in names if is_given(getattr(group, name))]


def refuse(group: Options, *names: str, goes: str) -> None:
    """Refuse these options of a group, which mean nothing here; ``goes`` says with what they go, and why."""
    for name in given(group, *names):
        raise InputError(f"{name} goes {goes}.")


def refuse_ending(option: str, *paths: Path | None, endings: Sequence[str] = (".csv", ".parquet")) -> None:
    """Refuse files, where they were given, of other kinds than these."""
    for path in paths:
        if path is not None and path.suffix.lower() not in endings:
            raise InputError(
                f"{option} must end in {' or '.join(endings)}, got {str(path)!r}; name the file so."
            )


def spelled(name: str) -> str:
    """Return an option as one types it.

    >>> spelled("claim_epsilon")
    '--claim-epsilon'
    """
    return f"--{name.replace('_', '-')}"


# --- Of every command ---


@dataclass(frozen=True)
class Quietly(Options, title="General"):
    """What is printed beside the result; `--debug` is read before the command runs.

    Attributes:
        quiet: Print nothing but errors (and JSON, if asked for).
        debug: Show the traceback of an error.
    """

    quiet: bool = option(default=False, also=["-q"])
    debug: bool = False


@dataclass(frozen=True)
class Common(Quietly):
    """The same of a command that a file can configure.

    Attributes:
        config: Take settings from this file; default: auditor.toml, or [tool.auditor] in pyproject.toml, of this folder or
            the nearest one above it that has either, up to the root of the repository.
        no_config: Take no settings from any file.
    """

    config: Path | None = option(is_eager=True, callback=chosen)
    no_config: bool = option(default=False, is_eager=True, callback=chosen)


# --- Of several commands ---


@dataclass(frozen=True)
class Columns(Options):
    """Who a record is.

    Attributes:
        id_column: Column of record ids, if there is one.
        group_column: Column of groups to report by (class, region), if any.
        person_column: Column of data subjects, if there is one.
    """

    id_column: str = "id"
    group_column: str = "group"
    person_column: str = "person"


@dataclass(frozen=True, kw_only=True)
class InMemory(Options):
    """How large a table may be.

    Attributes:
        memory: Bytes that a table may take once decoded; a larger one is refused before it is read.
    """

    memory: float = MEMORY


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
            asked = [name for name in ("label_column", "higher_is_member") if hasattr(self, name)]
            refuse(self, *asked, goes="with a table of losses: a summary is counts of its own")
            return Summary.read(data).losses
        return read_losses(table, **self.columns())


def split(
    choice: str, *, inclusion: float | None = None, stratified: bool = False, overlap: float | None = None
) -> choices.MembershipSplit:
    """Return the declared split."""
    if inclusion is not None and choice != "bernoulli":
        raise InputError("--inclusion goes with --split bernoulli: it is the probability of its coins.")
    if stratified and choice != "random":
        raise InputError("--stratified goes with --split random: it says how the random split was made.")
    if overlap is not None and choice != "propensity":
        raise InputError("--overlap goes with --split propensity: it says which estimated odds are audited.")
    if choice == "bernoulli":
        return choices.BernoulliSplit(inclusion)
    if choice == "propensity":
        return choices.Propensity() if overlap is None else choices.Propensity(overlap=overlap)
    return choices.RandomSplit(stratified=stratified) if choice == "random" else choices.UnknownSplit()


Split = Literal["unknown", "random", "bernoulli", "propensity"]


def table_or_coverage(said: str) -> Any:
    """Return the path of a table of members; or one of the words that ``--members`` took before it meant one.

    >>> table_or_coverage("census"), table_or_coverage("./census").name
    ('census', 'census')
    """
    return said if said in typing.get_args(choices.Coverage) else Path(said)


@dataclass(frozen=True, kw_only=True)
class Sampled(Options):
    """What the scored records are of all records, and how membership was decided.

    Attributes:
        split: How membership was decided.
        inclusion: Probability of inclusion, for --split bernoulli; by default the records' own of a column `inclusion`, else 0.5.
        member_coverage: Whether every training record was scored (census), a sample (default), or a random subset of
            --training-size.
        training_size: Number of training records; default: number of member losses.
    """

    split: Split = "unknown"
    inclusion: float | None = None
    member_coverage: choices.Coverage | None = None
    training_size: int | None = None

    def scored_members(self, said: choices.Coverage | None = None) -> choices.Members:
        """Return what the scored members are; ``said`` is what ``--members`` says in the meaning that it had before."""
        if said is not None and self.member_coverage not in (None, said):
            raise InputError(
                f"--members {said} contradicts --member-coverage {self.member_coverage}; leave it out."
            )
        coverage = said or self.member_coverage or "sample"
        if coverage == "subset":
            if self.training_size is None:
                raise InputError(
                    "--member-coverage subset needs --training-size: the number of records it was drawn from."
                )
            return choices.Subset(of=self.training_size)
        return choices.Census() if coverage == "census" else choices.Sample()


@dataclass(frozen=True)
class Measured(Options, title="What is measured"):
    """At which delta and confidence.

    Attributes:
        confidence: Of every interval.
        looks: How often this is looked at, as in a nightly pipeline: so many audits share the error.
        seed: Of everything random.
        delta: Delta to state epsilon at; default: the claim's.
    """

    confidence: float = 0.95
    looks: int = 1
    seed: int = 0
    delta: float | None = None


def names(option: str, text: str) -> list[str]:
    """Return the names between the commas, none of them empty."""
    found = [name.strip() for name in text.split(",")]
    if not all(found):
        raise InputError(
            f"{option} must be names with one comma between each two, got {text!r}, which has an empty name; take it out."
        )
    return found


# --- What is claimed ---


def _rate(typed: object) -> float | Fraction:
    """A rate as a number, or as one number over another: batch size over records."""
    text = str(typed)
    try:
        rate = float(Fraction(text) if "/" in text else text)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise InputError("it must be a number, or one over another such as 256/60000.") from None
    # A fraction keeps every digit: of 1e999999999 that would be a billion.
    return Fraction(text) if "/" in text else rate


@dataclass(frozen=True)
class Steps(Options):
    """The steps of DP-SGD.

    Attributes:
        noise_multiplier: DP-SGD: noise standard deviation over the clipping norm.
        sampling_rate: DP-SGD: chance that a record is in a step, also as batch size over records, such as 256/60000.
        steps: DP-SGD: number of steps.
        sampler: How batches are drawn: by coins (default), each anew of a fixed size, or cut from shuffled records but
            accounted as if by coins.
        fixed_size: The same as --sampler fixed-size.
    """

    noise_multiplier: float | None = None
    sampling_rate: float | None = option(parser=_rate, metavar="RATE")
    steps: int | None = None
    sampler: Literal["poisson", "fixed-size", "shuffled"] | None = None
    fixed_size: bool = False

    def sampling(self) -> choices.Sampling:
        """Return how batches are drawn."""
        if self.fixed_size and self.sampler not in (None, "fixed-size"):
            raise InputError(f"--fixed-size contradicts --sampler {self.sampler}; give one of them.")
        return choices.SAMPLERS["fixed-size" if self.fixed_size else self.sampler or "poisson"]()


@dataclass(frozen=True)
class Training(Steps):
    """A DP-SGD description.

    Attributes:
        epochs: DP-SGD: passes over the records, in place of --steps; each has records over batch size steps, rounded up.
        schedule: DP-SGD step by step: a table with noise_multiplier, sampling_rate and, if wanted, steps.
        records_per_person: Convert a claim for records, by group privacy, to one for people with up to so many of them.
    """

    epochs: float | None = None
    schedule: Path | None = None
    records_per_person: int | None = None

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
        there = given(self, *parameters, "epochs")
        if self.schedule is not None:
            if there:
                raise InputError(
                    f"--schedule describes every step, so it cannot stand beside {', '.join(there)}; give one of the two."
                )
            from auditor.collectors import read_schedule

            return read_schedule(self.schedule, sampling=self.sampling())
        wanted = list(map(spelled, parameters))
        # Epochs stand in for steps.
        missing = [name for name in wanted if name not in (*there, "--steps" if self.epochs else "")]
        if missing:
            raise InputError(
                f"a DP-SGD description needs {', '.join(wanted)} (or --epochs), or --schedule; missing: {', '.join(missing)}."
            )
        return choices.DPSGD(
            self.noise_multiplier, self.sampling_rate, self._counted(), sampling=self.sampling()
        )

    def _counted(self) -> int | None:
        """The number of steps, as given or by epochs; the batches of a pass, and steps, are rounded up, which promises less."""
        if self.epochs is None:
            return self.steps
        if self.steps is not None:
            raise InputError("--epochs stands in place of --steps; give one of the two.")
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
    claim_mu: float | None = None
    claim_rho: float | None = None
    claim_points: str | None = None
    claim_adjacency: choices.Adjacency | None = None
    claim_unit: choices.PrivacyUnit | None = None

    def unit(self) -> choices.PrivacyUnit:
        """Return for whom the claim is made, as said or by what else was given."""
        return self.claim_unit or super().unit()

    def claim(self) -> choices.TrainingClaim | None:
        """Return the claim, if there is one."""
        point = given(self, "claim_epsilon", "claim_delta")
        curve = given(self, "claim_mu", "claim_rho", "claim_points")
        stated = [*point, *curve, *given(self, "claim_adjacency")]
        steps = ("noise_multiplier", "sampling_rate", "steps", "epochs", "schedule", "fixed_size", "sampler")
        trained = given(self, *steps)
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
                f" --claim-mu, --claim-rho and --claim-points; missing: {', '.join(missing)}."
            )
        return choices.StatedClaim(self.claim_epsilon, self.claim_delta, adjacency, self.unit(), people)


def _pairs(text: str) -> list[list[str]]:
    """Return what stands on both sides of the colon of each point; the claim reads the numbers."""
    pairs = [part.split(":") for part in text.split(",")]
    if any(len(pair) != 2 for pair in pairs):  # noqa: PLR2004
        raise InputError(
            f"--claim-points must be epsilon:delta with commas between, such as 0.5:1e-3,2:1e-6, got {text!r}."
        )
    return pairs


def delta_or_that_of(claim: choices.TrainingClaim | None, delta: float | None) -> float:
    """Return delta, where no number of training records could give one."""
    found = choices.delta_of(claim) if delta is None else delta
    if found is None:
        raise InputError("--delta is needed: give the delta to state epsilon at, or a claim with its own.")
    return found


# --- Gates, and what a shell offers for them on the tabulator key: the numbers and checks that they can name ---


def _gates(incomplete: str) -> list[tuple[str, str]]:
    """Return what ``--fail-if`` may begin with, and what each means; the parser leaves out what begins otherwise.

    Args:
        incomplete: What is typed already.

    >>> _gates("auc.")[-1]
    ('auc.upper', 'upper end of its interval')
    """
    from auditor.checks.registry import CHECKS
    from auditor.results.metrics import offered

    numbers, head = offered(), incomplete.rpartition(".")[0]
    return [
        *numbers.items(),
        ("verdict", "with == or != and refuted, not_refuted, inconclusive or not_evaluable"),
        *((f"checks.{item.name}", item.hint) for item in CHECKS if item.hint),
        *((f"{head}.{end}", f"{end} end of its interval") for end in ("lower", "upper") if head in numbers),
    ]


@dataclass(frozen=True)
class Gates(Options, title="When to stop a pipeline"):
    """Conditions on the result that set the exit code.

    Attributes:
        fail_if: Exit 1 when true, such as 'epsilon_star.gaussian > 1', 'auc.lower > 0.6', 'verdict == refuted' or
            'checks.shift == fail'; exit 3 when it cannot be evaluated; repeatable.
    """

    fail_if: list[str] | None = option(metavar="GATE", autocompletion=_gates)

    def parsed(self) -> list[Gate]:
        """Return the gates, each read before any work is done."""
        return [parse(text) for text in self.fail_if or ()]

    def judged(self, result: AnyResult, gates: Sequence[Gate]) -> tuple[GateOutcome, ...]:
        """Return what becomes of each gate, and what stops a pipeline without one."""
        allowed = getattr(self, "allow_unjudged", False)
        return (*judged(result, gates), *standing(result, allow_unjudged=allowed))


@dataclass(frozen=True)
class ClaimGates(Gates):
    """Those of a command that judges a claim.

    Attributes:
        allow_unjudged: Exit 0, and not 3, where the claim could not be judged (not evaluable or inconclusive).
    """

    allow_unjudged: bool = False


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
        result: AnyResult,
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
class Readers(Options, title="What is written"):
    """Who may read the result.

    Attributes:
        for_insiders: Keep every digit and finer views, from which records can be recognised; the result says so.
    """

    for_insiders: bool = False

    @property
    def disclosure(self) -> choices.Disclosure:
        """The same as Python takes it."""
        return choices.Disclosure.INSIDERS if self.for_insiders else choices.Disclosure.PUBLIC


@dataclass(frozen=True)
class ModelFiles(AuditFiles):
    """Those of the audit of one model, which has a card too.

    Attributes:
        model_card: Write metadata and a section for a model card on the Hugging Face Hub (Markdown).
    """

    model_card: Path | None = None

    def cards(self, result: AnyResult) -> dict[Path, str | bytes]:
        """Return the card that was asked for, by where it goes."""
        if self.model_card is None:
            return {}
        if not isinstance(result, AuditResult):
            raise InputError("--model-card is for the audit of one model; leave it out here.")
        return {self.model_card: result.to_model_card()}


def _shown(result: AnyResult, gates: Sequence[GateOutcome], text: str | None) -> str:
    from auditor.report.terminal import audit_text

    passed = "".join(f"✓ {item.sentence}\n" for item in gates if item.passed)
    shown = text or audit_text(result, width=console.width(least=_LEAST), color=console.colour(), gates=gates)
    return f"{shown}{passed}\n"


def _reasons(result: AnyResult, gates: Sequence[GateOutcome]) -> list[str]:
    """Why the exit code is not 0: the refuted claim, then the gates that failed, then those that cannot be evaluated."""
    from auditor.report.findings import verdict_sentence

    stopped = sorted((item for item in gates if not item.passed), key=lambda item: item.code)
    found = [item.sentence for item in stopped]
    refuted = result.verdict is Verdict.REFUTED
    return [f"The claim is refuted. {verdict_sentence(result)}", *found] if refuted else found
