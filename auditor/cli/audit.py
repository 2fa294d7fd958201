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
from typing import Annotated, Any

from auditor.cli import console, options as shared, settings
from auditor.cli.parsing import Of, Options, argument, option
from auditor.core import options as choices
from auditor.core.errors import AuditorError, ExitCode, InputError
from auditor.core.files import sweep, temporary
from auditor.core.numbers import clean
from auditor.core.values import Losses
from auditor.estimators.setting import AuditOptions
from auditor.results.document import ALTERED, AuditResult, ceiling, content_hash, input_hash, take_hash

# --- The command `auditor compare`: several results beside each other, and the new one against the old ---


_CODES = {True: ExitCode.FAILED, False: ExitCode.DONE, None: ExitCode.NOT_EVALUABLE}


@dataclass(frozen=True)
class _ComparedResults(Options, title="What is compared"):
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

    results: tuple[Path, ...] = argument("RESULTS")
    about: Path | None = None
    measure: str | None = None
    baseline: Path | None = None
    fail_if_worse: bool = False

    def with_baseline(self) -> tuple[tuple[Path, ...], Path | None]:
        """Return the results, with the baseline first where it is not among them, and as it is named there."""
        if self.baseline is None:
            return self.results, None
        at = self.baseline.resolve()
        same = next((path for path in self.results if path.resolve() == at), None)
        return (self.results, same) if same is not None else ((self.baseline, *self.results), self.baseline)


@dataclass(frozen=True, kw_only=True)
class _ComparedLosses(shared.LossColumns, title="The losses, where all audits are of the same records"):
    """What the results were made of, in any order: a result keeps a hash of its losses.

    Attributes:
        losses: Table that a result was made of, as auditor audit reads it, with ids; repeat it for each result: then the
            audits are compared record by record, which sees far smaller changes.
        id_column: Column of record ids.
        person_column: Column of data subjects, if there is one.
    """

    losses: tuple[Path, ...] = ()
    id_column: str = option(default="id", rare=True)
    person_column: str = option(default="person", rare=True)


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
    from auditor.comparison.compare import compare_audits
    from auditor.report.comparison import stopped
    from auditor.report.terminal import comparison_text

    sources = tables.losses
    files.check(inputs=(*compared.results, *sources, compared.about, compared.baseline))
    paths, baseline = compared.with_baseline()
    if compared.fail_if_worse and baseline is None and len(paths) != 2:  # noqa: PLR2004
        raise InputError(
            f"--fail-if-worse needs a baseline, got {len(paths)} results and none named; name one with --baseline FILE."
        )
    announce = console.announcer(quiet=common.quiet)
    announce(f"Reading {len(paths)} results ...")
    losses = [tables.read_table(path) for path in sources]
    result = compare_audits(
        paths, about=compared.about, baseline=baseline, measure=compared.measure, losses=losses
    )
    announce("Writing ...")
    page = {} if files.html is None else {files.html: result.to_html()}
    shown = comparison_text(result, width=console.width(), color=console.colour())
    files.write(result.to_json(), shown=shown + "\n", quiet=common.quiet, texts=page)
    if not compared.fail_if_worse:
        return ExitCode.DONE
    console.explain(stopped(result))
    return _CODES[result.got_worse]


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

    losses: Path | None = argument("LOSSES", default=None)
    members: Path | None = None
    nonmembers: Path | None = None
    label_column: str | None = option(rare=True)

    @property
    def files(self) -> tuple[Path | None, ...]:
        """Every table, where it was given."""
        return self.losses, self.members, self.nonmembers

    @property
    def inputs(self) -> tuple[Path | None, ...]:
        """The same, but for standard input, which no output can replace."""
        return tuple(None if path == shared.STANDARD else path for path in self.files)

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
                result = collectors.read_loss_pair(members, nonmembers, **self.columns())
                return f"{members.name} (members), {nonmembers.name} (non-members)", result
        raise InputError("give either one LOSSES table, or both --members and --nonmembers.")

    def read_features(self, columns: str | None) -> Any:
        """Return the feature columns of the tables that the losses are in, if any were named."""
        if columns is None:
            return None
        from auditor import collectors

        # Files of one group may still have a column that says which one.
        others = [self.member_column, self.loss_column, self.id_column, self.person_column]
        options: Any = {"columns": shared.names("--features", columns), "not_features": others}
        options["memory"] = self.memory
        if self.losses is not None:
            return collectors.read_features(self.table, member_column=self.member_column, **options)
        pair: Any = self.files[1:]
        return collectors.read_feature_pair(*pair, **options)


