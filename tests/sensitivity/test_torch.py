"""The PyTorch tracker against gradients taken one by one, closed forms, and training without it."""

import copy
import itertools
import math

import numpy as np
import pytest

from auditor.core import DPSGD, InputError
from auditor.sensitivity import (
    Approximate,
    Columns,
    TorchSensitivityTracker,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),  # Opacus's, about its hooks and its random numbers
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
VALUES = (-1.0, 0.0, 0.5, 2.0)
NOTE = "Dropout and other randomness was off"


@pytest.fixture(autouse=True)
def torch(require_extra):
    """PyTorch, freshly seeded; tests here are skipped without it."""
    require_extra("torch")
    import torch

    torch.manual_seed(7)
    return torch


def network(torch, *, width=5, classes=3):
    """A small network with dropout."""
    return torch.nn.Sequential(
        torch.nn.Linear(width, 8), torch.nn.Tanh(), torch.nn.Dropout(0.5), torch.nn.Linear(8, classes)
    )


def slowly(torch, model, loss_fn, features, labels, *, column, values, norm):
    """The largest distance by one backward pass for each record and value, and every pair of values."""
    model.eval()
    largest = 0.0
    for record, label in zip(features, labels, strict=True):
        gradients = []
        for value in values:
            completed = record.clone()
            completed[..., column] = value
            model.zero_grad()
            loss_fn(model(completed[None]), label[None]).backward()
            flat = torch.cat([p.grad.reshape(-1) for p in model.parameters() if p.requires_grad]).double()
            gradients.append(flat / max(1.0, float(flat.norm()) / norm))
        largest = max(largest, *(float((a - b).norm()) for a, b in itertools.combinations(gradients, 2)))
    return largest


def tracked(torch, model, loss_fn=None, **choices):
    """A tracker of the network with the clipping norm 1."""
    settings = {"completions": Columns(0, VALUES), "clipping_norm": 1.0, **choices}
    return TorchSensitivityTracker(model, loss_fn or torch.nn.CrossEntropyLoss(), **settings)


def distance_of(tracker, *batches):
    """The distance of a step of these batches."""
    for batch in batches:
        tracker.observe(*batch)
    tracker.end_step()
    return float(tracker.sensitivities[-1])


@pytest.mark.parametrize(("norm", "frozen"), [(0.05, False), (1.0, True), (100.0, False)])
def test_gradients_agree_with_one_backward_pass_each(torch, norm, frozen):
    """The distance is the one that autograd gives record by record and value by value, of the parameters that train."""
    model, loss_fn = network(torch), torch.nn.CrossEntropyLoss()
    model[0].requires_grad_(not frozen)
    features, labels = torch.randn(9, 5), torch.randint(0, 3, (9,))
    found = distance_of(
        tracked(torch, model, completions=Columns(2, VALUES), clipping_norm=norm), (features, labels)
    )
    expected = slowly(torch, model, loss_fn, features, labels, column=2, values=VALUES, norm=norm)
    assert found == pytest.approx(expected, rel=2e-6)


def test_pieces_make_no_difference(torch, monkeypatch):
    """A bound on memory that takes the records one by one, or batches that come in parts, change nothing."""
    model, features, labels = network(torch), torch.randn(7, 5), torch.randint(0, 3, (7,))
    found = []
    for most, parts in ((2**25, [7]), (1, [7]), (2**25, [3, 0, 4])):
        monkeypatch.setattr("auditor.training.tracker._MOST", most)
        batches = zip(features.split(parts), labels.split(parts), strict=True)
        found.append(distance_of(tracked(torch, model), *batches))
    assert found == pytest.approx([found[0]] * 3, rel=1e-6)


def test_several_axes_and_whole_numbers(torch):
    """The columns are those of the last axis, and features may be whole numbers that the network embeds."""
    embed = torch.nn.Sequential(torch.nn.Embedding(6, 3), torch.nn.Flatten(), torch.nn.Linear(12, 2))
    image = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 2))
    loss_fn, labels, codes = torch.nn.CrossEntropyLoss(), torch.tensor([0, 1]), torch.randint(0, 6, (2, 4))
    for model, features, values in ((embed, codes, (0, 3, 5)), (image, torch.randn(2, 3, 4), VALUES)):
        found = distance_of(tracked(torch, model, completions=Columns(1, values)), (features, labels))
        expected = slowly(torch, model, loss_fn, features, labels, column=1, values=values, norm=1.0)
        assert found == pytest.approx(expected, rel=2e-6)
    with pytest.raises(InputError, match="whole numbers"):
        tracked(torch, embed, completions=Columns(1, [0.5, 3])).observe(codes, labels)


