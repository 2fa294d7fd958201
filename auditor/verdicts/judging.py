"""Claims beside estimates, and the verdict.

Only a lower bound on the training algorithm, at the claim's adjacency and at its delta or a larger one, or a test of the
whole claimed trade-off curve can refute a claim about the algorithm. A number about the model is shown beside the claim
and never gives a verdict.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from auditor.checks.answers import said
from auditor.checks.registry import CHECKS, RUN_CHECKS
from auditor.core import validate
from auditor.core.errors import InputError
from auditor.core.facts import Tail
from auditor.core.numbers import apart, as_stated, number, percent
from auditor.core.options import Adjacency
from auditor.core.registry import Role, entries
from auditor.core.values import Check, Claim, Comparison, Estimate, Status, Subject, Verdict
from auditor.estimators.adaptive import ADAPTIVE
from auditor.results import metrics
from auditor.results.document import ceiling_of_score

_LEAST_P, _NEARLY_ONE = 1e-300, 1e-6  # of a p-value, and of the log of one that is nearly 1
_MOST_DECISIVE_FIRST = (Verdict.REFUTED, Verdict.NOT_REFUTED, Verdict.INCONCLUSIVE, Verdict.NOT_EVALUABLE)
_REASONS = entries("auditor.verdicts", "reasons.toml")


def _because(key: str, **words: Any) -> str:
    """Return a reason of ``reasons.toml`` with these words in their places."""
    return str(_REASONS[key]).format(**words)


def compare(
    claims: Sequence[Claim], estimates: Sequence[Estimate], checks: Sequence[Check], *, audited: Claim | None
) -> tuple[Comparison, ...]:
    """Put the claims beside the estimates of the same quantity, the one that can be judged first.

    Args:
        claims: From `auditor.theory.claims`, the claimed epsilon first.
        estimates: From the estimators.
        checks: A failed validity check makes every verdict ``not_evaluable``.
        audited: The form of the claimed epsilon that the declared split audits.
    """
    if not claims or audited is None:
        return ()
    by_name = {estimate.name: estimate for estimate in estimates}
    # At delta 0 bets on learnt guesses judge too, with an error of their own.
    judges = [metrics.named(Role.JUDGE), *([ADAPTIVE] if audited.delta == 0 else [])]
    found = [judge(audited, by_name[name], checks=checks) for name in judges if name in by_name]
    judged = min(
        found,
        key=lambda row: (
            _MOST_DECISIVE_FIRST.index(row.verdict or Verdict.NOT_EVALUABLE),
            -(by_name[row.estimate].lower or 0.0),
        ),
    )
    weak = _weak(judged, by_name)
    rows = [replace(judged, reason=f"{judged.reason} {weak}") if weak else judged]
    for claim in claims:
        # Only the claim as it was made stands beside the model's epsilon; its other forms would repeat it.
        if claim.value is not None and (claim.metric != "epsilon" or claim is claims[0]):
            rows += [
                Comparison(claim, item.name, None, _because("about_the_model"))
                for item in metrics.METRICS
                if item.claim == claim.metric and item.name in by_name
            ]
    return tuple(rows)


_FAR = 1.0


def _weak(judged: Comparison, by_name: Mapping[str, Estimate]) -> str:
    """Return a sentence if natural records made a weak test and the model's own losses show far more; else empty."""
    model, mechanism = by_name.get(metrics.named(Role.CERTIFIED)), by_name[judged.estimate]
    open_ended = judged.verdict in (Verdict.NOT_REFUTED, Verdict.INCONCLUSIVE)
    if not open_ended or model is None or model.lower is None or judged.claim.value is None:
        return ""
    if model.lower <= judged.claim.value or model.lower <= (mechanism.lower or 0.0) + _FAR:
        return ""
    least, level = number(model.lower, toward="down"), percent(model.confidence, toward="down")
    return _because("weak", least=least, level=level, delta=as_stated(model.delta))


