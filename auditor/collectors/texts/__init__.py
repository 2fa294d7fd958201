"""Losses of texts from causal language models, local or served."""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
