"""compare_audits(): combines several results into one comparison."""

import json
import os
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from auditor._version import __version__
from auditor.comparison import runs as audited
from auditor.comparison.changes import Change, RunChange, audits_refusal, differences
from auditor.comparison.strategies import Strategy, ranked, strategies, why_no_order, why_not_ranked
from auditor.core import Disclosure, Estimate, InputError, Losses, clean, plain, quoted, saved, validate
from auditor.estimators.pooling import POOLED, mean_of_models
from auditor.results import metrics
from auditor.results.disclosure import shared, shared_rows
from auditor.results.document import AuditResult, Saved, find, input_hash

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# --- Several audits beside each other ---

_PAIR = 2


@dataclass(frozen=True, repr=False)
class AuditsComparison(Saved):
    """Several audits beside each other.

    Attributes:
        measure: Name of the estimate on the privacy axis.
        measurements: Its value in each audit, in the order of the results.
        strategies: The averages over the instances of each strategy.
        baseline: The audit that the others are set against, or None.
        changes: From the baseline to each other audit; empty without one.
        no_landscape: Reason why there is no privacy-utility landscape, or None.
        no_frontier: Reason why the strategies of the landscape have no frontier, or None.
        no_order: Reason why the strategies cannot be ranked by their leakage, or None.
        pooled: The mean AUC and the mean advantage of audits of one kind, with how much they differ; for reading only.
    """

    measure: str
    measurements: tuple[audited.Measurement, ...]
    strategies: tuple[Strategy, ...]
    baseline: audited.Run | None = None
    changes: tuple[RunChange, ...] = ()
    no_landscape: str | None = None
    no_frontier: str | None = None
    no_order: str | None = None
    pooled: tuple[Estimate, ...] = ()

    @property
    def runs(self) -> tuple[audited.Run, ...]:
        """The audits, in the order of the results."""
        return tuple(item.run for item in self.measurements)

    @property
    def disclosure(self) -> Disclosure:
        """Audience of the comparison: everybody, unless all its audits are for insiders."""
        is_public = audited.is_public(*(run.result.data for run in self.runs))
        return Disclosure.PUBLIC if is_public else Disclosure.INSIDERS

    @property
    def frontier(self) -> tuple[Strategy, ...]:
        """The strategies on the Pareto frontier, in the order of their utility."""
        result = [item for item in self.strategies if item.on_frontier]
        return tuple(sorted(result, key=lambda item: item.utility.mean if item.utility else 0.0))

    @property
    def measure_title(self) -> str:
        """The title of the measure."""
        estimate = next((item.estimate for item in self.measurements if item.estimate is not None), None)
        return self.measure if estimate is None else metrics.describe(estimate).title

    @property
    def utility_title(self) -> str:
        """The title of the utility."""
        return next((run.utility.name for run in self.runs if run.utility is not None), "utility")

    @property
    def history(self) -> tuple[audited.Measurement, ...]:
        """Three or more usable audits of one scale, each made on a day of its own, the oldest first; else none."""
        used = [item for item in self.measurements if item.reason is None]
        days = {item.day for item in used if item.day is not None}
        if self.no_order is not None or len(used) <= _PAIR or len(days) < len(used):
            return ()
        return tuple(sorted(used, key=lambda item: item.day or ""))

    @property
    def got_worse(self) -> bool | None:
        """Whether any audit shows more leakage than the baseline, at a confidence that all of them share.

        None where that cannot be said: there is no baseline, or none is shown to be worse and one is not comparable.
        """
        verdicts = {item.headline.verdict for item in self.changes}
        if Change.WORSE in verdicts:
            return True
        return None if not verdicts or Change.NOT_COMPARABLE in verdicts else False

    @property
    def _rows(self) -> list[dict[str, Any]]:
        corners = {number for strategy in self.frontier for number in strategy.runs}
        on = None if self.no_frontier else corners
        return [_row(item, on) for item in self.measurements]

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the comparison as one offline HTML page; with a path write it there, whole or not at all, and return the path.

        Raises:
            OutputError: The path cannot be written.
        """
        from auditor.report.comparison import render

        return saved(render(self), path)

    def landscape_figure(self) -> "Figure | None":
        """Return the privacy-utility landscape as a matplotlib figure; None if there is none."""
        from auditor.report.figures.landscape import landscape_figure

        return landscape_figure(self)

    def __str__(self) -> str:
        """Return the text of the terminal."""
        from auditor import report

        return str(report.comparison_text(self))

    def __repr__(self) -> str:
        """Show in one line the number of audits compared, and the measure."""
        against = "" if self.baseline is None else f" against {clean(self.baseline.title)!r}"
        return f"AuditsComparison({len(self.runs)} audits by {self.measure}{against})"

    def _repr_html_(self) -> str:
        from auditor.report.comparison import cell

        return cell(self)

    def to_frame(self) -> "pd.DataFrame":
        """Return one row for each result, indexed by its number, as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self._rows).set_index("number")

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form as plain dictionaries, lists, numbers and strings."""
        result: dict[str, Any] = {
            "kind": "comparison",
            "comparison_version": "2",
            "auditor_version": __version__,
            "disclosure": self.disclosure,
            **{name: getattr(self, name) for name in ("measure", "no_landscape", "no_frontier", "no_order")},
            "results": self._rows,
            "strategies": self.strategies,
            "frontier": [item.number for item in self.frontier],
            "baseline": self.baseline and self.baseline.number,
            "got_worse": self.got_worse,
            "changes": [
                {"number": item.run.number, "headline": item.headline, "differences": item.differences}
                for item in self.changes
            ],
        }
        if self.pooled:
            result["pooled"] = self.pooled
        return dict(plain(result))

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the JSON text; with a path write it there, whole or not at all, and return the path.

        Raises:
            OutputError: The path cannot be written.
        """
        return saved(json.dumps(self.to_dict(), indent=2, allow_nan=False, ensure_ascii=False) + "\n", path)


