"""People at risk: the audit by group and by loss, and the records most exposed."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
