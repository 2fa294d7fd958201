"""The registry of metrics: each number of an audit, described once, in the words that every output shares.

Report, gates, schema, comparison, terminal, help and glossary read `METRICS` and name no number themselves: code that needs
a certain one looks up its `Role`. To add an estimator, add its entry to ``metrics.toml``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from auditor.core import Equation, Estimate, Metric, Registry, Role, Subject, Unit, entries, numbers
from auditor.results.document import AuditResult, Document, Slice, detail, find

# --- The entries ---


_FAMILY = "tpr_at_fpr.*"  # of rates, of which three are always looked at


def _read() -> dict[str, dict[str, Metric]]:
    """Return the entries of ``metrics.toml``: of one model, of many runs, and of claims alone."""
    result: dict[str, dict[str, Metric]] = {}
    for kind, text in entries("auditor.results", "metrics.toml").items():
        result[kind] = {}
        for name, words in text.items():
            like = result["of_models"][words.pop("like")] if "like" in words else Metric(name, "")
            values = {key: _KINDS.get(key, _as_is)(x) for key, x in words.items()}
            result[kind][name] = replace(like, name=name, **values)
    return result


def _as_is(x: Any) -> Any:
    return tuple(x) if isinstance(x, list) else x


_KINDS: Mapping[str, Callable[[Any], Any]] = {
    "unit": Unit,
    "subject": Subject,
    "role": lambda name: Role[name],
    "equations": lambda items: tuple(Equation(**item) for item in items),
}


def _at_rate(family: Metric, rate: float) -> Metric:
    """Return a member of a family of rates, in words with its rate."""
    words = {"rate": numbers.percent(rate), "odds": numbers.odds(rate)}
    text = {item: getattr(family, item).format(**words) for item in ("title", "sentence", "guessing", "hint")}
    return replace(family, name=f"{family.name[:-1]}{rate:g}", **text)


def _with_rates(entries: Iterable[Metric]) -> Iterator[Metric]:
    """Return the entries, and before a family of rates its members that every audit has."""
    for item in entries:
        if item.name == _FAMILY:
            yield from (_at_rate(item, rate) for rate in (0.1, 0.01, 0.001))
        yield item


_ENTRIES = _read()
METRICS = Registry(*_with_rates(_ENTRIES["of_models"].values()))
METRICS_OF_RUNS = Registry(*_ENTRIES["of_runs"].values())
METRICS_OF_STEPS = Registry(*_ENTRIES["of_steps"].values())
_CLAIMED = Registry(*_ENTRIES["claimed"].values())


# --- Registry entries of one estimate or one claim ---


def metric(name: str) -> Metric:
    """Return the metric of a name; an unknown name is its own title."""
    result = _CLAIMED.get(name) or METRICS_OF_STEPS.get(name) or METRICS.get(name)
    result = result or Metric(name, "", unit=Unit.NUMBER)
    result = _at_tries(result, name) if "{tries}" in result.title else result
    return result if result.title else replace(result, title=numbers.clean(name))


def _at_tries(family: Metric, name: str) -> Metric:
    """Return a member of a family of numbers of tries, in words with its number, or "so many"."""
    tries = name.removeprefix(family.name[:-1])
    words = f"{int(tries):,}" if tries.isdecimal() else "so many"
    text = {item: getattr(family, item).format(tries=words) for item in ("title", "sentence")}
    return replace(family, name=name, **text)


def is_known(name: str) -> bool:
    """Return whether a metric, or a family of metrics, has this name."""
    return name in _CLAIMED or METRICS.get(name) is not None


def describe(estimate: Estimate) -> Metric:
    """Return the metric of an estimate: of a family with its rate, of an audit of runs as that of runs."""
    rate = rate_of(estimate)
    if rate is not None:
        return _at_rate(METRICS[_FAMILY], rate)
    if detail(estimate, "unit") == "runs" and estimate.name in METRICS_OF_RUNS:
        return METRICS_OF_RUNS[estimate.name]
    return metric(estimate.name)


def rate_of(estimate: Estimate) -> float | None:
    """Return the false positive rate that an estimate of the family of rates is about, or None."""
    prefix, _, rest = estimate.name.partition(".")
    if prefix != _FAMILY.removesuffix(".*"):
        return None
    stated = detail(estimate, "rate")
    try:
        return float(rest) if stated is None else stated
    except ValueError:
        return None


def beyond_guessing(estimate: Estimate) -> bool:
    """Return whether the lower limit of an estimate is beyond guessing: 0, a half for the AUC, the rate of a TPR."""
    guessing = 0.5 if estimate.name == "auc" else rate_of(estimate) or 0.0
    return estimate.lower is not None and estimate.lower > guessing


def equation(estimate: Estimate) -> Equation:
    """Return the equation of an estimate; an empty one where there is none."""
    result = (item for item in describe(estimate).equations if item.method in estimate.method)
    return next(result, Equation("", ""))


def named(role: Role) -> str:
    """Return the name of the metric that has a role."""
    return next(item.name for item in METRICS if item.role is role)


def with_role(role: Role, result: Document | Slice) -> Estimate | None:
    """Return the estimate that has a role in a result or in a slice of it, or None if there is none."""
    return find(result, named(role))


def judging(result: Document) -> Estimate | None:
    """Return the bound that judged the claim, or the one that would judge one."""
    judged = (row.estimate for row in result.comparisons if row.verdict is not None)
    return find(result, next(judged, named(Role.JUDGE)))


def fitted(result: AuditResult) -> dict[str, Estimate]:
    """Return the estimates that rest on fitted curves, by the name of the curve, the most flexible last."""
    outcome = ((item.curve, find(result, item.name)) for item in METRICS if item.curve)
    return {curve: estimate for curve, estimate in outcome if estimate is not None}


# --- Rows of an audit as evidence of leakage: in a census the members count as draws, so that chance is allowed for ---


_AS_DRAWS = (
    "the training records count as draws from the same source as others like them, so chance in which of them were drawn"
    " is allowed for"
)


def is_finite(estimate: Estimate) -> bool:
    """Return whether a number describes one finite training set, so that it can be positive by chance alone."""
    return bool(detail(estimate, "finite") or detail(estimate, "as_draws"))  # the latter in older results


def as_evidence(estimate: Estimate | None, result: Document) -> Estimate | None:
    """Return the estimate as evidence of leakage, with the members as draws; numbers that are none become None.

    A number that describes a finite training set is replaced by its result with the members as draws;
    None where an older result, whose rows do not say what they describe, does not keep that.

    Args:
        estimate: A row of the result, or None.
        result: The audit that the row is from.
    """
    if estimate is None:
        return None
    of_training_set = str(result.data.get("members")) in describe(estimate).of_training_set
    if not (is_finite(estimate) or of_training_set):
        return estimate
    as_draws = estimate.details.get("as_draws")
    if as_draws is None:
        return None
    return replace(
        estimate,
        **{name: as_draws.get(name) for name in ("value", "lower", "upper")},
        assumptions=(*as_draws.get("assumptions", ()), _AS_DRAWS),
        details=dict(as_draws),
    )
