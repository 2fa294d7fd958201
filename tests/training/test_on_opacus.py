"""Step audits of Opacus: correct trainings and planted bugs, all kinds of clipping, accumulation, the sampler, detaching."""

import types

import numpy as np
import pytest

import auditor
from auditor.core.errors import InputError

pytestmark = pytest.mark.filterwarnings(
    "ignore:Secure RNG", "ignore:Using a non-full backward hook", "ignore:Full backward hook"
)
torch = pytest.importorskip("torch")
opacus = pytest.importorskip("opacus")

RECORDS, BATCH = 1500, 50


def private(*, noise=1.0, seed=0, poisson=True, clipping="flat", norm=1.0, **more):
    """A small network, its optimizer and its loader, as make_private returns them."""
    torch.manual_seed(seed)
    network = torch.nn.Sequential(torch.nn.Linear(60, 80), torch.nn.ReLU(), torch.nn.Linear(80, 10))
    data = torch.utils.data.TensorDataset(torch.randn(RECORDS, 60), torch.randint(0, 10, (RECORDS,)))
    return opacus.PrivacyEngine().make_private(
        module=network,
        optimizer=torch.optim.SGD(network.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(data, batch_size=BATCH),
        noise_multiplier=noise,
        max_grad_norm=norm,
        poisson_sampling=poisson,
        clipping=clipping,
        **more,
    )


def watched(network, optimizer, loader, *, sampler=False, **more):
    """A watch of the training, with the claim that it is accounted for."""
    claim = auditor.DPSGD(1.0, 1 / (RECORDS // BATCH), 1000)
    return auditor.training.opacus(
        optimizer, claim=claim, loader=loader if sampler else None, model=network, seed=1, **more
    )


def train(network, optimizer, loader, steps, watch=None):
    """Steps until the claim is refuted."""
    taken = 0
    while taken < steps and not (watch and watch.refuted):
        for features, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(network(features), labels).backward()
            optimizer.step()
            taken += 1
            if taken >= steps or (watch and watch.refuted):
                break
    return watch


# --- Correct trainings ---


@pytest.mark.parametrize("kind", ["flat", "per_layer", "adaptive"])
def test_a_correct_training_is_not_refuted(kind):
    """With one clipping norm, one for each tensor, and one that adapts; noise and contributions are measured as claimed."""
    more = {"norm": [1.0, 0.5, 1.0, 0.3]} if kind == "per_layer" else {}
    if kind == "adaptive":
        more = {
            "target_unclipped_quantile": 0.5,
            "clipbound_learning_rate": 0.2,
            "max_clipbound": 10.0,
            "min_clipbound": 0.1,
            "unclipped_num_std": 10.0,
        }
    parts = private(clipping=kind, **more)
    watch = train(*parts, 60, watched(*parts))
    assert watch.steps == 60
    assert not watch.refuted
    tensors = watch.result().data["tensors"]
    assert tensors["name"] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    np.testing.assert_allclose(tensors["measured"], 1, atol=0.3)


def test_physical_batches_and_accumulated_gradients():
    """One step of canaries for each logical batch, whether `BatchMemoryManager` splits it or several passes make it up."""
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    parts = private()
    watch = watched(*parts, sampler=True)
    network, optimizer, loader = parts
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=8, optimizer=optimizer) as small:
        for features, labels in small:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(network(features), labels).backward()
            optimizer.step()
    assert watch.steps == watch.audit.sampler.steps == len(loader)
    assert not watch.refuted
    assert 0.7 < np.mean(watch.result().data["tensors"]["measured"]) < 1.3
    parts = network, optimizer, loader = private(noise=0.5, poisson=False)
    watch = watched(*parts)
    for place, (features, labels) in enumerate([*loader, *loader, *loader]):
        torch.nn.functional.cross_entropy(network(features), labels).backward()
        if place % 2:
            optimizer.step()
            optimizer.zero_grad()
    assert watch.steps == 3 * len(loader) // 2
    assert watch.refuted


def test_half_precision():
    """Under autocast to bfloat16, less noise is found and noise as claimed is not refuted."""
    for noise, refuted in ((1.0, False), (0.5, True)):
        parts = network, optimizer, loader = private(noise=noise)
        watch = watched(*parts)
        for features, labels in [*loader, *loader]:
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = torch.nn.functional.cross_entropy(network(features), labels)
            loss.backward()
            optimizer.step()
        assert watch.refuted is refuted


# --- Planted bugs ---


def scaled_by_half(optimizer):
    """Noise for a clipping norm of half of that in use."""
    optimizer.noise_multiplier = 0.5


def without_clipping(optimizer):
    """Sums of the gradients as they are."""

    def clip(self):
        for one in self.params:
            total = self._get_flat_grad_sample(one).sum(0)
            one.summed_grad = total if one.summed_grad is None else one.summed_grad + total

    optimizer.clip_and_accumulate = types.MethodType(clip, optimizer)


def no_noise_in_a_bias(optimizer):
    """The last bias of 10 numbers is left out."""
    add = optimizer.add_noise

    def add_noise():
        add()
        last = optimizer.params[-1]
        last.grad = last.summed_grad.view_as(last).clone()

    optimizer.add_noise = add_noise


def the_same_noise(optimizer):
    """The generator is set back before each draw."""
    add = optimizer.add_noise

    def add_noise():
        state = torch.random.get_rng_state()
        torch.manual_seed(3)
        add()
        torch.random.set_rng_state(state)

    optimizer.add_noise = add_noise


BUGS = {
    scaled_by_half: 100,
    without_clipping: 50,
    no_noise_in_a_bias: 300,
    the_same_noise: 300,
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_is_found(bug):
    """Within the steps that it may take; a tensor without noise is named."""
    parts = private()
    bug(parts[1])
    watch = train(*parts, BUGS[bug], watched(*parts))
    assert watch.refuted
    assert ("In 2.bias alone" in watch.result().comparisons[0].reason) is (bug is no_noise_in_a_bias)


def test_shuffled_batches_are_found_within_one_epoch():
    """By the loader's indices; the noise is as claimed."""
    parts = private(poisson=False)
    watch = train(*parts, RECORDS // BATCH, watched(*parts, sampler=True))
    assert watch.audit.sampler_refuted
    assert not watch.audit.noise_refuted
    assert "not Poisson samples" in watch.result().comparisons[0].reason


def test_the_exact_check_of_an_optimizer():
    """One canary is clipped to the norm, of every kind of clipping, and what is watched goes on; without clipping a tensor is named."""
    for more in ({}, {"clipping": "per_layer", "norm": [1.0, 0.5, 1.0, 0.3]}):
        parts = private(**more)
        watch = watched(*parts)
        assert watch.check().passed
        train(*parts, 3, watch)
        assert watch.check().passed
        train(*parts, 3, watch)
        assert watch.steps == 6
    parts = private()
    without_clipping(parts[1])
    found = watched(*parts).check()
    assert not found.passed
    assert "0.weight" in found.message


# --- The optimizer before, during and after ---


def test_detach_restores_the_optimizer():
    """After detach a step is the one of an optimizer that was never watched, with the same noise."""
    finals = []
    for watching in (False, True):
        parts = network, optimizer, loader = private(seed=4)
        batch = next(iter(loader))
        if watching:
            watch = watched(*parts, sampler=True)
            watch.detach()
        torch.manual_seed(5)
        train(network, optimizer, [batch], 1)
        finals.append(torch.cat([one.detach().flatten() for one in network.parameters()]))
        assert "clip_and_accumulate" not in vars(optimizer)
    assert torch.equal(*finals)


def test_detach_between_physical_batches_waits_for_the_update():
    """The canaries of a logical batch that is not complete stay in it; a user's own clipping is put back."""
    parts = network, optimizer, loader = private()
    calls = []
    clip = optimizer.clip_and_accumulate
    optimizer.clip_and_accumulate = own = lambda: (calls.append(1), clip())[1]
    watch = watched(*parts)
    features, labels = next(iter(loader))
    for last in (False, True):
        optimizer.signal_skip_step(do_skip=not last)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(features), labels).backward()
        optimizer.step()
        watch.detach()
        assert "clip_and_accumulate" in vars(optimizer)
        assert (optimizer.clip_and_accumulate is own) is last
    assert watch.steps == 1


def test_double_precision():
    """A float64 model is watched like any other."""
    network, optimizer, loader = private(noise=0.5)
    network.double()
    watch = auditor.training.opacus(optimizer, claim=1.0, model=network, seed=1)
    batches = [(features.double(), labels) for features, labels in [*loader, *loader]]
    train(network, optimizer, batches, 60, watch)
    assert watch.refuted


def test_loaders_that_show_nothing():
    """Another rate than the claim's, a loader after `BatchMemoryManager`, and a claim without a sampler: one sentence each."""
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    network, optimizer, loader = private()
    for claim, words in (
        (auditor.DPSGD(1.0, 0.05, 100), "sampling rate of the loader"),
        (1.0, "loader must be left out unless"),
    ):
        with pytest.raises(InputError, match=words):
            auditor.training.opacus(optimizer, claim=claim, loader=loader)
    claim = auditor.DPSGD(1.0, 1 / len(loader), 100)
    with (
        BatchMemoryManager(data_loader=loader, max_physical_batch_size=8, optimizer=optimizer) as small,
        pytest.raises(InputError, match="before BatchMemoryManager"),
    ):
        auditor.training.opacus(optimizer, claim=claim, loader=small)
    with pytest.raises(InputError, match="without a batch sampler"):
        auditor.training.opacus(optimizer, claim=claim, loader=[1, 2])
    watched(network, optimizer, loader)
    with pytest.raises(InputError, match="one watch at a time"):
        watched(network, optimizer, loader)


def test_optimizers_that_cannot_be_watched():
    """Not private; ghost clipping; distributed: each in one sentence. Updates around Opacus too."""
    network = torch.nn.Linear(3, 2)
    with pytest.raises(InputError, match="is not private"):
        auditor.training.opacus(torch.optim.SGD(network.parameters(), lr=0.1), claim=1.0)
    for name, words in (
        ("DPOptimizerFastGradientClipping", "ghost clipping"),
        ("DistributedDPOptimizer", "one process of several"),
        ("FSDPOptimizerFastGradientClipping", "per-example gradients"),
    ):
        kind = type(name, (opacus.optimizers.DPOptimizer,), {})
        optimizer = kind(
            torch.optim.SGD(network.parameters(), lr=0.1),
            noise_multiplier=1.0,
            max_grad_norm=1.0,
            expected_batch_size=4,
        )
        with pytest.raises(InputError, match=words):
            auditor.training.opacus(optimizer, claim=1.0)
    parts = network, optimizer, _ = private()
    watched(*parts)
    for one in network.parameters():
        one.grad = torch.zeros_like(one)
    with pytest.raises(InputError, match="must step through Opacus"):
        optimizer.original_optimizer.step()
