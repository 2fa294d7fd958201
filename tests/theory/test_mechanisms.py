"""Other mechanisms than DP-SGD by coins: against quadrature, closed forms, enumeration, another library and simulation."""

import itertools
import math

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from oracles import fixed_size_delta, gaussian_mechanism_epsilon, randomised_response_delta
from scipy import integrate, optimize, stats

from auditor.core import DPSGD, Adjacency, InputError, ShuffledBatches
from auditor.theory import gaussian_delta, shuffled_mu
from auditor.theory.mechanisms import DrawnWithReplacement, FinitePair, MechanismLoss, NoisyQuery

REPLACE_ONE, ADD_REMOVE = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
A = np.array([0.2, 0.7, 0.97, 1.0, 1.02, 1.4, 3.0, 20.0])
LAWS = {
    "laplace": stats.laplace,
    "logistic": stats.logistic,
    "gaussian": stats.norm,
    "generalised-normal": stats.gennorm(1.4),
}
NOISES = [(name, u) for name in LAWS for u in (0.05, 0.7, 3.0)]


def delta_between(law, epsilon):
    """Bounds on the smallest delta at an epsilon, the larger one of both orders."""
    both = [law.between(np.array(epsilon), backward=order) for order in (False, True)]
    return max(float(low) for low, _ in both), max(float(high) for _, high in both)


def width_of(law):
    """How far above the truth a total variation may be."""
    lower, upper = delta_between(law, 0.0)
    return upper - lower


def query(noise, u, **others):
    """A query whose answer moves by u noise scales."""
    exponent = {"exponent": 1.4} if noise == "generalised-normal" else {}
    return NoisyQuery(noise, 2.0, 2.0 * u, **exponent, **others)


X = np.linspace(-45.0, 45.0, 300_001)


def positive_part(first, second, a):
    """The integral of the positive part of first - a second, two densities on a fine grid."""
    return integrate.trapezoid(np.maximum(first - a * second, 0.0), X)


def simulated(sums, epsilon):
    """Delta at an epsilon from privacy losses drawn in the first world, and five standard errors of it."""
    terms = -np.expm1(np.minimum(epsilon - sums, 0.0))
    return terms.mean(), 5 * terms.std() / math.sqrt(terms.size) + 1e-9


# --- One query ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.01, 0.6, 1.0])
@pytest.mark.parametrize(("noise", "u"), NOISES)
def test_one_query_is_the_integral_of_the_positive_part(noise, u, rate):
    """The half-line is the best event: every divergence is the integral over the best outputs, and delta that of both orders."""
    loss = MechanismLoss.of(query(noise, u, sampling_rate=rate))
    second = LAWS[noise].pdf(X)
    first = (1 - rate) * second + rate * LAWS[noise].pdf(X - u)
    forward, backward = ([positive_part(*pair, a) for a in A] for pair in ((first, second), (second, first)))
    assert loss.hockey_stick(A) == pytest.approx(forward, abs=5e-8)
    assert loss.delta_at(np.log(A[3:])) == pytest.approx(np.maximum(forward, backward)[3:], abs=5e-8)


def test_laplace_in_closed_form():
    """Epsilon at delta 0 is u, the advantage 1 - e^{-u/2}, and the trade-off curve has its three pieces."""
    u = 0.8
    loss = MechanismLoss.of(query("laplace", u))
    assert loss.epsilon_at(0.0) == pytest.approx(u, rel=1e-12)
    assert loss.total_variation() == pytest.approx(1 - math.exp(-u / 2), rel=1e-12)
    pieces = {0.1: 0.1 * math.exp(u), 0.4: 1 - math.exp(-u) / 1.6, 0.9: 1 - 0.1 * math.exp(-u)}
    for fpr, tpr in pieces.items():
        assert tpr - 1e-12 <= loss.tpr_at(fpr) <= tpr + 1e-5


@pytest.mark.parametrize(("first", "second"), [(0.3, 0.5), (2.0, 0.1), (1.5, 1.5)])
def test_laplace_noise_on_two_numbers_is_no_worse_than_on_one(first, second):
    """Two independent Laplace answers that move by u and v tell no more than one that moves by u + v."""
    two = MechanismLoss.of(query("laplace", first), query("laplace", second))
    one = MechanismLoss.of(query("laplace", first + second))
    epsilons = np.linspace(0, first + second, 40)
    assert np.all(two.delta_at(epsilons) <= one.delta_at(epsilons) + 1e-8)


