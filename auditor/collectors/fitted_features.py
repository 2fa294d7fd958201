"""Features in the form that an estimator was fitted on: a DataFrame with its columns by name, or a plain matrix."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from auditor.collectors import matrices
from auditor.collectors.records import Records
from auditor.errors import InputError

__all__ = ["as_fitted", "last_step", "quiet", "refuse_missing"]

_SHOWN = 5  # missing columns listed before the rest are left out
_TEXT = "sklearn.feature_extraction.text"


def as_fitted(model: Any, records: Records) -> Any:
    """Return the features of a batch in the form that the model was fitted on.

    A DataFrame is put into the order of the names that the model knows; without such names it becomes a matrix. An
    array gets the names. What the model knows nothing about is passed as it is.

    Raises:
        InputError: Another number of columns than the model was fitted on.
    """
    features, known = records.features, fitted_names(model)
    if matrices.is_frame(features):
        if known is not None:
            given = matrices.names(features)
            complete = set(known) <= set(given)
            return features[known] if complete and given != known else features
        if _reads_text(model) and len(matrices.names(features)) == 1:
            return features[matrices.names(features)[0]]
    wanted = getattr(model, "n_features_in_", None)
    if wanted is None:
        return features
    matrices.refuse_width(features, wanted=wanted, model=type(model).__name__, place=records.name)
    if matrices.is_frame(features):
        return features.to_numpy()
    if known is not None and isinstance(features, np.ndarray) and features.ndim == 2:  # noqa: PLR2004
        import pandas as pd

        return pd.DataFrame(features, columns=known, copy=False)
    return features


def refuse_missing(model: Any, records: Records) -> None:
    """Name the columns that a model was fitted on and a DataFrame does not have, if there are such."""
    known = fitted_names(model)
    if known is None or not matrices.is_frame(records.features):
        return
    given = set(matrices.names(records.features))
    missing = [name for name in known if name not in given]
    if missing:
        shown = ", ".join(map(repr, missing[:_SHOWN])) + (", ..." if len(missing) > _SHOWN else "")
        raise InputError(
            f"{records.name} X must have the {len(known)} columns that {type(model).__name__} was fitted on, but"
            f" {len(missing)} {'is' if len(missing) == 1 else 'are'} missing: {shown}."
        )


def fitted_names(model: Any) -> list[str] | None:
    """Return the names of the columns that a model was fitted on; none where it was fitted on an array."""
    found = getattr(model, "feature_names_in_", None)
    if found is None:
        return None
    known = [str(name) for name in found]
    # LightGBM makes names up for the columns of an array.
    return None if all(re.fullmatch(rf"Column_{i}", name) for i, name in enumerate(known)) else known


def last_step(model: Any) -> Any:
    """Return the estimator that decides: the last step of a pipeline, the best one of a search."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif isinstance(steps := getattr(model, "steps", None), list) and steps:
            model = steps[-1][1]
        else:
            return model


@contextmanager
def quiet() -> Iterator[None]:
    """Keep a model from warning of names that an array, a sparse matrix or a list cannot have."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names", category=UserWarning)
        yield


def _reads_text(model: Any) -> bool:
    """Return whether the first step of a pipeline, or of the best one of a search, counts words."""
    model = getattr(model, "best_estimator_", model)
    steps = getattr(model, "steps", None)
    first = steps[0][1] if isinstance(steps, list) and steps else model
    return any(cls.__module__ == _TEXT for cls in type(first).__mro__)
