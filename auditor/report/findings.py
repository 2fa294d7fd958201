"""The finding of an audit, in one sentence for a decision and in two words.

If every training record was scored, the members count as draws here: numbers about a finite training set are positive
without any leakage.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from auditor.checks.losses import TOO_LARGE, found_from
from auditor.core import Claim, Comparison, Estimate, Role, Status, Verdict, entries, numbers
from auditor.estimators.adaptive import ADAPTIVE
from auditor.report.rows import Row
from auditor.report.words import Sign, Units, claim_words, out_of_many, pair_words, units
from auditor.results import document, metrics
from auditor.results.metrics import with_role
from auditor.theory.attackers import humphries
from auditor.theory.promises import belief_in_words, odds_in_words
from auditor.verdicts.judging import failed_validity, why_blind


class Statement(NamedTuple):
    """A decision, a finding or a verdict: a sign of two or three words, and a sentence."""

    sign: Sign
    sentence: str


_Look = Callable[[document.Document, Units], str]
_SAID = entries("auditor.report", "texts/findings.toml")


def said(key: str, **values: Any) -> str:
    """Return the sentence of this key with its numbers."""
    return str(_SAID[key]).format(**values)


_LEAK = Sign("Leakage found", "!", "caution")
_NONE = Sign("No evidence of leakage", "–", "plain")  # noqa: RUF001 a dash is meant
_SMALL = Sign("Too few to tell", "?", "caution")
_BLIND = Sign("Uninformative score", "?", "caution")
_INVALID = Sign("Not a valid comparison", "✕", "bad")
_ALTERED = Sign("Altered since it was written", "✕", "bad")
_REVERSED = Sign("The wrong way round", "!", "caution")
_UNLESS = Sign("Labels leak, or the label distribution is wrong", "!", "caution")
_ODDS = Sign("Leakage, if the odds are right", "!", "caution")
_NO_BOUND = Sign("No bound", "?", "caution")
_HALF = 0.5
_LITTLE = 1.0  # a ceiling below which the check of the audit's power warns


def finding(result: document.Document) -> Statement:
    """Return the finding in plain words.

    One test decides whether there is a finding, and the limits share the error (`auditor.pipeline.shown_together`), so the
    strongest result may be reported, and many numbers do not make a finding more likely by chance.
    """
    failed = failed_validity(result.checks)
    if result.altered:
        return Statement(_ALTERED, said("altered"))
    if failed:
        names = ", ".join(dict.fromkeys(check.name.replace("_", " ") for check in failed))
        odds = document.find(result, PROPENSITY)
        lead = f"{by_estimated_odds(result)[0]} " if odds is not None and odds.value is not None else ""
        what = "the model" if result.kind is None else "the training algorithm"
        values = {"lead": lead, "names": names, "other": "other " if lead else "", "what": what}
        return Statement(_ODDS if odds is not None and odds.value else _INVALID, said("invalid", **values))
    words = units(result.data)
    return next((statement for _, statement in _found(result, words)), None) or _of_nothing(result, words)


def _found(result: document.Document, words: Units) -> Iterator[tuple[_Look, Statement]]:
    """Yield what each look finds, the one that is reported first."""
    of_kind = ((_UNLESS, _of_labels),) if result.kind == "labels" else _OF_TRAINING
    for sign, look in _LOOKS if result.kind is None else of_kind:
        if sentence := look(result, words):
            yield look, Statement(sign, sentence)


def _level(estimate: Estimate) -> str:
    """Return the confidence of an estimate as the start of a sentence."""
    if not estimate.confidence:
        return "As a point estimate"
    return f"At {Row(estimate).level} confidence"


def _above_zero(estimate: Estimate | None, result: document.Document) -> tuple[Estimate, float] | None:
    """Return the estimate as evidence and its joint lower limit, if that is above 0."""
    row = metrics.as_evidence(estimate, result)
    if row is None or not row.lower or row.lower <= 0 or not _is_shown(row.name, result):
        return None
    return row, _limit(row.name, row, result)


def _is_shown(name: str, result: document.Document) -> bool:
    """Whether this limit holds jointly with all others behind a headline; by itself for older schema versions."""
    if result.verdict is Verdict.REFUTED and name == getattr(metrics.judging(result), "name", None):
        return True
    together = document.shown_by(result)
    return together is None or name in together["names"]


def _confidence(result: document.Document) -> str:
    """Return the joint confidence of the audit as the start of a sentence."""
    return f"At {numbers.percent(result.data['confidence'], toward='down')} confidence"


def _of_rates(result: document.Document, words: Units, *, above: float = 0.0) -> str:
    """Return the rates with the strongest evidence, if an attacker who uses them has a precision above ``above``."""
    point = document.furthest_point(result)
    if point is None or point["hits"] <= above * (point["hits"] + point["errors"]):
        return ""
    base, hits, errors = out_of_many(point["errors"], point["hits"])
    many = "all" if hits >= base else f"at least {hits:,}"
    values = {"level": _confidence(result), "base": base, "many": many, "errors": errors, "words": words}
    return said(f"rates_{point['end']}", are="is" if errors == 1 else "are", **values)


def _limit(name: str, row: Estimate, result: document.Document) -> float:
    """Return the joint lower limit; the row's own limit where it refutes the claim, and for older schema versions."""
    together = document.shown_by(result)
    refuted = result.verdict is Verdict.REFUTED and name == getattr(metrics.judging(result), "name", None)
    limits: Any = {} if together is None or refuted else together.get("limits", {})
    outcome: float = limits.get(name, row.lower)
    return outcome


