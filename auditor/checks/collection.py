"""Was anything noticed, when the losses were collected, that a reader must know?"""

from auditor.values import Check, Losses, Status

__all__ = ["collection"]

_MEANING = (
    "This can hide a leak, so that it may be larger than measured: mend it and collect the losses again before you rely"
    " on a small number here."
)


def collection(losses: Losses) -> Check | None:
    """Warn of what was noticed when the losses were collected; None where there is nothing to tell.

    >>> found = collection(Losses(member=[0.1, 0.2], nonmember=[0.3, 0.4], notes=("the outputs are rounded",)))
    >>> found.message[:79]
    'Noticed when the losses were collected: The outputs are rounded. This can hide '
    """
    if not losses.notes:
        return None
    told = " ".join(_sentence(note) for note in losses.notes)
    message = f"Noticed when the losses were collected: {told} {_MEANING}"
    return Check("collection", Status.WARN, message, {"notes": list(losses.notes)})


def _sentence(note: str) -> str:
    return f"{note[:1].upper()}{note[1:].rstrip('.')}."
