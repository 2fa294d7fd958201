"""What a terminal shows, as text: laid out to its width, with or without colour codes."""

import io
import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from auditor.core import numbers
from auditor.core.numbers import count, given, number, percent, plain
from auditor.core.options import Adjacency
from auditor.core.training import DPSGD
from auditor.core.values import Claim, Estimate, Status, Subject
from auditor.mechanism.planning import Plan
from auditor.report.comparison import context as context_comparison
from auditor.report.methods import settings_sentence
from auditor.report.view import View, gates_first, view_of
from auditor.results.document import SCHEMA_VERSION, AuditDocument, InstancesDocument, RunsDocument
from auditor.results.metrics import ABOUT, STATUS, VERDICT, describe, metric

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from auditor.comparison.compare import ComparedAudits
    from auditor.theory.parameters import FoundParameter
    from auditor.verdicts.gates import GateOutcome


# --- A plan as lines for the terminal ---


def plan_text(plan: Plan) -> str:
    """Return a plan as lines of text.

    >>> from auditor.mechanism.planning import records_needed
    >>> print(plan_text(records_needed(3.0, delta=1e-5)).splitlines()[0])
    140 members and 140 non-members certify an epsilon of 3 at delta 1e-5.
    """
    target = f"an epsilon of {given(plan.epsilon)} at delta {given(plan.delta)}"
    if plan.n_member is None:
        lines = [f"No plan certifies {target}."]
        lines.append(f"Why: {plan.reason}.")
    else:
        lines = [
            f"{count(plan.n_member)} members and {count(plan.n_nonmember)} non-members certify {target}."
        ]
        if plan.chance is not None and plan.chance < 1:
            lines.append(f"Chance of reaching it: {percent(plan.chance, toward='down')}.")
        top = number(plan.ceiling, toward="down")
        lines.append(f"A perfect attack on so many records would be certified at {top}.")
    about = "this model" if plan.subject is Subject.MODEL else f"the training algorithm ({plan.adjacency})"
    level = percent(plan.confidence, toward="down")
    lines += [
        f"Assumed: {plan.attack}.",
        f"Bound: {plan.estimate}, about {about}, at {level} confidence; {plan.method}.",
    ]
    if plan.adjacency is Adjacency.ADD_REMOVE:
        lines.append("Inclusion coins are audited at delta 0; score every record that had a coin.")
    if plan.subject is Subject.MODEL:
        lines.append(
            "A bound about the model refutes no claim on the training algorithm; that takes a random split or inclusion"
            " coins."
        )
    return "\n".join(lines) + "\n"


# --- An audit of a training algorithm by several models, or by many runs: its verdict, its counts, a line a number ---


ONE_JUDGES = "Only the certified bound judges a claim; the others can exceed the truth."
_LEVEL = 0.95


def algorithm_text(result: InstancesDocument | RunsDocument) -> str:
    """Return the audit of a training algorithm as lines of text.

    >>> from auditor.mechanism.runs import audit_runs
    >>> from auditor.core.values import Losses
    >>> runs = Losses(member=[0.1, 0.2, 0.3, 0.4], nonmember=[0.2, 0.3, 0.5, 0.6])
    >>> print(algorithm_text(audit_runs(runs, delta=1e-5)).splitlines()[0][2:])
    No claim to judge
    """
    sign = VERDICT[result.verdict]
    found = [f"{sign.symbol} {sign.word}", *judged_as(result), *(item.reason for item in result.comparisons)]
    if isinstance(result, InstancesDocument):
        models, delta = numbers.count(result.data["n_instances"]), numbers.given(result.data["delta"])
        lines = [f"{models} models of one training algorithm, delta {delta}"]
        lines += _lines(result.estimates, _of_instances)
    else:
        lines = [counted(result), *_lines(result.estimates, _of_runs), ONE_JUDGES, *to_read(result)]
    return numbers.clean("\n".join([*found, "", *lines])) + "\n"


def _lines(estimates: Sequence[Estimate], told: "Callable[[Estimate], str]") -> list[str]:
    """A line for each number, one below the other, and why some have none."""
    titles = [describe(item).short for item in estimates]
    width = max(map(len, titles))
    lines = [f"  {title:<{width}}  {told(item)}" for title, item in zip(titles, estimates, strict=True)]
    reasons = dict.fromkeys(item.reason for item in estimates if item.reason)
    return [*lines, *map(numbers.sentence, reasons)]


def judged_as(result: InstancesDocument | RunsDocument) -> list[str]:
    """Return in which form the claim was judged, where that is not how it was made."""
    found = []
    for item in result.comparisons:
        forms = [(claim.delta, claim.adjacency) for claim in (*result.claims[:1], item.claim)]
        if len(set(forms)) > 1 and item.claim.value is not None:
            as_made, judged = (
                f"epsilon {numbers.given(claim.value)} at delta {numbers.given(claim.delta)} ({claim.adjacency})"
                for claim in (result.claims[0], item.claim)
            )
            found.append(f"Claimed: {as_made}; judged as {judged}, which it implies.")
    return found


