"""Formulas of the lecture slides "Gaussian DP and Privacy Auditing", as printed: to be set beside the corrected ones."""

import math

import numpy as np
from scipy import special

__all__ = ["advanced_composition", "clt_of_gaussian_steps", "gdp_from_limits", "sampled_mu", "stated_beta"]


def advanced_composition(epsilon: float, *, steps: np.ndarray | int, slack: float) -> np.ndarray:
    """Return the printed epsilon of all steps; its second term lacks a factor epsilon."""
    root = epsilon * np.sqrt(2 * np.asarray(steps) * math.log(1 / slack))
    return np.asarray(root + np.asarray(steps) * math.tanh(epsilon / 2))


def clt_of_gaussian_steps(mu: float, *, steps: int) -> float:
    """Return Theorem 3.4 as printed, 2 sqrt(k) k1 / (k1 - k2) with k2 = -(mean of the squared loss), for steps of this mu."""
    mean, mean_square = mu**2 / 2, mu**2 + mu**4 / 4
    return 2 * math.sqrt(steps) * mean / (mean + mean_square)


def sampled_mu(mu: float, *, rate: float, steps: int) -> float:
    """Return Corollary 5.4 as printed: no square root of 2, and a factor that ends after the first of three terms."""
    first = rate * math.sqrt(steps) * math.sqrt(math.exp(mu**2)) * special.ndtr(1.5 * mu)
    return float(first + 3 * special.ndtr(-mu / 2) - 2)


def stated_beta(alpha: float, *, epsilon: float, delta: float) -> float:
    """Return Proposition 2.5 as printed: the least beta at this alpha by (epsilon, delta)-DP, without the 0."""
    return max(1 - delta - math.exp(epsilon) * alpha, (1 - delta - alpha) / math.exp(epsilon))


def gdp_from_limits(alpha: float, beta: float) -> float:
    """Return mu = Phi^-1(1 - alpha) - Phi^-1(beta), which is a lower bound only if both are upper limits."""
    return float(-special.ndtri(alpha) - special.ndtri(beta))
