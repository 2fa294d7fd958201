"""Several audits beside each other: whether a release got worse, and which strategy pays for its utility."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
