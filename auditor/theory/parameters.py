"""The noise, sampling rate or number of steps that a wanted promise requires.

Every answer is rounded to the side that protects better, and the promise is then worked out again at the answer.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np
import scipy
from scipy.special import erfcinv, ndtri

from auditor.core import DPSGD, Adjacency, Claim, InputError, PoissonSampling, Sampling, options, validate
from auditor.core.numbers import as_stated, count, enough_digits, number, rounded
from auditor.theory import attackers, closed_form
from auditor.theory.accountant import epsilon
from auditor.theory.gaussian import StepPair, columns, gaussian_mu

# --- Promises that a training run may have to keep, and the results ---
#
# Each names the neighbours it is about: what an attacker finds out about replaced records (train-versus-fresh-record
# membership inference) unless said otherwise, and an epsilon about added or removed ones, as everywhere in this package.

# Closer than this to nothing or to all, a wish is lost in the rounding of the compared value.
_NEAREST = 1e-12


class _Wanted:
    """Wanted limit on an attacker's gain, and the comparison of a training run with it."""

    quantity: ClassVar[str]
    toward: ClassVar[str] = "up"  # a number is rounded so to stay a bound
    condition: ClassVar[tuple[str, str]] = ("", "")  # of a rate, in words, and the field with its level
    most: float
    adjacency: Adjacency

    @property
    def limit(self) -> float:
        """The wanted number."""
        return self.most

    @property
    def guessing(self) -> float:
        """The part of the number that an attacker reaches by guessing."""
        return 0.0

    def meets(self, value: float) -> bool:
        """Return whether a value of the quantity keeps the promise."""
        return value >= self.limit if self.toward == "down" else value <= self.limit

    def leak(self, value: float) -> float:
        """Return the attacker's gain over guessing at a value of the quantity."""
        return value - self.guessing

    @property
    def allowed(self) -> float:
        """Gain allowed to an attacker."""
        return self.leak(self.limit)

    @property
    def harmless(self) -> float:
        """The probability of entering any step up to which the promise holds without any noise."""
        return self.allowed / (1 - self.guessing)

    def half_mu(self) -> float:
        """Return half the distance of two unit normals that just keep the promise: a first guess."""
        return gaussian_mu(0.0, delta=self.allowed) / 2

    def exactly(self, training: DPSGD) -> Claim:
        """Return the promise of a run by the exact method."""
        return attackers.total_variation(training, adjacency=self.adjacency)

    def in_words(self) -> str:
        """Return the promise as a phrase."""
        side = "at least" if self.toward == "down" else "at most"
        return f"{self.quantity} of {side} {self.limit_in_words()}, {self.adjacency}"

    def limit_in_words(self) -> str:
        """Return the number, distinct from what guessing reaches and never as 1, and its condition."""
        text, (words, level) = _share(self.limit, above=self.guessing), self.condition
        return f"{text} at {words} {_share(getattr(self, level))}" if words else text

    def _set(self, **checked: float) -> None:
        vars(self).update(checked, adjacency=Adjacency.named(self.adjacency))

    def _refuse_guessing(self, beside: str) -> None:
        if self.allowed < _NEAREST:
            raise InputError(
                f"wanted {self.quantity} must be {number(_NEAREST)} or more above {beside},"
                f" which an attacker reaches by guessing, got {self.most!r}; want a larger one."
            )


@dataclass(frozen=True)
class WantedBayesSecurity(_Wanted):
    """A Bayes security of ``least`` or more, from 1e-12 to 1 - 1e-12.

    >>> WantedBayesSecurity(0.98).in_words()
    'Bayes security of at least 0.98, replace-one'
    """

    quantity: ClassVar[str] = "Bayes security"
    toward: ClassVar[str] = "down"
    least: float
    adjacency: Adjacency = Adjacency.REPLACE_ONE

    def __post_init__(self) -> None:
        self._set(least=_wish("wanted Bayes security", self.least))

    @property
    def limit(self) -> float:
        """The wanted Bayes security."""
        return self.least

    def leak(self, value: float) -> float:
        """Return the advantage at this Bayes security."""
        return 1 - value

    def half_mu(self) -> float:
        """Return half the distance of two unit normals that just keep the promise."""
        return math.sqrt(2) * float(erfcinv(self.least))

    def exactly(self, training: DPSGD) -> Claim:
        """Return the promise of a run by the exact method."""
        return attackers.bayes_security_from_advantage(super().exactly(training))


