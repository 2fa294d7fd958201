"""Slow, obvious versions of what the package computes, written from the definitions alone."""

import itertools
import math
from functools import cache

import mpmath
import numpy as np
from scipy import integrate, optimize, stats
from scipy.special import ndtr


def epsilon_of_rates(fpr, tpr, delta):
    """Epsilon* of arrays of rates, straight from Definition 2 of Negoescu et al. 2024."""
    fpr, tpr = np.asarray(fpr, float), np.asarray(tpr, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [
            (tpr - delta) / fpr,
            (1 - fpr - delta) / (1 - tpr),
            (1 - tpr - delta) / (1 - fpr),
            (fpr - delta) / tpr,
        ]
    return math.log(max(1.0, *(float(np.nanmax(ratio)) for ratio in ratios)))


def epsilon_on_a_grid(member, nonmember, delta, clip, points=1_000_000):
    """The paper's procedure: two million thresholds at equally spaced quantiles of both fitted laws."""
    levels = (np.arange(points) + 0.5) / points
    laws = [stats.norm(*law) for law in (member, nonmember)]
    thresholds = np.concatenate([law.ppf(levels) for law in laws])
    tpr, fpr = laws[0].cdf(thresholds), laws[1].cdf(thresholds)
    inside = (tpr > clip) & (tpr < 1 - clip) & (fpr > clip) & (fpr < 1 - clip)
    return epsilon_of_rates(fpr[inside], tpr[inside], delta)


def _bisected(falling, low, high, steps=110):
    """Root of a falling function, by halving; 0 where it is never positive."""
    if falling(low) <= 0:
        return float(low)
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return float(low)


def gaussian_mechanism_delta(mu, epsilon):
    """Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu), mu being sensitivity/noise (Balle and Wang 2018, Theorem 8), in mpmath."""
    with mpmath.workdps(60):
        mu, epsilon = mpmath.mpf(mu), mpmath.mpf(epsilon)
        second = mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)
        return mpmath.ncdf(mu / 2 - epsilon / mu) - second


def gaussian_mechanism_epsilon(mu, delta):
    """Epsilon of the Gaussian mechanism, by bisection in mpmath."""
    with mpmath.workdps(40):
        mu = mpmath.mpf(mu)
        return _bisected(
            lambda epsilon: gaussian_mechanism_delta(mu, epsilon) - delta,
            mpmath.mpf(0),
            20 + mu * mu + 10 * mu,
        )


def fixed_size_delta(noise, rate, epsilon):
    """Return p delta(log(1 + (e^eps - 1)/p)) of the plain Gaussian at mu = 2/s: one step of a fixed size, a record replaced."""
    mu, shifted = 2 / noise, np.log1p(np.expm1(epsilon) / rate)
    return rate * (ndtr(mu / 2 - shifted / mu) - np.exp(shifted) * ndtr(-mu / 2 - shifted / mu))


@cache
def _losses_of_steps(kinds, mirrored, cells):
    """The losses of all steps and their masses: the law of each step on a grid, composed by its Fourier transform."""
    laws = []
    for noise, rate, low, high, steps in kinds:
        x = np.linspace((low + high) / 2 if mirrored else -10 * noise - 2, 10 * noise + 2, 40_001)
        up, down = (1 - rate + rate * np.exp((2 * x * at - at**2) / (2 * noise**2)) for at in (high, low))
        bell, loss = stats.norm.pdf(x, scale=noise) * (x[1] - x[0]), np.log(up / down)
        if mirrored:  # the positive losses, their mirror image, and 0 for the rest
            bell[0] /= 2
            weight, loss = np.concatenate([bell * up, bell * down]), np.concatenate([loss, -loss])
            weight, loss = np.append(weight, 1 - weight.sum()), np.append(loss, 0.0)
        else:
            weight = bell * up / (bell @ up)
        laws.append((weight, loss, steps))
    reach = 12 * math.sqrt(sum(steps * (weight @ loss**2) for weight, loss, steps in laws))
    reach = max(reach, *(1.05 * np.abs(loss[weight > 1e-18]).max() for weight, loss, _ in laws))
    transform = 1.0
    for weight, loss, steps in laws:
        # Each mass goes to the two cells around it so that its mean stays: the error is of second order in the step.
        place = loss * cells / (2 * reach)
        floor = np.floor(place).astype(int)
        law = np.bincount(floor % cells, weight * (floor + 1 - place), cells)
        law += np.bincount((floor + 1) % cells, weight * (place - floor), cells)
        transform = transform * np.fft.rfft(law) ** steps
    return np.fft.fftfreq(cells) * 2 * reach, np.fft.irfft(transform, cells)


