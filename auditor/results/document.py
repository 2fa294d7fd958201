"""AuditDocument: everything an audit found, with nothing left to recompute and no raw losses inside.

The JSON form holds what the page shows. Infinite numbers are the strings ``inf`` and ``-inf``, missing ones null.
"""

import datetime as dt
import hashlib
import json
import os
import platform
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NotRequired, TypedDict, TypeVar, cast

from auditor._version import __version__
from auditor.core import validate
from auditor.core.errors import InputError
from auditor.core.files import kept
from auditor.core.numbers import plain
from auditor.core.options import Adjacency
from auditor.core.values import (
    LATER,
    OR_TEXT,
    Check,
    Claim,
    Comparison,
    Confidence,
    Count,
    Delta,
    Estimate,
    Finite,
    Keys,
    Losses,
    Must,
    Rate,
    SameLength,
    Verdict,
    weighted,
)
from auditor.results.converter import cleaned_fields

if TYPE_CHECKING:
    import pandas as pd


SCHEMA_VERSION = "3"

# --- The parts of a result beside estimates, claims and checks ---


_CURVES = (
    r"^(empirical|certified|band_lower|band_upper|gaussian|mixture|claim|claimed_training|ranks\.[a-z_]+)$"
)
_PER_BIN = SameLength("edges", less=1)
NotNegative = Annotated[float, Must(minimum=0)]
Hash = Annotated[str, Must(pattern="^[0-9a-f]{64}$")]
PairOfCounts = Annotated[list[Count], Must(minItems=2, maxItems=2)]
DeclaredSplit = Literal["unknown", "random", "bernoulli", "propensity"]


@dataclass(frozen=True)
class NamedCurve:
    """One line of the trade-off plot.

    Attributes:
        name: ``empirical``, ``band_lower``, ``band_upper``, ``gaussian``, ``mixture`` or ``claim``; ``certified``, which
            the curve of a training algorithm goes above; or ``ranks.*``, what an audit of several models needs of each.
        label: What the legend says.
        fpr: False positive rates, ascending.
        tpr: True positive rates, as many.
    """

    name: Annotated[str, Must(pattern=_CURVES)]
    label: str
    fpr: tuple[Rate, ...]
    tpr: Annotated[tuple[Rate, ...], SameLength("fpr")]


@dataclass(frozen=True)
class Histogram:
    """Binned losses on one scale, with the fitted densities where there are any.

    Attributes:
        scale: The scale in words, for example ``published transform``.
        edges: B + 1 ascending bin edges.
        member: B counts of members.
        nonmember: B counts of non-members.
        member_fit: B counts expected under the member fit, or null.
        nonmember_fit: B counts expected under the non-member fit, or null.
        quantiles: For a quantile-quantile plot of each group ``*_probability``, ``*_observed`` and ``*_fitted`` of one
            length: means over the records of a cell. For insiders ``probability`` is that of both groups, and the others
            are quantiles. Empty where there is no fit.
    """

    scale: str
    edges: Annotated[tuple[Finite, ...], Must(minItems=2)]
    member: Annotated[tuple[Count, ...], _PER_BIN]
    nonmember: Annotated[tuple[Count, ...], _PER_BIN]
    member_fit: Annotated[tuple[NotNegative, ...], _PER_BIN] | None = None
    nonmember_fit: Annotated[tuple[NotNegative, ...], _PER_BIN] | None = None
    quantiles: Annotated[Mapping[str, tuple[float, ...]], SameLength("probability")] = field(
        default_factory=dict
    )


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

    rank: Annotated[int, Must(minimum=1)]
    id: str
    group: str | None
    person: str | None
    odds: Annotated[float, Must(anyOf=[{"type": "number", "minimum": 0}, {"const": "inf"}])]
    shared: Annotated[int | None, LATER] = None


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
    estimates: Annotated[tuple[Estimate, ...], Must(minItems=1)]

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
    estimates: Annotated[tuple[Estimate, ...], Must(minItems=1)]
    at_least: Mapping[str, float]


# --- The open objects of a result: the keys that are known of them ---


class UtilityData(TypedDict):
    """How good a model is at its task, as `auditor.Utility` says it."""

    value: Finite
    name: str
    higher_is_better: bool


class PointData(TypedDict):
    """The point of a band that is furthest from guessing: see `auditor.estimators.band.furthest`."""

    errors: Rate
    hits: Rate
    end: Literal["low", "high"]


class LimitsData(TypedDict, total=False):
    """Lower limits at a share of the error, of what is beyond guessing."""

    advantage: Rate
    auc: Rate


class ShownData(TypedDict):
    """What holds with all that a headline looks at: see `auditor.pipeline.shown_together`."""

    looks: Count
    names: list[str]
    reversed: NotNegative
    limits: NotRequired[Annotated[LimitsData, Must(additionalProperties=False)]]
    point: NotRequired[Annotated[PointData | None, Must(additionalProperties=False)]]