@dataclass(frozen=True)
class WantedAdvantage(_Wanted):
    """A membership advantage (TPR - FPR) of ``most`` or less for every attacker, from 1e-12 to 1 - 1e-12.

    >>> WantedAdvantage(0.02).in_words()
    'advantage of at most 0.02, replace-one'
    """

    quantity: ClassVar[str] = "advantage"
    most: float
    adjacency: Adjacency = Adjacency.REPLACE_ONE

    def __post_init__(self) -> None:
        self._set(most=_wish("wanted advantage", self.most))


@dataclass(frozen=True)
class WantedEpsilon(_Wanted):
    """An epsilon of ``most`` or less, above 0 and in nats, at ``delta`` in (0, 1).

    >>> WantedEpsilon(1.0, delta=1e-5).in_words()
    'epsilon of at most 1 at delta 1e-5, add-remove'
    """

    quantity: ClassVar[str] = "epsilon"
    most: float
    delta: float
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        most, delta = validate.positive("wanted epsilon", self.most), validate.fraction("delta", self.delta)
        self._set(most=most, delta=delta)

    @property
    def harmless(self) -> float:
        """The probability of entering any step that delta covers."""
        return self.delta

    def half_mu(self) -> float:
        """Return half the distance of two unit normals that just keep the promise."""
        return gaussian_mu(self.most, delta=self.delta) / 2

    def exactly(self, training: DPSGD) -> Claim:
        """Return the promise of a run by the exact law."""
        return epsilon(training, delta=self.delta, adjacency=self.adjacency)

    def limit_in_words(self) -> str:
        """Return the epsilon, and its delta."""
        return f"{as_stated(self.most)} at delta {as_stated(self.delta)}"


@dataclass(frozen=True)
class WantedTPR(_Wanted):
    """A true positive rate of ``most`` or less for every attacker of false positive rate ``at_fpr``.

    It is at most 1 - 1e-12 and by 1e-12 or more above ``at_fpr``, which an attacker reaches by guessing.

    >>> WantedTPR(0.01, at_fpr=0.001).in_words()
    'true positive rate of at most 0.01 at false positive rate 0.001, replace-one'
    """

    quantity: ClassVar[str] = "true positive rate"
    condition: ClassVar[tuple[str, str]] = ("false positive rate", "at_fpr")
    most: float
    at_fpr: float
    adjacency: Adjacency = Adjacency.REPLACE_ONE

    def __post_init__(self) -> None:
        most, fpr = _wish("wanted true positive rate", self.most), validate.fraction("at_fpr", self.at_fpr)
        self._set(most=most, at_fpr=fpr)
        self._refuse_guessing(f"its false positive rate {fpr!r}")

    @property
    def guessing(self) -> float:
        """The false positive rate."""
        return self.at_fpr

    def half_mu(self) -> float:
        """Return half the distance of two unit normals that just keep the promise."""
        return float(ndtri(self.most) - ndtri(self.at_fpr)) / 2

    def exactly(self, training: DPSGD) -> Claim:
        """Return the promise of a run by the exact method."""
        return attackers.tpr_exact(training, fpr=self.at_fpr, adjacency=self.adjacency)