def compare_audits(
    results: Iterable[AuditResult | str | os.PathLike[str]] | AuditResult | str | os.PathLike[str],
    *more: AuditResult | str | os.PathLike[str],
    about: Any = None,
    baseline: Any = None,
    measure: str | None = None,
    losses: Iterable[Losses] = (),
) -> AuditsComparison:
    """Set several audits beside each other, against their utility, and against a baseline.

    Args:
        results: Two or more results, or paths of result files; or the first of them.
        more: The others then.
        about: Facts that the results do not contain: the path of a ``.csv`` or ``.parquet`` file, a DataFrame, or a
            dictionary of columns. Column ``result`` names the result (its file, its model, or its number from 1); any of
            ``utility``, ``utility_name``, ``higher_is_better``, ``strategy``, ``category`` and ``model`` say more.
        baseline: The result that the others are set against: the result itself, its file, its model, or its number
            from 1. By default the first of exactly two; none where there are more.
        measure: Name of the estimate on the privacy axis. By default ``advantage``, whose interval holds for any law and
            puts the audits in an order as far as they are shown to differ.
        losses: Losses of the audits, in any order, if all audits are of the same records with the same
            membership, by id: then each is compared with the baseline record by record, which sees far smaller changes. A
            result keeps a hash of its losses, so that no others are taken for them.

    Raises:
        InputError: Fewer than two results, one of them twice, a table, baseline or measure that cannot be used, or losses
            of other audits or of other records.

    >>> import numpy as np
    >>> from auditor import Losses, Utility, audit
    >>> rng = np.random.default_rng(0)
    >>> others = rng.normal(size=5000)
    >>> old, new = (
    ...     audit(
    ...         Losses(member=rng.normal(-shift, 1, 5000), nonmember=others),
    ...         model=name, utility=Utility(accuracy, "test accuracy"),
    ...     )
    ...     for name, shift, accuracy in (("v1", 0.1, 0.84), ("v2", 1.0, 0.85))
    ... )
    >>> comparison = compare_audits([old, new])
    >>> comparison.got_worse, [item.name for item in comparison.frontier]
    (True, ['v1', 'v2'])
    """
    several: Any = [results, *more] if more else results
    runs = audited.read_runs(several)
    if about is not None:
        runs = audited.with_table(runs, about)
    base = runs[0] if len(runs) == _PAIR else None
    if baseline is not None:
        base = audited.find_run(runs, baseline, argument="baseline")
    if audited.is_public(*(run.result.data for run in runs)):  # then all are read as such
        runs = tuple(replace(run, result=shared(run.result)) for run in runs)
        base = base and runs[base.number - 1]
    names = list(dict.fromkeys(item.name for run in runs for item in run.result.estimates))
    measure = audited.COMPARED[0] if measure is None else validate.one_of("measure", measure, names)
    measurements = audited.measured(runs, measure=measure)
    reason = _no_landscape(measurements)
    result = strategies(measurements, utilities=reason is None)
    placed = [item for item in result if item.placed]
    unranked = reason or why_not_ranked(placed, measurements, measure=measure)
    return AuditsComparison(
        measure=measure,
        measurements=measurements,
        strategies=result if unranked else ranked(result, measurements, measure=measure),
        baseline=base,
        changes=_changes(runs, base, _losses_of(runs, losses)),
        no_landscape=reason,
        no_frontier=unranked,
        no_order=why_no_order(result, measurements, measure=measure),
        pooled=_pooled([run.result for run in runs]),
    )


