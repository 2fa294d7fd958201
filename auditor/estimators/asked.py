"""What an audit was asked: its choices, checked, with their defaults filled in."""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, get_args, get_type_hints

import numpy as np

from auditor.core import options, validate
from auditor.core.errors import InputError
from auditor.core.values import Claim, Floats, Losses
from auditor.records.features import Features, fingerprints
from auditor.records.labels import PersonsFound, default_units, per_person

SPLIT_NAMES = {
    options.UnknownSplit: "unknown",
    options.RandomSplit: "random",
    options.BernoulliSplit: "bernoulli",
    options.Propensity: "propensity",
}
_FAIR = 0.5
_RATES = 5  # at which a result that may be shared shows the true positive rate
# Arguments that change a number, and can be kept as they are.
_KEPT = [
    *("delta", "confidence", "looks", "members", "split", "claim", "training_size", "threshold", "persons"),
    *("mixture", "one_run_test", "seed"),
]
_LARGEST = 20_000  # characters: a noise for each of thousands of steps is not kept


@dataclass(frozen=True, eq=False)
class Asked:
    """The arguments of `auditor.audit`, which says what they mean.

    Raises:
        InputError: An argument that cannot be used; the message says which and why.
    """

    losses: Losses
    delta: float | None
    confidence: float
    looks: int
    members: options.Members
    split: options.MembershipSplit
    claim: options.TrainingClaim | None
    training_size: int | None
    threshold: options.ThresholdRule
    fpr: Iterable[float]
    persons: options.Persons | None
    mixture: options.Mixture | None
    one_run_test: options.OneRunTest | None
    features: Features | None
    reference: Losses | None
    seed: int
    model: str | None
    strategy: str | None
    utility: options.Utility | None
    context: options.Context | None
    top_records: int
    disclosure: options.Disclosure | str
    source: str | None
    command: str | None
    progress: Callable[[int, int], None] | None

    def __post_init__(self) -> None:
        for name, hint in get_type_hints(type(self)).items():
            kinds = get_args(hint) or (hint,)
            if kinds[0].__module__.startswith("auditor."):  # a value of ours, which is checked by itself
                validate.instance(name, getattr(self, name), kinds)
        self.losses.refuse_stopped()
        if isinstance(self.split, options.Propensity):
            self._take_features(self.split)
        self._refuse_records()
        if isinstance(self.split, options.BernoulliSplit):
            from auditor.estimators.guesses import own_coins

            for name, value in zip(("losses", "split"), own_coins(self.losses, self.split), strict=True):
                object.__setattr__(self, name, value)
        _ = self.setting
        for name in ("seed", "top_records"):
            object.__setattr__(self, name, validate.at_least(name, getattr(self, name), least=0))
        validate.top_records(self.top_records)
        object.__setattr__(self, "disclosure", options.Disclosure.named(self.disclosure))
        if self.is_shared and len(self.setting.rates) > _RATES:
            raise InputError(
                f"fpr must have at most {_RATES} rates in a result that may be shared, got {len(self.setting.rates)}: many rates show where single"
                " records lie; name fewer, or ask for a result for insiders (disclosure='insiders', --for-insiders)."
            )
        validate.name("model (--model-name on the command line)", self.model)
        validate.name("strategy (--strategy on the command line)", self.strategy)

    def _take_features(self, split: options.Propensity) -> None:
        """Keep the features of the split as those of the audit."""
        if (split.features is None) == (self.features is None):
            raise InputError(
                "features must be given once where split is auditor.Propensity: auditor.Propensity(features) with"
                f" auditor.Features of the audited records (--features on the command line), got {'none' if self.features is None else 'two'}."
            )
        features = self.features if split.features is None else split.features
        validate.instance("features", features, (Features,))
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "split", options.Propensity(overlap=split.overlap))

    def _refuse_records(self) -> None:
        """Refuse what asks for single records, or for what lies within a bin, where there are only counts of bins."""
        rule = None if isinstance(self.threshold, options.RankGrid) else self.threshold
        for name, value in (("features", self.features), ("reference", self.reference), ("threshold", rule)):
            if self.losses.bits is not None and value is not None:
                raise InputError(
                    f"{name} must be left out in the audit of a summary, which holds counts of bins and no single records, got"
                    f" {type(value).__name__}; audit the losses themselves."
                )

    @property
    def is_shared(self) -> bool:
        """Whether the result may be shared, and so shows nothing that few records make."""
        return self.disclosure == options.Disclosure.PUBLIC

    @cached_property
    def given(self) -> Losses:
        """The losses record by record, with the fingerprints of their features where those were given."""
        if self.features is None:
            return self.losses
        self.features.check_rows(self.losses)
        return replace(self.losses, fingerprint=fingerprints(self.features))

    @cached_property
    def units(self) -> PersonsFound:
        """What is audited: persons or records as asked for; else persons, where the records name them and were split by person."""
        if self.persons is None:
            return default_units(self.given)
        return per_person(self.given, choice=self.persons)

    def refuse_few(self) -> None:
        """Refuse a group of fewer than 10 records or people, but for insiders."""
        units = self.units
        sizes = units.losses.n_member, units.losses.n_nonmember
        people = units.persons if units.named else sizes
        for name, each in zip(("member losses", "nonmember losses"), map(min, sizes, people), strict=True):
            validate.enough_to_share(name, each, str(self.disclosure))

    def _refuse_odds(self) -> None:
        """Refuse odds of membership that the declared split does not have, or that a person's records do not share."""
        odds = self.given.inclusion
        if odds is None:
            return
        if isinstance(self.split, options.RandomSplit) and np.ptp(np.concatenate(odds)) > 0:
            raise InputError(
                f"split must be auditor.BernoulliSplit() where the records have an inclusion column of unlike odds, got {self.split}, which"
                " draws all alike; leave the column out if it means something else."
            )
        if isinstance(self.split, options.BernoulliSplit) and self.units.losses.inclusion is None:
            raise InputError(
                "inclusion must be the same for all records of a person or an id where they have one score, got different ones;"
                " it is the person or the id that has one coin."
            )

    @property
    def own_odds(self) -> Floats | None:
        """Log-odds of the membership of each unit, the members' first, where the declared coins are unlike; else null."""
        odds = self.units.losses.inclusion
        if odds is None or not isinstance(self.split, options.BernoulliSplit):
            return None
        chance = np.concatenate(odds)
        return np.log(chance) - np.log1p(-chance) if np.ptp(chance) > 0 else None

    @cached_property
    def setting(self) -> "Setting":
        """The choices of the audit, with their defaults filled in."""
        if (self.units.combined or self.units.by_id.combined) and isinstance(self.members, options.Subset):
            raise InputError(
                "members must be auditor.Sample or auditor.Census where a score stands for a person or several rows of an id, got"
                f" {self.members}; the number of these in the training set is not known."
            )
        self._refuse_odds()
        if self.own_odds is not None and not isinstance(self.members, options.Sample):
            raise InputError(
                f"members must be auditor.Sample() where records had odds of their own, got {self.members}: so many of them are"
                " kept that members and non-members are of one population, and those are no random part of the training set."
            )
        size = _training_size(self.training_size, self.given, self.members)
        return Setting(
            size=size,
            delta=_delta(self.delta, self.claim, size),
            confidence=validate.of_one_look(self.confidence, self.looks),
            members=self.members,
            split=self.split,
            claim=self.claim,
            threshold=self.threshold,
            rates=_rates(self.fpr),
            persons=self.units.choice,
            mixture=self.mixture,
            one_run_test=self.one_run_test,
        )

    def described(self, audited: Losses) -> dict[str, Any]:
        """Return what was audited and how, as the ``data`` of a result.

        Args:
            audited: The losses of the units, or of those that were kept.
        """
        found, choice = self.units, self.units.choice
        return {
            "model": self.model,
            "strategy": self.strategy,
            "utility": None if self.utility is None else asdict(self.utility),
            "context": None if self.context is None else asdict(self.context),
            "disclosure": str(self.disclosure),
            **self.setting.described(audited, own=found.losses.inclusion is not None),
            **validate.several_looks(self.looks),
            # What counts as one unit, and of how many independent ones the records are worth.
            "unit": f"person ({choice.by} loss)" if isinstance(choice, options.OnePerPerson) else "record",
            "records": list(found.records),
            "persons": list(found.persons) if found.named else None,
            "effective": list(found.persons if found.combined else found.effective) if found.named else None,
            # What was combined by id, and who was left out.
            **({"rows": list(found.by_id.rows)} if found.by_id.combined else {}),
            **({"left_out": len(found.left_out)} if found.left_out else {}),
        }

    def kept(self) -> dict[str, Any] | None:
        """Return the arguments that change a number as JSON holds them, or null where they are too long to be kept."""
        found = {name: options.stored(getattr(self, name)) for name in _KEPT}
        found |= {"fpr": list(self.setting.rates), "disclosure": str(self.disclosure)}
        # Of these a result keeps nothing but that they were given: checks rest on them, no number does.
        found |= {name: getattr(self, name) is not None for name in ("features", "reference")}
        return found if len(json.dumps(found)) <= _LARGEST else None


