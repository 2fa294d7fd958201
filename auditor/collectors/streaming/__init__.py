"""Long collections: any number of records in constant memory, and no work lost when they are stopped."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
