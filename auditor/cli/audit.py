"""The commands for results of audits: `auditor audit`, `report` and `compare`."""

import json
import math
import os
import re
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any

from auditor.cli import console, options as shared, settings
from auditor.cli.parsing import Of, Options, Typed, argument, option
from auditor.core import Losses, clean, options as choices
from auditor.core.errors import AuditorError, ExitCode, InputError, without_credentials
from auditor.core.files import sweep, temporary
from auditor.estimators.setting import AuditOptions
from auditor.results.document import ALTERED, AuditResult, ceiling, content_hash, input_hash, take_hash

# --- The command `auditor compare`: several results side by side, and each against a baseline ---


_CODES = {True: ExitCode.FAILED, False: ExitCode.DONE, None: ExitCode.NOT_EVALUABLE}


@dataclass(frozen=True)
class _ComparedResults(Options, title="The results"):
    """The results, and the baseline that they are compared with.

    Attributes:
        results: Results of audits (.json), two or more.
        fail_if_worse: Exit 1 if a result leaks significantly more than the baseline, by the membership advantage or the
            AUC, or record by record with --losses; exit 3 if a result cannot be compared with it.
        about: A table (.csv, .parquet) with a column result (file, model or number) and any of utility, utility_name,
            higher_is_better, strategy, category, model.
        measure: Estimate on the privacy axis; default: advantage.
        baseline: Result that the others are compared with; default: the first of exactly two.
    """

    results: tuple[Path, ...] = argument("RESULTS")
    about: Path | None = None
    measure: str | None = None
    baseline: Path | None = None
    fail_if_worse: bool = False

    def with_baseline(self) -> tuple[tuple[Path, ...], Path | None]:
        """Return the results, preceded by the baseline if it is not among them, and the path of the baseline."""
        if self.baseline is None:
            return self.results, None
        at = self.baseline.resolve()
        same = next((path for path in self.results if path.resolve() == at), None)
        return (self.results, same) if same is not None else ((self.baseline, *self.results), self.baseline)


@dataclass(frozen=True, kw_only=True)
class _ComparedLosses(shared.LossColumns, title="The losses, if all audits use the same records"):
    """The losses of the results, in any order: a result stores the hash of its losses.

    Attributes:
        losses: Table of losses of a result, as for auditor audit, with ids; repeat the option for each result. The audits are
            then compared record by record, which detects much smaller changes.
        id_column: Column of record ids.
        person_column: Column of data subjects, if there is one.
    """

    losses: tuple[Path, ...] = ()
    id_column: str = option(default="id", rare=True)
    person_column: str = option(default="person", rare=True)


def compare(
    compared: _ComparedResults, tables: _ComparedLosses, files: shared.PageFiles, common: shared.Common
) -> int:
    r"""Compare several audits: privacy against utility, and each against a baseline.

    Examples:
        Does this release leak more than the last one? Exit 1 if it does:
          auditor compare last.json this.json --fail-if-worse --html comparison.html

        The same test record by record, for two audits of the same records:
          auditor compare last.json this.json --losses last.csv --losses this.csv \
            --fail-if-worse

        Compare several models, with a table of their utility:
          auditor compare first.json second.json third.json --about models.csv \
            --html comparison.html

    Exit codes:
        0 done; 1 a result leaks more than the baseline (--fail-if-worse);
        2 bad input; 3 a result cannot be compared with it (--fail-if-worse).
    """
    from auditor.comparison.compare import compare_audits
    from auditor.report.comparison import stopped
    from auditor.report.terminal import comparison_text

    sources = tables.losses
    files.check(inputs=(*compared.results, *sources, compared.about, compared.baseline))
    paths, baseline = compared.with_baseline()
    if compared.fail_if_worse and baseline is None and len(paths) != 2:  # noqa: PLR2004
        raise InputError(
            f"--fail-if-worse needs a baseline, got {len(paths)} results without one; name it with --baseline FILE."
        )
    announce = console.announcer(quiet=common.quiet)
    announce(f"Reading {len(paths)} results ...")
    result = compare_audits(
        paths,
        about=compared.about,
        baseline=baseline,
        measure=compared.measure,
        losses=map(tables.read_table, sources),  # only once the results can be compared
    )
    announce("Writing ...")
    page = {} if files.html is None else {files.html: result.to_html()}
    summary = comparison_text(result, width=console.width(), color=console.colour())
    files.write(result.to_json(), summary=summary + "\n", quiet=common.quiet, texts=page)
    if not compared.fail_if_worse:
        return ExitCode.DONE
    console.explain(stopped(result))
    return _CODES[result.got_worse]


