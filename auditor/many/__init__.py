"""What many models, or many runs, of one training algorithm say about the algorithm; and planning for it."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
