"""Black-box privacy audits of trained models: losses in, verdict and report out.

>>> import auditor
>>> losses = auditor.Losses(member=[0.1, 0.2, 0.3, 0.1], nonmember=[0.4, 0.2, 0.9, 0.8])
>>> losses.n_member
4
"""

import importlib
from typing import TYPE_CHECKING, Any

from auditor._version import __version__
from auditor.choices import (
    DPSGD,
    FDP,
    Adjacency,
    AnyGuesses,
    BernoulliSplit,
    Census,
    ClopperPearson,
    EachRecord,
    FixedThreshold,
    Jeffreys,
    Katz,
    Melded,
    Mixture,
    OnePerPerson,
    RandomSplit,
    RankGrid,
    Sample,
    Split,
    StatedClaim,
    Steinke,
    Subset,
    UnknownSplit,
    Utility,
)
from auditor.errors import AuditorError, InputError, MissingExtraError, OutputError
from auditor.gates import ExitCode, Gate, GateOutcome, check_gates
from auditor.reading import read_result
from auditor.result import AuditResult, TopRecord
from auditor.training import FixedSizeSampling, PoissonSampling
from auditor.values import Check, Claim, Comparison, Estimate, Losses, LossScale, Status, Subject, Verdict

if TYPE_CHECKING:
    from auditor.audits.comparison import AuditsComparison, compare_audits
    from auditor.audits.differences import Change, Difference, differences
    from auditor.audits.frontier import is_on_frontier, pareto_frontier
    from auditor.collectors import (
        Classification,
        CollectedReport,
        CompletionsEndpoint,
        Endpoint,
        GaussianLogLoss,
        LanguageModelFile,
        LocalEngine,
        LongTexts,
        MeanTokenLoss,
        MinK,
        ModelFile,
        MultiLabel,
        Output,
        RayEngine,
        RecordTable,
        SquaredError,
        SumTokenLoss,
        ZlibRatio,
        collect,
        collect_texts,
        collect_to,
        from_columns,
        load_language_model,
        load_model,
        read_feature_pair,
        read_features,
        read_loss_pair,
        read_losses,
        read_schedule,
        text_scorer,
    )
    from auditor.compare import judge
    from auditor.features import Features
    from auditor.instances import InstancesResult, audit_instances
    from auditor.persons import per_person
    from auditor.pipeline import audit
    from auditor.planning import GaussianAttack, PerfectAttack, Plan, RandomisedResponse, records_needed
    from auditor.ranking import Ranking, rank_records
    from auditor.runs import Progress, RunsResult, audit_runs, collect_runs, run_cases
    from auditor.slices import Slice
    from auditor.tradeoff import TradeoffCurve

__all__ = [
    "DPSGD",
    "FDP",
    "Adjacency",
    "AnyGuesses",
    "AuditResult",
    "AuditorError",
    "AuditsComparison",
    "BernoulliSplit",
    "Census",
    "Change",
    "Check",
    "Claim",
    "Classification",
    "ClopperPearson",
    "CollectedReport",
    "Comparison",
    "CompletionsEndpoint",
    "Difference",
    "EachRecord",
    "Endpoint",
    "Estimate",
    "ExitCode",
    "Features",
    "FixedSizeSampling",
    "FixedThreshold",
    "Gate",
    "GateOutcome",
    "GaussianAttack",
    "GaussianLogLoss",
    "InputError",
    "InstancesResult",
    "Jeffreys",
    "Katz",
    "LanguageModelFile",
    "LocalEngine",
    "LongTexts",
    "LossScale",
    "Losses",
    "MeanTokenLoss",
    "Melded",
    "MinK",
    "MissingExtraError",
    "Mixture",
    "ModelFile",
    "MultiLabel",
    "OnePerPerson",
    "Output",
    "OutputError",
    "PerfectAttack",
    "Plan",
    "PoissonSampling",
    "Progress",
    "RandomSplit",
    "RandomisedResponse",
    "RankGrid",
    "Ranking",
    "RayEngine",
    "RecordTable",
    "RunsResult",
    "Sample",
    "Slice",
    "Split",
    "SquaredError",
    "StatedClaim",
    "Status",
    "Steinke",
    "Subject",
    "Subset",
    "SumTokenLoss",
    "TopRecord",
    "TradeoffCurve",
    "UnknownSplit",
    "Utility",
    "Verdict",
    "ZlibRatio",
    "__version__",
    "audit",
    "audit_instances",
    "audit_runs",
    "check_gates",
    "collect",
    "collect_runs",
    "collect_texts",
    "collect_to",
    "compare_audits",
    "differences",
    "from_columns",
    "is_on_frontier",
    "judge",
    "load_language_model",
    "load_model",
    "pareto_frontier",
    "per_person",
    "rank_records",
    "read_feature_pair",
    "read_features",
    "read_loss_pair",
    "read_losses",
    "read_result",
    "read_schedule",
    "records_needed",
    "run_cases",
    "text_scorer",
]

# Names whose module needs more than numpy are loaded when first used (PEP 562), so that `import auditor` stays light.
_LATER = {
    "AuditsComparison": "auditor.audits.comparison",
    "Change": "auditor.audits.differences",
    "Classification": "auditor.collectors",
    "CollectedReport": "auditor.collectors",
    "CompletionsEndpoint": "auditor.collectors",
    "Difference": "auditor.audits.differences",
    "Endpoint": "auditor.collectors",
    "Features": "auditor.features",
    "GaussianAttack": "auditor.planning",
    "GaussianLogLoss": "auditor.collectors",
    "InstancesResult": "auditor.instances",
    "LanguageModelFile": "auditor.collectors",
    "LocalEngine": "auditor.collectors",
    "LongTexts": "auditor.collectors",
    "MeanTokenLoss": "auditor.collectors",
    "MinK": "auditor.collectors",
    "ModelFile": "auditor.collectors",
    "MultiLabel": "auditor.collectors",
    "Output": "auditor.collectors",
    "PerfectAttack": "auditor.planning",
    "Plan": "auditor.planning",
    "Progress": "auditor.runs",
    "RandomisedResponse": "auditor.planning",
    "Ranking": "auditor.ranking",
    "RayEngine": "auditor.collectors",
    "RecordTable": "auditor.collectors",
    "RunsResult": "auditor.runs",
    "Slice": "auditor.slices",
    "SquaredError": "auditor.collectors",
    "SumTokenLoss": "auditor.collectors",
    "TradeoffCurve": "auditor.tradeoff",
    "ZlibRatio": "auditor.collectors",
    "audit": "auditor.pipeline",
    "audit_instances": "auditor.instances",
    "audit_runs": "auditor.runs",
    "collect": "auditor.collectors",
    "collect_runs": "auditor.runs",
    "collect_texts": "auditor.collectors",
    "collect_to": "auditor.collectors",
    "compare_audits": "auditor.audits.comparison",
    "differences": "auditor.audits.differences",
    "from_columns": "auditor.collectors",
    "is_on_frontier": "auditor.audits.frontier",
    "judge": "auditor.compare",
    "load_language_model": "auditor.collectors",
    "load_model": "auditor.collectors",
    "pareto_frontier": "auditor.audits.frontier",
    "per_person": "auditor.persons",
    "rank_records": "auditor.ranking",
    "read_feature_pair": "auditor.collectors",
    "read_features": "auditor.collectors",
    "read_loss_pair": "auditor.collectors",
    "read_losses": "auditor.collectors",
    "read_schedule": "auditor.collectors",
    "records_needed": "auditor.planning",
    "run_cases": "auditor.runs",
    "text_scorer": "auditor.collectors",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'auditor' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LATER[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
