"""The report: one HTML file that needs no network, no script and no font of its own, section by section."""

import base64
import hashlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from auditor.core import numbers
from auditor.core.errors import InputError
from auditor.core.registry import Role
from auditor.core.values import Claim, Comparison, Estimate, Status, Verdict
from auditor.records.labels import MIXED
from auditor.report import methods
from auditor.report.findings import recognition
from auditor.report.methods import grid_tables, methods_section
from auditor.report.view import CheckLine, View, gates_first, view_of
from auditor.results import metrics, rows
from auditor.results.document import AuditDocument, Slice, SliceKind, TopRecord, detail, find
from auditor.results.metrics import Sign, glossary, with_role
from auditor.results.rows import Units, fit_sentences, is_finite, units
from auditor.risk.ranking import NOTE
from auditor.verdicts.gates import ExitCode, GateOutcome

if TYPE_CHECKING:
    from jinja2 import Environment


# --- One audit as the plain dictionary that the page is filled from: formatting only, nothing is recomputed ---


def context(shown: View) -> dict[str, Any]:
    """Return everything a page shows about one audit, as strings, lists and dictionaries."""
    result, fits = shown.result, metrics.fitted(shown.result)
    lead, *tiles = shown.tiles
    return {
        "model": shown.model,
        "words": asdict(shown.units),
        "verdict": asdict(shown.verdict.sign) | {"sentence": shown.verdict.sentence},
        "finding": asdict(shown.finding.sign),
        "meaning": shown.finding.sentence,
        "invalid": _INVALID if shown.invalid else "",
        "odds": recognition(result),
        "headline": lead | {"sentence": shown.headline.sentence},
        "tiles": tiles,
        "attention": [item.name for item in shown.to_read],
        "groups": shown.groups,
        "methods": methods_section(result),
        "claim": claim_section(result),
        "risk": risk_section(result),
        "exposed": exposed_section(result),
        "fit": fit_sentences(fits.get("gaussian"), mixture=fits.get("mixture")),
        "grids": grid_tables(result),
        "read_first": _read_first(shown.to_read),
        "read_first_tone": "bad" if any(item.status is Status.FAIL for item in shown.checks) else "caution",
        "checks": [_check(item) for item in sorted(shown.checks, key=lambda item: item.rank)],
        "size": methods.size(result.data),
        "data": methods.data_facts(result.data),
        "provenance": methods.provenance_facts(result),
        "versions": methods.versions(result.provenance),
        "row": _beside_others(shown),
    }


_INVALID = "A validity check failed: what follows shows how the two groups differ, and not what the model gives away."


def _check(item: CheckLine) -> dict[str, Any]:
    return {
        "sign": asdict(item.sign),
        **{name: getattr(item, name) for name in ("title", "question", "message", "advice")},
    }


def _beside_others(shown: View) -> dict[str, str]:
    """The row of an audit in a table of several."""
    star, bound = (with_role(role, shown.result) for role in (Role.PUBLISHED, Role.CERTIFIED))
    return {
        "terms": "a validity check failed" if shown.invalid else _terms(bound),
        "bound": rows.value(bound),
        "ceiling": rows.ceiling_words(bound) if bound else "",
        "star": rows.value(star),
        "star_note": "fit rejected" if detail(star, "fit", "rejected") else "",
        "auc": rows.value(find(shown.result, "auc")),
        "tpr": rows.value(find(shown.result, "tpr_at_fpr.0.01")),
    }


def _terms(bound: Estimate | None) -> str:
    """At which confidence and delta the numbers of a comparison are stated."""
    if bound is None or bound.delta is None or bound.confidence is None:
        return ""
    return f"{numbers.percent(bound.confidence, toward='down')}, delta {numbers.number(bound.delta)}"


# --- The gates of a pipeline and how each came out, as strings ---


_SIGNS = {
    ExitCode.DONE: Sign("Passed", "✓", "good"),
    ExitCode.FAILED: Sign("Stopped", "✕", "bad"),
    ExitCode.NOT_EVALUABLE: Sign("Not evaluable", "?", "caution"),
    ExitCode.BAD_INPUT: Sign("Bad input", "✕", "bad"),
}


