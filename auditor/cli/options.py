"""Options that several commands have, each declared once; those that belong together are read as one value."""

import copy
import dataclasses
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from auditor.core import options as choices
from auditor.core.errors import InputError
from auditor.core.training import DPSGD, FixedSizeSampling, PoissonSampling
from auditor.verdicts.gates import Gate, parse

# --- Groups of options ---


class Options:
    """Options that belong together: a frozen dataclass whose fields are made by `option` and `flag`.

    A field that has no default, or that several groups have, is declared by its annotation, as a command's parameter is. A
    command takes the whole group as one parameter; `declared` tells the parser what is in it.
    """

    title: ClassVar[str | None] = None

    def __init_subclass__(cls, *, title: str | None = None) -> None:
        """Keep what `--help` writes above the group; without a title its options stand with those of no group."""
        cls.title = title


def option(words: str, *, default: Any = None, **more: Any) -> Any:
    """Return a field of a group: an option, its help, its default and what else `typer.Option` takes."""
    return dataclasses.field(default=default, metadata={"declaration": typer.Option(help=words, **more)})


def flag(words: str) -> Any:
    """Return a field of a group: an option without a value, which is off by default."""
    return option(words, default=False)


def declared(command: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the options and arguments of a command by their names, those of a group in its place."""
    found = {}
    hints = typing.get_type_hints(command, include_extras=True)
    for name, parameter in inspect.signature(command).parameters.items():
        if _is_group(hints[name]):
            found.update(_of_group(hints[name]))
        else:
            found[name] = parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name])
    return found


def packed(command: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a command, from the values of everything that `declared` names."""
    hints = typing.get_type_hints(command, include_extras=True)
    found = {}
    for name in inspect.signature(command).parameters:
        group = hints[name]
        if _is_group(group):
            found[name] = group(**{item.name: given[item.name] for item in dataclasses.fields(group)})
        else:
            found[name] = given[name]
    return found


def _is_group(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Options)


def _of_group(group: Any) -> dict[str, inspect.Parameter]:
    found = {}
    hints = typing.get_type_hints(group, include_extras=True)
    for item in dataclasses.fields(group):
        if "declaration" in item.metadata:
            base, declaration = hints[item.name], copy.copy(item.metadata["declaration"])
            declaration.param_decls = (spelled(item.name),)  # and no --no-... of a flag
        else:
            base, kept = typing.get_args(hints[item.name])
            declaration = copy.copy(kept)
        declaration.rich_help_panel = group.title
        default = inspect.Parameter.empty if item.default is dataclasses.MISSING else item.default
        found[item.name] = inspect.Parameter(
            item.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=default,
            annotation=Annotated[base, declaration],
        )
    return found


def is_given(value: Any) -> bool:
    """Whether an option without a default was used; 0 is a value."""
    return value is not None and value is not False


def spelled(name: str) -> str:
    """Return an option as one types it.

    >>> spelled("claim_epsilon")
    '--claim-epsilon'
    """
    return f"--{name.replace('_', '-')}"


# --- Of every command ---

Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print nothing but errors (and JSON, if asked for).")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


@dataclass(frozen=True)
class Common(Options):
    """What is printed beside the result; `--debug` is read before the command runs."""

    quiet: Quiet = False
    debug: Debug = False


# --- Of several commands ---

IdColumn = Annotated[str, typer.Option(help="Column of record ids, if there is one.")]
GroupColumn = Annotated[str, typer.Option(help="Column of groups to report by (class, region), if any.")]
PersonColumn = Annotated[str, typer.Option(help="Column of data subjects, if there is one.")]
DeltaOfClaim = Annotated[float | None, typer.Option(help="Delta to state epsilon at; default: the claim's.")]
Confidence = Annotated[float, typer.Option(help="Of every interval.")]
Seed = Annotated[int, typer.Option(help="Of everything random.")]
TrainingSize = Annotated[
    int | None, typer.Option(help="Number of training records; default: number of member losses.")
]
Inclusion = Annotated[float | None, typer.Option(help="Probability of inclusion, for --split bernoulli.")]


class MembersOption(StrEnum):
    """What the scored members are."""

    CENSUS = "census"
    SAMPLE = "sample"
    SUBSET = "subset"


class SplitOption(StrEnum):
    """How membership was decided."""

    UNKNOWN = "unknown"
    RANDOM = "random"
    BERNOULLI = "bernoulli"


MembersChoice = Annotated[
    MembersOption,
    typer.Option(
        help="Whether every training record was scored, a sample, or a random subset of --training-size."
    ),
]
SplitChoice = Annotated[SplitOption, typer.Option(help="How membership was decided.")]


def members(choice: MembersOption, *, training_size: int | None) -> choices.Members:
    """Return what the scored members are."""
    if choice is MembersOption.SUBSET:
        if training_size is None:
            raise InputError(
                "--members subset needs --training-size: the number of records it was drawn from."
            )
        return choices.Subset(of=training_size)
    return choices.Census() if choice is MembersOption.CENSUS else choices.Sample()


def split(
    choice: SplitOption, *, inclusion: float | None = None, stratified: bool = False
) -> choices.MembershipSplit:
    """Return the declared split."""
    if (choice is SplitOption.BERNOULLI) != (inclusion is not None):
        raise InputError(
            "--split bernoulli and --inclusion go together: give the probability of inclusion, in (0, 1)."
        )
    if stratified and choice is not SplitOption.RANDOM:
        raise InputError("--stratified goes with --split random: it says how the random split was made.")
    if inclusion is not None:
        return choices.BernoulliSplit(inclusion)
    return (
        choices.RandomSplit(stratified=stratified) if choice is SplitOption.RANDOM else choices.UnknownSplit()
    )


def names(option: str, text: str) -> list[str]:
    """Return the names between the commas, none of them empty."""
    found = [name.strip() for name in text.split(",")]
    if not all(found):
        raise InputError(
            f"{option} must be names with one comma between each two, got {text!r}, which has an empty name; take it out."
        )
    return found


# --- What is claimed ---

Schedule = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="DP-SGD step by step: a table with noise_multiplier, sampling_rate and, if wanted, steps.",
    ),
]
FixedSize = Annotated[
    bool, typer.Option("--fixed-size", help="Batches have a fixed size; default: Poisson sampling.")
]


