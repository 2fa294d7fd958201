"""The checks of an audit, in the order in which a result lists them: what each looks at; ``checks.toml`` says the rest."""

from collections.abc import Callable, Mapping
from typing import Any

from auditor.checks import copies, losses, null_audits, populations, sampler
from auditor.core.options import BernoulliSplit
from auditor.core.registry import CheckSpec, Registry, entries
from auditor.core.values import Check

_LOOKS: Mapping[str, Callable[[Any], Check | None]] = {
    "direction": lambda evidence: losses.direction(evidence.estimate("auc")),
    "ties": lambda evidence: losses.ties(evidence.inputs.units.by_id.losses),
    "bins": lambda evidence: losses.bins(evidence.inputs.by_record),
    "saturation": lambda evidence: losses.saturation(evidence.inputs.by_record),
    "masking": lambda evidence: losses.masking(evidence.losses),
    "collection": lambda evidence: losses.collection(evidence.inputs.by_record.notes),
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
    "placebo": lambda evidence: null_audits.placebo(
        evidence.setting.reference, audited=evidence.inputs.by_record, delta=evidence.setting.delta
    ),
    "label_shuffle": lambda evidence: null_audits.label_shuffle(
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
        looks=evidence.looks,
    ),
    "sensitivity": lambda evidence: losses.sensitivity(evidence.estimate("epsilon_star.gaussian")),
    "goodness_of_fit": lambda evidence: losses.goodness_of_fit(evidence.normals, evidence.mixtures),
    "sampler": lambda evidence: sampler.sampler_check(evidence.setting.claim),
    "altered_since_it_was_written": lambda _evidence: None,  # of a result that is read again
    "label_law": lambda _evidence: None,  # of the audit of labels, which makes it
}
_TOLD = entries("auditor.checks", "checks.toml")
CHECKS = Registry(*(CheckSpec(name, run=look, **_TOLD[name]) for name, look in _LOOKS.items()))
# Those that only an audit of many runs makes; its others have the name and the meaning of one above.
RUN_CHECKS = Registry(
    CheckSpec("repeats", run=lambda evidence: copies.repeats(evidence.losses), **_TOLD["repeats"])
)
