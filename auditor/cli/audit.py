"""The commands about the result of an audit: `auditor audit`, `report`, `verify` and `compare`."""

import json
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

from auditor.cli import console, options as shared, settings
from auditor.core import options as choices
from auditor.core.errors import AuditorError, InputError
from auditor.core.files import sweep, temporary
from auditor.core.numbers import clean
from auditor.core.values import Losses
from auditor.results.document import ALTERED, AuditDocument, ceiling, content_hash, input_hash, take_hash
from auditor.verdicts.gates import ExitCode

# --- The command `auditor compare`: several results beside each other, and the new one against the old ---


_CODES = {True: ExitCode.FAILED, False: ExitCode.DONE, None: ExitCode.NOT_EVALUABLE}


@dataclass(frozen=True)
class _ComparedResults(shared.Options):
    """The results, and against which of them the others are set.

    Attributes:
        results: Results of audits (.json), two or more.
        fail_if_worse: Exit 1 if a result is shown to give away more than the baseline, by the membership advantage or the
            AUC, or record by record with --losses; 3 if one cannot be compared with it.
        about: A table (.csv, .parquet) with a column result (file, model or number) and any of utility, utility_name,
            higher_is_better, strategy, category, model.
        measure: Estimate on the privacy axis; default: advantage.
        baseline: Result that the others are set against; default: the first of exactly two.
    """

    results: list[Path] = shared.argument("RESULTS")
    about: Path | None = None
    measure: str | None = None
    baseline: Path | None = None
    fail_if_worse: bool = False

    def with_baseline(self) -> tuple[list[Path], Path | None]:
        """Return the results, with the baseline first where it is not among them, and as it is named there."""
        if self.baseline is None:
            return self.results, None
        at = self.baseline.resolve()
        same = next((path for path in self.results if path.resolve() == at), None)
        return (self.results, same) if same is not None else ([self.baseline, *self.results], self.baseline)


@dataclass(frozen=True, kw_only=True)
class _ComparedLosses(shared.LossColumns, title="The losses, where all audits are of the same records"):
    """What the results were made of, in any order: a result keeps a hash of its losses.

    Attributes:
        losses: Table that a result was made of, as auditor audit reads it, with ids; repeat it for each result: then the
            audits are compared record by record, which sees far smaller changes.
        id_column: Column of record ids.
        person_column: Column of data subjects, if there is one.
    """

    losses: list[Path] | None = None
    id_column: str = "id"
    person_column: str = "person"


def compare(
    compared: _ComparedResults, tables: _ComparedLosses, files: shared.PageFiles, common: shared.Common
) -> int:
    r"""Set several audits beside each other: privacy against utility, and each against a baseline.

    Examples:
        Does this release give away more than the last? Exit 1 if it does:
          auditor compare last.json this.json --fail-if-worse --html comparison.html

        The same, record by record, where both are audits of the same records:
          auditor compare last.json this.json --losses last.csv --losses this.csv \
            --fail-if-worse

        Set several models side by side, with a table that says how good each is:
          auditor compare first.json second.json third.json --about models.csv \
            --html comparison.html

    Exit codes:
        0 done; 1 a result gives away more than the baseline (--fail-if-worse);
        2 bad input; 3 one cannot be compared with it (--fail-if-worse).
    """
    from auditor.api import compare_audits
    from auditor.report.comparison import stopped
    from auditor.report.terminal import comparison_text

    sources = tables.losses or []
    files.check(inputs=(*compared.results, *sources, compared.about, compared.baseline))
    paths, baseline = compared.with_baseline()
    if compared.fail_if_worse and baseline is None and len(paths) != 2:  # noqa: PLR2004
        raise InputError(
            f"--fail-if-worse needs a baseline, got {len(paths)} results and none named; name one with --baseline FILE."
        )
    announce = console.announcer(quiet=common.quiet)
    announce(f"Reading {len(paths)} results ...")
    losses = [tables.read_table(path) for path in sources]
    found = compare_audits(
        paths, about=compared.about, baseline=baseline, measure=compared.measure, losses=losses
    )
    announce("Writing ...")
    page = {} if files.html is None else {files.html: found.to_html()}
    shown = comparison_text(found, width=console.width(), color=console.colour())
    files.write(found.to_json(), shown=shown + "\n", quiet=common.quiet, texts=page)
    if not compared.fail_if_worse:
        return ExitCode.DONE
    console.explain(stopped(found))
    return _CODES[found.got_worse]