@dataclass(frozen=True)
class ClaimOptions(Options, title="What is claimed: an epsilon, or DP-SGD"):
    """One claim or none: stated in epsilon and delta, or as a DP-SGD description."""

    claim_epsilon: float | None = option("Claimed epsilon.")
    claim_delta: float | None = option("Delta of the claim.")
    claim_adjacency: choices.Adjacency | None = option("Of the claim; default: add-remove.")
    noise_multiplier: float | None = option("Claimed DP-SGD: noise over the clipping norm.")
    sampling_rate: float | None = option("Claimed DP-SGD: chance that a record is in a step.")
    steps: int | None = option("Claimed DP-SGD: number of steps.")
    schedule: Schedule = None
    fixed_size: FixedSize = False

    def claim(self) -> choices.TrainingClaim | None:
        """Return the claim, if there is one."""
        given = [spelled(name) for name, value in vars(self).items() if is_given(value)]
        stated = sorted(name for name in given if name.startswith("--claim-"))
        trained = sorted(set(given) - set(stated))
        if stated and trained:
            raise InputError(
                f"one claim at a time: {', '.join(stated)} states an epsilon and"
                f" {', '.join(trained)} describes DP-SGD; give one of the two."
            )
        if trained:
            return training(
                self.noise_multiplier,
                self.sampling_rate,
                self.steps,
                self.schedule,
                fixed_size=self.fixed_size,
            )
        if not stated:
            return None
        missing = [name for name in ("--claim-epsilon", "--claim-delta") if name not in stated]
        if self.claim_epsilon is None or self.claim_delta is None:
            raise InputError(
                f"a stated claim needs --claim-epsilon and --claim-delta (0 for pure differential privacy);"
                f" missing: {', '.join(missing)}."
            )
        return choices.StatedClaim(
            self.claim_epsilon, self.claim_delta, self.claim_adjacency or choices.Adjacency.ADD_REMOVE
        )


