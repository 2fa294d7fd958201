"""Models in this process, and their files, which are opened without running code from others."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
