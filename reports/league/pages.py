"""The league as a page of Markdown."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from counting import by_law, interval
from laws import LAWS

_HEAD = """# League of auditors

Every auditor gets the same scores, drawn from laws whose true epsilon at delta {delta} is known in closed form (`laws.py`),
and gives one number at 95% confidence. `python reports/league/run.py` wrote this page, `league.csv` and the two figures.

* A size is the number of members, and of non-members (a tenth of them under "unequal sizes"). An auditor of one run with fair
  coins gets twice as many coins.
* The truth is the smallest epsilon for which the law of members and that of non-members are indistinguishable in both
  directions, by any event. It is the same for the two subjects: the model, whose records have these scores, and the
  mechanism that gives a record a score of one law or the other (add/remove).
* "Above" counts numbers above the truth, at the delta of the number: for a bound at 95% confidence at most 5% are expected.
  The row says where the number is the largest of several such bounds, which promise this each by itself. Intervals are exact binomial, 95%.
* "Share" is the mean number over the truth, and the mean number itself under noise, where the truth is 0.
* CPU is processor time a number, with what is computed once in a process; it is comparable on one machine only.
* A dash: the law is outside what the number is for (an auditor by fair coins under "unequal sizes" and "clustered records").
  Under "clustered records" each person has ten rows with one score; auditors that take people's ids get them.
* Peers run in an environment of their own, with their defaults or the method that their row names. A point estimate promises
  no error rate.

![For each auditor the share of numbers above the truth, under noise and under the law with the most](violations.png)

![The mean number over the truth, by auditor and law](tightness.png)
"""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], *, words: int) -> str:
    """A table whose first columns are words and whose others are numbers."""
    lines = (head, ["---" if place < words else "---:" for place in range(len(head))], *rows)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _percent(count: int, draws: int) -> str:
    """A rate with its exact interval, in percent."""
    low, high = interval(count, draws)
    return f"{100 * count / draws:.1f} ({100 * low:.1f} to {100 * high:.1f})"


def _cell(row: Any) -> str:
    """Share, and the numbers above the truth of all draws."""
    if row is None:
        return "-"
    if row.draws == 0:
        return "refused"
    return f"{row.mean if math.isnan(row.share) else row.share:.2f}; {row.above}/{row.draws}"


def _overall(rows: Sequence[Any], sizes: Sequence[int]) -> list[str]:
    """All laws of an auditor: numbers, those above under noise and under the law with the most, and CPU by size."""
    counts = by_law(rows)
    most = next(iter(counts))
    times = [[row.cpu for row in rows if row.size == size] for size in sizes]
    return [
        f"{sum(row.draws for row in rows):,}",
        _percent(*counts["noise"]) if "noise" in counts else "-",
        f"{_percent(*counts[most])}, {most}",
        *(f"{sum(some) / len(some):.3g}" for some in times),
    ]


def page(
    found: Sequence[tuple[Any, Sequence[Any], dict[str, str]]],
    rows: Sequence[Any],
    *,
    delta: float,
    sizes: Sequence[int],
) -> str:
    """The whole page."""
    parts = [_HEAD.format(delta=f"{delta:g}".replace("e-0", "e-")), "## Auditors\n"]
    ran = [(adapter, some, versions) for adapter, some, versions in found if some]
    about = [
        (
            *(adapter.name, ", ".join(f"{name} {version}" for name, version in versions.items())),
            *(adapter.subject, "point estimate" if adapter.estimate else "bound"),
            f"{adapter.claims} \u201c{adapter.quote}\u201d (`{adapter.source}`)",
        )
        for adapter, _, versions in ran
    ]
    parts += [_table(("auditor", "versions", "subject", "kind", "claim"), about, words=5)]
    parts += [f"\nNot run: {adapter.name}. {adapter.not_run}" for adapter, some, _ in found if not some]
    parts += ["\n## Numbers above the truth\n", "Percent of all draws at all sizes; CPU in seconds.\n"]
    head = ("auditor", "kind", "numbers", "above under noise", "above under the law with the most")
    overall = [
        (adapter.name, "estimate" if adapter.estimate else "bound", *_overall(some, sizes))
        for adapter, some, _ in ran
    ]
    parts += [_table((*head, *(f"CPU, {size:,}" for size in sizes)), overall, words=2)]
    for size in sizes:
        cells = {(row.auditor, row.law): row for row in rows if row.size == size}
        lines = [
            (adapter.name, *(_cell(cells.get((adapter.name, law.name))) for law in LAWS))
            for adapter, _, _ in ran
        ]
        truth = ("truth", *(f"{law.epsilon(delta):.3f}" for law in LAWS))
        parts += [f"\n## {size:,} records\n", "Share; numbers above the truth of all draws.\n"]
        parts += [_table(("auditor", *(law.name for law in LAWS)), (truth, *lines), words=1)]
    return "\n".join(parts) + "\n"
