"""Collections that are killed with `kill -9`, at every step on the disk."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from collectors.streaming.fakes import FakeScorer, digest, stream_to, tables

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kill -9 and fork are POSIX")

HERE = Path(__file__).parent
RECORDS = [*range(17), *range(1000, 1014)]


@pytest.fixture(scope="module", params=[("plain", 0), ("overwrite", 25)])
def crashes(request, tmp_path_factory):
    """The events of a collection for each step that it was killed at, and the digest of an undisturbed one."""
    folder = tmp_path_factory.mktemp("crashes")
    command = [
        sys.executable,
        "-W",
        "ignore",
        str(HERE / "crashes.py"),
        str(folder),
        *map(str, request.param),
    ]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    undisturbed = folder / "undisturbed.parquet"
    stream_to(undisturbed, scorer=FakeScorer(), sources=tables(17, 14))
    return json.loads(found.stdout), digest(undisturbed)


def test_the_file_is_the_same_after_every_crash(crashes):
    """Killed at any step, even between the renaming and the removal, the next call gives the undisturbed file."""
    found, expected = crashes
    assert len(found) > 20
    assert [crash["ended"] for crash in found] == [False] * (len(found) - 1) + [True]
    assert {crash["done"] for crash in found} == {True}
    assert {crash["digest"] for crash in found} == {expected}
    assert {tuple(name for name in crash["left"] if name != "log") for crash in found} == {
        ("losses.parquet",)
    }


def test_nothing_on_disk_is_scored_again_after_a_crash(crashes):
    """The next call requests what is not on disk, each record once, and before and after for ten to know the model."""
    found, _ = crashes
    for crash in found:
        if not crash["working"]:
            continue  # nothing was begun, or all is finished
        done = crash["output"] and not crash["overwrite"]
        parts = [RECORDS] if done else crash["parts"]
        missing = [record for record in RECORDS if record not in itertools.chain(*parts)]
        first = parts[0][:10] if parts else []
        last = RECORDS[:10] if missing else []
        assert crash["after"] in (missing + last, first + missing + last), crash["at"]


def test_most_crashes_leave_something_to_go_on_with(crashes):
    """The sweep reaches crashes with every number of parts on disk, and with the output beside them."""
    found, _ = crashes
    sizes = {len(crash["parts"]) for crash in found}
    assert {3, 4} <= sizes if found[0]["at"] else {0, 1, 2, 3, 4} <= sizes
    assert any(crash["output"] and len(crash["parts"]) == 4 for crash in found)
