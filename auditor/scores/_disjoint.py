"""The one check that calibration data and audited records have no record in common.

Ids decide where both sides have them: two records of equal content are then different records. Without ids equal
content counts as the same record. Without either only a copy of the audited losses can be told.
"""

import numpy as np

from auditor.errors import InputError
from auditor.scores._labels import n_shared
from auditor.scores.population import Population
from auditor.values import Losses

__all__ = ["require_disjoint", "require_same_scale"]

_FEWEST = 10  # fewer equal losses can be equal by chance


def require_disjoint(losses: Losses, calibration: Population, *, name: str) -> str:
    """Return a phrase for the history that says how it was checked; refuse an overlap."""
    for label, word in (("id", "id"), ("fingerprint", "content")):
        audited, own = getattr(losses, label), getattr(calibration, label)
        if audited is None or own is None:
            continue
        shared = n_shared(own, audited)
        if shared is None:
            continue
        if shared:
            raise InputError(
                f"{name} must hold no audited record, got {shared:,} of {calibration.n:,} with the {word} of one;"
                f" remove them from {name}, or hold out other non-members with auditor.scores.hold_out."
            )
        return f"no {word} in common with the audited records"
    if _is_copy(losses, calibration):
        raise InputError(
            f"{name} must hold no audited record, got {calibration.n:,} losses equal to the audited non-members';"
            " hold out other non-members with auditor.scores.hold_out."
        )
    return "not checked to be disjoint from the audited records: no ids or fingerprints on both sides"


def _is_copy(losses: Losses, calibration: Population) -> bool:
    same_size = calibration.n == losses.n_nonmember >= _FEWEST
    if not same_size or not np.array_equal(np.sort(calibration.loss), losses.sorted_nonmember):
        return False
    return bool(np.count_nonzero(np.diff(losses.sorted_nonmember)) * 2 >= calibration.n)


def require_same_scale(losses: Losses, calibration: Population, *, name: str) -> None:
    """Refuse calibration losses on another scale than the audited ones."""
    if calibration.scale is not losses.scale:
        raise InputError(
            f"{name} losses must be on the scale of the audited losses, got {calibration.scale!s} and"
            f" {losses.scale!s}; put both through the same steps, or give Population(scale=...)."
        )
