"""The audits of a comparison, each with what is known beside it: where it was read, its model, strategy and utility."""

import json
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from auditor.choices import Utility
from auditor.errors import InputError
from auditor.report.known import known
from auditor.report.lookup import number
from auditor.result import AuditResult

__all__ = ["Run", "named", "read_runs"]

_LEAST = 2
_SHOWN = 5  # names listed before the rest are left out


@dataclass(frozen=True, eq=False)
class Run:
    """One audit of a comparison.

    Attributes:
        number: Its place among the results, from 1.
        original: What the audit found, as given.
        result: The same, made safe to format.
        source: The file it was read from, or null.
        path: The same with its folders as they were given, or null; never shown.
        model: The model's name, or null.
        strategy: What several audits of one way of training share, or null: then the audit stands for itself.
        category: A kind of strategies, or null.
        utility: How good the model is at its task, or null.
    """

    number: int
    original: AuditResult
    result: AuditResult
    source: str | None = None
    path: str | None = None
    model: str | None = None
    strategy: str | None = None
    category: str | None = None
    utility: Utility | None = None

    @property
    def title(self) -> str:
        """What a reader calls it: the model, or else the file, or else its number."""
        return self.model or self.source or f"Audit {self.number}"

    @property
    def sha256(self) -> str | None:
        """The hash of the losses that were audited, or null."""
        return _text(self.result.provenance.get("input_sha256"))


def read_runs(results: Iterable[AuditResult | str | os.PathLike[str]]) -> tuple[Run, ...]:
    """Return the audits to compare, read where they are files, in the order given.

    Args:
        results: Two or more results, or paths of files that `AuditResult.to_json` wrote.

    Raises:
        InputError: Fewer than two, something that is no result, or one result twice.
    """
    found = tuple(_run(item, place) for place, item in enumerate(_several(results), start=1))
    if len(found) < _LEAST:
        raise InputError(
            f"results must be at least two audits to compare, got {len(found)}; a single one has its own report."
        )
    _refuse_twins(found)
    return found


def _several(results: Any) -> list[Any]:
    if isinstance(results, AuditResult | str | bytes | os.PathLike) or not isinstance(results, Iterable):
        kind = type(results).__name__
        raise InputError(f"results must be a list of at least two audits to compare, got one {kind}.")
    return list(results)


def _run(item: Any, place: int) -> Run:
    if isinstance(item, AuditResult):
        return _described(Run(place, item, known(item)))
    if isinstance(item, str | os.PathLike) and not isinstance(item, bytes):
        from auditor.reading import read_result

        result = read_result(item)
        return _described(Run(place, result, known(result), source=Path(item).name, path=str(item)))
    raise InputError(f"result {place} must be an audit result or the path of one, got {type(item).__name__}.")


def _described(run: Run) -> Run:
    """What the result itself says of its model; whatever is not of its kind counts as not said."""
    data = run.result.data
    return replace(
        run,
        model=_text(data.get("model")),
        strategy=_text(data.get("strategy")),
        utility=_utility(data.get("utility")),
    )


def _text(x: Any) -> str | None:
    return x.strip() or None if isinstance(x, str) else None


def _utility(x: Any) -> Utility | None:
    if not isinstance(x, dict):
        return None
    value, name = number(x.get("value")), _text(x.get("name"))
    if value is None or not math.isfinite(value) or name is None:
        return None
    return Utility(float(value), name, higher_is_better=x.get("higher_is_better") is not False)


def _refuse_twins(found: Sequence[Run]) -> None:
    """Refuse one result that is there twice; only audits of the same losses are looked at whole."""
    seen: dict[tuple[Any, ...], list[Run]] = {}
    for run in found:
        facts = run.result.provenance
        key = (run.sha256, str(facts.get("created")), str(facts.get("seed")), len(run.result.estimates))
        for other in seen.setdefault(key, []):
            if other.original is run.original or _content(other.original) == _content(run.original):
                raise InputError(
                    f"results {other.number} and {run.number} ({_called(other)} and {_called(run)}) are the same"
                    " audit; give each once."
                )
        seen[key].append(run)


def _content(result: AuditResult) -> str:
    return json.dumps(result.to_dict(), sort_keys=True, default=str)


def _called(run: Run) -> str:
    return repr(run.path or run.title)


def named(found: Sequence[Run], key: Any, *, argument: str) -> Run:
    """Return the one audit of that name.

    Args:
        found: The audits.
        key: A path or file name, a model's name, or the number of the result, counting from 1; or the result itself.
        argument: What the sentence of an error calls it.

    Raises:
        InputError: There is no such audit, or there are several.
    """
    ways = (
        lambda run: run.original is key,
        lambda run: run.path is not None and run.path == _path(key),
        lambda run: run.source is not None and run.source == _path(key),
        lambda run: run.model is not None and run.model == key,
        lambda run: str(run.number) == _number(key),
    )
    for way in ways:
        hits = [run for run in found if way(run)]
        if len(hits) > 1:
            numbers = " and ".join(str(run.number) for run in hits[:2])
            raise InputError(
                f"{argument} {str(key)!r} is the name of more than one result ({numbers}); name it by its number."
            )
        if hits:
            return hits[0]
    raise InputError(f"{argument} must name one of the results, got {_shortened(key)}{_nearest(found, key)}")


def _path(key: Any) -> str | None:
    return str(key) if isinstance(key, str | os.PathLike) else None


def _number(key: Any) -> str | None:
    if isinstance(key, bool):
        return None
    if isinstance(key, float) and key.is_integer():
        return str(int(key))
    return str(key).strip() if isinstance(key, int | str) else None


def _shortened(key: Any) -> str:
    if isinstance(key, AuditResult):
        return "a result that is not among them"
    return repr(key if len(str(key)) < 200 else f"{str(key)[:197]}...")  # noqa: PLR2004 one line


def _nearest(found: Sequence[Run], key: Any) -> str:
    import difflib

    names = list(dict.fromkeys(name for run in found for name in (run.source, run.model) if name))
    close = difflib.get_close_matches(str(key), names, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    listed = ", ".join(map(repr, names[:_SHOWN])) + (", ..." if len(names) > _SHOWN else "")
    return f"; they are {listed or 'without names'}, or by number 1 to {len(found)}."
