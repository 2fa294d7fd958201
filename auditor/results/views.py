"""Views of the data for the report: curves, histograms, quantiles; thinned for insiders, else at the cuts of a partition."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from auditor.core.errors import InputError
from auditor.core.numbers import enough_digits, given, percent
from auditor.core.options import Coverage, Sample
from auditor.core.values import Claim, Density, Estimate, FittedPair, Floats, Losses
from auditor.curves.tradeoff import ThresholdCounts, TradeoffCurve, count
from auditor.curves.transforms import published
from auditor.estimators.band import Between, simultaneous_band
from auditor.estimators.melding import ranks
from auditor.results.document import Histogram, NamedCurve
from auditor.results.partition import FEWEST, LEAST, Partition, apart

_Integers = npt.NDArray[np.int64]
_HALF = 0.5

# --- Curves at ranks fixed in advance, whose error rate is known for the training mechanism and need not be estimated ---
#
# Take C, the n0 scored non-members of one uniformly random split, t the (k+1)-th smallest loss in C, x a random member
# and z a random record of C. The attack "x is a member if its loss is below the (k+1)-th smallest loss of C without z"
# calls at least as many members as t does. Exchange x and z before training: now x is a non-member, exchangeable with
# the other n0 - 1, so it has at most k of them at or below it with probability at most (k+1)/n0, ties or not. So an
# (eps, d)-DP mechanism (replace-one) has
#
#     E[share of the members below t] <= e^eps (k+1)/n0 + d
#
# over splits and training [own]. The same holds with the groups exchanged, and from the other end of the losses: the
# four ratios of Negoescu et al. 2024, Eq. 19, each with a known denominator.


# Who is called, and from which end of the losses; the first two are those of smaller losses for members.
ATTACKS = {
    "ranks.low_members": "members called, below ranks of the smallest non-member losses",
    "ranks.high_nonmembers": "non-members called, above ranks of the largest member losses",
    "ranks.high_members": "members called, above ranks of the largest non-member losses",
    "ranks.low_nonmembers": "non-members called, below ranks of the smallest member losses",
}
_EXPECTED = ("ranks.low_members", "ranks.high_nonmembers")
# Members are expected to have the smaller losses; the other way round is looked at, with little of the error.
_SHARE_OF_THE_EXPECTED = 0.9


@dataclass(frozen=True, eq=False)
class InstanceRates:
    """What the instances show at common error rates.

    Attributes:
        hits: Shape (instances, attacks), the share rightly called, in [0, 1].
        rates: Shape (attacks,), the mechanism's largest expected share wrongly called, in (0, 1].
        weights: Shape (attacks,), fixed in advance, summing to 1.
        names: The attack of each column, a key of ``ATTACKS``.
    """

    hits: Floats
    rates: Floats
    weights: Floats
    names: tuple[str, ...]

    def of_a_perfect_attack(self) -> "InstanceRates":
        """Return the same with every member below every non-member, in all instances."""
        expected = np.array([name in _EXPECTED for name in self.names])
        hits = np.broadcast_to(expected.astype(np.float64), self.hits.shape)
        return dataclasses.replace(self, hits=hits)


def rank_curves(losses: Losses) -> tuple[NamedCurve, ...]:
    """Return four curves at fixed ranks: all that `audit_instances` needs of one model.

    ``fpr`` is (k+1)/n, with n the size of the group that gives the ranks and k the ranks of the rank grid; ``tpr`` is
    the share of the other group strictly beyond the loss of that rank. In the two curves of non-members the positive
    call is "non-member".

    Args:
        losses: Smaller means more like a member.

    >>> low_members, *_ = rank_curves(Losses(member=[0.1, 0.2, 0.3, 0.9], nonmember=[0.25, 0.5, 0.6, 0.7]))
    >>> low_members.name, low_members.fpr, low_members.tpr
    ('ranks.low_members', (0.25, 0.5), (0.5, 0.75))
    """
    member, nonmember = losses.sorted_member, losses.sorted_nonmember
    n1, n0 = member.size, nonmember.size
    of_members, of_nonmembers = ranks(n1), ranks(n0)
    calls = {
        "ranks.low_members": np.searchsorted(member, nonmember[of_nonmembers], side="left"),
        "ranks.high_nonmembers": n0 - np.searchsorted(nonmember, member[n1 - 1 - of_members], side="right"),
        "ranks.high_members": n1 - np.searchsorted(member, nonmember[n0 - 1 - of_nonmembers], side="right"),
        "ranks.low_nonmembers": np.searchsorted(nonmember, member[of_members], side="left"),
    }
    return tuple(_curve(name, counts, losses) for name, counts in calls.items())


def _curve(name: str, counts: npt.NDArray[np.int64], losses: Losses) -> NamedCurve:
    called, other = losses.n_member, losses.n_nonmember
    if name.endswith("_nonmembers"):
        called, other = other, called
    rates = (ranks(other) + 1) / other
    return NamedCurve(name, ATTACKS[name], tuple(rates.tolist()), tuple((counts / called).tolist()))


def on_common_grid(instances: Sequence[Mapping[str, NamedCurve]]) -> InstanceRates:
    """Bring the curves of all instances to the error rates of the smallest one.

    A larger instance gives its share at its largest rate that is not above the common one: its attack is then wrong at
    most that often, so what is certified stays certified.

    Raises:
        InputError: A curve that is no curve of rates.
    """
    hits, rates, weights, names = [], [], [], []
    for name in ATTACKS:
        curves = [_arrays(index, curves[name]) for index, curves in enumerate(instances)]
        grid = max((fpr for fpr, _ in curves), key=lambda fpr: float(fpr[0]))
        hits.append(np.stack([_at(grid, *curve) for curve in curves]))
        rates.append(grid)
        weights.append(np.full(grid.size, _weight(name) / grid.size))
        names += [name] * grid.size
    return InstanceRates(
        np.concatenate(hits, axis=1), np.concatenate(rates), np.concatenate(weights), tuple(names)
    )


def _weight(name: str) -> float:
    return (_SHARE_OF_THE_EXPECTED if name in _EXPECTED else 1 - _SHARE_OF_THE_EXPECTED) / 2


def _at(grid: Floats, fpr: Floats, tpr: Floats) -> Floats:
    last = np.searchsorted(fpr, grid, side="right") - 1
    return np.where(last >= 0, tpr[np.maximum(last, 0)], 0.0)


def _arrays(index: int, curve: NamedCurve) -> tuple[Floats, Floats]:
    fpr, tpr = np.asarray(curve.fpr, dtype=np.float64), np.asarray(curve.tpr, dtype=np.float64)
    rises = fpr.size == tpr.size > 0 and bool((np.diff(fpr, prepend=0.0) > 0).all() and fpr[-1] <= 1)
    if not (rises and ((tpr >= 0) & (tpr <= 1)).all()):
        raise InputError(
            f"instance {index} (counting from 0) has a damaged curve {curve.name!r}: its rates must rise in (0, 1];"
            " audit its losses again."
        )
    return fpr, tpr


_BINS = 60
_QUANTILES = 99
_FEW = 100  # corners that are kept beside the places of a plot
_PLACES = 3  # of the distance of the extremes


def measured(
    losses: Losses,
    counts: ThresholdCounts,
    confidence: float,
    coverage: Coverage,
    partition: Partition | None = None,
) -> tuple[NamedCurve, ...]:
    """Return what the losses measure, and its band; with a partition at its cuts alone."""
    if partition is None:
        exact, at = _named("empirical", "measured", _empirical(counts)), None
    else:
        exact, at = _named("empirical", "measured", partition.curve()), partition.limits
    return exact, *_band(losses, confidence, coverage, at)


def fitted(pair: FittedPair, mixture: FittedPair | None, *, is_shared: bool) -> tuple[NamedCurve, ...]:
    """Return the curves of the fits, where they have a spread; to be shared with three digits, from either end."""
    found = []
    for name, label, fits in (("gaussian", "normal fit", pair), ("mixture", "mixture fit", mixture)):
        if fits is not None and min(fits.member.sd, fits.nonmember.sd) > 0:
            curve = _named(name, label, TradeoffCurve.from_fits(fits, points=201, reach=8.0))
            rates = (
                tuple(map(_three_digits, rates)) if is_shared else rates for rates in (curve.fpr, curve.tpr)
            )
            found.append(NamedCurve(name, label, *rates))
    return tuple(found)


def _three_digits(rate: float) -> float:
    return 1 - float(f"{1 - rate:.3g}") if rate > _HALF else float(f"{rate:.3g}")


def claimed_line(claim: Claim | None, promised: TradeoffCurve | None) -> tuple[NamedCurve, ...]:
    """Return the line of a claim: its whole curve where there is one, else that of its epsilon and delta; none without."""
    if claim is not None and promised is not None:
        label = f"most that the claimed training allows, at every epsilon ({claim.adjacency})"
        return (_named("claimed_training", label, _dense(promised)),)
    if claim is None or claim.value is None or claim.delta is None or not math.isfinite(claim.value):
        return ()
    label = f"most that the claim allows (epsilon {given(claim.value)}, delta {given(claim.delta)}, {claim.adjacency})"
    return (_named("claim", label, _dense(TradeoffCurve.from_epsilon_delta(claim.value, delta=claim.delta))),)


def against_claim(
    bound: Estimate, claim: Claim | None, promised: TradeoffCurve | None
) -> tuple[NamedCurve, ...]:
    """Return the line that a certified bound on a training algorithm stands for, and that of the claim."""
    if not bound.lower or bound.delta is None:
        return claimed_line(claim, promised)
    label = f"certified: the true curve goes above this line (epsilon {given(bound.lower)}, delta {given(bound.delta)})"
    exact = TradeoffCurve.from_epsilon_delta(bound.lower, delta=bound.delta)
    return (_named("certified", label, _dense(exact)), *claimed_line(claim, promised))


def curves_of_runs(
    losses: Losses, bound: Estimate, claim: Claim | None, promised: TradeoffCurve | None, *, fixed: bool
) -> tuple[NamedCurve, ...]:
    """Return those lines and what the scores measure: with its band where the number of runs was fixed, as it needs."""
    curve = _named("empirical", "measured, no interval", _empirical(count(losses)))
    band = _band(losses, bound.confidence, Sample()) if fixed and bound.confidence else ()
    return (curve, *band, *against_claim(bound, claim, promised))


def averaged(found: InstanceRates, sizes: Mapping[str, Sequence[int]] | None) -> tuple[NamedCurve, ...]:
    """Return the hits averaged over the models at the attacks' known error rates, both ends of the losses as one curve.

    To be shared, with three digits, without the rates of fewer than ten records, and with points between which each group has 0
    or at least 10 records of all models together; no curve where a model has fewer than 100 in a group.

    Args:
        found: The rates of all models.
        sizes: Numbers of members and of non-members of all models, for a curve to be shared.
    """
    fewest = None if sizes is None else np.array([min(sizes[name]) for name in ("n_nonmember", "n_member")])
    if fewest is not None and fewest.min() < FEWEST:
        return ()
    hits, names = found.hits.mean(axis=0), np.array(found.names)
    least = LEAST * found.rates.min() if sizes else 0.0  # the smallest rate is that of one record
    low, high = ((names == name) & (found.rates >= least) for name in _EXPECTED)
    fpr = np.concatenate([[0.0], found.rates[low], 1 - hits[high], [1.0]])
    tpr = np.concatenate([[0.0], hits[low], 1 - found.rates[high], [1.0]])
    order = np.lexsort((tpr, fpr))
    label, digits = "measured, mean over the models, no interval", 3 if sizes else 6
    rates = np.stack([fpr[order], np.maximum.accumulate(tpr[order])])
    if fewest is not None:  # a mean of shares, each of at least so many records
        total = found.hits.shape[0] * fewest
        kept = apart(np.round(rates[:, 1:-1] * total[:, None], 6), total)
        rates = rates[:, [0, *(at + 1 for at in kept), -1]]
    return (NamedCurve("empirical", label, *(_rounded(column, digits=digits) for column in rates)),)


def _named(name: str, label: str, curve: TradeoffCurve) -> NamedCurve:
    thin = curve.thinned(points=400)
    return NamedCurve(name, label, _rounded(thin.fpr), _rounded(thin.tpr))


def _rounded(values: Floats, *, digits: int = 6) -> tuple[float, ...]:
    """Six significant digits: more than a plot can show."""
    return tuple(float(f"{value:.{digits}g}") for value in values)


def _empirical(counts: ThresholdCounts) -> TradeoffCurve:
    """The empirical curve at corners that are dense at both ends, without building all of it."""
    size = counts.thresholds.size
    if size > 1000:  # noqa: PLR2004
        steps = np.geomspace(1, size, 200).astype(np.int64) - 1
        even = np.linspace(0, size - 1, 100).astype(np.int64)
        keep = np.unique(np.concatenate([steps, even, size - 1 - steps]))
        names = ("thresholds", "fp_below", "fp_upto", "tp_below", "tp_upto")
        counts = dataclasses.replace(counts, **{name: getattr(counts, name)[keep] for name in names})
    return TradeoffCurve.from_counts(counts)


def _dense(exact: TradeoffCurve) -> TradeoffCurve:
    """A claimed curve with points dense enough for a log-log plot, at both ends."""
    few = exact.fpr if exact.fpr.size < _FEW else exact.fpr[:0]
    fpr = np.unique(np.concatenate([np.geomspace(1e-7, 1, 150), 1 - np.geomspace(1e-3, 1, 50), few]))
    tpr = np.array([exact.tpr_at(float(rate)) for rate in fpr])
    return TradeoffCurve(fpr=np.insert(fpr, 0, 0.0), tpr=np.insert(tpr, 0, 0.0))


def _band(
    losses: Losses, confidence: float, coverage: Coverage, at: Between | None = None
) -> list[NamedCurve]:
    """Both sides of the band as staircases: a lower limit holds to the right of its FPR, an upper one to the left."""
    band = simultaneous_band(losses, confidence=confidence, coverage=coverage, at=at)
    label = f"confidence band, all thresholds at once ({percent(confidence, toward='down')})"
    (fpr_high, tpr_low), (fpr_low, tpr_high) = _corners(band.above), _corners(1 - band.below)[:, ::-1]
    fpr_low, tpr_high = 1 - fpr_low, 1 - tpr_high
    lower = (
        np.concatenate([[0.0], np.repeat(fpr_high, 2), [1.0]]),
        np.concatenate([[0.0, 0.0], np.repeat(tpr_low, 2)]),
    )
    upper = (
        np.concatenate([[0.0], np.repeat(fpr_low, 2), [1.0]]),
        np.concatenate([np.repeat(tpr_high, 2), [1.0, 1.0]]),
    )
    return [
        NamedCurve("band_lower", label, *map(_rounded, lower)),
        NamedCurve("band_upper", label, *map(_rounded, upper)),
    ]


def _corners(points: Floats) -> Floats:
    """Those of the points that no other one with a smaller or the same FPR has the TPR of; ascending in both."""
    points = points[:, np.lexsort((-points[1], points[0]))]
    return points[:, np.diff(np.maximum.accumulate(points[1]), prepend=0.0) > 0]


def histograms(losses: Losses, transformed: Losses, pair: FittedPair) -> tuple[Histogram, ...]:
    """Return the binned losses, raw and transformed, the latter with the fits."""
    edges, counts = _binned(transformed.sorted_member, transformed.sorted_nonmember)
    after = _with_fits(edges, counts, pair, _quantiles(transformed, pair))
    # Raw losses can have a tail far beyond the rest: bin the central 99.8%, the ends take in what lies beyond.
    edges, counts = _binned(losses.sorted_member, losses.sorted_nonmember, share=0.001)
    return (after, Histogram("loss", _rounded(edges), _whole(counts[0]), _whole(counts[1])))


def shared_histograms(
    partition: Partition, losses: Losses, pair: FittedPair, *, has_fits: bool = True
) -> tuple[Histogram, ...]:
    """Return the cells of a partition, raw and transformed, the latter with the fits and the means of cells, if these are shown.

    The published transform is drawn with the ends of the drawn cells in place of the smallest and the largest loss, which would
    follow from it.
    """
    rounded, places = partition.rounded, partition.edges(partition.cuts)
    groups = losses.sorted_member, losses.sorted_nonmember
    ends = np.array([min(group.min() for group in groups), max(group.max() for group in groups)])
    drawn, exact = np.array([places[0], places[-1]]), _transformed(np.append(ends, partition.cuts), ends)[2:]
    quantiles: dict[str, tuple[float, ...]] = {}
    laws = (("member", pair.member), ("nonmember", pair.nonmember)) if has_fits else ()
    for side, (name, law) in enumerate(laws):

        def fitted(shares: Floats, law: Density = law) -> Floats:
            share = np.log1p(np.exp(law.quantile(shares))) - 1
            return _transformed(ends[0] + share * (ends[1] - ends[0]), drawn)

        found = partition.means(side, groups[side], partial(_transformed, ends=drawn), fitted)
        columns = zip(("probability", "observed", "fitted"), found, strict=True)
        quantiles |= {f"{name}_{kind}": _rounded(column, digits=3) for kind, column in columns}
    edges = enough_digits(lambda digits: _rounded(_transformed(places, drawn), digits=digits), _ascending)
    cuts = np.concatenate([[-np.inf], exact, [np.inf]])
    after = _with_fits(np.array(edges), rounded, pair, quantiles, cuts=cuts)
    if not has_fits:
        after = dataclasses.replace(after, member_fit=None, nonmember_fit=None)
    return (after, Histogram("loss", _rounded(places), _whole(rounded[0]), _whole(rounded[1])))


def _transformed(values: Floats, ends: Floats) -> Floats:
    """The published transform with these ends, within which values are brought."""
    return published(Losses(member=ends, nonmember=np.append(ends, np.clip(values, *ends)))).nonmember[2:]


def _with_fits(
    edges: Floats,
    counts: tuple[_Integers, _Integers],
    pair: FittedPair,
    quantiles: dict[str, tuple[float, ...]],
    cuts: Floats | None = None,
) -> Histogram:
    at, digits = (edges, 6) if cuts is None else (cuts, 2)
    return Histogram(
        scale="published transform",
        edges=_rounded(edges),
        member=_whole(counts[0]),
        nonmember=_whole(counts[1]),
        member_fit=_expected(pair.member, at, pair.n_member, digits=digits),
        nonmember_fit=_expected(pair.nonmember, at, pair.n_nonmember, digits=digits),
        quantiles=quantiles,
    )


def _whole(counts: _Integers) -> tuple[int, ...]:
    return tuple(counts.tolist())


def _ascending(values: Sequence[float]) -> bool:
    return bool((np.diff(values) > 0).all())


def _binned(
    member: Floats, nonmember: Floats, *, share: float = 0.0
) -> tuple[Floats, tuple[_Integers, _Integers]]:
    def at(ordered: Floats, quantile: float) -> float:
        return float(ordered[round(quantile * (ordered.size - 1))])

    low = min(at(member, share), at(nonmember, share))
    high = max(at(member, 1 - share), at(nonmember, 1 - share))
    edges = _edges(*_outward(low, high))
    counts = []
    for ordered in (member, nonmember):
        cuts = np.searchsorted(ordered, edges[1:-1], side="left")
        counts.append(np.diff(np.concatenate([[0], cuts, [ordered.size]])))
    return edges, (counts[0], counts[1])


def _outward(low: float, high: float) -> tuple[float, float]:
    """Both ends moved out by up to a thousandth of their distance, so that neither is a record's loss."""
    step = _step(low, high)
    if step is None:
        return low, high
    return math.floor(low / step) * step, math.ceil(high / step) * step


