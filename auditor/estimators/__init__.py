"""Estimators: evidence in, estimates out, each with its subject."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
