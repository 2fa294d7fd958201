"""Losses become a trade-off curve: transforms, fitted densities, counts at every threshold."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
