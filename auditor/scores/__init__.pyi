from auditor.scores.calibrated import (
    Gaussian as Gaussian,
    Law as Law,
    QuantileScore as QuantileScore,
    StudentT as StudentT,
    class_conditional as class_conditional,
    conformal_threshold as conformal_threshold,
    difficulty as difficulty,
    fit_quantile_regression as fit_quantile_regression,
    likelihood_ratio as likelihood_ratio,
    rmia as rmia,
)
from auditor.scores.nearest import nearness as nearness
from auditor.scores.references import (
    HoldOut as HoldOut,
    Population as Population,
    References as References,
    hold_out as hold_out,
)
from auditor.scores.steps import step_likelihood_ratio as step_likelihood_ratio