def judge(claim: Claim, estimate: Estimate, *, checks: Sequence[Check] = ()) -> Comparison:
    """Return the verdict of a number about the training mechanism on a claim about it.

    Args:
        claim: A claim with the delta and the adjacency of the estimate.
        estimate: A lower bound on the mechanism's epsilon, with ``details["ceiling"]``; or one without a value.
        checks: A failed validity check makes the verdict ``not_evaluable``.

    Raises:
        InputError: The estimate is about a model, holds only under a condition that was not checked, or bounds nothing
            from below: such a number cannot judge a claim, however large it is.

    >>> from auditor.theory import claims
    >>> from auditor.core.options import StatedClaim
    >>> from auditor.core.values import Subject
    >>> claim = claims(StatedClaim(epsilon=1.0, delta=0.0, adjacency="replace-one"), delta=0.0)[0]
    >>> bound = Estimate("epsilon_bound.one_run", 2.0, 2.0, None, 0.95, "by hand", Subject.MECHANISM, 0.0,
    ...                  Adjacency.REPLACE_ONE, details={"ceiling": 6.0})
    >>> str(judge(claim, bound).verdict)
    'refuted'
    """
    validate.one_of("claim metric", claim.metric, ("epsilon",))
    refusal = _why_no_judge(estimate)
    if refusal is not None:
        raise InputError(f"estimate {estimate.name!r} cannot judge a claim: {refusal}.")
    failed = failed_validity(checks)
    verdict, reason = _controlled(*_verdict(claim, estimate, failed, blind=why_blind(checks)), checks)
    p_value, e_value = _evidence(estimate) if verdict is not Verdict.NOT_EVALUABLE else (None, None)
    if p_value is not None and verdict is not Verdict.REFUTED:  # a published bound is rounded, and decides
        p_value = max(p_value, math.nextafter(1 - (estimate.confidence or 1.0), 1.0))
    return Comparison(claim, estimate.name, verdict, reason, estimate.subject, p_value, e_value)


def _evidence(estimate: Estimate) -> tuple[float | None, float | None]:
    """Return the p-value and the e-value of the claim, if its test has them."""
    curve = estimate.details.get("claimed_curve") or {}
    p_value = curve.get("p_value", estimate.details.get("p_value"))
    return p_value, curve.get("e_value", None if p_value is None else e_value_of(p_value))


def e_value_of(p_value: float) -> float:
    """Return the e-value that stands for a p-value: (1 - p + p ln p)/(p (ln p)^2), a mean over calibrators.

    Source: Vovk and Wang 2021, Eq. 2.

    >>> round(e_value_of(0.05), 2), e_value_of(1.0)
    (1.78, 0.5)
    """
    log = math.log(max(p_value, _LEAST_P))
    if log > -_NEARLY_ONE:
        return 0.5
    return (1 - p_value + p_value * log) / (max(p_value, _LEAST_P) * log**2)


def failed_validity(checks: Iterable[Check]) -> list[Check]:
    """Return the failed checks that invalidate every number about leakage."""
    void = {spec.name for specs in (CHECKS, RUN_CHECKS) for spec in specs if spec.voids_result}
    return [check for check in checks if check.status is Status.FAIL and check.name in void]


def why_blind(checks: Iterable[Check]) -> str | None:
    """Return why the score could not have shown any leak on these records; None if it could.

    The words are a clause: no capital, no full stop.

    >>> why_blind([Check("ties", Status.WARN, "", {"all_equal": True})])
    'all losses are equal, so this score could not have shown any leak'
    """
    for check in checks:
        runs = check.details.get("unit") == "runs"
        if check.name == "ties" and check.details.get("all_equal"):
            what = "scores" if runs else "losses"
            return f"all {what} are equal, so this score could not have shown any leak"
        if check.name == "direction" and check.status is Status.WARN:
            who = "runs with the canary have the higher scores" if runs else "members have the higher losses"
            what = "two worlds" if runs else "groups"
            return f"{who}, so this score has the wrong sign: check that the {what} are not swapped"
    return None


