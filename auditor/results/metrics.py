"""The registry of metrics: what each number of an audit is, told once, with the words and signs that every output shares.

Report, gates, schema, comparison, terminal, help and glossary read `METRICS` and name no number themselves: whoever needs
a certain one asks for its `Role`. To add an estimator, add its entry here.
"""

# ruff: noqa: RUF001 - equations are written with the signs of mathematics

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from auditor.checks.registry import CHECKS
from auditor.core import numbers
from auditor.core.registry import Equation, Metric, Registry, Role, Unit
from auditor.core.values import Check, Estimate, Status, Subject, Verdict
from auditor.results.document import AuditDocument, Slice, detail, find

# --- The metrics of an audit of one model ---


_RATIOS = "Kairouz, Oh and Viswanath 2015, Theorem 1, as in Negoescu et al. 2024"
_PARAMETRIC = "Negoescu et al. 2024, Definition 2 and Appendix B"
_star = partial(Metric, term="star")
_bound = partial(Metric, term="certified", lower_bound=True)
_share = partial(Metric, unit=Unit.SHARE)
_TPR = Metric(
    "tpr_at_fpr.*",
    "TPR at {rate} FPR",
    "Training records recognised when {odds} is accepted; guessing recognises {rate}.",
    unit=Unit.RATE,
    term="rates",
    equations=(
        Equation(
            "TPR⁻ at the largest rank fixed in advance whose FPR⁺ does not exceed the rate",
            "Carlini et al. 2022, on low false positive rates; Clopper and Pearson 1934",
        ),
    ),
    guessing="{rate}",
    of_training_set=("census", "subset"),
    hint="recognised at {odds}",
)


def _at_rate(family: Metric, rate: float) -> Metric:
    """Return a member of a family of rates, in words with its rate."""
    words = {"rate": numbers.percent(rate), "odds": numbers.odds(rate)}
    told = {item: getattr(family, item).format(**words) for item in ("title", "sentence", "guessing", "hint")}
    return replace(family, name=f"{family.name[:-1]}{rate:g}", **told)


