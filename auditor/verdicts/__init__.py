"""Verdicts on claims by estimates, and gates that stop a pipeline."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
