"""Likelihood ratios of shadow models against scipy's densities, record by record, and shadow models that tell membership."""

import numpy as np
import pytest
from scipy import optimize, special, stats

from auditor.core import InputError, Losses
from auditor.scores import Gaussian, Population, References, StudentT, difficulty, likelihood_ratio, rmia


def drawn(rng, n=40, models=8, *, uneven=True):
    """Log-odds losses of n records, their shadow losses, and which models saw each: three to five, or four, of eight."""
    width = np.exp(0.7 * rng.normal(size=(n, 1)))
    inside = rng.random((n, models)).argsort(axis=1) < (rng.integers(3, 6, (n, 1)) if uneven else 4)
    shadow = 3 * rng.normal(size=(n, 1)) + width * rng.normal(size=(n, models)) - inside
    return 3 * rng.normal(size=n), shadow, inside


def scored(loss, shadow, inside, step=likelihood_ratio, **options):
    """The score of each record, larger for likelier members, with the first half as the members."""
    half = loss.size // 2
    given = {
        "member": shadow[:half],
        "nonmember": shadow[half:],
        "trained_on": (inside[:half], inside[half:]),
    }
    scale = options.pop("scale", "log-odds")
    moved = step(References(**given), **options)(Losses(loss[:half], loss[half:], scale=scale))
    return -np.concatenate([moved.member, moved.nonmember])


def prior(parts):
    """The degrees of freedom and the variance whose moments of log s^2 are those of the records (Smyth 2004, Section 6.2)."""
    half = np.array([(part.size - 1) / 2 for part in parts])
    logs = np.array([np.log(part.var(ddof=1)) for part in parts]) - special.digamma(half) + np.log(half)
    excess = np.var(logs) - special.polygamma(1, half).mean()
    nu = 2 * optimize.brentq(lambda x: special.polygamma(1, x) - excess, 1e-3, 1e6)
    return nu, np.exp(logs.mean() + special.digamma(nu / 2) - np.log(nu / 2))


def density(x, parts, law):
    """The log-density of each x by scipy."""
    if isinstance(law, Gaussian):
        own = [part.var(ddof=1) for part in parts]
        together = sum(np.square(part - part.mean()).sum() for part in parts) / sum(
            part.size - 1 for part in parts
        )
        widths = [np.sqrt(together if law.pooled else variance) for variance in own]
        return [
            stats.norm.logpdf(a, part.mean(), width) for a, part, width in zip(x, parts, widths, strict=True)
        ]
    nu, variance = prior(parts)
    found = []
    for a, part in zip(x, parts, strict=True):
        freedom = nu + part.size - 1
        scale = (nu * variance + np.square(part - part.mean()).sum()) / freedom * (1 + 1 / part.size)
        found.append(stats.t.logpdf(a, freedom, part.mean(), np.sqrt(scale)))
    return found


@pytest.mark.parametrize("law", [StudentT(), Gaussian(), Gaussian(pooled=False)])
@pytest.mark.parametrize("scale", ["log-odds", "cross-entropy"])
def test_the_ratio_is_that_of_scipys_densities(rng, law, scale):
    """Every law is the difference of two log-densities of the log-odds, whatever scale the losses have."""
    loss, shadow, inside = drawn(rng)
    expected = np.subtract(
        *(
            density(loss, [row[mask] for row, mask in zip(shadow, masks, strict=True)], law)
            for masks in (inside, ~inside)
        )
    )
    if scale == "cross-entropy":
        loss, shadow = np.log1p(np.exp(loss)), np.log1p(np.exp(shadow))
    np.testing.assert_allclose(
        scored(loss, shadow, inside, law=law, scale=scale), expected, rtol=1e-8, atol=1e-8
    )


def test_the_student_density_is_the_integral_over_the_prior(rng):
    """The predictive density is that of the next loss, integrated over mean and variance by brute force, given the others."""
    part, x, nu, s2 = rng.normal(size=3), np.array([0.3, 2.0]), 5.0, 1.7
    variance = np.geomspace(1e-2, 1e4, 301)
    mean = np.linspace(-60, 60, 1201)[:, None]
    weight = (
        stats.invgamma.pdf(variance, nu / 2, scale=nu * s2 / 2) * variance
    )  # on the logarithm's even grid
    for item in part:
        weight = weight * stats.norm.pdf(item, mean, np.sqrt(variance))
    expected = [(weight * stats.norm.pdf(item, mean, np.sqrt(variance))).sum() / weight.sum() for item in x]
    scale = np.sqrt((nu * s2 + np.square(part - part.mean()).sum()) / (nu + 2) * (1 + 1 / 3))
    np.testing.assert_allclose(stats.t.pdf(x, nu + 2, part.mean(), scale), expected, rtol=1e-5)


