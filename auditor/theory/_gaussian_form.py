"""The Gaussian comparison that stands for a run of DP-SGD in closed form: one number, (mu/2)^2, adds up over steps.

The run is taken for a comparison of N(mu/2, 1) with N(-mu/2, 1), where (mu/2)^2 is the sum over the steps of
p^2 k(s): at rate p and noise multiplier s, for one replaced record. A form is a choice of k.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from auditor.choices import DPSGD
from auditor.errors import InputError
from auditor.training import FixedSizeSampling, Sampling
from auditor.values import Floats

__all__ = [
    "UNCOVERED",
    "ClosedForm",
    "Corollary7",
    "MomentMatched",
    "covers",
    "is_sampled",
    "log_half_mu",
    "log_k",
    "log_wanted",
    "noise_of",
    "overlap",
]


@dataclass(frozen=True)
class Corollary7:
    """The published closed form, k(s) = 1/s^2: can be on the unsafe side (Cherubin et al. 2024, Corollary 7).

    It is about batches drawn by independent coins; batches of a fixed size give more away.
    """

    caveat: ClassVar[str] = "can be on the unsafe side"

    def in_words(self) -> str:
        """Return its name as a phrase."""
        return "closed form of Corollary 7"


@dataclass(frozen=True)
class MomentMatched:
    """The second moment of one step's log-ratio, k(s) = sinh(1/s^2): on the safe side wherever it was tried [own]."""

    caveat: ClassVar[str] = "was on the safe side wherever it was tried, which is no proof"

    def in_words(self) -> str:
        """Return its name as a phrase."""
        return "moment-matched closed form"


ClosedForm = Corollary7 | MomentMatched


UNCOVERED = (
    "the published form is about batches drawn by independent coins, and batches of a fixed size give away more; use the"
    " moment-matched form"
)


def covers(form: ClosedForm, *, sampling: Sampling, sampled: bool) -> bool:
    """Return whether a form is about batches drawn like this; ``sampled``: whether any sampling rate is below 1."""
    return not (sampled and isinstance(form, Corollary7) and isinstance(sampling, FixedSizeSampling))


def log_half_mu(training: DPSGD, *, form: ClosedForm) -> float:
    """Return log(mu / 2), half the distance of the two Gaussians that the form takes the run for; steps add up.

    Raises:
        InputError: The form is not about batches drawn like this.
    """
    phases = training.phases
    if not covers(form, sampling=training.sampling, sampled=is_sampled(training)):
        raise InputError(f"{UNCOVERED}.")
    noise = np.array([phase.noise_multiplier for phase in phases])
    rate = np.array([phase.sampling_rate for phase in phases])
    steps = np.array([float(phase.steps) for phase in phases])
    parts = 2 * np.log(rate) + np.log(steps) + log_k(noise, form=form, sampling=training.sampling)
    return float(np.logaddexp.reduce(parts)) / 2


def is_sampled(training: DPSGD) -> bool:
    """Return whether any step leaves records out."""
    return any(phase.sampling_rate < 1 for phase in training.phases)


def noise_of(log_share: Floats, *, form: ClosedForm, sampling: Sampling) -> Floats:
    """Return the noise multiplier s at which k(s) has this logarithm."""
    if isinstance(form, Corollary7):
        return np.exp(-log_share / 2)
    if isinstance(sampling, FixedSizeSampling):
        return 2 / _mu_of_pair(log_share + math.log(2))
    # asinh(x) is log(2x) where sinh overflows, and x to all digits where it is tiny.
    moderate = np.arcsinh(np.exp(np.clip(log_share, -300.0, 300.0)))
    u = np.where(log_share > 300, log_share + math.log(2), moderate)  # noqa: PLR2004
    return np.where(log_share < -300, np.exp(-log_share / 2), u**-0.5)  # noqa: PLR2004


