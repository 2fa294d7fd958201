"""Train an over-fitted neural network on Location-30 and write its losses for `auditor audit`.

Usage: python reports/sample/location30.py LOCATION30_NPZ FOLDER

LOCATION30_NPZ holds ``x`` (5010 x 446, binary) and ``y`` (30 classes), the Foursquare-derived benchmark of Shokri et
al. 2017. A random 1,500 records are the members. location30.parquet appears in FOLDER.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import auditor


def main(data: str, folder: str) -> None:
    """Train on 1,500 records and write the losses of all."""
    with np.load(data, allow_pickle=False) as arrays:
        x, y = arrays["x"].astype(np.float64), arrays["y"]
    x_in, x_out, y_in, y_out = train_test_split(x, y, train_size=1500, random_state=0)
    model = MLPClassifier((128,), alpha=0.0, max_iter=100, tol=0.0, n_iter_no_change=100, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a fixed number of passes, on purpose
        model.fit(x_in, y_in)
    losses = auditor.collect(model, members=(x_in, y_in), nonmembers=(x_out, y_out))
    table = pd.DataFrame(
        {
            "loss": np.concatenate([losses.member, losses.nonmember]),
            "member": np.repeat([1, 0], [losses.n_member, losses.n_nonmember]),
            "group": np.concatenate([y_in, y_out]),
        }
    )
    path = Path(folder) / "location30.parquet"
    table.to_parquet(path, index=False)
    print(
        f"{path}: accuracy {model.score(x_in, y_in):.3f} on members, {model.score(x_out, y_out):.3f} on others"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
