"""Members and non-members as arrays, read from an .npz file and split at random."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import auditor

__all__ = ["SHARE", "Records", "random_split", "read_npz"]

# The paper's split of Purchase-100: 208,731 of 311,540 records are for training.
SHARE = 208_731 / (208_731 + 102_809)


@dataclass(frozen=True)
class Records:
    """The training set (members) and the records that were left out of it (non-members).

    Attributes:
        x_train: Shape (n, d), float32.
        y_train: Shape (n,), classes from 0.
        x_test: As ``x_train``.
        y_test: As ``y_train``.
        source: Which data these are.
    """

    x_train: np.ndarray
    y_train: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    source: str


def random_split(
    x: np.ndarray, y: np.ndarray, *, source: str, share: float = SHARE, seed: int = 2024
) -> Records:
    """Split at random, once and for all: every model of a grid is trained on the same members.

    Args:
        x: Shape (n, d).
        y: Shape (n,).
        source: Which data these are.
        share: Of the records, for training.
        seed: The same seed makes the same split.
    """
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = np.split(order, [round(share * len(y))])
    parts = [np.asarray(x[train], np.float32), y[train], np.asarray(x[test], np.float32), y[test]]
    for part in parts:
        part.flags.writeable = False
    return Records(*parts, source=source)


def read_npz(path: str | Path, *, name: str, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Read features ``x`` and classes ``y`` (from 0) from an .npz file.

    Args:
        path: The file; nothing pickled in it is read.
        name: What the data are called, for the error.
        where: Where to get them, for the error.

    Raises:
        auditor.InputError: No such file, or one without such arrays.
    """
    if not Path(path).is_file():
        raise auditor.InputError(f"path must be the .npz file of {name}, got {str(path)!r}; {where}.")
    try:
        with np.load(path, allow_pickle=False) as file:
            x, y = file["x"], file["y"]
    except (KeyError, OSError, ValueError) as error:
        raise auditor.InputError(
            f"{Path(path).name} must be an .npz file with numeric arrays x and y, got one without ({error}); {where}."
        ) from error
    y = np.asarray(y).reshape(-1).astype(int)
    if x.ndim != 2 or len(x) != len(y) or not np.array_equal(np.unique(y), np.arange(y.max() + 1)):
        raise auditor.InputError(
            f"{Path(path).name} must have x of shape (n, d) and y of shape (n,) with classes from 0 and none missing, "
            f"got x {x.shape} and y {y.shape} from {y.min()} to {y.max()}; {where}."
        )
    return x, y
