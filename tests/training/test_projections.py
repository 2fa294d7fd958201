"""Projections along a canary: in loops of any framework, in Opacus by each kind of clipping and of batches, and bad input."""

import numpy as np
import pytest
from scipy import stats

import auditor
from auditor.core import InputError
from auditor.scores import step_likelihood_ratio
from auditor.training import Projections

pytestmark = pytest.mark.filterwarnings(
    "ignore:Secure RNG", "ignore:Using a non-full backward hook", "ignore:Full backward hook"
)
CLAIM = auditor.DPSGD(1.0, 0.1, 10)

# --- Any loop ---


def test_a_step_is_measured_along_the_clipped_gradient():
    """The unit vector along (3, 4) meets (1, 2) at 2.2; norm 5 is clipped to the 2 of C, norm 1 is half of it, and 0 is nothing."""
    steps = Projections()
    for gradient in ([3.0, 4.0], [0.6, 0.8], [0.0, 0.0]):
        steps.add([1.0, 2.0], gradient=gradient, clipping_norm=2.0)
    np.testing.assert_allclose(steps.values, [1.1, 1.1, 0.0])
    np.testing.assert_allclose(steps.sizes, [1.0, 0.5, 0.0])
    assert steps.score(CLAIM) == step_likelihood_ratio(steps.values, claim=CLAIM, sizes=steps.sizes)


def test_clipping_by_tensor():
    """With norms 3 and 4, so 5 in all, the gradients (30) and (0, 40) are clipped to (3) and (0, 4), which has norm 5."""
    steps = Projections()
    parts = [np.array([[30.0]]), np.array([0.0, 40.0])]
    steps.add([np.array([[5.0]]), np.array([7.0, 10.0])], gradient=parts, clipping_norm=[3.0, 4.0])
    np.testing.assert_allclose(steps.values, [(5 * 3 + 10 * 4) / 5 / 5])
    np.testing.assert_allclose(steps.sizes, [1.0])


def test_noise_has_the_claimed_deviation_along_any_gradient():
    """Of 2,000 steps of noise of 1.5 times C, along gradients that change, a Kolmogorov-Smirnov test sees N(0, 1.5^2)."""
    rng, steps = np.random.default_rng(0), Projections()
    for _ in range(2000):
        steps.add(rng.normal(0, 1.5 * 0.3, 6), gradient=rng.normal(size=6), clipping_norm=0.3)
    assert stats.kstest(steps.values, stats.norm(0, 1.5).cdf).pvalue > 0.01


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"gradient": [1.0]}, "as many numbers as noisy_sum, 2, .* got 1 in 1 tensors and 1 clipping norms"),
        ({"clipping_norm": [1.0, 1.0, 1.0]}, "got 2 in 2 tensors and 3 clipping norms"),
        ({"clipping_norm": 0.0}, "clipping_norm must be above 0"),
        ({"clipping_norm": np.inf}, "clipping_norm must be above 0 and finite"),
        ({"noisy_sum": []}, "noisy_sum must have 1 number or more, got an empty list"),
        ({"noisy_sum": [np.inf, 0.0]}, "noisy_sum must be finite"),
        ({"gradient": [np.nan, 0.0]}, "gradient must be finite"),
    ],
)
def test_bad_steps_are_refused(change, words):
    """Each with a sentence that names the argument."""
    with pytest.raises(InputError, match=words):
        Projections().add(**{"noisy_sum": [1.0, 2.0], "gradient": [0.0, 1.0], **change})


def test_a_training_without_steps_has_no_score():
    """As where the optimizer was replaced after the first line."""
    with pytest.raises(InputError, match="1 step or more"):
        Projections().score(CLAIM)


# --- Opacus ---


@pytest.fixture
def torch():
    """PyTorch, with Opacus."""
    pytest.importorskip("opacus")
    return pytest.importorskip("torch")


