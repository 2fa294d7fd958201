"""Which audit finds which of nine planted bugs of DP-SGD: simulated trainings of a logistic regression, in NumPy.

Usage: python reports/benchmarks/which_score.py [AUDITS [RUNS]]

Claimed are noise multiplier 0.7, sampling rate 0.05 and 200 steps (epsilon 10.55 at delta 1e-5) for 100 records of 60 features
and a canary, whose only feature is one of its own (`auditor.canaries.own_feature`). Each of AUDITS (default 12) audits
judges the claim at 95% confidence from

* RUNS (default 4,000) trainings, half with the canary, by its loss at the end;
* the same trainings, and a quarter of them, by `auditor.scores.step_likelihood_ratio`;
* one training with a `StepAudit`, canaries in every step, of at most 500 steps.

The last line counts the alarms in 4,000 audits of 200 runs of the claimed mechanism itself. Needs `pip install privacy-auditor` only.
"""

import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import auditor
from auditor.estimators import joint_test
from auditor.scores import step_likelihood_ratio
from auditor.theory.accountant import claimed_curve

CLAIM = auditor.DPSGD(noise_multiplier=0.7, sampling_rate=0.05, steps=200)
RECORDS, FEATURES, LEARNING_RATE, DELTA = 100, 60, 0.05, 1e-5
EXPECTED = RECORDS * CLAIM.sampling_rate
ALPHA, CHUNK, MOST_STEPS = 0.05, 500, 500


