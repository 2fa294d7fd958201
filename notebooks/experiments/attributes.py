"""DP-SGD on Adult, and how far the clipped gradients move when a person's age is replaced by another.

This is Algorithm 4 of Cherubin et al. 2024 in numpy, for a network with one hidden layer. Two facts make it cheap, and
neither is an approximation:

* A layer's gradient for one record is the outer product of what comes back (``delta``) and what went in (``a``), so its
  norm is the product of two norms, and a sum of clipped gradients is one product of matrices.
* Records that differ in one column only have first-layer gradients ``delta`` times ``(rest, age)`` with the same
  ``rest``. All distances between them stay the same when ``rest`` is replaced by its length: two numbers instead of 109.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pandas as pd

from auditor import DPSGD
from auditor.sensitivity import (
    Approximate,
    Columns,
    Full,
    SensitivityTracker,
    TorchSensitivityTracker,
    clipped,
    largest_distance,
)
from auditor.theory import attribute_inference, bayes_security_closed_form, epsilon
from experiments.adult import LIMITS, Adult, load, stand_in

__all__ = [
    "ADULT",
    "AGE",
    "AGES",
    "ANALYSES",
    "EPOCHS",
    "SMALL",
    "People",
    "completion_gradients",
    "initial",
    "measured_twice",
    "people",
    "securities",
    "table",
    "train",
    "training",
    "whole_cases",
]

Floats = npt.NDArray[np.float64]
Weights = tuple[Floats, Floats, Floats, Floats]  # hidden layer and its bias, output and its bias

# The whole range that the paper considers (Section 6): 74 values.
AGES = np.arange(17, 91)
ANALYSES = (
    "no privacy",
    "DP only",
    "accountant",
    "closed form",
    "approximate",
    "full",
    "all pairs",
    "every measure",
)
AGE = 0  # the column
EPOCHS = (1, 2, 5, 10, 15, 20, 25, 30)  # after which trainings are looked at
HIDDEN = 64
CLIP = 1.0
# The paper's setting, for the number of records that its noise belongs to; and one of the same sampling and security
# (0.9 against membership after 20 epochs) that takes seconds.
ADULT = {"source": "adult", "records": 26_318, "batch": 256, "noise": 3.51, "rate": 1.0}
SMALL = {"source": "stand-in", "records": 1_280, "batch": 64, "noise": 7.96, "rate": 0.1, "hidden": 16}


@dataclass(frozen=True)
class People:
    """Records as the network sees them.

    Attributes:
        x: Shape (n, 108); age is column 0.
        y: Shape (n,), 0 or 1.
        x_test: As ``x``, for records outside the training set.
        y_test: As ``y``.
        ages: Shape (74,), the ages from 17 to 90 in the units of column 0.
        source: "UCI Adult" or "stand-in, not Adult".
    """

    x: Floats
    y: Floats
    x_test: Floats
    y_test: Floats
    ages: Floats
    source: str


@cache
def people(source: str, *, records: int, scaling: str = "standard", seed: int = 0) -> People:
    """Return a random part of Adult's training file and its whole test file, or of the stand-in.

    Args:
        source: "adult" (from the folder in the environment variable ``ADULT``) or "stand-in".
        records: Size of the training set.
        scaling: "standard" gives every number mean 0 and deviation 1; "public" divides by round limits that are known
            without looking at the data.
        seed: Draws the part.
    """
    table = load(os.environ["ADULT"]) if source == "adult" else stand_in(n_train=records, n_test=2 * records)
    chosen = np.random.default_rng(seed).permutation(len(table.y_train))[:records]
    x, x_test, ages = table.x_train[chosen].astype(float), table.x_test.astype(float), AGES / LIMITS["age"]
    if scaling == "standard":
        numbers = slice(0, len(LIMITS))
        centre, spread = x[:, numbers].mean(axis=0), x[:, numbers].std(axis=0)
        x[:, numbers], x_test[:, numbers] = (x[:, numbers] - centre) / spread, _scaled(table, centre, spread)
        ages = (ages - centre[AGE]) / spread[AGE]
    return People(
        x, table.y_train[chosen].astype(float), x_test, table.y_test.astype(float), ages, table.source
    )


def _scaled(table: Adult, centre: Floats, spread: Floats) -> Floats:
    return (table.x_test[:, : len(LIMITS)] - centre) / spread


def initial(width: int, *, hidden: int = HIDDEN, seed: int = 0) -> Weights:
    """Return random weights of a network with one hidden layer of rectified units and one output, the log-odds."""
    rng = np.random.default_rng(seed)
    first = rng.normal(scale=np.sqrt(2 / width), size=(width, hidden))
    return first, np.zeros(hidden), rng.normal(scale=np.sqrt(1 / hidden), size=hidden), np.zeros(1)


def completion_gradients(weights: Weights, x: Floats, y: Floats, ages: Floats) -> Floats:
    """Return the gradients of records with every age, in fewer numbers that are as far apart and as long.

    Args:
        weights: As from `initial`.
        x: Shape (records, columns); age is column 0.
        y: Shape (records,).
        ages: Shape (ages,), in the units of column 0.

    Returns:
        Shape (records, ages, 3 x hidden + 1): the first layer's along ``rest`` and along the age, then the second's.
    """
    first, bias, second, offset = weights
    rest = x.copy()
    rest[:, AGE] = 0.0
    entering = (rest @ first + bias)[:, None, :] + ages[None, :, None] * first[AGE]
    active = np.maximum(entering, 0.0)
    residual = _sigmoid(active @ second + offset) - y[:, None]
    back = residual[..., None] * second * (entering > 0)
    length = np.sqrt((rest**2).sum(axis=1) + 1)[:, None, None]  # 1 is the bias's input
    return np.concatenate(
        [back * length, back * ages[None, :, None], residual[..., None] * active, residual[..., None]], axis=2
    )


def measured_twice(people: People, *, records: int) -> tuple[float, float | None]:
    """Return R_t of the first records at random weights, as measured here and by the PyTorch tracker of the package.

    The second is missing where PyTorch is.
    """
    weights = initial(people.x.shape[1], seed=5)
    x, y = people.x[:records].copy(), people.y[:records].copy()
    here = SensitivityTracker(clipping_norm=CLIP)
    here.observe(completion_gradients(weights, x, y, people.ages))
    here.end_step()
    try:
        import torch
    except ImportError:
        return float(here.sensitivities[0]), None
    layers = torch.nn.Linear(x.shape[1], HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 1)
    network = torch.nn.Sequential(*layers).double()
    with torch.no_grad():
        for parameter, value in zip(network.parameters(), weights, strict=True):
            parameter.copy_(torch.tensor(value.T).reshape(parameter.shape))
    ages, loss = Columns(AGE, people.ages), torch.nn.BCEWithLogitsLoss()
    there = TorchSensitivityTracker(network, loss, completions=ages, clipping_norm=CLIP)
    there.observe(torch.tensor(x), torch.tensor(y[:, None]))
    there.end_step()
    return float(here.sensitivities[0]), float(there.sensitivities[0])


def train(case: Mapping[str, object], *, seed: int) -> dict[str, Floats | float | str]:
    """Train once by DP-SGD with Poisson sampling, and measure on the way: a task for `experiments.grid.run_all`.

    Args:
        case: ``source``, ``records``, ``scaling`` (as for `people`), ``batch`` (expected size), ``epochs``, ``noise``
            (multiplier), ``rate`` (learning rate), ``analysis`` (one of `ANALYSES`) and, where not 64, ``hidden`` (units).
        seed: Draws the records, the weights, the batches and the noise.

    Returns:
        ``accuracy`` after each epoch on the test records; ``seconds`` of the processor in each epoch; ``full``,
        ``approximate`` and ``extremes``: R_t of each step over C, empty where not measured, approximations not cut at 2;
        ``sampling_rate``, ``steps`` (in all) and ``source``.
    """
    data = people(str(case["source"]), records=int(case["records"]), scaling=str(case["scaling"]), seed=seed)
    run = _Run(
        data,
        initial(data.x.shape[1], hidden=int(case.get("hidden", HIDDEN)), seed=seed),
        np.random.default_rng([seed, 1]),
    )
    analysis, private = str(case["analysis"]), case["analysis"] != "no privacy"
    noise, rate = float(case["noise"]) if private else 0.0, float(case["batch"]) / len(data.y)
    steps = round(1 / rate)
    measure = _MEASURES.get(analysis, {})
    found: dict[str, list[float]] = {"full": [], "approximate": [], "extremes": []}
    accuracy, seconds = [], []
    for epoch in range(1, int(case["epochs"]) + 1):
        start = time.process_time()
        for _ in range(steps):
            drawn = run.rng.random(len(data.y)) < rate
            for name, distance in run.distances(drawn, measure).items():
                found[name].append(distance)
            run.update(drawn, noise=noise, private=private, learning_rate=float(case["rate"]) / case["batch"])
        _account(analysis, DPSGD(noise or 1.0, rate, epoch * steps))
        seconds.append(time.process_time() - start)
        accuracy.append(run.accuracy())
    series = {
        name: np.array(values) for name, values in {**found, "accuracy": accuracy, "seconds": seconds}.items()
    }
    return {
        **series,
        "sampling_rate": rate,
        "steps": float(steps * int(case["epochs"])),
        "source": data.source,
    }


def training(case: Mapping[str, object], *, epochs: int) -> DPSGD:
    """Return what a case has run after so many epochs.

    Args:
        case: As for `train`.
        epochs: Passes, of as many steps as batches fill a training set.
    """
    rate = float(case["batch"]) / float(case["records"])
    return DPSGD(float(case["noise"]), rate, epochs * round(1 / rate))


def securities(case: Mapping[str, object], distances: Floats, *, epochs: int) -> tuple[float, float]:
    """Return beta* against attribute inference after so many epochs: by Corollary 10, and by the bound.

    Args:
        case: Of `train`.
        distances: R_t over C of each step; none counts as more than 2, as clipped gradients are no farther apart.
        epochs: At most those of the case.
    """
    run = training(case, epochs=epochs)
    claims = attribute_inference(run, sensitivities=np.minimum(distances[: run.steps], 2.0))
    values = [claim.value for claim in claims if claim.metric == "attribute_bayes_security"]
    return values[0], values[2]


def whole_cases(base: Mapping[str, object], *, repeats: int) -> list[dict[str, object]]:
    """Return the settings of trainings of 30 epochs that measure all distances, with both scalings.

    Args:
        base: `ADULT`, or one of its kind.
        repeats: Trainings with each scaling.
    """
    return [
        {**base, "scaling": scaling, "epochs": EPOCHS[-1], "analysis": "every measure", "repeat": repeat}
        for repeat in range(repeats)
        for scaling in ("standard", "public")
    ]


def table(cases: Sequence[Mapping[str, object]], trained: Sequence[Mapping[str, Floats]]) -> pd.DataFrame:
    """Return a line for each training and epoch of `EPOCHS`: accuracy, and beta* by Corollary 10 and by the bound.

    Args:
        cases: Of `whole_cases`.
        trained: Of `train`, in the same order.
    """
    rows = []
    for case, found in zip(cases, trained, strict=True):
        for epochs in EPOCHS:
            row = {"scaling": case["scaling"], "repeat": case["repeat"], "epochs": epochs}
            row["accuracy"] = found["accuracy"][epochs - 1]
            for measure in ("approximate", "extremes", "full"):
                row[measure], row["bound, full"] = securities(case, found[measure], epochs=epochs)
            rows.append(row)
    return pd.DataFrame(rows)


@dataclass
class _Run:
    """A network while it is trained."""

    data: People
    weights: Weights
    rng: np.random.Generator

    def distances(
        self, drawn: npt.NDArray[np.bool_], measure: Mapping[str, Callable[[Floats], float]]
    ) -> dict[str, float]:
        """Return the largest distance of this step by each measure that is asked for."""
        if not measure:
            return {}
        points = completion_gradients(self.weights, self.data.x[drawn], self.data.y[drawn], self.data.ages)
        points = clipped(points, clipping_norm=CLIP)
        return {name: function(points) for name, function in measure.items()}

    def update(
        self, drawn: npt.NDArray[np.bool_], *, noise: float, private: bool, learning_rate: float
    ) -> None:
        """Take one step of DP-SGD, or of SGD."""
        first, bias, second, offset = self.weights
        x, y = self.data.x[drawn], self.data.y[drawn]
        entering = x @ first + bias
        active = np.maximum(entering, 0.0)
        residual = _sigmoid(active @ second + offset) - y
        back = residual[:, None] * second * (entering > 0)
        if private:
            squares = (back**2).sum(axis=1) * ((x**2).sum(axis=1) + 1) + residual**2 * (
                (active**2).sum(axis=1) + 1
            )
            share = np.minimum(1.0, CLIP / np.sqrt(np.maximum(squares, 1e-300)))
            residual, back = residual * share, back * share[:, None]
        sums = (x.T @ back, back.sum(axis=0), active.T @ residual, residual.sum(keepdims=True))
        self.weights = tuple(  # type: ignore[assignment]
            weight
            - learning_rate
            * (total + noise * CLIP * self.rng.normal(size=weight.shape) if private else total)
            for weight, total in zip(self.weights, sums, strict=True)
        )

    def accuracy(self) -> float:
        """Return the share of right answers on the test records."""
        first, bias, second, offset = self.weights
        answers = np.maximum(self.data.x_test @ first + bias, 0.0) @ second + offset > 0
        return float((answers == (self.data.y_test > 0)).mean())


def _sigmoid(values: Floats) -> Floats:
    return np.asarray(0.5 * (1 + np.tanh(values / 2)))


def _every_pair(points: Floats) -> float:
    """Return the largest distance by looking at every pair of every record, as the paper's full analysis does."""
    squares = (points**2).sum(axis=2)
    apart = squares[:, :, None] + squares[:, None, :] - 2 * points @ points.transpose(0, 2, 1)
    return float(np.sqrt(max(apart.max(), 0.0)))


def _full(points: Floats) -> float:
    return largest_distance(points, distance=Full())


def _approximate(points: Floats) -> float:
    return largest_distance(points, distance=Approximate())


def _extremes(points: Floats) -> float:
    """Return the largest distance between the youngest and the oldest completion only (the paper's domain knowledge)."""
    return largest_distance(points[:, [0, -1]], distance=Full())


_MEASURES: Mapping[str, Mapping[str, Callable[[Floats], float]]] = {
    "approximate": {"approximate": _approximate},
    "full": {"full": _full},
    "all pairs": {"full": _every_pair},
    "every measure": {"full": _full, "approximate": _approximate, "extremes": _extremes},
}


def _account(analysis: str, so_far: DPSGD) -> None:
    """Compute after an epoch what is computed once for an epoch."""
    if analysis == "accountant":
        epsilon(so_far, delta=1e-6)
    if analysis == "closed form":
        bayes_security_closed_form(so_far)
