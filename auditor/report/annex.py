"""The annex for a reviewer: what is declared of the release, which attacks were run and which were not, and what remains.

What was run is read from the history of the losses; "not run" never means that nothing was found.
"""

from collections.abc import Iterable
from typing import NamedTuple

from auditor.report.findings import states
from auditor.report.view import View, texts
from auditor.results.document import CONTENT_HASH


class Attack(NamedTuple):
    """A kind of attack that a reviewer expects.

    Attributes:
        name: What it is called.
        state: ``run``, ``not run`` or ``not applicable``.
        because: Why it is not applicable.
    """

    name: str
    state: str
    because: str = ""


class Annex(NamedTuple):
    """The annex of an audit.

    Attributes:
        declared: Each field of the context with what was stated, or that nothing was.
        coverage: Every kind of attack that a reviewer expects.
        residual: The risk that remains, in a sentence: no state of an audit makes a model safe.
        sha256: Of the content of the result.
    """

    declared: list[tuple[str, str]]
    coverage: list[Attack]
    residual: str
    sha256: str


def annex_of(view: View) -> Annex:
    """Return the annex of an audit."""
    words, data = texts("annex"), view.result.data
    stated, history, kinds = data.get("context") or {}, data.get("history") or (), words["attacks"]
    ran = [name for name, kind in kinds.items() if _begins(history, kind.get("run", ()))] or [*kinds][:1]
    without = [name for name, kind in kinds.items() if _begins(history, kind.get("not_applicable", ()))]
    state = {**dict.fromkeys(without, "not applicable"), **dict.fromkeys(ran, "run")}
    return Annex(
        [(title, stated.get(name) or "not stated") for name, title in words["context"].items()],
        [
            Attack(kind["name"], state.get(name, "not run"), kind["because"] if name in without else "")
            for name, kind in kinds.items()
        ],
        words["residual"][states(view.result, view.finding)[-1]],
        view.result.to_dict()["provenance"][CONTENT_HASH],
    )


def _begins(history: Iterable[str], words: Iterable[str]) -> bool:
    return any(step.startswith(tuple(words)) for step in history)
