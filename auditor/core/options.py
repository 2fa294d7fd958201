"""The choices that change a number, as values: what was declared, and which rule was asked for.

A choice is data; who computes with it is elsewhere. Each is checked when it is built.
"""

import datetime as dt
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from functools import cached_property, partial
from typing import Any, Self, TypedDict, Unpack, get_args

import numpy as np

from auditor.core import validate
from auditor.core.errors import InputError
from auditor.core.numbers import given, plain

# --- Between which training sets ---


class Named(StrEnum):
    """Choices by name; what is chosen is the last word of the class."""

    @classmethod
    def named(cls, name: object) -> Self:
        """Return the choice of this name.

        Raises:
            InputError: There is none of it.
        """
        what = re.findall("[A-Z][a-z]*", cls.__name__)[-1].lower()
        return cls(validate.known(what, name, [str(item) for item in cls]))


class Adjacency(Named):
    """Which two training sets count as neighbours.

    >>> Adjacency("replace-one") == "replace-one"
    True
    """

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"


class Disclosure(Named):
    """Who may read a result.

    ``PUBLIC`` results show nothing that few records make: see `auditor.results.disclosure`. ``INSIDERS`` results have every
    digit and every view, from which records of the audit can be recognised.
    """

    PUBLIC = "public"
    INSIDERS = "insiders"


class PrivacyUnit(Named):
    """What two neighbours differ in: one record, or all records of one person.

    >>> PrivacyUnit("person") == "person"
    True
    """

    RECORD = "record"
    PERSON = "person"

    def ending(self, records: int | None = None) -> str:
        """Return what a claim in words ends with: nothing for the usual unit."""
        if self is PrivacyUnit.RECORD:
            return ""
        some = "" if records == 1 else "s"
        return ", per person" + ("" if records is None else f" of up to {records:,} record{some}")


# --- A DP-SGD training run: what was done, not what follows from it ---


@dataclass(frozen=True)
class PoissonSampling:
    """Each step draws each record by an independent coin of probability ``sampling_rate``."""


@dataclass(frozen=True)
class FixedSizeSampling:
    """Each step draws a batch of fixed size, uniformly and without repetition; ``sampling_rate`` is its share.

    Every step draws anew: passes over shuffled records are `ShuffledBatches`. The size of the training set is then
    public, so such a run is accounted for replaced records only.
    """


@dataclass(frozen=True)
class ShuffledBatches:
    """Passes over records, shuffled or in a fixed order, cut into batches and accounted as if drawn by `PoissonSampling`.

    What is claimed is what was accounted, and nothing proves it: the true epsilon of such batches can be larger (Chua et
    al. 2024, How Private are DP-SGD Implementations?). So no number that follows is proven, and audits say so.
    """


Sampling = PoissonSampling | FixedSizeSampling | ShuffledBatches
SAMPLERS: dict[str, type[Sampling]] = {
    "poisson": PoissonSampling,
    "fixed-size": FixedSizeSampling,
    "shuffled": ShuffledBatches,
}
_SAMPLED_IN_WORDS = {
    FixedSizeSampling: ", batches of a fixed size",
    ShuffledBatches: ", shuffled batches accounted as Poisson-sampled ones",
}


@dataclass(frozen=True)
class Phase:
    """Steps of equal noise and sampling rate, wherever they stand in the run.

    Attributes:
        noise_multiplier: As in `DPSGD`.
        sampling_rate: As in `DPSGD`.
        steps: How many.
    """

    noise_multiplier: float
    sampling_rate: float
    steps: int