# In the order in which they stand beside a claim, and as tiles on a page.
METRICS: Registry[Metric] = Registry(
    _star(
        "epsilon_star.gaussian",
        "Epsilon*, Gaussian fit",
        "The published estimate: what two fitted normal curves imply. It is only as good as the fit.",
        equations=(
            Equation(
                "ε* = ln max(1, sup over thresholds of (TPR − δ)/FPR, (TNR − δ)/FNR, (FNR − δ)/TNR, (FPR − δ)/TPR), by two"
                " fitted normals, with FPR and FNR between δ and 1 − δ",
                _PARAMETRIC,
            ),
        ),
        role=Role.PUBLISHED,
        curve="gaussian",
        main=True,
        claim="epsilon",
        hint="published estimate, from two fitted normals",
    ),
    _star(
        "epsilon_star.mixture",
        "Epsilon*, mixture fit",
        "The same with a mixture of normal curves in each group.",
        equations=(Equation("the same supremum, by two fitted mixtures of normals", _PARAMETRIC),),
        curve="mixture",
        main=True,
        claim="epsilon",
        hint="the same of fitted mixtures, with --mixture",
        absent="no mixtures were fitted; ask for them (--mixture)",
    ),
    _star(
        "epsilon_star.empirical",
        "Epsilon*, no fit",
        "The largest ratio seen in the data themselves; tends to be too high on few records.",
        equations=(
            Equation(
                "the same supremum, by the error rates in the data themselves, between 0.001 and 0.999",
                "Negoescu et al. 2024, Definition 2",
            ),
        ),
        role=Role.OBSERVED,
        hint="largest ratio seen in the data",
    ),
    _bound(
        "epsilon_bound.clopper_pearson",
        "Certified epsilon bound",
        "Separation that is certain at the stated confidence, whatever shape the losses have.",
        equations=(
            Equation(
                "one lower limit of ln((TPR − δ) / FPR) at low losses, or of ln((TNR − δ) / FNR) at high ones",
                f"{_RATIOS}; Fay, Proschan and Brittain 2015",
                method="melded",
            ),
            Equation(
                "ε ≥ ln((TPR⁻ − δ) / FPR⁺) at low losses, or ln((TNR⁻ − δ) / FNR⁺) at high ones; ⁻ and ⁺ are certified"
                " lower and upper limits",
                f"{_RATIOS}; Clopper and Pearson 1934",
            ),
        ),
        role=Role.CERTIFIED,
        main=True,
        tile=True,
        claim="epsilon",
        of_training_set=("census", "subset"),
        hint="certified epsilon of this model",
    ),
    _bound(
        "epsilon_bound.one_run",
        "Training algorithm bound",
        "A certified bound on the epsilon of the training algorithm: the only number here that can refute a claim.",
        subject=Subject.MECHANISM,
        equations=(
            Equation(
                "the largest ε at which v or more right guesses of r are too unlikely: P[W ≥ v] + 2mδ max over i of"
                " P[v − i ≤ W ≤ v − 1] / i ≤ 1 − confidence, with W binomial(r, e^ε / (1 + e^ε)) and m pairs",
                "Steinke, Nasr and Jagielski 2023, Theorem 5.2",
                method="Theorem 5.2",
            ),
            Equation(
                "the largest ε whose trade-off curve the number of right guesses rejects, by a recursion over that number",
                "Mahloujifar, Melis and Chaudhuri 2024, Algorithm 3",
                method="f-DP",
            ),
        ),
        role=Role.JUDGE,
        main=True,
        tile=True,
        hint="certified epsilon of the training algorithm",
    ),
    _bound(
        "epsilon_bound.gdp",
        "Bound if the curve is Gaussian",
        "What the losses would imply if their trade-off curve were Gaussian; on other losses it can exceed the truth.",
        equations=(
            Equation(
                "μ = Φ⁻¹(1 − FPR⁺) − Φ⁻¹(FNR⁺), then the ε of that Gaussian trade-off curve at this δ",
                "Nasr et al. 2023; Dong, Roth and Su 2022",
            ),
        ),
        hint="bound if the trade-off curve is Gaussian",
        absent="the result comes from a release that did not compute it",
    ),
    _bound(
        "epsilon_bound.one_run_gdp",
        "Training algorithm, if Gaussian",
        "The same for the training algorithm, if its trade-off curve were Gaussian. It refutes nothing.",
        subject=Subject.MECHANISM,
        equations=(
            Equation(
                "the largest μ whose Gaussian trade-off curve Φ(Φ⁻¹(1 − α) − μ) the number of right guesses rejects, then"
                " its ε at this δ",
                "Mahloujifar, Melis and Chaudhuri 2024, Algorithm 3; Dong, Roth and Su 2022",
            ),
        ),
        hint="the same of the training algorithm",
        absent="membership was not declared random (--split)",
    ),
    _share(
        "advantage",
        "Membership advantage",
        "Largest gap between recognised training records and false alarms: 0 is guessing, 1 is total.",
        term="advantage",
        equations=(
            Equation(
                "the largest TPR − FPR over all thresholds, plus or minus the sum of √(ln(2k/α) / 2n) over the k groups that"
                " are samples, with α = 1 − confidence",
                "Dvoretzky, Kiefer and Wolfowitz 1956; Massart 1990",
            ),
        ),
        role=Role.WITHOUT_FIT,
        main=True,
        claim="advantage",
        of_training_set=("census",),
        hint="TPR - FPR of the best threshold",
        short="Advantage (TPR - FPR)",
    ),
    _share(
        "bayes_security",
        "Bayes security",
        "1 means that the attacker can only guess, 0 that they are always right; stronger attackers may push it lower.",
        term="security",
        equations=(Equation("β* = 1 − advantage", "Cherubin et al. 2024, Section 2.3"),),
        more_is_worse=False,
        main=True,
        claim="bayes_security",
        of_training_set=("census",),
        hint="1 is guessing, 0 is always right",
        short="Bayes security (beta*)",
    ),
    _at_rate(_TPR, 0.1),
    replace(_at_rate(_TPR, 0.01), tile=True),
    _at_rate(_TPR, 0.001),
    _TPR,
    _share(
        "auc",
        "AUC",
        "How often a random training record has a lower loss than a random other record; guessing gives 0.5.",
        term="auc",
        equations=(Equation("P[member's loss < other's loss] + ½ P[equal]", "DeLong 1988; Newcombe 2006"),),
        guessing="0.5",
        main=True,
        tile=True,
        hint="0.5 is guessing",
    ),
    # Of several models of one training algorithm.
    _bound(
        "epsilon_bound.instances",
        "Training algorithm bound, several models",
        "A certified bound on the training algorithm's epsilon from several models with fresh splits.",
        subject=Subject.MECHANISM,
        short="Certified bound",
    ),
    _star(
        "epsilon_bar",
        "Epsilon-bar",
        "What the averaged rates of several models show; an estimate that tends to be too high.",
        subject=Subject.MECHANISM,
        short="Epsilon-bar (estimate)",
    ),
    _star(
        "epsilon_bar.log_mean_exp",
        "Log mean exp(Epsilon*)",
        "An average over models: it lies above epsilon-bar and judges no claim.",
        short="Log mean exp(Epsilon*)",
        level="an average over models: neither refutes nor supports a claim",
    ),
    # Whatever else a result of another release holds.
    _bound("epsilon_bound.*", ""),
    _star("epsilon_star.*", ""),
    Metric("epsilon*", ""),
)

