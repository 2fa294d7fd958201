"""What a gate may name in a result: estimates with or without an end, the verdict, and checks."""

import difflib
from typing import NamedTuple

from auditor.errors import InputError
from auditor.result import AuditResult
from auditor.values import Estimate, Status

__all__ = ["CHECKS", "ENDS", "Found", "found", "known_names", "status"]

CHECKS = "checks."
ENDS = {"value": "value", "lower": "lower end", "upper": "upper end"}
# What not every audit has, and why not: a gate on one of these is no mistake in spelling.
_OTHER_ESTIMATES = {
    "epsilon_star.mixture": "no mixtures were fitted; ask for them (--mixture)",
    "epsilon_bound.one_run_gdp": "membership was not declared random (--split)",
    "epsilon_bound.gdp": "the result comes from a release that did not compute it",
}
_OTHER_CHECKS = {
    "collection": "nothing was noted when the losses were collected",
    "persons": "the records name no person",
    "placebo": "no losses of a reference model were given (--reference)",
    "label_shuffle": "the result comes from a release that did not make it",
}
_OWN = 0.05  # by how much likelier a name is meant that this audit has
_LEAST_ALIKE = 0.6  # as of difflib's own close matches
_WORST_FIRST = (Status.FAIL, Status.WARN, Status.UNKNOWN, Status.OK)


class Found(NamedTuple):
    """An estimate and which of its numbers is meant, or why this audit has none of that name."""

    estimate: Estimate | None
    end: str
    reason: str = ""


def found(name: str, *, gate: str, result: AuditResult) -> Found:
    """Return what a name means in a result.

    Raises:
        InputError: No audit has it; the message names the nearest.
    """
    names = [estimate.name for estimate in result.estimates]
    head, _, last = name.rpartition(".")
    stem, end = (head, last) if last in ENDS and name not in names else (name, "value")
    if names.count(stem) > 1:  # in a result that somebody made: whichever was taken, another might not pass
        return Found(None, end, f"the result has {names.count(stem)} numbers named {stem}")
    if stem in names:
        return Found(result.estimates[names.index(stem)], end)
    if stem in _OTHER_ESTIMATES:
        return Found(None, end, f"this audit has no {stem}: {_OTHER_ESTIMATES[stem]}")
    raise _unknown(name, gate=gate, result=result)


def status(name: str, *, gate: str, result: AuditResult) -> tuple[Status | None, str]:
    """Return how a check came out, the worst where there are several, or why there is none.

    Raises:
        InputError: No audit has it; the message names the nearest.
    """
    check = name.removeprefix(CHECKS)
    outcomes = [item.status for item in result.checks if item.name == check]
    if outcomes:
        return min(outcomes, key=_WORST_FIRST.index), ""
    if check in _OTHER_CHECKS:
        return None, f"the check {check} was not made: {_OTHER_CHECKS[check]}"
    raise _unknown(name, gate=gate, result=result)


def known_names(result: AuditResult) -> tuple[str, ...]:
    """Return every name that a gate on this result may have."""
    estimates = [estimate.name for estimate in result.estimates] + list(_OTHER_ESTIMATES)
    ends = [f"{name}.{end}" for name in estimates for end in ENDS]
    checks = [CHECKS + name for name in (*(check.name for check in result.checks), *_OTHER_CHECKS)]
    return tuple(dict.fromkeys([*estimates, "verdict", *checks, *ends]))


def _nearest(name: str, result: AuditResult) -> str | None:
    """The name that somebody may have meant, in whatever letters; of two about as near, one that this audit has."""
    own = (*(item.name for item in result.estimates), *(CHECKS + item.name for item in result.checks))

    def likeness(known: str) -> float:
        alike = difflib.SequenceMatcher(None, name.lower(), known.lower()).ratio()
        stem = known.removesuffix("." + known.rpartition(".")[2]) if known.endswith(tuple(ENDS)) else known
        return alike + (_OWN if stem in own else 0.0) if alike >= _LEAST_ALIKE else 0.0

    nearest = max(known_names(result), key=likeness)
    return nearest if likeness(nearest) else None


def _unknown(name: str, *, gate: str, result: AuditResult) -> InputError:
    nearest = _nearest(name, result)
    guess = f"did you mean {nearest!r}? The" if nearest else "the"
    estimates = ", ".join(estimate.name for estimate in result.estimates)
    checks = "".join(f", {CHECKS}{check.name}" for check in result.checks)
    return InputError(
        f"gate {gate!r} names {name!r}, which no audit has; {guess} names are {estimates} (each alone, or with"
        f" .value, .lower or .upper), verdict{checks}."
    )
