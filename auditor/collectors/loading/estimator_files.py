"""Files of scikit-learn estimators: skops, and pickles where they are trusted."""

import re
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from auditor.collectors.extras import needed
from auditor.collectors.loading.damage import named, readable
from auditor.collectors.loading.trust import Trust
from auditor.errors import InputError

__all__ = ["read_pickle", "read_skops", "refuse_pickle"]

# Holders of numbers, with no code that runs when they are read, which skops does not know.
_HARMLESS = {f"sklearn.neural_network._stochastic_optimizers.{name}Optimizer" for name in ("Adam", "SGD")}
_LARGEST_SCHEMA = 2**27  # bytes; that of a forest of 300 trees takes 5 MB
_DENSEST = 50  # times that a file of more than this may grow; forests grow tenfold
_SHOWN = 8  # types listed in an error before the rest are left out


def read_skops(path: Path, trust: Trust) -> Any:
    """Return the estimator in a skops file, if it holds only types that are trusted."""
    from skops import io as skops

    with readable(path, kind="an estimator saved by skops"):
        _refuse_bombs(path)
        found = set(skops.get_untrusted_types(file=path))
        unknown = sorted(found - trust.types - _HARMLESS)
        if unknown:
            shown = ", ".join(map(repr, unknown[:_SHOWN])) + (", ..." if len(unknown) > _SHOWN else "")
            raise InputError(
                f"{named(path)} holds types that are not known to be harmless: {shown}; if you trust them, name them in"
                " trusted_types (--trusted-type)."
            )
        with _versions(path):
            return skops.load(path, trusted=sorted(found))


def _refuse_bombs(path: Path) -> None:
    """Refuse a file that unpacks into far more than it holds, before anything is unpacked."""
    with zipfile.ZipFile(path) as archive:
        parts = archive.infolist()
        schema = sum(part.file_size for part in parts if part.filename == "schema.json")
        whole = sum(part.file_size for part in parts)
    if schema > _LARGEST_SCHEMA:
        raise ValueError(f"its schema.json would take {schema / 1e6:.0f} MB")
    if whole > max(_LARGEST_SCHEMA, _DENSEST * path.stat().st_size):
        raise ValueError(f"its {path.stat().st_size / 1e6:.1f} MB would unpack into {whole / 1e6:.0f} MB")


def read_pickle(path: Path, trust: Trust) -> Any:
    """Return what a joblib or pickle file holds, if it is trusted."""
    refuse_pickle(path, trust, "save the model with skops or as ONNX")
    joblib = needed("joblib", purpose="loading a joblib file", extra=" joblib")
    with readable(path, kind="a model saved by joblib or pickle"), _versions(path):
        return joblib.load(path)


def refuse_pickle(path: Path, trust: Trust, fix: str) -> None:
    """Refuse a pickle that is not trusted, with the reason."""
    if not trust.pickles:
        raise InputError(
            f"{named(path)} is a pickle, and loading one runs whatever code is in it; {fix}, or, if you trust its source"
            " as you would a program, pass trust_pickle=True (--trust-pickle)."
        )


@contextmanager
def _versions(path: Path) -> Iterator[None]:
    """Say once, in a sentence, that an estimator was saved by another version of scikit-learn."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    others = {}
    for warning in caught:
        if type(warning.message).__name__ != "InconsistentVersionWarning":
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
            continue
        found = re.search(r"from version (\S+) when using version (\S+?)\.? ", str(warning.message))
        others[found.groups() if found else ("another version", "this one")] = True
    for saved, here in others:
        warnings.warn(
            f"{named(path)} was saved with scikit-learn {saved} and is loaded with {here}, so its outputs may differ from"
            f" those of its training; install scikit-learn {saved} to be sure.",
            stacklevel=5,
        )
