"""Loss distributions whose Epsilon* is known: the simulations of Negoescu et al. 2024, Appendix B.

A pair of laws says what the losses of members and of non-members are drawn from. From a pair one gets its exact rates
at any threshold, and so its true Epsilon*, or samples, from which Epsilon* has to be estimated.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import auditor
from auditor.curves import Gaussian
from auditor.estimators import gaussian_supremum

__all__ = [
    "EMPIRICAL_CLIP",
    "LossLaws",
    "Rates",
    "distances",
    "gamma_laws",
    "normal_laws",
    "outliers",
    "simulated",
]

EMPIRICAL_CLIP = 0.001  # Section 8.1: both empirical rates are kept in (0.001, 0.999)

_TAIL = np.geomspace(1e-13, 0.5, 40_001)


@dataclass(frozen=True)
class Rates:
    """Error rates of the attacker who says "member" at or below a threshold.

    Attributes:
        fpr: Shape (k,), false positive rate at each threshold.
        fnr: Shape (k,), false negative rate.
    """

    fpr: np.ndarray
    fnr: np.ndarray

    @classmethod
    def counted(cls, losses: auditor.Losses) -> "Rates":
        """Return the shares of the records, at every distinct loss of either group: the empirical rates."""
        thresholds = np.unique(np.concatenate([losses.member, losses.nonmember]))
        fpr = np.searchsorted(losses.sorted_nonmember, thresholds, side="right") / losses.n_nonmember
        return cls(fpr, 1 - np.searchsorted(losses.sorted_member, thresholds, side="right") / losses.n_member)

    def inside(self, clip: float) -> "Rates":
        """Keep the thresholds at which both rates lie in [clip, 1 - clip]."""
        kept = np.minimum(self.fpr, self.fnr) >= clip * (1 - 1e-9)
        kept &= np.maximum(self.fpr, self.fnr) <= 1 - clip * (1 - 1e-9)
        return Rates(self.fpr[kept], self.fnr[kept])

    def ratios(self, delta: float) -> dict[str, np.ndarray]:
        """Return the four ratios of Equation 7 at every threshold."""
        tpr, tnr = 1 - self.fnr, 1 - self.fpr
        with np.errstate(divide="ignore", invalid="ignore"):
            return {
                "m1": (tpr - delta) / self.fpr,
                "m2": (tnr - delta) / self.fnr,
                "m3": (self.fnr - delta) / tnr,
                "m4": (self.fpr - delta) / tpr,
            }

    def epsilon_star(self, delta: float) -> float:
        """Return the log of the largest ratio, and at least 0: Definition 2."""
        largest = max((float(np.nanmax(ratio)) for ratio in self.ratios(delta).values()), default=1.0)
        return float(np.log(max(1.0, largest)))


@dataclass(frozen=True)
class LossLaws:
    """What member and non-member losses are drawn from.

    Attributes:
        member: A frozen SciPy distribution.
        nonmember: Likewise.
    """

    member: Any
    nonmember: Any

    def rates_at(self, thresholds: np.ndarray) -> Rates:
        """Return the exact rates; each tail is computed on its own side, so that none is lost to rounding."""
        return Rates(self.nonmember.cdf(thresholds), self.member.sf(thresholds))

    def true_epsilon_star(self, *, delta: float, clip: float = 0.0) -> float:
        """Return the true Epsilon*, from 160,000 thresholds dense in all four tails and the ends of the clip.

        Args:
            delta: In (0, 1).
            clip: Both rates are kept in [clip, 1 - clip].
        """
        ends = np.array([clip, 1 - clip]) if clip > 0 else np.array([])
        levels = np.concatenate([_TAIL, ends])
        found = [law.ppf(levels) for law in (self.member, self.nonmember)]
        found += [law.isf(levels) for law in (self.member, self.nonmember)]
        rates = self.rates_at(np.unique(np.concatenate(found)))
        return rates.inside(clip).epsilon_star(delta)

    def sample(self, size: int, *, seed: int) -> auditor.Losses:
        """Draw this many losses of each group."""
        rng = np.random.default_rng(seed)
        return auditor.Losses(
            member=self.member.rvs(size, random_state=rng),
            nonmember=self.nonmember.rvs(size, random_state=rng),
        )


def gamma_laws(further: float) -> LossLaws:
    """Gamma(2, 5) for members and Gamma(2 + further, 5) for non-members, as in Section 8.1."""
    return LossLaws(stats.gamma(2, scale=5), stats.gamma(2 + further, scale=5))


def normal_laws(mean: float) -> LossLaws:
    """N(0, 1) for members and N(mean, 1) for non-members, as in Figure 3 with mean 3."""
    return LossLaws(stats.norm(0, 1), stats.norm(mean, 1))


def simulated(case: Mapping[str, Any], *, seed: int) -> dict[str, Any]:
    """Audit one sample of the gamma laws: a task for `experiments.grid.run_all`.

    Args:
        case: ``d``, the further shape of the non-members' law; ``n``, records of each group; ``delta``; ``repeat``.
        seed: Of the sample.

    Returns:
        The empirical and the parametric value, both with the clips of Section 8.1; the parametric value with the clip of
        the empirical one; the noise floor; the certified bound; whether the fit is rejected.
    """
    delta = float(case["delta"])
    losses = gamma_laws(case["d"]).sample(case["n"], seed=seed)
    result = auditor.audit(losses, delta=delta, disclosure="insiders")
    parametric = result.estimate("epsilon_star.gaussian")
    fit = parametric.details["fit"]
    laws = [Gaussian(fit[side]["mean"], fit[side]["sd"]) for side in ("member", "nonmember")]
    return {
        "empirical": result.estimate("epsilon_star.empirical").value,
        "parametric": parametric.value,
        "parametric, clip 0.001": gaussian_supremum(*laws, delta=delta, clip=EMPIRICAL_CLIP).value,
        "noise floor": parametric.details["noise_floor"]["mean"],
        "certified": result.estimate("epsilon_bound.clopper_pearson").value,
        "fit rejected": bool(fit["rejected"]),
    }


def distances(runs: pd.DataFrame, truth: pd.DataFrame) -> pd.DataFrame:
    """Return how far the estimates are from the truth on average, for each setting, and which is closer.

    Args:
        runs: Of `simulated`.
        truth: True values, columns "clip δ" and "clip 0.001", indexed by d.
    """
    wide, narrow = (runs["d"].map(truth[name]) for name in ("clip δ", "clip 0.001"))
    away = pd.DataFrame(
        {
            "parametric, from clip δ": (runs["parametric"] - wide).abs(),
            "empirical, from clip δ": (runs["empirical"] - wide).abs(),
            "parametric at clip 0.001, from it": (runs["parametric, clip 0.001"] - narrow).abs(),
            "empirical, from clip 0.001": (runs["empirical"] - narrow).abs(),
        }
    )
    away = away.groupby([runs["d"], runs["n"]]).mean().round(2)
    for name, first in (("closer, as in the paper", 0), ("closer, same clip", 2)):
        gap = away.iloc[:, first] - away.iloc[:, first + 1]
        away[name] = np.select([gap < 0, gap > 0], ["parametric", "empirical"], "tie")
    return away


def outliers(losses: auditor.Losses, *, factor: float) -> dict[str, auditor.Losses]:
    """Return the losses as they are, and with one record of either group at so many times the largest loss.

    Args:
        losses: Of both groups.
        factor: Above 1.
    """
    member, nonmember = losses.member, losses.nonmember
    huge = factor * max(member.max(), nonmember.max())
    return {
        "as drawn": losses,
        "one member's loss is huge": auditor.Losses(member=[huge, *member[1:]], nonmember=nonmember),
        "one non-member's loss is huge": auditor.Losses(member=member, nonmember=[huge, *nonmember[1:]]),
    }