def gate_section(outcomes: Sequence[GateOutcome], results: Sequence[AuditDocument]) -> dict[str, Any] | None:
    """Return a row for each gate and what they mean together; null without a gate."""
    if not outcomes:
        return None
    codes = {item.code for item in outcomes}
    refuted = any(result.verdict is Verdict.REFUTED for result in results)
    notes = []
    if refuted:
        notes.append("The claim is refuted, which stops a pipeline with or without a gate.")
    if ExitCode.NOT_EVALUABLE in codes:
        notes.append(
            "A gate that could not be evaluated has not passed: it stops the pipeline with exit code 3, unless another"
            " stops it with 1."
        )
    if codes == {ExitCode.DONE} and not refuted:
        notes.append("Every condition was looked at, and none was met: the pipeline goes on.")
    return {
        "first": gates_first(outcomes),
        "rows": [
            {
                "text": numbers.tidy(item.gate.text),
                "outcome": asdict(_SIGNS[item.code]),
                "sentence": numbers.tidy(item.sentence),
            }
            for item in outcomes
        ],
        "note": " ".join(notes),
    }


# --- The training records that look most exposed, by id, as strings ---


_MOST_EXPOSED = 100  # rows of a table that a reader looks through
_SURE = 1e6


def exposed_section(result: AuditDocument) -> dict[str, Any] | None:
    """Return the named records with what their order means; null where none is named."""
    records = result.top_records[:_MOST_EXPOSED]
    if not records:
        return None
    words = units(result.data)
    columns = [
        (name, title)
        for name, title in (("group", "Group"), ("person", "Person"))
        if any(getattr(item, name) not in (None, item.id) for item in records)
    ]
    return {
        "note": f"The {words.members} whose losses speak most for membership: {NOTE}. Those of equal odds share a place; of"
        f" them the lower losses are named. Odds are estimated, as if half of all {words.many} were in the training data,"
        " and have no interval (point estimates). Who is not named may still be given away by a stronger attack.",
        "who": words.many.removesuffix("s").capitalize(),
        "personal": "Ids are personal data where they lead to a person. An audit with --top-records 0 leaves them out.",
        "columns": [title for _, title in columns],
        "rows": [_row(item, [name for name, _ in columns]) for item in records],
    }


def _row(item: TopRecord, columns: list[str]) -> dict[str, Any]:
    return {
        "rank": numbers.count(item.rank),
        "shared": f"shared by {numbers.count(item.shared)}" if item.shared and item.shared > 1 else "",
        "id": item.id,
        "more": [numbers.MISSING if (found := getattr(item, name)) is None else found for name in columns],
        "odds": _odds(item.odds),
    }


def _odds(odds: float) -> str:
    """Odds as people say them: 12 to 1, or 1 to 3."""
    if not odds > 0:
        return numbers.MISSING
    if odds >= _SURE:
        return f"over {numbers.count(int(_SURE))} to 1"
    if odds >= 1:
        return f"{numbers.number(odds)} to 1"
    return f"1 to {numbers.number(1 / odds)}"


# --- Who is at risk, as strings: the slices by group and by loss percentile ---


_MOST = 60  # rows of a table that a reader looks through


def risk_section(result: AuditDocument) -> dict[str, Any] | None:
    """Return the two tables with what their intervals mean; null without slices."""
    if not result.slices:
        return None
    note = _note(result.slices, str(result.data.get("members", "sample")))
    if max(item.compared for item in result.slices) == 0:
        return {"note": note, "tables": [], "bands": [], "overall": ""}
    words = units(result.data)
    tables = [
        (heading, [_group(item, words) for item in result.slices if item.kind is kind][:_MOST])
        for heading, kind in (("By class", SliceKind.CLASS), ("By group", SliceKind.GROUP))
    ]
    bands = [item for item in result.slices if item.kind is SliceKind.PERCENTILE]
    return {
        "note": note,
        "tables": [{"heading": heading, "rows": shown} for heading, shown in tables if shown],
        "bands": [_band(item, words) for item in bands[:_MOST]],
        "overall": _overall(bands),
    }


def _note(found: tuple[Slice, ...], members: str) -> str:
    compared = max(item.compared for item in found)
    if compared == 0:
        return "No slice has enough records for an interval."
    level = numbers.percent(found[0].confidence, toward="down")
    told = "so the slice that stands out most may be quoted."
    if members != "sample":
        told += " Members count as draws here: chance in who was drawn is allowed for."
    if any(is_finite(estimate) for item in found for estimate in item.estimates):  # an older result
        told = (
            "but of these training records only: the slice that stands out most may do so by chance alone, without any"
            " leakage."
        )
    return (
        f"All {numbers.count(compared)} slices with an interval are compared at once: each kind of interval holds for"
        f" every slice together at {level} confidence, {told}{_mixed(found)}"
    )


def _mixed(found: tuple[Slice, ...]) -> str:
    if any(item.label == MIXED for item in found):
        return f" {MIXED} stands for persons whose records are in several groups."
    return ""


