"""Which synthetic tables of UCI Adult give their training records away: `auditor.scores.nearness` beside the usual test.

Usage: python reports/benchmarks/synthetic_tables.py ADULT_TRAIN ADULT_TEST [DRAWS]

The two files are adult.data and adult.test of the UCI Machine Learning Repository (data set "Adult"), comma-separated.
20,000 members, 20,000 non-members and a reference of the rest are drawn at random, without repeated rows. From the members
tables of 50,000 rows are made by several laws, and audited at 95% confidence with and without the reference. Then
DRAWS (default 200) audits of tables that were made without regard to membership count false alarms, and several searches for
the nearest row are timed. Prints Markdown.
"""

import resource
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from scipy import stats
from scipy.spatial import KDTree
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import BallTree, NearestNeighbors

import auditor
from auditor.scores import nearness

NUMERIC = [0, 2, 4, 10, 11, 12]
ROWS, GROUP, NEIGHBOURS = 50_000, 20_000, 5
BOUND = "epsilon_bound.clopper_pearson"


def read(*paths: str) -> pd.DataFrame:
    """Return the different rows of the files."""
    table = pd.concat([pd.read_csv(path, header=None, skipinitialspace=True) for path in paths]).dropna()
    table = table[table[14].str.startswith((">", "<"))]
    table = (
        table.assign(**{"14": table[14].str.rstrip(".")})
        .drop(columns=14)
        .astype(dict.fromkeys(NUMERIC, float))
    )
    table.columns = [str(name) for name in table.columns]
    return table.drop_duplicates().reset_index(drop=True)


def independent(
    members: pd.DataFrame, rng: np.random.Generator, *, copies: float = 0.0, near: bool = False
) -> pd.DataFrame:
    """Return columns drawn independently of each other, and a share of copies; near ones have another age and weight."""
    table = pd.DataFrame({name: rng.choice(column.to_numpy(), ROWS) for name, column in members.items()})
    size = round(copies * ROWS)
    copied = members.sample(size, random_state=rng)
    if near:
        copied["0"] += rng.choice([-1, 1], size)
        copied["2"] = np.rint(copied["2"] * rng.uniform(0.99, 1.01, size))
    return pd.concat([copied, table[size:]], ignore_index=True)


def mixture(members: pd.DataFrame, rng: np.random.Generator, *, components: int) -> pd.DataFrame:
    """Return draws of a Gaussian mixture, of the standardised numbers and the numbers of the categories, rounded."""
    coded = {
        name: pd.factorize(column, sort=True) for name, column in members.items() if column.dtype != float
    }
    values = np.column_stack(
        [coded[name][0] if name in coded else column for name, column in members.items()]
    )
    mean, sd = values.mean(axis=0), values.std(axis=0)
    model = GaussianMixture(components, reg_covar=1e-4, max_iter=50, random_state=int(rng.integers(2**31)))
    drawn = np.rint(model.fit((values - mean) / sd).sample(ROWS)[0] * sd + mean)
    drawn = np.clip(drawn, values.min(axis=0), values.max(axis=0))
    columns = zip(members.columns, drawn.T, strict=True)
    return pd.DataFrame(
        {name: coded[name][1][column.astype(int)] if name in coded else column for name, column in columns}
    )


