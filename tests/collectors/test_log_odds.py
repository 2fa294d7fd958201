"""The negative log-odds of the true class, against arbitrary-precision arithmetic."""

import mpmath
import numpy as np
import pytest
from collectors.common import refused

from auditor.collectors.base import BatchLosses, Output, Records, finite_pair, true_class_loss

mpmath.mp.dps = 60  # the exact values of doubles, with digits to spare


def oracle(row, code, output):
    """Negative log-odds of column `code`, in 60 digits (more where exp(-1e4) is added to 1)."""
    with mpmath.workdps(10_000 if output is Output.LOGITS else 60):
        values = [mpmath.mpf(float(value)) for value in row]
        masses = values if output is Output.PROBABILITIES else [mpmath.exp(value) for value in values]
        others = mpmath.fsum(mass for column, mass in enumerate(masses) if column != code)
        return float(mpmath.log(others) - mpmath.log(masses[code]))


def scored(rows, codes, output):
    """The losses of a few rows of outputs, of records that begin at row 10."""
    rows, codes = np.asarray(rows), np.asarray(codes)
    return true_class_loss(rows, codes=codes, output=output, records=Records("member", [], codes, 10))


def losses(rows, codes, output, dtype=np.float64):
    """Losses of a few rows."""
    return scored(np.array(rows, dtype=dtype), codes, output).loss


LOGITS = [
    [1e4, -1e4, 3.0],
    [-1e4, 1e4, 9999.5],
    [0.1, 0.2, 0.3],
    [-7000.0, 20.0, -20.0],
    [700.0, 710.0, 1e-9],
]


PROBABILITIES = [
    [1e-300, 1.0, 1e-200],
    [1.0, 1e-17, 1e-18],
    [0.2, 0.3, 0.5],
    [5e-324, 0.5, 0.5],
    [1e-9, 1 - 2e-9, 1e-9],
]
LOG_PROBABILITIES = [[-1e4, 0.0, -2e4], [0.0, -50.0, -800.0], np.log([0.2, 0.3, 0.5])]


@pytest.mark.parametrize("code", [0, 1, 2])
@pytest.mark.parametrize(
    ("rows", "output", "room"),
    [
        (LOGITS, Output.LOGITS, 1e-14),
        (PROBABILITIES, Output.PROBABILITIES, 1e-13),
        (LOG_PROBABILITIES, Output.LOG_PROBABILITIES, 1e-13),
    ],
)
def test_the_loss_is_that_of_exact_arithmetic(rows, output, room, code):
    """At any confidence: the other classes' probabilities are summed, so a probability near 1 loses nothing."""
    expected = [oracle(row, code, output) for row in rows]
    found = losses(rows, [code] * len(rows), output)
    np.testing.assert_allclose(found, expected, rtol=room, atol=1e-15 if rows is LOG_PROBABILITIES else 0)


@pytest.mark.parametrize("code", [0, 1])
def test_float32_softmax_rows_are_computed_in_float64(code):
    """Float32 rows that sum to 1 only within rounding give the exact log-ratio of the numbers returned."""
    z = np.random.default_rng(0).normal(scale=8, size=(200, 5)).astype(np.float32)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    expected = [oracle(row, code, Output.PROBABILITIES) for row in p]
    np.testing.assert_allclose(
        losses(p, [code] * 200, Output.PROBABILITIES, np.float32), expected, rtol=1e-12
    )


@pytest.mark.parametrize(
    ("value", "output"),
    [(p, Output.PROBABILITIES) for p in (1e-300, 1e-9, 0.25, 0.5, 0.75, 1 - 1e-9, 1 - 2**-53)]
    + [(log_p, Output.LOG_PROBABILITIES) for log_p in (-1e4, -800.0, -1.0, -0.7, -1e-10, -1e-300)],
)
@pytest.mark.parametrize("code", [0, 1])
def test_one_column_matches_the_binary_formula(value, output, code):
    """One column is the probability f of class 1, or its logarithm: (1 - 2y)(log f - log(1 - f))."""
    with mpmath.workdps(5000):
        exact = mpmath.mpf(value)
        logit = mpmath.log(exact) - mpmath.log(1 - exact)
        if output is Output.LOG_PROBABILITIES:
            logit = exact - mpmath.log(-mpmath.expm1(exact))
        expected = float((1 - 2 * code) * logit)
    np.testing.assert_allclose(losses([value], [code], output), [expected], rtol=1e-13, atol=1e-16)


