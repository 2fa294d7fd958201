"""Step audits of JAX Privacy: correct trainings, planted bugs, and what is refused."""

from functools import partial

import numpy as np
import pytest

from auditor.core import InputError
from auditor.training import jax_privacy as audited

library = pytest.importorskip("jax_privacy")
jax = pytest.importorskip("jax")
jnp = jax.numpy

NORM, BATCH = 0.7, 8
GENERATOR = np.random.default_rng(0)
FEATURES = jnp.asarray(GENERATOR.normal(size=(64, 20)), jnp.float32)
LABELS = (FEATURES[:, 0] > 0).astype(jnp.float32)


def parameters():
    """About 2,000 numbers in four tensors, one of them with 10."""
    rng = np.random.default_rng(1)
    first, second = (jnp.asarray(rng.normal(0, 0.1, shape), jnp.float32) for shape in ((20, 64), (64, 10)))
    return {"bias": jnp.zeros(64), "first": first, "last": jnp.zeros(10), "second": second}


def loss(values, features, labels):
    """The squared error of a network with one hidden layer."""
    outputs = jnp.tanh(features @ values["first"] + values["bias"]) @ values["second"] + values["last"]
    return jnp.mean((outputs.mean(axis=1) - labels) ** 2)


def gaussian(*, stddev, key=0):
    """The library's privatizer."""
    return library.noise_addition.gaussian_privatizer(stddev=stddev, prng_key=jax.random.key(key))


def changed(privatizer, change):
    """A privatizer whose result a bug changes."""

    def update(sums, state, params=None):
        noised, new = privatizer.update(sums, state, params)
        return change(sums, noised, state, new)

    return privatizer._replace(update=update)


def train(watch, most, *, privatizer=None, compiled=True, **options):
    """Train up to this many steps or until the claim is refuted; return the parameters."""
    grad_fn = watch.clipped_grad(loss, l2_clip_norm=NORM, batch_argnums=(1, 2), **options)
    stated = privatizer or gaussian
    noise = stated(stddev=grad_fn.sensitivity())
    noise = noise if watch is library else watch.privatizer(noise)

    def step(values, state, features, labels):
        sums = grad_fn(values, features, labels)
        noised, state = noise.update(sums[0] if grad_fn.has_aux else sums, state)
        return jax.tree.map(lambda value, each: value - 0.1 * each / BATCH, values, noised), state

    step = jax.jit(step) if compiled else step
    values = parameters()
    state = noise.init(values)
    for number in range(most):
        rows = slice(number % 8 * BATCH, number % 8 * BATCH + BATCH)
        values, state = step(values, state, FEATURES[rows], LABELS[rows])
        jax.block_until_ready(values)
        if watch is not library and watch.refuted:
            break
    return values


def watched():
    """A watch with 32 canaries."""
    return audited(claim=1.0, canaries=32, seed=3)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"return_grad_norms": True, "normalize_by": 8.0, "rescale_to_unit_norm": True},
        {"microbatch_size": 4},
    ],
)
def test_a_correct_training_is_not_refuted(options):
    """Noise as claimed is measured as such, and clipped canaries add one clipping norm each."""
    watch = watched()
    train(watch, 60, **options)
    assert (watch.refuted, watch.steps) == (False, 60)
    noise, _, contribution = watch.audit.measured
    assert np.sqrt((noise**2).mean()) == pytest.approx(1, abs=0.1)
    assert np.nanmean(contribution) == pytest.approx(1, abs=0.1)


def without_noise_in_one(stddev):
    """Noise in every tensor but the one with 10 numbers."""
    return changed(
        gaussian(stddev=stddev), lambda sums, noised, _, new: ({**noised, "last": sums["last"]}, new)
    )


def without_fresh_noise(stddev):
    """The noise of the first step in every step."""
    return changed(gaussian(stddev=stddev), lambda _, noised, old, __: (noised, old))


def scaled_by_another_norm(stddev):
    """Noise for half of the clipping norm."""
    return gaussian(stddev=stddev / NORM * (NORM / 2))


