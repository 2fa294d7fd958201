"""A small DP-SGD, correct and with planted bugs, for audits that train it many times.

Two trainings act out the audit of backpropagation clipping. Both train a logistic regression on the same records and score one canary, a worst case: a record of norm 100, with a
feature that no other has. Batches are drawn by independent coins. They differ in what is clipped:

* correct: every record's gradient is clipped to norm C, the sum gets noise of standard deviation s C, and is divided
  by the expected batch size B;
* bug: the *mean* gradient of the batch is clipped to norm C, and the noise is s C / B, as if one record could move a
  clipped mean by C / B only. It can move it by 2 C, so the noise is too small for it by a factor of 2 B.

The bug is ours, a sensitivity that is wrong by a factor of the batch size. Of the one that Tramer et al. 2022 found in
backpropagation clipping the lecture says only "they found a bug".

`Training` is another DP-SGD of the same kind, with the bugs that are found in practice: too little noise, no clipping, and a
record that is in every batch.
"""

import time
from dataclasses import dataclass
from functools import cache

import numpy as np

import auditor
from auditor import theory

__all__ = [
    "BUGS",
    "CANARIES",
    "CLAIM",
    "PLANTED",
    "SETUP",
    "Setup",
    "Training",
    "mean_gradient",
    "minutes",
    "noise_multiplier",
    "train_correctly",
    "train_with_bug",
]

CLAIM = auditor.StatedClaim(epsilon=0.21, delta=1e-5)
"""What both mechanisms claim; the claim of backpropagation clipping."""


@dataclass(frozen=True)
class Setup:
    """What both trainings share.

    Attributes:
        records: How many records there are besides the canary.
        features: How many features they have; the canary has one more.
        sampling_rate: The chance of each record to be in a batch.
        steps: How many batches are drawn.
        clip: The norm C.
        learning_rate: Of plain gradient descent.
        canary: The value of the canary's own feature.
    """

    records: int = 100
    features: int = 5
    sampling_rate: float = 0.5
    steps: int = 5
    clip: float = 1.0
    learning_rate: float = 0.01
    canary: float = 100.0

    @property
    def batch(self) -> float:
        """The expected batch size B."""
        return self.sampling_rate * self.records

    def data(self, *, with_canary: bool) -> np.ndarray:
        """Return the records, each times its label of 1 or -1; the canary is the last one."""
        rng = np.random.default_rng(0)
        x = rng.normal(size=(self.records, self.features)) / np.sqrt(self.features)
        labels = np.sign(x[:, :1] + 0.3 * rng.normal(size=(self.records, 1)))
        records = np.hstack([x * labels, np.zeros((self.records, 1))])
        return np.vstack([records, self.canary_record]) if with_canary else records

    @property
    def canary_record(self) -> np.ndarray:
        """The canary times its label."""
        return np.append(np.zeros(self.features), self.canary)


SETUP = Setup()
"""What both trainings below use."""


@cache
def noise_multiplier() -> float:
    """Return the noise multiplier at which the correct mechanism keeps the claim, by the accountant."""
    wanted = theory.WantedEpsilon(CLAIM.epsilon, delta=CLAIM.delta)
    found = theory.noise_multiplier_for(wanted, sampling_rate=SETUP.sampling_rate, steps=SETUP.steps)
    return float(found.value)


def train_correctly(with_canary: bool, seed: int) -> float:  # noqa: FBT001 - as collect_runs calls it
    """Train once with every record's gradient clipped, and return the canary's loss."""
    return _train(with_canary=with_canary, seed=seed, per_record=True)


def train_with_bug(with_canary: bool, seed: int) -> float:  # noqa: FBT001 - as collect_runs calls it
    """Train once with the batch's mean gradient clipped instead, and return the canary's loss."""
    return _train(with_canary=with_canary, seed=seed, per_record=False)


def minutes(*, trainings: int) -> float:
    """Return about how many minutes so many trainings take on one core, by the time that a hundred take now."""
    _train(with_canary=True, seed=0, per_record=True)  # finds the noise, once
    start = time.perf_counter()
    for seed in range(100):
        _train(with_canary=True, seed=seed, per_record=True)
    return trainings * (time.perf_counter() - start) / 100 / 60


