"""The negative log-odds of the true class, against arbitrary-precision arithmetic."""

import mpmath
import numpy as np
import pytest

from auditor import InputError
from auditor.collectors.base import BatchLosses, Output, concatenated, finite_pair, true_class_loss

mpmath.mp.dps = 60  # the exact values of doubles, with digits to spare


def oracle(row, code, output):
    """Negative log-odds of column `code`, in 60 digits (more where exp(-1e4) is added to 1)."""
    with mpmath.workdps(10_000 if output is Output.LOGITS else 60):
        values = [mpmath.mpf(float(value)) for value in row]
        masses = values if output is Output.PROBABILITIES else [mpmath.exp(value) for value in values]
        others = mpmath.fsum(mass for column, mass in enumerate(masses) if column != code)
        return float(mpmath.log(others) - mpmath.log(masses[code]))


def losses(rows, codes, output, dtype=np.float64):
    """Losses of a few rows."""
    return true_class_loss(np.array(rows, dtype=dtype), codes=np.array(codes), output=output).loss


LOGITS = [
    [1e4, -1e4, 3.0],
    [-1e4, 1e4, 9999.5],
    [0.1, 0.2, 0.3],
    [-7000.0, 20.0, -20.0],
    [700.0, 710.0, 1e-9],
]


@pytest.mark.parametrize("code", [0, 1, 2])
def test_logits_up_to_ten_thousand_match_exact_arithmetic(code):
    """From logits the loss is exact to double precision at any confidence."""
    expected = [oracle(row, code, Output.LOGITS) for row in LOGITS]
    np.testing.assert_allclose(losses(LOGITS, [code] * 5, Output.LOGITS), expected, rtol=1e-14)


@pytest.mark.parametrize("code", [0, 1, 2])
def test_probabilities_down_to_1e_300_match_exact_arithmetic(code):
    """The other classes' probabilities are summed, so a probability near 1 loses nothing."""
    rows = [
        [1e-300, 1.0, 1e-200],
        [1.0, 1e-17, 1e-18],
        [0.2, 0.3, 0.5],
        [5e-324, 0.5, 0.5],
        [1e-9, 1 - 2e-9, 1e-9],
    ]
    expected = [oracle(row, code, Output.PROBABILITIES) for row in rows]
    np.testing.assert_allclose(losses(rows, [code] * 5, Output.PROBABILITIES), expected, rtol=1e-13)


@pytest.mark.parametrize("code", [0, 1, 2])
def test_log_probabilities_match_exact_arithmetic(code):
    """Log-probabilities far below the smallest float still give their loss."""
    rows = np.array([[-1e4, 0.0, -2e4], [0.0, -50.0, -800.0], np.log([0.2, 0.3, 0.5])])
    expected = [oracle(row, code, Output.LOG_PROBABILITIES) for row in rows]
    np.testing.assert_allclose(
        losses(rows, [code] * 3, Output.LOG_PROBABILITIES), expected, rtol=1e-13, atol=1e-15
    )


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


@pytest.mark.parametrize("p", [1e-300, 1e-9, 0.25, 0.5, 0.75, 1 - 1e-9, 1 - 2**-53])
@pytest.mark.parametrize("code", [0, 1])
def test_one_column_of_probabilities_matches_the_binary_formula(p, code):
    """One column is the probability of class 1: (1 - 2y)(log f - log(1 - f))."""
    exact = (1 - 2 * code) * (mpmath.log(mpmath.mpf(p)) - mpmath.log(1 - mpmath.mpf(p)))
    np.testing.assert_allclose(
        losses([p], [code], Output.PROBABILITIES), [float(exact)], rtol=1e-14, atol=1e-16
    )


@pytest.mark.parametrize("log_p", [-1e4, -800.0, -1.0, -0.7, -1e-10, -1e-300])
@pytest.mark.parametrize("code", [0, 1])
def test_one_column_of_log_probabilities_matches_exact_arithmetic(log_p, code):
    """One column of log f near 0 or far below gives log f - log(1 - f)."""
    with mpmath.workdps(5000):
        value = mpmath.mpf(log_p)
        exact = float((1 - 2 * code) * (value - mpmath.log(-mpmath.expm1(value))))
    np.testing.assert_allclose(losses([log_p], [code], Output.LOG_PROBABILITIES), [exact], rtol=1e-13)


def test_a_binary_logit_is_the_loss_up_to_its_sign():
    """A binary logit z gives (1 - 2y) z with no rounding at all."""
    np.testing.assert_array_equal(losses([1e4, 1e4, -3.5], [1, 0, 1], Output.LOGITS), [-1e4, 1e4, 3.5])


def test_one_column_and_two_columns_agree():
    """The binary formula and the multi-class formula are one formula."""
    p, codes = np.array([0.1, 0.6, 0.9]), [1, 0, 1]
    two = losses(np.stack([1 - p, p], axis=1), codes, Output.PROBABILITIES)
    np.testing.assert_allclose(losses(p, codes, Output.PROBABILITIES), two, rtol=1e-14)


def test_wide_outputs_are_computed_in_blocks_without_a_seam():
    """Rows beyond the first block of a wide output get the same loss as they get alone."""
    z = np.random.default_rng(0).normal(size=(2500, 1000))
    codes = np.arange(2500) % 1000
    whole = true_class_loss(z, codes=codes, output=Output.LOGITS).loss
    alone = true_class_loss(z[2490:], codes=codes[2490:], output=Output.LOGITS).loss
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
    result = true_class_loss(np.array(rows), codes=np.array(codes), output=output)
    np.testing.assert_array_equal(result.saturated, [True, True, False])
    np.testing.assert_allclose(result.loss, [-np.inf, np.inf, 0.0], atol=1e-15)