def to_read(result: RunsDocument) -> list[str]:
    """Return the checks that are not fine, each with its sign in words."""
    loud = (item for item in result.checks if item.status is not Status.OK)
    return [f"{STATUS[item.status].word}: {item.message}" for item in loud]


def _of_instances(estimate: Estimate) -> str:
    found = describe(estimate)
    if estimate.value is None:
        return numbers.MISSING
    if found.lower_bound:
        level = f"{numbers.percent(estimate.confidence, toward='down')} confidence, {estimate.adjacency}"
        return _certified(estimate, level, none="at least 0")
    if found.level:
        return f"{numbers.number(estimate.value)}, {found.level}"
    return f"{numbers.number(estimate.value)} ({estimate.adjacency}), about {ABOUT[estimate.subject]}; {_bootstrapped(estimate)}"


def _of_runs(estimate: Estimate) -> str:
    if estimate.value is None:
        return numbers.MISSING
    level = f"{numbers.percent(estimate.confidence, toward='down')} {describe(estimate).level}"
    return _certified(estimate, level, none="no evidence")


def _certified(estimate: Estimate, level: str, *, none: str) -> str:
    ceiling = numbers.number(estimate.details["ceiling"], toward="down")
    found = f"at least {numbers.number(estimate.value, toward='down')}" if estimate.value else none
    return f"{found} ({level}; ceiling {ceiling}), about {ABOUT[estimate.subject]}"


def _bootstrapped(estimate: Estimate) -> str:
    bootstrap = estimate.details.get("bootstrap") or {}
    if bootstrap.get("lower") is not None:
        level = numbers.percent(bootstrap.get("confidence", _LEVEL), toward="down")
        return f"point estimate; bootstrap over models: at least {numbers.number(bootstrap['lower'], toward='down')} ({level})"
    reason = bootstrap.get("lower_reason")
    return f"point estimate, no interval: {reason}" if reason else "point estimate"


def counted(result: RunsDocument) -> str:
    """Return what was counted, in sentences."""
    data = result.data
    first, second = data["judged"]
    about = f"delta {numbers.given(data['delta'])}, {data['adjacency']}"
    judged = f"{first:,} runs with the canary and {second:,} without are judged, {about}."
    if data["threshold"] is None:
        return f"{judged} The thresholds are at ranks fixed in advance."
    chosen = "fixed in advance"
    if data["chosen_on"] is not None:
        chosen = "chosen on {:,} other runs with it and {:,} without".format(*data["chosen_on"])
    # Scores that are larger with the canary were negated when they were read, and so is the threshold.
    higher = bool(data.get("higher_is_member"))
    side = "least" if higher else "most"
    threshold = -data["threshold"] if higher else data["threshold"]
    return (
        f"{judged} {data['true_positives']:,} with it and {data['false_positives']:,} without have a score of at {side}"
        f" {numbers.number(threshold)}, a threshold {chosen}."
    )


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


def comparison_text(comparison: "ComparedAudits", *, width: int = 100, color: bool = False) -> str:
    """Return a comparison as lines of text.

    Args:
        comparison: What to show.
        width: Columns of the terminal.
        color: Whether to add colour codes.
    """
    from rich.text import Text

    shown = context_comparison(comparison, command_line=True)

    def draw(console: "Console") -> None:
        sign = shown["sign"]
        console.print(Text(f"{sign['symbol']} {sign['word']}", style=_TONES[sign["tone"]]))
        for words in (*shown["changes"], shown["compared"], shown["frontier"], *shown["warnings"]):
            console.print(Text(numbers.clean(words)))
        console.print()
        console.print(_audits(shown))
        if shown["shared"]:
            console.print(Text(shown["shared"]))
        if shown["several_instances"]:
            console.print(_strategies(shown))
        for name, reason in shown["left_out"]:
            console.print(Text(numbers.clean(f"Not in the landscape: {name}: {reason}")))
        for note in shown["notes"][: 2 if shown["bounds_what"] else 1]:
            console.print(Text(note))
        for hint in shown["hints"]:
            console.print(Text(hint))

    return _printed(draw, width=width, color=color)


def _comparison_rows(*columns: tuple[str, bool]) -> "Table":
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for title, numeric in columns:
        table.add_column(title, justify="right" if numeric else "left", no_wrap=numeric)
    return table


def _add(table: "Table", *cells: str) -> None:
    from rich.text import Text

    table.add_row(*(Text(numbers.clean(cell)) for cell in cells))


