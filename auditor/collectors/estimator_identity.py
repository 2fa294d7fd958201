"""A hash of everything that a fitted estimator holds, the same in every process that loads it."""

import hashlib
import importlib
from typing import Any

import numpy as np

__all__ = ["estimator_identity"]


def estimator_identity(model: Any) -> str | None:
    """Return a hash of an estimator; none where it holds what cannot be hashed, as a lambda.

    It is joblib's hash but for what differs without making another model: how an array lies in memory, the gaps between
    the fields of an array of records (the nodes of trees), random states (of the whole process, if none was given),
    and the calls that a search tree of neighbours counts.
    """
    hashing = importlib.import_module("joblib.hashing")  # scikit-learn brings it

    class Hasher(hashing.NumpyHasher):  # type: ignore[name-defined,misc]
        def save(self, obj: Any) -> None:
            if isinstance(obj, np.ndarray) and obj.dtype.names:
                obj = [(name, np.ascontiguousarray(obj[name])) for name in obj.dtype.names]
            elif isinstance(obj, np.ndarray) and not obj.dtype.hasobject:
                content = hashlib.sha256(np.ascontiguousarray(obj).tobytes()).hexdigest()
                obj = ("array", obj.dtype.str, obj.shape, content)
            elif isinstance(obj, np.random.RandomState | np.random.Generator):
                obj = type(obj).__name__
            elif hasattr(obj, "get_arrays") and hasattr(obj, "get_n_calls"):
                obj = [type(obj).__name__, *map(np.asarray, obj.get_arrays())]
            super().save(obj)

    try:
        return f"{type(model).__name__}:{Hasher(hash_name='sha1').hash(model)}"
    except Exception:  # noqa: BLE001 - whatever cannot be pickled, in whatever way
        return None