def _why_no_judge(estimate: Estimate) -> str | None:
    if estimate.subject is not Subject.MECHANISM:
        return _because("of_the_model", judge=metrics.named(Role.JUDGE))
    if estimate.details.get("conditional"):
        return _because("conditional", judge=metrics.named(Role.JUDGE))
    if estimate.value is not None and estimate.lower is None and "lower_reason" not in estimate.details:
        return _because("no_lower_bound")
    return None


def overall(comparisons: Iterable[Comparison]) -> Verdict | None:
    """Return the most decisive verdict of all forms of the claim, or None."""
    values = {row.verdict for row in comparisons}
    return next((verdict for verdict in _MOST_DECISIVE_FIRST if verdict in values), None)


def _verdict(
    claim: Claim, estimate: Estimate, failed: Sequence[Check], *, blind: str | None
) -> tuple[Verdict, str]:
    unanswerable = _why_not_evaluable(claim, estimate, failed)
    if unanswerable is not None:
        return Verdict.NOT_EVALUABLE, unanswerable
    curve = estimate.details.get("claimed_curve") or {}
    saw_nothing = None if blind is None else (Verdict.INCONCLUSIVE, f"{blind[0].upper()}{blind[1:]}.")
    if curve.get("decides"):
        return _by_curve(claim, curve, estimate) if curve["rejected"] or saw_nothing is None else saw_nothing
    if claim.value is None:
        form = "these runs audit" if _unit(estimate) == "runs" else "this split audits"
        return Verdict.INCONCLUSIVE, f"On the scale that {form}, the claim promises nothing: {claim.note}"
    if estimate.lower is None:
        why = f"has no lower bound: {estimate.details['lower_reason']}"
        return Verdict.INCONCLUSIVE, f"The estimate of the training algorithm's epsilon {why}."
    if saw_nothing is not None and estimate.lower <= claim.value:
        return saw_nothing
    return _weighed(claim, claim.value, estimate)


def _controlled(verdict: Verdict, reason: str, checks: Sequence[Check]) -> tuple[Verdict, str]:
    """Return the verdict beside that of a positive control, without which a claim that is not refuted stays open."""
    status = next((check.status for check in checks if check.name == "control"), None)
    if verdict is not Verdict.NOT_REFUTED or status is None:
        return verdict, reason
    if status is Status.WARN:
        return Verdict.INCONCLUSIVE, said("control", "alike")
    return verdict, f"{reason} {said('control', 'could')}"


def _why_not_evaluable(claim: Claim, estimate: Estimate, failed: Sequence[Check]) -> str | None:
    if failed:
        return f"A validity check failed ({failed[0].name}): {failed[0].message}"
    if estimate.value is None:
        return f"There is no bound on the training algorithm: {estimate.reason}."
    unfit = estimate.details.get("not_for_claim")
    if unfit is not None:
        return f"The bound is not about the claim: {unfit}."
    return None if claim.value is None else _mismatch(claim, estimate)


def _by_curve(claim: Claim, curve: Mapping[str, Any], estimate: Estimate) -> tuple[Verdict, str]:
    """Return the verdict of runs, which the whole claimed curve decides."""
    words = {
        "level": f"at {percent(estimate.confidence, toward='down')} confidence",
        "adjacency": claim.adjacency,
    }
    if curve["rejected"]:
        bets = _because("bets", pairs=curve.get("refuted_at_pair", 0))
        place = _place(curve["point"]) if "point" in curve else bets
        return Verdict.REFUTED, _because("curve_refuted", place=place, **words)
    if not curve["could_have_been"]:
        needed = _needed(curve, "runs")
        return Verdict.INCONCLUSIVE, _because("curve_out_of_reach", needed=needed, **words)
    return Verdict.NOT_REFUTED, _because("curve_not_refuted", no_proof=_because("no_proof"), **words)


