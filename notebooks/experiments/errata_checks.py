"""The errata notebook: what an erratum is, the table of them, and the roads to the independent number of each."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from scipy import integrate, optimize, special, stats

from auditor import Adjacency
from auditor.results import Claim

__all__ = [
    "Errata",
    "Erratum",
    "advantage_by_fourier",
    "answers_delta",
    "answers_epsilon",
    "checked",
    "five_errors",
    "integral",
    "law_by_fourier",
    "normal",
    "replacement_game",
    "stated",
    "table",
]

LOOSE, NAMES = "true, but loose", "names only: same number"


@dataclass(frozen=True, kw_only=True)
class Erratum:
    """A printed number beside the corrected one and an independent check of both.

    Attributes:
        where: Document and place.
        says: What is printed.
        correct: What it should be, and why.
        quantity: What the numbers are, with their settings.
        printed: What the printed form gives, or what the text claims; NaN where it is not defined.
        corrected: What the corrected form gives.
        check: The same quantity by another road.
        within: How far apart two of them may be to count as equal.
        how: The road to the check.
        relation: "=", or "<=" where printed and corrected are upper bounds of the check.
        by: What the corrected form is computed with: the package, or by hand where it does not have the quantity.
        kind: What to call it where the check bears out the corrected form and not the printed one.
        expected: The outcome that ``correct`` names; by default ``kind``.
        besides: What else was found, in a few words.
    """

    where: str
    says: str
    correct: str
    quantity: str
    printed: float
    corrected: float
    check: float
    within: float
    how: str
    relation: str = "="
    by: str = "auditor"
    kind: str = "confirmed"
    expected: str = ""
    besides: str = ""

    def fits(self, value: float) -> bool:
        """Whether the check bears this value out: equal to it, or not above it where it is an upper bound."""
        if self.relation == "<=":
            return self.check <= value + self.within
        return self.check == value or abs(self.check - value) <= self.within

    @property
    def outcome(self) -> str:
        """In words: whether the corrected form is borne out, and if so, whether the printed one is as well."""
        if not self.fits(self.corrected):
            return "NOT CONFIRMED"
        if not self.fits(self.printed):
            return self.kind
        return LOOSE if self.printed > self.corrected + self.within else NAMES


# What a paper's module lists: functions that give the errata of one place, each with its derivation.
Errata = Callable[[np.random.Generator], Iterable[Erratum]]


def checked(places: Iterable[Errata], rng: np.random.Generator) -> list[Erratum]:
    """Return the errata of all places, each borne out by its check.

    Args:
        places: Functions that give errata.
        rng: For those that simulate.

    Raises:
        AssertionError: A check does not bear out the correction, or not the outcome that the erratum names.
    """
    found = [erratum for place in places for erratum in place(rng)]
    for erratum in found:
        if erratum.outcome != (erratum.expected or erratum.kind):
            raise AssertionError(erratum)
    return found


# Each column with its least width, in letters' heights; of numbers, which stand to the right, as narrow as they are.
_COLUMNS = {
    "where": 7,
    "printed": 10,
    "correct": 15,
    "what was computed, and the check": 13,
    "as printed": 0,
    "as corrected": 0,
    "check": 0,
    "outcome": 9,
}


def table(found: Iterable[Erratum]) -> str:
    """Return errata as an HTML table, one row each.

    Args:
        found: Of `checked`.
    """
    head = "".join(
        _cell("th", name, at=f"{'left' if width else 'right'};min-width:{width}em")
        for name, width in _COLUMNS.items()
    )
    rows = "".join(f"<tr>{''.join(_cells(erratum))}</tr>" for erratum in found)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _cells(erratum: Erratum) -> Iterator[str]:
    """The cells of one row: words to the left, numbers to the right, all from the top."""
    by_hand = "" if erratum.by == "auditor" else f"; corrected by {erratum.by}"
    yield _cell("td", f"<b>{escape(erratum.where)}</b>")
    yield _cell("td", escape(erratum.says))
    yield _cell("td", escape(erratum.correct))
    yield _cell("td", escape(f"{erratum.quantity} (check: {erratum.how}{by_hand})"))
    for value in (erratum.printed, erratum.corrected, erratum.check):
        yield _cell("td", "undefined" if math.isnan(value) else f"{value:.4g}", at="right")
    besides = f"<br>{escape(erratum.besides)}" if erratum.besides else ""
    yield _cell("td", f"<b>{escape(erratum.outcome)}</b>{besides}")


def _cell(tag: str, inside: str, *, at: str = "left") -> str:
    return f'<{tag} style="vertical-align:top;text-align:{at}">{inside}</{tag}>'


def five_errors(draws: int) -> float:
    """Return five standard errors of a share of so many simulated cases, at most."""
    return 5 * 0.5 / math.sqrt(draws)


def normal(x: Any, mean: float = 0.0, sd: float = 1.0) -> Any:
    """Return the density of a normal law."""
    return np.exp(-(((x - mean) / sd) ** 2) / 2) / (sd * math.sqrt(2 * math.pi))


def integral(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the integral of a function with kinks, on 64 pieces."""
    points = np.linspace(low, high, 65)[1:-1]
    return float(integrate.quad(function, low, high, points=points, limit=500)[0])


