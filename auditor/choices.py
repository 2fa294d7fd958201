"""The choices that change a number, as values: what was declared, and which rule was asked for.

A choice is data; who computes with it is elsewhere. Each is checked when it is built.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

from auditor import _validate
from auditor._format import given
from auditor.errors import InputError

__all__ = [
    "DPSGD",
    "FDP",
    "Adjacency",
    "AnyGuesses",
    "BernoulliSplit",
    "Census",
    "EachRecord",
    "FixedThreshold",
    "Members",
    "MembershipSplit",
    "Mixture",
    "OnePerPerson",
    "OneRunTest",
    "Persons",
    "RandomSplit",
    "RankGrid",
    "Sample",
    "Split",
    "StatedClaim",
    "Steinke",
    "ThresholdRule",
    "TrainingClaim",
    "UnknownSplit",
]


class Adjacency(StrEnum):
    """Which two training sets count as neighbours.

    >>> Adjacency("replace-one") == "replace-one"
    True
    """

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"


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


Members = Sample | Census


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
        _validate.fraction("inclusion", self.inclusion)


MembershipSplit = UnknownSplit | RandomSplit | BernoulliSplit


# --- How a certified bound picks its threshold ----------------------------------------------------


@dataclass(frozen=True)
class RankGrid:
    """Thresholds at order statistics whose ranks are fixed before the data are seen: {0} and round(1.5^j) < n/2.

    ``tails`` is ``"both"``, ``"lower"`` (members are those with low loss) or ``"upper"`` (non-members are those
    with high loss); both tails share the error probability.

    >>> RankGrid("lower")
    RankGrid(tails='lower')
    """

    tails: str = "both"

    def __post_init__(self) -> None:
        _validate.known("tails", self.tails, ("both", "lower", "upper"))


@dataclass(frozen=True)
class FixedThreshold:
    """A threshold chosen without looking at these losses: "member" if loss <= ``threshold``.

    >>> FixedThreshold(0.7)
    FixedThreshold(threshold=0.7)
    """

    threshold: float

    def __post_init__(self) -> None:
        _validate.number("threshold", self.threshold)


@dataclass(frozen=True)
class Split:
    """The threshold is chosen on a random ``fraction`` of each group and judged on the rest.

    >>> Split(0.5, seed=0)
    Split(fraction=0.5, seed=0)
    """

    fraction: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        _validate.fraction("fraction", self.fraction)
        _validate.at_least("seed", self.seed, least=0)


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
        _validate.known("by", self.by, ("min", "mean", "max"))


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
        components = _validate.at_least("max_components", self.max_components, least=1)
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
class DPSGD:
    """DP-SGD with Poisson sampling: the sum of clipped gradients plus N(0, (noise_multiplier x clip)^2), ``steps`` times.

    Attributes:
        noise_multiplier: Noise standard deviation over the clipping norm, above 0.
        sampling_rate: Probability that a record enters a step, in (0, 1].
        steps: Number of steps, 1 or more.

    Raises:
        InputError: A parameter out of range.

    >>> DPSGD(noise_multiplier=1.1, sampling_rate=0.004, steps=14040).in_words()
    'DP-SGD with noise multiplier 1.1, sampling rate 0.004 and 14,040 steps'
    """

    noise_multiplier: float
    sampling_rate: float
    steps: int

    def __post_init__(self) -> None:
        noise = _validate.positive("noise_multiplier", self.noise_multiplier)
        rate = _validate.fraction("sampling_rate", self.sampling_rate, one=True)
        steps = _validate.at_least("steps", self.steps, least=1)
        for name, value in (("noise_multiplier", noise), ("sampling_rate", rate), ("steps", steps)):
            object.__setattr__(self, name, value)

    def in_words(self) -> str:
        """Return the description as a phrase."""
        return (
            f"DP-SGD with noise multiplier {given(self.noise_multiplier)}, sampling rate {given(self.sampling_rate)}"
            f" and {self.steps:,} steps"
        )


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
        object.__setattr__(self, "epsilon", _validate.nonnegative("claimed epsilon", self.epsilon))
        if isinstance(self.delta, float) and math.isnan(self.delta):
            raise InputError(
                f"a claimed epsilon needs its delta, got epsilon {self.epsilon:g} alone;"
                " state the delta too (0 for pure differential privacy)."
            )
        object.__setattr__(self, "delta", _validate.fraction("claimed delta", self.delta, zero=True))
        _validate.known("adjacency", self.adjacency, [str(item) for item in Adjacency])
        object.__setattr__(self, "adjacency", Adjacency(self.adjacency))

    def in_words(self) -> str:
        """Return the claim as a phrase."""
        return f"epsilon {given(self.epsilon)} at delta {given(self.delta)}, {self.adjacency}"


TrainingClaim = DPSGD | StatedClaim
