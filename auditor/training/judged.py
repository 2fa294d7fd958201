"""The verdict of a step audit as a document: evidence, certified noise, tensors, and the implied epsilon of the run."""

import hashlib
import math
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import special

from auditor.core import DPSGD, Adjacency, Claim, Comparison, Estimate, Subject, Verdict, as_stated, percent
from auditor.results.document import TrainingResult, made_now
from auditor.theory import claims, epsilon

Audit = Any  # a `StepAudit`, whose module loads this one
RATIO, STEP_MU, IMPLIED = "noise_ratio", "step_mu", "epsilon_implied"
_METHOD = "bets on coins inside the steps; Ville's inequality"
_DRAWN = 400  # points of the picture
_LEVEL = 0.95  # of the intervals of tensors
_LEAST, _ENOUGH = 0.5, 20  # clipping norms that some canary must add, after these steps
_SAMPLER = (
    "The batches do not show another sampler than Poisson sampling at the claimed rate or a lower one.",
    "The batches are not Poisson samples at the claimed rate or a lower one, at {} confidence.",
)


def judged(audit: Audit, *, delta: float) -> TrainingResult:
    """Return the result of a step audit of one step or more."""
    stated = audit.claim if isinstance(audit.claim, DPSGD) else None
    tensors, noise = _tensors(audit), audit.largest_noise
    compared = _compared(audit, tensors)
    every = np.unique(np.linspace(0, audit.steps - 1, _DRAWN).round().astype(int))
    return TrainingResult(
        data={
            "steps": audit.steps,
            "canaries": audit.blocks.canaries,
            "parameters": audit.blocks.owner.size,
            "scale": audit.scale,
            "delta": delta,
            "confidence": audit.confidence,
            "error_of_steps": audit.shares[0],
            "error_of_sampler": audit.shares[1],
            "noise_refuted": audit.noise_refuted,
            "sampler_refuted": audit.sampler_refuted,
            "nuisance": audit.nuisance,
            "centred": audit.is_centred,
            "claim": stated.in_words() if stated else f"noise multiplier {as_stated(noise)}",
            "tensors": tensors,
            "evidence": {
                "steps": (every + 1).tolist(),
                "log_evidence": [audit.evidence_by_step[place] for place in every],
            },
            "sampler": _batches(audit.sampler),
            "notes": [*audit.notes, *_notes(audit)],
        },
        estimates=_estimates(audit, noise, delta),
        claims=claims(stated, delta=delta) if stated else (compared[0].claim,),
        comparisons=compared,
        verdict=compared[0].verdict,
        provenance={**made_now(), "input_sha256": _hash(audit), **audit.drawn_with},
    )


def _compared(audit: Audit, tensors: dict[str, list[Any]]) -> tuple[Comparison, ...]:
    """Return the comparisons of the claimed noise with the steps, and of the claimed sampler with the batches, a refuted one first."""
    varies = isinstance(audit.claim, DPSGD) and isinstance(audit.claim.noise_multiplier, tuple)
    added = [one for one in tensors["contribution"] if one is not None]
    blunt = bool(added) and max(added) < _LEAST and audit.steps >= _ENOUGH
    result = [
        _comparison(
            _stated("noise_multiplier", None if varies else audit.largest_noise),
            _reason(audit, tensors, blunt=blunt),
            audit.log_evidence,
            refuted=audit.noise_refuted,
            otherwise=Verdict.INCONCLUSIVE if blunt else Verdict.NOT_REFUTED,
        )
    ]
    if audit.sampler is not None:
        rate = _stated("sampling_rate", audit.sampler.rate)
        words = _SAMPLER[audit.sampler_refuted].format(percent(1 - audit.shares[1], toward="down"))
        row = _comparison(rate, words, audit.sampler.most, refuted=audit.sampler_refuted)
        result.insert(0 if audit.sampler_refuted and not audit.noise_refuted else 1, row)
    return tuple(result)


def _stated(metric: str, value: float | None) -> Claim:
    return Claim(metric, value, None, Adjacency.ADD_REMOVE, "as stated", proven=True)


def _comparison(
    claim: Claim, reason: str, log_evidence: float, *, refuted: bool, otherwise: Verdict = Verdict.NOT_REFUTED
) -> Comparison:
    evidence = math.exp(min(log_evidence, 700.0))
    verdict = Verdict.REFUTED if refuted else otherwise
    return Comparison(claim, RATIO, verdict, reason, Subject.MECHANISM, min(1.0, 1 / evidence), evidence)


def _batches(sampler: Any) -> dict[str, Any] | None:
    """Return the description of the batches; None without a test of the sampler."""
    if sampler is None:
        return None
    sizes = sampler.sizes
    return {
        "batches": sampler.steps,
        "records": sampler.records,
        "rate": sampler.rate,
        "mean": float(np.mean(sizes)) if sizes else None,
        "variance": float(np.var(sizes)) if sizes else None,
        "empty": sampler.empty,
        "e_value": math.exp(sampler.most),
    }


