"""The league: auditors side by side on scores whose true epsilon is known.

    python reports/league/run.py              # all, about half an hour on two cores
    python reports/league/run.py --quick      # ours and jax_privacy, few draws

Writes ``league.md``, ``league.csv`` and two figures. Needs uv, which makes an environment of its own for each peer (kept in
``--environments``), and matplotlib. An auditor is one file of ``adapters``: the dict ``ABOUT`` and
``bound(member, nonmember, delta, confidence)``, where high scores are more like members.
"""

import argparse
import ast
import csv
import json
import math
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from counting import interval
from drawing import draw_figures
from laws import LAWS, Law
from pages import page

HERE = Path(__file__).parent
DELTA, CONFIDENCE = 1e-5, 0.95
SIZES = {100: 1_000, 1_000: 200, 10_000: 100}  # with the most draws of each
QUICK = (
    "auditor",
    "auditor, Melded",
    "auditor, one run",
    "auditor, runs",
    "auditor, bets",
    "auditor, learnt guesses",
    "jax_privacy",
)
_ABOVE = 1e-6  # of a number above the truth, so that rounding is none


@dataclass(frozen=True)
class Adapter:
    """What a file of ``adapters`` says of itself.

    Attributes:
        path: The file.
        name: As shown.
        requirements: What its environment holds, with versions; empty for this environment.
        claims: What its number claims to be.
        quote: What its documentation promises.
        source: Of the quote.
        subject: ``model`` or ``mechanism``.
        estimate: Whether the number is a point estimate and no bound.
        coins: Whether membership must be decided by fair coins.
        people: Whether ``bound`` takes the ids of people, a pair of arrays.
        delta: Delta of the number, if it cannot be chosen.
        outside: Laws outside what the number is for.
        draws: Most draws at each size.
        without: Dependencies that the environment leaves out.
        python: Version of Python, if only one will do.
        not_run: Why it is not run, if it is not.
    """

    path: Path
    name: str
    requirements: tuple[str, ...]
    claims: str
    quote: str
    source: str
    subject: str = "model"
    estimate: bool = False
    coins: bool = False
    people: bool = False
    delta: float | None = None
    outside: tuple[str, ...] = ()
    draws: tuple[int, int, int] = (0, 0, 0)
    without: tuple[str, ...] = ()
    python: str | None = None
    not_run: str | None = None

    @classmethod
    def read(cls, path: Path) -> "Adapter":
        """Read ``ABOUT`` without running the file: its library is not here."""
        lines = ast.parse(path.read_text(encoding="utf-8")).body
        about = next(
            line.value for line in lines if isinstance(line, ast.Assign) and line.targets[0].id == "ABOUT"
        )
        return cls(path, **ast.literal_eval(about))


@dataclass(frozen=True)
class Row:
    """One auditor under one law at one size.

    Attributes:
        auditor: Name.
        law: Name.
        size: Members.
        draws: Draws for which the auditor gave a number.
        refused: Draws for which it gave none.
        truth: True epsilon at the league's delta.
        mean: Mean number.
        share: Mean number over the truth; NaN for noise.
        above: Draws whose number is above the truth at the number's own delta.
        low: Lower exact 95% limit of the rate of these.
        high: Upper exact limit.
        cpu: Mean CPU seconds a number.
    """

    auditor: str
    law: str
    size: int
    draws: int
    refused: int
    truth: float
    mean: float
    share: float
    above: int
    low: float
    high: float
    cpu: float

    @classmethod
    def of(cls, adapter: Adapter, law: Law, size: int, found: list[tuple[float, float]]) -> "Row":
        """Count what an auditor said."""
        every, seconds = np.array(found).T
        numbers = every[~np.isnan(every)]
        truth, own = law.epsilon(DELTA), law.epsilon(DELTA if adapter.delta is None else adapter.delta)
        above, mean = int(np.sum(numbers > own + _ABOVE)), float(numbers.mean()) if numbers.size else math.nan
        low, high = interval(above, numbers.size)
        share = mean / truth if truth else math.nan
        counts = numbers.size, every.size - numbers.size
        return cls(
            adapter.name, law.name, size, *counts, truth, mean, share, above, low, high, seconds.mean()
        )


# --- Draws, environments and processes ---


def write_draws(folder: Path, sizes: Sequence[int], most: int) -> None:
    """Draw each law once at each size; a group has more scores than its size, for what coins may need."""
    for size in sizes:
        arrays, room = {"names": json.dumps([law.name for law in LAWS])}, size + 4 * math.isqrt(2 * size) + 1
        for number, law in enumerate(LAWS):
            rng = np.random.default_rng([size, number])
            pairs = [law.draw(rng, room) for _ in range(min(most, SIZES[size]))]
            member, nonmember = map(np.stack, zip(*pairs, strict=True))
            arrays |= {f"{law.name}/member": member, f"{law.name}/nonmember": nonmember}
            arrays[f"{law.name}/about"] = np.array([law.rows, size, law.share == 1 and law.rows == 1])
        np.savez(folder / f"{size}.npz", **arrays)


