"""What was found, in one sentence that a decision can rest on, and in two words.

Where every training record was scored the members count as draws here: the numbers of a finite training set are
positive without any leakage, so they show none.
"""

import math
from typing import Any, NamedTuple

from auditor.core import numbers
from auditor.core.errors import InputError
from auditor.core.options import Adjacency
from auditor.core.registry import Role
from auditor.core.values import Claim, Estimate, Status
from auditor.results import rows
from auditor.results.document import AuditDocument, Document, band_point, ceiling, detail, find, powerless
from auditor.results.metrics import Sign, with_role
from auditor.theory.attackers import humphries, precision_from_tpr, tpr_metric
from auditor.theory.promises import belief_in_words, odds_in_words, out_of
from auditor.verdicts.judging import failed_validity


class Statement(NamedTuple):
    """What was found, or what became of a claim: as a sign of two or three words, and as a sentence."""

    sign: Sign
    sentence: str


_LEAK = Sign("Leakage found", "!", "caution")
_NONE = Sign("No evidence of leakage", "–", "plain")  # noqa: RUF001 a dash is meant
_SMALL = Sign("Too few to tell", "?", "caution")
_INVALID = Sign("Not a valid comparison", "✕", "bad")
_REVERSED = Sign("The wrong way round", "!", "caution")
_NO_BOUND = Sign("No bound", "?", "caution")
_HALF = 0.5
_LITTLE = 1.0  # a ceiling below which the check of the audit's power warns


def finding(result: AuditDocument) -> Statement:
    """Return what was found, in plain words.

    Which rate is quoted is fixed by the number of records (the smallest rate that they resolve), not by how large
    the finding is: quoting the most striking of several intervals would void its confidence. All that is looked at
    shares the error (`auditor.pipeline.shown_together`): that anything is found at all is not owed to looking often.
    """
    failed = failed_validity(result.checks)
    if failed:
        names = ", ".join(dict.fromkeys(check.name.replace("_", " ") for check in failed))
        return Statement(
            _INVALID,
            f"The two groups cannot be compared as they are (failed check: {names}), so the numbers below do not measure"
            " what the model gives away about its training records.",
        )
    words = rows.units(result.data)
    for sign, look in _LOOKS:
        if sentence := look(result, words):
            return Statement(sign, sentence)
    return _of_nothing(result, words)


def _level(estimate: Estimate) -> str:
    """Return the confidence of an estimate as the start of a sentence."""
    if not estimate.confidence:
        return "As a point estimate"
    return f"At {numbers.percent(estimate.confidence)} confidence"


def _above_zero(estimate: Estimate | None, result: AuditDocument) -> tuple[Estimate, float] | None:
    """The estimate as evidence, with its lower end, where that is above 0 with all that was looked at."""
    row = rows.as_evidence(estimate, result)
    if row is None or not row.lower or row.lower <= 0 or not _is_shown(row.name, result):
        return None
    return row, row.lower


def _is_shown(name: str, result: AuditDocument) -> bool:
    """Whether this holds together with all others that a headline looks at; each by itself in a result of old."""
    together = result.data.get("shown")
    return together is None or name in together["names"]


def _of_rate(result: AuditDocument, words: rows.Units) -> str:
    found = rows.finest(result)
    if found is None or found[1].lower is None or found[1].lower <= found[0]:
        return ""
    if not _is_shown(found[1].name, result):
        return ""
    rate, row = found
    low = row.lower or 0.0
    hits = "every one" if low >= 1 else f"at least {numbers.percent(low, toward='down')}"
    return (
        f"{_level(row)}, an attacker who accepts {numbers.odds(rate)} recognises {hits} of the {words.members};"
        f" guessing would recognise {numbers.percent(rate)}."
    )


def _of_advantage(result: AuditDocument, words: rows.Units) -> str:
    found = _above_zero(find(result, "advantage"), result)
    if found is None:
        return ""
    points = numbers.percent(found[1], toward="down").rstrip("%")
    return (
        f"{_level(found[0])}, an attacker can recognise {words.members} at least {points} percentage points more often"
        " than they raise false alarms; guessing gains nothing."
    )


def _of_bound(result: AuditDocument, words: rows.Units) -> str:
    found = _above_zero(with_role(Role.CERTIFIED, result), result)
    if found is None or detail(found[0], "approximate"):
        return ""
    return (
        f"{_level(found[0])}, the losses of this model tell {words.members} from others: the certified bound is epsilon"
        f" {numbers.number(found[1], toward='down')}, where 0 would be no evidence."
    )


