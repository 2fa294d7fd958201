"""Every number printed in Cherubin et al. 2024 (closed-form bounds for DP-SGD), against the package and an oracle.

Elsewhere: Equation 4's rate in tests/theory/test_parameters.py, the TPRs of Figure 7 in tests/theory/test_rates.py, the
success rates of Section 6.2 in tests/theory/test_priors.py, the reference values of the three forms in
tests/theory/test_closed_form.py, Corollary 10 on the unsafe side in
tests/theory/test_attribute_inference.py, and what `notebooks/experiments/attributes.py` measures in
tests/notebooks/test_attributes.py.
"""

import math

import pytest
from oracles import composed_delta
from scipy import optimize
from scipy.special import erf, erfinv
from scipy.stats import norm

from auditor import DPSGD, Adjacency
from auditor.results import Claim
from auditor.theory import (
    Corollary7,
    WantedBayesSecurity,
    attribute_inference,
    bayes_security_closed_form,
    humphries,
    noise_multiplier_for,
    total_variation,
    total_variation_a,
    tpr_closed_form,
    tpr_exact,
    tpr_from_advantage,
)

REPLACE_ONE = Adjacency.REPLACE_ONE
# Training sets: Adult's is not stated, and solved from the printed noise (see test_section_6_noise).
ADULT, PURCHASE, TABLE_ADULT = 26_318, 197_324, 32_561


def stated(value):
    """A Bayes security as printed."""
    return Claim("bayes_security", value, None, REPLACE_ONE, "printed", proven=False)


def noise_for(records, batch):
    """The noise for a Bayes security of 0.9 after 20 epochs, by Equation 4."""
    wanted, steps = WantedBayesSecurity(0.9), round(20 * records / batch)
    found = noise_multiplier_for(wanted, sampling_rate=batch / records, steps=steps, method=Corollary7())
    return found.value


def delta_by_fft(run, level, other=-1.0):
    """The smallest delta of a run at an epsilon: of replaced records, or of removed ones where the other mean is 0."""
    return composed_delta((run.noise_multiplier, run.sampling_rate, other, 1.0, run.steps), epsilon=level)


def erf_later(security):
    """1 - erf(sqrt(30/20) erfinv(1 - security)): what a Gaussian's security after 20 epochs is after 30."""
    return 1 - erf(math.sqrt(1.5) * erfinv(1 - security))


@pytest.mark.parametrize(
    ("rate", "noise", "gap"),
    [(1e-4, 1.0, 0.0047), (1e-2, 1.0, 0.0295), (1e-4, 1.5, 0.0006), (1e-4, 3.0, 0.0)],
)
def test_appendix_b(rate, noise, gap):
    """After 50 epochs a rate 100 times as large makes the error 6 times as large; at one rate it falls with the noise."""
    run = DPSGD(noise, rate, round(50 / rate))
    exact = 1 - delta_by_fft(run, 0.0)
    assert 1 - total_variation(run).value == pytest.approx(exact, abs=2e-6)
    assert bayes_security_closed_form(run).value - exact == pytest.approx(gap, abs=5e-5)


@pytest.mark.parametrize("noise", [0.1, 0.5, 1.0, 3.0])
def test_figure_6(noise):
    """Of all (epsilon, delta) of one step at p = 1e-4, epsilon 0 bounds the advantage best, and exactly."""
    run, bounds = DPSGD(noise, 1e-4, 1), []
    for level in (0.0, 1e-5, 1e-4, 1e-3):
        delta = total_variation_a(run, a=math.exp(level), adjacency=REPLACE_ONE) - math.expm1(level) / 2
        claim = Claim("epsilon", level, max(delta, 0.0), REPLACE_ONE, "exact", proven=True)
        bounds.append(humphries(claim).value)
    assert bounds[0] == min(bounds)
    assert bounds[0] == pytest.approx(1e-4 * (2 * norm.cdf(1 / noise) - 1), rel=1e-6)
    assert 1 - bayes_security_closed_form(run).value >= bounds[0]  # one step: the safe side


