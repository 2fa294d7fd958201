"""Plain data: the findings of an audit, their JSON and schema, and the name of every number in it."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