@dataclass(frozen=True)
class DPSGD:
    """DP-SGD: ``steps`` times the sum of clipped gradients of a random batch, plus N(0, (noise_multiplier x clip)^2).

    One number holds for all steps; a vector gives each step its own, and ``steps`` may then be left out. The vectors
    must have been fixed before training: noise that was chosen by what earlier steps gave has no such accounting.

    Attributes:
        noise_multiplier: Noise standard deviation over the clipping norm, above 0; a number or one for each step.
        sampling_rate: Probability that a record enters a step, in (0, 1]; a number or one for each step.
        steps: Number of steps, 1 or more.
        clipping_norm: Largest Euclidean norm of one record's gradient, above 0; a number or one for each step. What is
            promised to records does not depend on it, since the noise is a multiple of it.
        sampling: `PoissonSampling` (default), `FixedSizeSampling` or `ShuffledBatches`.
        unit: ``"record"`` (default), or ``"person"`` where the clipped gradient is that of all records of a person.
        records_per_person: With ``unit="person"``, for a run that clips each record: the largest number of records of a
            person, for whom its promise is converted (group privacy).

    Raises:
        InputError: A parameter out of range, vectors of different lengths, no number of steps, or an unknown unit.

    Source: Abadi et al. 2016; Mahloujifar et al. 2022, Algorithm 1, for the vectors.

    >>> DPSGD(noise_multiplier=1.1, sampling_rate=0.004, steps=14040).in_words()
    'DP-SGD with noise multiplier 1.1, sampling rate 0.004 and 14,040 steps'
    >>> DPSGD([1.0, 1.0, 2.0], 0.01).phases
    (Phase(noise_multiplier=1.0, sampling_rate=0.01, steps=2), Phase(noise_multiplier=2.0, sampling_rate=0.01, steps=1))
    """

    # Float or tuple of floats once built; anything number-like or a sequence of it goes in.
    noise_multiplier: Any
    sampling_rate: Any
    steps: Any = None  # an int once built
    clipping_norm: Any = 1.0
    sampling: Sampling = PoissonSampling()
    unit: PrivacyUnit = PrivacyUnit.RECORD
    records_per_person: int | None = None

    def __post_init__(self) -> None:
        columns = {name: _column(name, getattr(self, name)) for name in _CHECKS}
        steps = None if self.steps is None else validate.at_least("steps", self.steps, least=1)
        lengths = {name: len(column) for name, column in columns.items() if isinstance(column, tuple)}
        if steps is None and not lengths:
            raise InputError("steps must be given where every step has the same parameters, got none.")
        counted = lengths if steps is None else {**lengths, "steps": steps}
        if len(set(counted.values())) > 1:
            verbs = {"steps": "is"}
            listed = ", ".join(f"{name} {verbs.get(name, 'has')} {n}" for name, n in counted.items())
            raise InputError(f"vectors must have one number for each step: {listed}.")
        object.__setattr__(self, "steps", next(iter(counted.values())))
        for name, column in columns.items():
            constant = isinstance(column, tuple) and len(set(column)) == 1
            object.__setattr__(self, name, column[0] if constant else column)
        validate.instance("sampling", self.sampling, get_args(Sampling))
        _set_unit(self)

    @classmethod
    def from_opacus(
        cls,
        engine: Any,
        *,
        data_loader: Any = None,
        sampling: Sampling | None = None,
        clipping_norm: Any = 1.0,
        unit: PrivacyUnit | str = PrivacyUnit.RECORD,
    ) -> "DPSGD":
        """Return the run that the accountant of an Opacus engine recorded.

        Args:
            engine: The `PrivacyEngine` after training, or any of its accountants.
            data_loader: The loader that the batches came from; its batch sampler shows how they were drawn. It is
                `ShuffledBatches` where ``make_private`` was told ``poisson_sampling=False``, which the engine does not keep.
            sampling: How batches were drawn, in place of a loader. Without both it is `PoissonSampling`, the default of
                ``make_private``.
            clipping_norm: As in `DPSGD`; the accountant does not know it.
            unit: As in `DPSGD`.

        Raises:
            InputError: No engine or accountant, one that has not seen a step, or a loader that does not show its batches.

        >>> from types import SimpleNamespace
        >>> accountant = SimpleNamespace(history=[(1.0, 0.01, 900), (2.0, 0.01, 100)])
        >>> DPSGD.from_opacus(accountant).in_words()
        'DP-SGD with noise multiplier 1 to 2 (by step), sampling rate 0.01 and 1,000 steps'
        """
        history = getattr(getattr(engine, "accountant", engine), "history", None)
        if not isinstance(history, list):
            raise InputError(
                f"engine must be the PrivacyEngine of the training or its accountant, got {type(engine).__name__}."
            )
        if not history:
            raise InputError("engine must have seen at least 1 step, got none; call this after training.")
        if data_loader is not None:
            if sampling is not None:
                raise InputError("sampling is what data_loader shows, got both; leave one of them out.")
            sampling = _sampling_of(data_loader)
        drawn = sampling or PoissonSampling()
        return cls(
            *_by_step(history), clipping_norm=clipping_norm, sampling=drawn, unit=PrivacyUnit.named(unit)
        )

    @classmethod
    def from_events(
        cls, event: Any, *, sampling: Sampling | None = None, unit: PrivacyUnit | str = PrivacyUnit.RECORD
    ) -> "DPSGD":
        """Return the run that a dp_accounting event describes.

        Read are `GaussianDpEvent`, alone or in a `PoissonSampledDpEvent`, and what `SelfComposedDpEvent` and
        `ComposedDpEvent` make of them. Several Gaussians on one sample are one with less noise. A matrix mechanism is read
        where its event is made of these. Every other event is refused by its name: DP-FTRL's
        `SingleEpochTreeAggregationDpEvent` too, with the mu to claim instead.

        Args:
            event: The event.
            sampling: How batches were really drawn, where the event only assumes coins: `ShuffledBatches`.
            unit: As in `DPSGD`.

        Raises:
            InputError: An event that is no DP-SGD, of no steps, or of nested samples.

        Source: the events' docstrings; Kairouz et al. 2021, Appendix D, for the tree.

        >>> from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
        >>> step = PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0))
        >>> DPSGD.from_events(SelfComposedDpEvent(step, 1000))
        DPSGD(noise_multiplier=1.0, sampling_rate=0.01, steps=1000, clipping_norm=1.0, sampling=PoissonSampling(), unit=<PrivacyUnit.RECORD: 'record'>, records_per_person=None)
        """
        rows = list(_steps_of(event))
        if not rows:
            raise InputError("event must have at least 1 step, got none.")
        return cls(*_by_step(rows), sampling=sampling or PoissonSampling(), unit=PrivacyUnit.named(unit))

    @classmethod
    def from_tensorflow_privacy(
        cls,
        *,
        number_of_examples: int,
        batch_size: int,
        noise_multiplier: float,
        epochs: float,
        used_microbatching: bool = False,
        sampling: Sampling = ShuffledBatches(),
        unit: PrivacyUnit | str = PrivacyUnit.RECORD,
    ) -> "DPSGD":
        """Return the run that TensorFlow Privacy's ``compute_dp_sgd_privacy`` accounts for these arguments.

        Its sampling rate is the batch size over the number of examples, and its number of steps is rounded up. Keras
        passes over shuffled records, so its privacy statement calls this epsilon "assuming Poisson sampling".

        Args:
            number_of_examples: Training records.
            batch_size: Records in a batch, whatever the microbatches.
            noise_multiplier: As in `DPSGD`.
            epochs: Passes over the records, above 0; fractions count.
            used_microbatching: Whether several records share one clipped gradient, which halves the noise multiplier, as
                in ``compute_dp_sgd_privacy_statement`` (whose default this is; ``compute_dp_sgd_privacy`` ignores it).
            sampling: How batches were drawn: `ShuffledBatches` (default), or `PoissonSampling` if a pipeline sees to it.
            unit: As in `DPSGD`.

        Raises:
            InputError: A number out of range, or a batch of more records than there are.

        >>> mnist = {"number_of_examples": 60_000, "batch_size": 250, "noise_multiplier": 1.3, "epochs": 15}
        >>> DPSGD.from_tensorflow_privacy(**mnist).steps
        3600
        """
        records = validate.at_least("number_of_examples", number_of_examples, least=1)
        batch = validate.at_least("batch_size", batch_size, least=1)
        if batch > records:
            raise InputError(f"batch_size must be at most number_of_examples ({records:,}), got {batch:,}.")
        noise = validate.positive("noise_multiplier", noise_multiplier) / (2 if used_microbatching else 1)
        steps = math.ceil(validate.positive("epochs", epochs) * records / batch)
        return cls(noise, batch / records, steps, sampling=sampling, unit=PrivacyUnit.named(unit))

    @property
    def constant(self) -> bool:
        """Whether every step has the same noise multiplier and sampling rate."""
        return not isinstance(self.noise_multiplier, tuple) and not isinstance(self.sampling_rate, tuple)

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """The steps, gathered by noise multiplier and sampling rate: their order changes no promise."""
        if self.constant:
            return (Phase(self.noise_multiplier, self.sampling_rate, self.steps),)
        columns = self.noise_multiplier, self.sampling_rate
        pairs = np.stack([np.broadcast_to(column, (self.steps,)) for column in columns])
        kinds, counts = np.unique(pairs, axis=1, return_counts=True)
        return tuple(map(Phase, *kinds.tolist(), counts.tolist()))

    @property
    def sampled(self) -> bool:
        """Whether any step leaves records out."""
        return any(phase.sampling_rate < 1 for phase in self.phases)

    @property
    def fixed_size(self) -> bool:
        """Whether batches have a fixed size."""
        return isinstance(self.sampling, FixedSizeSampling)

    @property
    def shuffled(self) -> bool:
        """Whether batches were accounted as something else than they are, so that nothing is proven."""
        return isinstance(self.sampling, ShuffledBatches) and self.sampled

    def in_words(self) -> str:
        """Return the description as a phrase."""
        return (
            f"DP-SGD with noise multiplier {_range(self.noise_multiplier)}, sampling rate {_range(self.sampling_rate)}"
            f" and {self.steps:,} {'step' if self.steps == 1 else 'steps'}"
            + _SAMPLED_IN_WORDS.get(type(self.sampling), "")
            + self.unit.ending(self.records_per_person)
        )


