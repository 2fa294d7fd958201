"""Values as JSON holds them. Infinite numbers are the strings ``inf`` and ``-inf``, missing ones null."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["plain"]


def plain(value: Any) -> Any:
    """Return a JSON-like copy: enums as strings, arrays and tuples as lists, infinities as strings, NaN as null."""
    match value:
        case Mapping():
            found: Any = {str(key): plain(item) for key, item in value.items()}
        case np.ndarray() | list() | tuple():
            found = [plain(item) for item in value]
        case np.generic():
            found = plain(value.item())
        case float():
            found = _plain_float(value)
        case str():  # an enum's value too
            found = str(value)
        case _ if dataclasses.is_dataclass(value):
            found = {item.name: plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
        case _:
            found = value
    return found


def _plain_float(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")