@dataclass(frozen=True)
class WantedSuccess(_Wanted):
    """A success rate of ``most`` or less: no attacker who knows ``prior`` is right about a record more often.

    The prior is the probability, before the attacker looks, that the record was in the training set (for replaced records:
    that it was the first of the two). The rate is at most 1 - 1e-12 and by 1e-12 or more above the larger of the prior and
    its complement, which an attacker reaches by guessing.

    >>> WantedSuccess(0.55, prior=0.5).in_words()
    'success rate of at most 0.55 at prior 0.5, replace-one'
    """

    quantity: ClassVar[str] = "success rate"
    condition: ClassVar[tuple[str, str]] = ("prior", "prior")
    most: float
    prior: float
    adjacency: Adjacency = Adjacency.REPLACE_ONE

    def __post_init__(self) -> None:
        self._set(most=_wish("wanted success rate", self.most), prior=validate.fraction("prior", self.prior))
        self._refuse_guessing(f"{self.guessing!r}")

    @property
    def guessing(self) -> float:
        """The larger of the prior and its complement."""
        return max(self.prior, 1 - self.prior)

    @property
    def harmless(self) -> float:
        """The probability of entering any step up to which the promise holds without any noise.

        A record seen in a step was in the training set; of added records, one that is not seen may still have been.
        """
        if self.adjacency is Adjacency.ADD_REMOVE:
            return (self.most - 1 + self.prior) / self.prior
        return super().harmless

    def half_mu(self) -> float:
        """Return half the distance of two unit normals that just keep the promise."""
        return gaussian_mu(math.log(self.guessing / (1 - self.guessing)), delta=super().harmless) / 2

    def exactly(self, training: DPSGD) -> Claim:
        """Return the promise of a run by the exact method."""
        return attackers.success_rate(training, prior=self.prior, adjacency=self.adjacency)


_Target = WantedBayesSecurity | WantedAdvantage | WantedEpsilon | WantedTPR | WantedSuccess
TARGETS: dict[str, Callable[..., _Target]] = {
    "advantage": WantedAdvantage,
    "bayes-security": WantedBayesSecurity,
    "epsilon": WantedEpsilon,
    "tpr": WantedTPR,
    "success": WantedSuccess,
}


@dataclass(frozen=True)
class FoundParameter:
    """A parameter that keeps a promise, and the promise that it reaches.

    Attributes:
        name: ``noise_multiplier``, ``sampling_rate`` or ``steps``.
        value: Its value, rounded to the side that protects better.
        target: Wanted promise.
        training: The whole training run.
        promise: The claim at that value: never worse than wanted.
    """

    name: str
    value: float
    target: _Target
    training: DPSGD
    promise: Claim

    def in_words(self) -> str:
        """Return the answer as a sentence."""
        if self.name == "steps":
            subject = f"{count(int(self.value))} {'step keeps' if self.value == 1 else 'steps keep'}"
        else:
            subject = f"{self.name.replace('_', ' ').capitalize()} {as_stated(self.value, digits=6)} keeps"
        reached = _on_its_side(self.target, self.promise.value, digits=6)
        outcome = f"(reached: {reached}; {self.promise.status}: {self.promise.method})."
        return f"{subject} the wanted {self.target.in_words()} {outcome}"


def _wish(name: str, value: object) -> float:
    """Return a number in (0, 1) that is neither nothing nor all in the rounding of a double."""
    wished = validate.fraction(name, value)
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


def _share(x: float, *, above: float = 0.0) -> str:
    """Return a number below 1 as stated, never as 1, and with enough digits to lie above another one."""
    return enough_digits(lambda digits: as_stated(x, digits=digits), lambda text: above < float(text) < 1)


def _on_its_side(target: _Target, value: float | None, *, digits: int = 3, toward: str | None = None) -> str:
    """Return a number with as many digits as it takes to stay on its side of the wish, rounded as a bound by default."""
    if value is None or not math.isfinite(value):
        return number(value)
    return enough_digits(
        lambda digits: number(value, toward=toward or target.toward, digits=digits),
        lambda text: target.meets(float(text)) == target.meets(value),
        least=digits,
    )


# --- The parameter that keeps a promise ---

_MOST_STEPS = 1e12


