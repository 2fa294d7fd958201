from auditor import (
    canaries as canaries,
    collectors as collectors,
    comparison as comparison,
    estimators as estimators,
    many as many,
    records as records,
    results as results,
    risk as risk,
    scores as scores,
    sensitivity as sensitivity,
    theory as theory,
    training as training,
    verdicts as verdicts,
)
from auditor._version import __version__ as __version__
from auditor.api import assert_gates as assert_gates, audit as audit, read_result as read_result
from auditor.collectors.base.tasks import (
    Classification as Classification,
    Confidence as Confidence,
    GaussianLogLoss as GaussianLogLoss,
    MultiLabel as MultiLabel,
    SquaredError as SquaredError,
)
from auditor.collectors.models.loading import load_model as load_model
from auditor.collectors.served.endpoint import Endpoint as Endpoint
from auditor.collectors.streaming.collecting import (
    collect as collect,
    collect_texts as collect_texts,
    collect_to as collect_to,
    losses_from_probabilities as losses_from_probabilities,
)
from auditor.collectors.streaming.scorers import (
    LanguageModelFile as LanguageModelFile,
    ModelFile as ModelFile,
    OutputColumns as OutputColumns,
)
from auditor.collectors.streaming.summaries import Summary as Summary
from auditor.collectors.tables.opening import RecordTable as RecordTable
from auditor.collectors.tables.reading import read_losses as read_losses
from auditor.collectors.texts.models import load_language_model as load_language_model
from auditor.comparison.compare import AuditsComparison as AuditsComparison, compare as compare
from auditor.core.errors import (
    AuditorError as AuditorError,
    InputError as InputError,
    MissingExtraError as MissingExtraError,
    OutputError as OutputError,
)
from auditor.core.options import (
    DPSGD as DPSGD,
    FDP as FDP,
    Adjacency as Adjacency,
    AnyGuesses as AnyGuesses,
    BernoulliSplit as BernoulliSplit,
    Census as Census,
    Context as Context,
    EachRecord as EachRecord,
    FixedSizeSampling as FixedSizeSampling,
    FixedThreshold as FixedThreshold,
    IndependentRuns as IndependentRuns,
    Melded as Melded,
    Mixture as Mixture,
    OnePerPerson as OnePerPerson,
    PoissonSampling as PoissonSampling,
    Propensity as Propensity,
    RandomSplit as RandomSplit,
    RankGrid as RankGrid,
    Sample as Sample,
    ShuffledBatches as ShuffledBatches,
    StatedClaim as StatedClaim,
    StatedCurve as StatedCurve,
    Subset as Subset,
    UnknownSplit as UnknownSplit,
    Utility as Utility,
)
from auditor.core.values import (
    Estimate as Estimate,
    Losses as Losses,
    LossScale as LossScale,
    Verdict as Verdict,
)
from auditor.curves.tradeoff import TradeoffCurve as TradeoffCurve
from auditor.many.instances import audit_instances as audit_instances
from auditor.many.label_audit import audit_labels as audit_labels
from auditor.many.planning import records_needed as records_needed
from auditor.many.runs import audit_runs as audit_runs
from auditor.many.training_runs import collect_runs as collect_runs
from auditor.many.whole_curve import FixedNumber as FixedNumber, Sequential as Sequential
from auditor.records.features import Features as Features
from auditor.results.document import (
    AuditResult as AuditResult,
    ClaimResult as ClaimResult,
    InstancesResult as InstancesResult,
    LabelsResult as LabelsResult,
    RunsResult as RunsResult,
)
from auditor.results.reading import schema as schema
from auditor.risk.ranking import rank_records as rank_records
from auditor.verdicts.gates import check_gates as check_gates
