"""Estimators: evidence in, estimates out that say what they are about."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
