"""Checks: whether the numbers can be relied on. Each answers one question with a sentence for a privacy reviewer."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