class AuditData(TypedDict):
    """What was audited, and what was declared of it.

    Attributes:
        model: Its name.
        n_member: Audited members, in units.
        n_nonmember: Audited non-members, in units.
        training_size: Records that the model was trained on.
        delta: At which epsilons are stated.
        confidence: Of every interval.
        members: What part of the training set was scored.
        split: How membership was decided, as declared.
        claim: What is claimed of the training algorithm, in words.
        scale: What the losses are.
        saturated: Losses from a probability of exactly 0 or 1: members, non-members.
        history: What was done to the losses, in order.
        strategy: What several audits of one way of training share.
        utility: How good the model is at its task.
        context: What is declared of the release, as `auditor.Context` says it; null where nothing is.
        disclosure: Who may read the result: see `auditor.audit`.
        stratified: Whether the random split was stratified.
        inclusion: Probability of inclusion, for a split by coins.
        unit: What counts as one unit: a record or a person.
        records: Audited records: members, non-members.
        persons: Persons among them, where records name persons.
        top_records: Why no records are named by id, where none are.
        effective: Of how many independent records the groups are worth, where records name persons.
        rows: Audited rows, where several of one id are one record: members, non-members.
        left_out: Persons with records in both groups who were left out, where any were.
        looks: How many looks share the error, where several do.
        shown: Which findings hold together, at a share of the error each.
    """

    model: str | None
    n_member: Count
    n_nonmember: Count
    training_size: Count
    delta: Delta
    confidence: Confidence
    members: Literal["sample", "census", "subset"]
    split: DeclaredSplit
    claim: str | None
    scale: str
    saturated: PairOfCounts
    history: list[str]
    strategy: NotRequired[str | None]
    utility: NotRequired[Annotated[UtilityData | None, Must(additionalProperties=False)]]
    context: NotRequired[Mapping[str, str | None] | None]
    disclosure: NotRequired[Literal["public", "insiders"]]
    stratified: NotRequired[bool]
    inclusion: NotRequired[Confidence | None]
    unit: NotRequired[str]
    records: NotRequired[PairOfCounts]
    persons: NotRequired[PairOfCounts | None]
    top_records: NotRequired[str | None]
    effective: NotRequired[Annotated[list[NotNegative], Must(minItems=2, maxItems=2)] | None]
    rows: NotRequired[PairOfCounts]
    left_out: NotRequired[Count]
    looks: NotRequired[Count]
    shown: NotRequired[Annotated[ShownData, Must(additionalProperties=False)]]


class InstancesData(TypedDict):
    """What the models were, and what was declared of them.

    Attributes:
        n_instances: Models.
        n_member: Audited members of each model.
        n_nonmember: Audited non-members of each model.
        n_attacks: Attacks of known error rate.
        delta: At which epsilons are stated.
        confidence: Of every interval.
        split: How membership was decided, as declared.
        claim: What is claimed of the training algorithm, in words.
        claim_delta: Delta of a claim that states one.
        disclosure: Who may read the result.
        looks: How many looks share the error, where several do.
    """

    n_instances: Annotated[int, Must(minimum=2)]
    n_member: list[Count | None]
    n_nonmember: list[Count | None]
    n_attacks: Count
    delta: Delta
    confidence: Confidence
    split: DeclaredSplit
    claim: str | None
    claim_delta: Delta | None
    disclosure: NotRequired[Literal["public", "insiders"]]
    looks: NotRequired[Count]


class RunsData(TypedDict):
    """What the runs were, how they were judged, and what was declared of them.

    Attributes:
        n_with: Runs with the canary.
        n_without: Runs without it.
        judged: Runs that are judged: with the canary, without.
        chosen_on: Runs that chose the threshold, likewise; null where none did.
        rule: How the threshold was chosen.
        threshold: With the canary at or below it; null for a grid of ranks.
        true_positives: Judged runs with the canary at or below the threshold.
        false_positives: Judged runs without it at or below the threshold.
        certified: Name of the estimate that judges the claim.
        test: How the number of runs came about: fixed, or by the evidence.
        delta: At which epsilons are stated.
        confidence: Of every bound.
        adjacency: What the two kinds of runs differ by, as declared.
        claim: What is claimed of the training algorithm, in words.
        claim_delta: Delta of a claim that states one.
        history: Where the scores come from, in order.
        looks: How many looks share the error, where several do.
    """

    n_with: Count
    n_without: Count
    judged: PairOfCounts
    chosen_on: PairOfCounts | None
    rule: Literal["Split", "FixedThreshold", "threshold_runs", "RankGrid"]
    threshold: Finite | None
    true_positives: Count | None
    false_positives: Count | None
    certified: str
    test: NotRequired[Literal["FixedNumber", "Sequential"]]
    delta: Delta
    confidence: Confidence
    adjacency: Adjacency
    claim: str | None
    claim_delta: Delta | None
    history: list[str]
    looks: NotRequired[Count]


