"""Severity of a leak: the least advantage behind an AUC, the cut points, the worst group, and how rarely chance alone has one."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import trapezoid
from simulation import at_most, looked_at, rate_of
from test_gates import made, row
from test_policy import groups

import auditor
from auditor.core import Check, InputError, Status
from auditor.core.facts import Severity
from auditor.report import audit_text, finding, view_of
from auditor.report.decision import Bar
from auditor.results.document import ALTERED
from auditor.verdicts import least_advantage, severity
from auditor.verdicts.severities import CUT_POINTS

LEVELS = ("none shown", "slight", "marked", "severe")


def level(result, *, leaks=False):
    """The word for the size of a leak."""
    found = severity(result, leaks=leaks)
    return None if found is None else str(found[0])


# --- The least advantage of an area ---------------------------------------------------------------


def test_no_curve_has_a_smaller_advantage_than_its_area_needs(rng):
    """Of any ROC curve, concave or not, the area is at most 1/2 + J - J^2/2, where J is its largest gap."""
    for _ in range(2000):
        fpr, tpr = (np.r_[0, np.sort(rng.random(8)), 1] for _ in range(2))
        if rng.random() < 0.5:  # the upper hull: sorted by slope, the same steps make a concave curve
            steps = np.c_[np.diff(fpr), np.diff(tpr)]
            steps = steps[np.argsort(-np.arctan2(steps[:, 1], steps[:, 0]))]
            fpr, tpr = (np.r_[0, np.cumsum(steps[:, side])] for side in (0, 1))
        gap, area = np.max(tpr - fpr), trapezoid(tpr, fpr)
        assert area <= 0.5 + gap - gap**2 / 2 + 1e-12
        assert least_advantage(min(area, 1.0)) <= gap + 1e-12


@pytest.mark.parametrize("gap", [0.0, 0.01, 0.05, 0.2, 0.5, 0.9, 1.0])
def test_the_least_advantage_is_attained(gap):
    """The curve min(1, FPR + J) has the gap J and the area from which J is found again."""
    fpr = np.linspace(0, 1, 100_001)
    area = trapezoid(np.minimum(1, fpr + gap), fpr)
    assert least_advantage(min(area, 1.0)) == pytest.approx(gap, abs=1e-4)


@pytest.mark.parametrize("area", [0.0, 0.3, 0.5, -1.0, 1.1, float("nan"), float("inf")])
def test_no_area_up_to_a_half_has_an_advantage(area):
    """Neither does what is no area."""
    assert least_advantage(area) == 0


# --- The words ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "low", "words"),
    [
        ("advantage", 0.0, "none shown"),
        ("advantage", 0.0046, "none shown"),
        ("advantage", 0.049, "none shown"),
        ("advantage", 0.05, "slight"),
        ("advantage", 0.199, "slight"),
        ("advantage", 0.2, "marked"),
        ("advantage", 0.41, "marked"),
        ("advantage", 0.5, "severe"),
        # The least J of an area A is 1 - sqrt(2 (1 - A)): 0.0465, 0.0513, 0.2 and 0.5 here.
        ("auc", 0.5454, "none shown"),
        ("auc", 0.55, "slight"),
        ("auc", 0.6801, "marked"),
        ("auc", 0.8751, "severe"),
    ],
)
def test_severity_is_where_the_lower_limit_lies(name, low, words):
    """Cut points belong to the higher word; a leak that another number shows is slight at least."""
    result = made(row(max(low, 0.6), low, 0.95, name=name))
    assert level(result) == words
    assert level(result, leaks=True) == ("slight" if words == "none shown" else words)


def test_cut_points_can_be_set_and_are_printed():
    """Other cut points give other words, and stand beside the word in what a reader sees."""
    result = made(row(0.6, 0.25, 0.95, name="advantage"))
    for points, words in (
        ((0.3, 0.4, 0.5), "slight"),
        ((0.1, 0.25, 1), "marked"),
        ((0.01, 0.02, 0.03), "severe"),
    ):
        shown = view_of(result.with_policy(severity=points)).severity
        assert str(shown.level) == words
        assert shown.sentence.startswith("by the lower limit: advantage at least 0.25; ")
        assert all(f"{point}" in shown.sentence for point in points)
        assert f"{shown.sign.word} ({shown.sentence})." in audit_text(
            result.with_policy(severity=points), width=400
        )


@pytest.mark.parametrize(
    "points",
    [(0.1, 0.2), (0.1, 0.2, 0.3, 0.4), (0.2, 0.1, 0.5), (0, 0.2, 0.5), (0.1, 0.2, 1.1), (0.1, 0.1, 0.2)],
)
def test_cut_points_that_do_not_increase_are_refused(points):
    """So are others than three, and what lies outside (0, 1]."""
    with pytest.raises(InputError, match="severity must be three advantages that increase"):
        made(row(0.6, 0.5, 0.7)).with_policy(severity=points)


def test_the_worst_group_decides():
    """A group whose lower limit is beyond that of all records sets the word, and is named with its limit."""
    size, low, group = severity(groups((0.1, 0.0, 0.2), (0.7, 0.3, 0.8)), leaks=False)
    shown = Bar(size, low, CUT_POINTS, group)
    assert shown.sentence.startswith("by the lower limit: advantage of group B at least 0.3; ")
    assert [words for _, words, here in shown.steps if here] == ["group B: at least 0.3"]
    whole = view_of(made(row(0.6, 0.25, 0.95, name="advantage"))).severity
    assert [words for _, words, here in whole.steps if here] == ["advantage at least 0.25"]
    alike = [(0.1, 0.0, 0.2)] * 2
    for worst, words in ((0.04, "none shown"), (0.06, "slight"), (0.3, "marked"), (0.6, "severe")):
        assert level(groups(*alike, (0.7, worst, 0.8), *alike)) == words


@pytest.mark.parametrize("name", ["shift", "duplicates", "placebo", "label_shuffle", "persons", ALTERED])
def test_no_number_of_an_invalid_audit_has_a_size(name):
    """Where a validity check failed, or the result was altered, no number measures leakage."""
    result = replace(made(row(0.9, 0.8, 0.95)), checks=(Check(name, Status.FAIL, "by hand"),))
    assert level(result, leaks=True) is None
    assert view_of(result).severity is None
    assert view_of(result).picture is None


def test_an_older_result_agrees_with_itself():
    """A result without limits for all numbers together has one size: the sentence, the word and the picture go by the row."""
    shown = {"looks": 6, "names": ["auc"], "reversed": 0.0}
    for data in ({}, {"shown": shown, "n_member": 500, "n_nonmember": 500}):
        view = view_of(replace(made(row(0.72, 0.684, 0.75)), data={"confidence": 0.95, **data}))
        assert "at least 68 times in 100" in view.finding.sentence
        assert str(view.severity.level) == "marked"  # 1 - sqrt(2 (1 - 0.684)) = 0.205
        assert view.picture.hits == 68


def test_the_words_are_ordered():
    """The four words are those of the issue, from none to severe."""
    assert tuple(map(str, Severity)) == LEVELS


# --- By chance ------------------------------------------------------------------------------------


def test_two_equal_groups_rarely_have_a_size(request):
    """Members and others of one distribution: a leak above none is shown in at most 5% of the audits."""

    def missed(rng):
        result = looked_at(auditor.Losses(*(rng.normal(size=n) for n in rng.choice([100, 150, 220], 2))))
        return severity(result, leaks=finding(result).sign.word == "Leakage found")[0] is not Severity.NONE

    assert at_most(*rate_of(request, "severity", missed, seed=40, runs=200))


def test_equal_groups_rarely_have_a_size(request):
    """With classes or groups the error is that of two families, of all records and of the groups, at most 5% each."""

    def missed(rng):
        group = np.repeat(["a", "b", "c"], 150)
        losses = auditor.Losses(rng.normal(size=450), rng.normal(size=450), group=(group, group))
        size = view_of(auditor.audit(losses, delta=1e-5)).severity
        return size is not None and size.level is not Severity.NONE

    assert at_most(*rate_of(request, "severity of groups", missed, seed=41, runs=30), level=0.1)


def test_a_leak_in_one_group_has_a_size(rng):
    """The same audit finds a leak in one of three groups, so that the simulation above can fail."""
    group = np.repeat(["a", "b", "c"], 150)
    losses = auditor.Losses(
        rng.normal(size=450) - 2 * (group == "b"), rng.normal(size=450), group=(group, group)
    )
    assert view_of(auditor.audit(losses, delta=1e-5)).severity.level in (Severity.MARKED, Severity.SEVERE)
