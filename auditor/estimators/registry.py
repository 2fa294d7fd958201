"""The estimators of an audit, in the order of their rows in a result."""

from auditor.core.registry import Registry
from auditor.estimators.adaptive import adaptive_bound
from auditor.estimators.certified import certified_bound
from auditor.estimators.epsilon_star import fitted_mixtures, fitted_normals
from auditor.estimators.evidence import Estimator
from auditor.estimators.extraction import extraction
from auditor.estimators.gdp import gaussian_bound, gaussian_mechanism_bound
from auditor.estimators.one_run import mechanism_bound, order_statistics_bound
from auditor.estimators.propensity import propensity_bound
from auditor.estimators.rates import guaranteed_rates, measured_rates

ESTIMATORS: Registry[Estimator] = Registry(
    Estimator("certified bound", certified_bound),
    Estimator("one run", mechanism_bound),
    Estimator("one run, learnt guesses", adaptive_bound),
    Estimator("one run, Gaussian", gaussian_mechanism_bound),
    Estimator("one run, order statistics", order_statistics_bound),
    Estimator("one run, estimated odds", propensity_bound),
    Estimator("fitted normals", fitted_normals),
    Estimator("fitted mixtures", fitted_mixtures),
    Estimator("measured rates", measured_rates, before_fits=True),
    Estimator("guaranteed rates", guaranteed_rates),
    Estimator("Gaussian bound", gaussian_bound),
    Estimator("extraction", extraction),
)
