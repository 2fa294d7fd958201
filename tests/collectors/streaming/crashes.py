"""Runs collections that are killed at every single step on the disk, and goes on; prints what happened as JSON.

Each run is a fork of this process, so that a kill costs no start of Python.
"""

import json
import os
import signal
import sys
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

sys.path.insert(0, str(Path(__file__).parents[2]))

from collectors.streaming.fakes import FakeScorer, asked, digest, part_numbers, parts_of, stream_to, tables

from auditor.collectors.tables import read_metadata
from auditor.core import InputError

STEPS = ((os, "fsync"), (Path, "replace"), (Path, "unlink"), (Path, "rmdir"), (Path, "mkdir"), (os, "open"))


def deadly(at):
    """Kill this process after so many steps on the disk: fsync, renaming, removing, making a folder, opening."""
    left = [at]

    def counted(function):
        def step(*arguments, **named):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **named)

        return step

    for owner, name in STEPS:
        setattr(owner, name, counted(getattr(owner, name)))


def run(path, log, *, at, overwrite):
    """One run in a child; returns whether it came to its end."""
    child = os.fork()
    if child == 0:
        pa.set_cpu_count(1)
        if at is not None:
            deadly(at)
        stream_to(path, scorer=FakeScorer(log=log), sources=tables(17, 14), overwrite=overwrite)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def is_whole(path):
    """Whether the output is there, and not what lay in its place before."""
    try:
        return path.exists() and read_metadata(path) is not None
    except InputError:
        return False


def scenario(folder, at, *, overwrite):
    """A run that is killed at a step, and the same call again, to the end."""
    folder.mkdir()
    path, log = folder / "losses.parquet", folder / "log"
    if overwrite:
        # Losses that another version collected.
        parquet.write_table(pa.table({"loss": [1.0]}).replace_schema_metadata({"auditor": "{}"}), path)
    found = {"at": at, "overwrite": overwrite, "ended": run(path, log, at=at, overwrite=overwrite)}
    found["parts"] = [part_numbers(part) for part in parts_of(path)]
    found |= {"output": is_whole(path), "working": path.with_name(path.name + ".parts").exists()}
    log.unlink(missing_ok=True)
    found |= {"done": run(path, log, at=None, overwrite=overwrite), "after": asked(log)}
    return {**found, "left": sorted(item.name for item in folder.iterdir()), "digest": digest(path)}


def main():
    """All steps from the given one, until a run is not killed any more."""
    folder, overwrite = Path(sys.argv[1]), sys.argv[2] == "overwrite"
    found, at = [], int(sys.argv[3])
    while not found or not found[-1]["ended"]:
        found.append(scenario(folder / str(at), at, overwrite=overwrite))
        at += 1
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
