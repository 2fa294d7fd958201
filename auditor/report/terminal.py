"""The outputs for a terminal, as text of a given width, with or without colour codes."""

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from auditor.core import DPSGD, SAMPLERS, Claim, Decision, Status, Subject, numbers
from auditor.many.planning import Plan
from auditor.report.comparison import context as context_comparison
from auditor.report.findings import Statement
from auditor.report.html import environment
from auditor.report.kinds import view_of
from auditor.report.view import View, settings_sentence
from auditor.report.words import GATE, VERDICT, Sign, claim_name, claim_value, neighbours
from auditor.results.document import SCHEMA_VERSION, Document

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from auditor.comparison import AuditsComparison
    from auditor.theory.parameters import FoundParameter


# --- A plan as lines for the terminal ---


def plan_text(plan: Plan) -> str:
    """Return a plan as lines of text.

    >>> from auditor.many.planning import records_needed
    >>> print(plan_text(records_needed(3.0, delta=1e-5)).splitlines()[0])
    32 members and 32 non-members certify an epsilon of 3 at delta 1e-5.
    """
    return environment(numbers.clean, autoescape=False).get_template("plan.txt.jinja").render(plan=plan)


# --- Printing ---


_TONES = {"bad": "bold red", "caution": "bold yellow", "good": "green", "plain": "bold"}


def _printed(lines: Iterable[Any], *, width: int, color: bool, soft_wrap: bool = False) -> str:
    r"""Return the text of lines and tables on a console of this width, without trailing blanks.

    Args:
        lines: Texts and tables.
        width: Columns of the terminal.
        color: Whether to add colour codes.
        soft_wrap: Whether lines stay as they are, however long.

    >>> _printed(["one"], width=20, color=False)
    'one\n'
    """
    from rich.console import Console

    buffer = io.StringIO()
    console = Console(
        file=buffer,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
    )
    for line in lines:
        console.print(line, soft_wrap=soft_wrap)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


# --- A comparison for a terminal: the sentences, a line for each audit, and a line for each strategy ---


def comparison_text(comparison: "AuditsComparison", *, width: int = 100, color: bool = False) -> str:
    """Return a comparison as lines of text.

    Args:
        comparison: The comparison.
        width: Columns of the terminal.
        color: Whether to add colour codes.
    """
    parts = context_comparison(comparison)

    left_out = (f"Not in the landscape: {name}: {reason}" for name, reason in parts["left_out"])
    lines = [
        _signed(parts["sign"]),
        *map(_text, (*parts["changes"], parts["compared"], parts["frontier"], *parts["warnings"], "")),
        _audits(parts),
        *([_strategies(parts)] if parts["several_instances"] else []),
        *map(_text, (*left_out, *parts["notes"][: 2 if parts["bounds_what"] else 1], *parts["hints"])),
    ]
    return _printed(lines, width=width, color=color)


def _table(*columns: str, title: str | None = None) -> "Table":
    """Return an empty table without a frame; a column whose title begins with ``>`` holds numbers, which never wrap."""
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), title=title, title_justify="left"
    )
    for name in columns:
        numeric = name.startswith(">")
        table.add_column(name.removeprefix(">"), justify="right" if numeric else "left", no_wrap=numeric)
    return table


def _add(table: "Table", *cells: str) -> None:
    table.add_row(*map(_text, cells))


def _text(words: str, *, style: str = "") -> "Text":
    """Return foreign words as plain text."""
    from rich.text import Text

    return Text(numbers.clean(words), style=style)


def _audits(parts: dict[str, Any]) -> "Table":
    measure = numbers.clean(parts["measure"])
    table = _table("Audit", "Strategy", ">Utility", f">{measure}", "Interval", "Verdict")
    for row in parts["audits"]:
        measured = row["measure"]
        name, interval = f"{row['run'].number}. {row['run'].title}", "; ".join(measured["notes"])
        cells = (row["strategy"]["text"], row["utility"]["text"], measured["text"], interval)
        _add(table, name, *cells, VERDICT[row["run"].result.verdict].word)
    return table


def _strategies(parts: dict[str, Any]) -> "Table":
    mean, ranked = "Mean bound" if parts["bounds_what"] else "Mean", parts["ranked"]
    titles = ("Strategy", f">{mean}", "Range", f">Mean {numbers.clean(parts['utility'])}", "Range", ">Models")
    table = _table(*titles, *(["Frontier"] if ranked else []))
    for row in parts["strategies"]:
        measure, utility = (
            (row[axis]["text"], "; ".join(row[axis]["notes"])) for axis in ("measure", "utility")
        )
        cells = (f"{row['number']}. {row['name']}", *measure, *utility, row["models"]["text"])
        _add(table, *cells, *([row["frontier"]["text"]] if ranked else []))
    return table


# --- The promises of a training description, as a table for the terminal and as JSON ---


