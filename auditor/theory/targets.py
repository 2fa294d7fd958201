"""Promises that one may want of a training run, the ways to tell whether a run keeps them, and what is found.

Each names the neighbours it is about: what an attacker finds out about replaced records (train-versus-fresh-record
membership inference) unless said otherwise, and an epsilon about added or removed ones, as everywhere in this package.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from auditor import _validate
from auditor._format import count, given, number, unit
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

# Closer than this to nothing or to all, a wish drowns in the rounding of what it is compared with.
_NEAREST = 1e-12
_MOST_DIGITS = 17


@dataclass(frozen=True)
class WantedBayesSecurity:
    """A Bayes security of ``least`` or more, from 1e-12 to 1 - 1e-12.

    >>> WantedBayesSecurity(0.98).in_words()
    'Bayes security of at least 0.98, replace-one'
    """

    quantity: ClassVar[str] = "Bayes security"
    least: float
    adjacency: Adjacency = Adjacency.REPLACE_ONE

    def __post_init__(self) -> None:
        object.__setattr__(self, "least", _wish("wanted Bayes security", self.least))
        _set_adjacency(self)

    def kept_by(self, value: float) -> bool:
        """Return whether this Bayes security is enough."""
        return value >= self.least

    def worst(self, drawn: float) -> float:
        """Return what is left without any noise if the record enters a step with this probability."""
        return 1 - drawn

    def in_words(self) -> str:
        """Return the promise as a phrase."""
        return f"Bayes security of at least {_share(self.least)}, {self.adjacency}"


@dataclass(frozen=True)
class WantedAdvantage:
    """A membership advantage (TPR - FPR) of ``most`` or less for every attacker, from 1e-12 to 1 - 1e-12.

    >>> WantedAdvantage(0.02).in_words()
    'advantage of at most 0.02, replace-one'
    """

    quantity: ClassVar[str] = "advantage"
    most: float
    adjacency: Adjacency = Adjacency.REPLACE_ONE

    def __post_init__(self) -> None:
        object.__setattr__(self, "most", _wish("wanted advantage", self.most))
        _set_adjacency(self)

    def kept_by(self, value: float) -> bool:
        """Return whether this advantage is little enough."""
        return value <= self.most

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

    quantity: ClassVar[str] = "epsilon"
    most: float
    delta: float
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "most", _validate.positive("wanted epsilon", self.most))
        object.__setattr__(self, "delta", _validate.fraction("delta", self.delta))
        _set_adjacency(self)

    def kept_by(self, value: float) -> bool:
        """Return whether this epsilon is small enough."""
        return value <= self.most

    def worst(self, drawn: float) -> float:
        """Return what is left without any noise if the record enters a step with this probability."""
        return 0.0 if drawn <= self.delta else math.inf

    def in_words(self) -> str:
        """Return the promise as a phrase."""
        return f"epsilon of at most {given(self.most)} at delta {given(self.delta)}, {self.adjacency}"


@dataclass(frozen=True)
class WantedTPR:
    """A true positive rate of ``most`` or less for every attacker of false positive rate ``at_fpr``.

    It is at most 1 - 1e-12 and by 1e-12 or more above ``at_fpr``, which an attacker reaches by guessing.

    >>> WantedTPR(0.01, at_fpr=0.001).in_words()
    'true positive rate of at most 0.01 at false positive rate 0.001, replace-one'
    """

    quantity: ClassVar[str] = "true positive rate"
    most: float
    at_fpr: float
    adjacency: Adjacency = Adjacency.REPLACE_ONE

    def __post_init__(self) -> None:
        object.__setattr__(self, "most", _wish("wanted true positive rate", self.most))
        object.__setattr__(self, "at_fpr", _validate.fraction("at_fpr", self.at_fpr))
        if self.most <= self.at_fpr:
            raise InputError(
                f"wanted true positive rate must be above its false positive rate {given(self.at_fpr)}, which an"
                f" attacker reaches by guessing, got {given(self.most)}."
            )
        if self.most - self.at_fpr < _NEAREST:
            raise InputError(
                f"wanted true positive rate must be {number(_NEAREST)} or more above its false positive rate"
                f" {self.at_fpr!r}, because less drowns in rounding, got {self.most!r}; want a larger one."
            )
        _set_adjacency(self)

    def kept_by(self, value: float) -> bool:
        """Return whether this true positive rate is little enough."""
        return value <= self.most

    def worst(self, drawn: float) -> float:
        """Return what is left without any noise if the record enters a step with this probability."""
        return self.at_fpr + (1 - self.at_fpr) * drawn

    def in_words(self) -> str:
        """Return the promise as a phrase."""
        most = _share(self.most)
        for digits in range(4, _MOST_DIGITS + 1):  # not to read like what guessing reaches
            if float(most) > self.at_fpr:
                break
            most = given(self.most, digits=digits)
        return (
            f"true positive rate of at most {most} at false positive rate {_share(self.at_fpr)},"
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
        by: The method asked for.
        exact: Where that is an approximation, the claim of the exact method at that value, which may well be worse
            than what was wanted; null where there is no need, where it takes long, and where only a bound is known that
            does not settle it.
    """

    name: str
    value: float
    target: Target
    training: DPSGD
    promise: Claim
    by: Method = Exact()
    exact: Claim | None = None

    @property
    def method(self) -> str:
        """How the promise follows from the parameters."""
        return self.promise.method

    @property
    def status(self) -> str:
        """``proven`` or ``approximation``, as the promise is."""
        return self.promise.status

    def in_words(self) -> str:
        """Return the answer as a sentence; for an approximation with what is the matter with it."""
        reached = on_its_side(self.target, self.promise.value, digits=6)
        kept = f"the wanted {self.target.in_words()} (reached: {reached}; {self.status}: {self.method})."
        if isinstance(self.by, Exact) or self.promise.proven:
            subject = self._subject()
            return f"{subject[:1].upper()}{subject[1:]} {kept}"
        return f"By the {self.by.in_words()}, {self._subject()} {kept} {self._warning(self.by.caveat)}"

    def _subject(self) -> str:
        if self.name == "steps":
            return f"{count(int(self.value))} {'step keeps' if self.value == 1 else 'steps keep'}"
        return f"{self.name.replace('_', ' ')} {given(self.value, digits=6)} keeps"

    def _warning(self, caveat: str) -> str:
        if self.exact is None or self.exact.value is None:
            return f"That form {caveat}; whether it is so here was not worked out."
        what, source = self.target.quantity, self.exact.method
        if not self.target.kept_by(self.exact.value):
            shown = on_its_side(self.target, self.exact.value, toward="nearest")
            return f"That form {caveat}: exactly, the {what} there is {shown}, which does not keep it ({source})."
        side = "at least" if isinstance(self.target, WantedBayesSecurity) else "at most"
        shown = on_its_side(self.target, self.exact.value)
        return f"That form {caveat}; by the exact method the {what} there is {side} {shown}, which keeps it ({source})."


