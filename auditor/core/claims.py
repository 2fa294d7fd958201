"""Claims about a training run: a DP-SGD description, or a stated promise. Data only; the accounting is elsewhere."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypedDict, Unpack, get_args

import numpy as np

from auditor.core import adapters, validate
from auditor.core.errors import InputError
from auditor.core.facts import Adjacency, PrivacyUnit
from auditor.core.numbers import as_stated

# --- Description of a DP-SGD training run, without its consequences ---


@dataclass(frozen=True)
class PoissonSampling:
    """Each step draws each record by an independent coin of probability ``sampling_rate``."""


@dataclass(frozen=True)
class FixedSizeSampling:
    """Each step draws a batch of fixed size, uniformly and without repetition; ``sampling_rate`` is its share.

    Every step draws a new batch: passes over shuffled records are `ShuffledBatches`. The size of the training set is then
    public, so such a run is accounted for replaced records only.
    """


@dataclass(frozen=True)
class ShuffledBatches:
    """Passes over records, shuffled or in a fixed order, cut into batches and accounted as if drawn by `PoissonSampling`.

    The claim is the accounted promise, and nothing proves it: the true epsilon of such batches can be larger (Chua et
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
        steps: Number of steps.
    """

    noise_multiplier: float
    sampling_rate: float
    steps: int


@dataclass(frozen=True)
class DPSGD:
    """DP-SGD: ``steps`` times the sum of clipped gradients of a random batch, plus N(0, (noise_multiplier x clip)^2).

    One number holds for all steps; a vector gives each step its own, and ``steps`` may then be left out. The vectors
    must have been fixed before training: noise that was chosen by the results of earlier steps has no such accounting.

    Attributes:
        noise_multiplier: Noise standard deviation over the clipping norm, above 0; a number or one for each step.
        sampling_rate: Probability that a record enters a step, in (0, 1]; a number or one for each step.
        steps: Number of steps, 1 or more.
        clipping_norm: Largest Euclidean norm of one record's gradient, above 0; a number or one for each step. What is
            promised to records does not depend on it, since the noise is a multiple of it.
        sampling: ``poisson`` (`PoissonSampling`, the default), ``fixed-size`` (`FixedSizeSampling`) or ``shuffled``
            (`ShuffledBatches`).
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
    sampling: Any = PoissonSampling()  # a `Sampling` once built
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
        vars(self)["steps"] = next(iter(counted.values()))
        for name, column in columns.items():
            constant = isinstance(column, tuple) and len(set(column)) == 1
            vars(self)[name] = column[0] if constant else column
        if isinstance(self.sampling, str):
            vars(self)["sampling"] = SAMPLERS[validate.one_of("sampling", self.sampling, SAMPLERS)]()
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
                `ShuffledBatches` where ``make_private`` had ``poisson_sampling=False``, which the engine does not keep.
            sampling: Sampling of the batches, in place of a loader. Without both it is `PoissonSampling`, the default of
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
                raise InputError("sampling is taken from data_loader, got both; leave one of them out.")
            sampling = PoissonSampling() if adapters.draws_coins(data_loader) else ShuffledBatches()
        return cls(
            *adapters.by_step(history),
            clipping_norm=clipping_norm,
            sampling=sampling or PoissonSampling(),
            unit=PrivacyUnit.named(unit),
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
        rows = list(adapters.steps_of(event))
        if not rows:
            raise InputError("event must have at least 1 step, got none.")
        return cls(
            *adapters.by_step(rows), sampling=sampling or PoissonSampling(), unit=PrivacyUnit.named(unit)
        )

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
            sampling: Sampling of the batches: `ShuffledBatches` (default), or `PoissonSampling` if a pipeline sees to it.
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
        """The steps, grouped by noise multiplier and sampling rate: their order changes no promise."""
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
    return f"{as_stated(min(value))} to {as_stated(max(value))} (by step)" if by_step else as_stated(value)


# --- Claims ---


class _About(TypedDict, total=False):
    """Further fields of a stated curve, as in `StatedCurve`; a choice may be given by its name."""

    adjacency: Any
    unit: Any
    records_per_person: int | None


@dataclass(frozen=True)
class StatedClaim:
    """A stated claim, not accounted here: the training algorithm is (epsilon, delta)-DP for the named adjacency.

    Attributes:
        epsilon: In nats, 0 or more.
        delta: In [0, 1).
        adjacency: ``"add-remove"`` (default) or ``"replace-one"``.
        unit: ``"record"`` (default) or ``"person"``: the difference between two neighbours.
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
        vars(self)["epsilon"] = validate.nonnegative("claimed epsilon", self.epsilon)
        if isinstance(self.delta, float) and math.isnan(self.delta):
            raise InputError(
                f"a claimed epsilon needs its delta, got epsilon {self.epsilon:g} alone;"
                " state the delta too (0 for pure differential privacy)."
            )
        vars(self)["delta"] = validate.fraction("claimed delta", self.delta, zero=True)
        vars(self)["adjacency"] = Adjacency.named(self.adjacency)
        _set_unit(self)

    def in_words(self) -> str:
        """Return the claim as a phrase."""
        ending = self.unit.ending(self.records_per_person)
        return f"{_point_in_words(self.epsilon, self.delta)}, {self.adjacency}{ending}"


@dataclass(frozen=True)
class StatedCurve:
    """A stated curve of (epsilon, delta), not accounted here; `StatedClaim` makes them.

    Its epsilon is computed at a delta, as that of `DPSGD` is.

    Attributes:
        mu: Mu of Gaussian differential privacy, above 0, or None.
        rho: Rho of zero-concentrated differential privacy, above 0, or None.
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
        vars(self)["points"] = _points(self.points)
        stated = [name for name in ("mu", "rho") if getattr(self, name) is not None]
        for name in stated:
            vars(self)[name] = validate.positive(f"claimed {name}", getattr(self, name))
        if len(stated) + bool(self.points) != 1:
            said = " and ".join([*stated, "points"] if self.points else stated) or "none"
            raise InputError(f"a claimed curve is one of mu, rho and points, got {said}.")
        vars(self)["adjacency"] = Adjacency.named(self.adjacency)
        _set_unit(self)

    @property
    def delta(self) -> float | None:
        """The default delta to state epsilon at: the first point's; None for mu and rho."""
        return self.points[0][1] if self.points else None

    def in_words(self) -> str:
        """Return the claim as a phrase."""
        if self.mu is not None:
            said = f"Gaussian differential privacy with mu {as_stated(self.mu)}"
        elif self.rho is not None:
            said = f"zero-concentrated differential privacy with rho {as_stated(self.rho)}"
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
    return f"epsilon {as_stated(epsilon)} at delta {as_stated(delta)}"


TrainingClaim = DPSGD | StatedClaim | StatedCurve


def for_persons(claim: TrainingClaim | None) -> bool:
    """Return whether a claim is made for people, so that a bound about all records of one can judge it."""
    return claim is not None and claim.unit is PrivacyUnit.PERSON


def _set_unit(claim: Any) -> None:
    """Check the unit of a claim, and the number of records that it is converted for."""
    vars(claim)["unit"] = PrivacyUnit.named(claim.unit)
    if claim.records_per_person is None:
        return
    records = validate.at_least("records_per_person", claim.records_per_person, least=1)
    vars(claim)["records_per_person"] = records
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
    """Return the delta that a claim offers to state epsilon at, or None: DP-SGD has none of its own."""
    return None if claim is None or isinstance(claim, DPSGD) else claim.delta


def delta_or_that_of(claim: TrainingClaim | None, delta: float | None) -> float:
    """Return a delta in [0, 1), or the claim's own, where no number of training records could give one."""
    result = delta_of(claim) if delta is None else validate.fraction("delta", delta, zero=True)
    if result is None:
        raise InputError(
            "delta must be given: the delta to state epsilon at, or a claim with its own; got none."
        )
    return result
