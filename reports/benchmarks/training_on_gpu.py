"""A step audit of Opacus on a GPU: a convolutional network of 1 million parameters, correct and with noise x0.9.

    pip install . torch opacus
    python reports/benchmarks/training_on_gpu.py

Prints the verdict after 500 steps each, the certified noise, and the time of a step with the audit and without; under three
minutes on one GPU.
"""

import logging
import time
import warnings
from typing import Any

import torch
from opacus import PrivacyEngine

import auditor

STEPS, WARM_UP, BATCH, RECORDS = 500, 20, 512, 20_000


def train(noise: float, *, watched: bool) -> tuple[Any, float]:
    """Return the watch of a training, if it is watched, and the seconds of a step."""
    torch.manual_seed(0)
    x = torch.randn(RECORDS, 3, 32, 32, device="cuda")
    y = torch.randint(0, 10, (RECORDS,), device="cuda")
    network = torch.nn.Sequential(
        *(
            torch.nn.Conv2d(3, 32, 3, 2, 1),
            torch.nn.ReLU(),
            torch.nn.Conv2d(32, 64, 3, 2, 1),
            torch.nn.ReLU(),
        ),
        *(torch.nn.Flatten(), torch.nn.Linear(4096, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)),
    ).cuda()
    network, optimizer, loader = PrivacyEngine().make_private(
        module=network,
        optimizer=torch.optim.SGD(network.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=BATCH),
        noise_multiplier=noise,
        max_grad_norm=1.0,
    )
    watch = auditor.training.opacus(optimizer, claim=1.0, model=network, seed=0) if watched else None
    taken, start = 0, 0.0
    while taken < STEPS:
        for features, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(network(features), labels).backward()
            optimizer.step()
            taken += 1
            if taken == WARM_UP:
                torch.cuda.synchronize()
                start = time.perf_counter()
            if taken == STEPS:
                break
    torch.cuda.synchronize()
    return watch, (time.perf_counter() - start) / (STEPS - WARM_UP)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    logging.getLogger("auditor.training").setLevel(logging.ERROR)
    print(torch.cuda.get_device_name())
    for noise in (1.0, 0.9):
        watch, seconds = train(noise, watched=True)
        print(f"noise x{noise}: {watch}, {1e3 * seconds:.1f} ms a step")
    print(f"without the audit: {1e3 * train(1.0, watched=False)[1]:.1f} ms a step")