def _of_auc(result: AuditDocument, words: rows.Units) -> str:
    row = rows.as_evidence(find(result, "auc"), result)
    if row is None or row.lower is None or not _HALF < row.lower <= 1 or not _is_shown("auc", result):
        return ""
    return (
        f"{_level(row)}, a random {words.member} has a lower loss than a random {words.other} at least"
        f" {numbers.percent(row.lower, toward='down')} of the time; without any leakage it would be 50%."
    )


def _of_swapped_groups(result: AuditDocument, words: rows.Units) -> str:
    row = rows.as_evidence(find(result, "auc"), result)
    behind = (result.data.get("shown") or {}).get("reversed", 0.0)
    by_ranks = row is not None and row.upper is not None and 0 <= row.upper < _HALF
    if row is None or not (behind > 0 or (by_ranks and _is_shown("auc.upper", result))):
        return ""
    gain = f" (certified: an advantage of at least {numbers.percent(behind, toward='down')} for whoever goes by high losses)"
    return (
        f"{_level(row)}, {words.members} have higher losses than {words.others}{gain if behind > 0 else ''}, the opposite"
        " of memorisation: check that the two groups were not swapped."
    )


def _of_one_run(result: AuditDocument, _words: rows.Units) -> str:
    found = _above_zero(with_role(Role.JUDGE, result), result)
    if found is None:
        return ""
    bound = numbers.number(found[1], toward="down")
    return f"{_level(found[0])}, the training algorithm's epsilon is at least {bound}."


# The first that finds something is told.
_LOOKS = (
    *((_LEAK, look) for look in (_of_rate, _of_advantage, _of_bound, _of_auc)),
    (_REVERSED, _of_swapped_groups),
    (_LEAK, _of_one_run),
)


def _of_nothing(result: AuditDocument, words: rows.Units) -> Statement:
    found = with_role(Role.CERTIFIED, result)
    row = rows.as_evidence(found, result) or found
    if row is None or row.lower is None:
        reason = (row.reason if row else None) or f"no bound could be computed from these {words.many}"
        return Statement(_NO_BOUND, f"This audit has no bound to report. {numbers.sentence(reason)}")
    none = "No evidence of leakage found; this is not proof of privacy."
    if _is_finite(result):
        none += " Numbers that describe this finite training set can be positive by chance alone."
    top = ceiling(row)
    if top is None:
        return Statement(_NONE, none)
    most = numbers.number(top, toward="down")
    if powerless(row):
        return Statement(_SMALL, f"{none} There are too few {words.many} to certify anything.")
    if top < _LITTLE:
        reach = f"With so few {words.many} the audit could not have certified an epsilon above {most}, however much leaks."
        return Statement(_SMALL, f"{none} {reach}")
    reach = f"With this many {words.many} the audit could have certified an epsilon of up to {most}."
    return Statement(_NONE, f"{none} {reach}")


def _is_finite(result: AuditDocument) -> bool:
    """Whether numbers above zero stand beside the finding that chance alone can make."""
    return any(rows.is_finite(item) for item in result.estimates)


# --- What was found, and what was promised, as counts of people or records: the form that readers understand best ---
#
# People grasp "61 out of 100" better than an epsilon (Nanayakkara et al. 2023, ODDS-TEXT). What is measured is told from
# the certified lower limit at the finest false alarm rate that the records resolve, which their number alone decides.


_ROUNDING = 1e-9
# What the attacker knows beforehand: a share of members among those looked at, and how it is said.
_PRIORS = (
    (0.5, "If half of the {words.many} that the attacker looks at are in the training data"),
    (0.01, "If only 1 in 100 of them is"),
)


def recognition(result: AuditDocument) -> dict[str, Any]:
    """Return the sentences: of the measurement and of the certified bound, of the claim, and what they rest on."""
    words, found = rows.units(result.data), rows.finest(result)
    certified = rows.as_evidence(with_role(Role.CERTIFIED, result), result)
    measured = [*(_measured(*found, words) if found else ()), *_bound_in_words(certified, words, result)]
    row, reason = found[1] if found else certified, ""
    if failed_validity(result.checks):
        measured = []
        reason = "A check that the comparison rests on failed, so nothing measured can be put in odds."
    elif not measured:
        reason = f"There are too few {words.others}, or too little was found, to put it in odds."
    rests = _rests_on(row, words, result) if row is not None and measured else ""
    return {"measured": measured, "reason": reason, "rests": rests, "claim": _promised(result)}


