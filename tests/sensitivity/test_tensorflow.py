"""The TensorFlow tracker against gradients taken one by one, and training without it."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from command_line import printed

from auditor.core import InputError
from auditor.sensitivity import (
    Approximate,
    Columns,
    TensorFlowSensitivityTracker,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
VALUES = (-1.0, 0.0, 0.5, 2.0)


@pytest.fixture(autouse=True)
def tf(require_extra):
    """TensorFlow, freshly seeded; tests here are skipped without it."""
    require_extra("tensorflow")
    import tensorflow as tf

    tf.keras.utils.set_random_seed(7)
    return tf


def layers(tf):
    """A small network with dropout."""
    return [
        tf.keras.layers.Dense(8, activation="tanh"),
        tf.keras.layers.Dropout(0.5),
        tf.keras.layers.Dense(1),
    ]


def network(tf, width=5):
    """The network, built."""
    model = tf.keras.Sequential(layers(tf))
    model.build((None, width))
    return model


def data(n=12):
    """Toy features, and whether the first is positive."""
    features = np.random.default_rng(3).normal(size=(n, 5)).astype(np.float32)
    return features, (features[:, :1] > 0).astype(np.float32)


def losses(tf):
    """One cross-entropy for each record."""
    return tf.keras.losses.BinaryCrossentropy(from_logits=True, reduction=tf.losses.Reduction.NONE)


def slowly(tf, model, features, labels, *, values, norm):
    """The largest distance by one tape for each record and value of the first feature, and every pair of values."""
    largest = 0.0
    for record, label in zip(features, labels, strict=True):
        gradients = []
        for value in values:
            completed = record.copy()
            completed[0] = value
            with tf.GradientTape() as tape:
                loss = losses(tf)(label[None], model(completed[None], training=False))
            parts = tape.gradient(loss, model.trainable_variables)
            flat = np.concatenate([part.numpy().ravel() for part in parts]).astype(np.float64)
            gradients.append(flat / max(1.0, np.linalg.norm(flat) / norm))
        largest = max(largest, *(np.linalg.norm(a - b) for a, b in itertools.combinations(gradients, 2)))
    return largest


@pytest.mark.parametrize("norm", [0.05, 100.0])
def test_gradients_agree_with_one_tape_each(tf, monkeypatch, norm):
    """The distance is the one that a tape gives record by record and value by value, in parts or whole."""
    model, (features, labels) = network(tf), data()
    expected = slowly(tf, model, features, labels, values=VALUES, norm=norm)
    for most in (2**25, 1):
        monkeypatch.setattr("auditor.training.tracker._MOST", most)
        tracker = tracker_of(tf, model, clipping_norm=norm)
        tracker.observe(features, labels)
        tracker.end_step()
        tracker.observe(features[:0], labels[:0])
        tracker.end_step()
        assert tracker.sensitivities == pytest.approx([expected, 0.0], rel=3e-6)


def fit(tf, *, kind, tracked):
    """Train by `fit` with tensorflow-privacy; return the weights, a draw of what follows, and the tracker."""
    from tensorflow_privacy.privacy.keras_models.dp_keras_model import DPSequential

    tf.keras.utils.set_random_seed(5)
    if kind == "optimizer":
        model = private(tf)
    else:
        model = DPSequential(0.7, 1.3, use_xla=False, layers=layers(tf))
        model.build((None, 5))
        model.compile(
            optimizer=tf.keras.optimizers.SGD(0.3), loss=tf.keras.losses.BinaryCrossentropy(from_logits=True)
        )
    tracker = None
    if tracked:
        tracker = tracker_of(tf, model)
        tracker.attach()
    features, labels = data()
    before = [weight.copy() for weight in model.get_weights()]
    model.fit(features, labels, batch_size=4, epochs=2, verbose=0, shuffle=False)
    return before, model, float(tf.random.normal(())), tracker


@pytest.mark.parametrize("kind", ["optimizer", "model"])
def test_fit_is_the_same_bit_for_bit(tf, kind):
    """With and without the tracker `fit` gives the same weights and leaves the same random state, with R for each step."""
    _, plain, draw, _ = fit(tf, kind=kind, tracked=False)
    before, other, other_draw, tracker = fit(tf, kind=kind, tracked=True)
    assert all(np.array_equal(a, b) for a, b in zip(plain.get_weights(), other.get_weights(), strict=True))
    assert draw == other_draw
    assert tracker.sensitivities.shape == (6,)
    # The first batch was seen at the weights that training started from, not at those it led to.
    features, labels = data()
    other.set_weights(before)
    expected = slowly(tf, other, features[:4], labels[:4], values=VALUES, norm=0.7)
    assert tracker.sensitivities[0] == pytest.approx(expected, rel=3e-6)
    training = tracker.training(sampling_rate=1 / 3)
    assert training.noise_multiplier == pytest.approx(1.3, rel=1e-6)
    assert (training.steps, training.sampling_rate) == (6, 1 / 3)
    shift = np.linalg.norm(tracker.sensitivities) / (0.7 * training.noise_multiplier)
    assert tracker.claims(training)[0].value == pytest.approx(1 - math.erf(shift / 3 / (2 * math.sqrt(2))))
    assert "do not publish" in tracker.claims(training)[0].note


ONE_THREAD = """
import sys
import tensorflow as tf
tf.config.threading.set_inter_op_parallelism_threads(1)
sys.path[:0] = sys.argv[1:]
from sensitivity.test_tensorflow import fit
print(len(fit(tf, kind="optimizer", tracked=True)[3].sensitivities))
"""


@pytest.mark.usefixtures("tf")
def test_fit_ends_where_tensorflow_has_one_thread():
    """`fit` does not wait for itself on a machine of one core, where TensorFlow runs one operation at a time."""
    assert printed(ONE_THREAD, Path(__file__).parents[1]) == "6"


def test_bad_input_is_one_sentence(tf):
    """A model without weights or with BatchNormalization, or not trained by DP-SGD, is refused by name."""
    mixed = tf.keras.Sequential([tf.keras.layers.BatchNormalization()])
    mixed.build((None, 5))
    for model, sentence in (
        ("model", "must be a Keras model, got str"),
        (tf.keras.Sequential(layers(tf)), "must be built"),
        (mixed, "no BatchNormalization"),
    ):
        with pytest.raises(InputError, match=sentence):
            tracker_of(tf, model)
    model = network(tf)
    tracker = tracker_of(tf, model)
    with pytest.raises(InputError, match="compiled before"):
        tracker.attach()
    for choice, sentence in (
        ({"jit_compile": True}, "without jit_compile"),
        ({"steps_per_execution": 3}, "without steps_per_execution, got 3"),
        ({}, "tensorflow-privacy with the clipping norm"),
    ):
        model.compile(optimizer="sgd", loss=losses(tf), **choice)
        with pytest.raises(InputError, match=sentence):
            tracker.attach()
    with pytest.raises(InputError, match="got none; describe any other run with DPSGD"):
        tracker.training(sampling_rate=0.1)
    features, labels = data(2)
    for batch, sentence in (
        ((features, labels[:1]), r"one batch on the first axis, got shapes \(2, 5\) and \(1, 1\)"),
        ((features[:, :3], labels), "one record at a time.*got from model or loss_fn"),
        ((features, ["a", "b"]), "labels must be a tensor or an array of numbers, got list"),
        ((np.full_like(features, np.nan), labels), "finite"),
    ):
        with pytest.raises(InputError, match=sentence):
            tracker.observe(*batch)
    model.trainable = False
    with pytest.raises(InputError, match="a parameter that is trained, got none"):
        tracker_of(tf, model).observe(features, labels)


def test_microbatches_of_several_records_are_refused(tf):
    """Clipping by groups of records is not clipping record by record, and stops the training."""
    from tensorflow_privacy import DPKerasSGDOptimizer

    model = network(tf)
    optimizer = DPKerasSGDOptimizer(
        l2_norm_clip=1.0, noise_multiplier=1.0, num_microbatches=2, learning_rate=0.1
    )
    model.compile(optimizer=optimizer, loss=losses(tf))
    tracker_of(tf, model, clipping_norm=1.0).attach()
    with pytest.raises(InputError, match="2 microbatches for a batch of 4"):
        model.fit(*data(), batch_size=4, epochs=1, verbose=0)


def private(tf, *, norm=0.7, optimizer=None):
    """The network, compiled for DP-SGD, and its optimizer."""
    import tensorflow_privacy

    model = network(tf)
    kind = getattr(tensorflow_privacy, optimizer or "DPKerasSGDOptimizer")
    model.compile(optimizer=kind(l2_norm_clip=norm, noise_multiplier=1.3, learning_rate=0.3), loss=losses(tf))
    return model


def tracker_of(tf, model, **choices):
    """A tracker of the network with the clipping norm 0.7."""
    settings = {"completions": Columns(0, VALUES), "clipping_norm": 0.7, **choices}
    return TensorFlowSensitivityTracker(model, losses(tf), **settings)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_detaching_leaves_the_model_as_it_was(tf, order):
    """Two trackers, each attached once, see every step; detached in any order, they leave the model its own training step."""
    model = private(tf)
    assert "make_train_function" not in vars(model)
    trackers = [tracker_of(tf, model), tracker_of(tf, model, distance=Approximate())]
    for tracker in trackers:
        tracker.detach()
        tracker.attach()
        with pytest.raises(InputError, match="attach must be called once"):
            tracker.attach()
    model.fit(*data(), batch_size=4, verbose=0)
    full, approximate = (tracker.sensitivities for tracker in trackers)
    assert full.shape == approximate.shape == (3,)
    assert (full <= approximate * (1 + 1e-6)).all()
    trackers[order[0]].detach()
    model.fit(*data(), batch_size=4, verbose=0)
    trackers[order[1]].detach()
    model.fit(*data(), batch_size=4, verbose=0)
    assert [len(trackers[place].sensitivities) for place in order] == [3, 6]
    if order == (1, 0):
        assert "make_train_function" not in vars(model)


def test_fit_may_go_on_with_other_data(tf):
    """A dataset of whole batches, then arrays whose last batch is smaller: every batch is observed."""
    model = private(tf)
    tracker = tracker_of(tf, model)
    tracker.attach()
    model.fit(tf.data.Dataset.from_tensor_slices(data()).batch(4, drop_remainder=True), verbose=0)
    model.fit(*data(), batch_size=5, verbose=0)
    assert tracker.sensitivities.shape == (3 + 3,)


def test_the_clipping_norm_is_compared_wherever_it_is_used(tf):
    """An own loop with another norm, and a model that was compiled again after attach, are refused."""
    model = private(tf, norm=7.0)
    tracker = tracker_of(tf, model)
    tracker.observe(*data())
    tracker.end_step()
    with pytest.raises(InputError, match=r"is tracked, 0.7, got 7"):
        tracker.training(sampling_rate=0.2)
    other = private(tf)
    tracker = tracker_of(tf, other)
    tracker.attach()
    other.compile(optimizer=model.optimizer, loss=losses(tf))
    with pytest.raises(InputError, match=r"is tracked, 0.7, got 7"):
        other.fit(*data(), batch_size=4, verbose=0)
    assert len(tracker.sensitivities) == 0


@pytest.mark.parametrize("kind", ["VectorizedDPKerasSGDOptimizer", "DPKerasAdamOptimizer"])
def test_other_optimizers_of_tensorflow_privacy(tf, kind):
    """The clipping norm and the noise are read from DP optimizers of other kinds too."""
    model = private(tf, optimizer=kind)
    tracker = tracker_of(tf, model)
    tracker.attach()
    tracker.observe(*data())
    tracker.end_step()
    assert tracker.training(sampling_rate=0.2).noise_multiplier == pytest.approx(1.3, rel=1e-6)


def test_a_random_network_is_refused(tf):
    """A layer that is random at prediction would be mistaken for a distance."""

    class Noisy(tf.keras.layers.Layer):
        def call(self, x):
            return x + tf.random.normal(tf.shape(x))

    model = tf.keras.Sequential([Noisy(), tf.keras.layers.Dense(1)])
    model.build((None, 5))
    with pytest.raises(InputError, match="random at prediction"):
        tracker_of(tf, model).observe(*data())


def test_fit_is_checked_before_its_first_batch(tf):
    """Columns that the features have not, sample weights and several inputs stop before the first update, with the sentence."""
    features, labels = data()
    for completions, sentence, inputs, weights in (
        (Columns(9, VALUES), "got column 9, counting", features, None),
        (Columns(0, VALUES), "without sample weights", features, np.ones(12)),
        (Columns(0, VALUES), "one array of features and one of labels", {"a": features}, None),
    ):
        model = private(tf)
        tracker_of(tf, model, completions=completions).attach()
        before = [weight.copy() for weight in model.get_weights()]
        with pytest.raises(InputError, match=sentence):
            model.fit(inputs, labels, sample_weight=weights, batch_size=4, verbose=0)
        assert all(np.array_equal(a, b) for a, b in zip(before, model.get_weights(), strict=True))