# --- The commands `auditor audit`, from a table of losses to a verdict, and `auditor report`, from a stored result ---


@dataclass(frozen=True, kw_only=True)
class _LossTables(shared.Columns, shared.LossColumns, title="The losses"):
    """One table of losses, or one for each group.

    Attributes:
        losses: Table of losses (.csv, .tsv, .parquet, .npz, .arrow, or a folder of .parquet) with a membership column; - for
            CSV from standard input. Or a summary (auditor summarise).
        members: Table of member losses, instead of LOSSES.
        nonmembers: Table of non-member losses.
        label_column: Column of true classes, to report by class.
    """

    losses: Path | None = shared.argument("LOSSES", default=None)
    members: Any = shared.option(parser=shared.table_or_coverage, metavar="FILE", also=["--member-file"])
    nonmembers: Path | None = shared.option(also=["--nonmember-file"])
    label_column: str | None = None

    @property
    def files(self) -> tuple[Path | None, ...]:
        """Every table, where it was given."""
        members = None if isinstance(self.members, str) else self.members
        return self.losses, members, self.nonmembers

    @property
    def inputs(self) -> tuple[Path | None, ...]:
        """The same, but for standard input, which no output can replace."""
        return tuple(None if path == shared.STANDARD else path for path in self.files)

    @property
    def coverage(self) -> Any:
        """What --members says where it names no table: how many of the training records were scored."""
        return self.members if isinstance(self.members, str) else None

    @cached_property
    def table(self) -> Any:
        """The table of both groups, which is opened once."""
        from auditor.collectors.tables.opening import open_table

        return open_table(self.losses, memory=self.memory)

    @contextmanager
    def at_hand(self) -> Iterator["_LossTables"]:
        """Yield the same tables, with standard input in a file for as long as it is read."""
        sweep(Path(tempfile.gettempdir()))
        if self.losses != shared.STANDARD:
            yield self
            return
        if sys.stdin is None:
            raise InputError(
                "standard input is closed; send it a table with | or <, or name a file in place of -."
            )
        with temporary("standard input.csv", sys.stdin.buffer) as path:
            try:
                yield replace(self, losses=path)
            except AuditorError as error:
                raise type(error)(str(error).replace(f"file {str(path)!r}", "standard input")) from None

    def read(self) -> tuple[str, Losses]:
        """Return where the losses come from and the losses."""
        from auditor import collectors

        match self.files:
            case (Path() as losses, None, None):
                return losses.name, self.read_table(self.table)
            case (None, Path() as members, Path() as nonmembers):
                found = collectors.read_loss_pair(members, nonmembers, **self.columns())
                return f"{members.name} (members), {nonmembers.name} (non-members)", found
        raise InputError("give either one LOSSES table, or both --members and --nonmembers.")

    def read_features(self, columns: str | None) -> Any:
        """Return the feature columns of the tables that the losses are in, if any were named."""
        if columns is None:
            return None
        from auditor import collectors

        # Files of one group may still have a column that says which one.
        others = [self.member_column, self.loss_column, self.id_column, self.person_column]
        known: Any = {"columns": shared.names("--features", columns), "not_features": others}
        known["memory"] = self.memory
        if self.losses is not None:
            return collectors.read_features(self.table, member_column=self.member_column, **known)
        pair: Any = self.files[1:]
        return collectors.read_feature_pair(*pair, **known)