def composed_delta(*kinds, epsilon=0.0, mirrored=False, cells=2**20):
    """Delta of several kinds of steps, each (noise, rate, low, high, how many).

    A step draws (1 - p) N(0, s^2) + p N(high, s^2) against the same with ``low`` in its place; ``mirrored``, the positive
    losses of that, their mirror image, and 0 (batches of a fixed size: 0 and 2).
    """
    losses, masses = _losses_of_steps(kinds, mirrored, cells)
    return float(masses @ -np.expm1(np.minimum(epsilon - losses, 0.0)))


def best_threshold_epsilon(member, nonmember, delta, clip=0.0):
    """Epsilon* of two normals: a dense scan of every branch, then a bounded search around its best point, in mpmath."""
    (m1, s1), (m0, s0) = member, nonmember
    low = min(m1 - 12 * s1, m0 - 12 * s0)
    high = max(m1 + 12 * s1, m0 + 12 * s0)
    if clip:
        z = stats.norm.isf(clip)
        low, high = max(m1 - z * s1, m0 - z * s0), min(m1 + z * s1, m0 + z * s0)

    def branches(q):
        zs = [(q - m1) / s1, (q - m0) / s0]
        with np.errstate(divide="ignore", invalid="ignore"):
            tails = [
                (stats.norm.logcdf(zs[0]), stats.norm.logcdf(zs[1])),
                (stats.norm.logsf(zs[1]), stats.norm.logsf(zs[0])),
                (stats.norm.logsf(zs[0]), stats.norm.logsf(zs[1])),
                (stats.norm.logcdf(zs[1]), stats.norm.logcdf(zs[0])),
            ]
            return [np.log(np.maximum(np.exp(p) - delta, 0)) - q_ for p, q_ in tails]

    grid = np.linspace(low, high, 40_001)
    best = 0.0
    for index in range(4):
        values = np.nan_to_num(branches(grid)[index], nan=-np.inf, neginf=-np.inf)
        at = int(np.argmax(values))
        left, right = grid[max(at - 1, 0)], grid[min(at + 1, grid.size - 1)]
        found = optimize.minimize_scalar(
            lambda q, index=index: -branches(np.array(q))[index],
            bounds=(left, right),
            method="bounded",
            options={"xatol": 1e-13},
        )
        best = max(best, values[at], -float(found.fun))
    return best


def exact_binomial_upper(k, n, alpha):
    """Clopper-Pearson upper limit by solving P[X <= k] = alpha in mpmath."""
    if k >= n:
        return 1.0
    with mpmath.workdps(40):

        def surplus(p):
            return (
                mpmath.fsum(mpmath.binomial(n, j) * p**j * (1 - p) ** (n - j) for j in range(k + 1)) - alpha
            )

        return _bisected(surplus, mpmath.mpf(k) / n, mpmath.mpf(1))


def brute_force_curve(member, nonmember):
    """FPR and TPR at every threshold that the data can tell apart, by counting."""
    thresholds = np.unique(np.concatenate([member, nonmember]))
    fpr = np.array([np.mean(nonmember <= q) for q in thresholds])
    tpr = np.array([np.mean(member <= q) for q in thresholds])
    return fpr, tpr


def randomised_response_delta(epsilon, *, steps, total):
    """Delta at a total epsilon of randomised responses, the worst steps there are: a sum over the binomial count."""
    truthful = np.arange(steps + 1)
    mass = stats.binom.pmf(truthful, steps, 1 / (1 + math.exp(-epsilon)))
    return float(mass @ -np.expm1(np.minimum(0.0, total - (2 * truthful - steps) * epsilon)))


def steinke_p_value(m, r, v, epsilon, delta):
    """Theorem 5.2 of Steinke, Nasr and Jagielski 2023, every term of the maximum written out."""
    w = stats.binom(r, 1 / (1 + math.exp(-epsilon)))
    worst = max(
        ((w.cdf(v - 1) - (w.cdf(v - i - 1) if v - i >= 1 else 0.0)) / i for i in range(1, v + 1)), default=0.0
    )
    return min(1.0, w.sf(v - 1) + 2 * m * delta * worst)