# --- The command `auditor audit`: from a table of losses, or a model, to a verdict ---


@dataclass(frozen=True, kw_only=True)
class _LossTables(shared.Columns, shared.LossColumns, title="The losses"):
    """One table of losses, or one table for each group.

    Attributes:
        losses: Table of losses (.csv, .tsv, .parquet, .npz, .arrow, .jsonl, a folder of .parquet or .csv, or an address such as
            s3://...) with a membership column; - reads CSV from standard input. Or a summary (auditor summarise). Or a model (.skops, .onnx, .keras), with its records in
            --members and --nonmembers, and --label.
        members: Table of member losses, instead of LOSSES; with a model as LOSSES, table of its training records. Needs
            --nonmembers.
        nonmembers: Table of non-member losses, or of records that the model has not seen. Needs --members.
        label_column: Column of true classes, to report by class.
    """

    losses: Path | None = argument("LOSSES", default=None)
    members: Path | None = None
    nonmembers: Path | None = None
    label_column: str | None = option(rare=True)

    @property
    def files(self) -> tuple[Path | None, ...]:
        """Every table, or None where it is missing."""
        return self.losses, self.members, self.nonmembers

    @property
    def inputs(self) -> tuple[Path | None, ...]:
        """Every table without standard input, which no output can replace."""
        return tuple(None if path == shared.STANDARD else path for path in self.files)

    @cached_property
    def table(self) -> Any:
        """The table of both groups, opened once."""
        from auditor.collectors.tables.opening import open_table

        return open_table(self.losses, memory=self.memory)

    @contextmanager
    def at_hand(self) -> Iterator["_LossTables"]:
        """Yield the same tables, with standard input copied to a temporary file."""
        sweep(Path(tempfile.gettempdir()))
        if self.losses != shared.STANDARD:
            yield self
            return
        if sys.stdin is None:
            raise InputError(
                "standard input is closed; send a table with | or <, or name a file in place of -."
            )
        with temporary("standard input.csv", sys.stdin.buffer) as path:
            try:
                yield replace(self, losses=path)
            except AuditorError as error:
                raise type(error)(str(error).replace(f"file {str(path)!r}", "standard input")) from None

    def read(self) -> tuple[str, Losses]:
        """Return the source of the losses, and the losses."""
        from auditor import collectors

        match self.files:
            case (Path(), None, None):
                return self.table.title, self.read_table(self.table)
            case (None, Path() as members, Path() as nonmembers):
                result = collectors.read_loss_pair(members, nonmembers, **self.columns())
                return f"{_name(members)} (members), {_name(nonmembers)} (non-members)", result
        raise InputError("give either one LOSSES table, or both --members and --nonmembers.")

    def read_features(self, columns: str | None) -> Any:
        """Return the feature columns of the tables of losses, if any are named."""
        if columns is None or all(self.files):
            return None
        from auditor import collectors

        # A file of one group may still have a column of membership.
        others = [self.member_column, self.loss_column, self.id_column, self.person_column]
        options: Any = {"columns": shared.names("--features", columns), "not_features": others}
        options["memory"] = self.memory
        if self.losses is not None:
            return collectors.read_features(self.table, member_column=self.member_column, **options)
        pair: Any = self.files[1:]
        return collectors.read_feature_pair(*pair, **options)


def _name(path: Path) -> str:
    """Return the name of a file, of an address without its query."""
    return Path(without_credentials(str(path))).name


# No table ends so.
_MODEL = re.compile(r"\.(skops|onnx|keras|h5|pt|pth|safetensors|joblib|pkl|ubj|cbm)", re.IGNORECASE)


