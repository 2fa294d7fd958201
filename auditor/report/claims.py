"""What a training description promises, as a table for the terminal and as JSON."""

import dataclasses
import io
import json
from collections.abc import Sequence
from typing import Any

from auditor._format import given, number
from auditor.choices import TrainingClaim
from auditor.result import SCHEMA_VERSION, plain
from auditor.values import Claim

__all__ = ["text", "to_json"]


def to_json(description: TrainingClaim, claims: Sequence[Claim]) -> str:
    """Return the description and its claims as JSON text.

    >>> from auditor.choices import DPSGD
    >>> '"steps": 10' in to_json(DPSGD(noise_multiplier=1.0, sampling_rate=0.1, steps=10), [])
    True
    """
    found: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "description": {"type": type(description).__name__, **dataclasses.asdict(description)},
        "claims": [dataclasses.asdict(claim) for claim in claims],
    }
    return json.dumps(plain(found), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def text(
    description: TrainingClaim, claims: Sequence[Claim], *, width: int = 110, color: bool = False
) -> str:
    """Return the claims as a table; each says whether it is proven, and its note stands beneath."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=description.in_words(), box=box.SIMPLE_HEAD, title_justify="left")
    for name in ("quantity", "value", "delta", "adjacency", "status", "method"):
        table.add_column(name)
    notes: list[str] = []
    for claim in claims:
        mark = _mark(notes, claim.note)
        value = number(claim.value, digits=6)
        delta = given(claim.delta)
        status = "proven" if claim.proven else "approximation"
        table.add_row(claim.metric + mark, value, delta, str(claim.adjacency), status, claim.method)
    buffer = io.StringIO()
    console = Console(file=buffer, width=width, force_terminal=color, no_color=not color, highlight=False)
    console.print(table)
    for index, note in enumerate(notes, start=1):
        console.print(f"({index}) {note}", markup=False)
    return buffer.getvalue().rstrip("\n")


def _mark(notes: list[str], note: str) -> str:
    """A reference to a note, each note once."""
    if not note:
        return ""
    if note not in notes:
        notes.append(note)
    return f" ({notes.index(note) + 1})"
