"""A set of runs in the hands of chance: stopped, spoiled, grown and gone on with, nothing finished is run again or mixed."""

import contextlib
import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from run_tasks import InDisorder
from simulation import run_machine

import auditor
from auditor.many.training_runs import seed_of

STOP = {"after": 0}
MADE = []


def trained(with_canary, seed):
    """A score of the seed; it is written down that it was made, and after so many the caller is stopped."""
    if STOP["after"] == 0:
        raise KeyboardInterrupt
    STOP["after"] -= 1
    MADE.append(seed)
    return seed + 0.5 * with_canary


def calm(with_canary, seed):
    """The same score."""
    return seed + 0.5 * with_canary


def batch_in(path):
    """The first run and the number of runs that a file says it holds, if it can be read."""
    with contextlib.suppress(Exception), path.open("rb") as stream, np.load(stream) as archive:
        case = json.loads(archive["header"].tobytes())["case"]
        return (case["first_run"], case["runs"]) if archive["array_0"].size == case["runs"] else None


class Pairs:
    """Stop after so many pairs of runs."""

    def __init__(self, pairs):
        self.pairs = pairs

    def watch(self):
        """Return a fresh watcher."""
        return Pairs(self.pairs)

    def add(self, with_canary, without):
        """Count a pair, with scores of other seeds."""
        assert with_canary % 1 == 0.5 != without % 1
        self.pairs -= 1
        return self.pairs == 0

    def in_words(self):
        """Say how many are missing."""
        return f"{self.pairs} to go"


class Disturbed(RuleBasedStateMachine):
    """Changes to the files between two calls."""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="stateful-"))
        self.written = {}  # the batch of each file as it was written

    def teardown(self):
        """Remove the files."""
        shutil.rmtree(self.folder)

    @precondition(lambda self: self.files)
    @rule(which=st.integers(0, 100), place=st.floats(0, 1, exclude_max=True))
    def cut_off(self, which, place):
        """A file ends early."""
        path = self.files[which % len(self.files)]
        content = path.read_bytes()
        path.write_bytes(content[: int(place * len(content))])

    @precondition(lambda self: len(self.files) > 1)
    @rule(which=st.integers(0, 100), other=st.integers(0, 100))
    def take_another_for_it(self, which, other):
        """A file lies where another belongs."""
        first, second = (self.files[place % len(self.files)] for place in (which, other))
        if first != second:
            shutil.copyfile(first, second)

    @rule(
        runs=st.sampled_from((4, 6, 10)),
        batch=st.sampled_from((None, 1, 2, 3, 5)),
        after=st.integers(0, 12),
        enough=st.none() | st.integers(2, 5),
        order=st.integers(0, 9),
    )
    def train(self, runs, batch, after, enough, order):
        """Trainings are stopped early, or end with the scores of undisturbed ones; no run of a whole file is made again."""
        whole = self.whole
        STOP["after"] = after
        MADE.clear()
        given = {"batch": batch, "engine": InDisorder(order), "stop": enough and Pairs(enough)}
        with contextlib.suppress(KeyboardInterrupt):
            found = auditor.collect_runs(trained, runs=runs, folder=self.folder, **given)
            expected = auditor.collect_runs(calm, runs=min(runs, 2 * enough) if enough else runs, workers=1)
            assert found.member.tolist() == expected.member.tolist()
            assert found.nonmember.tolist() == expected.nonmember.tolist()
        assert not set(MADE) & whole
        self.written |= {path.name: batch_in(path) for path in self.files if path.name not in self.written}

    @property
    def whole(self):
        """The seeds of the runs in files that are as they were written."""
        batches = [batch_in(path) for path in self.files if batch_in(path) == self.written[path.name]]
        return {seed_of(first + run, 0) for first, count in batches for run in range(count)}

    @property
    def files(self):
        """The files that are there; nothing else ever is."""
        found = sorted(self.folder.iterdir())
        assert all(path.suffix == ".npz" for path in found)
        return found


def test_whatever_happens_between_two_calls(request):
    """Stopped, cut off, mixed up and grown, a set of runs makes no whole result twice, and mixes none."""
    run_machine(request, Disturbed, steps=15)
