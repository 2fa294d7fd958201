"""PyTorch modules: the right losses, and a module that is afterwards what it was."""

import copy
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from collectors.common import QUIET, from_logits, refused
from scipy.special import log_softmax

from auditor.collectors import Output, collect
from auditor.collectors.base import Classification, Records
from auditor.collectors.streaming import predictor

pytestmark = QUIET

N = 40
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2 * N, 4))
Y2, Y3 = RNG.integers(0, 2, 2 * N), RNG.integers(0, 3, 2 * N)
W, B = RNG.normal(size=(3, 4)), RNG.normal(size=3)


def linear(torch, *after, weights=W, bias=B, dtype="float64"):
    """A linear layer with known weights, and what comes after it."""
    layer = torch.nn.Linear(weights.shape[1], weights.shape[0], dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(weights))
        layer.bias.copy_(torch.tensor(bias))
    return torch.nn.Sequential(layer, *after).to(getattr(torch, dtype))


def through(torch, function, *parts):
    """A module that does this to its features, with the parts that it does it by."""

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = torch.nn.ModuleList(parts)

        def forward(self, x):
            return function(x)

    return Net()


def losses_of(model, y=Y3, features=X, **kwargs):
    """Losses of a model on the two halves."""
    return collect(model, members=(features[:N], y[:N]), nonmembers=(features[N:], y[N:]), **kwargs)


Z = X @ W.T + B


@pytest.mark.parametrize("scale", [1, 500])
def test_what_goes_into_a_last_softmax_is_scored(torch, scale):
    """A Softmax layer at the end is looked past, so that nothing saturates, however sure the network is."""
    model = linear(torch, torch.nn.Softmax(dim=-1), weights=scale * W, bias=scale * B, dtype="float32")
    losses = losses_of(model)
    np.testing.assert_allclose(
        losses.member, from_logits(scale * Z[:N], Y3[:N]), rtol=1e-5, atol=1e-5 * scale
    )
    assert losses.saturated == (0, 0)
    assert losses.history[0].endswith("the input of its last Softmax")
    said = losses_of(model, output=Output.PROBABILITIES)  # is not questioned
    assert said.history[0].endswith("float32 probabilities of Sequential (PyTorch)")


@pytest.mark.parametrize("squeezed", [False, True])
def test_what_goes_into_a_last_sigmoid_is_scored(torch, squeezed):
    """One column through a Sigmoid layer is the logit of class 1, also when the column is dropped afterwards."""
    after = [torch.nn.Sigmoid(), *([torch.nn.Flatten(0)] if squeezed else [])]
    losses = losses_of(linear(torch, *after, weights=200 * W[:1], bias=200 * B[:1]), Y2)
    np.testing.assert_allclose(losses.member, (200 * Z[:N, 0]) * (1 - 2 * Y2[:N]), rtol=1e-12)


def test_a_layer_that_is_not_the_last_is_not_looked_past(torch):
    """Averaging two softmax outputs has no logits of its own: the probabilities are scored."""
    one, two, soft = linear(torch), linear(torch, weights=-W), torch.nn.Softmax(dim=1)
    model = through(torch, lambda x: (soft(one(x)) + soft(two(x))) / 2, one, two, soft)
    p = (np.exp(log_softmax(Z, axis=1)) + np.exp(log_softmax(B - (Z - B), axis=1))) / 2
    losses = losses_of(model)
    np.testing.assert_allclose(losses.member, from_logits(np.log(p[:N]), Y3[:N]), rtol=1e-10, atol=1e-12)
    assert "float64 probabilities of Net" in losses.history[0]


def test_an_output_changed_after_its_softmax_is_not_looked_past(torch):
    """A softmax whose result is then altered in place is no longer the output."""
    net = linear(torch, torch.nn.Softmax(dim=1))

    def sharpened(x):
        p = net(x)
        p.mul_(p)
        return p.div_(p.sum(dim=1, keepdim=True))

    model = through(torch, sharpened, net)
    np.testing.assert_allclose(losses_of(model).member, from_logits(2 * Z[:N], Y3[:N]), rtol=1e-10)


