"""Monte Carlo total variation against exact values, the paper's own algorithm, and its limits."""

import math
import tracemalloc

import numpy as np
import pytest
from scipy import stats

from auditor.core import DPSGD, Adjacency, FixedSizeSampling, InputError
from auditor.theory import (
    EmpiricalBernstein,
    Hoeffding,
    SampleVariance,
    composed,
    simulated,
    total_variation_monte_carlo,
)
from auditor.theory.monte_carlo import _draw_normal, _values

ADD_REMOVE, REPLACE_ONE = Adjacency.ADD_REMOVE, Adjacency.REPLACE_ONE
FIXED = FixedSizeSampling()


def estimate(training, seed=0, **arguments):
    """The estimate, by default with the sample-variance interval, and its standard error."""
    arguments = {"interval": SampleVariance(), "confidence": 2 * stats.norm.cdf(1) - 1, **arguments}
    claim = total_variation_monte_carlo(training, rng=np.random.default_rng(seed), **arguments)
    return claim, (claim.upper - claim.lower) / 2


def algorithm_1(noise, rate, clip, samples, rng, *, last=np.minimum):
    """Algorithm 1 of Mahloujifar et al. 2022, line by line; ``last`` is line 9, which is printed with max."""
    eta = np.zeros(samples)
    for sigma, q, r in zip(noise, rate, clip, strict=True):
        t = rng.normal(0, sigma * r, samples)
        eta += np.log(1 + q * (np.exp((2 * t / r - 1) / (2 * sigma**2)) - 1))
    values = 1 - np.exp(last(eta, 0))
    return values.mean(), values.std() / math.sqrt(samples)


