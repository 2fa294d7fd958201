"""The published grid of privacy strategies, as values.

Paper 004, Section 4.1: for Adult baselines of 1, 5, 10 and 20 epochs and DP-SGD at epsilon 1, 3, 10 and 100, clipping norm
1, 10 and 30, batches of 64 and 512, 1 and 32 microbatches: 4 + 48 = 52 strategies, five models each. For Purchase-100 the
baselines are of 10, 50 and 100 epochs and the batches of 256 and 1,024: 51 strategies.

What the paper does not print, and what is taken here: 10 passes for DP-SGD on Adult (50 on Location-30, 10 on
Purchase-100), the smaller batch for baselines, one hidden layer of 128 tanh units for Adult (Shokri et al. 2017), tanh
units for the three layers of 100, batches of 64 and 256 for Location-30 (a hundredth of Purchase-100's size).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

__all__ = [
    "GRIDS",
    "Strategy",
    "adult_grid",
    "location30_grid",
    "purchase100_grid",
    "small_grid",
    "strategy_of",
]

EPSILONS, CLIPS, MICROBATCHES = (1, 3, 10, 100), (1, 10, 30), (1, 32)


@dataclass(frozen=True)
class Strategy:
    """One way to train: a point of the privacy-utility landscape, of which several models are trained.

    Attributes:
        data: "adult", "stand-in", "location30" or "purchase100".
        epochs: Passes over the training set.
        batch: Records of a step.
        epsilon: Wanted, as usually stated; none for a baseline.
        clip: Clipping norm of DP-SGD.
        microbatches: Of each batch, for DP-SGD.
        hidden: Widths of the hidden layers.
        n_train: Records of the stand-in; none for real data.
        n_test: Likewise.
        learning_rate: The paper's.
        momentum: The paper's.
    """

    data: str
    epochs: int
    batch: int
    epsilon: float | None = None
    clip: float | None = None
    microbatches: int | None = None
    hidden: str = "128"
    n_train: int | None = None
    n_test: int | None = None
    learning_rate: float = 0.01
    momentum: float = 0.9

    @property
    def name(self) -> str:
        """What the strategy's models share, for `auditor.comparison.compare_audits` and legends."""
        if self.epsilon is None:
            return f"baseline, {self.epochs} {'epoch' if self.epochs == 1 else 'epochs'}"
        micro = "1 microbatch" if self.microbatches == 1 else f"{self.microbatches} microbatches"
        return f"DP epsilon {self.epsilon:g}, clip {self.clip:g}, batch {self.batch}, {micro}"

    @property
    def kind(self) -> str:
        """The strategy without its other settings: "baseline" or the epsilon that was trained to."""
        return "baseline" if self.epsilon is None else f"DP epsilon {self.epsilon:g}"

    def case(self, *, repeat: int) -> dict[str, Any]:
        """Return the setting of one model, for `experiments.grid.run_all`; another repeat has another seed."""
        return {**self.__dict__, "repeat": repeat}


def adult_grid(*, dp_epochs: int = 10) -> tuple[Strategy, ...]:
    """Return the paper's 52 strategies for Adult (Figure 2).

    Args:
        dp_epochs: Passes of DP-SGD, which the paper does not print.
    """
    baselines = tuple(Strategy("adult", epochs, 64) for epochs in (1, 5, 10, 20))
    return baselines + _private("adult", dp_epochs, batches=(64, 512), hidden="128")


def location30_grid(*, dp_epochs: int = 50) -> tuple[Strategy, ...]:
    """Return 51 strategies for Location-30, in place of Figure 1's for Purchase-100.

    Args:
        dp_epochs: Passes of DP-SGD, which the paper does not print.
    """
    return _three_layers("location30", dp_epochs, batches=(64, 256))


def purchase100_grid(*, dp_epochs: int = 10) -> tuple[Strategy, ...]:
    """Return the paper's 51 strategies for Purchase-100 (Figure 1).

    Args:
        dp_epochs: Passes of DP-SGD, which the paper does not print.
    """
    return _three_layers("purchase100", dp_epochs, batches=(256, 1024))


def small_grid(*, n_train: int = 1_536, n_test: int = 768) -> tuple[Strategy, ...]:
    """Return three strategies on the stand-in for Adult that train in seconds: two baselines and DP at epsilon 1.

    Args:
        n_train: Records for training.
        n_test: Records left out.
    """
    made = {"data": "stand-in", "batch": 64, "n_train": n_train, "n_test": n_test}
    return (
        Strategy(epochs=1, **made),
        Strategy(epochs=20, **made),
        Strategy(epochs=2, epsilon=1, clip=1, microbatches=32, **made),
    )


def _private(data: str, epochs: int, *, batches: tuple[int, ...], hidden: str) -> tuple[Strategy, ...]:
    return tuple(
        Strategy(data, epochs, batch, epsilon, clip, microbatches, hidden)
        for epsilon, clip, batch, microbatches in product(EPSILONS, CLIPS, batches, MICROBATCHES)
    )


def _three_layers(data: str, dp_epochs: int, *, batches: tuple[int, ...]) -> tuple[Strategy, ...]:
    hidden = "100-100-100"
    baselines = tuple(Strategy(data, epochs, batches[0], hidden=hidden) for epochs in (10, 50, 100))
    return baselines + _private(data, dp_epochs, batches=batches, hidden=hidden)


def strategy_of(result: Mapping[str, Any]) -> Strategy:
    """Return the strategy that a result of `run` is of."""
    return Strategy(**{name: result[name] for name in Strategy.__dataclass_fields__})


GRIDS = {"adult": adult_grid, "location30": location30_grid, "purchase100": purchase100_grid}
