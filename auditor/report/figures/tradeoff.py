"""Claimed against measured: training records recognised for every rate of false alarms, on linear and on log axes."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from auditor.core import Claim, Disclosure, Estimate, Role, numbers
from auditor.curves.views import NamedCurve
from auditor.report.figures import canvas
from auditor.report.words import claim_words, units
from auditor.results import metrics
from auditor.results.document import Document, detail, furthest_point
from auditor.results.metrics import with_role
from auditor.verdicts.judging import failed_validity

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --- What an audit of a model says along its trade-off curve: how far it reaches, which rates it quotes, which claim ---


# The curve of a claimed training, where "claim" is that of one epsilon and delta.
_WHOLE_CLAIM = "claimed_training"


def _reach(result: Document, *, high: bool = False) -> tuple[float, float]:
    """Return the finest rate that the records of one end can show, and the rate that the logarithmic axes begin at.

    Where a fitted curve goes on does not count: it would press together what was measured.
    """
    records = result.data.get("n_member" if high else "n_nonmember")
    if result.kind is not None:  # of many runs, or of the smallest of several models
        sizes = result.data.get("n_without") or result.data.get("n_nonmember") or ()
        records = min(filter(None, sizes), default=0) if isinstance(sizes, list | tuple) else sizes
    finest = max(1 / max(records if records and math.isfinite(records) else 1000, 2), _LEAST if high else 0.0)
    return finest, canvas.floor(finest)


def runs_out(result: Document) -> bool:
    """Return whether the logarithmic figure goes on where the records run out, so that a part of it is shaded."""
    finest, least = _reach(result)
    return least < finest


def _drawn_claim(result: Document) -> Claim | None:
    """Return the claim that the dotted curve stands for: the one that was judged, else the first that was made."""
    judged = [item.claim for item in result.comparisons if item.verdict is not None]
    claims = [item for item in (*judged, *result.claims) if item.metric == "epsilon"]
    return next((item for item in claims if item.value is not None), None)


def _quoted_rates(result: Document) -> list[tuple[float, Estimate]]:
    """Return the ``tpr_at_fpr`` rows that have a certified lower limit, by rate."""
    rows = [(rate, item) for item in result.estimates if (rate := metrics.rate_of(item)) is not None]
    options = [(rate, item) for rate, item in rows if item.lower is not None and item.value is not None]
    return sorted(((rate, item) for rate, item in options if 0 < rate < 1), key=lambda pair: pair[0])


def _rate_words(rate: float, row: Estimate) -> str:
    """Return a quoted rate in words: what is certified there, and what was observed."""
    least, sure = (numbers.percent(x, toward="down") for x in (row.lower, row.confidence))
    level = "" if row.confidence is None else f" at {sure} confidence"
    values = {"rate": numbers.percent(rate), "observed": numbers.percent(row.value)}
    return canvas.WORDS["quoted_rate"].format(least=least, level=level, **values)


# --- The other end of a trade-off curve: those whom an attacker rules out, and the training records ruled out wrongly ---
#
# Losses leak at both ends. Low ones name who was in the training data; high ones tell who was not. An attacker who says
# "not in the training data" of all above a threshold clears a share of the others (the TNR, 1 - FPR) and, wrongly, a share
# of the training records (the FNR, 1 - TPR). Guessing clears the same share of both.


_LEAST = 1e-5  # curves are kept with six digits, so that 1 - TPR is known no finer
_RATES = {"lower": ("fpr_upper", "tpr_lower"), "upper": ("fnr_upper", "tnr_lower")}


@dataclass(frozen=True)
class _CertifiedPoint:
    """The two limits that the certified bound is read from, or that say most of all in the band.

    Attributes:
        high: Whether they are the FNR and TNR of the high losses, and not the FPR and TPR of the low ones.
        errors: Upper limit of the FPR, or of the FNR.
        hits: Lower limit of the TPR, or of the TNR.
        value: The bound itself.
        of_band: Whether they are read from the band: the bound then rests on no one threshold.
    """

    high: bool
    errors: float
    hits: float
    value: float
    of_band: bool

    @property
    def label(self) -> str:
        """A short description of the mark."""
        return "Headline is read here" if self.of_band else "Certified bound is read here"

    @property
    def words(self) -> str:
        """The limits in words."""
        most, least = numbers.percent(self.errors, toward="up"), numbers.percent(self.hits, toward="down")
        where = canvas.WORDS["high" if self.high else "low"].format(most=most, least=least)
        bound = numbers.number(self.value, toward="down")
        return canvas.WORDS["headline" if self.of_band else "bound"].format(where=where, bound=bound)


def _is_high(result: Document) -> bool:
    """Return whether what shows most comes from the high losses, which show who was not in the training data."""
    row, point = with_role(Role.CERTIFIED, result), furthest_point(result)
    if point is not None:
        return point["end"] == "high"
    return result.kind is None and row is not None and (row.lower or 0) > 0 and detail(row, "tail") == "upper"


def _certified_point(result: Document) -> _CertifiedPoint | None:
    """Return the place of the certified bound; None without a bound above 0 that rests on two limits."""
    row = None if result.kind is not None else with_role(Role.CERTIFIED, result)
    if row is None or not row.lower or row.lower <= 0:
        return None
    tail = str(detail(row, "tail"))
    errors, hits = (detail(row, name) for name in _RATES.get(tail, ("", "")))
    of_band = detail(row, "interval") == "Calibrated"
    point = None if failed_validity(result.checks) or not of_band else furthest_point(result)
    if point is not None:
        tail, errors, hits = "upper" if point["end"] == "high" else "lower", point["errors"], point["hits"]
    if errors is None or hits is None or not (0 <= errors <= 1 and 0 <= hits <= 1):
        return None
    return _CertifiedPoint(high=tail == "upper", errors=errors, hits=hits, value=row.lower, of_band=of_band)


def _curves(result: Document, *, high: bool) -> Mapping[str, NamedCurve]:
    """The curves, or the same seen from the other end: the FNR where the FPR was, and the TNR where the TPR was."""
    curves = canvas.curves(result)
    if not high:
        return curves
    turned = {}
    for name, curve in curves.items():
        fnr, tnr = (tuple(np.round(1 - np.asarray(side)[::-1], 9)) for side in (curve.tpr, curve.fpr))
        turned[name] = replace(curve, fpr=fnr, tpr=tnr)
    return turned


# --- What the trade-off figures show, in words with the numbers of one audit ---


_BAND = {"band_lower", "band_upper"}
_FAR, _NEAR = (0.5, 0.1, 0.01), (0.1, 0.01, 0.001, 1e-4)


def tradeoff_words(result: Document) -> str:
    """Describe the figure on linear axes, with the rates of this audit."""
    rates = _rates(canvas.curves(result), _FAR, finest=_reach(result)[0])
    about = f"Trade-off curves on linear axes. {_reads(result)}"
    return canvas.sentences(about, rates, _claimed(result), _bound(result, high=_is_high(result)))


def tradeoff_log_words(result: Document) -> str:
    """Describe the figure on logarithmic axes, with the quoted rates and the range with too few records."""
    rates = [f"{_rate_words(rate, row)}." for rate, row in _quoted_rates(result)]
    if _is_high(result):
        rates.append("What shows most is the other end of the curve.")
    about = f"Trade-off curves on logarithmic axes. {_reads(result)}"
    return _log_words(result, about, *rates, high=False)


def tradeoff_high_words(result: Document) -> str:
    """Describe the figure of the other end, with the place of the certified bound."""
    if not _is_high(result):
        return "The other end of the trade-off curves: it is not what shows most in this audit."
    about = f"The other end of the trade-off curves on logarithmic axes. {canvas.WORDS['clears']}"
    return _log_words(result, about, high=True)


def _log_words(result: Document, about: str, *more: str, high: bool) -> str:
    finest, least = _reach(result, high=high)
    errors = "of training records wrongly ruled out" if high else "false alarms"
    rates = _rates(_curves(result, high=high), _NEAR, finest=finest, errors=errors)
    end = f"Below {numbers.percent(finest)} {errors}, shaded, there are no {units(result.data).many} to measure with."
    bound = _bound(result, high=high)
    return canvas.sentences(about, rates, _claimed(result), *more, bound, end if least < finest else "")


def _reads(result: Document) -> str:
    who = "runs with the canary" if result.kind == "runs" else "training records"
    return f"They show the share of {who} that an attacker recognises against the share of false alarms."


def _rates(
    curves: Mapping[str, NamedCurve], places: Sequence[float], *, finest: float, errors: str = "false alarms"
) -> str:
    shown = [place for place in places if place >= finest] or [0.5]
    return " ".join(f"At {numbers.percent(place)} {errors}: {_at(place, curves)}." for place in shown)


def _bound(result: Document, *, high: bool) -> str:
    point = _certified_point(result)
    return f"{point.words}." if point is not None and point.high is high else ""


def _claimed(result: Document) -> str:
    names = canvas.curves(result)
    claim = _drawn_claim(result) if {"claim", _WHOLE_CLAIM} & names.keys() else None
    if claim is None:
        return ""
    whole = "Its line is the whole curve of the claimed training, not of that one epsilon."
    return canvas.sentences(f"The claim is {claim_words(claim)}.", whole if _WHOLE_CLAIM in names else "")


def _at(place: float, curves: Mapping[str, NamedCurve]) -> str:
    def rate(name: str, toward: str = "nearest") -> str:
        value = float(np.interp(place, curves[name].fpr, curves[name].tpr))
        return numbers.percent(min(max(value, 0.0), 1.0), toward=toward)

    parts = [f"measured {rate('empirical')}"] if "empirical" in curves else []
    if curves.keys() >= _BAND:
        parts.append(f"band {rate('band_lower', 'down')} to {rate('band_upper', 'up')}")
    parts += [f"{line.words} {rate(name)}" for name, line in _LINES.items() if line.words and name in curves]
    return ", ".join([*parts, f"guessing {numbers.percent(place)}"])


# --- What every trade-off figure draws: the curves with their band and labels, logarithmic axes, and where numbers are read ---


class _Line(NamedTuple):
    """A curve: its label, what a sentence calls it (empty for the measured one), and how it is drawn."""

    label: str
    words: str
    look: dict[str, Any]


def _look(color: str, linewidth: float, linestyle: Any, zorder: float) -> dict[str, Any]:
    return {"color": color, "linewidth": linewidth, "linestyle": linestyle, "zorder": zorder}


_CERTIFIED = "Certified: the true curve\nrises above this somewhere"
_DASHES, _DASH_DOT = _look(canvas.INK, 1.1, (0, (5, 2)), 4), _look(canvas.INK, 1.1, (0, (5, 1.5, 1, 1.5)), 4)
_FITS, _REJECTED = ("gaussian", "mixture"), {"color": canvas.MUTED, "linewidth": 0.8}
_DOTS, _TRAINING = _look(canvas.INK, 1.8, (0, (1, 1.2)), 3), "most the claimed training allows"
# In the order in which they are drawn.
_LINES = {
    "certified": _Line(_CERTIFIED, "certified to go above", _look(canvas.ACCENT, 1.2, canvas.DASHED, 4)),
    "empirical": _Line("Measured", "", _look(canvas.ACCENT, 1.8, "-", 5)),
    "gaussian": _Line("Gaussian fit", "Gaussian fit", _DASHES),
    "mixture": _Line("Mixture fit", "mixture fit", _DASH_DOT),
    "claim": _Line("Most the claim allows", "most the claim allows", _DOTS),
    _WHOLE_CLAIM: _Line("Most the training allows", _TRAINING, _DOTS),
}
_DECADES = 5  # as many are spelled out


def _draw_logarithmic(
    panel: "Axes", curves: Mapping[str, NamedCurve], result: Document, *, finest: float, least: float
) -> None:
    """All curves on logarithmic axes that begin at ``least``; the measured one begins at ``finest``, one record."""
    panel.set(xscale="log", yscale="log", xlim=(least, 1), ylim=(least, 1.15))

    def shape(name: str) -> tuple[canvas.Floats, canvas.Floats]:
        rates = np.asarray(curves[name].fpr)
        is_shared = result.data.get("disclosure") == Disclosure.PUBLIC  # its curve begins at the first cell
        seen = max(finest, float(rates[rates > 0].min(initial=1.0))) if is_shared else finest
        starts, lowest = seen if name == "empirical" else least, least / 10 if name in _BAND else 0.0
        return canvas.logarithmic(curves[name], least=starts, lowest=lowest)

    _draw_curves(panel, curves, result, shape=shape, least=least)
    if least < finest:
        _shade(panel, least, finest, units(result.data).many)
    canvas.percent_axes(panel)
    _space_decades(panel, least)


def _draw_curves(
    panel: "Axes",
    curves: Mapping[str, NamedCurve],
    result: Document,
    *,
    shape: Callable[[str], Any],
    least: float,
) -> None:
    """The band, every curve that there is, each with its label, and guessing from ``least`` on."""
    if curves.keys() >= _BAND:
        _draw_band(panel, result, *map(shape, ("band_lower", "band_upper")))
    for name, line in _LINES.items():
        if name in curves:
            look = line.look | (_REJECTED if _is_rejected(name, result) else {})
            panel.plot(*shape(name), label=_label(name, curves, result), **look)
    panel.plot([least, 1], [least, 1], color=canvas.MUTED, linewidth=0.8, label="_Guessing", zorder=2)
    _write(panel, 0.3, 0.26, "Guessing", rotation=45, transform_rotates_text=True, va="top", ha="center")


def _write(panel: "Axes", x: float, y: float, words: str, **look: Any) -> None:
    """Write words beside what they explain, which then needs no entry in the legend."""
    halo = {"facecolor": canvas.CARD, "alpha": 0.6, "linewidth": 0, "pad": 0.8}
    small: dict[str, Any] = {"fontsize": 7.4, "color": canvas.MUTED, "bbox": halo, "zorder": 5.5}
    panel.text(x, y, words, **small | {"rotation_mode": "anchor"} | look)


def _is_rejected(name: str, result: Document) -> bool:
    row = next((item for item in result.estimates if metrics.describe(item).curve == name), None)
    return row is not None and detail(row, "fit", "rejected") is True


def _label(name: str, curves: Mapping[str, NamedCurve], result: Document) -> str:
    if name == "empirical" and curves.keys() >= _BAND:
        return _measured(result)
    if name in _FITS:
        fits = {item: ", rejected" * _is_rejected(item, result) for item in _FITS if item in curves}
        return ";\n".join(_LINES[item].label + rejected for item, rejected in fits.items())
    claim = _drawn_claim(result) if name in {"claim", _WHOLE_CLAIM} else None
    if claim is None:
        return _LINES[name].label
    # Short lines: two columns of words share the width of the figure.
    at = "" if claim.delta is None else f", delta {numbers.as_stated(claim.delta)}"
    return f"{_LINES[name].label}\n(epsilon {numbers.as_stated(claim.value)}{at})"


def _measured(result: Document) -> str:
    level = result.data.get("confidence")
    share = f"{numbers.percent(level, toward='down')} " if level and 0 < level < 1 else ""
    # A census knows its members, so its band is about them alone.
    return f"Measured, {share}band" + "\nof this training set" * (result.data.get("members") == "census")


def _draw_band(panel: "Axes", result: Document, low: Any, high: Any) -> None:
    """The band between its two limits."""
    x, y = (np.concatenate([upward, backward[::-1]]) for upward, backward in zip(low, high, strict=True))
    panel.fill(x, y, color=canvas.ACCENT, alpha=0.16, linewidth=0, label=_measured(result), zorder=1)
    for side in (low, high):
        panel.plot(*side, color=canvas.ACCENT, linewidth=0.6, zorder=1.5)


def _mark_bound(
    panel: "Axes", point: _CertifiedPoint, *, at: tuple[float, float], least: float = 0.0
) -> None:
    """A square at the two limits that the certified bound is read from."""
    look: dict[str, Any] = {"marker": "s", "markersize": 5.5, "color": canvas.ACCENT, "zorder": 8}
    if min(at) >= least:
        canvas.mark(panel, *at, point.words, label=point.label, markeredgecolor=canvas.CARD, **look)


def _space_decades(panel: "Axes", least: float) -> None:
    """A tick for each decade, or for every second one where their words would touch; 100% always has one."""
    decades = round(-math.log10(least))
    ticks = [10.0**-power for power in range(0, decades + 1, 1 if decades <= _DECADES else 2)]
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_ticks(ticks)


def _shade(panel: "Axes", least: float, finest: float, records: str) -> None:
    panel.axvspan(least, finest, color=canvas.NEUTRAL, alpha=0.13, linewidth=0)
    panel.axvline(finest, color=canvas.MUTED, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1.2)
    if math.log(finest / least) > -math.log(least) / 16:  # there is room
        middle = math.sqrt(least * finest)
        _write(panel, middle, 3 * least, f"Too few {records} to measure", rotation=90, va="center")


# --- The figures ---


def tradeoff_figure(result: Document) -> "Figure | None":
    """Return hits against false alarms on linear axes: measured, its band, the fit, the claim, and guessing."""
    curves = canvas.curves(result)
    if not curves:
        return None
    with canvas.axes(canvas.TALL) as (figure, panel):
        shape = {name: (curve.fpr, curve.tpr) for name, curve in curves.items()}
        _draw_curves(panel, curves, result, shape=shape.__getitem__, least=0)
        panel.set(xlim=(0, 1), ylim=(0, 1.005))
        _mark_rates(panel, result, least=0.0)
        if (point := _certified_point(result)) is not None:
            low, high = (point.errors, point.hits), (1 - point.hits, 1 - point.errors)
            _mark_bound(panel, point, at=high if point.high else low)
        canvas.percent_axes(panel)
        _name_axes(panel, result, high=False)
        canvas.legend(figure)
    return figure


def _name_axes(panel: "Axes", result: Document, *, high: bool) -> None:
    if high:
        panel.set(xlabel="Training records wrongly ruled out (FNR)", ylabel="Others ruled out (TNR)")
    elif result.kind == "runs":
        panel.set(xlabel="Runs without the canary (FPR)", ylabel="Runs with the canary recognised (TPR)")


def tradeoff_log_figure(result: Document) -> "Figure | None":
    """Return the same on logarithmic axes, where the rare false alarms are that matter for privacy.

    The measured curve stops where the non-members run out: a rate finer than one of them cannot be observed. The band
    goes on, since it says there too what cannot be ruled out.
    """
    return _log_figure(result, high=False)


def tradeoff_high_figure(result: Document) -> "Figure | None":
    """Return others ruled out against training records wrongly ruled out, on logarithmic axes.

    Null unless what shows most comes from the high losses: then this end shows the leak that the usual figure, of
    rare false alarms, need not show.
    """
    return _log_figure(result, high=True) if _is_high(result) else None


def _log_figure(result: Document, *, high: bool) -> "Figure | None":
    curves, point = _curves(result, high=high), _certified_point(result)
    if not curves:
        return None
    finest, least = _reach(result, high=high)
    with canvas.axes(canvas.TALL) as (figure, panel):
        _draw_logarithmic(panel, curves, result, finest=finest, least=least)
        if not high:
            _mark_rates(panel, result, least=least)
        if point is not None and point.high is high:
            _mark_bound(panel, point, at=(point.errors, point.hits), least=least)
        _name_axes(panel, result, high=high)
        canvas.legend(figure)
    return figure


def _mark_rates(panel: "Axes", result: Document, *, least: float) -> None:
    """The quoted rates: what is certified there, a wedge, and above it what was observed, a ring.

    An attacker may choose between two thresholds by chance: the ring stands on the concave hull of the measured curve.
    """
    look: dict[str, Any] = {"color": canvas.INK, "zorder": 7, "clip_on": False}
    wedge: dict[str, Any] = {"marker": 6, "label": "Observed, certified"}
    ring: dict[str, Any] = {**wedge, "marker": "o", "markerfacecolor": canvas.CARD}
    for rate, row in _quoted_rates(result):
        low, observed = max(float(row.lower or 0), least), float(row.value or 0)
        if rate < least or not low <= observed <= 1:
            continue
        # A limit of 0 lies below logarithmic axes: the line then ends at their edge without a wedge.
        panel.plot([rate, rate], [low, observed], linewidth=1.2, **look)
        for y, mark in [(observed, ring), *([] if low <= least > 0 else [(low, wedge)])]:
            canvas.mark(panel, rate, y, _rate_words(rate, row), markersize=4.6, **mark, **look)
            mark["label"] = "_again"


# --- The evidence of runs that may stop at any time, as it grew ---


def _grown(result: Document) -> tuple[canvas.Floats, canvas.Floats, float] | None:
    """Pairs of runs, the evidence after them as a power of ten, and the power that refutes; None if the result has none."""
    row, level = next(iter(result.estimates), None), result.data.get("confidence") or 0
    training = result.kind == "training"
    growth = (result.data.get("evidence") if training else detail(row, "claimed_curve", "growth")) or {}
    looks = growth.get("steps") or growth.get("pairs") or ()
    pairs, logs = canvas.finite(looks, growth.get("log_evidence") or ())
    level = 1 - (result.data.get("error_of_steps") or 0) if training else level
    drawable = pairs.size > 0 and 0 < level < 1
    return (pairs, logs / math.log(10), -math.log10(1 - level)) if drawable else None


def _e_value(power: float, _: object = None) -> str:
    return numbers.number(10.0 ** min(power, 300), digits=2)


def _looks(result: Document) -> str:
    return "steps" if result.kind == "training" else "pairs of runs"


def growth_words(result: Document) -> str:
    """Return how the evidence grew, in words."""
    grown = _grown(result)
    if grown is None:
        return "No evidence against a claim was gathered as it grew."
    most, last, needed = (_e_value(float(power)) for power in (grown[1].max(), grown[1][-1], grown[2]))
    values = {"count": numbers.count(grown[0][-1]), "looks": _looks(result), "needed": needed}
    return canvas.WORDS["growth"].format(largest=most, last=last, **values)


def growth_figure(result: Document) -> "Figure | None":
    """Return the evidence against the claim, pair by pair, with the line that refutes it; None if the result has none."""
    from matplotlib.ticker import MaxNLocator

    grown = _grown(result)
    if grown is None:
        return None
    pairs, powers, needed = grown
    with canvas.axes() as (figure, panel):
        panel.plot(pairs, powers, color=canvas.ACCENT, linewidth=1.8, label="Evidence (e-value)")
        line: dict[str, Any] = {"color": canvas.INK, "linestyle": canvas.DASHED, "linewidth": 1.1}
        panel.axhline(needed, label=f"Refutes the claim: {_e_value(needed)}", **line)
        panel.set(
            xlabel=_looks(result).capitalize(), ylabel="Evidence against the claim", xlim=(0, pairs[-1])
        )
        panel.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        panel.yaxis.set_major_formatter(_e_value)
        canvas.legend(figure)
    return figure