@dataclass(frozen=True)
class _Trust(Options, title="Whether it can be trusted"):
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
    """

    records: Path | None = option(rare=True)

    def ranked(self, losses: Losses, *, seed: int) -> dict[Path, str | bytes]:
        """Return the file of ranked records, where it is wanted."""
        if self.records is None:
            return {}
        import numpy as np

        from auditor.risk.ranking import rank_records

        return {self.records: rank_records(losses, rng=np.random.default_rng(seed)).as_file(self.records)}

    def check(self, *, inputs: Sequence[Path | None] = ()) -> None:
        """Refuse what cannot be written, or not for its name, before any work is done."""
        super().check(inputs=inputs)
        shared.refuse_ending("--set records", self.records)


@dataclass(frozen=True)
class _Context(Options, title="What the report says of the model"):
    """What is declared of the release.

    Attributes:
        context: What is declared of the release, for a reviewer: a file (TOML or JSON) with any of release, exposed,
            query_limits, privacy_unit, attacker, mitigations, owner, next_audit; in a configuration file also the table
            [audit.context].
    """

    context: Path | None = option(rare=True)  # or a table of the file with settings

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


_AUDIT = Of(
    AuditOptions,
    common=("delta", "confidence", "coverage", "split", "seed", "model", "disclosure"),
    without=("nonmember", "claim", "features", "reference", "context", "source", "command", "progress"),
    title="How the audit is made",
)


def audit(
    tables: _LossTables,
    chosen: Annotated[dict[str, Any], _AUDIT],
    trust: _Trust,
    claimed: shared.ClaimOptions,
    context: _Context,
    gates: shared.ClaimGates,
    files: _RankedFiles,
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
          auditor audit losses.csv --model "release 7" \
            --set "utility=0.87:test accuracy" --json result.json

    Exit codes:
        0 done, and every gate passed; 1 a gate failed or the claim is refuted;
        2 bad input; 3 a gate cannot be evaluated, or the claim could not be judged
        (unless --set allow-unjudged). If several apply: 2, then 1, then 3.
    """
    from auditor.api import audit_of

    wanted = gates.parsed()
    files.check(inputs=(*tables.inputs, trust.reference, claimed.schedule, context.file))
    # Built before anything is read, since it refuses options that cannot be used.
    options = AuditOptions(**chosen, claim=claimed.claim(), context=context.declared())
    if isinstance(options.split, choices.UnknownSplit):
        goes = "with --split random or bernoulli: without, there is none"
        shared.refuse_values(chosen, _AUDIT, "one_run_test", goes=goes)
    announce = console.announcer(quiet=common.quiet)
    announce("Reading losses ...")
    with tables.at_hand() as opened:
        source, losses = opened.read()
        features = opened.read_features(trust.features)
    reference = None if trust.reference is None else tables.read_table(trust.reference)
    announce("Auditing ...")
    with console.progress(quiet=common.quiet) as move:
        result = audit_of(
            losses,
            replace(
                options,
                features=features,
                reference=reference,
                source=source,
                command=console.command_line(),
                progress=move and partial(move, "Fitting mixtures"),
            ),
        )
    result = settings.recorded(result)
    more = files.ranked(losses, seed=options.seed) | files.cards(result)
    if files.records is not None:
        announce(f"{files.records.name} lists every record: it is for the data's owner only.")
    return files.write_all(result, gates.judged(result, wanted), quiet=common.quiet, more=more)


# --- The command `auditor report`: a stored result again, a folder of them as pages, or whether one is as it was written ---


@dataclass(frozen=True)
class _Stored(Options, title="The result"):
    """A stored result, or a folder of them.

    Attributes:
        result: Result of an audit (.json), of this release or an older one; or a folder of results, which becomes a site: an
            index, a page for each, and a comparison.
        out: Of a folder: where the pages go, a new or an empty folder, or an earlier site, which is replaced; default: site.
        verify: Check that the result is as it was written, and with --losses that they give its numbers, to 1e-9.
    """

    result: Path = argument("RESULT")
    out: Path | None = None
    verify: bool = False


@dataclass(frozen=True, kw_only=True)
class _SameLosses(_LossTables, title="The losses that it was made of, for --verify"):
    """The losses to audit again, in the order in which they were audited.

    Attributes:
        losses: Table of losses, as auditor audit read it: the numbers are computed again from it.
    """

    losses: Path | None = None