def test_figure_7_is_tight_at_one_rate_only():
    """Proposition 9 meets f-DP at FPR = Phi(-mu/2) = .486, printed as .5, and nowhere else."""
    run, mu = DPSGD(2.0, 1e-4, 500_000), 2e-4 * math.sqrt(500_000) / 2
    security = bayes_security_closed_form(run)

    def gap(fpr):
        return tpr_from_advantage(security, fpr=fpr).value - tpr_closed_form(run, fpr=fpr).value

    assert 1 - security.value == pytest.approx(erf(mu / math.sqrt(8)), rel=1e-12)
    touch = norm.cdf(-mu / 2)
    assert touch == pytest.approx(0.4859, abs=1e-4)
    assert touch == pytest.approx(0.5, abs=0.05)  # last digit printed
    assert gap(touch) == pytest.approx(0, abs=1e-12)
    assert gap(0.5) > 1e-5
    found = optimize.minimize_scalar(gap, bounds=(0.01, 0.99), method="bounded").x
    assert found == pytest.approx(touch, abs=1e-3)
    assert tpr_exact(run, fpr=0.1).value == pytest.approx(0.113, abs=5e-4)  # the f-DP value is right


def test_section_6_1_looks_swapped():
    """Larger distances give smaller security, so of one training .950 cannot be the approximate analysis' with .945 the full's."""
    run = DPSGD(3.51, 256 / ADULT, round(20 * ADULT / 256))
    full = optimize.brentq(lambda r: attribute_inference(run, sensitivities=r)[0].value - 0.945, 0.1, 2.0)
    smaller = optimize.brentq(lambda r: attribute_inference(run, sensitivities=r)[0].value - 0.950, 0.1, 2.0)
    assert smaller < full  # .950 would need distances below the largest ones
    assert full == pytest.approx(2 * erfinv(0.055) / erfinv(0.1), abs=1e-3)  # 1.10 of at most 2


def test_section_6_noise():
    """Equation 4 at .9 after 20 epochs: 3.51 is that of 26,243 to 26,393 records (not stated), 1.8 that of Purchase's."""
    # p^2 T = 20 L / N, so sigma = sqrt(20 L / N) / (sqrt(2) erfinv(.1)); 3.51 to its last digit.
    fewest, most = (10 * 256 / (noise * erfinv(0.1)) ** 2 for noise in (3.515, 3.505))
    assert (fewest, most) == (pytest.approx(26_243, abs=1), pytest.approx(26_393, abs=1))
    assert fewest < ADULT < most < TABLE_ADULT
    for records, batch, printed, within in ((ADULT, 256, 3.51, 0.005), (PURCHASE, 512, 1.8, 0.05)):
        noise = noise_for(records, batch)
        assert noise == pytest.approx(printed, abs=within)  # last digit printed
        assert noise == pytest.approx(math.sqrt(10 * batch / records) / erfinv(0.1), rel=5e-4)  # whole steps
    assert noise_for(TABLE_ADULT, 256) == pytest.approx(3.16, abs=0.005)


@pytest.mark.parametrize(("after_20", "after_30"), [(0.945, 0.93), (0.950, 0.94)])
def test_section_6_2_attribute_belongs_to_the_curve_at_945(after_20, after_30):
    """With distances that stay, .945 after 20 epochs becomes the table's .93 after 30; .950 becomes .94 (and TPR .15, not .16)."""
    rate, steps = 256 / ADULT, round(10 * ADULT / 256)
    run, longer = DPSGD(3.51, rate, 2 * steps), DPSGD(3.51, rate, 3 * steps)
    size = optimize.brentq(lambda r: attribute_inference(run, sensitivities=r)[0].value - after_20, 0.1, 2.0)
    value = attribute_inference(longer, sensitivities=size)[0].value
    assert value == pytest.approx(erf_later(after_20), rel=1e-9)
    assert value == pytest.approx(after_30, abs=0.005)  # last digit printed
