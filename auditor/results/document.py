"""The results of audits: everything that was found, with nothing left to recompute and no raw losses inside.

The JSON form holds what the page shows. Infinite numbers are the strings ``inf`` and ``-inf``, missing ones null.
"""

import datetime as dt
import hashlib
import json
import math
import os
import platform
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar, cast

from auditor._version import __version__
from auditor.core import numbers, validate
from auditor.core.errors import InputError, MissingExtraError
from auditor.core.fields import Confidence, Count, Keys, Must, Number, OrInfinite
from auditor.core.files import kept
from auditor.core.numbers import plain
from auditor.core.values import Check, Claim, Comparison, Estimate, Losses, Verdict, weighted
from auditor.curves.views import Histogram, NamedCurve
from auditor.results.data import (
    AuditData,
    InstancesData,
    LabelsData,
    PointData,
    Provenance,
    ProvenanceOfInstances,
    RunsData,
    ShownData,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from auditor.report import Gates


SCHEMA_VERSION = "3"


@dataclass(frozen=True)
class TopRecord:
    """A training record among those whose losses speak most for membership; its loss is not kept.

    Attributes:
        rank: Place among all audited records, 1 for the highest odds; records of equal odds share one.
        id: As given; the person where a score stands for all records of one.
        group: As given, or null.
        person: As given, or null.
        odds: Estimated odds that a record with such a loss is a training record, if half of all records were.
        shared: How many training records have the same odds, this one too: which of them are named is arbitrary. Null in
            a result of an older release.
    """

    rank: Annotated[int, Must(ge=1)]
    id: str
    group: str | None
    person: str | None
    odds: Annotated[float, OrInfinite(least=0.0)]
    shared: Count | None = None


class SliceKind(StrEnum):
    """What the records of a slice share."""

    CLASS = "class"
    GROUP = "group"
    PERCENTILE = "percentile"


@dataclass(frozen=True)
class Slice:
    """Some of the audited records, and what was found among them.

    Attributes:
        kind: A label in ``Losses.group``, or a band of loss percentiles of all records.
        label: Which one; in brackets what stands for several groups or for records without a label.
        n_member: Members in it.
        n_nonmember: Non-members in it.
        confidence: With which each quantity holds for all compared slices at once.
        compared: How many slices share the error; the estimates' own confidence is 1 - (1 - confidence)/compared.
        estimates: Of a group ``epsilon_bound.clopper_pearson``, ``auc`` and ``advantage``; of a band ``member_share``.
    """

    kind: SliceKind
    label: str
    n_member: Count
    n_nonmember: Count
    confidence: Confidence
    compared: Count
    estimates: Annotated[tuple[Estimate, ...], Must(min_length=1)]

    def __post_init__(self) -> None:
        if not self.estimates:
            raise InputError(f"slice {reprlib.repr(self.label)} has no estimates.")

    @property
    def reason(self) -> str | None:
        """Why this slice has no numbers, or null."""
        return self.estimates[0].reason

    def estimate(self, name: str) -> Estimate:
        """Return the estimate of this name.

        Raises:
            InputError: There is none; the message names the nearest.
        """
        return named("estimate", name, self.estimates)

    def row(self) -> dict[str, Any]:
        """Return the slice as one flat row: names of estimates, with ``_lower`` and ``_upper`` for their intervals."""
        row: dict[str, Any] = {"kind": str(self.kind)}
        row |= {name: getattr(self, name) for name in ("label", "n_member", "n_nonmember")}
        for item in self.estimates:
            row[item.name] = item.value
            if item.name == "epsilon_bound.clopper_pearson":
                row["ceiling"] = item.details.get("ceiling")
            else:
                row |= {f"{item.name}_lower": item.lower, f"{item.name}_upper": item.upper}
        if self.kind is SliceKind.PERCENTILE:
            row["lift"] = self.estimates[0].details.get("lift")
        return row | {"confidence": self.confidence, "compared": self.compared, "reason": self.reason}


@dataclass(frozen=True)
class PolicyFound:
    """One way to answer, and what the same attacker finds by such answers about the same records.

    Attributes:
        policy: ``full`` outputs, ``digits=N`` decimals, the ``topK`` largest probabilities, or the ``label``.
        confidence: With which each quantity holds for all policies at once.
        compared: How many policies share the error; the estimates' own confidence is 1 - (1 - confidence)/compared.
        estimates: ``auc``, ``advantage``, ``tpr_at_fpr.*``, and ``epsilon_bound.one_run`` where the split allows.
        at_least: Lower limits for the best attacker, by the name of an estimate: the largest among this policy and those
            whose answers follow from its answers.
    """

    policy: str
    confidence: Confidence
    compared: Count
    estimates: Annotated[tuple[Estimate, ...], Must(min_length=1)]
    at_least: Mapping[str, Number]


# --- The results: what an audit of one model, of several models and of many runs found, or what a training promises ---


Item = TypeVar("Item", Estimate, Check)


def named(kind: str, name: str, items: Iterable[Item]) -> Item:
    """Return the item of that name; of several the last.

    Raises:
        InputError: There is none; the message names the nearest.
    """
    by_name = {item.name: item for item in items}
    return by_name[validate.known(kind, name, by_name)]


@dataclass(frozen=True, eq=False, repr=False)
class Document:
    """What any audit found, and the methods that show it, which load `auditor.report` when they are called.

    Attributes:
        data: What was audited, and what was declared of it.
        estimates: In the order in which a report shows them.
        claims: What the training description promises.
        comparisons: Each claim beside the estimates.
        checks: Whether the numbers can be relied on.
        verdict: On the claim; null without a claim.
        provenance: Versions, input hashes, seed, command line, time.
        curves: For the trade-off plot, thinned.
    """

    kind: ClassVar[str | None] = None  # as JSON says it
    keys: ClassVar[tuple[str, ...]]  # of JSON, in order

    data: Mapping[str, Any]
    estimates: tuple[Estimate, ...]
    claims: tuple[Claim, ...]
    comparisons: tuple[Comparison, ...]
    checks: tuple[Check, ...]
    verdict: Verdict | None
    provenance: Annotated[Mapping[str, Any], Keys(Provenance)]
    curves: tuple[NamedCurve, ...]

    @property
    def altered(self) -> bool:
        """Whether somebody changed its file since it was written: it then stays marked, written again too."""
        return any(item.name == ALTERED for item in self.checks)

    def estimate(self, name: str) -> Estimate:
        """Return the estimate of that name.

        Raises:
            InputError: There is none; the message names the nearest.
        """
        return named("estimate", name, self.estimates)

    def check(self, name: str) -> Check:
        """Return the check of that name.

        Raises:
            InputError: There is none; the message names the nearest.
        """
        return named("check", name, self.checks)

    def to_frame(self) -> "pd.DataFrame":
        """Return the estimates as a pandas DataFrame, one row each, indexed by name."""
        import pandas as pd

        columns = ["value", "lower", "upper", "confidence", "delta", "adjacency", "subject", "method"]
        rows = [{name: getattr(item, name) for name in columns} for item in self.estimates]
        index = pd.Index([item.name for item in self.estimates], name="name")
        return pd.DataFrame(rows, columns=columns, index=index)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form as plain dictionaries, lists, numbers and strings."""
        kind = {} if self.kind is None else {"kind": self.kind}
        result = {**kind, **{name: plain(getattr(self, name)) for name in self.keys}}
        return {**result, "provenance": {**result["provenance"], CONTENT_HASH: content_hash(result)}}

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the JSON text; with a path, also write it there, whole or not at all.

        Raises:
            InputError: The path is neither a text nor a path.
            OutputError: The path cannot be written.
        """
        return kept(json.dumps(self.to_dict(), indent=2, allow_nan=False, ensure_ascii=False) + "\n", path)

    def to_html(self, path: str | os.PathLike[str] | None = None, *, gates: "Gates" = ()) -> str:
        """Return the report as one offline HTML page; with a path, also write it there, whole or not at all.

        Args:
            path: Where to write it.
            gates: Conditions that the page shows with their outcomes, as `auditor.check_gates` takes them.

        Raises:
            InputError: A gate cannot be read, or names nothing that an audit has.
            OutputError: The path cannot be written.
        """
        from auditor import report

        return kept(report.render([self], gates=report.check_gates(self, gates)), path)

    def to_markdown(self, path: str | os.PathLike[str] | None = None, *, gates: "Gates" = ()) -> str:
        """Return a summary for a pull request in GitHub-flavoured Markdown; with a path, also write it there.

        Args:
            path: Where to write it, whole or not at all.
            gates: Conditions to judge the audit by, as `auditor.check_gates` takes them.

        Raises:
            InputError: A gate cannot be read, or names nothing that an audit has.
            OutputError: The path cannot be written.
        """
        from auditor import report

        return kept(report.markdown(self, gates=report.check_gates(self, gates)), path)

    def to_junit(self, path: str | os.PathLike[str] | None = None, *, gates: "Gates" = ()) -> str:
        """Return the claim, the gates and the checks as JUnit XML for build servers; with a path, also write it there.

        Args:
            path: Where to write it, whole or not at all.
            gates: Conditions to judge the audit by, as `auditor.check_gates` takes them.

        Raises:
            InputError: A gate cannot be read, or names nothing that an audit has.
            OutputError: The path cannot be written.
        """
        from auditor import report

        return kept(report.junit(self, gates=report.check_gates(self, gates)), path)

    def to_sarif(self, path: str | os.PathLike[str] | None = None, *, gates: "Gates" = ()) -> str:
        """Return what somebody has to look at as SARIF 2.1.0 for code hosts; with a path, also write it there.

        Args:
            path: Where to write it, whole or not at all.
            gates: Conditions to judge the audit by, as `auditor.check_gates` takes them.

        Raises:
            InputError: A gate cannot be read, or names nothing that an audit has.
            OutputError: The path cannot be written.
        """
        from auditor import report

        return kept(report.sarif(self, gates=report.check_gates(self, gates)), path)

    def __str__(self) -> str:
        """Return what the terminal shows."""
        from auditor import report

        return str(report.audit_text(self))

    def __repr__(self) -> str:
        """Say in one line what was audited and what was found."""
        from auditor import report

        shown = report.view_of(self)
        return f"{type(self).__name__}({numbers.clean(shown.model)!r}: {shown.opening[0][0].word})"

    def __getitem__(self, name: str) -> Estimate:
        """Return the estimate of that name, such as ``result["auc"]``.

        Raises:
            InputError: There is none; the message names the nearest.
        """
        result: Estimate = self.estimate(name)
        return result

    def __iter__(self) -> Iterator[str]:
        """Go through the names of the estimates, so that ``"auc" in result`` asks for one."""
        return (item.name for item in self.estimates)

    def plot(self, name: str | None = None) -> "Figure | None":
        """Return a figure of the report, by default the first that there is; see `figure`."""
        return self.figure(name) if name is not None else next(iter(self.figures().values()), None)

    def log_to_mlflow(self, *, folder: str = "privacy") -> None:
        """Log the numbers with their ends as metrics, and the JSON and the page as artifacts, to the active MLflow run.

        Args:
            folder: Of the artifacts, and what the names of metrics and the tag of the verdict begin with.

        Raises:
            MissingExtraError: MLflow is not installed.
        """
        try:
            import mlflow
        except ImportError as error:
            raise MissingExtraError(
                "logging to MLflow needs MLflow, which cannot be imported here: pip install 'privacy-auditor[mlflow]'."
            ) from error
        metrics = {
            f"{folder}.{item.name}{'' if end == 'value' else f'.{end}'}": number
            for item in self.estimates
            for end in ("value", "lower", "upper")
            if (number := getattr(item, end)) is not None and math.isfinite(number)
        }
        mlflow.log_metrics(metrics)
        mlflow.set_tag(f"{folder}.verdict", self.verdict or "no claim")
        mlflow.log_text(self.to_json(), f"{folder}/result.json")
        mlflow.log_text(self.to_html(), f"{folder}/report.html")

    def figure(self, name: str) -> "Figure | None":
        """Return a figure of the report as a matplotlib ``Figure``, or null where this audit has no data for it.

        Args:
            name: One of `auditor.report.figures.FIGURES`, such as ``tradeoff-log`` or ``losses``.

        Raises:
            InputError: There is no figure of that name; the message names the nearest.
        """
        from auditor.report.figures import gallery as figures

        return figures.figure(self, name)

    def figures(self) -> "dict[str, Figure]":
        """Return every figure that this audit has data for, by name, in the order of the report."""
        from auditor.report.figures.gallery import FIGURES

        drawn = {name: self.figure(name) for name in FIGURES}
        return {name: result for name, result in drawn.items() if result is not None}

    def _repr_html_(self) -> str:
        """Return the card that a notebook shows."""
        from auditor import report

        return str(report.card(self))


@dataclass(frozen=True, eq=False, repr=False)
class AuditResult(Document):
    """What an audit found.

    Attributes:
        data: Numbers of records, training size, delta, confidence, what was declared, what the losses are.
        estimates: In the order in which a report shows them.
        claims: What the training description promises.
        comparisons: Each claim beside the estimates.
        checks: Whether the numbers can be relied on.
        slices: The audit by group and by loss percentile, with one error probability for all.
        curves: For the trade-off plot, thinned.
        histograms: Binned losses.
        verdict: On the claim; null without a claim.
        provenance: Versions, input hash, seed, command line, time.
        top_records: The training records that look most exposed, by id; empty where records have none.
        policies: What answering less would help, the full outputs first; empty where no policy was scored.
    """

    keys = (
        *("schema_version", "verdict", "data", "estimates", "claims", "comparisons", "checks"),
        *("slices", "top_records", "policies", "curves", "histograms", "provenance"),
    )

    data: Annotated[Mapping[str, Any], Keys(AuditData)]
    histograms: tuple[Histogram, ...]
    schema_version: str = SCHEMA_VERSION
    slices: tuple[Slice, ...] = ()
    top_records: tuple[TopRecord, ...] = ()
    policies: tuple[PolicyFound, ...] = ()

    @property
    def by_slice(self) -> list[tuple[str, Estimate]]:
        """Every estimate with the slice that it is of: first those of all records, whose slice is nothing."""
        parts = [(f"{one.kind}: {one.label}", one.estimates) for one in self.slices]
        return [(label, item) for label, items in (("", self.estimates), *parts) for item in items]

    def to_model_card(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the audit as part of a model card for the Hugging Face Hub; with a path, also write it there.

        It begins with the metadata (``model-index``) that belongs at the top of the card, and goes on with a section in
        Markdown.

        Args:
            path: Where to write it, whole or not at all.

        Raises:
            OutputError: The path cannot be written.
        """
        from auditor import report

        return kept(report.model_card(self), path)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class InstancesResult(Document):
    """What several models of one training mechanism show together.

    Attributes:
        data: Numbers of instances and records, delta, confidence, what was declared and claimed.
        estimates: ``epsilon_bound.instances``, ``epsilon_bar`` and ``epsilon_bar.log_mean_exp``.
        claims: What the training description promises.
        comparisons: The claim in the form that is judged, beside the certified bound.
        verdict: On the claim; null without a claim.
        provenance: Versions, input hashes, seed, time.
        checks: Each check at its worst over the models.
        curves: The rates averaged over the models, with the claimed curve, thinned.
    """

    kind = "instances"
    keys = (
        *("schema_version", "verdict", "data", "estimates", "claims", "comparisons", "checks", "curves"),
        "provenance",
    )

    data: Annotated[Mapping[str, Any], Keys(InstancesData)]
    provenance: Annotated[Mapping[str, Any], Keys(ProvenanceOfInstances)]
    schema_version: str = SCHEMA_VERSION
    checks: tuple[Check, ...] = ()
    curves: tuple[NamedCurve, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RunsResult(Document):
    """What many runs of one training mechanism show about it.

    Attributes:
        data: Numbers of runs, the threshold and its counts, delta, confidence, what was declared and claimed.
        estimates: ``epsilon_bound.order_statistics`` or ``epsilon_bound.sequential``, which alone judges, and for
            reading, at one threshold, ``epsilon_bound.clopper_pearson``, ``epsilon_bound.katz``,
            ``epsilon_bound.bayesian`` and ``epsilon_bound.gdp``.
        claims: What the training description promises.
        comparisons: The claim in the form that is judged, beside the row that judges it.
        checks: Whether the scores can show anything, and look like runs of their own.
        verdict: On the claim; null without a claim.
        provenance: Versions, input hash, seed, time.
        curves: Measured, with its band where the number of runs was fixed, and the claimed curve, thinned.
    """

    kind = "runs"
    keys = InstancesResult.keys

    data: Annotated[Mapping[str, Any], Keys(RunsData)]
    schema_version: str = SCHEMA_VERSION
    curves: tuple[NamedCurve, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LabelsResult(Document):
    """What a model gives away about the labels that it was trained on.

    Attributes:
        data: Numbers of records and labels, what D is, how well it and the model predict, confidence.
        estimates: ``epsilon_bound.labels``, which holds if D is the law of labels given features, and what is left of it
            where the odds of D are off: ``epsilon_bound.labels.off_0.25`` by a factor of e^0.25.
        claims: None: what is conditional on D judges no claim.
        comparisons: None.
        checks: Whether the labels are as frequent as D says, and what was noticed of the model.
        verdict: Null.
        provenance: Versions, hash of D and the labels, seed, command line, time.
        curves: None.
    """

    kind = "labels"
    keys = InstancesResult.keys

    data: Annotated[Mapping[str, Any], Keys(LabelsData)]
    schema_version: str = SCHEMA_VERSION


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ClaimResult(Document):
    """What a training promises: nothing here was measured.

    Attributes:
        data: The training in words, delta, and what to know of each curve.
        description: The training run.
        delta: That epsilon is stated at.
        prior: That the success rates are for.
        estimates: The best number for each quantity and kind of neighbours, such as ``epsilon.add-remove``: gates ask of it.
        claims: Each quantity by every method, for both kinds of neighbours.
        in_words: The claims in words, for whom first.
        curves: The whole trade-off curve for each kind of neighbours, where there is one, by its name.
        provenance: Versions and time.
    """

    kind = "claim"
    keys = (
        *("schema_version", "data", "description", "delta", "prior", "estimates", "claims", "in_words"),
        *("curves", "provenance"),
    )

    description: Mapping[str, Any]
    delta: Number
    prior: Number
    in_words: tuple[str, ...]
    schema_version: str = SCHEMA_VERSION
    comparisons: tuple[Comparison, ...] = ()
    checks: tuple[Check, ...] = ()
    verdict: Verdict | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, with the status of each claim."""
        result = super().to_dict()
        for row, claim in zip(result["claims"], self.claims, strict=True):
            row["status"] = claim.status
        result |= {"checks": plain(self.checks)} if self.checks else {}
        result["provenance"][CONTENT_HASH] = content_hash(result)
        return result


# --- Finding things in a result where any of them may be missing ---


def find(result: "Document | Slice | PolicyFound", name: str) -> Estimate | None:
    """Return the estimate of that name, or null where the audit, or the slice of one, has none."""
    return next((item for item in result.estimates if item.name == name), None)


def detail(of: Estimate | Check | None, *path: str) -> Any:
    """Return what the details hold there, or null where there is nothing."""
    result: Any = None if of is None else of.details
    for key in path:
        result = None if result is None else result.get(key)
    return result


def furthest_point(result: "Document") -> PointData | None:
    """Return the two rates that show most of all that hold together, or null: see `auditor.estimators.band.furthest`."""
    shown = shown_by(result)
    return None if shown is None else shown.get("point")


def shown_by(result: "Document") -> ShownData | None:
    """Return what holds with all that a headline looks at; null in a result of old."""
    outcome = result.data.get("shown")
    return cast("ShownData", outcome) if isinstance(outcome, dict) and "names" in outcome else None


def ceiling(estimate: Estimate | None) -> float | None:
    """Return the largest bound that this audit could have certified."""
    result: float | None = detail(estimate, "ceiling")
    return result


def powerless(estimate: Estimate | None) -> bool:
    """Whether this audit has too few records to certify anything, however much leaks."""
    top = ceiling(estimate)
    return top is not None and top <= 0


# --- Where a result comes from: versions, a hash of the losses, the seed, the command line and the time ---


_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "matplotlib", "statsmodels")


CONTENT_HASH = "content_sha256"
# A check that fails, of a result whose content is not that of its hash.
ALTERED = "altered_since_it_was_written"
# A check that is unknown, of a result of a release that kept no hash.
NO_HASH = "no_hash_of_its_content"


def content_hash(raw: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a result's JSON but for this hash itself, as `canonical` writes it.

    It shows that nothing changed since the result was written, and not who wrote it.

    >>> content_hash({"provenance": {"content_sha256": "is left out"}})[:12]
    '838f379653ad'
    """
    origin = {key: item for key, item in raw["provenance"].items() if key != CONTENT_HASH}
    return hashlib.sha256(canonical({**raw, "provenance": origin}).encode()).hexdigest()


def canonical(raw: Mapping[str, Any]) -> str:
    """Return the JSON text that is hashed: keys sorted, no blanks, ASCII, floats as Python writes them."""
    return json.dumps(raw, sort_keys=True, separators=(",", ":"))


def take_hash(raw: Mapping[str, Any]) -> Any:
    """Remove the hash that a result keeps of its content, and return it; null in one of a release that kept none.

    Every release that writes this schema version keeps one: where it was removed, the word ``none`` stands for it.
    """
    origin, absent = raw.get("provenance"), "none" if raw["schema_version"] == SCHEMA_VERSION else None
    return (origin.pop(CONTENT_HASH, None) or absent) if isinstance(origin, dict) else None


def provenance(losses: Losses, *, seed: int, **more: Any) -> dict[str, Any]:
    """Return the provenance of an audit of these losses, with what else is known of it; the time is UTC."""
    return {**made_now(), "input_sha256": input_hash(losses), "seed": seed, **more}


def made_now() -> dict[str, Any]:
    """Return the provenance of whatever is made now: when, in UTC, and by which versions."""
    versions = {"privacy-auditor": __version__, "python": platform.python_version(), **_versions()}
    return {"created": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"), "versions": versions}


def made_at(provenance: Mapping[str, Any]) -> dt.datetime | None:
    """Return when an audit was made, in UTC, where that is known; a time without a zone is one in UTC.

    >>> made_at({"created": "2026-02-03T10:11:12+01:00"})
    datetime.datetime(2026, 2, 3, 9, 11, 12, tzinfo=datetime.timezone.utc)
    """
    try:
        made = dt.datetime.fromisoformat(str(provenance.get("created")))
        return made.astimezone(dt.UTC) if made.tzinfo else made.replace(tzinfo=dt.UTC)
    except (ValueError, OverflowError):
        return None


def input_hash(losses: Losses) -> str:
    """Return the SHA-256 of the losses as little-endian float64, members first, with the group sizes; of a summary of its bins."""
    digest = hashlib.sha256(f"{losses.n_member},{losses.n_nonmember};".encode())
    for group in (losses.member, losses.nonmember):
        values, counts = weighted(group)
        digest.update(values.astype("<f8", copy=False).data)
        if counts is not None:
            digest.update(counts.astype("<i8", copy=False).data)
    return digest.hexdigest()


@cache
def _versions() -> dict[str, str]:
    result = {}
    for name in _PACKAGES:
        try:
            result[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return result
