"""Shared parts of the collectors: records, tasks, outputs of models, and the scorer that turns them into losses."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
