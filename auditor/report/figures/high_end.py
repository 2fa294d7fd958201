"""The other end of a trade-off curve: those whom an attacker rules out, and the training records ruled out wrongly.

Losses leak at both ends. Low ones name who was in the training data; high ones tell who was not. An attacker who says
"not in the training data" of all above a threshold clears a share of the others (the TNR, 1 - FPR) and, wrongly, a share
of the training records (the FNR, 1 - TPR). Guessing clears the same share of both.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from auditor.report import formatting
from auditor.report.figures.rates import finest_of
from auditor.report.lookup import CERTIFIED, STAR, amount, dig, find
from auditor.report.traces import floor
from auditor.result import AuditResult, NamedCurve

__all__ = ["CertifiedPoint", "certified_point", "high_reach", "is_high", "turned"]

_LEAST = 1e-5  # curves are kept with six digits, so that 1 - TPR is known no finer
_RATES = {"lower": ("fpr_upper", "tpr_lower"), "upper": ("fnr_upper", "tnr_lower")}


@dataclass(frozen=True)
class CertifiedPoint:
    """The two limits that the certified bound is read from.

    Attributes:
        high: Whether they are the FNR and TNR of the high losses, and not the FPR and TPR of the low ones.
        errors: Upper limit of the FPR, or of the FNR.
        hits: Lower limit of the TPR, or of the TNR.
        value: The bound itself.
    """

    high: bool
    errors: float
    hits: float
    value: float

    @property
    def words(self) -> str:
        """What the limits say."""
        most, least = (
            formatting.percent(self.errors, toward="up"),
            formatting.percent(self.hits, toward="down"),
        )
        bound = f"The certified bound {formatting.number(self.value, toward='down')} is read"
        if self.high:
            return f"{bound} where at most {most} of the training records are wrongly cleared and at least {least} of the others are cleared"
        return f"{bound} where at most {most} are false alarms and at least {least} of the training records are recognised"


def is_high(result: AuditResult) -> bool:
    """Return whether the certified bound comes from the high losses, which show who was not in the training data."""
    row = find(result, CERTIFIED)
    return row is not None and (row.lower or 0) > 0 and dig(row.details, "tail") == "upper"


def certified_point(result: AuditResult) -> CertifiedPoint | None:
    """Return where the certified bound is read; null without a bound above 0 that rests on two limits."""
    row = find(result, CERTIFIED)
    if row is None or not row.lower or row.lower <= 0 or dig(row.details, "approximate"):
        return None
    tail = str(dig(row.details, "tail"))
    errors, hits = (amount(row.details, name) for name in _RATES.get(tail, ("", "")))
    if errors is None or hits is None or not (0 <= errors <= 1 and 0 <= hits <= 1):
        return None
    return CertifiedPoint(high=tail == "upper", errors=errors, hits=hits, value=row.lower)


def turned(curves: Mapping[str, NamedCurve]) -> dict[str, NamedCurve]:
    """Return the curves seen from the other end: the FNR where the FPR was, and the TNR where the TPR was."""
    return {name: _turned(curve) for name, curve in curves.items()}


def _turned(curve: NamedCurve) -> NamedCurve:
    points = [*zip(curve.fpr, curve.tpr, strict=False)][::-1]
    fnr, tnr = (tuple(round(1 - point[at], 9) for point in points) for at in (1, 0))
    return replace(curve, fpr=fnr, tpr=tnr)


def high_reach(result: AuditResult) -> tuple[float, float]:
    """Return the finest rate that the members can show, and the rate that the logarithmic axes begin at."""
    star = find(result, STAR)
    place = amount(star.details, "at", "fnr") if star and dig(star.details, "branch") == "m2" else None
    finest = max(finest_of(result, "n_member"), _LEAST)
    return finest, max(floor(finest, place), _LEAST)