_CHECKS: dict[str, Callable[[str, object], float]] = {
    "noise_multiplier": validate.positive,
    "sampling_rate": partial(validate.fraction, one=True),
    "clipping_norm": validate.positive,
}


def _column(name: str, values: Any) -> Any:
    """Return one checked number, or a tuple of them."""
    check = _CHECKS.get(name, validate.positive)
    if isinstance(values, np.ndarray):
        values = values.tolist()  # a number, if the array has no axis
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        return check(name, values)
    listed = list(values)
    if not listed:
        raise InputError(f"{name} must have one number for each step, got an empty vector.")
    if len(listed) == 1:
        return (check(name, listed[0]),)
    return tuple(check(f"{name} of step {place}", value) for place, value in enumerate(listed, start=1))


def _range(value: Any) -> str:
    by_step = isinstance(value, tuple)
    return f"{given(min(value))} to {given(max(value))} (by step)" if by_step else given(value)


# --- What other libraries recorded of a run ---


def _by_step(rows: Sequence[Sequence[Any]]) -> tuple[Any, Any, int]:
    """Return noise multipliers, sampling rates and the number of steps, from rows of (noise, rate, steps, ...)."""
    steps = [validate.at_least("steps", row[2], least=1) for row in rows]
    if len(rows) == 1:
        return rows[0][0], rows[0][1], steps[0]
    noise, rate = (
        np.repeat([validate.number(name, row[place]) for row in rows], steps)
        for place, name in enumerate(("noise_multiplier", "sampling_rate"))
    )
    return noise, rate, sum(steps)


def _sampling_of(data_loader: Any) -> Sampling:
    """Return how a PyTorch loader draws its batches: by coins if any of its samplers has a rate."""
    sampler = getattr(data_loader, "batch_sampler", None)
    if sampler is None:
        raise InputError(
            f"data_loader must be a loader with a batch_sampler, got {type(data_loader).__name__}; give sampling instead."
        )
    while sampler is not None:
        if hasattr(sampler, "sample_rate"):
            return PoissonSampling()
        # Opacus' BatchMemoryManager splits the batches of another one.
        sampler = getattr(sampler, "sampler", None)
    return ShuffledBatches()


def _steps_of(event: Any) -> Iterator[tuple[float, float, int]]:
    """Yield noise multiplier, sampling rate and number of the steps of an event, known by its class's name."""
    kind = type(event).__name__
    if kind == "GaussianDpEvent":
        yield validate.positive("noise_multiplier of GaussianDpEvent", event.noise_multiplier), 1.0, 1
    elif kind == "SelfComposedDpEvent":
        for noise, rate, steps in _steps_of(event.event) if event.count else ():
            yield noise, rate, steps * event.count
    elif kind == "ComposedDpEvent":
        for part in event.events:
            yield from _steps_of(part)
    elif kind == "PoissonSampledDpEvent":
        inner = list(_steps_of(event.event))
        if any(rate < 1 for _, rate, _ in inner):
            raise InputError(f"event must not draw a sample of a sample, got a {kind} in another.")
        if inner:
            once = sum(steps for *_, steps in inner) == 1
            noise = inner[0][0] if once else 1 / math.hypot(*(math.sqrt(n) / noise for noise, _, n in inner))
            yield noise, event.sampling_probability, 1
    elif kind != "NoOpDpEvent":
        fix = _instead(event, kind)
        raise InputError(f"event must be made of Poisson-sampled Gaussian steps, got {kind}; {fix}.")


