"""Family: converts anything to `Losses` (columns, files, models of every kind, endpoints, texts, callables).

Importing it loads numpy only; everything heavier is imported in the functions that need it.
"""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