@pytest.mark.parametrize("mode", ["functorch", "ew"])
def test_other_ways_of_opacus(torch, mode):
    """Networks that Opacus differentiates in another way give the distances of the plain network."""
    from opacus.grad_sample import wrap_model

    plain, loss_fn = network(torch), torch.nn.CrossEntropyLoss()
    features, labels = torch.randn(4, 5), torch.randint(0, 3, (4,))
    expected = slowly(torch, plain, loss_fn, features, labels, column=0, values=VALUES, norm=1.0)
    wrapped = wrap_model(plain.train(), grad_sample_mode=mode)
    assert distance_of(tracked(torch, wrapped), (features, labels)) == pytest.approx(expected, rel=2e-6)


def private(torch, *, poisson=True, clipping="flat", rate=0.2, **more):
    """A network, its optimizer and its loader as `make_private` returns them, and the engine."""
    from opacus import PrivacyEngine

    plain, engine = network(torch, classes=2), PrivacyEngine(accountant="rdp")
    records = torch.utils.data.TensorDataset(torch.randn(40, 5), torch.randint(0, 2, (40,)))
    loader = torch.utils.data.DataLoader(records, batch_size=int(40 * rate), shuffle=not poisson)
    made = engine.make_private(
        module=plain,
        optimizer=torch.optim.SGD(plain.parameters(), lr=0.5),
        data_loader=loader,
        noise_multiplier=1.2,
        max_grad_norm=1.0,
        poisson_sampling=poisson,
        clipping=clipping,
        **more,
    )
    return (*made, engine)


def steps_of(engine):
    """How many steps the accountant has counted."""
    return sum(entry[2] for entry in engine.accountant.history)


def train(torch, *, watched, steps=12, physical=None, rate=0.2):
    """Train on toy data; return the weights and last gradients, the random state, the tracker, the engine and the sizes."""
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    torch.manual_seed(3)
    (model, optimizer, loader, engine), tracker, sizes = private(torch, rate=rate), None, []
    if watched:
        tracker = tracked(torch, model)
        tracker.attach(optimizer)
    model.train()

    def epoch(batches):
        for batch in tracker.watch(batches) if watched else batches:
            sizes.append(len(batch[0]))
            update(torch, model, optimizer, batch)
            if steps_of(engine) >= steps:
                return

    while steps_of(engine) < steps:
        if physical is None:
            epoch(loader)
        else:
            with BatchMemoryManager(
                data_loader=loader, max_physical_batch_size=physical, optimizer=optimizer
            ) as parts:
                epoch(parts)
    numbers = [tensor.clone() for part in model._module.parameters() for tensor in (part.data, part.grad)]
    return numbers, torch.get_rng_state(), tracker, engine, sizes


@pytest.mark.parametrize("physical", [None, 3])
def test_training_is_the_same_bit_for_bit(torch, physical):
    """With and without the tracker: the same weights, the same last gradients, the same random state."""
    numbers, state, *_ = train(torch, watched=False, physical=physical)
    others, other_state, tracker, *_ = train(torch, watched=True, physical=physical)
    assert all(torch.equal(a, b) for a, b in zip(numbers, others, strict=True))
    assert torch.equal(state, other_state)
    assert tracker.sensitivities.shape == (12,)
    assert (tracker.sensitivities <= 2.0).all()


def test_a_split_batch_is_one_step(torch):
    """Batches that Opacus splits to save memory give one distance for each update, the same as unsplit."""
    *_, whole, _, sizes = train(torch, watched=True)
    *_, split, _, smaller = train(torch, watched=True, physical=3)
    assert max(sizes) > 3 >= max(smaller)
    assert split.sensitivities == pytest.approx(whole.sensitivities, rel=1e-4)


def test_empty_batches_count_as_zero(torch):
    """A step whose Poisson draw was empty has distance 0, and the others have not."""
    *_, tracker, _, sizes = train(torch, watched=True, rate=0.05, steps=40)
    assert 0 in sizes
    assert [size == 0 for size in sizes] == [distance == 0 for distance in tracker.sensitivities]


def test_the_engine_describes_the_run(torch):
    """The accountant's record becomes the description, and the claims follow from it with the privacy note."""
    *_, tracker, engine, _ = train(torch, watched=True)
    training = tracker.training(engine)
    assert training == DPSGD(1.2, 0.2, 12)
    rows = tracker.claims(training)
    assert [row.metric for row in rows[:2]] == ["attribute_bayes_security", "attribute_advantage"]
    expected = 1 - math.erf(0.2 * np.linalg.norm(tracker.sensitivities) / (2 * math.sqrt(2) * 1.2))
    assert rows[0].value == pytest.approx(expected, rel=1e-12)
    assert "do not publish" in rows[0].note
    assert NOTE in rows[0].note