def _instead(event: Any, kind: str) -> str:
    """How to claim what is read from no event, a clause."""
    if kind == "SampledWithoutReplacementDpEvent":
        return (
            "its accountants take the noise over how far a replaced record moves a sum, two clipping norms at most:"
            " describe it by DPSGD(..., sampling=FixedSizeSampling()), whose noise multiplier is over one"
        )
    if kind == "SingleEpochTreeAggregationDpEvent":  # each record is in one node of every level of one tree
        depth = math.ceil(math.log2(int(np.max(event.step_counts)) + 1))
        mu = math.sqrt(depth) / validate.positive(f"noise_multiplier of {kind}", event.noise_multiplier)
        return f"one such tree of DP-FTRL is claimed by StatedClaim.from_mu({mu:.6g}), for a record that is left empty"
    if kind == "ZCDpEvent" and event.xi == 0:
        return f"claim it by StatedClaim.from_rho({event.rho:g})"
    return "claim what its accountant promises by StatedClaim.from_points"


# --- Which members were scored -------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """The scored members are a random sample of the training set (or stand for a wider one).

    The member loss distribution is then estimated, and its uncertainty is part of every bound.
    """


@dataclass(frozen=True)
class Census:
    """Every training record was scored, so the member loss distribution is known exactly.

    Bounds then compare this finite training set with the population: they can be positive without any leakage.
    """


@dataclass(frozen=True)
class Subset:
    """The scored members were drawn at random, without repetition, from a training set of ``of`` records.

    Bounds then speak of that training set, as in a `Census`, with hypergeometric limits in place of binomial ones; a
    miss rate below one training record counts as one record. Intervals without a form for it treat it as a `Sample`.

    >>> Subset(of=50_000)
    Subset(of=50000)
    """

    of: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", validate.at_least("of", self.of, least=2))


Coverage = Sample | Census | Subset


# --- How membership was decided ------------------------------------------------------------------


@dataclass(frozen=True)
class UnknownSplit:
    """Nothing is declared about how membership was decided: no statement about the mechanism."""


@dataclass(frozen=True)
class RandomSplit:
    """A uniformly random split into members and non-members of fixed sizes (a shuffled ``train_test_split``).

    Given an unordered pair of one member and one non-member, which of them is the member is a fair coin:
    the replace-one adjacency. Not for splits by time, by source, after deduplication across the split, or for a
    hold-out that was used for early stopping.

    A stratified split fixes the numbers in each stratum, which ties the coins of different strata together: say
    ``stratified=True`` and give the strata as the ``group`` of the losses; pairs are then drawn within strata.

    >>> RandomSplit(stratified=True)
    RandomSplit(stratified=True)
    """

    stratified: bool = False

    def __post_init__(self) -> None:
        validate.instance("stratified", self.stratified, (bool,))


@dataclass(frozen=True)
class BernoulliSplit:
    """Each record was included by an independent coin of probability ``inclusion`` (for example a salted hash).

    The add/remove adjacency. ``inclusion`` lies in (0, 1): one number for all records, or a pair of columns (members,
    non-members) aligned with the losses where records had odds of their own, as by Poisson sampling within strata; null
    for the ``inclusion`` of the losses, or fair coins where they have none. Strata of fixed sizes, draws without
    replacement and bootstraps are no independent coins. Score every record that had a coin, or a sample of them drawn
    without looking at membership: a balanced sample of unbalanced coins has other odds.

    >>> BernoulliSplit(([0.2, 0.5], [0.5, 0.2, 0.2]))
    BernoulliSplit(inclusion=((0.2, 0.5), (0.5, 0.2, 0.2)))
    """

    inclusion: float | tuple[Sequence[float], Sequence[float]] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.inclusion, tuple | list):
            sides = zip(("member", "non-member"), validate.pair("inclusion", self.inclusion), strict=True)
            columns = (validate.coin_column(f"{side} inclusion", column) for side, column in sides)
            object.__setattr__(self, "inclusion", tuple(tuple(column.tolist()) for column in columns))
        elif self.inclusion is not None:
            validate.fraction("inclusion", self.inclusion)


@dataclass(frozen=True)
class Propensity:
    """Nobody decided by chance who was a member: a classifier of the features estimates each record's odds of it.

    The features must hold all that the score uses of a record, its label too. A random half of the records is learnt from,
    the other is audited where the estimated odds lie between ``overlap`` and 1 - ``overlap``, which is in (0, 0.5). The bound
    holds if the estimated odds are right, which no audit can check: it refutes no claim.

    ``features`` may be given here or to `auditor.audit`.

    >>> Propensity(overlap=0.2)
    Propensity(overlap=0.2)
    """

    features: Any = field(default=None, repr=False)
    overlap: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < validate.number("overlap", self.overlap) < 0.5:  # noqa: PLR2004
            raise InputError(f"overlap must lie in (0, 0.5), got {self.overlap:g}.")


MembershipSplit = UnknownSplit | RandomSplit | BernoulliSplit | Propensity


def stratified(split: MembershipSplit) -> bool:
    """Return whether a random split was stratified."""
    return isinstance(split, RandomSplit) and split.stratified


NO_CHANCE = (UnknownSplit, Propensity)
"""Splits of which it is not declared that chance decided: nothing of them refutes a claim on the training algorithm."""


@dataclass(frozen=True)
class IndependentRuns:
    """Several models were trained apart, so that the pairs (or the coins) of all of them are one audit together.

    It declares that the split of each model was drawn anew and independently of all others, and of all other records;
    that no two training runs shared a seed or any other randomness, none was started from another's weights, and none was
    kept or left out for what came of it; and that pairs are drawn anew in each. The same records may occur in several.
    It is not so for the folds of a cross-validation, nor for a split and its complement: there each record's coin decides
    about several models.
    """


# --- How two counts become a bound on a ratio of rates ---------------------------------------------


@dataclass(frozen=True)
class ClopperPearson:
    """One exact limit for each of the two rates (Clopper and Pearson 1934), half of the error each."""


@dataclass(frozen=True)
class Melded:
    """One exact limit for the ratio of the two rates: never below what two limits give, and usually well above.

    At a threshold of fixed rank, the error rate of the ranked group has a known law, so that the hits of the other
    group can be tested against it directly [own]; the construction is that of Fay, Proschan and Brittain 2015.
    """


@dataclass(frozen=True)
class Katz:
    """Large-sample limits of the log of the ratio (Katz et al. 1978): APPROXIMATE, they can promise too much."""


@dataclass(frozen=True)
class Jeffreys:
    """Limits from Jeffreys' prior on each of the two rates: APPROXIMATE, they can promise too much."""