def _hash(audit: Audit) -> str:
    """Return the SHA-256 of the evidence, step by step."""
    return hashlib.sha256(np.array(audit.evidence_by_step, dtype="<f8").tobytes()).hexdigest()


def _estimates(audit: Audit, noise: float, delta: float) -> tuple[Estimate, ...]:
    most, confidence = audit.noise_at_most, 1 - audit.shares[0]
    assumed = ("the coins are fair and independent of the training, as drawn here",)
    common: dict[str, Any] = {
        "confidence": confidence,
        "method": _METHOD,
        "subject": Subject.MECHANISM,
        "adjacency": Adjacency.ADD_REMOVE,
        "assumptions": assumed,
    }
    details = {"unit": "steps", "e_value": math.exp(min(audit.log_evidence, 700.0))}
    bound = Estimate(RATIO, most, None, most, delta=None, details=details, **common)
    mu = Estimate.at_least(STEP_MU, 1 / (noise * most), delta=None, details=details, **common)
    if math.isinf(most):
        few = f"{audit.steps:,} steps are too few to limit the noise"
        return tuple(replace(row, upper=None).emptied(few) for row in (bound, mu))
    rows: tuple[Estimate, ...] = (bound, mu)
    if isinstance(audit.claim, DPSGD):
        rows += (_implied(audit.claim, most, delta, common, details),)
    return rows


def _implied(
    claim: DPSGD, most: float, delta: float, common: dict[str, Any], details: dict[str, Any]
) -> Estimate:
    """Return the epsilon of the whole run with the certified noise, if every step leaks so much and batches are as claimed."""
    noise = np.asarray(claim.noise_multiplier) * most
    shown = replace(claim, noise_multiplier=noise.tolist())
    value = epsilon(shown, delta=delta, adjacency=Adjacency.ADD_REMOVE)
    row = Estimate.at_least(
        IMPLIED, value.value or 0.0, delta=delta, details={**details, "conditional": True}, **common
    )
    return row if value.value is not None else row.emptied(value.note or "the accountant has no epsilon")


def _tensors(audit: Audit) -> dict[str, list[Any]]:
    """Return the measurements of each parameter tensor: noise over claim with interval and limit, and a canary's contribution."""
    blocks, (measured, draws, contribution) = audit.blocks, audit.measured
    rows: list[dict[str, Any]] = []
    most = audit.tensor_limits
    for place, (name, part) in enumerate(blocks.slices.items()):
        members = blocks.tensors[place]
        ratio = math.sqrt(np.average(measured[members] ** 2))
        degrees = draws * len(members)
        high, low = special.chdtri(degrees, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
        both = ~np.isnan(contribution[members])
        row = {
            "name": name,
            "numbers": part.stop - part.start,
            "canaries": len(members),
            "measured": ratio,
            "low": ratio * math.sqrt(degrees / high),
            "high": ratio * math.sqrt(degrees / low),
            "at_most": None if math.isinf(most[place]) else float(most[place]),
            "contribution": float(contribution[members][both].mean()) if both.any() else None,
        }
        rows.append(row)
    return {key: [row[key] for row in rows] for key in rows[0]}


def _notes(audit: Audit) -> list[str]:
    """Return notes on what the audit saw beside its evidence, in sentences."""
    claim = audit.claim
    if not isinstance(claim, DPSGD) or audit.steps <= claim.steps:
        return []
    return [f"The training took {audit.steps:,} steps where the claim has {claim.steps:,}."]


def _reason(audit: Audit, tensors: dict[str, list[Any]], *, blunt: bool) -> str:
    """Return the reason for the verdict on the noise, in a sentence."""
    if blunt:
        return (
            f"In no tensor does a canary add {_LEAST} clipping norms to the sum: it may be divided, or the canaries dropped, so"
            " that the audit could have shown little."
        )
    if not audit.noise_refuted:
        return f"{audit.steps:,} steps do not show less noise than claimed. This is not proof."
    level, several = percent(1 - audit.shares[0], toward="down"), len(tensors["name"]) > 1
    low = [name for name, most in zip(tensors["name"], tensors["at_most"], strict=True) if (most or 1) < 1]
    where = f" In {', '.join(low)} alone the noise is shown to be below the claim." if low and several else ""
    if not low and audit.most_telling:
        where = f" Most of the evidence is in {audit.most_telling}."
    return (
        f"The evidence of {audit.steps:,} steps reached {as_stated(round(1 / audit.shares[0], 9))}: the noise, the clipping or its"
        f" coverage of the parameters is refuted at {level} confidence.{where}"
    )
