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
from auditor.many.run_cases import Case

STOP = {"after": 0}
MADE = []


def drawn(case, seed):
    """A result of the seed; it is written down that it was made, and after so many the caller is stopped."""
    if STOP["after"] == 0:
        raise KeyboardInterrupt
    STOP["after"] -= 1
    MADE.append(case["x"])
    return {"seed": seed, "x": case["x"]}


def seeds(case, seed):
    """The same results, whatever is said."""
    return {"seed": seed, "x": case["x"]}


def trained(with_canary, seed):
    """A score of the seed, written down in the same way."""
    return drawn({"x": seed}, seed)["seed"] + 0.5 * with_canary


def calm(with_canary, seed):
    """The same score."""
    return seed + 0.5 * with_canary


def number_in(path):
    """The number of the case that a file says it holds, if it can be read."""
    with contextlib.suppress(Exception), path.open("rb") as stream, np.load(stream) as archive:
        return json.loads(archive["header"].tobytes())["case"]["x"]


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
        self.folder, self.scores = (Path(tempfile.mkdtemp(prefix="stateful-")) for _ in range(2))
        self.whole = set()  # the numbers of what is in files as it was written

    def teardown(self):
        """Remove the files."""
        shutil.rmtree(self.folder)
        shutil.rmtree(self.scores)

    @rule(cases=st.integers(1, 8), after=st.integers(0, 8))
    def call(self, cases, after):
        """A call is stopped early, or ends with the results of undisturbed ones; nothing whole is made again."""
        STOP["after"] = after
        MADE.clear()
        given = [{"x": x} for x in range(cases)]
        with contextlib.suppress(KeyboardInterrupt):
            found = auditor.run_cases(drawn, given, folder=self.folder, workers=1)
            assert found == auditor.run_cases(seeds, given, workers=1)
        assert not set(MADE) & self.whole
        self.whole |= set(MADE)

    @precondition(lambda self: self.files)
    @rule(which=st.integers(0, 100), place=st.floats(0, 1, exclude_max=True))
    def cut_off(self, which, place):
        """A file ends early."""
        path = self.files[which % len(self.files)]
        content = path.read_bytes()
        path.write_bytes(content[: int(place * len(content))])
        self.look()

    @precondition(lambda self: len(self.files) > 1)
    @rule(which=st.integers(0, 100), other=st.integers(0, 100))
    def take_another_for_it(self, which, other):
        """A file lies where another belongs."""
        first, second = (self.files[place % len(self.files)] for place in (which, other))
        if first != second:
            shutil.copyfile(first, second)
            self.look()

    def look(self):
        """Only what a file of its own says is whole."""
        names = {x: Case(f"{__name__}.drawn", {"x": x}, 0).file_name for x in self.whole}
        self.whole = {x for x in self.whole if number_in(self.folder / names[x]) == x}

    @rule(
        runs=st.sampled_from((4, 6, 10)),
        batch=st.sampled_from((None, 1, 2, 3, 5)),
        after=st.integers(0, 12),
        enough=st.none() | st.integers(2, 5),
        order=st.integers(0, 9),
    )
    def train(self, runs, batch, after, enough, order):
        """Trainings are stopped early, or end with the scores of undisturbed ones, up to where the runs are enough."""
        STOP["after"] = after
        given = {"batch": batch, "engine": InDisorder(order), "stop": enough and Pairs(enough)}
        with contextlib.suppress(KeyboardInterrupt):
            found = auditor.collect_runs(trained, runs=runs, folder=self.scores, **given)
            whole = auditor.collect_runs(calm, runs=min(runs, 2 * enough) if enough else runs, workers=1)
            assert found.member.tolist() == whole.member.tolist()
            assert found.nonmember.tolist() == whole.nonmember.tolist()

    @property
    def files(self):
        """The files that are there; nothing else ever is."""
        found = sorted(self.folder.iterdir())
        assert all(path.suffix == ".npz" for path in found)
        return found


def test_whatever_happens_between_two_calls(request):
    """Stopped, cut off, mixed up and grown, a set of runs makes no whole result twice, and mixes none."""
    run_machine(request, Disturbed, steps=15)
