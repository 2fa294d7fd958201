"""What DP-SGD on UCI Adult gives away about a person's age, beside membership: Cherubin et al. 2024, Section 6.1.

Usage: python reports/benchmarks/adult_attributes.py ADULT_TRAIN [STEPS]

ADULT_TRAIN is adult.data of the UCI Machine Learning Repository (data set "Adult"), comma-separated; a header line is
skipped. Needs `pip install 'privacy-auditor[torch]'`. The network, the batch (256) and the noise (3.51) are about the
paper's; STEPS (default 30) updates are measured in full, by the mean, and by the two extreme ages.
"""

import sys
import time
import warnings

import numpy as np
import pandas as pd
import torch
from opacus import PrivacyEngine
from torch import nn

from auditor.sensitivity import Approximate, Columns, Full, TorchSensitivityTracker

NUMERIC = [0, 2, 4, 10, 11, 12]
AGES = range(17, 91)
NOISE, BATCH, CLIP = 3.51, 256, 1.0


def read(path: str) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """Return features (age first, standardised), labels, and the standardised ages of 17 to 90."""
    table = pd.read_csv(path, header=None, skipinitialspace=True).dropna()
    table = table[table[14].str.startswith((">", "<"))]
    numbers = table[NUMERIC].astype(float)
    centre, scale = numbers.mean(), numbers.std()
    words = pd.get_dummies(table.drop(columns=[*NUMERIC, 14]).astype(str), dtype=float)
    features = np.hstack([((numbers - centre) / scale).to_numpy(), words.to_numpy()])
    labels = (table[14].str.contains(">")).to_numpy().astype(np.int64)
    ages = (np.array(AGES) - centre[0]) / scale[0]
    return torch.tensor(features, dtype=torch.float32), torch.tensor(labels), ages


def measured(
    features: torch.Tensor, labels: torch.Tensor, completions: Columns, *, exact: bool, steps: int
) -> None:
    """Train for some steps with a tracker, and print what it found and what a step took."""
    torch.manual_seed(0)
    model: nn.Module = nn.Sequential(nn.Linear(features.shape[1], 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(features, labels), batch_size=BATCH)
    engine = PrivacyEngine()
    model, optimizer, data = engine.make_private(
        module=model, optimizer=optimizer, data_loader=data, noise_multiplier=NOISE, max_grad_norm=CLIP
    )
    loss = nn.CrossEntropyLoss()
    tracker = TorchSensitivityTracker(
        model, loss, completions=completions, clipping_norm=CLIP, distance=Full() if exact else Approximate()
    )
    tracker.attach(optimizer)
    start = time.perf_counter()
    for step, (batch, answers) in enumerate(tracker.watch(data), start=1):
        optimizer.zero_grad()
        loss(model(batch), answers).backward()
        optimizer.step()
        if step == steps:
            break
    spent = (time.perf_counter() - start) / steps
    claims = tracker.claims(tracker.training(engine))
    print(f"    mean R_t {tracker.sensitivities.mean():.3f}, {spent:.2f} s a step")
    for claim in claims:
        if claim.metric.endswith("bayes_security"):
            print(f"    {claim.metric}: {claim.value:.5f} ({claim.status}; {claim.method})")


def main() -> None:
    """Measure all three ways."""
    warnings.filterwarnings("ignore")
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 30  # noqa: PLR2004
    features, labels, ages = read(sys.argv[1])
    print(f"{len(labels):,} records, {features.shape[1]} features, {steps} steps")
    for words, completions, exact in (
        ("all ages, full diameter", Columns(0, ages), True),
        ("all ages, twice the distance to the mean", Columns(0, ages), False),
        ("the two extreme ages", Columns.extremes(0, low=ages[0], high=ages[-1]), True),
    ):
        print(words)
        measured(features, labels, completions, exact=exact, steps=steps)


if __name__ == "__main__":
    main()
