"""The checks of an audit, in the order in which a result lists them; ``checks.toml`` has their texts."""

from collections.abc import Callable, Mapping
from typing import Any

from auditor.checks import copies, losses, populations
from auditor.checks.answers import SPECS, answer
from auditor.checks.carried import contents
from auditor.core import DPSGD, BernoulliSplit, Check, CheckSpec, Registry, TrainingClaim
from auditor.estimators.omnibus import LEAST_ERROR, SHARES


def sampler_check(claim: TrainingClaim | None) -> Check | None:
    """Warn of a claim whose batches were shuffled and accounted as Poisson-sampled; None for any other.

    Passes over shuffled records use each record once a pass, so batches are not independent. The epsilon of Poisson
    sampling is not proven for them, and the true one can be larger: Chua et al. 2024, How Private are DP-SGD
    Implementations? Libraries that report it all the same: jax_privacy (pull request 272), and Opacus with
    ``poisson_sampling=False``; Opacus issues 813 and 819 are other cases of an accountant that differs from the training.

    >>> from auditor.core.options import ShuffledBatches
    >>> str(sampler_check(DPSGD(1.0, 0.01, 100, sampling=ShuffledBatches())).status)
    'warn'
    """
    shuffled = isinstance(claim, DPSGD) and claim.shuffled
    return answer("sampler", "warn", {"sampling": "shuffled"}) if shuffled else None


def _error_of_area(alpha: float, looks: int) -> float:
    """Return the two-sided error at which an AUC above a half is a finding, of an audit with so much error."""
    # Of one direction, and of the two statistics of its test, one is the area.
    return SHARES["lower"] * alpha if alpha >= LEAST_ERROR else alpha / looks


def _null_audits() -> Any:
    """Return the module of audits of audits, which reading a result does not need."""
    from auditor.checks import null_audits

    return null_audits


_LOOKS: Mapping[str, Callable[[Any], Check | None]] = {
    "direction": lambda evidence: losses.direction(evidence.estimate("auc")),
    "ties": lambda evidence: losses.ties(evidence.inputs.units.by_id.losses),
    "bins": lambda evidence: losses.bins(evidence.inputs.by_record),
    "saturation": lambda evidence: losses.saturation(evidence.inputs.by_record),
    "masking": lambda evidence: losses.masking(evidence.losses),
    "collection": lambda evidence: losses.collection(evidence.inputs.by_record.notes),
    "contents": lambda evidence: contents(
        evidence.inputs.by_record.attacks, evidence.inputs.by_record.released.rows
    ),
    "duplicates": lambda evidence: copies.duplicates(evidence.inputs.by_record, units=evidence.inputs.units),
    "persons": lambda evidence: losses.persons(evidence.inputs.units, most=evidence.setting.top_records),
    "shift": lambda evidence: populations.shift(
        evidence.setting.features,
        person=evidence.inputs.by_record.person
        or (evidence.inputs.by_record.id if evidence.inputs.units.by_id.combined else None),
        inclusion=None if evidence.inputs.own_odds is None else evidence.inputs.by_record.inclusion,
        coins=isinstance(evidence.setting.split, BernoulliSplit) and evidence.inputs.own_odds is None,
        rng=evidence.rng("features"),
    ),
    # By the rank grid whatever the rule: a threshold chosen for this model means nothing on another model's scale.
    "placebo": lambda evidence: _null_audits().placebo(
        evidence.setting.reference, audited=evidence.inputs.by_record, delta=evidence.setting.delta
    ),
    "label_shuffle": lambda evidence: _null_audits().label_shuffle(
        evidence.losses,
        delta=evidence.setting.delta,
        confidence=evidence.setting.confidence,
        rule=evidence.setting.threshold,
        rng=evidence.rng("shuffles"),
    ),
    "power": lambda evidence: losses.power(
        evidence.estimate("epsilon_bound.clopper_pearson"),
        evidence.estimate("epsilon_bound.one_run"),
        evidence.audited,
        sizes=(evidence.losses.n_member, evidence.losses.n_nonmember),
        error=_error_of_area(1 - evidence.setting.confidence, evidence.looks),
    ),
    "control": lambda evidence: _null_audits().control(evidence),
    "sensitivity": lambda evidence: losses.sensitivity(evidence.estimate("epsilon_star.gaussian")),
    "goodness_of_fit": lambda evidence: losses.goodness_of_fit(evidence.normals, evidence.mixtures),
    "sampler": lambda evidence: sampler_check(evidence.setting.claim),
    "altered_since_it_was_written": lambda _evidence: None,  # of a result that is read again
    "label_law": lambda _evidence: None,  # of the audit of labels, which makes it
}
CHECKS = Registry(*(CheckSpec(name, run=look, **SPECS[name]) for name, look in _LOOKS.items()))
# Those that only an audit of many runs makes; its others have the name and the meaning of one above.
RUN_CHECKS = Registry(
    CheckSpec("repeats", run=lambda evidence: copies.repeats(evidence.losses), **SPECS["repeats"])
)
