"""The choices that change a number, as values: what was declared, and which rule was asked for.

A choice is data; who computes with it is elsewhere. Each is checked when it is built.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, partial
from typing import Any, get_args

import numpy as np

from auditor.core import validate
from auditor.core.errors import InputError
from auditor.core.numbers import given

# --- A DP-SGD training run: what was done, not what follows from it ---


@dataclass(frozen=True)
class PoissonSampling:
    """Each step draws each record by an independent coin of probability ``sampling_rate``."""


@dataclass(frozen=True)
class FixedSizeSampling:
    """Each step draws a batch of fixed size, uniformly and without repetition; ``sampling_rate`` is its share.

    Every step draws anew: passes over shuffled records are another thing and not covered. The size of the training set
    is then public, so such a run is accounted for replaced records only.
    """


Sampling = PoissonSampling | FixedSizeSampling


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
        sampling: `PoissonSampling` (default) or `FixedSizeSampling`.

    Raises:
        InputError: A parameter out of range, vectors of different lengths, or no number of steps.

    Source: Abadi et al. 2016; Mahloujifar et al. 2022, Algorithm 1, for the vectors.

    >>> DPSGD(noise_multiplier=1.1, sampling_rate=0.004, steps=14040).in_words()
    'DP-SGD with noise multiplier 1.1, sampling rate 0.004 and 14,040 steps'
    >>> DPSGD([1.0, 1.0, 2.0], 0.01).phases
    (Phase(noise_multiplier=1.0, sampling_rate=0.01, steps=2), Phase(noise_multiplier=2.0, sampling_rate=0.01, steps=1))
    """

    noise_multiplier: (
        Any  # float or tuple of floats once built; anything number-like or a sequence of it goes in
    )
    sampling_rate: Any
    steps: Any = None  # an int once built
    clipping_norm: Any = 1.0
    sampling: Sampling = PoissonSampling()

    def __post_init__(self) -> None:
        columns = {name: _column(name, getattr(self, name)) for name in _CHECKS}
        steps = None if self.steps is None else validate.at_least("steps", self.steps, least=1)
        lengths = {name: len(column) for name, column in columns.items() if isinstance(column, tuple)}
        if steps is None and not lengths:
            raise InputError("steps must be given where every step has the same parameters, got none.")
        counted = lengths if steps is None else {**lengths, "steps": steps}
        if len(set(counted.values())) > 1:
            listed = ", ".join(
                f"{name} is {count}" if name == "steps" else f"{name} has {count}"
                for name, count in counted.items()
            )
            raise InputError(f"vectors must have one number for each step: {listed}.")
        object.__setattr__(self, "steps", next(iter(counted.values())))
        for name, column in columns.items():
            constant = isinstance(column, tuple) and len(set(column)) == 1
            object.__setattr__(self, name, column[0] if constant else column)
        validate.instance("sampling", self.sampling, get_args(Sampling))

    @property
    def constant(self) -> bool:
        """Whether every step has the same noise multiplier and sampling rate."""
        return not isinstance(self.noise_multiplier, tuple) and not isinstance(self.sampling_rate, tuple)

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """The steps, gathered by noise multiplier and sampling rate: their order changes no promise."""
        if self.constant:
            return (Phase(self.noise_multiplier, self.sampling_rate, self.steps),)
        shape = (self.steps,)
        pairs = np.stack(
            [np.broadcast_to(self.noise_multiplier, shape), np.broadcast_to(self.sampling_rate, shape)]
        )
        kinds, counts = np.unique(pairs, axis=1, return_counts=True)
        return tuple(
            Phase(noise, rate, count)
            for noise, rate, count in zip(*kinds.tolist(), counts.tolist(), strict=True)
        )

    @property
    def sampled(self) -> bool:
        """Whether any step leaves records out."""
        return any(phase.sampling_rate < 1 for phase in self.phases)

    @property
    def fixed_size(self) -> bool:
        """Whether batches have a fixed size."""
        return isinstance(self.sampling, FixedSizeSampling)

    def in_words(self) -> str:
        """Return the description as a phrase."""
        return (
            f"DP-SGD with noise multiplier {_range(self.noise_multiplier)}, sampling rate {_range(self.sampling_rate)}"
            f" and {self.steps:,} {'step' if self.steps == 1 else 'steps'}"
            + (", batches of a fixed size" if self.fixed_size else "")
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
    return (
        f"{given(min(value))} to {given(max(value))} (by step)" if isinstance(value, tuple) else given(value)
    )


# --- Choices ---


class Adjacency(StrEnum):
    """Which two training sets count as neighbours.

    >>> Adjacency("replace-one") == "replace-one"
    True
    """

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"

    @classmethod
    def named(cls, name: object) -> "Adjacency":
        """Return the adjacency of this name.

        Raises:
            InputError: There is none of it.
        """
        return cls(validate.known("adjacency", name, [str(item) for item in cls]))


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


Members = Sample | Census | Subset


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


@dataclass(frozen=True)
class BernoulliSplit:
    """Each record was included by an independent coin of probability ``inclusion`` (for example a salted hash).

    The add/remove adjacency. ``inclusion`` lies in (0, 1). Score every record that had a coin, or a sample of them
    drawn without looking at membership: a balanced sample of unbalanced coins has other odds.
    """

    inclusion: float = 0.5

    def __post_init__(self) -> None:
        validate.fraction("inclusion", self.inclusion)


MembershipSplit = UnknownSplit | RandomSplit | BernoulliSplit


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


_RankInterval = ClopperPearson | Melded
ThresholdInterval = ClopperPearson | Katz | Jeffreys


# --- How a certified bound picks its threshold ----------------------------------------------------


@dataclass(frozen=True)
class RankGrid:
    """Thresholds at order statistics whose ranks are fixed before the data are seen: {0} and round(1.5^j) < n/2.

    ``tails`` is ``"both"``, ``"lower"`` (members are those with low loss) or ``"upper"`` (non-members are those
    with high loss); both tails share the error probability. ``interval`` is `ClopperPearson` or `Melded`.

    >>> RankGrid("lower", interval=Melded())
    RankGrid(tails='lower', interval=Melded())
    """

    tails: str = "both"
    interval: _RankInterval = ClopperPearson()

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


@dataclass(frozen=True)
class EachRecord:
    """Every record is a unit of its own, whoever it belongs to."""


@dataclass(frozen=True)
class OnePerPerson:
    """The records of one data subject become one score: the ``by`` (``min``, ``mean`` or ``max``) of their losses.

    Records of one person are not independent, and privacy is promised to persons: intervals then count persons.

    >>> OnePerPerson("min")
    OnePerPerson(by='min')
    """

    by: str = "mean"

    def __post_init__(self) -> None:
        validate.known("by", self.by, ("min", "mean", "max"))


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
    """Steinke, Nasr and Jagielski 2023, Theorem 5.2, at a fixed short list of numbers of guesses that share the error."""


@dataclass(frozen=True)
class FDP:
    """The recursion of Mahloujifar, Melis and Chaudhuri 2024 on the (epsilon, delta) trade-off curve."""


@dataclass(frozen=True)
class AnyGuesses:
    """The e-process over every number of guesses at once; delta 0 only [own]."""


OneRunTest = Steinke | FDP | AnyGuesses


# --- What is claimed -----------------------------------------------------------------------------


@dataclass(frozen=True)
class StatedClaim:
    """A claim taken at its word: the training algorithm is (epsilon, delta)-DP for the named adjacency.

    Attributes:
        epsilon: In nats, 0 or more.
        delta: In [0, 1).
        adjacency: ``"add-remove"`` (default) or ``"replace-one"``.

    Raises:
        InputError: A number out of range, an unknown adjacency, or no delta.

    >>> StatedClaim(epsilon=2.0, delta=1e-5).in_words()
    'epsilon 2 at delta 1e-5, add-remove'
    """

    epsilon: float
    delta: float = math.nan  # never a default value: a claim without its delta is refused below
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", validate.nonnegative("claimed epsilon", self.epsilon))
        if isinstance(self.delta, float) and math.isnan(self.delta):
            raise InputError(
                f"a claimed epsilon needs its delta, got epsilon {self.epsilon:g} alone;"
                " state the delta too (0 for pure differential privacy)."
            )
        object.__setattr__(self, "delta", validate.fraction("claimed delta", self.delta, zero=True))
        object.__setattr__(self, "adjacency", Adjacency.named(self.adjacency))

    def in_words(self) -> str:
        """Return the claim as a phrase."""
        return f"epsilon {given(self.epsilon)} at delta {given(self.delta)}, {self.adjacency}"


TrainingClaim = DPSGD | StatedClaim


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
        validate.name("utility name (--utility-name on the command line)", self.name)
        validate.instance("higher_is_better", self.higher_is_better, (bool,))