@pytest.mark.parametrize(
    ("training", "adjacency", "exact"),
    [  # statistics.md, section 7
        (DPSGD(1.0, 0.1, 1), ADD_REMOVE, 0.038292492),
        (DPSGD(0.5, 0.01, 1), ADD_REMOVE, 0.006826895),
        (DPSGD(1.0, 0.1, 100), ADD_REMOVE, 0.438758),
        (DPSGD(1.0, 0.01, 1000), ADD_REMOVE, 0.1610176),
        (DPSGD(1.0, 0.01, 1000), REPLACE_ONE, 0.2643522),
    ],
)
def test_reference_values(training, adjacency, exact):
    """The estimate is within four standard errors of the reference values, and they of it at 1e-3 or better."""
    samples = min(500_000, 50_000_000 // training.steps)
    claim, error = estimate(training, adjacency=adjacency, samples=samples)
    assert abs(claim.value - exact) <= 4 * error
    assert error < 1e-3
    assert (claim.metric, claim.status, claim.adjacency) == ("advantage", "estimate", adjacency)


@pytest.mark.parametrize(
    "training",
    [
        DPSGD(0.7, 0.05, 50),
        DPSGD(0.5, 0.9, 5),
        DPSGD(0.3, 0.5, 6),
        DPSGD([1.0] * 20 + [0.5] * 5 + [2.0] * 3, [0.1] * 20 + [0.02] * 5 + [1.0] * 3),
        DPSGD(2.0, 0.003, 600),  # several logarithms
    ],
)
@pytest.mark.parametrize(
    ("adjacency", "sampling"),
    [(ADD_REMOVE, None), (REPLACE_ONE, None), (REPLACE_ONE, FIXED)],
)
@pytest.mark.parametrize("a", [1.0, 0.3, 2.5])
def test_agrees_with_the_exact_law(training, adjacency, sampling, a):
    """For every kind of step, vectors and weights, the estimate is within 4.5 standard errors of the exact law."""
    if sampling is not None:
        training = DPSGD(training.noise_multiplier, training.sampling_rate, training.steps, sampling=sampling)
    claim, error = estimate(training, seed=3, adjacency=adjacency, samples=40_000, a=a)
    # TV_a(out, in) = a TV_{1/a}(in, out), and TV_b = H_b - (1 - b)/2.
    exact = a * (float(composed(training, adjacency=adjacency).hockey_stick(1 / a)) - (1 - 1 / a) / 2)
    assert abs(claim.value - exact) <= 4.5 * error + 1e-8


def test_the_papers_algorithm_with_its_erratum():
    """Algorithm 1 with min in line 9 gives what we give, for vectors of noise, rate and clip; with max it is negative."""
    noise, rate, clip = [1.0, 0.8, 2.0, 0.6], [0.1, 0.3, 1.0, 0.02], [1.0, 3.0, 0.1, 7.0]
    slow, slow_error = algorithm_1(noise, rate, clip, 200_000, np.random.default_rng(5))
    claim, error = estimate(DPSGD(noise, rate, clipping_norm=clip), adjacency=ADD_REMOVE, samples=200_000)
    assert abs(claim.value - slow) <= 4 * math.hypot(error, slow_error)
    printed, _ = algorithm_1([1.0], [0.1], [1.0], 500_000, np.random.default_rng(6), last=np.maximum)
    assert printed == pytest.approx(-0.0383, abs=5e-4)  # errata.md


def test_published_tv_a():
    """TV_a of the corrected Lemma 5, and the prior-0.3 advantage of the corrected Theorem 21, as errata.md has them."""
    claim, error = estimate(DPSGD(0.7 / 1.3, 1.0, 1), adjacency=ADD_REMOVE, a=0.4)
    assert abs(claim.value - 0.489795) <= 4 * error
    assert claim.metric == "tv_a.0.4"
    prior = 0.3
    claim, error = estimate(DPSGD(0.5, 0.5, 1), adjacency=ADD_REMOVE, a=prior / (1 - prior))
    scale = 2 * (1 - prior)
    assert abs(scale * claim.value - (1 - 2 * prior) - 0.136631) <= 4 * scale * error < 3e-3


def test_fixed_size_step_by_its_closed_form():
    """One step of fixed-size batches has delta(eps) = p delta_Gauss(log(1 + (e^eps - 1)/p)) with mu = 2/s."""
    rate, noise, eps = 0.2, 0.9, 0.4
    inner, mu = math.log(1 + math.expm1(eps) / rate), 2 / noise
    gauss = stats.norm.cdf(mu / 2 - inner / mu) - math.exp(inner) * stats.norm.cdf(-mu / 2 - inner / mu)
    a = math.exp(-eps)
    claim, error = estimate(DPSGD(noise, rate, 1, sampling=FIXED), a=a, seed=18)
    # TV_a = a (delta(eps) - (1 - e^eps)/2) by symmetry.
    assert abs(claim.value - a * (rate * gauss + math.expm1(eps) / 2)) <= 4 * error < 1e-3


def test_the_normals_are_normal():
    """Both halves of the draws are normal up to the fourth moment and beyond, and do not depend on each other."""
    rng, out, spare = np.random.default_rng(19), np.empty(1_000_000), np.empty(1_000_000)
    _draw_normal(rng, out, spare, deviation=1.0)
    first, second = np.split(out, 2)
    for half in (first, second):
        assert stats.kstest(half, "norm").pvalue > 1e-3
        assert abs(np.mean(half**4) - 3) <= 4 * math.sqrt(96 / half.size)  # Var x^4 = 105 - 9
        tail = np.sum(np.abs(half) > 3.5)
        assert abs(tail - half.size * 2 * stats.norm.sf(3.5)) <= 4 * math.sqrt(tail)
    for one, other in ((first, second), (first**2, second**2), (first**2, second)):
        assert abs(np.corrcoef(one, other)[0, 1]) <= 4 / math.sqrt(first.size)
    _draw_normal(np.random.default_rng(19), wide := np.empty(1_000_000), spare, deviation=3.0)
    assert np.allclose(wide, 3 * out, rtol=1e-13)


@pytest.mark.parametrize("a", [1.0, 0.3, 4.0])
def test_replaced_records_average_over_the_mirror(a):
    """On a discrete law with a mirrored partner the two forms of a value have one mean; ours has less variance."""
    rng = np.random.default_rng(7)
    far = rng.exponential(2.0, 50)
    weight = rng.random(50)
    # P(loss = l) = e^l P(loss = -l) without the record.
    loss = np.concatenate([far, -far])
    mass = np.concatenate([weight * np.exp(-far), weight])
    mass /= mass.sum()
    plain = np.maximum(0, 1 - a * np.exp(loss))
    ours = _values(loss, weight=a, symmetric=True)
    assert mass @ ours == pytest.approx(mass @ plain, rel=1e-13)
    assert mass @ ours**2 < mass @ plain**2
    assert np.array_equal(
        _values(loss, weight=a, symmetric=False), np.maximum(0, -np.expm1(math.log(a) + loss))
    )
    assert np.all((ours >= 0) & (ours <= 1))


def test_the_variance_is_about_a_quarter_for_replaced_records():
    """After many steps the averaged form needs 27% of the paper's samples: (1/4 - k) / (1/2 - k), k = 1/(2 pi)."""
    # For a loss of N(-m/2, m) and m -> 0: the values are |loss|/2 and max(0, -loss), k = 1/(2 pi).
    loss = simulated(DPSGD(40.0, 0.01, 100), adjacency=REPLACE_ONE).draw(
        100_000, rng=np.random.default_rng(8), tick=lambda _: None
    )
    ratio = np.var(_values(loss, weight=1.0, symmetric=True)) / np.var(
        _values(-loss, weight=1.0, symmetric=False)
    )
    k = 1 / (2 * math.pi)
    assert ratio == pytest.approx((0.25 - k) / (0.5 - k), rel=0.05)


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_the_number_of_threads_does_not_matter(adjacency):
    """One, two and five threads give the same claim to the last digit; another seed gives another."""
    training = DPSGD(1.0, 0.1, 3)
    claims = [
        total_variation_monte_carlo(
            training, adjacency=adjacency, samples=70_001, rng=np.random.default_rng(9), threads=threads
        )
        for threads in (1, 2, 5, None)
    ]
    assert all(claim == claims[0] for claim in claims)
    other = total_variation_monte_carlo(
        training, adjacency=adjacency, samples=70_001, rng=np.random.default_rng(10)
    )
    assert other.value != claims[0].value


def test_a_generator_moves_on():
    """Two calls with one generator are two independent simulations."""
    rng = np.random.default_rng(11)
    values = [total_variation_monte_carlo(DPSGD(1.0, 0.5, 2), samples=1000, rng=rng).value for _ in range(2)]
    assert values[0] != values[1]


@pytest.mark.parametrize(
    ("adjacency", "sampling", "pinned"),
    [  # seen alike under numpy 1.26.4 and 2.4.6
        (ADD_REMOVE, None, 0.15641992246825417),
        (REPLACE_ONE, None, 0.26860962109508707),
        (REPLACE_ONE, FIXED, 0.32204872651206135),
    ],
)
def test_a_seed_gives_the_same_number_on_every_numpy(adjacency, sampling, pinned):
    """A seeded run gives the same number under numpy 1.26 and 2.4, to the rounding of their exponentials."""
    training = DPSGD([0.8, 1.0], [0.2, 0.3], **({"sampling": sampling} if sampling else {}))
    claim, _ = estimate(training, seed=12, adjacency=adjacency, samples=20_000)
    assert claim.value == pytest.approx(pinned, rel=1e-12)


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_steps_without_sampling_cost_nothing(adjacency):
    """At rate 1 the run is one normal: 1e7 steps at noise 0.05 give 1, and 1e6 at noise 1000 the exact value, at once."""
    assert simulated(DPSGD(0.05, 1.0, 10_000_000), adjacency=adjacency).length == 1  # nothing to go through
    sure, _ = estimate(DPSGD(0.05, 1.0, 10_000_000), adjacency=adjacency)
    some, error = estimate(DPSGD(1000.0, 1.0, 1_000_000), adjacency=adjacency)
    assert sure.value == 1
    shift = (2.0 if adjacency is REPLACE_ONE else 1.0) * math.sqrt(1_000_000) / 1000.0
    assert abs(some.value - (2 * stats.norm.cdf(shift / 2) - 1)) <= 4 * error


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_rates_next_to_one(adjacency):
    """A rate of 1 - 1e-9 gives what a rate of 1 gives, though the one goes through the steps and the other does not."""
    reach = (1.0 if adjacency is REPLACE_ONE else 0.5) * math.sqrt(4) / 1.5
    for rate in (1 - 1e-9, 1 - 1e-16, 1.0):
        claim, error = estimate(DPSGD(1.5, rate, 4), seed=17, adjacency=adjacency, samples=100_000)
        assert abs(claim.value - (2 * stats.norm.cdf(reach) - 1)) <= 4 * error


@pytest.mark.parametrize("noise", [0.05, 0.01, 1e-3, 1e-200])
@pytest.mark.parametrize(
    ("adjacency", "sampling"), [(ADD_REMOVE, None), (REPLACE_ONE, None), (REPLACE_ONE, FIXED)]
)
def test_almost_no_noise(noise, adjacency, sampling):
    """With almost no noise a record shows as soon as it is drawn: total variation 1 - (1 - p)^T, without overflow."""
    training = DPSGD(noise, 0.02, 60, **({"sampling": sampling} if sampling else {}))
    claim, error = estimate(training, seed=13, adjacency=adjacency, samples=20_000)
    # Seen from the world without the record there is no chance left at all.
    assert abs(claim.value - (1 - 0.98**60)) <= 4 * error + 1e-12


@pytest.mark.parametrize("rate", [0.5, 0.999, 1 - 1e-12])
@pytest.mark.parametrize(
    ("adjacency", "sampling"), [(ADD_REMOVE, None), (REPLACE_ONE, None), (REPLACE_ONE, FIXED)]
)
def test_certainty_is_one(rate, adjacency, sampling):
    """Many steps with little noise give exactly 1, however far the likelihood ratios leave a double's range."""
    training = DPSGD(0.06, rate, 2000, **({"sampling": sampling} if sampling else {}))
    claim, _ = estimate(training, adjacency=adjacency, samples=500)
    assert claim.value == claim.lower == claim.upper == 1


@pytest.mark.parametrize("rate", [1e-6, 1e-12, 1e-100])
def test_tiny_rates_keep_their_digits(rate):
    """One step at rate p gives p (2 Phi(1/(2s)) - 1), or with 1/s for replaced records, in relative terms."""
    for adjacency, sampling, reach in (
        (ADD_REMOVE, None, 0.5),
        (REPLACE_ONE, None, 1.0),
        (REPLACE_ONE, FIXED, 1.0),
    ):
        training = DPSGD(1.5, rate, 1, **({"sampling": sampling} if sampling else {}))
        claim, error = estimate(training, adjacency=adjacency, samples=100_000)
        exact = rate * (2 * stats.norm.cdf(reach / 1.5) - 1)
        assert abs(claim.value - exact) <= 4 * error
        assert error < 0.01 * exact


@pytest.mark.parametrize("training", [DPSGD(1e300, 1e-300, 3), DPSGD(1e9, 0.5, 4), DPSGD(1.0, 5e-324, 2)])
@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_next_to_nothing(training, adjacency):
    """Hardly any rate and hardly any signal give hardly any advantage, and no warning."""
    claim, _ = estimate(training, adjacency=adjacency, samples=1000)
    assert 0 <= claim.value <= min(training.sampling_rate * training.steps, 1e-8)


def test_fixed_size_batches_have_no_add_remove():
    """Fixed-size batches are accounted for replaced records only: the claim is null and says so."""
    claim = total_variation_monte_carlo(
        DPSGD(1.0, 0.1, 5, sampling=FIXED), adjacency=ADD_REMOVE, rng=np.random.default_rng(0)
    )
    assert claim.value is None
    assert claim.note == "Batches of a fixed size are accounted for replaced records only."


def test_the_corrected_proposition_8():
    """At m = 5e5 an error of 0.01 has probability at most 2 e^-100, not only 1e-5; 61,031 samples give the 99.999%."""
    half_width = Hoeffding().half_width(samples=500_000, variance=1.0, confidence=1 - 1e-5)
    assert half_width == pytest.approx(math.sqrt(math.log(2e5) / 1e6), rel=1e-9)  # .003494
    assert half_width < 0.01
    assert 2 * math.exp(-2 * 500_000 * 0.01**2) == pytest.approx(7.44e-44, rel=1e-3)
    needed = Hoeffding().samples_for(0.01, confidence=1 - 1e-5)
    assert needed == 61_031
    assert 2 * math.exp(-2 * needed * 0.01**2) <= 1e-5 < 2 * math.exp(-2 * (needed - 1) * 0.01**2)
    # The printed exp(-m d^2 / 3) also allows the paper's statement at m = 5e5, and would ask for 345,388.
    assert math.exp(-500_000 * 0.01**2 / 3) < 1e-5
    assert math.ceil(3 * math.log(1e5) / 0.01**2) == 345_388


def test_intervals_by_their_formulas():
    """The half-widths are those of Hoeffding 1963, Maurer and Pontil 2009 (Theorem 4), and the normal approximation."""
    setting = {"samples": 1000, "variance": 0.04, "confidence": 0.9}
    assert Hoeffding().half_width(**setting) == pytest.approx(math.sqrt(math.log(20) / 2000))
    bernstein = math.sqrt(2 * 0.04 * math.log(2 / 0.05) / 1000) + 7 * math.log(2 / 0.05) / (3 * 999)
    assert EmpiricalBernstein().half_width(**setting) == pytest.approx(bernstein)
    low, high = stats.norm.interval(0.9, scale=0.2 / math.sqrt(1000))
    assert SampleVariance().half_width(**setting) == pytest.approx((high - low) / 2)


@pytest.mark.parametrize("interval", [Hoeffding(), EmpiricalBernstein(), SampleVariance()])
def test_moments_and_intervals_together(interval):
    """Mean and variance over the blocks are those of all values at once, and the interval is cut to [0, 1]."""
    training, samples = DPSGD(0.6, 0.4, 2), 70_001
    claim = total_variation_monte_carlo(
        training, samples=samples, interval=interval, rng=np.random.default_rng(14)
    )
    seed = np.random.default_rng(14).integers(0, 2**32, size=8, dtype=np.uint32).tolist()
    sizes = (32_768, 32_768, samples - 2 * 32_768)
    values = np.concatenate(
        [
            np.abs(
                np.tanh(
                    simulated(training, adjacency=REPLACE_ONE).draw(
                        size,
                        rng=np.random.Generator(
                            np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(k,)))
                        ),
                        tick=lambda _: None,
                    )
                    / 2
                )
            )
            for k, size in enumerate(sizes)
        ]
    )
    assert claim.value == pytest.approx(values.mean(), rel=1e-12)
    half = interval.half_width(samples=samples, variance=values.var(ddof=1), confidence=0.95)
    assert claim.upper - claim.value == pytest.approx(half, rel=1e-9)
    assert claim.value - claim.lower == pytest.approx(half, rel=1e-9)
    few = total_variation_monte_carlo(
        DPSGD(0.6, 0.01, 2), samples=2, interval=interval, rng=np.random.default_rng(0)
    )
    assert 0 <= few.lower <= few.value <= few.upper <= 1