def report(
    stored: _Stored,
    tables: _SameLosses,
    gates: shared.ClaimGates,
    files: shared.ModelFiles,
    common: shared.Common,
) -> int:
    r"""Show a stored result again, make a site of a folder of them, or verify one; without the losses.

    A hash shows that nothing changed since the result was written, and not who wrote it.

    Examples:
        Make the page of a stored result again:
          auditor report result.json --html report.html

        Ask a gate of it, and keep the answer for the pipeline's own pages:
          auditor report result.json --fail-if "auc.lower > 0.6" --junit gates.xml \
            --markdown summary.md

        Share all results of a team as files that need no server:
          auditor report results --out public

        Did anybody change this result? Do these losses give its numbers?
          auditor report result.json --verify
          auditor report result.json --verify --losses losses.csv

    Exit codes:
        0 done, and every gate passed; 1 a gate failed, the claim is refuted, or a
        result is not as it was written; 2 bad input; 3 a gate cannot be evaluated,
        the claim could not be judged (unless --set allow-unjudged), or the result
        does not keep what --verify needs. If several apply: 2, then 1, then 3.
    """
    is_folder = stored.result.is_dir()
    if stored.result.is_file():
        shared.refuse(stored, "out", goes="with a folder of results, got a file as RESULT; leave it out")
    if not stored.verify:
        shared.refuse(
            tables, "losses", "members", "nonmembers", goes="with --verify: it is what the result was made of"
        )
    if is_folder or stored.verify:
        goes = "with one result that is shown" + (", got a folder" if is_folder else ", got --verify")
        shared.refuse(files, *vars(files), goes=goes)
        shared.refuse(gates, *vars(gates), goes=goes)
    if is_folder and stored.verify:
        raise InputError("--verify goes with one result, got a folder; name a result in it.")
    if is_folder:
        return _site(stored, quiet=common.quiet)
    if stored.verify:
        return _verify(stored.result, tables, quiet=common.quiet)
    from auditor.api import read_result

    wanted = gates.parsed()
    files.check(inputs=(stored.result,))
    result = read_result(stored.result)
    return files.write_all(result, gates.judged(result, wanted), quiet=common.quiet, more=files.cards(result))


def _site(stored: _Stored, *, quiet: bool) -> int:
    """Make one static site of a folder of results: an index, a page for each, and a comparison."""
    from auditor.report.folder import site

    out = stored.out or Path("site")
    written = site(stored.result, out)
    if not quiet:
        last = [f"Wrote {len(written.pages)} pages.", f"Begin with {out / written.pages[0]}"]
        lines = [*(f"Skipped: {reason}" for reason in written.skipped), *last]
        console.say("".join(f"{clean(line)}\n" for line in lines))
    return ExitCode.DONE


def _verify(path: Path, tables: _SameLosses, *, quiet: bool) -> int:
    """Check that a result is as it was written, and with its losses that they give its numbers."""
    from auditor.results.reading import raw_result

    _, raw, content = raw_result(path)
    origin = raw["provenance"] if isinstance(raw.get("provenance"), dict) else {}
    kept = take_hash(raw)
    outcomes = [_compared("content", kept, kept and content_hash(json.loads(content)))]
    if ALTERED in [item.get("name") for item in raw.get("checks") or () if isinstance(item, dict)]:
        outcomes.append((False, "Altered since it was written, before its present hash was made."))
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
_MOST = 20  # numbers that differ are listed
_COUNTS = ("n_member", "n_nonmember", "training_size", "delta", "confidence")


def _compared(what: str, kept: object, now: object) -> tuple[bool | None, str]:
    """Whether a hash is the one that the result keeps, null where it keeps none; and that in words."""
    if not kept:
        return None, f"SHA-256 of the {what}: no hash kept in this result."
    same = kept == now
    return same, f"SHA-256 of the {what}: {now}{'' if same else f', but the result keeps {kept!s:.64}'}."


def _again(path: Path, losses: Losses) -> list[tuple[bool | None, str]]:
    """Whether the audit of these losses, made again, gives the numbers of the result; each that differs by itself."""
    from auditor import api
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
    again = api.audit(losses, **{"disclosure": "insiders", **AuditOptions.restored(choices)})
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


def _numbers(result: AuditResult, *, judged: bool) -> dict[str, Any]:
    """Every number of a result by its name and place."""
    outcome = {name: result.data.get(name) for name in _COUNTS}
    under = [(f"under {outcome.policy}", item) for outcome in result.policies for item in outcome.estimates]
    for place, (label, item) in enumerate([*result.by_slice, *under]):
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
