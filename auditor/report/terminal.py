"""What a terminal shows, as text: laid out to its width, with or without colour codes."""

import io
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from auditor.core import numbers
from auditor.core.options import DPSGD, SAMPLERS
from auditor.core.values import Claim, Status, Subject
from auditor.many.planning import Plan
from auditor.report.comparison import context as context_comparison
from auditor.report.html import environment
from auditor.report.view import View, gates_first, settings_sentence, view_of
from auditor.report.words import VERDICT, Sign, claim_name, claim_value, neighbours
from auditor.results.document import SCHEMA_VERSION, Document

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from auditor.comparison.compare import AuditsComparison
    from auditor.theory.parameters import FoundParameter
    from auditor.verdicts.gates import GateOutcome


# --- A plan as lines for the terminal ---


def plan_text(plan: Plan) -> str:
    """Return a plan as lines of text.

    >>> from auditor.many.planning import records_needed
    >>> print(plan_text(records_needed(3.0, delta=1e-5)).splitlines()[0])
    32 members and 32 non-members certify an epsilon of 3 at delta 1e-5.
    """
    return environment(numbers.clean, autoescape=False).get_template("plan.txt.jinja").render(plan=plan)


# --- How everything is printed ---


_TONES = {"bad": "bold red", "caution": "bold yellow", "good": "green", "plain": "bold"}