@dataclass(frozen=True)
class _Scored(Options, title="A model as LOSSES"):
    """Options for a model whose losses are collected and audited in one step; `auditor collect` has more.

    Attributes:
        label: Column of true labels in both tables of records; required if LOSSES is a model, except for the task confidence.
        task: Task of the model: classification (default), multi-label, regression, gaussian, or confidence (without labels).
        classes: Label of each output column, separated by commas; default: the labels of the model, or 0, 1, ...
        trust_pickle: Whether the file of the model may run code here, as a pickle can.
        trusted_types: Type that a .skops or .keras file may contain besides the trusted ones; repeatable.
    """

    label: str | None = option(rare=True)
    task: str | None = option(rare=True)
    classes: str | None = option(rare=True)
    trust_pickle: bool = option(default=False, rare=True)
    trusted_types: tuple[str, ...] = option(default=(), rare=True)

    def read(self, tables: _LossTables, features: str | None, *, quiet: bool) -> tuple[str, Losses]:
        """Return the source of the losses, and the losses: from a table, or of a model on two tables of records."""
        if all(tables.files):
            return self._collected(tables, features, quiet=quiet)
        model = tables.losses
        there = [shared.spelled(name) for name, value in vars(self).items() if shared.is_used(value)]
        if there or (model is not None and _MODEL.fullmatch(model.suffix)):
            wrong = f"{there[0]} needs" if there else f"{str(model)!r} is a model and needs"
            raise InputError(
                f"{wrong} two tables of records: auditor audit MODEL --members FILE --nonmembers FILE --label COLUMN."
            )
        return tables.read()

    def _collected(self, tables: _LossTables, features: str | None, *, quiet: bool) -> tuple[str, Losses]:
        """Return the losses of a model on two tables of records."""
        from auditor import collectors
        from auditor.cli.collect import RecordTables

        files: Any = tables.files
        model, members, nonmembers = files
        if re.match("https?:", str(model)):
            raise InputError(
                f"LOSSES must be a table, or a model in a file, got {str(model)!r}; for a served model, collect the losses first"
                " (auditor collect), then audit them."
            )
        names = ("id_column", "group_column", "person_column", "memory")
        own: dict[str, Any] = {name: getattr(tables, name) for name in names}
        own |= {"label": self.label, "features": features, "members": members, "nonmembers": nonmembers}
        records = RecordTables(**own).read_with(task=self.task)
        source = f"{model.name} on {_name(members)} (members) and {_name(nonmembers)} (non-members)"
        announce = console.announcer(quiet=quiet)
        announce(f"Collecting the losses of {source}, as auditor collect does ...")
        with temporary("losses.parquet") as path, console.progress(quiet=quiet) as move:
            collectors.collect_to(
                path,
                collectors.ModelFile(model, trust_pickle=self.trust_pickle, trusted_types=self.trusted_types),
                **records,
                task=self.task,
                classes=None if self.classes is None else shared.names("--classes", self.classes),
                announce=announce,
                progress=move or (lambda _stage, _done, _total: None),
            )
            return source, collectors.read_losses(path, memory=sys.float_info.max)


@dataclass(frozen=True)
class _Trust(Options, title="Further checks"):
    """Data for further checks.

    Attributes:
        features: Feature columns of LOSSES, separated by commas, to check for shift and twins. With a model: its input columns.
        reference: Losses of the same records under a model trained on neither group, for a placebo audit.
        control: Losses of the same canaries under a model trained without noise, for a positive control of the claim.
    """

    features: str | None = None
    reference: Path | None = option(default=None, rare=True)
    control: Path | None = None


@dataclass(frozen=True)
class _RankedFiles(shared.ModelFiles):
    """Every format of the result, and the records ordered by exposure.

    Attributes:
        records: Write the records ordered by exposure (.csv or .parquet), for the data owner only.
    """

    records: Path | None = option(rare=True)

    def ranked(self, losses: Losses, *, seed: int) -> dict[Path, str | bytes]:
        """Return the file of ranked records, if it is requested."""
        if self.records is None:
            return {}
        import numpy as np

        from auditor.risk.ranking import rank_records

        return {self.records: rank_records(losses, rng=np.random.default_rng(seed)).as_file(self.records)}

    def check(self, *, inputs: Sequence[Path | None] = ()) -> None:
        """Refuse outputs that cannot be written, or have a wrong extension, before any work."""
        super().check(inputs=inputs)
        shared.refuse_ending("--set records", self.records)


