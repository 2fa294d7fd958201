"""A DP-SGD run described step by step in a table."""

import os
from pathlib import Path

import numpy as np

from auditor import _validate
from auditor.collectors.cells import numbers
from auditor.collectors.tables import opened
from auditor.errors import InputError
from auditor.training import DPSGD, PoissonSampling, Sampling
from auditor.values import Floats

__all__ = ["read_schedule"]

_NEEDED = ("noise_multiplier", "sampling_rate")
_OPTIONAL = ("clipping_norm", "steps")
_MOST_STEPS = 10_000_000
_HINT = "Name the columns of a schedule 'noise_multiplier' and 'sampling_rate', and 'clipping_norm' and 'steps' if any."


def read_schedule(
    path: str | os.PathLike[str],
    *,
    sampling: Sampling = PoissonSampling(),  # noqa: B008 - a frozen value
) -> DPSGD:
    r"""Read a training run from a table with one row for each step, or for several equal steps.

    Args:
        path: A ``.csv``, ``.parquet`` or ``.npz`` file with the columns ``noise_multiplier`` and ``sampling_rate``, and
            if wanted ``clipping_norm`` (default 1) and ``steps`` (how many steps a row stands for, default 1).
        sampling: How batches are drawn.

    Returns:
        The run, its rows in the order of the file.

    Raises:
        InputError: A file that cannot be read, a missing column, or a number out of range, with its column and row.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "steps.csv"
    ...     _ = path.write_text("noise_multiplier,sampling_rate,steps\n1.0,0.01,500\n2.0,0.01,500\n")
    ...     read_schedule(path).in_words()
    'DP-SGD with noise multiplier 1 to 2 (by step), sampling rate 0.01 and 1,000 steps'
    """
    file = Path(path)
    table = opened(file)
    place = f"file {str(file)!r}"
    names = [*_NEEDED, *(name for name in _OPTIONAL if _meant(name, table.names))]
    for name in names:
        _validate.column_name(name, what=name.replace("_", " "), file=place, options=table.names, hint=_HINT)
    columns = table.read(names, text=[])
    found = {name: _column(columns[name], name=name, file=file, rows=table.rows) for name in names}
    _validate.same_length(
        [f"column {name!r} of {str(file)!r}" for name in names], [len(found[name]) for name in names]
    )
    if not found[_NEEDED[0]].size:
        raise InputError(
            f"{place} must describe at least one step, got a table without rows; add a row for each step."
        )
    steps = found.pop("steps", np.ones(len(found[_NEEDED[0]])))
    parts = (steps < 1) | (steps != np.floor(steps))
    _refuse("steps", steps, parts, "a whole number of 1 or more", file, table.rows)
    with np.errstate(over="ignore"):
        total = steps.sum()
    if total > _MOST_STEPS:
        raise InputError(
            f"{place} must describe at most {_MOST_STEPS:,} steps, got {total:,.0f}; describe a run of equal steps"
            " by one noise multiplier, sampling rate and number of steps."
        )
    counts = steps.astype(np.int64)
    repeated = {name: np.repeat(column, counts) for name, column in found.items()}
    return DPSGD(**repeated, sampling=sampling)


def _meant(name: str, names: list[str]) -> bool:
    """Return whether the file has this column, if only in other capitals: then it must not be passed over."""
    return name in {found.casefold() for found in names}


def _column(column: Floats, *, name: str, file: Path, rows: str) -> Floats:
    place = f"column {name!r} of {str(file)!r}"
    found = numbers(_validate.column(place, column), place=place, rows=rows)
    for kind, bad in (("NaN or blank", np.isnan(found)), ("infinite", np.isinf(found))):
        if bad.any():
            raise InputError(
                f"{place} must hold a finite number in every row, got {int(bad.sum())} {kind} (first at row"
                f" {int(np.argmax(bad))}, {rows}); fill in the value of that step."
            )
    if name == "sampling_rate":
        _refuse(name, found, (found <= 0) | (found > 1), "in (0, 1]", file, rows)
    elif name != "steps":
        _refuse(name, found, found <= 0, "above 0", file, rows)
    return found


def _refuse(
    name: str,
    column: Floats,
    wrong: "np.ndarray[tuple[int], np.dtype[np.bool_]]",
    rule: str,
    file: Path,
    rows: str,
) -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"column {name!r} of {str(file)!r} must be {rule}, got {column[row]:g} (row {row}, {rows}); correct that"
            " step."
        )
