"""RunsResult: what many runs of one training mechanism show about it."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditor import _validate
from auditor.errors import InputError
from auditor.result import SCHEMA_VERSION, plain
from auditor.values import Check, Claim, Comparison, Estimate, Verdict

__all__ = ["RunsResult"]


@dataclass(frozen=True, eq=False)
class RunsResult:
    """What many runs of one training mechanism show about it.

    Attributes:
        data: Numbers of runs, the threshold and its counts, delta, confidence, what was declared and claimed.
        estimates: ``epsilon_bound.clopper_pearson``, which alone judges, and beside it ``epsilon_bound.katz``,
            ``epsilon_bound.bayesian`` and ``epsilon_bound.gdp``.
        claims: What the training description promises.
        comparisons: The claim in the form that is judged, beside the certified bound.
        checks: Whether the scores can show anything, and look like runs of their own.
        verdict: On the claim; null without a claim.
        provenance: Versions, input hash, seed, time.
    """

    data: Mapping[str, Any]
    estimates: tuple[Estimate, ...]
    claims: tuple[Claim, ...]
    comparisons: tuple[Comparison, ...]
    checks: tuple[Check, ...]
    verdict: Verdict | None
    provenance: Mapping[str, Any]
    schema_version: str = SCHEMA_VERSION

    def estimate(self, name: str) -> Estimate:
        """Return the estimate of that name.

        Raises:
            InputError: There is none; the message names the nearest.
        """
        by_name = {item.name: item for item in self.estimates}
        return by_name[_validate.known("estimate", name, by_name)]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form as plain dictionaries, lists, numbers and strings."""
        names = (
            "schema_version",
            "verdict",
            "data",
            "estimates",
            "claims",
            "comparisons",
            "checks",
            "provenance",
        )
        return {"kind": "runs", **{name: plain(getattr(self, name)) for name in names}}

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the JSON text; with a path, also write it there, whole or not at all.

        Raises:
            InputError: The path is neither a text nor a path.
            OutputError: The path cannot be written.
        """
        text = json.dumps(self.to_dict(), indent=2, allow_nan=False, ensure_ascii=False) + "\n"
        if path is not None:
            from auditor.report.files import write_all

            if not isinstance(path, str | os.PathLike) or isinstance(path, bytes):
                raise InputError(f"path must be a text or a path, got {path!r}.")
            write_all({Path(path): text})
        return text

    def _repr_html_(self) -> str:
        """Return the card that a notebook shows."""
        from auditor.report.notebook import runs_card

        return runs_card(self)
