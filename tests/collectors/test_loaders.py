"""Loaders, data sets and arrays of other libraries give the losses of the same records in arrays, in one pass."""

import itertools
import sys
import tempfile
import weakref

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from collectors.common import QUIET, from_logits, refused
from command_line import printed
from sklearn.linear_model import LinearRegression, LogisticRegression

from auditor import RecordTable
from auditor.collectors import Classification, SquaredError, collect, collect_texts, collect_to, read_losses
from auditor.collectors.texts import text_scorer

# Deprecation is warned of inside TensorFlow.
pytestmark = [*QUIET, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

N = 150  # of each group: more than the trial takes, and no multiple of a batch
RNG = np.random.default_rng(0)
X = RNG.integers(-64, 64, size=(2 * N, 4)) / 32  # exact in float32
W, B = RNG.integers(-64, 64, size=(4, 3)) / 32, RNG.integers(-64, 64, size=3) / 32
Y = {Classification: RNG.integers(0, 3, 2 * N), SquaredError: RNG.integers(-64, 64, 2 * N) / 16}


def logits(x):
    """The classifier: its outputs for an array."""
    return np.asarray(x, dtype=np.float64) @ W + B


def numbers(x):
    """The regressor: its outputs for an array."""
    return np.asarray(x, dtype=np.float64) @ W[:, 0] + B[0]


def models():
    """Both as estimators of scikit-learn with these weights."""
    classifier, regressor = (
        LogisticRegression().fit(X, np.arange(2 * N) % 3),
        LinearRegression().fit(X, X[:, 0]),
    )
    classifier.coef_, classifier.intercept_ = W.T.copy(), B.copy()
    regressor.coef_, regressor.intercept_ = W[:, 0].copy(), B[0]
    return {Classification: classifier, SquaredError: regressor}


MODELS = models()
WANT = {
    Classification: from_logits(logits(X), Y[Classification]),
    SquaredError: (Y[SquaredError] - numbers(X)) ** 2,
}


def both(make):
    """The members and the non-members, each made from its arrays by a function of them."""
    return lambda x, y: (make(x[:N], y[:N]), make(x[N:], y[N:]))


def pairs(x, y):
    """A map-style PyTorch data set."""
    torch = pytest.importorskip("torch")
    return torch.utils.data.TensorDataset(torch.tensor(x), torch.tensor(y))


def torch_loader(x, y, **options):
    """A PyTorch loader, whose tensors require gradients."""
    torch = pytest.importorskip("torch")
    data = torch.utils.data.TensorDataset(torch.tensor(x, requires_grad=True), torch.tensor(y))
    return torch.utils.data.DataLoader(data, batch_size=32, **options)


def torch_keys(x, y):
    """A PyTorch loader of dictionaries."""
    torch = pytest.importorskip("torch")
    return torch.utils.data.DataLoader(
        [{"x": row, "y": label} for row, label in zip(x, y, strict=True)], batch_size=7
    )


def iterable(x, y):
    """An iterable PyTorch data set."""
    torch = pytest.importorskip("torch")

    class Records(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(zip(x, y, strict=True))

    return Records()


def subsets(x, y):
    """Two subsets of a subset of one data set."""
    subset = pytest.importorskip("torch").utils.data.Subset
    whole = subset(pairs(np.concatenate([x, x]), np.concatenate([y, y])), range(2 * N, 4 * N))
    return subset(whole, range(N)), subset(whole, list(range(N, 2 * N)))


def halves(data):
    """A subset that is the whole data set."""
    return pytest.importorskip("torch").utils.data.Subset(data, range(len(data)))


def module(x, y):
    """A Lightning data module for the members, and the same one for the non-members."""
    lightning = pytest.importorskip("lightning")

    class Module(lightning.LightningDataModule):
        def train_dataloader(self):
            return torch_loader(x[:N], y[:N])

        def val_dataloader(self):
            return torch_loader(x[N:], y[N:])

    return Module(), None


def tensorflow(x, y, *, keys=False, size=None):
    """A tf.data.Dataset."""
    tf = pytest.importorskip("tensorflow")
    data = tf.data.Dataset.from_tensor_slices({"x": x, "y": y} if keys else (x, y))
    return data.batch(size) if size else data


def columns(x, y):
    """A dictionary of columns."""
    return {**{f"c{place}": x[:, place] for place in range(4)}, "y": y}


def frame(x, y):
    """A DataFrame of columns."""
    return pd.DataFrame(columns(x, y))


def duckdb(x, y):
    """A DuckDB relation."""
    library = pytest.importorskip("duckdb")
    return library.from_df(frame(x, y), connection=library.connect())


def zarr(values):
    """A zarr array in chunks that are no batches."""
    return pytest.importorskip("zarr").array(np.asarray(values), chunks=(11, *np.shape(values)[1:]))


def mapped(values):
    """A memory map of a file."""
    with tempfile.TemporaryFile() as file:
        result = np.memmap(file, dtype=values.dtype, mode="w+", shape=values.shape)
    result[:] = values
    return result


def hugging_face(x, y, *, form):
    """A Hugging Face Dataset: its rows in another order on disk, shuffled back; or streamed."""
    library = pytest.importorskip("datasets")
    data = library.Dataset.from_dict({"x": x[::-1].tolist(), "y": y[::-1].tolist()})
    data = data.select(range(len(y))[::-1])
    return data.to_iterable_dataset() if form == "streamed" else data


SOURCES = {
    "polars": both(lambda x, y: pytest.importorskip("polars").DataFrame(columns(x, y))),
    "polars, lazy": both(lambda x, y: pytest.importorskip("polars").LazyFrame(columns(x, y))),
    "pyarrow": both(lambda x, y: pa.table(columns(x, y))),
    "pyarrow, a reader": both(lambda x, y: pa.table(columns(x, y)).to_reader()),
    "duckdb": both(duckdb),
    "datasets": both(lambda x, y: hugging_face(x, y, form="whole")),
    "datasets, streamed": both(lambda x, y: hugging_face(x, y, form="streamed")),
    "memory maps": both(lambda x, y: {"x": mapped(x), "y": mapped(y)}),
    "memory maps, pairs": both(lambda x, y: (mapped(x), mapped(y))),
    "zarr": both(lambda x, y: {"x": zarr(x), "y": zarr(y)}),
    "zarr, pairs": both(lambda x, y: (zarr(x), zarr(y))),
    "torch": both(pairs),
    "torch, a loader": both(torch_loader),
    "torch, dictionaries": both(torch_keys),
    "torch, iterable": both(iterable),
    "torch, subsets": subsets,
    "torch, subsets of two": lambda x, y: tuple(map(halves, both(pairs)(x, y))),
    "lightning": module,
    "tf.data": both(tensorflow),
    "tf.data, batches": both(lambda x, y: tensorflow(x, y, size=32)),
    "tf.data, dictionaries": both(lambda x, y: tensorflow(x, y, keys=True, size=32)),
    "iterator": both(lambda x, y: ((x[at : at + 40], y[at : at + 40]) for at in range(0, N, 40))),
    "iterator of frames": both(
        lambda x, y: (frame(x[at : at + 40], y[at : at + 40]) for at in range(0, N, 40))
    ),
    "iterator and pair": lambda x, y: (iter([(x[:N], y[:N])]), (x[N:], y[N:])),
    "loader and table": lambda x, y: (
        torch_keys(x[:N], y[:N]),
        RecordTable({"x": x[N:], "y": y[N:]}, label="y"),
    ),
}
PAIRS = ("memory maps, pairs", "zarr, pairs", "iterator and pair")  # to which no label= belongs


@pytest.mark.parametrize("task", [Classification(), SquaredError()], ids=["classification", "regression"])
@pytest.mark.parametrize("name", SOURCES)
def test_every_source_gives_the_losses_of_its_records(name, task):
    """Losses, labels and order are those of the arrays; ids are the places in the whole data set."""
    members, nonmembers = SOURCES[name](X, Y[type(task)])
    label = None if name in PAIRS else "y"
    losses = collect(MODELS[type(task)], members, nonmembers, label=label, task=task)
    np.testing.assert_allclose(losses.member, WANT[type(task)][:N], atol=1e-6)
    np.testing.assert_allclose(losses.nonmember, WANT[type(task)][N:], atol=1e-6)
    assert len(np.unique(np.concatenate(losses.fingerprint))) == len(np.unique(X, axis=0))
    if isinstance(task, Classification):
        np.testing.assert_array_equal(np.concatenate(losses.label), Y[Classification])
    if name == "torch, subsets":
        np.testing.assert_array_equal(np.concatenate(losses.id), np.arange(2 * N, 4 * N))
    else:
        assert losses.id is None


def batches(x, y, size=10, seen=None):
    """Batches of copies of the records; references to them are noted."""
    for at in range(0, len(y), size):
        part = x[at : at + size].copy()
        if seen is not None:
            seen.append(weakref.ref(part))
        yield part, y[at : at + size]


def test_one_pass_keeps_no_more_than_the_first_batches():
    """While 3,000 records of a group are read, never more than 300 of both groups are held."""
    seen, alive = [], []

    def model(x):
        alive.append(sum(part() is not None for part in seen))
        return logits(x)

    x, y = np.tile(X[:N], (20, 1)), np.tile(Y[Classification][:N], 20)
    losses = collect(model, batches(x, y, seen=seen), batches(x + 1, y, seen=seen), output="logits")
    np.testing.assert_allclose(losses.member, np.tile(WANT[Classification][:N], 20), atol=1e-12)
    assert len(seen) == 600
    assert max(alive) <= 30


STREAM = """
import resource
import torch
from auditor import collect

model = torch.nn.Linear(200, 3)

def batches(n=800):
    for _ in range(n):
        yield torch.randn(500, 200), torch.randint(0, 3, (500,))

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

collect(model, batches(2), batches(2))
before = peak()
losses = collect(model, batches(), batches())
assert len(losses.member) == 400_000
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss is of Linux")
def test_memory_does_not_grow_with_the_batches_that_were_scored():
    """Of 320 MB of features in each group no more than a part is ever held, losses and labels included."""
    pytest.importorskip("torch")
    assert float(printed(STREAM)) < 150


def test_a_shuffled_loader_keeps_losses_and_labels_together(torch):
    """Each loss is that of the label beside it; the network's random numbers and the caller's are not drawn for a data set."""
    y = Y[Classification]
    net = torch.nn.Linear(4, 3, dtype=torch.float64)
    with torch.no_grad():
        net.weight.copy_(torch.tensor(W.T))
        net.bias.copy_(torch.tensor(B))
    before = torch.get_rng_state()
    plain = collect(net, pairs(X[:N], y[:N]), pairs(X[N:], y[N:]))
    assert torch.equal(torch.get_rng_state(), before)
    mixed = collect(net, torch_loader(X[:N], y[:N], shuffle=True), pairs(X[N:], y[N:]))
    assert not np.array_equal(mixed.member, plain.member)
    for losses in (plain, mixed):
        rows = {
            (loss, label) for loss, label in zip(losses.member.round(9), losses.label.member, strict=True)
        }
        assert rows == set(zip(WANT[Classification][:N].round(9), y[:N], strict=True))


def test_a_function_gets_the_tensors_of_a_loader(torch):
    """A function of tensors is called with those of the loader, in the trial too."""
    weights, y = torch.tensor(W), Y[Classification]
    losses = collect(
        lambda x: torch.matmul(x, weights) + torch.tensor(B),
        torch_loader(X[:N], y[:N]),
        torch_loader(X[N:], y[N:]),
        output="logits",
    )
    np.testing.assert_allclose(losses.nonmember, WANT[Classification][N:], atol=1e-12)


def test_augmentation_is_warned_of(torch):
    """A data set whose records differ on a second reading is named to the caller and in the history, by loader and alone."""

    class Noisy(torch.utils.data.Dataset):
        def __len__(self):
            return N

        def __getitem__(self, row):
            flipped = X[row] * (-1 if torch.rand(()) < 0.5 else 1)
            return torch.tensor(flipped), Y[Classification][row]

    pair = X[N:], Y[Classification][N:]
    for members in (Noisy(), torch.utils.data.DataLoader(Noisy(), batch_size=32)):
        with pytest.warns(
            UserWarning, match=r"^the member data set \(Noisy\) draws random numbers"
        ) as caught:
            losses = collect(logits, members, pair, output="logits")
        assert losses.history[-1] in [str(item.message) for item in caught]


Z = np.zeros(9)
DATA = list(zip(X[:N], Y[Classification][:N], strict=True))
DATA_PAIR = X[:9], Y[Classification][:9]
REFUSED = {
    "no labels": (lambda: iter([X[:9]]), {}, r"batches \(x, y\) with true labels, .* got ndarray"),
    "a batch that is None": (lambda: iter([DATA_PAIR, None]), {}, "got NoneType; give both"),
    "inputs of three": (lambda: iter([(X, X, X)]), {}, "got tuple of 3; give both"),
    "no key": (
        lambda: iter([{"x": X, "z": X}]),
        {},
        "^label must name the column of true labels of a member batch, got none; its columns are .x., .z.",
    ),
    "another key": (lambda: iter([{"x": X, "z": X}]), {"label": "y"}, "'y' is not in a member batch, which"),
    "single records": (lambda: iter(DATA), {}, "got a pair .* of a single record; batch the records"),
    "wider": (
        lambda: iter([(X[:9, :3], [0] * 9), (X[:9], [0] * 9)]),
        {},
        r"in every batch, got \(3,\) and then \(4,\) \(first at row 9",
    ),
    "columns in another order": (
        lambda: iter([{"a": Z, "b": Z, "y": Z}, {"b": Z, "a": Z, "y": Z}]),
        {"label": "y"},
        r"got \('a', 'b', 2\) and then \('b', 'a', 2\)",
    ),
    "nothing": (lambda: iter(()), {}, "hold at least 2 records, got 0 .* read before"),
    "one record": (lambda: iter([(X[:1], [0])]), {}, "hold at least 2 records, got 1"),
    "a loader that fails": (lambda: (1 / 0 for _ in "a"), {}, "generator failed: ZeroDivisionError"),
    "ids": (lambda: batches(X, [0]), {"ids": ([1], [2])}, r"ids go with pairs"),
    "an unknown class": (lambda: batches(X[:9], [5] * 9), {}, "label 5 .* is not one of the model's classes"),
}


@pytest.mark.parametrize(("make", "options", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_bad_batches_are_one_sentence(make, options, words):
    """The group, the constraint and the value are named."""
    nonmembers = RecordTable({"x": X, "y": Y[Classification]}, label="y")
    with refused(words):
        collect(logits, make(), nonmembers, output="logits", **options)


def test_loaders_stand_for_one_group_of_one_collection(tmp_path):
    """A loader given twice, as a table of both groups or to a collection that reads by number is refused."""
    twice = batches(X, Y[Classification])
    with refused(r"^members and nonmembers must be different tables, got the same object"):
        collect(logits, twice, twice)
    with refused(r"^records must be a table, .* got generator; give it to auditor\.collect as members="):
        collect(logits, records=twice, label="y")
    with refused(r"^members must be a table, .* got generator; give it to auditor\.collect"):
        collect_to(tmp_path / "x.parquet", logits, members=twice, nonmembers=twice)


def test_a_data_module_must_be_set_up_and_have_both_loaders():
    """A method that fails, a missing one and several loaders are each one sentence."""
    lightning = pytest.importorskip("lightning")

    class Module(lightning.LightningDataModule):
        def train_dataloader(self):
            return self.train

    module = Module()
    with refused(r"a data module that is set up, but train_dataloader of Module failed: AttributeError"):
        collect(logits, module)
    module.train = torch_loader(X, Y[Classification])
    with refused(r"^nonmembers must come from a test_dataloader or val_dataloader, but Module has none"):
        collect(logits, module)
    module.train = [module.train]
    with refused(r"^members must come from one loader, got list from train_dataloader"):
        collect(logits, module)


@pytest.mark.parametrize("labelled", [True, False])
def test_batches_need_no_labels_for_a_confidence(labelled):
    """Batches (x, None) are scored without labels; labels that are there are kept as classes, as of pairs of arrays."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
    target = y if labelled else None

    def model(rows):
        return 1 / (1 + np.exp(-np.asarray(rows)[:, 0]))

    batches = (
        (x[start : start + 8], None if target is None else y[start : start + 8]) for start in range(0, 40, 8)
    )
    found = collect(model, batches, (x, target), task="confidence")
    expected = collect(model, (x, target), (x, target), task="confidence")
    np.testing.assert_allclose(found.member, -np.maximum(model(x), 1 - model(x)), rtol=1e-12)
    np.testing.assert_array_equal(found.nonmember, expected.nonmember)
    assert (found.label is None) == (expected.label is None) == (not labelled)


def alone(x, form):
    """Batches of the records alone: in tuples or lists of one, bare, by name, or as a PyTorch loader or data set."""
    parts = [x[start : start + 8] for start in range(0, len(x), 8)]
    if form.startswith("torch"):
        torch = pytest.importorskip("torch")
        if form == "torch, bare":
            return torch.utils.data.DataLoader(torch.tensor(x), batch_size=8)
        data = torch.utils.data.TensorDataset(torch.tensor(x))
        return data if form == "torch, a data set" else torch.utils.data.DataLoader(data, batch_size=8)
    wrap = {"list": lambda part: [part], "tuple": lambda part: (part,), "bare": np.array}
    return map(wrap.get(form, lambda part: {f"c{place}": part[:, place] for place in range(3)}), parts)


FORMS = ("list", "tuple", "bare", "by name", "torch", "torch, bare", "torch, a data set")


@pytest.mark.parametrize("form", FORMS)
def test_batches_of_records_alone_are_scored_by_their_confidence(form):
    """Without y the losses are those of the arrays; a task that needs labels says so in one sentence."""
    x = np.random.default_rng(0).normal(size=(40, 3))

    def model(rows):
        return 1 / (1 + np.exp(-np.asarray(rows)[:, 0]))

    losses = collect(model, alone(x, form), (x, None), task="confidence")
    np.testing.assert_allclose(losses.member, losses.nonmember, rtol=1e-12)
    np.testing.assert_array_equal(*losses.fingerprint)
    assert losses.label is None
    with refused(
        r"members must come in batches \(x, y\) with true labels|^label must name the column of true labels"
    ):
        collect(model, alone(x, form), (x, None), task="classification")


# --- Map-style data sets are read by number, into a file ---


def data_set_with(labels, *, keys=False, random=False):
    """A map-style PyTorch data set of the records with these labels."""
    torch = pytest.importorskip("torch")

    class Records(torch.utils.data.Dataset):
        def __len__(self):
            return len(labels)

        def __getitem__(self, row):
            x = torch.tensor(X[row] + random * torch.rand(()).item())
            return {"x": x, "y": labels[row], "group": row % 3} if keys else (x, labels[row])

    return Records()


@pytest.mark.parametrize("form", ["pairs", "dictionaries", "subsets", "data set and table"])
@pytest.mark.parametrize("task", [Classification(), SquaredError()], ids=["classification", "regression"])
def test_a_map_style_data_set_is_collected_into_a_file(tmp_path, form, task):
    """The file has the losses, labels and groups that collection in memory gives."""
    y, label = Y[type(task)], None
    members, nonmembers = both(pairs)(X, y)
    if form == "subsets":
        members, nonmembers = subsets(X, y)
    elif form != "pairs":
        label, keyed = "y", data_set_with(y, keys=True)
        members, nonmembers = (
            halves(keyed),
            RecordTable({"x": X, "y": y, "group": np.arange(2 * N) % 3}, label="y"),
        )
        nonmembers = data_set_with(y[::-1], keys=True) if form == "dictionaries" else nonmembers
    options = {"label": label, "task": task}
    report = collect_to(
        tmp_path / "x.parquet",
        MODELS[type(task)],
        members=members,
        nonmembers=nonmembers,
        batch_size=64,
        **options,
    )
    assert report.scored_now == len(members) + (2 * N if label else N)
    found = read_losses(report.path)
    wanted = collect(MODELS[type(task)], members, nonmembers, **options)
    for name in ("member", "nonmember"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-12, atol=1e-12)
    for name in ("fingerprint", "label", "group"):
        pair, known = getattr(found, name), getattr(wanted, name)
        assert (pair is None) == (known is None), name
        for one, other in zip(pair or (), known or (), strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_data_set_goes_on_where_it_stopped(tmp_path):
    """After an interruption only the rest is scored, to the same file; other labels are refused."""
    y, left = Y[Classification], [7]

    def model(x):
        left[0] -= len(x) == 50
        if len(x) == 50 and not left[0]:
            raise KeyboardInterrupt
        return logits(x)

    path, options = tmp_path / "part.parquet", {"batch_size": 50, "output": "logits"}
    groups = {"members": pairs(X[:N], y[:N]), "nonmembers": pairs(X[N:], y[N:])}
    with pytest.raises(KeyboardInterrupt, match="of 300 records are scored and kept"):
        collect_to(path, model, **groups, **options)
    with refused("the data changed: the hash of labels was"):
        collect_to(path, model, **{**groups, "members": pairs(X[:N], 1 - np.minimum(y[:N], 1))}, **options)
    assert 0 < collect_to(path, model, **groups, **options).scored_now < 300
    found = read_losses(path)
    np.testing.assert_allclose(np.concatenate([found.member, found.nonmember]), WANT[Classification])


def triples():
    """A map-style data set of records of three parts."""
    data = pairs(X, Y[Classification])
    return type(data)(*data.tensors, data.tensors[1])


def test_data_sets_that_cannot_be_read_twice_are_refused(tmp_path):
    """One sentence for random records, a loader, records of three parts and a table of both groups without membership."""
    y, path = Y[Classification], tmp_path / "x.parquet"
    data, pair = pairs(X[:N], y[:N]), pairs(X[N:], y[N:])
    with refused(r"^the member data set \(Records\) draws random numbers"):
        collect_to(path, logits, members=data_set_with(y, random=True), nonmembers=pair)
    with refused(r"^members must be a table, .* got DataLoader; give it to auditor\.collect"):
        collect_to(path, logits, members=torch_loader(X, y), nonmembers=pair)
    with refused(r"^nonmembers must be a table, .* got Records"):
        collect_to(path, logits, members=data, nonmembers=iterable(X, y))
    with refused(r"column 'member' is not in records, which has 'x', 'y'"):
        collect_to(path, logits, records=data)
    with refused(r"^member data must hold dictionaries, pairs .* but TensorDataset failed: ValueError"):
        collect_to(path, logits, members=triples(), nonmembers=pair)
    with refused(r"^members and nonmembers must be different"):
        collect_to(path, logits, members=data, nonmembers=data)


# --- Texts ---

TEXTS = ["".join(RNG.choice(list("abcdefghij"), RNG.integers(2, 9))) for _ in range(2 * N)]


def network():
    """A language model of ten letters that knows the last one, and its tokenizer."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    return torch.nn.Embedding(10, 10, dtype=torch.float64), lambda texts: [
        [ord(letter) - ord("a") for letter in text] for text in texts
    ]


def text_loss(text):
    """The mean token loss of a text by the textbook formula."""
    table = network()[0].weight.detach().numpy()
    log_p = table - np.log(np.exp(table).sum(axis=1, keepdims=True))
    ids = [ord(letter) - ord("a") for letter in text]
    return -np.mean([log_p[a, b] for a, b in itertools.pairwise(ids)])


def each(make):
    """The members and the non-members, each made of its texts."""
    return lambda texts: (make(texts[:N]), make(texts[N:]))


def text_data(texts, *, keys=False, style="map"):
    """A PyTorch data set of texts or of dictionaries."""
    data = pytest.importorskip("torch").utils.data
    rows = [{"text": text, "id": f"r{text}{row}"} for row, text in enumerate(texts)] if keys else list(texts)

    class Map(data.Dataset):
        def __len__(self):
            return len(rows)

        def __getitem__(self, row):
            return rows[row]

    class Iterable(data.IterableDataset):
        def __iter__(self):
            return iter(rows)

    return {"map": Map, "iterable": Iterable}[style]()


def text_loader(texts, **options):
    """A PyTorch loader of texts."""
    return pytest.importorskip("torch").utils.data.DataLoader(text_data(texts, **options), batch_size=32)


def hugging_texts(texts):
    """A Hugging Face Dataset of texts and numbers."""
    library = pytest.importorskip("datasets")
    return library.Dataset.from_dict({"n": list(range(len(texts))), "text": list(texts)})


def text_tf(texts, *, keys=False):
    """A tf.data.Dataset of texts."""
    tf = pytest.importorskip("tensorflow")
    return tf.data.Dataset.from_tensor_slices({"text": texts} if keys else texts)


TEXT_SOURCES = {
    "list": each(list),
    "frame": each(lambda texts: pd.DataFrame({"n": range(len(texts)), "text": texts})),
    "table": each(
        lambda texts: RecordTable(pa.table({"body": texts, "n": range(len(texts))}), features="body")
    ),
    "polars": each(lambda texts: pytest.importorskip("polars").DataFrame({"text": texts})["text"]),
    "datasets": each(hugging_texts),
    "datasets, a column": each(lambda texts: hugging_texts(texts)["text"]),
    "datasets, streamed": each(lambda texts: hugging_texts(texts).to_iterable_dataset()),
    "torch": each(text_data),
    "torch, iterable": each(lambda texts: text_data(texts, style="iterable")),
    "torch, a loader": each(text_loader),
    "torch, dictionaries": each(lambda texts: text_loader(texts, keys=True)),
    "torch, rows by name": each(lambda texts: text_data(texts, keys=True)),
    "torch, subsets": lambda texts: [
        pytest.importorskip("torch").utils.data.Subset(data, rows)
        for data in [text_data(texts)]
        for rows in (range(N), range(N, 2 * N))
    ],
    "tf.data": each(text_tf),
    "tf.data, dictionaries": each(lambda texts: text_tf(texts, keys=True)),
    "iterator": each(iter),
    "iterator of lists": each(lambda texts: (texts[at : at + 40] for at in range(0, N, 40))),
    "iterator of dictionaries": each(lambda texts: ({"text": text} for text in texts)),
    "iterator of frames": each(
        lambda texts: (pd.DataFrame({"text": texts[at : at + 40]}) for at in range(0, N, 40))
    ),
    "loader and list": lambda texts: (text_loader(texts[:N]), texts[N:]),
}


@pytest.mark.parametrize("name", TEXT_SOURCES)
def test_every_source_of_texts_gives_their_losses(name):
    """Losses and fingerprints are those of a list; ids that stand beside the texts, or places in a data set, are taken along."""
    model, tokenizer = network()
    members, nonmembers = TEXT_SOURCES[name](TEXTS)
    losses = collect_texts(model, tokenizer=tokenizer, members=members, nonmembers=nonmembers)
    wanted = collect_texts(model, tokenizer=tokenizer, members=TEXTS[:N], nonmembers=TEXTS[N:])
    for found, known in zip((losses.member, losses.nonmember), (TEXTS[:N], TEXTS[N:]), strict=True):
        np.testing.assert_allclose(found, list(map(text_loss, known)), atol=1e-6)
    np.testing.assert_array_equal(losses.fingerprint.member, wanted.fingerprint.member)
    np.testing.assert_array_equal(losses.fingerprint.nonmember, wanted.fingerprint.nonmember)
    assert losses.history == wanted.history
    if name in ("torch, dictionaries", "torch, rows by name"):
        assert losses.id.member[1] == f"r{TEXTS[1]}1"
    elif name == "torch, subsets":
        np.testing.assert_array_equal(np.concatenate(losses.id), np.arange(2 * N))
    else:
        assert losses.id is None


PROMPTS = [(text[:2], text[2:] + "abc") for text in TEXTS]
PAIR_SOURCES = {
    "list": list,
    "iterator": iter,
    "iterator of lists": lambda rows: (rows[at : at + 2] for at in range(0, N, 2)),
    "dictionaries": lambda rows: iter([{"completion": b, "prompt": a, "n": 0} for a, b in rows]),
    "frames": lambda rows: iter([pd.DataFrame(rows, columns=["prompt", "completion"])]),
    "torch": lambda rows: pytest.importorskip("torch").utils.data.DataLoader(
        [{"prompt": a, "completion": b} for a, b in rows], batch_size=7
    ),
}


@pytest.mark.parametrize("name", PAIR_SOURCES)
def test_prompts_with_completions_come_in_every_form(name):
    """Of pairs, by name and by row, only the completions are scored, and equal pairs have equal fingerprints."""
    model, tokenizer = network()
    losses = collect_texts(
        model, tokenizer=tokenizer, members=PAIR_SOURCES[name](PROMPTS[:N]), nonmembers=PROMPTS[:N]
    )
    np.testing.assert_array_equal(losses.member, losses.nonmember)
    np.testing.assert_array_equal(*losses.fingerprint)
    assert "over the tokens of the responses alone" in losses.history[0]


BAD_TEXTS = {
    "read before": (lambda: iter(()), "hold at least 2 records, got 0 .* read before"),
    "numbers": (lambda: iter([[1, 2, 3]]), r"member texts must be strings, got int \(row 0"),
    "a late number": (lambda: iter(["ab"] * 300 + [["ab", 7]]), r"must be strings, got int \(row 301"),
    "other kinds": (lambda: iter(["ab"] * 300 + [("a", "b")]), r"must be of one kind, got another \(row 300"),
    "rows or columns": (
        lambda: pytest.importorskip("torch").utils.data.DataLoader(PROMPTS[:4], batch_size=2),
        "got tuples, in which prompts and completions may be rows or columns",
    ),
    "another key": (
        lambda: iter([{"words": ["ab", "cd"], "n": [1, 2], "k": [1, 2]}]),
        r"must be one column of strings, got shape \(2, 3\)",
    ),
    "no Unicode": (lambda: iter([np.array([b"ab", b"\xff"], dtype=object)]), "must be valid Unicode"),
    "ids": (lambda: iter(["ab", "cd"]), "ids go with pairs"),
}


@pytest.mark.parametrize("name", BAD_TEXTS)
def test_bad_texts_in_batches_are_one_sentence(name):
    """The group, the constraint, the value and its row are named."""
    make, words = BAD_TEXTS[name]
    model, tokenizer = network()
    with refused(words):
        collect_texts(
            model,
            tokenizer=tokenizer,
            members=make(),
            nonmembers=["ab", "cd"],
            ids=([1, 2], [3, 4]) if name == "ids" else None,
        )


def test_texts_that_are_cut_are_counted_in_a_loader_too():
    """The history counts them as for a list."""
    model, tokenizer = network()
    options = {"tokenizer": tokenizer, "longest": 4, "long_texts": "cut"}
    plain = collect_texts(model, members=TEXTS[:N], nonmembers=TEXTS[N:], **options)
    loaded = collect_texts(model, members=iter(TEXTS[:N]), nonmembers=text_loader(TEXTS[N:]), **options)
    assert "texts were)" in loaded.history[0]
    assert loaded.history == plain.history
    np.testing.assert_array_equal(loaded.member, plain.member)


@pytest.mark.parametrize("keys", [False, True])
def test_a_data_set_of_texts_is_collected_into_a_file(tmp_path, keys):
    """A map-style data set of texts, alone or by name, gives the file the losses of the list."""
    model, tokenizer = network()
    scorer = text_scorer(model, tokenizer=tokenizer, also=())
    groups = {"members": text_data(TEXTS[:N], keys=keys), "nonmembers": text_data(TEXTS[N:], keys=keys)}
    losses = read_losses(collect_to(tmp_path / "x.parquet", scorer, **groups).path)
    np.testing.assert_allclose(losses.member, list(map(text_loss, TEXTS[:N])), atol=1e-12)
    assert losses.fingerprint is not None


def unlabelled(x, library="torch"):
    """A data set of PyTorch or TensorFlow without labels."""
    package = pytest.importorskip(library)
    if library == "tensorflow":
        return package.data.Dataset.from_tensor_slices(x)
    return package.utils.data.TensorDataset(package.tensor(x))


UNLABELLED = {
    "arrays": lambda x: iter([x[:40], x[40:]]),
    "torch": unlabelled,
    "tf.data": lambda x: unlabelled(x, "tensorflow"),
    "dictionaries": lambda x: iter([{"x": x}]),
}


@pytest.mark.parametrize("name", UNLABELLED)
def test_batches_may_have_no_place_for_labels(name):
    """Batches of features alone are scored by their confidence."""
    members, nonmembers = UNLABELLED[name](X[:N]), UNLABELLED[name](X[N:])
    found = collect(logits, members, nonmembers, task="confidence", output="logits")
    expected = collect(logits, (X[:N], None), (X[N:], None), task="confidence", output="logits")
    np.testing.assert_allclose(found.member, expected.member, rtol=1e-12)
    np.testing.assert_allclose(found.nonmember, expected.nonmember, rtol=1e-12)


def test_single_vectors_of_tensorflow_are_no_batches():
    """Records whose features and labels are vectors of one length are records, not batches of numbers."""
    tf = pytest.importorskip("tensorflow")
    labels = (RNG.random((2 * N, 4)) < 0.5).astype(np.int64)

    def score(x):
        return np.asarray(x, dtype=np.float64)

    groups = both(lambda x, y: tf.data.Dataset.from_tensor_slices((x, y)))(X, labels)
    found = collect(score, *groups, task="multi-label", output="logits")
    expected = collect(score, (X[:N], labels[:N]), (X[N:], labels[N:]), task="multi-label", output="logits")
    np.testing.assert_allclose(found.member, expected.member, rtol=1e-12)


def test_a_transform_of_hugging_face_is_applied():
    """The records are those that the data set gives, not the columns that it is made of."""
    library = pytest.importorskip("datasets")
    y = Y[Classification]

    def halved(batch):
        return {"x": [np.asarray(row) / 2 for row in batch["x"]], "y": batch["y"]}

    def data(x, y):
        return library.Dataset.from_dict({"x": (2 * x).tolist(), "y": y.tolist()}).with_transform(halved)

    losses = collect(logits, data(X[:N], y[:N]), data(X[N:], y[N:]), label="y", output="logits")
    np.testing.assert_allclose(losses.member, WANT[Classification][:N], atol=1e-12)


@pytest.mark.parametrize("size", [16, 128])
@pytest.mark.parametrize("form", ["pairs", "dictionaries"])
def test_a_loader_may_write_each_batch_into_the_same_arrays(size, form):
    """The first batches are held for the trial, and keep their own values."""

    def batches(x, y):
        buffer, labels = np.empty((size, x.shape[1])), np.empty(size, dtype=y.dtype)
        for start in range(0, len(y) // size * size, size):
            buffer[:], labels[:] = x[start : start + size], y[start : start + size]
            yield (buffer, labels) if form == "pairs" else {"x": buffer, "y": labels}
            buffer[:], labels[:] = np.nan, 0

    y, n = Y[Classification], N // size * size
    label = None if form == "pairs" else "y"
    found = collect(logits, batches(X, y[:N]), batches(X[N:], y[N:]), label=label, output="logits")
    expected = collect(logits, (X[:n], y[:n]), (X[N : N + n], y[N : N + n]), output="logits")
    np.testing.assert_allclose(found.member, expected.member, rtol=1e-12)
    np.testing.assert_allclose(found.nonmember, expected.nonmember, rtol=1e-12)
