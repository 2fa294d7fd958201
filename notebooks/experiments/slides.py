"""Formulas of the lecture slides "Gaussian DP and Privacy Auditing", as printed and corrected: to be set beside each other."""

import math

import numpy as np
from scipy import special

import auditor
from auditor import theory
from auditor.curves.tradeoff import concave_corners

__all__ = [
    "advanced_composition",
    "clt_of_gaussian_steps",
    "corollary_5_4",
    "gdp_from_limits",
    "in_both_orders",
    "sampled",
    "sampled_mu",
    "stated_beta",
    "theorem_3_4",
]


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


def corollary_5_4(mu: float, *, rate: float, steps: int) -> float:
    """Return the mu that sampled steps of this mu tend to, as corrected: one record replaced moves a clipped sum by 2."""
    run = auditor.DPSGD(2 / mu, rate, steps, sampling=auditor.FixedSizeSampling())
    return theory.mu_clt(run, adjacency=auditor.Adjacency.REPLACE_ONE).value


def theorem_3_4(curve: auditor.TradeoffCurve, *, steps: int) -> float:
    """Return 2 sqrt(k) k1 / sqrt(k2 - k1^2), the moments of the loss along a curve that is its own mirror image."""
    run, rise = np.diff(curve.fpr), np.diff(curve.tpr)
    run, rise = run[(run > 0) & (rise > 0)], rise[(run > 0) & (rise > 0)]
    losses = np.log(rise / run)
    mean, mean_square = rise @ losses, run @ losses**2
    return float(2 * math.sqrt(steps) * mean / math.sqrt(mean_square - mean**2))


def sampled(curve: auditor.TradeoffCurve, *, rate: float) -> auditor.TradeoffCurve:
    """Return f_q of the slides, TPR = q T(FPR) + (1 - q) FPR."""
    return auditor.TradeoffCurve(curve.fpr, np.minimum(rate * curve.tpr + (1 - rate) * curve.fpr, 1.0))


def in_both_orders(curve: auditor.TradeoffCurve) -> auditor.TradeoffCurve:
    """Return min(f, f^-1)**: the smallest concave curve above one and its mirror image in TPR = 1 - FPR."""
    fpr, tpr = np.append(curve.fpr, 1 - curve.tpr), np.append(curve.tpr, 1 - curve.fpr)
    order = np.lexsort((tpr, fpr))
    return auditor.TradeoffCurve(*(np.append(side, 1.0) for side in concave_corners(fpr[order], tpr[order])))