def test_tiny_deltas_keep_their_digits():
    """Far out the delta of Gaussian noise, computed from its density alone, is right to nine digits and not below."""
    loss = MechanismLoss.of(NoisyQuery("generalised-normal", math.sqrt(2)))
    for eps in (5.0, 12.0, 20.0):
        exact = gaussian_delta(1.0, epsilon=eps)
        assert exact <= loss.delta_at(eps) <= exact * (1 + 1e-9)


# --- Finite laws --------------------------------------------------------------------------------------


def test_finite_laws_against_every_event(rng):
    """The divergence of random laws, some answers of one world only, is the largest over all sets of answers."""
    for _ in range(20):
        first, second = rng.dirichlet(np.ones(4), size=2)
        first[0] = 0.0
        first /= first.sum()
        loss = MechanismLoss.of(FinitePair(first, second))
        events = [np.array(event, dtype=bool) for event in itertools.product([0, 1], repeat=4)]
        for a in (0.3, 1.0, 2.5):
            best = max(first[event].sum() - a * second[event].sum() for event in events)
            assert loss.hockey_stick(a) == pytest.approx(best, abs=1e-12)
        other = max(second[event].sum() - 2.5 * first[event].sum() for event in events)
        assert loss.delta_at(math.log(2.5)) == pytest.approx(max(best, other), abs=1e-12)
        assert loss.epsilon_at(0.0) == math.inf


@pytest.mark.parametrize("times", [2, 9, 200])
def test_randomised_response_many_times(times):
    """The composition of randomised response brackets its binomial sum, closely, and never exceeds its loss."""
    each = 0.8 if times < 100 else 0.05
    truth = 1 / (1 + math.exp(-each))
    loss = MechanismLoss.of(FinitePair((truth, 1 - truth), (1 - truth, truth), times=times))
    for eps in (0.0, each, 0.4 * each * times):
        exact = float(randomised_response_delta(each, steps=times, total=eps))
        low, high = delta_between(loss, eps)
        assert low <= exact <= high <= exact + 2e-5
        assert low > exact - 2e-3
    assert loss.epsilon_at(0.0) == pytest.approx(each * times, rel=1e-12)


# --- Compositions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scale", "rate", "times"), [(2.0, 1.0, 10), (20.0, 1.0, 400), (1.0, 0.05, 300)])
def test_composed_laplace_agrees_with_another_library(scale, rate, times):
    """The interval meets that of dp-accounting's own Laplace mechanism, rounded up and rounded down."""
    loss = MechanismLoss.of(NoisyQuery("laplace", scale, sampling_rate=rate, times=times))
    above, below = (
        pld.from_laplace_mechanism(
            scale,
            pessimistic_estimate=up,
            value_discretization_interval=1e-4,
            sampling_prob=rate,
            use_connect_dots=up,
        ).self_compose(times)
        for up in (True, False)
    )
    for eps in (0.0, 0.5, 2.0):
        low, high = delta_between(loss, eps)
        assert below.get_delta_for_epsilon(eps) <= high + 1e-9
        assert low <= above.get_delta_for_epsilon(eps)
        assert high == pytest.approx(above.get_delta_for_epsilon(eps), rel=1e-3, abs=1e-7)


@pytest.mark.parametrize("noise", ["gaussian", "generalised-normal"])
@pytest.mark.parametrize(("each", "times"), [(0.1, 100), (0.01, 5000), (1.0, 3)])
def test_composed_gaussian_noise_is_exact_composition(noise, each, times):
    """Epsilon, advantage and rates of T Gaussian queries are those of one sqrt(T) times as near, from above."""
    scale = math.sqrt(2) / each if noise == "generalised-normal" else 1 / each
    loss, mu = MechanismLoss.of(NoisyQuery(noise, scale, times=times)), each * math.sqrt(times)
    exact = float(gaussian_mechanism_epsilon(mu, 1e-6))
    assert exact - 1e-10 <= loss.epsilon_at(1e-6) <= exact + 5e-5
    advantage = math.erf(mu / math.sqrt(8))
    assert advantage <= loss.total_variation() <= advantage + min(width_of(loss), 2e-5)
    for fpr in (1e-3, 0.1, 0.5):
        tpr = stats.norm.cdf(stats.norm.ppf(fpr) + mu)
        found = float(loss.tpr_at(fpr))
        assert tpr <= found <= tpr + 3e-5


