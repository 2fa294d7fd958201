"""Time of each capability beside a floor and beside the tools that can be imported here.

From the root of this repository; ``speed.md`` is made by

    OMP_NUM_THREADS=1 python reports/benchmarks/speed.py > reports/benchmarks/speed.md

in an environment with jax-privacy and httpx. The attacks of tensorflow-privacy 0.9.0 cannot be imported from its wheel, so that
it is no peer here.
Times are processor time, all threads counted, the best of several tries; of requests they are wall time, as a client waits. A
floor is what no tool can do without: sorting the losses, reading the files, a plain semaphore. A peer does the nearest thing
that it offers, with its defaults; those that cannot be imported are listed. Takes some five minutes.
"""

import asyncio
import json
import logging
import platform
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import auditor
from auditor.core import DPSGD, Adjacency
from auditor.estimators import clopper_pearson
from auditor.report import site
from auditor.theory import privacy_loss

PEERS = ("jax-privacy", "dp-accounting")
RNG = np.random.default_rng(0)
DELTA = 1e-5
PLAN: dict[str, Any] = {"epsilon": 1.0, "delta": DELTA, "split": "random", "attack": "gaussian:2"}


@dataclass(frozen=True)
class Row:
    """One line of the table; ``floor`` and ``peer`` are names and times, where there is one."""

    what: str
    ours: float
    floor: tuple[str, float] | None = None
    peer: tuple[str, float] | None = None

    def __str__(self) -> str:
        """Return the line."""
        beside = [
            ("-", "-") if one is None else (f"{one[0]} {seconds(one[1])}", f"{self.ours / one[1]:.3g}")
            for one in (self.floor, self.peer)
        ]
        return "| " + " | ".join([self.what, seconds(self.ours), *beside[0], *beside[1]]) + " |"


def seconds(value: float) -> str:
    """Return a time with three digits."""
    return f"{value:.3g} s"


def best(action: Callable[[], Any], tries: int = 3) -> float:
    """Return the least processor time of some tries."""
    spent = []
    for _ in range(tries):
        start = time.process_time()
        action()
        spent.append(time.process_time() - start)
    return min(spent)


def has(package: str) -> bool:
    """Return whether a peer can be used."""
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


# --- The core ---


def audits() -> Iterator[Row]:
    """Yield the audits of a million losses in each group, and of a thousand."""
    groups = RNG.gamma(2, 5, 1_000_000), RNG.gamma(2.2, 5, 1_000_000)
    regions = [RNG.choice([f"region {place}" for place in range(10)], 1_000_000) for _ in groups]
    people = [np.char.add(side, RNG.integers(0, 500_000, 1_000_000).astype(str)) for side in "mn"]
    kinds: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "plain": ({}, {}),
        "a random split": ({}, {"split": auditor.RandomSplit()}),
        "ten groups": ({"group": regions}, {}),
        "people": ({"person": people}, {}),
    }
    sort = "np.sort of both groups", best(lambda: [np.sort(group) for group in groups], 9)
    for kind, (columns, options) in kinds.items():
        few = {name: [column[:1000] for column in pair] for name, pair in columns.items()}
        auditor.audit(auditor.Losses(groups[0][:1000], groups[1][:1000], **few), **options)  # imports
        audit = lambda columns=columns, options=options: auditor.audit(  # noqa: E731
            auditor.Losses(*groups, **columns), **options
        )
        yield Row(f"audit, 1e6 + 1e6 losses, {kind}", best(audit), sort)
    bound = lambda: clopper_pearson(auditor.Losses(*groups), delta=DELTA)  # noqa: E731
    peer = canary_bound(groups) if has("jax-privacy") else None
    yield Row("certified bound, 1e6 + 1e6", best(bound), sort, peer)
    few = groups[0][:1000], groups[1][:1000]
    yield Row("audit, 1,000 + 1,000 losses", best(lambda: auditor.audit(auditor.Losses(*few)), 9))


def canary_bound(groups: tuple[Any, Any]) -> tuple[str, float]:
    """Return the time of jax_privacy's bound, which calls high scores members."""
    from jax_privacy import auditing

    bound = lambda: auditing.CanaryScoreAuditor(-groups[0], -groups[1]).epsilon_clopper_pearson(  # noqa: E731
        0.05, DELTA
    )
    return "jax_privacy, Clopper-Pearson", best(bound, 2)


def runs() -> Iterator[Row]:
    """Yield the evidence of runs that are judged one by one, and a plan."""
    pairs = RNG.normal(-0.5, 1, 50_000), RNG.normal(0, 1, 50_000)
    losses = auditor.Losses(*pairs)
    judge = lambda: auditor.audit_runs(losses, delta=DELTA, test=auditor.Sequential())  # noqa: E731
    auditor.audit_runs(auditor.Losses(pairs[0][:100], pairs[1][:100]), delta=DELTA)
    sort = "np.sort of both groups", best(lambda: [np.sort(group) for group in pairs], 9)
    yield Row("1e5 runs judged one by one", best(judge, 2), sort)
    yield Row("records that a plan needs", best(lambda: auditor.records_needed(**PLAN), 2))


