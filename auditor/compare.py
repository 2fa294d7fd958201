"""Claims beside estimates, and the verdict.

Only a mechanism-level lower bound can refute a claim about the training algorithm, and only at the claim's own delta
and adjacency. A model-level number is shown beside the claim and never turns into a verdict on it.
"""

from collections.abc import Iterable, Sequence

from auditor._format import apart, given, number, percent
from auditor.choices import Adjacency
from auditor.values import Check, Claim, Comparison, Estimate, Status, Verdict

__all__ = ["compare", "overall"]

# A failure of one of these makes the question itself unanswerable; a rejected fit does not.
_VALIDITY = frozenset({"duplicates", "shift", "placebo"})
_MOST_DECISIVE_FIRST = (Verdict.REFUTED, Verdict.NOT_REFUTED, Verdict.INCONCLUSIVE, Verdict.NOT_EVALUABLE)
_MODEL_ROWS = {
    "epsilon": ("epsilon_star.gaussian", "epsilon_bound.clopper_pearson"),
    "advantage": ("advantage",),
    "bayes_security": ("bayes_security",),
}
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
    failed = [check for check in checks if check.name in _VALIDITY and check.status is Status.FAIL]
    bound = by_name["epsilon_bound.one_run"]
    verdict, reason = _verdict(audited, bound, failed, blind=_why_blind(checks))
    rows = [Comparison(audited, bound.name, verdict, reason)]
    for claim in claims:
        # Only the claim as it was made stands beside the model's epsilon; its other forms would repeat it.
        if claim.value is not None and (claim.metric != "epsilon" or claim is claims[0]):
            rows += [
                Comparison(claim, name, None, _ABOUT_THE_MODEL) for name in _MODEL_ROWS.get(claim.metric, ())
            ]
    return tuple(rows)


def overall(comparisons: Iterable[Comparison]) -> Verdict | None:
    """Return the most decisive verdict of all forms of the claim; null where there is none."""
    given = {row.verdict for row in comparisons}
    return next((verdict for verdict in _MOST_DECISIVE_FIRST if verdict in given), None)


def _why_blind(checks: Iterable[Check]) -> str | None:
    """Why the score could have found nothing on these records whatever the algorithm leaks, if so."""
    by_name = {check.name: check for check in checks}
    if by_name["ties"].details.get("all_equal"):
        return "All losses are equal, so this score could not have shown any leak."
    if by_name["direction"].status is Status.WARN:
        return "Members have the higher losses, so this score looked the wrong way: check that the groups are not swapped."
    return None


def _verdict(
    claim: Claim, estimate: Estimate, failed: Sequence[Check], *, blind: str | None
) -> tuple[Verdict, str]:
    if failed:
        return Verdict.NOT_EVALUABLE, f"A validity check failed ({failed[0].name}): {failed[0].message}"
    if estimate.value is None:
        return (
            Verdict.NOT_EVALUABLE,
            f"No statement about the training algorithm is possible: {estimate.reason}.",
        )
    if claim.value is None:
        return (
            Verdict.INCONCLUSIVE,
            f"In the form that this split audits, the claim promises nothing: {claim.note}",
        )
    mismatch = _mismatch(claim, estimate)
    if mismatch:
        return Verdict.NOT_EVALUABLE, mismatch
    if blind is not None and (estimate.value or 0.0) <= claim.value:
        return Verdict.INCONCLUSIVE, blind
    return _weighed(claim, claim.value, estimate)


def _weighed(claim: Claim, claimed: float, estimate: Estimate) -> tuple[Verdict, str]:
    """Bound against claim, and ceiling against claim."""
    bound, ceiling = estimate.value or 0.0, estimate.details["ceiling"]
    stated, shown = apart(claimed, bound)
    top = number(ceiling, toward="down")
    level = f"at {percent(estimate.confidence, toward='down')} confidence"
    at = f"delta {given(claim.delta)}, {claim.adjacency}"
    if bound > claimed:
        return Verdict.REFUTED, (
            f"The training algorithm's epsilon is at least {shown} {level} ({at}), above the claimed {stated}."
        )
    if ceiling <= claimed:
        return Verdict.INCONCLUSIVE, (
            f"A perfect attack on these records would have shown {top} by this method ({at}), not above the claimed"
            f" {stated}: the audit had no power to refute it."
        )
    return Verdict.NOT_REFUTED, (
        f"The lower bound of {shown} {level} ({at}) does not exceed the claimed {stated}; a perfect attack would have"
        f" shown {top}. This does not prove the claim."
    )


def _mismatch(claim: Claim, estimate: Estimate) -> str | None:
    """Why the bound says nothing about this form of the claim, if so."""
    if claim.adjacency != estimate.adjacency:
        if estimate.adjacency is Adjacency.REPLACE_ONE:
            return "A random split audits the replace-one adjacency; this claim is for add-remove."
        return "Inclusion coins audit the add-remove adjacency; this claim is for replace-one."
    if claim.delta != estimate.delta:
        if estimate.delta == 0:
            return (
                "An audit on inclusion coins is stated at delta 0 and judges only claims at delta 0, not"
                f" {given(claim.delta)}."
            )
        return f"The bound is stated at delta {given(estimate.delta)}, this form of the claim at {given(claim.delta)}."
    return None
