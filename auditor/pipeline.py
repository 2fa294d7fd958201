"""audit(): the one place that knows the order."""

from dataclasses import replace
from typing import Any

from auditor.checks.registry import CHECKS
from auditor.core import validate
from auditor.core.errors import InputError
from auditor.core.options import Sample, StatedClaim
from auditor.core.values import Estimate
from auditor.curves import views
from auditor.curves.cells import Partition, few_decide
from auditor.curves.tradeoff import count
from auditor.curves.views import Histogram, NamedCurve
from auditor.estimators.adaptive import ADAPTIVE
from auditor.estimators.band import furthest, measured as measured_lines, simultaneous_band
from auditor.estimators.certified import certified_bound
from auditor.estimators.evidence import Evidence
from auditor.estimators.fixed_ranks import rank_curves
from auditor.estimators.gap import advantage
from auditor.estimators.omnibus import LEAST_ERROR, SHARES, omnibus
from auditor.estimators.one_run import mechanism_bound
from auditor.estimators.rates import empirical, interval
from auditor.estimators.registry import ESTIMATORS
from auditor.estimators.setting import Inputs
from auditor.results.disclosure import shared, shared_rows
from auditor.results.document import AuditResult, provenance
from auditor.risk.ranking import most_exposed
from auditor.risk.slices import policies_of, scores_of, slices_of
from auditor.verdicts.judging import compare, overall


def audit(inputs: Inputs) -> AuditResult:
    """Audit a model from its losses: evidence, estimates, checks, comparisons, and the document of all.

    Raises:
        InputError: Losses that cannot be used with these options, or a result that would be too large to be read again.
    """
    inputs.refuse_few()
    setting = inputs.setting
    evidence = Evidence(inputs, setting, tuple(ESTIMATORS))
    partition = Partition.of(evidence.losses) if setting.is_shared else None
    estimates = evidence.estimates
    has_fits = not (setting.is_shared and few_decide(evidence.normals, evidence.transformed))
    wanted = (spec for spec in CHECKS if has_fits or spec.name != "sensitivity")  # it says what the fit gives
    checks = tuple(check for spec in wanted if (check := spec.run(evidence)) is not None)
    if setting.is_shared:  # so that verdicts and gates go by what is published
        estimates = shared_rows(_of_many(evidence, partition, has_fits=has_fits), partition)
    comparisons = compare(evidence.claims, estimates, checks, audited=evidence.audited)
    exposed = most_exposed(
        replace(inputs.units, losses=evidence.losses),
        checks=checks,
        most=setting.top_records,
        rng=evidence.rng("ranking"),
    )
    result = AuditResult(
        data={
            **inputs.described(evidence.losses),
            "top_records": exposed.reason,
            "shown": shown_together(evidence),
            **({"scores": scores} if (scores := scores_of(evidence)) else {}),
        },
        estimates=estimates,
        claims=evidence.claims,
        comparisons=comparisons,
        checks=checks,
        slices=slices_of(
            evidence.losses,
            delta=setting.delta,
            confidence=setting.confidence,
            partition=partition,
            is_shared=setting.is_shared,
        ),
        curves=_curves(evidence, partition, has_fits=has_fits),
        histograms=_histograms(evidence, partition, has_fits=has_fits),
        verdict=overall(comparisons),
        provenance=provenance(
            inputs.by_record,
            seed=setting.seed,
            source=setting.source and validate.shortened(setting.source),
            command=setting.command and validate.shortened(setting.command),
            choices=inputs.options.stored(),
        ),
        top_records=exposed.records,
        policies=policies_of(evidence),
    )
    if setting.is_shared:
        result = shared(result, partition)
    too_large = validate.problem(result.to_dict())
    if too_large is not None:
        raise InputError(f"the result would be larger than one that can be read again: {too_large}.")
    return result


# The statement of a headline. Whether there is one is decided by a test for lower members at .6 of the error, by one for
# higher members at .3, and by bets on learnt guesses at .1, which find what no threshold shows: without any leak, one of them
# rejects with at most the error. Which limits then hold together is another question, for it arises only where there is a
# leak. Each is wrong with at most a seventh of the error: the bound, the point, the one-run bound; and with a fourteenth at
# each end of the AUC and of both advantages. Together, with the .1 of the bets:
#
# * members lie nowhere lower (F1 <= F0): .6 for the first test, without which nothing says that they do; 1/14 for the upper
#   end of the AUC, 1/14 for the reversed advantage, 1/7 for the one-run bound, which may be above a true epsilon: .99;
# * members lie nowhere higher (F1 >= F0): .3 for the second test; 1/7 + 1/7 + 1/14 + 1/14 for the bound, the point, the AUC
#   and the advantage, 1/7 for the one-run bound: .98;
# * both happen: 1/2 + 1/7 + 1/7 for all limits at most, .89.
#
# So no law lets a false statement appear with more than the error, whichever statement is chosen. An epsilon of 0 of the
# training makes members and others exchangeable where they were drawn alike, so its bound needs the tests too.
_HALF = 0.5
_CERTIFIED, _ONE_RUN = "epsilon_bound.clopper_pearson", "epsilon_bound.one_run"


