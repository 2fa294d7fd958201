"""The sentences of a report: the verdict, what it means, and which number leads."""

from typing import NamedTuple

from auditor.compare import failed_validity
from auditor.report import formatting
from auditor.report.findings import meaning
from auditor.report.fit import star_notes, within_noise
from auditor.report.lookup import CERTIFIED, ONE_RUN, STAR, amount, ceiling, dig, find, powerless
from auditor.result import AuditResult
from auditor.values import Claim, Comparison, Estimate, Status, Verdict

__all__ = ["Headline", "headline", "meaning", "verdict_sentence"]


class Headline(NamedTuple):
    """The number that leads a report, and the sentence that goes with it."""

    estimate: Estimate | None
    sentence: str


def verdict_sentence(result: AuditResult) -> str:
    """Return one sentence, or two, on what the audit says about the claim."""
    judged = _judged(result)
    if result.verdict is None:
        if not result.claims and not result.comparisons:
            return "No claim was given, so there is nothing to refute."
        return "The claim was not judged: no measurement here is about the training algorithm."
    if result.verdict is Verdict.NOT_EVALUABLE:
        reason = judged.reason if judged else _one_run_reason(result)
        return f"The claim cannot be judged from this audit. {formatting.sentence(reason)}".strip()
    estimate = find(result, judged.estimate) if judged else None
    numbers = _numbers(judged, estimate)
    top = ceiling(estimate)
    if judged is None or estimate is None or numbers is None or _by_curve(result.verdict, numbers, top):
        reason = formatting.sentence(judged.reason) if judged else ""
        return f"{_PLAIN[result.verdict]} {reason}".strip()
    if result.verdict is Verdict.INCONCLUSIVE and top is not None and top > numbers[0] and judged.reason:
        return f"The audit is inconclusive. {formatting.sentence(judged.reason)}"  # it had room, and yet no power
    return _worded(result.verdict, estimate, numbers, _terms(result, judged, numbers))


def _by_curve(verdict: Verdict, numbers: tuple[float, float], top: float | None) -> bool:
    """Whether the claim was judged by its whole trade-off curve, which the bound at one delta does not show."""
    claimed, bound = numbers
    if verdict is Verdict.REFUTED:
        return bound <= claimed
    return verdict is Verdict.NOT_REFUTED and top is not None and top <= claimed


_PLAIN = {
    Verdict.REFUTED: "The claim is refuted.",
    Verdict.NOT_REFUTED: "The claim is not refuted, which is not proof that it holds.",
    Verdict.INCONCLUSIVE: "The audit is inconclusive: it could not have refuted the claim.",
}


def _judged(result: AuditResult) -> Comparison | None:
    if result.verdict is None:
        return None
    return next((item for item in result.comparisons if item.verdict is result.verdict), None)


def _one_run_reason(result: AuditResult) -> str:
    estimate = find(result, ONE_RUN)
    return (estimate.reason if estimate else None) or "No measurement here is about the training algorithm."


def _numbers(judged: Comparison | None, estimate: Estimate | None) -> tuple[float, float] | None:
    if judged is None or estimate is None or judged.claim.metric != "epsilon":
        return None
    if judged.claim.value is None or estimate.lower is None:
        return None
    return judged.claim.value, estimate.lower


def _terms(result: AuditResult, judged: Comparison, numbers: tuple[float, float]) -> str:
    """The claimed epsilon in the form in which it was judged, and where that form is not how it was stated, how it was."""
    terms = _stated(judged.claim, formatting.apart(*numbers)[0])
    stated = result.claims[0] if result.claims else judged.claim
    if stated == judged.claim or stated.value is None:
        return f"the claimed {terms}"
    return f"the {terms} that the claim of {_stated(stated, formatting.given(stated.value))} implies"


def _stated(claim: Claim, epsilon: str) -> str:
    at = "" if claim.delta is None else f" at delta {formatting.given(claim.delta)}"
    return f"epsilon {epsilon}{at} ({claim.adjacency})"


def _worded(verdict: Verdict, estimate: Estimate, numbers: tuple[float, float], terms: str) -> str:
    _, bound = formatting.apart(*numbers)
    top = ceiling(estimate)
    most = formatting.number(top, toward="down")
    if verdict is Verdict.REFUTED:
        level = (
            "" if estimate.confidence is None else f"at {formatting.percent(estimate.confidence)} confidence "
        )
        return (
            f"The claim is refuted: {level}the training algorithm's epsilon is at least {bound},"
            f" more than {terms}."
        )
    if verdict is Verdict.NOT_REFUTED:
        power = "" if top is None else f", although this audit could have certified up to {most}"
        return (
            f"The claim is not refuted: the certified bound of {bound} does not exceed {terms}{power}."
            " This is not proof that the claim holds."
        )
    reach = f"with these records it can certify at most {most}, not more than {terms}"
    if top is None:
        reach = f"with these records it can certify no more than {terms}"
    elif powerless(estimate):
        reach = f"there are too few records to certify anything, let alone more than {terms}"
    return f"The audit is inconclusive: {reach}, so it could not have refuted the claim however much the model leaks."


def headline(result: AuditResult) -> Headline:
    """Return the leading number: Epsilon*, or another where the Gaussian fit cannot be relied on.

    That is the certified bound, which needs no fit; never a mixture, whose value has no known error.
    """
    lead = _lead(result)
    bound = find(result, CERTIFIED)
    if bound is not None and dig(bound.details, "approximate"):  # asked for, and no certificate
        return lead._replace(sentence=lead.sentence.replace("certified bound", "approximate bound"))
    return lead


def _lead(result: AuditResult) -> Headline:
    star, bound = find(result, STAR), find(result, CERTIFIED)
    if failed_validity(result.checks):
        return Headline(bound, "A validity check failed, so no number here measures leakage.")
    if star is None or star.value is None:
        reason = (star.reason if star else None) or "it was not computed"
        why = f"Epsilon* has no value ({formatting.tidy(reason).rstrip('.')})"
        return Headline(bound, f"{why}, so the certified bound leads.")
    if dig(star.details, "fit", "rejected") is True:
        why = f"The Gaussian fit is rejected by its test{_gap(star)}"
        return Headline(bound, f"{why}, so the certified bound leads; it needs no fit.")
    blunted = _blunted(result)
    if blunted:
        return Headline(bound, f"{blunted} The certified bound leads; it needs no fit.")
    noise = within_noise(star)
    if noise is not None or dig(star.details, "lower_reason") is not None:
        why = noise or "Epsilon* has no interval here."
        return Headline(bound, f"{why} The certified bound leads; it allows for chance.")
    return Headline(star, " ".join(["An estimate that trusts the Gaussian fit.", *star_notes(star)]))


def _gap(star: Estimate) -> str:
    """How far the fitted curve lies from the measured one, in nats, where there are records to compare with."""
    gap = amount(star.details, "curve_gap")
    if not gap:
        return ""
    side = "above" if gap > 0 else "below"
    return (
        f" (where there are records to compare with, its curve lies up to {formatting.number(abs(gap))} nats {side} the"
        " measured one; Epsilon* is read further out)"
    )


def _blunted(result: AuditResult) -> str | None:
    """Why no curve fitted to these losses can lead: the model's confidences were rounded, masked or cut off."""
    for check in result.checks:
        if check.name in ("ties", "saturation") and check.status is Status.WARN:
            return "Many losses share one value, as after rounded or masked outputs, and a fitted curve then misleads."
    return None
