"""The figure of all epsilon values: every kind of number in its own way, at any magnitude."""

import math
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from auditor.core import Adjacency, Claim, Comparison, Estimate, Subject, Verdict
from auditor.report.figures import Kind, epsilon_rows, gallery as figures, svg


def _estimate(name, value, lower=None, upper=None, **rest):
    fields = {"confidence": 0.95, "method": "by hand", "subject": Subject.MODEL, "delta": 1e-5} | rest
    return Estimate(name, value, lower, upper, **fields)


BOUND = _estimate("epsilon_bound.clopper_pearson", 1.2994, 1.2994, details={"ceiling": 5.5796})
ZERO = _estimate("epsilon_bound.clopper_pearson", 0.0, 0.0, details={"ceiling": 5.5})
FEW = _estimate("epsilon_bound.clopper_pearson", 0.0, 0.0, details={"ceiling": 0.0})
CONDITIONAL = _estimate("epsilon_bound.gdp", 3.0, 3.0, details={"conditional": True, "ceiling": 40.0})
INTERVAL = _estimate("epsilon_star.gaussian", 2.9, 2.416, details={"fit": {"member": {"mean": 0.0}}})
POINT = _estimate("epsilon_star.empirical", 2.3, confidence=None)
REJECTED = _estimate("epsilon_star.gaussian", 5.0, confidence=None, details={"fit": {"rejected": True}})
NOTHING = _estimate("epsilon_bound.one_run", None, confidence=None, subject=Subject.MECHANISM)
INFINITE = _estimate("epsilon_star.empirical", math.inf, confidence=None)


ABOUT = {"subject": Subject.MECHANISM, "adjacency": Adjacency.REPLACE_ONE, "details": {"ceiling": 5.0}}
ONE_RUN = _estimate("epsilon_bound.one_run", 1.3, 1.3, **ABOUT)


def _drawn(result, *estimates, comparisons=()):
    return replace(result, estimates=estimates, comparisons=comparisons)


def _texts(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts]


@pytest.mark.parametrize(
    ("estimate", "kind", "words", "note"),
    [
        # A lower bound and a ceiling are rounded down.
        (*(BOUND, Kind.BOUND, "at least 1.29"), "certified at 95% confidence, ceiling 5.57, delta 1e-5"),
        (ZERO, Kind.BOUND, "0", "no evidence at 95% confidence, ceiling 5.5, delta 1e-5"),
        (FEW, Kind.BOUND, "0", "too few records to certify anything at this delta, delta 1e-5"),
        (
            *(CONDITIONAL, Kind.CONDITIONAL, "at least 3"),
            "at least this at 95% confidence, ceiling 40, delta 1e-5",
        ),
        (INTERVAL, Kind.INTERVAL, "2.9", "at least 2.41 at 95% confidence, if the fit holds, delta 1e-5"),
        (POINT, Kind.POINT, "2.3", "point estimate, delta 1e-5"),
        (REJECTED, Kind.REJECTED, "5", "point estimate, the fit is rejected, delta 1e-5"),
        (NOTHING, Kind.NONE, "not evaluable", ""),
        (INFINITE, Kind.POINT, "∞", "point estimate, delta 1e-5"),
    ],
)
def test_rows(refuted, estimate, kind, words, note):
    """Every kind of number is known for what it is, with its confidence and delta, or as a point estimate."""
    ((subject, (row,)),) = epsilon_rows(_drawn(refuted, estimate)).items()
    assert subject is estimate.subject
    assert (row.kind, row.words, row.note) == (kind, words, note)


def test_two_groups(refuted):
    """Numbers about the model and about the training algorithm stand in two panels that share one scale."""
    figure = figures.figure(_drawn(refuted, BOUND, ONE_RUN, POINT), "epsilons")
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["About this model", "About the training algorithm, replace-one"]
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim()
    assert "at least 1.29" in [text.get_text() for text in figure.axes[0].texts]
    assert "at least 1.3" in [text.get_text() for text in figure.axes[1].texts]


