"""AuditResult: everything an audit found, with nothing left to recompute and no raw losses inside.

The JSON form holds what the page shows. Infinite numbers are the strings ``inf`` and ``-inf``, missing ones null.
"""

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor import _validate
from auditor._plain import plain
from auditor.errors import InputError
from auditor.values import Check, Claim, Comparison, Estimate, Verdict

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from auditor.gates import Gate, GateOutcome
    from auditor.slices import Slice

    Gates = str | Sequence[str | Gate | GateOutcome]

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
        id: As given; the person where a score stands for all records of one.
        group: As given, or null.
        person: As given, or null.
        odds: Estimated odds that a record with such a loss is a training record, if half of all records were.
        shared: How many training records have the same odds, this one too: which of them are named is arbitrary. Null in
            a result of an older release.
    """

    rank: int
    id: str
    group: str | None
    person: str | None
    odds: float
    shared: int | None = None


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
        return _kept(json.dumps(self.to_dict(), indent=2, allow_nan=False, ensure_ascii=False) + "\n", path)

    def to_html(self, path: str | os.PathLike[str] | None = None, *, gates: "Gates" = ()) -> str:
        """Return the report as one offline HTML page; with a path, also write it there, whole or not at all.

        Args:
            path: Where to write it.
            gates: Conditions that the page shows with their outcomes, as `auditor.check_gates` takes them.

        Raises:
            InputError: A gate cannot be read, or names nothing that an audit has.
            OutputError: The path cannot be written.
        """
        from auditor.gates import check_gates
        from auditor.report import html

        return _kept(html.render([self], gates=check_gates(self, gates)), path)

    def to_markdown(self, path: str | os.PathLike[str] | None = None, *, gates: "Gates" = ()) -> str:
        """Return a summary for a pull request in GitHub-flavoured Markdown; with a path, also write it there.

        Args:
            path: Where to write it, whole or not at all.
            gates: Conditions to judge the audit by, as `auditor.check_gates` takes them.

        Raises:
            InputError: A gate cannot be read, or names nothing that an audit has.
            OutputError: The path cannot be written.
        """
        from auditor.gates import check_gates
        from auditor.report import markdown

        return _kept(markdown.render(self, gates=check_gates(self, gates)), path)

    def to_junit(self, path: str | os.PathLike[str] | None = None, *, gates: "Gates" = ()) -> str:
        """Return the claim, the gates and the checks as JUnit XML for build servers; with a path, also write it there.

        Args:
            path: Where to write it, whole or not at all.
            gates: Conditions to judge the audit by, as `auditor.check_gates` takes them.

        Raises:
            InputError: A gate cannot be read, or names nothing that an audit has.
            OutputError: The path cannot be written.
        """
        from auditor.gates import check_gates
        from auditor.report import junit

        return _kept(junit.render(self, gates=check_gates(self, gates)), path)

    def to_sarif(self, path: str | os.PathLike[str] | None = None, *, gates: "Gates" = ()) -> str:
        """Return what somebody has to look at as SARIF 2.1.0 for code hosts; with a path, also write it there.

        Args:
            path: Where to write it, whole or not at all.
            gates: Conditions to judge the audit by, as `auditor.check_gates` takes them.

        Raises:
            InputError: A gate cannot be read, or names nothing that an audit has.
            OutputError: The path cannot be written.
        """
        from auditor.gates import check_gates
        from auditor.report import sarif

        return _kept(sarif.render(self, gates=check_gates(self, gates)), path)

    def figure(self, name: str) -> "Figure | None":
        """Return a figure of the report as a matplotlib ``Figure``, or null where this audit has no data for it.

        Args:
            name: One of `auditor.report.figures.FIGURES`, such as ``tradeoff-log`` or ``losses``.

        Raises:
            InputError: There is no figure of that name; the message names the nearest.
        """
        from auditor.report import figures

        return figures.figure(self, name)

    def figures(self) -> "dict[str, Figure]":
        """Return every figure that this audit has data for, by name, in the order of the report."""
        from auditor.report.figures import FIGURES

        drawn = {name: self.figure(name) for name in FIGURES}
        return {name: found for name, found in drawn.items() if found is not None}

    def _repr_html_(self) -> str:
        """Return the card that a notebook shows."""
        from auditor.report.notebook import card

        return card(self)


def _kept(text: str, path: str | os.PathLike[str] | None) -> str:
    """The text, once it is written where a path was given, whole or not at all."""
    if path is not None:
        from auditor.report.files import write_all

        write_all({_path(path): text})
    return text


def _path(path: Any) -> Path:
    """A path that an output can be asked for at."""
    if not isinstance(path, str | os.PathLike) or isinstance(path, bytes):
        raise InputError(f"path must be a text or a path, got {path!r}.")
    return Path(path)