def test_the_model_is_left_as_it_was(torch):
    """Training modes, hooks and gradients are the same objects afterwards, also when the batch was refused."""
    from opacus import GradSampleModule

    model = GradSampleModule(network(torch))
    model.train()
    inner = model._module
    inner[0].register_forward_hook(lambda *_: None)
    names = ("_forward_hooks", "_backward_hooks")
    before = [
        [(hooks, dict(hooks)) for hooks in (getattr(part, name) for name in names)]
        for part in inner.modules()
    ]
    model(torch.randn(2, 5)).sum().backward()
    kept = copy.deepcopy([parameter.grad_sample for parameter in inner.parameters()])
    tracker = tracked(torch, model)
    tracker.observe(torch.randn(2, 5), torch.tensor([0, 1]))
    with pytest.raises(InputError, match="finite"):
        tracker.observe(torch.full((2, 5), math.nan), torch.tensor([0, 1]))
    for part, registered in zip(inner.modules(), before, strict=True):
        assert part.training is True
        for name, (hooks, items) in zip(names, registered, strict=True):
            assert getattr(part, name) is hooks
            assert dict(hooks) == items
    for parameter, old in zip(inner.parameters(), kept, strict=True):
        assert torch.equal(parameter.grad_sample, old)


def test_huge_gradients_are_clipped_and_not_lost(torch):
    """A gradient whose square overflows single precision is still clipped to the norm, not to 0."""
    model = torch.nn.Linear(1, 1, bias=False)
    tracker = tracked(torch, model, lambda out, _: out.sum(), completions=Columns(0, [-1e30, 1e30]))
    assert distance_of(tracker, (torch.zeros(1, 1), torch.zeros(1))) == pytest.approx(2.0, rel=1e-6)


def test_bad_input_is_one_sentence(torch):
    """BatchNorm, a plain optimizer, another clip, a random network and a missing observation are each named."""
    mixed = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.BatchNorm1d(4))
    batch, (model, optimizer, *_) = (torch.zeros(2, 5), torch.tensor([0, 1])), private(torch)
    for call, sentence in (
        (lambda: tracked(torch, mixed), r"BatchNorm.*'1'"),
        (lambda: tracked(torch, "model"), r"must be a torch\.nn\.Module, got str"),
        (lambda: tracked(torch, model, "ce"), "loss_fn must be a function"),
        (
            lambda: tracked(torch, model, completions=Columns(9, VALUES)).observe(*batch),
            r"column 9, .* shape \(2, 5\)",
        ),
        (
            lambda: tracked(torch, model).attach(optimizer.original_optimizer),
            "make_private returned, got SGD",
        ),
        (lambda: tracked(torch, model, clipping_norm=2.0).attach(optimizer), r"2, .* got max_grad_norm 1\.0"),
    ):
        with pytest.raises(InputError, match=sentence):
            call()

    class Noisy(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x + torch.randn_like(x))

    noisy, state = tracked(torch, Noisy(5, 3)), torch.get_rng_state()
    with pytest.raises(InputError, match="one record at a time and without randomness"):
        noisy.observe(*batch)
    assert torch.equal(state, torch.get_rng_state())


def update(torch, model, optimizer, batch):
    """One update from a batch."""
    optimizer.zero_grad()
    torch.nn.CrossEntropyLoss()(model(batch[0]), batch[1]).backward()
    optimizer.step()


def test_a_weighted_mean_is_refused(torch):
    """A mean that divides by the weights of the batch has no weight left for one record; others keep theirs."""
    model, weight = network(torch), torch.tensor([1.0, 20.0, 3.0])
    for loss_fn in (torch.nn.CrossEntropyLoss(weight=weight), torch.nn.NLLLoss(weight=weight)):
        with pytest.raises(InputError, match="equal weights"):
            tracked(torch, model, loss_fn)
    batch, found = (torch.ones(1, 5), torch.tensor([1])), []
    for choice in ({"weight": weight}, {}):
        loss_fn = torch.nn.CrossEntropyLoss(reduction="none", **choice)
        found.append(distance_of(tracked(torch, model, loss_fn, clipping_norm=1000.0), batch))
    assert found[0] == pytest.approx(20 * found[1], rel=1e-5)
    tracked(torch, model, torch.nn.BCEWithLogitsLoss(weight=weight))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_trackers_at_once(torch, order):
    """Two trackers see every step and the accountant counts it once; detached in any order, they leave the hook."""
    model, optimizer, loader, engine = private(torch)
    accountant = optimizer.step_hook
    trackers = tracked(torch, model), tracked(torch, model, distance=Approximate())
    for tracker in trackers:
        tracker.detach()
        tracker.attach(optimizer)
        with pytest.raises(InputError, match="attach must be called once"):
            tracker.attach(optimizer)
    batches = list(loader)
    for batch in trackers[1].watch(trackers[0].watch(batches)):
        update(torch, model, optimizer, batch)
    full, approximate = (tracker.sensitivities for tracker in trackers)
    assert len(full) == len(approximate) == trackers[0].training(engine).steps == len(batches)
    assert (full <= approximate * (1 + 1e-6)).all()
    trackers[order[0]].detach()
    for batch in trackers[order[1]].watch(batches):
        update(torch, model, optimizer, batch)
    trackers[order[1]].detach()
    for batch in batches:
        update(torch, model, optimizer, batch)
    steps = len(batches)
    assert [len(trackers[place].sensitivities) for place in order] == [steps, 2 * steps]
    assert steps_of(engine) == 3 * steps
    if order == (1, 0):
        assert optimizer.step_hook == accountant