# --- What was measured ----------------------------------------------------------------------------


def _measured(rate: float, row: Estimate, words: rows.Units) -> list[str]:
    """Of so many members so many are recognised, and what an accusation is then worth."""
    low = row.lower
    if low is None or not 0 < rate < 1 or not 0 <= low <= 1:
        return []
    if low <= rate:
        none = (
            f"{_level(row)} it is not shown that an attacker who goes by low losses and falsely accuses at most"
            f" {out_of(rate, toward='nearest')} {words.others} recognises more {words.members} than guessing would."
        )
        return [none]
    base, hits, alarms = rows.out_of_many(rate, low)
    told = (
        f"{_level(row)}: of {base:,} {words.members}, {'all' if hits >= base else f'at least {hits:,}'}"
        f" {'is' if hits == 1 else 'are'} recognised; of {base:,} {words.others}, at most {alarms:,}"
        f" {'is' if alarms == 1 else 'are'} falsely accused."
    )
    return [told, *(_accused(rate, low, prior, said.format(words=words)) for prior, said in _PRIORS)]


def _accused(rate: float, low: float, prior: float, said: str) -> str:
    """How often an accusation is right: by Bayes' rule, which keeps the limit and its confidence."""
    claim = Claim(tpr_metric(rate), low, None, Adjacency.REPLACE_ONE, "measured", proven=True)
    right = precision_from_tpr(claim, fpr=rate, prior=prior).value or 0.0
    return f"{said}, an accusation is right in at least {rows.at_least(right)} cases."


def _bound_in_words(bound: Estimate | None, words: rows.Units, result: AuditDocument) -> list[str]:
    """The two rates that the certified bound is the log-ratio of, or that say most of all that hold together."""
    if bound is None or not bound.value or detail(bound, "approximate"):
        return []
    upper = str(detail(bound, "tail")) == "upper"
    names = ("tnr_lower", "fnr_upper") if upper else ("tpr_lower", "fpr_upper")
    many, few = (detail(bound, name) for name in names)
    start, where = "The certified bound rests on one threshold", "it"
    if detail(bound, "interval") == "Calibrated":
        few, many = band_point(result, high=upper) or (None, None)
        start, where = "Limits that hold at every threshold at once say most at one of them", "that one"
    if few is None or many is None or not 0 < few < many <= 1:
        return []
    more, less = (words.others, words.members) if upper else (words.members, words.others)
    base, hits, alarms = rows.out_of_many(few, many)
    tail = " What stands out is who was not in the training data." if upper else ""
    text = (
        f"{start}. {_level(bound)}, at least {hits:,} out of {base:,} {more} have a loss"
        f" {'above' if upper else 'below'} {where}, and at most {alarms:,} out of {base:,} {less} do.{tail}"
    )
    return [text]


def _rests_on(row: Estimate, words: rows.Units, result: AuditDocument) -> str:
    """What every sentence on the measurement is about, what it assumes, and why numbers of a census differ from it."""
    about = (
        "About this model, and an attacker who sees only its losses. Stronger attackers may do better, and some"
        f" {words.many} may be far more exposed than the average."
    )
    assumed = "; ".join(item.rstrip(".") for item in row.assumptions)
    finite = (
        "Numbers that are marked as about this finite training set leave that chance out, and can be positive by chance"
        " alone."
    )
    parts = (about, f"It assumes: {assumed}." if assumed else "", finite if _is_finite(result) else "")
    return " ".join(part for part in parts if part)


# --- What was promised ----------------------------------------------------------------------------


def _promised(result: AuditDocument) -> list[str]:
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


def _exact_advantage(result: AuditDocument) -> Claim | None:
    """The advantage that the claimed training allows, where it says more than any one epsilon of the claim does.

    The odds of one epsilon and delta allow an observer more than the training does, of which they are one line.
    """
    gain = next((item for item in result.claims if item.metric == "advantage" and item.proven), None)
    if gain is None or gain.value is None or not 0 <= gain.value <= 1:
        return None
    alike = [item for item in result.claims if item.metric == "epsilon" and item.adjacency == gain.adjacency]
    implied = [humphries(item).value for item in alike if _is_promise(item)]
    return gain if all(value is None or gain.value < value - _ROUNDING for value in implied) else None


