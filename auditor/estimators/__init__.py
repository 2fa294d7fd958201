"""Estimators: evidence in, estimates out that say what they are about."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(
    __name__,
    {
        "certified": ("Counts clopper_pearson grid_ceiling most_telling ranks threshold_bound"),
        "epsilon_star": (
            "QuantileVariance alternatives fit_gap largest_lower_bound mixture_standard_error noise_floor "
            "parametric standard_error"
        ),
        "evidence": "Estimator Evidence",
        "gap": "advantage bayes_security gap_limits",
        "gdp": "gdp_of_guesses model_gdp",
        "guess_tests": (
            "biased_bound biased_p_value curve_p_value epsilon_bound of_curve "
            "of_epsilon_delta of_gdp pure_bound pure_p_value rejects steinke_bound steinke_p_value"
        ),
        "limits": ("MemberLimits just_above just_below lower_count lower_limit upper_count upper_limit"),
        "guesses": "draw_guesses random_pairs",
        "joint_test": "JointTest",
        "one_run": "one_run_bound",
        "rates": "auc empirical guaranteed_rank tpr_at_fpr",
        "registry": "ESTIMATORS",
        "supremum": "best_region gaussian_supremum mixture_supremum",
    },
)
