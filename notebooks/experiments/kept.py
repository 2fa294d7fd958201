"""Results of the full settings that the repository keeps, so that every reader sees the whole grid: ``results/*.csv``.

They hold what was measured on each trained model, and none of the data. To make them again, in the folder of the notebooks,
with the environment variables of `experiments.dp_training.DATA`; models that the folder in RUNS lacks are trained first::

    ADULT=/path/to/adult LOCATION30=/path/to/location30.npz python -m experiments.kept adult location30
"""

import argparse
import importlib.metadata
import platform
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd

import auditor
from experiments.epsilon_landscape import compared, every_estimate
from experiments.landscape import folder_of, run
from experiments.strategies import GRIDS

__all__ = ["kept_landscape"]

FOLDER = Path(__file__).parents[1] / "results"
COMPONENTS = 10  # of the mixtures, at most
_OF_MODELS = ["strategy", "repeat", "utility", "train_accuracy", "stated", "corrected"]
_OF_MODELS += ["epsilon_star", "noise floor", "certified"]
_OF_FIRST = ["mixture", "counts", "normal rejected", "mixture rejected"]
_LIBRARIES = ("numpy", "scipy", "tensorflow", "tensorflow-privacy")


def kept_landscape(data: str) -> pd.DataFrame:
    """Return a line for each model of a published grid: its strategy, utility, Epsilon*, noise floor and certified bound.

    On Adult the first model of each strategy has the estimates of `experiments.epsilon_landscape.every_estimate` as well.

    Args:
        data: "adult" or "location30".
    """
    frame = pd.read_csv(FOLDER / f"landscape-{data}.csv", comment="#")
    kinds = frame["strategy"].str.split(",").str[0]
    wanted = pd.to_numeric(kinds.str.removeprefix("DP epsilon "), errors="coerce").fillna(np.inf)
    return frame.assign(kind=kinds, **{"trained to": wanted})


def _landscape(data: str, *, repeats: int) -> pd.DataFrame:
    trained = run(GRIDS[data](), repeats=repeats, folder=folder_of(data), verbose=10)
    lines = compared(trained)[0][_OF_MODELS]
    if data != "adult":
        return lines
    first = every_estimate(trained, components=COMPONENTS, full=True, verbose=10)[_OF_FIRST]
    of_first = lines[lines["repeat"] == 0].join(first, on="strategy")[_OF_FIRST]
    return lines.join(of_first)


def main() -> None:
    """Write the grids that are asked for, with the command and the versions that made them."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("names", nargs="+", choices=["adult", "location30"])
    parser.add_argument("--repeats", type=int, default=5, help="models of each strategy")
    asked = parser.parse_args()
    versions = [f"{library} {importlib.metadata.version(library)}" for library in _LIBRARIES]
    for name in asked.names:
        frame = _landscape(name, repeats=asked.repeats)
        made = (
            f"# python -m experiments.kept {name} --repeats {asked.repeats} ({datetime.now(UTC):%Y-%m-%d})\n"
        )
        made += (
            f"# Python {platform.python_version()}, {', '.join(versions)}, auditor {auditor.__version__}\n"
        )
        text = made + frame.to_csv(index=False, float_format="%.5g", lineterminator="\n")
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"landscape-{name}.csv").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