def zcdp_epsilon(rho, delta):
    """Smallest epsilon at which rho-zCDP allows this delta: Canonne, Kamath and Steinke 2020, Proposition 7, in mpmath.

    delta = inf over a > 1 of exp((a - 1)(a rho - eps)) / (a - 1) (1 - 1/a)^a, the best order by a scan and then by halving.
    """

    def log_delta(eps):
        def at(log_excess):
            a = 1 + mpmath.exp(log_excess)
            return (a - 1) * (a * rho - eps) - log_excess + a * mpmath.log(1 - 1 / a)

        best = min(range(-40, 60), key=lambda place: at(mpmath.mpf(place) / 4))
        low, high = (mpmath.mpf(best + side) / 4 for side in (-1, 1))
        for _ in range(60):
            third = (high - low) / 3
            low, high = (low, high - third) if at(low + third) < at(high - third) else (low + third, high)
        return at((low + high) / 2)

    with mpmath.workdps(30):
        return _bisected(
            lambda eps: log_delta(eps) - mpmath.log(delta), mpmath.mpf(0), 20 + 10 * rho, steps=60
        )


def compositions(size, cells):
    """All ways to spread so many records over so many cells."""
    if cells == 1:
        return [(size,)]
    return [(first, *rest) for first in range(size + 1) for rest in compositions(size - first, cells - 1)]


def worst_interleavings(members, nonmembers, fpr, tpr):
    """Yield every order of two small groups with its probability, non-members uniform and members following a curve.

    The curve is straight between its corners: inside a cell both groups are uniform, so that all orders of those in it
    are equally likely. Members in the jump at 0 are below all non-members. Yields (probability, members, non-members).
    """
    width, mass = np.diff(fpr), np.diff(tpr)
    for ins in compositions(members, mass.size):
        for outs in compositions(nonmembers, width.size):
            chance = stats.multinomial.pmf(ins, members, mass) * stats.multinomial.pmf(
                outs, nonmembers, width
            )
            if chance == 0:
                continue
            cells = [list(itertools.combinations(range(a + b), a)) for a, b in zip(ins, outs, strict=True)]
            share = chance / math.prod(map(len, cells))
            for chosen in itertools.product(*cells):
                inside, outside = [], []
                for cell, (places, a, b) in enumerate(zip(chosen, ins, outs, strict=True)):
                    at = [cell + (place + 1) / (a + b + 1) for place in range(a + b)]
                    inside += [at[place] for place in places]
                    outside += [at[place] for place in range(a + b) if place not in places]
                yield share, inside, outside


def separated_epsilon(size, alpha):
    """The epsilon whose least favourable law puts all of so many members below as many others with chance alpha.

    The law of the smallest of the others, and the chance that all members lie below it, integrated; at delta 0.
    """

    def chance(epsilon):
        def density(s):
            allowed = min(1.0, math.exp(epsilon) * s / size, 1 - math.exp(-epsilon) * (1 - s / size))
            return np.power(1 - s / size, size - 1) * np.power(allowed, size)

        corner = size / (1 + math.exp(epsilon))
        ends = [0.0, corner / 2, corner, 2 * corner, 10 * corner, size]
        return sum(
            integrate.quad(density, *pair, limit=400)[0]
            for pair in itertools.pairwise(ends)
            if pair[0] < pair[1]
        )

    return optimize.brentq(lambda epsilon: chance(epsilon) - alpha, math.log(size / 9), math.log(size))


def chance_at_a_rank(rank, hits, *, members, nonmembers, allowed):
    """E P[Bin(members, T(Y)) >= hits], Y the (rank + 1)-th smallest of so many uniforms: on a dense grid of log-odds."""
    law = stats.beta(rank + 1, nonmembers - rank)
    ends = np.log([law.ppf(1e-14), law.isf(1e-25)]) - np.log1p([-law.ppf(1e-14), -law.isf(1e-25)])
    at = np.linspace(*ends, 40_001)
    y = 1 / (1 + np.exp(-at))
    density = np.exp(law.logpdf(y)) * y * (1 - y)
    return float(integrate.trapezoid(density * stats.binom.sf(hits - 1, members, allowed(y)), at))


def dp_accounting_law(noise, rate, steps, *, spacing=1e-4):
    """The privacy loss distribution of added or removed records by dp-accounting, rounded up; old and new versions."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    step = pld.from_gaussian_mechanism(noise, sampling_prob=rate, value_discretization_interval=spacing)
    return step.self_compose(steps)