def training(
    noise_multiplier: float | None,
    sampling_rate: float | None,
    steps: int | None,
    schedule: Path | None,
    *,
    fixed_size: bool,
) -> DPSGD:
    """Return a DP-SGD description: three numbers for all steps, or a table of steps."""
    sampling = FixedSizeSampling() if fixed_size else PoissonSampling()
    numbers = {"--noise-multiplier": noise_multiplier, "--sampling-rate": sampling_rate, "--steps": steps}
    missing = [name for name, value in numbers.items() if value is None]
    if schedule is not None:
        if len(missing) < len(numbers):
            there = ", ".join(name for name in numbers if name not in missing)
            raise InputError(
                f"--schedule describes every step, so it cannot stand beside {there}; give one of the two."
            )
        from auditor.collectors import read_schedule

        return read_schedule(schedule, sampling=sampling)
    if missing:
        raise InputError(
            f"a DP-SGD description needs {', '.join(numbers)}, or --schedule; missing: {', '.join(missing)}."
        )
    return DPSGD(noise_multiplier, sampling_rate, steps, sampling=sampling)


def delta_or_that_of(claim: choices.TrainingClaim | None, delta: float | None) -> float:
    """Return delta, where no number of training records could give one."""
    if delta is not None:
        return delta
    if isinstance(claim, choices.StatedClaim):
        return claim.delta
    raise InputError("--delta is needed: give the delta to state epsilon at, or a claim with its own.")


# --- Gates, and what a shell offers for them on the tabulator key: the numbers and checks that they can name ---

_ENDS = ("lower", "upper")
_VERDICT = {"verdict": "with == or != and refuted, not_refuted, inconclusive or not_evaluable"}
_VERDICTS = ("verdict == refuted", "verdict != not_refuted")


def _gates(incomplete: str) -> list[tuple[str, str]]:
    """Return what ``--fail-if`` may begin with, and what each means.

    Args:
        incomplete: What is typed already.

    >>> _gates("epsilon_star.g")
    [('epsilon_star.gaussian', 'published estimate, from two fitted normals')]
    >>> [name for name, _ in _gates("auc.")]
    ['auc.lower', 'auc.upper']
    """
    from auditor.checks.registry import CHECKS
    from auditor.results.metrics import offered

    found = [
        (name, words) for name, words in {**offered(), **_VERDICT}.items() if name.startswith(incomplete)
    ]
    head, dot, end = incomplete.rpartition(".")
    if dot and head in offered():
        found += [(f"{head}.{name}", f"{name} end of its interval") for name in _ENDS if name.startswith(end)]
    checks = [(f"checks.{item.name}", item.hint) for item in CHECKS if item.hint]
    found += [(name, words) for name, words in checks if name.startswith(incomplete)]
    if incomplete.startswith("verdict "):
        found += [(text, "the claim is judged so") for text in _VERDICTS if text.startswith(incomplete)]
    return found


@dataclass(frozen=True)
class Gates(Options, title="When to stop a pipeline"):
    """Conditions on the result that set the exit code."""

    fail_if: list[str] | None = option(
        "Exit 1 when true, such as 'epsilon_star.gaussian > 1', 'auc.lower > 0.6', 'verdict == refuted' or"
        " 'checks.shift == fail'; exit 3 when it cannot be evaluated; repeatable.",
        metavar="GATE",
        autocompletion=_gates,
    )

    def parsed(self) -> list[Gate]:
        """Return the gates, each read before any work is done."""
        return [parse(text) for text in self.fail_if or ()]
