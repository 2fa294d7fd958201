"""Which defects of DP-SGD canaries with a feature of their own find in one run: Opacus on UCI Adult.

Usage: python reports/benchmarks/own_feature.py ADULT_TRAIN [SEEDS [TRUE_SEEDS]]

ADULT_TRAIN is adult.data of the UCI Machine Learning Repository (data set "Adult"), comma-separated. Needs
`pip install 'privacy-auditor[torch]'`. For each claim (epsilon 1 and 3 at delta 1e-5) a linear softmax model, all weights 0
at first, is trained on 16,000 records and on the included ones of 1,000 canaries: 100 steps of Poisson batches, 1,600
records expected, learning rate 1, clipping norm 1. SEEDS (default 10) trainings with each defect and without noise, and
TRUE_SEEDS (default 30) correct ones are audited at 95% confidence with the losses alone. Each line is one training.
"""

import sys
import time
import warnings
from collections import defaultdict
from functools import cache

import numpy as np
import pandas as pd
import torch
from opacus import PrivacyEngine
from opacus.accountants.utils import get_noise_multiplier
from opacus.optimizers import DPOptimizer
from torch import nn

import auditor
from auditor.canaries import mislabelled, own_feature

NUMERIC = [0, 2, 4, 10, 11, 12]
RECORDS, CANARIES, STEPS, BATCH, RATE, DELTA = 16_000, 1_000, 100, 1_600, 1.0, 1e-5
CLAIMS = (1.0, 3.0)
DEFECTS = {
    "noise x0.1": {"noise": 0.1},
    "no clipping": {"norm": 1e6},
    "one clip per batch": {"together": True},
    "accountant given q/10": {"rate": 0.1},
    "no noise (positive control)": {"noise": 0.0},
}


class OneClipPerBatch(DPOptimizer):
    """A defect: the mean gradient of a batch is clipped in place of the gradient of each record."""

    def clip_and_accumulate(self) -> None:
        """Clip the sum by the norm of the mean."""
        sums = [parameter.grad_sample.sum(dim=0) for parameter in self.params]
        norm = float(torch.cat([item.flatten() for item in sums]).norm()) / self.expected_batch_size
        for parameter, item in zip(self.params, sums, strict=True):
            parameter.summed_grad = item / max(1.0, norm / self.max_grad_norm)


def read(path: str) -> tuple[np.ndarray, np.ndarray]:
    """Return features, standardised or one-hot, and labels."""
    table = pd.read_csv(path, header=None, skipinitialspace=True).dropna()
    table = table[table[14].str.startswith((">", "<"))]
    numbers = table[NUMERIC].astype(float)
    words = pd.get_dummies(table.drop(columns=[*NUMERIC, 14]).astype(str), dtype=float)
    features = np.hstack([(numbers - numbers.mean()) / numbers.std(), words])
    return features.astype(np.float32), table[14].str.contains(">").to_numpy().astype(np.int64)


@cache
def noise_of(epsilon: float, rate: float) -> float:
    """Return the noise multiplier that the accountant of Opacus gives for the claim."""
    return float(
        get_noise_multiplier(target_epsilon=epsilon, target_delta=DELTA, sample_rate=rate, steps=STEPS)
    )


def trained(
    features: np.ndarray,
    labels: np.ndarray,
    epsilon: float,
    *,
    noise: float = 1.0,
    norm: float = 1.0,
    together: bool = False,
    rate: float = 1.0,
) -> nn.Module:
    """Return a model, trained as claimed but for one defect."""
    model: nn.Module = nn.Linear(features.shape[1], 2)
    for parameter in model.parameters():
        nn.init.zeros_(parameter)
    data = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.from_numpy(features), torch.from_numpy(labels)), batch_size=BATCH
    )
    multiplier = noise_of(epsilon, rate / len(data))  # Opacus draws each record with probability 1/len(data)
    model, optimizer, data = PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=RATE),
        data_loader=data,
        noise_multiplier=multiplier * noise / norm,
        max_grad_norm=norm,
    )
    if together:
        optimizer.__class__ = OneClipPerBatch
    loss, step = nn.CrossEntropyLoss(), 0
    while step < STEPS:
        for batch, answers in data:
            optimizer.zero_grad()
            loss(model(batch), answers).backward()
            optimizer.step()
            step += 1
            if step == STEPS:
                break
    return model


def audited(
    features: np.ndarray, labels: np.ndarray, epsilon: float, kind: str, seed: int, **defect: float
) -> auditor.AuditResult:
    """Return the audit of one training."""
    torch.manual_seed(seed)
    order = np.random.default_rng(seed).permutation(len(labels))
    used, spare = order[:RECORDS], order[RECORDS:]
    if kind == "own_feature":
        planted = own_feature(features[used], labels[used], size=CANARIES, seed=seed)
        real = planted.widened(features[used])
    else:
        planted, real = mislabelled(features[spare], labels[spare], size=CANARIES, seed=seed), features[used]
    inside, classes = planted.included
    records = np.concatenate([real, inside]), np.concatenate([labels[used], classes])
    model = trained(*records, epsilon, **defect)
    with torch.no_grad():
        answers = model(torch.from_numpy(planted.features))
    losses = nn.functional.cross_entropy(answers, torch.from_numpy(planted.labels), reduction="none")
    claim = auditor.StatedClaim(epsilon, delta=DELTA)
    return auditor.audit(planted.losses(losses.numpy()), split=auditor.BernoulliSplit(0.5), claim=claim)


def main() -> None:
    """Train and audit all, and print a table."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    seeds, true = map(int, (sys.argv[2:] + ["10", "30"][len(sys.argv) - 2 :])[:2])
    features, labels = read(sys.argv[1])
    rows = defaultdict(list)
    for kind, defects, times in (
        ("own_feature", DEFECTS, seeds),
        ("own_feature", {"none": {}}, true),
        ("mislabelled", DEFECTS, seeds),
    ):
        for name, defect in defects.items():
            for seed in range(times):
                for epsilon in CLAIMS:
                    start = time.perf_counter()
                    result = audited(features, labels, epsilon, kind, seed, **defect)
                    bound = result["epsilon_bound.one_run"].lower or 0.0
                    rows[kind, name, epsilon].append((result.verdict == "refuted", bound))
                    words = f"{kind}, {name}, claim {epsilon:g}, seed {seed}: {result.verdict}, {bound:.2f}"
                    print(f"{words} ({time.perf_counter() - start:.1f} s)", flush=True)
    for (kind, name, epsilon), outcomes in rows.items():
        refuted, bounds = zip(*outcomes, strict=True)
        print(
            f"| {kind} | {name} | {epsilon:g} | {sum(refuted)} of {len(refuted)} | {np.median(bounds):.2f} |"
        )


if __name__ == "__main__":
    main()