def noise_multiplier_for(
    target: _Target | str,
    *,
    sampling_rate: Any,
    steps: int | None = None,
    sampling: Sampling = PoissonSampling(),  # noqa: B008  a frozen value
) -> FoundParameter:
    """Return the smallest noise multiplier that keeps a promise.

    Args:
        target: `WantedBayesSecurity`, `WantedAdvantage`, `WantedEpsilon`, `WantedTPR` or `WantedSuccess`, with its neighbours;
            or a text: ``advantage:0.05``, ``bayes-security:0.9``, ``epsilon:2,delta=1e-5``, ``tpr:0.1,at_fpr=0.01`` or
            ``success:0.6,prior=0.5``, each with ``adjacency=add-remove`` or ``adjacency=replace-one`` behind it.
        sampling_rate: As in `DPSGD`: a number, or one for each step.
        steps: Number of steps; may be left out with a vector.
        sampling: Sampling of the batches.

    Returns:
        The noise multiplier, within about 1e-5 (relatively) of the smallest and never below it.

    Raises:
        InputError: A number out of range; a target that every noise keeps, with what almost no noise gives; or one that no
            noise up to 1e12 was found to keep.

    >>> result = noise_multiplier_for(WantedBayesSecurity(0.98), sampling_rate=0.001, steps=5000)
    >>> result.value, result.promise.status
    (2.82415, 'proven')
    """
    target = _chosen(target)
    base = _base(target, 1.0, sampling_rate, steps, sampling)
    _refuse_any_noise(target, base)
    return _found(_Axis(base, "noise_multiplier", upward=True, least=1e-6, most=1e12), target)


def sampling_rate_for(
    target: _Target | str,
    *,
    noise_multiplier: Any,
    steps: int | None = None,
    sampling: Sampling = PoissonSampling(),  # noqa: B008
) -> FoundParameter:
    """Return the largest sampling rate that keeps a promise; 1 where every rate does.

    Args:
        target: As in `noise_multiplier_for`.
        noise_multiplier: As in `DPSGD`: a number, or one for each step.
        steps: Number of steps; may be left out with a vector.
        sampling: Sampling of the batches.

    Returns:
        The sampling rate, within about 1e-5 (relatively) of the largest and never above it. There is one for every target
        that is not absurdly small: one so small that the record is hardly ever drawn.

    Raises:
        InputError: A number out of range.

    >>> sampling_rate_for(WantedBayesSecurity(0.98), noise_multiplier=1.0, steps=5000).value
    0.000327291
    """
    target = _chosen(target)
    base = _base(target, noise_multiplier, 1.0, steps, sampling)
    # So seldom drawn at all that the promise holds without any noise; by a union bound, as `epsilon` has it.
    by_union, harmless = isinstance(target, WantedEpsilon), target.harmless
    seldom = harmless / base.steps if by_union else -math.expm1(math.log1p(-harmless) / base.steps)
    axis = _Axis(base, "sampling_rate", upward=False, least=1e-300, most=1.0)
    return _found(axis, target, harmless=min(1.0, seldom))


def steps_for(
    target: _Target | str,
    *,
    noise_multiplier: float,
    sampling_rate: float,
    sampling: Sampling = PoissonSampling(),  # noqa: B008
) -> FoundParameter:
    """Return the largest number of equal steps that keeps a promise.

    Args:
        target: As in `noise_multiplier_for`.
        noise_multiplier: Above 0.
        sampling_rate: In (0, 1].
        sampling: Sampling of the batches.

    Returns:
        The number of steps, within about 1e-5 (relatively) of the largest, which is exact below 100,000.

    Raises:
        InputError: A number out of range; a target that one step breaks, with what it gives; or one that 1e12 steps keep.

    >>> steps_for(WantedBayesSecurity(0.98), noise_multiplier=1.0, sampling_rate=0.001).value
    538
    """
    target = _chosen(target)
    base = _base(target, noise_multiplier, sampling_rate, 1, sampling)
    # So few that the record is seldom enough drawn at all.
    rate = base.sampling_rate
    few = math.log1p(-target.harmless) / math.log1p(-rate) if rate < 1 else 0.0
    axis = _Axis(base, "steps", upward=False, least=1.0, most=_MOST_STEPS)
    result = _found(axis, target, harmless=min(_MOST_STEPS, few))
    if result.value >= _MOST_STEPS - 1:
        raise InputError(
            f"even {number(_MOST_STEPS)} steps keep the wanted {target.in_words()}; want more than that, or take less noise or"
            " a larger sampling rate."
        )
    return replace(result, value=int(result.value))


