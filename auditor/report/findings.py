"""What was found, in one sentence that a decision can rest on, and in two words.

Where every training record was scored the members count as draws here: the numbers of a finite training set are
positive without any leakage, so they show none.
"""

import math
from typing import Any, NamedTuple

from auditor.comparison.compare import interval_at
from auditor.core import numbers as core_numbers
from auditor.core.errors import InputError
from auditor.core.options import Adjacency
from auditor.core.registry import Role
from auditor.core.values import Claim, Comparison, Estimate, Status, Verdict
from auditor.results import rows
from auditor.results.document import AuditDocument, ceiling, detail, find, powerless
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
_LITTLE = 1.0  # a ceiling below which the check of the audit's power warns


def finding(result: AuditDocument) -> Statement:
    """Return what was found, in plain words.

    Which rate is quoted is fixed by the number of records (the smallest rate that they resolve), not by how large
    the finding is: quoting the most striking of several intervals would void its confidence.
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
    for maker in (_of_rate, _of_advantage, _of_bound, _of_auc, _of_one_run):
        found = maker(result, words)
        if found is not None:
            return found
    return _of_nothing(result, words)


def _level(estimate: Estimate) -> str:
    """Return the confidence of an estimate as the start of a sentence."""
    if not estimate.confidence:
        return "As a point estimate"
    return f"At {core_numbers.percent(estimate.confidence)} confidence"


def _of_rate(result: AuditDocument, words: rows.Units) -> Statement | None:
    found = rows.finest(result)
    if found is None:
        return None
    rate, row = found
    if row.lower is None or row.lower <= rate:
        return None
    hits = "every one" if row.lower >= 1 else f"at least {core_numbers.percent(row.lower, toward='down')}"
    return Statement(
        _LEAK,
        f"{_level(row)}, an attacker who accepts {core_numbers.odds(rate)} recognises {hits} of the {words.members};"
        f" guessing would recognise {core_numbers.percent(rate)}.",
    )


def _of_advantage(result: AuditDocument, words: rows.Units) -> Statement | None:
    row = rows.as_evidence(find(result, "advantage"), result)
    if row is None or not row.lower or row.lower <= 0:
        return None
    points = core_numbers.percent(row.lower, toward="down").rstrip("%")
    return Statement(
        _LEAK,
        f"{_level(row)}, an attacker can recognise {words.members} at least {points} percentage points more often"
        " than they raise false alarms; guessing gains nothing.",
    )


def _of_bound(result: AuditDocument, words: rows.Units) -> Statement | None:
    row = rows.as_evidence(with_role(Role.CERTIFIED, result), result)
    if row is None or not row.lower or row.lower <= 0 or row.details.get("approximate"):
        return None
    return Statement(
        _LEAK,
        f"{_level(row)}, the losses of this model tell {words.members} from others: the certified bound is epsilon"
        f" {core_numbers.number(row.lower, toward='down')}, where 0 would be no evidence.",
    )


def _of_auc(result: AuditDocument, words: rows.Units) -> Statement | None:
    row, half = rows.as_evidence(find(result, "auc"), result), 0.5
    if row is None:
        return None
    low, high = _at_half_the_error(row, result)
    if low is not None and low > half:
        share = core_numbers.percent(low, toward="down")
        return Statement(
            _LEAK,
            f"{_level(row)}, a random {words.member} has a lower loss than a random {words.other} at least {share} of the"
            " time; without any leakage it would be 50%.",
        )
    if high is not None and high < half:
        return Statement(
            _REVERSED,
            f"{_level(row)}, {words.members} have higher losses than {words.others}, the opposite of memorisation:"
            " check that the two groups were not swapped.",
        )
    return None


def _at_half_the_error(row: Estimate, result: AuditDocument) -> tuple[float | None, float | None]:
    """The interval at half its error: looked at only after others found nothing, it pays for the further look."""
    if row.value is None or row.confidence is None or not (0 <= row.value <= 1 and 0 < row.confidence < 1):
        return None, None
    return interval_at("auc", row, data=result.data, alpha=(1 - row.confidence) / 2) or (row.lower, row.upper)


def _of_one_run(result: AuditDocument, _words: rows.Units) -> Statement | None:
    row = rows.as_evidence(with_role(Role.JUDGE, result), result)
    if row is None or not row.lower or row.lower <= 0:
        return None
    bound = core_numbers.number(row.lower, toward="down")
    return Statement(_LEAK, f"{_level(row)}, the training algorithm's epsilon is at least {bound}.")


def _of_nothing(result: AuditDocument, words: rows.Units) -> Statement:
    found = with_role(Role.CERTIFIED, result)
    row = rows.as_evidence(found, result) or found
    if row is None or row.lower is None:
        reason = (row.reason if row else None) or f"no bound could be computed from these {words.many}"
        return Statement(_NO_BOUND, f"This audit has no bound to report. {core_numbers.sentence(reason)}")
    top, none = (
        ceiling(row),
        f"No evidence of leakage found; this is not proof of privacy.{_by_chance(result)}",
    )
    if top is not None and 0 < top < _LITTLE:
        most = core_numbers.number(top, toward="down")
        reach = f"With so few {words.many} the audit could not have certified an epsilon above {most}, however much leaks."
        return Statement(_SMALL, f"{none} {reach}")
    if powerless(row):
        return Statement(_SMALL, f"{none} There are too few {words.many} to certify anything.")
    if top is None:
        return Statement(_NONE, none)
    most = core_numbers.number(top, toward="down")
    reach = f"With this many {words.many} the audit could have certified an epsilon of up to {most}."
    return Statement(_NONE, f"{none} {reach}")


def _by_chance(result: AuditDocument) -> str:
    """What to know of numbers above zero that stand beside this finding."""
    if not any(rows.is_finite(item) for item in result.estimates):
        return ""
    return " Numbers that describe this finite training set can be positive by chance alone."


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
    """Return the sentences: of the measurement, of the certified bound, of the claim, and what they rest on."""
    words, found = rows.units(result.data), rows.finest(result)
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
    certified = rows.as_evidence(with_role(Role.CERTIFIED, result), result)
    bound = _bound_in_words(certified, words)
    rests = f"{_rests_on(found[1] if found else certified, words)}{_of_finite_sets(result)}"
    return {
        "measured": measured,
        "bound": bound,
        "reason": "" if measured or bound else _why_none(result, words),
        "rests": rests if measured or bound else "",
        "claim": _promised(result),
        "caption": f"Each symbol stands for one of the {words.many}, counted at the certified limits.",
    }


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


def _bound_in_words(bound: Estimate | None, words: rows.Units) -> str:
    """The two rates that the certified bound is the log-ratio of."""
    if bound is None or not bound.value or detail(bound, "approximate"):
        return ""
    upper = str(detail(bound, "tail")) == "upper"
    names = ("tnr_lower", "fnr_upper") if upper else ("tpr_lower", "fpr_upper")
    many, few = (detail(bound, name) for name in names)
    if many is None or few is None or not 0 < few < many <= 1:
        return ""
    more, less = (words.others, words.members) if upper else (words.members, words.others)
    side = "above" if upper else "below"
    base, hits, alarms = rows.out_of_many(few, many)
    text = (
        f"The certified bound rests on one threshold. {_level(bound)}, at least {hits:,} out of {base:,} {more} have a loss"
        f" {side} it, and at most {alarms:,} out of {base:,} {less} do."
    )
    return f"{text} What stands out is who was not in the training data." if upper else text


def _why_none(result: AuditDocument, words: rows.Units) -> str:
    bound = with_role(Role.CERTIFIED, result)
    if bound is not None and bound.value is None and bound.reason:
        return core_numbers.sentence(bound.reason)
    return f"There are too few {words.others}, or too little was found, to put what was measured in odds."


def _rests_on(row: Estimate | None, words: rows.Units) -> str:
    """What every sentence on the measurement is about, and what it assumes."""
    about = (
        "About this model, and an attacker who sees only its losses. Stronger attackers may do better, and some"
        f" {words.many} may be far more exposed than the average."
    )
    assumed = "; ".join(item.rstrip(".") for item in row.assumptions) if row else ""
    return f"{about} It assumes: {assumed}." if assumed else about


def _of_finite_sets(result: AuditDocument) -> str:
    """Why numbers of a census differ from these sentences."""
    if not any(rows.is_finite(item) for item in result.estimates):
        return ""
    return (
        " Numbers that are marked as about this finite training set leave that chance out, and can be positive by chance"
        " alone."
    )


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
    """Return one sentence, or two, on what the audit says about the claim."""
    judged = _judged(result)
    if result.verdict is None:
        if not result.claims and not result.comparisons:
            return "No claim was given, so there is nothing to refute."
        return "The claim was not judged: no measurement here is about the training algorithm."
    if result.verdict is Verdict.NOT_EVALUABLE:
        reason = judged.reason if judged else _one_run_reason(result)
        return f"The claim cannot be judged from this audit. {core_numbers.sentence(reason)}".strip()
    estimate = find(result, judged.estimate) if judged else None
    numbers = _numbers(judged, estimate)
    top = ceiling(estimate)
    if judged is None or estimate is None or numbers is None or _by_curve(result.verdict, numbers, top):
        reason = core_numbers.sentence(judged.reason) if judged else ""
        return f"{_PLAIN[result.verdict]} {reason}".strip()
    if result.verdict is Verdict.INCONCLUSIVE and top is not None and top > numbers[0] and judged.reason:
        return f"The audit is inconclusive. {core_numbers.sentence(judged.reason)}"  # it had room, and yet no power
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


def _judged(result: AuditDocument) -> Comparison | None:
    if result.verdict is None:
        return None
    return next((item for item in result.comparisons if item.verdict is result.verdict), None)


def _one_run_reason(result: AuditDocument) -> str:
    estimate = with_role(Role.JUDGE, result)
    return (estimate.reason if estimate else None) or "No measurement here is about the training algorithm."


def _numbers(judged: Comparison | None, estimate: Estimate | None) -> tuple[float, float] | None:
    if judged is None or estimate is None or judged.claim.metric != "epsilon":
        return None
    if judged.claim.value is None or estimate.lower is None:
        return None
    return judged.claim.value, estimate.lower


def _terms(result: AuditDocument, judged: Comparison, numbers: tuple[float, float]) -> str:
    """The claimed epsilon in the form in which it was judged, and where that form is not how it was stated, how it was."""
    terms = _stated(judged.claim, core_numbers.apart(*numbers)[0])
    stated = result.claims[0] if result.claims else judged.claim
    if stated == judged.claim or stated.value is None:
        return f"the claimed {terms}"
    return f"the {terms} that the claim of {_stated(stated, core_numbers.given(stated.value))} implies"


def _stated(claim: Claim, epsilon: str) -> str:
    at = "" if claim.delta is None else f" at delta {core_numbers.given(claim.delta)}"
    return f"epsilon {epsilon}{at} ({claim.adjacency})"


def _worded(verdict: Verdict, estimate: Estimate, numbers: tuple[float, float], terms: str) -> str:
    _, bound = core_numbers.apart(*numbers)
    top = ceiling(estimate)
    most = core_numbers.number(top, toward="down")
    if verdict is Verdict.REFUTED:
        level = (
            ""
            if estimate.confidence is None
            else f"at {core_numbers.percent(estimate.confidence)} confidence "
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
        why = f"Epsilon* has no value ({core_numbers.tidy(reason).rstrip('.')})"
        return Headline(bound, f"{why}, so the certified bound leads.")
    if detail(star, "fit", "rejected") is True:
        why = f"The Gaussian fit is rejected by its test{_gap(star)}"
        return Headline(bound, f"{why}, so the certified bound leads; it needs no fit.")
    blunted = _blunted(result)
    if blunted:
        return Headline(bound, f"{blunted} The certified bound leads; it needs no fit.")
    noise = rows.within_noise(star)
    if noise is not None or detail(star, "lower_reason") is not None:
        why = noise or "Epsilon* has no interval here."
        return Headline(bound, f"{why} The certified bound leads; it allows for chance.")
    return Headline(star, " ".join(["An estimate that trusts the Gaussian fit.", *rows.star_notes(star)]))


def _gap(star: Estimate) -> str:
    """How far the fitted curve lies from the measured one, in nats, where there are records to compare with."""
    gap = detail(star, "curve_gap")
    if not gap:
        return ""
    side = "above" if gap > 0 else "below"
    return (
        f" (where there are records to compare with, its curve lies up to {core_numbers.number(abs(gap))} nats {side} the"
        " measured one; Epsilon* is read further out)"
    )


def _blunted(result: AuditDocument) -> str | None:
    """Why no curve fitted to these losses can lead: the model's confidences were rounded, masked or cut off."""
    for check in result.checks:
        if check.name in ("ties", "saturation") and check.status is Status.WARN:
            return "Many losses share one value, as after rounded or masked outputs, and a fitted curve then misleads."
    return None