@dataclass(frozen=True, kw_only=True)
class _Sampling(shared.Sampled, title="How the records were chosen"):
    """What the scored records are, how membership was decided, and what counts as one unit.

    Attributes:
        stratified: The random split was stratified by the group column.
        overlap: For --split propensity: records are audited whose estimated probability of membership lies between this and
            1 less this; default: 0.1.
        persons: One score per person (the mean, min or max loss), or each record; default: mean, where persons are whole.
        rows: What several rows of one id are: training records each (also where that is not known), for which a claim about
            records is judged for groups of so many; or scorings of one training record. Default: records.
    """

    stratified: bool = False
    overlap: float | None = None
    persons: Literal["mean", "min", "max", "each"] | None = None
    rows: choices.Rows | None = None

    def declared_split(self) -> choices.MembershipSplit:
        """Return how membership was decided."""
        return shared.split(
            self.split, inclusion=self.inclusion, stratified=self.stratified, overlap=self.overlap
        )

    def unit(self, losses: Losses) -> choices.Persons | None:
        """Return what counts as one unit, or nothing where that was left open."""
        if self.persons is None and self.rows is None:
            return None
        if self.persons is None and losses.person is not None:
            raise InputError(
                "--rows needs --persons where the records name people, got none; say --persons mean or --persons each too."
            )
        rows = self.rows or choices.Rows.RECORDS
        if self.persons is None or self.persons == "each":
            return choices.EachRecord(rows=rows)
        return choices.OnePerPerson(self.persons, rows)


@dataclass(frozen=True)
class _Measured(shared.Measured):
    """How the numbers are made.

    Attributes:
        delta: Default: the claim's, otherwise 1/(n ln n).
        melded: Certify with one limit for the ratio of rates at ranks fixed in advance, and not with all ranks together.
        clopper_pearson: Certify with two Clopper-Pearson limits at each of those ranks: the simplest, and the lowest.
        mixture: Fit Gaussian mixtures too.
        max_components: Largest number of components, for --mixture; default: 20.
        one_run_test: How the guesses about the training algorithm are judged; default: f-dp, and any-guesses at
            delta 0.
    """

    melded: bool = False
    clopper_pearson: bool = False
    mixture: bool = False
    max_components: int | None = None
    one_run_test: Literal["steinke", "f-dp", "any-guesses"] | None = None

    def threshold(self) -> choices.RankGrid:
        """Return how the threshold of the certified bound is chosen."""
        if self.melded and self.clopper_pearson:
            raise InputError("--melded and --clopper-pearson are two ways to certify; give one of them.")
        if self.melded or self.clopper_pearson:
            return choices.RankGrid(interval=choices.Melded() if self.melded else choices.ClopperPearson())
        return choices.RankGrid()

    def mixtures(self) -> choices.Mixture | None:
        """Return which mixtures to fit, if any."""
        if not self.mixture:
            shared.refuse(self, "max_components", goes="with --mixture: it says how far the mixtures go")
            return None
        return choices.Mixture() if self.max_components is None else choices.Mixture(self.max_components)

    def guess_test(self, *, split: str) -> choices.OneRunTest | None:
        """Return how guesses are judged."""
        if split == "unknown":
            shared.refuse(
                self, "one_run_test", goes="with --split random or bernoulli: without, there is none"
            )
        tests: Any = {"steinke": choices.Steinke, "f-dp": choices.FDP, "any-guesses": choices.AnyGuesses}
        return None if self.one_run_test is None else tests[self.one_run_test]()


@dataclass(frozen=True)
class _Trust(shared.Options, title="Whether it can be trusted"):
    """What further checks are made of.

    Attributes:
        features: Feature columns of LOSSES, separated by commas: looks for shift and twins.
        reference: Losses of the same records under a model trained on neither group: a placebo audit.
    """

    features: str | None = None
    reference: Path | None = None


@dataclass(frozen=True)
class _RankedFiles(shared.ModelFiles):
    """Every form of the result, and the records by how exposed they look.

    Attributes:
        records: Write the records by how exposed they look (.csv or .parquet), for the data's owner only.
        top_records: How many of the most exposed training records to name by id in the result; ids are personal data.
    """

    records: Path | None = None
    top_records: int = shared.option(default=0, min=0)

    def ranked(self, losses: Losses, *, seed: int) -> dict[Path, str | bytes]:
        """Return the file of ranked records, if it was asked for."""
        if self.records is None:
            return {}
        import numpy as np

        from auditor.risk.ranking import rank_records

        return {self.records: rank_records(losses, rng=np.random.default_rng(seed)).as_file(self.records)}

    def check(self, *, inputs: Sequence[Path | None] = ()) -> None:
        """Refuse what cannot be written, or not for its name, before any work is done."""
        super().check(inputs=inputs)
        shared.refuse_ending("--records", self.records)


