"""How often every bound misses a known truth, with the binomial error of that count."""

import json
import math
import zlib
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from auditor import _validate
from auditor.calibration.bounds import BOUNDS, Bound, Trial
from auditor.calibration.laws import LAWS, Law
from auditor.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Calibration", "Row", "calibrate"]

_DELTA = 1e-3
_SMALLEST_SIZE = 50
_ERROR = 0.05
# So many misses or more must be at least this likely at the level; a table has a hundred cells or so.
_UNLIKELY = 1e-4


@dataclass(frozen=True)
class Row:
    """One bound under one law at one size.

    Attributes:
        bound: Its stable name.
        label: Its name in words.
        law: The law of the losses.
        n: Members and non-members, each.
        quantity: What it bounds.
        truth: The true value, infinite where there is no finite one, null where every run has its own.
        miss: What counts as a miss.
        claimed: Whether the bound promises anything here; if not, nothing was run.
        misses: Number of misses.
        runs: Number of runs.
        rate: Their ratio, null where nothing was run.
        low: Lower end of the 95% Clopper-Pearson interval of the rate, null likewise.
        high: Upper end.
        level: What the rate may be at most.
        ok: Whether the misses are compatible with the level; also where nothing is claimed.
    """

    bound: str
    label: str
    law: str
    n: int
    quantity: str
    truth: float | None
    miss: str
    claimed: bool
    misses: int
    runs: int
    rate: float | None
    low: float | None
    high: float | None
    level: float
    ok: bool


@dataclass(frozen=True)
class Calibration:
    """The rows of a calibration, and the settings that reproduce it."""

    rows: tuple[Row, ...]
    runs: int
    sizes: tuple[int, ...]
    confidence: float
    delta: float
    seed: int

    @property
    def ok(self) -> bool:
        """Whether every bound held its level."""
        return all(row.ok for row in self.rows)

    def to_frame(self) -> "pd.DataFrame":
        """Return one row for each bound, law and size."""
        import pandas as pd

        return pd.DataFrame([asdict(row) for row in self.rows])

    def to_json(self) -> str:
        """Return the settings and the rows as JSON; an infinite truth is the string ``inf``."""
        rows = [asdict(row) for row in self.rows]
        for row in rows:
            row["truth"] = "inf" if row["truth"] == math.inf else row["truth"]
        settings = {**asdict(self), "sizes": list(self.sizes), "ok": self.ok, "rows": rows}
        return json.dumps(settings, indent=2, allow_nan=False) + "\n"

    def to_markdown(self) -> str:
        """Return a table of miss rates in percent, one column for each law, with what was promised above it."""
        laws = list(dict.fromkeys(row.law for row in self.rows))
        level = f"{100 * (1 - self.confidence):.4g}"
        says = (
            f"Misses in percent of {self.runs:,} runs, with their 95% binomial interval; at most {level} is promised."
            f" Delta {self.delta:g}, seed {self.seed}. A dash: nothing is promised there."
        )
        lines = [
            says,
            "",
            f"| bound | n | {' | '.join(laws)} |",
            f"| --- | ---: |{' ---: |' * len(laws)}",
        ]
        cells = {(row.bound, row.n, row.law): row for row in self.rows}
        for bound, label, n in dict.fromkeys((row.bound, row.label, row.n) for row in self.rows):
            shown = [_cell(cells.get((bound, n, law))) for law in laws]
            if set(shown) != {_NOTHING}:
                lines.append(f"| {label} | {n:,} | {' | '.join(shown)} |")
        return "\n".join([*lines, "", *self._truths(laws)]) + "\n"

    def _truths(self, laws: list[str]) -> list[str]:
        """The true values, one line for each quantity."""
        cells = {(row.quantity, row.law): row for row in self.rows}
        lines = [f"| true value | {' | '.join(laws)} |", f"| --- |{' ---: |' * len(laws)}"]
        for quantity in dict.fromkeys(row.quantity for row in self.rows):
            shown = [_truth(cells[quantity, law].truth) for law in laws]
            lines.append(f"| {quantity} | {' | '.join(shown)} |")
        return lines