def _chosen(target: _Target | str) -> _Target:
    """Return the target, also one that a text names."""
    return cast("_Target", options.chosen("target", target, TARGETS))


def _base(target: _Target, noise: Any, rate: Any, steps: int | None, sampling: Sampling) -> DPSGD:
    """Return a run if the wish is one, and about something that batches drawn like these promise."""
    training = DPSGD(noise, rate, steps, sampling=sampling)
    if training.fixed_size and target.adjacency is Adjacency.ADD_REMOVE:
        raise InputError(
            f"batches of a fixed size are accounted for replaced records only, got the wanted {target.in_words()};"
            " want it for replace-one."
        )
    return training


def _refuse_any_noise(target: _Target, base: DPSGD) -> None:
    _, rates, counts = columns(base)
    drawn = -math.expm1(float(np.sum(counts * np.log1p(-np.minimum(rates, 1 - 1e-16)))))
    if drawn <= target.harmless:
        raise InputError(
            f"every noise multiplier keeps the wanted {target.in_words()}: the record is drawn at all with a chance of"
            f" only {number(drawn, toward='up')}; want more protection, or take a larger sampling rate or more steps."
        )


# --- Where one parameter of a training run stops keeping a promise, found with few evaluations ---

# The first step away from the guess, in logs; each further one is twice as long.
_FIRST_STEP = 0.05
_TOLERANCE = 1e-5
_DIGITS = 6


@dataclass(frozen=True)
class _Axis:
    """One parameter of a training run, with everything else held.

    Attributes:
        base: The run, whatever its own value of that parameter.
        name: Name of the parameter: ``noise_multiplier``, ``sampling_rate`` or ``steps``.
        upward: Whether larger values protect better.
        least: Smallest value looked at.
        most: Largest value looked at.
    """

    base: DPSGD
    name: str
    upward: bool
    least: float
    most: float

    def training(self, value: float) -> DPSGD:
        """Return the run with this value."""
        change: dict[str, Any] = {self.name: int(value) if self.name == "steps" else value}
        return replace(self.base, **change)

    def at(self, x: float) -> float:
        """Return the value at a coordinate: a logarithm that grows with protection."""
        value = math.exp(max(-700.0, min(700.0, x if self.upward else -x)))
        return self.safer(min(self.most, max(self.least, value)))

    def coordinate(self, value: float) -> float:
        """Return where a value is."""
        log = math.log(min(self.most, max(self.least, value)))
        return log if self.upward else -log

    def safer(self, value: float) -> float:
        """Return the value with six digits (or whole), rounded to the side that protects better."""
        result = min(self.most, max(self.least, value))
        if self.name == "steps":
            return math.floor(result)
        result = rounded(result, toward="up" if self.upward else "down", digits=_DIGITS)
        return min(self.most, max(self.least, result))

    @property
    def extremes(self) -> tuple[float, float]:
        """The coordinates of the least and the most protection."""
        low, high = sorted((self.coordinate(self.least), self.coordinate(self.most)))
        return low, high


def _found(axis: _Axis, target: _Target, *, harmless: float = 0.0) -> FoundParameter:
    """Return the parameter of least protection that keeps the promise, with the promise it keeps.

    Args:
        axis: The parameter.
        target: The promise.
        harmless: Up to here the promise holds without any noise.
    """

    def above(value: float) -> float:
        return _excess(target, promise(target, axis.training(value)))

    value = _boundary(axis, above, guess=max(_guess(axis, target), harmless))
    if value is None:
        # Which does not say that none exists: the bounds may be loose out there.
        strongest = axis.at(axis.extremes[1])
        reached = promise(target, axis.training(strongest))
        still = _on_its_side(target, reached.value, toward="nearest")
        name, instead = _ASKED[axis.name]
        raise InputError(
            f"no {name} {'up' if axis.upward else 'down'} to {number(strongest)} was found that keeps the wanted"
            f" {target.in_words()}: at {number(strongest)} the bound is still {still} ({reached.method}); ask for less"
            f" protection, or take {instead}."
        )
    training = axis.training(value)
    return FoundParameter(axis.name, value, target, training, promise(target, training))


