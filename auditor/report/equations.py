# ruff: noqa: RUF001 - equations are written with the signs of mathematics
"""The equation of each number, and where it comes from."""

from auditor.report import labels
from auditor.report.lookup import dig
from auditor.values import Estimate

__all__ = ["equation"]

_RATIOS = "Kairouz, Oh and Viswanath 2015, Theorem 1, as in Negoescu et al. 2024"
# What is computed, and where the equation comes from; keyed by name, and by words of the method where it differs.
_EQUATIONS = {
    ("epsilon_bound.clopper_pearson", "melded"): (
        "one lower limit of ln((TPR − δ) / FPR) at low losses, or of ln((TNR − δ) / FNR) at high ones",
        f"{_RATIOS}; Fay, Proschan and Brittain 2015",
    ),
    ("epsilon_bound.clopper_pearson", ""): (
        (
            "ε ≥ ln((TPR⁻ − δ) / FPR⁺) at low losses, or ln((TNR⁻ − δ) / FNR⁺) at high ones; ⁻ and ⁺ are certified lower and"
            " upper limits"
        ),
        f"{_RATIOS}; Clopper and Pearson 1934",
    ),
    ("epsilon_bound.one_run", "Theorem 5.2"): (
        (
            "the largest ε at which v or more right guesses of r are too unlikely: P[W ≥ v] + 2mδ max over i of"
            " P[v − i ≤ W ≤ v − 1] / i ≤ 1 − confidence, with W binomial(r, e^ε / (1 + e^ε)) and m pairs"
        ),
        "Steinke, Nasr and Jagielski 2023, Theorem 5.2",
    ),
    ("epsilon_bound.one_run", "f-DP"): (
        "the largest ε whose trade-off curve the number of right guesses rejects, by a recursion over that number",
        "Mahloujifar, Melis and Chaudhuri 2024, Algorithm 3",
    ),
    ("epsilon_bound.one_run_gdp", ""): (
        (
            "the largest μ whose Gaussian trade-off curve Φ(Φ⁻¹(1 − α) − μ) the number of right guesses rejects, then its ε at"
            " this δ"
        ),
        "Mahloujifar, Melis and Chaudhuri 2024, Algorithm 3; Dong, Roth and Su 2022",
    ),
    ("epsilon_bound.gdp", ""): (
        "μ = Φ⁻¹(1 − FPR⁺) − Φ⁻¹(FNR⁺), then the ε of that Gaussian trade-off curve at this δ",
        "Nasr et al. 2023; Dong, Roth and Su 2022",
    ),
    ("epsilon_star.gaussian", ""): (
        (
            "ε* = ln max(1, sup over thresholds of (TPR − δ)/FPR, (TNR − δ)/FNR, (FNR − δ)/TNR, (FPR − δ)/TPR), by two fitted"
            " normals, with FPR and FNR between δ and 1 − δ"
        ),
        "Negoescu et al. 2024, Definition 2 and Appendix B",
    ),
    ("epsilon_star.mixture", ""): (
        "the same supremum, by two fitted mixtures of normals",
        "Negoescu et al. 2024, Definition 2 and Appendix B",
    ),
    ("epsilon_star.empirical", ""): (
        "the same supremum, by the error rates in the data themselves, between 0.001 and 0.999",
        "Negoescu et al. 2024, Definition 2",
    ),
    ("advantage", ""): (
        (
            "the largest TPR − FPR over all thresholds, plus or minus the sum of √(ln(2k/α) / 2n) over the k groups that are"
            " samples, with α = 1 − confidence"
        ),
        "Dvoretzky, Kiefer and Wolfowitz 1956; Massart 1990",
    ),
    ("bayes_security", ""): ("β* = 1 − advantage", "Cherubin et al. 2024, Section 2.3"),
    ("auc", ""): ("P[member's loss < other's loss] + ½ P[equal]", "DeLong 1988; Newcombe 2006"),
}
_TPR = (
    "TPR⁻ at the largest rank fixed in advance whose FPR⁺ does not exceed the rate",
    "Carlini et al. 2022, on low false positive rates; Clopper and Pearson 1934",
)


def equation(estimate: Estimate) -> tuple[str, str]:
    """Return the equation of an estimate and its source; nothing where there is none, or where limits are approximate."""
    if labels.rate_of(estimate) is not None:
        return _TPR
    if dig(estimate.details, "approximate"):
        return "", ""
    found = (
        value
        for (name, words), value in _EQUATIONS.items()
        if name == estimate.name and words in estimate.method
    )
    return next(found, ("", ""))
