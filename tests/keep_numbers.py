"""Keep every number that the package gives, and tell what changed: the proof that a restructuring changed none.

    python tests/keep_numbers.py keep FOLDER       # before: runs every case and writes what it gives
    python tests/keep_numbers.py compare FOLDER    # after: runs them again, tells each difference, exits 1 if there is any

``--only PATTERN`` takes the cases whose name matches (``'audit/*'``), ``--shown`` compares what people see too: pages,
tables, cards, help and error sentences. Only documented names and the command line are used, so that the script runs
unchanged on both sides of a restructuring. What must differ is left out: time, versions, command line and folder. Floats
must be equal to the last bit; everything runs with one thread, because numbers depend on their number in the last digits.
Both runs need the same environment (packages, Python, kind of machine).

FOLDER gets ``numbers/CASE.json``, and below ``shown/CASE/`` one file for each thing shown.
"""

import argparse
import contextlib
import dataclasses
import difflib
import enum
import fnmatch
import io
import json
import os
import re
import shlex
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import auditor
from auditor import scores, sensitivity, theory
from auditor.cli import main as command_line

STORED = Path(__file__).resolve().parent / "data" / "results"
HOSTILE = "<b onmouseover=\"alert('x')\">model & co</b> ${y} `z` | ]]>"
LEFT_OUT = ("created", "versions", "command", "auditor_version")
OWN: dict[type, tuple[str, ...]] = {
    auditor.Claim: (
        *("metric", "value", "delta", "adjacency", "method", "proven", "note"),
        *("lower", "upper", "confidence", "status"),
    ),
    auditor.GateOutcome: ("code", "actual", "passed"),
    auditor.Losses: (
        *("member", "nonmember", "id", "group", "label", "person", "fingerprint"),
        *("scale", "saturated", "history", "notes"),
    ),
}
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
MOST = 40  # differences told of one case


# --- What is compared --------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """Return dictionaries, lists, texts and numbers only."""
    if isinstance(value, enum.Enum):
        return str(value.value)
    if value is None or isinstance(value, str | bool | int | float):
        return value if not isinstance(value, np.generic) else value.item()
    if isinstance(value, np.ndarray | np.generic | pd.Series | pd.Index):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, pd.DataFrame):
        return {str(name): plain(value[name]) for name in value.columns}
    return _of_object(value)


def _of_object(value: Any) -> Any:
    """Return the plain form of a sequence or of one of the package's values."""
    for kind, names in OWN.items():
        if isinstance(value, kind):
            return {name: plain(getattr(value, name)) for name in names}
    if hasattr(value, "to_dict"):
        return plain(value.to_dict())
    if dataclasses.is_dataclass(value) and dataclasses.fields(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Sequence | set | frozenset):
        return [plain(item) for item in value]
    return type(value).__name__


def canonical(value: Any, *, inside: str = "") -> Any:
    """Return the plain value without what must differ between two runs."""
    if isinstance(value, dict):
        left_out = () if inside == "properties" else LEFT_OUT
        return {key: canonical(item, inside=key) for key, item in value.items() if key not in left_out}
    if isinstance(value, list):
        return [canonical(item) for item in value]
    if isinstance(value, str):
        return without_version(value)
    if isinstance(value, float) and not np.isfinite(value):
        return f"float {value!r}"
    return value


def differences(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yield each place where two plain values differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            where = f"{path}.{key}"
            if key not in before or key not in after:
                gone = key not in after
                yield f"{where}: {'only before' if gone else 'only after'}: {short((before if gone else after)[key])}"
            else:
                yield from differences(before[key], after[key], where)
    elif isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            yield f"{path}: {len(before)} entries -> {len(after)}"
        for place, (old, new) in enumerate(zip(before, after, strict=False)):
            yield from differences(old, new, f"{path}[{place}]")
    elif type(before) is not type(after) or repr(before) != repr(after):
        yield f"{path}: {short(before)} -> {short(after)}"


def short(value: Any) -> str:
    """Return a value as text, without the middle of a long one."""
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:150]} ... {text[-140:]}"


def without_version(text: str) -> str:
    """Return a text without the software's own version and without the folder of this run."""
    text = text.replace(str(Path.cwd()), "FOLDER")
    return re.sub(rf"(?<![\d.]){re.escape(auditor.__version__)}(?!\.?\d)", "VERSION", text)


def normalised(text: str) -> str:
    """Return what is shown without dates, versions and folders."""
    text = without_version(text)
    clock = r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?:Z|[+-]\d\d:\d\d| UTC)?"
    text = re.sub(clock, "DATE", text)
    packages = "python|numpy|scipy|scikit-learn|statsmodels|pandas|matplotlib|dp-accounting"
    return re.sub(rf"\b({packages}) \d+(?:\.\w+)+", r"\1 VERSION", text)


# --- Data --------------------------------------------------------------------------------------------


def generator(seed: int) -> np.random.Generator:
    """Return a fresh generator."""
    return np.random.default_rng(seed)


def normal(n1: int = 400, n0: int = 400, shift: float = 1.0, seed: int = 1, **more: Any) -> auditor.Losses:
    """Return normal losses, the members' lower by a shift."""
    rng = generator(seed)
    return auditor.Losses(member=rng.normal(-shift, 1, n1), nonmember=rng.normal(0, 1, n0), **more)


def drawn(
    values: Sequence[Any], n1: int = 400, n0: int = 400, seed: int = 2
) -> tuple[np.ndarray, np.ndarray]:
    """Return a label of each record, drawn from some values."""
    rng = generator(seed)
    at = (rng.integers(0, len(values), n1), rng.integers(0, len(values), n0))
    column = np.array(list(values))
    return column[at[0]], column[at[1]]


def ids(n1: int = 400, n0: int = 400) -> tuple[list[str], list[str]]:
    """Return an id of each record."""
    return [f"m{at:04}" for at in range(n1)], [f"n{at:04}" for at in range(n0)]


def tails(seed: int = 3, n: int = 1000, share: float = 0.03, to: float = -9.0) -> auditor.Losses:
    """Return losses that leak in a few members only, which lie far out."""
    rng = generator(seed)
    member = rng.normal(0, 1, n)
    member[: int(share * n)] += to
    return auditor.Losses(member=member, nonmember=rng.normal(0, 1, n))


