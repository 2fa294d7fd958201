"""PyTorch modules on devices: memory that is too small, and tensors that NumPy cannot read."""

from typing import ClassVar

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import auditor

torch = pytest.importorskip("torch")


class Crowded(torch.nn.Module):
    """A linear model on a device that holds few records at once."""

    def __init__(self, most):
        super().__init__()
        self.inner, self.most, self.sizes = torch.nn.Linear(3, 4), most, []

    def forward(self, x):
        """Fail as a device does that is out of memory."""
        self.sizes.append(len(x))
        if len(x) > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return self.inner(x)


@pytest.mark.parametrize(("dtype", "most"), [(torch.float32, 100), (torch.bfloat16, 100), (torch.float32, 3)])
def test_a_batch_that_does_not_fit_is_halved(rng, dtype, most):
    """Batches are halved until one fits, in the trial too, and stay so small; the losses are those with more memory."""
    torch.manual_seed(0)
    model = Crowded(most).to(dtype)
    members, nonmembers = ((rng.normal(size=(700, 3)), rng.integers(0, 4, 700)) for _ in range(2))
    found = auditor.collect(model, members, nonmembers)
    assert max(model.sizes[-8:]) <= most
    model.most = 10_000
    expected = auditor.collect(model, members, nonmembers)
    np.testing.assert_allclose(found.member, expected.member, rtol=1e-6 if dtype is torch.float32 else 0.05)
    assert found.history == expected.history


@pytest.mark.parametrize(
    ("width", "most"), [(3, 4096), (2**10, 2**9), (2**18, 32)], ids=["narrow", "two mebibytes", "wide"]
)
def test_a_call_has_as_many_records_as_the_cache_holds(width, most):
    """At most 4,096 records, or 2 MiB of their features, but at least 32: larger calls take a processor several times as long."""

    class First(torch.nn.Module):
        sizes: ClassVar[list[int]] = []

        def forward(self, x):
            self.sizes.append(len(x))
            return x[:, :2]

    n = 2 * most + 3
    members = np.zeros((n, width), dtype=np.float32), np.arange(n) % 2
    auditor.collect(First(), members, tuple(part[:40] for part in members), output="logits")
    first = First.sizes.index(most)
    assert First.sizes[first : first + 3] == [most, most, 3]


def test_a_record_that_does_not_fit_is_refused(rng):
    """Where not even one record fits, the device's message is the reason."""
    both = (rng.normal(size=(5, 3)), [0, 1, 2, 3, 0])
    with pytest.raises(auditor.InputError, match="Crowded refused it: CUDA out of memory"):
        auditor.collect(Crowded(0), both, both)


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ([torch.zeros(3), torch.zeros(2)], "nonmember X must suit .* Crowded refused it: stack expects each"),
        (torch.zeros(2, 3, device="meta"), "nonmember X must suit .* Crowded refused it: Cannot copy out"),
        (torch.zeros(300, 3).to_sparse(), "to be taken in parts, got Tensor; convert it first"),
    ],
)
def test_tensors_that_cannot_be_used_are_one_sentence(rng, features, words):
    """Tensors of different shapes, without data, or that cannot be taken in parts."""
    with pytest.raises(auditor.InputError, match=words):
        auditor.collect(Crowded(100), (rng.normal(size=(2, 3)), [0, 1]), (features, [0] * len(features)))


class OnDevice(torch.Tensor):
    """A tensor that NumPy cannot read, as one on a GPU; ``cpu()`` is a plain one."""

    def __array__(self, *_):
        """Refuse as PyTorch does."""
        raise TypeError("can't convert cuda:0 device type tensor to numpy.")

    def detach(self):
        """Return this tensor, still on its device."""
        return self

    def cpu(self):
        """Return a plain tensor."""
        return torch.Tensor.detach(self).as_subclass(torch.Tensor)


def elsewhere(values):
    """A tensor on a device."""
    return torch.as_tensor(values).as_subclass(OnDevice)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("kind", ["module", "function", "estimator"])
def test_tensors_of_any_device_and_type_are_taken(rng, dtype, kind):
    """Features and labels on a device give the losses and fingerprints of the same numbers in arrays, for any kind of model."""
    torch.manual_seed(0)
    x, y = torch.as_tensor(rng.normal(size=(40, 3))).to(dtype), rng.integers(0, 2, 40)
    plain = x.double().numpy()
    estimator = LogisticRegression().fit(plain, y)
    model = {
        "module": torch.nn.Linear(3, 2),
        "function": lambda rows: estimator.predict_proba(
            rows.cpu().double() if torch.is_tensor(rows) else rows
        ),
        "estimator": estimator,
    }[kind]
    there = elsewhere(x), elsewhere(y)
    found, expected = auditor.collect(model, there, there), auditor.collect(model, (plain, y), (plain, y))
    np.testing.assert_allclose(found.member, expected.member, rtol=1e-5, atol=1e-6)
    assert (found.fingerprint.member == expected.fingerprint.member).all()
    assert found.history == expected.history


@pytest.mark.parametrize("n", [2, 8, 10, 11, 500])
def test_a_random_model_is_named_in_groups_of_any_size(rng, n):
    """The same records are requested again although the outputs of a small group are kept."""

    class Noisy(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x) + torch.randn(len(x), 2)

    group = rng.normal(size=(n, 3)), rng.integers(0, 2, n)
    with pytest.warns(UserWarning, match="answers differently on repeat"):
        losses = auditor.collect(Noisy(3, 2), group, group)
    assert "answers differently on repeat" in losses.notes[0]
