"""The words and signs of results that every output shares: fits, units, claims, verdicts, checks."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from auditor.checks.registry import CHECKS
from auditor.core import numbers
from auditor.core.errors import ExitCode
from auditor.core.facts import Severity
from auditor.core.options import Adjacency, PrivacyUnit
from auditor.core.registry import Unit, entries
from auditor.core.values import Check, Claim, Estimate, Status, Subject, Verdict
from auditor.results.document import detail
from auditor.results.metrics import metric

# --- The fits behind Epsilon*, in words: what to know before quoting it, and how they were tested ---


_FAR = 10  # nats between a fitted and a measured curve: how much more says nothing more
_FEW = 50  # held-out records below which the test has no force
_SIDES = {"member": "Members", "nonmember": "Non-members"}
FIT: dict[str, str] = entries("auditor.report", "texts/fits.toml")


def star_notes(star: Estimate) -> list[str]:
    """Return the caveats of a parametric Epsilon*, most important first."""
    notes, floor = [], detail(star, "noise_floor", "q95")
    if floor is not None and star.value is not None and star.value <= floor:
        notes.append(FIT["chance" if floor > 0 else "zero"].format(most=numbers.number(floor, toward="up")))
    if detail(star, "saturated"):
        notes.append(FIT["saturated"])
    elif detail(star, "at", "reached_by_data") is False:
        supported, heavier = (detail(star, "supported", name) for name in ("value", "logistic"))
        notes.append(FIT["extrapolated"])
        if supported is not None:
            tails = "" if heavier is None else f", and {numbers.number(heavier)} with logistic tails"
            notes.append(FIT["supported"].format(value=numbers.number(supported), tails=tails))
    return notes


def fit_sentences(star: Estimate | None, *, mixture: Estimate | None = None) -> list[str]:
    """Return sentences on the tests of the Gaussian fits, then on those of the mixtures, if any."""
    sentences = _one_fit(star, "Gaussian")
    if not detail(mixture, "fit"):
        return sentences
    members, others = (detail(mixture, "fit", side, "components") for side in _SIDES)
    if members is not None and others is not None:
        counts = {"members": numbers.count(int(members)), "others": numbers.count(int(others))}
        sentences.append(FIT["mixtures"].format(**counts))
    return [*sentences, *_one_fit(mixture, "mixture")]


def gap_words(star: Estimate | None) -> str:
    """Return a sentence on the gap between fitted and measured curve; empty if no records allow the comparison."""
    gap, where = (detail(star, name) for name in ("curve_gap", "curve_gap_fpr"))
    if not gap:
        return ""
    place = "" if where is None else f" (at a false alarm rate of {numbers.percent(where)})"
    most = f"up to {numbers.number(abs(gap))} nats" if abs(gap) <= _FAR else f"more than {_FAR} nats"
    return FIT["gap"].format(most=most, side="above" if gap > 0 else "below", place=place)


def _one_fit(star: Estimate | None, kind: str) -> list[str]:
    fit = detail(star, "fit")
    if not fit:
        return []
    sides = {side: fit.get(side) or {} for side in _SIDES}
    sentences = [text for side, result in sides.items() if (text := _fit_of(_SIDES[side], result))]
    sentences += [text for text in (gap_words(star),) if text]
    if fit.get("rejected"):
        sentences.append(FIT["rejected"].format(kind=kind))
    elif any(n is not None and n < _FEW for n in (result.get("ks_n") for result in sides.values())):
        sentences.append(FIT["few"])
    elif fit.get("rejected") is False:
        sentences.append(FIT["not_rejected"].format(kind=kind))
    return sentences


def _fit_of(who: str, fit: Mapping[str, Any]) -> str | None:
    distance, p, records = (fit.get(name) for name in ("ks_statistic", "ks_p_value", "ks_n"))
    if distance is None or p is None:
        return None
    held = "the records"
    if records is not None:
        held = f"{numbers.count(records)} held-out record{'' if records == 1 else 's'}"
    values = {"who": who, "held": held, "distance": numbers.percent(distance), "p": _p(p)}
    alone, against = fit.get("distance_p_value"), fit.get("likelihood_p_value")
    if alone is None or against is None:
        return FIT["test"].format(**values)
    return FIT["two_tests"].format(alone=_p(alone), against=_p(against), **values)


def _p(p: float) -> str:
    small, large = 0.001, 0.99
    if p < small:
        return f"p < {small}"
    return f"p > {large}" if p > large else f"p = {numbers.number(p, digits=2)}"


# --- A synthetic table in place of a model, and what was released beside it ---


RELEASED = entries("auditor.report", "texts/released.toml")
_PHRASES: dict[str, str] = RELEASED["phrases"]
# Quoted text is the user's, as the name of a column; paths, options and parts of longer words are left alone too.
_PLACES = re.compile(
    r"“[^”]*”|(?<!\w)'[^']*'(?!\w)|\"[^\"]*\"|(?<![\w./-])(?:%s)(?![\w/=-]|\.\w)"  # noqa: UP031 - braces are none of ours
    % "|".join(map(re.escape, sorted(_PHRASES, key=len, reverse=True)))
)


def is_table(data: Mapping[str, Any]) -> bool:
    """Whether a synthetic table was audited, and not a model."""
    released = data.get("released")
    return isinstance(released, Mapping) and isinstance(released.get("table"), Mapping)


def worded(text: str, data: Mapping[str, Any]) -> str:
    """Return words about a model as words about the synthetic table, if one was audited; quoted text stays.

    >>> worded("What the model leaks, by column 'model'.", {"released": {"table": {}}})
    "What the synthetic table leaks, by column 'model'."
    """
    return _PLACES.sub(lambda match: _PHRASES.get(match[0], match[0]), text) if is_table(data) else text


# --- The unit of an audit: a record, or a person if one score stands for a person ---


@dataclass(frozen=True)
class Units:
    """The words for one and for many, in the training data and outside it."""

    many: str
    member: str
    members: str
    other: str
    others: str


_RUNS = Units("runs", "run with the canary", "runs with the canary", "run without it", "runs without it")
_RECORDS = Units("records", "training record", "training records", "other record", "other records")
PEOPLE = Units(
    "people", "person in the training data", "people in the training data", "other person", "other people"
)


_PURE = (
    "pure epsilon: the bound is stated at delta 0 and judges no claim at a larger delta; for such a claim, omit the test or use"
    " FDP()"
)


def assumptions(estimate: Estimate) -> list[str]:
    """Return the assumptions of an estimate, as clauses without a full stop."""
    clauses = [_PURE] if detail(estimate, "pure") else []
    return [text.rstrip(".") for text in (*clauses, *estimate.assumptions)]


def unit_words(data: Mapping[str, Any]) -> str | None:
    """Return the unit of an audit, with the method that combines the losses of a person."""
    combined = data.get("combined")
    return data.get("unit") if combined is None else f"{data.get('unit')} ({combined} loss)"


def units(data: Mapping[str, Any]) -> Units:
    """Return the words for the unit that an audit of these data counts.

    >>> units({"unit": "person"}).members
    'people in the training data'
    """
    if "n_with" in data:
        return _RUNS
    return PEOPLE if data.get("unit") == PrivacyUnit.PERSON else _RECORDS


# --- A certified rate beside a false alarm rate in natural frequencies: whole numbers out of 100, 1,000, ... ---


_MOST = 1_000_000
_ROUNDING = 1e-9  # of 0.29 * 100
_PAIR_PRECISION = 0.8
_PRECISION = 0.95  # smallest share of a ratio or a share that whole numbers preserve: about two digits


def out_of_many(rate: float, low: float) -> tuple[int, int, int]:
    """Return the smallest base of 100, 1,000, ... that preserves the ratio, with the hits and the false alarms.

    Args:
        rate: Of false alarms, in (0, 1); rounded up.
        low: Lower limit of the rate of hits, above ``rate``; rounded down.

    >>> out_of_many(0.01, 0.016)
    (1000, 16, 10)
    >>> out_of_many(0.1, 0.29)
    (100, 29, 10)
    >>> out_of_many(0.012, 0.044)  # not 4 and 2 out of 100, which would halve the ratio
    (1000, 44, 12)
    """
    base = 100
    while True:
        hits, alarms = math.floor(low * base + _ROUNDING), math.ceil(rate * base - _ROUNDING)
        words = rate * base >= 1 - _ROUNDING and hits > alarms and hits * rate >= _PRECISION * low * alarms
        if words or base >= _MOST:
            return base, hits, alarms
        base *= 10


def pair_words(share: float) -> tuple[str, str]:
    """Return the rate of correct picks between a member and a non-member, of an attacker and of a coin.

    Args:
        share: Lower limit of the AUC, above 1/2; rounded down, with enough digits to preserve most of the excess over 1/2.

    >>> pair_words(0.626), pair_words(0.5031)
    (('62 times in 100', '50'), ('503 times in 1,000', '500'))
    """
    base = 100
    while (
        base < _MOST
        and math.floor(share * base + _ROUNDING) - base / 2 < _PAIR_PRECISION * (share - 0.5) * base
    ):
        base *= 10
    return f"{math.floor(share * base + _ROUNDING):,} times in {base:,}", f"{base // 2:,}"


# --- One claim, and one estimate, as strings ---


def claim_words(claim: Claim) -> str:
    """Return a claimed epsilon with its delta and adjacency, or another claim with its name."""
    if claim.metric != "epsilon":
        return f"{short_title(claim.metric).lower()} {numbers.as_stated(claim.value)}"
    at = "" if claim.delta is None else f"delta {numbers.as_stated(claim.delta)}, "
    return f"epsilon {numbers.as_stated(claim.value)} ({at}{claim.adjacency})"


NEIGHBOURS = {
    Adjacency.ADD_REMOVE: "One record added or removed (add-remove)",
    Adjacency.REPLACE_ONE: "One record replaced (replace-one): a training record against a fresh one",
}


def neighbours(adjacency: Adjacency, people: int | None) -> str:
    """Return the difference between neighbouring training sets as a title; ``people`` is the records per person, or None."""
    if people is None:
        return NEIGHBOURS[adjacency]
    change = "added or removed" if adjacency is Adjacency.ADD_REMOVE else "replaced"
    return f"Up to {people:,} records of one person {change} ({adjacency})"


_NEAR_ONE = 0.999
_AT = re.compile(r"(.*)_at_(fpr|prior)\.(.*)")


def claim_name(claim: Claim) -> str:
    """Return the name of a promised number, with its delta, false positive rate or prior."""
    at = _AT.fullmatch(claim.metric)
    if claim.metric == "epsilon" and claim.delta is not None:
        return f"Epsilon at delta {numbers.as_stated(claim.delta)}"
    if at is None:
        return short_title(claim.metric)
    what, kind, where = at.groups()
    if kind == "prior":
        return f"{short_title(what)} at prior {where}"
    return f"TPR at {numbers.percent(float(where))} FPR" if what == "tpr" else claim.metric


def short_title(name: str) -> str:
    """Return the short title of a metric."""
    return metric(name).short or metric(name).title


def claim_value(claim: Claim) -> str:
    """Return a promised number; a rounded bound is still a bound."""
    toward = ("down" if claim.metric == "bayes_security" else "up") if claim.proven else "nearest"
    digits = 4
    if claim.value is not None and _NEAR_ONE < claim.value < 1:
        digits = min(15, 2 - math.floor(math.log10(1 - claim.value)))  # two digits of 1 - value
    return numbers.number(claim.value, digits=digits, toward=toward)


def shown_value(x: float | None, *, name: str, toward: str = "nearest") -> str:
    """Return a number in the form that suits the estimate or the claim of that name."""
    forms = {Unit.RATE: numbers.percent, Unit.SHARE: numbers.unit}
    return forms.get(metric(name).unit, numbers.number)(x, toward=toward)


# --- The signs of verdicts and checks, and the subjects of numbers ---


Kind = TypeVar("Kind", bound=Enum)


@dataclass(frozen=True)
class Sign:
    """A status as a word, a symbol and a tone, so that colour is never its only carrier."""

    word: str
    symbol: str
    tone: str


_SIGNS = entries("auditor.report", "texts/signs.toml")


def signs(name: str, kinds: type[Kind]) -> dict[Kind | None, Sign]:
    """Return the sign of each of these kinds, from ``texts/signs.toml``."""
    return {kinds[kind]: Sign(*parts) for kind, parts in _SIGNS[name].items()}


VERDICT = signs("verdict", Verdict) | {None: Sign("No claim to judge", "–", "plain")}  # noqa: RUF001 a dash is meant
STATUS = signs("check", Status)
GATE = signs("gate", ExitCode)
SEVERITY = signs("severity", Severity)

PROMISED = Sign("Promised, not measured", "–", "plain")  # noqa: RUF001
LESS_PRIVATE = Sign("Less private than claimed", "!", "bad")
NOT_REACHED = Sign("The canaries hardly reach the sum", "?", "caution")
NOT_SHOWN = Sign("Not refuted", "–", "plain")  # noqa: RUF001 a dash is meant

CARRIED = {
    "records": Sign("Training records in the file", "✕", "bad"),
    "leaves": Sign("Few training records behind parts of the file", "!", "caution"),
}

ABOUT = {Subject.MODEL: "this model", Subject.MECHANISM: "the training algorithm"}


# --- Advice on checks, from their entries ---


def check_title(name: str) -> str:
    """Return the name of a check as a title."""
    return name.replace("_", " ").capitalize()


# For checks that only another version knows.
_UNKNOWN = {
    Status.FAIL: "Find the cause and audit again before you rely on the affected numbers.",
    Status.WARN: "Consider this warning when you read the affected numbers.",
    Status.UNKNOWN: "Obtain the missing information, and audit again if a decision depends on it.",
    Status.OK: "",
}


def advice(check: Check, data: Mapping[str, Any]) -> str:
    """Return the advice on a check; empty if it passed."""
    if check.status is Status.OK or detail(check, "unit") == "runs":  # the message holds the advice
        return ""
    own = detail(check, "advice")
    if own:
        return str(own)
    spec = CHECKS.get(check.name)
    options = {} if spec is None else spec.advice
    keys = (*(f"{check.status}/{cause}" for cause in _causes(check, data)), str(check.status))
    return next((options[key] for key in keys if key in options), _UNKNOWN[check.status])


def _causes(check: Check, data: Mapping[str, Any]) -> Iterator[str]:
    """Yield possible causes of a check that did not pass, as named in the entries of the checks."""
    if str(data.get("split")) in {"random", "bernoulli"}:
        yield "random split"
    if data.get("split") == "propensity":
        yield "estimated odds"
    if detail(check, "mixture"):
        yield "mixture rejected" if detail(check, "mixture", "rejected") else "mixture"