def schedules() -> Iterator[Row]:
    """Yield epsilon and total variation of a training whose noise differs in every step."""

    def both(training: DPSGD) -> None:
        privacy_loss._law_of.cache_clear()  # noqa: SLF001 - each try from nothing
        law = privacy_loss.composed(training, adjacency=Adjacency.ADD_REMOVE)
        law.epsilon_at(DELTA)
        law.total_variation()

    peer = None
    if has("dp-accounting"):
        from dp_accounting import pld

        law = lambda: pld.privacy_loss_distribution.from_gaussian_mechanism(  # noqa: E731
            1.1, sampling_prob=0.01, value_discretization_interval=1e-4
        )
        peer = "dp_accounting, PLD", best(lambda: law().self_compose(10_000).get_epsilon_for_delta(DELTA), 2)
    plain, different = DPSGD(1.1, 0.01, 10_000), DPSGD(np.linspace(0.8, 1.6, 14_040), 0.01)
    yield Row("epsilon, 10,000 equal steps", best(lambda: both(plain)), peer=peer)
    yield Row("epsilon, 14,040 different steps", best(lambda: both(different), 2))


# --- Files and servers ---


def folders() -> Iterator[Row]:
    """Yield the report of a folder of 200 results, first and unchanged."""
    with tempfile.TemporaryDirectory() as folder:
        results, pages = Path(folder, "results"), Path(folder, "pages")
        results.mkdir()
        for place in range(200):
            losses = auditor.Losses(RNG.normal(-1, 1, 300), RNG.normal(0, 1, 300))
            auditor.audit(losses, model=f"Model {place}").to_json(results / f"{place}.json")
        files = sorted(results.iterdir())
        read = "reading the files", best(lambda: [json.loads(path.read_text()) for path in files])
        yield Row("report of 200 results", best(lambda: site(results, pages), 1), read)
        yield Row("report of 200 results again", best(lambda: site(results, pages)), read)


def summaries() -> Iterator[Row]:
    """Yield the summary of ten million rows of a Parquet file."""
    import pyarrow as pa
    from pyarrow import parquet

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "losses.parquet")
        columns = {"loss": RNG.normal(size=10_000_000), "member": np.tile([0, 1], 5_000_000)}
        parquet.write_table(pa.table(columns), path)
        read = "reading the file", best(lambda: parquet.read_table(path))
        yield Row("summary of 1e7 rows", best(lambda: auditor.Summary.from_files([path])), read)


_EACH, _AT_ONCE, _MEAN = 10, 16, 0.3


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve two classes, each request after a random time."""
    while head := (await reader.read(1) and await reader.readuntil(b"\r\n\r\n")):
        size = int(
            dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:-2]).get(b"content-length", 0)
        )
        body = json.loads(await reader.readexactly(size) or "{}")
        await asyncio.sleep(RNG.exponential(_MEAN))
        text = json.dumps({"predictions": [[0.3, 0.7] for _ in body.get("instances", ())]}).encode()
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(text)
            + text
        )
    writer.close()


def requests() -> Iterator[Row]:
    """Yield a model behind HTTP, 640 requests of .3 s on average, 16 at once; wall time."""
    if not has("httpx"):
        return
    import httpx

    async def plain(url: str) -> None:
        free, body = asyncio.Semaphore(_AT_ONCE), {"instances": [[0.0]] * _EACH}
        async with httpx.AsyncClient(timeout=60) as client:

            async def send() -> None:
                async with free:
                    await client.post(url, json=body)

            await asyncio.gather(*(send() for _ in range(640)))

    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    server = asyncio.run_coroutine_threadsafe(asyncio.start_server(_answer, "127.0.0.1", 0), loop).result()
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/models/slow:predict"
    endpoint = auditor.Endpoint(url, concurrency=_AT_ONCE, max_request_records=_EACH)
    groups = [(RNG.normal(size=(3200, 1)), np.tile([0, 1], 1600)) for _ in range(2)]
    auditor.collect(endpoint, *[(x[:40], y[:40]) for x, y in groups])  # imports
    spent = []
    for action in (lambda: asyncio.run(plain(url)), lambda: auditor.collect(endpoint, *groups)):
        start = time.perf_counter()
        action()
        spent.append(time.perf_counter() - start)
    yield Row("640 requests of .3 s, 16 at once, wall time", spent[1], ("a semaphore", spent[0]))


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    missing = [name for name in PEERS if not has(name)]
    print("# Speed\n\nMade by `reports/benchmarks/speed.py`, which says what is compared.")
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, one thread.")
    print("Peers: " + ", ".join(f"{name} {version(name)}" for name in PEERS if has(name)) + ".", end=" ")
    print(f"Not run: {', '.join(missing)}.\n" if missing else "\n")
    print(
        "| | ours | floor | times the floor | peer | times the peer |\n| --- | ---: | --- | ---: | --- | ---: |"
    )
    for rows in (audits, runs, schedules, folders, summaries, requests):
        for row in rows():
            print(row, flush=True)


if __name__ == "__main__":
    main()