@dataclass(frozen=True)
class _Context(Options, title="The report on the model"):
    """The declared context of the release.

    Attributes:
        context: Declared context of the release, for a reviewer: a file (TOML or JSON) with any of release, exposed,
            query_limits, privacy_unit, attacker, mitigations, owner, next_audit; in a configuration file also the table
            [audit.context].
    """

    context: Path | None = option(rare=True)  # or a table of the configuration file

    @property
    def file(self) -> Path | None:
        """The file with the context, if there is one."""
        return self.context if isinstance(self.context, Path) else None

    def declared(self) -> choices.Context | None:
        """Return the declared context of the release, or None."""
        if self.context is None:
            return None
        raw, named = settings.table_of(self.context)
        return choices.Context.from_table(raw, named=named)


_AUDIT = Of(
    AuditOptions,
    common=("delta", "confidence", "split", "model", "disclosure"),
    without=("claim", "features", "reference", "control", "context", "source", "command", "progress"),
    title="The audit",
)


def audit(
    tables: _LossTables,
    scored: _Scored,
    chosen: Annotated[Typed, _AUDIT],
    trust: _Trust,
    claimed: shared.ClaimOptions,
    context: _Context,
    gates: shared.ClaimGates,
    files: _RankedFiles,
    common: shared.Common,
) -> int:
    r"""Audit a model from a table of per-record losses (smaller means a better prediction), or from the model itself.

    Examples:
        How much does the model leak, by a table of its losses?
          auditor audit losses.csv --html report.html

        Members and non-members in two files, with scores that are larger for members:
          auditor audit --members train.csv --nonmembers holdout.csv \
            --loss-column score --higher-is-member

        Test a claim; membership was drawn at random, so that it can be judged:
          auditor audit losses.csv --split random --claim-epsilon 2 --claim-delta 1e-5

        Stop a pipeline if the model leaks too much:
          auditor audit losses.csv --fail-if "epsilon_bound.clopper_pearson > 1" \
            --fail-if "bayes_security.upper < 0.9" --json result.json --quiet

        Collect the losses of a model on two tables of records, and audit it:
          auditor audit model.skops --members train.csv --nonmembers holdout.csv \
            --label diagnosis --html report.html

    Exit codes:
        0 done, and every gate passed; 1 a gate failed or the claim is refuted;
        2 bad input; 3 a gate cannot be evaluated, or the claim could not be judged
        (unless --set allow-unjudged). If several apply: 2, then 1, then 3.
    """
    from auditor.api import audit_of

    files.check(inputs=(*tables.inputs, trust.reference, trust.control, claimed.schedule, context.file))
    # Built before any file is read, since it refuses invalid options.
    options = AuditOptions(**chosen, claim=claimed.claim(), context=context.declared())
    if isinstance(options.split, choices.UnknownSplit):
        goes = "with --split random or bernoulli: other splits have no such test"
        shared.refuse(chosen, "one_run_test", goes=goes)
    announce = console.announcer(quiet=common.quiet)
    announce("Reading losses ...")
    with tables.at_hand() as opened:
        source, losses = scored.read(opened, trust.features, quiet=common.quiet)
        features = opened.read_features(trust.features)
    extra = {"reference": trust.reference, "control": trust.control}
    others: dict[str, Any] = {
        name: tables.read_table(path) for name, path in extra.items() if path is not None
    }
    announce("Auditing ...")
    with console.progress(quiet=common.quiet) as move:
        result = audit_of(
            losses,
            replace(
                options,
                features=features,
                **others,
                source=source,
                model=options.model or (tables.losses.name if tables.losses and all(tables.files) else None),
                command=console.command_line(),
                progress=move and partial(move, "Fitting mixtures"),
            ),
        )
    result = settings.recorded(result)
    more = files.ranked(losses, seed=options.seed) | files.cards(result)
    if files.records is not None:
        announce(f"{files.records.name} lists every record: share it with the data owner only.")
    return files.write_all(gates.on(result), quiet=common.quiet, more=more)


# --- The command `auditor report`: show a stored result, publish a folder of results, or verify a result ---


