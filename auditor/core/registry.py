"""Registries: what there is to measure and what there is to check, each entry told once and read by everybody.

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
        """Return the entry of that name, else that of the family it belongs to, or null."""
        if name in self._entries:
            return self._entries[name]
        families = [
            family for family in self._entries if family.endswith("*") and name.startswith(family[:-1])
        ]
        return self._entries[max(families, key=len)] if families else None


def entries(room: str, file: str) -> dict[str, Any]:
    """Return what a TOML file beside the modules of a room tells."""
    return tomllib.loads((resources.files(room) / file).read_text(encoding="utf-8"))


class Unit(StrEnum):
    """What a value is counted in, which decides how it is written."""

    NATS = "nats"  # an epsilon
    SHARE = "share"  # between 0 and 1, as a number
    RATE = "rate"  # of records, as a percentage
    NUMBER = "number"


class Role(StrEnum):
    """What a metric is to those who show or judge an audit, who ask for it by this."""

    CERTIFIED = "the bound on this model that holds whatever shape the losses have"
    JUDGE = "the bound on the training algorithm, the only one that can refute a claim"
    PUBLISHED = "the published estimate, from two fitted normals"
    OBSERVED = "the largest ratio seen in the data themselves, without a fit"
    WITHOUT_FIT = "what stands in for the published estimate where its fit is rejected"


@dataclass(frozen=True)
class Equation:
    """What is computed, and where that comes from.

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
    """What a quantity of an audit is, to everybody who shows, judges or compares it.

    Attributes:
        name: As in JSON and gates, such as ``epsilon_star.gaussian``; that of a family ends in ``*``.
        title: A few words, for a table; of a family, with ``{rate}`` for its rate. Empty for the name itself.
        sentence: What it says, for a reader who is not a statistician.
        unit: What its value is counted in.
        subject: What it is about.
        term: Key of the glossary's term that explains it; of a key that is not there, title and sentence are the term.
        equations: How it is computed, by method.
        role: What it is asked for by, where others than its own row need it.
        lower_bound: Whether its value is itself a lower bound, so that the truth may lie anywhere above.
        more_is_worse: Whether a larger value means more leakage.
        curve: Name of the fitted trade-off curve that it is read off; empty for what needs no fit.
        guessing: What an attacker gets who only guesses, where a reader needs it.
        main: Whether it is among the few numbers of a summary.
        tile: Whether it is a large number at the top of a page.
        claim: The metric of the claims that it is shown beside.
        of_training_set: How members were chosen where the number is about the finite training set itself.
        hint: What it is in a few words, for the help of gates; empty where an audit of one model does not have it.
        absent: Why an audit may not have it, a clause; empty where every audit does.
        condition: What a conditional bound of one model assumes, a clause; empty for a Gaussian curve.
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
    """A check of an audit: what it asks, how it is made, and what to do about its answer.

    Attributes:
        name: As in JSON and gates, such as ``shift``.
        title: The question it answers, in a few words.
        advice: What to do, by status (``warn``, ``fail``, ``unknown``) or ``status/cause``.
        voids_result: Whether a failure makes the question itself unanswerable, so that no verdict and no gate passes.
        hint: What it looks at in a few words, for the help of gates; empty where an audit of one model does not make it.
        absent: Why an audit may not have it, a clause; empty where every audit does.
        source: The paper that it rests on, as it is cited; empty where there is none.
        term: Key of the glossary's term that explains it; of a key that is not there, its name and question are the term.
        run: From the evidence of an audit to the check, or null where it does not apply.
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
