"""AuditResult: everything an audit found, with nothing left to recompute and no raw losses inside.

The JSON form holds what the page shows. Infinite numbers are the strings ``inf`` and ``-inf``, missing ones null.
"""

import dataclasses
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from auditor import _validate
from auditor.errors import InputError
from auditor.values import Check, Claim, Comparison, Estimate, Verdict

if TYPE_CHECKING:
    import pandas as pd

    from auditor.slices import Slice

__all__ = ["SCHEMA_VERSION", "AuditResult", "Histogram", "NamedCurve", "TopRecord", "plain"]

SCHEMA_VERSION = "2"


@dataclass(frozen=True)
class NamedCurve:
    """One line of the trade-off plot.

    Attributes:
        name: ``empirical``, ``band_lower``, ``band_upper``, ``gaussian``, ``mixture`` or ``claim``; or ``ranks.*``, what
            an audit of several models needs of each.
        label: What the legend says.
        fpr: False positive rates, ascending.
        tpr: True positive rates, as many.
    """

    name: str
    label: str
    fpr: tuple[float, ...]
    tpr: tuple[float, ...]


@dataclass(frozen=True)
class Histogram:
    """Binned losses on one scale, with the fitted densities where there are any.

    Attributes:
        scale: The scale in words, for example ``published transform``.
        edges: B + 1 ascending bin edges.
        member: B counts of members.
        nonmember: B counts of non-members.
        member_fit: B counts expected under the member fit, or null.
        nonmember_fit: B counts expected under the non-member fit, or null.
        quantiles: For a quantile-quantile plot: ``probability`` and, for each group, ``*_observed`` and
            ``*_fitted``, all of one length; empty where there is no fit.
    """

    scale: str
    edges: tuple[float, ...]
    member: tuple[int, ...]
    nonmember: tuple[int, ...]
    member_fit: tuple[float, ...] | None = None
    nonmember_fit: tuple[float, ...] | None = None
    quantiles: Mapping[str, tuple[float, ...]] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True)
class TopRecord:
    """A training record among those whose losses speak most for membership; its loss is not kept.

    Attributes:
        rank: Place among all audited records, 1 for the highest odds; records of equal odds share one.
        id: As given.
        group: As given, or null.
        person: As given, or null.
        odds: Estimated odds that a record with such a loss is a training record, if half of all records were.
    """

    rank: int
    id: str
    group: str | None
    person: str | None
    odds: float


@dataclass(frozen=True, eq=False)
class AuditResult:
    """What an audit found.

    Attributes:
        data: Numbers of records, training size, delta, confidence, what was declared, what the losses are.
        estimates: In the order in which a report shows them.
        claims: What the training description promises.
        comparisons: Each claim beside the estimates.
        checks: Whether the audit deserves trust.
        slices: The audit by group and by loss percentile, with one error probability for all.
        curves: For the trade-off plot, thinned.
        histograms: Binned losses.
        verdict: On the claim; null without a claim.
        provenance: Versions, input hash, seed, command line, time.
        top_records: The training records that look most exposed, by id; empty where records have none.
    """

    data: Mapping[str, Any]
    estimates: tuple[Estimate, ...]
    claims: tuple[Claim, ...]
    comparisons: tuple[Comparison, ...]
    checks: tuple[Check, ...]
    curves: tuple[NamedCurve, ...]
    histograms: tuple[Histogram, ...]
    verdict: Verdict | None
    provenance: Mapping[str, Any]
    schema_version: str = SCHEMA_VERSION
    slices: tuple["Slice", ...] = ()
    top_records: tuple[TopRecord, ...] = ()

    def estimate(self, name: str) -> Estimate:
        """Return the estimate of that name.

        Raises:
            InputError: There is none; the message names the nearest.
        """
        by_name = {item.name: item for item in self.estimates}
        return by_name[_validate.known("estimate", name, by_name)]

    def check(self, name: str) -> Check:
        """Return the check of that name.

        Raises:
            InputError: There is none; the message names the nearest.
        """
        by_name = {item.name: item for item in self.checks}
        return by_name[_validate.known("check", name, by_name)]

    def to_frame(self) -> "pd.DataFrame":
        """Return the estimates as a pandas DataFrame, one row each, indexed by name."""
        import pandas as pd

        columns = ["value", "lower", "upper", "confidence", "delta", "adjacency", "subject", "method"]
        rows = [{name: getattr(item, name) for name in columns} for item in self.estimates]
        return pd.DataFrame(
            rows, columns=columns, index=pd.Index([e.name for e in self.estimates], name="name")
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form as plain dictionaries, lists, numbers and strings."""
        order = ("schema_version", "verdict", "data", "estimates", "claims", "comparisons", "checks")
        names = [*order, "slices", "top_records", "curves", "histograms", "provenance"]
        return {name: plain(getattr(self, name)) for name in names}

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the JSON text; with a path, also write it there, whole or not at all.

        Raises:
            OutputError: The path cannot be written.
        """
        text = json.dumps(self.to_dict(), indent=2, allow_nan=False, ensure_ascii=False) + "\n"
        if path is not None:
            from auditor.report.files import write_all

            write_all({_path(path): text})
        return text

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the report as one offline HTML page; with a path, also write it there, whole or not at all.

        Raises:
            OutputError: The path cannot be written.
        """
        from auditor.report import html
        from auditor.report.files import write_all

        text = html.render([self])
        if path is not None:
            write_all({_path(path): text})
        return text


def _path(path: Any) -> Path:
    """A path that an output can be asked for at."""
    if not isinstance(path, str | os.PathLike) or isinstance(path, bytes):
        raise InputError(f"path must be a text or a path, got {path!r}.")
    return Path(path)


def plain(value: Any) -> Any:
    """Return a JSON-like copy: enums as strings, arrays and tuples as lists, infinities as strings, NaN as null."""
    match value:
        case Mapping():
            found: Any = {str(key): plain(item) for key, item in value.items()}
        case np.ndarray() | list() | tuple():
            found = [plain(item) for item in value]
        case np.generic():
            found = plain(value.item())
        case float():
            found = _plain_float(value)
        case str():  # an enum's value too
            found = str(value)
        case _ if dataclasses.is_dataclass(value):
            found = {item.name: plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
        case _:
            found = value
    return found


def _plain_float(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")