class PredictedData(TypedDict):
    """How well the labels of the audited records were predicted, as observed.

    Attributes:
        log_loss: Mean negative log-probability of a label, in nats.
        accuracy: Share of labels that had the largest probability.
    """

    log_loss: float
    accuracy: Rate


class LabelsData(TypedDict):
    """What labels were audited, and by which law of theirs.

    Attributes:
        model: Its name.
        n_records: Audited training records.
        n_classes: Labels that there are.
        n_reference: Records that the law was learnt from; null where it was given.
        n_drawn: Records of which a drawn label was shown.
        n_changed: Records of which another label than their own was shown.
        delta: 0.
        confidence: Of the bounds.
        law: Whether the law D of labels given features was given, or learnt from other records.
        of_law: How well D predicts the labels.
        of_model: How well the model predicts them.
        history: What the model was asked.
        disclosure: Who may read the result.
        looks: How many looks share the error, where several do.
    """

    model: str | None
    n_records: Count
    n_classes: Count
    n_reference: Count | None
    n_drawn: Count
    n_changed: Count
    delta: Delta
    confidence: Confidence
    law: Literal["given", "learnt"]
    of_law: Annotated[PredictedData, Must(additionalProperties=False)]
    of_model: Annotated[PredictedData, Must(additionalProperties=False)]
    history: list[str]
    disclosure: NotRequired[Literal["public", "insiders"]]
    looks: NotRequired[Count]


class ConfigData(TypedDict):
    """What a configuration file set.

    Attributes:
        file: The configuration file.
        table: The table in it.
        settings: What was set there, and not on the command line.
    """

    file: str
    table: NotRequired[str]
    settings: Mapping[str, Any]


class Provenance(TypedDict, total=False):
    """Where a result comes from.

    Attributes:
        created: When, in UTC.
        versions: Of the packages that the numbers depend on.
        seed: Of everything random.
        input_sha256: Of the losses as float64, members first.
        source: Where the losses come from.
        command: The command line, if there was one.
        config: What a configuration file set; not there where none did.
        choices: The arguments that change a number, so that the audit can be made again; null where they are too long.
        content_sha256: Of all else in the result; see `content_hash`.
    """

    created: Annotated[str, Must(format="date-time")]
    versions: Mapping[str, str]
    seed: Count
    input_sha256: Hash
    source: str | None
    command: str | None
    config: Annotated[ConfigData | None, OR_TEXT]
    choices: Mapping[str, Any] | None
    content_sha256: Hash


class ProvenanceOfInstances(TypedDict, total=False):
    """Where the audit of several models comes from.

    Attributes:
        created: When, in UTC.
        versions: Of the packages that the numbers depend on.
        seed: Of everything random.
        inputs_sha256: Of the losses of each model.
        content_sha256: Of all else in the result.
    """

    created: Annotated[str, Must(format="date-time")]
    versions: Mapping[str, str]
    seed: Count
    inputs_sha256: list[Hash]
    content_sha256: Hash


# --- The documents: what an audit of one model, of several models and of many runs found ---


Item = TypeVar("Item", Estimate, Check)


def named(kind: str, name: str, items: Iterable[Item]) -> Item:
    """Return the item of that name; of several the last.

    Raises:
        InputError: There is none; the message names the nearest.
    """
    by_name = {item.name: item for item in items}
    return by_name[validate.known(kind, name, by_name)]


@dataclass(frozen=True, eq=False)
class Document:
    """What any audit found, clean once built: what is not of its kind counts as missing, and nobody looks again.

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
    public_name: ClassVar[str]  # what callers know it as

    data: Mapping[str, Any]
    estimates: tuple[Estimate, ...]
    claims: tuple[Claim, ...]
    comparisons: tuple[Comparison, ...]
    checks: tuple[Check, ...]
    verdict: Verdict | None
    provenance: Annotated[Mapping[str, Any], Keys(Provenance)]
    curves: tuple[NamedCurve, ...]

    def __post_init__(self) -> None:
        for name, value in cleaned_fields(self).items():
            object.__setattr__(self, name, value)

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
        found = {**kind, **{name: plain(getattr(self, name)) for name in self.keys}}
        return {**found, "provenance": {**found["provenance"], CONTENT_HASH: content_hash(found)}}

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the JSON text; with a path, also write it there, whole or not at all.

        Raises:
            InputError: The path is neither a text nor a path.
            OutputError: The path cannot be written.
        """
        return kept(json.dumps(self.to_dict(), indent=2, allow_nan=False, ensure_ascii=False) + "\n", path)


