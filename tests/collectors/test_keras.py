"""Keras models: logits from under the last activation, inputs by name, and nothing changed."""

import numpy as np
import pandas as pd
import pytest
from collectors.common import QUIET, from_logits, refused

from auditor import InputError
from auditor.collectors import Output, collect
from auditor.collectors.models import load_model

# Deprecation is warned of inside TensorFlow, and of distutils.
pytestmark = [*QUIET, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

N = 30
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2 * N, 4)).astype(np.float32)
Y2, Y3 = RNG.integers(0, 2, 2 * N), RNG.integers(0, 3, 2 * N)
W, B = RNG.normal(size=(4, 3)).astype(np.float32), RNG.normal(size=3).astype(np.float32)
Z = X.astype(float) @ W + B


def losses_of(model, y=Y3, features=X, **kwargs):
    """Losses of a model on the two halves."""
    return collect(model, members=(features[:N], y[:N]), nonmembers=(features[N:], y[N:]), **kwargs)


def dense(keras, *after, scale=1, activation=None, units=3):
    """One dense layer with known weights, and what comes after it."""
    last = keras.layers.Dense(units, activation=activation)
    model = keras.Sequential([keras.layers.InputLayer((4,)), last, *after])
    last.set_weights([scale * W[:, :units], scale * B[:units]])
    return model


@pytest.mark.parametrize("scale", [1, 300])
@pytest.mark.parametrize("last", ["dense", "activation", "softmax", "none", "nested"])
def test_what_goes_into_the_last_softmax_is_scored(keras, last, scale):
    """However the softmax is written, nothing saturates, however sure the model is."""
    layers = keras.layers
    model = {
        "dense": lambda: dense(keras, scale=scale, activation="softmax"),
        "activation": lambda: dense(keras, layers.Activation("softmax"), scale=scale),
        "softmax": lambda: dense(keras, layers.Softmax(), scale=scale),
        "none": lambda: dense(keras, scale=scale),
        "nested": lambda: keras.Sequential(
            [layers.InputLayer((4,)), dense(keras, scale=scale, activation="softmax")]
        ),
    }[last]()
    # Some rows must not be rounded away, or nothing could be verified.
    small = np.where((np.arange(2 * N) % 5 == 0) & (scale > 1), 1e-3, 1)[:, None].astype(np.float32)
    features = X * small
    z = features.astype(float) @ (scale * W) + scale * B
    losses = losses_of(model, features=features)
    np.testing.assert_allclose(losses.member, from_logits(z[:N], Y3[:N]), rtol=1e-5, atol=1e-4 * scale)
    assert losses.saturated == (0, 0)
    assert "float32 logits of " in losses.history[0]


def test_a_last_layer_that_is_not_the_output_is_not_believed(keras):
    """Probabilities averaged over two branches are scored as they are, for no logits reproduce them."""
    layers = keras.layers
    given = keras.Input((4,))
    one, two = layers.Dense(3, activation="softmax"), layers.Dense(3, activation="softmax")
    branches = [one(given), two(given)]
    model = keras.Model(given, layers.Average()(branches))
    losses = losses_of(model)
    p = model(X[:N], training=False).numpy().astype(float)
    np.testing.assert_allclose(losses.member, from_logits(np.log(p), Y3[:N]), atol=1e-4)
    assert "float32 probabilities of Functional (Keras)" in losses.history[0]


def test_a_model_trained_with_tensorflow_privacy_is_scored(keras, tmp_path):
    """A DPSequential is a Keras model: dropout is off, the logits are those of its weights, and a file holds what it predicts."""
    import tensorflow_privacy

    layers = keras.layers
    model = tensorflow_privacy.DPSequential(
        l2_norm_clip=1.0,
        noise_multiplier=1.0,
        num_microbatches=1,
        layers=[layers.InputLayer((4,)), layers.Dropout(0.5), layers.Dense(3, activation="softmax")],
    )
    model.compile(keras.optimizers.SGD(0.1), "sparse_categorical_crossentropy")
    model.fit(X, Y3, epochs=1, batch_size=10, verbose=0)
    kernel, bias = model.layers[-1].get_weights()
    want = from_logits(X[:N].astype(float) @ kernel + bias, Y3[:N])
    model.save(tmp_path / "m.keras")
    for found in (model, load_model(tmp_path / "m.keras")):
        losses = losses_of(found)
        np.testing.assert_allclose(losses.member, want, atol=1e-4)
        assert "float32 logits" in losses.history[0]


