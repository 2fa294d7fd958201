"""Claims beside estimates, and the verdict.

Only a mechanism-level lower bound can refute a claim about the training algorithm, and only at the claim's own delta
and adjacency. A model-level number is shown beside the claim and never turns into a verdict on it.
"""

import math
from collections.abc import Iterable, Sequence

from auditor.checks.registry import CHECKS, RUN_CHECKS
from auditor.core import validate
from auditor.core.errors import InputError
from auditor.core.numbers import apart, given, number, percent
from auditor.core.options import Adjacency
from auditor.core.registry import Role
from auditor.core.values import Check, Claim, Comparison, Estimate, Status, Subject, Verdict
from auditor.results import metrics

_MOST_DECISIVE_FIRST = (Verdict.REFUTED, Verdict.NOT_REFUTED, Verdict.INCONCLUSIVE, Verdict.NOT_EVALUABLE)
_ABOUT_THE_MODEL = (
    "The measurement describes this model; the claim is about the training algorithm. A larger value does not refute"
    " the claim, and a smaller one does not support it."
)


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
    rows = [judge(audited, by_name[metrics.named(Role.JUDGE)], checks=checks)]
    for claim in claims:
        # Only the claim as it was made stands beside the model's epsilon; its other forms would repeat it.
        if claim.value is not None and (claim.metric != "epsilon" or claim is claims[0]):
            rows += [
                Comparison(claim, item.name, None, _ABOUT_THE_MODEL)
                for item in metrics.METRICS
                if item.claim == claim.metric and item.name in by_name
            ]
    return tuple(rows)