def _of_advantage(result: document.Document, words: Units) -> str:
    outcome = _above_zero(document.find(result, "advantage"), result)
    if outcome is None:
        return ""
    points = numbers.percent(outcome[1], toward="down").rstrip("%")
    return said("advantage", level=_level(outcome[0]), words=words, points=points)


def _of_bound(result: document.Document, words: Units) -> str:
    outcome = _above_zero(with_role(Role.CERTIFIED, result), result)
    if outcome is None:
        return ""
    bound, delta = numbers.number(outcome[1], toward="down"), numbers.as_stated(outcome[0].delta)
    return said("bound", level=_level(outcome[0]), words=words, bound=bound, delta=delta)


def _of_auc(result: document.Document, words: Units) -> str:
    row = metrics.as_evidence(document.find(result, "auc"), result)
    if row is None or row.lower is None or not _HALF < row.lower <= 1 or not _is_shown("auc", result):
        return ""
    share = _limit("auc", row, result)
    if share <= _HALF:
        return ""
    times, coin = pair_words(share)
    first = said("pair", words=words, times=times, coin=coin)
    # With as many members as others, the precision of these rates is hits / (hits + errors).
    rare = _of_rates(result, words, above=share)
    return f"{first} {rare or said('holds', level=Row(row).level)}"


def _differs(end: str, result: document.Document) -> bool:
    """Whether some threshold shows that members have the lower losses, or the higher ones, if no number does."""
    together = document.shown_by(result)
    return together is not None and end in (together.get("differs") or ())


def _of_lower(result: document.Document, words: Units) -> str:
    return said("lower", level=_confidence(result), words=words) if _differs("lower", result) else ""


def _of_swapped_groups(result: document.Document, words: Units) -> str:
    row = metrics.as_evidence(document.find(result, "auc"), result)
    together = document.shown_by(result)
    behind = 0.0 if together is None else together["reversed"]
    by_ranks = row is not None and row.upper is not None and 0 <= row.upper < _HALF
    by_number = behind > 0 or (by_ranks and _is_shown("auc.upper", result))
    if row is None or not (by_number or _differs("higher", result)):
        return ""
    gain = f": an attacker who calls high losses members has an advantage of at least {numbers.percent(behind, toward='down')}"
    return said("swapped", level=_level(row), words=words, gain=gain if behind > 0 else "")


def _of_training(result: document.Document, _words: Units, by: Estimate | None = None) -> str:
    outcome = _above_zero(by or _bound_of(result, Role.JUDGE), result)
    if outcome is None:
        return ""
    bound, at = numbers.number(outcome[1], toward="down"), f"delta {numbers.as_stated(outcome[0].delta)}"
    row, least = outcome
    factor = said("odds_factor", factor=_factor(least, digits=2))
    joint = least < (row.lower or 0.0)  # together with all other findings, at the confidence of the audit
    level = _confidence(result) if joint else _level(row)
    alone = f"{numbers.number(row.lower, toward='down')} if taken alone; " if joint else ""
    return f"{level}, the training algorithm's epsilon is at least {bound} ({alone}{at}, {row.adjacency}). {factor}"


