"""What one run is of: a task, a setting and a seed; and the name that follows from them."""

import hashlib
import json
import math
import re
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditor import _validate
from auditor.errors import InputError

__all__ = ["Case", "cases_of", "task_name"]

Setting = Mapping[str, str | int | float | bool | None]

_SHOWN = 300  # characters of a case in an error


@dataclass(frozen=True)
class Case:
    """One run that is to be made.

    Attributes:
        task: Module and name of the function that is run.
        setting: The flat mapping that it is run for, in plain values.
        root: The seed of the whole set of runs.
        code: The fingerprint of the function, where results are kept; it is no part of the name, so that a function that
            was changed meets what it made before.
    """

    task: str
    setting: Setting
    root: int
    code: str | None = None

    @property
    def identity(self) -> dict[str, Any]:
        """All that decides the result, in values of JSON."""
        return {"task": self.task, "case": dict(self.setting), "seed": self.root}

    @property
    def seed(self) -> int:
        """The seed of this run, in [0, 2^32): of the case alone, whatever the other cases and the task are."""
        words = np.frombuffer(_digest(dict(self.setting)), dtype="<u4").tolist()
        return int(np.random.SeedSequence([self.root, *words]).generate_state(1)[0])

    @property
    def file_name(self) -> str:
        """The name of the file of its result: readable, and another one for whatever else decides the result."""
        return f"{self.stem}-{_digest(self.identity).hex()[:20]}.npz"

    @property
    def stem(self) -> str:
        """How the names of all files of this task begin."""
        return re.sub(r"\W+", "-", self.task.rsplit(".", 1)[-1]).strip("-")[:40] or "run"

    @property
    def shown(self) -> str:
        """The setting as a reader of an error sees it."""
        text = json.dumps(dict(self.setting), ensure_ascii=False)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def task_name(task: Callable[..., Any], *, argument: str, kept: bool) -> str:
    """Return the name that a task's results are kept under.

    Args:
        task: What is run.
        argument: What the caller calls it.
        kept: Whether results are kept in a folder, where another task must never be taken for this one.

    Raises:
        InputError: It cannot be called, or results are to be kept of something without a name of its own.
    """
    if not callable(task):
        raise InputError(f"{argument} must be a function, got {type(task).__name__}.")
    name = getattr(task, "__qualname__", "")
    shown = name or type(task).__name__
    why = _why_not_its_own(task, name) if kept else None
    if why is not None:
        varies = "give what varies as values of the cases"
        raise InputError(
            f"{argument} must be a named function when its results are kept in a folder, got {shown!r}, {why}; write it"
            " with def at the top of a file or a notebook cell, and"
            f" {varies if argument == 'task' else 'one for everything that varies'}."
        )
    return f"{getattr(task, '__module__', '')}.{shown}"


def _why_not_its_own(task: Any, name: str) -> str | None:
    """Why the name does not say which function it is; null where it does."""
    if not name or "<lambda>" in name:
        return "which others could be called too"
    if "<locals>" in name:
        return "which is another function for everything that it was made with"
    if not isinstance(getattr(task, "__self__", None), types.ModuleType | None):
        return "which does something else for every object that it belongs to"
    return None


def cases_of(cases: Iterable[Setting], *, task: str, seed: int, code: str | None) -> list[Case]:
    """Return the cases in plain values.

    Raises:
        InputError: Something else than flat mappings of names to single values, no case, or one case twice.
    """
    if isinstance(cases, Mapping | str) or not isinstance(cases, Iterable):
        raise InputError(f"cases must be a list of mappings, got {type(cases).__name__}.")
    found = [Case(task, _plain(index, item), seed, code) for index, item in enumerate(cases)]
    if not found:
        raise InputError("cases must be at least one mapping, got an empty list.")
    seen: dict[bytes, int] = {}
    for index, case in enumerate(found):
        first = seen.setdefault(_digest(dict(case.setting)), index)
        if first != index:
            raise InputError(
                f"cases {first} and {index} (counting from 0) are the same, {case.shown}; give each once, or tell"
                " repetitions apart by a value such as 'repeat'."
            )
    return found


def _plain(index: int, case: Any) -> dict[str, Any]:
    if not isinstance(case, Mapping):
        raise InputError(
            f"case {index} (counting from 0) must be a mapping of names to values, got {type(case).__name__}."
        )
    return {_name(index, name): _value(index, name, value) for name, value in case.items()}


def _name(index: int, name: Any) -> str:
    if not isinstance(name, str):
        raise InputError(f"case {index} (counting from 0) must have texts as names, got {name!r}.")
    return name


def _value(index: int, name: str, value: Any) -> str | int | float | bool | None:
    single = value.item() if isinstance(value, np.generic) else value
    good = single is None or isinstance(single, str | int | float)
    if not good or (isinstance(single, float) and not math.isfinite(single)):
        shown = _validate.one_line(ValueError(repr(value)), longest=60)
        raise InputError(
            f"case {index} (counting from 0) must hold texts, finite numbers, booleans or None, got {name} = {shown}."
        )
    plain: str | int | float | bool | None = single
    return plain


def _digest(values: Mapping[str, Any]) -> bytes:
    text = json.dumps(values, sort_keys=True, ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).digest()
