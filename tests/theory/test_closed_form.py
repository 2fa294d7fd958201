"""Bayes security in closed form against its reference values, mpmath and the exact total variation."""

import math

import mpmath
import pytest
from oracles import composed_delta
from scipy.special import ndtr

from auditor.core import DPSGD, FixedSizeSampling, PoissonSampling
from auditor.theory import (
    bayes_security_closed_form,
    bayes_security_moment_matched,
)

POISSON, FIXED = PoissonSampling(), FixedSizeSampling()
FORMS = (bayes_security_closed_form, bayes_security_moment_matched)

# statistics.md, section 7: (p, T, s), closed beta*, moment-matched beta*, exact replace-one TV.
REFERENCES = [
    ((0.001, 10_000, 1.0), 0.92034433, 0.91367309, 0.0861804),
    ((0.01, 1_000, 1.0), 0.75182963, 0.73173984, 0.2643522),
    ((0.001, 50_000, 1.0), 0.8230633, 0.8084666, 0.1912326),
]


def total_variation_of_phases(phases, *, fixed=False):
    """Replace-one TV of phases (rate, steps, noise) one after the other."""
    low, high = (0.0, 2.0) if fixed else (-1.0, 1.0)
    kinds = ((noise, rate, low, high, steps) for rate, steps, noise in phases)
    return composed_delta(*kinds, mirrored=fixed, cells=2**18)


@pytest.mark.parametrize(("setting", "closed", "matched", "exact"), REFERENCES)
def test_reference_values(setting, closed, matched, exact):
    """Both forms give the reference values, and the oracle gives the exact total variation beside them."""
    rate, steps, noise = setting
    training = DPSGD(noise, rate, steps)
    assert bayes_security_closed_form(training).value == pytest.approx(closed, abs=5e-8)
    assert bayes_security_moment_matched(training).value == pytest.approx(matched, abs=5e-8)
    assert total_variation_of_phases([(rate, steps, noise)]) == pytest.approx(exact, abs=5e-6)


@pytest.mark.parametrize("noise", [0.5, 0.8, 1.0, 2.0, 5.0])
@pytest.mark.parametrize(("rate", "steps"), [(0.001, 20_000), (0.01, 300), (0.1, 10), (0.5, 2)])
def test_moment_matched_is_on_the_safe_side(noise, rate, steps):
    """The moment-matched Bayes security stays at or below the exact one in settings far apart."""
    exact = 1 - total_variation_of_phases([(rate, steps, noise)])
    assert bayes_security_moment_matched(DPSGD(noise, rate, steps)).value <= exact + 1e-6


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


@pytest.mark.parametrize("form", FORMS)
def test_extremes_saturate(form):
    """No overflow: almost no noise gives exactly 0, huge noise exactly 1."""
    assert form(DPSGD(1e-200, 0.01, 100)).value == 0.0
    assert form(DPSGD(1e-3, 0.5, 10**12)).value == 0.0
    assert form(DPSGD(1e200, 0.01, 100)).value == 1.0


# Phases of different noise and rate, to be run one after the other.
MIXED = [
    [(0.001, 20_000, 0.8), (0.01, 500, 2.0)],
    [(0.05, 100, 3.0), (0.002, 3000, 0.6)],
    [(0.3, 100, 5.0), (0.3, 100, 1.5)],
    [(0.0123, 227, 0.799), (0.00658, 150, 1.42), (0.1, 200, 4.0)],
]


def phased(phases, sampling=POISSON):
    """The training description of phases (rate, steps, noise)."""
    noise = [noise for _, steps, noise in phases for _ in range(steps)]
    rate = [rate for rate, steps, _ in phases for _ in range(steps)]
    return DPSGD(noise, rate, sampling=sampling)


@pytest.mark.parametrize("phases", MIXED)
def test_vectors_add_up(phases):
    """With vectors the forms are 1 - erf(sqrt(sum p^2 k(s) / 2)), whatever the order of the steps."""
    for form, share in ((FORMS[0], lambda s: 1 / s**2), (FORMS[1], lambda s: math.sinh(1 / s**2))):
        expected = math.erfc(math.sqrt(sum(t * p**2 * share(s) for p, t, s in phases) / 2))
        assert form(phased(phases)).value == pytest.approx(expected, rel=1e-12)
        assert form(phased(phases[::-1])).value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("phases", MIXED)
@pytest.mark.parametrize("sampling", [POISSON, FIXED])
def test_moment_matched_is_safe_for_vectors_and_fixed_sizes(phases, sampling):
    """The moment-matched form stays at or below the exact Bayes security, also for vectors and fixed-size batches."""
    exact = 1 - total_variation_of_phases(phases, fixed=sampling is FIXED)
    assert bayes_security_moment_matched(phased(phases, sampling)).value <= exact + 1e-6


def test_closed_form_says_nothing_about_fixed_sizes():
    """Corollary 7 would be .005 too high for batches of a fixed size even at noise 4, so it is null with the reason."""
    phase = (0.00378, 2415, 4.28)
    exact = 1 - total_variation_of_phases([phase], fixed=True)
    published = math.erfc(0.00378 * math.sqrt(2415) / (math.sqrt(2) * 4.28))
    assert published > exact + 0.005
    claim = bayes_security_closed_form(phased([phase], FIXED))
    assert claim.value is None
    assert claim.status == "approximation"
    assert "batches of a fixed size give away more; use the moment-matched form" in claim.note
    assert bayes_security_closed_form(DPSGD([4.28, 4.28], [1.0, 0.5], sampling=FIXED)).value is None
    assert bayes_security_moment_matched(phased([phase], FIXED)).value <= exact


@pytest.mark.parametrize("sampling", [POISSON, FIXED])
def test_closed_form_is_proven_without_sampling(sampling):
    """Where every record is in every step the closed form is exact, and it says so; below rate 1 it never does."""
    claim = bayes_security_closed_form(DPSGD([4.0, 2.0], 1.0, sampling=sampling))
    expected = 2 - 2 * ndtr(math.sqrt(1 / 16 + 1 / 4))
    assert claim.value == pytest.approx(expected, rel=1e-13)
    assert claim.proven
    assert not bayes_security_closed_form(DPSGD([4.0, 2.0], [1.0, 0.5], sampling=sampling)).proven


@pytest.mark.parametrize("noise", [0.25, 0.5, 1.0, 7.0, 3000.0, 1e7])
def test_fixed_size_form_keeps_its_digits(noise):
    """It agrees with 60-digit arithmetic from little noise to very much, where its terms cancel."""
    with mpmath.workdps(60):
        mu = 2 / mpmath.mpf(noise)
        square = mpmath.exp(mu**2) * mpmath.ncdf(1.5 * mu) + 3 * mpmath.ncdf(-mu / 2) - 2
        expected = mpmath.erfc(mpmath.mpf("1e-9") * mpmath.sqrt(1000 * square / 2) / mpmath.sqrt(2))
        leak = float(1 - expected)
    found = bayes_security_moment_matched(DPSGD(noise, 1e-9, 1000, sampling=FIXED)).value
    assert 1 - found == pytest.approx(leak, rel=1e-6, abs=2e-16)
