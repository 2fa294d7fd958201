"""PyTorch modules: the right losses, and a module that is afterwards what it was."""

import copy

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax, logsumexp

from auditor import InputError
from auditor.collectors import GaussianLogLoss, MultiLabel, Output, SquaredError, collect
from auditor.collectors.base import Classification, ModelScorer, Records
from auditor.collectors.streaming import predictor

pytestmark = [
    pytest.mark.filterwarnings("ignore:the labels look as if"),  # labels that the model knows nothing of
    pytest.mark.filterwarnings("ignore:all outputs for"),
    pytest.mark.filterwarnings("ignore:the probabilities of a record sum"),
]

N = 40
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2 * N, 4))
Y2, Y3 = RNG.integers(0, 2, 2 * N), RNG.integers(0, 3, 2 * N)
SETS = np.eye(3, dtype=int)[Y3] | np.eye(3, dtype=int)[RNG.permutation(Y3)]
W, B = RNG.normal(size=(3, 4)), RNG.normal(size=3)


@pytest.fixture
def torch(require_extra):
    """PyTorch, where it is installed."""
    require_extra("torch")
    import torch

    return torch


def linear(torch, *after, weights=W, bias=B, dtype="float64"):
    """A linear layer with known weights, and what comes after it."""
    layer = torch.nn.Linear(weights.shape[1], weights.shape[0], dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(weights))
        layer.bias.copy_(torch.tensor(bias))
    return torch.nn.Sequential(layer, *after).to(getattr(torch, dtype))


def losses_of(model, y=Y3, features=X, **kwargs):
    """Losses of a model on the two halves."""
    return collect(model, members=(features[:N], y[:N]), nonmembers=(features[N:], y[N:]), **kwargs)


def expected(z, y):
    """The negative log-odds by the textbook formula, from logits of several classes."""
    others = np.where(np.arange(z.shape[1]) == y[:, None], -np.inf, z)
    return logsumexp(others, axis=1) - z[np.arange(len(y)), y]


Z = X @ W.T + B


def test_logits_are_recognised_and_scored(torch):
    """A module that returns any real numbers returns logits, and the loss keeps every digit of them."""
    losses = losses_of(linear(torch))
    np.testing.assert_allclose(losses.member, expected(Z[:N], Y3[:N]), rtol=1e-12)
    np.testing.assert_allclose(losses.nonmember, expected(Z[N:], Y3[N:]), rtol=1e-12)
    assert losses.history[0].endswith("from float64 logits of Sequential (PyTorch)")


@pytest.mark.parametrize("scale", [1, 500])
def test_what_goes_into_a_last_softmax_is_scored(torch, scale):
    """A Softmax layer at the end is looked past, so that nothing saturates, however sure the network is."""
    model = linear(torch, torch.nn.Softmax(dim=-1), weights=scale * W, bias=scale * B, dtype="float32")
    losses = losses_of(model)
    np.testing.assert_allclose(losses.member, expected(scale * Z[:N], Y3[:N]), rtol=1e-5, atol=1e-5 * scale)
    assert losses.saturated == (0, 0)
    assert losses.history[0].endswith("the input of its last Softmax")


@pytest.mark.parametrize("squeezed", [False, True])
def test_what_goes_into_a_last_sigmoid_is_scored(torch, squeezed):
    """One column through a Sigmoid layer is the logit of class 1, also when the column is dropped afterwards."""
    after = [torch.nn.Sigmoid(), *([torch.nn.Flatten(0)] if squeezed else [])]
    losses = losses_of(linear(torch, *after, weights=200 * W[:1], bias=200 * B[:1]), Y2)
    np.testing.assert_allclose(losses.member, (200 * Z[:N, 0]) * (1 - 2 * Y2[:N]), rtol=1e-12)