@pytest.mark.parametrize("points", [3, 12, 60])
def test_a_coarse_grid_is_told_by_the_interval(monkeypatch, points):
    """However coarse the grid, the exact deltas of two compositions lie within the interval."""
    monkeypatch.setattr("auditor.theory.mechanisms._STEP_POINTS", points)
    truth = 1 / (1 + math.exp(-0.3))
    response = MechanismLoss.of(FinitePair((truth, 1 - truth), (1 - truth, truth), times=15))
    noisy = MechanismLoss.of(NoisyQuery("gaussian", 5.0, times=40))
    for eps in (0.0, 0.5, 2.0):
        exact = (
            float(randomised_response_delta(0.3, steps=15, total=eps)),
            gaussian_delta(math.sqrt(40) / 5, epsilon=eps),
        )
        for loss, delta in zip((response, noisy), exact, strict=True):
            low, high = delta_between(loss, eps)
            assert low <= delta <= high


def test_different_mechanisms_against_simulated_losses(rng):
    """On random settings deltas of several mechanisms together lie where drawn losses say, in both orders."""
    size = 200_000
    for _ in range(8):
        u, v, p = rng.uniform(0.1, 1.2, 3)
        times = rng.integers(1, 6, size=3).tolist()
        first, second = rng.dirichlet(np.ones(3), size=2)
        mechanisms = (
            query("laplace", u, times=times[0]),
            query("logistic", v, sampling_rate=p / 2, times=times[1]),
            FinitePair(first, second, times=times[2]),
        )
        loss = MechanismLoss.of(*mechanisms)
        sums = np.zeros((2, size))
        for world, sign in ((0, 1), (1, -1)):
            for _ in range(times[0]):
                x = stats.laplace.rvs(size=size, random_state=rng) + u * (1 - world)
                sums[world] += sign * (stats.laplace.logpdf(x - u) - stats.laplace.logpdf(x))
            for _ in range(times[1]):
                drawn = (rng.random(size) < p / 2) * (1 - world)
                x = stats.logistic.rvs(size=size, random_state=rng) + v * drawn
                ratio = np.exp(stats.logistic.logpdf(x - v) - stats.logistic.logpdf(x))
                sums[world] += sign * np.log(1 - p / 2 + p / 2 * ratio)
            for _ in range(times[2]):
                answer = rng.choice(3, size=size, p=(first, second)[world])
                sums[world] += sign * np.log(first / second)[answer]
        for eps in (0.0, 0.3, 1.5):
            found = [simulated(world, eps) for world in sums]
            low, high = delta_between(loss, eps)
            assert high >= max(mean - error for mean, error in found)
            assert low <= max(mean + error for mean, error in found)
            assert high - low < 1e-3


def test_where_nothing_is_left_to_hide():
    """Noise far below and far above the sensitivity gives no NaN: an advantage of 1, and one that is nearly nothing."""
    loud, faint = (MechanismLoss.of(NoisyQuery("laplace", scale, times=3)) for scale in (1e-6, 1e12))
    assert loud.total_variation() == 1.0
    assert loud.epsilon_at(1e-5) == pytest.approx(3e6)  # at most that of each query
    low, high = delta_between(faint, 0.0)
    assert low < 7.5e-13 < high < 2e-12  # E|sum of three signs| / 4 = 0.75 / 2 per 1e-12, at least


# --- Batches drawn with replacement -------------------------------------------------------------------


@pytest.mark.parametrize(("noise", "records"), [(1.0, 10), (0.4, 100), (3.0, 1)])
def test_one_draw_is_a_batch_of_one(noise, records):
    """A batch of one draw is one of fixed size 1, whose divergence is known."""
    loss = MechanismLoss.of(DrawnWithReplacement(noise, 1, records))
    for eps in (0.0, 0.1, 1.0, 3.0):
        assert loss.delta_at(eps) == pytest.approx(fixed_size_delta(noise, 1 / records, eps), rel=1e-9)


@pytest.mark.parametrize(
    ("noise", "batch", "records"), [(1.0, 2, 2), (2.0, 5, 3), (0.7, 20, 100), (3.0, 8, 8)]
)
@pytest.mark.parametrize("others", [-1.0, 0.0, 1.0])
def test_no_pair_of_training_sets_exceeds_the_bound(noise, batch, records, others):
    """The law of the noisy sum itself, the replaced gradients opposite and all others equal, lies below in both orders."""
    counts = np.arange(batch + 1)
    shares = stats.binom.pmf(counts, batch, 1 / records)

    def density(own):
        def law(x):
            shifted = x[:, None] - (own * counts + others * (batch - counts)) - (1 - batch) * others
            return stats.norm.pdf(shifted, scale=noise) @ shares

        return law

    x = np.linspace(-40.0 - batch, 40.0 + batch, 20_001)
    first, second = density(1.0)(x), density(-1.0)(x)
    loss = MechanismLoss.of(DrawnWithReplacement(noise, batch, records))
    for eps in (0.0, 0.2, 1.0, 3.0):
        bound = float(loss.delta_at(eps))
        reached = max(
            integrate.trapezoid(np.maximum(p - math.exp(eps) * q, 0.0), x)
            for p, q in ((first, second), (second, first))
        )
        assert reached <= bound + 1e-7
        if others == -1.0 and records > batch:  # the strongest: only the number of draws is hidden
            assert reached > 0.8 * bound


