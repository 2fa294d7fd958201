"""Step audits of TensorFlow Privacy: correct trainings, planted bugs, and what is refused."""

from functools import partial

import numpy as np
import pytest

from auditor.core import InputError
from auditor.training import tensorflow_privacy as audited

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
NORM, BATCH = 0.7, 8
FEATURES = np.random.default_rng(0).normal(size=(80, 20)).astype(np.float32)
LABELS = (FEATURES[:, 0] > 0).astype(np.int32)


@pytest.fixture(autouse=True)
def tf(require_extra):
    """TensorFlow, freshly seeded; tests here are skipped without it."""
    require_extra("tensorflow")
    import tensorflow as tf

    tf.keras.utils.set_random_seed(7)
    return tf


def layers(tf):
    """About 2,000 numbers in four tensors, one of them with 10."""
    return [tf.keras.layers.Dense(64, activation="tanh"), tf.keras.layers.Dense(10)]


def optimizer(kind="VectorizedDPKerasSGDOptimizer", noise=1.0, **options):
    """A DP optimizer of tensorflow-privacy."""
    import tensorflow_privacy
    from tensorflow_privacy.privacy.optimizers import dp_optimizer_keras_sparse

    home = dp_optimizer_keras_sparse if "Sparse" in kind else tensorflow_privacy
    return getattr(home, kind)(NORM, noise, learning_rate=0.1, **options)


def compiled(tf, model, optimizer, **options):
    """The model, built and compiled with one loss for each record."""
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
    model.build((None, 20))
    model.compile(optimizer, loss, **options)
    return model


def private(tf, kind="VectorizedDPKerasSGDOptimizer", noise=1.0, **options):
    """A network with a DP optimizer."""
    return compiled(tf, tf.keras.Sequential(layers(tf)), optimizer(kind, noise, **options))


def dp_model(tf, *, noise=1.0, xla=False, bug=None):
    """A DP model with an ordinary optimizer, an older one for XLA, and perhaps with a bug."""
    from tensorflow_privacy.privacy.keras_models.dp_keras_model import DPSequential

    class Model(DPSequential):
        """A DP model with its clipping and its noise changed."""

        def _process_per_example_grads(self, grads):
            return grads if bug in ("no clipping", "mean") else super()._process_per_example_grads(grads)

        def _reduce_per_example_grads(self, stacked_grads):
            if bug == "mean":
                mean = tf.clip_by_norm(tf.reduce_mean(stacked_grads, axis=0), NORM)
                rows = tf.cast(tf.shape(stacked_grads)[0], tf.float32)
                return mean + tf.random.normal(mean.shape, stddev=NORM) / rows
            if bug == "one tensor" and stacked_grads.shape[1:] == (10,):
                return tf.reduce_mean(stacked_grads, axis=0)
            if bug == "reused":
                noise = tf.random.stateless_normal(stacked_grads.shape[1:], (1, 2), stddev=NORM)
                rows = tf.cast(tf.shape(stacked_grads)[0], tf.float32)
                return tf.reduce_mean(stacked_grads, axis=0) + noise / rows
            return super()._reduce_per_example_grads(stacked_grads)

    kind, older = Model if bug else DPSequential, tf.keras.optimizers.legacy
    model = kind(NORM, 0.5 if bug == "half" else noise, use_xla=xla, layers=layers(tf))
    return compiled(tf, model, (older if xla else tf.keras.optimizers).SGD(0.1))


def stopping(tf, watch):
    """A callback that stops the training when the claim is refuted."""

    class Stop(tf.keras.callbacks.Callback):
        """Looks after each batch."""

        def on_train_batch_end(self, *_):
            """Stop, when refuted."""
            self.model.stop_training = watch.refuted

    return Stop()