def test_a_binary_logit_is_the_loss_up_to_its_sign():
    """A binary logit z gives (1 - 2y) z with no rounding at all."""
    np.testing.assert_array_equal(losses([1e4, 1e4, -3.5], [1, 0, 1], Output.LOGITS), [-1e4, 1e4, 3.5])


def test_wide_outputs_are_computed_in_blocks_without_a_seam():
    """Rows beyond the first block of a wide output get the same loss as they get alone."""
    z = np.random.default_rng(0).normal(size=(2500, 1000))
    codes = np.arange(2500) % 1000
    whole = losses(z, codes, Output.LOGITS)
    alone = losses(z[2490:], codes[2490:], Output.LOGITS)
    np.testing.assert_array_equal(whole[2490:], alone)


@pytest.mark.parametrize(
    ("rows", "codes", "output"),
    [
        ([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]], [0, 0, 0], Output.PROBABILITIES),
        ([1.0, 0.0, 0.5], [1, 1, 1], Output.PROBABILITIES),
        ([[0.0, -np.inf], [-np.inf, 0.0], [np.log(0.5)] * 2], [0, 0, 0], Output.LOG_PROBABILITIES),
        ([0.0, -np.inf, np.log(0.5)], [1, 1, 1], Output.LOG_PROBABILITIES),
        ([[0.0, -np.inf], [-np.inf, 0.0], [1.0, 1.0]], [0, 0, 0], Output.LOGITS),
        ([np.inf, -np.inf, 0.0], [1, 1, 1], Output.LOGITS),
    ],
)
def test_exact_zero_and_one_are_saturated(rows, codes, output):
    """A probability of exactly 1 is saturated low, exactly 0 saturated high, in every kind of output."""
    result = scored(rows, codes, output)
    np.testing.assert_array_equal(result.saturated, [True, True, False])
    np.testing.assert_allclose(result.loss, [-np.inf, np.inf, 0.0], atol=1e-15)


@pytest.mark.parametrize(
    ("dtype", "logit"), [(np.float16, 6.930495), (np.float32, 15.942385), (np.float64, 36.043653)]
)
def test_saturated_records_sit_at_the_logit_of_the_source_resolution(dtype, logit):
    """With nothing further out, a saturated record is placed at logit(eps) of the type that the model returned."""
    part = scored(np.array([[1, 0], [0, 1]], dtype=dtype), [0, 0], Output.PROBABILITIES)
    member, nonmember = finite_pair(part, part)
    np.testing.assert_allclose(member, [-logit, logit], rtol=1e-6)
    np.testing.assert_array_equal(member, nonmember)


def test_a_saturated_record_is_strictly_more_extreme_than_any_other_of_either_group():
    """Saturation goes beyond the most extreme unsaturated loss of both groups, which keep their value."""

    def part(*loss):
        return BatchLosses(loss=np.array(loss), saturated=np.isinf(loss), eps=2.0**-23)

    member, nonmember = finite_pair(part(-np.inf, 5.0, np.inf), part(-200.0, 90.0))
    np.testing.assert_allclose(member, [-203.0, 5.0, 91.9])
    np.testing.assert_array_equal(nonmember, [-200.0, 90.0])
    for largest in (90.0, 1e9, 1e300):
        member, nonmember = finite_pair(part(5.0, np.inf), part(largest, 1.0))
        assert np.isfinite(member).all()
        assert member[1] > nonmember[0]


@pytest.mark.parametrize(
    ("row", "output", "words"),
    [
        ([np.nan, 1.0], Output.PROBABILITIES, r"numbers, got nan \(first at row 11, counting from 0\); fix"),
        ([1.5, -0.5], Output.PROBABILITIES, r"\[0, 1\], got 1.5 \(first at row 11.*Output.LOGITS"),
        ([0.5, 0.7], Output.PROBABILITIES, r"sum to 1 in each row, got 1.2 \(first at row 11.*LOGITS"),
        ([0.5, -2.0], Output.LOG_PROBABILITIES, r"0 or less, got 0.5 \(first at row 11"),
        ([-5.0, -5.0], Output.LOG_PROBABILITIES, r"sum to 1 .*\(first at row 11"),
        ([np.inf, np.inf], Output.LOGITS, r"separate the true class .*\(first at row 11.*infinite for both"),
    ],
)
def test_outputs_that_are_not_what_they_are_said_to_be_are_refused(row, output, words):
    """The sentence names the group, the first bad row counted over all batches, and the fix."""
    good = [0.5, 0.5] if output is Output.PROBABILITIES else np.log([0.5, 0.5])
    with refused(f"member outputs must .*{words}"):
        scored([good, row, row], [0, 0, 0], output)