def test_inputs_are_found_by_column(keras):
    """A model with an input of numbers and one of text is fed from a data frame in any order."""
    layers = keras.layers
    size, kind = keras.Input((1,), name="size"), keras.Input((1,), name="kind", dtype="string")
    code = layers.StringLookup(vocabulary=["u", "v"], output_mode="one_hot")(kind)
    last = layers.Dense(3, activation="softmax")
    model = keras.Model([size, kind], last(layers.Concatenate()([size, code])))
    frame = pd.DataFrame({"kind": np.where(X[:, 0] > 0, "u", "v"), "size": X[:, 1]})
    kernel, bias = (part.astype(float) for part in last.get_weights())
    z = X[:, 1:2] * kernel[0] + np.where(X[:, :1] > 0, kernel[2], kernel[3]) + bias
    np.testing.assert_allclose(losses_of(model, features=frame).member, from_logits(z[:N], Y3[:N]), atol=1e-5)
    with refused(r"a column for each input of the model, but not all have one: 'kind'"):
        losses_of(model, features=frame.drop(columns="kind"))
    with refused(r"must be a table with a column for each of the model's 2 inputs"):
        losses_of(model)


def test_flat_rows_become_images(keras):
    """A table with a column for each pixel feeds a model of images."""
    layers = keras.layers
    model = keras.Sequential(
        [layers.InputLayer((2, 2, 1)), layers.Conv2D(3, 2), layers.Flatten(), layers.Activation("softmax")]
    )
    kernel, bias = (part.astype(float) for part in model.layers[0].get_weights())
    z = X.astype(float) @ kernel.reshape(4, 3) + bias
    np.testing.assert_allclose(losses_of(model).member, from_logits(z[:N], Y3[:N]), atol=1e-5)


@pytest.mark.parametrize("fails", [False, True])
def test_the_model_is_left_as_it_was(keras, fails):
    """Weights, statistics, the activation, the settings and the compiled state are untouched, also after a failure."""
    import tensorflow as tf

    layers = keras.layers
    softmax = layers.Dense(3, activation="softmax")
    model = keras.Sequential(
        [layers.InputLayer((4,)), layers.BatchNormalization(), layers.Dropout(0.5), softmax]
    )
    model.compile("sgd", "sparse_categorical_crossentropy")
    model.fit(X, Y3, epochs=1, verbose=0)
    tf.random.set_seed(3)
    random = tf.random.get_global_generator().state.numpy().tolist()
    before = [weight.copy() for weight in model.get_weights()]
    config, activation = model.get_config(), model.layers[-1].activation
    steps = int(model.optimizer.iterations)
    if fails:
        with pytest.raises(InputError):
            losses_of(model, features=X[:, :3])
    else:
        losses_of(model)
    assert all(np.array_equal(one, two) for one, two in zip(before, model.get_weights(), strict=True))
    assert model.get_config() == config
    assert model.layers[-1].activation is activation
    assert int(model.optimizer.iterations) == steps
    assert tf.random.get_global_generator().state.numpy().tolist() == random
    model.fit(X, Y3, epochs=1, verbose=0)


def test_two_outputs_are_refused(keras):
    """Which of several outputs is to be scored, nobody can guess."""
    given = keras.Input((4,))
    model = keras.Model(given, [keras.layers.Dense(3)(given), keras.layers.Dense(2)(given)])
    with refused("model must have one output, got 2 from Functional"):
        losses_of(model)


def test_saturated_bfloat16_is_placed_by_its_own_spacing(keras):
    """A probability of 1 in bfloat16 lies 2^-7 from it, though numpy holds it in float32."""
    layer = keras.layers.Dense(3, activation="softmax", dtype="bfloat16")
    model = keras.Sequential([keras.layers.InputLayer((3,)), layer])
    layer.set_weights([np.eye(3, dtype=np.float32), np.zeros(3, dtype=np.float32)])
    group = (np.array([[200.0, 0, 0], [1, 0.5, 0], [0.5, 1, 0]], dtype=np.float32), [0, 1, 0])
    losses = collect(model, members=group, nonmembers=group, output=Output.PROBABILITIES)
    np.testing.assert_allclose(losses.member[0], np.log(2.0**-7) - np.log1p(-(2.0**-7)), rtol=1e-12)
    assert losses.history[0].endswith("bfloat16 probabilities of Sequential (Keras)")
