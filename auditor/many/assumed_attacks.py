"""Attacks that a plan assumes: the separation of members from non-members before any losses are seen."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from auditor.core import Floats, as_stated, validate
from auditor.theory.gaussian import gaussian_epsilon

# --- Assumed attacks, as values: how well losses separate members from non-members before any are seen ---
#
# An attack is its trade-off curve: the true positive rate at every false positive rate, and back. Each curve here is the
# same with the two groups exchanged, so the true negative rate at a false negative rate is the same function.

# e^epsilon stays a double; so large an epsilon is a perfect attack for any number of records.
_LARGEST = 700.0


@dataclass(frozen=True)
class PerfectAttack:
    """Every member has a smaller loss than every non-member: no attack can do better.

    >>> PerfectAttack().tpr(np.array([0.0, 0.5]))
    array([1., 1.])
    """

    def tpr(self, fpr: Floats) -> Floats:
        """Return the true positive rate at these false positive rates."""
        return np.ones_like(fpr)

    def fpr(self, tpr: Floats) -> Floats:
        """Return the false positive rate at these true positive rates."""
        return np.zeros_like(tpr)

    def losses(self, fpr: Floats) -> Floats:
        """Return the losses at these false positive rates, on a scale where those of non-members are uniform."""
        return fpr

    def log_odds(self, fpr: Floats) -> Floats:
        """Return the log of how much likelier for a member than for a non-member the losses at these rates are."""
        return np.where(fpr > 0, -_LARGEST, _LARGEST)

    def leak(self, delta: float) -> float:  # noqa: ARG002 - the same for every delta below 1
        """Return the largest epsilon that its rates show."""
        return math.inf

    def in_words(self) -> str:
        """Return the attack as a phrase."""
        return "a perfect attack"


@dataclass(frozen=True)
class GaussianAttack:
    """Normal losses of equal variance, those of the members lower by ``mu`` standard deviations (above 0).

    Raises:
        InputError: ``mu`` is not above 0.

    >>> float(GaussianAttack(1.0).tpr(np.array(0.01)).round(6))
    0.092362
    """

    mu: float

    def __post_init__(self) -> None:
        vars(self)["mu"] = validate.positive("mu", self.mu)

    def tpr(self, fpr: Floats) -> Floats:
        """Return the true positive rate at these false positive rates."""
        return np.asarray(special.ndtr(special.ndtri(fpr) + self.mu))

    def fpr(self, tpr: Floats) -> Floats:
        """Return the false positive rate at these true positive rates."""
        return np.asarray(special.ndtr(special.ndtri(tpr) - self.mu))

    def losses(self, fpr: Floats) -> Floats:
        """Return the losses at these false positive rates, on a scale where those of non-members are standard normal."""
        return np.asarray(special.ndtri(np.clip(fpr, 1e-300, 1 - 1e-16)))

    def log_odds(self, fpr: Floats) -> Floats:
        """Return the log of how much likelier for a member than for a non-member the losses at these rates are."""
        return -self.mu * (self.losses(fpr) + self.mu / 2)

    def leak(self, delta: float) -> float:
        """Return the largest epsilon that its rates show: that of the Gaussian mechanism."""
        return gaussian_epsilon(self.mu, delta=delta)

    def in_words(self) -> str:
        """Return the attack as a phrase."""
        return f"normal losses, mu = {as_stated(self.mu)}"


@dataclass(frozen=True)
class RandomisedResponse:
    """The strongest losses that a pure ``epsilon`` (above 0) allows: each record answers truthfully with odds e^epsilon.

    Within an answer the losses do not depend on membership, and there are no ties.

    Raises:
        InputError: ``epsilon`` is not above 0, or above 700.

    >>> float(RandomisedResponse(1.0).tpr(np.array(0.1)).round(6))
    0.271828
    """

    epsilon: float

    def __post_init__(self) -> None:
        epsilon = validate.positive("epsilon of the randomised response", self.epsilon)
        vars(self)["epsilon"] = min(epsilon, _LARGEST)

    def tpr(self, fpr: Floats) -> Floats:
        """Return the true positive rate at these false positive rates."""
        return np.minimum(math.exp(self.epsilon) * fpr, 1 - math.exp(-self.epsilon) * (1 - fpr))

    def fpr(self, tpr: Floats) -> Floats:
        """Return the false positive rate at these true positive rates."""
        return np.maximum(math.exp(-self.epsilon) * tpr, 1 - math.exp(self.epsilon) * (1 - tpr))

    def losses(self, fpr: Floats) -> Floats:
        """Return the losses at these false positive rates, on a scale where those of non-members are uniform."""
        return fpr

    def log_odds(self, fpr: Floats) -> Floats:
        """Return the log of how much likelier for a member than for a non-member the losses at these rates are."""
        return np.where(fpr < special.expit(-self.epsilon), self.epsilon, -self.epsilon)

    def leak(self, delta: float) -> float:
        """Return the largest epsilon that its rates show, at the corner of its curve."""
        power = float(special.expit(self.epsilon)) - delta
        return max(0.0, math.log(power) - float(special.log_expit(-self.epsilon))) if power > 0 else 0.0

    def in_words(self) -> str:
        """Return the attack as a phrase."""
        return f"randomised response, epsilon {as_stated(self.epsilon)}"


Attack = PerfectAttack | GaussianAttack | RandomisedResponse
ATTACKS: dict[str, Callable[..., Attack]] = {
    "perfect": PerfectAttack,
    "gaussian": GaussianAttack,
    "randomised-response": RandomisedResponse,
}