def shown_together(evidence: Evidence) -> dict[str, Any]:
    """Return which findings hold at the confidence of the audit with all of them together.

    Members count as draws, whether or not all of them were scored. ``differs`` has "lower" if members have lower losses than
    others at some threshold, and "higher" if they have higher ones: by `omnibus`, without which nothing else is shown.
    ``names`` are those of estimates whose lower limit is beyond the values of guessing (``auc.upper``: whose upper one is),
    each at a seventh of the error or by bets at a tenth, and ``limits`` are some of those limits. ``point`` is the point of
    a band at every threshold at once that is furthest from guessing, or None. ``reversed`` is the lower limit of the advantage of an attacker who
    accuses at high losses, or 0.
    """
    alpha, losses = 1 - evidence.setting.confidence, evidence.losses
    differs, names = list(SHARES), list[str]()
    if alpha >= LEAST_ERROR:
        p_values = omnibus(losses, rng=evidence.rng("omnibus"))
        differs = [name for name, p in zip(differs, p_values, strict=True) if p <= SHARES[name] * alpha]
    found: dict[str, Any] = {"looks": evidence.looks, "differs": differs, "names": names, "limits": {}}
    found |= {"point": None, "reversed": 0.0}
    learnt = next((row.details.get("shown", 0.0) for row in evidence.estimates if row.name == ADAPTIVE), 0.0)
    if learnt > 0:
        names.append(ADAPTIVE)
    if not differs:
        return found | ({"limits": {ADAPTIVE: learnt}} if names else {})
    level = alpha / evidence.looks
    stricter = replace(evidence.setting, confidence=1 - level, coverage=Sample())
    again, confidence = replace(evidence, setting=stricter, estimators=()), stricter.confidence
    sizes, area = (losses.n_member, losses.n_nonmember), evidence.estimate("auc")
    low, high = interval(area.value or 0.0, area.details["placements"], sizes=sizes, alpha=level)
    if "lower" in differs:
        gain = advantage(evidence.counts, confidence=confidence).lower or 0.0
        found["limits"] = {"advantage": gain} if gain > 0 else {}
        found["limits"] |= {"auc": low} if low > _HALF else {}
        found["point"] = furthest(simultaneous_band(losses, confidence=confidence, coverage=Sample()))
        names += [_CERTIFIED] if _bound_is_shown(evidence, again, level) else []
        names += found["limits"]
    names += ["auc.upper"] if "higher" in differs and high < _HALF else []
    if found["point"] is None and not found["limits"]:  # then a bound leads, which takes longest
        rows = certified_bound(again)[:1] if _CERTIFIED in names else mechanism_bound(again)
        found["limits"] = {row.name: row.lower for row in rows if _positive(row)}
        names += {*found["limits"]} - {*names}
    found["limits"] |= {ADAPTIVE: learnt} if learnt > 0 else {}
    if "higher" in differs and found["point"] is None and {*names} <= {"auc.upper", ADAPTIVE}:
        found["reversed"] = advantage(count(losses.swapped), confidence=confidence).lower or 0.0
    if alpha < LEAST_ERROR:
        lower, higher = (
            found["point"] or {*names} - {"auc.upper", _ONE_RUN, ADAPTIVE},
            found["reversed"] or "auc.upper" in names,
        )
        found["differs"] = [name for name, shown in zip(SHARES, (lower, higher), strict=True) if shown]
    return found


def _bound_is_shown(evidence: Evidence, again: Evidence, level: float) -> bool:
    row = evidence.estimate(_CERTIFIED)
    bound = row.details.get("as_draws", {**row.details, "value": row.value})
    if not bound["value"]:
        return False
    return bound["p_value"] <= level if "p_value" in bound else _positive(certified_bound(again)[0])


def _positive(row: Estimate) -> bool:
    return (row.lower or 0.0) > 0


_DECIDED = "one record decides the fit, so that no result that may be shared shows it; audit with disclosure='insiders' to see it"
_AT_FEW = "a result that may be shared shows no ratio of few records; it needs 100 records of each group, with losses that differ"


def _of_many(evidence: Evidence, partition: Partition | None, *, has_fits: bool) -> tuple[Estimate, ...]:
    """Return the estimates without those that few records decide: of fits, and the empirical one but at the partition."""
    delta, hidden = evidence.setting.delta, {"epsilon_star.empirical": _AT_FEW} if partition is None else {}
    if not has_fits:
        hidden |= dict.fromkeys(("epsilon_star.gaussian", "epsilon_star.mixture"), _DECIDED)

    def published(row: Estimate) -> Estimate:
        if row.value and row.name in hidden:
            return Estimate.missing(
                row.name, hidden[row.name], method=row.method, subject=row.subject, delta=delta
            )
        if row.name == "epsilon_star.empirical" and partition is not None:
            return empirical(evidence.losses, delta=delta, counts=partition.threshold_counts, at_counts=True)
        return row

    return tuple(map(published, evidence.estimates))


def _curves(evidence: Evidence, partition: Partition | None, *, has_fits: bool) -> tuple[NamedCurve, ...]:
    setting = evidence.setting
    # The line of a stated epsilon and delta is that of the two.
    promised = None if isinstance(setting.claim, StatedClaim) else evidence.promised
    of_claim = views.claimed_line(evidence.audited, promised)
    if evidence.setting.is_shared and partition is None:
        return of_claim
    losses = evidence.losses
    measured = measured_lines(losses, evidence.counts, setting.confidence, setting.coverage, partition)
    fitted = (
        views.fitted(evidence.normals, evidence.mixtures, is_shared=partition is not None) if has_fits else ()
    )
    return (*measured, *fitted, *of_claim, *(() if partition else rank_curves(losses)))


def _histograms(evidence: Evidence, partition: Partition | None, *, has_fits: bool) -> tuple[Histogram, ...]:
    if partition is not None:
        return views.shared_histograms(partition, evidence.losses, evidence.normals, has_fits=has_fits)
    if evidence.setting.is_shared:
        return ()
    return views.histograms(evidence.losses, evidence.transformed, evidence.normals)
