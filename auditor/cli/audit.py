"""The commands about the result of an audit: `auditor audit`, `auditor report` and `auditor compare`."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from auditor.cli import console, options as shared, settings
from auditor.cli.options import ClaimOptions, Common, Gates, MembersOption, Options, SplitOption, flag, option
from auditor.cli.outputs import AuditFiles, Html, Json, check_outputs, deliver, explain
from auditor.core import options as choices, validate
from auditor.core.errors import InputError
from auditor.core.values import Losses
from auditor.verdicts.gates import ExitCode, judged

# --- The command `auditor compare`: several results beside each other, and the new one against the old ---


_CODES = {True: ExitCode.FAILED, False: ExitCode.DONE, None: ExitCode.NOT_EVALUABLE}


@dataclass(frozen=True)
class _ComparedResults(Options):
    """The results, and against which of them the others are set."""

    results: Annotated[list[Path], typer.Argument(help="Results of audits (.json), two or more.")]
    about: Path | None = option(
        "A table (.csv, .parquet) with a column result (file, model or number) and any of utility, utility_name,"
        " higher_is_better, strategy, category, model.",
        metavar="TABLE",
    )
    measure: str | None = option(
        "Estimate on the privacy axis; default: epsilon_star.gaussian, or advantage where a fit is rejected.",
        metavar="NAME",
    )
    baseline: Path | None = option(
        "Result that the others are set against; default: the first of exactly two.", metavar="RESULT"
    )

    def with_baseline(self) -> tuple[list[Path], Path | None]:
        """Return the results, with the baseline first where it is not among them, and as it is named there."""
        if self.baseline is None:
            return self.results, None
        at = self.baseline.resolve()
        same = next((path for path in self.results if path.resolve() == at), None)
        return (self.results, same) if same is not None else ([self.baseline, *self.results], self.baseline)


def compare(
    *,
    compared: _ComparedResults,
    fail_if_worse: Annotated[
        bool,
        typer.Option(
            "--fail-if-worse",
            help="Exit 1 if a result is shown to give away more than the baseline, by the membership advantage or the AUC;"
            " 3 if one cannot be compared with it.",
        ),
    ] = False,
    html: Html = None,
    json: Json = None,
    common: Common,
) -> int:
    """Set several audits beside each other: privacy against utility, and each against a baseline."""
    from auditor.api import compare_audits
    from auditor.report.comparison import stopped
    from auditor.report.terminal import comparison_text

    check_outputs(html, json, inputs=(*compared.results, compared.about, compared.baseline))
    paths, baseline = compared.with_baseline()
    announce = console.announcer(quiet=common.quiet)
    announce(f"Reading {len(paths)} results ...")
    found = compare_audits(paths, about=compared.about, baseline=baseline, measure=compared.measure)
    if fail_if_worse and found.baseline is None:
        raise InputError(
            f"--fail-if-worse needs a baseline, got {len(paths)} results and none named; name one with --baseline."
        )
    announce("Writing ...")
    page = {} if html is None else {html: found.to_html()}
    shown = comparison_text(found, width=console.width(), color=console.colour())
    deliver(page, json, "" if json is None else found.to_json(), shown=shown + "\n", quiet=common.quiet)
    if fail_if_worse:
        explain(stopped(found))
    return int(_CODES[found.got_worse] if fail_if_worse else ExitCode.DONE)


# --- The commands `auditor audit`, from a table of losses to a verdict, and `auditor report`, from a stored result ---


class _PersonsOption(StrEnum):
    """How the records of one person are joined."""

    MEAN = "mean"
    MIN = "min"
    MAX = "max"
    EACH = "each"


class _OneRunOption(StrEnum):
    """How the guesses of a one-run audit are judged."""

    STEINKE = "steinke"
    F_DP = "f-dp"
    ANY_GUESSES = "any-guesses"


_TESTS: dict[_OneRunOption, choices.OneRunTest] = {
    _OneRunOption.STEINKE: choices.Steinke(),
    _OneRunOption.F_DP: choices.FDP(),
    _OneRunOption.ANY_GUESSES: choices.AnyGuesses(),
}


@dataclass(frozen=True)
class _LossTables(Options, title="The losses"):
    """One table of losses, or one for each group."""

    losses: Annotated[
        Path | None,
        typer.Argument(
            help="Table of losses (.csv, .parquet, .npz, .arrow, or a folder of .parquet) with a membership column."
        ),
    ] = None
    member_file: Path | None = option("Table of member losses, instead of LOSSES.")
    nonmember_file: Path | None = option("Table of non-member losses.")
    loss_column: str = option("Column of losses.", default="loss")
    member_column: str = option("Column of membership, 0 or 1.", default="member")
    id_column: shared.IdColumn = "id"
    group_column: shared.GroupColumn = "group"
    person_column: shared.PersonColumn = "person"
    label_column: str | None = option("Column of true classes, to report by class.")
    higher_is_member: bool = flag("The column is a score: larger means more like a member.")

    @property
    def files(self) -> tuple[Path | None, ...]:
        """Every table, where it was given."""
        return self.losses, self.member_file, self.nonmember_file

    def _columns(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name.endswith("_column")} | {
            "higher_is_member": self.higher_is_member
        }

    def read(self) -> tuple[str, Losses]:
        """Return where the losses come from and the losses."""
        from auditor import collectors

        match self.files:
            case (Path() as losses, None, None):
                return losses.name, self.read_table(losses)
            case (None, Path() as members, Path() as nonmembers):
                found = collectors.read_loss_pair(members, nonmembers, **self._columns())
                return f"{members.name} (members), {nonmembers.name} (non-members)", found
        raise InputError("give either one LOSSES table, or both --member-file and --nonmember-file.")

    def read_table(self, path: Path) -> Losses:
        """Return the losses of one table of both groups, with columns of these names."""
        from auditor import collectors

        return collectors.read_losses(path, **self._columns())

    def read_features(self, columns: str | None) -> Any:
        """Return the feature columns of the tables that the losses are in, if any were named."""
        if columns is None:
            return None
        from auditor import collectors

        wanted = shared.names("--features", columns)
        others = [self.loss_column, self.id_column, self.person_column]
        match self.files:
            case (Path() as losses, _, _):
                return collectors.read_features(
                    losses, columns=wanted, member_column=self.member_column, not_features=others
                )
            case (_, Path() as members, Path() as nonmembers):
                # Files of one group may still have a column that says which one.
                others = [self.member_column, *others]
                return collectors.read_feature_pair(members, nonmembers, columns=wanted, not_features=others)
        return None


@dataclass(frozen=True)
class _Sampling(Options, title="How the records were chosen"):
    """What the scored records are of all records, and how membership was decided."""

    split: shared.SplitChoice = SplitOption.UNKNOWN
    stratified: bool = flag("The random split was stratified by the group column.")
    inclusion: shared.Inclusion = None
    members: shared.MembersChoice = MembersOption.SAMPLE
    training_size: shared.TrainingSize = None
    persons: _PersonsOption | None = option(
        "One score per person (the mean, min or max loss), or each record; default: mean, where persons are whole."
    )

    def declared_split(self) -> choices.MembershipSplit:
        """Return how membership was decided."""
        return shared.split(self.split, inclusion=self.inclusion, stratified=self.stratified)

    def scored_members(self) -> choices.Members:
        """Return what the scored members are."""
        return shared.members(self.members, training_size=self.training_size)

    def unit(self) -> choices.Persons | None:
        """Return what counts as one unit, or nothing where that was left open."""
        if self.persons is None:
            return None
        return (
            choices.EachRecord()
            if self.persons is _PersonsOption.EACH
            else choices.OnePerPerson(str(self.persons))
        )


@dataclass(frozen=True)
class _Measured(Options, title="What is measured"):
    """How the numbers are made."""

    delta: float | None = option("Default: the claim's, otherwise 1/(n ln n).")
    confidence: shared.Confidence = 0.95
    melded: bool = flag("Certify with one limit for the ratio of rates: tighter, and as proven.")
    mixture: bool = flag("Fit Gaussian mixtures too.")
    max_components: int | None = option("Largest number of components, for --mixture; default: 20.")
    one_run_test: _OneRunOption | None = option(
        "How the guesses about the training algorithm are judged; default: steinke."
    )
    seed: shared.Seed = 0

    def threshold(self) -> choices.RankGrid:
        """Return how the threshold of the certified bound is chosen."""
        return choices.RankGrid(interval=choices.Melded()) if self.melded else choices.RankGrid()

    def mixtures(self) -> choices.Mixture | None:
        """Return which mixtures to fit, if any."""
        if not self.mixture:
            if self.max_components is not None:
                raise InputError("--max-components goes with --mixture: it says how far the mixtures go.")
            return None
        return choices.Mixture() if self.max_components is None else choices.Mixture(self.max_components)

    def guess_test(self, *, split: SplitOption) -> choices.OneRunTest:
        """Return how guesses are judged."""
        if self.one_run_test is not None and split is SplitOption.UNKNOWN:
            raise InputError(
                "--one-run-test goes with --split random or bernoulli: without a split there is no such test."
            )
        return _TESTS[self.one_run_test or _OneRunOption.STEINKE]


@dataclass(frozen=True)
class _Trust(Options, title="Whether it can be trusted"):
    """What further checks are made of."""

    features: str | None = option(
        "Feature columns of LOSSES, separated by commas: looks for shift and twins.", metavar="NAMES"
    )
    reference: Path | None = option(
        "Losses of the same records under a model trained on neither group: a placebo audit."
    )


@dataclass(frozen=True)
class _RankedFiles(AuditFiles, title="What is written"):
    """Every form of the result, and the records by how exposed they look."""

    ranking: Path | None = option(
        "Write the records by how exposed they look (.csv or .parquet).", metavar="PATH"
    )
    top_records: int = option(
        "How many of the most exposed training records to name by id; ids are personal data too: 0 names none.",
        default=10,
        min=0,
    )

    def ranked(self, losses: Losses, *, seed: int) -> dict[Path, str | bytes]:
        """Return the file of ranked records, if it was asked for."""
        if self.ranking is None:
            return {}
        import numpy as np

        from auditor.risk.ranking import rank_records

        return {self.ranking: rank_records(losses, rng=np.random.default_rng(seed)).as_file(self.ranking)}

    def check_all(self, *, inputs: tuple[Path | None, ...]) -> None:
        """Refuse what cannot be written, or not for its name, before any work is done."""
        self.check(others=(self.ranking,), inputs=inputs)
        if self.ranking is not None and self.ranking.suffix.lower() not in {".csv", ".parquet"}:
            raise InputError(
                f"--ranking must end in .csv or .parquet, got {str(self.ranking)!r}; name the file so."
            )


@dataclass(frozen=True)
class _ModelWords(Options, title="What the report says of the model"):
    """What only whoever trained the model knows of it."""

    model_name: str | None = option("Name of the model, for the report.")
    strategy: str | None = option(
        "How it was trained, such as 'DP, epsilon 10': auditor compare takes equal ones together."
    )
    utility: float | None = option(
        "How good the model is at its task: auditor compare sets it against privacy."
    )
    utility_name: str | None = option("What --utility is, such as 'test accuracy'.", metavar="TEXT")
    lower_is_better: bool = flag("Of --utility: a lower value is a better model (an error).")

    def stated_utility(self) -> choices.Utility | None:
        """Return how good the model is, or nothing where that was left open."""
        name = self.utility_name
        if self.utility is None:
            if name is not None or self.lower_is_better:
                raise InputError(
                    "--utility-name and --lower-is-better go with --utility: they say what its number means."
                )
            return None
        value = validate.number("--utility", self.utility)
        if name is not None and not name.strip():
            raise InputError(f"--utility-name must be a text such as 'test accuracy', got {name!r}.")
        return choices.Utility(
            value, "utility" if name is None else name, higher_is_better=not self.lower_is_better
        )


def audit(
    tables: _LossTables,
    sampling: _Sampling,
    measured: _Measured,
    trust: _Trust,
    claimed: ClaimOptions,
    gates: Gates,
    files: _RankedFiles,
    words: _ModelWords,
    common: Common,
) -> int:
    """Audit a model from a table of per-record losses (smaller means a better prediction)."""
    from auditor import api

    wanted, utility = gates.parsed(), words.stated_utility()
    files.check_all(inputs=(*tables.files, trust.reference, claimed.schedule))
    claim, split = claimed.claim(), sampling.declared_split()
    announce = console.announcer(quiet=common.quiet)
    announce("Reading losses ...")
    source, losses = tables.read()
    announce("Auditing ...")
    with console.progress("Fitting mixtures", quiet=common.quiet) as progress:
        result = api.audit(
            losses,
            delta=measured.delta,
            confidence=measured.confidence,
            members=sampling.scored_members(),
            split=split,
            claim=claim,
            training_size=sampling.training_size,
            persons=sampling.unit(),
            one_run_test=measured.guess_test(split=sampling.split),
            threshold=measured.threshold(),
            mixture=measured.mixtures(),
            features=tables.read_features(trust.features),
            reference=None if trust.reference is None else tables.read_table(trust.reference),
            seed=measured.seed,
            model=words.model_name,
            strategy=words.strategy,
            utility=utility,
            top_records=files.top_records,
            source=source,
            command=console.command_line(),
            progress=progress,
        )
    result = settings.recorded(result)
    ranked = files.ranked(losses, seed=measured.seed)
    return int(files.write(result, judged(result, wanted), quiet=common.quiet, more=ranked))


def report(
    result: Annotated[
        Path,
        typer.Argument(metavar="RESULT", help="Result of an audit (.json), of this release or an older one."),
    ],
    gates: Gates,
    files: AuditFiles,
    common: Common,
) -> int:
    """Show a stored result again: print it, write its reports, and judge it by gates, without the losses."""
    from auditor.api import read_result

    wanted = gates.parsed()
    files.check(inputs=(result,))
    found = read_result(result)
    return int(files.write(found, judged(found, wanted), quiet=common.quiet))
