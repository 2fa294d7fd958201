"""The figures of a report, each a matplotlib ``Figure`` that a paper can use as it is."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
