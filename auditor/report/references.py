"""The papers behind the numbers: what an audit used, as a numbered list of full references."""

from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["REFERENCES", "Reference", "cited"]


@dataclass(frozen=True)
class Reference:
    """A paper, and the words by which texts of an audit name it.

    Attributes:
        key: Short and unique, for links.
        names: A text that holds one of these rests on the paper.
        full: Authors, year, title and where it appeared.
    """

    key: str
    names: tuple[str, ...]
    full: str


REFERENCES = (
    Reference(
        "negoescu",
        ("Negoescu et al.",),
        "Negoescu, D. M.; Gonzalez, H.; Al Orjany, S. E.; Yang, J.; Lut, Y.; Tandra, R.; Zhang, X.; Zheng, X.; Douglas, Z.;"
        " Nolkha, V.; Ahammad, P.; and Samorodnitsky, G. 2024. Epsilon*: Privacy Metric for Machine Learning Models."
        " arXiv:2307.11280.",
    ),
    Reference(
        "kairouz",
        ("Kairouz, Oh and Viswanath",),
        "Kairouz, P.; Oh, S.; and Viswanath, P. 2015. The Composition Theorem for Differential Privacy. International"
        " Conference on Machine Learning, 1376–1385.",  # noqa: RUF001 pages
    ),
    Reference(
        "clopper",
        ("Clopper-Pearson", "Clopper and Pearson"),
        "Clopper, C. J.; and Pearson, E. S. 1934. The Use of Confidence or Fiducial Limits Illustrated in the Case of the"
        " Binomial. Biometrika, 26(4): 404–413.",  # noqa: RUF001 pages
    ),
    Reference(
        "fay",
        ("melded", "Fay, Proschan and Brittain"),
        "Fay, M. P.; Proschan, M. A.; and Brittain, E. 2015. Combining One-Sample Confidence Procedures for Inference in the"
        " Two-Sample Case. Biometrics, 71: 146–156.",  # noqa: RUF001 pages
    ),
    Reference(
        "steinke",
        ("Steinke, Nasr and Jagielski",),
        "Steinke, T.; Nasr, M.; and Jagielski, M. 2023. Privacy Auditing with One (1) Training Run. arXiv:2305.08846.",
    ),
    Reference(
        "fdp",
        ("Mahloujifar, Melis and Chaudhuri",),
        "Mahloujifar, S.; Melis, L.; and Chaudhuri, K. 2024. Auditing f-Differential Privacy in One Run. arXiv:2410.22235;"
        " International Conference on Machine Learning 2025, PMLR 267: 42615–42641.",  # noqa: RUF001 pages
    ),
    Reference(
        "nasr",
        ("Nasr et al. 2023",),
        "Nasr, M.; Hayes, J.; Steinke, T.; Balle, B.; Tramèr, F.; Jagielski, M.; Carlini, N.; and Terzis, A. 2023. Tight"
        " Auditing of Differentially Private Machine Learning. arXiv:2302.07956.",
    ),
    Reference(
        "dong",
        ("Dong, Roth and Su",),
        "Dong, J.; Roth, A.; and Su, W. J. 2022. Gaussian Differential Privacy. Journal of the Royal Statistical Society"
        " Series B: Statistical Methodology, 84(1): 3–37.",  # noqa: RUF001 pages
    ),
    Reference(
        "cherubin",
        ("Cherubin et al.",),
        "Cherubin, G.; Köpf, B.; Paverd, A.; Tople, S.; Wutschitz, L.; and Zanella-Béguelin, S. 2024. Closed-Form Bounds for"
        " DP-SGD against Record-level Inference. arXiv:2402.14397; USENIX Security Symposium 2024.",
    ),
    Reference(
        "totalvariation",
        ("Mahloujifar et al. 2022",),
        "Mahloujifar, S.; Sablayrolles, A.; Cormode, G.; and Jha, S. 2022. Optimal Membership Inference Bounds for Adaptive"
        " Composition of Sampled Gaussian Mechanisms. arXiv:2204.06106.",
    ),
    Reference(
        "humphries",
        ("Humphries et al.",),
        "Humphries, T.; Oya, S.; Tulloch, L.; Rafuse, M.; Goldberg, I.; Hengartner, U.; and Kerschbaum, F. 2021. Investigating"
        " Membership Inference Attacks under Data Dependencies. arXiv:2010.12112.",
    ),
    Reference(
        "carlini",
        ("Carlini et al. 2022",),
        "Carlini, N.; Chien, S.; Nasr, M.; Song, S.; Terzis, A.; and Tramèr, F. 2022. Membership Inference Attacks From First"
        " Principles. IEEE Symposium on Security and Privacy, 1897–1914.",  # noqa: RUF001 pages
    ),
    Reference(
        "delong",
        ("DeLong",),
        "DeLong, E. R.; DeLong, D. M.; and Clarke-Pearson, D. L. 1988. Comparing the Areas under Two or More Correlated Receiver"
        " Operating Characteristic Curves: A Nonparametric Approach. Biometrics, 44(3): 837–845.",  # noqa: RUF001 pages
    ),
    Reference(
        "newcombe",
        ("Newcombe",),
        "Newcombe, R. G. 2006. Confidence Intervals for an Effect Size Measure Based on the Mann-Whitney Statistic. Part 2:"
        " Asymptotic Methods and Evaluation. Statistics in Medicine, 25: 559–573.",  # noqa: RUF001 pages
    ),
    Reference(
        "dkw",
        ("Dvoretzky",),
        "Dvoretzky, A.; Kiefer, J.; and Wolfowitz, J. 1956. Asymptotic Minimax Character of the Sample Distribution Function"
        " and of the Classical Multinomial Estimator. Annals of Mathematical Statistics, 27: 642–669.",  # noqa: RUF001 pages
    ),
    Reference(
        "massart",
        ("Massart",),
        "Massart, P. 1990. The Tight Constant in the Dvoretzky–Kiefer–Wolfowitz Inequality. Annals of Probability, 18(3):"  # noqa: RUF001 names
        " 1269–1283.",  # noqa: RUF001 pages
    ),
    Reference(
        "lopezpaz",
        ("Lopez-Paz and Oquab",),
        "Lopez-Paz, D.; and Oquab, M. 2017. Revisiting Classifier Two-Sample Tests. International Conference on Learning"
        " Representations; arXiv:1610.06545.",
    ),
    Reference(
        "nanayakkara",
        ("Nanayakkara et al.",),
        "Nanayakkara, P.; Smart, M. A.; Cummings, R.; Kaptchuk, G.; and Redmiles, E. M. 2023. What Are the Chances? Explaining"
        " the Epsilon Parameter in Differential Privacy. USENIX Security Symposium 2023; arXiv:2303.00738.",
    ),
)


def cited(texts: Iterable[str]) -> tuple[Reference, ...]:
    """Return the papers that these texts name, in the order of the list.

    >>> [item.key for item in cited(["Clopper-Pearson limits; Nasr et al. 2023"])]
    ['clopper', 'nasr']
    """
    whole = "\n".join(texts)
    return tuple(item for item in REFERENCES if any(name in whole for name in item.names))
