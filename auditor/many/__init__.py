"""Statements about a training algorithm from many of its models or runs; and planning for them."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