def _group(item: Slice, words: Units) -> dict[str, str]:
    bound = with_role(Role.CERTIFIED, item)
    delta = numbers.given(bound.delta) if bound else numbers.MISSING
    return {
        **_sizes(item, words),
        "bound": rows.value(bound),
        "limit": rows.ceiling_words(bound) if bound and bound.value is not None else "",
        "delta": "" if delta == numbers.MISSING else f"delta {delta}",
        "auc": rows.value(find(item, "auc")),
        "auc_interval": _interval(find(item, "auc")),
        "advantage": rows.value(find(item, "advantage")),
        "advantage_interval": _interval(find(item, "advantage")),
    }


def _band(item: Slice, words: Units) -> dict[str, str]:
    share = find(item, "member_share")
    lift = detail(share, "lift")
    times = "" if lift is None else f"{lift:.2f} times the overall share"
    low, high = (share.lower, share.upper) if share else (None, None)
    interval = numbers.MISSING
    if low is not None and high is not None:
        interval = f"{numbers.percent(low, toward='down')} to {numbers.percent(high, toward='up')}"
    return {
        **_sizes(item, words),
        "share": numbers.MISSING if share is None else numbers.percent(share.value),
        "interval": interval,
        "lift": times,
    }


def _many(number: int, one: str, many: str) -> str:
    return f"{numbers.count(number)} {one if number == 1 else many}"


def _sizes(item: Slice, words: Units) -> dict[str, str]:
    return {
        "label": numbers.tidy(item.label),
        "sizes": f"{_many(item.n_member, words.member, words.members)}, {_many(item.n_nonmember, 'other', 'others')}",
        "reason": numbers.sentence(item.reason) if item.reason else "",
    }


def _overall(bands: list[Slice]) -> str:
    members, others = sum(item.n_member for item in bands), sum(item.n_nonmember for item in bands)
    return numbers.percent(members / (members + others)) if members + others else numbers.MISSING


def _interval(estimate: Estimate | None) -> str:
    return rows.interval(estimate) if estimate is not None and estimate.value is not None else ""


# --- Which checks to read first, and the claims beside the measurements ---


def _read_first(checks: Sequence[CheckLine]) -> str:
    """Return the checks to read before relying on the audit, failures first, or nothing."""
    kinds = ((Status.FAIL, "failed check"), (Status.WARN, "warning"))
    parts = []
    for status, kind in kinds:
        names = [item.title.lower() for item in checks if item.status is status]
        plural = "" if len(names) == 1 else "s"
        parts += [f"{len(names)} {kind}{plural}: {', '.join(names)}"] if names else []
    return f"Before you rely on this, read {'; '.join(parts)}." if parts else ""


def claim_section(result: AuditDocument) -> dict[str, Any] | None:
    """Return what was claimed and a row for each comparison, the claim as it was made first; null without a claim."""
    stated = result.data.get("claim")
    if not (result.claims or result.comparisons or stated):
        return None
    compared = [item.claim for item in result.comparisons]
    alone = [Comparison(item, "", None, "") for item in result.claims if item not in compared]
    as_made = result.claims[0] if result.claims else None
    ordered = sorted((*result.comparisons, *alone), key=lambda item: item.claim != as_made)
    shown = [_comparison(result, item) for item in ordered]
    for place, (above, item) in enumerate(itertools.pairwise(ordered), start=1):
        if item.claim == above.claim:
            shown[place]["basis"] = ""  # the same claim beside another measurement
        if item.reason and item.reason == above.reason:
            shown[place]["reason"] = "As above."
    return {"stated": numbers.tidy(stated) if stated else "", "rows": shown}


def _comparison(result: AuditDocument, comparison: Comparison) -> dict[str, Any]:
    claim, estimate = comparison.claim, find(result, comparison.estimate)
    delta = numbers.given(claim.delta)
    terms = [] if delta == numbers.MISSING else [f"delta {delta}"]
    kind = [] if claim.proven else ["an approximation, not proven"]
    outcome = metrics.Sign("Shown for comparison" if estimate else "Not measured", "", "plain")
    if comparison.verdict is not None:
        outcome = metrics.VERDICT[comparison.verdict]
    return {
        "metric": metrics.metric(claim.metric).title,
        "claimed": _claimed(claim),
        "terms": ", ".join([*terms, str(claim.adjacency), *kind]),
        "basis": " ".join(numbers.sentence(text) for text in (claim.method, claim.note) if text),
        "measured": rows.value(estimate) if estimate else numbers.MISSING,
        "what": metrics.describe(estimate).title if estimate else numbers.clean(comparison.estimate),
        **_at(claim, estimate),
        "about": f"about {metrics.ABOUT[estimate.subject]}" if estimate else "",
        "interval": rows.interval_words(estimate) if estimate and estimate.value is not None else "",
        "outcome": asdict(outcome),
        "reason": numbers.sentence(comparison.reason),
    }


