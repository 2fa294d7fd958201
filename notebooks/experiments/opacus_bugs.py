"""Two real bugs of private training with Opacus, each beside its repair, for audits that train many times.

A linear model of a few weights is trained on records whose gradients are 0, and on a canary whose gradient is clipped to
norm 1 along a feature of its own. Nothing is planted: Opacus does the rest.

* shuffled: ``poisson_sampling=False`` leaves a shuffling loader as it is, and the accountant still counts every step as
  Poisson-sampled. With T batches a Poisson sampler never draws the canary with probability (1 - 1/T)^T, about 35%; one
  pass over shuffled records uses it for certain. Known of jax_privacy too (pull request 272). Repair: Poisson sampling.
* normalised: Opacus divides the noisy sum by the expected batch size, which it derives from the number of records and
  rounds down (issues 571 and 819). That number is what one record more or less changes: 3 records in batches of 2 are
  divided by 1, and 4 by 2, so the noise itself says which it was. Repair: a public divisor, ``loss_reduction="sum"``.
"""

import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import auditor

__all__ = ["BUGS", "REPAIRED", "Case", "Setup"]


@dataclass(frozen=True)
class Setup:
    """One way of training with Opacus.

    Attributes:
        records: How many records there are besides the canary.
        batch_size: Of the loader; Opacus' sampling rate is one over its number of batches.
        noise_multiplier: Of Opacus.
        features: How many weights the model has.
        passes: Over the loader.
        poisson: Whether Opacus draws batches by coins; a shuffling loader otherwise.
        reduction: ``"mean"``, which divides by the expected batch size, or ``"sum"``.
        by_length: Whether a run is scored by the length of its last weights, which shows how large the noise was; else
            by the largest step along the canary's feature.
        delta: To judge the claim at, fixed here before any run.
    """

    records: int
    batch_size: int
    noise_multiplier: float
    features: int
    passes: int
    poisson: bool
    reduction: str
    by_length: bool
    delta: float

    def score(self, with_canary: bool, seed: int) -> float:  # noqa: FBT001
        """Return the score of one training, smaller with the canary."""
        weights, _ = self._trained(with_canary, seed)
        return float(weights[-1].norm() if self.by_length else -weights.diff(dim=0)[:, 0].max())

    def claim(self, seed: int = 0) -> auditor.DPSGD:
        """Return what Opacus claims of this training: its accountant's record, and the sampler that its loader shows."""
        return self._trained(True, seed)[1]

    def _trained(self, with_canary: bool, seed: int) -> tuple[Any, auditor.DPSGD]:  # noqa: FBT001
        """Return the weights before and after every step, and the claim."""
        import torch
        from opacus import PrivacyEngine
        from torch.utils.data import DataLoader, TensorDataset

        logging.getLogger("opacus").setLevel(logging.ERROR)  # of empty batches, which Poisson sampling gives
        torch.manual_seed(seed)
        inputs = torch.zeros(self.records + with_canary, self.features)
        if with_canary:
            inputs[-1, 0] = 1.0
        loader = DataLoader(TensorDataset(inputs), batch_size=self.batch_size, shuffle=True)
        model = torch.nn.Linear(self.features, 1, bias=False)
        torch.nn.init.zeros_(model.weight)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a generator that is not secure is what makes a run repeatable
            engine = PrivacyEngine(accountant="rdp")
            model, optimizer, loader = engine.make_private(
                module=model,
                optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
                data_loader=loader,
                noise_multiplier=self.noise_multiplier,
                max_grad_norm=1.0,
                poisson_sampling=self.poisson,
                loss_reduction=self.reduction,
            )
            (weight,) = model.parameters()
            path = [weight.detach().flatten().clone()]
            for _ in range(self.passes):
                for (batch,) in loader:
                    optimizer.zero_grad()
                    loss = -100 * model(
                        batch
                    )  # linear, so that the canary's gradient always has the same direction
                    (loss.mean() if self.reduction == "mean" else loss.sum()).backward()
                    optimizer.step()
                    path.append(weight.detach().flatten().clone())
        claim = auditor.DPSGD.from_opacus(engine, data_loader=loader)
        return torch.stack(path), claim


_SHUFFLED = Setup(19, 2, 0.1, 1, 1, poisson=False, reduction="sum", by_length=False, delta=0.66)
_NORMALISED = Setup(3, 2, 4.0, 50, 2, poisson=True, reduction="mean", by_length=True, delta=1e-5)
_POISSON = replace(_SHUFFLED, poisson=True)
_SUMMED = replace(_NORMALISED, reduction="sum")


def train_shuffled(with_canary: bool, seed: int) -> float:  # noqa: FBT001 - as collect_runs calls it
    """Pass once over shuffled records, which Opacus accounts as Poisson-sampled."""
    return _SHUFFLED.score(with_canary, seed)


def train_poisson(with_canary: bool, seed: int) -> float:  # noqa: FBT001
    """Do the same with Poisson sampling."""
    return _POISSON.score(with_canary, seed)


def train_normalised(with_canary: bool, seed: int) -> float:  # noqa: FBT001
    """Divide the noisy sums by what Opacus derives from the number of records."""
    return _NORMALISED.score(with_canary, seed)


def train_summed(with_canary: bool, seed: int) -> float:  # noqa: FBT001
    """Do the same without dividing."""
    return _SUMMED.score(with_canary, seed)


class Case(NamedTuple):
    """A training for `auditor.collect_runs`, and what it does."""

    train: Callable[[bool, int], float]
    setup: Setup


BUGS = {"shuffled": Case(train_shuffled, _SHUFFLED), "normalised": Case(train_normalised, _NORMALISED)}
"""What is wrong as Opacus does it."""

REPAIRED = {"shuffled": Case(train_poisson, _POISSON), "normalised": Case(train_summed, _SUMMED)}
"""The same trainings without it."""
