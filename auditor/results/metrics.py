"""The registry of metrics: what each number of an audit is, told once, with the words and signs that every output shares.

Report, gates, schema, comparison, terminal, help and glossary read `METRICS` and name no number themselves: whoever needs
a certain one asks for its `Role`. To add an estimator, add its entry to ``metrics.toml``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from auditor.checks.registry import CHECKS
from auditor.core import numbers
from auditor.core.registry import Equation, Metric, Registry, Role, Unit, entries
from auditor.core.values import Check, Estimate, Status, Subject, Verdict
from auditor.results.document import AuditDocument, Document, Slice, detail, find

# --- The entries ---


_FAMILY = "tpr_at_fpr.*"  # of rates, of which three are always looked at


def _read() -> dict[str, dict[str, Metric]]:
    """Return the entries of ``metrics.toml``: of one model, of many runs, and what is only claimed."""
    found: dict[str, dict[str, Metric]] = {}
    for kind, told in entries("auditor.results", "metrics.toml").items():
        found[kind] = {}
        for name, words in told.items():
            like = found["of_models"][words.pop("like")] if "like" in words else Metric(name, "")
            told_of = {key: _KINDS.get(key, _as_is)(x) for key, x in words.items()}
            found[kind][name] = replace(like, name=name, **told_of)
    return found


def _as_is(x: Any) -> Any:
    return tuple(x) if isinstance(x, list) else x


_KINDS: Mapping[str, Callable[[Any], Any]] = {
    "unit": Unit,
    "subject": Subject,
    "role": lambda name: Role[name],
    "equations": lambda found: tuple(Equation(**item) for item in found),
}


def _at_rate(family: Metric, rate: float) -> Metric:
    """Return a member of a family of rates, in words with its rate."""
    words = {"rate": numbers.percent(rate), "odds": numbers.odds(rate)}
    told = {item: getattr(family, item).format(**words) for item in ("title", "sentence", "guessing", "hint")}
    return replace(family, name=f"{family.name[:-1]}{rate:g}", **told)


def _with_rates(entries: Iterable[Metric]) -> Iterator[Metric]:
    """The entries, and before a family of rates its members that every audit has."""
    for item in entries:
        if item.name == _FAMILY:
            yield from (_at_rate(item, rate) for rate in (0.1, 0.01, 0.001))
        yield item


_ENTRIES = _read()
METRICS = Registry(*_with_rates(_ENTRIES["of_models"].values()))
METRICS_OF_RUNS = Registry(*_ENTRIES["of_runs"].values())
_CLAIMED = Registry(*_ENTRIES["claimed"].values())


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
        return _at_rate(METRICS[_FAMILY], rate)
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
    if prefix != _FAMILY.removesuffix(".*"):
        return None
    stated = detail(estimate, "rate")
    try:
        return float(rest) if stated is None else stated
    except ValueError:
        return None


def beyond_guessing(estimate: Estimate) -> bool:
    """Whether the lower limit of an estimate is beyond what guessing gives: 0, a half for the AUC, the rate of a TPR."""
    guessing = 0.5 if estimate.name == "auc" else rate_of(estimate) or 0.0
    return estimate.lower is not None and estimate.lower > guessing


def equation(estimate: Estimate) -> Equation:
    """Return the equation of an estimate; an empty one where there is none, or where limits are approximate."""
    found = (item for item in describe(estimate).equations if item.method in estimate.method)
    return next(found, Equation("", ""))


def named(role: Role) -> str:
    """Return the name of the metric that has a role."""
    return next(item.name for item in METRICS if item.role is role)


def with_role(role: Role, found: Document | Slice) -> Estimate | None:
    """Return the estimate that has a role in a result or in a slice of it, or null where there is none."""
    return find(found, named(role))


def fitted(result: AuditDocument) -> dict[str, Estimate]:
    """Return the estimates that rest on fitted curves, by the name of the curve, the most flexible last."""
    found = ((item.curve, find(result, item.name)) for item in METRICS if item.curve)
    return {curve: estimate for curve, estimate in found if estimate is not None}


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
    None: Sign("No claim to judge", "–", "plain"),  # noqa: RUF001 a dash is meant
}

PROMISED = Sign("Promised, not measured", "–", "plain")  # noqa: RUF001

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
    Status.UNKNOWN: "Ask for what is missing, and audit again if a decision depends on it.",
    Status.OK: "",
}


def advice(check: Check, data: Mapping[str, Any]) -> str:
    """Return what to do about a check; nothing where it is fine."""
    if check.status is Status.OK or detail(check, "unit") == "runs":  # whose message says what to do
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
    if data.get("split") == "propensity":
        yield "estimated odds"
    if detail(check, "mixture"):
        yield "mixture rejected" if detail(check, "mixture", "rejected") else "mixture"