def fit(tf, model, watch, most):
    """Train for this many steps, or until the claim is refuted."""
    epochs = -(-most * BATCH // len(FEATURES))
    model.fit(FEATURES, LABELS, batch_size=BATCH, epochs=epochs, verbose=0, callbacks=[stopping(tf, watch)])


KINDS = {
    "vectorized": private,
    "one after the other": partial(private, kind="DPKerasAdamOptimizer"),
    "sparse": partial(private, kind="DPSparseKerasSGDOptimizer", num_microbatches=BATCH),
    "model": dp_model,
    "model by XLA": partial(dp_model, xla=True),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_correct_training_is_not_refuted(tf, kind):
    """Noise as claimed is measured as such, and clipped canaries add one clipping norm each."""
    model = KINDS[kind](tf)
    watch = audited(model, claim=1.0, canaries=32, seed=3)
    fit(tf, model, watch, 60)
    assert (watch.refuted, watch.steps) == (False, 60)
    noise, _, contribution = watch.audit.measured
    assert np.sqrt((noise**2).mean()) == pytest.approx(1, abs=0.1)
    assert np.nanmean(contribution) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize(
    ("bug", "most"), [("half", 100), ("one tensor", 300), ("no clipping", 50), ("mean", 300), ("reused", 300)]
)
def test_bugs_of_a_model_are_refuted(tf, bug, most):
    """Half of the noise, a tensor without noise, clipping that does not clip and noise that is reused are found."""
    model = dp_model(tf, bug=bug)
    watch = audited(model, claim=1.0, canaries=32, seed=3)
    fit(tf, model, watch, most)
    assert watch.refuted
    if bug == "one tensor":
        tensors = watch.result().data["tensors"]
        place = np.argmin(tensors["measured"])
        assert tensors["numbers"][place] == 10
        assert tensors["name"][place].endswith("bias")
        assert tensors["measured"][place] < 0.3


@pytest.mark.parametrize("kind", ["VectorizedDPKerasSGDOptimizer", "DPSparseKerasSGDOptimizer"])
def test_half_of_the_noise_of_an_optimizer_is_refuted(tf, kind):
    """Noise is read where it has been added: by the sparse optimizers at the very end."""
    model = private(tf, kind, noise=0.5)
    watch = audited(model, claim=1.0, canaries=32, seed=3)
    fit(tf, model, watch, 100)
    assert watch.refuted


def test_noise_for_another_norm_is_refuted(tf):
    """Noise that is scaled by half of the clipping norm is found."""
    from tensorflow_privacy import GaussianSumQuery
    from tensorflow_privacy.privacy.optimizers.dp_optimizer_keras import GenericDPSGDOptimizer

    query = GaussianSumQuery(NORM, NORM / 2)
    model = compiled(tf, tf.keras.Sequential(layers(tf)), GenericDPSGDOptimizer(query, learning_rate=0.1))
    watch = audited(model, claim=1.0, canaries=32, seed=3)
    fit(tf, model, watch, 100)
    assert watch.refuted


def minimize(tf, model, own, rows=BATCH):
    """One update of a loop of one's own."""
    with tf.GradientTape(persistent=True) as tape:
        losses = tf.keras.losses.sparse_categorical_crossentropy(
            LABELS[:rows], model(FEATURES[:rows]), from_logits=True
        )
    own.minimize(losses, model.trainable_variables, tape=tape)


def test_loops_of_ones_own_are_watched(tf):
    """An eager loop is watched by itself, a compiled step where it is called through `step`."""
    model, own = private(tf), optimizer(num_microbatches=BATCH)
    watch = audited(own, claim=1.0, canaries=8, seed=3)
    minimize(tf, model, own)
    assert watch.steps == 1
    step = watch.step(tf.function(lambda: minimize(tf, model, own)))
    for _ in range(3):
        step()
    assert watch.steps == 4
    with pytest.raises(InputError, match="got 8 microbatches for a batch of 7"):
        minimize(tf, model, own, rows=7)
    with pytest.raises(Exception, match="must be called through step of the watch"):
        tf.function(lambda: minimize(tf, model, own))()
    watch.detach()
    step()
    minimize(tf, model, own)
    assert watch.steps == 4


def test_two_updates_in_a_step_are_refused(tf):
    """Two updates with the same coins would not be one release."""
    model, own = private(tf), optimizer()
    watch = audited(own, claim=1.0, canaries=8, seed=3)

    def twice():
        minimize(tf, model, own)
        minimize(tf, model, own)

    with pytest.raises(InputError, match="one update in each call"):
        watch.step(tf.function(twice))()


@pytest.mark.parametrize("kind", ["vectorized", "sparse", "model", "model by XLA"])
def test_after_detach_training_is_as_before(tf, kind):
    """Classes, settings and updates are those of a model that was never watched."""
    models = [KINDS[kind](tf, noise=0.0) for _ in range(2)]
    before = type(models[1]), type(models[1].optimizer), vars(models[1].optimizer).get("_num_microbatches")
    watch = audited(models[1], claim=1.0, canaries=8, seed=3)
    fit(tf, models[1], watch, 10)
    watch.detach()
    watch.detach()
    after = type(models[1]), type(models[1].optimizer), vars(models[1].optimizer).get("_num_microbatches")
    assert before == after
    models[1].set_weights(models[0].get_weights())
    for model in models:
        tf.keras.utils.set_random_seed(4)
        model.fit(FEATURES, LABELS, batch_size=BATCH, epochs=1, verbose=0, shuffle=False)
    for one, other in zip(*(model.get_weights() for model in models), strict=True):
        assert np.allclose(one, other, atol=1e-6)
    assert watch.steps == 10


def test_what_cannot_be_audited_is_refused(tf):
    """Each training that is not private record by record has a sentence."""

    def ordinary(**options):
        return compiled(tf, tf.keras.Sequential(layers(tf)), tf.keras.optimizers.SGD(0.1), **options)

    refused = {
        "must train by TensorFlow Privacy with fresh Gaussian noise, got SGD": ordinary(),
        "with fresh Gaussian noise, got Adam": tf.keras.optimizers.Adam(),
        "model must be compiled before": tf.keras.Sequential(layers(tf)),
        "got one that accumulates several": optimizer("DPKerasSGDOptimizer", gradient_accumulation_steps=2),
        "compiled without steps_per_execution": ordinary(steps_per_execution=2),
        "compiled without jit_compile": ordinary(jit_compile=True),
    }
    for sentence, thing in refused.items():
        with pytest.raises(InputError, match=sentence):
            audited(thing, claim=1.0)


def test_what_cannot_be_audited_in_a_step_is_refused(tf):
    """Clipping of groups, one loss for all records and ghost clipping have a sentence each."""
    from tensorflow_privacy.privacy.fast_gradient_clipping import layer_registry

    model = private(tf, num_microbatches=2)
    watch = audited(model, claim=1.0)
    with pytest.raises(InputError, match="got 2 microbatches for a batch of 8"):
        fit(tf, model, watch, 1)
    own = optimizer()
    audited(own, claim=1.0)
    with pytest.raises(InputError, match="one value for each record"):
        own.minimize(lambda: tf.reduce_sum(model.trainable_variables[0]), model.trainable_variables)
    registry = layer_registry.make_default_layer_registry()
    inputs = tf.keras.Input((20,))
    from tensorflow_privacy.privacy.keras_models.dp_keras_model import DPModel

    ghost = DPModel(
        NORM,
        1.0,
        use_xla=False,
        layer_registry=registry,
        inputs=inputs,
        outputs=tf.keras.layers.Dense(10)(inputs),
    )
    ghost.compile(tf.keras.optimizers.SGD(0.1), "mse")
    with pytest.raises(InputError, match="leave layer_registry out"):
        audited(ghost, claim=1.0)