def test_a_layer_that_is_not_the_last_is_not_looked_past(torch):
    """Averaging two softmax outputs has no logits of its own: the probabilities are scored."""

    class Pair(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = linear(torch), linear(torch, weights=-W)
            self.soft = torch.nn.Softmax(dim=1)

        def forward(self, x):
            return (self.soft(self.one(x)) + self.soft(self.two(x))) / 2

    p = (np.exp(log_softmax(Z, axis=1)) + np.exp(log_softmax(B - (Z - B), axis=1))) / 2
    losses = losses_of(Pair())
    np.testing.assert_allclose(losses.member, expected(np.log(p[:N]), Y3[:N]), rtol=1e-10, atol=1e-12)
    assert "float64 probabilities of Pair" in losses.history[0]


def test_an_output_changed_after_its_softmax_is_not_looked_past(torch):
    """A softmax whose result is then altered in place is no longer the output."""

    class Sharpened(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = linear(torch, torch.nn.Softmax(dim=1))

        def forward(self, x):
            p = self.net(x)
            p.mul_(p)
            return p.div_(p.sum(dim=1, keepdim=True))

    np.testing.assert_allclose(losses_of(Sharpened()).member, expected(2 * Z[:N], Y3[:N]), rtol=1e-10)


@pytest.mark.parametrize("function", ["softmax", "log_softmax"])
def test_probabilities_and_their_logarithms_are_recognised(torch, function):
    """Functions of torch are not layers; their values say what they are."""

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = linear(torch)

        def forward(self, x):
            return getattr(torch, function)(self.net(x), dim=1)

    losses = losses_of(Net())
    np.testing.assert_allclose(losses.member, expected(Z[:N], Y3[:N]), rtol=1e-9, atol=1e-12)
    kind = {"softmax": "probabilities", "log_softmax": "log-probabilities"}[function]
    assert f"float64 {kind} of Net" in losses.history[0]


def test_an_output_that_is_said_is_believed(torch):
    """What the caller says is not questioned: the Softmax layer is not looked past."""
    losses = losses_of(linear(torch, torch.nn.Softmax(dim=1)), output=Output.PROBABILITIES)
    np.testing.assert_allclose(losses.member, expected(Z[:N], Y3[:N]), rtol=1e-9, atol=1e-12)
    assert losses.history[0].endswith("float64 probabilities of Sequential (PyTorch)")


@pytest.mark.parametrize(("dtype", "bits"), [("float16", 11), ("bfloat16", 8), ("float32", 24)])
@pytest.mark.parametrize("soft", [False, True])
def test_short_floats_are_scored_to_their_precision(torch, dtype, bits, soft):
    """Half precision in either form gives the loss to the rounding of its logits, whether or not a softmax follows."""
    after = [torch.nn.Softmax(dim=1)] if soft else []
    losses = losses_of(linear(torch, *after, dtype=dtype))
    room = 12 * 2.0**-bits * np.abs(Z).max()
    np.testing.assert_allclose(losses.member, expected(Z[:N], Y3[:N]), rtol=0, atol=room)


def test_bfloat16_probabilities_sum_to_one_again(torch):
    """Rows of bfloat16 probabilities, which sum to 1 only roughly, are scored as what they stand for."""

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = linear(torch, dtype="bfloat16")

        def forward(self, x):
            return torch.softmax(self.net(x), dim=1)

    losses = losses_of(Net())
    assert "bfloat16 probabilities" in losses.history[0]
    p = np.exp(log_softmax(Z[:N], axis=1))
    own = p[np.arange(N), Y3[:N]]
    room = 16 * 2.0**-8 * (np.abs(Z[:N]).max() + 1 / (1 - own))
    assert np.all(np.abs(losses.member - expected(Z[:N], Y3[:N])) <= room)


def test_several_labels_go_through_their_sigmoids(torch):
    """Losses of several labels are summed, from logits, with or without a Sigmoid layer at the end."""
    want = np.where(SETS == 1, -Z, Z).sum(axis=1)
    for after in ([], [torch.nn.Sigmoid()]):
        losses = losses_of(linear(torch, *after), SETS, task=MultiLabel())
        np.testing.assert_allclose(losses.member, want[:N], rtol=1e-10)


def test_regressions_are_scored(torch):
    """A module of numbers gives squared errors, or the Gaussian log loss with its second half as deviations."""
    t = RNG.normal(size=2 * N)
    single = linear(torch, weights=W[:1], bias=B[:1])
    np.testing.assert_allclose(losses_of(single, t, task=SquaredError()).member, (t - Z[:, 0])[:N] ** 2)

    class Both(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = single

        def forward(self, x):
            mean = self.net(x)
            return torch.cat([mean, torch.full_like(mean, 2.0)], dim=1)

    want = ((t - Z[:, 0]) / 2) ** 2 / 2 + np.log(2) + np.log(2 * np.pi) / 2
    np.testing.assert_allclose(losses_of(Both(), t, task=GaussianLogLoss()).member, want[:N])


def test_every_form_of_features_gives_the_same_losses(torch):
    """Arrays, lists, data frames, tensors and lists of tensors are the same records."""
    model = linear(torch)
    want = losses_of(model).member
    for form in (X.tolist(), pd.DataFrame(X), torch.tensor(X), list(torch.tensor(X))):
        np.testing.assert_array_equal(losses_of(model, features=form).member, want)


@pytest.mark.parametrize("form", ["int64", "float64", "tensor", "frame"])
def test_a_network_that_looks_its_input_up_gets_whole_numbers(torch, form):
    """An embedding takes codes, also when a table holds them as floats."""

    class Lookup(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.EmbeddingBag(10, 3).double()

        def forward(self, x):
            return self.table(x)

    codes = np.random.default_rng(1).integers(0, 10, size=(2 * N, 5))
    model = Lookup()
    z = model.table.weight.detach().numpy()[codes].mean(axis=1)
    features = {
        "int64": codes,
        "float64": codes.astype(float),
        "tensor": torch.tensor(codes),
        "frame": pd.DataFrame(codes),
    }[form]
    np.testing.assert_allclose(
        losses_of(model, features=features).member, expected(z[:N], Y3[:N]), rtol=1e-10
    )


def test_whole_numbers_reach_a_network_of_floats_as_floats(torch):
    """Integer features of a linear layer are converted, not refused."""
    whole = np.round(X * 3).astype(int)
    want = expected(whole @ W.T + B, Y3)
    np.testing.assert_allclose(losses_of(linear(torch), features=whole).member, want[:N], rtol=1e-10)


def test_batches_are_bounded_and_change_nothing(torch):
    """A module asks for a few thousand records at once, and other batch sizes give the same losses."""
    found = predictor(linear(torch), task=Classification(), sample=(Records("member", X[:4], Y3[:4]),))
    assert found.records_at_once == 4096
    np.testing.assert_allclose(
        losses_of(linear(torch), batch_size=7).member, losses_of(linear(torch)).member, rtol=1e-12
    )


def test_a_transformers_style_output_is_read(torch):
    """An output object with logits, a dictionary with them, and a tuple of one are all the logits."""

    class Net(torch.nn.Module):
        def __init__(self, wrap):
            super().__init__()
            self.net, self.wrap = linear(torch), wrap

        def forward(self, x):
            return self.wrap(self.net(x))

    class Output:
        def __init__(self, logits):
            self.logits = logits

    for wrap in (Output, lambda z: {"logits": z}, lambda z: (z,)):
        np.testing.assert_allclose(losses_of(Net(wrap)).member, expected(Z[:N], Y3[:N]), rtol=1e-12)
    with pytest.raises(
        InputError, match="model must return one tensor of outputs, got tuple from Net; wrap it"
    ):
        losses_of(Net(lambda z: (z, z)))


# --- Nothing is disturbed --------------------------------------------------------------------------


def trained(torch):
    """A network in the middle of training: modes mixed, gradients there, a hook, batch statistics."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(4, 8),
        torch.nn.BatchNorm1d(8),
        torch.nn.Dropout(0.5),
        torch.nn.Linear(8, 3),
        torch.nn.Softmax(1),
    )
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
        "gradients": [None if p.grad is None else p.grad.clone() for p in net.parameters()],
        "wanted": [p.requires_grad for p in net.parameters()],
        "hooks": [list(part._forward_hooks) for part in net.modules()],
        "random": torch.get_rng_state(),
        "enabled": torch.is_grad_enabled(),
        "numpy": np.random.get_state()[1].tolist(),  # noqa: NPY002 - the global state is what must not change
    }


def same(torch, one, two):
    """Whether two states are equal, tensors by value."""
    if torch.is_tensor(one):
        return torch.equal(one, two)
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(torch, one[key], two[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(two) and all(same(torch, a, b) for a, b in zip(one, two, strict=True))
    return one == two


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
        with pytest.raises(InputError, match="member X must suit the model, but Sequential refused it"):
            losses_of(net)
    else:
        losses_of(net)
    assert calls  # the network's own hook still runs
    assert same(torch, before, state(torch, net))
    if not fails:
        net(torch.randn(16, 4)).square().sum().backward()  # training goes on


def test_dropout_is_off(torch):
    """A network in training mode is scored as for prediction: the same losses twice, those of its eval mode."""
    net = trained(torch)
    one, two = losses_of(net), losses_of(net)
    np.testing.assert_array_equal(one.member, two.member)
    net.eval()
    p = net.double()(torch.tensor(X[:N])).detach().numpy()
    np.testing.assert_allclose(one.member, expected(np.log(p), Y3[:N]), atol=1e-4)


def test_a_random_network_answers_differently_and_still_draws_nothing_from_the_callers_stream(torch):
    """Random numbers come from a stream of the collector's own, so repeats differ and can be averaged."""

    class Noisy(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.dropout(x[:, :3], training=True)

    before = torch.get_rng_state()
    found = predictor(Noisy(), task=Classification(), sample=(Records("member", X[:4], Y3[:4]),))
    records = Records("member", X[:N], Y3[:N])
    assert not np.array_equal(found.predict(records), found.predict(records))
    assert torch.equal(before, torch.get_rng_state())


def test_identity_is_of_the_weights_and_the_layers(torch):
    """Equal networks have equal identities; another weight, type, slope or buffer has another; mode has none."""

    def identity(model):
        return predictor(model, task=Classification(), sample=()).identity

    one = linear(torch, torch.nn.LeakyReLU(0.1))
    assert identity(one) == identity(copy.deepcopy(one).eval())
    changed = copy.deepcopy(one)
    with torch.no_grad():
        changed[0].bias[0] += 1e-12
    others = [changed, copy.deepcopy(one).float(), linear(torch, torch.nn.LeakyReLU(0.2)), linear(torch)]
    assert len({identity(model) for model in [one, *others]}) == 5
    norm = torch.nn.BatchNorm1d(3).double()
    first = identity(norm)
    norm.running_mean += 1
    assert identity(norm) != first


def test_identity_is_of_what_a_module_holds_beside_its_state(torch):
    """A plain number, text, list, tensor or unsaved buffer of any part counts; functions and what was seen do not."""

    class Scaled(torch.nn.Module):
        def __init__(self, **held):
            super().__init__()
            self.register_buffer("shift", torch.zeros(3), persistent=False)
            self.temperature, self.how, self.sizes, self.scale = (
                1.0,
                "sum",
                {"a": [1, (2.0, None)]},
                torch.ones(3),
            )
            self.act = torch.relu
            for name, value in held.items():
                setattr(self, name, value)

        def forward(self, x):
            self.seen = x.sum()
            return self.act(x[:, :3] * self.scale / self.temperature + self.shift)

    def identity(**held):
        model = torch.nn.Sequential(torch.nn.Identity(), Scaled(**held))
        return predictor(model, task=Classification(), sample=(Records("member", X, Y3),)).identity

    others = [
        {"temperature": 2.0},
        {"how": "mean"},
        {"sizes": {"a": [1, (2.0, False)]}},
        {"scale": torch.full((3,), 2.0)},
        {"shift": torch.ones(3)},
    ]
    assert len({identity(), *(identity(**held) for held in others)}) == 6
    assert identity() == identity(act=torch.tanh) == identity(training=False)


# --- What is refused -------------------------------------------------------------------------------


def test_the_wrong_number_of_columns_is_one_sentence(torch):
    """The first linear layer says how many columns there should be."""
    sentence = r"member X must have the 4 columns that Sequential was trained on, got 3; .*--features"
    with pytest.raises(InputError, match=sentence):
        losses_of(linear(torch), features=X[:, :3])


def test_a_column_of_text_is_named(torch):
    """A network cannot read text, and the sentence says which column it is and who must encode it."""
    frame = pd.DataFrame(X, columns=list("abcd")).assign(c="red")
    sentence = r"member X, column 'c', must be numbers for this model, got text \('red'\); .* pipeline must encode it"
    with pytest.raises(InputError, match=sentence):
        losses_of(linear(torch), features=frame)


def test_nan_from_the_module_is_named_by_row(torch):
    """Outputs that are no numbers are refused with the record."""
    features = X.copy()
    features[N + 3] = np.nan
    with pytest.raises(InputError, match=r"nonmember outputs must be numbers, got nan \(first at row 3,"):
        losses_of(linear(torch), features=features)


def test_predicted_labels_are_refused(torch):
    """A module that returns the class and not its score is told apart from logits."""

    class Labels(torch.nn.Module):
        def forward(self, x):
            return x[:, :3].argmax(dim=1)

    with pytest.raises(InputError, match="look like predicted labels: return a probability for each class"):
        losses_of(Labels())


# --- What outputs are ------------------------------------------------------------------------------


def through(torch, function):
    """A module that does nothing but this to its features."""

    class Net(torch.nn.Module):
        def forward(self, x):
            return function(x)

    return Net()


AMBIGUOUS = (
    r"model outputs must be told apart from probabilities, got values that all lie in \[0, 1\] in rows that do not sum"
    r" to 1 \(the first such sum is [0-9.]+\); pass output=Output.LOGITS \(--output logits\) .*"
    r"task=MultiLabel\(\) \(--task multi-label\)"
)


@pytest.mark.parametrize("layer", [False, True])
def test_sigmoids_of_several_classes_are_refused(torch, layer):
    """One sigmoid for each class is neither a softmax nor logits, whether it is a layer or a function."""
    model = linear(torch, torch.nn.Sigmoid()) if layer else through(torch, lambda x: torch.sigmoid(x[:, :3]))
    with pytest.raises(InputError, match=AMBIGUOUS):
        losses_of(model)
    losses_of(model, SETS, task=MultiLabel())  # as labels of their own they are scored


def test_logits_that_all_lie_between_0_and_1_are_scored_where_it_is_said(torch):
    """The fix that the refusal offers is taken."""
    model, features = through(torch, lambda x: x), RNG.uniform(size=(2 * N, 3)).astype(np.float32)
    with pytest.raises(InputError, match=r"pass output=Output.LOGITS"):
        losses_of(model, features=features)
    losses = losses_of(model, features=features, output=Output.LOGITS)
    np.testing.assert_allclose(losses.member, expected(features[:N].astype(float), Y3[:N]), rtol=1e-12)


TAKEN = " (taken for probabilities, since all lie in [0, 1])"


@pytest.mark.parametrize("several", [False, True])
def test_values_taken_for_probabilities_by_their_range_are_named(torch, several):
    """Without a sigmoid to be seen the history says why they count as probabilities, unless the caller said it."""
    p = RNG.uniform(0.1, 0.9, size=(2 * N, 3 if several else 1)).astype(np.float32)
    y, task = (SETS, MultiLabel()) if several else (Y2, None)
    model = through(torch, lambda x: x)
    assert losses_of(model, y, features=p, task=task).history[0].endswith(f"of Net (PyTorch){TAKEN}")
    said = losses_of(model, y, features=p, task=task, output=Output.PROBABILITIES)
    assert TAKEN not in said.history[0]
    for other in (linear(torch, torch.nn.Sigmoid(), weights=W[:1], bias=B[:1]), linear(torch)):
        found = losses_of(other, Y2 if other[0].out_features == 1 else Y3)
        assert TAKEN not in found.history[0]


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
    found = predictor(model, task=Classification(), sample=(Records("member", *map(np.array, group)),))
    batch = Records("member", z, np.array(group[1]))
    assert ModelScorer(found).score(batch).eps == eps
