"""Power planning: how many records an audit needs to certify a given epsilon, and what it can certify at most.

>>> records_needed(3.0, delta=1e-5).n_member
140
"""

from auditor.planning.attacks import Attack, GaussianAttack, PerfectAttack, RandomisedResponse
from auditor.planning.plan import Plan, ceiling, records_needed
from auditor.planning.text import plan_text

__all__ = [
    "Attack",
    "GaussianAttack",
    "PerfectAttack",
    "Plan",
    "RandomisedResponse",
    "ceiling",
    "plan_text",
    "records_needed",
]