def on_its_side(target: Target, value: float | None, *, digits: int = 3, toward: str | None = None) -> str:
    """Return a number with as many digits as it takes to stay on its side of the wish, rounded as a bound by default."""
    if value is None:
        return number(value)
    rounding = toward or ("down" if isinstance(target, WantedBayesSecurity) else "up")
    text = number(value, toward=rounding, digits=digits)
    for more in range(digits + 1, _MOST_DIGITS + 1):
        if not math.isfinite(value) or target.kept_by(float(text)) == target.kept_by(value):
            break
        text = number(value, toward=rounding, digits=more)
    return text


def _wish(name: str, value: object) -> float:
    """Return a number in (0, 1) that is neither nothing nor all in the rounding of a double."""
    wished = _validate.fraction(name, value)
    if wished < _NEAREST:
        raise InputError(
            f"{name} must be {number(_NEAREST)} or more, because less drowns in rounding, got {wished!r};"
            " want a larger one."
        )
    if wished > 1 - _NEAREST:
        raise InputError(
            f"{name} must be at most 1 - {number(_NEAREST)}, because more drowns in rounding, got {wished!r};"
            " want a smaller one."
        )
    return wished


def _share(x: float) -> str:
    """A number below 1 as it was given, and never as 1."""
    text = given(x)
    return unit(x) if float(text) == 1 else text


def _set_adjacency(target: Target) -> None:
    known = _validate.known("adjacency", target.adjacency, [str(item) for item in Adjacency])
    object.__setattr__(target, "adjacency", Adjacency(known))