class Run:
    """A private training on records without the canary's feature, and on the canary if it is in."""

    def __init__(self, torch, *, canary=True, noise=0.0, clipping="flat", norm=1.0, seed=0, poisson=False):
        from opacus import PrivacyEngine

        torch.manual_seed(seed)
        features = torch.randn(19 + canary, 4) * 0.01
        features[:, 3] = 0.0
        self.canary = torch.tensor([[0.0, 0.0, 0.0, 5000.0]])
        if canary:
            features[-1] = self.canary
        self.loss = torch.nn.functional.cross_entropy
        model = torch.nn.Linear(4, 2)
        torch.nn.init.zeros_(model.weight)
        data = torch.utils.data.TensorDataset(features, torch.zeros(19 + canary, dtype=torch.long))
        self.model, self.optimizer, self.loader = PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=1e-4),
            data_loader=torch.utils.data.DataLoader(data, batch_size=5),
            noise_multiplier=noise,
            max_grad_norm=norm,
            clipping=clipping,
            poisson_sampling=poisson,
        )
        label = torch.zeros(1, dtype=torch.long)
        self.steps = Projections.from_opacus(
            self.optimizer, model=self.model, loss=lambda: self.loss(self.model(self.canary), label)
        )

    def backward(self, batch):
        """Gradients of one batch."""
        features, labels = batch
        self.loss(self.model(features), labels).backward()

    def train(self, loader=None):
        """One pass."""
        for batch in self.loader if loader is None else loader:
            self.optimizer.zero_grad()
            self.backward(batch)
            self.optimizer.step()
        return self.steps


def test_without_noise_the_canary_is_seen_in_the_step_that_drew_it(torch):
    """One pass over shuffled records has it in one of four steps, where the projection is 1 and about 0 elsewhere."""
    steps = Run(torch).train()
    others = Run(torch, canary=False).train()
    assert len(steps.values) == len(others.values) == 4
    np.testing.assert_allclose(np.sort(steps.values), [0, 0, 0, 1], atol=0.01)
    np.testing.assert_allclose(others.values, 0, atol=0.01)
    np.testing.assert_allclose(steps.sizes, 1, atol=1e-6)


def test_noise_in_opacus_has_the_claimed_deviation(torch):
    """Over 400 steps, with one clipping norm and one for each tensor, the standard deviation is the noise multiplier."""
    for clipping, norm in (("flat", 1.0), ("per_layer", [2.0, 0.5])):
        run = Run(torch, canary=False, noise=1.5, clipping=clipping, norm=norm, poisson=True)
        for _ in range(100):
            steps = run.train()
        # Its standard error is 1.5/sqrt(800) = 0.053.
        assert np.std(steps.values) == pytest.approx(1.5, abs=0.2)


def test_a_logical_batch_is_one_step(torch):
    """Physical batches of `BatchMemoryManager`, skipped steps and accumulated gradients: one projection for each update."""
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    run = Run(torch)
    with BatchMemoryManager(
        data_loader=run.loader, max_physical_batch_size=2, optimizer=run.optimizer
    ) as small:
        steps = run.train(small)
    np.testing.assert_allclose(np.sort(steps.values), [0, 0, 0, 1], atol=0.01)
    run = Run(torch)
    run.optimizer.zero_grad()
    for batch in run.loader:
        run.backward(batch)
    run.optimizer.step()
    np.testing.assert_allclose(run.steps.values, [1], atol=0.01)


def test_the_training_is_that_of_an_optimizer_without_the_hook(torch):
    """The same weights after a pass with noise, and per-example gradients of the batch alone."""
    weights = []
    for hooked in (True, False):
        run = Run(torch, noise=1.0)
        if not hooked:
            run.optimizer.original_optimizer._optimizer_step_pre_hooks.clear()
        run.train()
        assert len(run.steps.values) == (4 if hooked else 0)
        weights.append([each.detach().clone() for each in run.model.parameters()])
    assert all(torch.equal(*pair) for pair in zip(*weights, strict=True))


def test_a_tensor_that_the_canary_does_not_reach_counts_as_0(torch):
    """A loss of the weights alone has no gradient in the bias, and is measured along the weights."""
    run = Run(torch)
    steps = Projections.from_opacus(
        run.optimizer, model=run.model, loss=lambda: next(run.model.parameters()).sum()
    )
    run.train()
    np.testing.assert_allclose(steps.sizes, 1)


def test_what_is_not_private_is_refused(torch):
    """Another optimizer or the model before `make_private`: one sentence each."""
    run = Run(torch)
    plain = torch.optim.SGD(run.model.parameters(), lr=0.1)
    with pytest.raises(InputError, match="optimizer must be the one that Opacus's make_private returned"):
        Projections.from_opacus(plain, model=run.model, loss=float)
    with pytest.raises(InputError, match="model must be the one that Opacus's make_private returned"):
        Projections.from_opacus(run.optimizer, model=torch.nn.Linear(4, 2), loss=float)
