"""Checks of the losses and of the estimates; each examines one reason not to rely on its numbers."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from auditor.checks.answers import answer, said
from auditor.core.numbers import LEAST_SHOWN, about, apart, as_stated, number, percent, sentence
from auditor.core.options import EachRecord
from auditor.core.values import (
    SIGN_AND_EXPONENT,
    Check,
    Claim,
    Estimate,
    FittedPair,
    Floats,
    Losses,
    Merged,
    PerGroup,
    Status,
    weighted,
)
from auditor.curves.tradeoff import distinct
from auditor.records.labels import PersonsFound

# --- direction ---


def direction(auc: Estimate) -> Check:
    """Warn when members clearly have the higher losses, as they do when the two files are swapped."""
    details = {"auc": auc.value, "auc_upper": auc.upper}
    swapped = auc.upper is not None and auc.upper < 0.5  # noqa: PLR2004 - chance
    return answer("direction", "warn" if swapped else "ok", details)


# --- ties ---


_MANY = 0.01
# Fewer distinct losses than this share of the records outside the largest piles are rounded ones.
_MOSTLY = 0.5
_LABELS = 2


def ties(losses: Losses) -> Check:
    """Warn when losses repeat: more than 1% of a group share one, or there are far fewer different ones than records.

    The sentence names the cause that masked the model's confidence: labels only, rounding, or an end of the scale where outputs
    were cut off (probabilities of 0 and 1, or an answer without the probabilities of the others).
    """
    if losses.bits is not None:
        return answer("ties", "unknown")
    groups = (losses.sorted_member, losses.sorted_nonmember)
    runs = [_longest_run(group) for group in groups]
    shares = [length / group.size for (length, _), group in zip(runs, groups, strict=True)]
    piled = [length > 1 and share > _MANY for (length, _), share in zip(runs, shares, strict=True)]
    pooled = np.sort(np.concatenate(groups), kind="stable")  # a merge, since both are sorted
    distinct = 1 + int((pooled[1:] != pooled[:-1]).sum())
    few = [_few(length, group.size) for (length, _), group in zip(runs, groups, strict=True)]
    details = {
        # The loss of a few records stays out of the result; a value that many share is no record's own.
        "member_share": shares[0] if few[0] is None else None,
        "nonmember_share": shares[1] if few[1] is None else None,
        "member_value": runs[0][1] if piled[0] and runs[0][0] >= LEAST_SHOWN else None,
        "nonmember_value": runs[1][1] if piled[1] and runs[1][0] >= LEAST_SHOWN else None,
        "distinct": distinct,
        "all_equal": distinct == 1,
    }
    if distinct == 1:
        return answer("ties", "warn/all equal", details)
    rounded = distinct < _MOSTLY * (pooled.size - sum(length for length, _ in runs))
    if not any(piled) and not rounded:
        return answer("ties", "ok", details)
    # Where the piles differ, the larger one is named.
    value = runs[int(np.argmax(shares))][1]
    masked = "end of scale" if value in (pooled[0], pooled[-1]) else "one value"
    if distinct <= _LABELS or rounded:
        masked = "labels" if distinct <= _LABELS else "rounding"
    cause = said("ties", masked, distinct=distinct, records=pooled.size)
    texts = [percent(share) if words is None else words for words, share in zip(few, shares, strict=True)]
    words = {"cause": cause, "members": texts[0], "others": texts[1]}
    return answer("ties", "warn", details | {"masked": masked}, **words)


def _few(length: int, size: int) -> str | None:
    """Return the number of records that share a loss, in words, if they or the others are few; otherwise None."""
    if length < LEAST_SHOWN:
        return about(length if length > 1 else 0)
    return f"all but {about(size - length)}" if 0 < size - length < LEAST_SHOWN else None


def _longest_run(ordered: Floats) -> tuple[int, float]:
    """Return the count of the most frequent value, and the value."""
    values, edges = distinct(ordered)
    lengths = np.diff(edges)
    at = int(np.argmax(lengths))
    return int(lengths[at]), float(values[at])


# --- bins ---


def bins(losses: Losses) -> Check | None:
    """Warn of bins of a summary that hold one record, whose loss is then nearly known; None if losses are known.

    Binning loses most where losses are all far from 0 beside their spread, since a bin is as wide as a share of its value.
    """
    if losses.bits is None:
        return None
    groups = [weighted(group) for group in (losses.member, losses.nonmember)]
    held = np.unique(np.concatenate([values for values, _ in groups])).size
    alone = sum(int(np.count_nonzero(counts == 1)) for _, counts in groups)
    merged = isinstance(losses.member, Merged)
    details = {"bits": losses.bits, "bins": held, "records_alone": alone, "merged": merged}
    width = f"each up to 1/{2 ** (losses.bits - SIGN_AND_EXPONENT):,} of its value wide"
    width = "neighbours merged" if merged else width
    message = said("bins", "counted", bins=held, bits=losses.bits, width=width)
    if alone:
        message += f" {said('bins', 'alone', records=about(alone).capitalize())}"
    return Check("bins", Status.WARN if alone else Status.OK, message, details)


# --- saturation ---


def saturation(losses: Losses) -> Check:
    """Warn when losses came from probabilities of exactly 0 or 1, which hide how sure the model was."""
    member, nonmember = losses.saturated
    details = {"saturated": [member, nonmember]}
    words = {"members": about(member).capitalize(), "others": about(nonmember)}
    return answer("saturation", "warn" if member or nonmember else "ok", details, **words)


# --- masking ---


_SURE = 2.33  # standard errors, 99% on one side
# Where members' losses are lower throughout, and normal, the AUC lies above 1/2 by 1.4 times as much as that of right and
# wrong answers, or more: by phi(0)/sqrt(2) over phi(z)/2, z where losses turn wrong.
_UNMASKED = 1.25


def masking(losses: Losses) -> Check | None:
    """Check whether the confidence was masked: accuracy differs between the groups and the losses hardly separate them more.

    The gap in accuracy alone gives an AUC of 1/2 + gap/2. The question needs a gap, and an AUC whose distance from 1/2 is
    below 1.25 times this one's, both at 99%, by the variance of the placements (DeLong et al. 1988). None where it is
    not known which records are classified correctly.

    >>> right = ([1] * 190 + [0] * 10, [1] * 110 + [0] * 90)
    >>> labels_alone = Losses(*(1.0 - np.array(column) for column in right), correct=right)
    >>> masking(labels_alone).message[:75]
    'Right and wrong answers alone give an AUC of 0.7, and the losses 0.7, hardl'
    """
    if losses.correct is None:
        return None
    both = (losses.member, losses.sorted_nonmember), (losses.nonmember, losses.sorted_member)
    below = [  # the share of the other group below each record, ties counting half
        (np.searchsorted(other, own) + np.searchsorted(other, own, side="right")) / (2 * other.size)
        for own, other in both
    ]
    right = [np.asarray(column, dtype=np.float64) for column in losses.correct]
    first, second, area = float(right[0].mean()), float(right[1].mean()), float(below[1].mean())
    weight = _UNMASKED / 2
    spread, error = (
        math.sqrt(sum(np.var(values) / values.size for values in sides))
        for sides in (right, [at + weight * c for at, c in zip(below, right, strict=True)])
    )
    gap = first - second
    alone = 0.5 + gap / 2
    details = {"accuracy": [first, second], "accuracy_baseline": alone, "auc": area}
    words = {"alone": number(round(alone, 6)), "auc": number(round(area, 6))}
    hardly_more = gap > _SURE * spread and area - 0.5 + _SURE * error < weight * gap
    return answer("masking", "unknown" if hardly_more else "ok", details, **words)


# --- collection ---


def collection(notes: Sequence[str]) -> Check | None:
    """Report the warnings of the collection of the losses; None if there are none.

    >>> check = collection(["the outputs are rounded"])
    >>> check.message[:79]
    'Noticed when the losses were collected: The outputs are rounded. This can hide '
    """
    if not notes:
        return None
    return answer("collection", "warn", {"notes": list(notes)}, notes=" ".join(map(sentence, notes)))


# --- people ---


_LEVEL = 1e-3


def persons(units: PersonsFound, *, most: int = 10) -> Check | None:
    """State the units of the audit; None if records do not name their person.

    Fails where combined scores differ without any leak because people have more records in one group (a smallest
    loss of eight is lower than a smallest loss of two). Warns where records of one person are counted as independent,
    and where people have records in both groups, or were left out for it.

    Args:
        units: Units of the audit.
        most: Largest number of left-out people to name.
    """
    if not units.named:
        return None
    details: dict[str, Any] = {
        "records": list(units.records),
        "persons": list(units.persons),
        "effective": list(units.effective),
        "largest": units.largest,
        "in_both": units.in_both,
        "unlabelled": list(units.unlabelled),
        "sizes_p_value": units.sizes_p_value,
        "combined": units.combined,
    }
    if units.left_out:
        details |= {"left_out": len(units.left_out), "left_out_persons": list(units.left_out[:most])}
    records, blank = sum(units.records), sum(units.unlabelled)
    people = sum(units.persons) - units.in_both
    if blank == records:
        return answer("persons", "unknown/empty", details)
    if units.combined and units.sizes_p_value < _LEVEL:
        means = [count / people for count, people in zip(units.records, units.persons, strict=True)]
        return answer("persons", "fail", details, members=means[0], others=means[1])
    if units.largest > 1 and isinstance(units.choice, EachRecord):
        worth = [f"{int(number):,}" for number in units.effective]
        sizes = {"records": records, "persons": people, "sizes": units.records}
        return answer("persons", "warn/independent", details, worth=worth, **sizes)
    several = about(people) if units.in_both else f"{people:,}"
    parts = [said("persons", "counted", records=records, persons=several)]
    if blank:
        parts.append(said("persons", "blank", records=about(blank).capitalize()))
    if units.left_out:
        parts.append(said("persons", "left_out", persons=about(len(units.left_out)).capitalize()))
    if units.in_both:
        parts.append(said("persons", "in_both", persons=about(units.in_both).capitalize()))
    status = Status.WARN if units.in_both or units.left_out else Status.UNKNOWN if blank else Status.OK
    return Check("persons", status, " ".join(parts), details)


# --- power ---


_SMALL = 1.0
# An AUC of 0.64, which attacks reach on models that plainly memorise: an audit that misses it says little.
TOO_LARGE = 0.5
_OFTEN = 0.8


def smallest_mu(sizes: tuple[int, int], *, alpha: float) -> float:
    """Return from which mu on the AUC of normal losses, ``mu`` standard deviations apart, is found in 80% of audits.

    The AUC is found where it is above a half by a test at this error, or its interval lies above a half. Its standard errors
    are those of two groups that are alike, and hardly larger than those of groups that are not. With mu the AUC is Phi(mu / sqrt(2)).

    Args:
        sizes: Numbers of members and of non-members.
        alpha: Two-sided error, in (0, 1).

    >>> round(smallest_mu((1000, 1000), alpha=0.03), 3)
    0.138
    """
    from scipy import special

    from auditor.estimators.rates import least_shown

    least, error = least_shown(sizes, alpha=alpha)
    area = least + error * float(special.ndtri(_OFTEN))
    return math.sqrt(2) * float(special.ndtri(min(area, 1.0)))


def found_from(mu: float) -> str:
    """Return which leaks so many records show, in a sentence; with an infinite mu the AUC shows none."""
    if math.isinf(mu):
        return "Audits of this size may miss any leak."
    area = number((1 + math.erf(mu / 2)) / 2, digits=2)  # Phi(mu / sqrt(2))
    apart = f"normal losses {number(mu, digits=2)} standard deviations apart"
    return f"Audits of this size find an AUC of {area} in 4 of 5 cases ({apart})."


def power(
    certified: Estimate, mechanism: Estimate, claim: Claim | None, *, sizes: tuple[int, int], error: float
) -> Check:
    """State the leak that the audit could have detected: the smallest one in 4 of 5 cases, or the ceiling beside the claim.

    Args:
        certified: The model-level certified bound.
        mechanism: The mechanism-level bound; may have no value.
        claim: The claimed epsilon in the form in which it is audited, if any.
        sizes: Numbers of members and of non-members.
        error: Two-sided error at which an AUC above a half is a finding.
    """
    ceiling = certified.details["ceiling"]
    mu = smallest_mu(sizes, alpha=error)
    top = mechanism.details.get("ceiling")
    details = {"model_ceiling": ceiling, "mechanism_ceiling": top, "smallest_mu": mu}
    judged = mechanism.value is not None and "not_for_claim" not in mechanism.details
    if claim is not None and claim.value is not None and judged:
        details["claimed"] = claim.value
        curve = mechanism.details.get("claimed_curve") or {}
        if curve.get("rejected") or curve.get("could_have_been"):
            return answer("power", "ok/curve", details)
        stated, top = apart(claim.value, mechanism.details["ceiling"])
        short = not math.isfinite(claim.value) or mechanism.details["ceiling"] <= claim.value
        words = {"top": top, "delta": as_stated(mechanism.delta), "claimed": stated}
        return answer("power", "warn/claim" if short else "ok/claim", details, **words)
    words = {"top": number(ceiling, toward="down"), "delta": as_stated(certified.delta)}
    cause = "warn" if ceiling < _SMALL or mu > TOO_LARGE else "ok"
    return answer("power", cause, details, leaks=found_from(mu), **words)


# --- sensitivity ---


_LARGEST_MOVE = 0.10
# Moves below this many nats are noise at any realistic number of records.
_NOISE = 0.05
_VARIANTS = ("without_extremes", "scale_free")


def sensitivity(star: Estimate) -> Check:
    """Warn when the published value moves by more than 10% without its extreme records or with the other transform."""
    if star.value is None:
        return answer("sensitivity", "unknown", reason=star.reason)
    others = {name: star.details[name] for name in _VARIANTS}
    details = {"value": star.value, **others}
    moved = [
        said("sensitivity", name, value=number(other))
        for name, other in others.items()
        if abs(star.value - other) > max(_NOISE, _LARGEST_MOVE * max(star.value, other))
    ]
    words = {"value": number(star.value), "moved": " ".join(moved)}
    return answer("sensitivity", "warn" if moved else "ok", details, **words)


# --- goodness_of_fit ---


_ENOUGH_HELD_OUT = 50


def goodness_of_fit(pair: FittedPair, mixture: FittedPair | None = None) -> Check:
    """Warn when a fit that the report could quote is rejected; unknown with too few records.

    A rejection is no reason to distrust the certified bound, which assumes no shape. Where a mixture was requested, the
    message says of it too how many components it took and whether it is rejected; the normals' Epsilon* stays in the
    result, so their rejection stays a warning.

    Args:
        pair: Two fitted normals.
        mixture: Two fitted mixtures, if requested.

    >>> import numpy as np
    >>> from auditor.curves.gaussian import fit_gaussian_pair
    >>> from auditor.core.values import Losses
    >>> rng = np.random.default_rng(0)
    >>> losses = Losses(member=rng.normal(size=500), nonmember=rng.normal(size=500))
    >>> goodness_of_fit(fit_gaussian_pair(losses, rng=rng)).status
    <Status.OK: 'ok'>
    """
    details, normals = _details(pair), _of_normals(pair)
    if mixture is None:
        return replace(normals, details=details)
    laws = zip(PerGroup._fields, (mixture.member, mixture.nonmember), strict=True)
    components = {side: getattr(law, "components", 1) for side, law in laws}  # a normal has one
    details["mixture"] = {**_details(mixture), "components": components}
    if normals.status is Status.UNKNOWN:
        return replace(normals, details=details)
    words = {"groups": _rejected(mixture), "sizes": said("goodness_of_fit", "sizes", **components)}
    of_mixtures = said("goodness_of_fit", "mixture rejected" if mixture.rejected else "mixture", **words)
    status = Status.WARN if mixture.rejected else normals.status
    return Check("goodness_of_fit", status, f"{normals.message} {of_mixtures}", details)


def _details(pair: FittedPair) -> dict[str, Any]:
    return {
        "member_p_value": pair.member_fit.p_value,
        "nonmember_p_value": pair.nonmember_fit.p_value,
        "member_n": pair.member_fit.n,
        "nonmember_n": pair.nonmember_fit.n,
        "rejected": pair.rejected,
    }


def _rejected(pair: FittedPair) -> str:
    """Return the groups whose fit is rejected, as the start of a sentence."""
    sides = (("member", pair.member_fit), ("non-member", pair.nonmember_fit))
    return f"The {' and the '.join(name for name, fit in sides if fit.rejected)} losses"


def _of_normals(pair: FittedPair) -> Check:
    if pair.rejected:
        return answer("goodness_of_fit", "warn", groups=_rejected(pair))
    if min(pair.member.sd, pair.nonmember.sd) == 0:
        return answer("goodness_of_fit", "unknown/one loss")
    held_out = min(pair.member_fit.n, pair.nonmember_fit.n)
    if held_out < _ENOUGH_HELD_OUT:
        were = "records were" if held_out > 1 else "record was"
        return answer("goodness_of_fit", "unknown/few", held_out=held_out, were=were)
    return answer("goodness_of_fit", "ok")
