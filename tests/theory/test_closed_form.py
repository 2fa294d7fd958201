"""Bayes security in closed form against its reference values, mpmath and the exact total variation."""

import math

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

from auditor.choices import DPSGD, Adjacency
from auditor.theory import bayes_security_closed_form, bayes_security_moment_matched

FORMS = (bayes_security_closed_form, bayes_security_moment_matched)

# statistics.md, section 7: (p, T, s), closed beta*, moment-matched beta*, exact replace-one TV.
REFERENCES = [
    ((0.001, 10_000, 1.0), 0.92034433, 0.91367309, 0.0861804),
    ((0.01, 1_000, 1.0), 0.75182963, 0.73173984, 0.2643522),
    ((0.001, 50_000, 1.0), 0.8230633, 0.8084666, 0.1912326),
]


def exact_total_variation(rate, steps, noise):
    """Replace-one TV of composed steps, 2 P(L > 0) - 1, by Gil-Pelaez inversion on the grid."""
    x, weight = np.polynomial.legendre.leggauss(300)
    reach = 1 + 12 * noise
    x, weight = x * reach, weight * reach
    bell = np.exp(-(x**2) / (2 * noise**2)) / (noise * math.sqrt(2 * math.pi))
    up = 1 - rate + rate * np.exp((2 * x - 1) / (2 * noise**2))
    down = 1 - rate + rate * np.exp((-2 * x - 1) / (2 * noise**2))
    mass, loss = weight * bell * up, np.log(up) - np.log(down)
    deviation = math.sqrt(steps * float(mass @ loss**2))
    t, t_weight = np.polynomial.legendre.leggauss(1500 if steps >= 100 else 3000)
    end = (12 if steps >= 100 else 100) / deviation
    t, t_weight = (t + 1) * end / 2, t_weight * end / 2
    angle = np.outer(t, loss)
    step = (-2 * np.sin(angle / 2) ** 2 + 1j * np.sin(angle)) @ mass
    # The logarithm keeps the digits of many small steps; a few large ones may vanish exactly.
    characteristic = np.exp(steps * np.log1p(step)) if steps >= 100 else (1 + step) ** steps
    return float(2 / math.pi * (t_weight @ (characteristic.imag / t)))


@pytest.mark.parametrize(("setting", "closed", "matched", "exact"), REFERENCES)
def test_reference_values(setting, closed, matched, exact):
    """Both forms give the reference values, and the oracle gives the exact total variation beside them."""
    rate, steps, noise = setting
    training = DPSGD(noise, rate, steps)
    assert bayes_security_closed_form(training).value == pytest.approx(closed, abs=5e-8)
    assert bayes_security_moment_matched(training).value == pytest.approx(matched, abs=5e-8)
    assert exact_total_variation(rate, steps, noise) == pytest.approx(exact, abs=5e-6)


def test_closed_form_is_on_the_unsafe_side():
    """At p = 0.001, T = 50,000, s = 1 the closed form exceeds the exact Bayes security (erratum, Corollary 7)."""
    assert bayes_security_closed_form(DPSGD(1.0, 0.001, 50_000)).value > 1 - 0.1912326 + 0.01


@pytest.mark.parametrize("noise", [0.5, 0.8, 1.0, 2.0, 5.0])
@pytest.mark.parametrize(("rate", "steps"), [(0.001, 20_000), (0.01, 300), (0.1, 10), (0.5, 2)])
def test_moment_matched_is_on_the_safe_side(noise, rate, steps):
    """The moment-matched Bayes security stays at or below the exact one in settings far apart."""
    exact = 1 - exact_total_variation(rate, steps, noise)
    assert bayes_security_moment_matched(DPSGD(noise, rate, steps)).value <= exact + 1e-6