def overlap(log_half: Any) -> Floats:
    """Return 1 - TV(N(0, 1), N(mu, 1)) = erfc(mu / (2 sqrt2)) from log(mu / 2)."""
    from scipy.special import erfc

    # erfc underflows to 0 from mu/2 = 39 on, so capping the exponent changes nothing.
    shared: Floats = erfc(np.exp(np.minimum(log_half, 10.0)) / math.sqrt(2))
    return shared


def log_wanted(bayes_security: Floats) -> Floats:
    """Return log(mu / 2) at which the two Gaussians overlap this much; far below 0 where 1 is wanted to all digits."""
    from scipy.special import erfcinv

    return np.log(np.maximum(erfcinv(bayes_security), 1e-300)) + math.log(2) / 2


def log_k(noise: Floats, *, form: ClosedForm, sampling: Sampling) -> Floats:
    """Return log k(s), the logarithm of one step's share of (mu/2)^2 at rate 1."""
    log_u = -2 * np.log(noise)
    if isinstance(form, Corollary7):
        return log_u
    if isinstance(sampling, FixedSizeSampling):
        return _log_excess(math.log(2) + log_u / 2) - math.log(2)
    u = np.exp(np.clip(log_u, -20.0, 700.0))  # a larger u saturates the value to 0 all the same
    log_sinh = u + np.log(-np.expm1(-2 * u)) - math.log(2)
    return np.where(log_u < -20, log_u, log_sinh)  # noqa: PLR2004  sinh(u) = u to all digits


def _log_excess(log_mu: Floats) -> Floats:
    """Return the log of E[(e^l - 1)^2; l > 0], the unsampled log-ratio l of N(mu, 1) to N(0, 1) being under N(0, 1).

    That is e^(mu^2) Phi(3 mu/2) + 3 Phi(-mu/2) - 2, about mu^2/2 for small mu and e^(mu^2) for large.
    """
    from scipy.special import erf, ndtr

    mu = np.exp(np.clip(log_mu, -20.0, math.log(6)))
    # Phi(3 mu/2) + 3 Phi(-mu/2) - 2 in two ways: its series where the difference would cancel.
    root = math.sqrt(8)
    series = (mu**3 / -2 + 3 / 16 * mu**5) / math.sqrt(2 * math.pi)
    rest = np.where(mu < 1e-3, series, (erf(3 * mu / root) - 3 * erf(mu / root)) / 2)  # noqa: PLR2004
    middle = np.log(np.expm1(mu**2) * ndtr(1.5 * mu) + rest)
    square = np.exp(np.minimum(2 * log_mu, 700.0))
    large = square + np.log1p(
        -2 * np.exp(-np.maximum(square, 1.0))
    )  # the rest is below rounding from mu = 6 on
    return np.where(log_mu < -20, 2 * log_mu - math.log(2), np.where(log_mu > math.log(6), large, middle))  # noqa: PLR2004


def _mu_of_pair(log_excess: Floats) -> Floats:
    """Return the mu at which `_log_excess` has this value, by Newton's method in logs (a convex function there)."""
    from scipy.special import log_ndtr

    goal = np.asarray(log_excess, dtype=np.float64)
    # From the right of the root, where Newton's steps never overshoot: log excess is at least each of these.
    log_mu = np.minimum((goal + math.log(2)) / 2, np.log(np.maximum(goal + 1, 1.0)) / 2 + 1)
    for _ in range(25):
        value = _log_excess(log_mu)
        square = np.exp(np.minimum(2 * log_mu, 700.0))
        # d excess / d mu = 2 mu e^(mu^2) Phi(3 mu/2)
        slope = np.exp(
            np.minimum(math.log(2) + 2 * log_mu + square + log_ndtr(1.5 * np.sqrt(square)) - value, 700.0)
        )
        step = (value - goal) / slope
        log_mu = log_mu - step
        if np.all(np.abs(step) < 1e-12):  # noqa: PLR2004
            break
    return np.exp(log_mu)
