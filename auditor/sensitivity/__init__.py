"""Sensitivity of the gradients of DP-SGD to a sensitive attribute, measured during training (Cherubin et al. 2024, Section 5).

PyTorch and TensorFlow are loaded only when their tracker is built.
"""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