@dataclass(frozen=True)
class _Stored(Options, title="The result"):
    """A stored result, or a folder of results.

    Attributes:
        result: Result of an audit (.json), of this release or an older one; or a folder of results, which becomes a site: an
            index with the decisions, a page for each result, and the history of each model. For a folder, --html names a new
            or empty folder, or an earlier site, which is replaced; default: site.
        verify: Check that the result is unaltered; with --losses, also that the losses reproduce its numbers, to 1e-9.
    """

    result: Path = argument("RESULT")
    verify: bool = False


@dataclass(frozen=True, kw_only=True)
class _SameLosses(_LossTables, title="The audited losses, for --verify"):
    """The losses to audit again, in their original order.

    Attributes:
        losses: Table of losses, as for auditor audit; the numbers are computed again from it.
    """

    losses: Path | None = None


def report(
    stored: _Stored,
    tables: _SameLosses,
    gates: shared.ClaimGates,
    files: shared.ModelFiles,
    common: shared.Common,
) -> int:
    r"""Show a stored result, publish a folder of results as a site, or verify a result.

    A hash proves that the result is unchanged since it was written. It does not prove who wrote it.

    Examples:
        Write the page of a stored result:
          auditor report result.json --html report.html

        Check a gate, and write the outcome for the pages of the pipeline:
          auditor report result.json --fail-if "auc.lower > 0.6" --junit gates.xml \
            --markdown summary.md

        Publish all results of a team as files that need no server:
          auditor report results --html public --open

        Is the result unaltered? Do the losses reproduce its numbers?
          auditor report result.json --verify
          auditor report result.json --verify --losses losses.csv

    Exit codes:
        0 done, and every gate passed; 1 a gate failed, the claim is refuted, or a
        result was altered; 2 bad input; 3 a gate cannot be evaluated, the claim
        could not be judged (unless --set allow-unjudged), or the result lacks the
        data for --verify. If several apply: 2, then 1, then 3.
    """
    is_folder = stored.result.is_dir()
    if not stored.verify:
        shared.refuse(
            tables, "losses", "members", "nonmembers", goes="with --verify, for the losses of the result"
        )
    if is_folder or stored.verify:
        goes = "with one result to show" + (", got a folder" if is_folder else ", got --verify")
        for_folder = {"html", "open"} if is_folder and not stored.verify else set()
        shared.refuse(files, *(vars(files).keys() - for_folder), goes=goes)
        # The policy of a project is for all of it.
        spared = {"policy", "severity"} if is_folder else settings.of_file()
        shared.refuse(gates, *(vars(gates).keys() - spared), goes=goes)
    if is_folder and stored.verify:
        raise InputError("--verify goes with one result, got a folder; name a result in the folder.")
    if is_folder:
        return _site(stored, files, gates, quiet=common.quiet)
    if stored.verify:
        return _verify(stored.result, tables, quiet=common.quiet)
    from auditor.api import read_result

    files.check(inputs=(stored.result,))
    result = read_result(stored.result)
    return files.write_all(gates.on(result), quiet=common.quiet, more=files.cards(result))


_WORKERS = 4  # processes, of which each takes some 200 MB


def _site(stored: _Stored, files: shared.ModelFiles, gates: shared.ClaimGates, *, quiet: bool) -> int:
    """Write a static site for a folder of results: an index, a page for each result, and the history of each model."""
    from auditor.report.folder import site

    out = files.html or Path("site")
    written = site(stored.result, out, limited=gates.on, workers=min(os.cpu_count() or 1, _WORKERS))
    if not quiet:
        last = [f"Wrote {len(written.pages)} pages.", f"Start with {out / written.pages[0]}"]
        lines = [*(f"Skipped: {reason}" for reason in written.skipped), *last]
        console.say("".join(f"{clean(line)}\n" for line in lines))
    if files.open:
        console.open_page(out / written.pages[0])
    return ExitCode.DONE


