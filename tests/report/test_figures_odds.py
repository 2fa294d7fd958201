"""The dots: as many as are certified, counted in the picture itself."""

from dataclasses import replace

import numpy as np
import pytest

from auditor.core import Check, Status
from auditor.report.figures import alt, figure


def _result(result, rate, lower, *, end="low", **data):
    point = None if lower is None else {"errors": rate, "hits": lower, "end": end}
    return replace(result, data={**result.data, "shown": {"looks": 6, "names": [], "point": point}, **data})


def _dots(axes):
    """The dots of each line: its dashes have no length, so each is one dot, from the start of each piece on."""
    counts = []
    for line in axes.get_lines():
        offset, (mark, gap) = line._unscaled_dash_pattern
        pitch = (mark + gap) * line.get_linewidth()
        assert offset == 0
        assert mark < 0.01  # a dot, not a dash
        assert line.get_dash_capstyle() == "round"
        origin, unit = axes.transData.transform([(0, 0), (1, 0)])[:, 0] * 72 / axes.figure.dpi
        assert pitch == pytest.approx(unit - origin, rel=1e-9)  # a dot at every whole place
        x = np.asarray(line.get_xdata(), dtype=float)
        pieces = np.split(x, np.flatnonzero(np.isnan(x)))
        ends = [piece[~np.isnan(piece)] for piece in pieces]
        counts.append(sum(int(np.floor(e[-1] - e[0])) + 1 for e in ends if e.size))
    return counts


@pytest.mark.parametrize(
    ("rate", "lower", "base", "hits", "alarms"),
    [
        (0.01, 0.12345, 100, 12, 1),  # floor of 12.3, exactly 1
        (0.1, 0.29, 100, 29, 10),
        (0.05, 1.0, 100, 100, 5),
        (0.001, 0.0209, 1_000, 20, 1),
        (0.0025, 0.5, 10_000, 5_000, 25),  # 500 and 3 out of 1,000 would tell five sixths of the ratio
        (0.00333, 0.5, 10_000, 5_000, 34),  # 33.3 accused: rounded up
        (0.0001, 0.9999, 10_000, 9_999, 1),
        (0.07, 0.29, 100, 29, 7),  # 0.07 * 100 and 0.29 * 100 are not whole in binary
    ],
)
def test_dots_are_the_certified_counts(overfitted, rate, lower, base, hits, alarms):
    """The fields hold as many large dots as are certified, rounded against the finding, and the rest are small."""
    left, right = figure(_result(overfitted, rate, lower), "odds").axes
    for axes, large in ((left, hits), (right, alarms)):
        counts = _dots(axes)
        assert counts[0] == large
        assert sum(counts) == base
    words = alt(_result(overfitted, rate, lower), "odds")
    assert f"Two fields of {base:,} dots." in words
    assert left.get_title(loc="left") == f"Of {base:,} training records"
    assert right.get_xlabel() == f"at most {alarms:,} falsely accused"


def test_those_who_are_ruled_out(overfitted):
    """At the other end the left field holds the others who are ruled out, the right one the members who wrongly are."""
    left, right = figure(_result(overfitted, 0.01, 0.123, end="high"), "odds").axes
    assert left.get_title(loc="left") == "Of 100 other records"
    assert left.get_xlabel() == "at least 12 ruled out"
    assert right.get_xlabel() == "at most 1 wrongly so"


def test_nothing_beyond_guessing(overfitted):
    """Where no more than guessing is certified, or a validity check failed, there are no dots."""
    assert figure(_result(overfitted, 0.01, None), "odds") is None
    assert "nothing beyond guessing" in alt(_result(overfitted, 0.01, None), "odds")
    failed = (Check("shift", Status.FAIL, "the groups differ"),)
    assert figure(replace(_result(overfitted, 0.01, 0.2), checks=failed), "odds") is None
