"""Evidence against Poisson sampling at the claimed rate or a lower one, from batch sizes and records that come again [own].

Under the claim the size of a batch is Binomial(n, r) for a rate r <= q, whatever came before, and given its size k it is a
random k-subset of the n records. The likelihood of a prediction from the past, over the largest likelihood of a size under
any such r, or over that of a subset, has a mean of at most 1, and products of such ratios are test supermartingales (Ville).
The predictions are that of a loader that goes through shuffled records: the size of the batch before, and no record of the
batches before; no empty batch; and higher rates.
"""

from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from auditor.core import Floats, InputError, Integers, validate

_RATES = np.array([1.05, 1.1, 1.25, 1.5, 2.0])  # over the claimed one
_CERTAIN = 700.0  # log of the evidence of what is impossible under the claim
_SURE = 0.9  # probability of what a shuffled loader does, in a prediction


class SamplerBets:
    """The capital of bets against Poisson sampling of ``records`` records at rate ``rate``; mutable.

    >>> bets = SamplerBets(records=1000, rate=0.05)
    >>> for _ in range(4):
    ...     bets.add(50)
    >>> bool(bets.most > np.log(100))
    True
    """

    def __init__(self, *, records: int, rate: float) -> None:
        self.records, self.rate = validate.at_least("records", records, least=1), rate
        # The other rates; no empty batch; the size; the last batch; half a pass.
        self._won = np.zeros(_RATES.size + 4)
        self.most, self.steps, self.empty = 0.0, 0, 0
        self.sizes: list[int] = []
        self._seen: deque[Integers] = deque(maxlen=max(1, round(0.5 / rate)))

    def add(self, size: int, records: npt.ArrayLike | None = None) -> None:
        """Settle the bets on one batch.

        Args:
            size: Number of records in it.
            records: Their indices in the data, if they are known.

        Raises:
            InputError: More records than there are, or another number of indices than the size.
        """
        if not 0 <= size <= self.records:
            raise InputError(f"size must be a batch of the {self.records:,} records, got {size:,}.")
        # The likelihood of the size at the likeliest rate up to the claimed one.
        claimed = stats.binom.logpmf(size, self.records, min(self.rate, size / self.records))
        rates = np.minimum(_RATES * self.rate, 1 - 1e-12)
        self._won[: _RATES.size] += stats.binom.logpmf(size, self.records, rates) - claimed
        if self.rate < 1:
            self._won[-4] += _ratio(size > 0, np.log(-np.expm1(self.records * np.log1p(-self.rate))))
        if self.sizes:
            self._won[-3] += _ratio(size == self.sizes[-1], claimed)
        if records is not None:
            self._settle_records(size, np.asarray(records, dtype=np.int64))
        self.sizes.append(int(size))
        self.steps, self.empty = self.steps + 1, self.empty + (size == 0)
        log_evidence = special.logsumexp(self._won) - np.log(self._won.size)
        self.most = max(self.most, float(min(log_evidence, _CERTAIN)))

    def _settle_records(self, size: int, listed: Integers) -> None:
        if listed.size != size:
            raise InputError(
                f"records must name the {size:,} records of the batch, got {listed.size:,} indices."
            )
        drawn = np.unique(listed)
        if drawn.size < size:  # with replacement
            self.most = _CERTAIN
        if self._seen:
            for place, earlier in ((-2, self._seen[-1]), (-1, np.unique(np.concatenate(self._seen)))):
                others = self.records - earlier.size
                none = (
                    special.gammaln([others + 1, self.records - size + 1]).sum()
                    - special.gammaln([max(others - size, 0) + 1, self.records + 1]).sum()
                )
                again = np.isin(drawn, earlier, assume_unique=True).any() or others < size
                self._won[place] += _ratio(not again, none)
        self._seen.append(drawn)


def _ratio(right: Any, log_claimed: Floats | float) -> float:
    """Return the log of the likelihood ratio of a prediction that gives `_SURE` to one outcome and the rest to the claim."""
    return float(np.logaddexp(np.log(_SURE) - log_claimed, np.log1p(-_SURE)) if right else np.log1p(-_SURE))