def _boundary(axis: _Axis, excess: Callable[[float], float], *, guess: float) -> float | None:
    """Return the value of least protection at which ``excess`` is not above 0, to about 1e-5 (relatively).

    Args:
        axis: The parameter.
        excess: Falls with protection; every call may take a second.
        guess: A value near the boundary.

    Returns:
        A value that was evaluated and keeps the promise; None if none does.
    """
    tried: dict[float, float] = {}

    def at(x: float) -> float:
        value = axis.at(x)
        if value not in tried:
            tried[value] = excess(value)
        return tried[value]

    low, high = _bracket(axis, at, axis.coordinate(guess))
    if at(high) > 0:
        return None
    if at(low) > 0:
        scipy.optimize.brentq(at, low, high, xtol=_TOLERANCE)
    enough = [value for value, above in tried.items() if above <= 0]
    return min(enough, key=axis.coordinate)


def _bracket(axis: _Axis, at: Callable[[float], float], start: float) -> tuple[float, float]:
    """Return two coordinates between which the boundary lies, or twice the end beyond which it does."""
    weakest, strongest = axis.extremes
    broken = at(start) > 0
    near = far = start
    step = _FIRST_STEP
    while (at(far) > 0) == broken and far != (strongest if broken else weakest):
        near, far = far, min(far + step, strongest) if broken else max(far - step, weakest)
        step *= 2
    return (near, far) if broken else (far, near)


# The parameter searched for, and the change to suggest if none is found.
_ASKED = {
    "noise_multiplier": ("noise multiplier", "a smaller sampling rate or fewer steps"),
    "sampling_rate": ("sampling rate", "more noise or fewer steps"),
    "steps": ("number of steps", "more noise or a smaller sampling rate"),
}


# --- What one training run does for a wanted promise: the claim, and how far it is from the wanted number ---

# Logarithms of ratios beyond this say no more than their sign.
_FAR = 3.0


def promise(target: _Target, training: DPSGD) -> Claim:
    """Return the claim that the training run makes about the target's quantity.

    Raises:
        InputError: It cannot be computed.
    """
    claim = target.exactly(training)
    if claim.value is None:
        why = claim.note.rstrip(".")
        raise InputError(f"the wanted {target.in_words()} cannot be worked out here: {why}.")
    return claim


def _excess(target: _Target, claim: Claim) -> float:
    """Return the log of the leak over the wanted one, capped: not above 0 if and only if the promise is kept."""
    value = cast("float", claim.value)  # of `promise`, which refuses a claim without one
    leak = target.leak(value)
    ratio = -_FAR if leak <= 0 else max(-_FAR, min(_FAR, math.log(leak) - math.log(target.allowed)))
    return min(0.0, ratio) if target.meets(value) else max(1e-12, ratio)


def _guess(axis: _Axis, target: _Target) -> float:
    """Return where the Gaussian comparison of the moment-matched form just keeps the promise."""
    wanted = math.log(target.half_mu())
    place = ("noise_multiplier", "sampling_rate", "steps").index(axis.name)
    kinds, pair = list(columns(axis.base)), StepPair.of(axis.base, target.adjacency)

    def above(log_value: float) -> float:
        kinds[place] = np.full_like(kinds[place], math.exp(log_value))
        return closed_form.log_half_matched(*kinds, pair=pair) - wanted

    low, high = math.log(axis.least), math.log(axis.most)
    if above(low) * above(high) > 0:
        return axis.least if (above(low) > 0) != axis.upward else axis.most
    return math.exp(scipy.optimize.brentq(above, low, high, xtol=1e-15))
