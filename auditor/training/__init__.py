"""Audits from inside one training (white-box): step audits of DP-SGD, and its sensitivity to an attribute.

PyTorch, Opacus, TensorFlow and JAX are loaded only by what needs them.
"""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