@dataclass(frozen=True)
class Calibrated:
    """Every rank of both tails at once, calibrated together: the largest epsilon that the whole of the scores refutes.

    The statistic is the largest melded bound of one rank, and its law the least favourable one at any confidence, by exact sums
    or by drawn audits whose error is counted in full. The bound is not below that of `Melded`, which takes its place for a `Subset`
    at an error below .01.

    See `auditor.estimators.exact_test`.
    """


_RankInterval = Calibrated | ClopperPearson | Melded
ThresholdInterval = ClopperPearson | Katz | Jeffreys


# --- How a certified bound picks its threshold ----------------------------------------------------


@dataclass(frozen=True)
class RankGrid:
    """Thresholds at order statistics whose ranks are fixed before the data are seen.

    `Calibrated`, the default, looks at ranks 3% apart, the others at {0} and round(1.5^j) < n/2.

    ``tails`` is ``"both"``, ``"lower"`` (members are those with low loss) or ``"upper"`` (non-members are those
    with high loss); both tails share the error probability. ``interval`` is `Calibrated`, `ClopperPearson` or `Melded`.

    >>> RankGrid("lower", interval=Melded())
    RankGrid(tails='lower', interval=Melded())
    """

    tails: str = "both"
    interval: _RankInterval = Calibrated()

    def __post_init__(self) -> None:
        validate.known("tails", self.tails, ("both", "lower", "upper"))
        validate.instance("interval", self.interval, get_args(_RankInterval))


@dataclass(frozen=True)
class FixedThreshold:
    """A threshold chosen without looking at these losses: "member" if loss <= ``threshold``.

    ``interval`` is `ClopperPearson`, or one of the approximate `Katz` and `Jeffreys`.

    >>> FixedThreshold(0.7).threshold
    0.7
    """

    threshold: float
    interval: ThresholdInterval = ClopperPearson()

    def __post_init__(self) -> None:
        validate.number("threshold", self.threshold)
        validate.instance("interval", self.interval, get_args(ThresholdInterval))


@dataclass(frozen=True)
class Split:
    """The threshold is chosen on a random ``fraction`` of each group and judged on the rest.

    >>> Split(0.5, seed=0)
    Split(fraction=0.5, seed=0)
    """

    fraction: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        validate.fraction("fraction", self.fraction)
        validate.at_least("seed", self.seed, least=0)


ThresholdRule = RankGrid | FixedThreshold | Split


# --- What counts as one unit ----------------------------------------------------------------------


class Rows(Named):
    """What several rows of one id are.

    >>> Rows("scorings") == "scorings"
    True
    """

    RECORDS = "records"  # each was a training record, or nobody says: a claim is judged for groups of so many
    SCORINGS = "scorings"  # of one training record: a claim is judged as it is


@dataclass(frozen=True)
class _Units:
    """How several rows become one score.

    Attributes:
        by: ``mean`` (default), ``min`` or ``max`` of their losses.
        rows: ``"records"`` (default) where each of the rows of an id was a training record, or it is not known;
            ``"scorings"`` where all of them are scorings of one training record, such as repeated queries.
    """

    by: str = "mean"
    rows: Rows = Rows.RECORDS

    def __post_init__(self) -> None:
        validate.known("by", self.by, ("min", "mean", "max"))
        object.__setattr__(self, "rows", Rows.named(self.rows))


@dataclass(frozen=True)
class EachRecord(_Units):
    """Every record is a unit of its own, also where a person has several; the rows of one id become one score.

    A claim for single records is judged in its form for groups of as many rows as an id has at most, unless ``rows`` says
    that they are scorings of one training record.

    >>> EachRecord(rows="scorings").by
    'mean'
    """


@dataclass(frozen=True)
class OnePerPerson(_Units):
    """The records of one data subject become one score: the ``by`` (``min``, ``mean`` or ``max``) of their losses.

    Records of one person are not independent, and privacy is promised to persons: intervals then count persons. People who
    have records in both groups, though membership was decided by person, are left out.

    >>> OnePerPerson("min").by
    'min'
    """


Persons = EachRecord | OnePerPerson


# --- Which family is fitted -----------------------------------------------------------------------


@dataclass(frozen=True)
class Mixture:
    """Gaussian mixtures of 1 to ``max_components`` components; the smallest number that is not rejected is taken.

    >>> Mixture(max_components=5)
    Mixture(max_components=5)
    """

    max_components: int = 20

    def __post_init__(self) -> None:
        components = validate.at_least("max_components", self.max_components, least=1)
        object.__setattr__(self, "max_components", components)


# --- How the guesses of a one-run audit are judged -------------------------------------------------


@dataclass(frozen=True)
class Steinke:
    """Steinke, Nasr and Jagielski 2023, Theorem 5.2, on a fixed list of orders and numbers of guesses that share the error."""


@dataclass(frozen=True)
class FDP:
    """The recursion of Mahloujifar, Melis and Chaudhuri 2024, on the same list; it also judges a claim's whole curve."""


@dataclass(frozen=True)
class AnyGuesses:
    """Every order and number of guesses of the list, calibrated together; delta 0 only [own].

    It judges no claim with a delta: for one leave the test out, or take `FDP`.
    """


OneRunTest = Steinke | FDP | AnyGuesses


# --- What is claimed -----------------------------------------------------------------------------


class _About(TypedDict, total=False):
    """What else a stated curve has, as in `StatedCurve`; a choice goes in by its name too."""

    adjacency: Any
    unit: Any
    records_per_person: int | None