@pytest.mark.parametrize("a", [0.01, 0.5, 3.0, 1e200])
@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_tv_a_stays_in_its_range(a, adjacency):
    """TV_a lies between |1 - a|/2 and (1 + a)/2, and so do the estimate and its interval."""
    claim, _ = estimate(DPSGD(1.0, 0.2, 2), adjacency=adjacency, samples=100, a=a)
    assert abs(1 - a) / 2 <= claim.lower <= claim.value <= claim.upper <= (1 + a) / 2


def test_the_method_and_the_note_say_what_it_is():
    """The claim names the number of runs, the interval and the equation, and marks the approximate interval."""
    arguments = {"samples": 1000, "rng": np.random.default_rng(0)}
    claim = total_variation_monte_carlo(DPSGD(1.0, 0.2, 2), **arguments)
    assert (
        claim.method == "Monte Carlo, 1,000 runs, Hoeffding interval (Mahloujifar et al. 2022, Equation 12)"
    )
    assert "every number of samples" in claim.note
    assert (claim.proven, claim.confidence, claim.delta) == (False, 0.95, None)
    approximate = total_variation_monte_carlo(DPSGD(1.0, 0.2, 2), **arguments, interval=SampleVariance())
    assert "approximat" in approximate.method
    assert "can promise too much" in approximate.note


