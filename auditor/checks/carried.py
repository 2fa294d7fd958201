"""Check of a model's file for training records that it carries, whatever the losses show."""

from collections.abc import Sequence
from dataclasses import asdict

from auditor.checks.answers import answer, said
from auditor.core.facts import FEWEST_IN_LEAF, Attack, Attacks, AttackState, Carried, CarriedRows
from auditor.core.values import Check


def contents(attacks: Attacks, rows: Sequence[CarriedRows]) -> Check | None:
    """Warn of training records in the model's file; None if it was not searched.

    Args:
        attacks: State of the attacks, of which one is the search of the file.
        rows: Training records that were found in it.

    >>> check = contents({Attack.FILE: AttackState.RUN}, [CarriedRows("SVC", Carried.COPIES, 412)])
    >>> check.message[:74]
    "The model's file carries training records: SVC has 412 of them as they are"
    """
    if attacks.get(Attack.FILE) is not AttackState.RUN:
        return None
    parts = "; ".join(said("contents", item.form, **asdict(item), few=FEWEST_IN_LEAF) for item in rows)
    details = {"rows": [asdict(item) for item in rows]} if rows else {}
    warned = "warn/leaves" if all(item.form is Carried.LEAVES for item in rows) else "warn"
    return answer("contents", warned if rows else "ok", details, parts=parts, few=FEWEST_IN_LEAF)
