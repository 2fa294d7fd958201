"""What the command line was given becomes values, and results become files: no mathematics."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from auditor import _validate
from auditor.choices import (
    FDP,
    AnyGuesses,
    BernoulliSplit,
    Census,
    EachRecord,
    Members,
    MembershipSplit,
    Mixture,
    OnePerPerson,
    OneRunTest,
    Persons,
    RandomSplit,
    Sample,
    Steinke,
    Subset,
    UnknownSplit,
    Utility,
)
from auditor.commands import console
from auditor.commands.configuration_used import used_file
from auditor.commands.options import MembersOption, OneRunOption, PersonsOption, SplitOption
from auditor.errors import InputError
from auditor.gates import Gate, parse
from auditor.report.files import check_writable, write_all

__all__ = [
    "attack",
    "check_outputs",
    "check_ranking",
    "features",
    "gates",
    "members",
    "mixture",
    "names",
    "one_run_test",
    "persons",
    "ranking",
    "read",
    "split",
    "utility",
    "whole_numbers",
    "write_text",
]


def check_outputs(
    html: Path | None,
    json: str | None,
    *,
    others: tuple[Path | None, ...] = (),
    inputs: tuple[Path | None, ...] = (),
) -> None:
    """Refuse outputs that cannot be written, or would replace an input or the settings, before any work is done."""
    if str(html) == "-":
        raise InputError(
            "--html - is not offered: the page goes to a file; name one, or use --json - for the data."
        )
    paths = [path for path in (html, *others) if path is not None]
    paths += [] if json in (None, "-") else [Path(str(json))]
    check_writable(paths, inputs=[*(path for path in inputs if path is not None), *used_file()])


def members(option: MembersOption, *, training_size: int | None, only_subset: bool = False) -> Members:
    """Return what the scored members are; ``only_subset`` refuses a training size that would have no effect."""
    if only_subset and training_size is not None and option is not MembersOption.SUBSET:
        raise InputError(
            "--training-size goes with --members subset: a plan for a sample does not depend on it."
        )
    if option is MembersOption.SUBSET:
        if training_size is None:
            raise InputError(
                "--members subset needs --training-size: the number of records it was drawn from."
            )
        return Subset(of=training_size)
    return Census() if option is MembersOption.CENSUS else Sample()


def split(option: SplitOption, *, inclusion: float | None, stratified: bool = False) -> MembershipSplit:
    """Return the declared split."""
    if (option is SplitOption.BERNOULLI) != (inclusion is not None):
        raise InputError(
            "--split bernoulli and --inclusion go together: give the probability of inclusion, in (0, 1)."
        )
    if stratified and option is not SplitOption.RANDOM:
        raise InputError("--stratified goes with --split random: it says how the random split was made.")
    if option is SplitOption.BERNOULLI and inclusion is not None:
        return BernoulliSplit(inclusion)
    return RandomSplit(stratified=stratified) if option is SplitOption.RANDOM else UnknownSplit()


def persons(option: PersonsOption | None) -> Persons | None:
    """Return what counts as one unit, or nothing where that was left open."""
    if option is None:
        return None
    return EachRecord() if option is PersonsOption.EACH else OnePerPerson(str(option))


def mixture(components: int | None, *, asked: bool) -> Mixture | None:
    """Return which mixtures to fit, if any."""
    if not asked:
        if components is not None:
            raise InputError("--max-components goes with --mixture: it says how far the mixtures go.")
        return None
    return Mixture() if components is None else Mixture(components)


def one_run_test(option: OneRunOption | None, *, split: SplitOption) -> OneRunTest:
    """Return how guesses are judged."""
    if option is None:
        return Steinke()
    if split is SplitOption.UNKNOWN:
        raise InputError(
            "--one-run-test goes with --split random or bernoulli: without a split there is no such test."
        )
    tests: dict[OneRunOption, OneRunTest] = {
        OneRunOption.STEINKE: Steinke(),
        OneRunOption.F_DP: FDP(),
        OneRunOption.ANY_GUESSES: AnyGuesses(),
    }
    return tests[option]


def read(
    losses: Path | None, member_file: Path | None, nonmember_file: Path | None, **columns: Any
) -> tuple[str, Any]:
    """Return where the losses come from and the losses: one table, or one for each group."""
    from auditor import collectors

    if losses is not None and member_file is None and nonmember_file is None:
        return losses.name, collectors.read_losses(losses, **columns)
    if losses is None and member_file is not None and nonmember_file is not None:
        found = collectors.read_loss_pair(member_file, nonmember_file, **columns)
        return f"{member_file.name} (members), {nonmember_file.name} (non-members)", found
    raise InputError("give either one LOSSES table, or both --member-file and --nonmember-file.")


def features(
    losses: Path | None,
    member_file: Path | None,
    nonmember_file: Path | None,
    columns: str | None,
    *,
    member_column: str,
    not_features: Sequence[str],
) -> Any:
    """Return the features that stand beside the losses, or none."""
    if columns is None:
        return None
    wanted = names("--features", columns)
    from auditor import collectors

    if losses is not None:
        return collectors.read_features(
            losses, columns=wanted, member_column=member_column, not_features=not_features
        )
    if member_file is not None and nonmember_file is not None:
        # Files of one group may still have a column that says which one.
        others = (member_column, *not_features)
        return collectors.read_feature_pair(member_file, nonmember_file, columns=wanted, not_features=others)
    return None


def names(option: str, text: str) -> list[str]:
    """Return the names between the commas, none of them empty."""
    found = [name.strip() for name in text.split(",")]
    if not all(found):
        raise InputError(
            f"{option} must be names with one comma between each two, got {text!r}, which has an empty name; take it out."
        )
    return found


def whole_numbers(option: str, text: str) -> list[int]:
    """Return the whole numbers between the commas."""
    return [_validate.at_least(option, number, least=1) for number in names(option, text)]


def attack(mu: float | None, epsilon: float | None) -> Any:
    """Return the attack that a plan assumes."""
    from auditor.planning import GaussianAttack, PerfectAttack, RandomisedResponse

    if mu is not None and epsilon is not None:
        raise InputError("one attack at a time: give --mu or --attack-epsilon, not both.")
    if mu is not None:
        return GaussianAttack(mu)
    return PerfectAttack() if epsilon is None else RandomisedResponse(epsilon)


def check_ranking(path: Path | None) -> None:
    """Refuse a file of ranked records that could not be written for its name, before any work is done."""
    if path is not None and path.suffix.lower() not in {".csv", ".parquet"}:
        raise InputError(f"--ranking must end in .csv or .parquet, got {str(path)!r}; name the file so.")


def gates(texts: Sequence[str] | None) -> list[Gate]:
    """Return the gates, each read before any work is done."""
    return [parse(text) for text in texts or ()]


def utility(value: float | None, name: str | None, *, lower_is_better: bool) -> Utility | None:
    """Return how good the model is, or nothing where that was left open."""
    if value is None:
        if name is not None or lower_is_better:
            raise InputError(
                "--utility-name and --lower-is-better go with --utility: they say what its number means."
            )
        return None
    value = _validate.number("--utility", value)
    if name is not None and not name.strip():
        raise InputError(f"--utility-name must be a text such as 'test accuracy', got {name!r}.")
    return Utility(value, "utility" if name is None else name, higher_is_better=not lower_is_better)


def ranking(losses: Any, path: Path | None, *, seed: int) -> dict[Path, str | bytes]:
    """Return the file of ranked records that was asked for."""
    if path is None:
        return {}
    import numpy as np

    from auditor.ranking import rank_records

    return {path: rank_records(losses, rng=np.random.default_rng(seed)).as_file(path)}


def write_text(text: str, *, json: str | None, quiet: bool, shown: str) -> None:
    """Write the JSON where it was asked for, and print what a person reads."""
    if json == "-":
        console.hand_out(text)
        return
    if json is not None:
        write_all({Path(json): text})
    if not quiet:
        console.say(shown)
