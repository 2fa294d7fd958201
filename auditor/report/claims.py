"""What a training description promises, as a table for the terminal and as JSON."""

import json
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from auditor._format import given, number, percent
from auditor.choices import DPSGD, Adjacency
from auditor.report.terminal import printed
from auditor.result import SCHEMA_VERSION, plain
from auditor.values import Claim

if TYPE_CHECKING:
    from rich.console import Console

    from auditor.theory.targets import FoundParameter

__all__ = ["found_to_json", "text", "to_json"]

_ABOUT = {
    Adjacency.ADD_REMOVE: "One record added or removed (add-remove)",
    Adjacency.REPLACE_ONE: "One record replaced (replace-one): a training record against a fresh one",
}
_NAMES = {
    "epsilon": "Epsilon",
    "mu": "Mu (Gaussian DP)",
    "advantage": "Advantage (TPR - FPR)",
    "bayes_security": "Bayes security (beta*)",
    "success_rate": "Attacker's success rate",
}
_NEAR_ONE = 0.999
_AT = re.compile(r"(.*)_at_(fpr|prior)\.(.*)")


def to_json(
    description: DPSGD,
    claims: Sequence[Claim],
    *,
    delta: float | None = None,
    prior: float = 0.5,
    sentences: Sequence[str] = (),
) -> str:
    """Return the description and its claims as JSON text.

    Args:
        description: The training run; one that differs from step to step is told by its kinds of steps.
        claims: What it promises.
        delta: The delta that was asked for.
        prior: The prior that the success rates are for.
        sentences: The claims in words.

    >>> '"steps": 10' in to_json(DPSGD(noise_multiplier=1.0, sampling_rate=0.1, steps=10), [])
    True
    """
    found: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "description": _described(description),
        "delta": delta,
        "prior": prior,
        "claims": [{**vars(claim), "status": claim.status} for claim in claims],
        "in_words": list(sentences),
    }
    return json.dumps(plain(found), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def found_to_json(found: "FoundParameter") -> str:
    """Return a parameter that was found for a promise as JSON text."""
    content: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "name": found.name,
        "value": found.value,
        "wanted": found.target.in_words(),
        "description": _described(found.training),
        "promise": {**vars(found.promise), "status": found.promise.status},
        "exact": None if found.exact is None else {**vars(found.exact), "status": found.exact.status},
    }
    return json.dumps(plain(content), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _described(description: DPSGD) -> dict[str, Any]:
    """The run as JSON-like values; a parameter that differs from step to step is null and stands in the phases."""
    names = ("noise_multiplier", "sampling_rate", "clipping_norm")
    values = {name: getattr(description, name) for name in names}
    return {
        "type": type(description).__name__,
        **{name: None if isinstance(value, tuple) else value for name, value in values.items()},
        "steps": description.steps,
        "sampling": "fixed-size" if description.fixed_size else "poisson",
        "phases": [vars(phase) for phase in description.phases],
    }


def text(
    description: DPSGD,
    claims: Sequence[Claim],
    *,
    more: Sequence[Claim] = (),
    sentences: Sequence[str] = (),
    width: int = 110,
    color: bool = False,
) -> str:
    """Return the claims as one table for each kind of neighbours; each number with its status, and notes beneath.

    Args:
        description: The training run.
        claims: What it promises.
        more: The same quantities by other methods, for tables of their own.
        sentences: The claims in words, for whom first.
        width: Columns of the terminal.
        color: Whether to add colour codes.
    """

    def draw(console: "Console") -> None:
        console.print(description.in_words(), markup=False)
        console.print("Against an attacker who sees every iterate.", markup=False)
        notes: list[str] = []
        for title, rows in (("", claims), ("Other methods. ", more)):
            for adjacency in dict.fromkeys(claim.adjacency for claim in rows):
                console.print()
                ours = [claim for claim in rows if claim.adjacency is adjacency]
                _print_table(console, ours, notes, title=title + _ABOUT[adjacency])
        for index, note in enumerate(notes, start=1):
            console.print(f"({index}) {note}", markup=False)
        if sentences:
            console.print(f"\nIn words. {sentences[0]}", markup=False)
            for sentence in sentences[1:]:
                console.print(f"- {sentence}", markup=False)

    return printed(draw, width=width, color=color).removesuffix("\n")


def _print_table(console: "Console", claims: Sequence[Claim], notes: list[str], *, title: str) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    if all(claim.value is None for claim in claims):
        console.print(f"{title}: {min((claim.note for claim in claims), key=len)}", markup=False)
        return
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    table.add_column("Quantity")
    table.add_column("Value", justify="right", no_wrap=True)
    table.add_column("Status", no_wrap=True)
    table.add_column("Method")
    for claim in claims:
        status = "not available" if claim.value is None else claim.status
        cells = (_name(claim), _value(claim) + _mark(notes, claim.note), status, claim.method)
        table.add_row(*(Text(cell) for cell in cells))
    console.print(table)


def _name(claim: Claim) -> str:
    at = _AT.fullmatch(claim.metric)
    if claim.metric == "epsilon" and claim.delta is not None:
        return f"Epsilon at delta {given(claim.delta)}"
    if at is None:
        return _NAMES.get(claim.metric, claim.metric)
    what, kind, where = at.groups()
    if kind == "prior":
        return f"{_NAMES.get(what, what)} at prior {where}"
    return f"TPR at {percent(float(where))} FPR" if what == "tpr" else claim.metric


def _value(claim: Claim) -> str:
    # A bound stays one when it is rounded.
    toward = ("down" if claim.metric == "bayes_security" else "up") if claim.proven else "nearest"
    digits = 4
    if claim.value is not None and _NEAR_ONE < claim.value < 1:
        digits = min(15, 2 - math.floor(math.log10(1 - claim.value)))  # two digits of what is missing to 1
    shown = number(claim.value, digits=digits, toward=toward)
    if claim.lower is None or claim.upper is None or claim.confidence is None:
        return shown
    interval = f"[{number(claim.lower, digits=4)}, {number(claim.upper, digits=4)}]"
    return f"{shown} {interval} ({percent(claim.confidence)})"


def _mark(notes: list[str], note: str) -> str:
    """A reference to a note, each note once."""
    if not note:
        return ""
    if note not in notes:
        notes.append(note)
    return f" ({notes.index(note) + 1})"
