"""What a training description promises: claims, to set beside what an audit finds.

Start with `overview` (everything at once) or `claims` (what an audit compares with). Each number is a `Claim` that says
for which neighbours it holds, how it was found, and whether it is proven, an approximation or an estimate. Importing
this package loads nothing heavy; each function imports what it needs.
"""

from auditor.core.lazy import face

__getattr__, __dir__, __all__ = face(__name__)
