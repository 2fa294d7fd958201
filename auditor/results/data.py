"""What the open objects of a result hold: its data and its provenance, which may grow within a schema version."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from auditor.core.fields import Confidence, Count, Delta, Finite, Must, NotNegative, Number, Rate
from auditor.core.options import Adjacency

Hash = Annotated[str, Must(pattern="^[0-9a-f]{64}$")]
PairOfCounts = Annotated[list[Count], Must(min_length=2, max_length=2)]
DeclaredSplit = Literal["unknown", "random", "bernoulli", "propensity"]


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
    limits: NotRequired[LimitsData]
    point: NotRequired[PointData | None]


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
        attacks: What became of each kind of attack that a reviewer expects.
        strategy: What several audits of one way of training share.
        utility: How good the model is at its task.
        context: What is declared of the release, as `auditor.Context` says it; null where nothing is.
        disclosure: Who may read the result: see `auditor.audit`.
        stratified: Whether the random split was stratified.
        inclusion: Probability of inclusion, for a split by coins.
        unit: What counts as one unit.
        combined: Where it is a person: which of the losses of a person stands for all of them.
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
    attacks: NotRequired[Mapping[str, Literal["run", "not run", "not applicable"]]]
    strategy: NotRequired[str | None]
    utility: NotRequired[UtilityData | None]
    context: NotRequired[Mapping[str, str | None] | None]
    disclosure: NotRequired[Literal["public", "insiders"]]
    stratified: NotRequired[bool]
    inclusion: NotRequired[Confidence | None]
    unit: NotRequired[Literal["record", "person"]]
    combined: NotRequired[Literal["mean", "min", "max"] | None]
    records: NotRequired[PairOfCounts]
    persons: NotRequired[PairOfCounts | None]
    top_records: NotRequired[str | None]
    effective: NotRequired[Annotated[list[NotNegative], Must(min_length=2, max_length=2)] | None]
    rows: NotRequired[PairOfCounts]
    left_out: NotRequired[Count]
    looks: NotRequired[Count]
    shown: NotRequired[ShownData]


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

    n_instances: Annotated[int, Must(ge=2)]
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

    log_loss: Number
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
    of_law: PredictedData
    of_model: PredictedData
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
        config: What a configuration file set, or its name in an older result; not there where none did.
        choices: The arguments that change a number, so that the audit can be made again; null where they are too long.
        content_sha256: Of all else in the result; see `content_hash`.
    """

    created: Annotated[str, Must(json_schema_extra={"format": "date-time"})]
    versions: Mapping[str, str]
    seed: Count
    input_sha256: Hash
    source: str | None
    command: str | None
    config: ConfigData | str | None
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

    created: Annotated[str, Must(json_schema_extra={"format": "date-time"})]
    versions: Mapping[str, str]
    seed: Count
    inputs_sha256: list[Hash]
    content_sha256: Hash
