"""What the scored members say of the member loss distribution, by how they were chosen.

A sample leaves both rates uncertain (binomial limits), a random subset of a finite training set less so
(hypergeometric limits), and a census leaves nothing uncertain.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from auditor.choices import Census, Members, Subset
from auditor.errors import InputError
from auditor.estimators.binomial import lower_limit, upper_limit
from auditor.estimators.hypergeometric import lower_count, upper_count
from auditor.values import Floats

__all__ = ["MemberLimits"]


@dataclass(frozen=True)
class MemberLimits:
    """Limits of the true positive and the false negative rate from counts of the ``scored`` members.

    Attributes:
        members: How the scored members were chosen.
        scored: Their number.
        seen: Training records that were looked at before, to choose a threshold, and are not scored again.
        seen_hits: How many of those lie at or below that threshold.

    Raises:
        InputError: A subset of a training set that has fewer records than were scored.
    """

    members: Members
    scored: int
    seen: int = 0
    seen_hits: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.members, Subset) and self.members.of < self.scored + self.seen:
            raise InputError(
                f"the training set of a Subset must have at least as many records as were scored, got of ="
                f" {self.members.of} for {self.scored + self.seen} member losses."
            )

    @property
    def known(self) -> bool:
        """Whether the scored members are all there is to know."""
        return isinstance(self.members, Census)

    @property
    def limits(self) -> int:
        """How many limits a ratio of one member rate and one non-member rate spends the error on."""
        return 1 if self.known else 2

    def tpr_lower(self, hits: npt.ArrayLike, alpha: float) -> Floats:
        """Lower limit of the true positive rate at a threshold that does not depend on the scored members."""
        if self.known:
            return np.asarray(np.asarray(hits) / self.scored)
        if not isinstance(self.members, Subset):
            return lower_limit(hits, self.scored, alpha)
        left = self.members.of - self.seen
        in_all = self.seen_hits + lower_count(hits, drawn=self.scored, population=left, alpha=alpha)
        return np.asarray(in_all / self.members.of)

    def fnr_upper(self, misses: npt.ArrayLike, alpha: float) -> Floats:
        """Upper limit of the false negative rate.

        At a threshold that does not depend on the scored members, or at the (misses + 1)-th largest of them.
        """
        if self.known:
            return np.asarray(np.asarray(misses) / self.scored)
        if not isinstance(self.members, Subset):
            return upper_limit(misses, self.scored, alpha)
        left = self.members.of - self.seen
        in_all = upper_count(misses, drawn=self.scored, population=left, alpha=alpha)
        # A training set is finite: that none of its records lies above a threshold says nothing about leakage.
        return np.asarray(np.maximum(in_all + self.seen - self.seen_hits, 1) / self.members.of)