def _step(low: float, high: float) -> float | None:
    """A power of ten, a thousandth of the distance or up to ten times less; None where there is none to take."""
    distance = high - low
    if not (math.isfinite(distance) and distance > 0):
        return None
    step = 10.0 ** (math.floor(math.log10(distance)) - _PLACES)
    far = max(abs(low), abs(high))
    return step if step > 0 and far + step != far and math.isfinite(far / step) else None


def _edges(low: float, high: float) -> Floats:
    """Equally wide bins, ascending and finite at any scale."""
    if low == high:
        # Toward zero, where there is room even beside the largest double.
        away = max(abs(low), 1.0) * 1e-3
        low, high = (low - away, high) if low > 1 else (low, high + away)
    if math.isfinite(high - low):
        return np.linspace(low, high, _BINS + 1)
    share = np.linspace(0.0, 1.0, _BINS + 1)
    return low * (1 - share) + high * share


def _expected(law: Density, edges: Floats, n: int, *, digits: int) -> tuple[float, ...] | None:
    if law.sd == 0:
        return None
    return _rounded(np.diff(np.exp(law.log_cdf(edges))) * n, digits=digits)


def _quantiles(losses: Losses, pair: FittedPair) -> dict[str, tuple[float, ...]]:
    """Observed and fitted quantiles at levels dense in both tails."""
    least = 0.5 / max(losses.n_member, losses.n_nonmember)
    tail = np.geomspace(least, 0.5, _QUANTILES // 2 + 1)
    levels = np.concatenate([tail, 1 - tail[-2::-1]])
    found = {"probability": _rounded(levels)}
    sides = (
        ("member", losses.sorted_member, pair.member),
        ("nonmember", losses.sorted_nonmember, pair.nonmember),
    )
    for name, ordered, law in sides:
        at = np.clip(np.round(levels * ordered.size - 0.5), 0, ordered.size - 1).astype(np.int64)
        found[f"{name}_observed"] = _rounded(_coarse(ordered[at]))
        # At the record's own plotting position, so that two levels that share a record share a point.
        found[f"{name}_fitted"] = _rounded(law.quantile((at + 0.5) / ordered.size))
    return found


def _coarse(ascending: Floats) -> Floats:
    """As exact as a plot can show and no more: a result holds no raw losses."""
    step = _step(float(ascending[0]), float(ascending[-1]))
    return ascending if step is None else np.round(ascending / step) * step
