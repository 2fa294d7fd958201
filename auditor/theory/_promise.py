"""What one training run does for a wanted promise: the claim, and how far it is from the wanted number."""

import math

import numpy as np

from auditor.choices import DPSGD, Adjacency
from auditor.errors import InputError
from auditor.theory._gaussian_form import UNCOVERED, MomentMatched, log_k, noise_of
from auditor.theory.accountant import epsilon
from auditor.theory.advantage import bayes_security_from_advantage
from auditor.theory.closed_form import Corollary7, bayes_security_closed_form, bayes_security_moment_matched
from auditor.theory.privacy_loss import Unresolved, composed, only_a_bound
from auditor.theory.rates import tpr_from_advantage
from auditor.theory.targets import (
    Exact,
    Method,
    Target,
    WantedAdvantage,
    WantedBayesSecurity,
    WantedEpsilon,
    WantedTPR,
)
from auditor.theory.total_variation import total_variation
from auditor.theory.training_rates import tpr_exact
from auditor.training import Sampling
from auditor.values import Claim

__all__ = [
    "exact_beside",
    "excess",
    "gaussian_half_mu",
    "guessed_noise",
    "harmless_draw",
    "keeps",
    "log_share_of",
    "promise",
    "seldom_enough",
]

# Logarithms of ratios beyond this say no more than their sign.
_FAR = 3.0
# With more kinds of steps the exact law takes more than a second or two.
_QUICK_KINDS = 20
_LEAST_LOG_SHARE = -600.0
_SMALL_ERROR = 1e-3


def promise(target: Target, training: DPSGD, *, method: Method) -> Claim:
    """Return the claim that the training run makes about the target's quantity.

    Raises:
        InputError: The method has nothing to say about it.
    """
    if isinstance(method, Exact):
        claim = _exact(target, training)
        if claim.value is None:
            raise InputError(
                f"the wanted {target.in_words()} cannot be worked out here: {claim.note.rstrip('.')}."
            )
        return claim
    if isinstance(target, WantedEpsilon) or target.adjacency is not Adjacency.REPLACE_ONE:
        raise InputError(
            "the closed forms are about replaced records and give no epsilon, got the wanted"
            f" {target.in_words()}; use method=Exact()."
        )
    if isinstance(method, Corollary7):
        security = bayes_security_closed_form(training)
        if security.value is None:
            raise InputError(
                f"the {method.in_words()} does not fit sampled batches of a fixed size: {UNCOVERED}."
            )
        return _from_security(target, security)
    return _from_security(target, bayes_security_moment_matched(training))


def exact_beside(target: Target, training: DPSGD, claim: Claim) -> Claim | None:
    """Return what the exact method says where the claim is an approximation, if that is quick and settles the matter."""
    if claim.proven or isinstance(target, WantedEpsilon) or len(training.phases) > _QUICK_KINDS:
        return None
    exact = promise(target, training, method=Exact())
    return exact if keeps(target, exact) or _reached(target, training) else None


def _reached(target: Target, training: DPSGD) -> bool:
    """Return whether the exact law is known so well that what it says is the truth and not only a bound."""
    try:
        law = composed(training, adjacency=target.adjacency)
    except Unresolved:
        return False
    bound = total_variation(training, adjacency=target.adjacency).value
    value = law.total_variation()
    told_apart = law.error <= min(value, 1 - value) * _SMALL_ERROR
    return told_apart and value == bound and not only_a_bound(training)


def _exact(target: Target, training: DPSGD) -> Claim:
    if isinstance(target, WantedEpsilon):
        return epsilon(training, delta=target.delta, adjacency=target.adjacency)
    if isinstance(target, WantedTPR):
        return tpr_exact(training, fpr=target.at_fpr, adjacency=target.adjacency)
    advantage = total_variation(training, adjacency=target.adjacency)
    return advantage if isinstance(target, WantedAdvantage) else bayes_security_from_advantage(advantage)


def _from_security(target: Target, claim: Claim) -> Claim:
    if isinstance(target, WantedBayesSecurity):
        return claim
    if isinstance(target, WantedTPR):
        return tpr_from_advantage(claim, fpr=target.at_fpr)
    value = None if claim.value is None else 1 - claim.value
    method = f"1 - Bayes security; {claim.method}"
    return Claim("advantage", value, None, claim.adjacency, method, proven=claim.proven, note=claim.note)