# --- The metrics of an audit of many runs, where some of the same names are about the training algorithm ---


METRICS_OF_RUNS: Registry[Metric] = Registry(
    replace(
        METRICS["epsilon_bound.clopper_pearson"],
        title="Certified bound, many runs",
        sentence="A certified bound on the training algorithm's epsilon, and the only number here that can refute a claim.",
        subject=Subject.MECHANISM,
        short="Clopper-Pearson, certified",
        level="confidence",
    ),
    _bound(
        "epsilon_bound.katz",
        "Katz bound, approximate",
        "The same by large-sample limits of the ratio: with few runs it can promise too much. It refutes nothing.",
        subject=Subject.MECHANISM,
        short="Katz, approximate",
        level="approximate",
    ),
    _bound(
        "epsilon_bound.bayesian",
        "Bayesian bound, credible",
        "Where epsilon lies by a posterior: right on average over a prior, not for every algorithm. It refutes nothing.",
        subject=Subject.MECHANISM,
        short="Bayesian, credible",
        level="credible",
    ),
    replace(
        METRICS["epsilon_bound.gdp"],
        sentence="The training algorithm's epsilon, if its trade-off curve were Gaussian. It refutes nothing.",
        subject=Subject.MECHANISM,
        short="Gaussian, conditional",
        level="if the curve is Gaussian",
    ),
)

# What claims state and no audit measures under that name.
_CLAIMED: Registry[Metric] = Registry(
    Metric("epsilon", "Epsilon", subject=Subject.MECHANISM),
    Metric("mu", "Mu (Gaussian DP)", unit=Unit.NUMBER, subject=Subject.MECHANISM),
    Metric("success_rate", "Attacker's success rate", unit=Unit.SHARE, subject=Subject.MECHANISM),
    _share(
        "attribute_advantage",
        "Attribute inference advantage",
        subject=Subject.MECHANISM,
    ),
    _share(
        "attribute_bayes_security",
        "Bayes security (attribute inference)",
        subject=Subject.MECHANISM,
        more_is_worse=False,
    ),
)

# --- What the registry says of one estimate or one claim ---


def metric(name: str) -> Metric:
    """Return what a name stands for; an unknown name speaks for itself."""
    found = _CLAIMED[name] if name in _CLAIMED else METRICS.get(name)
    found = found or Metric(name, "", unit=Unit.NUMBER)
    return found if found.title else replace(found, title=numbers.clean(name))


def describe(estimate: Estimate) -> Metric:
    """Return the metric of an estimate: of a family with its rate, of an audit of runs as that of runs."""
    rate = rate_of(estimate)
    if rate is not None:
        return _at_rate(METRICS[_TPR.name], rate)
    if detail(estimate, "unit") == "runs" and estimate.name in METRICS_OF_RUNS:
        return METRICS_OF_RUNS[estimate.name]
    found = metric(estimate.name)
    return replace(found, **_APPROXIMATE) if detail(estimate, "approximate") else found


_APPROXIMATE: Mapping[str, Any] = {
    "title": "Approximate epsilon bound",
    "sentence": "From large-sample limits at one threshold: it can promise too much, and certifies nothing.",
    "equations": (),
}


def rate_of(estimate: Estimate) -> float | None:
    """Return the false positive rate that an estimate of the family of rates is about, or null."""
    prefix, _, rest = estimate.name.partition(".")
    if prefix != _TPR.name.removesuffix(".*"):
        return None
    try:
        named = float(rest)
    except ValueError:
        named = None
    stated = detail(estimate, "rate")
    return named if stated is None else stated


