"""Registries of the metrics and the checks; each entry is described once and read by all rooms.

An entry is data; who computes with it is elsewhere. Report, gates, schema, comparison, terminal, help and glossary read
the registries and name nothing themselves.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from typing import Any, Generic, Protocol, TypeVar

from auditor.core.values import Check, Subject


class _Named(Protocol):
    @property
    def name(self) -> str: ...


Entry = TypeVar("Entry", bound=_Named)


class Registry(Generic[Entry]):
    """Entries by name, in the order in which a reader meets them."""

    def __init__(self, *entries: Entry) -> None:
        self._entries = {entry.name: entry for entry in entries}

    def __iter__(self) -> Iterator[Entry]:
        return iter(tuple(self._entries.values()))

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name]

    def get(self, name: str) -> Entry | None:
        """Return the entry of that name, else that of the family it belongs to, or None."""
        if name in self._entries:
            return self._entries[name]
        families = [
            family for family in self._entries if family.endswith("*") and name.startswith(family[:-1])
        ]
        return self._entries[max(families, key=len)] if families else None


def entries(room: str, file: str) -> dict[str, Any]:
    """Return the content of a TOML file beside the modules of a room."""
    return tomllib.loads((resources.files(room) / file).read_text(encoding="utf-8"))


class Unit(StrEnum):
    """Unit of a value, which decides its format."""

    NATS = "nats"  # an epsilon
    SHARE = "share"  # between 0 and 1, as a number
    RATE = "rate"  # of records, as a percentage
    NUMBER = "number"


class Role(StrEnum):
    """Role of a metric, by which reports and verdicts look it up."""

    CERTIFIED = "the bound on this model that holds whatever shape the losses have"
    JUDGE = "the bound on the training algorithm, the only one that can refute a claim"
    PUBLISHED = "the published estimate, from two fitted normals"
    OBSERVED = "the largest ratio seen in the data themselves, without a fit"
    WITHOUT_FIT = "the substitute for the published estimate where its fit is rejected"


@dataclass(frozen=True)
class Equation:
    """Equation of a quantity, and its source.

    Attributes:
        text: The equation.
        source: The papers, as they are cited.
        method: Words of an estimate's method, where the equation is that of one method among several.
    """

    text: str
    source: str
    method: str = ""


@dataclass(frozen=True)
class Metric:
    """Metric of an audit: its name, units and meaning, for display, judgement and comparison.

    Attributes:
        name: As in JSON and gates, such as ``epsilon_star.gaussian``; that of a family ends in ``*``.
        title: A few words, for a table; of a family, with ``{rate}`` for its rate. Empty for the name itself.
        sentence: Explanation for a reader who is not a statistician.
        unit: Unit of its value.
        subject: Subject of the number.
        term: Key of the glossary's term that explains it; of a key that is not there, title and sentence are the term.
        equations: How it is computed, by method.
        role: Role by which other code looks it up, if any.
        lower_bound: Whether its value is itself a lower bound, so that the truth may lie anywhere above.
        more_is_worse: Whether a larger value means more leakage.
        curve: Name of the fitted trade-off curve that it is read off; empty if it needs no fit.
        guessing: Value for an attacker who only guesses, if a reader needs it.
        main: Whether it is among the few numbers of a summary.
        tile: Whether it is a large number at the top of a page.
        claim: The metric of the claims that it is shown beside.
        of_training_set: How members were chosen where the number is about the finite training set itself.
        hint: Short description for the help of gates; empty if an audit of one model does not have it.
        absent: Reason why an audit may not have it, a clause; empty if every audit does.
        condition: Assumption of a conditional bound of one model, a clause; empty for a Gaussian curve.
        short: Its title in a short list, such as that of an audit of runs.
        approximate: Whether its interval holds for many records only.
    """

    name: str
    title: str
    sentence: str = ""
    unit: Unit = Unit.NATS
    subject: Subject = Subject.MODEL
    term: str = ""
    equations: tuple[Equation, ...] = ()
    role: Role | None = None
    lower_bound: bool = False
    more_is_worse: bool = True
    curve: str = ""
    guessing: str = ""
    main: bool = False
    tile: bool = False
    claim: str = ""
    of_training_set: tuple[str, ...] = ()
    hint: str = ""
    absent: str = ""
    condition: str = ""
    short: str = ""
    approximate: bool = False


@dataclass(frozen=True)
class CheckSpec:
    """A check of an audit: its question, its function, and the fix for its answer.

    Attributes:
        name: As in JSON and gates, such as ``shift``.
        title: The question it answers, in a few words.
        advice: Fix, by status (``warn``, ``fail``, ``unknown``) or ``status/cause``.
        voids_result: Whether a failure makes the question itself unanswerable, so that no verdict and no gate passes.
        hint: Short description for the help of gates; empty if an audit of one model does not make it.
        absent: Reason why an audit may not have it, a clause; empty if every audit does.
        source: The paper that it rests on, as it is cited; empty where there is none.
        term: Key of the glossary's term that explains it; of a key that is not there, its name and question are the term.
        run: From the evidence of an audit to the check, or None if it does not apply.
    """

    name: str
    title: str
    advice: Mapping[str, str]
    run: Callable[[Any], Check | None]
    voids_result: bool = False
    hint: str = ""
    absent: str = ""
    source: str = ""
    term: str = ""
