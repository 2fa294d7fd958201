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
)
from auditor.errors import AuditorError, InputError, MissingExtraError, OutputError
from auditor.reading import read_result
from auditor.result import AuditResult
from auditor.training import FixedSizeSampling, PoissonSampling
from auditor.values import Check, Claim, Comparison, Estimate, Losses, LossScale, Status, Subject, Verdict

if TYPE_CHECKING:
    from auditor.collectors import (
        Classification,
        GaussianLogLoss,
        MultiLabel,
        Output,
        SquaredError,
        collect,
        from_columns,
        read_feature_pair,
        read_features,
        read_loss_pair,
        read_losses,
        read_schedule,
    )
    from auditor.compare import judge
    from auditor.features import Features
    from auditor.instances import InstancesResult, audit_instances
    from auditor.persons import per_person
    from auditor.pipeline import audit
    from auditor.planning import GaussianAttack, PerfectAttack, Plan, RandomisedResponse, records_needed
    from auditor.ranking import Ranking, rank_records
    from auditor.slices import Slice
    from auditor.tradeoff import TradeoffCurve

__all__ = [
    "DPSGD",
    "FDP",
    "Adjacency",
    "AnyGuesses",
    "AuditResult",
    "AuditorError",
    "BernoulliSplit",
    "Census",
    "Check",
    "Claim",
    "Classification",
    "ClopperPearson",
    "Comparison",
    "EachRecord",
    "Estimate",
    "Features",
    "FixedSizeSampling",
    "FixedThreshold",
    "GaussianAttack",
    "GaussianLogLoss",
    "InputError",
    "InstancesResult",
    "Jeffreys",
    "Katz",
    "LossScale",
    "Losses",
    "Melded",
    "MissingExtraError",
    "Mixture",
    "MultiLabel",
    "OnePerPerson",
    "Output",
    "OutputError",
    "PerfectAttack",
    "Plan",
    "PoissonSampling",
    "RandomSplit",
    "RandomisedResponse",
    "RankGrid",
    "Ranking",
    "Sample",
    "Slice",
    "Split",
    "SquaredError",
    "StatedClaim",
    "Status",
    "Steinke",
    "Subject",
    "Subset",
    "TradeoffCurve",
    "UnknownSplit",
    "Verdict",
    "__version__",
    "audit",
    "audit_instances",
    "collect",
    "from_columns",
    "judge",
    "per_person",
    "rank_records",
    "read_feature_pair",
    "read_features",
    "read_loss_pair",
    "read_losses",
    "read_result",
    "read_schedule",
    "records_needed",
]

# Names whose module needs more than numpy are loaded when first used (PEP 562), so that `import auditor` stays light.
_LATER = {
    "SquaredError": "auditor.collectors",
    "MultiLabel": "auditor.collectors",
    "GaussianLogLoss": "auditor.collectors",
    "Classification": "auditor.collectors",
    "Features": "auditor.features",
    "GaussianAttack": "auditor.planning",
    "InstancesResult": "auditor.instances",
    "Output": "auditor.collectors",
    "PerfectAttack": "auditor.planning",
    "Plan": "auditor.planning",
    "RandomisedResponse": "auditor.planning",
    "Ranking": "auditor.ranking",
    "Slice": "auditor.slices",
    "TradeoffCurve": "auditor.tradeoff",
    "audit": "auditor.pipeline",
    "audit_instances": "auditor.instances",
    "collect": "auditor.collectors",
    "from_columns": "auditor.collectors",
    "judge": "auditor.compare",
    "per_person": "auditor.persons",
    "rank_records": "auditor.ranking",
    "read_feature_pair": "auditor.collectors",
    "read_features": "auditor.collectors",
    "read_loss_pair": "auditor.collectors",
    "read_losses": "auditor.collectors",
    "read_schedule": "auditor.collectors",
    "records_needed": "auditor.planning",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'auditor' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LATER[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
