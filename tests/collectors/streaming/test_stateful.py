"""A collection in the hands of chance: interrupted, spoiled, replaced and gone on with, it ends as if nothing had happened."""

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from collectors.streaming.fakes import digest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from simulation import run_machine

import auditor

ROWS = 60
BATCH = 5


def table(first):
    """Records of one group, whose only feature is their number."""
    number = np.arange(first, first + ROWS)
    return auditor.RecordTable({"x": number / 200, "y": number % 2}, label="y")


class Model:
    """Probabilities of class 1; it stops after so many calls."""

    def __init__(self, calls=10**9, factor=1.0):
        self.calls, self.factor = calls, factor

    def __call__(self, features):
        """Return one probability a record."""
        self.calls -= 1
        if self.calls < 0:
            raise KeyboardInterrupt
        return 0.05 + 0.9 * np.asarray(features, dtype=float)[:, 0] * self.factor


def collected(path, model, **changes):
    """Collect into a file."""
    return auditor.collect_to(
        path, model, members=table(0), nonmembers=table(100), batch_size=BATCH, **changes
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The digest of a collection that nobody disturbed."""
    path = tmp_path_factory.mktemp("undisturbed") / "losses.parquet"
    collected(path, Model())
    return digest(path)


class Disturbed(RuleBasedStateMachine):
    """Changes to the files between two calls."""

    expected = ""

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="stateful-"))
        self.path = self.folder / "losses.parquet"
        self.spoiled = False  # whether the output is no longer what was collected

    def teardown(self):
        """Remove the files."""
        shutil.rmtree(self.folder)

    @property
    def parts(self):
        """The parts that are on disk."""
        return sorted(self.path.with_name("losses.parquet.parts").glob("part-*"))

    @rule(calls=st.integers(0, 30))
    def interrupt(self, calls):
        """The call is stopped early, or ends."""
        try:
            collected(self.path, Model(calls))
        except KeyboardInterrupt as stop:
            assert not calls or "goes on from there" in str(stop) or not self.parts  # noqa: PT017
        except auditor.AuditorError:
            assert self.spoiled
        else:
            assert digest(self.path) == self.expected

    @precondition(lambda self: self.parts)
    @rule(which=st.integers(0, 100), place=st.floats(0, 1, exclude_max=True))
    def spoil_a_part(self, which, place):
        """A byte of a part is another."""
        path = self.parts[which % len(self.parts)]
        content = bytearray(path.read_bytes())
        content[int(place * len(content))] ^= 0x41
        path.write_bytes(content)

    @precondition(lambda self: self.parts)
    @rule(which=st.integers(0, 100))
    def remove_a_part(self, which):
        """A part is gone."""
        self.parts[which % len(self.parts)].unlink()

    @precondition(lambda self: len(self.parts) > 1)
    @rule(which=st.integers(0, 100), other=st.integers(0, 100))
    def take_another_for_it(self, which, other):
        """A part lies where another belongs."""
        parts = self.parts
        shutil.copyfile(parts[which % len(parts)], parts[other % len(parts)])

    @rule(content=st.binary(min_size=1, max_size=50))
    def put_something_there(self, content):
        """Somebody else's file is where the output belongs."""
        if not self.path.exists():
            self.path.write_bytes(content)
            self.spoiled = True

    @precondition(lambda self: self.spoiled)
    @rule()
    def remove_it(self):
        """It is removed again."""
        self.path.unlink()
        self.spoiled = False

    @precondition(lambda self: not self.spoiled)
    @rule()
    def another_model(self):
        """Another model goes on with nothing of this one's."""
        before = digest(self.path) if self.path.exists() else None
        if not self.parts and before is None:
            return
        try:
            collected(self.path, Model(factor=0.5))
        except auditor.AuditorError:
            assert before is None or digest(self.path) == before
        else:  # nothing whole was left of the first model's
            assert before is None
            shutil.rmtree(self.folder)
            self.folder.mkdir()

    @precondition(lambda self: not self.spoiled)
    @rule()
    def go_on(self):
        """The same call ends with the same bytes, and leaves nothing beside them."""
        collected(self.path, Model())
        assert digest(self.path) == self.expected
        assert [item.name for item in self.folder.iterdir()] == ["losses.parquet"]


def test_whatever_happens_between_two_calls(request, undisturbed):
    """Stopped, spoiled, mixed up and replaced, the same call gives the undisturbed file or refuses, and mixes nothing."""
    Disturbed.expected = undisturbed
    run_machine(request, Disturbed, steps=12)
