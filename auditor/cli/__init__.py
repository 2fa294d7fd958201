"""The command line: what was typed becomes values, values become results, results become files."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