def test_equal_variances_make_the_student_law_normal(rng):
    """Where variances differ less than by chance the prior is a point, and the law a normal with the pooled variance."""
    signs = np.tile([1.0, -1.0, 1.0, -1.0], (30, 2)) * rng.choice([-1, 1], (30, 1))
    loss, inside = rng.normal(size=30), np.tile([True] * 4 + [False] * 4, (30, 1))
    scores = scored(loss, signs - 0.5 * inside, inside)
    width = np.sqrt(4 / 3 * (1 + 1 / 4))
    expected = stats.norm.logpdf(loss, -0.5, width) - stats.norm.logpdf(loss, 0, width)
    np.testing.assert_allclose(scores, expected, atol=1e-9)


def test_online_rmia_orders_by_the_mean_of_both_kinds_of_models(rng):
    """The order is that of P over the mean of the mean probabilities with and without the record (Algorithm 1)."""
    loss, shadow, inside = drawn(rng)
    held, own = rng.normal(size=25), rng.normal(size=(25, 8))
    population = Population(loss=held, reference=own, scale="log-odds")
    score = scored(loss, shadow, inside, rmia, population=population, gamma=1.2)
    chance = special.expit(-shadow)
    means = [(chance * mask).sum(axis=1) / mask.sum(axis=1) for mask in (inside, ~inside)]
    ratio = special.expit(-loss) / ((means[0] + means[1]) / 2)
    assert np.array_equal(np.argsort(score), np.argsort(ratio))
    share = np.mean(ratio[:, None] / (special.expit(-held) / special.expit(-own).mean(axis=1)) > 1.2, axis=1)
    assert np.all(np.abs(share - np.clip(score, 0, 1)) <= 1 / 25 + 1e-12)


def test_as_many_models_count_for_every_record_of_a_balanced_draw(rng):
    """Where each record is in exactly half of all models, the counts that tell the target's membership are made equal."""
    _, shadow, inside = drawn(rng, models=8, uneven=False)
    order = np.argsort(~inside[:, 0], kind="stable")  # model 0 is the target
    keep = inside[order, 1:]
    half = int(inside[:, 0].sum())
    losses = Losses(rng.normal(size=half), rng.normal(size=40 - half))
    at = References(
        shadow[order[:half], 1:], shadow[order[half:], 1:], trained_on=(keep[:half], keep[half:])
    ).shadows(losses)
    assert set(keep[:half].sum(axis=1)) == {3}
    assert set(keep[half:].sum(axis=1)) == {4}
    assert {*at.inside.sum(axis=1), *at.outside.sum(axis=1)} == {3}
    assert not (at.inside & ~keep).any()
    assert not (at.outside & keep).any()
    assert (keep & ~at.inside).any(axis=0).sum() > 3  # not always the same model


BLUNDERS = {
    "must not have the target among them, got its losses as model 2": lambda x, s, m: (0 * x + s[:, 2], s, m),
    "on average; leave out models": lambda x, s, m: (
        x,
        s,
        np.where(np.arange(40)[:, None] < 20, m | (np.arange(8) < 5), m),
    ),
    "got 1 of 40 records without": lambda x, s, m: (x, s, m & (np.arange(40) != 7)[:, None]),
    "trained_on must be true or false": lambda x, s, m: (x, s, m + 0.5),
}


@pytest.mark.parametrize("words", BLUNDERS)
def test_shadow_models_that_would_tell_membership_are_refused(rng, words):
    """The target among its shadows, models trained on its members, and records without one kind of models."""
    with pytest.raises(InputError, match=words):
        scored(*BLUNDERS[words](*drawn(rng)))


def test_what_a_score_cannot_use_is_refused(rng):
    """Difficulty wants models that saw no record, ratios want both kinds, own variances want two of each."""
    loss, shadow, inside = drawn(rng)
    with pytest.raises(InputError, match="difficulty needs models that were trained on neither group"):
        scored(loss, shadow, inside, difficulty)
    with pytest.raises(InputError, match=r"say which were with References\(trained_on"):
        likelihood_ratio(References(shadow[:20], shadow[20:]))(Losses(loss[:20], loss[20:], scale="log-odds"))
    with pytest.raises(InputError, match="a single loss of 40 of 40 records"):
        scored(loss, shadow[:, :2], np.tile([True, False], (40, 1)))
    one = inside & (np.arange(40) != 7)[:, None] | np.eye(40, 8, -7, dtype=bool)
    with pytest.raises(
        InputError, match=r"1 of 40 records; add shadow models, or give law=auditor.scores.Student"
    ):
        scored(loss, shadow, one, law=Gaussian(pooled=False))


def test_ids_align_what_models_were_trained_on(rng):
    """Shuffled rows with ids give the scores of the rows in order."""
    loss, shadow, inside = drawn(rng)
    order = rng.permutation(20)
    given = {"trained_on": (inside[:20][order], inside[20:]), "id": (order, np.arange(20, 40))}
    losses = Losses(loss[:20], loss[20:], id=(np.arange(20), np.arange(20, 40)), scale="log-odds")
    moved = likelihood_ratio(References(shadow[:20][order], shadow[20:], **given))(losses)
    np.testing.assert_allclose(-moved.member, scored(loss, shadow, inside)[:20])
