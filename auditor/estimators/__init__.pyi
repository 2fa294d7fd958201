from auditor.core.options import (
    Calibrated as Calibrated,
    ClopperPearson as ClopperPearson,
    Split as Split,
)
from auditor.estimators.band import measured
from auditor.estimators.certified import Counts, clopper_pearson, grid_ceiling, most_telling, threshold_bound
from auditor.estimators.epsilon_star import (
    alternatives,
    fit_gap,
    largest_lower_bound,
    noise_floor,
    parametric,
    standard_error,
)
from auditor.estimators.evidence import Estimator, Evidence
from auditor.estimators.fixed_ranks import (
    InstanceRates,
    certified_epsilon,
    instance_values,
    log_mean_exp,
    on_common_grid,
    point,
    rank_curves,
)
from auditor.estimators.gap import advantage, bayes_security, gap_limits
from auditor.estimators.gdp import gdp_of_guesses, model_gdp
from auditor.estimators.guess_tests import (
    curve_p_value,
    epsilon_bound,
    of_curve,
    of_epsilon_delta,
    of_gdp,
    pure_bound,
    pure_p_value,
    rejects,
)
from auditor.estimators.guesses import draw_guesses, random_pairs
from auditor.estimators.joint_test import JointTest
from auditor.estimators.limits import (
    MemberLimits,
    just_above,
    just_below,
    kinds_of,
    lower_count,
    lower_limit,
    poisson_binomial,
    poisson_binomial_tail,
    upper_count,
    upper_limit,
)
from auditor.estimators.melding import ranks
from auditor.estimators.one_run import one_run_bound
from auditor.estimators.pooling import mean_of_models
from auditor.estimators.propensity import odds_error
from auditor.estimators.rates import auc, empirical, guaranteed_rank, tpr_at_fpr
from auditor.estimators.registry import ESTIMATORS
from auditor.estimators.supremum import best_region, gaussian_supremum, mixture_supremum