def _of_learnt(result: document.Document, words: Units) -> str:
    bound = document.find(result, ADAPTIVE)
    return _of_training(result, words, bound) if bound is not None else ""


def bound_behind(result: document.Document) -> Estimate | None:
    """Return the bound on the training algorithm that the finding states; None where it states another number."""
    first = () if result.altered else _found(result, units(result.data))
    look = next((look for look, _ in first), None)
    if look is _of_training:
        return _bound_of(result, Role.JUDGE)
    return document.find(result, ADAPTIVE) if look is _of_learnt else None


def _of_labels(result: document.Document, _words: Units) -> str:
    outcome = _above_zero(_bound_of(result, Role.JUDGE), result)
    if outcome is None:
        return ""
    bound, factor = numbers.number(outcome[1], toward="down"), _factor(outcome[1])
    learnt = result.data.get("law") == "learnt"
    which = ", which a classifier learnt from other records," if learnt else ""
    missed = ", information that the classifier missed" if learnt else ""
    values = {"bound": bound, "factor": factor, "which": which, "missed": missed}
    return said("labels", level=_level(outcome[0]), adjacency=outcome[0].adjacency, **values)


def _of_swapped_runs(result: document.Document, _words: Units) -> str:
    check = next((item for item in result.checks if item.name == "direction"), None)
    return "" if result.kind != "runs" or check is None or check.status is not Status.WARN else check.message


# The first sentence that is not empty is reported.
_LOOKS = (
    *(
        (_LEAK, look)
        for look in (_of_auc, _of_rates, _of_advantage, _of_bound, _of_training, _of_learnt, _of_lower)
    ),
    (_REVERSED, _of_swapped_groups),
)
_OF_TRAINING = ((_LEAK, _of_training), (_REVERSED, _of_swapped_runs))


def _bound_of(result: document.Document, role: Role) -> Estimate | None:
    """Return the bound with that role; for an audit of a training algorithm, its first number."""
    if result.kind is not None:
        return next(iter(result.estimates), None)
    return metrics.judging(result) if role is Role.JUDGE else with_role(role, result)


def _of_nothing(result: document.Document, words: Units) -> Statement:
    outcome = _bound_of(result, Role.CERTIFIED)
    row = metrics.as_evidence(outcome, result) or outcome
    if row is None or row.lower is None:
        reason = (row.reason if row else None) or f"no bound could be computed from these {words.many}"
        return Statement(_NO_BOUND, f"This audit has no bound to report. {numbers.sentence(reason)}")
    guessing = f"{_level(row)}, there is no evidence that an attacker does better than guessing. This is not proof of privacy."
    sentence = [guessing if result.kind else said("no_pair", words=words)]
    if result.kind == "labels":
        sentence.append("A wrong D can also hide a leak.")
    sentence += [text for text in (_alone(result),) if text]
    if any(metrics.is_finite(item) for item in result.estimates):
        sentence.append("Numbers that describe this finite training set can be positive by chance alone.")
    top, blind = document.ceiling(row), why_blind(result.checks)
    if blind is not None:
        return Statement(_BLIND, " ".join([*sentence, numbers.sentence(blind)]))
    if top is None:
        return Statement(_NONE, " ".join(sentence))
    power = next((check for check in result.checks if check.name == "power"), None)
    mu = document.detail(power, "smallest_mu")
    if mu is not None:
        sentence.append(found_from(mu))
    elif document.powerless(row):
        sentence.append(f"There are too few {words.many} to certify anything at this delta.")
    else:
        most, delta = numbers.number(top, toward="down"), numbers.as_stated(row.delta)
        sentence.append(said("could_have", words=words, most=most, delta=delta))
    few = top < _LITTLE or (mu or 0.0) > TOO_LARGE
    return Statement(_SMALL if few else _NONE, " ".join(sentence))


def _alone(result: document.Document) -> str:
    """Return a sentence on numbers that exceed guessing individually but not jointly, so that chance may explain them."""
    together = document.shown_by(result)
    sure = (item for item in result.estimates if item.confidence and not metrics.is_finite(item))
    alone = [item for item in sure if metrics.beyond_guessing(item)]
    if together is None or not alone:
        return ""
    level = numbers.percent(alone[0].confidence, toward="down")
    titles = ", ".join(metrics.describe(item).title for item in alone)
    return said("alone", level=level, titles=titles)


