"""What a long collection has done."""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["CollectedReport", "Trial"]


@dataclass(frozen=True)
class CollectedReport:
    """The result of `collect_to`.

    Attributes:
        path: The file of losses, for `read_losses`.
        n_member: How many members it holds.
        n_nonmember: How many non-members.
        scored_now: How many records were scored by this call.
        resumed: How many had been scored before.
        warnings: What a reader of the losses must know; it stands in their history too.
    """

    path: Path
    n_member: int
    n_nonmember: int
    scored_now: int
    resumed: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trial:
    """What was noticed when a scorer was tried on a few records.

    Attributes:
        warnings: Sentences for the history of the losses; they must hold whatever the other records give.
        deterministic: Whether the model answered alike when it was asked again.
    """

    warnings: tuple[str, ...] = ()
    deterministic: bool = True