@pytest.mark.parametrize("function", ["softmax", "log_softmax"])
def test_probabilities_and_their_logarithms_are_recognised(torch, function):
    """Functions of torch are not layers; their values say what they are."""
    net = linear(torch)
    losses = losses_of(through(torch, lambda x: getattr(torch, function)(net(x), dim=1), net))
    np.testing.assert_allclose(losses.member, from_logits(Z[:N], Y3[:N]), rtol=1e-9, atol=1e-12)
    kind = {"softmax": "probabilities", "log_softmax": "log-probabilities"}[function]
    assert f"float64 {kind} of Net" in losses.history[0]


@pytest.mark.parametrize(("dtype", "bits"), [("float16", 11), ("bfloat16", 8), ("float32", 24)])
@pytest.mark.parametrize("soft", [False, True])
def test_short_floats_are_scored_to_their_precision(torch, dtype, bits, soft):
    """Half precision in either form gives the loss to the rounding of its logits, whether or not a softmax follows."""
    after = [torch.nn.Softmax(dim=1)] if soft else []
    losses = losses_of(linear(torch, *after, dtype=dtype))
    room = 12 * 2.0**-bits * np.abs(Z).max()
    np.testing.assert_allclose(losses.member, from_logits(Z[:N], Y3[:N]), rtol=0, atol=room)


def test_bfloat16_probabilities_sum_to_one_again(torch):
    """Rows of bfloat16 probabilities, which sum to 1 only roughly, are scored as what they stand for."""
    net = linear(torch, dtype="bfloat16")
    losses = losses_of(through(torch, lambda x: torch.softmax(net(x), dim=1), net))
    assert "bfloat16 probabilities" in losses.history[0]
    p = np.exp(log_softmax(Z[:N], axis=1))
    own = p[np.arange(N), Y3[:N]]
    room = 16 * 2.0**-8 * (np.abs(Z[:N]).max() + 1 / (1 - own))
    assert np.all(np.abs(losses.member - from_logits(Z[:N], Y3[:N])) <= room)


def test_every_form_of_features_gives_the_same_losses(torch):
    """Arrays, lists, data frames, tensors and lists of tensors are the same records."""
    model = linear(torch)
    want = losses_of(model).member
    for form in (X.tolist(), pd.DataFrame(X), torch.tensor(X), list(torch.tensor(X))):
        np.testing.assert_array_equal(losses_of(model, features=form).member, want)
    whole = np.round(X * 3).astype(int)  # which is converted, not refused
    want = from_logits(whole @ W.T + B, Y3)
    np.testing.assert_allclose(losses_of(model, features=whole).member, want[:N], rtol=1e-10)


def test_a_network_that_looks_its_input_up_gets_whole_numbers(torch):
    """An embedding takes codes, also when a table holds them as floats."""
    codes = np.random.default_rng(1).integers(0, 10, size=(2 * N, 5))
    table = torch.nn.EmbeddingBag(10, 3).double()
    model = through(torch, table, table)
    z = table.weight.detach().numpy()[codes].mean(axis=1)
    for features in (codes, codes.astype(float), torch.tensor(codes), pd.DataFrame(codes)):
        losses = losses_of(model, features=features)
        np.testing.assert_allclose(losses.member, from_logits(z[:N], Y3[:N]), rtol=1e-10)