def _printed(draw: "Callable[[Console], None]", *, width: int, color: bool) -> str:
    r"""Return what is drawn on a console of so many columns, without blanks at the ends of lines.

    Args:
        draw: Prints to the console that it is given.
        width: Columns of the terminal.
        color: Whether to add colour codes.

    >>> _printed(lambda console: console.print("one"), width=20, color=False)
    'one\n'
    """
    from rich.console import Console

    buffer = io.StringIO()
    draw(
        Console(
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
    )
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


# --- A comparison for a terminal: the sentences, a line for each audit, and a line for each strategy ---


def comparison_text(comparison: "AuditsComparison", *, width: int = 100, color: bool = False) -> str:
    """Return a comparison as lines of text.

    Args:
        comparison: What to show.
        width: Columns of the terminal.
        color: Whether to add colour codes.
    """
    shown = context_comparison(comparison, command_line=True)

    def draw(console: "Console") -> None:
        console.print(_signed(shown["sign"]))
        for words in (*shown["changes"], shown["compared"], shown["frontier"], *shown["warnings"]):
            console.print(_text(words))
        console.print()
        console.print(_audits(shown))
        if shown["several_instances"]:
            console.print(_strategies(shown))
        if shown["policies"]:
            console.print(_policies_of_audits(shown))
            console.print(_text(shown["label_only"], style="dim"))
        left_out = (f"Not in the landscape: {name}: {reason}" for name, reason in shown["left_out"])
        for words in (*left_out, *shown["notes"][: 2 if shown["bounds_what"] else 1], *shown["hints"]):
            console.print(_text(words))

    return _printed(draw, width=width, color=color)


def _table(*columns: str, title: str | None = None) -> "Table":
    """An empty table without a frame; a column whose title begins with ``>`` holds numbers, which never break."""
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
    """Foreign words as text and nothing else."""
    from rich.text import Text

    return Text(numbers.clean(words), style=style)


def _audits(shown: dict[str, Any]) -> "Table":
    measure = numbers.clean(shown["measure"])
    table = _table("Audit", "Strategy", ">Utility", f">{measure}", "Interval", "Verdict")
    for row in shown["audits"]:
        measured = row["measure"]
        name, interval = f"{row['run'].number}. {row['run'].title}", "; ".join(measured["notes"])
        cells = (row["strategy"]["text"], row["utility"]["text"], measured["text"], interval)
        _add(table, name, *cells, VERDICT[row["run"].result.verdict].word)
    return table


def _policies_of_audits(shown: dict[str, Any]) -> "Table":
    table = _table("Audit", "Answer", ">AUC", "Interval", "Best attacker's advantage")
    for row in shown["policies"]:
        name, auc = f"{row['run'].number}. {row['run'].title}", row["auc"]
        _add(table, name, row["answer"]["text"], auc["text"], "; ".join(auc["notes"]), row["best"]["text"])
    return table


def _strategies(shown: dict[str, Any]) -> "Table":
    mean, ranked = "Mean bound" if shown["bounds_what"] else "Mean", shown["ranked"]
    titles = ("Strategy", f">{mean}", "Range", f">Mean {numbers.clean(shown['utility'])}", "Range", ">Models")
    table = _table(*titles, *(["Frontier"] if ranked else []))
    for row in shown["strategies"]:
        spread = [
            text
            for axis in ("measure", "utility")
            for text in (row[axis]["text"], "; ".join(row[axis]["notes"]))
        ]
        cells = (f"{row['number']}. {row['name']}", *spread, row["models"]["text"])
        _add(table, *cells, *([row["frontier"]["text"]] if ranked else []))
    return table


# --- What a training description promises, as a table for the terminal and as JSON ---


def found_to_json(found: "FoundParameter") -> str:
    """Return a parameter that was found for a promise as JSON text."""
    content: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "name": found.name,
        "value": found.value,
        "wanted": found.target.in_words(),
        "description": described(found.training),
        "promise": {**vars(found.promise), "status": found.promise.status},
        "exact": None if found.exact is None else {**vars(found.exact), "status": found.exact.status},
    }
    return json.dumps(numbers.plain(content), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def described(description: DPSGD) -> dict[str, Any]:
    """Return the run as JSON-like values; a parameter that differs from step to step is null and stands in the phases."""
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
    """Return the claims as one table for each kind of neighbours; each number with its status, and notes beneath.

    Args:
        description: The training run.
        claims: What it promises.
        more: The same quantities by other methods, for tables of their own.
        sentences: The claims in words, for whom first.
        width: Columns of the terminal.
        color: Whether to add colour codes.
    """

    def draw(console: "Console") -> None:
        console.print(description.in_words(), markup=False)
        console.print("Against an attacker who sees every iterate.", markup=False)
        notes: list[str] = []
        for title, words in (("", claims), ("Other methods. ", more)):
            for adjacency in dict.fromkeys(claim.adjacency for claim in words):
                console.print()
                ours = [claim for claim in words if claim.adjacency is adjacency]
                named = neighbours(adjacency, description.records_per_person)
                _print_table(console, ours, notes, title=title + named)
        for index, note in enumerate(notes, start=1):
            console.print(f"({index}) {note}", markup=False)
        if sentences:
            console.print(f"\nIn words. {sentences[0]}", markup=False)
            for sentence in sentences[1:]:
                console.print(f"- {sentence}", markup=False)

    return _printed(draw, width=width, color=color).removesuffix("\n")


def _print_table(console: "Console", claims: Sequence[Claim], notes: list[str], *, title: str) -> None:
    if all(claim.value is None for claim in claims):
        console.print(f"{title}: {min((claim.note for claim in claims), key=len)}", markup=False)
        return
    table = _table("Quantity", ">Value", "Status", "Method", title=title)
    table.columns[2].no_wrap = True
    for claim in claims:
        status = "not available" if claim.value is None else claim.status
        value = claim_value(claim) + _mark(notes, claim.note)
        _add(table, claim_name(claim), value, status, claim.method)
    console.print(table)


def _mark(notes: list[str], note: str) -> str:
    """A reference to a note, each note once."""
    if not note:
        return ""
    if note not in notes:
        notes.append(note)
    return f" ({notes.index(note) + 1})"


# --- The same result for a terminal: what was found, the claim, a compact table, and the checks that are not fine ---


_NARROW = 80  # columns below which a table would cut its numbers


def audit_text(
    result: Document, *, width: int = 100, color: bool = False, gates: Sequence["GateOutcome"] = ()
) -> str:
    """Return a result as lines of text: with a table of its numbers, or below 80 columns with a paragraph for each.

    Args:
        result: What to show.
        width: Columns of the terminal.
        color: Whether to add colour codes.
        gates: What became of the gates; where some stopped the pipeline, the first lines say how many.
    """
    shown = view_of(result)

    def draw(console: "Console") -> None:
        for line in _first(shown, gates):
            console.print(line)
        console.print()
        if width < _NARROW:
            for row in shown.in_order:
                console.print(_text(row.line))
            console.print()
        else:
            console.print(_numbers(shown))
            if shown.policies:
                console.print(_policies(shown))
                console.print(_text(" ".join(shown.policy_notes), style="dim"))
        for line in _last(shown):
            console.print(line)

    return _printed(draw, width=width, color=color)


def _first(shown: View, gates: Sequence["GateOutcome"]) -> Iterator["Text"]:
    """The model, the gates that stop the pipeline, what was found, and the verdict on the claim."""
    if shown.is_named:
        yield _text(f"Privacy audit: {shown.model}", style="bold")
    stopped = gates_first(gates)
    if stopped:
        yield _text(f"✕ {stopped}", style=_TONES["bad"])
    for sign, sentence in shown.opening:
        yield _signed(sign)
        yield _text(sentence)
    yield from map(_text, filter(None, (shown.most_exposed, shown.less)))
    yield _text("What now", style="bold")
    for place, line in enumerate(shown.now, start=1):
        yield _text(f"{place}. {line}")


def _last(shown: View) -> Iterator["Text"]:
    """What to know of single numbers, the checks that are not fine, and what a file set."""
    text = " ".join(statement.sentence for statement in shown.opening).lower()
    for row in (*shown.in_order, *getattr(shown, "left_out", ())):
        if row.caveat and row.caveat.rstrip(".").lower() not in text:
            yield _text(f"{row.title}: {row.caveat}", style="dim")
    for check in shown.checks:
        if check.status is not Status.OK:
            words = numbers.clean(f" {check.title}: {check.message}")
            yield _signed(check.sign).append(words, style="not bold default")
    settings = settings_sentence(shown.result)
    if settings:
        yield _text(f"Settings: {settings}", style="dim")


def _signed(sign: Sign) -> "Text":
    return _text(f"{sign.symbol} {sign.word}", style=_TONES[sign.tone])


def _policies(shown: View) -> "Table":
    table = _table("Answer", *(f">{title}" for title, _, _ in shown.policies[0].cells))
    for column in table.columns:
        column.no_wrap = False
    for row in shown.policies:
        _add(table, row.title, *(f"{value} ({ends})" if ends else value for _, value, ends in row.cells))
    return table


def _numbers(shown: View) -> "Table":
    table = _table("Quantity", ">Value", "Interval", "Confidence", ">Ceiling", ">Delta", "About")
    table.columns[0].min_width, table.columns[-1].min_width = 13, 8
    table.columns[-1].no_wrap = True
    short = {Subject.MODEL: "model", Subject.MECHANISM: "training"}
    for row in shown.in_order:
        top, about = row.ceiling.removeprefix("ceiling "), short[row.estimate.subject]
        about = row.adjacency if row.promised else about  # of the training too, and twice
        _add(table, row.title, row.value, row.ends, row.confidence, top, row.delta, about)
    return table
