"""Answers of the checks: the entries of ``checks.toml``, and the answer of one check in words."""

from collections.abc import Mapping
from typing import Any

from auditor.core import Check, Status, entries

SPECS = entries("auditor.checks", "checks.toml")
_MESSAGES = {name: spec.pop("message", {}) for name, spec in SPECS.items()}


def said(check: str, key: str, **words: Any) -> str:
    """Return a message of a check with these words in their places."""
    return str(_MESSAGES[check][key]).format(**words)


def answer(check: str, key: str, details: Mapping[str, Any] | None = None, **words: Any) -> Check:
    """Return the answer of a check; its key is a status, or a status and a cause.

    >>> answer("ties", "unknown").message
    'Losses were counted in bins, so that equal and similar losses are not distinguished.'
    """
    return Check(check, Status(key.partition("/")[0]), said(check, key, **words), details or {})
