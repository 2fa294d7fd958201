"""Open objects of a result: its data and its provenance, which may grow within a schema version."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from auditor.core import Adjacency, Confidence, Count, Delta, Finite, Must, NotNegative, Number, Rate

Hash = Annotated[str, Must(pattern="^[0-9a-f]{64}$")]
PairOfCounts = Annotated[list[Count], Must(min_length=2, max_length=2)]
DeclaredSplit = Literal["unknown", "random", "bernoulli", "propensity"]


class UtilityData(TypedDict):
    """Performance of a model at its task; see `auditor.Utility`."""

    value: Finite
    name: str
    higher_is_better: bool


class PointData(TypedDict):
    """The point of a band that is furthest from guessing: see `auditor.estimators.band.furthest`."""

    errors: Rate
    hits: Rate
    end: Literal["low", "high"]


# Lower limits at a share of the error, of the quantities beyond guessing; of a bound only where it leads.
LimitsData = TypedDict(
    "LimitsData",
    {
        "advantage": Rate,
        "auc": Rate,
        "epsilon_bound.clopper_pearson": NotNegative,
        "epsilon_bound.one_run": NotNegative,
        "epsilon_bound.adaptive": NotNegative,
    },
    total=False,
)


class ShownData(TypedDict):
    """Findings that hold together; see `auditor.pipeline.shown_together`."""

    looks: Count
    names: list[str]
    reversed: NotNegative
    differs: NotRequired[list[Literal["lower", "higher"]]]
    limits: NotRequired[LimitsData]
    point: NotRequired[PointData | None]


class ScoreData(TypedDict):
    """One of several scores of the records, or all of them together (None); see `auditor.risk.slices.scores_of`."""

    score: str | None
    value: Rate | None
    lower: Rate | None
    upper: Rate | None
    certified: NotNegative | None


class SecretsData(TypedDict):
    """The sampling of secrets; see `auditor.core.facts.Secrets`."""

    space: Annotated[int, Must(ge=1)] | None


class TableData(TypedDict):
    """A released synthetic table; see `auditor.core.facts.SyntheticTable`."""

    rows: Count
    copies: PairOfCounts
    near: PairOfCounts
    nearer: Rate


class CarriedData(TypedDict):
    """Training records in a model's file; see `auditor.core.facts.CarriedRows`."""

    part: str
    form: Literal["copies", "transformed", "leaves"]
    count: Count
    of: Count | None


class ReleasedData(TypedDict):
    """Facts about what was released that its losses do not hold; see `auditor.core.facts.Released`."""

    secrets: SecretsData | None
    table: TableData | None
    rows: list[CarriedData]


class LimitsSet(TypedDict, total=False):
    """The limits that a release must keep.

    Attributes:
        policy: Conditions that must hold, with semicolons between; None without a policy.
        gates: Conditions that must not hold.
        allow_unjudged: Whether a claim that could not be judged stops no release.
        severity: Lower limits of the advantage from which a leak is slight, marked and severe.
    """

    policy: str | None
    gates: list[str]
    allow_unjudged: bool
    severity: Annotated[list[Rate], Must(min_length=3, max_length=3)]


class AuditData(LimitsSet):
    """Audited data, and the declarations about it.

    Attributes:
        model: Its name.
        n_member: Audited members, in units.
        n_nonmember: Audited non-members, in units.
        training_size: Records that the model was trained on.
        delta: At which epsilons are stated.
        confidence: Confidence level of every interval.
        members: Scored part of the training set.
        split: How membership was decided, as declared.
        claim: Claim about the training algorithm, in words.
        scale: Scale of the losses.
        saturated: Losses from a probability of exactly 0 or 1: members, non-members.
        history: Steps applied to the losses, in order.
        attacks: State of each kind of attack that a reviewer expects.
        released: Facts about what was released that its losses do not hold, if there are any.
        strategy: Name shared by several audits of one way of training.
        utility: Performance of the model at its task.
        context: Declared context of the release, as `auditor.Context` says it; None if nothing is.
        disclosure: Audience of the result: see `auditor.audit`.
        stratified: Whether the random split was stratified.
        inclusion: Probability of inclusion, for a split by coins.
        unit: Unit of the audit.
        combined: For people: the loss that stands for all losses of a person.
        records: Audited records: members, non-members.
        persons: People among them, if records name their person.
        top_records: Reason why no records are named by id, if none are.
        effective: Number of independent records that the groups are worth, if records name their person.
        rows: Audited rows, where several of one id are one record: members, non-members.
        left_out: People with records in both groups who were left out, if any.
        looks: Number of looks that share the error, if several do.
        shown: Findings that hold together, at a share of the error each.
        scores: The AUC and a certified epsilon by each of several scores; all hold together.
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
    released: NotRequired[ReleasedData]
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
    scores: NotRequired[list[ScoreData]]


class InstancesData(LimitsSet):
    """Audited models, and the declarations about them.

    Attributes:
        n_instances: Models.
        n_member: Audited members of each model.
        n_nonmember: Audited non-members of each model.
        n_attacks: Attacks of known error rate.
        delta: At which epsilons are stated.
        confidence: Confidence level of every interval.
        split: How membership was decided, as declared.
        claim: Claim about the training algorithm, in words.
        claim_delta: Delta of a claim that states one.
        disclosure: Audience of the result.
        looks: Number of looks that share the error, if several do.
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


