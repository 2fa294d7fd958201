"""Check of a model's file for training records that it carries, whatever the losses show."""

from collections.abc import Sequence
from dataclasses import asdict

from auditor.checks.answers import answer, said
from auditor.core.facts import FEWEST_IN_LEAF, Attack, Attacks, AttackState, Carried, CarriedRows
from auditor.core.numbers import named
from auditor.core.values import Check


def contents(attacks: Attacks, rows: Sequence[CarriedRows]) -> Check | None:
    """Warn of training records in the model's file; None if it was not searched.

    Args:
        attacks: State of the attacks, of which one is the search of the file.
        rows: Training records that were found in it.

    >>> check = contents({Attack.FILE: AttackState.RUN}, [CarriedRows("SVC", Carried.COPIES, 412)])
    >>> check.message[:74]
    "The model's file carries training records: SVC holds 412 of them as they a"
    """
    if attacks.get(Attack.FILE) is not AttackState.RUN:
        return None
    details = {"rows": [asdict(item) for item in rows]} if rows else {}
    warned = "warn/leaves" if all(item.form is Carried.LEAVES for item in rows) else "warn"
    return answer("contents", warned if rows else "ok", details, parts=parts_of(rows), few=FEWEST_IN_LEAF)


def parts_of(rows: Sequence[CarriedRows]) -> str:
    """Return the parts of a file that carry training records, as clauses."""
    return "; ".join(
        said("contents", item.form, **{**asdict(item), "part": named(item.part)}, few=FEWEST_IN_LEAF)
        for item in rows
    )
