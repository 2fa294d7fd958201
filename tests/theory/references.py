"""Shared parts of the tests of theory: exact total variations (statistics.md, sections 6 and 7), and claims by hand."""

from auditor.core import DPSGD, Adjacency, Claim

EXACT = [
    (DPSGD(1.0, 0.1, 1), Adjacency.ADD_REMOVE, 0.038292492),
    (DPSGD(0.5, 0.01, 1), Adjacency.ADD_REMOVE, 0.006826895),
    (DPSGD(1.0, 0.1, 100), Adjacency.ADD_REMOVE, 0.438758),
    (DPSGD(1.0, 0.001, 10_000), Adjacency.ADD_REMOVE, 0.0521390),
    (DPSGD(1.0, 0.01, 1_000), Adjacency.ADD_REMOVE, 0.1610176),
    (DPSGD(1.0, 0.001, 10_000), Adjacency.REPLACE_ONE, 0.0861804),
    (DPSGD(1.0, 0.01, 1_000), Adjacency.REPLACE_ONE, 0.2643522),
    (DPSGD(1.0, 0.001, 50_000), Adjacency.REPLACE_ONE, 0.1912326),
]


def stated(metric, value=0.2, delta=None, adjacency=Adjacency.REPLACE_ONE, *, proven=True):
    """A claim by hand."""
    return Claim(metric, value, delta, adjacency, "stated", proven=proven, note="By hand.")
