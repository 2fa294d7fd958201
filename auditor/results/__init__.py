"""Plain data: what an audit found, its JSON and schema, and what every number in it is called."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
