"""What many models, or many runs, of one training algorithm say about the algorithm; and planning for it."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "instances": "audit_instances bootstrap_lower certified instance_values log_mean_exp point",
        "planned_audits": (
            "GaussianAttack ModelAudit OneRunAudit PerfectAttack RandomisedResponse RunsAudit SequentialAudit coin_p_value"
        ),
        "planning": "Plan records_needed",
        "run_cases": "Progress Reporter fingerprint number_of_workers",
        "whole_curve": "FixedNumber Sequential",
        "runs": "audit_runs credible_lower log_posterior_below",
    },
)