@dataclass(frozen=True)
class StatedClaim:
    """A claim taken at its word: the training algorithm is (epsilon, delta)-DP for the named adjacency.

    Attributes:
        epsilon: In nats, 0 or more.
        delta: In [0, 1).
        adjacency: ``"add-remove"`` (default) or ``"replace-one"``.
        unit: ``"record"`` (default) or ``"person"``: what two neighbours differ in.
        records_per_person: With ``unit="person"``: the claim is made for records, and converted for people with at most so
            many (group privacy). A replace-one claim is converted for people with exactly so many.

    Raises:
        InputError: A number out of range, an unknown adjacency or unit, or no delta.

    >>> StatedClaim(epsilon=2.0, delta=1e-5).in_words()
    'epsilon 2 at delta 1e-5, add-remove'
    """

    epsilon: float
    delta: float = math.nan  # never a default value: a claim without its delta is refused below
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    unit: PrivacyUnit = PrivacyUnit.RECORD
    records_per_person: int | None = None

    @staticmethod
    def from_mu(mu: float, **about: Unpack[_About]) -> "StatedCurve":
        """Return the claim of mu-Gaussian differential privacy: no test does better than one of N(0, 1) against N(mu, 1).

        Args:
            mu: Above 0.
            adjacency: As in `StatedClaim`.
            unit: As there.
            records_per_person: As there.

        Raises:
            InputError: mu is not above 0, or an unknown adjacency or unit.

        Source: Dong, Roth and Su 2022, Definition 2.6.

        >>> StatedClaim.from_mu(1.0).in_words()
        'Gaussian differential privacy with mu 1, add-remove'
        """
        return StatedCurve(mu=mu, **about)

    @staticmethod
    def from_rho(rho: float, **about: Unpack[_About]) -> "StatedCurve":
        """Return the claim of rho-zero-concentrated differential privacy: Renyi divergences of at most rho times order.

        Args:
            rho: Above 0.
            adjacency: As in `StatedClaim`.
            unit: As there.
            records_per_person: As there.

        Raises:
            InputError: rho is not above 0, or an unknown adjacency or unit.

        Source: Bun and Steinke 2016, Definition 1.1.

        >>> StatedClaim.from_rho(0.5, unit="person").in_words()
        'zero-concentrated differential privacy with rho 0.5, add-remove, per person'
        """
        return StatedCurve(rho=rho, **about)

    @staticmethod
    def from_points(points: Iterable[tuple[float, float]], **about: Unpack[_About]) -> "StatedCurve":
        """Return the claim of several (epsilon, delta) at once: points of one privacy profile.

        Args:
            points: Pairs of epsilon (nats, 0 or more) and delta (in [0, 1)), one or more. An audit for which no delta was
                given is stated at that of the first.
            adjacency: As in `StatedClaim`.
            unit: As there.
            records_per_person: As there.

        Raises:
            InputError: No points, points that are no pairs, a number out of range, or an unknown adjacency or unit.

        >>> StatedClaim.from_points([(0.5, 1e-3), (2.0, 1e-6)]).in_words()
        'epsilon 0.5 at delta 0.001 and epsilon 2 at delta 1e-6, add-remove'
        """
        return StatedCurve(points=points, **about)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", validate.nonnegative("claimed epsilon", self.epsilon))
        if isinstance(self.delta, float) and math.isnan(self.delta):
            raise InputError(
                f"a claimed epsilon needs its delta, got epsilon {self.epsilon:g} alone;"
                " state the delta too (0 for pure differential privacy)."
            )
        object.__setattr__(self, "delta", validate.fraction("claimed delta", self.delta, zero=True))
        object.__setattr__(self, "adjacency", Adjacency.named(self.adjacency))
        _set_unit(self)

    def in_words(self) -> str:
        """Return the claim as a phrase."""
        ending = self.unit.ending(self.records_per_person)
        return f"{_point_in_words(self.epsilon, self.delta)}, {self.adjacency}{ending}"


@dataclass(frozen=True)
class StatedCurve:
    """A whole curve of (epsilon, delta) taken at its word; `StatedClaim` makes them.

    Its epsilon is asked for at a delta, as that of `DPSGD` is.

    Attributes:
        mu: Of Gaussian differential privacy, above 0, or null.
        rho: Of zero-concentrated differential privacy, above 0, or null.
        points: Pairs (epsilon, delta), or none. Exactly one of the three is given.
        adjacency: ``"add-remove"`` (default) or ``"replace-one"``.
        unit: ``"record"`` (default) or ``"person"``.
        records_per_person: As in `StatedClaim`.

    Raises:
        InputError: None or several of the three, a number out of range, or an unknown adjacency or unit.
    """

    mu: float | None = None
    rho: float | None = None
    points: Any = ()  # a tuple of pairs once built
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    unit: PrivacyUnit = PrivacyUnit.RECORD
    records_per_person: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", _points(self.points))
        stated = [name for name in ("mu", "rho") if getattr(self, name) is not None]
        for name in stated:
            object.__setattr__(self, name, validate.positive(f"claimed {name}", getattr(self, name)))
        if len(stated) + bool(self.points) != 1:
            said = " and ".join([*stated, "points"] if self.points else stated) or "none"
            raise InputError(f"a claimed curve is one of mu, rho and points, got {said}.")
        object.__setattr__(self, "adjacency", Adjacency.named(self.adjacency))
        _set_unit(self)

    @property
    def delta(self) -> float | None:
        """The delta to state epsilon at where none is given: that of the first point; null for mu and rho."""
        return self.points[0][1] if self.points else None

    def in_words(self) -> str:
        """Return the claim as a phrase."""
        if self.mu is not None:
            said = f"Gaussian differential privacy with mu {given(self.mu)}"
        elif self.rho is not None:
            said = f"zero-concentrated differential privacy with rho {given(self.rho)}"
        elif len(self.points) <= _POINTS_IN_WORDS:
            said = " and ".join(_point_in_words(*point) for point in self.points)
        else:
            first, last = (_point_in_words(*self.points[place]) for place in (0, -1))
            said = f"{len(self.points):,} points from {first} to {last}"
        return f"{said}, {self.adjacency}{self.unit.ending(self.records_per_person)}"


