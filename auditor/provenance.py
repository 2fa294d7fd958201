"""Where a result comes from: versions, a hash of the losses, the seed, the command line and the time."""

import datetime as dt
import hashlib
import platform
from functools import cache
from importlib import metadata
from typing import Any

from auditor._version import __version__
from auditor.values import Losses

__all__ = ["input_hash", "provenance"]

_PACKAGES = ("numpy", "scipy", "scikit-learn", "statsmodels", "pandas", "matplotlib", "dp-accounting")


def provenance(losses: Losses, *, seed: int, source: str | None, command: str | None) -> dict[str, Any]:
    """Return the provenance of an audit of these losses; the time is UTC."""
    return {
        "created": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "versions": {"privacy-auditor": __version__, "python": platform.python_version(), **_versions()},
        "input_sha256": input_hash(losses),
        "source": source,
        "seed": seed,
        "command": command,
    }


def input_hash(losses: Losses) -> str:
    """Return the SHA-256 of the losses as little-endian float64, members first, with the group sizes."""
    digest = hashlib.sha256(f"{losses.n_member},{losses.n_nonmember};".encode())
    for values in (losses.member, losses.nonmember):
        digest.update(values.astype("<f8", copy=False).data)
    return digest.hexdigest()


@cache
def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
