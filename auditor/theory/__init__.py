"""What a training description promises: claims, to set beside what an audit finds.

Start with `overview` (everything at once) or `claims` (what an audit compares with). Each number is a `Claim` that says
for which neighbours it holds, how it was found, and whether it is proven, an approximation or an estimate. Importing
this package loads nothing heavy; each function imports what it needs.
"""

from auditor.theory.accountant import epsilon, replace_one
from auditor.theory.advantage import bayes_security_from_advantage, humphries, rough_epsilon
from auditor.theory.amplification import EpsilonDelta, amplified, amplified_curve, symmetric_amplified_curve
from auditor.theory.attribute_inference import ATTRIBUTE_PRIVACY_NOTE, attribute_inference
from auditor.theory.claims import claims
from auditor.theory.closed_form import (
    Corollary7,
    MomentMatched,
    bayes_security_closed_form,
    bayes_security_moment_matched,
)
from auditor.theory.closed_form_grids import bayes_security_grid, noise_multiplier_grid, sampling_rate_grid
from auditor.theory.conversions import (
    advantage_from_mu,
    delta_from_mu,
    epsilon_from_mu,
    epsilon_from_rates,
    mu_from_advantage,
    mu_from_epsilon,
    mu_from_pure_epsilon,
    mu_from_rates,
)
from auditor.theory.curve_conversions import (
    advantage_from_curve,
    delta_from_curve,
    epsilon_from_curve,
    mu_from_curve,
    profile_from_curve,
)
from auditor.theory.gdp import composed_mu, gdp_curve, mu_clt, mu_without_sampling
from auditor.theory.gdp_limit import limit_mu, subsampled_mu
from auditor.theory.monte_carlo import (
    EmpiricalBernstein,
    Hoeffding,
    SampleVariance,
    total_variation_monte_carlo,
)
from auditor.theory.overview import in_words, leading, overview
from auditor.theory.parameters import FoundParameter, noise_multiplier_for, sampling_rate_for, steps_for
from auditor.theory.priors import (
    advantage_under_prior,
    posterior_from_epsilon,
    precision_from_tpr,
    success_rate,
    success_rate_from_bayes_security,
)
from auditor.theory.privacy_loss import PrivacyLoss, Unresolved, composed
from auditor.theory.profile import ClaimedCurve, claimed_curve
from auditor.theory.rates import tpr_from_advantage, tpr_from_epsilon, tpr_from_mu, tpr_from_tv_a
from auditor.theory.renyi import pinsker_renyi, renyi_divergence, renyi_epsilon
from auditor.theory.renyi_conversions import (
    advantage_from_renyi,
    curve_from_renyi,
    delta_from_renyi,
    epsilon_from_renyi,
    renyi_from_mu,
    renyi_from_pure_epsilon,
)
from auditor.theory.side_by_side import compare_compositions
from auditor.theory.targets import Exact, WantedAdvantage, WantedBayesSecurity, WantedEpsilon, WantedTPR
from auditor.theory.total_variation import total_variation, total_variation_a, total_variation_by_accountant
from auditor.theory.training_rates import tpr_closed_form, tpr_exact, tpr_from_curve
from auditor.theory.wording import (
    accusations_in_words,
    belief_in_words,
    odds_in_words,
    out_of,
    rates_in_words,
    success_in_words,
)

__all__ = [
    "ATTRIBUTE_PRIVACY_NOTE",
    "ClaimedCurve",
    "Corollary7",
    "EmpiricalBernstein",
    "EpsilonDelta",
    "Exact",
    "FoundParameter",
    "Hoeffding",
    "MomentMatched",
    "PrivacyLoss",
    "SampleVariance",
    "Unresolved",
    "WantedAdvantage",
    "WantedBayesSecurity",
    "WantedEpsilon",
    "WantedTPR",
    "accusations_in_words",
    "advantage_from_curve",
    "advantage_from_mu",
    "advantage_from_renyi",
    "advantage_under_prior",
    "amplified",
    "amplified_curve",
    "attribute_inference",
    "bayes_security_closed_form",
    "bayes_security_from_advantage",
    "bayes_security_grid",
    "bayes_security_moment_matched",
    "belief_in_words",
    "claimed_curve",
    "claims",
    "compare_compositions",
    "composed",
    "composed_mu",
    "curve_from_renyi",
    "delta_from_curve",
    "delta_from_mu",
    "delta_from_renyi",
    "epsilon",
    "epsilon_from_curve",
    "epsilon_from_mu",
    "epsilon_from_rates",
    "epsilon_from_renyi",
    "gdp_curve",
    "humphries",
    "in_words",
    "leading",
    "limit_mu",
    "mu_clt",
    "mu_from_advantage",
    "mu_from_curve",
    "mu_from_epsilon",
    "mu_from_pure_epsilon",
    "mu_from_rates",
    "mu_without_sampling",
    "noise_multiplier_for",
    "noise_multiplier_grid",
    "odds_in_words",
    "out_of",
    "overview",
    "pinsker_renyi",
    "posterior_from_epsilon",
    "precision_from_tpr",
    "profile_from_curve",
    "rates_in_words",
    "renyi_divergence",
    "renyi_epsilon",
    "renyi_from_mu",
    "renyi_from_pure_epsilon",
    "replace_one",
    "rough_epsilon",
    "sampling_rate_for",
    "sampling_rate_grid",
    "steps_for",
    "subsampled_mu",
    "success_in_words",
    "success_rate",
    "success_rate_from_bayes_security",
    "symmetric_amplified_curve",
    "total_variation",
    "total_variation_a",
    "total_variation_by_accountant",
    "total_variation_monte_carlo",
    "tpr_closed_form",
    "tpr_exact",
    "tpr_from_advantage",
    "tpr_from_curve",
    "tpr_from_epsilon",
    "tpr_from_mu",
    "tpr_from_tv_a",
]
