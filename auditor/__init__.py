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
    EachRecord,
    FixedThreshold,
    Mixture,
    OnePerPerson,
    RandomSplit,
    RankGrid,
    Sample,
    Split,
    StatedClaim,
    Steinke,
    UnknownSplit,
)
from auditor.errors import AuditorError, InputError, MissingExtraError, OutputError
from auditor.reading import read_result
from auditor.result import AuditResult
from auditor.values import Check, Claim, Comparison, Estimate, Losses, LossScale, Status, Subject, Verdict

if TYPE_CHECKING:
    from auditor.collectors import Output, collect, from_columns, read_loss_pair, read_losses
    from auditor.pipeline import audit
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
    "Comparison",
    "EachRecord",
    "Estimate",
    "FixedThreshold",
    "InputError",
    "LossScale",
    "Losses",
    "MissingExtraError",
    "Mixture",
    "OnePerPerson",
    "Output",
    "OutputError",
    "RandomSplit",
    "RankGrid",
    "Sample",
    "Split",
    "StatedClaim",
    "Status",
    "Steinke",
    "Subject",
    "TradeoffCurve",
    "UnknownSplit",
    "Verdict",
    "__version__",
    "audit",
    "collect",
    "from_columns",
    "read_loss_pair",
    "read_losses",
    "read_result",
]

# Names whose module needs more than numpy are loaded when first used (PEP 562), so that `import auditor` stays light.
_LATER = {
    "Output": "auditor.collectors",
    "TradeoffCurve": "auditor.tradeoff",
    "audit": "auditor.pipeline",
    "collect": "auditor.collectors",
    "from_columns": "auditor.collectors",
    "read_loss_pair": "auditor.collectors",
    "read_losses": "auditor.collectors",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'auditor' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LATER[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
