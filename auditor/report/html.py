"""The report: one HTML file without network access, external scripts or fonts."""

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from auditor.checks.registry import CHECKS
from auditor.core import InputError, Role, Status, Verdict, numbers
from auditor.records.labels import MIXED
from auditor.report.annex import annex_of
from auditor.report.findings import by_estimated_odds, promised
from auditor.report.kinds import view_of
from auditor.report.rows import Row, extraction_rows, row_of
from auditor.report.view import LABEL_ONLY, View, settings_sentence, texts
from auditor.report.words import (
    GATE,
    NEIGHBOURS,
    RELEASED,
    assumptions,
    check_title,
    claim_name,
    claim_value,
    fit_sentences,
    is_table,
    neighbours,
    unit_words,
    worded,
)
from auditor.results import metrics
from auditor.results.document import Document, Slice, furthest_point
from auditor.risk.ranking import NOTE
from auditor.theory.promises import leading

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure


# --- The frame of every page: one offline file, escaped, with a policy that allows only its own scripts ---


def rendered(
    template: str, *, scripts: Sequence[str] = (), results: Sequence[Document] = (), **context: Any
) -> str:
    """Return a template of this package as a page.

    Args:
        template: Name of a file in ``templates``, which extends ``base.html.jinja``.
        scripts: Names of files in ``templates``, which become inline scripts: nothing from a result may be in one. The
            page must be readable without them.
        results: The results of the page, for its filing block.
        context: Variables of the template; every text in them is escaped.
    """
    from markupsafe import Markup

    # Both come from this package: scripts are allowed by their hashes only.
    folder = resources.files("auditor.report") / "templates"
    inline = [(folder / name).read_text(encoding="utf-8") for name in scripts]
    trusted, policy = [Markup(text) for text in inline], Markup(_policy(inline))  # noqa: S704
    page = environment(_shown, autoescape=True).get_template(template)
    facts = filing(results)
    printed = Markup(_UNSAFE.sub("", ", ".join(value for title, value in facts if title in _PRINTED)))  # noqa: S704
    return page.render(policy=policy, scripts=trusted, filing=facts, printed=printed, **context)


_PRINTED = ("Created", "Version", "SHA-256 of the result")
_UNSAFE = re.compile(r"[^A-Za-z0-9 .:,+()-]")  # in a text of a style sheet


def filing(results: Sequence[Document]) -> list[tuple[str, str]]:
    """Return the filing block of these results."""
    views = list(map(view_of, results))
    if len(views) == 1:
        return views[0].filing
    facts = [(f"{place}. {view.model}", f"{view.filed}") for place, view in enumerate(views, start=1)]
    return [("Results", f"{len(views)}"), *facts] if facts else []