def equation(estimate: Estimate) -> Equation:
    """Return the equation of an estimate; an empty one where there is none, or where limits are approximate."""
    found = (item for item in describe(estimate).equations if item.method in estimate.method)
    return next(found, Equation("", ""))


def named(role: Role) -> str:
    """Return the name of the metric that has a role."""
    return next(item.name for item in METRICS if item.role is role)


def with_role(role: Role, found: AuditDocument | Slice) -> Estimate | None:
    """Return the estimate that has a role in a result or in a slice of it, or null where there is none."""
    return find(found, named(role))


def fitted(result: AuditDocument) -> dict[str, Estimate]:
    """Return the estimates that rest on fitted curves, by the name of the curve, the most flexible last."""
    found = ((item.curve, find(result, item.name)) for item in METRICS if item.curve)
    return {curve: estimate for curve, estimate in found if estimate is not None}


def offered() -> dict[str, str]:
    """Return what a gate can name of an ordinary audit, and what each number is in a few words."""
    return {item.name: item.hint for item in METRICS if item.hint and not item.name.endswith("*")}


def shown_value(x: float | None, *, name: str, toward: str = "nearest") -> str:
    """Return a number in the form that suits the estimate or the claim of that name."""
    forms = {Unit.RATE: numbers.percent, Unit.SHARE: numbers.unit}
    return forms.get(metric(name).unit, numbers.number)(x, toward=toward)


# --- The signs of verdicts and checks, and what a number is about ---


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
    None: Sign("No claim to judge", "–", "plain"),
}

STATUS = {
    Status.OK: Sign("OK", "✓", "good"),
    Status.WARN: Sign("Warning", "!", "caution"),
    Status.FAIL: Sign("Failed", "✕", "bad"),
    Status.UNKNOWN: Sign("Unknown", "?", "plain"),
}

ABOUT = {Subject.MODEL: "this model", Subject.MECHANISM: "the training algorithm"}


# --- What to do about a check that is not fine: its entry says so ---


def check_title(name: str) -> str:
    """Return the name of a check as a title."""
    return name.replace("_", " ").capitalize()


# For a check that this version does not know, as in a result that another one wrote.
_UNKNOWN = {
    Status.FAIL: "Find the cause and audit again before you rely on the numbers that it concerns.",
    Status.WARN: "Keep this in mind with every number that it concerns.",
    Status.UNKNOWN: "Ask for what is missing, and audit again if a decision hangs on it.",
    Status.OK: "",
}


def advice(check: Check, data: Mapping[str, Any]) -> str:
    """Return what to do about a check; nothing where it is fine."""
    if check.status is Status.OK:
        return ""
    own = detail(check, "advice")
    if own:
        return str(own)
    spec = CHECKS.get(check.name)
    known = {} if spec is None else spec.advice
    keys = (*(f"{check.status}/{cause}" for cause in _causes(check, data)), str(check.status))
    return next((known[key] for key in keys if key in known), _UNKNOWN[check.status])


def _causes(check: Check, data: Mapping[str, Any]) -> Iterator[str]:
    """What may lie behind a check that is not fine, as the entries of the checks name it."""
    if str(data.get("split")) in {"random", "bernoulli"}:
        yield "random split"
    if detail(check, "mixture"):
        yield "mixture rejected" if detail(check, "mixture", "rejected") else "mixture"


# --- What the words on the page mean, for a reader who is not a statistician ---


@dataclass(frozen=True)
class _Term:
    """A word of the page; its key makes the link."""

    key: str
    name: str
    text: str