def several_inputs(torch):
    """A module that embeds the words that a mask leaves, and the tables of 80 records for it."""

    class Masked(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.EmbeddingBag(9, 3, mode="sum")

        def forward(self, words, mask):
            return self.embedding(words * mask)

    words, mask = RNG.integers(0, 9, (2 * N, 5)), RNG.integers(0, 2, (2 * N, 5))
    parts = (slice(N), slice(N, 2 * N))
    tables = [
        pa.table({"mask": list(mask[part]), "words": list(words[part]), "y": Y3[part]}) for part in parts
    ]
    return Masked(), torch.tensor(words * mask), tables


def test_columns_named_after_its_inputs_are_an_input_each(torch):
    """The columns of a tokenized data set reach the inputs of their names, in any order."""
    model, kept, tables = several_inputs(torch)
    losses = collect(model, *tables, label="y")
    with torch.no_grad():
        expected = from_logits(model.embedding(kept).numpy(), Y3)
    np.testing.assert_allclose(np.concatenate([losses.member, losses.nonmember]), expected, atol=1e-5)


def test_columns_of_words_under_other_names_are_not_joined(torch):
    """They are no one text: the inputs are to be named."""
    model, _, tables = several_inputs(torch)
    other = [table.rename_columns(["mask", "ids", "y"]) for table in tables]
    with refused(r"named after the inputs of Masked, or one array, got 'mask', 'ids'; name the features"):
        collect(model, *other, label="y")


def test_a_transformers_style_output_is_read(torch):
    """An output object with logits, a dictionary with them, and a tuple of one are all the logits."""
    net = linear(torch)

    def wrapped(wrap):
        return through(torch, lambda x: wrap(net(x)), net)

    for wrap in (lambda z: SimpleNamespace(logits=z), lambda z: {"logits": z}, lambda z: (z,)):
        np.testing.assert_allclose(losses_of(wrapped(wrap)).member, from_logits(Z[:N], Y3[:N]), rtol=1e-12)
    with refused("model must return one tensor of outputs, got tuple from Net; wrap it"):
        losses_of(wrapped(lambda z: (z, z)))


# --- Nothing is disturbed --------------------------------------------------------------------------


def trained(torch):
    """A network in the middle of training: modes mixed, gradients there, a hook, batch statistics."""
    torch.manual_seed(0)
    parts = [torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 3)]
    net = torch.nn.Sequential(*parts, torch.nn.Softmax(1))
    net.train()
    net[1].eval()
    net[0].bias.requires_grad_(requires_grad=False)
    net(torch.randn(16, 4)).square().sum().backward()
    return net


def state(torch, net):
    """Everything about a network that a call could change."""
    return {
        "modes": [part.training for part in net.modules()],
        "weights": copy.deepcopy(net.state_dict()),
        "gradients": [p.grad.clone() for p in net.parameters() if p.grad is not None],
        "wanted": [p.requires_grad for p in net.parameters()],
        "hooks": [list(part._forward_hooks) for part in net.modules()],
        "random": torch.get_rng_state(),
        "enabled": torch.is_grad_enabled(),
        "numpy": np.random.get_state()[1].tolist(),  # noqa: NPY002 - the global state is what must not change
    }


@pytest.mark.parametrize("fails", [False, True])
def test_the_module_is_left_as_it_was(torch, fails):
    """Modes, weights, statistics, gradients, hooks and random states are untouched, also when the module raises."""
    net = trained(torch)
    calls = []
    net[3].register_forward_hook(lambda *_: calls.append(1))
    if fails:
        net.append(torch.nn.Linear(99, 1))
    before = state(torch, net)
    if fails:
        with refused("member X must suit the model, but Sequential refused it"):
            losses_of(net)
    else:
        losses_of(net)
    assert calls  # the network's own hook still runs
    torch.testing.assert_close(state(torch, net), before, rtol=0, atol=0)
    if not fails:
        net(torch.randn(16, 4)).square().sum().backward()  # training goes on


def test_a_random_network_answers_differently_and_still_draws_nothing_from_the_callers_stream(torch):
    """Random numbers come from a stream of the collector's own, so repeats differ and can be averaged."""
    noisy = through(torch, lambda x: torch.nn.functional.dropout(x[:, :3], training=True))
    before = torch.get_rng_state()
    found = predictor(noisy, task=Classification(), sample=(Records("member", X[:4], Y3[:4]),))
    records = Records("member", X[:N], Y3[:N])
    assert not np.array_equal(found.predict(records), found.predict(records))
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(("dtype", "bits"), [("bfloat16", 7), ("float16", 10), ("float32", 23)])
@pytest.mark.parametrize("columns", [1, 3])
def test_saturated_probabilities_are_placed_by_the_type_of_the_tensor(torch, dtype, bits, columns):
    """A probability of 1 lies one spacing from it in the model's own type, 2^-7 for bfloat16."""
    eps = 2.0**-bits
    z = np.array([[200.0, 0, 0], [1, 0.5, 0], [0.5, 1, 0], [0, 0.5, 0]])
    if columns == 1:
        model = through(torch, lambda x: torch.sigmoid(x[:, 0]).to(getattr(torch, dtype)))
        group = (z, [1, 1, 0, 0])
    else:
        model = through(torch, lambda x: torch.softmax(x, dim=1).to(getattr(torch, dtype)))
        group = (z, [0, 1, 0, 2])
    losses = collect(model, members=group, nonmembers=group)
    np.testing.assert_allclose(losses.member[0], np.log(eps) - np.log1p(-eps), rtol=1e-12)
    assert losses.saturated == (1, 1)
