"""Purchase-100: which of 600 products a customer bought, and which of 100 groups of customers that makes.

The paper's version has about 311,540 records, from Kaggle's "Acquire Valued Shoppers Challenge"; the one that is passed
around (Shokri et al. 2017) has 197,324.
"""

from functools import cache
from pathlib import Path

from experiments.records import Records, random_split, read_npz

__all__ = ["WHERE", "load"]

WHERE = (
    "get Purchase-100 (Shokri et al. 2017) from github.com/privacytrustlab/datasets and save it with "
    "numpy.savez(path, x=features, y=classes)"
)


@cache
def load(path: str | Path) -> Records:
    """Read the .npz file and split it at random in the paper's shares (67% for training), the same on every call.

    Args:
        path: Holds ``x`` (n, 600) and ``y`` (n,) with classes 0 to 99.

    Raises:
        auditor.InputError: No such file, or not such a file; the sentence says where to get it.
    """
    x, y = read_npz(path, name="Purchase-100", where=WHERE)
    return random_split(x, y, source="Purchase-100")
