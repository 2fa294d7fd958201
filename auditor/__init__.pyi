from auditor import canaries as canaries
from auditor._version import __version__ as __version__
from auditor.api import (
    assert_gates as assert_gates,
    audit as audit,
    read_result as read_result,
)
from auditor.collectors.base.outputs import Output as Output
from auditor.collectors.base.tasks import (
    Classification as Classification,
    GaussianLogLoss as GaussianLogLoss,
    MultiLabel as MultiLabel,
    SquaredError as SquaredError,
)
from auditor.collectors.models.loading import load_model as load_model
from auditor.collectors.served.endpoint import Endpoint as Endpoint
from auditor.collectors.streaming.collecting import (
    collect as collect,
    collect_to as collect_to,
    losses_from_probabilities as losses_from_probabilities,
)
from auditor.collectors.streaming.engines import LocalEngine as LocalEngine, RayEngine as RayEngine
from auditor.collectors.streaming.resume import CollectedReport as CollectedReport
from auditor.collectors.streaming.scorers import (
    LanguageModelFile as LanguageModelFile,
    ModelFile as ModelFile,
)
from auditor.collectors.streaming.summaries import Summary as Summary
from auditor.collectors.tables.opening import RecordTable as RecordTable
from auditor.collectors.tables.reading import (
    from_columns as from_columns,
    read_feature_pair as read_feature_pair,
    read_features as read_features,
    read_loss_pair as read_loss_pair,
    read_losses as read_losses,
    read_schedule as read_schedule,
)
from auditor.collectors.texts.endpoints import CompletionsEndpoint as CompletionsEndpoint
from auditor.collectors.texts.models import (
    LongTexts as LongTexts,
    load_language_model as load_language_model,
)
from auditor.collectors.texts.scorer import collect_texts as collect_texts, text_scorer as text_scorer
from auditor.collectors.texts.scores import (
    MeanTokenLoss as MeanTokenLoss,
    MinK as MinK,
    SumTokenLoss as SumTokenLoss,
    ZlibRatio as ZlibRatio,
)
from auditor.comparison.compare import (
    AuditsComparison as AuditsComparison,
    Change as Change,
    Difference as Difference,
    compare as compare,
    compare_audits as compare_audits,
    differences as differences,
)
from auditor.comparison.strategies import (
    is_on_frontier as is_on_frontier,
    pareto_frontier as pareto_frontier,
)
from auditor.core.errors import (
    AuditorError as AuditorError,
    ExitCode as ExitCode,
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
    Calibrated as Calibrated,
    Census as Census,
    ClopperPearson as ClopperPearson,
    Context as Context,
    Disclosure as Disclosure,
    EachRecord as EachRecord,
    FixedSizeSampling as FixedSizeSampling,
    FixedThreshold as FixedThreshold,
    IndependentRuns as IndependentRuns,
    Jeffreys as Jeffreys,
    Katz as Katz,
    Melded as Melded,
    Mixture as Mixture,
    OnePerPerson as OnePerPerson,
    PoissonSampling as PoissonSampling,
    PrivacyUnit as PrivacyUnit,
    Propensity as Propensity,
    RandomSplit as RandomSplit,
    RankGrid as RankGrid,
    Sample as Sample,
    ShuffledBatches as ShuffledBatches,
    Split as Split,
    StatedClaim as StatedClaim,
    StatedCurve as StatedCurve,
    Steinke as Steinke,
    Subset as Subset,
    UnknownSplit as UnknownSplit,
    Utility as Utility,
)
from auditor.core.values import (
    Check as Check,
    Claim as Claim,
    Comparison as Comparison,
    Estimate as Estimate,
    Losses as Losses,
    LossScale as LossScale,
    Status as Status,
    Subject as Subject,
    Verdict as Verdict,
)
from auditor.curves.tradeoff import TradeoffCurve as TradeoffCurve
from auditor.mechanism.instances import audit_instances as audit_instances
from auditor.mechanism.label_audit import audit_labels as audit_labels
from auditor.mechanism.planned_audits import (
    GaussianAttack as GaussianAttack,
    PerfectAttack as PerfectAttack,
    RandomisedResponse as RandomisedResponse,
)
from auditor.mechanism.planning import Plan as Plan, records_needed as records_needed
from auditor.mechanism.run_cases import Progress as Progress, run_cases as run_cases
from auditor.mechanism.runs import audit_runs as audit_runs
from auditor.mechanism.training_runs import collect_runs as collect_runs
from auditor.mechanism.whole_curve import FixedNumber as FixedNumber, Sequential as Sequential
from auditor.records.features import Features as Features
from auditor.records.labels import per_person as per_person
from auditor.results.document import (
    AuditResult as AuditResult,
    ClaimResult as ClaimResult,
    InstancesResult as InstancesResult,
    LabelsResult as LabelsResult,
    RunsResult as RunsResult,
    Slice as Slice,
    TopRecord as TopRecord,
)
from auditor.results.reading import schema as schema
from auditor.risk.ranking import Ranking as Ranking, rank_records as rank_records
from auditor.verdicts.gates import Gate as Gate, GateOutcome as GateOutcome, check_gates as check_gates
from auditor.verdicts.judging import judge as judge