def test_composed_draws_against_a_simulated_attack(rng):
    """Fifty steps: losses drawn from the strongest known pair of training sets stay below the bound, and reach a third."""
    noise, batch, records, steps, size = 2.0, 30, 300, 50, 40_000
    loss = MechanismLoss.of(DrawnWithReplacement(noise, batch, records, steps))
    counts = np.arange(12)
    shares = stats.binom.pmf(counts, batch, 1 / records)
    sums = np.zeros(size)
    for _ in range(steps):
        x = rng.normal(2 * rng.binomial(batch, 1 / records, size), noise)
        ratio = np.exp((2 * counts * x[:, None] - 2 * counts**2) * 2 / (2 * noise**2)) @ shares
        sums += np.log(ratio)
    for eps in (0.0, 1.0, 2.5):
        mean, error = simulated(sums, eps)
        bound = float(loss.delta_at(eps))
        assert mean - error <= bound
        assert bound < 3 * mean
    assert delta_between(loss, 1.0)[0] == 0.0  # only a bound is known


# --- Shuffled batches ---------------------------------------------------------------------------------


def shuffled_at_least(noise, batches, passes, delta, other):
    """An epsilon that no smaller one can be proven for shuffled batches at this delta, because an attack reaches it.

    All other gradients are the opposite of the record's, so that the batch with it is moved by 2 clipping norms (in the other
    world by as many as given), and the attacker looks at the largest of a pass's N outputs, P(largest <= x) =
    Phi((x - m)/s) Phi(x/s)^(N-1) (Chua et al. 2024; for several passes Scalable DP-SGD): any events of that.
    """
    levels = np.linspace(-9 * noise, 2 + 9 * noise, 2000)
    shares = []
    for moved in (2.0, other):
        below = stats.norm.logcdf((levels - moved) / noise) + (batches - 1) * stats.norm.logcdf(
            levels / noise
        )
        share = np.maximum(np.diff(np.exp(below), prepend=0.0, append=1.0), 0.0)
        shares.append(tuple(share / share.sum()))
    law = MechanismLoss.of(FinitePair(*shares, times=passes))
    return optimize.bisect(lambda epsilon: delta_between(law, epsilon)[0] - delta, 0.0, 100.0, xtol=1e-9)


@pytest.mark.parametrize("answers", [1, 2, 4, 7, 14, 28])
def test_epsilon_at_the_mass_of_infinite_losses(answers):
    """Answers of mass .28 are for one world only, the others have odds of e^3: at delta .28, epsilon is 3, in any order."""
    certain, none, odds = (0.28 / answers,) * answers, (0.0,) * answers, math.exp(3) / (1 + math.exp(3))
    first, second = (
        (*certain, *none, 0.72 * odds, 0.72 * (1 - odds)),
        (*none, *certain, 0.72 * (1 - odds), 0.72 * odds),
    )
    loss = MechanismLoss.of(FinitePair(first, second))
    assert loss.epsilon_at(0.28) == pytest.approx(3.0, rel=1e-12)
    assert loss.epsilon_at(0.2799999) == math.inf
    twice = MechanismLoss.of(FinitePair(first, second, times=2))  # finite losses of 6 at most
    assert 6.0 <= twice.epsilon_at(1 - 0.72**2) <= 6.0 + 1e-5
    assert twice.epsilon_at(1 - 0.72**2 - 1e-9) == math.inf
    # Above, e^-eps of the likelier ordinary answer's share is missing: .28 + .72 (odds - e^eps (1 - odds)) = .3.
    assert loss.epsilon_at(0.3) == pytest.approx(math.log((odds - 0.02 / 0.72) / (1 - odds)), rel=1e-12)