# --- Evidence by estimated odds of membership, and its conditions ---


def by_estimated_odds(result: document.Document) -> list[str]:
    """Return sentences on the bound by estimated odds; empty if it was not requested."""
    row = document.find(result, PROPENSITY)
    if row is None:
        return []
    odds = document.detail(row, "odds")
    if row.value is None or odds is None:
        return [f"No bound: {row.reason}."]
    level, most = _confidence(result), document.ceiling(row)
    values: dict[str, Any] = {"level": level, "adjacency": row.adjacency, "where": _SAID["odds"]["where"]}
    values["most"], values["bound"] = (numbers.number(x, toward="down") for x in (most, row.value))
    values["factor"], values["shift"] = (_factor(row.value, digits=digits) for digits in (3, 2))
    values["features"], values["losses"] = (
        f"{numbers.unit(outcome['value'])} ({numbers.unit(outcome['lower'], toward='down')} to {numbers.unit(outcome['upper'], toward='up')})"
        for outcome in (odds["by_features"], odds["by_losses"])
    )
    values["percent"] = numbers.percent(result.data["confidence"], toward="down")
    values |= {key: int(odds[key]) for key in ("held", "kept", "columns", "used")}
    values |= {"learnt": int(odds["learnt_from"]), "low": numbers.percent(odds["overlap"])}
    values["high"] = numbers.percent(1 - odds["overlap"])
    values["misfit"] = _factor(odds["misfit"], toward="up")
    copies = next((check for check in result.checks if check.name == "duplicates"), None)
    first = ("above", "factor") if row.value > 0 else ("none", "hidden")
    keys: tuple[str, ...] = (*first, "blind", "audited", "misfit", "last")
    left = document.find(result, f"{PROPENSITY}.off_estimated")
    off = document.detail(row, "odds", "error", "upper")
    if left is not None and left.value is not None and off is not None:
        values["error"] = _factor(off, toward="up")
        values["left"] = numbers.number(left.value, toward="down")
        keys = (*keys[:-1], "error", "last")
    lines = {key: str(_SAID["odds"][key]).format(**values) for key in (*keys, "columns", "copies")}
    lines["audited"] += lines["columns"] if odds["used"] < odds["columns"] else ""
    lines["last"] += lines["copies"] if copies and copies.status in {Status.FAIL, Status.WARN} else ""
    return [lines[key] for key in keys]


_MOST = 700.0  # of an exponent


def _factor(log: float, *, toward: str = "down", digits: int = 3) -> str:
    """Return a factor by its logarithm, with the digits that tell it from 1."""
    factor = math.exp(min(log, _MOST))
    return numbers.enough_digits(
        lambda digits: numbers.number(factor, toward=toward, digits=digits),
        lambda text: factor <= 1 or float(text) > 1,
        least=digits,
    )


PROPENSITY = "epsilon_bound.propensity"


# --- The promise -------------------------------------------------------------------------------


def promised(result: document.Document) -> list[str]:
    """Return the meaning of the stated claim for a person who decides whether to take part."""
    claim = next((item for item in result.claims if item.metric == "epsilon"), None)
    claim = claim if claim is not None and _is_promise(claim) else None
    gain = _exact_advantage(result)
    words = [odds_in_words(item) for item in (gain or claim,) if item is not None]
    return [*words, belief_in_words(claim)] if claim is not None and claim.delta == 0 else words


def _is_promise(claim: Claim) -> bool:
    if claim.value is None or claim.delta is None:
        return False
    return 0 <= claim.value < math.inf and 0 <= claim.delta < 1


_ROUNDING = 1e-9


def _exact_advantage(result: document.Document) -> Claim | None:
    """Return the advantage that the claimed training allows, if it is tighter than every epsilon of the claim.

    One pair of epsilon and delta is a single line below the trade-off curve, and allows an observer more than the
    training does.
    """
    gain = next((item for item in result.claims if item.metric == "advantage" and item.proven), None)
    if gain is None or gain.value is None or not 0 <= gain.value <= 1:
        return None
    alike = [item for item in result.claims if item.metric == "epsilon" and item.adjacency == gain.adjacency]
    implied = [humphries(item).value for item in alike if _is_promise(item)]
    return gain if all(value is None or gain.value < value - _ROUNDING for value in implied) else None


# --- The states of an audit; ``texts/what_now.toml`` has the advice on each ---


