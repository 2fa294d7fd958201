from auditor.theory import accountant, attackers, attributes, parameters, privacy_loss, promises
from auditor.theory.accountant import (
    claimed_curve as claimed_curve,
    epsilon as epsilon,
    group_curve,
    replace_one as replace_one,
)
from auditor.theory.attackers import (
    advantage_under_prior as advantage_under_prior,
    bayes_security_from_advantage as bayes_security_from_advantage,
    gaussian_tpr,
    humphries as humphries,
    rough_epsilon as rough_epsilon,
    success_rate as success_rate,
    success_rate_from_bayes_security,
    total_variation as total_variation,
    total_variation_a,
    tpr_exact as tpr_exact,
    tpr_from_advantage as tpr_from_advantage,
    tpr_from_epsilon as tpr_from_epsilon,
    tpr_metric,
)
from auditor.theory.attributes import attribute_inference as attribute_inference, log_spread, steps_of
from auditor.theory.closed_form import (
    bayes_security_closed_form as bayes_security_closed_form,
    bayes_security_moment_matched as bayes_security_moment_matched,
)
from auditor.theory.composition import (
    advanced,
    advanced_sharper,
    basic,
    compare_compositions as compare_compositions,
    optimal,
)
from auditor.theory.gaussian import (
    StepPair,
    gaussian_delta,
    gaussian_deltas,
    gaussian_epsilon,
    gaussian_epsilons,
    gaussian_mu,
    gdp_curve as gdp_curve,
    log_mixture,
    mu_clt as mu_clt,
    mu_without_sampling as mu_without_sampling,
    shuffled_mu as shuffled_mu,
)
from auditor.theory.parameters import (
    WantedAdvantage as WantedAdvantage,
    WantedBayesSecurity as WantedBayesSecurity,
    WantedEpsilon as WantedEpsilon,
    WantedSuccess as WantedSuccess,
    WantedTPR as WantedTPR,
    noise_multiplier_for as noise_multiplier_for,
    sampling_rate_for as sampling_rate_for,
    steps_for as steps_for,
)
from auditor.theory.privacy_loss import composed as composed
from auditor.theory.promises import (
    belief_in_words,
    claims as claims,
    leading as leading,
    mu_claim as mu_claim,
    odds_in_words as odds_in_words,
    out_of,
    overview as overview,
    rates_in_words,
    success_in_words,
)
from auditor.theory.renyi import (
    epsilon_from_rho,
    pinsker_renyi as pinsker_renyi,
    renyi_divergence as renyi_divergence,
    renyi_epsilon as renyi_epsilon,
)
from auditor.theory.steps import step_epsilons, together