@dataclass(frozen=True)
class _ModelWords(shared.Options, title="What the report says of the model"):
    """What only whoever trained the model knows of it.

    Attributes:
        model_name: Name of the model, for the report.
        strategy: How it was trained, such as 'DP, epsilon 10': auditor compare takes equal ones together.
        utility: How good the model is at its task: auditor compare sets it against privacy.
        utility_name: What --utility is, such as 'test accuracy'.
        lower_is_better: Of --utility: a lower value is a better model (an error).
        context: What is declared of the release, for a reviewer: a file (TOML or JSON) with any of release, exposed,
            query_limits, privacy_unit, attacker, mitigations, owner, next_audit; in a configuration file also the table
            [audit.context].
    """

    model_name: str | None = None
    strategy: str | None = None
    utility: float | None = None
    utility_name: str | None = None
    lower_is_better: bool = False
    # A path as it was typed; a table of the file with settings as it is.
    context: Any = shared.option(
        parser=lambda said: said if isinstance(said, dict) else Path(said), metavar="FILE"
    )

    @property
    def file(self) -> Path | None:
        """The file with the context, if it is in one."""
        return self.context if isinstance(self.context, Path) else None

    def declared(self) -> choices.Context | None:
        """Return what is declared of the release, or nothing where that was left open."""
        if self.context is None:
            return None
        raw, named = settings.table_of(self.context)
        return choices.Context.from_table(raw, named=named)

    def stated_utility(self) -> choices.Utility | None:
        """Return how good the model is, or nothing where that was left open."""
        name = self.utility_name
        if self.utility is None:
            shared.refuse(
                self, "utility_name", "lower_is_better", goes="with --utility: it says what that means"
            )
            return None
        return choices.Utility(
            self.utility, "utility" if name is None else name, higher_is_better=not self.lower_is_better
        )


def audit(
    tables: _LossTables,
    sampling: _Sampling,
    measured: _Measured,
    trust: _Trust,
    claimed: shared.ClaimOptions,
    gates: shared.ClaimGates,
    files: _RankedFiles,
    readers: shared.Readers,
    words: _ModelWords,
    common: shared.Common,
) -> int:
    r"""Audit a model from a table of per-record losses (smaller means a better prediction).

    Examples:
        What does a table of losses give away?
          auditor audit losses.csv --html report.html

        Members and non-members in two files, with scores where larger is more like
        a member:
          auditor audit --members train.csv --nonmembers holdout.csv \
            --loss-column score --higher-is-member

        Is what is claimed true? Membership was drawn at random, so it can be judged:
          auditor audit losses.csv --split random --claim-epsilon 2 --claim-delta 1e-5

        Stop a pipeline when the model gives away too much:
          auditor audit losses.csv --fail-if "epsilon_bound.clopper_pearson > 1" \
            --fail-if "bayes_security.upper < 0.9" --json result.json --quiet

        Say how good the model is, to compare it with others later (auditor compare):
          auditor audit losses.csv --model-name "release 7" --utility 0.87 \
            --utility-name "test accuracy" --json result.json

    Exit codes:
        0 done, and every gate passed; 1 a gate failed or the claim is refuted;
        2 bad input; 3 a gate cannot be evaluated, or the claim could not be judged
        (unless --allow-unjudged). If several apply: 2, then 1, then 3.
    """
    from auditor import api

    wanted, utility, context = gates.parsed(), words.stated_utility(), words.declared()
    files.check(inputs=(*tables.inputs, trust.reference, claimed.schedule, words.file))
    claim, split = claimed.claim(), sampling.declared_split()
    # Before anything is read, for these refuse options that decide nothing.
    chosen: dict[str, Any] = {
        "members": sampling.scored_members(tables.coverage),
        "one_run_test": measured.guess_test(split=sampling.split),
        "threshold": measured.threshold(),
        "mixture": measured.mixtures(),
    }
    announce = console.announcer(quiet=common.quiet)
    announce("Reading losses ...")
    with tables.at_hand() as opened:
        source, losses = opened.read()
        features = opened.read_features(trust.features)
    announce("Auditing ...")
    with console.progress(quiet=common.quiet) as move:
        result = api.audit(
            losses,
            delta=measured.delta,
            confidence=measured.confidence,
            looks=measured.looks,
            split=split,
            claim=claim,
            training_size=sampling.training_size,
            **chosen,
            persons=sampling.unit(losses),
            features=features,
            reference=None if trust.reference is None else tables.read_table(trust.reference),
            seed=measured.seed,
            model=words.model_name,
            strategy=words.strategy,
            utility=utility,
            context=context,
            top_records=files.top_records,
            disclosure=readers.disclosure,
            source=source,
            command=console.command_line(),
            progress=move and partial(move, "Fitting mixtures"),
        )
    result = settings.recorded(result)
    more = files.ranked(losses, seed=measured.seed) | files.cards(result)
    if files.records is not None:
        announce(f"{files.records.name} lists every record: it is for the data's owner only.")
    return files.write_all(result, gates.judged(result, wanted), quiet=common.quiet, more=more)