def judge(claim: Claim, estimate: Estimate, *, checks: Sequence[Check] = ()) -> Comparison:
    """Return the verdict of a number about the training mechanism on a claim about it.

    Args:
        claim: In the form that the estimate audits: same delta, same adjacency.
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
    validate.known("claim metric", claim.metric, ("epsilon",))
    refusal = _why_no_judge(estimate)
    if refusal is not None:
        raise InputError(f"estimate {estimate.name!r} cannot judge a claim: {refusal}.")
    failed = failed_validity(checks)
    verdict, reason = _verdict(claim, estimate, failed, blind=why_blind(checks))
    return Comparison(claim, estimate.name, verdict, reason, estimate.subject)


def failed_validity(checks: Iterable[Check]) -> list[Check]:
    """Return the failed checks that leave every number about leakage without its meaning."""
    void = {spec.name for specs in (CHECKS, RUN_CHECKS) for spec in specs if spec.voids_result}
    return [check for check in checks if check.status is Status.FAIL and check.name in void]


def why_blind(checks: Iterable[Check]) -> str | None:
    """Return why the score could have shown no leak on these records, however much leaks; null where it could.

    The words are a clause: no capital, no full stop.

    >>> why_blind([Check("ties", Status.WARN, "", {"all_equal": True})])
    'all losses are equal, so this score could not have shown any leak'
    """
    for check in checks:
        runs = check.details.get("unit") == "runs"
        if check.name == "ties" and check.details.get("all_equal"):
            return (
                f"all {'scores' if runs else 'losses'} are equal, so this score could not have shown any leak"
            )
        if check.name == "direction" and check.status is Status.WARN:
            who = "runs with the canary have the higher scores" if runs else "members have the higher losses"
            return (
                f"{who}, so this score looked the wrong way: check that the {'two worlds' if runs else 'groups'} are not"
                " swapped"
            )
    return None


def _why_no_judge(estimate: Estimate) -> str | None:
    if estimate.subject is not Subject.MECHANISM:
        return (
            "it is about the model, and the claim is about the training mechanism; declare how membership was decided"
            f" and use {metrics.named(Role.JUDGE)}"
        )
    if estimate.details.get("conditional"):
        return f"it holds only under a condition that no audit can check; use {metrics.named(Role.JUDGE)}"
    if estimate.details.get("credible"):
        return (
            "its probability is over a prior, and not over the audits of one mechanism; use a certified bound"
        )
    if estimate.details.get("approximate"):
        return "its limits are approximate and can promise too much; use a certified bound"
    if estimate.value is not None and estimate.lower is None and "lower_reason" not in estimate.details:
        return "it is no lower bound, and only a lower bound can refute a claim"
    return None


def overall(comparisons: Iterable[Comparison]) -> Verdict | None:
    """Return the most decisive verdict of all forms of the claim; null where there is none."""
    given = {row.verdict for row in comparisons}
    return next((verdict for verdict in _MOST_DECISIVE_FIRST if verdict in given), None)


def _verdict(
    claim: Claim, estimate: Estimate, failed: Sequence[Check], *, blind: str | None
) -> tuple[Verdict, str]:
    unanswerable = _why_not_evaluable(claim, estimate, failed)
    if unanswerable is not None:
        return Verdict.NOT_EVALUABLE, unanswerable
    if claim.value is None:
        form = "these runs audit" if _unit(estimate) == "runs" else "this split audits"
        return (
            Verdict.INCONCLUSIVE,
            f"In the form that {form}, the claim promises nothing: {claim.note}",
        )
    if estimate.lower is None:
        why = estimate.details["lower_reason"]
        return (
            Verdict.INCONCLUSIVE,
            f"The estimate of the training algorithm's epsilon has no lower bound: {why}.",
        )
    if blind is not None and estimate.lower <= claim.value:
        return Verdict.INCONCLUSIVE, f"{blind[0].upper()}{blind[1:]}."
    return _weighed(claim, claim.value, estimate)


def _why_not_evaluable(claim: Claim, estimate: Estimate, failed: Sequence[Check]) -> str | None:
    if failed:
        return f"A validity check failed ({failed[0].name}): {failed[0].message}"
    if estimate.value is None:
        return f"No statement about the training algorithm is possible: {estimate.reason}."
    unfit = estimate.details.get("not_for_claim")
    if unfit is not None:
        return f"The bound is about something else than the claim: {unfit}."
    return None if claim.value is None else _mismatch(claim, estimate)


def _weighed(claim: Claim, claimed: float, estimate: Estimate) -> tuple[Verdict, str]:
    """Bound against claim, and ceiling against claim."""
    bound, ceiling = estimate.lower or 0.0, estimate.details.get("ceiling", math.inf)
    stated, shown = apart(claimed, bound)
    top = number(ceiling, toward="down")
    level = f"at {percent(estimate.confidence, toward='down')} confidence"
    at = f"delta {given(claim.delta)}, {claim.adjacency}"
    if bound > claimed:
        return Verdict.REFUTED, (
            f"The training algorithm's epsilon is at least {shown} {level} ({at}), above the claimed {stated}."
        )
    curve = estimate.details.get("claimed_curve") or {}
    if curve.get("rejected"):
        return Verdict.REFUTED, (
            f"The guesses are more often right than the claimed training allows at any delta ({level}, {claim.adjacency}):"
            f" its whole trade-off curve is rejected, although the bound of {shown} at this delta alone is not above"
            f" the claimed {stated}."
        )
    if ceiling <= claimed and not curve.get("could_have_been"):
        return Verdict.INCONCLUSIVE, (
            f"A perfect attack on these {_unit(estimate)} would have shown {top} by this method ({at}), not above the claimed"
            f" {stated}: the audit had no power to refute it."
        )
    if ceiling <= claimed:
        return Verdict.NOT_REFUTED, (
            f"The guesses are not more often right than the claimed training allows ({level}, {claim.adjacency}); a perfect"
            " attack would have had its whole trade-off curve rejected. This does not prove the claim."
        )
    return Verdict.NOT_REFUTED, (
        f"The lower bound of {shown} {level} ({at}) does not exceed the claimed {stated}; a perfect attack would have"
        f" shown {top}. This does not prove the claim."
    )


def _unit(estimate: Estimate) -> str:
    """What was counted: records, unless the estimate says otherwise."""
    return "runs" if estimate.details.get("unit") == "runs" else "records"


def _mismatch(claim: Claim, estimate: Estimate) -> str | None:
    """Why the bound says nothing about this form of the claim, if so."""
    if claim.adjacency != estimate.adjacency:
        if estimate.adjacency is Adjacency.REPLACE_ONE:
            return "A random split audits the replace-one adjacency; this claim is for add-remove."
        return "Inclusion coins audit the add-remove adjacency; this claim is for replace-one."
    if claim.delta != estimate.delta:
        if estimate.delta == 0:
            return (
                "This one-run audit is stated at delta 0 and judges only claims at delta 0, not"
                f" {given(claim.delta)}."
            )
        return f"The bound is stated at delta {given(estimate.delta)}, this form of the claim at {given(claim.delta)}."
    return None