def test_claim_stands_only_where_it_was_judged(refuted):
    """The line of the claim goes through the row that was judged against it, and through no row about the model."""
    claim = Claim("epsilon", 1.0, 1e-5, Adjacency.REPLACE_ONE, "by hand", proven=True)
    beside = (
        Comparison(claim, "epsilon_bound.one_run", Verdict.REFUTED, "it exceeds the claim"),
        Comparison(claim, "epsilon_bound.clopper_pearson", None, "it is about this model"),
    )
    judged = _drawn(refuted, BOUND, ONE_RUN, comparisons=beside)
    figure = figures.figure(judged, "epsilons")
    model, mechanism = ([text.get_text() for text in axes.texts] for axes in figure.axes)
    assert not any("claim" in text for text in model)
    assert "claim 1" in mechanism
    assert "judged against: Claimed epsilon 1 (delta 1e-5, replace-one)" in figures.alt(judged, "epsilons")


def test_ceiling_within_reach_and_beyond(refuted):
    """A ceiling near the values is a mark at its place; one far off is an arrow at the edge, its number in words."""
    near, far = replace(BOUND, details={"ceiling": 2.0}), replace(BOUND, details={"ceiling": 53.0})
    at = {}
    for name, estimate in (("near", near), ("far", far)):
        axes = figures.figure(_drawn(refuted, estimate), "epsilons").axes[0]
        at[name] = {line.get_marker(): line.get_xdata()[0] for line in axes.get_lines()}
        assert axes.get_xlim()[1] < 3
    assert at["near"]["|"] == 2.0
    assert "|" not in at["far"]
    assert at["far"][">"] < 3
    assert "ceiling 53" in " ".join(_texts(figures.figure(_drawn(refuted, far), "epsilons")))


@pytest.mark.parametrize(
    "values",
    [(0.0,), (math.inf,), (0.0, 1e-9), (1e-3, 2e4), (1e300, 1.0), (5e-324,), (-1.0, 2.0), (-math.inf, 1.0)],
)
def test_any_magnitude(refuted, values):
    """Zero, infinite, tiny, huge and negative values are drawn at any mix, each with its number, on finite axes."""
    rows = [
        replace(POINT, name=f"epsilon_star.x{i}", value=value, lower=None) for i, value in enumerate(values)
    ]
    figure = figures.figure(_drawn(refuted, *rows), "epsilons")
    text = svg(figure, alt="a")
    assert ET.fromstring(text).tag.endswith("svg")  # noqa: S314 - made here
    assert all(math.isfinite(end) for end in figure.axes[0].get_xlim())
    assert "mathdefault" not in text
    assert "nan" not in text.lower()
    shown = _texts(figure)
    for row in epsilon_rows(_drawn(refuted, *rows))[Subject.MODEL]:
        assert row.words.replace("∞", "infinity") in shown


def test_kinds_differ_without_colour(refuted):
    """A certified bound is filled and a conditional one is not; estimates, rejected fits and gaps have marks of their own."""
    figure = figures.figure(
        _drawn(refuted, BOUND, CONDITIONAL, INTERVAL, POINT, REJECTED, NOTHING), "epsilons"
    )
    bars = figure.axes[0].patches
    assert [bar.get_facecolor()[3] > 0 for bar in bars] == [True, False]
    marks = {line.get_marker() for axes in figure.axes for line in axes.get_lines()}
    assert {"o", "X", "x", "|"} <= marks
    faces = {line.get_markerfacecolor() for line in figure.axes[0].get_lines() if line.get_marker() == "o"}
    assert len(faces) == 2  # filled with an interval, hollow without
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    # The words of their rows explain the other marks.
    assert legend[:2] == ["Certified bound", "Bound under a condition"]
    assert legend[2:] == ["Estimate with interval", "Point estimate", "Ceiling"]