@pytest.mark.parametrize(
    ("noise", "rate", "steps", "mu"),
    [
        (2.0, 0.01, 400, 2.0),  # four passes: 2 sqrt(4) / 2
        (2.0, 0.01, 401, math.sqrt(5)),  # a fifth one was begun
        (1.0, 1 / 49, 49, 2.0),  # 1 / (1 / 49) is not 49 in doubles
        (1.0, 2 / 9, 8, 2 * math.sqrt(2)),  # batches of 2 of 9, the ninth left out: four steps a pass
        ([1.0, 4.0, 2.0, 2.0], 0.5, None, 2 * math.sqrt(1 + 1 / 4)),  # the two steps of least noise
        (1.0, [0.5, 0.5, 0.25, 0.25], None, 2 * math.sqrt(2)),
        (3.0, 1.0, 9, 2.0),
    ],
)
def test_shuffled_passes_by_hand(noise, rate, steps, mu):
    """The proven mu is that of one Gaussian step for each pass that was begun; half of it for a record zeroed out."""
    training = DPSGD(noise, rate, steps, sampling=ShuffledBatches())
    claim = shuffled_mu(training)
    assert claim.value == pytest.approx(mu, rel=1e-12)
    assert (claim.metric, claim.adjacency, claim.proven) == ("mu", REPLACE_ONE, True)
    zeroed = shuffled_mu(training, adjacency="add-remove")
    assert zeroed.value == pytest.approx(mu / 2, rel=1e-12)
    assert "counts as nothing" in zeroed.note


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
@pytest.mark.parametrize(("noise", "batches", "passes"), [(1.0, 5, 1), (1.5, 4, 3), (0.8, 20, 2)])
def test_a_shuffled_run_lies_between_its_limits(rng, noise, batches, passes, adjacency):
    """The exact loss of shuffled steps, all other gradients opposite, gives a delta between both limits."""
    training = DPSGD(noise, 1 / batches, batches * passes, sampling=ShuffledBatches())
    shifts = (2.0, 0.0 if adjacency is REPLACE_ONE else 1.0)
    sums = np.zeros((2, 100_000))
    for world, _ in itertools.product((0, 1), range(passes)):
        x = rng.normal(0.0, noise, (sums.shape[1], batches))
        x[:, 0] += shifts[world]  # the batches are alike: the record may always be in the first
        first, second = (np.exp((m * x - m * m / 2) / noise**2).mean(axis=1) for m in shifts)
        sums[world] += (1 - 2 * world) * np.log(first / second)
    mu = shuffled_mu(training, adjacency=adjacency).value
    for delta in (1e-3, 0.05):
        low = shuffled_at_least(noise, batches, passes, delta, shifts[1])
        high = float(gaussian_mechanism_epsilon(mu, delta))
        assert low < high
        above = [simulated(world, high) for world in sums]
        below = [simulated(world, low) for world in sums]
        assert max(mean - error for mean, error in above) <= delta
        assert max(mean + error for mean, error in below) >= delta


# --- Refused ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (
            lambda: NoisyQuery("cauchy", 1.0),
            "noise (its density must be log-concave) must be one of 'laplace'",
        ),
        (lambda: NoisyQuery("laplac", 1.0), "did you mean 'laplace'?"),
        (lambda: NoisyQuery("laplace", 0.0), "scale must be above 0, got 0."),
        (lambda: NoisyQuery("laplace", 1.0, -1.0), "sensitivity must be above 0, got -1."),
        (lambda: NoisyQuery("generalised-normal", 1.0, exponent=0.5), "the best attack no threshold"),
        (lambda: NoisyQuery("laplace", 1.0, exponent=1.5), "left out for other noise"),
        (lambda: NoisyQuery("laplace", 1.0, sampling_rate=1.5), "sampling_rate must lie in (0, 1], got 1.5."),
        (lambda: NoisyQuery("laplace", 1.0, times=0), "times must be a whole number of 1 or more, got 0."),
        (lambda: FinitePair((0.5, 0.6), (0.5, 0.5)), "first must sum to 1, got 1.1."),
        (lambda: FinitePair((1.5, -0.5), (0.5, 0.5)), "first must be probabilities, 0 or more, got -0.5"),
        (lambda: FinitePair((0.5, 0.5), (1.0,)), "first has 2"),
        (lambda: FinitePair("yes", (1.0,)), "first must be numbers, got 'yes'."),
        (lambda: DrawnWithReplacement(1.0, 0, 5), "batch_size must be a whole number of 1 or more, got 0."),
        (MechanismLoss.of, "mechanisms must be one or more, got none."),
        (lambda: MechanismLoss.of("laplace"), "mechanism must be auditor.theory.mechanisms.NoisyQuery or"),
        (
            lambda: shuffled_mu(DPSGD(1.0, 0.1, 10)),
            "training must have shuffled batches, got PoissonSampling",
        ),
    ],
)
def test_bad_arguments_are_one_sentence(build, said):
    """An impossible value is refused with its name, the constraint and the value."""
    with pytest.raises(InputError) as refused:
        build()
    assert said in str(refused.value)
