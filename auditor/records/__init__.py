"""Identity of a record: labels, people, features and their fingerprints."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