def environment(adapter: Adapter, folder: Path) -> Path:
    """The interpreter of the adapter's environment, made if it is not there."""
    if not adapter.requirements:
        return Path(sys.executable)
    home, uv = folder / adapter.path.stem, shutil.which("uv") or "uv"
    python, done = home / "bin" / "python", home / "requirements.json"
    said = json.dumps([adapter.requirements, adapter.without])
    if not done.exists() or done.read_text(encoding="utf-8") != said:
        left_out = folder / f"{adapter.path.stem}.txt"
        folder.mkdir(parents=True, exist_ok=True)
        left_out.write_text(
            "".join(f"{name}; sys_platform == 'never'\n" for name in adapter.without), encoding="utf-8"
        )
        version = ("--python", adapter.python) if adapter.python else ("--python", sys.executable)
        run(uv, "venv", "--quiet", "--clear", *version, str(home))
        run(
            *(uv, "pip", "install", "--quiet", "--python", str(python), "--override", str(left_out)),
            *adapter.requirements,
        )
        done.write_text(said, encoding="utf-8")
    return python


def run(*command: str) -> None:
    """Run a command; the last line of what it says is the reason if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise OSError(lines[-1])


def audited(
    adapter: Adapter, size: int, python: Path, folder: Path, most: int
) -> tuple[list[Row], dict[str, str]]:
    """The rows of an adapter at one size, and the versions that made them."""
    out = folder / f"{adapter.path.stem}-{size}.json"
    number = min(most, adapter.draws[list(SIZES).index(size)])
    values = str(folder / f"{size}.npz"), str(out), str(number), str(DELTA), str(CONFIDENCE)
    run(str(python), str(HERE / "worker.py"), str(adapter.path), *values)
    read = json.loads(out.read_text(encoding="utf-8"))
    laws = {law.name: law for law in LAWS}
    return [Row.of(adapter, laws[law], size, found) for law, found in read["found"].items()], read["versions"]


def ran(
    adapters: Sequence[Adapter],
    folder: Path,
    environments: Path,
    *,
    sizes: Sequence[int],
    most: int,
    workers: int,
) -> Iterator[tuple[Adapter, list[Row], dict[str, str]]]:
    """Every adapter with its rows; one that fails says why."""
    ready: list[tuple[Adapter, Path | None]] = []
    for adapter in adapters:
        try:
            ready.append((adapter, None if adapter.not_run else environment(adapter, environments)))
        except OSError as error:
            ready.append((replace(adapter, not_run=str(error)), None))
    with ThreadPoolExecutor(workers) as pool:
        jobs = {
            (adapter.name, size): pool.submit(audited, adapter, size, python, folder, most)
            for size in sorted(sizes, reverse=True)
            for adapter, python in ready
            if python is not None
        }
        for adapter, python in ready:
            try:
                parts = [jobs[adapter.name, size].result() for size in sizes] if python else []
            except OSError as error:
                parts, adapter = [], replace(adapter, not_run=str(error))  # noqa: PLW2901
            rows = [row for some, _ in parts for row in some]
            if parts and not any(row.draws for row in rows):
                rows, adapter = [], replace(adapter, not_run="It gives no number.")  # noqa: PLW2901
            yield adapter, rows, parts[0][1] if rows else {}


def positive(text: str) -> int:
    """Return a whole number above 0."""
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, got {text}")
    return int(text)


def main(arguments: list[str] | None = None) -> None:
    """Run the league and write what it found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="ours and one peer, 5 draws at one size")
    parser.add_argument("--draws", type=positive, default=1_000, help="most draws of a law at a size")
    parser.add_argument(
        "--sizes", type=int, nargs="+", choices=SIZES, default=list(SIZES), help="default all"
    )
    adapters = [Adapter.read(path) for path in (HERE / "adapters").glob("*.py")]
    adapters.sort(key=lambda adapter: adapter.name)
    names = [adapter.name for adapter in adapters]
    parser.add_argument("--auditors", nargs="+", choices=names, default=names, help="default all")
    parser.add_argument("--workers", type=positive, default=2, help="processes at once")
    parser.add_argument(
        "--out",
        type=Path,
        help="folder of what is written; default that of this file, of a quick run ./league",
    )
    cache = Path(tempfile.gettempdir()) / "league-environments"
    parser.add_argument("--environments", type=Path, default=cache, help="folder of the peers' environments")
    given = parser.parse_args(arguments)
    if given.quick:
        given.auditors, given.sizes, given.draws = QUICK, [100], 5
    out = given.out or (Path("league") if given.quick else HERE)
    chosen = [adapter for adapter in adapters if adapter.name in given.auditors]
    with tempfile.TemporaryDirectory() as scratch:
        write_draws(Path(scratch), given.sizes, given.draws)
        options = {"sizes": given.sizes, "most": given.draws, "workers": given.workers}
        found = list(ran(chosen, Path(scratch), given.environments.resolve(), **options))
    rows = [row for _, some, _ in found for row in some]
    out.mkdir(parents=True, exist_ok=True)
    with (out / "league.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(Row.__dataclass_fields__), lineterminator="\n")
        table.writeheader()
        table.writerows(
            {
                name: f"{value:.4g}" if isinstance(value, float) else value
                for name, value in asdict(row).items()
            }
            for row in rows
        )
    (out / "league.md").write_text(page(found, rows, delta=DELTA, sizes=given.sizes), encoding="utf-8")
    draw_figures([adapter for adapter, some, _ in found if some], rows, out, level=1 - CONFIDENCE)
    failed = [f"{adapter.name}: {adapter.not_run}" for adapter, some, _ in found if not some]
    print(f"{len(rows)} rows in {out}", *failed, sep="\n")


if __name__ == "__main__":
    main()
