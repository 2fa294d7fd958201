"""Secrets that sampling writes, of members and of non-members, over the number of tries."""

from typing import TYPE_CHECKING

import numpy as np

from auditor.core import numbers
from auditor.report.figures import canvas
from auditor.report.rows import extracted, extraction_rows, share_of
from auditor.results.document import Document

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def extraction_figure(result: Document) -> "Figure | None":
    """Return the shares of secrets extracted with their intervals; None if the losses are not of secrets."""
    rows = extracted(result)
    members, others = ([share_of(item, group) for _, item in rows] for group in ("", "nonmember"))
    if not rows or None in (value for row in (*members, *others) for value in row):
        return None
    tries = np.array([n for n, _ in rows], dtype=np.float64)
    with canvas.axes() as (figure, panel):
        for ends, colour, label, shift in (
            (members, canvas.ACCENT, "Training records", 1 / _APART),
            (others, canvas.INK, "Other records", _APART),
        ):
            value, lower, upper = np.array(ends, dtype=np.float64).T
            panel.vlines(tries * shift, lower, upper, color=colour, linewidth=1.4)
            panel.plot(tries * shift, value, "o-", color=colour, markersize=4, linewidth=1.2, label=label)
        panel.set_xscale("log")
        panel.set_xticks(tries, [numbers.count(int(n)) for n in tries])
        panel.minorticks_off()
        panel.yaxis.set_major_formatter(lambda share, _: numbers.percent(round(share, 6)))
        panel.set(xlabel="Tries for each record", ylabel="Secrets extracted", ylim=(0, None))
        canvas.legend(figure)
    return figure


_APART = 1.06  # factor between the marks of the groups and their number of tries


def extraction_words(result: Document) -> str:
    """Return the same in words."""
    words = [
        f"within {row.tries} tries: {row.members[0]} ({row.members[1]}), of others {row.others[0]} ({row.others[1]})"
        for row in extraction_rows(result)
    ]
    if not words:
        return "Secrets extracted: the losses are not of secrets."
    return f"Secrets extracted. {'; '.join(words)}."
