"""The bar of a long collection tells how fast it goes and how long it will take."""

import io

import pytest

from auditor.cli import console


@pytest.mark.parametrize(
    ("speed", "left", "words"),
    [
        (None, 5, ""),
        (0.0, 5, ""),
        (1200.4, 216_000, "1,200 records/s, 3 min left"),
        (3.14159, 3, "3.1 records/s, 1 s left"),
        (1.0, 89, "1 records/s, 89 s left"),
        (1.0, 90, "1 records/s, 2 min left"),
        (0.02, 400, "0.02 records/s, 6 h left"),
        (50.0, 10**8, "50 records/s, 23 days left"),
        (50.0, 0, "50 records/s, 0 s left"),
    ],
)
def test_pace_in_words(speed, left, words):
    """Speed and time left are said in the units that a reader would choose; nothing is said without a speed."""
    assert console.pace(speed, left=left, unit="records") == words


class Terminal(io.StringIO):
    """Something that says it is a terminal."""

    def isatty(self):
        """Say so."""
        return True


def test_a_stage_takes_the_place_of_the_one_before(monkeypatch):
    """On a terminal the stages are shown by name with rate and time left; what was done before counts for no speed."""
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    with console.stages(quiet=False, unit="records") as move:
        move("Reading", 10, 10)
        move("Scoring", 500_000, 1_000_000)
        move("Scoring", 500_001, 1_000_000)
    shown = stream.getvalue()
    assert "Scoring" in shown
    assert "records/s, " in shown
    assert "left" in shown


@pytest.mark.parametrize("quiet", [True, False])
def test_no_bar_without_a_terminal(monkeypatch, quiet):
    """Nothing is shown where nobody looks, or on request."""
    stream = Terminal() if quiet else io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    with console.stages(quiet=quiet) as move, console.progress("Fitting", quiet=quiet) as simple:
        assert move is None
        assert simple is None
    assert stream.getvalue() == ""


def test_a_bar_of_one_stage(monkeypatch):
    """The bar of other commands still counts to its end."""
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with console.progress("Fitting mixtures", quiet=False) as move:
        move(1, 2)
        move(2, 2)
    assert "Fitting mixtures" in stream.getvalue()