def mean_gradient(batch: np.ndarray, weights: np.ndarray, *, per_record: bool) -> np.ndarray:
    """Return the clipped mean gradient of the logistic loss, before noise.

    Args:
        batch: Shape (records, d), each times its label.
        weights: Shape (d,).
        per_record: Whether every record's gradient is clipped, which is correct, or their mean.
    """
    gradients = -batch / (1 + np.exp(batch @ weights))[:, None]
    if per_record:
        return _clipped(gradients).sum(axis=0) / SETUP.batch
    return _clipped(gradients.sum(axis=0, keepdims=True) / SETUP.batch)[0]


# --- Bugs of a factor of ten, and how many trainings find them ---

PLANTED = auditor.DPSGD(noise_multiplier=1.0, sampling_rate=0.2, steps=20)
"""What each `Training` claims."""
_RECORDS = Setup(records=300, sampling_rate=0.2, steps=20)
CANARIES = {
    "a wrong label": -_RECORDS.data(with_canary=False)[0],
    "a feature of its own, of 1": np.append(np.zeros(_RECORDS.features), 1.0),
    "a feature of its own, of 100": _RECORDS.canary_record,
}
"""Records that can be planted, each times its label: one of the others with its label turned round, and two extreme ones."""


@dataclass(frozen=True)
class Training:
    """Logistic regression by the DP-SGD of `PLANTED`, with one bug at most, as `auditor.collect_runs` calls it.

    Attributes:
        noise: Standard deviation of the noise, as a share of what is claimed.
        clips: Whether gradients are clipped.
        always: Whether the canary is in every batch, and not by a coin like all others.
        canary: A name in `CANARIES`.
    """

    noise: float = 1.0
    clips: bool = True
    always: bool = False
    canary: str = "a feature of its own, of 100"

    def __call__(self, with_canary: bool, seed: int) -> float:  # noqa: FBT001 - as collect_runs calls it
        """Train once, and return the canary's loss."""
        rng, canary = np.random.default_rng(seed), CANARIES[self.canary]
        records = np.vstack([_others(), canary]) if with_canary else _others()
        noise, weights = self.noise * PLANTED.noise_multiplier * _RECORDS.clip, np.zeros(canary.size)
        for _ in range(PLANTED.steps):
            drawn = rng.random(len(records)) < PLANTED.sampling_rate
            if self.always and with_canary:
                drawn[-1] = True
            gradients = -records[drawn] / (1 + np.exp(records[drawn] @ weights))[:, None]
            total = (_clipped(gradients) if self.clips else gradients).sum(axis=0)
            weights -= (
                _RECORDS.learning_rate * (total + rng.normal(0.0, noise, weights.size)) / _RECORDS.batch
            )
        return float(np.logaddexp(0.0, -(canary @ weights)))


BUGS = {
    "correct": Training(),
    "half of the noise": Training(noise=0.5),
    "a tenth of the noise": Training(noise=0.1),
    "no clipping": Training(clips=False),
    "canary in every batch": Training(always=True),
}
"""The correct training, and each bug."""


@cache
def _others() -> np.ndarray:
    return _RECORDS.data(with_canary=False)


def _train(*, with_canary: bool, seed: int, per_record: bool) -> float:
    rng, records = np.random.default_rng(seed), _data(with_canary=with_canary)
    noise = noise_multiplier() * SETUP.clip / SETUP.batch
    weights = np.zeros(records.shape[1])
    for _ in range(SETUP.steps):
        batch = records[rng.random(len(records)) < SETUP.sampling_rate]
        mean = mean_gradient(batch, weights, per_record=per_record)
        weights -= SETUP.learning_rate * (mean + rng.normal(0.0, noise, weights.size))
    return float(np.logaddexp(0.0, -(SETUP.canary_record @ weights)))


@cache
def _data(*, with_canary: bool) -> np.ndarray:
    return SETUP.data(with_canary=with_canary)


def _clipped(gradients: np.ndarray) -> np.ndarray:
    """Scale every row that is longer than the clip down to it."""
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return gradients * np.minimum(1.0, SETUP.clip / np.maximum(norms, 1e-300))
