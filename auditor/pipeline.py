"""audit(): the one place that knows the order."""

from auditor.checks.registry import CHECKS
from auditor.core import validate
from auditor.core.errors import InputError
from auditor.core.options import StatedClaim
from auditor.estimators.evidence import Evidence
from auditor.estimators.registry import ESTIMATORS
from auditor.results import views
from auditor.results.document import AuditDocument, NamedCurve, provenance
from auditor.risk.ranking import most_exposed
from auditor.risk.slices import slices_of
from auditor.theory.asked import Asked
from auditor.verdicts.judging import compare, overall


def audit(asked: Asked) -> AuditDocument:
    """Audit a model from its losses: what was asked, evidence, estimates, checks, comparisons, and the document of all.

    Raises:
        InputError: Losses that cannot be used as asked, or a result that would be too large to be read again.
    """
    evidence = Evidence.of(asked, estimators=ESTIMATORS)
    estimates = evidence.estimates
    checks = tuple(check for spec in CHECKS if (check := spec.run(evidence)) is not None)
    comparisons = compare(evidence.claims, estimates, checks, audited=evidence.audited)
    exposed = most_exposed(
        evidence.persons, checks=checks, most=asked.top_records, rng=evidence.rng("ranking")
    )
    result = AuditDocument(
        data={**asked.described(), "top_records": exposed.reason},
        estimates=estimates,
        claims=evidence.claims,
        comparisons=comparisons,
        checks=checks,
        slices=slices_of(
            evidence.losses, delta=evidence.setting.delta, confidence=evidence.setting.confidence
        ),
        curves=(*_curves(evidence), *views.rank_curves(evidence.losses)),
        histograms=views.histograms(evidence.losses, evidence.transformed, evidence.normals),
        verdict=overall(comparisons),
        provenance=provenance(
            evidence.given,
            seed=evidence.seed,
            source=asked.source and validate.shortened(asked.source),
            command=asked.command and validate.shortened(asked.command),
        ),
        top_records=exposed.records,
    )
    too_large = validate.problem(result.to_dict())
    if too_large is not None:
        raise InputError(f"the result would be larger than one that can be read again: {too_large}.")
    return result


def _curves(evidence: Evidence) -> tuple[NamedCurve, ...]:
    return views.curves(
        evidence.losses,
        evidence.counts,
        evidence.normals,
        mixture=evidence.mixtures,
        claim=evidence.audited,
        # The line of a stated epsilon and delta is that of the two.
        promised=None if isinstance(evidence.setting.claim, StatedClaim) else evidence.promised,
        confidence=evidence.setting.confidence,
        members=evidence.setting.members,
    )
