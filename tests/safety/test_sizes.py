"""A result with very long curves makes a page of ordinary size."""

from dataclasses import replace

import numpy as np
import pytest

import auditor
from auditor.curves import NamedCurve
from auditor.report.figures import canvas

POINTS = 2_000  # the most that a reader takes
NAMES = ("empirical", "band_lower", "band_upper")


@pytest.fixture(scope="module")
def audited():
    """A small audit."""
    rng = np.random.default_rng(1)
    return auditor.audit(auditor.Losses(member=rng.exponential(0.4, 200), nonmember=rng.exponential(1, 200)))


@pytest.fixture(scope="module")
def long(audited):
    """The same with three curves of very many corners."""
    fpr = np.repeat(np.linspace(0, 1, POINTS // 2), 2)
    steps = {
        name: np.append(fpr[1:], 1.0) ** power for name, power in zip(NAMES, (0.5, 0.6, 0.4), strict=True)
    }
    curves = (NamedCurve(name, name, tuple(fpr), tuple(tpr)) for name, tpr in steps.items())
    return replace(audited, curves=tuple(curves))


def test_page_size(audited, long):
    """The page of long curves is no larger than twice that of ordinary ones."""
    assert len(long.to_html()) < 2 * len(audited.to_html())


def test_an_ordinary_curve_keeps_every_corner():
    """A staircase of an ordinary audit keeps all of its corners on logarithmic axes."""
    fpr = np.repeat(np.linspace(0.01, 1, 100), 2)
    tpr = np.append(fpr[1:], 1.0) ** 0.5
    x, y = canvas.logarithmic(NamedCurve("empirical", "a", tuple(fpr), tuple(tpr)), least=1e-3)
    assert set(zip(fpr, tpr, strict=True)) <= set(zip(x, y, strict=True))
