"""Black-box privacy audits of trained models: losses in, verdict and report out.

>>> import auditor
>>> losses = auditor.Losses(member=[0.1, 0.2, 0.3, 0.1], nonmember=[0.4, 0.2, 0.9, 0.8])
>>> losses.n_member
4
"""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