TERMS = (
    _Term(
        "attack",
        "Who attacks, and how",
        "The attacker sees the loss that the model has on a record, and calls a low loss a member. Stronger attacks exist,"
        " and single records may be more exposed than the average.",
    ),
    _Term(
        "member",
        "Member, non-member",
        "A member is a record that the model was trained on. A non-member, or other record, is one that it was not trained"
        " on, drawn like the members.",
    ),
    _Term(
        "loss",
        "Loss",
        "How wrong the model is about a record: small where it predicts well. Models tend to have lower losses on what they"
        " were trained on.",
    ),
    _Term(
        "rates",
        "TPR and FPR, false alarm",
        "The true positive rate is the share of members that are recognised; the false positive rate is the share of others"
        " that are wrongly called members. Guessing makes the two equal.",
    ),
    _Term(
        "tradeoff",
        "Trade-off curve",
        "All pairs of FPR and TPR that an attacker can choose from by moving the threshold. With a confidence band the"
        " true curve lies inside it as often as the confidence says.",
    ),
    _Term(
        "epsilon",
        "Epsilon and delta",
        "Epsilon measures, in nats, how far what is seen can shift an attacker's odds that a record was used: 0 not at all,"
        " 1 by a factor of 2.7, 3 by 20, 5 by 148. Delta is the share of cases that this leaves out.",
    ),
    _Term(
        "star",
        "Epsilon*",
        "The published epsilon of one trained model against an attacker who goes by the loss. It trusts two fitted curves far"
        " beyond the records. Where a test rejects them it is not to be relied on; the certified bound needs no fit and"
        " stands.",
    ),
    _Term(
        "certified",
        "Certified bound",
        "A lower limit that holds at the stated confidence whatever shape the losses have. A bound of 0 means “no evidence”,"
        " never “private”. No audit can prove privacy; it can only find leakage, or fail to.",
    ),
    _Term(
        "ceiling",
        "The ceiling",
        "The largest bound that an audit of this size could certify, even if the model gave everything away. A bound near its"
        " ceiling says: at least this, perhaps much more. A ceiling below the claim says that the audit was too small to"
        " refute it.",
    ),
    _Term(
        "interval",
        "Intervals and point estimates",
        "A 95% interval comes from a procedure that is right in at least 95 of 100 audits, if its assumptions hold. Each"
        " holds by itself: of twenty such intervals, one may well be wrong. A point estimate has no interval, and chance alone"
        " may have made it high or low.",
    ),
    _Term(
        "subject",
        "This model, or the training algorithm",
        "Most numbers are about this one model. A claimed epsilon is about the training algorithm, over all the models that"
        " it could have produced. So Epsilon* above the claimed epsilon is not a violation, and Epsilon* below it is not"
        " evidence of differential privacy. Only a bound on the training algorithm can refute a claim, and it needs membership"
        " that was decided at random.",
    ),
    _Term(
        "adjacency",
        "Adjacency",
        "Which two data sets a promise compares: with one record added or removed (add-remove), or with one record replaced"
        " by another (replace-one). The same training has a different epsilon for each.",
    ),
    _Term(
        "verdict",
        "The verdict on a claim",
        "Refuted: a certified bound on the training algorithm exceeds the claim. Not refuted: it does not, although the audit"
        " could have shown more; this is no proof. Inconclusive: the audit could not have refuted the claim. Not evaluable:"
        " membership was not random, or a check failed on which everything rests.",
    ),
    _Term(
        "advantage",
        "Membership advantage",
        "The largest gap between TPR and FPR over all thresholds: 0 for guessing, 1 for an attacker who is always right.",
    ),
    _Term(
        "security",
        "Bayes security",
        "1 minus the advantage: 1 where the attacker can only guess, 0 where they are always right. Stronger attackers may"
        " push it lower, so only an upper limit is given.",
    ),
    _Term(
        "auc",
        "AUC",
        "How often a random member has a lower loss than a random other record: 0.5 for guessing, 1 for complete separation."
        " It averages over all thresholds and can hide a leak that concerns few records.",
    ),
    _Term(
        "gaussian",
        "Gaussian and mixture fits",
        "A normal (Gaussian) curve fitted to the losses of each group, or a sum of several normal curves (a mixture).",
    ),
    _Term(
        "ks",
        "Kolmogorov-Smirnov test",
        "Tests a fitted curve on records that were held out, by the largest distance between the two. A p-value below 0.05"
        " rejects the fit; a larger one does not prove it, least of all far out in the tails.",
    ),
    _Term(
        "quantiles",
        "Quantile plot",
        "The losses found against the losses that the fitted curve expects, in order of size. On the line the two agree.",
    ),
    _Term(
        "odds",
        "Odds of a record",
        "How much more a record's loss speaks for a member than for another record. The ranking by odds says where to look"
        " first; it certifies nothing about any one person.",
    ),
)


def glossary() -> list[dict[str, str]]:
    """Return the terms as strings, in the order of the page, and last those that registered metrics bring."""
    own = {item.key: item for item in TERMS}
    known = {"", *own}
    more = [_Term(item.term, item.title, item.sentence) for item in METRICS if item.term not in known]
    more += [
        _Term(item.term, check_title(item.name), item.title) for item in CHECKS if item.term not in known
    ]
    return [{"key": item.key, "name": item.name, "text": item.text} for item in (*TERMS, *more)]
