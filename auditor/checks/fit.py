"""Do normals describe the transformed losses, and if not, do mixtures of normals?"""

from typing import Any

from auditor.fitters.mixture import MixtureOfGaussians
from auditor.values import Check, FittedPair, Status

__all__ = ["goodness_of_fit"]

_ENOUGH_HELD_OUT = 50


def goodness_of_fit(pair: FittedPair, mixture: FittedPair | None = None) -> Check:
    """Warn when a fit that the report could quote is rejected; unknown with too few records to tell.

    A rejection is no reason to distrust the certified bound, which assumes no shape. Where a mixture was asked for, the
    message says of it too how many components it took and whether it is rejected; the normals' Epsilon* stays in the
    result, so their rejection stays a warning.

    Args:
        pair: Two fitted normals.
        mixture: Two fitted mixtures, where they were asked for.

    >>> import numpy as np
    >>> from auditor.fitters import fit_gaussian_pair
    >>> from auditor.values import Losses
    >>> rng = np.random.default_rng(0)
    >>> losses = Losses(member=rng.normal(size=500), nonmember=rng.normal(size=500))
    >>> goodness_of_fit(fit_gaussian_pair(losses, rng=rng)).status
    <Status.OK: 'ok'>
    """
    details = _details(pair)
    if mixture is not None:
        details["mixture"] = {**_details(mixture), "components": _components(mixture)}
    status, message = _of_normals(pair, alone=mixture is None)
    if mixture is None or status is Status.UNKNOWN:
        return Check("goodness_of_fit", status, message, details)
    status = Status.WARN if mixture.rejected else status
    return Check("goodness_of_fit", status, f"{message} {_of_mixtures(mixture)}", details)


def _details(pair: FittedPair) -> dict[str, Any]:
    return {
        "member_p_value": pair.member_fit.p_value,
        "nonmember_p_value": pair.nonmember_fit.p_value,
        "member_n": pair.member_fit.n,
        "nonmember_n": pair.nonmember_fit.n,
        "rejected": pair.rejected,
    }


def _rejected(pair: FittedPair) -> str:
    """The groups whose fit is rejected, as the start of a sentence."""
    sides = (("member", pair.member_fit), ("non-member", pair.nonmember_fit))
    return f"The {' and the '.join(name for name, fit in sides if fit.rejected)} losses"


def _of_normals(pair: FittedPair, *, alone: bool) -> tuple[Status, str]:
    if pair.rejected:
        instead = (
            ": rely on the certified bound, which assumes no shape"
            if alone
            else " where it is read off normals"
        )
        return Status.WARN, (
            f"{_rejected(pair)} do not look normal after the published transform, so the"
            f" parametric Epsilon* may be far off in either direction{instead}."
        )
    if min(pair.member.sd, pair.nonmember.sd) == 0:
        return (
            Status.UNKNOWN,
            "A group has one single loss: there is no spread that a normal could be fitted to.",
        )
    held_out = min(pair.member_fit.n, pair.nonmember_fit.n)
    if held_out < _ENOUGH_HELD_OUT:
        return Status.UNKNOWN, (
            f"Only {held_out} held-out record{'s were' if held_out > 1 else ' was'} there to test the fit on, too few to"
            " reject much: do not rely on the parametric Epsilon*."
        )
    return (
        Status.OK,
        "A normal is not rejected for either group; that is not proof that it fits far out in the tails.",
    )


def _of_mixtures(mixture: FittedPair) -> str:
    components = _components(mixture)
    sizes = f"{components['member']} for the members and {components['nonmember']} for the non-members"
    if mixture.rejected:
        return (
            f"{_rejected(mixture)} do not look like a mixture of normals either (components taken: {sizes}):"
            " rely on the certified bound, which assumes no shape."
        )
    return (
        f"Mixtures of normals are not rejected (components: {sizes}), so their Epsilon* can be read; that is not proof"
        " that they fit far out in the tails."
    )


def _components(mixture: FittedPair) -> dict[str, int]:
    return {
        side: law.components if isinstance(law, MixtureOfGaussians) else 1
        for side, law in (("member", mixture.member), ("nonmember", mixture.nonmember))
    }
