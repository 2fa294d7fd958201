"""The choice of a mixture: the smallest number of components that survives, then a test that the choice never saw.

Half of the records fit every candidate. Three tenths choose: numbers of components are tried in ascending order, each
at the level, until one survives. The last fifth confirms that one, so that trying many does not spoil the level [own].
Both times the distance from the held-out records and their likelihood under more components decide. The density that is
used is fitted to all records. Beside this stands the published grid: the two-sample test for every number of
components and sample size; Negoescu et al. 2024, Appendix B.2 and Figure 6.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from auditor import _validate
from auditor.choices import Mixture
from auditor.fitters.goodness_of_fit import LARGEST_HELD_OUT, partition, published_tests
from auditor.fitters.mixture import MixtureOfGaussians
from auditor.fitters.mixture_fit import fit_mixture
from auditor.fitters.more_components import combined_test
from auditor.values import FittedPair, Floats, GoodnessOfFit, KSGrid, Losses

__all__ = ["fit_mixture_pair"]

# Shares of the records that choose and that confirm; the rest fit the candidates. The choice is the stricter of the
# two, so that too small a number is seldom chosen and then found out.
_CHOOSE, _CONFIRM = 0.3, 0.2

Progress = Callable[[int, int], None]


def fit_mixture_pair(
    losses: Losses,
    *,
    choice: Mixture = Mixture(),  # noqa: B008 - a frozen value
    rng: np.random.Generator,
    transform: str = "none",
    level: float = 0.05,
    progress: Progress | None = None,
) -> FittedPair:
    """Fit a mixture of normals to each group, with the smallest number of components that is not rejected.

    Args:
        losses: Transformed losses.
        choice: Up to how many components.
        rng: Draws the partitions, the starts and the samples; the same generator gives the same pair.
        transform: What was done to the losses, for the record.
        level: Of each test.
        progress: Called with the number of fits done and the number of all, for a progress bar.

    Where every number is rejected, the one with the largest p-value (or the least distance) is taken and its fit is
    rejected.

    Raises:
        InputError: ``choice`` is not a `Mixture`, or the level is outside (0, 1).

    >>> from auditor.choices import Mixture
    >>> rng = np.random.default_rng(0)
    >>> two = np.concatenate([rng.normal(-4, 1, 1000), rng.normal(4, 1, 1000)])
    >>> pair = fit_mixture_pair(Losses(member=two, nonmember=rng.normal(size=2000)), choice=Mixture(3), rng=rng)
    >>> pair.member.components, pair.nonmember.components, pair.rejected
    (2, 1, False)
    """
    _validate.instance("choice", choice, (Mixture,))
    _validate.fraction("level", level)
    total = 2 * (choice.max_components + 1)
    found = []
    for first, values in ((0, losses.member), (total // 2, losses.nonmember)):
        tick = _Tick(progress, first, total)
        found.append(_fitted(values, choice.max_components, rng, level, tick))
    (member, member_fit, member_grid), (nonmember, nonmember_fit, nonmember_grid) = found
    return FittedPair(
        member=member,
        nonmember=nonmember,
        member_fit=member_fit,
        nonmember_fit=nonmember_fit,
        n_member=losses.n_member,
        n_nonmember=losses.n_nonmember,
        transform=transform,
        member_grid=member_grid,
        nonmember_grid=nonmember_grid,
    )


@dataclass
class _Tick:
    """Counts the fits of one group."""

    progress: Progress | None
    done: int
    total: int

    def __call__(self) -> None:
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.total)


def _fitted(
    values: Floats, largest: int, rng: np.random.Generator, level: float, tick: _Tick
) -> tuple[MixtureOfGaussians, GoodnessOfFit, KSGrid]:
    sizes = tuple(max(1, min(LARGEST_HELD_OUT, int(share * values.size))) for share in (_CHOOSE, _CONFIRM))
    if sum(sizes) >= values.size:  # two records: nothing can be both kept and tested twice
        sizes = (1, 0)
    kept, (choose, confirm) = partition(values, sizes, rng=rng)
    candidates = []
    for components in range(1, largest + 1):
        candidates.append(fit_mixture(kept, components=components, rng=rng))
        tick()
    held = np.concatenate([choose, confirm])
    published = [published_tests(held, item, rng=rng, level=level) for item in candidates]
    judge = partial(combined_test, candidates=candidates, n_fit=kept.size, level=level, rng=rng)
    tests: list[GoodnessOfFit] = []
    while len(tests) < largest and (not tests or tests[-1].rejected):
        tests.append(judge(choose, components=len(tests) + 1))
    best = len(tests) - 1
    if tests[-1].rejected:
        best = max(range(largest), key=lambda index: (tests[index].p_value, -tests[index].statistic))
    test = tests[best]
    if not test.rejected and confirm.size:
        test = judge(confirm, components=best + 1)
    density = fit_mixture(values, components=best + 1, rng=rng)
    tick()
    grid = KSGrid(
        components=tuple(range(1, largest + 1)),
        sample_sizes=tuple(fit.n for fit in published[0]),
        p_values=tuple(tuple(fit.p_value for fit in row) for row in published),
        choice_p_values=tuple(test.p_value for test in tests),
    )
    return density, replace(test, paper=published[best][-1]), grid