@dataclass(frozen=True)
class Training:
    """DP-SGD, as claimed but for a bug.

    Attributes:
        noise: Standard deviation of the noise over the claimed one.
        rate: Sampling rate over the claimed one.
        steps: Number of steps over the claimed one.
        clips: Whether gradients are clipped.
        bias: Whether the bias has noise.
        fresh: Whether each step draws its own noise.
        shuffled: Whether batches are cut from shuffled records.
        private: Whether the sum is divided by the size of the batch, in place of the expected one.
    """

    noise: float = 1.0
    rate: float = 1.0
    steps: int = 1
    clips: bool = True
    bias: bool = True
    fresh: bool = True
    shuffled: bool = False
    private: bool = False

    def batches(self, included: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Yield the records of each step, shape (runs, records); a run has the records that are ``included``."""
        count = round(1 / (self.rate * CLAIM.sampling_rate))
        for step in range(self.steps * CLAIM.steps):
            if not self.shuffled:
                yield included & (rng.random(included.shape, np.float32) < self.rate * CLAIM.sampling_rate)
                continue
            if step % count == 0:
                places = np.where(included, rng.random(included.shape, np.float32), 2).argsort(1).argsort(1)
                batch = places * count // included.sum(1, keepdims=True)
            yield included & (batch == step % count)

    def clipped(self, rows: np.ndarray) -> np.ndarray:
        """Return gradients (n, parameters) as the training clips them."""
        return rows / np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True)) if self.clips else rows

    def scale(self, drawn: np.ndarray | int) -> np.ndarray | float:
        """Return the expected size of a batch over the divisor, for batches of which so many records were drawn."""
        return EXPECTED / np.maximum(1, drawn) if self.private else 1.0

    def noises(self, shape: tuple[int, ...], rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Yield the noise of each step; the bias is the last parameter."""
        noise = None
        while True:
            if noise is None or self.fresh:
                noise = rng.standard_normal(shape, np.float32) * (self.noise * CLAIM.noise_multiplier)
                noise[..., -1] *= self.bias
            yield noise


BUGS = {
    "noise 20% too small": Training(noise=0.8),
    "noise scaled by half the clipping norm": Training(noise=0.5),
    "clipping off": Training(clips=False),
    "a tensor (the bias) without noise": Training(bias=False),
    "the same noise in every step": Training(fresh=False),
    "twice the steps": Training(steps=2),
    "twice the sampling rate": Training(rate=2.0),
    "shuffled batches, accounted as Poisson samples": Training(shuffled=True),
    "sums divided by the size of the private batch": Training(private=True),
    "no noise (positive control)": Training(noise=0.0),
    "none (correct)": Training(),
}


def records(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return features and labels of the real records and, as the last one, of the canary; the last feature is 1, for the bias."""
    features = np.zeros((RECORDS + 1, FEATURES + 2), np.float32)
    features[:-1, :FEATURES] = rng.normal(0, FEATURES**-0.5, (RECORDS, FEATURES))
    features[-1, FEATURES], features[:, -1] = 10, 1
    labels = np.where(features[:, :FEATURES] @ rng.normal(size=FEATURES) > 0, 1, -1)
    labels[-1] = 1
    return features, labels.astype(np.float32)


def train(
    how: Training, included: np.ndarray, data: tuple[np.ndarray, np.ndarray], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Train all runs at once.

    Returns:
        For each run the loss of the canary at the end, and the likelihood ratio; shape (runs,).
    """
    features, labels = data
    lengths, runs = np.linalg.norm(features, axis=1), len(included)
    weights, along, sizes = np.zeros((runs, features.shape[1]), np.float32), [], []
    noises = how.noises(weights.shape, rng)
    for batch, noise in zip(how.batches(included, rng), noises, strict=False):
        outer = -labels / (1 + np.exp(np.minimum(labels * (weights @ features.T), 80)))
        factor = 1 / np.maximum(1, np.abs(outer) * lengths)
        noisy = (batch * outer * (factor if how.clips else 1)) @ features + noise
        update = noisy * how.scale(batch.sum(1, keepdims=True))
        along.append(update @ features[-1] / lengths[-1] * np.sign(outer[:, -1]))
        sizes.append((np.abs(outer) * lengths * factor)[:, -1])
        weights -= LEARNING_RATE / EXPECTED * update
    losses = np.logaddexp(0, -labels[-1] * (weights @ features[-1]).astype(np.float64))
    return losses, step_likelihood_ratio(np.stack(along, axis=1), claim=CLAIM, sizes=np.stack(sizes, axis=1))


def of_runs(scores: np.ndarray, present: np.ndarray) -> bool:
    """Return whether an audit of the scores of runs refutes the claim."""
    losses = auditor.Losses(member=scores[present], nonmember=scores[~present])
    return auditor.audit_runs(losses, delta=DELTA, claim=CLAIM).verdict is auditor.Verdict.REFUTED


def many_trainings(how: Training, runs: int, rng: np.random.Generator) -> tuple[bool, bool, bool]:
    """Return whether losses, likelihood ratios, and a quarter of the likelihood ratios refute the claim."""
    data, present, parts = records(rng), np.arange(runs) % 2 == 0, []
    for start in range(0, runs, CHUNK):
        included = np.ones((min(CHUNK, runs - start), RECORDS + 1), dtype=bool)
        included[:, -1] = present[start : start + CHUNK]
        parts.append(train(how, included, data, rng))
    losses, ratios = np.concatenate(parts, axis=1)
    quarter = slice(runs // 4)
    return of_runs(losses, present), of_runs(ratios, present), of_runs(ratios[quarter], present[quarter])


def step_audit(how: Training, rng: np.random.Generator) -> bool:
    """Return whether canaries in the steps of one training refute the claim."""
    features, labels = (each[:-1] for each in records(rng))
    shapes = {"weights": (FEATURES + 1,), "bias": (1,)}
    audit = auditor.training.StepAudit(CLAIM, records=RECORDS, seed=int(rng.integers(2**31)))
    weights, noises = np.zeros(FEATURES + 2), how.noises((FEATURES + 2,), rng)
    while audit.steps < MOST_STEPS:
        for batch in how.batches(np.ones((1, RECORDS), dtype=bool), rng):
            outer = -labels / (1 + np.exp(labels * (features @ weights)))
            canaries = np.concatenate(list(audit.insert(shapes).values()), axis=1)
            own = (outer[:, None] * features)[batch[0]]
            centre = Training().clipped(own).sum(axis=0)
            noisy = how.clipped(np.concatenate([own, canaries])).sum(axis=0) + next(noises)
            noisy *= how.scale(len(own))
            audit.observe(
                {"weights": noisy[:-1], "bias": noisy[-1:]},
                centre={"weights": centre[:-1], "bias": centre[-1:]},
            )
            audit.observe_batch(len(own), np.flatnonzero(batch[0]))
            weights -= LEARNING_RATE / EXPECTED * noisy
            if audit.refuted:
                return True
    return False


def alarms(audits: int, *, runs: int = 100) -> int:
    """Return how many audits of so many runs of each world refute the claim about the claimed mechanism itself."""
    rng, curve = np.random.default_rng(0), claimed_curve(CLAIM, adjacency=auditor.Adjacency.ADD_REMOVE).curve
    test, count = joint_test.of_curve(runs, runs, curve), 0
    for _ in range(audits):
        along = rng.normal(size=(2, runs, CLAIM.steps)) * CLAIM.noise_multiplier
        along[0] += rng.random(along[0].shape) < CLAIM.sampling_rate
        losses = auditor.Losses(*step_likelihood_ratio(along, claim=CLAIM))
        count += test.p_value(losses, alpha=ALPHA) <= ALPHA
    return count


def main() -> None:
    """Audit each training, and print a table."""
    logging.getLogger("auditor").setLevel(logging.ERROR)
    audits, runs = map(int, (sys.argv[1:] + ["12", "4000"][len(sys.argv) - 1 :])[:2])
    columns = (
        f"loss, {runs:,} runs",
        f"likelihood ratio, {runs:,} runs",
        f"likelihood ratio, {runs // 4:,} runs",
        "step audit",
    )
    print(f"| bug | {' | '.join(columns)} |\n| --- |{' --- |' * len(columns)}")
    for place, (name, how) in enumerate(BUGS.items()):
        counts = np.zeros(len(columns), dtype=int)
        for seed in range(audits):
            rng = np.random.default_rng([place, seed])
            counts += (*many_trainings(how, runs, rng), step_audit(how, rng))
        print(f"| {name} | {' | '.join(f'{count} of {audits}' for count in counts)} |", flush=True)
    print(f"\nAlarms about the claimed mechanism itself: {alarms(4000):,} of 4,000 audits.")


if __name__ == "__main__":
    main()