def _place(point: Mapping[str, Any]) -> str:
    """Return the point where the scores contradict a curve most, as a clause."""
    hits, alarms = (f"{point[name]:,} of {point[f'{name}_of']:,}" for name in ("hits", "alarms"))
    below = point["tail"] == Tail.LOWER
    more, fewer = ("with the canary", "without it") if below else ("without the canary", "with it")
    words = {
        "hits": hits,
        "alarms": alarms,
        "more": more,
        "fewer": fewer,
        "side": "below" if below else "above",
    }
    return _because("point", allowed=percent(point["allowed"], toward="up"), **words)


def _needed(curve: Mapping[str, Any], unit: str) -> str:
    """Return the number of records or runs that would suffice, as a sentence; empty if unknown."""
    needed = curve.get("needed", 0)
    if needed is None:
        return _because("never", unit=unit)
    return _because("needed", needed=needed, unit=unit) if "needed" in curve else ""


def _weighed(claim: Claim, claimed: float, estimate: Estimate) -> tuple[Verdict, str]:
    """Return the verdict by the bound and its ceiling."""
    bound, ceiling = estimate.lower or 0.0, estimate.details.get("ceiling", math.inf)
    _, least = apart(claimed, bound)
    top = number(ceiling, toward="down")
    level = f"at {percent(estimate.confidence, toward='down')} confidence"
    at = f"delta {as_stated(estimate.delta)}, {claim.adjacency}"
    if bound > claimed:
        return Verdict.REFUTED, f"Measured: epsilon at least {least} {level} ({at})."
    curve = estimate.details.get("claimed_curve") or {}
    if curve.get("rejected"):
        return Verdict.REFUTED, _because("guesses", level=level, least=least, at=at)
    of_score = ceiling_of_score(estimate)
    shown = "" if of_score is None else number(of_score, toward="up")
    if ceiling <= claimed and not curve.get("could_have_been"):
        words = {"unit": _unit(estimate), "most": f"only {top}" if ceiling > 0 else "nothing"}
        words["of_score"] = _because("of_score", shown=shown) if shown else ""
        words["needed"] = _needed(curve, "pairs" if claim.adjacency is Adjacency.REPLACE_ONE else "records")
        return Verdict.INCONCLUSIVE, _because("out_of_reach", level=level, at=at, **words)
    result = f"epsilon at least {least}" if bound > 0 else "no evidence of an epsilon above 0"
    within = "The guesses are not right more often than the claim allows"
    said = within if ceiling <= claimed else f"Measured: {result}"
    beyond = of_score is not None and of_score <= claimed and not curve.get("score_could")
    unable = _because("score_out_of_reach", unit=_unit(estimate), shown=shown) if beyond else ""
    smallest = f"{_smallest(estimate, top)}{unable}"
    return Verdict.NOT_REFUTED, f"{said} {level} ({at}).{smallest} {_because('no_proof')}"


def _smallest(estimate: Estimate, top: str) -> str:
    """Return the separation of the groups that would refute the claim, as a sentence; else the ceiling."""
    mu = estimate.details.get("smallest_mu")
    if mu is None:
        return _because("largest", unit=_unit(estimate), top=top)
    return _because("smallest", mu=number(mu, toward="up", digits=2))


def _unit(estimate: Estimate) -> str:
    """Return the unit of the counts: records, unless the estimate names runs."""
    return "runs" if estimate.details.get("unit") == "runs" else "records"


def _mismatch(claim: Claim, estimate: Estimate) -> str | None:
    """Return why the bound does not apply to this form of the claim, or None."""
    if claim.adjacency != estimate.adjacency:
        return _because(str(estimate.adjacency))
    # (epsilon, d)-DP implies DP at every larger delta, so a bound there refutes; a bound at a smaller one does not.
    if claim.delta is not None and estimate.delta is not None and estimate.delta < claim.delta:
        key = "delta_of_0" if estimate.delta == 0 else "smaller_delta"
        return _because(key, stated=as_stated(estimate.delta), claimed=as_stated(claim.delta))
    return None