class RunsData(LimitsSet):
    """Audited runs, their judgement, and the declarations about them.

    Attributes:
        n_with: Runs with the canary.
        n_without: Runs without it.
        judged: Runs that are judged: with the canary, without.
        chosen_on: Runs that chose the threshold, in pairs; None if none did.
        rule: How the threshold was chosen.
        threshold: Threshold; "with the canary" at or below it; None for a grid of ranks.
        true_positives: Judged runs with the canary at or below the threshold.
        false_positives: Judged runs without it at or below the threshold.
        certified: Name of the estimate that judges the claim.
        test: Rule for the number of runs: fixed, or by the evidence.
        delta: At which epsilons are stated.
        confidence: Confidence level of every bound.
        adjacency: Difference between the two kinds of runs, as declared.
        claim: Claim about the training algorithm, in words.
        claim_delta: Delta of a claim that states one.
        history: Source of the scores, in order.
        looks: Number of looks that share the error, if several do.
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


class TensorsData(TypedDict):
    """Measurements of each parameter tensor in a training audit, as columns.

    Attributes:
        name: Their names.
        numbers: Their trained numbers.
        canaries: Canaries that are judged for each alone.
        measured: Standard deviation of their scores over the claimed one; a point estimate.
        low: Lower end of its interval at about 95% confidence, if the noise is normal and independent.
        high: Upper end of that interval.
        at_most: Certified ratio of noise to claim, for all tensors at once; None if no ratio is refuted.
        contribution: Mean contribution of a clipped canary in clipping norms; None before both sides of a coin were seen.
    """

    name: list[str]
    numbers: list[Count]
    canaries: list[Count]
    measured: list[NotNegative]
    low: list[NotNegative]
    high: list[NotNegative]
    at_most: list[NotNegative | None]
    contribution: list[Finite | None]


class EvidenceData(TypedDict):
    """The growth of the evidence of a training audit: after so many steps, its largest log so far."""

    steps: list[Count]
    log_evidence: list[Finite]


class SamplerData(TypedDict):
    """The batches of an audited training beside the claim of Poisson sampling.

    Attributes:
        batches: Batches that were seen.
        records: Training records.
        rate: Claimed sampling rate.
        mean: Mean size of a batch; None before the first.
        variance: Variance of the sizes.
        empty: Empty batches.
        e_value: Evidence against the sampler.
    """

    batches: Count
    records: Count
    rate: Rate
    mean: NotNegative | None
    variance: NotNegative | None
    empty: Count
    e_value: NotNegative


class TrainingData(LimitsSet):
    """An audit from inside one training.

    Attributes:
        steps: Observed steps.
        canaries: Canaries, each with a coin in every step.
        parameters: Trained numbers.
        scale: Norm of a canary's gradient before clipping, in clipping norms.
        delta: Of the implied epsilon.
        confidence: Of the verdict.
        error_of_steps: Share of the error of the test of the steps.
        error_of_sampler: Share of the error of the test of the sampler; 0 without one.
        noise_refuted: Whether the steps refute the claim.
        sampler_refuted: Whether the batches do.
        centred: Whether the batch's own gradients were known, so that the measured noise is without them.
        nuisance: What remains of the batch in the scores, over the claimed noise; a point estimate.
        claim: Claim about the training, in words.
        tensors: The parameter tensors.
        evidence: The growth of the evidence.
        sampler: The batches; None if the sampler was not tested.
        notes: What was done differently from what was ordered.
    """

    steps: Count
    canaries: Count
    parameters: Count
    scale: NotNegative
    delta: Delta
    confidence: Confidence
    error_of_steps: Rate
    error_of_sampler: Rate
    noise_refuted: bool
    sampler_refuted: bool
    nuisance: NotNegative
    centred: bool
    claim: str
    tensors: TensorsData
    evidence: EvidenceData
    sampler: SamplerData | None
    notes: list[str]


class PredictedData(TypedDict):
    """Accuracy of the predicted labels of the audited records, as observed.

    Attributes:
        log_loss: Mean negative log-probability of a label, in nats.
        accuracy: Share of labels that had the largest probability.
    """

    log_loss: Number
    accuracy: Rate


class LabelsData(LimitsSet):
    """Audited labels, and the law that they were drawn from.

    Attributes:
        model: Its name.
        n_records: Audited training records.
        n_classes: Labels that there are.
        n_reference: Records that the law was learnt from; None if it was given.
        n_drawn: Records of which a drawn label was shown.
        n_changed: Records of which another label than their own was shown.
        delta: 0.
        confidence: Confidence level of the bounds.
        law: Whether the law D of labels given features was given, or learnt from other records.
        of_law: Accuracy of D's predictions of the labels.
        of_model: Accuracy of the model's predictions.
        history: Queries to the model, and their scoring.
        disclosure: Audience of the result.
        looks: Number of looks that share the error, if several do.
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
    """Settings of a configuration file.

    Attributes:
        file: The configuration file.
        table: The table in it.
        settings: Settings made there, and not on the command line.
    """

    file: str
    table: NotRequired[str]
    settings: Mapping[str, Any]


class Provenance(TypedDict, total=False):
    """Provenance of a result.

    Attributes:
        created: Time of creation, in UTC.
        versions: Versions of the packages that the numbers depend on.
        seed: Seed of all random numbers.
        input_sha256: SHA-256 of the losses as float64, members first.
        source: Source of the losses.
        command: The command line, if there was one.
        config: Settings of a configuration file, or its name in an older result; missing without one.
        choices: The arguments that change a number, so that the audit can be made again; None if they are too long.
        content_sha256: SHA-256 of all else in the result; see `content_hash`.
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
    """Provenance of an audit of several models.

    Attributes:
        created: Time of creation, in UTC.
        versions: Versions of the packages that the numbers depend on.
        seed: Seed of all random numbers.
        inputs_sha256: SHA-256 of the losses of each model.
        content_sha256: SHA-256 of all else in the result.
    """

    created: Annotated[str, Must(json_schema_extra={"format": "date-time"})]
    versions: Mapping[str, str]
    seed: Count
    inputs_sha256: list[Hash]
    content_sha256: Hash
