"""Base of every room: values, choices, checked arguments, numbers as text, files written whole."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
