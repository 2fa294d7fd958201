"""The same result for a terminal: the verdict with its reason, the counts, and a line for each method."""

from auditor.report import formatting
from auditor.report.labels import ABOUT, STATUS, VERDICT
from auditor.runs.estimates import BAYESIAN, CERTIFIED, GDP, KATZ
from auditor.runs.result import RunsResult
from auditor.values import Estimate, Status

__all__ = ["ONE_JUDGES", "counted", "judged_as", "text"]

ONE_JUDGES = "Only the certified bound judges a claim; the others can exceed the truth."

_TITLES = {
    CERTIFIED: "Clopper-Pearson, certified",
    KATZ: "Katz, approximate",
    BAYESIAN: "Bayesian, credible",
    GDP: "Gaussian, conditional",
}
_LEVELS = {
    CERTIFIED: "confidence",
    KATZ: "approximate",
    BAYESIAN: "credible",
    GDP: "if the curve is Gaussian",
}


def text(result: RunsResult) -> str:
    """Return a result as lines of text.

    >>> from auditor.runs.audit import audit_runs
    >>> from auditor.values import Losses
    >>> runs = Losses(member=[0.1, 0.2, 0.3, 0.4], nonmember=[0.2, 0.3, 0.5, 0.6])
    >>> print(text(audit_runs(runs, delta=1e-5)).splitlines()[0][2:])
    No claim to judge
    """
    sign = VERDICT[result.verdict]
    lines = [
        f"{sign.symbol} {sign.word}",
        *judged_as(result),
        *(item.reason for item in result.comparisons),
        "",
    ]
    lines += [counted(result)]
    width = max(map(len, _TITLES.values()))
    lines += [f"  {_TITLES[item.name]:<{width}}  {_value(item)}" for item in result.estimates]
    reasons = dict.fromkeys(item.reason for item in result.estimates if item.reason)
    lines += [formatting.sentence(reason) for reason in reasons]
    lines += [ONE_JUDGES]
    lines += [
        f"{STATUS[item.status].word}: {item.message}"
        for item in result.checks
        if item.status is not Status.OK
    ]
    return formatting.clean("\n".join(lines)) + "\n"


def counted(result: RunsResult) -> str:
    """Return what was counted, in sentences."""
    data = result.data
    first, second = data["judged"]
    about = f"delta {formatting.given(data['delta'])}, {data['adjacency']}"
    judged = f"{first:,} runs with the canary and {second:,} without are judged, {about}."
    if data["threshold"] is None:
        return f"{judged} The thresholds are at ranks fixed in advance."
    chosen = "fixed in advance"
    if data["chosen_on"] is not None:
        chosen = "chosen on {:,} other runs with it and {:,} without".format(*data["chosen_on"])
    # Scores that are larger with the canary were negated when they were read, and so is the threshold.
    higher = bool(data.get("higher_is_member"))
    side = "least" if higher else "most"
    threshold = -data["threshold"] if higher else data["threshold"]
    return (
        f"{judged} {data['true_positives']:,} with it and {data['false_positives']:,} without have a score of at {side}"
        f" {formatting.number(threshold)}, a threshold {chosen}."
    )


def judged_as(result: RunsResult) -> list[str]:
    """Return in which form the claim was judged, where that is not how it was made."""
    stated = result.claims[0] if result.claims else None
    found = []
    for item in result.comparisons:
        changed = stated is not None and (item.claim.delta, item.claim.adjacency) != (
            stated.delta,
            stated.adjacency,
        )
        if stated is not None and changed and item.claim.value is not None:
            as_made, judged = (
                f"epsilon {formatting.given(claim.value)} at delta {formatting.given(claim.delta)} ({claim.adjacency})"
                for claim in (stated, item.claim)
            )
            found.append(f"Claimed: {as_made}; judged as {judged}, which it implies.")
    return found


def _value(estimate: Estimate) -> str:
    if estimate.value is None:
        return formatting.MISSING
    level = f"{formatting.percent(estimate.confidence, toward='down')} {_LEVELS[estimate.name]}"
    ceiling = formatting.number(estimate.details["ceiling"], toward="down")
    at_least = formatting.number(estimate.value, toward="down")
    found = f"at least {at_least}" if estimate.value else "no evidence"
    return f"{found} ({level}; ceiling {ceiling}), about {ABOUT[estimate.subject]}"