def _audits(shown: dict[str, Any]) -> "Table":
    measure = numbers.clean(shown["measure"])
    table = _comparison_rows(
        ("Audit", False),
        ("Strategy", False),
        ("Utility", True),
        (measure, True),
        ("Interval", False),
        ("Verdict", False),
    )
    verdicts = {row["name"]["number"]: row["verdict"]["word"] for row in shown["bounds"]}
    for row in shown["audits"]:
        name = row["name"]
        _add(
            table,
            f"{name['number']}. {name['title']}",
            row["strategy"]["text"],
            row["utility"]["text"],
            row["measure"]["text"],
            "; ".join(row["measure"]["notes"]),
            verdicts[name["number"]],
        )
    return table


def _strategies(shown: dict[str, Any]) -> "Table":
    utility = numbers.clean(shown["utility"])
    names = (
        ("Strategy", False),
        ("Mean bound" if shown["bounds_what"] else "Mean", True),
        ("Range", False),
        (f"Mean {utility}", True),
        ("Range", False),
    )
    table = _comparison_rows(*names, ("Models", True), *([("Frontier", False)] if shown["ranked"] else []))
    for row in shown["strategies"]:
        ranges = ["; ".join(row[axis]["notes"]) for axis in ("measure", "utility")]
        _add(
            table,
            f"{row['number']}. {row['name']}",
            row["measure"]["text"],
            ranges[0],
            row["utility"]["text"],
            ranges[1],
            row["models"]["text"],
            *([row["frontier"]["text"]] if shown["ranked"] else []),
        )
    return table


# --- What a training description promises, as a table for the terminal and as JSON ---


_ABOUT = {
    Adjacency.ADD_REMOVE: "One record added or removed (add-remove)",
    Adjacency.REPLACE_ONE: "One record replaced (replace-one): a training record against a fresh one",
}
_NEAR_ONE = 0.999
_AT = re.compile(r"(.*)_at_(fpr|prior)\.(.*)")


