"""The annex for a reviewer: the declared context of the release, the attacks that were run or not, and the residual risk.

"Not run" never means "no leakage".
"""

from collections.abc import Mapping
from typing import NamedTuple

from auditor.core import Attack, AttackState, Role, all_attacks, numbers
from auditor.report.findings import states
from auditor.report.rows import condition, extraction_rows, policy_rows, row_of
from auditor.report.view import View, texts
from auditor.report.words import RELEASED
from auditor.results import metrics
from auditor.results.document import detail


class AttackRow(NamedTuple):
    """A kind of attack that a reviewer expects.

    Attributes:
        name: Name of the attack.
        state: Run, not run or not applicable.
        because: Why it is not applicable.
        scored: Number of scored records.
        ceiling: Largest epsilon that it could have certified.
        result: Its result in words.
        is_certain: Whether it counts what is there, so that no confidence belongs to it.
    """

    name: str
    state: AttackState
    because: str = ""
    scored: str = ""
    ceiling: str = ""
    result: str = ""
    is_certain: bool = False


class Annex(NamedTuple):
    """The annex of an audit.

    Attributes:
        declared: Each field of the context with its value, or "not stated".
        coverage: Every kind of attack that a reviewer expects.
        residual: Residual risk in a sentence: no state of an audit makes a model safe.
        sha256: Hash of the content of the result.
    """

    declared: list[tuple[str, str]]
    coverage: list[AttackRow]
    residual: str
    sha256: str


def annex_of(view: View) -> Annex:
    """Return the annex of an audit."""
    words, data = texts("annex"), view.result.data
    stated, states_of = data.get("context") or {}, data.get("attacks") or all_attacks({})
    own = {**_by_label(view), **_by_estimated_odds(view), **_of_the_file(view, states_of)}
    return Annex(
        [(title, stated.get(name) or "not stated") for name, title in words["context"].items()],
        [
            _attack(view, item, AttackState(states_of.get(item) or "not run"), own.get(item))
            for item in Attack
        ],
        words["residual"][states(view.result, view.finding)[-1]]
        + RELEASED["file"]["residual"].get(view.file[0], ""),
        view.sha256,
    )


def _attack(view: View, attack: Attack, state: AttackState, own: tuple[str, str, str] | None) -> AttackRow:
    """Return the row of an attack: with what the audit says about it by itself, or with its finding if it was run."""
    words = texts("annex")
    name = view.worded(words["attacks"][attack])
    if own is not None and (state != AttackState.RUN or attack is Attack.FILE):
        return AttackRow(name, AttackState.RUN, "", *own, attack is Attack.FILE)
    if state != AttackState.RUN:
        why = words["because_of_table" if view.copies else "because"]
        return AttackRow(name, state, why if state == AttackState.NOT_APPLICABLE else "")
    data, row = view.result.data, row_of(view.result, metrics.named(Role.CERTIFIED))
    members, others = numbers.count(data.get("n_member")), numbers.count(data.get("n_nonmember"))
    scored = f"{members} {view.units.members}, {others} {view.units.others}"
    ceiling = row.ceiling.removeprefix("ceiling ") if row is not None else ""
    extracted = _extracted(view) if attack is Attack.EXTRACTION else ""
    return AttackRow(name, state, "", scored, ceiling or "none", extracted or view.finding.sign.word)


def _extracted(view: View) -> str:
    """Return the share of secrets that 100 tries extract; empty if the audit has none."""
    row = next((row for row in extraction_rows(view.result) if row.tries == "100"), None)
    return str(texts("annex")["extracted"]).format(*row.members) if row else ""


def _of_the_file(view: View, states_of: Mapping[str, str]) -> dict[Attack, tuple[str, str, str]]:
    """Return the training records in the file of the model, if it was searched."""
    if view.carried is None and states_of.get(Attack.FILE) != AttackState.RUN:
        return {}
    words = texts("annex")
    return {Attack.FILE: (words["file"], "none", view.file[1] or words["none"])}


def _by_label(view: View) -> dict[Attack, tuple[str, str, str]]:
    """Return the result of the same attack on labels only."""
    auc = next((row.auc for row in policy_rows(view.result) if row.outcome.policy == "label"), None)
    return {Attack.LABEL: ("the same records", "none", f"AUC {auc.value} ({auc.ends})")} if auc else {}


def _by_estimated_odds(view: View) -> dict[Attack, tuple[str, str, str]]:
    """Return the evidence of the losses beyond the estimated odds of membership."""
    row = row_of(view.result, "epsilon_bound.propensity")
    odds = None if row is None else detail(row.estimate, "odds")
    if row is None or odds is None or not row.has_value:
        return {}
    scored = f"{numbers.count(int(odds['kept']))} records"
    ceiling = row.ceiling.removeprefix("ceiling ") or "none"
    return {Attack.ESTIMATED: (scored, ceiling, f"epsilon {row.ends}, if {condition(row.estimate)}")}
