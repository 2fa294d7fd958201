"""Promises that one may want of a training run, the ways to tell whether a run keeps them, and what is found.

Each names the neighbours it is about: what an attacker finds out about replaced records (train-versus-fresh-record
membership inference) unless said otherwise, and an epsilon about added or removed ones, as everywhere in this package.
"""

import math
from dataclasses import dataclass

from auditor import _validate
from auditor._format import given, number, unit
from auditor.choices import DPSGD, Adjacency
from auditor.errors import InputError
from auditor.theory._gaussian_form import ClosedForm
from auditor.values import Claim

__all__ = [
    "Exact",
    "FoundParameter",
    "Method",
    "Target",
    "WantedAdvantage",
    "WantedBayesSecurity",
    "WantedEpsilon",
    "WantedTPR",
]


@dataclass(frozen=True)
class Exact:
    """By the exact law of the composed privacy loss; an epsilon by the accountant, rounded up."""


Method = Exact | ClosedForm


@dataclass(frozen=True)
class WantedBayesSecurity:
    """A Bayes security of ``least`` or more, in (0, 1).

    >>> WantedBayesSecurity(0.98).in_words()
    'Bayes security of at least 0.98, replace-one'
    """

    least: float
    adjacency: Adjacency = Adjacency.REPLACE_ONE

    def __post_init__(self) -> None:
        object.__setattr__(self, "least", _validate.fraction("wanted Bayes security", self.least))
        _set_adjacency(self)

    def worst(self, drawn: float) -> float:
        """Return what is left without any noise if the record enters a step with this probability."""
        return 1 - drawn

    def in_words(self) -> str:
        """Return the promise as a phrase."""
        return f"Bayes security of at least {_share(self.least)}, {self.adjacency}"


@dataclass(frozen=True)
class WantedAdvantage:
    """A membership advantage (TPR - FPR) of ``most`` or less for every attacker, in (0, 1).

    >>> WantedAdvantage(0.02).in_words()
    'advantage of at most 0.02, replace-one'
    """

    most: float
    adjacency: Adjacency = Adjacency.REPLACE_ONE

    def __post_init__(self) -> None:
        object.__setattr__(self, "most", _validate.fraction("wanted advantage", self.most))
        _set_adjacency(self)

    def worst(self, drawn: float) -> float:
        """Return what is left without any noise if the record enters a step with this probability."""
        return drawn

    def in_words(self) -> str:
        """Return the promise as a phrase."""
        return f"advantage of at most {_share(self.most)}, {self.adjacency}"


@dataclass(frozen=True)
class WantedEpsilon:
    """An epsilon of ``most`` or less, above 0 and in nats, at ``delta`` in (0, 1).

    >>> WantedEpsilon(1.0, delta=1e-5).in_words()
    'epsilon of at most 1 at delta 1e-5, add-remove'
    """

    most: float
    delta: float
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "most", _validate.positive("wanted epsilon", self.most))
        object.__setattr__(self, "delta", _validate.fraction("delta", self.delta))
        _set_adjacency(self)

    def worst(self, drawn: float) -> float:
        """Return what is left without any noise if the record enters a step with this probability."""
        return 0.0 if drawn <= self.delta else math.inf

    def in_words(self) -> str:
        """Return the promise as a phrase."""
        return f"epsilon of at most {given(self.most)} at delta {given(self.delta)}, {self.adjacency}"


@dataclass(frozen=True)
class WantedTPR:
    """A true positive rate of ``most`` or less for every attacker of false positive rate ``at_fpr``, which is below it.

    >>> WantedTPR(0.01, at_fpr=0.001).in_words()
    'true positive rate of at most 0.01 at false positive rate 0.001, replace-one'
    """

    most: float
    at_fpr: float
    adjacency: Adjacency = Adjacency.REPLACE_ONE

    def __post_init__(self) -> None:
        object.__setattr__(self, "most", _validate.fraction("wanted true positive rate", self.most))
        object.__setattr__(self, "at_fpr", _validate.fraction("at_fpr", self.at_fpr))
        if self.most <= self.at_fpr:
            raise InputError(
                f"wanted true positive rate must be above its false positive rate {given(self.at_fpr)}, which an"
                f" attacker reaches by guessing, got {given(self.most)}."
            )
        _set_adjacency(self)

    def worst(self, drawn: float) -> float:
        """Return what is left without any noise if the record enters a step with this probability."""
        return self.at_fpr + (1 - self.at_fpr) * drawn

    def in_words(self) -> str:
        """Return the promise as a phrase."""
        return (
            f"true positive rate of at most {_share(self.most)} at false positive rate {given(self.at_fpr)},"
            f" {self.adjacency}"
        )


Target = WantedBayesSecurity | WantedAdvantage | WantedEpsilon | WantedTPR


@dataclass(frozen=True)
class FoundParameter:
    """A parameter that keeps a promise, and what it really promises.

    Attributes:
        name: ``noise_multiplier``, ``sampling_rate`` or ``steps``.
        value: Its value, rounded to the side that protects better.
        target: What was wanted.
        training: The whole training run.
        promise: The claim at that value: never worse than what was wanted, by the method asked for.
    """

    name: str
    value: float
    target: Target
    training: DPSGD
    promise: Claim

    @property
    def method(self) -> str:
        """How the promise follows from the parameters."""
        return self.promise.method

    @property
    def status(self) -> str:
        """``proven`` or ``approximation``, as the promise is."""
        return self.promise.status

    def in_words(self) -> str:
        """Return the answer as a sentence."""
        name = self.name.replace("_", " ").capitalize()
        reached = number(self.promise.value, digits=6)
        return (
            f"{name} {given(self.value, digits=6)} keeps the wanted {self.target.in_words()}"
            f" (reached: {reached}; {self.status}: {self.method})."
        )


def _share(x: float) -> str:
    """A number below 1 as it was given, and never as 1."""
    text = given(x)
    return unit(x) if float(text) == 1 else text


def _set_adjacency(target: Target) -> None:
    known = _validate.known("adjacency", target.adjacency, [str(item) for item in Adjacency])
    object.__setattr__(target, "adjacency", Adjacency(known))