_STATES = {
    _NONE: "nothing",
    _SMALL: "small",
    _NO_BOUND: "small",
    _BLIND: "blind",
    _REVERSED: "reversed",
    _INVALID: "failed",
}


def states(result: document.AuditResult, statement: Statement) -> tuple[str, ...]:
    """Return the states of an audit: that of the claim, if there is one, and that of the finding."""
    if failed_validity(result.checks):
        return ("failed",)
    of_leak = _STATES.get(statement.sign, "leak")
    if result.verdict in (None, Verdict.NOT_EVALUABLE) and not (result.claims or result.comparisons):
        return (of_leak,)
    verdict = result.verdict or Verdict.NOT_EVALUABLE
    judge, claim = metrics.judging(result), next(iter(result.claims), None)
    top = document.ceiling(judge)
    out_of_reach = (
        top is not None and claim is not None and claim.metric == "epsilon" and top < (claim.value or 0)
    )
    of_claim = "weak" if verdict is Verdict.NOT_REFUTED and out_of_reach else verdict.value
    if result.verdict is Verdict.NOT_EVALUABLE and result.data.get("split") not in (None, "unknown"):
        of_claim = "not_judged"
    return (of_claim, of_leak)


# --- The sentences of a report: the verdict, its meaning, and the leading number ---


class Headline(NamedTuple):
    """The leading number of a report, and its sentence."""

    estimate: Estimate | None
    sentence: str


def verdict_sentence(result: document.Document) -> str:
    """Return the reason for the verdict, with the judged form of the claim if it differs from the stated one."""
    if result.verdict is None:
        if result.kind == "labels":
            return "No claim is judged: no audit can check that D is the label distribution."
        if not result.claims and not result.comparisons:
            return "No claim was given, so there is nothing to refute."
        return "The claim was not judged: no measurement here is about the training algorithm."
    judged = [item for item in result.comparisons if item.verdict is result.verdict][:1]
    words = [text for item in judged for text in _judged(item, result)]
    return " ".join([*words, *_evidence(result), *filter(None, [why_smaller(result)])])


def why_smaller(result: document.Document) -> str:
    """Return why the bound of a refuted claim does not exceed the claim; empty if it does, or no curve decided."""
    refuted = result.kind == "runs" and result.verdict is Verdict.REFUTED
    for item in result.comparisons[:1] if refuted else ():
        bound = document.find(result, item.estimate)
        if bound is not None and bound.value is not None and bound.value <= (item.claim.value or math.inf):
            least, delta = numbers.number(bound.value, toward="down"), numbers.as_stated(bound.delta)
            return said("smaller", bound=least, delta=delta)
    return ""


_CLAIMED = ("Claimed: {}.", "Converted for this audit: {}.")


def _judged(item: Comparison, result: document.Document) -> list[str]:
    """Return the stated claim, its judged form if that differs, and the reason for the verdict."""
    stated = result.claims[:1] if item.claim.metric == "epsilon" else ()
    forms = [claim for claim in (*stated, item.claim) if claim.value is not None]
    text = list(dict.fromkeys(map(claim_words, forms)))
    if item.verdict is Verdict.NOT_EVALUABLE:
        text = text[:1]
    at = "".join(text[-1].partition(" (")[1:]) if text else ""  # not repeated for the measurement
    reason = numbers.sentence(item.reason).replace(at, "", 1)
    return [*(words.format(form) for words, form in zip(_CLAIMED, text, strict=False)), reason]


def _evidence(result: document.Document) -> list[str]:
    """Return sentences on the evidence against the claim, and on the looks that share the error."""
    outcome = []
    # Elsewhere it has a place of its own.
    for item in result.comparisons if result.kind == "instances" else ():
        if item.p_value is not None and item.p_value < 1:
            p_value = numbers.number(item.p_value, toward="up")
            e_value = (
                "" if item.e_value is None else f", its e-value {numbers.number(item.e_value, toward='down')}"
            )
            outcome.append(f"The claim's p-value is at most {p_value}{e_value}.")
    looks = result.data.get("looks", 1)
    if looks > 1:
        level, together = result.data["confidence"], 1 - looks * (1 - result.data["confidence"])
        words = {"level": numbers.percent(level, toward="down"), "together": numbers.percent(together)}
        outcome.append(said("looks", looks=looks, **words))
    return outcome