_POINTS_IN_WORDS = 3


def _points(points: Any) -> tuple[tuple[float, float], ...]:
    """Return checked pairs of epsilon and delta."""
    try:
        pairs = [(epsilon, delta) for epsilon, delta in points]
    except (TypeError, ValueError):
        raise InputError(f"claimed points must be pairs (epsilon, delta), got {points!r:.80}.") from None
    return tuple(
        (
            validate.nonnegative(f"claimed epsilon of point {place}", epsilon),
            validate.fraction(f"claimed delta of point {place}", delta, zero=True),
        )
        for place, (epsilon, delta) in enumerate(pairs, start=1)
    )


def _point_in_words(epsilon: float, delta: float) -> str:
    return f"epsilon {given(epsilon)} at delta {given(delta)}"


TrainingClaim = DPSGD | StatedClaim | StatedCurve


def for_persons(claim: TrainingClaim | None) -> bool:
    """Return whether a claim is made for persons, so that a bound about all records of one can judge it."""
    return claim is not None and claim.unit is PrivacyUnit.PERSON


def _set_unit(claim: Any) -> None:
    """Check the unit of a claim, and the number of records that it is converted for."""
    object.__setattr__(claim, "unit", PrivacyUnit.named(claim.unit))
    if claim.records_per_person is None:
        return
    records = validate.at_least("records_per_person", claim.records_per_person, least=1)
    object.__setattr__(claim, "records_per_person", records)
    if claim.unit is PrivacyUnit.RECORD:
        raise InputError(
            f'records_per_person must be given with unit="person", got {records:,} for single records; give both or neither.'
        )


def of_group(claim: TrainingClaim, records: int) -> TrainingClaim:
    """Return a claim for records as one for groups of so many of them; one for people as it is."""
    single = records == 1 or for_persons(claim)
    return claim if single else replace(claim, unit=PrivacyUnit.PERSON, records_per_person=records)


def for_equal_groups(claim: TrainingClaim) -> bool:
    """Return whether a claim is made for replaced records alone: groups of different sizes are no such neighbours."""
    return claim.fixed_size if isinstance(claim, DPSGD) else claim.adjacency is Adjacency.REPLACE_ONE


def delta_of(claim: TrainingClaim | None) -> float | None:
    """Return the delta that a claim offers to state epsilon at, or null: DP-SGD has none of its own."""
    return None if claim is None or isinstance(claim, DPSGD) else claim.delta


# --- What the model is good for -------------------------------------------------------------------


@dataclass(frozen=True)
class Utility:
    """How good the model is at its task, for the privacy-utility landscape of several audits.

    Attributes:
        value: Finite.
        name: What it is, for example ``test accuracy``.
        higher_is_better: Whether a larger value is a better model.

    Raises:
        InputError: The value is no finite number, or the name is no text, empty or of more than 1,000 characters.

    >>> Utility(0.87, "test accuracy")
    Utility(value=0.87, name='test accuracy', higher_is_better=True)
    """

    value: float
    name: str = "utility"
    higher_is_better: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", validate.number("utility", self.value))
        if not isinstance(self.name, str) or not self.name.strip():
            raise InputError(f"utility name must be a text such as 'test accuracy', got {self.name!r}.")
        validate.name("utility name", self.name)
        validate.instance("higher_is_better", self.higher_is_better, (bool,))

    @classmethod
    def from_text(cls, text: str) -> "Utility":
        """Return the utility that a text states: its value, and after colons its name and ``lower`` where less is better.

        Raises:
            InputError: The value is no number, or the last part something else.

        >>> Utility.from_text("0.13:test error:lower")
        Utility(value=0.13, name='test error', higher_is_better=False)
        """
        value, name, better = (*text.split(":"), "", "")[:3]
        if text.count(":") > 2 or better not in ("", "lower", "higher"):  # noqa: PLR2004
            raise InputError(f"utility must be VALUE, VALUE:NAME or VALUE:NAME:lower, got {text!r}.")
        return cls(value, name or "utility", higher_is_better=better != "lower")  # type: ignore[arg-type]  # read as a number


# --- What is declared of the release, for a reviewer -----------------------------------------------


@dataclass(frozen=True)
class Context:
    """What is declared of a model's release. No number depends on it, and nothing of it is inferred.

    What is left out is shown as "not stated".

    Attributes:
        release: ``internal``, ``API``, ``open weights``, or other words.
        exposed: What others get to see, such as labels, probabilities or weights.
        query_limits: How many questions one caller may ask.
        privacy_unit: Whose privacy is meant, such as a record, a person or a household.
        attacker: What an attacker is thought to know and to have access to.
        mitigations: What was done against leakage.
        owner: Who answers for the model.
        next_audit: When the next audit is due, as YYYY-MM-DD; a `datetime.date` goes in too.

    Raises:
        InputError: A field that is no text, empty or of more than 1,000 characters, or a date that is none.

    >>> Context(release="API", next_audit="2027-01-31").next_audit
    '2027-01-31'
    """

    release: str | None = None
    exposed: str | None = None
    query_limits: str | None = None
    privacy_unit: str | None = None
    attacker: str | None = None
    mitigations: str | None = None
    owner: str | None = None
    next_audit: str | dt.date | None = None  # a text once built

    def __post_init__(self) -> None:
        if self.next_audit is not None:
            object.__setattr__(self, "next_audit", _day(str(self.next_audit)))
        for name, value in vars(self).items():
            if value is not None and not (isinstance(value, str) and value.strip()):
                raise InputError(
                    f"{name} of the context must be a text that is not empty, got {value!r:.80}."
                )
            validate.name(f"{name} of the context", value)

    @classmethod
    def from_table(cls, raw: object, *, named: str) -> "Context":
        """Return the context that a file states, its keys spelled with dashes or with underscores.

        Args:
            raw: A table of texts, as a TOML or JSON reader returns it.
            named: What an error calls it.

        Raises:
            InputError: It is no table, has a key that is none or one twice, or a value that is none.
        """
        if not isinstance(raw, Mapping):
            raise InputError(f"{named} must be a table of texts, got {raw!r:.80}.")
        known = [item.name for item in fields(cls)]
        keys = [validate.known(f"{named}: the key", str(key)[:80].replace("-", "_"), known) for key in raw]
        stated = dict(zip(keys, raw.values(), strict=True))
        if len(stated) < len(raw):
            raise InputError(f"{named} states a field twice, with a dash and with an underscore; keep one.")
        try:
            return cls(**stated)
        except InputError as error:
            raise InputError(f"{named}: {error}") from None


