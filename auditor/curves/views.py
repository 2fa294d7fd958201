"""Views of the data for the report: curves, histograms, quantiles; thinned for insiders, else at the cuts of a partition."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

import numpy as np

from auditor.core import Count, Finite, InputError, Must, NotNegative, Number, Rate, as_stated, enough_digits
from auditor.core.values import Claim, Density, Estimate, FittedPair, Floats, Integers, Losses
from auditor.curves.cells import Partition
from auditor.curves.tradeoff import ThresholdCounts, TradeoffCurve
from auditor.curves.transforms import published

_HALF = 0.5
_BINS = 60
_QUANTILES = 99
_FEW = 100  # corners that are kept beside the places of a plot
_PLACES = 3  # of the distance of the extremes
_CURVES = r"^(empirical|certified|band_(lower|upper)|gaussian|mixture|claim|claimed_training|ranks\.[a-z_]+|add-remove|replace-one)$"


@dataclass(frozen=True)
class NamedCurve:
    """One line of the trade-off plot.

    Attributes:
        name: ``empirical``, ``band_lower``, ``band_upper``, ``gaussian``, ``mixture`` or ``claim``; ``certified``, which
            the curve of a training algorithm goes above; or ``ranks.*``, the data of each that an audit of several models needs;
            or the kind of neighbours, where a training promises a curve for it.
        label: Label in the legend.
        fpr: False positive rates, ascending.
        tpr: True positive rates, as many.
    """

    name: Annotated[str, Must(pattern=_CURVES)]
    label: str
    fpr: tuple[Rate, ...]
    tpr: tuple[Rate, ...]

    def __post_init__(self) -> None:
        _same_length("tpr", self.tpr, len(self.fpr))


@dataclass(frozen=True)
class Histogram:
    """Binned losses on one scale, with the fitted densities where there are any.

    Attributes:
        scale: The scale in words, for example ``published transform``.
        edges: B + 1 ascending bin edges.
        member: B counts of members.
        nonmember: B counts of non-members.
        member_fit: B counts expected under the member fit, or None.
        nonmember_fit: B counts expected under the non-member fit, or None.
        quantiles: For a quantile-quantile plot of each group ``*_probability``, ``*_observed`` and ``*_fitted`` of one
            length: means over the records of a cell. For insiders ``probability`` is that of both groups, and the others
            are quantiles. Empty where there is no fit.
    """

    scale: str
    edges: Annotated[tuple[Finite, ...], Must(min_length=2)]
    member: tuple[Count, ...]
    nonmember: tuple[Count, ...]
    member_fit: tuple[NotNegative, ...] | None = None
    nonmember_fit: tuple[NotNegative, ...] | None = None
    quantiles: Mapping[str, tuple[Number, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("member", "nonmember", "member_fit", "nonmember_fit"):
            _same_length(name, getattr(self, name), len(self.edges) - 1)
        for name, values in self.quantiles.items():
            own = self.quantiles.get(
                f"{name.split('_')[0]}_probability", self.quantiles.get("probability", ())
            )
            _same_length(name, values, len(own))


def _same_length(name: str, values: Sequence[float] | None, length: int) -> None:
    if values is not None and len(values) != length:
        raise InputError(f"{name} has {len(values):,} entries, not {length:,}")


def fitted(pair: FittedPair, mixture: FittedPair | None, *, is_shared: bool) -> tuple[NamedCurve, ...]:
    """Return the curves of the fits, where they have a spread; to be shared with three digits, from either end."""
    result = []
    for name, label, fits in (("gaussian", "normal fit", pair), ("mixture", "mixture fit", mixture)):
        if fits is not None and min(fits.member.sd, fits.nonmember.sd) > 0:
            curve = named(name, label, TradeoffCurve.from_fits(fits, points=201, reach=8.0))
            rates = (
                tuple(map(_three_digits, rates)) if is_shared else rates for rates in (curve.fpr, curve.tpr)
            )
            result.append(NamedCurve(name, label, *rates))
    return tuple(result)


def _three_digits(rate: float) -> float:
    return 1 - float(f"{1 - rate:.3g}") if rate > _HALF else float(f"{rate:.3g}")


def claimed_line(claim: Claim | None, promised: TradeoffCurve | None) -> tuple[NamedCurve, ...]:
    """Return the line of a claim: its whole curve where there is one, else that of its epsilon and delta; none without."""
    if claim is not None and promised is not None:
        label = f"most that the claimed training allows, at every epsilon ({claim.adjacency})"
        return (named("claimed_training", label, _dense(promised)),)
    if claim is None or claim.value is None or claim.delta is None or not math.isfinite(claim.value):
        return ()
    label = f"most that the claim allows (epsilon {as_stated(claim.value)}, delta {as_stated(claim.delta)}, {claim.adjacency})"
    return (named("claim", label, _dense(TradeoffCurve.from_epsilon_delta(claim.value, delta=claim.delta))),)


def against_claim(
    bound: Estimate, claim: Claim | None, promised: TradeoffCurve | None
) -> tuple[NamedCurve, ...]:
    """Return the line that a certified bound on a training algorithm stands for, and that of the claim."""
    if not bound.lower or bound.delta is None:
        return claimed_line(claim, promised)
    label = f"certified: the true curve goes above this line (epsilon {as_stated(bound.lower)}, delta {as_stated(bound.delta)})"
    exact = TradeoffCurve.from_epsilon_delta(bound.lower, delta=bound.delta)
    return (named("certified", label, _dense(exact)), *claimed_line(claim, promised))


def named(name: str, label: str, curve: TradeoffCurve) -> NamedCurve:
    """Return the curve at as many points as a plot shows."""
    thin = curve.thinned(points=400)
    return NamedCurve(name, label, rounded(thin.fpr), rounded(thin.tpr))


def rounded(values: Floats, *, digits: int = 6) -> tuple[float, ...]:
    """Return the values with six significant digits: more than a plot can show."""
    return tuple(float(f"{value:.{digits}g}") for value in values)


def empirical(counts: ThresholdCounts) -> TradeoffCurve:
    """Return the empirical curve at corners that are dense at both ends, without building all of it."""
    size = counts.thresholds.size
    if size > 1000:  # noqa: PLR2004
        steps = np.geomspace(1, size, 200).astype(np.int64) - 1
        even = np.linspace(0, size - 1, 100).astype(np.int64)
        keep = np.unique(np.concatenate([steps, even, size - 1 - steps]))
        names = ("thresholds", "fp_below", "fp_upto", "tp_below", "tp_upto")
        counts = dataclasses.replace(counts, **{name: getattr(counts, name)[keep] for name in names})
    return TradeoffCurve.from_counts(counts)


def _dense(exact: TradeoffCurve) -> TradeoffCurve:
    """Return a claimed curve with points dense enough for a log-log plot, at both ends."""
    few = exact.fpr if exact.fpr.size < _FEW else exact.fpr[:0]
    fpr = np.unique(np.concatenate([np.geomspace(1e-7, 1, 150), 1 - np.geomspace(1e-3, 1, 50), few]))
    tpr = np.array([exact.tpr_at(float(rate)) for rate in fpr])
    return TradeoffCurve(fpr=np.insert(fpr, 0, 0.0), tpr=np.insert(tpr, 0, 0.0))


def histograms(losses: Losses, transformed: Losses, pair: FittedPair) -> tuple[Histogram, ...]:
    """Return the binned losses, raw and transformed, the latter with the fits."""
    edges, counts = _binned(transformed.sorted_member, transformed.sorted_nonmember)
    after = _with_fits(edges, counts, pair, _quantiles(transformed, pair))
    # Raw losses can have a tail far beyond the rest: bin the central 99.8%, the ends take in what lies beyond.
    edges, counts = _binned(losses.sorted_member, losses.sorted_nonmember, share=0.001)
    return (after, Histogram("loss", rounded(edges), _whole(counts[0]), _whole(counts[1])))


def shared_histograms(
    partition: Partition, losses: Losses, pair: FittedPair, *, has_fits: bool = True
) -> tuple[Histogram, ...]:
    """Return the cells of a partition, raw and transformed, the latter with the fits and the means of cells, if these are shown.

    The published transform is drawn with the ends of the drawn cells in place of the smallest and the largest loss, which would
    follow from it.
    """
    counts, places = partition.rounded, partition.edges(partition.cuts)
    groups = losses.sorted_member, losses.sorted_nonmember
    ends = np.array([min(group.min() for group in groups), max(group.max() for group in groups)])
    drawn, exact = np.array([places[0], places[-1]]), _transformed(np.append(ends, partition.cuts), ends)[2:]
    quantiles: dict[str, tuple[float, ...]] = {}
    laws = (("member", pair.member), ("nonmember", pair.nonmember)) if has_fits else ()
    for side, (name, law) in enumerate(laws):

        def fitted(shares: Floats, law: Density = law) -> Floats:
            share = np.log1p(np.exp(law.quantile(shares))) - 1
            return _transformed(ends[0] + share * (ends[1] - ends[0]), drawn)

        result = partition.means(side, groups[side], partial(_transformed, ends=drawn), fitted)
        columns = zip(("probability", "observed", "fitted"), result, strict=True)
        quantiles |= {f"{name}_{kind}": rounded(column, digits=3) for kind, column in columns}
    edges = enough_digits(lambda digits: rounded(_transformed(places, drawn), digits=digits), _ascending)
    cuts = np.concatenate([[-np.inf], exact, [np.inf]])
    after = _with_fits(np.array(edges), counts, pair, quantiles, cuts=cuts)
    if not has_fits:
        after = dataclasses.replace(after, member_fit=None, nonmember_fit=None)
    return (after, Histogram("loss", rounded(places), _whole(counts[0]), _whole(counts[1])))


def _transformed(values: Floats, ends: Floats) -> Floats:
    """Return the published transform with these ends, within which values are brought."""
    return published(Losses(member=ends, nonmember=np.append(ends, np.clip(values, *ends)))).nonmember[2:]


def _with_fits(
    edges: Floats,
    counts: tuple[Integers, Integers],
    pair: FittedPair,
    quantiles: dict[str, tuple[float, ...]],
    cuts: Floats | None = None,
) -> Histogram:
    at, digits = (edges, 6) if cuts is None else (cuts, 2)
    return Histogram(
        scale="published transform",
        edges=rounded(edges),
        member=_whole(counts[0]),
        nonmember=_whole(counts[1]),
        member_fit=_expected(pair.member, at, pair.n_member, digits=digits),
        nonmember_fit=_expected(pair.nonmember, at, pair.n_nonmember, digits=digits),
        quantiles=quantiles,
    )


def _whole(counts: Integers) -> tuple[int, ...]:
    return tuple(counts.tolist())


def _ascending(values: Sequence[float]) -> bool:
    return bool((np.diff(values) > 0).all())


def _binned(
    member: Floats, nonmember: Floats, *, share: float = 0.0
) -> tuple[Floats, tuple[Integers, Integers]]:
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
    """Return both ends moved out by up to a thousandth of their distance, so that neither is a record's loss."""
    step = _step(low, high)
    if step is None:
        return low, high
    return math.floor(low / step) * step, math.ceil(high / step) * step


