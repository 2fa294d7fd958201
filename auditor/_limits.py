"""How large a result may be: what is read gives a page that opens, and no audit makes what reading would refuse."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from auditor.errors import InputError

__all__ = ["TOP_RECORDS", "name", "problem", "shortened", "top_records"]

TOP_RECORDS = 1_000
_NAME = 1_000  # characters of what somebody calls a model, a way of training or a utility
_KEPT = 10_000  # characters of a command line or a source
_TEXT = 100_000  # characters of one text
_TEXTS = 300_000  # characters of all texts together; an audit of many classes has 50,000
_MOST = {
    "estimates": 500,
    "claims": 100,
    "comparisons": 1_000,
    "checks": 100,
    "slices": 1_000,
    "top_records": TOP_RECORDS,
    "curves": 50,
    "histograms": 10,
}
_SAME = 10  # curves of one name
_POINTS = 2_000  # of a curve or a histogram; an audit keeps some hundreds
_OF_A_SLICE = 20  # estimates
_LISTED = 20_000  # of anything else


def name(said: str, value: object) -> None:
    """Refuse a name that no page could show.

    >>> name("model", "x" * 2000)
    Traceback (most recent call last):
    auditor.errors.InputError: model must have at most 1,000 characters, got 2,000.
    """
    if isinstance(value, str) and len(value) > _NAME:
        raise InputError(f"{said} must have at most {_NAME:,} characters, got {len(value):,}.")


def top_records(value: int) -> None:
    """Refuse a number of records to name that nobody would read."""
    if value > TOP_RECORDS:
        raise InputError(
            f"top_records (--top-records on the command line) must be at most {TOP_RECORDS:,}, got {value:,}; a ranking of"
            " all records (--ranking on the command line) has no such limit."
        )


def shortened(text: str | None) -> str | None:
    """Return a text without its middle, if it is longer than anybody reads."""
    more = 0 if text is None else len(text) - _KEPT
    if text is None or more <= 0:
        return text
    return f"{text[: _KEPT // 2]} [{more:,} characters left out] {text[-_KEPT // 2 :]}"


def problem(raw: Mapping[str, Any]) -> str | None:
    """Return what of a result, as plain dictionaries and lists of any content, is larger than it may be; or nothing.

    >>> problem({"curves": [{"name": "gaussian", "fpr": [0.5] * 3000}]})
    'curves[0].fpr has 3,000 entries, more than 2,000'
    """
    names = [str(item.get("name")) for item in _listed(raw.get("curves")) if isinstance(item, dict)]
    for named, count in Counter(names).items():
        if count > _SAME:
            return f"there are {count:,} curves of the name {named[:40]!r}, more than {_SAME}"
    total: Counter[str] = Counter()
    for place, value, most in _parts(raw):
        if isinstance(value, str):
            total[re.split(r"[.[]", place, maxsplit=1)[0]] += len(value)
            if len(value) > _TEXT:
                return f"{place} has {len(value):,} characters, more than {_TEXT:,}"
        elif len(value) > most:
            return f"{place} has {len(value):,} entries, more than {most:,}"
    if total.total() <= _TEXTS:
        return None
    [(key, _)] = total.most_common(1)
    return f"its texts have {total.total():,} characters, most of them in {key}, more than {_TEXTS:,}"


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _parts(raw: Mapping[str, Any]) -> Iterator[tuple[str, Any, int]]:
    """Every list and text of a result, with its place and the most entries of a list there."""
    for key, value in raw.items():
        waiting = [(str(key)[:40], value)]
        while waiting:
            place, item = waiting.pop()
            if isinstance(item, str):
                yield place, item, 0
            elif isinstance(item, list):
                yield place, item, _most(place, key)
                parts = (
                    (index, part) for index, part in enumerate(item) if isinstance(part, str | list | dict)
                )
                waiting.extend((f"{place}[{index}]", part) for index, part in parts)
            elif isinstance(item, dict):
                yield from ((place, str(inner), 0) for inner in item)
                waiting.extend((f"{place}.{str(inner)[:40]}", part) for inner, part in item.items())


def _most(place: str, key: str) -> int:
    if place == key:
        return _MOST.get(key, _LISTED)
    if key == "slices" and place.endswith("].estimates"):
        return _OF_A_SLICE
    return _POINTS if key in ("curves", "histograms") else _LISTED
