"""What many models, or many runs, of one training algorithm say about the algorithm; and planning for it."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "instances": "audit_instances bootstrap_lower certified instance_values log_mean_exp point",
        "planning": (
            "CoinAudit GaussianAttack ModelAudit PairAudit PerfectAttack Plan RandomisedResponse "
            "ceiling coin_p_value records_needed"
        ),
        "run_cases": "Progress Reporter fingerprint number_of_workers",
        "runs": "audit_runs credible_lower log_posterior_below",
    },
)