@pytest.mark.parametrize("noise", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("rate", [0.01, 0.3, 1.0])
def test_moment_matched_is_safe_for_one_step(noise, rate):
    """For one step, whose total variation is p (2 Phi(1/s) - 1) exactly, the moment-matched form is safe."""
    exact = 1 - rate * (2 * ndtr(1 / noise) - 1)
    assert bayes_security_moment_matched(DPSGD(noise, rate, 1)).value <= exact


def test_closed_form_is_exact_without_sampling():
    """At rate 1 the closed form is the total variation of two Gaussians 2 sqrt(T) / s apart."""
    expected = 2 - 2 * ndtr(math.sqrt(9) / 4.0)
    assert bayes_security_closed_form(DPSGD(4.0, 1.0, 9)).value == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize(("noise", "rate", "steps"), [(1.0, 0.5, 1000), (0.9, 0.02, 200_000), (7.0, 1e-7, 3)])
def test_tiny_and_near_one_values_keep_their_digits(noise, rate, steps):
    """Both forms agree with 50-digit arithmetic, also where Bayes security is 1e-55 or 1 - 1e-8."""
    with mpmath.workdps(50):
        s, p, steps_exact = mpmath.mpf(noise), mpmath.mpf(rate), mpmath.mpf(steps)
        closed = mpmath.erfc(p * mpmath.sqrt(steps_exact) / (mpmath.sqrt(2) * s))
        matched = mpmath.erfc(p * mpmath.sqrt(steps_exact * mpmath.sinh(1 / s**2)) / mpmath.sqrt(2))
    training = DPSGD(noise, rate, steps)
    assert bayes_security_closed_form(training).value == pytest.approx(float(closed), rel=1e-11)
    assert bayes_security_moment_matched(training).value == pytest.approx(float(matched), rel=1e-11)


@pytest.mark.parametrize("noise", [0.3, 1.0, 4.0, 50.0])
@pytest.mark.parametrize("rate", [1e-4, 0.01, 0.5])
def test_moment_matched_is_never_above_the_closed_form(noise, rate):
    """Because sinh(u) >= u, matching the second moment can only lower the value."""
    training = DPSGD(noise, rate, 500)
    assert bayes_security_moment_matched(training).value <= bayes_security_closed_form(training).value


@pytest.mark.parametrize("form", FORMS)
def test_monotone_in_every_parameter(form):
    """More noise protects more; a larger rate or more steps protect less."""

    def value(noise=1.0, rate=0.01, steps=100):
        return form(DPSGD(noise, rate, steps)).value

    noise = [value(noise=s) for s in (0.3, 0.5, 1.0, 3.0, 100.0)]
    rate = [value(rate=p) for p in (1e-4, 0.01, 0.3, 1.0)]
    steps = [value(steps=t) for t in (1, 10, 1000, 100_000)]
    assert noise == sorted(noise)
    assert rate == sorted(rate, reverse=True)
    assert steps == sorted(steps, reverse=True)


@pytest.mark.parametrize("form", FORMS)
def test_extremes_saturate(form):
    """No overflow: almost no noise gives exactly 0, huge noise exactly 1."""
    assert form(DPSGD(1e-200, 0.01, 100)).value == 0.0
    assert form(DPSGD(1e-3, 0.5, 10**12)).value == 0.0
    assert form(DPSGD(1e200, 0.01, 100)).value == 1.0


def test_sinh_overflow_is_not_mistaken_for_no_protection():
    """At noise 0.03, where sinh(1/s^2) is beyond a double, a tiny rate still leaves protection."""
    value = bayes_security_moment_matched(DPSGD(0.03, 1e-250, 1)).value
    with mpmath.workdps(60):
        s, p = mpmath.mpf(0.03), mpmath.mpf(1e-250)
        expected = mpmath.erfc(p * mpmath.sqrt(mpmath.sinh(1 / s**2)) / mpmath.sqrt(2))
    assert value == pytest.approx(float(expected), rel=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_claim_says_what_it_is(form):
    """Each form is a replace-one Bayes security, without a delta, marked as not proven and with a caveat."""
    claim = form(DPSGD(1.0, 0.01, 100))
    assert (claim.metric, claim.adjacency, claim.delta) == ("bayes_security", Adjacency.REPLACE_ONE, None)
    assert not claim.proven
    assert "approximation" in claim.note.lower()


def test_closed_form_cites_its_erratum():
    """A reader of the paper learns from the note that Corollary 7 is no bound, and on which side it errs."""
    note = bayes_security_closed_form(DPSGD(1.0, 0.01, 100)).note
    assert "erratum" in note
    assert "unsafe" in note
