"""The other end of the trade-off curve, and where the certified bound is read on each figure."""

from dataclasses import replace

import numpy as np
import pytest
from report.conftest import changed

import auditor
from auditor.curves import NamedCurve
from auditor.report import render
from auditor.report.figures import TIP, gallery as figures, tradeoff
from auditor.report.figures.tradeoff import tradeoff_high_words

HIGH = {"tail": "upper", "fnr_upper": 0.0123, "tnr_lower": 0.2345}
LOW = {"tail": "lower", "fpr_upper": 0.0123, "tpr_lower": 0.2345}


def _bound(result, details, *, value=2.9, **changes):
    data = {key: x for key, x in changes.pop("data", result.data).items() if key != "shown"}
    found = changed(result, "epsilon_bound.clopper_pearson", value=value, lower=value, details=details)
    return replace(found, data=data, **changes)


def _lines(result, name):
    return {line.get_label(): line for line in figures.figure(result, name).axes[0].get_lines()}


def _square(result, name):
    lines = _lines(result, name)
    line = lines.get("Certified bound is read here") or lines.get("Headline is read here")
    return None if line is None else line.get_xydata()[0].tolist()


@pytest.mark.parametrize(
    ("details", "value", "drawn"),
    [
        (HIGH, 2.9, True),
        ({"tail": "upper"}, 2.9, True),
        (LOW, 2.9, False),
        (HIGH, 0.0, False),
        ({}, 2.9, False),
    ],
)
def test_drawn_where_the_bound_comes_from_there(overfitted, details, value, drawn):
    """The other end is drawn where a bound above 0 comes from the high losses, and nowhere else."""
    result = _bound(overfitted, details, value=value)
    assert (figures.figure(result, "tradeoff-high") is not None) is drawn
    assert figures.figure(replace(result, curves=()), "tradeoff-high") is None


def test_seen_from_the_other_end(overfitted):
    """A curve is drawn at 1 - TPR and 1 - FPR, from one training record on, and guessing stays guessing."""
    curve = NamedCurve("empirical", "measured", (0.0, 0.2, 0.7, 1.0), (0.0, 0.5, 1.0, 1.0))
    data = dict(overfitted.data) | {"n_member": 100, "n_nonmember": 7, "disclosure": "insiders"}
    lines = _lines(_bound(overfitted, HIGH, curves=(curve,), data=data), "tradeoff-high")
    x, y = lines["Measured"].get_data()
    # One of 100 members is 0.01. From (0, 0.3) to (0.5, 0.8) the line is straight: 0.3 + 0.01 there.
    assert (x[0], y[0]) == (pytest.approx(0.01), pytest.approx(0.31))
    np.testing.assert_allclose(y, np.interp(x, [0, 0.5, 1.0], [0.3, 0.8, 1.0]))
    np.testing.assert_array_equal(lines["_Guessing"].get_xdata(), lines["_Guessing"].get_ydata())


def test_where_the_bound_is_read(overfitted):
    """The two limits of the bound are marked on the figure of their end, and on linear axes as FPR and TPR."""
    low, high = _bound(overfitted, LOW), _bound(overfitted, HIGH)
    assert _square(low, "tradeoff-log") == [0.0123, 0.2345]
    assert _square(low, "tradeoff") == [0.0123, 0.2345]
    assert _square(high, "tradeoff-high") == [0.0123, 0.2345]
    assert _square(high, "tradeoff") == pytest.approx([1 - 0.2345, 1 - 0.0123])
    assert _square(high, "tradeoff-log") is None
    said = _lines(high, "tradeoff-high")["Certified bound is read here"].get_gid().removeprefix(TIP)
    assert (
        "at most 1.23% of the training records are wrongly ruled out and at least 23.4% of the others" in said
    )


@pytest.mark.parametrize(
    "details",
    [
        {"tail": "upper"},
        HIGH | {"fnr_upper": 1.5},
        HIGH | {"tnr_lower": None},
        HIGH | {"tail": ["upper"]},
    ],
)
def test_nothing_to_mark(overfitted, details):
    """A bound that does not rest on two certified limits, or on two that are no rates, is marked nowhere."""
    assert _square(_bound(overfitted, details), "tradeoff") is None


@pytest.fixture(scope="module")
def above():
    """An audit of a model that never gives a training record a loss above 1, which two of three others have."""
    rng = np.random.default_rng(3)
    return auditor.audit(
        auditor.Losses(member=rng.uniform(0.01, 1, 800), nonmember=rng.uniform(0.01, 3, 800)),
        seed=0,
        disclosure="insiders",
    )


def test_a_real_audit(above):
    """The mark lies inside the band, below and right of the measured curve, near the TNR of 2/3 that is true here."""
    missed, cleared = _square(above, "tradeoff-high")
    x, y = _lines(above, "tradeoff-high")["Measured, 95% band"].get_data()
    assert missed < 0.02
    assert 0.5 < cleared < 2 / 3
    assert cleared < np.interp(missed, x, y)
    assert above.figure("tradeoff-high") is not None
    band = next(curve for curve in above.curves if curve.name == "band_lower")
    assert 0 <= np.interp(1 - cleared, band.fpr, band.tpr) - (1 - missed) < 0.02
    assert "it is sharper, and may say more than these limits" in tradeoff_high_words(above)


def test_the_page_shows_the_end_that_says_most_first(above):
    """The end that the headline tells is open, and the other one folded."""
    for end, first in (("low", "audit-1-tradeoff-log-title"), ("high", "audit-1-tradeoff-high-title")):
        point = {"errors": 0.01, "hits": 0.2, "end": end}
        shown = {"looks": 6, "names": [], "reversed": 0.0, "point": point}
        page = render([replace(above, data={**above.data, "shown": shown})])
        start, folded = page.index('id="audit-1-measured"'), page.index("The rest of the curve")
        assert start < page.index(first) < folded
        assert page.find("audit-1-tradeoff-log-title") > folded or end == "low"
        assert ("audit-1-tradeoff-high-title" in page) is (end == "high")


def test_a_doubled_corner_stays(overfitted):
    """The corner of a band whose points are doubled stays a corner: the band does not slant across where it ends."""
    low = NamedCurve(
        "band_lower", "band", (0.0, 0.5, 0.8, 0.8, 0.8, 0.8, 1.0), (0.0, 0.0, 0.0, 0.0, 0.3, 0.3, 1.0)
    )
    high = NamedCurve("band_upper", "band", (0.0, 1.0), (0.9, 1.0))
    figure = tradeoff.tradeoff_log_figure(replace(overfitted, curves=(low, high)))
    x, y = figure.axes[0].get_lines()[0].get_data()
    assert np.interp(0.79, x, y) == pytest.approx(y[0])
