"""Claims beside estimates, and the verdict.

Only a mechanism-level lower bound can refute a claim about the training algorithm, and only at the claim's own delta
and adjacency. A model-level number is shown beside the claim and never turns into a verdict on it.
"""

from collections.abc import Iterable, Sequence

from auditor.choices import Adjacency
from auditor.values import Check, Claim, Comparison, Estimate, Status, Verdict

__all__ = ["compare", "judged_forms", "overall"]

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
    claims: Sequence[Claim], estimates: Sequence[Estimate], checks: Iterable[Check], *, audited: Claim | None
) -> tuple[Comparison, ...]:
    """Put the claims beside the estimates of the same quantity, the ones that can be judged first.

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
    rows = [_judged(form, bound, failed) for form in judged_forms(claims, audited)]
    for claim in claims:
        # Only the claim as it was made stands beside the model's epsilon; its other forms would repeat it.
        if claim.value is not None and (claim.metric != "epsilon" or claim is claims[0]):
            rows += [
                Comparison(claim, name, None, _ABOUT_THE_MODEL) for name in _MODEL_ROWS.get(claim.metric, ())
            ]
    return tuple(rows)


def judged_forms(claims: Sequence[Claim], audited: Claim) -> list[Claim]:
    """Return the audited form of a claim, and any tighter form of it at the same delta and adjacency."""
    return [audited, *(claim for claim in claims if claim != audited and _same_statement(claim, audited))]


def _same_statement(claim: Claim, audited: Claim) -> bool:
    same = (claim.metric, claim.adjacency, claim.delta) == (audited.metric, audited.adjacency, audited.delta)
    return same and claim.proven and claim.value is not None


def overall(comparisons: Iterable[Comparison]) -> Verdict | None:
    """Return the most decisive verdict of all forms of the claim; null where there is none."""
    given = {row.verdict for row in comparisons}
    return next((verdict for verdict in _MOST_DECISIVE_FIRST if verdict in given), None)


def _judged(claim: Claim, estimate: Estimate, failed: Sequence[Check]) -> Comparison:
    verdict, reason = _verdict(claim, estimate, failed)
    return Comparison(claim, estimate.name, verdict, reason)


def _verdict(claim: Claim, estimate: Estimate, failed: Sequence[Check]) -> tuple[Verdict, str]:
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
    return _weighed(claim.value, estimate, f"delta {claim.delta:.3g}, {claim.adjacency}")


def _weighed(claimed: float, estimate: Estimate, at: str) -> tuple[Verdict, str]:
    """Bound against claim, and ceiling against claim."""
    bound, ceiling = estimate.value or 0.0, estimate.details["ceiling"]
    level = f"{estimate.confidence:.4g}"
    if bound > claimed:
        return Verdict.REFUTED, (
            f"The training algorithm's epsilon is at least {bound:.3g} at confidence {level} ({at}), above the"
            f" claimed {claimed:.3g}."
        )
    if ceiling <= claimed:
        return Verdict.INCONCLUSIVE, (
            f"Even a perfect attack on these records could show at most {ceiling:.3g} ({at}), not above the claimed"
            f" {claimed:.3g}: the audit had no power to refute it."
        )
    return Verdict.NOT_REFUTED, (
        f"The lower bound of {bound:.3g} at confidence {level} ({at}) does not exceed the claimed {claimed:.3g};"
        f" a perfect attack would have shown {ceiling:.3g}. This does not prove the claim."
    )


def _mismatch(claim: Claim, estimate: Estimate) -> str | None:
    """Why the bound says nothing about this form of the claim, if so."""
    if claim.adjacency != estimate.adjacency:
        if estimate.adjacency is Adjacency.REPLACE_ONE:
            return "A random split audits the replace-one adjacency; this claim is for add-remove."
        return "Inclusion coins audit the add-remove adjacency; this claim is for replace-one."
    if claim.delta != estimate.delta:
        if estimate.delta == 0:
            return f"An audit on inclusion coins is stated at delta 0 and judges only claims at delta 0, not {claim.delta:.3g}."
        return (
            f"The bound is stated at delta {estimate.delta:.3g}, this form of the claim at {claim.delta:.3g}."
        )
    return None