def _policy(scripts: Sequence[str]) -> str:
    """The content security policy: nothing is loaded, and no script runs but those with these hashes."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{result}'" for result in hashes)
    own = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    return f"{own}; script-src {allowed}" if allowed else own


def _shown(value: Any) -> Any:
    # Everything that reaches the page passes here; only figures, made in this package, are markup already.
    return numbers.clean(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


@cache
def environment(finalize: Callable[[Any], Any], *, autoescape: bool) -> "Environment":
    """Return the environment of the templates, with their filters.

    Args:
        finalize: Applied to every text that a template prints.
        autoescape: Whether that text is then escaped as HTML.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    result = Environment(
        loader=PackageLoader("auditor.report", "templates"),
        autoescape=autoescape,  # noqa: S701 - Markdown is escaped as such, when it is finalized
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    result.filters |= {name: getattr(numbers, name) for name in ("number", "percent", "sentence", "tidy")}
    brief = partial(numbers.clean, most=numbers.BRIEF)
    result.filters |= {"whole": numbers.count, "as_stated": numbers.as_stated, "brief": brief, "odds": _odds}
    result.filters |= {"claim_name": claim_name, "claim_value": claim_value}
    result.filters |= {"row": row_of, "row_with": _row_with}
    result.tests["beyond_guessing"] = lambda row: metrics.beyond_guessing(row.estimate)
    return result


def _row_with(holder: Document | Slice, role: str) -> Row | None:
    """Return the row with a role, such as ``CERTIFIED``."""
    return row_of(holder, metrics.named(Role[role]))


_SURE = 1e6


def _odds(odds: float) -> str:
    """Return odds in words: 12 to 1, or 1 to 3."""
    if not odds > 0:
        return numbers.MISSING
    if odds >= _SURE:
        return f"over {numbers.count(int(_SURE))} to 1"
    return f"{numbers.number(odds)} to 1" if odds >= 1 else f"1 to {numbers.number(1 / odds)}"


# --- The page of one audit, or of several ---


def render(results: Sequence[Document], *, title: str = "Privacy audit") -> str:
    """Return one or several audits as one offline HTML page.

    Args:
        results: One audit gives a report; several of models give the same page with a table that compares them on top.
        title: The page's title.

    Raises:
        InputError: There is no result.
    """
    if not results:
        raise InputError("a report needs at least one result, got 0.")
    pages: Mapping[str | None, Any] = {
        None: ("page.html.jinja", _audit),
        "claim": ("claim.html.jinja", _promise),
    }
    template, variables = pages.get(results[0].kind, ("training.html.jinja", _training))
    return rendered(
        template,
        title=title,
        audits=[
            variables(view_of(result), index, brief=len(results) > 1)
            for index, result in enumerate(results, start=1)
        ],
        several=len(results) > 1,
        results=results,
        page={"signs": GATE, "refuted": any(item.verdict is Verdict.REFUTED for item in results)},
        glossary=glossary(min((item.data for item in results), key=is_table)),
    )


def _audit(view: View, index: int, *, brief: bool) -> dict[str, Any]:
    """Return the variables of one audit of a model; a brief one has no folded figures."""
    from auditor.report.figures import canvas, tradeoff

    result, fits = view.result, metrics.fitted(view.result)
    point = furthest_point(result)
    end = "low" if point is None else point["end"]
    first = ("raw-losses", "tradeoff-log" if end == "low" else "tradeoff-high", "epsilons")
    return _behind(view, index, names=first if brief else None) | {
        "brief": brief,
        "end": end,
        "runs_out": tradeoff.runs_out(result),
        "is_fitted": "gaussian" in canvas.curves(result),
        "promised": list(map(view.worded, promised(result))),
        # The first sentence is the finding where a validity check failed.
        "estimated": list(map(view.worded, by_estimated_odds(result)[1 if view.invalid else 0 :])),
        "extraction": extraction_rows(result),
        "fit": fit_sentences(fits.get("gaussian"), mixture=fits.get("mixture")),
        "annex": annex_of(view),
        # Slices of an older result from a census.
        "by_chance": any(metrics.is_finite(item) for one in result.slices for item in one.estimates),
        "mixed": MIXED,
        "note_on_odds": NOTE,
    }


def _training(view: View, index: int, *, brief: bool) -> dict[str, Any]:
    """Return the variables of an audit of a training algorithm."""
    return _behind(view, index) | {"brief": brief, "promised": promised(view.result)}


def _behind(view: View, index: int, *, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Return the variables of every audit."""
    key = f"audit-{index}"
    return {
        "view": view,
        "key": key,
        "number": index,
        "figures": _figures(view.result, key, names),
        "methods": methods_section(view),
        "unit": unit_words(view.result.data) or "record",
        "settings": settings_sentence(view.result),
    }


def _promise(view: View, index: int, *, brief: bool) -> dict[str, Any]:  # noqa: ARG001 - as of the others
    """Return the variables of a promise: the best numbers and all others for both adjacencies, with the curves."""
    result, best, tables = view.result, leading(view.result.claims), []
    for adjacency in NEIGHBOURS:
        title = neighbours(adjacency, result.description.get("records_per_person"))
        ours = [item for item in result.claims if item.adjacency is adjacency]
        words = [item for item in ours if item in best], [item for item in ours if item not in best]
        lines = tuple(
            replace(item, name="claimed_training") for item in result.curves if item.name == adjacency
        )
        figures = _figures(Document({}, (), (), (), (), None, {}, lines), adjacency)
        tables.append({"title": title, "claims": words, "figures": figures, "adjacency": adjacency})
    return {"view": view, "tables": tables}


def _figures(result: Document, key: str, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Return those of all figures, or of these, that this audit has data for, by name, each an inline SVG."""
    from auditor.report.figures import gallery as figures

    return {
        name: drawn(figure, figures.alt(result, name), key=f"{key}-{name}")
        for name in names or figures.FIGURES
        if (figure := figures.figure(result, name)) is not None
    }


def drawn(figure: "Figure", alt: str, *, key: str | None = None) -> Any:
    """Return a figure as an inline SVG with a text alternative."""
    from markupsafe import Markup

    from auditor.report.figures import canvas

    # Markup is right here: the text inside was escaped when the SVG was written.
    return Markup(canvas.svg(figure, alt=alt, key=key))  # noqa: S704


# --- The methods section: method, equation and source of each number, and the papers as a numbered list ---


def glossary(data: Mapping[str, Any] = MappingProxyType({})) -> list[dict[str, str]]:
    """Return the glossary of a result with these data, ending with the terms of registered metrics and checks."""
    own = {**texts("glossary"), **(RELEASED["glossary"] if is_table(data) else {})}
    brought = [(item.term, item.title, item.sentence) for item in metrics.METRICS]
    brought += [(item.term, check_title(item.name), item.title) for item in CHECKS]
    result = [
        {"key": key, "name": term["name"], "text": worded(term["text"], data)} for key, term in own.items()
    ]
    return result + [
        {"key": key, "name": name, "text": text} for key, name, text in brought if key and key not in own
    ]


# --- The papers behind the numbers, as a numbered list of full references ---


def cited(words: Iterable[str]) -> list[str]:
    """Return the keys of the papers that these texts name, in the order of the list.

    >>> cited(["Clopper-Pearson limits; Nasr et al. 2023"])
    ['clopper', 'nasr']
    """
    whole = "\n".join(words)
    return [
        key for key, paper in texts("references").items() if any(name in whole for name in paper["names"])
    ]


def methods_section(view: View) -> dict[str, Any]:
    """Return the method of each number, one entry for all numbers with the same method, with numbered references."""
    alike: dict[tuple[Any, ...], list[Row]] = {}
    for row in view.rows:
        result, item = metrics.equation(row.estimate), row.estimate
        rests_on = tuple(map(view.worded, assumptions(item)))
        alike.setdefault((item.method, result, rests_on, tuple(row.notes)), []).append(row)
    papers = [cited([method, result.source]) for method, result, *_ in alike]
    others = cited(_sources_beside(view.result))
    used = list(dict.fromkeys([*(key for keys in papers for key in keys), *others]))
    places = {key: place for place, key in enumerate(used, start=1)}
    names = ("rows", "method", "equation", "assumptions", "notes", "cites")
    made = [
        dict(zip(names, (rows, *words, _cites(keys, places)), strict=True))
        for (words, rows), keys in zip(alike.items(), papers, strict=True)
    ]
    references = [(key, texts("references")[key]["full"]) for key in used]
    return {"made": made, "references": references, "also": _cites(others, places)}


def _cites(keys: Iterable[str], places: Mapping[str, int]) -> list[tuple[int, str]]:
    return sorted((places[key], key) for key in keys)


def _sources_beside(result: Document) -> Iterator[str]:
    """Yield texts that cite the sources of claims, checks and wording."""
    if getattr(result, "policies", ()):
        yield LABEL_ONLY
    for claim in result.claims:
        yield f"{claim.method} {claim.note}"
        if claim.metric == "epsilon" and claim.value is not None:
            yield "Nanayakkara et al. 2023"
    for check in result.checks:
        spec = CHECKS.get(check.name)
        if spec is not None and check.status is not Status.UNKNOWN:
            yield spec.source


# --- The card of a result for notebooks: plain elements in the notebook's own colours ---


def card(result: Document) -> str:
    """Return an audit as a card for notebooks."""
    view = view_of(result)
    return rendered(
        "card.html.jinja",
        title=f"Privacy audit: {view.model}",
        opening=[(item.sign, [item.sentence]) for item in (view.decision, *view.opening)],
        rows=view.numbers,
        after=[view.most_exposed, view.released, view.less, view.headline.sentence, view.not_made],
        now=view.now,
        checks=[f"{item.sign.word}: {item.title}. {item.message}" for item in view.to_read],
    )


# --- The summary for a pull request, in GitHub-flavoured Markdown: foreign text is escaped ---


_MARKS = re.compile(r"[\\`*\[\]{}|<>&~^$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|#(?=#*$)")
_NAMED = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "|": "&#124;", "$": "&#36;"}  # the others get a backslash
_STARTS = re.compile(r"^(\d+)([.)])(?=\s|$)|^([-+=#])")  # starts of a list, a heading or a rule
_ADDRESS = re.compile(r"(?<=[A-Za-z])://|\bwww\.", re.IGNORECASE)
# A person, an issue, a request, a milestone, a picture.
_REFERS = re.compile(r"([@#!%])(?=[\w\"'-])|(:)(?=[^\W\d])")
_LONGEST = 500  # characters of one foreign text


def escaped(text: object) -> str:
    r"""Return text that Markdown shows as it is: on one line, with no mark-up, link, picture, mention or reference.

    >>> escaped("a | b *c* @everyone\n# <b>")
    'a &#124; b \\*c\\* @&#8203;everyone # &lt;b&gt;'
    """
    line = re.sub(r"\s+", " ", numbers.clean(text, most=_LONGEST)).strip()
    spaced = _ADDRESS.sub(lambda match: "\u200b".join(match[0]), line)
    held = _REFERS.sub(lambda match: f"{match[0]}\u200b", spaced)
    safe = _MARKS.sub(lambda match: _NAMED.get(match[0], f"\\{match[0]}"), held)
    start = _STARTS.match(safe)
    if start is not None:
        sign = start[2] or start[3]
        safe = f"{start[1] or ''}&#{ord(sign)};{safe[start.end() :]}"
    return safe.replace("\u200b", "&#8203;")


def markdown(result: Document) -> str:
    """Return the summary of an audit for a pull request."""
    template = environment(escaped, autoescape=False).get_template("summary.md.jinja")
    return template.render(view=view_of(result), signs=GATE) + "\n"