def asked_again(kept: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `auditor.audit` that `Asked.kept` kept.

    Raises:
        InputError: What is kept is no argument.
    """
    return {name: options.restored(kept[name]) for name in (*_KEPT, "fpr", "disclosure") if name in kept}


@dataclass(frozen=True)
class Setting:
    """The choices of one audit.

    Attributes:
        size: Number of training records.
        delta: In [0, 1).
        confidence: Of every interval.
        members: Whether the members are a sample of the training set or all of it.
        split: How membership was decided.
        claim: What is claimed of the training algorithm.
        threshold: How the certified bound picks its threshold.
        rates: False positive rates to report the true positive rate at.
        persons: What counts as one unit.
        mixture: Which mixtures to fit, if any.
        one_run_test: How the guesses about the training algorithm are judged; null for the strongest that fits.
    """

    size: int
    delta: float
    confidence: float
    members: options.Members
    split: options.MembershipSplit
    claim: options.TrainingClaim | None
    threshold: options.ThresholdRule
    rates: tuple[float, ...]
    persons: options.Persons
    mixture: options.Mixture | None
    one_run_test: options.OneRunTest | None

    def described(self, losses: Losses, *, own: bool) -> dict[str, Any]:
        """Return the setting as the ``data`` of a result; ``own`` where records may have odds of membership of their own."""
        return {
            "n_member": losses.n_member,
            "n_nonmember": losses.n_nonmember,
            "training_size": self.size,
            "delta": self.delta,
            "confidence": self.confidence,
            "members": {options.Census: "census", options.Subset: "subset"}.get(type(self.members), "sample"),
            "split": SPLIT_NAMES[type(self.split)],
            "stratified": isinstance(self.split, options.RandomSplit) and self.split.stratified,
            "inclusion": self._inclusion if not own else None,
            "claim": None if self.claim is None else self.claim.in_words(),
            "scale": str(losses.scale),
            "saturated": list(losses.saturated),
            "history": list(losses.history),
        }

    @property
    def _inclusion(self) -> Any:
        if not isinstance(self.split, options.BernoulliSplit):
            return None
        return _FAIR if self.split.inclusion is None else self.split.inclusion


def promises(
    claim: options.TrainingClaim | None, *, delta: float, split: options.MembershipSplit, group: int = 1
) -> tuple[tuple[Claim, ...], Claim | None]:
    """Return everything that the description promises, and the form of it that the declared split audits.

    Args:
        claim: `DPSGD`, `StatedClaim`, a curve of it, or none.
        delta: To state the epsilon of DP-SGD or a curve at; a stated (epsilon, delta) has its own.
        split: A `BernoulliSplit` audits the claim as it was made, any other its form for replaced records.
        group: For how many records a claim about single ones is audited.
    """
    if claim is None:
        return (), None
    from auditor.theory.accountant import epsilon, replace_one
    from auditor.theory.promises import claims as everything

    at = claim.delta if isinstance(claim, options.StatedClaim) else delta
    claims = everything(claim, delta=at)
    claim = options.of_group(claim, group)
    stated = claims[0] if group == 1 else everything(claim, delta=at)[0]
    if isinstance(split, options.BernoulliSplit):
        return claims, stated
    if not isinstance(claim, options.StatedClaim):
        # Its own replace-one epsilon, at the same delta, says more than a conversion, where there is one.
        own = epsilon(claim, delta=at, adjacency=options.Adjacency.REPLACE_ONE)
        if own.value is not None:
            return claims, own
    return claims, replace_one(stated)


def _rates(fpr: Any) -> tuple[float, ...]:
    """Return distinct rates in (0, 1)."""
    if not isinstance(fpr, Iterable) or isinstance(fpr, str):
        raise InputError(f"fpr must be a sequence of rates such as (0.1, 0.01), got {fpr!r}.")
    return tuple(dict.fromkeys(validate.fraction("fpr", rate) for rate in fpr))


def _training_size(given: int | None, losses: Losses, members: options.Members) -> int:
    """Return the number of training records, by default that of the member losses."""
    if isinstance(members, options.Subset):
        if given is not None and given != members.of:
            raise InputError(
                f"training_size must be that of the subset, got {given} and a subset of {members.of} records; leave"
                " training_size out."
            )
        given = members.of
    if given is None:
        return losses.n_member
    size = validate.at_least("training_size", given, least=2)
    if size < losses.n_member:
        raise InputError(
            f"training_size must be at least the number of member losses, got {size} for {losses.n_member} members."
        )
    if isinstance(members, options.Census) and size != losses.n_member:
        raise InputError(
            f"a census scores every training record, but training_size is {size} and there are {losses.n_member} member"
            " losses; declare a sample, or leave training_size out."
        )
    return size


def _delta(given: float | None, claim: options.TrainingClaim | None, size: int) -> float:
    """Return delta: as given, a stated claim's, or 1/(n ln n), which Negoescu et al. 2024 use for n training records."""
    if given is not None:
        return validate.fraction("delta", given, zero=True)
    offered = options.delta_of(claim)
    if offered is not None:
        return offered
    n = validate.at_least("training_size", size, least=2)
    return 1.0 / (n * math.log(n))
