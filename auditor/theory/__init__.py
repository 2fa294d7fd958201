"""Promises of a training description: claims to compare with the findings of an audit.

Start with `overview` (everything at once) or `claims` (the claims that an audit compares with). Each number is a `Claim` that says
for which neighbours it holds, how it was found, and whether it is proven or an approximation. Importing
this package loads nothing heavy; each function imports what it needs.

Less common functions are in their modules: the law of the privacy loss in `auditor.theory.privacy_loss`.
"""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
