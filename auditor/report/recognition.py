"""What was found, and what was promised, as counts of people or records: the form that readers understand best.

People grasp "61 out of 100" better than an epsilon (Nanayakkara et al. 2023, ODDS-TEXT). What is measured is told from
the certified lower limit at the finest false alarm rate that the records resolve, which their number alone decides.
"""

import math
from typing import Any

from auditor.choices import Adjacency
from auditor.compare import failed_validity
from auditor.errors import InputError
from auditor.report import formatting
from auditor.report.counts import at_least, out_of_many
from auditor.report.drawn import drawn, is_finite
from auditor.report.findings import finest, level
from auditor.report.lookup import CERTIFIED, amount, dig, find
from auditor.report.units import Units, units
from auditor.result import AuditResult
from auditor.theory.advantage import humphries
from auditor.theory.priors import precision_from_tpr
from auditor.theory.rates import tpr_metric
from auditor.theory.wording import belief_in_words, odds_in_words, out_of
from auditor.values import Claim, Estimate

__all__ = ["recognition"]

_ROUNDING = 1e-9
# What the attacker knows beforehand: a share of members among those looked at, and how it is said.
_PRIORS = (
    (0.5, "If half of the {words.many} that the attacker looks at are in the training data"),
    (0.01, "If only 1 in 100 of them is"),
)


def recognition(result: AuditResult) -> dict[str, Any]:
    """Return the sentences: of the measurement, of the certified bound, of the claim, and what they rest on."""
    words, found = units(result.data), finest(result)
    if failed_validity(result.checks):
        reason = "A check that the comparison rests on failed, so nothing measured can be put in odds."
        return {
            "measured": [],
            "bound": "",
            "reason": reason,
            "rests": "",
            "claim": _promised(result),
            "caption": "",
        }
    measured = _measured(*found, words) if found else []
    certified = drawn(find(result, CERTIFIED), result)
    bound = _bound_in_words(certified, words)
    rests = f"{_rests_on(found[1] if found else certified, words)}{_beside(result)}"
    return {
        "measured": measured,
        "bound": bound,
        "reason": "" if measured or bound else _why_none(result, words),
        "rests": rests if measured or bound else "",
        "claim": _promised(result),
        "caption": f"Each symbol stands for one of the {words.many}, counted at the certified limits.",
    }


# --- What was measured ----------------------------------------------------------------------------


def _measured(rate: float, row: Estimate, words: Units) -> list[str]:
    """Of so many members so many are recognised, and what an accusation is then worth."""
    low = row.lower
    if low is None or not 0 < rate < 1 or not 0 <= low <= 1:
        return []
    if low <= rate:
        none = (
            f"{level(row)} it is not shown that an attacker who goes by low losses and falsely accuses at most"
            f" {out_of(rate, toward='nearest')} {words.others} recognises more {words.members} than guessing would."
        )
        return [none]
    base, hits, alarms = out_of_many(rate, low)
    told = (
        f"{level(row)}: of {base:,} {words.members}, {'all' if hits >= base else f'at least {hits:,}'}"
        f" {'is' if hits == 1 else 'are'} recognised; of {base:,} {words.others}, at most {alarms:,}"
        f" {'is' if alarms == 1 else 'are'} falsely accused."
    )
    return [told, *(_accused(rate, low, prior, said.format(words=words)) for prior, said in _PRIORS)]


def _accused(rate: float, low: float, prior: float, said: str) -> str:
    """How often an accusation is right: by Bayes' rule, which keeps the limit and its confidence."""
    claim = Claim(tpr_metric(rate), low, None, Adjacency.REPLACE_ONE, "measured", proven=True)
    right = precision_from_tpr(claim, fpr=rate, prior=prior).value or 0.0
    return f"{said}, an accusation is right in at least {at_least(right)} cases."


def _bound_in_words(bound: Estimate | None, words: Units) -> str:
    """The two rates that the certified bound is the log-ratio of."""
    if bound is None or not bound.value or dig(bound.details, "approximate"):
        return ""
    upper = str(dig(bound.details, "tail")) == "upper"
    names = ("tnr_lower", "fnr_upper") if upper else ("tpr_lower", "fpr_upper")
    many, few = (amount(bound.details, name) for name in names)
    if many is None or few is None or not 0 < few < many <= 1:
        return ""
    more, less = (words.others, words.members) if upper else (words.members, words.others)
    side = "above" if upper else "below"
    base, hits, alarms = out_of_many(few, many)
    text = (
        f"The certified bound rests on one threshold. {level(bound)}, at least {hits:,} out of {base:,} {more} have a loss"
        f" {side} it, and at most {alarms:,} out of {base:,} {less} do."
    )
    return f"{text} What stands out is who was not in the training data." if upper else text


def _why_none(result: AuditResult, words: Units) -> str:
    bound = find(result, CERTIFIED)
    if bound is not None and bound.value is None and bound.reason:
        return formatting.sentence(bound.reason)
    return f"There are too few {words.others}, or too little was found, to put what was measured in odds."


def _rests_on(row: Estimate | None, words: Units) -> str:
    """What every sentence on the measurement is about, and what it assumes."""
    about = (
        "About this model, and an attacker who sees only its losses. Stronger attackers may do better, and some"
        f" {words.many} may be far more exposed than the average."
    )
    assumed = "; ".join(item.rstrip(".") for item in row.assumptions) if row else ""
    return f"{about} It assumes: {assumed}." if assumed else about


def _beside(result: AuditResult) -> str:
    """Why numbers of a census differ from these sentences."""
    if not any(is_finite(item) for item in result.estimates):
        return ""
    return (
        " Numbers that are marked as about this finite training set leave that chance out, and can be positive by chance"
        " alone."
    )


# --- What was promised ----------------------------------------------------------------------------


def _promised(result: AuditResult) -> list[str]:
    """What the claim as it was made means for a person who decides about taking part."""
    claim = next((item for item in result.claims if item.metric == "epsilon"), None)
    if claim is not None and not _is_promise(claim):
        claim = None
    gain = _exact_advantage(result)
    try:
        told = [odds_in_words(item) for item in (gain or claim,) if item is not None]
        return [*told, belief_in_words(claim)] if claim is not None and claim.delta == 0 else told
    except InputError:  # a claim that others wrote
        return []


def _is_promise(claim: Claim) -> bool:
    if claim.value is None or claim.delta is None:
        return False
    return 0 <= claim.value < math.inf and 0 <= claim.delta < 1


def _exact_advantage(result: AuditResult) -> Claim | None:
    """The advantage that the claimed training allows, where it says more than any one epsilon of the claim does.

    The odds of one epsilon and delta allow an observer more than the training does, of which they are one line.
    """
    gain = next((item for item in result.claims if item.metric == "advantage" and item.proven), None)
    if gain is None or gain.value is None or not 0 <= gain.value <= 1:
        return None
    alike = [item for item in result.claims if item.metric == "epsilon" and item.adjacency == gain.adjacency]
    implied = [humphries(item).value for item in alike if _is_promise(item)]
    return gain if all(value is None or gain.value < value - _ROUNDING for value in implied) else None