def high_leak(seed: int = 4, n: int = 1000) -> auditor.Losses:
    """Return losses that leak at their upper end: only records that were not used are very badly predicted."""
    rng = generator(seed)
    nonmember = rng.normal(0, 1, n)
    nonmember[: n // 12] += 8
    return auditor.Losses(member=rng.normal(0, 1, n), nonmember=nonmember)


def bimodal(seed: int = 5, n: int = 400, **more: Any) -> auditor.Losses:
    """Return losses of two clusters."""
    rng = generator(seed)
    centres = rng.choice([-3.0, 2.0], n), rng.choice([-3.0, 2.0], n, p=[0.3, 0.7])
    member, nonmember = (rng.normal(centre, 0.7) for centre in centres)
    return auditor.Losses(member=member, nonmember=nonmember, **more)


def cross_entropy(seed: int = 6, n: int = 500) -> auditor.Losses:
    """Return cross-entropies of a classifier."""
    rng = generator(seed)
    member, nonmember = (np.log1p(np.exp(rng.normal(at, 1.5, n))) for at in (-2.0, -1.0))
    return auditor.Losses(member=member, nonmember=nonmember, scale="cross-entropy", history=["by hand"])


def saturated(seed: int = 7, n: int = 500) -> auditor.Losses:
    """Return log-odds of which many came from a probability of 0 or 1."""
    rng = generator(seed)
    member, nonmember = rng.normal(-12, 6, n), rng.normal(-9, 6, n)
    member[:150], nonmember[:90] = -36.7368005696771, -36.7368005696771
    notes = ["the model returned hard labels"]
    return auditor.Losses(
        member, nonmember, scale="log-odds", saturated=(150, 90), history=notes, notes=notes
    )


def rounded(digits: int, seed: int = 8) -> auditor.Losses:
    """Return losses with many ties."""
    losses = normal(500, 700, 0.8, seed)
    return auditor.Losses(losses.member.round(digits), losses.nonmember.round(digits))


def heavy(seed: int = 9) -> auditor.Losses:
    """Return losses with very heavy tails."""
    rng = generator(seed)
    return auditor.Losses(rng.standard_cauchy(500) - 1, rng.standard_cauchy(500))


def extreme() -> auditor.Losses:
    """Return losses at the ends of what a double holds."""
    spread = np.linspace(-3, 3, 50)
    return auditor.Losses(np.sinh(spread) * 1e300 / 20, np.concatenate([spread * 1e-300, spread]))


def persons(seed: int = 10, **more: Any) -> auditor.Losses:
    """Return losses of 120 persons with one to six records each, every person in one group."""
    rng = generator(seed)
    counts = rng.integers(1, 7, 120)
    who = np.repeat(np.arange(120), counts)
    level = np.repeat(rng.normal(0, 1, 120), counts) + rng.normal(0, 0.5, who.size)
    inside = who < 60
    label = np.array([f"p{at:03}" for at in who])
    member, nonmember = level[inside] - 1, level[~inside]
    pair = (label[inside], label[~inside])
    return auditor.Losses(member, nonmember, person=pair, id=ids(member.size, nonmember.size), **more)


def grouped(**more: Any) -> auditor.Losses:
    """Return losses with groups, classes and ids, some of the groups tiny."""
    group = drawn(["north", "south", "east", "west"], 600, 500, 11)
    group[0][:3] = "tiny"
    group[1][:2] = "tiny"
    label = drawn([0, 1, 2], 600, 500, 12)
    return normal(600, 500, 0.9, 13, group=group, label=label, id=ids(600, 500), **more)


def table(n: int, seed: int, shift: float = 0.0) -> pd.DataFrame:
    """Return features of mixed types with missing values."""
    rng = generator(seed)
    age = rng.normal(40 + shift, 12, n)
    age[::17] = np.nan
    colour = rng.choice(["red", "green", "blue"], n, p=[0.5, 0.3, 0.2] if shift else [0.2, 0.3, 0.5])
    day = pd.Timestamp("2020-03-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D")
    return pd.DataFrame({"age": age, "colour": colour, "smokes": rng.random(n) < 0.3, "day": day})


def arrays(shift: float = 0.0, twins: int = 0) -> auditor.Features:
    """Return numeric features, shifted or not, of which some records of one group are in the other too."""
    rng = generator(14)
    member, nonmember = rng.normal(shift, 1, (400, 4)), rng.normal(0, 1, (400, 4))
    nonmember[:twins] = member[:twins]
    return auditor.Features(member, nonmember)


def sparse() -> auditor.Features:
    """Return sparse features."""
    from scipy.sparse import random_array

    return auditor.Features(
        *(random_array((400, 30), density=0.1, rng=generator(seed), format="csr") for seed in (1, 2))
    )


def classifier() -> dict[str, Any]:
    """Return a fitted model and its records, as `auditor.collect` takes them."""
    from sklearn.datasets import make_classification
    from sklearn.tree import DecisionTreeClassifier

    X, y = make_classification(600, 8, n_informative=4, n_classes=3, flip_y=0.2, random_state=0)  # noqa: N806
    model = DecisionTreeClassifier(max_depth=6, random_state=0).fit(X[:300], y[:300])
    return {"model": model, "members": (X[:300], y[:300]), "nonmembers": (X[300:], y[300:])}


# --- Audits ------------------------------------------------------------------------------------------

RANDOM = auditor.RandomSplit()
COINS = auditor.BernoulliSplit()
STATED = auditor.StatedClaim(0.5, 1e-5)
LOOSE = auditor.StatedClaim(9.0, 1e-6)
PURE = auditor.StatedClaim(1.0, 0.0)
REPLACED = auditor.StatedClaim(1.5, 1e-4, "replace-one")
NOISY = auditor.DPSGD(1.0, 0.02, 300)
FULL = auditor.DPSGD(1.0, 1.0, 1)
PHASES = auditor.DPSGD([1.0] * 60 + [2.0] * 40, 0.05)
FIXED = auditor.DPSGD(1.2, 0.05, 50, sampling=auditor.FixedSizeSampling())
DEVIATION = auditor.DPSGD.from_noise_deviation(2.0, sampling_rate=0.1, clipping_norm=[1.0, 1.5, 2.0])
MELDED = auditor.RankGrid(interval=auditor.Melded())
AT_ZERO = auditor.StatedClaim(0.5, 0.0)

# The losses, and what else the audit is asked; each is made only when it is needed.
AUDITS: dict[str, Callable[[], tuple[auditor.Losses, dict[str, Any]]]] = {
    "plain": lambda: (normal(1000, 1000), {}),
    "no-leak": lambda: (normal(800, 900, 0.0), {}),
    "very-strong": lambda: (normal(800, 800, 9.0), {"split": RANDOM, "claim": STATED}),
    "reversed": lambda: (normal(500, 500, -1.0), {"split": RANDOM, "claim": STATED}),
    "weak-large": lambda: (normal(20_000, 20_000, 0.15), {}),
    "strong-large": lambda: (normal(20_000, 5_000, 1.5), {"split": RANDOM, "claim": NOISY}),
    "unbalanced": lambda: (normal(150, 5000, 1.2), {"delta": 1e-4}),
    "two-records": lambda: (auditor.Losses([0.1, 0.2], [0.3, 0.4]), {}),
    "five-records": lambda: (normal(5, 5, 3.0), {"split": RANDOM, "claim": STATED, "fpr": (0.5,)}),
    "all-equal": lambda: (auditor.Losses([1.0] * 30, [1.0] * 40), {"split": RANDOM, "claim": STATED}),
    "one-group-equal": lambda: (auditor.Losses([0.0] * 60, generator(1).random(60)), {}),
    "high-losses": lambda: (high_leak(), {"split": RANDOM, "claim": STATED}),
    "high-losses-upper": lambda: (high_leak(), {"threshold": auditor.RankGrid("upper")}),
    "few-canaries": lambda: (tails(), {"split": RANDOM, "one_run_test": auditor.FDP()}),
    "ties": lambda: (rounded(1), {"split": RANDOM, "claim": STATED}),
    "binary": lambda: (auditor.Losses([0.0] * 250 + [1.0] * 50, [0.0] * 200 + [1.0] * 100), {}),
    "discrete": lambda: (rounded(0), {"mixture": auditor.Mixture(2), "threshold": MELDED}),
    "saturated": lambda: (saturated(), {"split": RANDOM}),
    "log-odds": lambda: (normal(scale="log-odds", history="a step"), {}),
    "cross-entropy": lambda: (cross_entropy(), {"model": "cross-entropy"}),
    "unknown-positive": lambda: (auditor.Losses(*(np.exp(column) for column in drawn([0.1, -1.0, 2.0]))), {}),
    "heavy-tails": lambda: (heavy(), {"mixture": auditor.Mixture(3)}),
    "extreme-values": lambda: (extreme(), {}),
    "delta-0": lambda: (normal(), {"delta": 0.0}),
    "delta-0.1": lambda: (normal(), {"delta": 0.1}),
    "delta-tiny": lambda: (normal(), {"delta": 1e-12}),
    "confidence-0.8": lambda: (normal(), {"confidence": 0.8, "split": RANDOM}),
    "confidence-0.999": lambda: (normal(), {"confidence": 0.999, "split": COINS}),
    "rates": lambda: (normal(), {"fpr": (0.5, 0.05, 1e-5)}),
    "one-rate": lambda: (normal(), {"fpr": [0.25]}),
    "training-size": lambda: (normal(), {"training_size": 50_000}),
    "seed": lambda: (normal(), {"seed": 12_345, "split": RANDOM}),
    "census": lambda: (normal(), {"members": auditor.Census()}),
    "census-melded": lambda: (normal(), {"members": auditor.Census(), "threshold": MELDED}),
    "subset": lambda: (normal(), {"members": auditor.Subset(5000)}),
    "subset-melded": lambda: (normal(), {"members": auditor.Subset(800), "threshold": MELDED}),
    "subset-all": lambda: (normal(), {"members": auditor.Subset(400), "split": RANDOM}),
    "stated-unknown": lambda: (normal(), {"claim": STATED}),
    "stated-refuted": lambda: (normal(shift=2.0), {"claim": STATED, "split": RANDOM}),
    "stated-not-refuted": lambda: (normal(), {"claim": auditor.StatedClaim(3.0, 1e-5), "split": RANDOM}),
    "stated-inconclusive": lambda: (normal(), {"claim": LOOSE, "split": RANDOM}),
    "stated-coins": lambda: (normal(shift=2.0), {"claim": AT_ZERO, "split": COINS}),
    "stated-pure": lambda: (normal(), {"claim": PURE, "split": RANDOM}),
    "stated-other-delta": lambda: (normal(), {"claim": STATED, "split": RANDOM, "delta": 1e-3}),
    "stated-0": lambda: (normal(), {"claim": auditor.StatedClaim(0.0, 0.0), "split": RANDOM}),
    "replaced-random": lambda: (normal(shift=2.0), {"claim": REPLACED, "split": RANDOM}),
    "replaced-coins": lambda: (normal(), {"claim": REPLACED, "split": COINS}),
    "dpsgd-random": lambda: (normal(), {"claim": NOISY, "split": RANDOM, "delta": 1e-5}),
    "dpsgd-coins": lambda: (normal(), {"claim": NOISY, "split": COINS}),
    "dpsgd-unknown": lambda: (normal(), {"claim": NOISY}),
    "dpsgd-full": lambda: (normal(shift=1.4), {"claim": FULL, "split": RANDOM, "delta": 1e-3}),
    "dpsgd-phases": lambda: (normal(), {"claim": PHASES, "split": RANDOM}),
    "dpsgd-fixed-size": lambda: (normal(), {"claim": FIXED, "split": RANDOM}),
    "dpsgd-fixed-size-coins": lambda: (normal(), {"claim": FIXED, "split": COINS}),
    "dpsgd-deviation": lambda: (normal(), {"claim": DEVIATION, "split": RANDOM, "confidence": 0.9}),
    "dpsgd-strong-noise": lambda: (normal(), {"claim": auditor.DPSGD(30.0, 0.01, 10), "split": RANDOM}),
    "dpsgd-delta-0": lambda: (normal(), {"claim": NOISY, "split": RANDOM, "delta": 0.0}),
    "fdp": lambda: (normal(), {"claim": NOISY, "split": RANDOM, "one_run_test": auditor.FDP()}),
    "fdp-fixed-size": lambda: (normal(), {"claim": FIXED, "split": RANDOM, "one_run_test": auditor.FDP()}),
    "fdp-stated": lambda: (normal(), {"claim": STATED, "split": RANDOM, "one_run_test": auditor.FDP()}),
    "any-guesses": lambda: (normal(), {"split": RANDOM, "one_run_test": auditor.AnyGuesses()}),
    "any-guesses-coins": lambda: (
        normal(shift=2.0),
        {"claim": AT_ZERO, "split": COINS, "one_run_test": auditor.AnyGuesses()},
    ),
    "stratified": lambda: (grouped(), {"split": auditor.RandomSplit(stratified=True), "claim": STATED}),
    "stratified-fdp": lambda: (
        grouped(),
        {"split": auditor.RandomSplit(stratified=True), "one_run_test": auditor.FDP(), "claim": NOISY},
    ),
    "coins-unfair": lambda: (normal(300, 700, 2.0), {"split": auditor.BernoulliSplit(0.3), "claim": AT_ZERO}),
    "coins-any-unfair": lambda: (
        normal(700, 300, 2.0),
        {"split": auditor.BernoulliSplit(0.7), "one_run_test": auditor.AnyGuesses()},
    ),
    "persons-default": lambda: (persons(), {"split": RANDOM, "claim": STATED}),
    "persons-min": lambda: (persons(), {"persons": auditor.OnePerPerson("min")}),
    "persons-mean": lambda: (persons(), {"persons": auditor.OnePerPerson("mean"), "split": RANDOM}),
    "persons-max": lambda: (persons(), {"persons": auditor.OnePerPerson("max"), "split": COINS}),
    "persons-each": lambda: (persons(), {"persons": auditor.EachRecord(), "split": RANDOM, "claim": STATED}),
    "persons-in-both": lambda: (normal(person=drawn(range(90))), {"split": RANDOM, "claim": STATED}),
    "persons-one-each": lambda: (normal(person=ids()), {"split": RANDOM}),
    "persons-groups": lambda: (persons(12, group=None), {"top_records": 5, "members": auditor.Census()}),
    "mixture": lambda: (bimodal(), {"mixture": auditor.Mixture(3)}),
    "mixture-more": lambda: (bimodal(n=250), {"mixture": auditor.Mixture(), "claim": NOISY}),
    "mixture-one": lambda: (normal(), {"mixture": auditor.Mixture(1), "delta": 0.0}),
    "features-arrays": lambda: (normal(), {"features": arrays(), "split": RANDOM, "claim": STATED}),
    "features-shift": lambda: (normal(), {"features": arrays(1.0), "split": RANDOM, "claim": STATED}),
    "features-twins": lambda: (normal(), {"features": arrays(twins=40), "split": RANDOM}),
    "features-frames": lambda: (normal(), {"features": auditor.Features(table(400, 1), table(400, 2))}),
    "features-frames-shift": lambda: (
        normal(),
        {"features": auditor.Features(table(400, 1, 15.0), table(400, 2)), "seed": 3},
    ),
    "features-sparse": lambda: (normal(), {"features": sparse()}),
    "features-texts": lambda: (
        normal(),
        {"features": auditor.Features(*(column.tolist() for column in drawn(["a", "b", "c"])))},
    ),
    "features-persons": lambda: (
        persons(),
        {"features": auditor.Features(*({"x": generator(n).normal(size=n)} for n in person_sizes()))},
    ),
    "reference": lambda: (normal(), {"reference": normal(shift=0.0, seed=30)}),
    "reference-fails": lambda: (
        normal(),
        {"reference": normal(shift=1.0, seed=31), "split": RANDOM, "claim": STATED},
    ),
    "groups": lambda: (grouped(), {}),
    "groups-many": lambda: (normal(group=drawn([f"g{at}" for at in range(30)])), {"delta": 0.01}),
    "groups-hostile": lambda: (normal(group=drawn([HOSTILE, "ä\u202eß", ""])), {"model": HOSTILE}),
    "labels": lambda: (normal(label=drawn([True, False])), {}),
    "labels-texts": lambda: (normal(label=drawn(["cat", "dog", "cow"])), {"confidence": 0.99}),
    "grid-lower": lambda: (normal(), {"threshold": auditor.RankGrid("lower")}),
    "grid-upper-melded": lambda: (
        high_leak(),
        {"threshold": auditor.RankGrid("upper", interval=auditor.Melded())},
    ),
    "grid-lower-melded": lambda: (
        normal(),
        {"threshold": auditor.RankGrid("lower", interval=auditor.Melded())},
    ),
    "grid-melded": lambda: (normal(), {"threshold": MELDED, "split": RANDOM}),
    "fixed": lambda: (normal(), {"threshold": auditor.FixedThreshold(-0.9)}),
    "fixed-katz": lambda: (normal(), {"threshold": auditor.FixedThreshold(-0.9, auditor.Katz())}),
    "fixed-jeffreys": lambda: (normal(), {"threshold": auditor.FixedThreshold(-0.9, auditor.Jeffreys())}),
    "fixed-nothing": lambda: (normal(), {"threshold": auditor.FixedThreshold(99.0, auditor.Katz())}),
    "fixed-census": lambda: (
        normal(),
        {"threshold": auditor.FixedThreshold(-0.5), "members": auditor.Census()},
    ),
    "fixed-subset": lambda: (
        normal(),
        {"threshold": auditor.FixedThreshold(-0.5), "members": auditor.Subset(900)},
    ),
    "split": lambda: (normal(), {"threshold": auditor.Split()}),
    "split-third": lambda: (normal(), {"threshold": auditor.Split(0.3, seed=2), "seed": 4}),
    "top-0": lambda: (normal(id=ids()), {"top_records": 0}),
    "top-10": lambda: (normal(id=ids()), {"top_records": 10}),
    "top-50-groups": lambda: (grouped(), {"top_records": 50}),
    "top-numbers": lambda: (normal(id=(range(400), range(400, 800))), {}),
    "top-ties": lambda: (
        auditor.Losses([0.0] * 20 + [1.0] * 80, [1.0] * 100, id=ids(100, 100)),
        {"top_records": 7},
    ),
    "top-no-leak": lambda: (normal(shift=0.0, id=ids()), {}),
    "named": lambda: (
        normal(),
        {
            "model": HOSTILE,
            "strategy": HOSTILE,
            "utility": auditor.Utility(0.87, HOSTILE),
            "source": "a <file>.csv",
            "command": "auditor audit 'a <file>.csv'",
        },
    ),
    "utility-lower": lambda: (
        normal(),
        {"utility": auditor.Utility(1.5, "perplexity", higher_is_better=False), "strategy": "plain"},
    ),
    "collected": lambda: (auditor.collect(**classifier()), {"split": RANDOM, "claim": NOISY}),
    "everything": lambda: (
        grouped(history=["one", "two"], notes=["one"]),
        {
            "delta": 1e-4,
            "confidence": 0.9,
            "members": auditor.Subset(3000),
            "split": RANDOM,
            "claim": NOISY,
            "threshold": MELDED,
            "fpr": (0.2, 0.02),
            "mixture": auditor.Mixture(2),
            "one_run_test": auditor.FDP(),
            "features": auditor.Features(table(600, 5), table(500, 6)),
            "reference": normal(600, 500, 0.0, 7),
            "seed": 8,
            "model": "everything",
            "strategy": "noise 1",
            "utility": auditor.Utility(0.8, "accuracy"),
            "top_records": 20,
            "source": "memory",
        },
    ),
}


def person_sizes() -> tuple[int, int]:
    """Return the numbers of records of `persons`."""
    losses = persons()
    return losses.n_member, losses.n_nonmember


WAYS: dict[str, list[Any]] = {
    "members": [auditor.Sample(), auditor.Census(), auditor.Subset(2000)],
    "split": [auditor.UnknownSplit(), RANDOM, RANDOM, COINS, auditor.BernoulliSplit(0.4)],
    "claim": [None, STATED, PURE, REPLACED, NOISY, PHASES, FIXED],
    "threshold": [
        auditor.RankGrid(),
        MELDED,
        auditor.RankGrid("upper"),
        auditor.FixedThreshold(0.1),
        auditor.FixedThreshold(-0.3, auditor.Jeffreys()),
        auditor.Split(0.4, seed=1),
    ],
    "one_run_test": [auditor.Steinke(), auditor.FDP(), auditor.AnyGuesses()],
    "persons": [None, auditor.EachRecord()],
    "delta": [None, 0.0, 1e-5, 0.01],
    "confidence": [0.95, 0.9, 0.99],
    "fpr": [(0.1, 0.01), (0.3,)],
    "top_records": [10, 3],
    "training_size": [None, None, 10_000],
}
MIXED: list[Callable[[int], auditor.Losses]] = [
    lambda seed: normal(300, 350, seed=seed),
    lambda seed: normal(250, 200, 2.5, seed, group=drawn("abc", 250, 200)),
    lambda seed: normal(300, 300, 0.0, seed, id=ids(300, 300)),
    lambda seed: rounded(1, seed),
    lambda seed: tails(seed, 400),
    persons,
    cross_entropy,
    high_leak,
]


def mixed(number: int) -> tuple[auditor.Losses, dict[str, Any]]:
    """Return an audit of options drawn at random: what they do together."""
    rng = generator(1000 + number)
    options = {name: choices[rng.integers(len(choices))] for name, choices in WAYS.items()}
    losses = MIXED[number % len(MIXED)](50 + number)
    if options["members"] != auditor.Sample():
        del options["training_size"]
        options["persons"] = auditor.EachRecord()
        if isinstance(options["threshold"], auditor.FixedThreshold):
            options["threshold"] = auditor.FixedThreshold(-0.2)
    return losses, {**options, "seed": number}


AUDITS |= {f"mixed-{number:02}": partial(mixed, number) for number in range(40)}


@cache
def audited(name: str) -> auditor.AuditResult:
    """Return the result of an audit, made once."""
    losses, options = AUDITS[name]()
    return auditor.audit(losses, **options)


@cache
def of_model(
    shift: float, seed: int, utility: float | None = None, strategy: str | None = None
) -> auditor.AuditResult:
    """Return the audit of one of several models that are compared."""
    said = None if utility is None else auditor.Utility(utility, "test accuracy")
    losses = normal(700, 600, shift, seed)
    return auditor.audit(losses, delta=1e-4, model=f"model {seed}", utility=said, strategy=strategy)


# --- Several models, many runs, comparisons ------------------------------------------------------------


def models(count: int = 5, shift: float = 2.0) -> list[auditor.Losses]:
    """Return the losses of several models of one training algorithm."""
    return [normal(300, 300, shift, 70 + seed) for seed in range(count)]


def noisy_count(with_canary: bool, seed: int) -> float:  # noqa: FBT001 - as collect_runs calls it
    """Return the score of one run of a noisy count."""
    return -(float(with_canary) + float(generator(seed).normal(scale=0.4)))


def area(case: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """Return something of a case and its seed."""
    return {"area": case["width"] * 2.5, "drawn": float(generator(seed).normal()), "word": "ü"}


INSTANCES: dict[str, Callable[[], auditor.InstancesResult]] = {
    "random": lambda: auditor.audit_instances(models(), delta=1e-5, split=RANDOM),
    "unknown": lambda: auditor.audit_instances(models(2), delta=1e-5),
    "refuted": lambda: auditor.audit_instances(models(), delta=1e-5, split=RANDOM, claim=STATED),
    "not-refuted": lambda: auditor.audit_instances(
        models(3, 0.5), delta=1e-4, split=RANDOM, claim=auditor.StatedClaim(2.0, 1e-4), confidence=0.9
    ),
    "replaced": lambda: auditor.audit_instances(models(3), delta=1e-4, split=RANDOM, claim=REPLACED),
    "dpsgd": lambda: auditor.audit_instances(models(4, 0.3), delta=1e-5, split=RANDOM, claim=NOISY),
    "fixed-size": lambda: auditor.audit_instances(models(4, 0.3), delta=1e-5, split=RANDOM, claim=FIXED),
    "coins": lambda: auditor.audit_instances(models(3), delta=0.0, split=COINS, claim=AT_ZERO),
    "stratified": lambda: auditor.audit_instances(
        models(3), delta=1e-3, split=auditor.RandomSplit(stratified=True)
    ),
    "delta-0": lambda: auditor.audit_instances(models(6, 1.0), delta=0.0, split=RANDOM, seed=4),
    "no-leak": lambda: auditor.audit_instances(models(6, 0.0), delta=1e-5, split=RANDOM),
    "results": lambda: auditor.audit_instances(
        [of_model(0.4, 1), of_model(0.9, 2), of_model(0.9, 3)], delta=1e-4, split=RANDOM, claim=STATED
    ),
}
RUNS: dict[str, Callable[[], auditor.RunsResult]] = {
    "plain": lambda: auditor.audit_runs(normal(900, 900, 2.0), delta=1e-5),
    "refuted": lambda: auditor.audit_runs(normal(900, 900, 3.0), delta=1e-5, claim=STATED),
    "not-refuted": lambda: auditor.audit_runs(
        normal(900, 900, 1.0), delta=1e-5, claim=auditor.StatedClaim(3.0, 1e-5)
    ),
    "inconclusive": lambda: auditor.audit_runs(normal(40, 40, 3.0), delta=1e-5, claim=LOOSE),
    "dpsgd": lambda: auditor.audit_runs(normal(900, 900, 1.0), delta=1e-5, claim=FULL),
    "phases": lambda: auditor.audit_runs(normal(500, 600, 0.5), delta=1e-3, claim=PHASES, confidence=0.9),
    "fixed-size": lambda: auditor.audit_runs(
        normal(500, 600, 0.5), delta=1e-3, claim=FIXED, adjacency="replace-one"
    ),
    "replaced": lambda: auditor.audit_runs(
        normal(500, 500, 2.0), delta=1e-3, claim=REPLACED, adjacency="replace-one"
    ),
    "fixed": lambda: auditor.audit_runs(
        normal(500, 500, 2.0), delta=0.0, threshold=auditor.FixedThreshold(-1.0)
    ),
    "grid": lambda: auditor.audit_runs(normal(500, 500, 2.0), delta=1e-5, threshold=auditor.RankGrid()),
    "grid-melded": lambda: auditor.audit_runs(normal(500, 500, 2.0), delta=1e-5, threshold=MELDED),
    "other-runs": lambda: auditor.audit_runs(
        normal(500, 500, 2.0), delta=1e-5, threshold_runs=normal(200, 200, 2.0, 90), claim=PURE
    ),
    "split": lambda: auditor.audit_runs(
        normal(500, 500, 2.0), delta=1e-5, threshold=auditor.Split(0.25, seed=6)
    ),
    "reversed": lambda: auditor.audit_runs(normal(300, 300, -2.0), delta=1e-5, claim=STATED),
    "ties": lambda: auditor.audit_runs(rounded(0), delta=1e-5),
    "equal": lambda: auditor.audit_runs(auditor.Losses([0.0] * 9, [0.0] * 9), delta=1e-5, claim=STATED),
    "collected": lambda: auditor.audit_runs(
        auditor.collect_runs(noisy_count, runs=1000, workers=1, seed=2), delta=1e-5, claim=FULL
    ),
}


def releases(*, utilities: bool = True) -> list[auditor.AuditResult]:
    """Return the audits of several models of three ways of training."""
    found = []
    for place, (shift, strategy) in enumerate(
        [(1.0, "plain"), (1.1, "plain"), (0.5, "noise"), (0.4, "noise"), (0.2, HOSTILE), (1.6, HOSTILE)]
    ):
        utility = 0.9 - 0.02 * place if utilities else None
        found.append(of_model(shift, 20 + place, utility, strategy))
    return found


COMPARISONS: dict[str, Callable[[], auditor.AuditsComparison]] = {
    "worse": lambda: auditor.compare_audits([of_model(0.1, 10, 0.84), of_model(1.2, 11, 0.85)]),
    "same": lambda: auditor.compare_audits([of_model(0.5, 12), of_model(0.5, 13)]),
    "better": lambda: auditor.compare_audits([of_model(1.2, 11, 0.85), of_model(0.1, 10, 0.84)]),
    "landscape": lambda: auditor.compare_audits(releases()),
    "landscape-baseline": lambda: auditor.compare_audits(releases(), baseline=3),
    "no-utilities": lambda: auditor.compare_audits(releases(utilities=False)[:4], baseline="model 21"),
    "measure": lambda: auditor.compare_audits(releases()[:3], measure="auc"),
    "bound": lambda: auditor.compare_audits(releases()[:4], measure="epsilon_bound.clopper_pearson"),
    "about": lambda: auditor.compare_audits(
        releases(utilities=False)[:3],
        about={"result": [1, 2, 3], "utility": [0.1, 0.3, 0.2], "strategy": ["a", "a", "b"]},
    ),
    "about-frame": lambda: auditor.compare_audits(
        [of_model(0.5, 12), of_model(0.5, 13), of_model(0.1, 10, 0.84)],
        about=pd.DataFrame(
            {"result": ["model 12", "model 13"], "utility": [3.0, 4.0], "higher_is_better": [False, False]}
        ),
    ),
    "different": lambda: auditor.compare_audits(
        [audited(name) for name in ("plain", "dpsgd-random", "all-equal", "persons-min", "binary")],
        baseline=1,
    ),
    "other-deltas": lambda: auditor.compare_audits([audited("delta-0"), audited("delta-0.1")]),
    "stored": lambda: auditor.compare_audits([STORED / "audit.json", STORED / "statistics.json"]),
}
ATTACKS = {
    "perfect": auditor.PerfectAttack(),
    "mu": auditor.GaussianAttack(1.5),
    "response": auditor.RandomisedResponse(2.0),
}
PLANS: dict[str, dict[str, Any]] = {
    "model": {"delta": 1e-5},
    "pairs": {"delta": 1e-5, "split": RANDOM},
    "coins": {"delta": 0.0, "split": COINS},
    "coins-unfair": {"delta": 0.0, "split": auditor.BernoulliSplit(0.2), "confidence": 0.9},
    "census": {"delta": 1e-3, "members": auditor.Census(), "power": 0.5},
    "subset": {"delta": 1e-3, "members": auditor.Subset(5000)},
}


def plans(name: str) -> dict[str, Any]:
    """Return how many records several targets take."""
    return {
        f"{attack}, {epsilon}": auditor.records_needed(epsilon, attack=ATTACKS[attack], **PLANS[name])
        for attack in ATTACKS
        for epsilon in (0.1, 1.0, 3.0)
    }


# --- Gates, rankings, scores, readers ------------------------------------------------------------------

GATES = [
    "epsilon_bound.clopper_pearson > 1",
    "epsilon_bound.clopper_pearson > 100",
    "epsilon_bound.one_run >= 0.5",
    "epsilon_star.gaussian > 1",
    "epsilon_star.gaussian.upper < 0.1",
    "auc.upper > 0.6",
    "auc.lower > 0.6",
    "auc < 0.5",
    "advantage == 0",
    "advantage != 0",
    "bayes_security.upper < 0.9",
    "tpr_at_fpr.0.01 > 0.05",
    "verdict == refuted",
    "verdict != not_refuted",
    "verdict == not_evaluable",
    "checks.shift == fail",
    "checks.direction != ok",
    "checks.ties == warn",
]
JUDGED = [
    "plain",
    "no-leak",
    "very-strong",
    "reversed",
    "all-equal",
    "high-losses",
    "stated-refuted",
    "dpsgd-random",
    "binary",
    "delta-0",
    "features-shift",
    "reference-fails",
    "persons-min",
    "two-records",
    "everything",
]
RANKED: dict[str, Callable[[], auditor.Losses]] = {
    "plain": normal,
    "grouped": grouped,
    "persons": persons,
    "bimodal": lambda: bimodal(n=3000, id=ids(3000, 3000)),
    "upper": high_leak,
    "ties": lambda: rounded(1),
    "no-leak": lambda: normal(shift=0.0),
    "two": lambda: auditor.Losses([0.1, 0.2], [0.3, 0.4]),
}


def ranking(name: str) -> dict[str, Any]:
    """Return the ranking of some records and its tables."""
    found = auditor.rank_records(RANKED[name](), prior=0.3, rng=generator(0))
    names = ("rank", "odds", "prior", "monotone", "low_is_member", "told")
    tables = {"frame": found.to_frame(nonmembers=True, with_losses=True), "top": found.top(5)}
    return {**{item: getattr(found, item) for item in names}, **tables}


def difficulty_score(centre: Any) -> auditor.AuditResult:
    """Return the audit of losses that reference models calibrated."""
    rng = generator(41)
    hard = rng.normal(0, 2, (500, 1)), rng.normal(0, 2, (500, 1))
    matrices = [side + rng.normal(0, 0.5, (500, 3)) for side in hard]
    member, nonmember = (side[:, 0] + rng.normal(0, 0.5, 500) for side in hard)
    reference = scores.References(member=matrices[0], nonmember=matrices[1])
    losses = auditor.Losses(member - 0.8, nonmember)
    return auditor.audit(scores.difficulty(reference, centre=centre)(losses))


def rmia_score(scale: str) -> auditor.AuditResult:
    """Return the audit of offline RMIA scores."""
    rng = generator(42)
    matrix = rng.gamma(2.0, 1.0, (900, 2))
    own = matrix.mean(axis=1) * rng.uniform(0.5, 1.5, 900)
    reference = scores.References(member=matrix[:300], nonmember=matrix[300:600])
    population = scores.Population(own[600:], reference=matrix[600:], scale=scale)
    losses = auditor.Losses(own[:300] * 0.5, own[300:600], scale=scale)
    return auditor.audit(scores.rmia(reference, population=population, a=0.4, gamma=1.2)(losses))


def class_score() -> auditor.AuditResult:
    """Return the audit of losses that were standardised by their class."""
    held = scores.hold_out(grouped(), fraction=0.4, rng=generator(43))
    return auditor.audit(scores.class_conditional(held.calibration)(held.audited), training_size=600)


def quantile_score() -> dict[str, Any]:
    """Return the audit by a threshold that a quantile regression of the features set."""
    rng = generator(44)
    features = [rng.normal(size=(400, 3)) for _ in range(3)]
    member, nonmember, other = (rng.normal(part[:, 0] * 2, 1) for part in features)
    found = scores.fit_quantile_regression(
        (features[0], features[1]),
        calibration=scores.Population(other),
        calibration_features=features[2],
        rate=0.1,
        rng=rng,
    )
    result = auditor.audit(found.transform(auditor.Losses(member - 1, nonmember)), threshold=found.threshold)
    return {
        "result": result,
        "threshold": found.threshold.threshold,
        "n": [found.n_fitted, found.n_conformal],
    }


SCORES: dict[str, Callable[[], Any]] = {
    "difficulty-mean": lambda: difficulty_score(scores.Mean()),
    "difficulty-median": lambda: difficulty_score(scores.Median()),
    "rmia-cross-entropy": lambda: rmia_score("cross-entropy"),
    "rmia-log-odds": lambda: rmia_score("log-odds"),
    "rmia-published": lambda: scores.rmia_score(np.linspace(-2, 2, 9), np.linspace(-1, 1, 21), gamma=1.5),
    "class-conditional": class_score,
    "quantile-regression": quantile_score,
    "conformal": lambda: scores.conformal_threshold(generator(45).normal(size=300), rate=0.05),
    "hold-out": lambda: dict(zip("ab", scores.hold_out(persons(), rng=generator(46)), strict=True)),
}


def tracked(distance: Any) -> dict[str, Any]:
    """Return what a tracker of sensitivities found, and what it promises."""
    tracker = sensitivity.SensitivityTracker(clipping_norm=1.0, distance=distance)
    rng = generator(47)
    for _ in range(4):
        tracker.observe(rng.normal(0, 0.4, (6, 3, 5)))
        tracker.end_step()
    return {"at": tracker.sensitivities, "claims": tracker.claims(auditor.DPSGD(1.0, 1.0, 4))}


def points() -> np.ndarray:
    """Return sets of points."""
    return generator(48).normal(size=(7, 5, 3))


SENSITIVITY: dict[str, Callable[[], Any]] = {
    "full": lambda: tracked(sensitivity.Full()),
    "approximate": lambda: tracked(sensitivity.Approximate()),
    "distances": lambda: [
        sensitivity.largest_distance(points(), distance=way)
        for way in (sensitivity.Full(), sensitivity.Approximate())
    ],
    "clipped": lambda: sensitivity.clipped(points(), clipping_norm=1.0),
}


def shifted_regression() -> dict[str, Any]:
    """Return records and predictions of a regression."""
    X = generator(49).normal(size=(80, 2))  # noqa: N806
    y = X[:, 0] + generator(50).normal(size=80)
    return {"members": (X[:40], y[:40]), "nonmembers": (X[40:], y[40:])}


def several_labels() -> dict[str, Any]:
    """Return records with three labels each."""
    X = generator(51).normal(size=(80, 3))  # noqa: N806
    y = (X + generator(52).normal(size=(80, 3)) > 0).astype(int)
    return {"members": (X[:40], y[:40]), "nonmembers": (X[40:], y[40:])}


def collected_to() -> dict[str, Any]:
    """Return the losses that a long collection wrote, and what it reported."""
    kept = classifier()
    frames = [
        pd.DataFrame(X).rename(columns=str).assign(y=y) for X, y in (kept["members"], kept["nonmembers"])
    ]
    tables = [auditor.RecordTable(frame, label="y") for frame in frames]
    Path("collected.parquet").unlink(missing_ok=True)
    found = auditor.collect_to(
        "collected.parquet", kept["model"], members=tables[0], nonmembers=tables[1], batch_size=100
    )
    losses = auditor.read_losses("collected.parquet")
    return {"report": [found.n_member, found.n_nonmember, found.scored_now, found.warnings], "losses": losses}


def collected_by_line(options: str) -> dict[str, Any]:
    """Return the losses that the command line collected from a model's file."""
    import skops.io

    found = classifier()
    skops.io.dump(found["model"], "model.skops")
    for name in ("members", "nonmembers"):
        X, y = found[name]  # noqa: N806
        pd.DataFrame(X).rename(columns=str).assign(y=y).to_parquet(f"{name}.parquet")
    Path("line.parquet").unlink(missing_ok=True)
    tables = "--members members.parquet --nonmembers nonmembers.parquet --label y --out line.parquet"
    code = run(f"collect model.skops {tables} --trusted-type sklearn.tree._tree.Tree --quiet {options}")[0]
    return {"code": code, "losses": auditor.read_losses("line.parquet")}


def shares(X: Any) -> Any:  # noqa: N803 - as scikit-learn calls it
    """Return probabilities of three labels."""
    return 1 / (1 + np.exp(-np.asarray(X)))


COLLECTED: dict[str, Callable[[], Any]] = {
    "classifier": lambda: auditor.collect(**classifier()),
    "batches": lambda: auditor.collect(**classifier(), batch_size=70, ids=ids(300, 300)),
    "callable": lambda: auditor.collect(
        lambda rows: rows[:, :3],
        **{key: value for key, value in classifier().items() if key != "model"},
        output=auditor.Output.LOGITS,
    ),
    "regression": lambda: auditor.collect(
        lambda rows: rows[:, 0], **shifted_regression(), task=auditor.SquaredError()
    ),
    "gaussian": lambda: auditor.collect(
        lambda rows: rows[:, 0], **shifted_regression(), task=auditor.GaussianLogLoss(standard_deviation=0.8)
    ),
    "multi-label": lambda: auditor.collect(shares, **several_labels(), task=auditor.MultiLabel()),
    "to-file": collected_to,
    "line": lambda: collected_by_line("--task classification"),
    "line-batches": lambda: collected_by_line("--batch-size 70 --overwrite"),
    "csv": lambda: auditor.read_losses("losses.csv", label_column="class"),
    "parquet": lambda: auditor.read_losses("losses.parquet"),
    "npz": lambda: auditor.read_losses("losses.npz", higher_is_member=True),
    "pair": lambda: auditor.read_loss_pair("first.csv", "second.csv", member_column=None),
    "columns": lambda: auditor.from_columns([0.1, 0.9, 0.2, 0.7], member=[1, 0, 1, 0], id=list("abcd")),
    "features": lambda: auditor.read_features("losses.csv", columns=["age", "class"]).names,
    "feature-pair": lambda: auditor.read_feature_pair("first.csv", "second.csv", columns=["age"]).n_member,
    "schedule": lambda: auditor.read_schedule("steps.csv").phases,
    "persons": lambda: auditor.per_person(persons(), choice=auditor.OnePerPerson("min")).losses,
    "cases": lambda: auditor.run_cases(area, [{"width": 1}, {"width": 4}], workers=1, seed=3),
    "runs": lambda: auditor.collect_runs(noisy_count, runs=20, workers=1, batch=3),
    "taken": lambda: grouped().take(member=np.arange(5), nonmember=np.arange(0, 500, 100), step="some"),
}


def judged(name: str) -> Any:
    """Return what every gate says of a result; one that cannot be read or names nothing says so."""
    return {gate: tried(lambda gate=gate: auditor.check_gates(audited(name), gate)[0]) for gate in GATES}


def beside(old: str, new: str) -> Any:
    """Return the differences of two audits."""
    return auditor.differences(audited(old), audited(new), together=2)


def verdicts(name: str) -> Any:
    """Return what each estimate of an audit says of each claim."""
    result = audited(name)
    return {
        f"{claim.metric} {claim.adjacency} {place}, {row.name}": tried(
            lambda claim=claim, row=row: auditor.judge(claim, row, checks=result.checks)
        )
        for place, claim in enumerate(result.claims)
        for row in result.estimates
    }


def told_of_progress() -> list[tuple[int, int]]:
    """Return what is told while mixtures are fitted."""
    told: list[tuple[int, int]] = []
    auditor.audit(normal(100, 100), mixture=auditor.Mixture(2), progress=lambda *at: told.append(at))
    return told


OTHERS: dict[str, Callable[[], Any]] = {
    "differences": lambda: beside("plain", "no-leak"),
    "differences-subject": lambda: beside("dpsgd-random", "stated-refuted"),
    "judge-dpsgd": lambda: verdicts("dpsgd-random"),
    "judge-stated": lambda: verdicts("stated-refuted"),
    "judge-shift": lambda: verdicts("features-shift"),
    "frontier": lambda: [
        auditor.is_on_frontier([0.1, 0.5, 0.3, 0.5], privacy_loss=[1, 2, 3, 2]),
        auditor.pareto_frontier([0.1, 0.5, 0.3, 0.5], privacy_loss=[1, 2, 3, 2]),
    ],
    "progress": told_of_progress,
}


# --- What a training run promises ----------------------------------------------------------------------

TRAININGS = {"poisson": NOISY, "full": FULL, "phases": PHASES, "fixed-size": FIXED, "deviation": DEVIATION}
ORDERS = np.array([1.5, 2.0, 4.0, 8.0, 16.0])
BOTH = ("add-remove", "replace-one")


def curve() -> auditor.TradeoffCurve:
    """Return the trade-off curve of the Gaussian mechanism."""
    return theory.gdp_curve(1.2, points=101)


def conversions() -> dict[str, Any]:
    """Return what follows from one number for others."""
    return {
        "from mu": [theory.advantage_from_mu(1.2), theory.delta_from_mu(1.2, epsilon=2.0)],
        "epsilon from mu": theory.epsilon_from_mu(1.2, delta=1e-5),
        "from rates": [theory.epsilon_from_rates(0.1, 0.3, delta=1e-5), theory.mu_from_rates(0.1, 0.3)],
        "mu": [theory.mu_from_advantage(0.2), theory.mu_from_epsilon(2.0, delta=1e-5)],
        "pure": [theory.mu_from_pure_epsilon(1.0), theory.renyi_from_pure_epsilon(1.0, order=3.0)],
        "renyi": [theory.renyi_from_mu(1.2, order=3.0), theory.composed_mu([0.5, 1.0, 2.0])],
        "amplified": theory.amplified(2.0, delta=1e-5, sampling_rate=0.1),
        "subsampled": theory.subsampled_mu(1.2, sampling_rate=0.1, steps=100),
    }


def of_curve() -> dict[str, Any]:
    """Return what follows from a trade-off curve."""
    sampled = theory.amplified_curve(curve(), sampling_rate=0.3)
    both = theory.symmetric_amplified_curve(curve(), sampling_rate=0.3)
    return {
        "advantage": [theory.advantage_from_curve(item) for item in (curve(), sampled, both)],
        "delta": theory.delta_from_curve(curve(), epsilon=1.0),
        "epsilon": theory.epsilon_from_curve(curve(), delta=1e-3),
        "mu": theory.mu_from_curve(curve()),
        "profile": theory.profile_from_curve(curve(), epsilons=[0.0, 0.5, 2.0]),
        "curves": [[item.fpr, item.tpr] for item in (curve(), sampled, both)],
        "limit": theory.limit_mu(curve(), steps=50),
    }


def of_renyi() -> dict[str, Any]:
    """Return what follows from Renyi divergences."""
    divergences = ORDERS * 0.3
    found = theory.curve_from_renyi(ORDERS, divergences=divergences, points=51)
    return {
        "curve": [found.fpr, found.tpr],
        "advantage": theory.advantage_from_renyi(ORDERS, divergences=divergences),
        "delta": theory.delta_from_renyi(ORDERS, divergences=divergences, epsilon=2.0),
        "epsilon": theory.epsilon_from_renyi(ORDERS, divergences=divergences, delta=1e-5),
        "divergences": theory.renyi_divergence(NOISY, order=ORDERS),
    }


def of_training(name: str) -> dict[str, Any]:
    """Return what single functions say of a training run."""
    training = TRAININGS[name]
    advantage = theory.total_variation(training)
    tpr = theory.tpr_exact(training, fpr=0.05)
    return {
        "claims": theory.claims(training, delta=1e-5),
        "tv a": tried(lambda: theory.total_variation_a(training, a=1.5)),
        "prior": tried(lambda: theory.advantage_under_prior(training, prior=0.2)),
        "precision": theory.precision_from_tpr(tpr, fpr=0.05, prior=0.1),
        "success": theory.success_rate_from_bayes_security(theory.bayes_security_from_advantage(advantage)),
        "closed": [
            tried(lambda form=form: theory.tpr_closed_form(training, fpr=0.05, form=form))
            for form in (theory.Corollary7(), theory.MomentMatched())
        ],
        "curve": tried(lambda: theory.claimed_curve(training, adjacency="replace-one").curve.tpr),
        "composed": tried(lambda: theory.composed(training, adjacency="add-remove").total_variation()),
    }


def of_statement() -> dict[str, Any]:
    """Return what follows from stated claims."""
    rows = {"stated": STATED, "replaced": REPLACED, "pure": PURE}
    found: dict[str, Any] = {name: theory.claims(claim, delta=1e-5) for name, claim in rows.items()}
    own = theory.epsilon(REPLACED, delta=1e-4, adjacency="replace-one")
    found["tpr"] = theory.tpr_from_epsilon(own, fpr=0.01)
    found["posterior"] = theory.posterior_from_epsilon(own, prior=0.2)
    found["curve"] = theory.claimed_curve(STATED).curve
    return found


def grids() -> dict[str, Any]:
    """Return the closed forms on grids."""
    noise, rate, steps = np.array([[0.5], [1.0], [4.0]]), np.array([0.001, 0.1]), 500
    forms = {"corollary 7": theory.Corollary7(), "moments": theory.MomentMatched()}
    return {
        name: [
            theory.bayes_security_grid(noise, rate, steps, form=form),
            theory.noise_multiplier_grid(0.9, rate, steps, form=form),
            theory.sampling_rate_grid(0.9, noise, steps, form=form),
        ]
        for name, form in forms.items()
    }


def found_parameters() -> dict[str, Any]:
    """Return the parameters that keep wanted promises."""
    targets = {
        "advantage": theory.WantedAdvantage(0.1),
        "bayes": theory.WantedBayesSecurity(0.9),
        "epsilon": theory.WantedEpsilon(2.0, 1e-5),
        "tpr": theory.WantedTPR(0.05, 0.01),
    }
    found: dict[str, Any] = {}
    for name, target in targets.items():
        found[f"noise, {name}"] = theory.noise_multiplier_for(target, sampling_rate=0.05, steps=50)
        found[f"steps, {name}"] = theory.steps_for(target, noise_multiplier=3.0, sampling_rate=0.01)
    wanted = targets["bayes"]
    found["rate"] = theory.sampling_rate_for(wanted, noise_multiplier=2.0, steps=50)
    found["closed"] = theory.noise_multiplier_for(
        wanted, sampling_rate=0.05, steps=50, method=theory.Corollary7()
    )
    return {name: {"value": item.value, "promise": item.promise} for name, item in found.items()}


def simulated(interval: Any, adjacency: str) -> Any:
    """Return the advantage by simulation."""
    return theory.total_variation_monte_carlo(
        NOISY, samples=20_000, rng=generator(0), interval=interval, adjacency=adjacency, threads=1
    )


THEORY: dict[str, Callable[[], Any]] = {
    **{f"training-{name}": partial(of_training, name) for name in TRAININGS},
    **{
        f"overview-{name}": partial(theory.overview, training, delta=1e-5, rates=(0.1, 0.01), prior=0.3)
        for name, training in TRAININGS.items()
    },
    **{
        f"compositions-{name}": partial(
            theory.compare_compositions, TRAININGS[name], delta=1e-5, adjacency="add-remove"
        )
        for name in ("poisson", "phases")
    },
    "leading": lambda: theory.leading(theory.overview(NOISY, delta=1e-4)),
    "conversions": conversions,
    "curve": of_curve,
    "renyi": of_renyi,
    "statements": of_statement,
    "grids": grids,
    "parameters": found_parameters,
    "attributes": lambda: theory.attribute_inference(NOISY, sensitivities=[0.5] * NOISY.steps),
    **{
        f"monte-carlo-{type(interval).__name__}-{adjacency}": partial(simulated, interval, adjacency)
        for interval in (theory.Hoeffding(), theory.EmpiricalBernstein(), theory.SampleVariance())
        for adjacency in BOTH
    },
}


# --- The command line ----------------------------------------------------------------------------------


def run(line: str) -> tuple[int, str, str]:
    """Run a command line in this process; return its exit code, standard output and standard error."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["auditor", *shlex.split(line)]
    code: Any = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            command_line()
    except SystemExit as stop:
        code = stop.code
    finally:
        sys.argv = before
    return int(code or 0), out.getvalue(), err.getvalue()


def printed(line: str) -> dict[str, Any]:
    """Return the JSON that a command prints, and its exit code."""
    code, out, _ = run(line)
    return {"code": code, "json": json.loads(out) if out else None}


def written(line: str) -> dict[str, Any]:
    """Return the table that a command writes to table.csv, and its exit code."""
    return {"code": run(line)[0], "table": Path("table.csv").read_text("utf-8")}


STEPS = "--noise-multiplier 1 --sampling-rate 0.02 --steps 300"
CLAIMED = "--claim-epsilon 0.5 --claim-delta 1e-5"
PRINTED: dict[str, str] = {
    "audit": "audit losses.csv --json -",
    "audit-options": "audit losses.csv --label-column class --features age,class --split random --melded"
    f" {CLAIMED} --confidence 0.9 --seed 3 --model-name 'a model' --strategy noise --utility 0.8"
    " --utility-name accuracy --top-records 3 --fail-if 'auc.lower > 0.6' --json -",
    "audit-pair": "audit --member-file first.csv --nonmember-file second.csv --json -",
    "audit-higher": "audit losses.npz --higher-is-member --json -",
    "audit-census": "audit losses.parquet --members census --persons each --delta 0.01 --json -",
    "audit-subset": "audit losses.parquet --members subset --training-size 5000 --persons each --json -",
    "audit-training-size": "audit losses.parquet --training-size 5000 --persons max --json -",
    "audit-coins": f"audit losses.csv --split bernoulli --inclusion 0.6 --persons each {CLAIMED} --json -",
    "audit-stratified": "audit losses.csv --split random --stratified --persons each --one-run-test f-dp --json -",
    "audit-any": "audit losses.csv --split random --persons each --one-run-test any-guesses --json -",
    "audit-mixture": "audit losses.csv --mixture --max-components 2 --json -",
    "audit-reference": "audit losses.csv --reference reference.csv --json -",
    "audit-dpsgd": f"audit losses.csv --split random {STEPS} --delta 1e-5 --json -",
    "audit-schedule": "audit losses.csv --split random --schedule steps.csv --fixed-size --json -",
    "audit-replaced": f"audit losses.csv --split random {CLAIMED} --claim-adjacency replace-one --json -",
    "audit-config": "--config settings.toml audit losses.csv --json -",
    "audit-gates": "audit losses.csv --fail-if 'auc > 0.99' --fail-if 'epsilon_bound.one_run > 1' --json -",
    "report": f"report {shlex.quote(str(STORED / 'audit.json'))} --json -",
    "claim": f"claim {STEPS} --delta 1e-5 --json -",
    "claim-every": f"claim {STEPS} --delta 1e-5 --every-method --compositions --monte-carlo 5000 --json -",
    "claim-options": f"claim {STEPS} --delta 1e-6 --fixed-size --fpr 0.2,0.02 --prior 0.1 --json -",
    "claim-schedule": "claim --schedule steps.csv --delta 1e-5 --json -",
    "parameters-noise": "parameters --advantage 0.05 --sampling-rate 0.01 --steps 100 --json -",
    "parameters-steps": "parameters --epsilon 2 --delta 1e-5 --noise-multiplier 1 --sampling-rate 0.01 --json -",
    "parameters-rate": "parameters --bayes-security 0.9 --noise-multiplier 2 --steps 100 --json -",
    "parameters-tpr": "parameters --tpr 0.05 --at-fpr 0.01 --noise-multiplier 4 --sampling-rate 0.1 --json -",
    "parameters-form": "parameters --advantage 0.1 --sampling-rate 0.01 --steps 90 --method closed-form --json -",
    "parameters-fixed": "parameters --advantage 0.1 --sampling-rate 0.01 --steps 90 --fixed-size --json -",
    "parameters-added": "parameters --advantage 0.1 --noise-multiplier 2 --sampling-rate 0.1"
    " --adjacency add-remove --json -",
    "parameters-none": "parameters --advantage 1e-9 --noise-multiplier 1 --sampling-rate 0.5 --json -",
    "power": "power --epsilon 2 --delta 1e-5 --split random --json -",
    "power-mu": "power --epsilon 1 --delta 1e-3 --split random --mu 1 --chance 0.9 --json -",
    "power-model": "power --epsilon 1 --delta 1e-3 --members census --attack-epsilon 2 --json -",
    "power-subset": "power --epsilon 1 --delta 1e-3 --members subset --training-size 900 --json -",
    "power-coins": "power --epsilon 1 --delta 0 --split bernoulli --inclusion 0.4 --json -",
    "power-never": "power --epsilon 5 --delta 1e-3 --mu 0.1 --json -",
    "runs": f"runs losses.csv {CLAIMED} --json -",
    "runs-grid": "runs losses.csv --rank-grid --delta 1e-5 --json -",
    "runs-fixed": "runs losses.csv --threshold 0.4 --delta 1e-5 --adjacency replace-one --json -",
    "runs-other": f"runs losses.csv --threshold-runs reference.csv {STEPS} --delta 1e-5 --json -",
    "instances": "instances one.json two.json --split random --delta 1e-5 --json -",
    "instances-claim": f"instances one.json two.json --split random {CLAIMED} --json -",
    "compare": "compare one.json two.json --fail-if-worse --json -",
    "compare-about": "compare one.json two.json three.json --about about.csv --baseline two.json --json -",
    "compare-measure": "compare one.json two.json --measure auc --json -",
    "schema-result": "schema result",
    "schema-instances": "schema instances",
    "schema-runs": "schema runs",
}
WRITTEN = {
    "ranking": "audit losses.csv --ranking table.csv --quiet",
    "ranking-persons": "audit losses.csv --persons each --seed 4 --ranking table.csv --quiet",
}


def make_tables() -> None:
    """Write the tables that the command line reads."""
    rng = generator(60)
    member = np.repeat([1, 0], [300, 280])
    frame = pd.DataFrame({"loss": rng.normal(1.0 - 0.9 * member, 1.0), "member": member})
    frame["id"] = [f"r{at:03}" for at in range(len(frame))]
    frame["group"] = rng.choice(["north", "south"], len(frame))
    frame["person"] = [f"p{at // 2:03}" for at in range(len(frame))]
    frame["class"] = rng.integers(0, 3, len(frame))
    frame["age"] = rng.normal(40, 10, len(frame)).round(1)
    frame.to_csv("losses.csv", index=False)
    frame.to_parquet("losses.parquet")
    np.savez("losses.npz", loss=-frame["loss"].to_numpy(), member=member)
    frame.assign(loss=rng.normal(0, 1, len(frame))).to_csv("reference.csv", index=False)
    for name, side in (("first", 1), ("second", 0)):
        frame[frame["member"] == side].drop(columns=["member", "person"]).to_csv(f"{name}.csv", index=False)
    make_settings()


def make_settings() -> None:
    """Write the other files that the command line reads."""
    Path("steps.csv").write_text("noise_multiplier,sampling_rate,steps\n1,0.02,30\n2,0.04,20\n", "utf-8")
    Path("settings.toml").write_text(
        '[audit]\nconfidence = 0.9\nsplit = "random"\nfail-if = ["auc.lower > 0.6"]\n', "utf-8"
    )
    Path("wrong.toml").write_text("[audit]\nconfidenc = 0.9\n", "utf-8")
    Path("about.csv").write_text(
        "result,utility,strategy\none.json,0.9,a\ntwo.json,0.8,b\nthree.json,0.7,b\n", "utf-8"
    )
    Path("broken.json").write_text('{"schema_version": "2"', "utf-8")
    Path("other.json").write_text('{"schema_version": "9"}', "utf-8")
    Path("nan.csv").write_text("loss,member\nnan,1\n0.1,0\n0.2,1\n0.3,0\n", "utf-8")
    Path("few.csv").write_text("loss,member\n0.1,0\n0.2,1\n", "utf-8")
    Path("half.csv").write_text("loss,member\n0.1,0.5\n0.2,1\n0.3,0\n", "utf-8")
    Path("note.txt").write_text("no table\n", "utf-8")
    for place, (name, shift) in enumerate({"one": 0.4, "two": 1.2, "three": 0.6}.items()):
        losses = normal(300, 250, shift, 61 + place, id=ids(300, 250))
        auditor.audit(losses, model=f"model {name}").to_json(f"{name}.json")


# --- What goes wrong -----------------------------------------------------------------------------------

CALLS: dict[str, Callable[[], Any]] = {
    "no losses": lambda: auditor.audit([1.0, 2.0]),
    "delta 1": lambda: auditor.audit(normal(), delta=1.0),
    "delta below 0": lambda: auditor.audit(normal(), delta=-0.1),
    "delta text": lambda: auditor.audit(normal(), delta="small"),
    "confidence": lambda: auditor.audit(normal(), confidence=1.0),
    "members text": lambda: auditor.audit(normal(), members="census"),
    "subset too small": lambda: auditor.audit(normal(), members=auditor.Subset(10)),
    "subset and size": lambda: auditor.audit(normal(), members=auditor.Subset(900), training_size=800),
    "subset of persons": lambda: auditor.audit(persons(), members=auditor.Subset(900)),
    "split text": lambda: auditor.audit(normal(), split="random"),
    "claim number": lambda: auditor.audit(normal(), claim=2.0),
    "claim delta": lambda: auditor.StatedClaim(2.0),
    "claim epsilon": lambda: auditor.StatedClaim(-1.0, 1e-5),
    "claim adjacency": lambda: auditor.StatedClaim(1.0, 1e-5, "replace"),
    "training size": lambda: auditor.audit(normal(), training_size=10),
    "training size text": lambda: auditor.audit(normal(), training_size="many"),
    "threshold": lambda: auditor.audit(normal(), threshold=0.5),
    "tails": lambda: auditor.RankGrid("left"),
    "interval": lambda: auditor.RankGrid(interval=auditor.Katz()),
    "fixed nan": lambda: auditor.FixedThreshold(float("nan")),
    "split fraction": lambda: auditor.Split(1.5),
    "inclusion": lambda: auditor.BernoulliSplit(0.0),
    "no rates": lambda: auditor.audit(normal(), fpr=()),
    "rate 2": lambda: auditor.audit(normal(), fpr=(2.0,)),
    "rates text": lambda: auditor.audit(normal(), fpr="0.1"),
    "persons text": lambda: auditor.audit(normal(), persons="mean"),
    "no persons": lambda: auditor.audit(normal(), persons=auditor.OnePerPerson()),
    "persons by": lambda: auditor.OnePerPerson("median"),
    "mixture 0": lambda: auditor.Mixture(0),
    "mixture true": lambda: auditor.audit(normal(), mixture=True),
    "any guesses delta": lambda: auditor.audit(
        normal(), split=RANDOM, claim=STATED, one_run_test=auditor.AnyGuesses()
    ),
    "f-dp coins": lambda: auditor.audit(normal(), split=COINS, one_run_test=auditor.FDP()),
    "test text": lambda: auditor.audit(normal(), one_run_test="steinke"),
    "features rows": lambda: auditor.audit(normal(), features=auditor.Features([1, 2], [3])),
    "features columns": lambda: auditor.Features({"a": [1]}, {"b": [1]}),
    "features ragged": lambda: auditor.Features([[1], [1, 2]], [[1], [2]]),
    "reference": lambda: auditor.audit(normal(), reference=[0.1]),
    "reference sizes": lambda: auditor.audit(normal(), reference=normal(5, 5)),
    "seed": lambda: auditor.audit(normal(), seed=-1),
    "top records": lambda: auditor.audit(normal(), top_records=5000),
    "top records below 0": lambda: auditor.audit(normal(), top_records=-1),
    "long name": lambda: auditor.audit(normal(), model="x" * 2000),
    "utility nan": lambda: auditor.Utility(float("nan")),
    "utility name": lambda: auditor.Utility(1.0, " "),
    "stratified without groups": lambda: auditor.audit(normal(), split=auditor.RandomSplit(stratified=True)),
    "nan loss": lambda: auditor.Losses([0.1, float("nan")], [0.1, 0.2]),
    "infinite loss": lambda: auditor.Losses([0.1, 0.3], [float("inf"), 0.2]),
    "one loss": lambda: auditor.Losses([0.1], [0.1, 0.2]),
    "matrix": lambda: auditor.Losses([[0.1, 0.2]], [0.1, 0.2]),
    "id length": lambda: auditor.Losses([0.1, 0.2], [0.1, 0.2], id=(["a"], ["b", "c"])),
    "id alone": lambda: auditor.Losses([0.1, 0.2], [0.1, 0.2], id="ab"),
    "scale": lambda: auditor.Losses([0.1, 0.2], [0.1, 0.2], scale="logodds"),
    "noise 0": lambda: auditor.DPSGD(0.0, 0.1, 10),
    "rate above 1": lambda: auditor.DPSGD(1.0, 1.1, 10),
    "no steps": lambda: auditor.DPSGD(1.0, 0.1),
    "vectors": lambda: auditor.DPSGD([1.0, 2.0], [0.1, 0.2, 0.3]),
    "estimate name": lambda: audited("plain").estimate("epsilon_bound.clopper"),
    "check name": lambda: audited("plain").check("tie"),
    "figure name": lambda: audited("plain").figure("trade-off"),
    "gate syntax": lambda: auditor.check_gates(audited("plain"), "auc"),
    "gate name": lambda: auditor.check_gates(audited("plain"), "auk > 0.5"),
    "gate word": lambda: auditor.check_gates(audited("plain"), "verdikt == refuted"),
    "gate number": lambda: auditor.check_gates(audited("plain"), "auc > 1_0"),
    "gate check": lambda: auditor.check_gates(audited("plain"), "checks.tie == fail"),
    "gate list": lambda: auditor.check_gates(audited("plain"), 5),
    "one instance": lambda: auditor.audit_instances(models(1), delta=1e-5),
    "same instances": lambda: auditor.audit_instances([normal(), normal()], delta=1e-5),
    "instances type": lambda: auditor.audit_instances([normal(), 3], delta=1e-5),
    "runs type": lambda: auditor.audit_runs([1.0], delta=1e-5),
    "runs adjacency": lambda: auditor.audit_runs(normal(), delta=1e-5, adjacency="both"),
    "runs odd": lambda: auditor.collect_runs(noisy_count, runs=7),
    "runs interval": lambda: auditor.audit_runs(
        normal(), delta=1e-5, threshold=auditor.FixedThreshold(-1.0, auditor.Katz())
    ),
    "runs few": lambda: auditor.audit_runs(auditor.Losses([0.1, 0.2], [0.3, 0.4]), delta=1e-5),
    "one result": lambda: auditor.compare_audits([audited("plain")]),
    "same result": lambda: auditor.compare_audits([audited("plain"), audited("plain")]),
    "baseline": lambda: auditor.compare_audits([audited("plain"), audited("ties")], baseline=3),
    "measure": lambda: auditor.compare_audits([audited("plain"), audited("ties")], measure="auk"),
    "judge model": lambda: auditor.judge(
        theory.epsilon(STATED, delta=1e-5), audited("plain").estimate("auc")
    ),
    "no file": lambda: auditor.read_result("missing.json"),
    "broken file": lambda: auditor.read_result("broken.json"),
    "newer file": lambda: auditor.read_result("other.json"),
    "read nan": lambda: auditor.read_losses("nan.csv"),
    "read few": lambda: auditor.read_losses("few.csv"),
    "read ending": lambda: auditor.read_losses("note.txt"),
    "read column": lambda: auditor.read_losses("losses.csv", loss_column="lost"),
    "schedule": lambda: auditor.read_schedule("losses.csv"),
    "epsilon 0": lambda: auditor.records_needed(0.0, delta=1e-5),
    "power": lambda: auditor.records_needed(1.0, delta=1e-5, power=1.0),
    "prior": lambda: auditor.rank_records(normal(), prior=1.0, rng=generator(0)),
    "path": lambda: audited("plain").to_json(5),
    "folder": lambda: audited("plain").to_json("missing/result.json"),
    "frontier": lambda: auditor.pareto_frontier([1.0], privacy_loss=[1.0, 2.0]),
    "theory rates": lambda: theory.overview(NOISY, delta=1e-5, rates=()),
    "theory training": lambda: theory.overview(STATED, delta=1e-5),
    "theory mu": lambda: theory.epsilon_from_mu(-1.0, delta=1e-5),
    "references": lambda: scores.References(member=[0.1], nonmember=[[0.1, 0.2]]),
    "rmia gamma": lambda: scores.rmia_score(np.zeros(2), np.zeros(2), gamma=0.0),
    "conformal": lambda: scores.conformal_threshold(np.zeros(5), rate=0.01),
    "no attribute": lambda: auditor.audits_of_nothing,
}
LINES = [
    "",
    "nothing",
    "audits losses.csv",
    "audit",
    "audit missing.csv",
    "audit note.txt",
    "audit nan.csv",
    "audit few.csv",
    "audit half.csv",
    "audit losses.csv --loss-column lost",
    "audit losses.csv --member-file first.csv",
    "audit --member-file first.csv",
    "audit losses.csv --delta 2",
    "audit losses.csv --delta small",
    "audit losses.csv --confidence 1",
    "audit losses.csv --split rand",
    "audit losses.csv --inclusion 0.5",
    "audit losses.csv --split bernoulli --inclusion 2",
    "audit losses.csv --stratified",
    "audit losses.csv --members subset",
    "audit losses.csv --members subset --training-size 5",
    "audit losses.csv --claim-epsilon 1",
    "audit losses.csv --claim-delta 1e-5",
    "audit losses.csv --claim-epsilon 1 --claim-delta 1e-5 --noise-multiplier 1",
    "audit losses.csv --noise-multiplier 1",
    "audit losses.csv --one-run-test f-dp",
    "audit losses.csv --max-components 3",
    "audit losses.csv --persons median",
    "audit losses.csv --features agee",
    "audit losses.csv --fail-if auc",
    "audit losses.csv --fail-if 'auk > 1'",
    "audit losses.csv --fail-if 'verdict == refutd'",
    "audit losses.csv --json losses.csv",
    "audit losses.csv --html a.html --json a.html",
    "audit losses.csv --html missing/page.html",
    "audit losses.csv --ranking table.txt",
    "audit losses.csv --top-records -1",
    "audit losses.csv --utility-name accuracy",
    "audit losses.csv --sead 3",
    "audit losses.csv --quite",
    "--config wrong.toml audit losses.csv",
    "--config missing.toml audit losses.csv",
    "report missing.json",
    "report broken.json",
    "report other.json",
    "compare one.json",
    "compare one.json one.json",
    "compare one.json two.json --baseline 7",
    "compare one.json two.json three.json --fail-if-worse",
    "claim --delta 1e-5",
    "claim --noise-multiplier 1 --delta 1e-5",
    "claim --noise-multiplier 1 --sampling-rate 2 --steps 3 --delta 1e-5",
    "claim --noise-multiplier 1 --sampling-rate 0.2 --steps 3",
    "parameters --advantage 0.1",
    "parameters --advantage 0.1 --epsilon 1 --delta 1e-5 --steps 5 --sampling-rate 0.1",
    "parameters --tpr 0.1 --steps 5 --sampling-rate 0.1",
    "power --epsilon 1",
    "power --epsilon -1 --delta 1e-5",
    "power --epsilon 1 --delta 1e-5 --mu 1 --attack-epsilon 2",
    "runs losses.csv",
    "runs missing.csv --delta 1e-5",
    "runs losses.csv --threshold 0 --rank-grid --delta 1e-5",
    "instances one.json --delta 1e-5",
    "instances one.json one.json --delta 1e-5",
    "collect losses.csv --members first.csv --nonmembers second.csv --label class --out out.parquet",
    "collect model.skops --members first.csv --out out.parquet",
    "schema everything",
    "init --path losses.csv",
    "help nothing",
]


def tried(call: Callable[[], Any]) -> Any:
    """Return what a call gives, or the kind of error that it ends with."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - whatever it raises is what is kept
        return {"raised": type(error).__name__}


def sentence(call: Callable[[], Any]) -> str:
    """Return the sentence of the error that a call ends with."""
    try:
        found = call()
    except Exception as error:  # noqa: BLE001 - whatever it raises is what is kept
        return f"{type(error).__name__}: {error}\n"
    return f"no error: {type(found).__name__}\n"


def ending(line: str) -> str:
    """Return how a command line ends: code, standard output and standard error."""
    code, out, err = run(line)
    return f"$ auditor {line}\nexit code {code}\n{out}{err}"


# --- What is shown -------------------------------------------------------------------------------------

SHOWN = [
    "plain",
    "no-leak",
    "all-equal",
    "stated-refuted",
    "dpsgd-phases",
    "fdp-fixed-size",
    "persons-default",
    "mixture",
    "features-shift",
    "groups-hostile",
    "fixed-katz",
    "everything",
]
FORMATS = ("html", "markdown", "junit", "sarif")
COMMANDS = [
    "demo",
    "collect",
    "audit",
    "report",
    "compare",
    "claim",
    "parameters",
    "instances",
    "runs",
    "power",
    "init",
    "schema",
]
TOLD = {
    "audit": "audit losses.csv --split random --claim-epsilon 0.5 --claim-delta 1e-5",
    "audit-gates": "audit losses.csv --fail-if 'auc > 0.99' --fail-if 'auc.lower > 0.5'",
    "claim": f"claim {STEPS} --delta 1e-5",
    "claim-every": f"claim {STEPS} --delta 1e-5 --every-method --compositions",
    "parameters": "parameters --advantage 0.05 --sampling-rate 0.01 --steps 100",
    "power": "power --epsilon 2 --delta 1e-5 --split random --mu 1",
    "power-never": "power --epsilon 5 --delta 1e-3 --mu 0.1",
    "runs": f"runs losses.csv {CLAIMED}",
    "runs-grid": "runs losses.csv --rank-grid --delta 1e-5",
    "instances": "instances one.json two.json --split random --delta 1e-5",
    "instances-claim": f"instances one.json two.json --split random {CLAIMED}",
    "compare": "compare one.json two.json --fail-if-worse",
    "compare-three": "compare one.json two.json three.json --about about.csv --baseline one.json",
    "init": "init --path fresh.toml --force",
    "version": "--version",
    "demo": "demo --html demo.html",
    "help": "help audit",
}


def shown_result(name: str) -> dict[str, str]:
    """Return everything that shows a result."""
    result = audited(name)
    gates = GATES[:6]
    parts = {form: getattr(result, f"to_{form}")(gates=gates) for form in FORMATS}
    result.to_json("shown.json")
    outcomes = auditor.check_gates(result, [gate for gate in GATES if "tpr" not in gate])
    alt = re.findall(r'aria-label="([^"]*)"|<desc[^>]*>([^<]*)|<title[^>]*>([^<]*)', parts["html"])
    return {
        "page.html": parts["html"],
        "figures.txt": "\n".join(["".join(found) for found in alt]),
        "summary.md": parts["markdown"],
        "junit.xml": parts["junit"],
        "sarif.json": parts["sarif"],
        "card.html": result._repr_html_(),
        "gates.txt": "\n".join(outcome.sentence for outcome in outcomes),
        "terminal.txt": ending("report shown.json"),
        "frame.txt": result.to_frame().to_string(),
    }


def shown_comparison(name: str) -> dict[str, str]:
    """Return everything that shows a comparison."""
    found = COMPARISONS[name]()
    return {
        "page.html": found.to_html(),
        "card.html": found._repr_html_(),
        "frame.txt": found.to_frame().to_string(),
    }


def shown_card(found: Callable[[], Any]) -> dict[str, str]:
    """Return the card of a result."""
    return {"card.html": found()._repr_html_()}


def shown_help(command: str) -> dict[str, str]:
    """Return the help of a command."""
    return {"help.txt": ending(f"{command} --help")}


def shown_line(line: str) -> dict[str, str]:
    """Return what a command prints."""
    if not line.startswith("init"):
        return {"terminal.txt": ending(line)}
    return {"terminal.txt": ending(line), "fresh.toml": Path("fresh.toml").read_text("utf-8")}


def shown_errors() -> dict[str, str]:
    """Return the sentences of all errors."""
    return {
        "python.txt": "".join(f"{name}: {sentence(call)}" for name, call in CALLS.items()),
        "lines.txt": "".join(ending(line) for line in LINES),
    }


SEEN: dict[str, Callable[[], dict[str, str]]] = {
    **{f"result/{name}": partial(shown_result, name) for name in SHOWN},
    **{
        f"comparison/{name}": partial(shown_comparison, name)
        for name in ("worse", "landscape-baseline", "different")
    },
    **{f"instances/{name}": partial(shown_card, call) for name, call in INSTANCES.items()},
    **{f"runs/{name}": partial(shown_card, call) for name, call in RUNS.items()},
    **{f"help/{name}": partial(shown_help, name) for name in COMMANDS},
    "help/all": partial(shown_help, ""),
    **{f"line/{name}": partial(shown_line, line) for name, line in TOLD.items()},
    "errors": shown_errors,
}


# --- Every case ----------------------------------------------------------------------------------------


def written_again(name: str) -> dict[str, Any]:
    """Return a result that was written and read, beside whether that changed it."""
    text = audited(name).to_json("again.json")
    again = auditor.read_result("again.json")
    return {"same": again.to_json() == text, "figures": sorted(again.figures())}


CASES: dict[str, Callable[[], Any]] = {
    **{f"audit/{name}": partial(audited, name) for name in AUDITS},
    **{f"frame/{name}": partial(lambda name: audited(name).to_frame(), name) for name in SHOWN},
    **{f"again/{name}": partial(written_again, name) for name in SHOWN},
    **{f"stored/{path.stem}": partial(auditor.read_result, path) for path in sorted(STORED.glob("*.json"))},
    **{f"gates/{name}": partial(judged, name) for name in JUDGED},
    **{f"instances/{name}": call for name, call in INSTANCES.items()},
    **{f"runs/{name}": call for name, call in RUNS.items()},
    **{f"comparison/{name}": call for name, call in COMPARISONS.items()},
    **{f"plan/{name}": partial(plans, name) for name in PLANS},
    **{f"ranking/{name}": partial(ranking, name) for name in RANKED},
    **{f"scores/{name}": call for name, call in SCORES.items()},
    **{f"sensitivity/{name}": call for name, call in SENSITIVITY.items()},
    **{f"collected/{name}": call for name, call in COLLECTED.items()},
    **{f"theory/{name}": call for name, call in THEORY.items()},
    **{f"other/{name}": call for name, call in OTHERS.items()},
    **{f"line/{name}": partial(printed, line) for name, line in PRINTED.items()},
    **{f"line/{name}": partial(written, line) for name, line in WRITTEN.items()},
    "errors/python": lambda: {name: tried(call) for name, call in CALLS.items()},
    "errors/lines": lambda: {line: run(line)[0] for line in LINES},
    "errors/names": lambda: {name: hasattr(auditor, name) for name in auditor.__all__},
}


def numbers(name: str) -> Any:
    """Return what a case gives, as it is kept."""
    return canonical(plain(tried(CASES[name])))


def seen(name: str) -> dict[str, str]:
    """Return what a case shows, as it is kept."""
    try:
        parts = SEEN[name]()
    except Exception as error:  # noqa: BLE001 - whatever it raises is what is kept
        parts = {"error.txt": f"{type(error).__name__}: {error}\n"}
    return {part: normalised(text) for part, text in parts.items()}


@contextlib.contextmanager
def workplace() -> Iterator[None]:
    """Work in a folder of its own, with nothing around that changes what is printed."""
    os.environ.update(COLUMNS="100", LINES="40")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        os.environ.pop(name, None)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path(".git").mkdir()  # no settings are looked for above it
        make_tables()
        yield


def keep(folder: Path, only: str) -> list[str]:
    """Write what every case gives and shows; return the cases that ended with an error."""
    failed = []
    for name in fnmatch.filter(CASES, only):
        found = numbers(name)
        put(
            folder / "numbers" / f"{name}.json",
            json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False),
        )
        failed += [f"{name}: {found['raised']}"] if is_error(found) else []
    for name in fnmatch.filter(SEEN, only):
        parts = seen(name)
        for part, text in parts.items():
            put(folder / "shown" / name / part, text)
        failed += [f"shown {name}: {parts['error.txt'].strip()}"] if "error.txt" in parts else []
    return failed


def put(path: Path, text: str) -> None:
    """Write a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))


def taken(path: Path) -> str:
    """Return the text of a kept file."""
    return path.read_bytes().decode("utf-8", "surrogatepass")


def compare(folder: Path, only: str) -> Iterator[str]:
    """Yield each number that is not as it was kept."""
    kept = {
        path.relative_to(folder / "numbers").with_suffix("").as_posix()
        for path in folder.glob("numbers/**/*.json")
    }
    for name in fnmatch.filter(sorted(kept - CASES.keys()), only):
        yield f"{name}: kept, and there is no such case"
    for name in fnmatch.filter(CASES, only):
        if name not in kept:
            yield f"{name}: was not kept"
            continue
        before = json.loads(taken(folder / "numbers" / f"{name}.json"))
        after = json.loads(json.dumps(numbers(name)))
        if is_error(after) and not is_error(before):
            yield f"{name}: raises {sentence(CASES[name]).strip()}"
        else:
            yield from limited(name, list(differences(before, after)))


def is_error(found: Any) -> bool:
    """Return whether a case ended with an error."""
    return isinstance(found, dict) and found.keys() == {"raised"}


def compare_shown(folder: Path, only: str) -> Iterator[str]:
    """Yield each thing shown that is not as it was kept."""
    for name in fnmatch.filter(SEEN, only):
        parts, place = seen(name), folder / "shown" / name
        kept = {path.name: taken(path) for path in place.iterdir()} if place.is_dir() else {}
        for part in sorted({*parts, *kept}):
            yield from limited(f"{name}/{part}", lines_that_differ(kept.get(part), parts.get(part)))


def lines_that_differ(before: str | None, after: str | None) -> list[str]:
    """Return what a text has lost (-) and gained (+), line by line."""
    if before is None or after is None:
        return ["only after" if before is None else "only before"]
    if before == after:
        return []
    old, new = before.splitlines(), after.splitlines()
    told = [
        line
        for line in difflib.unified_diff(old, new, n=0, lineterm="")
        if not line.startswith(("---", "+++", "@@"))
    ]
    return [line[0] + " " + short(line[1:]) for line in told] or ["ends of lines differ"]


def limited(name: str, told: list[str]) -> Iterator[str]:
    """Yield the first differences of a case, and how many more there are."""
    for item in told[:MOST]:
        yield f"{name}: {item}"
    if len(told) > MOST:
        yield f"{name}: ... and {len(told) - MOST:,} more"


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def kept(folder: Path, only: str) -> int:
    """Keep everything, and say what was kept."""
    failed = keep(folder, only)
    for item in failed:
        say(f"kept as an error: {item}")
    audits = sum(name.startswith("audit/") for name in fnmatch.filter(CASES, only))
    say(
        f"kept {len(fnmatch.filter(CASES, only))} cases ({audits} audits), and what {len(fnmatch.filter(SEEN, only))} show"
    )
    return 0


def compared(folder: Path, only: str, *, shown: bool) -> int:
    """Compare everything, and say what differs."""
    found = 0
    for item in compare(folder, only):
        say(item)
        found += 1
    say(
        f"{len(fnmatch.filter(CASES, only))} cases: {found or 'no'} difference{'' if found == 1 else 's'} in numbers"
    )
    if not shown:
        return int(found > 0)
    words = 0
    for item in compare_shown(folder, only):
        say(f"shown {item}")
        words += 1
    say(
        f"{len(fnmatch.filter(SEEN, only))} cases: {words or 'no'} difference{'' if words == 1 else 's'} in what is shown"
    )
    return int(found + words > 0)


def with_one_thread() -> None:
    """Start again with one thread where more are allowed: sums by several threads end in other digits."""
    if any(os.environ.get(name) != "1" for name in THREADS):
        os.environ.update(dict.fromkeys(THREADS, "1"))
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - this very script


def main() -> int:
    """Keep or compare, as asked."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("what", choices=("keep", "compare"))
    asked.add_argument("folder", type=Path)
    asked.add_argument(
        "--only", default="*", metavar="PATTERN", help="cases whose name matches, such as 'audit/*'"
    )
    asked.add_argument("--shown", action="store_true", help="compare pages, tables, help and sentences too")
    given = asked.parse_args()
    if not fnmatch.filter([*CASES, *SEEN], given.only):
        asked.error(f"no case matches {given.only!r}")
    folder = given.folder.resolve()
    say(f"auditor {auditor.__version__} of {Path(auditor.__file__).parent}")
    with workplace():
        if given.what == "keep":
            code = kept(folder, given.only)
        else:
            code = compared(folder, given.only, shown=given.shown)
    say(f"{time.process_time():.0f} s of CPU time")
    return code


if __name__ == "__main__":
    with_one_thread()
    sys.exit(main())
