"""Several audits beside each other: did a release get worse, and which strategy pays for its utility?"""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "compare": "COMPARED Change compare_audits differences headline",
        "paired": "SameRecords attack_change auc_change mcnemar_interval most_draws same_records",
        "runs": "find_run leakage measured more_is_worse read_runs with_table",
        "strategies": "MIXED is_on_frontier pareto_frontier ranked why_not_ranked",
    },
)