@dataclass(frozen=True)
class _StoredResult(shared.Options):
    """A result to show.

    Attributes:
        result: Result of an audit (.json), of this release or an older one.
    """

    result: Path = shared.argument("RESULT")


def report(
    stored: _StoredResult, gates: shared.ClaimGates, files: shared.ModelFiles, common: shared.Common
) -> int:
    r"""Show a stored result again: print it, write its reports, and judge it by gates, without the losses.

    Examples:
        Make the page of a stored result again:
          auditor report result.json --html report.html

        Ask a gate of it, and keep the answer for the pipeline's own pages:
          auditor report result.json --fail-if "auc.lower > 0.6" --junit gates.xml \
            --markdown summary.md

    Exit codes:
        0 done, and every gate passed; 1 a gate failed or the claim is refuted;
        2 bad input; 3 a gate cannot be evaluated, or the claim could not be judged
        (unless --allow-unjudged). If several apply: 2, then 1, then 3.
    """
    from auditor.api import read_result

    wanted = gates.parsed()
    files.check(inputs=(stored.result,))
    found = read_result(stored.result)
    return files.write_all(found, gates.judged(found, wanted), quiet=common.quiet, more=files.cards(found))


# --- The command `auditor site`: a folder of results as pages that link to each other ---


@dataclass(frozen=True)
class _Folder(shared.Options):
    """The results, and where the pages go.

    Attributes:
        folder: Folder of results (.json), in it or in folders below.
        out: Folder for the pages: a new or an empty one, or an earlier site, which is replaced.
    """

    folder: Path = shared.argument("FOLDER")
    out: Path = shared.option(default=Path("site"))


def site(asked: _Folder, shown: shared.Quietly) -> None:
    """Make one static site of a folder of results: an index, a page for each, and a comparison.

    Examples:
        Share all results of a team as files that need no server:
          auditor site results --out public

        Make it again when results were added: an earlier site is replaced:
          auditor site results --out public --quiet
    """
    from auditor.report.folder import site as written

    found = written(asked.folder, asked.out)
    if not shown.quiet:
        last = [f"Wrote {len(found.pages)} pages.", f"Begin with {asked.out / found.pages[0]}"]
        lines = [*(f"Skipped: {reason}" for reason in found.skipped), *last]
        console.say("".join(f"{clean(line)}\n" for line in lines))


# --- The command `auditor verify`: is a result as it was written, and do its losses give its numbers? ---


@dataclass(frozen=True, kw_only=True)
class _SameLosses(_LossTables, title="The losses that it was made of"):
    """The losses to audit again, in the order in which they were audited.

    Attributes:
        losses: Table of losses, as auditor audit read it: the numbers are computed again from it.
    """

    losses: Path | None = None


_NEARLY = 1e-9
_MOST = 20  # numbers that differ are listed
_COUNTS = ("n_member", "n_nonmember", "training_size", "delta", "confidence")


