"""The annex for a reviewer: what is declared of the release, which attacks were run and which were not, and what remains.

What was run is read from the history of the losses and from what the result holds; "not run" never means that nothing was found.
"""

from collections.abc import Iterable
from typing import NamedTuple

from auditor.core import numbers
from auditor.core.registry import Role
from auditor.report.findings import states
from auditor.report.rows import condition, policy_rows, row_of
from auditor.report.view import View, texts
from auditor.results import metrics
from auditor.results.document import CONTENT_HASH, detail


class Attack(NamedTuple):
    """A kind of attack that a reviewer expects.

    Attributes:
        name: What it is called.
        state: ``run``, ``not run`` or ``not applicable``.
        because: Why it is not applicable.
        scored: On how many records it was run.
        ceiling: The most that it could have certified.
        found: What it found.
    """

    name: str
    state: str
    because: str = ""
    scored: str = ""
    ceiling: str = ""
    found: str = ""


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
    own = {**_by_label(view), **_by_estimated_odds(view)}
    return Annex(
        [(title, stated.get(name) or "not stated") for name, title in words["context"].items()],
        [
            _attack(
                view, kind["name"], state.get(name, "not run"), kind["because"] if name in without else ""
            )
            if name in ran or name not in own
            else Attack(kind["name"], "run", "", *own[name])
            for name, kind in kinds.items()
        ],
        words["residual"][states(view.result, view.finding)[-1]],
        view.result.to_dict()["provenance"][CONTENT_HASH],
    )


def _attack(view: View, name: str, state: str, because: str) -> Attack:
    """An attack that was run by what the audit found, any other with nothing beside it."""
    if state != "run":
        return Attack(name, state, because)
    data, row = view.result.data, row_of(view.result, metrics.named(Role.CERTIFIED))
    members, others = numbers.count(data.get("n_member")), numbers.count(data.get("n_nonmember"))
    scored = f"{members} {view.units.members}, {others} {view.units.others}"
    ceiling = row.ceiling.removeprefix("ceiling ") if row is not None else ""
    return Attack(name, state, because, scored, ceiling or "none", view.finding.sign.word)


def _by_label(view: View) -> dict[str, tuple[str, str, str]]:
    """What the same attack found when it was told labels alone."""
    result = [row for row in policy_rows(view.result) if row.found.policy == "label"]
    words = [
        ("the same records", "none", f"AUC {row.auc.value} ({row.auc.ends})") for row in result if row.auc
    ]
    return {"label": words[0]} if words else {}


def _by_estimated_odds(view: View) -> dict[str, tuple[str, str, str]]:
    """What the losses show beyond the estimated odds of membership."""
    row = row_of(view.result, "epsilon_bound.propensity")
    odds = None if row is None else detail(row.estimate, "odds")
    if row is None or odds is None or not row.has_value:
        return {}
    scored = f"{numbers.count(int(odds['kept']))} records"
    ceiling = row.ceiling.removeprefix("ceiling ") or "none"
    return {"estimated": (scored, ceiling, f"epsilon {row.ends}, if {condition(row.estimate)}")}


def _begins(history: Iterable[str], words: Iterable[str]) -> bool:
    return any(step.startswith(tuple(words)) for step in history)