def stated(metric: str, value: float) -> Claim:
    """Return a claim that somebody states, for replaced records."""
    return Claim(metric, value, None, Adjacency.REPLACE_ONE, "stated", proven=True)


def answers_delta(epsilon: float, *, steps: int, at: float) -> float:
    """Return the exact delta, at the epsilon ``at``, of so many randomised responses of ``epsilon`` each."""
    truthful = np.arange(steps + 1)
    losses = epsilon * (2 * truthful - steps)
    return float(
        stats.binom.pmf(truthful, steps, special.expit(epsilon)) @ -np.expm1(np.minimum(at - losses, 0.0))
    )


def answers_epsilon(epsilon: float, *, steps: int, delta: float) -> float:
    """Return the smallest epsilon, at ``delta``, of so many randomised responses of ``epsilon`` each."""
    return float(
        optimize.brentq(
            lambda at: answers_delta(epsilon, steps=steps, at=at) - delta, 0, epsilon * steps, xtol=1e-12
        )
    )


def replacement_game(
    sign: int, *, runs: int, rate: float, steps: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Play DP-SGD with noise 1 and a record whose gradients are ``sign`` (the other's: -``sign``), 1,000 runs at a time.

    Yields:
        The attacker's log(first world / second world) of each run.
    """
    for _ in range(runs // 1000):
        x = rng.normal(size=(1000, steps)) + sign * (rng.random((1000, steps)) < rate)
        ratios = (np.log1p(rate * np.expm1(way * x - 0.5)).sum(axis=1) for way in (1, -1))
        yield next(ratios) - next(ratios)


def law_by_fourier(
    *, rate: float, noise: float, steps: int, cell: float = 2e-5, cells: int = 2**20
) -> tuple[np.ndarray, np.ndarray]:
    """Return losses and their masses in the replacement game: one step's law on a grid, composed by a Fourier transform.

    Each loss is split between two neighbouring cells so that its mean stays exact; its variance grows by at most
    ``cell**2 / 4`` a step.
    """
    x = np.linspace(-9 * noise, 9 * noise + 1, 400_001)
    mass = ((1 - rate) * normal(x, 0, noise) + rate * normal(x, 1, noise)) * (x[1] - x[0])
    up, down = (np.log1p(rate * np.expm1((2 * way * x - 1) / (2 * noise**2))) for way in (1, -1))
    place = (up - down) / cell
    low = np.floor(place).astype(int)
    law = np.bincount(low % cells, mass * (1 - (place - low)), cells)
    law += np.bincount((low + 1) % cells, mass * (place - low), cells)
    composed = np.fft.irfft(np.fft.rfft(law / law.sum()) ** steps, cells)
    return np.fft.fftfreq(cells, 1 / (cells * cell)), composed


def advantage_by_fourier(*, rate: float, noise: float, steps: int) -> float:
    """Return the largest advantage in the replacement game: its law is its own mirror image, so 2 P(loss > 0) + P(0) - 1."""
    losses, masses = law_by_fourier(rate=rate, noise=noise, steps=steps)
    return float(2 * masses[losses > 0].sum() + masses[losses == 0].sum() - 1)