def _verify(path: Path, tables: _SameLosses, *, quiet: bool) -> int:
    """Check that a result is unaltered and, with losses, that they reproduce its numbers."""
    from auditor.results.reading import raw_result

    _, raw, content = raw_result(path)
    origin = raw["provenance"] if isinstance(raw.get("provenance"), dict) else {}
    stored = take_hash(raw)
    outcomes = [_compared("content", stored, stored and content_hash(json.loads(content)))]
    if ALTERED in [item.get("name") for item in raw.get("checks") or () if isinstance(item, dict)]:
        outcomes.append((False, "The result was altered after it was written, before its present hash."))
    if any(tables.files):
        with tables.at_hand() as opened:
            _, losses = opened.read()
        outcomes.append(_compared("losses", origin.get("input_sha256"), input_hash(losses)))
        outcomes += _again(path, losses) if outcomes[-1][0] else []
    if not quiet:
        console.say("".join(f"✓ {words}\n" for ok, words in outcomes if ok))
    console.explain(f"{'?' if ok is None else '✕'} {words}" for ok, words in outcomes if not ok)
    states = [ok for ok, _ in outcomes]
    return ExitCode.FAILED if False in states else ExitCode.NOT_EVALUABLE if None in states else ExitCode.DONE


_NEARLY = 1e-9
_MOST = 20  # listed differences
_COUNTS = ("n_member", "n_nonmember", "training_size", "delta", "confidence")


def _compared(what: str, stored: object, now: object) -> tuple[bool | None, str]:
    """Return whether a hash matches the stored one, None if none is stored, with a sentence."""
    if not stored:
        return None, f"SHA-256 of the {what}: no hash in this result."
    same = stored == now
    return same, f"SHA-256 of the {what}: {now}{'' if same else f', but the result has {stored!s:.64}'}."


def _again(path: Path, losses: Losses) -> list[tuple[bool | None, str]]:
    """Return whether a new audit of these losses reproduces the numbers, with a sentence for each difference."""
    from auditor import api
    from auditor.estimators.adaptive import ADAPTIVE
    from auditor.results.reading import read_result

    result = read_result(path)
    choices, split = result.provenance.get("choices"), result.data.get("split")
    own = split == "bernoulli" and result.data.get("inclusion") is None and losses.inclusion is None
    reason = "the odds of membership vary by record; add a column inclusion" if own else ""
    if split == "propensity":
        reason = "the estimated propensities depend on features, which a result does not store"
    if not choices:
        reason = "the result does not store its settings"
    if reason:
        return [(None, f"Numbers: not computed again, since {reason}.")]
    again = api.audit(losses, **AuditOptions.restored(choices))
    # A verdict depends on checks too, which may need further files, and learnt guesses use features.
    judged = not any(choices.get(name) for name in ("features", "reference", "control"))
    without = (ADAPTIVE,) if choices.get("features") else ()
    old, new = (_numbers(item, without, judged=judged) for item in (result, again))
    differing: list[tuple[bool | None, str]] = [
        (False, f"Number {name}: {old.get(name, 'missing')} in the result, {new.get(name, 'missing')} again.")
        for name in old | new
        if not _agree(old.get(name), new.get(name))
    ]
    if differing:
        return [*differing[:_MOST], (False, f"Numbers: {len(differing):,} of {len(new):,} differ.")]
    but = f" ({ADAPTIVE}, which depends on features, was left out)" if without else ""
    return [(True, f"Numbers: all {len(new):,} were computed again and agree to 1e-9{but}.")]


def _numbers(result: AuditResult, without: Collection[str], *, judged: bool) -> dict[str, Any]:
    """Return every number of a result by its name and position, but those of some rows."""
    outcome = {name: result.data.get(name) for name in _COUNTS}
    under = [(f"under {outcome.policy}", item) for outcome in result.policies for item in outcome.estimates]
    for place, (label, item) in enumerate([*result.by_slice, *under]):
        if item.name in without:
            continue
        named = " ".join((label, item.name, f"(estimate {place + 1})")).strip()
        outcome |= {f"{end} of {named}": getattr(item, end) for end in ("value", "lower", "upper")}
        outcome[f"ceiling of {named}"] = ceiling(item)
    outcome |= {
        f"claimed {item.metric} ({place + 1})": item.value for place, item in enumerate(result.claims)
    }
    return {**outcome, "verdict": result.verdict} if judged else outcome


def _agree(x: Any, y: Any) -> bool:
    numbers = isinstance(x, int | float) and isinstance(y, int | float)
    return math.isclose(x, y, rel_tol=_NEARLY, abs_tol=_NEARLY) if numbers else bool(x == y)