def smote(members: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return SMOTE-NC rows: between a member and one of its 5 neighbours, with the most frequent categories of these."""
    numbers = [str(place) for place in NUMERIC]
    scaled = members[numbers] / members[numbers].std()
    words = pd.get_dummies(members.drop(columns=numbers), dtype=float) / np.sqrt(2)
    points = np.hstack([scaled, words])
    first = rng.choice(len(members), ROWS)
    near = (
        NearestNeighbors(n_neighbors=NEIGHBOURS + 1)
        .fit(points)
        .kneighbors(points, return_distance=False)[first, 1:]
    )
    second, share = near[np.arange(ROWS), rng.integers(NEIGHBOURS, size=ROWS)], rng.random((ROWS, 1))
    start, end = (members[numbers].to_numpy()[rows] for rows in (first, second))
    table = pd.DataFrame(np.rint(start + share * (end - start)), columns=numbers)
    for name in members.columns.difference(numbers):
        codes, options = pd.factorize(members[name])
        table[name] = options[stats.mode(codes[near], axis=1).mode]
    return table[members.columns]


LAWS: dict[str, Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]] = {
    "independent columns": independent,
    "independent columns, 1% copies": partial(independent, copies=0.01),
    "independent columns, 3% copies": partial(independent, copies=0.03),
    "independent columns, 3% near copies": partial(independent, copies=0.03, near=True),
    "Gaussian mixture of 20": partial(mixture, components=20),
    "Gaussian mixture of 300": partial(mixture, components=300),
    "SMOTE": smote,
}


def split(table: pd.DataFrame, rng: np.random.Generator, size: int) -> list[pd.DataFrame]:
    """Return members, non-members and a reference."""
    order = rng.permutation(len(table))
    return [table.iloc[rows].reset_index(drop=True) for rows in np.split(order, [size, 2 * size])]


def audits(table: pd.DataFrame) -> None:
    """Print one line for each law."""
    rng = np.random.default_rng(0)
    members, nonmembers, reference = split(table, rng, GROUP)
    print(
        "| law of the table | AUC | certified epsilon | AUC, with reference | certified, with reference | usual test | copies | near copies | CPU seconds |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, law in LAWS.items():
        released, cells, seconds = law(members, rng), [], []
        for given in (None, reference):
            start = time.process_time()
            losses = nearness(released, (members, nonmembers), reference=given)
            seconds.append(time.process_time() - start)
            result = auditor.audit(losses, split="random")
            cells += [f"{result['auc'].value:.3f}", f"{result[BOUND].lower:.2f}"]
        facts = losses.released.table
        counts = (f"{pair[0]:,} of members, {pair[1]:,} of others" for pair in (facts.copies, facts.near))
        print(
            "|",
            " | ".join([name, *cells, f"{facts.nearer:.3f}", *counts, f"{seconds[0]:.0f}"]),
            "|",
            flush=True,
        )
    print(
        f"\nLargest memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB.\n"
    )


def false_alarms(table: pd.DataFrame, draws: int) -> None:
    """Print how often a table that was made without regard to membership shows a leak."""
    rng = np.random.default_rng(1)
    alarms = dict.fromkeys(("no reference", "with reference"), 0)
    for _ in range(draws):
        members, nonmembers, reference = split(table, rng, 2_000)
        released = independent(pd.concat([members, nonmembers]), rng, copies=0.03).sample(
            6_000, random_state=rng
        )
        for name, given in zip(alarms, (None, reference[:2_000]), strict=True):
            losses = nearness(released, (members, nonmembers), reference=given)
            alarms[name] += auditor.audit(losses, split="random")[BOUND].lower > 0
    for name, count in alarms.items():
        low, high = stats.binomtest(count, draws).proportion_ci(0.95)
        print(
            f"* {name}: {count} of {draws} audits certify an epsilon above 0 (95% interval {low:.3f} to {high:.3f}; level 0.05)"
        )


def searches(table: pd.DataFrame) -> None:
    """Print the CPU seconds of searches for the nearest of 50,000 rows in one-hot coordinates, from a part of the records."""
    rng = np.random.default_rng(2)
    members, nonmembers, _ = split(table, rng, GROUP)
    numbers = [str(place) for place in NUMERIC]
    print("\n| search, independent columns | CPU seconds for 40,000 records |\n| --- | --- |")
    whole = pd.concat([members, nonmembers, independent(members, rng)], ignore_index=True)
    points = np.hstack(
        [whole[numbers].rank(pct=True), pd.get_dummies(whole.drop(columns=numbers), dtype=float) / np.sqrt(2)]
    )
    records, released = points[: 2 * GROUP], points[2 * GROUP :]
    single = released.astype(np.float32)
    for name, part, find in (
        ("scikit-learn, brute force, float64", 10, partial(pairwise_distances_argmin_min, Y=released)),
        ("scikit-learn, brute force, float32", 10, partial(pairwise_distances_argmin_min, Y=single)),
        ("scikit-learn, ball tree", 100, BallTree(released).query),
        ("SciPy, k-d tree", 100, KDTree(released).query),
    ):
        rows = records[::part].astype(np.float32 if "32" in name else np.float64)
        start = time.process_time()
        find(rows)
        print(f"| {name} | {part * (time.process_time() - start):.0f} |", flush=True)
    start = time.process_time()
    nearness(whole[2 * GROUP :], (members, nonmembers))
    print(f"| `nearness`, all of it, with the usual test | {time.process_time() - start:.0f} |")


def main() -> None:
    """Print all tables."""
    warnings.filterwarnings("ignore")
    table = read(*sys.argv[1:3])
    audits(table)
    false_alarms(table, int(sys.argv[3]) if len(sys.argv) > 3 else 200)  # noqa: PLR2004
    searches(table)


if __name__ == "__main__":
    main()