_NOTHING = "-"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _truth(value: float | None) -> str:
    if value is None:
        return "differs by run"
    return "infinite" if math.isinf(value) else f"{value:.4g}"


def _cell(row: Row | None) -> str:
    if row is None or row.rate is None or row.low is None or row.high is None:
        return _NOTHING
    text = f"{_percent(row.rate)} ({_percent(row.low)} to {_percent(row.high)})"
    return text if row.ok else f"**{text}, too many**"


def calibrate(
    *,
    runs: int = 1000,
    sizes: Iterable[int] = (100, 1000),
    confidence: float = 0.95,
    seed: int = 0,
    bounds: Iterable[str] | None = None,
    announce: Callable[[str], None] | None = None,
) -> Calibration:
    """Return how often every bound misses on laws with a known truth; delta is 0.001.

    The laws are: no leakage (a miss is a false alarm), randomised response at epsilon 1, the Laplace mechanism at
    epsilon 1 and two normals one standard deviation apart. Every cell has its own random numbers, so that no choice
    of bounds or sizes changes another cell.

    Args:
        runs: Runs of each cell, 1 or more.
        sizes: Numbers of members (and of non-members), each 50 or more.
        confidence: Of every bound, in (0, 1).
        seed: 0 or more.
        bounds: Names of the bounds to run, by default all; see `auditor.calibration.BOUNDS`.
        announce: Told in a sentence what is being run.

    Raises:
        InputError: A number out of range, a name that is not one, or sizes or bounds of which there are none.

    >>> table = calibrate(runs=20, sizes=[60], bounds=["rank_grid", "auc"])
    >>> table.ok, len(table.rows)
    (True, 8)
    """
    runs = _validate.at_least("runs", runs, least=1)
    chosen_sizes = tuple(_validate.at_least("sizes", size, least=_SMALLEST_SIZE) for size in sizes)
    confidence = _validate.confidence(confidence)
    seed = _validate.at_least("seed", seed, least=0)
    chosen = _chosen(bounds)
    if not chosen or not chosen_sizes:
        raise InputError("a calibration needs at least one bound and at least one size, got none.")
    rows = []
    for place, bound in enumerate(chosen, start=1):
        if announce is not None:
            announce(f"Calibrating {place} of {len(chosen)}: {bound.label} ...")
        for size in chosen_sizes:
            rows += [_row(bound, law, size, runs=runs, confidence=confidence, seed=seed) for law in LAWS]
    return Calibration(tuple(rows), runs, chosen_sizes, confidence, _DELTA, seed)


def _chosen(names: Iterable[str] | None) -> tuple[Bound, ...]:
    by_name = {bound.name: bound for bound in BOUNDS}
    if names is None:
        return BOUNDS
    return tuple(by_name[_validate.known("bounds", name, by_name)] for name in dict.fromkeys(names))


def _row(bound: Bound, law: Law, size: int, *, runs: int, confidence: float, seed: int) -> Row:
    level = round(1 - confidence, 12)
    claimed = bound.claimed(law, size)
    cell = [seed, size, *(zlib.crc32(name.encode()) for name in (bound.name, law.name))]
    trial = Trial(law, size, _DELTA, confidence, np.random.default_rng(cell))
    counts = _counted(sum(bound.missed(trial) for _ in range(runs)), runs, level) if claimed else _NOT_RUN
    truth = None if bound.truth is None else bound.truth(law, _DELTA)
    return Row(
        bound.name,
        bound.label,
        law.name,
        size,
        bound.quantity,
        truth,
        bound.miss,
        claimed,
        level=level,
        **counts,
    )


_NOT_RUN: dict[str, Any] = {"misses": 0, "runs": 0, "rate": None, "low": None, "high": None, "ok": True}


def _counted(misses: int, runs: int, level: float) -> dict[str, Any]:
    from scipy import stats

    from auditor.estimators.binomial import lower_limit, upper_limit

    return {
        "misses": misses,
        "runs": runs,
        "rate": misses / runs,
        "low": float(lower_limit(misses, runs, _ERROR / 2)),
        "high": float(upper_limit(misses, runs, _ERROR / 2)),
        "ok": bool(stats.binom.sf(misses - 1, runs, level) > _UNLIKELY),
    }