@pytest.mark.parametrize(
    ("privatizer", "most"),
    [
        (lambda stddev: gaussian(stddev=0.5 * stddev), 100),
        (scaled_by_another_norm, 100),
        (without_noise_in_one, 300),
        (without_fresh_noise, 300),
    ],
)
def test_too_little_noise_is_refuted(privatizer, most):
    """Half of the noise, noise for another norm, a tensor without noise and noise that is reused are found."""
    watch = watched()
    train(watch, most, privatizer=privatizer)
    assert watch.refuted
    if privatizer is without_noise_in_one:
        tensors = watch.result().data["tensors"]
        place = np.argmin(tensors["measured"])
        assert tensors["name"][place] == "last"
        assert tensors["measured"][place] < 0.5


def of_the_mean(original, fun, argnums=0, *, l2_clip_norm, batch_argnums=1, **options):
    """Clip the mean of the gradients in place of each of them."""
    plain = original(fun, argnums, l2_clip_norm=1e9, batch_argnums=batch_argnums, **options)

    def wrong(*args):
        records = len(args[np.atleast_1d(batch_argnums)[0]])
        mean = jax.tree.map(lambda total: total / records, plain.fun(*args))
        clipped, _ = library.clipping.clip_pytree(mean, l2_clip_norm)
        return jax.tree.map(lambda each: records * each, clipped)

    return library.clipping.BoundedSensitivityCallable(wrong, l2_clip_norm, has_aux=False)


@pytest.mark.parametrize(("bug", "most"), [("off", 50), ("mean", 300)])
def test_clipping_that_does_not_clip_is_refuted(monkeypatch, bug, most):
    """Clipping that is off, and clipping of the batch's mean with the noise of clipped examples, are found."""
    if bug == "off":
        monkeypatch.setattr(library.clipping, "clip_pytree", lambda tree, **_: (tree, jnp.float32(0)))
    else:
        monkeypatch.setattr(library, "clipped_grad", partial(of_the_mean, library.clipped_grad))
    watch = watched()
    train(watch, most)
    assert watch.refuted


def test_after_detach_training_is_as_without():
    """Functions of a watch that is detached do the same as those of the library."""
    watch = watched()
    train(watch, 2)
    watch.detach()
    values, expected = train(watch, 3), train(library, 3)
    for name, value in expected.items():
        assert np.allclose(values[name], value, atol=1e-6)
    assert watch.steps == 2


def test_several_gradients_in_a_step_have_canaries_once():
    """A step that sums the gradients of two calls is not refuted: the second has no canaries."""
    watch = watched()
    grad_fn = watch.clipped_grad(loss, argnums=(0,), l2_clip_norm=NORM, batch_argnums=(1, 2))
    noise, values = watch.privatizer(gaussian(stddev=NORM)), parameters()
    state = noise.init(values)

    @jax.jit
    def step(state):
        parts = [grad_fn(values, FEATURES[:4], LABELS[:4]) for _ in range(2)]
        return noise.update(jax.tree.map(jnp.add, *parts), state)

    for _ in range(40):
        _, state = jax.block_until_ready(step(state))
    assert np.nanmean(watch.audit.measured[2]) == pytest.approx(1, abs=0.1)


def test_what_cannot_be_audited_is_refused():
    """A transform before clipping, other gradients, and noise that is kept from step to step have a sentence each."""
    watch = watched()
    with pytest.raises(InputError, match="without pre_clipping_transform"):
        watch.clipped_grad(loss, l2_clip_norm=1.0, pre_clipping_transform=lambda tree: tree)
    noise = watch.privatizer(gaussian(stddev=1.0))
    with pytest.raises(InputError, match="gradients of the watch's clipped_grad"):
        noise.update(parameters(), noise.init(parameters()))
    kept = library.noise_addition.matrix_factorization_privatizer(
        library.matrix_factorization.streaming_matrix.prefix_sum(), stddev=1.0, prng_key=jax.random.key(0)
    )
    with pytest.raises(InputError, match="fresh noise in each step"):
        train(watch, 1, privatizer=lambda **_: kept, compiled=False)
