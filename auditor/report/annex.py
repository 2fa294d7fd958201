"""The annex for a reviewer: what is declared of the release, which attacks were run and which were not, and what remains.

"Not run" never means that nothing was found.
"""

from typing import NamedTuple

from auditor.core import numbers
from auditor.core.facts import Attack, AttackState, all_attacks
from auditor.core.registry import Role
from auditor.report.findings import states
from auditor.report.rows import condition, policy_rows, row_of
from auditor.report.view import View, texts
from auditor.results import metrics
from auditor.results.document import CONTENT_HASH, detail


class AttackRow(NamedTuple):
    """A kind of attack that a reviewer expects.

    Attributes:
        name: What it is called.
        state: What became of it.
        because: Why it is not applicable.
        scored: On how many records it was run.
        ceiling: The most that it could have certified.
        found: What it found.
    """

    name: str
    state: AttackState
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
    coverage: list[AttackRow]
    residual: str
    sha256: str


def annex_of(view: View) -> Annex:
    """Return the annex of an audit."""
    words, data = texts("annex"), view.result.data
    stated, states_of = data.get("context") or {}, data.get("attacks") or all_attacks({})
    rows = [(item, AttackState(states_of.get(item) or "not run")) for item in Attack]
    own = {**_by_label(view), **_by_estimated_odds(view)}
    return Annex(
        [(title, stated.get(name) or "not stated") for name, title in words["context"].items()],
        [
            AttackRow(words["attacks"][item], AttackState.RUN, "", *own[item])
            if item in own and state != AttackState.RUN
            else _attack(view, item, state)
            for item, state in rows
        ],
        words["residual"][states(view.result, view.finding)[-1]],
        view.result.to_dict()["provenance"][CONTENT_HASH],
    )


def _attack(view: View, attack: Attack, state: AttackState) -> AttackRow:
    """An attack that was run by what the audit found, any other with nothing beside it."""
    words = texts("annex")
    name = words["attacks"][attack]
    if state != AttackState.RUN:
        return AttackRow(name, state, words["because"] if state == AttackState.NOT_APPLICABLE else "")
    data, row = view.result.data, row_of(view.result, metrics.named(Role.CERTIFIED))
    members, others = numbers.count(data.get("n_member")), numbers.count(data.get("n_nonmember"))
    scored = f"{members} {view.units.members}, {others} {view.units.others}"
    ceiling = row.ceiling.removeprefix("ceiling ") if row is not None else ""
    return AttackRow(name, state, "", scored, ceiling or "none", view.finding.sign.word)


def _by_label(view: View) -> dict[Attack, tuple[str, str, str]]:
    """What the same attack found when it was told labels alone."""
    result = [row for row in policy_rows(view.result) if row.found.policy == "label"]
    words = [
        ("the same records", "none", f"AUC {row.auc.value} ({row.auc.ends})") for row in result if row.auc
    ]
    return {Attack.LABEL: words[0]} if words else {}


def _by_estimated_odds(view: View) -> dict[Attack, tuple[str, str, str]]:
    """What the losses show beyond the estimated odds of membership."""
    row = row_of(view.result, "epsilon_bound.propensity")
    odds = None if row is None else detail(row.estimate, "odds")
    if row is None or odds is None or not row.has_value:
        return {}
    scored = f"{numbers.count(int(odds['kept']))} records"
    ceiling = row.ceiling.removeprefix("ceiling ") or "none"
    return {Attack.ESTIMATED: (scored, ceiling, f"epsilon {row.ends}, if {condition(row.estimate)}")}
