"""One audit as every output shows it: what was found, the verdict, the number that leads, its rows and its checks.

Page, terminal, Markdown, card, JUnit and SARIF are written from the same `View`, and nothing in it is worked out twice.
Every text in it is plain and may hold anything: whoever writes it out escapes it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from auditor.checks.registry import CHECKS
from auditor.core import numbers
from auditor.core.registry import Role
from auditor.core.values import Check, Estimate, Status, Subject
from auditor.report import findings
from auditor.report.findings import Headline, Statement
from auditor.results import metrics, rows
from auditor.results.document import AuditDocument, find
from auditor.results.metrics import Sign
from auditor.results.rows import Units
from auditor.verdicts.gates import ExitCode, GateOutcome
from auditor.verdicts.judging import failed_validity

_MOST = 8  # numbers, where a result has none of the main ones
_WORST_FIRST = (Status.FAIL, Status.WARN, Status.UNKNOWN, Status.OK)


@dataclass(frozen=True)
class NumberLine:
    """One number as strings: what it is, its value, its interval with the confidence, and what it is about."""

    name: str
    title: str
    value: str
    interval: str
    about: str
    delta: str

    @classmethod
    def of(cls, item: Estimate) -> "NumberLine":
        """Return an estimate as strings."""
        reason = numbers.tidy(item.reason or "no reason was given")
        return cls(
            name=item.name,
            title=metrics.describe(item).title,
            value=rows.value(item),
            interval=f"no value: {reason}" if item.value is None else rows.interval_words(item),
            about=metrics.ABOUT[item.subject] + (f" ({item.adjacency})" if item.adjacency else ""),
            delta=numbers.given(item.delta),
        )


@dataclass(frozen=True)
class CheckLine:
    """One check as strings: its name, the question it asks, how it came out, and what to do."""

    name: str
    title: str
    question: str
    status: Status
    sign: Sign
    message: str
    advice: str

    @classmethod
    def of(cls, item: Check, data: Mapping[str, Any]) -> "CheckLine":
        """Return a check of an audit of these data."""
        spec = CHECKS.get(item.name)
        return cls(
            name=item.name,
            title=metrics.check_title(item.name),
            question="" if spec is None else spec.title,
            status=item.status,
            sign=metrics.STATUS[item.status],
            message=numbers.sentence(item.message),
            advice=metrics.advice(item, data),
        )

    @property
    def rank(self) -> int:
        """Its place in the order in which a reader should look."""
        return _WORST_FIRST.index(self.status)


@dataclass(frozen=True, eq=False)
class View:
    """An audit in the words that every output shows, each made when first asked for.

    Attributes:
        result: What the audit found.
    """

    result: AuditDocument

    @cached_property
    def model(self) -> str:
        """Name of the model."""
        return str(self.result.data["model"]) if self.is_named else "Unnamed model"

    @property
    def is_named(self) -> bool:
        """Whether the model was given a name."""
        return bool(str(self.result.data.get("model") or "").strip())

    @cached_property
    def units(self) -> Units:
        """What one unit of the audit is called."""
        return rows.units(self.result.data)

    @cached_property
    def invalid(self) -> bool:
        """Whether a validity check failed, so that no number measures leakage."""
        return bool(failed_validity(self.result.checks))

    @cached_property
    def finding(self) -> Statement:
        """What was found."""
        return findings.finding(self.result)

    @cached_property
    def verdict(self) -> Statement:
        """What became of the claim."""
        return Statement(metrics.VERDICT[self.result.verdict], findings.verdict_sentence(self.result))

    @property
    def opening(self) -> tuple[Statement, Statement]:
        """What every output says first: the finding and the verdict, that one first where there is a claim."""
        claimed = self.result.claims or self.result.comparisons or self.result.data.get("claim")
        return (self.verdict, self.finding) if claimed else (self.finding, self.verdict)

    @cached_property
    def headline(self) -> Headline:
        """Which number leads, and why."""
        return findings.headline(self.result)

    @cached_property
    def checks(self) -> tuple[CheckLine, ...]:
        """All checks, in the order of the result."""
        return tuple(CheckLine.of(item, self.result.data) for item in self.result.checks)

    @cached_property
    def to_read(self) -> tuple[CheckLine, ...]:
        """The checks that failed or warn, failures first."""
        loud = (item for item in self.checks if item.status in (Status.FAIL, Status.WARN))
        return tuple(sorted(loud, key=lambda item: item.rank))

    @cached_property
    def groups(self) -> tuple[dict[str, Any], ...]:
        """Every number as a row of a table, those about this model and those about the training algorithm apart."""
        found = []
        for subject, note in _SUBJECTS.items():
            shown = [rows.row(item) for item in self.result.estimates if item.subject is subject]
            if shown:
                found.append({"heading": f"About {metrics.ABOUT[subject]}", "note": note, "rows": shown})
        return tuple(found)

    @cached_property
    def tiles(self) -> tuple[dict[str, str], ...]:
        """The large numbers at the top of a page, the one that leads first."""
        lead = self.headline.estimate
        found = [find(self.result, item.name) for item in metrics.METRICS if item.tile]
        shown = [item for item in found if item is not None and item is not lead and self._tells(item)]
        first = dict.fromkeys(("note", "term", "about"), "") | {"label": "Headline", "value": numbers.MISSING}
        return (first if lead is None else self._tile(lead), *map(self._tile, shown))

    def _tile(self, estimate: Estimate) -> dict[str, str]:
        """The tile of an estimate, which certifies nothing about leakage where a validity check failed."""
        return rows.tile(estimate) | ({"note": "a validity check failed"} if self.invalid else {})

    @cached_property
    def numbers(self) -> tuple[NumberLine, ...]:
        """The few numbers of a summary, the one that leads first."""
        estimates, lead = self.result.estimates, self.headline.estimate
        rates = [(metrics.rate_of(item), item) for item in estimates if item.lower is not None]
        known = [(rate, item) for rate, item in rates if rate is not None]
        finest = min(known, key=lambda pair: pair[0], default=(None, None))[1]
        judged = bool(self.result.claims or self.result.comparisons)
        chosen = [
            item
            for item in estimates
            if (metrics.metric(item.name).main or item is finest) and (judged or self._tells(item))
        ]
        ordered = sorted(chosen or estimates[:_MOST], key=lambda item: item is not lead)
        return tuple(map(NumberLine.of, ordered))

    @staticmethod
    def _tells(item: Estimate) -> bool:
        """Whether a number has something to say: the bound on the algorithm only where it has a value."""
        return item.value is not None or metrics.metric(item.name).role is not Role.JUDGE

    @cached_property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """Where the numbers come from: records, delta, confidence, input, release."""
        data, origin = self.result.data, self.result.provenance
        versions = origin.get("versions") or {}
        found = (
            ("Training records scored", numbers.count(data.get("n_member"))),
            ("Other records scored", numbers.count(data.get("n_nonmember"))),
            ("Counted as one unit", data.get("unit")),
            ("How membership was decided", data.get("split")),
            ("Delta", numbers.given(data.get("delta"))),
            ("Confidence", numbers.percent(data.get("confidence"))),
            ("Claim", None if data.get("claim") is None else numbers.tidy(data["claim"])),
            ("Source", origin.get("source")),
            ("Input SHA-256", origin.get("input_sha256")),
            ("Created", origin.get("created")),
            ("Release of auditor", versions.get("privacy-auditor") or versions.get("auditor")),
        )
        return tuple(
            (title, str(value)) for title, value in found if value not in (None, "", numbers.MISSING)
        )


_SUBJECTS = {
    Subject.MODEL: "How far this model's losses on its training records differ from its losses on others.",
    Subject.MECHANISM: "What the way of training gives away about any one record: what a claimed epsilon promises.",
}


@lru_cache(maxsize=8)
def view_of(result: AuditDocument) -> View:
    """Return what every output shows of an audit; the outputs of one audit share it."""
    return View(result)


def gates_first(outcomes: Sequence[GateOutcome]) -> str:
    """Return how many gates stopped the pipeline, for the first lines of an output; nothing where all passed.

    >>> gates_first([])
    ''
    """
    failed = sum(item.code is ExitCode.FAILED for item in outcomes)
    undecided = sum(not item.passed for item in outcomes) - failed
    if not failed + undecided:
        return ""
    many = len(outcomes)
    one = failed + undecided == 1
    which = (
        "The gate stops" if many == 1 else f"{failed + undecided} of {many} gates stop{'s' if one else ''}"
    )
    kinds = {"failed": failed, "could not be evaluated": undecided}
    told = [f"{'it' if one else count} {words}" for words, count in kinds.items() if count]
    return f"{which} the pipeline: {' and '.join(told)}."
