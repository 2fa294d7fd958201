"""The options of an audit, checked, and their meaning for these losses."""

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, get_args

import numpy as np

from auditor.core import options, validate
from auditor.core.errors import InputError
from auditor.core.facts import Released, all_attacks
from auditor.core.values import Claim, Floats, Losses
from auditor.records.features import Features, fingerprints
from auditor.records.labels import PersonsFound, default_units, per_person

_FAIR = 0.5
_RATES = 5  # at which a result that may be shared shows the true positive rate
_LARGEST = 20_000  # characters: a noise for each of thousands of steps is not kept
_NUMBERS = {"changes": True}  # an argument that changes a number, and can be kept as it is


@dataclass(frozen=True, eq=False)
class AuditOptions:
    """Options of an audit.

    These are the arguments of `auditor.audit`, the options of the command, and the keys of its table in a file of settings.

    A choice may be given by its name too, with its fields after a colon: ``split="bernoulli:0.3"``.

    Attributes:
        nonmember: Losses of the non-members, if ``losses`` holds the members alone.
        delta: Delta in [0, 1). By default the delta of a stated claim, otherwise 1/(n ln n) with n the training size.
        confidence: Confidence level of every interval, in (0, 1).
        looks: Number of looks at this claim or gate, in this audit and others like it, 1 or more: they share the
            error, so that all of them together hold at the confidence. A true claim that is judged every night at 95%
            is refuted within weeks.
        coverage: Scored part of the training records: ``sample`` (`Sample`: a random sample, the default),
            ``subset:50000`` (`Subset`: the same, from a training set of that size) or ``census`` (`Census`: all).
        split: Assignment of membership: ``unknown`` (`UnknownSplit`, the default: no verdict on a claim is possible),
            ``random`` or ``random:stratified`` (`RandomSplit`), ``bernoulli`` or ``bernoulli:0.3`` (`BernoulliSplit`), or
            ``propensity`` (`Propensity`, which needs features).
        claim: Claim about the training algorithm: `DPSGD` or `StatedClaim`.
        training_size: Number of training records, by default the number of member losses.
        threshold: Threshold rule of the certified bound: ``rank-grid`` (default), ``melded``, ``clopper-pearson``,
            ``fixed:VALUE`` or ``split``.
        fpr: False positive rates to report the true positive rate at.
        persons: One score per person (`OnePerPerson`: ``mean``, ``min`` or ``max``), the default if the losses name people and
            membership was decided by person, or `EachRecord` (``each``). Rows with one id have one score; ``each:scorings``
            declares that they are scorings of one training record.
        mixture: Also fit Gaussian mixtures, with up to this number of components: a number or `Mixture`.
        one_run_test: Test of the guesses about the training algorithm: by default `FDP` (``f-dp``) at a delta above 0,
            which judges a claim's whole curve, and `AnyGuesses` (``any-guesses``) at delta 0.
        features: The records' features, aligned with the losses: checks for a shift between the groups and for twins.
        reference: Losses of the same records under a model that was trained on neither group: a placebo audit.
        control: Losses of the same canaries under a model that was trained without noise, a positive control: if not even
            that training is refuted, the canaries tell nothing apart, and the verdict is ``inconclusive``.
        seed: Seed of all random numbers; the same seed gives the same result.
        model: A name for the model, shown in the report.
        strategy: Name shared by several audits of one way of training, such as ``DP, epsilon 10``; `auditor.compare` averages
            over them.
        utility: Performance of the model at its task, a `Utility`, a number or as in ``0.87:test accuracy``; `auditor.compare`
            compares it with the leakage.
        context: Declared context of the release, for a reviewer, a `Context` or a dictionary; no number depends on it, and nothing in it is
            inferred.
        top_records: Number of training records to name by id, the most exposed first, if they have ids and the losses
            separate the groups; ``data["top_records"]`` gives the reason if there are none. Ids are personal data: by default none is named,
            and at most 1,000 are.
        disclosure: Audience of the result. By default everybody: numbers have three significant digits, limits are rounded
            outward, and no view shows fewer than ten records; verdicts and gates go by these numbers. ``insiders``
            keeps every digit and finer views, from which a record of the audit can be recognised.
        source: Source of the losses, shown in the report.
        command: The command line, if there was one.
        progress: Called with (done, total) while mixtures are fitted.

    Raises:
        InputError: An option that cannot be used; the message names it and the reason.

    >>> AuditOptions(split="random:stratified", mixture=3).mixture
    Mixture(max_components=3)
    """

    _: KW_ONLY
    delta: float | None = field(default=None, metadata=_NUMBERS)
    confidence: float = field(default=0.95, metadata=_NUMBERS)
    looks: int = field(default=1, metadata=_NUMBERS)
    coverage: options.Coverage | str = field(default=options.Sample(), metadata=_NUMBERS)
    split: options.MembershipSplit | str = field(default=options.UnknownSplit(), metadata=_NUMBERS)
    claim: options.TrainingClaim | None = field(default=None, metadata=_NUMBERS)
    training_size: int | None = field(default=None, metadata=_NUMBERS)
    threshold: options.ThresholdRule | str = field(default=options.RankGrid(), metadata=_NUMBERS)
    fpr: Iterable[float] | str = (0.1, 0.01, 0.001)
    persons: options.Persons | str | None = field(default=None, metadata=_NUMBERS)
    mixture: options.Mixture | int | None = field(default=None, metadata=_NUMBERS)
    one_run_test: options.OneRunTest | str | None = field(default=None, metadata=_NUMBERS)
    features: Features | tuple[Any, Any] | None = None
    reference: Losses | None = None
    control: Losses | None = None
    seed: int = field(default=0, metadata=_NUMBERS)
    model: str | None = None
    strategy: str | None = None
    utility: options.Utility | float | str | None = None
    context: options.Context | Mapping[str, Any] | None = None
    top_records: int = 0
    disclosure: options.Disclosure | str = options.Disclosure.PUBLIC
    source: str | None = None
    command: str | None = None
    progress: Callable[[int, int], None] | None = None

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            optional = name in ("persons", "one_run_test")
            self._set(name, options.chosen(name, getattr(self, name), choices, optional=optional))
        if not isinstance(self.mixture, options.Mixture | None):
            self._set("mixture", options.Mixture(self.mixture))
        if isinstance(self.utility, str | float | int):
            self._set("utility", options.Utility.from_text(str(self.utility)))
        if isinstance(self.features, tuple | list):
            self._set("features", Features(*validate.pair("features", self.features)))
        if isinstance(self.context, Mapping):
            self._set("context", options.Context.from_table(self.context, named="context"))
        for name, kinds in _KINDS.items():
            validate.instance(name, getattr(self, name), kinds)
        self._set("fpr", _rates(self.fpr))
        for name in ("seed", "top_records"):
            self._set(name, validate.at_least(name, getattr(self, name), least=0))
        validate.top_records(self.top_records)
        self._set("disclosure", options.Disclosure.named(self.disclosure))
        if self.is_shared and len(tuple(self.fpr)) > _RATES:
            raise InputError(
                f"fpr must have at most {_RATES} rates in a result that may be shared, got {len(tuple(self.fpr))}: many rates show where"
                " single records lie; name fewer, or ask for a result for insiders (disclosure insiders)."
            )
        for name in ("model", "strategy"):
            validate.name(name, getattr(self, name))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property
    def is_shared(self) -> bool:
        """Whether the result may be shared, and so shows nothing that few records make."""
        return self.disclosure == options.Disclosure.PUBLIC

    def stored(self) -> dict[str, Any] | None:
        """Return the options that change a number as JSON holds them, or None if they are too long to be kept."""
        result = {name: options.stored(getattr(self, name)) for name in _CHANGING}
        result |= {"fpr": list(self.fpr), "disclosure": str(self.disclosure)}
        # Of these a result keeps nothing but that they were given: checks rest on them, no number does.
        result |= {name: getattr(self, name) is not None for name in ("features", "reference")}
        result |= {} if self.control is None else {"control": True}
        return result if len(json.dumps(result)) <= _LARGEST else None

    @classmethod
    def restored(cls, stored: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of `auditor.audit` that `stored` made JSON of.

        Raises:
            InputError: A stored value that is no argument.
        """
        return {
            name: options.restored(stored[name])
            for name in (*_CHANGING, "fpr", "disclosure")
            if name in stored
        }


_CHANGING = [item.name for item in fields(AuditOptions) if "changes" in item.metadata]
_CHOICES: dict[str, Mapping[str, Any]] = {
    "coverage": options.COVERAGES,
    "split": options.SPLITS,
    "threshold": options.THRESHOLDS,
    "persons": options.UNITS,
    "one_run_test": options.ONE_RUN_TESTS,
}
_KINDS: dict[str, tuple[type, ...]] = {
    "claim": (*get_args(options.TrainingClaim), type(None)),
    "mixture": (options.Mixture, type(None)),
    "features": (Features, type(None)),
    "reference": (Losses, type(None)),
    "control": (Losses, type(None)),
    "utility": (options.Utility, type(None)),
    "context": (options.Context, type(None)),
}


class Setting(AuditOptions):
    """The options of one audit with their defaults filled in."""

    delta: float
    coverage: options.Coverage
    split: options.MembershipSplit
    training_size: int
    threshold: options.ThresholdRule
    fpr: tuple[float, ...]
    persons: options.Persons
    mixture: options.Mixture | None
    one_run_test: options.OneRunTest | None
    utility: options.Utility | None
    context: options.Context | None

    @property
    def of_model(self) -> dict[str, Any]:
        """The options of a bound on the model itself: its delta, the confidence, and how the members were chosen."""
        return {"delta": self.delta, "confidence": self.confidence, "coverage": self.coverage}


@dataclass(frozen=True, eq=False)
class Inputs:
    """The losses of an audit and its options.

    Raises:
        InputError: Losses that these options cannot audit.
    """

    losses: Losses
    options: Any  # AuditOptions

    def __post_init__(self) -> None:
        self.losses.refuse_stopped()
        self._take_features()
        self._refuse_records()
        self._refuse_control()
        if isinstance(self.options.split, options.BernoulliSplit):
            from auditor.estimators.guesses import own_coins

            losses, split = own_coins(self.losses, self.options.split)
            object.__setattr__(self, "losses", losses)
            object.__setattr__(self, "options", replace(self.options, split=split))
        _ = self.setting

    def _take_features(self) -> None:
        """Keep the features of the split as those of the audit."""
        split, features = self.options.split, self.options.features
        if not isinstance(split, options.Propensity):
            return
        if (split.features is None) == (features is None):
            raise InputError(
                "features must be given once where split is auditor.Propensity: auditor.Propensity(features) with"
                f" auditor.Features of the audited records, got {'none' if features is None else 'two'}."
            )
        features = features if split.features is None else split.features
        validate.instance("features", features, (Features,))
        split = options.Propensity(overlap=split.overlap)
        object.__setattr__(self, "options", replace(self.options, features=features, split=split))

    def _refuse_records(self) -> None:
        """Refuse options about single records, or about the inside of a bin, if there are only counts of bins."""
        rule = None if isinstance(self.options.threshold, options.RankGrid) else self.options.threshold
        for name, value in (
            ("features", self.options.features),
            ("reference", self.options.reference),
            ("control", self.options.control),
            ("threshold", rule),
        ):
            if self.losses.bits is not None and value is not None:
                raise InputError(
                    f"{name} must be left out in the audit of a summary, which holds counts of bins and no single records, got"
                    f" {type(value).__name__}; audit the losses themselves."
                )

    def _refuse_control(self) -> None:
        """Refuse a positive control of an audit that judges no claim."""
        if self.options.control is None:
            return
        lacking = "claim" if self.options.claim is None else "split"
        if lacking == "claim" or isinstance(self.options.split, options.NO_CHANCE):
            raise InputError(
                f"{lacking} must be given with control, which shows whether the canaries could refute a claim, got"
                f" {getattr(self.options, lacking)}; a split is random or bernoulli."
            )

    @cached_property
    def by_record(self) -> Losses:
        """The losses record by record, with the fingerprints of their features if supplied."""
        features = self.options.features
        if features is None:
            return self.losses
        features.check_rows(self.losses)
        return replace(self.losses, fingerprint=fingerprints(features))

    @cached_property
    def units(self) -> PersonsFound:
        """The units of the audit: people or records as chosen; by default people, if records name them and were split by person."""
        if self.options.persons is None:
            return default_units(self.by_record)
        return per_person(self.by_record, choice=self.options.persons)

    def refuse_few(self) -> None:
        """Refuse a group of fewer than 10 records or people, but for insiders."""
        units = self.units
        sizes = units.losses.n_member, units.losses.n_nonmember
        people = units.persons if units.named else sizes
        for name, each in zip(("member losses", "nonmember losses"), map(min, sizes, people), strict=True):
            validate.enough_to_share(name, each, str(self.options.disclosure))

    def _refuse_odds(self) -> None:
        """Refuse odds of membership that the declared split does not have, or that a person's records do not share."""
        odds = self.by_record.inclusion
        if odds is None:
            return
        if isinstance(self.options.split, options.RandomSplit) and np.ptp(np.concatenate(odds)) > 0:
            raise InputError(
                f"split must be auditor.BernoulliSplit() where the records have an inclusion column of different odds, got {self.options.split}, which"
                " draws all alike; leave the column out if it means something else."
            )
        if isinstance(self.options.split, options.BernoulliSplit) and self.units.losses.inclusion is None:
            raise InputError(
                "inclusion must be the same for all records of a person or an id where they have one score, got different ones;"
                " it is the person or the id that has one coin."
            )

    @property
    def own_odds(self) -> Floats | None:
        """Log-odds of the membership of each unit, the members' first, if the declared coins are unequal; otherwise None."""
        odds = self.units.losses.inclusion
        if odds is None or not isinstance(self.options.split, options.BernoulliSplit):
            return None
        chance = np.concatenate(odds)
        return np.log(chance) - np.log1p(-chance) if np.ptp(chance) > 0 else None

    @cached_property
    def setting(self) -> "Setting":
        """The choices of the audit, with their defaults filled in."""
        if (self.units.combined or self.units.by_id.combined) and isinstance(
            self.options.coverage, options.Subset
        ):
            raise InputError(
                "coverage must be auditor.Sample or auditor.Census where a score stands for a person or several rows of an id, got"
                f" {self.options.coverage}; the number of these in the training set is not known."
            )
        self._refuse_odds()
        if self.own_odds is not None and not isinstance(self.options.coverage, options.Sample):
            raise InputError(
                f"coverage must be auditor.Sample() where records had odds of their own, got {self.options.coverage}: so many of them are"
                " kept that members and non-members are of one population, and those are no random part of the training set."
            )
        size = _training_size(self.options.training_size, self.by_record, self.options.coverage)
        filled_in = {
            "training_size": size,
            "delta": _delta(self.options.delta, self.options.claim, size),
            "confidence": validate.of_one_look(self.options.confidence, self.options.looks),
            "persons": self.units.choice,
        }
        return Setting(**{**vars(self.options), **filled_in})

    def described(self, audited: Losses) -> dict[str, Any]:
        """Return the audited data and the options, as the ``data`` of a result.

        Args:
            audited: The losses of the units, or of those that were kept.
        """
        units, setting = self.units, self.setting
        split, choice, own = setting.split, units.choice, units.losses.inclusion is not None
        people = isinstance(choice, options.OnePerPerson)
        inclusion = None
        if isinstance(split, options.BernoulliSplit) and not own:
            inclusion = _FAIR if split.inclusion is None else split.inclusion
        return {
            "model": setting.model,
            "strategy": setting.strategy,
            "utility": None if setting.utility is None else asdict(setting.utility),
            "context": None if setting.context is None else asdict(setting.context),
            "disclosure": str(setting.disclosure),
            "n_member": audited.n_member,
            "n_nonmember": audited.n_nonmember,
            "training_size": setting.training_size,
            "delta": setting.delta,
            "confidence": setting.confidence,
            "members": options.name_of(setting.coverage, options.COVERAGES),
            "split": options.name_of(split, options.SPLITS),
            "stratified": options.stratified(split),
            "inclusion": inclusion,
            "claim": None if setting.claim is None else setting.claim.in_words(),
            "scale": str(audited.scale),
            "saturated": list(audited.saturated),
            "history": list(audited.history),
            "attacks": all_attacks(audited.attacks),
            **({} if audited.released == Released() else {"released": asdict(audited.released)}),
            **validate.several_looks(setting.looks),
            # The unit of the audit, and the number of independent ones that the records are worth.
            "unit": "person" if people else "record",
            **({"combined": choice.by} if people else {}),
            "records": list(units.records),
            "persons": list(units.persons) if units.named else None,
            "effective": list(units.persons if units.combined else units.effective) if units.named else None,
            # Rows combined by id, and records left out.
            **({"rows": list(units.by_id.rows)} if units.by_id.combined else {}),
            **({"left_out": len(units.left_out)} if units.left_out else {}),
        }


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
    """Return distinct rates in (0, 1), also from a text with commas between them."""
    if isinstance(fpr, str | float):
        fpr = str(fpr).split(",")
    if not isinstance(fpr, Iterable):
        raise InputError(f"fpr must be a sequence of rates such as (0.1, 0.01), got {fpr!r}.")
    return tuple(dict.fromkeys(validate.fraction("fpr", rate) for rate in fpr))


def _training_size(value: int | None, losses: Losses, coverage: options.Coverage) -> int:
    """Return the number of training records, by default that of the member losses."""
    if isinstance(coverage, options.Subset):
        if value is not None and value != coverage.of:
            raise InputError(
                f"training_size must be that of the subset, got {value} and a subset of {coverage.of} records; leave"
                " training_size out."
            )
        value = coverage.of
    if value is None:
        return losses.n_member
    size = validate.at_least("training_size", value, least=2)
    if size < losses.n_member:
        raise InputError(
            f"training_size must be at least the number of member losses, got {size} for {losses.n_member} members."
        )
    if isinstance(coverage, options.Census) and size != losses.n_member:
        raise InputError(
            f"a census scores every training record, but training_size is {size} and there are {losses.n_member} member"
            " losses; declare a sample, or leave training_size out."
        )
    return size


def _delta(value: float | None, claim: options.TrainingClaim | None, size: int) -> float:
    """Return delta: as given, a stated claim's, or 1/(n ln n), which Negoescu et al. 2024 use for n training records."""
    if value is not None:
        return validate.fraction("delta", value, zero=True)
    offered = options.delta_of(claim)
    if offered is not None:
        return offered
    n = validate.at_least("training_size", size, least=2)
    return 1.0 / (n * math.log(n))
