"""Runs one adapter on the draws of one size, in the adapter's own environment: only NumPy is needed beside it.

python worker.py ADAPTER DRAWS.npz OUT.json NUMBER DELTA CONFIDENCE
"""

import importlib.util
import json
import math
import sys
import time
import warnings
from importlib import metadata
from pathlib import Path

import numpy as np


def sides(drawn, number, coins):
    """The scores of one draw: as many of each group, or by fair coins, as many in all."""
    member, nonmember, size = drawn
    if not coins:
        return member[:size], nonmember[: round(size * nonmember.size / member.size)]
    heads = np.random.default_rng([size, number]).binomial(2 * size, 0.5)
    return member[:heads], nonmember[: 2 * size - heads]


def one(module, options, scores, rows):
    """A number and its CPU seconds; the number is NaN where the auditor refuses the scores."""
    people = np.arange(scores[0].size) // rows, scores[0].size + np.arange(scores[1].size) // rows
    extra = {"people": people} if module.ABOUT.get("people") else {}
    start = time.process_time()
    try:
        number = float(module.bound(*scores, **options, **extra))
    except Exception as error:  # noqa: BLE001 - of any library
        number = math.nan
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    return number, time.process_time() - start


def main(adapter, draws, out, number, delta, confidence):
    """Write the numbers of every law that the adapter is for."""
    spec = importlib.util.spec_from_file_location("adapter", adapter)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    options, coins = (
        {"delta": float(delta), "confidence": float(confidence)},
        module.ABOUT.get("coins", False),
    )
    found = {}
    with np.load(draws) as laws:
        for law in json.loads(str(laws["names"])):
            rows, size, fair = (int(value) for value in laws[f"{law}/about"])
            if law in module.ABOUT.get("outside", ()) or (coins and not fair):
                continue
            every = zip(laws[f"{law}/member"], laws[f"{law}/nonmember"], strict=True)
            taken = [(*pair, size) for pair, _ in zip(every, range(int(number)), strict=False)]
            found[law] = [one(module, options, sides(drawn, k, coins), rows) for k, drawn in enumerate(taken)]
    names = [name.split("==")[0] for name in module.ABOUT["requirements"] or ("privacy-auditor",)]
    versions = {name: metadata.version(name) for name in names}
    Path(out).write_text(json.dumps({"versions": versions, "found": found}), encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*sys.argv[1:])
