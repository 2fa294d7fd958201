"""The bar of a long collection tells how much is done and how long the rest will take."""

import io

from auditor.cli import console


class Terminal(io.StringIO):
    """Something that says it is a terminal."""

    def isatty(self):
        """Say so."""
        return True


def test_a_stage_takes_the_place_of_the_one_before(monkeypatch):
    """On a terminal the stages are shown by name, with how much is done and how long the rest will take."""
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    with console.progress(quiet=False) as move:
        move("Reading", 10, 10)
        move("Scoring", 500_001, 1_000_000)
    assert "Scoring" in stream.getvalue()
    assert "500001/1000000" in stream.getvalue()
