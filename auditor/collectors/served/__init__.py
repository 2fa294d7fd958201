"""Models that are served over HTTP, whatever protocol they speak."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