def verify(stored: _StoredResult, tables: _SameLosses, shown: shared.Quietly) -> int:
    r"""Check that a result is as it was written, and with its losses that they give its numbers.

    A hash shows that nothing changed since the result was written, and not who wrote it. Numbers computed again must agree
    to 1e-9; the settings for that are in the result.

    Examples:
        Did anybody change this result?
          auditor verify result.json

        Do these losses give its numbers?
          auditor verify result.json --losses losses.csv

    Exit codes:
        0 all agrees; 1 something does not; 2 bad input;
        3 the result keeps no hash, or not the settings to compute it again.
    """
    from auditor.results.reading import raw_result

    _, raw, content = raw_result(stored.result)
    origin = raw["provenance"] if isinstance(raw.get("provenance"), dict) else {}
    kept = take_hash(raw)
    found = [_compared("content", kept, kept and content_hash(json.loads(content)))]
    if ALTERED in [item.get("name") for item in raw.get("checks") or () if isinstance(item, dict)]:
        found.append((False, "Altered since it was written, before its present hash was made."))
    if any(tables.files):
        with tables.at_hand() as opened:
            _, losses = opened.read()
        found.append(_compared("losses", origin.get("input_sha256"), input_hash(losses)))
        found += _again(stored.result, losses) if found[-1][0] else []
    if not shown.quiet:
        console.say("".join(f"✓ {words}\n" for ok, words in found if ok))
    console.explain(f"{'?' if ok is None else '✕'} {words}" for ok, words in found if not ok)
    states = [ok for ok, _ in found]
    return ExitCode.FAILED if False in states else ExitCode.NOT_EVALUABLE if None in states else ExitCode.DONE


def _compared(what: str, kept: object, now: object) -> tuple[bool | None, str]:
    """Whether a hash is the one that the result keeps, null where it keeps none; and that in words."""
    if not kept:
        return None, f"SHA-256 of the {what}: no hash kept in this result."
    same = kept == now
    return same, f"SHA-256 of the {what}: {now}{'' if same else f', but the result keeps {kept!s:.64}'}."


def _again(path: Path, losses: Losses) -> list[tuple[bool | None, str]]:
    """Whether the audit of these losses, made again, gives the numbers of the result; each that differs by itself."""
    from auditor import api
    from auditor.estimators.asked import asked_again
    from auditor.results.disclosure import as_shared
    from auditor.results.reading import read_result

    result = read_result(path)
    choices, split = result.provenance.get("choices"), result.data.get("split")
    own = split == "bernoulli" and result.data.get("inclusion") is None and losses.inclusion is None
    reason = "each record had odds of its own; give the losses a column inclusion" if own else ""
    if split == "propensity":
        reason = "estimated odds rest on features, which no result keeps"
    if not choices:
        reason = "the result does not keep the settings for that"
    if reason:
        return [(None, f"Numbers: not computed again, since {reason}.")]
    again = api.audit(losses, **{"disclosure": "insiders", **asked_again(choices)})
    if "disclosure" not in choices:  # of an older release: reading applied the rules to full digits
        again = as_shared(replace(again, data={**again.data, "disclosure": None}))
    # A verdict rests on checks too, and these may need files that nobody gave.
    judged = not (choices.get("features") or choices.get("reference"))
    old, new = (_numbers(item, judged=judged) for item in (result, again))
    differing: list[tuple[bool | None, str]] = [
        (False, f"Number {name}: {old.get(name, 'missing')} in the result, {new.get(name, 'missing')} again.")
        for name in old | new
        if not _agree(old.get(name), new.get(name))
    ]
    if differing:
        return [*differing[:_MOST], (False, f"Numbers: {len(differing):,} of {len(new):,} differ.")]
    return [(True, f"Numbers: all {len(new):,} were computed again, and agree to 1e-9.")]


def _numbers(result: AuditDocument, *, judged: bool) -> dict[str, Any]:
    """Every number of a result by its name and place."""
    found = {name: result.data.get(name) for name in _COUNTS}
    under = [(f"under {found.policy}", item) for found in result.policies for item in found.estimates]
    for place, (label, item) in enumerate([*result.by_slice, *under]):
        named = " ".join((label, item.name, f"(estimate {place + 1})")).strip()
        found |= {f"{end} of {named}": getattr(item, end) for end in ("value", "lower", "upper")}
        found[f"ceiling of {named}"] = ceiling(item)
    found |= {f"claimed {item.metric} ({place + 1})": item.value for place, item in enumerate(result.claims)}
    return {**found, "verdict": result.verdict} if judged else found


def _agree(x: Any, y: Any) -> bool:
    numbers = isinstance(x, int | float) and isinstance(y, int | float)
    return math.isclose(x, y, rel_tol=_NEARLY, abs_tol=_NEARLY) if numbers else bool(x == y)
