"""What a training description promises: claims, to set beside what an audit finds.

Importing this package loads nothing heavy; each function imports what it needs.
"""

from auditor.theory.accountant import epsilon, replace_one
from auditor.theory.advantage import bayes_security_from_advantage, humphries
from auditor.theory.claims import claims
from auditor.theory.closed_form import bayes_security_closed_form, bayes_security_moment_matched

__all__ = [
    "bayes_security_closed_form",
    "bayes_security_from_advantage",
    "bayes_security_moment_matched",
    "claims",
    "epsilon",
    "humphries",
    "replace_one",
]
