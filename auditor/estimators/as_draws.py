"""What a census says of leakage: the same inference again, with the members counted as draws.

Numbers about all records of a finite training set, or about a random part of it, leave out the chance of which records
were drawn into that set. They describe it exactly, and show a gap from the population without any leakage. Whether the
model leaks is a question about records like these: there the members are a sample too.
"""

from dataclasses import replace
from typing import Any

from auditor.choices import Census, Members, Sample, Subset
from auditor.values import Estimate

__all__ = ["FINITE", "finite", "with_draws"]

FINITE = "finite training set"
_KEPT = ("ceiling", "approximate", "tail", "tpr_lower", "fpr_upper", "tnr_lower", "fnr_upper")


def finite(members: Members, *, what: str = "number") -> tuple[str, ...]:
    """Return what must be known of a number that describes a finite training set; nothing for a sample.

    Args:
        members: How the scored members were chosen.
        what: The number, in a word.

    >>> finite(Sample())
    ()
    """
    match members:
        case Census():
            start, which = "every training record was scored", f"this {FINITE}"
        case Subset(of=size):
            start = f"the scored members were drawn at random from the {size:,} training records"
            which = f"that {FINITE}"
        case Sample():
            return ()
    said = f"the {what} compares {which} with the population, and can be positive without any leakage"
    return (f"{start}: {said}",)


def with_draws(found: Estimate, draws: Estimate) -> Estimate:
    """Return an estimate that also keeps what is found where the members count as draws, in ``details["as_draws"]``.

    Args:
        found: About a finite training set.
        draws: The same quantity at the same confidence, with the members as a sample.
    """
    kept: dict[str, Any] = {name: draws.details[name] for name in _KEPT if name in draws.details}
    ends = {"value": draws.value, "lower": draws.lower, "upper": draws.upper}
    return replace(found, details={**found.details, "as_draws": {**ends, **kept}})
