"""Do normals describe the transformed losses?"""

from auditor.values import Check, FittedPair, Status

__all__ = ["goodness_of_fit"]

_ENOUGH_HELD_OUT = 50


def goodness_of_fit(pair: FittedPair) -> Check:
    """Warn when either normal is rejected, unknown with too few records to tell; a rejection is no reason to distrust the certified bound."""
    rejected = [
        name
        for name, fit in (("member", pair.member_fit), ("non-member", pair.nonmember_fit))
        if fit.rejected
    ]
    details = {"member_p_value": pair.member_fit.p_value, "nonmember_p_value": pair.nonmember_fit.p_value}
    if rejected:
        message = (
            f"The {' and the '.join(rejected)} losses do not look normal after the published transform, so the"
            " parametric Epsilon* may be far off in either direction: rely on the certified bound, which assumes no shape."
        )
        return Check("goodness_of_fit", Status.WARN, message, details)
    if min(pair.member.sd, pair.nonmember.sd) == 0:
        message = "A group has one single loss: there is no spread that a normal could be fitted to."
        return Check("goodness_of_fit", Status.UNKNOWN, message, details)
    held_out = min(pair.member_fit.n, pair.nonmember_fit.n)
    if held_out < _ENOUGH_HELD_OUT:
        message = (
            f"Only {held_out} held-out record{'s were' if held_out > 1 else ' was'} there to test the fit on, too few to"
            " reject much: do not rely on the parametric Epsilon*."
        )
        return Check("goodness_of_fit", Status.UNKNOWN, message, details)
    message = (
        "A normal is not rejected for either group; that is not proof that it fits far out in the tails."
    )
    return Check("goodness_of_fit", Status.OK, message, details)