@pytest.mark.parametrize(
    ("dtype", "logit"), [(np.float16, 6.930495), (np.float32, 15.942385), (np.float64, 36.043653)]
)
def test_saturated_records_sit_at_the_logit_of_the_source_resolution(dtype, logit):
    """With nothing further out, a saturated record is placed at logit(eps) of the type that the model returned."""
    part = true_class_loss(
        np.array([[1, 0], [0, 1]], dtype=dtype), codes=np.array([0, 0]), output=Output.PROBABILITIES
    )
    member, nonmember = finite_pair(part, part)
    np.testing.assert_allclose(member, [-logit, logit], rtol=1e-6)
    np.testing.assert_array_equal(member, nonmember)


def test_a_saturated_record_is_never_less_extreme_than_another_of_either_group():
    """Saturation goes level with the most extreme unsaturated loss of both groups on its side."""
    member = BatchLosses(
        loss=np.array([-np.inf, 5.0, np.inf]),
        saturated=np.isinf(np.array([-np.inf, 5.0, np.inf])),
        eps=2.0**-23,
    )
    nonmember = BatchLosses(
        loss=np.array([-200.0, 90.0]), saturated=np.isinf(np.array([-200.0, 90.0])), eps=2.0**-23
    )
    first, second = finite_pair(member, nonmember)
    np.testing.assert_array_equal(first, [-200.0, 5.0, 90.0])
    np.testing.assert_array_equal(second, nonmember.loss)


def test_unsaturated_losses_pass_through_settling_unchanged():
    """Finite losses beyond logit(eps) keep their value."""
    part = BatchLosses(
        loss=np.array([-1e4, 0.0, 1e4]), saturated=np.isinf(np.array([-1e4, 0.0, 1e4])), eps=2.0**-52
    )
    np.testing.assert_array_equal(finite_pair(part, part)[0], part.loss)


def test_hard_labels_are_noticed_only_when_every_entry_is_0_or_1():
    """A single soft row means that the outputs are not hard labels."""
    hard = np.array([[1.0, 0.0], [0.0, 1.0]])
    kwargs = {"codes": np.array([0, 0]), "output": Output.PROBABILITIES}
    assert true_class_loss(hard, **kwargs).hard
    assert not true_class_loss(np.array([[1.0, 0.0], [0.4, 0.6]]), **kwargs).hard
    assert not concatenated([true_class_loss(hard, **kwargs), true_class_loss(hard * 0 + 0.5, **kwargs)]).hard


@pytest.mark.parametrize(
    ("rows", "output", "sentence"),
    [
        (
            [[0.5, 0.5], [np.nan, 1.0]],
            Output.PROBABILITIES,
            r"numbers, got nan \(first at row 11, counting from 0\)",
        ),
        (
            [[0.5, 0.5], [1.5, -0.5]],
            Output.PROBABILITIES,
            r"\[0, 1\], got 1.5 \(first at row 11.*Output.LOGITS",
        ),
        (
            [[0.5, 0.5], [0.5, 0.6]],
            Output.PROBABILITIES,
            r"sum to 1, got a sum of 1.1 \(first at row 11.*LOGITS",
        ),
        ([[-0.7, -0.7], [-1.0, -2.0]], Output.PROBABILITIES, r"pass output=Output.LOG_PROBABILITIES"),
        ([[-0.693, -0.693], [0.5, -2.0]], Output.LOG_PROBABILITIES, r"0 or less, got 0.5 \(first at row 11"),
        (
            [[-0.693, -0.693], [-5.0, -5.0]],
            Output.LOG_PROBABILITIES,
            r"exponentials sum to 1.*\(first at row 11",
        ),
        ([[0.0, 0.0], [np.inf, np.inf]], Output.LOGITS, r"infinite values for both \(first at row 11"),
        ([1.0, 2.0], Output.PROBABILITIES, r"look like predicted labels"),
    ],
)
def test_outputs_that_are_not_what_they_are_said_to_be_are_refused(rows, output, sentence):
    """The sentence names the group, the first bad row counted over all batches, and the fix."""
    with pytest.raises(InputError, match=f"member outputs must .*{sentence}"):
        true_class_loss(np.array(rows), codes=np.array([0, 0]), output=output, place="member", first_row=10)


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ([2], r"\(first at row 12, counting from 0\); mend"),
        ([1, 3], r"\(first at row 11, counting from 0; also 13\); mend"),
        (
            range(20),
            r"\(first at row 10, counting from 0; also 11, 12, 13, 14, 15, 16, 17, 18, 19, \.\.\.\); mend",
        ),
    ],
)
def test_the_records_without_a_number_are_named(bad, named):
    """NaN outputs are refused with the rows of the records that have them, up to ten."""
    p = np.full((20, 2), 0.5)
    p[list(bad), 1] = np.nan
    with pytest.raises(InputError, match=rf"^member outputs must be numbers, got nan {named}"):
        true_class_loss(
            p, codes=np.zeros(20, dtype=int), output=Output.PROBABILITIES, place="member", first_row=10
        )