def test_a_refused_step_is_not_counted_by_the_accountant(torch):
    """A step that was not observed, or clipped otherwise, stops before the accountant; training then goes on in step."""
    model, optimizer, loader, engine = private(torch)
    tracker = tracked(torch, model)
    tracker.attach(optimizer)
    batches = list(loader)
    with pytest.raises(InputError, match="step 1 ended before"):
        update(torch, model, optimizer, batches[0])
    optimizer.max_grad_norm = 2.0
    tracker.observe(*batches[0])
    with pytest.raises(InputError, match="max_grad_norm 2"):
        update(torch, model, optimizer, batches[0])
    assert not engine.accountant.history
    optimizer.max_grad_norm = 1.0
    for batch in tracker.watch(batches):
        update(torch, model, optimizer, batch)
    assert len(tracker.sensitivities) == tracker.training(engine).steps == len(batches)


@pytest.mark.parametrize("physical", [None, 3])
@pytest.mark.parametrize("poisson", [True, False])
def test_shuffled_batches_are_seen(torch, poisson, physical):
    """Where the loader passes over shuffled records, every claim says so and none is proven."""
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    model, optimizer, loader, _ = private(torch, poisson=poisson)
    if physical is not None:
        loader = BatchMemoryManager(
            data_loader=loader, max_physical_batch_size=physical, optimizer=optimizer
        ).__enter__()
    tracker = tracked(torch, model)
    for _ in tracker.watch(loader):
        pass
    tracker.end_step()
    training = DPSGD(1.0, 0.2, 1)
    rows = tracker.claims(training)
    assert all(("shuffled or ordered" in row.note) is not poisson for row in rows)
    assert any(row.proven for row in rows) is poisson


def test_bad_batches_are_one_sentence(torch):
    """Batches, losses, engines and optimizers that cannot be used are each named."""
    model, features, labels = network(torch), torch.randn(4, 5), torch.tensor([0, 1, 2, 0])
    tracker = tracked(torch, model)
    for batch, sentence in (
        ((features, labels[:2]), r"one batch on the first axis, got shapes \(4, 5\) and \(2,\)"),
        ((torch.tensor(1.0), labels), r"got shapes \(\) and \(4,\)"),
        ((features[:, 0], labels), r"columns of the last axis of features, .* shape \(4,\)"),
        (("a", labels), "features must be a tensor or an array of numbers, got str"),
        ((features, labels + 7), "one record at a time.*got from model or loss_fn"),
    ):
        with pytest.raises(InputError, match=sentence):
            tracker.observe(*batch)
    for batches in ([(features, labels, labels)], [{"x": features, "y": labels}]):
        with pytest.raises(InputError, match="batches must be pairs of features and labels"):
            list(tracker.watch(batches))
    with pytest.raises(InputError, match="engine must be the PrivacyEngine"):
        tracker.training(model)
    tracker.observe(features.numpy(), labels.tolist())
    model.requires_grad_(False)
    with pytest.raises(InputError, match="a parameter that is trained, got none"):
        tracker.observe(features, labels)


def test_adaptive_clipping_is_refused(torch):
    """A clipping norm that follows the gradients is refused when the tracker is attached."""
    model, optimizer, *_ = private(
        torch,
        clipping="adaptive",
        target_unclipped_quantile=0.5,
        clipbound_learning_rate=0.2,
        max_clipbound=10.0,
        min_clipbound=0.1,
        unclipped_num_std=1.0,
    )
    with pytest.raises(InputError, match="norm adapts to the gradients"):
        tracked(torch, model).attach(optimizer)