def to_json(
    description: DPSGD,
    claims: Sequence[Claim],
    *,
    delta: float | None = None,
    prior: float = 0.5,
    sentences: Sequence[str] = (),
) -> str:
    """Return the description and its claims as JSON text.

    Args:
        description: The training run; one that differs from step to step is told by its kinds of steps.
        claims: What it promises.
        delta: The delta that was asked for.
        prior: The prior that the success rates are for.
        sentences: The claims in words.

    >>> '"steps": 10' in to_json(DPSGD(noise_multiplier=1.0, sampling_rate=0.1, steps=10), [])
    True
    """
    found: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "description": _described(description),
        "delta": delta,
        "prior": prior,
        "claims": [{**vars(claim), "status": claim.status} for claim in claims],
        "in_words": list(sentences),
    }
    return json.dumps(plain(found), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def found_to_json(found: "FoundParameter") -> str:
    """Return a parameter that was found for a promise as JSON text."""
    content: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "name": found.name,
        "value": found.value,
        "wanted": found.target.in_words(),
        "description": _described(found.training),
        "promise": {**vars(found.promise), "status": found.promise.status},
        "exact": None if found.exact is None else {**vars(found.exact), "status": found.exact.status},
    }
    return json.dumps(plain(content), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _described(description: DPSGD) -> dict[str, Any]:
    """The run as JSON-like values; a parameter that differs from step to step is null and stands in the phases."""
    names = ("noise_multiplier", "sampling_rate", "clipping_norm")
    values = {name: getattr(description, name) for name in names}
    return {
        "type": type(description).__name__,
        **{name: None if isinstance(value, tuple) else value for name, value in values.items()},
        "steps": description.steps,
        "sampling": "fixed-size" if description.fixed_size else "poisson",
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
        for title, rows in (("", claims), ("Other methods. ", more)):
            for adjacency in dict.fromkeys(claim.adjacency for claim in rows):
                console.print()
                ours = [claim for claim in rows if claim.adjacency is adjacency]
                _print_table(console, ours, notes, title=title + _ABOUT[adjacency])
        for index, note in enumerate(notes, start=1):
            console.print(f"({index}) {note}", markup=False)
        if sentences:
            console.print(f"\nIn words. {sentences[0]}", markup=False)
            for sentence in sentences[1:]:
                console.print(f"- {sentence}", markup=False)

    return _printed(draw, width=width, color=color).removesuffix("\n")


def _print_table(console: "Console", claims: Sequence[Claim], notes: list[str], *, title: str) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    if all(claim.value is None for claim in claims):
        console.print(f"{title}: {min((claim.note for claim in claims), key=len)}", markup=False)
        return
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    table.add_column("Quantity")
    table.add_column("Value", justify="right", no_wrap=True)
    table.add_column("Status", no_wrap=True)
    table.add_column("Method")
    for claim in claims:
        status = "not available" if claim.value is None else claim.status
        cells = (_name(claim), _value(claim) + _mark(notes, claim.note), status, claim.method)
        table.add_row(*(Text(cell) for cell in cells))
    console.print(table)


def _name(claim: Claim) -> str:
    at = _AT.fullmatch(claim.metric)
    if claim.metric == "epsilon" and claim.delta is not None:
        return f"Epsilon at delta {given(claim.delta)}"
    if at is None:
        return _short(claim.metric)
    what, kind, where = at.groups()
    if kind == "prior":
        return f"{_short(what)} at prior {where}"
    return f"TPR at {percent(float(where))} FPR" if what == "tpr" else claim.metric


def _short(name: str) -> str:
    return metric(name).short or metric(name).title


def _value(claim: Claim) -> str:
    # A bound stays one when it is rounded.
    toward = ("down" if claim.metric == "bayes_security" else "up") if claim.proven else "nearest"
    digits = 4
    if claim.value is not None and _NEAR_ONE < claim.value < 1:
        digits = min(15, 2 - math.floor(math.log10(1 - claim.value)))  # two digits of what is missing to 1
    shown = number(claim.value, digits=digits, toward=toward)
    if claim.lower is None or claim.upper is None or claim.confidence is None:
        return shown
    interval = f"[{number(claim.lower, digits=4)}, {number(claim.upper, digits=4)}]"
    return f"{shown} {interval} ({percent(claim.confidence)})"


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
    result: AuditDocument, *, width: int = 100, color: bool = False, gates: Sequence["GateOutcome"] = ()
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
            for line in _paragraphs(shown):
                console.print(line)
        else:
            console.print(_table(shown))
        for line in _last(shown):
            console.print(line)

    return _printed(draw, width=width, color=color)


def _first(shown: View, gates: Sequence["GateOutcome"]) -> Iterator["Text"]:
    """The model, the gates that stop the pipeline, what was found, and the verdict on the claim."""
    from rich.text import Text

    if shown.is_named:
        yield Text(numbers.clean(f"Privacy audit: {shown.model}"), style="bold")
    stopped = gates_first(gates)
    if stopped:
        yield Text(f"✕ {stopped}", style=_TONES["bad"])
    for sign, sentence in shown.opening:
        yield Text(f"{sign.symbol} {sign.word}", style=_TONES[sign.tone])
        yield Text(numbers.clean(sentence))


def _last(shown: View) -> Iterator["Text"]:
    """What to know of single numbers, the checks that are not fine, and what a file set."""
    from rich.text import Text

    for row in (row for group in shown.groups for row in group["rows"] if row["reason"]):
        yield Text(numbers.clean(f"{row['title']}: {row['reason']}"), style="dim")
    for check in shown.checks:
        if check.status is Status.OK:
            continue
        line = Text(f"{check.sign.symbol} {check.sign.word}", style=_TONES[check.sign.tone])
        yield line.append(numbers.clean(f" {check.title}: {check.message}"), style="not bold default")
    settings = settings_sentence(shown.result)
    if settings:
        yield Text(numbers.clean(f"Settings: {settings}"), style="dim")


def _rows(shown: View) -> Iterator[tuple[dict[str, str], str]]:
    """Each number with what it is about."""
    for group in shown.groups:
        for row in group["rows"]:
            yield row, group["heading"].removeprefix("About ")


def _paragraphs(shown: View) -> Iterator["Text"]:
    from rich.text import Text

    for row, about in _rows(shown):
        parts = [
            row["interval"] if row["interval"] != row["value"] else "",
            f"confidence {row['confidence']}" if row["confidence"][:1].isdigit() else row["confidence"],
            row["limit"],
            "" if row["delta"] == numbers.MISSING else f"delta {row['delta']}",
            f"about {about}",
        ]
        told = ", ".join(part for part in parts if part not in {"", numbers.MISSING})
        line = Text(numbers.clean(f"{row['title']}: {row['value']}"), style="bold")
        yield line.append(numbers.clean(f" ({told})"), style="not bold default")
    yield Text("")


def _table(shown: View) -> "Table":
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("Quantity", min_width=13)
    table.add_column("Value", justify="right", no_wrap=True)
    table.add_column("Interval")
    table.add_column("Confidence")
    table.add_column("Ceiling", justify="right", no_wrap=True)
    table.add_column("Delta", justify="right", no_wrap=True)
    table.add_column("About", no_wrap=True, min_width=8)
    for row, about in _rows(shown):
        ceiling = row["limit"].removeprefix("ceiling ")
        short = about.removeprefix("the ").removeprefix("this ").removesuffix(" algorithm")
        cells = (row["title"], row["value"], row["interval"], row["confidence"], ceiling, row["delta"], short)
        table.add_row(*(Text(numbers.clean(cell)) for cell in cells))
    return table