@pytest.mark.parametrize(
    "training",
    [DPSGD(1.0, 0.1, 700), DPSGD([1.0, 2.0, 3.0], 0.1), DPSGD(1.0, 1.0, 9), DPSGD(1.0, 0.99, 5000)],
)
def test_progress_counts_up_to_all(training):
    """Progress rises to the total, which is the last thing told, in about a thousand calls at most."""
    told = []
    total_variation_monte_carlo(
        training,
        samples=70_001 if training.steps < 1000 else 100,
        rng=np.random.default_rng(0),
        threads=2,
        progress=lambda done, total: told.append((done, total)),
    )
    done, totals = zip(*told, strict=True)
    assert list(done) == sorted(set(done))
    assert len(set(totals)) == 1
    assert done[-1] == totals[0]
    assert len(told) <= 1001


@pytest.mark.parametrize("threads", [1, 2])
def test_progress_can_stop_the_simulation(threads):
    """What progress raises ends the simulation, which would take minutes, and reaches the caller."""
    told = []

    def stop(done, total):
        told.append(done / total)
        raise KeyError

    with pytest.raises(KeyError):
        total_variation_monte_carlo(
            DPSGD(1.0, 0.5, 200_000),
            samples=70_001,
            rng=np.random.default_rng(0),
            threads=threads,
            progress=stop,
        )
    assert max(told) < 0.05
    assert len(told) <= 3  # once for each block of runs at most


