"""Tables: columns of losses, and records to score, from files and from memory."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