def _claimed(claim: Claim) -> str:
    if claim.metric == "epsilon":
        return numbers.given(claim.value)
    return metrics.shown_value(claim.value, name=claim.metric)


def _at(claim: Claim, estimate: Estimate | None) -> dict[str, str]:
    """The delta that the measurement is stated at, and a mark where the claim's is another."""
    if estimate is None or estimate.delta is None:
        return {"delta": "", "mark": ""}
    if claim.delta is None or math.isclose(claim.delta, estimate.delta, rel_tol=1e-9):
        return {"delta": f"delta {numbers.given(estimate.delta)}", "mark": ""}
    claimed, measured = numbers.distinct(claim.delta, estimate.delta)
    return {"delta": f"delta {measured}", "mark": f"not the claim's delta of {claimed}"}


# --- Every page's frame: one offline file, escaped, with a policy that lets nothing in and only its own scripts run ---


def rendered(template: str, *, scripts: Sequence[str] = (), **context: Any) -> str:
    """Return a template of this package as a page.

    Args:
        template: Name of a file in ``templates``, which extends ``base.html.jinja``.
        scripts: Names of files in ``templates``, which become inline scripts: nothing from a result may be in one. The
            page must be readable without them.
        context: What the template shows; every text in it is escaped.
    """
    from markupsafe import Markup

    # Written in this package, both: the scripts are allowed by their hashes alone.
    folder = resources.files("auditor.report") / "templates"
    texts = [(folder / name).read_text(encoding="utf-8") for name in scripts]
    trusted, policy = [Markup(text) for text in texts], Markup(_policy(texts))  # noqa: S704
    return _environment().get_template(template).render(policy=policy, scripts=trusted, **context)


def _policy(scripts: Sequence[str]) -> str:
    """The content security policy: nothing is loaded, and no script runs but those with these hashes."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{found}'" for found in hashes)
    parts = [
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join([*parts, f"script-src {allowed}"] if allowed else parts)


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("auditor.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _shown(value: Any) -> Any:
    # Everything that reaches the page passes here; only figures, made in this package, are markup already.
    return numbers.clean(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def render(
    results: Sequence[AuditDocument], *, title: str = "Privacy audit", gates: Sequence[GateOutcome] = ()
) -> str:
    """Return one or several audits as one offline HTML page.

    Args:
        results: One audit gives a report; several give the same page with a table that compares them on top.
        title: The page's title.
        gates: What became of the gates of a pipeline, as `auditor.verdicts.gates.judged` says; shown with their outcomes.

    Raises:
        InputError: There is no result.
    """
    if not results:
        raise InputError("a report needs at least one result, got 0.")
    audits = [_audit(result, index) for index, result in enumerate(results, start=1)]
    return rendered(
        "page.html.jinja",
        title=title,
        audits=audits,
        several=len(audits) > 1,
        gates=gate_section(gates, results),
        glossary=glossary(),
    )


def _audit(result: AuditDocument, index: int) -> dict[str, Any]:
    key = f"audit-{index}"
    own = {
        "number": index,
        "key": key,
        "figures": _figures(result, key=key),
        "log_caption": _log_caption(result),
    }
    return context(view_of(result)) | own


def _figures(result: AuditDocument, *, key: str) -> dict[str, Any]:
    """Return the figures that this audit has data for, by name, each an inline SVG."""
    from markupsafe import Markup

    from auditor.report.figures import canvas, gallery as figures

    drawn = {name: figure for name in figures.FIGURES if (figure := figures.figure(result, name)) is not None}
    # Markup is right here: the text inside was escaped when the SVG was written.
    return {
        name: Markup(canvas.svg(figure, alt=figures.alt(result, name), key=f"{key}-{name}"))  # noqa: S704
        for name, figure in drawn.items()
    }


def _log_caption(result: AuditDocument) -> str:
    from auditor.report.figures import canvas, tradeoff

    if not tradeoff.runs_out(result):
        return "Logarithmic axes show rare false alarms."
    goes_on = "gaussian" in canvas.curves(result)
    return "Logarithmic axes show rare false alarms. Where the records run out, in the shaded part, " + (
        "only the fit goes on, which is an extrapolation, and the band, which says what cannot be ruled out."
        if goes_on
        else "nothing was measured; the band says what cannot be ruled out."
    )