# --- The sentences of a report: the verdict, what it means, and which number leads ---


class Headline(NamedTuple):
    """The number that leads a report, and the sentence that goes with it."""

    estimate: Estimate | None
    sentence: str


def verdict_sentence(result: AuditDocument) -> str:
    """Return why the claim met its verdict, and in which form it was judged where that is not how it was made."""
    if result.verdict is None:
        if not result.claims and not result.comparisons:
            return "No claim was given, so there is nothing to refute."
        return "The claim was not judged: no measurement here is about the training algorithm."
    reasons = [item.reason for item in result.comparisons if item.verdict is result.verdict]
    told = [*map(numbers.sentence, reasons[:1]), *judged_as(result), *evidence_in_words(result)]
    return " ".join(told)


def judged_as(result: Document) -> list[str]:
    """Return in which form the claim was judged, where that is not how it was made."""
    found = []
    for item in result.comparisons:
        forms = [(claim.delta, claim.adjacency) for claim in (*result.claims[:1], item.claim)]
        if item.verdict is not None and len(set(forms)) > 1 and item.claim.value is not None:
            as_made, judged = map(rows.claim_words, (result.claims[0], item.claim))
            found.append(f"Claimed: {as_made}; judged as {judged}, which it implies.")
    return found


def evidence_in_words(result: Document) -> list[str]:
    """Return how much evidence there is against the claim, and how many looks share the error."""
    found = []
    for item in result.comparisons:
        if item.p_value is not None:
            p_value = numbers.number(item.p_value, toward="up")
            e_value = (
                "" if item.e_value is None else f", its e-value {numbers.number(item.e_value, toward='down')}"
            )
            found.append(f"The claim's p-value is at most {p_value}{e_value}.")
    looks = result.data.get("looks", 1)
    if looks > 1:
        level = result.data["confidence"]
        together = numbers.percent(1 - looks * (1 - level))
        found.append(
            f"This is one of {looks:,} declared looks: each holds at {numbers.percent(level, toward='down')}, so that all"
            f" of them together hold at {together}."
        )
    return found


def headline(result: AuditDocument) -> Headline:
    """Return the leading number: Epsilon*, or another where the Gaussian fit cannot be relied on.

    That is the certified bound, which needs no fit; never a mixture, whose value has no known error.
    """
    lead = _lead(result)
    bound = with_role(Role.CERTIFIED, result)
    if bound is not None and detail(bound, "approximate"):  # asked for, and no certificate
        return lead._replace(sentence=lead.sentence.replace("certified bound", "approximate bound"))
    return lead


def _lead(result: AuditDocument) -> Headline:
    star, bound = with_role(Role.PUBLISHED, result), with_role(Role.CERTIFIED, result)
    if failed_validity(result.checks):
        return Headline(bound, "A validity check failed, so no number here measures leakage.")
    if star is None or star.value is None:
        reason = (star.reason if star else None) or "it was not computed"
        why = f"Epsilon* has no value ({numbers.tidy(reason).rstrip('.')})"
        return Headline(bound, f"{why}, so the certified bound leads.")
    if detail(star, "fit", "rejected") is True:
        why = "The Gaussian fit is rejected by its test, so the certified bound leads; it needs no fit."
        return Headline(bound, f"{why} {rows.gap_words(star)}".strip())
    blunted = _blunted(result)
    if blunted:
        return Headline(bound, f"{blunted} The certified bound leads; it needs no fit.")
    noise = rows.within_noise(star)
    if noise is not None or detail(star, "lower_reason") is not None:
        why = noise or "Epsilon* has no interval here."
        return Headline(bound, f"{why} The certified bound leads; it allows for chance.")
    return Headline(star, " ".join(["An estimate that trusts the Gaussian fit.", *rows.star_notes(star)]))


def _blunted(result: AuditDocument) -> str | None:
    """Why no curve fitted to these losses can lead: the model's confidences were rounded, masked or cut off."""
    for check in result.checks:
        if check.name in ("ties", "saturation") and check.status is Status.WARN:
            return "Many losses share one value, as after rounded or masked outputs, and a fitted curve then misleads."
    return None
