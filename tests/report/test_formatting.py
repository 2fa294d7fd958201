"""Numbers and foreign text."""

import math
from dataclasses import replace

import pytest

from auditor.report import formatting


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (4.377178, "4.38"),
        (3.0, "3"),
        (1.1, "1.1"),
        (2.7999, "2.80"),
        (0.0, "0"),
        (1e-5, "1e-5"),
        (2.6e-5, "2.6e-5"),
        (123456.0, "1.23e5"),
        (-0.5, "-0.5"),
        (math.inf, "∞"),
        (math.nan, "—"),
        (None, "—"),
    ],
)
def test_number(x, text):
    """An epsilon has three significant digits, a tiny number an exponent, and a missing one a dash."""
    assert formatting.number(x) == text


def test_directed_rounding():
    """A lower bound is rounded down and an upper bound up, so that no digit overstates what was certified."""
    assert formatting.number(1.2999, toward="down") == "1.29"
    assert formatting.number(1.2901, toward="up") == "1.30"
    assert formatting.percent(0.12399, toward="down") == "12.3%"
    assert formatting.unit(0.70111, toward="up") == "0.702"


def test_exact_decimals_stay():
    """A decimal that is exact is not pushed to a neighbour by its binary form."""
    assert formatting.number(0.29, toward="down") == "0.29"
    assert formatting.percent(0.29, toward="down") == "29%"


@pytest.mark.parametrize(
    ("x", "text"),
    [(0.0, "0%"), (0.1, "10%"), (0.0012, "0.12%"), (6.3e-6, "0.00063%"), (0.99996, "99.996%"), (None, "—")],
)
def test_percent(x, text):
    """A rate is a percentage, and one below 1 never reads 100%."""
    assert formatting.percent(x) == text


def test_unit_below_one():
    """An AUC below 1 never reads 1."""
    assert formatting.unit(0.99996) == "0.99996"
    assert formatting.unit(1.0) == "1"


def test_apart():
    """Two different numbers never look equal side by side."""
    low, high = formatting.apart(3.0, 3.0004)
    assert low != high


def test_interval(overfitted):
    """An interval says which of its ends exist."""
    auc = overfitted.estimate("auc")
    assert formatting.interval(auc) == "0.684 to 0.717"
    assert formatting.interval(replace(auc, upper=None)) == "at least 0.684"
    assert formatting.interval(replace(auc, lower=None)) == "at most 0.717"
    assert formatting.interval(replace(auc, lower=None, upper=None)) == "—"


def test_apart_keeps_the_order():
    """A claim that was typed with more digits never looks larger than a bound that exceeds it."""
    for claimed, bound in ((2.0136, 2.0138), (2.013611111111, 2.0138), (3.0, 3.0 + 1e-9), (1.0, math.inf)):
        low, high = formatting.apart(claimed, bound)
        assert float(low) < float(high.replace("∞", "inf"))


def test_given():
    """A claim reads as it was typed, and a derived one like any other number."""
    assert formatting.given(2.01352) == "2.01352"
    assert formatting.given(1.5153987) == "1.52"


def test_tidy_leaves_words_alone():
    """Only a number with a signed exponent is spelled anew, not a hash or a name."""
    assert formatting.tidy("1e-05 and 2.5e+16") == "1e-5 and 2.5e16"
    assert formatting.tidy("sha 3e05a, node-e-05, 1e-5, 12e0") == "sha 3e05a, node-e-05, 1e-5, 12e0"


@pytest.mark.parametrize("bad", ["\x00", "\x1b", "\u202e", "\u2066", "\ud800", "\ufeff", "\x7f"])
def test_clean(bad):
    """A character that could hide or reorder text is shown by its number."""
    assert formatting.clean(f"a{bad}b") == f"a⟨U+{ord(bad):04X}⟩b"


def test_clean_keeps_letters():
    """Letters of any script, and ordinary blanks, stay as they are."""
    assert formatting.clean("naïve مرحبا 模型\tx\ny") == "naïve مرحبا 模型\tx\ny"