def _pooled(results: Sequence[AuditResult]) -> tuple[Estimate, ...]:
    """Return the means over audits, where each pair of them can be compared; rounded as the audits are."""
    first, *others = results
    if not others or any(audits_refusal(first, other) for other in others):
        return ()
    confidence = min(float(result.data.get("confidence") or 0.0) for result in results)
    rows = {name: [find(result, name) for result in results] for name in POOLED}
    alike = [name for name, some in rows.items() if len({row and row.method for row in some}) == 1]
    means = tuple(mean_of_models(rows[name], name=name, confidence=confidence) for name in alike)
    means = tuple(row for row in means if row.value is not None)
    return shared_rows(means) if audited.is_public(*(result.data for result in results)) else means


def _losses_of(runs: Sequence[audited.Run], losses: Iterable[Any]) -> list[Losses]:
    """Return the losses of each audit, by the hash that its result keeps; empty if none were supplied."""
    by_hash: dict[str | None, Losses] = {}
    for place, item in enumerate(losses, start=1):
        if getattr(item, "bits", None) is not None:
            raise InputError(
                f"losses {place} must be those of single records, which are compared one by one, got a summary; compare the"
                " results alone, or give the losses themselves."
            )
        validate.instance("losses", item, (Losses,))
        key = input_hash(item)
        if all(run.sha256 != key for run in runs):
            raise InputError(
                f"losses {place} must be the losses of one of the results, but no result has their hash; read them as the"
                " audit did: the same table, columns and direction."
            )
        by_hash[key] = item
    without = [run for run in runs if by_hash and run.sha256 not in by_hash]
    if without:
        called = f"result {without[0].number} ({without[0].title!r})"
        raise InputError(f"losses must be given of every result or of none, got none of {called}.")
    return [by_hash[run.sha256] for run in runs if by_hash]


def _changes(
    runs: Sequence[audited.Run], base: audited.Run | None, losses: Sequence[Losses]
) -> tuple[RunChange, ...]:
    if base is None:
        if losses:
            raise InputError(
                "losses are compared with those of a baseline, got none; name one with baseline=."
            )
        return ()
    changes = []
    for run in (run for run in runs if run is not base):
        pair = (losses[base.number - 1], losses[run.number - 1]) if losses else None
        rows = differences(base.result, run.result, together=len(runs) - 1, losses=pair)
        changes.append(RunChange(run, rows))
    return tuple(changes)


compare = compare_audits  # as the command is called


def _no_landscape(measurements: Sequence[audited.Measurement]) -> str | None:
    """Return why the strategies have no places in one plane, if they have none."""
    result = [item.run.utility for item in measurements if item.run.utility is not None]
    if not result:
        return "no utility was given"
    names = list(dict.fromkeys(item.name for item in result))
    if len(names) > 1:
        return f"the utilities are different quantities ({quoted(names[0])} and {quoted(names[1])}), which have no common axis"
    if len({item.higher_is_better for item in result}) > 1:
        return f"of {quoted(names[0])} a larger value is better in one result and worse in another"
    if all(item.reason is not None or item.run.utility is None for item in measurements):
        return "no result has both a utility and a usable value of the measure"
    return None


def _row(item: audited.Measurement, on: Container[int] | None) -> dict[str, Any]:
    """Return a result by the names of the columns."""
    run, estimate, utility = item.run, item.estimate, item.run.utility
    verdict = run.result.verdict
    return {
        "number": run.number,
        **{name: getattr(run, name) for name in ("model", "strategy", "category")},
        "utility": utility and utility.value,
        "utility_name": utility and utility.name,
        "higher_is_better": utility and utility.higher_is_better,
        "value": item.value,
        **{name: getattr(estimate, name, None) for name in ("lower", "upper", "confidence", "delta")},
        "subject": estimate and str(estimate.subject),
        "strategy_on_frontier": None if on is None else run.number in on,
        "left_out": item.reason,
        "marks": "; ".join(item.marks),
        "verdict": verdict and str(verdict),
        "file": run.source,
        "input_sha256": run.sha256,
        "created": run.result.provenance.get("created"),
    }