def keeps(target: Target, claim: Claim) -> bool:
    """Return whether the claim is at least as good as the wanted number."""
    return claim.value is not None and target.kept_by(claim.value)


def excess(target: Target, claim: Claim) -> float:
    """Return the log of the leak over the wanted one, capped: not above 0 if and only if the promise is kept."""
    if keeps(target, claim):
        return min(0.0, _ratio(target, claim))
    return max(1e-12, _ratio(target, claim))


def _ratio(target: Target, claim: Claim) -> float:
    value = math.inf if claim.value is None else claim.value
    if isinstance(target, WantedBayesSecurity):
        leak, wanted = 1 - value, 1 - target.least
    elif isinstance(target, WantedTPR):
        leak, wanted = value - target.at_fpr, target.most - target.at_fpr
    else:
        leak, wanted = value, target.most
    if leak <= 0:
        return -_FAR
    return max(-_FAR, min(_FAR, math.log(leak) - math.log(wanted)))


def harmless_draw(target: Target) -> float:
    """Return the probability of entering any step up to which the promise holds without any noise."""
    if isinstance(target, WantedBayesSecurity):
        return 1 - target.least
    if isinstance(target, WantedTPR):
        return (target.most - target.at_fpr) / (1 - target.at_fpr)
    return target.delta if isinstance(target, WantedEpsilon) else target.most


def seldom_enough(target: Target, *, steps: int) -> float:
    """Return a sampling rate at which the record is so seldom drawn at all that the promise holds without any noise."""
    if isinstance(target, WantedEpsilon):  # by the union bound, as the accountant has it
        return min(1.0, target.delta / steps)
    return -math.expm1(math.log1p(-harmless_draw(target)) / steps)


def gaussian_half_mu(target: Target, *, method: Method) -> float:
    """Return half the distance of two unit normals that just keep the promise.

    For a closed form that is its own equation; for the exact method a first guess. A rate is reached by a closed form
    through the advantage it allows.
    """
    from scipy.special import erfcinv, erfinv, ndtri

    if isinstance(target, WantedEpsilon):
        return _half_mu_of_epsilon(target)
    if isinstance(target, WantedBayesSecurity):
        return math.sqrt(2) * float(erfcinv(target.least))
    if isinstance(target, WantedAdvantage):
        return math.sqrt(2) * float(erfinv(target.most))
    if isinstance(method, Exact):
        return float(ndtri(target.most) - ndtri(target.at_fpr)) / 2
    return math.sqrt(2) * float(erfinv(target.most - target.at_fpr))


def _half_mu_of_epsilon(target: WantedEpsilon) -> float:
    from scipy.optimize import brentq

    from auditor.theory.gaussian import gaussian_epsilon

    def gap(log_mu: float) -> float:
        reached = gaussian_epsilon(math.exp(log_mu), delta=target.delta)
        return math.log(max(reached, 1e-300)) - min(math.log(target.most), 50.0)

    low, high = -30.0, 30.0
    if gap(low) >= 0 or gap(high) <= 0:  # a wish beyond every run; as a first guess the end will do
        return math.exp(low if gap(low) >= 0 else high) / 2
    return math.exp(float(brentq(gap, low, high, xtol=1e-6))) / 2


def log_share_of(target: Target, noise: float, *, method: Method, sampling: Sampling) -> float:
    """Return log k(s) of the form, or of a first guess for the exact method."""
    if isinstance(method, Exact) and target.adjacency is Adjacency.ADD_REMOVE:
        u = min(noise**-2.0, 700.0) if noise > 1e-100 else 700.0  # noqa: PLR2004
        return math.log(math.expm1(u)) - math.log(4)
    form = MomentMatched() if isinstance(method, Exact) else method
    return float(log_k(np.asarray(noise), form=form, sampling=sampling))


def guessed_noise(target: Target, log_share: float, *, method: Method, sampling: Sampling) -> float:
    """Return the noise at which k(s) has this logarithm."""
    log_share = max(log_share, _LEAST_LOG_SHARE)  # a noise of e^300 is more than enough
    if isinstance(method, Exact) and target.adjacency is Adjacency.ADD_REMOVE:
        u = float(np.logaddexp(0.0, log_share + math.log(4))) if log_share > -30 else 4 * math.exp(log_share)  # noqa: PLR2004
        return float(u**-0.5)
    form = MomentMatched() if isinstance(method, Exact) else method
    return float(noise_of(np.asarray(log_share), form=form, sampling=sampling))
