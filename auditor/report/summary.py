"""A result in the few lines that fit into a pull request, a notebook or a build server: what each of those shows."""

from dataclasses import dataclass

from auditor.report import formatting, labels, rows, trust
from auditor.report.formatting import clean
from auditor.report.known import known
from auditor.report.lookup import CERTIFIED, MIXTURE, ONE_RUN, STAR, dig
from auditor.report.opening import Opening, openings
from auditor.report.wording import headline, meaning, verdict_sentence
from auditor.result import AuditResult
from auditor.values import Check, Estimate, Status

__all__ = ["CheckLine", "Number", "Summary", "number", "summary", "told"]

_MAIN = (CERTIFIED, ONE_RUN, STAR, MIXTURE, "advantage", "bayes_security", "auc")
_LONGEST = 2000  # characters of one text: a name of a megabyte is no name
_MOST = 8  # rows, where a result has none of the usual names


def told(text: object, *, longest: int = _LONGEST) -> str:
    r"""Return a text that may be foreign with every sign visible that deceives, and cut where nobody reads on.

    >>> told("a\x00b"), told("abcdef", longest=3)
    ('a⟨U+0000⟩b', 'abc…')
    """
    words = str(text)
    return clean(words if len(words) <= longest else f"{words[:longest]}…")


@dataclass(frozen=True)
class Number:
    """One number as strings: what it is, its value, its interval with the confidence, and what it is about."""

    name: str
    title: str
    value: str
    interval: str
    about: str
    delta: str


@dataclass(frozen=True)
class CheckLine:
    """One check as strings."""

    name: str
    title: str
    status: Status
    word: str
    message: str
    advice: str


@dataclass(frozen=True)
class Summary:
    """A result in a few lines.

    Attributes:
        model: Name of the model.
        verdict: On the claim, as a word with a symbol and a tone.
        sentence: The verdict in a sentence.
        meaning: What was found, in a sentence.
        opening: Both with their signs, the one that leads first: the claim's where there is one.
        lead: Which number leads, and why.
        numbers: The main numbers, the leading one first.
        checks: All checks.
        facts: Where the numbers come from: records, delta, confidence, input, release.
    """

    model: str
    verdict: labels.Sign
    sentence: str
    meaning: str
    opening: tuple[Opening, ...]
    lead: str
    numbers: tuple[Number, ...]
    checks: tuple[CheckLine, ...]
    facts: tuple[tuple[str, str], ...]

    @property
    def to_read(self) -> tuple[CheckLine, ...]:
        """The checks that failed or warn, failures first."""
        order = (Status.FAIL, Status.WARN)
        return tuple(item for status in order for item in self.checks if item.status is status)


def summary(result: AuditResult) -> Summary:
    """Return a result in a few lines; every text in it is plain and may hold anything."""
    result = known(result)
    lead = headline(result)
    name = result.data.get("model")
    return Summary(
        model=str(name) if name is not None and str(name).strip() else "Unnamed model",
        verdict=labels.VERDICT[result.verdict],
        sentence=verdict_sentence(result),
        meaning=meaning(result),
        opening=openings(result),
        lead=lead.sentence,
        numbers=tuple(number(item) for item in _main(result, lead.estimate)),
        checks=tuple(_check(item, result) for item in result.checks),
        facts=_facts(result),
    )


def _main(result: AuditResult, lead: Estimate | None) -> list[Estimate]:
    """The numbers that decide: the leading one first; the bound on the algorithm only where it has something to say."""
    rates = [item for item in result.estimates if labels.rate_of(item) is not None and item.lower is not None]
    finest = min(rates, key=lambda item: labels.rate_of(item) or 0.0, default=None)
    judged = bool(result.claims or result.comparisons)
    chosen = [
        item
        for item in result.estimates
        if (item.name in _MAIN or item is finest)
        and (item.name != ONE_RUN or item.value is not None or judged)
    ]
    ordered = sorted(chosen or result.estimates[:_MOST], key=lambda item: item is not lead)
    return ordered[: max(_MOST, len(chosen))]


def number(item: Estimate) -> Number:
    """Return an estimate as strings."""
    none = item.value is None
    return Number(
        name=item.name,
        title=labels.describe(item).title,
        value=rows.value(item),
        interval=f"no value: {formatting.tidy(item.reason or 'no reason was given')}"
        if none
        else rows.interval_words(item),
        about=labels.ABOUT[item.subject] + (f" ({item.adjacency})" if item.adjacency else ""),
        delta=formatting.given(item.delta),
    )


def _check(item: Check, result: AuditResult) -> CheckLine:
    shown = trust.check(item, result.data)
    return CheckLine(
        name=item.name,
        title=shown["title"],
        status=item.status,
        word=labels.STATUS[item.status].word,
        message=shown["message"],
        advice=shown["advice"],
    )


def _facts(result: AuditResult) -> tuple[tuple[str, str], ...]:
    data, origin = result.data, result.provenance
    versions = origin.get("versions")
    release = dig(versions, "privacy-auditor") or dig(versions, "auditor")
    found = (
        ("Training records scored", formatting.count(data.get("n_member"))),
        ("Other records scored", formatting.count(data.get("n_nonmember"))),
        ("Counted as one unit", data.get("unit")),
        ("How membership was decided", data.get("split")),
        ("Delta", formatting.given(data.get("delta"))),
        ("Confidence", formatting.percent(data.get("confidence"))),
        ("Claim", None if data.get("claim") is None else formatting.tidy(data["claim"])),
        ("Source", origin.get("source")),
        ("Input SHA-256", origin.get("input_sha256")),
        ("Created", origin.get("created")),
        ("Release of auditor", release),
    )
    return tuple((title, str(value)) for title, value in found if value not in (None, "", formatting.MISSING))
