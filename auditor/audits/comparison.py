"""compare_audits(): several results become one comparison, from which a page, a table and JSON are made."""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from auditor._version import __version__
from auditor.audits.about import with_table
from auditor.audits.differences import Change, Difference, Headline, differences, headline
from auditor.audits.readings import Reading, chosen, read
from auditor.audits.rows import row
from auditor.audits.runs import Run, named, read_runs
from auditor.audits.strategies import Strategy, ranked, strategies, why_not_ranked
from auditor.result import AuditResult, plain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["AuditsComparison", "RunChange", "compare_audits"]

_PAIR = 2


@dataclass(frozen=True, eq=False)
class RunChange:
    """What changed from the baseline to one other audit.

    Attributes:
        run: The other audit.
        differences: One for each quantity. All intervals of all audits of the comparison hold at once.
    """

    run: Run
    differences: tuple[Difference, ...]

    @property
    def headline(self) -> Headline:
        """What the quantities that decide show together, fixed in advance."""
        return headline(self.differences)


@dataclass(frozen=True, eq=False)
class AuditsComparison:
    """Several audits beside each other.

    Attributes:
        measure: Name of the estimate on the privacy axis.
        readings: What each audit says of it, in the order of the results.
        strategies: The averages over the instances of each strategy.
        baseline: The audit that the others are set against, or null.
        changes: From the baseline to each other audit; empty without one.
        no_landscape: Why there is no privacy-utility landscape, or null.
        measure_reason: Why it is another measure than people expect, where none was asked for; else null.
        no_frontier: Why the strategies of the landscape are not ranked, or null.
    """

    measure: str
    readings: tuple[Reading, ...]
    strategies: tuple[Strategy, ...]
    baseline: Run | None = None
    changes: tuple[RunChange, ...] = ()
    no_landscape: str | None = None
    no_frontier: str | None = None
    measure_reason: str | None = None

    @property
    def runs(self) -> tuple[Run, ...]:
        """The audits, in the order of the results."""
        return tuple(item.run for item in self.readings)

    @property
    def frontier(self) -> tuple[Strategy, ...]:
        """The strategies on the Pareto frontier, in the order of their utility."""
        found = [item for item in self.strategies if item.on_frontier]
        return tuple(sorted(found, key=lambda item: item.utility.mean if item.utility else 0.0))

    @property
    def got_worse(self) -> bool | None:
        """Whether any audit shows more leakage than the baseline, at a confidence that all of them share.

        Null where that cannot be said: there is no baseline, or none is shown to be worse and one is not comparable.
        """
        verdicts = {item.headline.verdict for item in self.changes}
        if Change.WORSE in verdicts:
            return True
        return None if not verdicts or Change.NOT_COMPARABLE in verdicts else False

    def to_frame(self) -> "pd.DataFrame":
        """Return one row for each result, indexed by its number, as a pandas DataFrame."""
        import pandas as pd

        rows = [row(self, item) for item in self.readings]
        return pd.DataFrame(rows).set_index("number")

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form as plain dictionaries, lists, numbers and strings."""
        changes = [
            {
                "number": item.run.number,
                "headline": plain(item.headline),
                "differences": plain(item.differences),
            }
            for item in self.changes
        ]
        found: dict[str, Any] = {
            "kind": "comparison",
            "comparison_version": "1",
            "auditor_version": __version__,
            "measure": self.measure,
            "measure_reason": self.measure_reason,
            "no_landscape": self.no_landscape,
            "no_frontier": self.no_frontier,
            "results": [row(self, item) for item in self.readings],
            "strategies": plain(self.strategies),
            "frontier": [item.number for item in self.frontier],
            "baseline": None if self.baseline is None else self.baseline.number,
            "got_worse": self.got_worse,
            "changes": changes,
        }
        return {key: plain(value) for key, value in found.items()}

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the JSON text; with a path, also write it there, whole or not at all.

        Raises:
            OutputError: The path cannot be written.
        """
        text = json.dumps(self.to_dict(), indent=2, allow_nan=False, ensure_ascii=False) + "\n"
        return _written(text, path)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the comparison as one offline HTML page; with a path, also write it there, whole or not at all.

        Raises:
            OutputError: The path cannot be written.
        """
        from auditor.report.comparison import render

        return _written(render(self), path)

    def landscape_figure(self) -> "Figure | None":
        """Return the privacy-utility landscape as a matplotlib figure; null where there is none."""
        from auditor.report.figures.landscape import landscape_figure

        return landscape_figure(self)

    def _repr_html_(self) -> str:
        from auditor.report.comparison import cell

        return cell(self)


def _written(text: str, path: str | os.PathLike[str] | None) -> str:
    if path is not None:
        from auditor.report.files import write_all
        from auditor.result import _path

        write_all({_path(path): text})
    return text


def compare_audits(
    results: Iterable[AuditResult | str | os.PathLike[str]],
    *,
    about: Any = None,
    baseline: Any = None,
    measure: str | None = None,
) -> AuditsComparison:
    """Set several audits beside each other, against their utility, and against a baseline.

    Args:
        results: Two or more results, or paths of result files.
        about: What the results do not say themselves: the path of a ``.csv`` or ``.parquet`` file, a DataFrame, or a
            dictionary of columns. Column ``result`` names the result (its file, its model, or its number from 1); any of
            ``utility``, ``utility_name``, ``higher_is_better``, ``strategy``, ``category`` and ``model`` say more.
        baseline: The result that the others are set against: the result itself, its file, its model, or its number
            from 1. By default the first of exactly two; none where there are more.
        measure: Name of the estimate on the privacy axis. By default ``epsilon_star.gaussian``, or ``advantage`` where
            an audit's fit is rejected.

    Raises:
        InputError: Fewer than two results, one of them twice, or a table, baseline or measure that cannot be used.

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
    >>> found = compare_audits([old, new])
    >>> found.got_worse, [item.name for item in found.frontier]
    (True, ['v1', 'v2'])
    """
    runs = read_runs(results)
    if about is not None:
        runs = with_table(runs, about)
    measure, why = chosen(runs, measure)
    readings = read(runs, measure=measure)
    reason = _no_landscape(readings)
    found = strategies(readings, utilities=reason is None)
    unranked = reason or why_not_ranked(found, readings, measure=measure)
    base = _baseline(runs, baseline)
    return AuditsComparison(
        measure=measure,
        readings=readings,
        strategies=found if unranked else ranked(found, readings, measure=measure),
        baseline=base,
        changes=_changes(runs, base),
        no_landscape=reason,
        no_frontier=unranked,
        measure_reason=why,
    )


def _baseline(runs: Sequence[Run], key: Any) -> Run | None:
    if key is not None:
        return named(runs, key, argument="baseline")
    return runs[0] if len(runs) == _PAIR else None


def _changes(runs: Sequence[Run], base: Run | None) -> tuple[RunChange, ...]:
    if base is None:
        return ()
    others = [run for run in runs if run is not base]
    return tuple(RunChange(run, differences(base.result, run.result, together=len(others))) for run in others)


def _no_landscape(readings: Sequence[Reading]) -> str | None:
    """Why the strategies have no places in one plane, if so."""
    found = [item.run.utility for item in readings if item.run.utility is not None]
    if not found:
        return "no utility was given"
    names = list(dict.fromkeys(item.name for item in found))
    if len(names) > 1:
        return f"the utilities are different quantities ({names[0]!r} and {names[1]!r}), which have no common axis"
    if len({item.higher_is_better for item in found}) > 1:
        return f"of {names[0]!r} a larger value is better in one result and worse in another"
    if all(item.reason is not None or item.run.utility is None for item in readings):
        return "no result has both a utility and a usable value of the measure"
    return None
