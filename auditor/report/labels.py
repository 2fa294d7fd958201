"""What each name means to a reader who is not a statistician: fixed words, nothing computed."""

from dataclasses import dataclass

from auditor.report import formatting
from auditor.report.lookup import amount, dig
from auditor.values import Estimate, Status, Subject, Verdict

__all__ = [
    "ABOUT",
    "STATUS",
    "VERDICT",
    "Label",
    "Sign",
    "describe",
    "metric",
]


@dataclass(frozen=True)
class Label:
    """An estimate's title and one plain sentence about it."""

    title: str
    plain: str


@dataclass(frozen=True)
class Sign:
    """A status as a word, a symbol and a tone, so that colour is never its only carrier."""

    word: str
    symbol: str
    tone: str


VERDICT = {
    Verdict.REFUTED: Sign("Claim refuted", "✕", "bad"),
    Verdict.NOT_REFUTED: Sign("Claim not refuted", "≤", "plain"),
    Verdict.INCONCLUSIVE: Sign("Inconclusive", "≈", "caution"),
    Verdict.NOT_EVALUABLE: Sign("Not evaluable", "?", "caution"),
    None: Sign("No claim to judge", "–", "plain"),  # noqa: RUF001 a dash is meant
}

STATUS = {
    Status.OK: Sign("OK", "✓", "good"),
    Status.WARN: Sign("Warning", "!", "caution"),
    Status.FAIL: Sign("Failed", "✕", "bad"),
    Status.UNKNOWN: Sign("Unknown", "?", "plain"),
}

ABOUT = {Subject.MODEL: "this model", Subject.MECHANISM: "the training algorithm"}

_LABELS = {
    "epsilon_bound.clopper_pearson": Label(
        "Certified epsilon bound",
        "Separation that is certain at the stated confidence, whatever shape the losses have.",
    ),
    "epsilon_bound.one_run": Label(
        "Training algorithm bound",
        "A certified bound on the epsilon of the training algorithm: the only number here that can refute a claim.",
    ),
    "epsilon_star.gaussian": Label(
        "Epsilon*, Gaussian fit",
        "The published estimate: what two fitted normal curves imply. It is only as good as the fit.",
    ),
    "epsilon_star.mixture": Label(
        "Epsilon*, mixture fit", "The same with a mixture of normal curves in each group."
    ),
    "epsilon_bound.gdp": Label(
        "Bound if the curve is Gaussian",
        "What the losses would imply if their trade-off curve were Gaussian; on other losses it can exceed the truth.",
    ),
    "epsilon_bound.one_run_gdp": Label(
        "Training algorithm, if Gaussian",
        "The same for the training algorithm, if its trade-off curve were Gaussian. It refutes nothing.",
    ),
    "epsilon_bound.instances": Label(
        "Training algorithm bound, several models",
        "A certified bound on the training algorithm's epsilon from several models with fresh splits.",
    ),
    "epsilon_bar": Label(
        "Epsilon-bar",
        "What the averaged rates of several models show; an estimate that tends to be too high.",
    ),
    "epsilon_bar.log_mean_exp": Label(
        "Log mean exp(Epsilon*)", "An average over models: it lies above epsilon-bar and judges no claim."
    ),
    "epsilon_star.empirical": Label(
        "Epsilon*, no fit",
        "The largest ratio seen in the data themselves; tends to be too high on few records.",
    ),
    "advantage": Label(
        "Membership advantage",
        "Largest gap between recognised training records and false alarms: 0 is guessing, 1 is total.",
    ),
    "bayes_security": Label(
        "Bayes security",
        "1 means that the attacker can only guess, 0 that they are always right; stronger attackers may push it lower.",
    ),
    "auc": Label(
        "AUC",
        "How often a random training record has a lower loss than a random other record; guessing gives 0.5.",
    ),
}

# Of an audit of many runs, where the same names are about the training algorithm.
_OF_RUNS = {
    "epsilon_bound.clopper_pearson": Label(
        "Certified bound, many runs",
        "A certified bound on the training algorithm's epsilon, and the only number here that can refute a claim.",
    ),
    "epsilon_bound.katz": Label(
        "Katz bound, approximate",
        "The same by large-sample limits of the ratio: with few runs it can promise too much. It refutes nothing.",
    ),
    "epsilon_bound.bayesian": Label(
        "Bayesian bound, credible",
        "Where epsilon lies by a posterior: right on average over a prior, not for every algorithm. It refutes nothing.",
    ),
    "epsilon_bound.gdp": Label(
        "Bound if the curve is Gaussian",
        "The training algorithm's epsilon, if its trade-off curve were Gaussian. It refutes nothing.",
    ),
}

_APPROXIMATE = Label(
    "Approximate epsilon bound",
    "From large-sample limits at one threshold: it can promise too much, and certifies nothing.",
)

_METRICS = {
    "epsilon": "Epsilon",
    "advantage": "Membership advantage",
    "bayes_security": "Bayes security",
    "attribute_advantage": "Attribute inference advantage",
    "attribute_bayes_security": "Bayes security (attribute inference)",
}


def describe(estimate: Estimate) -> Label:
    """Return an estimate's title and plain sentence; an unknown name speaks for itself."""
    rate = rate_of(estimate)
    if rate is not None:
        return Label(
            f"TPR at {formatting.percent(rate)} FPR",
            f"Training records recognised when {formatting.odds(rate)} is accepted;"
            f" guessing recognises {formatting.percent(rate)}.",
        )
    if dig(estimate.details, "unit") == "runs" and estimate.name in _OF_RUNS:
        return _OF_RUNS[estimate.name]
    if dig(estimate.details, "approximate"):
        return _APPROXIMATE
    return _LABELS.get(estimate.name, Label(formatting.clean(estimate.name), ""))


def rate_of(estimate: Estimate) -> float | None:
    """Return the false positive rate that a ``tpr_at_fpr.*`` row is about."""
    prefix, _, rest = estimate.name.partition(".")
    if prefix != "tpr_at_fpr":
        return None
    try:
        named = float(rest)
    except ValueError:
        named = None
    stated = amount(estimate.details, "rate")
    return named if stated is None else stated


def metric(name: str) -> str:
    """Return what a claim is about, in words."""
    return _METRICS.get(name, formatting.clean(name))
