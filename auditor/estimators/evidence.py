"""Evidence of an audit: the losses, the options, and the quantities that follow from both, computed on first use."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import ClassVar

import numpy as np

from auditor.core.errors import InputError
from auditor.core.numbers import LEAST_SHOWN
from auditor.core.options import MembershipSplit, UnknownSplit, of_group, stratified
from auditor.core.values import Claim, Estimate, FittedPair, Losses
from auditor.curves.gaussian import SAMPLE_SIZES, fit_gaussian_pair
from auditor.curves.mixture import fit_mixture_pair
from auditor.curves.tradeoff import ThresholdCounts, TradeoffCurve, count
from auditor.curves.transforms import published
from auditor.estimators.guesses import Guesses, NoGuesses, draw_guesses, fair_coins
from auditor.estimators.setting import Inputs, Setting, promises
from auditor.estimators.twins import copied
from auditor.records.labels import mechanism_reason

# The random streams of each step, below the seed. A number in a result depends on its stream, so a
# new step gets a name of its own and these stay as they are.
_STREAMS: dict[str, tuple[int, ...]] = {
    "normals": (0,),
    "noise floor": (1,),
    "one run": (2, 0),
    "mixtures": (3,),
    "shuffles": (4, 0),
    "features": (4, 1),
    "ranking": (5,),
}
_OTHERS = 6


@dataclass(frozen=True)
class Estimator:
    """One way from evidence to estimates.

    Attributes:
        name: Name of its subject.
        run: From the evidence to its rows; a row that could not be computed is there without a value.
        before_fits: Whether it comes before all that need the transformed losses, because it needs much memory itself.
    """

    name: str
    run: Callable[["Evidence"], tuple[Estimate, ...]]
    before_fits: bool = False


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence of one audit. Estimators and checks are functions of it.

    Attributes:
        inputs: The losses, their units, and the options as they were given.
        setting: The options with their defaults filled in, or stricter ones.
        estimators: Estimators, in the order of a result.
    """

    inputs: Inputs
    setting: Setting
    estimators: tuple[Estimator, ...] = ()

    @cached_property
    def losses(self) -> Losses:
        """The audited losses, one for each unit; if units had unequal odds, thinned so that the coins are fair.

        Members and non-members are then of one population, in which a unit counts as often as it had a chance to be either.
        """
        result, prior = self.inputs.units.losses, self.inputs.own_odds
        if prior is None:
            return result
        n = result.n_member
        selected = fair_coins(prior, n, self.rng("thinning"))
        members, others = int(selected[:n].sum()), int(selected[n:].sum())
        if min(members, others) < 2:  # noqa: PLR2004
            raise InputError(
                f"thinning to fair coins left {members} member(s) and {others} non-member(s) of {selected.size:,} records; audit more records"
                " with odds of membership near one half."
            )
        step = f"thinned to fair coins: {int(selected.sum()):,} of {selected.size:,} kept, by their odds of membership alone"
        return replace(result.take(member=selected[:n], nonmember=selected[n:], step=step), inclusion=None)

    # Findings that share the error of a headline: see `auditor.pipeline.shown_together`.
    looks: ClassVar[int] = 7

    def rng(self, step: str) -> np.random.Generator:
        """Return the random numbers of one step, the same at every call.

        Args:
            step: One of those that are known here, or any other name, which has a stream of its own.
        """
        key = _STREAMS.get(step) or (_OTHERS, *step.encode())
        return np.random.default_rng(np.random.SeedSequence(self.setting.seed, spawn_key=key))

    # --- Curves ---

    @cached_property
    def counts(self) -> ThresholdCounts:
        """Numbers of losses below every distinct threshold."""
        return count(self.losses)

    @cached_property
    def transformed(self) -> Losses:
        """The audited losses in ascending order, by the published transform."""
        ordered = Losses(
            member=self.losses.sorted_member,
            nonmember=self.losses.sorted_nonmember,
            scale=self.losses.scale,
            history=self.losses.history,
            notes=self.losses.notes,
        )
        return published(ordered)

    @cached_property
    def normals(self) -> FittedPair:
        """Two normals, fitted to the transformed losses and tested."""
        rng = self.rng("normals")
        return fit_gaussian_pair(self.transformed, rng=rng, transform="published", sample_sizes=SAMPLE_SIZES)

    @cached_property
    def mixtures(self) -> FittedPair | None:
        """Two mixtures of normals, fitted and tested in the same way; None if not requested, or for a summary."""
        choice, rng = self.setting.mixture, self.rng("mixtures")
        if choice is None or self.losses.bits is not None:
            return None
        return fit_mixture_pair(
            self.transformed, choice=choice, rng=rng, transform="published", progress=self.setting.progress
        )

    # --- The claim ---

    @property
    def claims(self) -> tuple[Claim, ...]:
        """Everything that the described training promises, its epsilon first; empty without a claim."""
        return self._promises[0]

    @property
    def audited(self) -> Claim | None:
        """The claimed epsilon in the form that the declared split audits, or None."""
        return self._promises[1]

    @cached_property
    def _promises(self) -> tuple[tuple[Claim, ...], Claim | None]:
        setting = self.setting
        return promises(
            setting.claim, delta=setting.delta, split=setting.split, group=self.inputs.units.group
        )

    @cached_property
    def promised(self) -> TradeoffCurve | None:
        """The whole curve that the claim allows, for the neighbours that are audited."""
        claim = self.setting.claim
        if claim is None or self.audited is None:
            return None
        from auditor.theory.accountant import claimed_curve

        group = of_group(claim, self.inputs.units.group)
        return claimed_curve(group, adjacency=self.audited.adjacency).curve

    # --- Guesses about membership ---

    @property
    def usable_split(self) -> MembershipSplit:
        """The declared split; where the units of the audit contradict it, none."""
        return UnknownSplit() if self.refusal else self.setting.split

    @cached_property
    def refusal(self) -> str | None:
        """Reason why the units of the audit support no statement about the training algorithm, or None."""
        result = mechanism_reason(self.inputs.units, strata=stratified(self.setting.split))
        if result is None and copied(self.inputs.by_record, self.inputs.units):
            return "records look like copies by their features, so that they are not independent; keep one of each"
        return result

    def draw_guesses(self, *, thin: bool) -> Guesses | NoGuesses:
        """Return the guesses that the split allows; see `auditor.estimators.guesses.draw_guesses`."""
        units = self.inputs.units.losses
        result = draw_guesses(units, split=self.usable_split, rng=self.rng("one run"), thin=thin)
        return result if isinstance(result, NoGuesses) else replace(result, least=self.fewest_guesses)

    @property
    def fewest_guesses(self) -> int:
        """The fewest guesses that one bound may rest on: their membership would follow from it."""
        return LEAST_SHOWN if self.setting.is_shared else 1

    @cached_property
    def fair_guesses(self) -> Guesses | NoGuesses:
        """Guesses about fair coins, or about the rest of unequal ones when they are thinned."""
        return self.draw_guesses(thin=True)

    # --- Estimates ---

    @cached_property
    def estimates(self) -> tuple[Estimate, ...]:
        """Estimates of all estimators, in their order; for checks, not for estimators."""
        in_turn = sorted(self.estimators, key=lambda estimator: not estimator.before_fits)
        result = {estimator.name: estimator.run(self) for estimator in in_turn}
        rows = chain.from_iterable(result[estimator.name] for estimator in self.estimators)
        return tuple(rows) if self.losses.bits is None else tuple(map(_of_bins, rows))

    def estimate(self, name: str) -> Estimate:
        """Return the estimate of that name.

        Raises:
            KeyError: No estimator gave it.
        """
        return {estimate.name: estimate for estimate in self.estimates}[name]


def _of_bins(row: Estimate) -> Estimate:
    """Return the row with the assumptions for losses that are counted in bins."""
    if row.value is None:
        return row
    if row.name.startswith("epsilon_star."):
        said = "computed from bins of the losses, each represented by one value"
    elif row.upper is None:
        said = "losses are counted in bins, which can only make this bound smaller"
    else:
        said = "an attacker sees the bin of a loss: an attacker who sees the loss may do better, and the upper end does not cover that"
    return replace(row, assumptions=(*row.assumptions, said))