def test_memory_does_not_grow_with_the_samples():
    """Ten times the samples need at most 1.2 times the memory."""

    def peak(samples):
        tracemalloc.start()
        total_variation_monte_carlo(
            DPSGD(1.0, 0.1, 1), samples=samples, rng=np.random.default_rng(0), threads=1
        )
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(1000)
    assert peak(1_000_000) <= 1.2 * peak(100_000)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"training": "dpsgd"}, "training must be auditor.DPSGD, got 'dpsgd'."),
        ({"samples": 1}, "samples must be a whole number of 2 or more, got 1."),
        ({"samples": 2.5}, "samples must be a whole number of 2 or more, got 2.5."),
        ({"a": 0.0}, "a must be above 0, got 0."),
        ({"a": math.inf}, "a must be finite, got inf."),
        ({"confidence": 1.0}, r"confidence must lie in \(0, 1\), got 1."),
        ({"threads": 0}, "threads must be a whole number of 1 or more, got 0."),
        ({"adjacency": "replace"}, "did you mean 'replace-one'?"),
        (
            {"interval": Hoeffding},
            r"interval must be an instance, got the class Hoeffding; write Hoeffding\(...\).",
        ),
        ({"interval": "hoeffding"}, "interval must be auditor.theory.Hoeffding or"),
        ({"rng": 0}, r"rng must be a numpy.random.Generator, got 0; pass numpy.random.default_rng\(0\)."),
    ],
)
def test_bad_arguments(arguments, sentence):
    """Each bad argument gets one sentence that names it."""
    usable = {"training": DPSGD(1.0, 0.1, 1), "rng": np.random.default_rng(0)}
    merged = {**usable, **arguments}
    with pytest.raises(InputError, match=sentence):
        total_variation_monte_carlo(merged.pop("training"), **merged)


@pytest.mark.parametrize(("half_width", "confidence"), [(0.0, 0.95), (1.0, 0.95), (0.01, 0.0), (0.01, 1.0)])
def test_bad_precision(half_width, confidence):
    """A precision or a level out of range is refused."""
    with pytest.raises(InputError):
        Hoeffding().samples_for(half_width, confidence=confidence)