def _day(text: str) -> str:
    try:
        return dt.datetime.fromisoformat(text).date().isoformat()
    except ValueError:
        raise InputError(
            f"next_audit of the context must be a date such as 2027-01-31, got {text!r:.80}."
        ) from None


# --- Choices as text, as a command line or a file of settings names them ----------------------------------------------

SPLITS: dict[str, Callable[..., MembershipSplit]] = {
    "unknown": UnknownSplit,
    "random": RandomSplit,
    "bernoulli": BernoulliSplit,
    "propensity": Propensity,
}
COVERAGES: dict[str, Callable[..., Coverage]] = {"sample": Sample, "census": Census, "subset": Subset}
THRESHOLDS: dict[str, Callable[..., ThresholdRule]] = {
    "rank-grid": RankGrid,
    "melded": partial(RankGrid, interval=Melded()),
    "clopper-pearson": partial(RankGrid, interval=ClopperPearson()),
    "fixed": FixedThreshold,
    "split": Split,
}
UNITS: dict[str, Callable[..., Persons]] = {
    "each": partial(EachRecord, "mean"),
    **{by: partial(OnePerPerson, by) for by in ("mean", "min", "max")},
}
ONE_RUN_TESTS: dict[str, Callable[..., OneRunTest]] = {
    "steinke": Steinke,
    "f-dp": FDP,
    "any-guesses": AnyGuesses,
}


def from_text(name: str, value: Any, kinds: Mapping[str, Callable[..., Any]]) -> Any:
    """Return a choice that a text names, such as ``bernoulli:0.3`` or ``random:stratified``; anything else as it is.

    After the colon stand the fields of the choice, with commas between: ``name=value``, a value alone for the next field,
    or the name of a field alone where that is to be true.

    Args:
        name: The argument, for error sentences.
        value: A text, or a choice already.
        kinds: The choices by their names.

    Raises:
        InputError: A text that names no choice, or not with these fields.

    >>> from_text("split", "propensity:overlap=0.2", SPLITS)
    Propensity(overlap=0.2)
    """
    if not isinstance(value, str):
        return value
    word, _, rest = value.partition(":")
    kind = kinds[validate.known(name, word.strip(), kinds)]
    made: Any = getattr(kind, "func", kind)
    taken = len(getattr(kind, "args", ())), set(getattr(kind, "keywords", ()))
    free = [item.name for item in fields(made) if item.name not in taken[1]][taken[0] :]
    given_fields: dict[str, Any] = {}
    for part in filter(None, map(str.strip, rest.split(","))):
        field_name, sign, text = part.partition("=")
        if not sign and part not in free:
            field_name, text = next((item for item in free if item not in given_fields), ""), part
        if field_name not in free:
            has = f"has the fields {', '.join(free)}" if free else "has no fields"
            raise InputError(f"{name} must be one of {', '.join(kinds)}, and {word!r} {has}, got {value!r}.")
        given_fields[field_name] = _scalar(text) if text else True
    try:
        return kind(**given_fields)
    except TypeError:
        required = [
            item.name for item in fields(made) if item.default is MISSING and item.default_factory is MISSING
        ]
        raise InputError(
            f"{name} {word!r} needs {' and '.join(required)}, as in '{word}:VALUE', got {value!r}."
        ) from None


def name_of(choice: object, kinds: Mapping[str, Any]) -> str:
    """Return the name of a choice among these classes.

    >>> name_of(Census(), COVERAGES)
    'census'
    """
    return next(name for name, kind in kinds.items() if type(choice) is kind)


def _scalar(text: str) -> Any:
    """Return a number where the text is one."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


# --- Choices as JSON, so that an audit can be made again --------------------------------------------


def stored(choice: Any) -> Any:
    """Return a choice as JSON holds it: its class by name, and its fields.

    >>> stored(RandomSplit(stratified=True))
    {'choice': 'RandomSplit', 'stratified': True}
    """
    if not is_dataclass(choice):
        return json.loads(json.dumps(plain(choice), default=float))  # a decimal is a number too
    found = {item.name: stored(getattr(choice, item.name)) for item in fields(choice)}
    return {"choice": type(choice).__name__, **found}


def restored(raw: Any) -> Any:
    """Return the choice that `stored` made JSON of; only classes of this module are built, whatever is asked for.

    Raises:
        InputError: There is no such choice, or not with these fields.

    >>> restored({"choice": "RankGrid", "tails": "lower", "interval": {"choice": "Melded"}})
    RankGrid(tails='lower', interval=Melded())
    """
    if isinstance(raw, list):
        return tuple(map(restored, raw))
    if not isinstance(raw, dict):
        return raw
    made = _STORED[validate.known("stored choice", raw.get("choice"), _STORED)]
    try:
        return made(**{key: restored(value) for key, value in raw.items() if key != "choice"})
    except TypeError as error:
        raise InputError(f"stored choice cannot be made again: {validate.one_line(error)}.") from None


_STORED: dict[str, Any] = {name: item for name, item in globals().items() if is_dataclass(item)}
