"""The command line: arguments become values, values become results, results become files."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
