"""Collection from models on a GPU, over a loop written by hand: a residual network over images, and a language model over texts.

    pip install . torch transformers
    python reports/benchmarks/collect_on_gpu.py

Prints seconds of the loop and of the collection, their ratio, and how far the losses are apart; under four minutes on one GPU.
Results: ``collect_on_gpu.md``. ``--small`` runs a few records on the processor, to try the script.
"""

import argparse
import itertools
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import auditor

BATCH = 1024


class Block(torch.nn.Module):
    """A residual block."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        step = 1 if before == after else 2
        self.inner = torch.nn.Sequential(
            torch.nn.Conv2d(before, after, 3, step, 1, bias=False),
            torch.nn.BatchNorm2d(after),
            torch.nn.ReLU(),
            torch.nn.Conv2d(after, after, 3, 1, 1, bias=False),
            torch.nn.BatchNorm2d(after),
        )
        self.beside = torch.nn.Identity() if step == 1 else torch.nn.Conv2d(before, after, 1, step)

    def forward(self, x: Any) -> Any:
        """Return the output of the block."""
        return torch.relu(self.inner(x) + self.beside(x))


def residual_network(width: int) -> torch.nn.Module:
    """Return a network of 18 layers for images of 32 by 32 and 10 classes."""
    sizes = [width, width, width, 2 * width, 2 * width, 4 * width, 4 * width, 8 * width, 8 * width]
    blocks = [Block(*pair) for pair in itertools.pairwise(sizes)]
    first = torch.nn.Conv2d(3, width, 3, 1, 1)
    last = (torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8 * width, 10))
    return torch.nn.Sequential(first, *blocks, *last).eval()


def by_hand(network: torch.nn.Module, images: np.ndarray, labels: np.ndarray, device: str) -> np.ndarray:
    """Return the negative log-odds of the true class, in batches."""
    parts = []
    kind = next(network.parameters()).dtype
    with torch.inference_mode():
        for start in range(0, len(images), BATCH):
            x = torch.from_numpy(images[start : start + BATCH]).to(device, kind, non_blocking=True)
            y = torch.from_numpy(labels[start : start + BATCH]).to(device)[:, None]
            logits = network(x).double()
            own = logits.gather(1, y)[:, 0]
            parts.append(logits.scatter(1, y, -torch.inf).logsumexp(1) - own)
    return torch.cat(parts).cpu().numpy()


def texts_by_hand(model: Any, tokens: list[list[int]], device: str) -> np.ndarray:
    """Return the mean log-loss of the tokens of each text, in batches of texts sorted by length."""
    order = sorted(range(len(tokens)), key=lambda place: len(tokens[place]))
    losses = np.empty(len(tokens))
    with torch.inference_mode():
        for start in range(0, len(order), 64):
            some = order[start : start + 64]
            rows = [torch.tensor(tokens[place]) for place in some]
            ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).to(device)
            mask = torch.nn.utils.rnn.pad_sequence(
                [torch.ones_like(row) for row in rows], batch_first=True
            ).to(device)
            logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits[:, :-1]
            loss = torch.nn.functional.cross_entropy(
                logits.float().transpose(1, 2), ids[:, 1:], reduction="none"
            )
            kept = mask[:, 1:]
            losses[some] = ((loss * kept).sum(1) / kept.sum(1)).cpu().numpy()
    return losses


def best(function: Callable[[], Any], tries: int = 3) -> tuple[float, Any]:
    """Return the fewest seconds of some calls, and what the last one returned."""
    seconds, result = [], None
    for _ in range(tries):
        start = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def show(name: str, plain: Callable[[], np.ndarray], collect: Callable[[], Any]) -> None:
    """Print a row."""
    plain(), collect()
    (loop, expected), (own, losses) = best(plain), best(collect)
    apart = np.abs(np.concatenate([losses.member, losses.nonmember]) - expected).max()
    print(f"| {name} | {loop:.2f} | {own:.2f} | {own / loop:.2f} | {apart:.1g} |", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true")
    small = parser.parse_args().small
    warnings.filterwarnings("ignore")
    device = "cpu" if small else "cuda"
    rng, sizes = np.random.default_rng(0), (200,) if small else (1_000, 10_000, 40_000)
    print("| model | seconds by hand | seconds of the collection | ratio | losses apart by |")
    print("| --- | --: | --: | --: | --: |")
    images = rng.normal(size=(sizes[-1], 3, 32, 32)).astype(np.float32)
    labels = rng.integers(0, 10, sizes[-1])
    for kind in (torch.float32, torch.bfloat16):
        torch.manual_seed(0)
        network = residual_network(8 if small else 64).to(device, kind)
        for n in sizes:
            some, half = (images[:n], labels[:n]), n // 2
            members, others = [
                tuple(each[part] for each in some) for part in (slice(half), slice(half, None))
            ]
            show(
                f"residual network, {str(kind).removeprefix('torch.')}, {n:,} images",
                lambda: by_hand(network, *some, device),  # noqa: B023 - called at once
                lambda: auditor.collect(network, members, others),  # noqa: B023
            )
    from transformers import GPT2Config, GPT2LMHeadModel

    size = (
        {"n_embd": 64, "n_layer": 2, "n_head": 2} if small else {"n_embd": 1024, "n_layer": 24, "n_head": 16}
    )
    model = GPT2LMHeadModel(GPT2Config(vocab_size=8000, n_positions=512, **size)).eval().to(device)
    lengths = rng.integers(16, 256, 40 if small else 2000)
    texts = [" ".join(map(str, rng.integers(0, 8000, length))) for length in lengths]

    def encode(some: list[str]) -> list[list[int]]:
        return [[int(word) for word in text.split()] for text in some]

    middle = len(texts) // 2
    show(
        f"language model of {sum(each.numel() for each in model.parameters()) / 1e6:.0f} million parameters, {len(texts):,} texts",
        lambda: texts_by_hand(model, encode(texts), device),
        lambda: auditor.collect_texts(
            model, members=texts[:middle], nonmembers=texts[middle:], tokenizer=encode
        ),
    )


if __name__ == "__main__":
    main()