def found_to_json(solution: "FoundParameter") -> str:
    """Return the parameter that keeps a promise as JSON text."""
    content: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "name": solution.name,
        "value": solution.value,
        "wanted": solution.target.in_words(),
        "description": described(solution.training),
        "promise": {**vars(solution.promise), "status": solution.promise.status},
    }
    return json.dumps(numbers.plain(content), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def described(description: DPSGD) -> dict[str, Any]:
    """Return the run as JSON-like values; a parameter that changes between steps is None, and in the phases."""
    names = ("noise_multiplier", "sampling_rate", "clipping_norm")
    values = {name: getattr(description, name) for name in names}
    return {
        "type": type(description).__name__,
        **{name: None if isinstance(value, tuple) else value for name, value in values.items()},
        "steps": description.steps,
        "sampling": next(name for name, kind in SAMPLERS.items() if isinstance(description.sampling, kind)),
        "unit": description.unit,
        **({} if (people := description.records_per_person) is None else {"records_per_person": people}),
        "phases": [vars(phase) for phase in description.phases],
    }


def claims_text(
    description: DPSGD,
    claims: Sequence[Claim],
    *,
    more: Sequence[Claim] = (),
    sentences: Sequence[str] = (),
    width: int = 110,
    color: bool = False,
) -> str:
    """Return the claims as one table for each adjacency; each number with its status, and notes below.

    Args:
        description: The training run.
        claims: Claims of the training.
        more: The same quantities by other methods, for separate tables.
        sentences: The claims in words; the first names the attacker.
        width: Columns of the terminal.
        color: Whether to add colour codes.
    """
    lines: list[Any] = [description.in_words(), "Against an attacker who sees every iterate."]
    notes: list[str] = []
    for title, words in (("", claims), ("Other methods. ", more)):
        for adjacency in dict.fromkeys(claim.adjacency for claim in words):
            ours = [claim for claim in words if claim.adjacency is adjacency]
            named = neighbours(adjacency, description.records_per_person)
            lines += ["", _claims(ours, notes, title=title + named)]
    lines += [f"({index}) {note}" for index, note in enumerate(notes, start=1)]
    if sentences:
        lines += [f"\nIn words. {sentences[0]}", *(f"- {sentence}" for sentence in sentences[1:])]
    return _printed(lines, width=width, color=color).removesuffix("\n")


def _claims(claims: Sequence[Claim], notes: list[str], *, title: str) -> "Table | str":
    """Return the claims as a table, or a line if none has a value; their notes are added."""
    if all(claim.value is None for claim in claims):
        return f"{title}: {min((claim.note for claim in claims), key=len)}"
    table = _table("Quantity", ">Value", "Status", "Method", title=title)
    table.columns[2].no_wrap = True
    for claim in claims:
        status = "not available" if claim.value is None else claim.status
        value = claim_value(claim) + _mark(notes, claim.note)
        _add(table, claim_name(claim), value, status, claim.method)
    return table


def _mark(notes: list[str], note: str) -> str:
    """Return a reference to a note, which is added once."""
    if not note:
        return ""
    if note not in notes:
        notes.append(note)
    return f" ({notes.index(note) + 1})"


# --- A result for a terminal: twelve lines for a decision, or everything ---


_WIDE = 100  # columns of a table with ceilings
_NARROW = 80  # columns below which a table would cut its numbers
_LINES = 12


def audit_text(
    result: Document, *, width: int = 100, color: bool = False, full: bool = True, places: str = ""
) -> str:
    """Return a result as lines of text, in short or in full.

    Args:
        result: Any document.
        width: Columns of the terminal; below 80, paragraphs replace the table.
        color: Whether to add colour codes.
        full: Whether to show everything instead of at most twelve lines.
        places: Path of the report and command for details; the last line of the short form.
    """
    view = view_of(result)
    if not full:
        return _brief(view, width=width, color=color, places=places)
    lines = (*_first(view), "", *_middle(view, width=width), *_last(view), _statement(view.first))
    return _printed(lines, width=width, color=color)


def _brief(view: View, *, width: int, color: bool, places: str) -> str:
    """Return the short form, in at most twelve lines: each part is cut to its share."""
    from rich.console import Console

    lines = [(_text(f"Privacy audit: {view.model}", style="bold"), 1)] if view.is_named else []
    lines.append((_statement(view.decision), 2))
    if view.claimed and view.decided is not Decision.REFUSE:
        lines.append((_statement(view.verdict), 2))
    lines.append((_statement(view.short), 3))
    lines += [(_statement(view.carried), 2)] if view.carried else []
    more = (*(view.beside if view.stands_out else ()), view.released, *view.brief)
    lines += [(_text(f"  {words}"), 2) for words in more if words]
    lines += [(_text(f"  Settings: {words}"), 1) for words in (settings_sentence(view.result),) if words]
    last = [_text(f"-> {view.now[0]}"), *([_text(f"   {places}")] if places else [])]
    lines += [(line, 1) for line in last]
    short: list[Text] = []
    for place, (words, most) in enumerate(lines):
        wrapped = words.wrap(Console(), width)
        left = _LINES - len(short) - (len(last) if place < len(lines) - len(last) else 0)
        cut = wrapped[: min(most, left)]
        if len(cut) < len(wrapped) and cut:
            cut[-1].truncate(width - 1)
            cut[-1].append("…")
        short += cut
    return _printed(short, width=width, color=color, soft_wrap=True)


def limits_text(result: Document) -> str:
    """Return the outcome of each limit of a result, a line each."""
    return "".join(f"{GATE[item.code].symbol} {item.sentence}\n" for item in view_of(result).outcomes)


def one_line(result: Document, *, width: int, color: bool) -> str:
    """Return the leading statement, the model and the number behind it, on one line of this width."""
    view = view_of(result)
    words = view.decision.sentence if view.decided else view.short.sentence
    if view.first is view.carried:
        words = view.carried.sentence
    elif not view.decided and view.pair:
        words = f"An attacker is right at least {view.pair[0]} (coin: {view.pair[1]})."
    line = _signed(view.first.sign, f": {view.model}. {words}")
    line.truncate(width, overflow="ellipsis")
    return _printed([line], width=width, color=color, soft_wrap=True)


def _statement(item: Statement) -> "Text":
    """Return a sign and its sentence on one line."""
    return _signed(item.sign, f". {item.sentence}")


def _first(view: View) -> Iterator["Text"]:
    """Yield the model, the decision, the verdict on the claim, and the finding with its severity."""
    if view.is_named:
        yield _text(f"Privacy audit: {view.model}", style="bold")
    yield _statement(view.decision)
    for outcome in view.outcomes:
        yield _text(f"{GATE[outcome.code].symbol} {outcome.sentence}")
    for sign, sentence in view.opening:
        yield _signed(sign)
        yield _text(sentence)
    if counted := getattr(view, "counted", ""):
        yield _text(counted)
    if view.severity is not None:
        yield _text(f"{view.severity.sign.word} ({view.severity.sentence}).")
    yield from map(_text, filter(None, (view.most_exposed, view.released, view.less)))
    yield _text("What now", style="bold")
    for place, line in enumerate(view.now, start=1):
        yield _text(f"{place}. {line}")


def _middle(view: View, *, width: int) -> Iterator["Text | Table"]:
    """Yield the numbers as tables with their notes, or as paragraphs on a narrow terminal."""
    if width < _NARROW:
        yield from (_text(row.line) for row in view.in_order)
        yield _text("")
        return
    yield _numbers(view, width=width)
    if view.policies:
        yield _policies(view)
        yield _text(" ".join(view.policy_notes), style="dim")
    if view.scores:
        yield _scores(view)
        yield _text(view.score_note, style="dim")


def _last(view: View) -> Iterator["Text"]:
    """Yield the caveats of the numbers, the checks that did not pass, and the settings from a file."""
    text = " ".join(statement.sentence for statement in view.opening).lower()
    for row in (*view.in_order, *getattr(view, "left_out", ())):
        if row.caveat and row.caveat.rstrip(".").lower() not in text:
            yield _text(f"{row.title}: {row.caveat}", style="dim")
    for check in view.checks:
        if check.status is not Status.OK:
            yield _signed(check.sign, f" {check.title}: {check.message}")
    settings = settings_sentence(view.result)
    if settings:
        yield _text(f"Settings: {settings}", style="dim")


def _signed(sign: Sign, words: str = "") -> "Text":
    """Return a sign, followed by plain words."""
    text = _text(f"{sign.symbol} {sign.word}", style=_TONES[sign.tone])
    return text.append(numbers.clean(words), style="not bold default")


def _policies(view: View) -> "Table":
    table = _table("Answer", *(f">{title}" for title, _, _ in view.policies[0].cells))
    for column in table.columns:
        column.no_wrap = False
    for row in view.policies:
        _add(table, row.title, *(f"{value} ({ends})" if ends else value for _, value, ends in row.cells))
    return table


def _scores(view: View) -> "Table":
    table = _table("Attack", ">AUC", ">Certified")
    for row in view.scores:
        _add(table, row.title, f"{row.value} ({row.interval})" if row.interval else row.value, row.certified)
    return table


def _numbers(view: View, *, width: int) -> "Table":
    """Return the numbers as a table; a narrow one leaves out the ceilings, so that no name takes three lines."""
    wide = width >= _WIDE
    ceiling = [">Ceiling"] if wide else []
    titles = ("Quantity", ">Value", "Interval", "Confidence", *ceiling, ">Delta", "About")
    table = _table(*titles)
    table.columns[0].min_width, table.columns[-1].min_width = 24, 8
    table.columns[-1].no_wrap = True
    if not wide:
        table.columns[0].max_width, table.columns[2].max_width, table.columns[3].max_width = 24, 15, 13
    short = {Subject.MODEL: view.subject.split()[-1], Subject.MECHANISM: "training"}
    for row in view.in_order:
        about = row.adjacency if row.promised else short[row.estimate.subject]  # of two adjacencies
        top = [row.ceiling.removeprefix("ceiling ")] if wide else []
        _add(table, row.title, row.value, row.ends, row.confidence, *top, row.delta, about)
    return table
