"""Feature tables of audited and calibration records as numbers, coded alike."""

from typing import Any

import numpy as np

from auditor._validate import one_line
from auditor.errors import InputError
from auditor.values import Floats

__all__ = ["encoded"]


def encoded(features: Any, calibration: Any) -> tuple[Floats, Floats, Floats]:
    """Return the features of members, non-members and calibration records: numbers as they are, other values by rank.

    Raises:
        InputError: Not tables, other columns, or infinite values.
    """
    import pandas as pd

    member, nonmember = _pair(features)
    frames = {
        name: _frame(name, table)
        for name, table in (
            ("member features", member),
            ("nonmember features", nonmember),
            ("calibration features", calibration),
        )
    }
    wanted = [str(column) for column in frames["member features"].columns]
    for name, frame in frames.items():
        if [str(column) for column in frame.columns] != wanted:
            raise InputError(
                f"{name} must have the columns of the member features, got {frame.shape[1]} columns against"
                f" {len(wanted)} or others of these names; select the same columns in each table."
            )
    whole = pd.concat([frame.set_axis(wanted, axis=1) for frame in frames.values()], ignore_index=True)
    matrix = _matrix(whole)
    if np.isinf(matrix).any():
        raise InputError(
            f"features must be finite or missing, got {int(np.isinf(matrix).sum()):,} infinite values; remove those"
            " records or columns."
        )
    ends = np.cumsum([len(frame) for frame in frames.values()])
    return matrix[: ends[0]], matrix[ends[0] : ends[1]], matrix[ends[1] :]


def _pair(features: Any) -> tuple[Any, Any]:
    """Both groups' tables, of a pair or of a value with the fields member and nonmember."""
    if hasattr(features, "member") and hasattr(features, "nonmember"):
        return features.member, features.nonmember
    if not isinstance(features, tuple | list) or len(features) != 2:  # noqa: PLR2004
        raise InputError(
            f"features must be a pair (members, non-members) of tables, got {type(features).__name__}."
        )
    return features[0], features[1]


def _frame(name: str, table: Any) -> Any:
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        return table
    dense = table.toarray() if hasattr(table, "toarray") else table
    try:
        array = np.asarray(dense)
        return pd.DataFrame(array.reshape(len(array), -1)).infer_objects()
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be a table with one row per record: {one_line(error)}.") from None


def _matrix(frame: Any) -> Floats:
    import pandas as pd

    if all(pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes):
        return np.asarray(frame.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.column_stack([_numbers(frame.iloc[:, at]) for at in range(frame.shape[1])])


def _numbers(column: Any) -> Floats:
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    code, _ = pd.factorize(column.map(str, na_action="ignore"), sort=True)
    return np.where(code < 0, np.nan, code.astype(np.float64))