@dataclass(frozen=True, eq=False)
class AuditDocument(Document):
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

    public_name = "AuditResult"
    keys = (
        *("schema_version", "verdict", "data", "estimates", "claims", "comparisons", "checks"),
        *("slices", "top_records", "policies", "curves", "histograms", "provenance"),
    )

    data: Annotated[Mapping[str, Any], Keys(AuditData)]
    histograms: tuple[Histogram, ...]
    schema_version: str = SCHEMA_VERSION
    slices: Annotated[tuple[Slice, ...], LATER] = ()
    top_records: Annotated[tuple[TopRecord, ...], LATER] = ()
    policies: Annotated[tuple[PolicyFound, ...], LATER] = ()

    @property
    def by_slice(self) -> list[tuple[str, Estimate]]:
        """Every estimate with the slice that it is of: first those of all records, whose slice is nothing."""
        parts = [(f"{one.kind}: {one.label}", one.estimates) for one in self.slices]
        return [(label, item) for label, items in (("", self.estimates), *parts) for item in items]


@dataclass(frozen=True, eq=False, kw_only=True)
class InstancesDocument(Document):
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

    public_name = "InstancesResult"
    kind = "instances"
    keys = (
        *("schema_version", "verdict", "data", "estimates", "claims", "comparisons", "checks", "curves"),
        "provenance",
    )

    data: Annotated[Mapping[str, Any], Keys(InstancesData)]
    provenance: Annotated[Mapping[str, Any], Keys(ProvenanceOfInstances)]
    schema_version: str = SCHEMA_VERSION
    checks: Annotated[tuple[Check, ...], LATER] = ()
    curves: Annotated[tuple[NamedCurve, ...], LATER] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class RunsDocument(Document):
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

    public_name = "RunsResult"
    kind = "runs"
    keys = InstancesDocument.keys

    data: Annotated[Mapping[str, Any], Keys(RunsData)]
    schema_version: str = SCHEMA_VERSION
    curves: Annotated[tuple[NamedCurve, ...], LATER] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelsDocument(Document):
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

    public_name = "LabelsResult"
    kind = "labels"
    keys = InstancesDocument.keys

    data: Annotated[Mapping[str, Any], Keys(LabelsData)]
    schema_version: str = SCHEMA_VERSION


@dataclass(frozen=True, eq=False, kw_only=True)
class ClaimDocument(Document):
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

    public_name = "ClaimResult"
    kind = "claim"
    keys = (
        *("schema_version", "data", "description", "delta", "prior", "estimates", "claims", "in_words"),
        *("curves", "provenance"),
    )

    description: Mapping[str, Any]
    delta: float
    prior: float
    in_words: tuple[str, ...]
    schema_version: str = SCHEMA_VERSION
    comparisons: Annotated[tuple[Comparison, ...], LATER] = ()
    checks: Annotated[tuple[Check, ...], LATER] = ()
    verdict: Annotated[Verdict | None, LATER] = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, with the status of each claim."""
        found = super().to_dict()
        for row, claim in zip(found["claims"], self.claims, strict=True):
            row["status"] = claim.status
        found |= {"checks": plain(self.checks)} if self.checks else {}
        found["provenance"][CONTENT_HASH] = content_hash(found)
        return found


# --- Finding things in a result where any of them may be missing ---


def find(result: "Document | Slice | PolicyFound", name: str) -> Estimate | None:
    """Return the estimate of that name, or null where the audit, or the slice of one, has none."""
    return next((item for item in result.estimates if item.name == name), None)


def detail(of: Estimate | Check | None, *path: str) -> Any:
    """Return what the details hold there, or null where there is nothing."""
    found: Any = None if of is None else of.details
    for key in path:
        found = None if found is None else found.get(key)
    return found


def furthest_point(result: "Document") -> PointData | None:
    """Return the two rates that show most of all that hold together, or null: see `auditor.estimators.band.furthest`."""
    shown = shown_by(result)
    return None if shown is None else shown.get("point")


def shown_by(result: "Document") -> ShownData | None:
    """Return what holds with all that a headline looks at; null in a result of old."""
    found = result.data.get("shown")
    return cast("ShownData", found) if isinstance(found, dict) and "names" in found else None


def ceiling(estimate: Estimate | None) -> float | None:
    """Return the largest bound that this audit could have certified."""
    found: float | None = detail(estimate, "ceiling")
    return found


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
    """Return the SHA-256 of a result's JSON but for this hash itself: keys sorted, no blanks, ASCII, floats as Python writes them.

    It shows that nothing changed since the result was written, and not who wrote it.

    >>> content_hash({"provenance": {"content_sha256": "is left out"}})[:12]
    '838f379653ad'
    """
    origin = {key: item for key, item in raw["provenance"].items() if key != CONTENT_HASH}
    text = json.dumps({**raw, "provenance": origin}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


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
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
