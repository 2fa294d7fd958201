"""Numbers and foreign text."""

import math
import unicodedata

import pytest

from auditor.core import numbers

DOWN, UP = {"toward": "down"}, {"toward": "up"}


@pytest.mark.parametrize(
    ("told", "x", "how", "text"),
    [
        # Three significant digits, an exponent for a tiny number, a dash for a missing one.
        *(
            (numbers.number, x, {}, text)
            for x, text in ((4.377178, "4.38"), (3.0, "3"), (1.1, "1.1"), (0.0, "0"))
        ),
        *(
            (numbers.number, x, {}, text)
            for x, text in ((2.7999, "2.80"), (1e-5, "1e-5"), (2.6e-5, "2.6e-5"))
        ),
        *(
            (numbers.number, x, {}, text)
            for x, text in ((123456.0, "1.23e5"), (-0.5, "-0.5"), (math.inf, "∞"))
        ),
        *(
            (told, x, {}, "—")
            for told, x in ((numbers.number, math.nan), (numbers.number, None), (numbers.percent, None))
        ),
        # No digit overstates what was certified, and a decimal that is exact is not pushed to a neighbour.
        (numbers.number, 1.2999, DOWN, "1.29"),
        (numbers.number, 1.2901, UP, "1.30"),
        (numbers.number, 0.29, DOWN, "0.29"),
        (numbers.percent, 0.12399, DOWN, "12.3%"),
        (numbers.percent, 0.29, DOWN, "29%"),
        # Above 99.9% three digits of what is left to 100%.
        *(
            (numbers.percent, x, how, text)
            for x, how, text in (
                (0.99999, DOWN, "99.999%"),
                (0.99999, {}, "99.999%"),
                (0.9994, DOWN, "99.94%"),
                (0.999, DOWN, "99.9%"),
                (0.9988, {}, "99.9%"),
                (1 - 0.05 / 60, DOWN, "99.9166%"),  # an error of .0833...%
                (1 - 0.05 / 60, UP, "99.9167%"),
                (1 - 1e-9, DOWN, "99.9999999%"),
            )
        ),
        (numbers.unit, 0.70111, UP, "0.702"),
        # What is below 1 never reads 1.
        *((numbers.percent, x, {}, text) for x, text in ((0.0, "0%"), (0.1, "10%"), (0.0012, "0.12%"))),
        *((numbers.percent, x, {}, text) for x, text in ((6.3e-6, "0.00063%"), (0.99996, "99.996%"))),
        *((numbers.unit, x, {}, text) for x, text in ((0.99996, "0.99996"), (1.0, "1"))),
        # A claim reads as it was typed, and a derived one like any other number; other words are left alone.
        *((numbers.as_stated, x, {}, text) for x, text in ((2.01352, "2.01352"), (1.5153987, "1.52"))),
        (numbers.tidy, "1e-05 and 2.5e+16", {}, "1e-5 and 2.5e16"),
        (numbers.tidy, "sha 3e05a, node-e-05, 1e-5, 12e0", {}, "sha 3e05a, node-e-05, 1e-5, 12e0"),
        (numbers.clean, "naïve مرحبا 模型\tx\ny", {}, "naïve مرحبا 模型\tx\ny"),
    ],
)
def test_numbers(told, x, how, text):
    """Numbers, rates, areas and claims read in one way each, rounded towards what was certified."""
    assert told(x, **how) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (0.1, "1 false alarm in 10"),
        (0.001, "1 false alarm in 1,000"),
        (1e-5, "1 false alarm in 100,000"),
        (0.5, "1 false alarm in 2"),
        (1 / 3, "1 false alarm in 3"),
        (0.0015, "1 false alarm in 667"),
        (0.4, "a false alarm rate of 40 out of 100"),
        (0.03, "a false alarm rate of 3 out of 100"),
        (0.99, "a false alarm rate of 99 out of 100"),
        (0.375, "a false alarm rate of 37.5%"),
        (0.99999, "a false alarm rate of 99.999%"),
        (0.0, "a false alarm rate of 0%"),
        (1.0, "a false alarm rate of 100%"),
    ],
)
def test_odds(rate, text):
    """One in so many only where that is the rate (within 0.2% of it); otherwise whole numbers out of 100, or a percentage."""
    assert numbers.odds(rate) == text


def test_apart_keeps_the_order():
    """A claim that was typed with more digits never looks larger than a bound that exceeds it."""
    for claimed, bound in ((2.0136, 2.0138), (2.013611111111, 2.0138), (3.0, 3.0 + 1e-9), (1.0, math.inf)):
        low, high = numbers.apart(claimed, bound)
        assert float(low) < float(high.replace("∞", "inf"))


def test_clean_shows_every_format_character():
    """Of Unicode's controls, surrogates and format characters only the tab, the line feed and those with a shape stay."""
    kinds = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    signs = [sign for sign in map(chr, range(0x110000)) if unicodedata.category(sign) in kinds]
    stay = {sign for sign in signs if numbers.clean(f"a{sign}b") == f"a{sign}b"}
    # Arabic and Syriac signs that stand around numbers and words, and Kaithi's: they are drawn.
    drawn = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
    assert stay == {"\t", "\n", *drawn}


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", True),  # Persian: two letters that would join
        ("\u0915\u094d\u200d\u0937", True),  # Hindi: a half letter
        ("\u0915\u094d\u200c\u0937", True),  # Hindi: the virama is shown
        ("\u0d28\u0d4d\u200d", True),  # Malayalam: a letter without its vowel
        ("\u062f\u200c\u0628", False),  # dal joins no letter after it
        ("\u062e\u200c!", False),
        ("\u0915\u094d\u200c", False),  # at the end nothing changes
        ("a\u200cb", False),
        ("a\u200db", False),
        ("\u0915\u094d\u200d\u200d\u0937", False),
        ("\U0001f469\u200d\U0001f4bb", False),
    ],
)
def test_joiners(text, stays):
    """A joiner stays where its script needs it and it is seen, and is shown by its number elsewhere."""
    assert (numbers.clean(text) == text) is stays