def _step(low: float, high: float) -> float | None:
    """Return a power of ten, a thousandth of the distance or up to ten times less; None if there is none to take."""
    distance = high - low
    if not (math.isfinite(distance) and distance > 0):
        return None
    step = 10.0 ** (math.floor(math.log10(distance)) - _PLACES)
    far = max(abs(low), abs(high))
    return step if step > 0 and far + step != far and math.isfinite(far / step) else None


def _edges(low: float, high: float) -> Floats:
    """Return equally wide bins, ascending and finite at any scale."""
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
    return rounded(np.diff(np.exp(law.log_cdf(edges))) * n, digits=digits)


def _quantiles(losses: Losses, pair: FittedPair) -> dict[str, tuple[float, ...]]:
    """Return observed and fitted quantiles at levels dense in both tails."""
    least = 0.5 / max(losses.n_member, losses.n_nonmember)
    tail = np.geomspace(least, 0.5, _QUANTILES // 2 + 1)
    levels = np.concatenate([tail, 1 - tail[-2::-1]])
    result = {"probability": rounded(levels)}
    sides = (
        ("member", losses.sorted_member, pair.member),
        ("nonmember", losses.sorted_nonmember, pair.nonmember),
    )
    for name, ordered, law in sides:
        at = np.clip(np.round(levels * ordered.size - 0.5), 0, ordered.size - 1).astype(np.int64)
        result[f"{name}_observed"] = rounded(_coarse(ordered[at]))
        # At the record's own plotting position, so that two levels that share a record share a point.
        result[f"{name}_fitted"] = rounded(law.quantile((at + 0.5) / ordered.size))
    return result


def _coarse(ascending: Floats) -> Floats:
    """Round to the resolution of a plot: a result holds no raw losses."""
    step = _step(float(ascending[0]), float(ascending[-1]))
    return ascending if step is None else np.round(ascending / step) * step
