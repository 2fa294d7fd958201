"""Location-30: where 5,010 people checked in (446 binary features), and which of 30 groups they are in.

It stands in for Purchase-100 in Figure 1 of the Epsilon* paper: small, of many classes and easily over-fitted.
"""

from functools import cache
from pathlib import Path

from experiments.records import Records, random_split, read_npz

__all__ = ["WHERE", "load"]

WHERE = (
    "get Location-30 (Foursquare check-ins, Shokri et al. 2017) from github.com/privacytrustlab/datasets and save it with "
    "numpy.savez(path, x=features, y=classes)"
)


@cache
def load(path: str | Path) -> Records:
    """Read the .npz file and split it at random, two thirds for training, the same on every call.

    Args:
        path: Holds ``x`` (n, 446) and ``y`` (n,) with classes 0 to 29.

    Raises:
        auditor.InputError: No such file, or not such a file; the sentence says where to get it.
    """
    x, y = read_npz(path, name="Location-30", where=WHERE)
    return random_split(x, y, source="Location-30")
