"""Models that are served over HTTP, by any protocol."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
