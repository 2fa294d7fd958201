"""The view of an audit behind every output: decision, finding, verdict, leading number, rows and checks.

Page, terminal, Markdown, card, JUnit and SARIF are written from the same `View`. Its texts are plain and may hold
anything: every writer escapes them.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, ClassVar

from auditor.core import numbers
from auditor.core.facts import Decision, Severity
from auditor.core.options import Disclosure
from auditor.core.registry import Role, entries
from auditor.core.values import Comparison, Estimate, LossScale, OutputPolicy, Status, Subject, Verdict
from auditor.curves.cells import FEWEST
from auditor.estimators.adaptive import ADAPTIVE
from auditor.report import findings
from auditor.report.decision import COIN, SIGNS as DECISION, Bar, Picture, decision_sentence, label_words
from auditor.report.findings import Headline, Statement
from auditor.report.released import Copies, carried_in, copies_in
from auditor.report.rows import (
    CheckLine,
    ClaimLine,
    PolicyRow,
    Row,
    ScoreRow,
    condition,
    extraction_rows,
    policy_rows,
    score_rows,
)
from auditor.report.words import (
    CARRIED,
    RELEASED,
    VERDICT,
    Sign,
    Units,
    is_table,
    pair_words,
    unit_words,
    units,
    worded,
)
from auditor.results import metrics
from auditor.results.document import (
    CONTENT_HASH,
    Document,
    Slice,
    SliceKind,
    TopRecord,
    detail,
    find,
    shown_by,
)
from auditor.risk.slices import stands_out
from auditor.verdicts.gates import GateOutcome
from auditor.verdicts.judging import failed_validity
from auditor.verdicts.limits import decision, outcomes
from auditor.verdicts.severities import lower_limits, points_of, severity

_TILES = 2
_BRIEF = 3  # numbers
_FIRST = ("auc", "advantage", metrics.named(Role.CERTIFIED))
_MOST = 8  # numbers, where a result has none of the main ones
_MOST_EXPOSED = 100  # records that a reader looks through


@cache
def texts(name: str) -> Mapping[str, Any]:
    """Return the tables of ``texts/NAME.toml`` by their keys, in their order."""
    return MappingProxyType(entries("auditor.report", f"texts/{name}.toml"))


_NOT_STATED = "not stated"
_ROUNDING = 1e-9  # of 0.62 * 100
_IN_GROUP = Sign("Leakage", "!", "caution")  # of whatever size
_INSIDERS = Sign("For insiders only", "!", "caution")


@dataclass(frozen=True, eq=False)
class View:
    """An audit in the words that every output shows, computed on first access.

    Attributes:
        result: The result of the audit.
    """

    result: Any

    @cached_property
    def model(self) -> str:
        """Name of the model."""
        return " ".join(str(self.result.data.get("model") or "").split()) or f"Unnamed {self.subject}"

    @property
    def heading(self) -> str:
        """The title of every output."""
        return f"Privacy audit: {self.model}"

    @property
    def is_named(self) -> bool:
        """Whether the model was given a name."""
        return bool(str(self.result.data.get("model") or "").strip())

    @property
    def subject(self) -> str:
        """The noun for what was audited: a model or a synthetic table."""
        return self.worded("model")

    def worded(self, text: str) -> str:
        """Return words about a model as words about what was audited; see `auditor.report.words.worded`."""
        return worded(text, self.result.data)

    @cached_property
    def copies(self) -> Copies | None:
        """The copies in a synthetic table; None if none was audited."""
        return copies_in(self.result.data)

    @property
    def released(self) -> str:
        """The copies in a synthetic table and the usual distance test, or the secrets extracted, on one line; else empty."""
        return self.copies.line if self.copies else self.extracted

    @property
    def extracted(self) -> str:
        """A sentence on the secrets that sampling writes; empty if the losses are not of secrets."""
        words = extraction_rows(self.result)
        middle = words[len(words) // 2] if words else None
        level = numbers.percent(self.result.data.get("confidence"), toward="down")
        return str(RELEASED["extraction"]["line"]).format(row=middle, level=level) if middle else ""

    @cached_property
    def file(self) -> tuple[str, str]:
        """Whether the file of a model carries records, or only leaves with few of them, and the parts that do; else empty."""
        return carried_in(self.result.data)

    @cached_property
    def carried(self) -> Statement | None:
        """The training records in the file of a model, whatever its losses show; None if none were found."""
        kind, parts = self.file
        return Statement(CARRIED[kind], f"{RELEASED['file']['lead'][kind]} {parts}.") if kind else None

    @property
    def audience(self) -> str:
        """The restriction of a result to some readers; empty if there is none."""
        if self.result.data.get("disclosure") != Disclosure.INSIDERS:
            names = getattr(self.result, "top_records", ())
            return "It names records by id: share it with the data owner only." if names else ""
        return findings.said("insiders")

    @property
    def is_small(self) -> bool:
        """Whether a group has too few records for a shared result to show their distribution."""
        sizes = [self.result.data.get(name) or math.inf for name in ("n_member", "n_nonmember")]
        return bool(self.result.data.get("disclosure") == Disclosure.PUBLIC and min(sizes) < FEWEST)

    @cached_property
    def units(self) -> Units:
        """The words for the unit of the audit."""
        return units(self.result.data)

    @cached_property
    def invalid(self) -> bool:
        """Whether a validity check failed, so that no number measures leakage."""
        return bool(failed_validity(self.result.checks))

    evidence: ClassVar[Any] = None  # against a claim, of runs

    @cached_property
    def outcomes(self) -> tuple[GateOutcome, ...]:
        """The outcome of each limit, and what stops a release without any."""
        return tuple(replace(item, reason=self.worded(item.reason)) for item in outcomes(self.result))

    @cached_property
    def decided(self) -> Decision | None:
        """The decision on a release; None if no limit was set and nothing stops it."""
        return decision(self.result, self.outcomes)

    @cached_property
    def decision(self) -> Statement:
        """The decision with its reason: the first line of every output."""
        sentence = decision_sentence(self.result, self.decided, self.outcomes)
        return Statement(DECISION[self.decided], sentence)

    @cached_property
    def finding(self) -> Statement:
        """The finding for all records, or for the group that stands out if all records together show nothing."""
        whole = findings.finding(self.result)
        whole = whole._replace(sentence=self.worded(whole.sentence))
        state = findings.states(self.result, whole)[-1]
        group = self._group_leads
        if state not in ("leak", "nothing", "small") or (state != "leak" and not group):
            return whole
        size = self.severity_of(whole._replace(sign=_IN_GROUP)) if self.result.kind is None else None
        all_records = f"Over all {self.units.many}: {whole.sentence[:1].lower()}{whole.sentence[1:]}"
        sentence = f"{self.most_exposed} {all_records}" if group else whole.sentence
        return Statement(whole.sign if size is None else size.sign, sentence)

    @property
    def _group_leads(self) -> bool:
        """Whether the group that stands out is shown to leak more than all records together."""
        return self.stands_out is not None and exposure(self.stands_out) > self._low

    @cached_property
    def severity(self) -> Bar | None:
        """The size of the leak in words, with its place on a scale; None if no number measures leakage."""
        return self.severity_of(self.finding)

    def severity_of(self, finding: Statement) -> Bar | None:
        """Return the severity of a finding, with the cut points."""
        state = findings.states(self.result, finding)[-1]
        size = severity(self.result, leaks=state == "leak")
        if size is None or state in ("small", "blind", "reversed"):
            return None
        level, low, group = size
        if self.carried is not None and level is Severity.NONE:  # the file shows more than the losses
            return None
        return Bar(level, low, points_of(self.result.data), group)

    @cached_property
    def verdict(self) -> Statement:
        """The verdict on the claim."""
        return Statement(VERDICT[self.result.verdict], self.worded(findings.verdict_sentence(self.result)))

    @property
    def is_refuted(self) -> bool:
        """Whether the decision is that the claim is refuted, so that the verdict repeats it."""
        return self.result.verdict is Verdict.REFUTED and self.decided is Decision.REFUSE

    @property
    def claimed(self) -> bool:
        """Whether anything was claimed."""
        return bool(self.result.claims or self.result.comparisons or self.result.data.get("claim"))

    @cached_property
    def first(self) -> Statement:
        """The statement that leads: the decision, or without a limit the records in the file, the verdict or the finding."""
        return self.decision if self.decided else self.carried or self.opening[0]

    @cached_property
    def opening(self) -> tuple[Statement, ...]:
        """The first statements of every output: the finding, after the verdict if there is a claim, and the records in the file."""
        insiders = Statement(_INSIDERS, self.audience) if self.audience else None
        result = (self.verdict if self.claimed else None, self.finding, self.carried, insiders)
        return tuple(item for item in result if item is not None)

    @cached_property
    def now(self) -> tuple[str, ...]:
        """Advice in three lines, that on records in the file first."""
        first = [RELEASED["file"]["now"][self.file[0]]] if self.carried else []
        return (*first, *self._now[: 3 - len(first)])

    @property
    def _now(self) -> tuple[str, ...]:
        """Advice in three lines; for a judged claim and a model that leaks, two on the claim and one on the leak."""
        if self.lead is not None and self.lead.name == findings.PROPENSITY:
            return self.advice("audit", "estimated")
        states = findings.states(self.result, self.finding)
        first, last = (self.advice("audit", states[place]) for place in (0, -1))
        result = (*first[:2], last[0]) if states[1:] == ("leak",) else first
        if states == ("leak",):
            result = (first[0], self._answers, first[1])
        if states[-1] == "leak" and self.stands_out:
            result = (*result[:-1], f"{result[-1]} Fix {self.group_name} first.")
        if self.decided is Decision.RELEASE and self.carried is None:
            closing = result[-1 if states[1:] == ("leak",) else 1]
            result = (str(texts("what_now")["release"]["now"]), result[0], closing)
        return result

    def advice(self, kind: str, state: str) -> tuple[str, ...]:
        """Return the advice on a state; audits by inclusion coins, as of canaries, have some of their own."""
        lines = texts("what_now")[kind]
        coins = f"{state}_coins" if self.result.data.get("split") == "bernoulli" else state
        return tuple(map(self.worded, lines.get(coins, lines[state])))

    @property
    def _answers(self) -> str:
        """Advice on the answers of the model until it is retrained: as measured, or as its outputs allow."""
        lines, best = texts("what_now")["answers"], self._best_policy
        if is_table(self.result.data):
            return str(lines["table"])
        if best is not None:
            return str(lines["helps" if best[-1] else "does_not_help"]).format(answer=best[0].words)
        masked = any(detail(check, "masked") == "labels" for check in self.result.checks)
        by_class = self.result.data.get("scale") == LossScale.LOG_ODDS and not masked
        return str(lines["classes" if by_class else "other"])

    @cached_property
    def stands_out(self) -> Slice | None:
        """The class or group that is shown to leak more than the others, or None."""
        leaking = (one for one in self.by_group if exposure(one) > _GUESSING)
        result = (one for one in leaking if stands_out(one, self.by_group))
        return None if self.invalid else next(result, None)

    @property
    def group_name(self) -> str:
        """The name of that class or group, quoted if it has several words."""
        if self.stands_out is None:
            return ""
        kind = "" if self.stands_out.kind is SliceKind.GROUP else f"{self.stands_out.kind} "
        return kind + label_words(self.stands_out)

    @cached_property
    def most_exposed(self) -> str:
        """A sentence on the class or group that stands out; empty if there are no two to compare."""
        one, kinds = self.stands_out, [str(item.kind) for item in self.by_group if exposure(item)]
        if self.invalid or (one is None and len(kinds) == len(set(kinds))):
            return ""
        if one is None:
            return f"No {' or '.join(sorted(set(kinds)))} stands out."
        level = numbers.percent(one.confidence, toward="down")
        others = any(exposure(item) > _GUESSING for item in self._beside(one))
        beside = "" if others else f"; no other {one.kind} shows leakage"
        times, coin = pair_words(exposure(one))
        least = f"Most exposed: {self.group_name}, at least {times} (coin: {coin})"
        return f"{least}{beside} (about {level} confidence)."

    @cached_property
    def pair(self) -> tuple[str, str] | None:
        """The rate of correct picks between a member and a non-member, of an attacker and of a coin; None if not above chance."""
        return pair_words(self._low) if self._low > _GUESSING else None

    @property
    def _low(self) -> float:
        """The lower limit of the AUC of all records, 0 if it is not above chance."""
        return lower_limits(self.result)[0]

    @property
    def picture(self) -> Picture | None:
        """The pictogram of the most exposed group if one stands out, else of all records; None without a measurement."""
        low = 0.0 if self.stands_out is None else exposure(self.stands_out)
        whole, size = self._low, self.severity
        if size is None or (size.level is not Severity.NONE and max(low, whole) <= _GUESSING):
            return None
        if max(low, whole) <= _GUESSING:
            words = "Of 100 pairs, an attacker is not shown to pick more members than a coin: 50."
            return Picture(COIN, words)
        who = "" if low <= whole else f" of {self.group_name}"
        hits = math.floor(100 * max(low, whole) + _ROUNDING)
        level = numbers.percent(self.result.data.get("confidence"), toward="down")
        sure = "" if level == numbers.MISSING else f" (about {level} confidence)"
        words = f"Of 100 pairs{who}, an attacker picks at least {hits} members; a coin picks 50{sure}."
        return Picture(hits, words)

    @property
    def beside(self) -> tuple[str, ...]:
        """Sentences that belong to the finding: the exposure of the group that stands out."""
        return (self.most_exposed,) if self.stands_out is not None and not self._group_leads else ()

    @property
    def who(self) -> str:
        """The people whom the finding is about, in a sentence."""
        words, state = texts("findings")["who"], findings.states(self.result, self.finding)[-1]
        if self.lead is not None and self.lead.name == findings.PROPENSITY:
            return str(words["odds"])
        if self.stands_out is not None and state == "leak":
            everyone = any(exposure(item) > _GUESSING for item in self._beside(self.stands_out))
            sentence = words["most" if everyone else "group"]
            return str(sentence.format(group=self.group_name, kind=self.stands_out.kind))
        if self.carried is not None and state != "leak":
            return str(RELEASED["file"]["exposed"][self.file[0]])
        sentence = words.get(state, words["unknown"])
        if state not in ("leak", "nothing"):
            return str(sentence)
        return f"{sentence} {self.most_exposed or words['unexamined']}"

    def _beside(self, one: Slice) -> list[Slice]:
        """Return the other slices of the same kind."""
        return [item for item in self.by_group if item.kind is one.kind and item is not one]

    @cached_property
    def by_group(self) -> tuple[Slice, ...]:
        """The slices by class or group, the most exposed first."""
        slices: tuple[Slice, ...] = getattr(self.result, "slices", ())
        result = (one for one in slices if one.kind is not SliceKind.PERCENTILE)
        return tuple(sorted(result, key=exposure, reverse=True))

    @cached_property
    def policies(self) -> tuple[PolicyRow, ...]:
        """The rows of the output policies, full outputs first; empty if no policy was scored."""
        return policy_rows(self.result)

    @cached_property
    def _best_policy(self) -> tuple[PolicyRow, Row, Row, bool] | None:
        """The most effective policy, the AUC under it and with full outputs, and whether it is shown to help; None without one."""
        options = [(item, item.auc) for item in self.policies if item.auc is not None]
        if self.invalid or len(options) <= 1 or options[0][0].outcome.policy != OutputPolicy.FULL:
            return None
        (_, before), *others = options
        item, after = min(others, key=lambda pair: pair[1].estimate.upper or 0.0)
        return item, after, before, (after.estimate.upper or 0.0) < (before.estimate.lower or 0.0)

    @cached_property
    def less(self) -> str:
        """A sentence on the effect of the most effective policy; empty if there is none."""
        if self._best_policy is None:
            return ""
        item, after, before, helps = self._best_policy
        level, even = numbers.percent(item.outcome.confidence, toward="down"), ""
        then, now = (f"{row.value} ({row.ends})" for row in (after, before))
        would = f"with {item.words} the AUC would be {then}"
        if not metrics.beyond_guessing(before.estimate):
            words = f"With the full outputs the AUC is {now}: answering less has no measurable benefit."
        elif helps:
            words = f"{would[:1].upper()}{would[1:]} instead of {now}."
            if (item.outcome.at_least.get("advantage") or 0.0) > 0:
                even = f" Even then the best attacker's advantage is {item.best}{self._of_training(item)}."
        else:
            words = f"Answering less is not shown to help: {would}, with the full outputs it is {now}."
        held = f"Each of these holds for all policies at once at about {level} confidence"
        return f"{words}{even} {held}; an attack that uses more than the loss may do better."

    def _of_training(self, item: PolicyRow) -> str:
        """The bound on the training algorithm by such answers, as the end of a sentence; empty if there is none."""
        bound = item.bound
        if bound is None or not metrics.beyond_guessing(bound.estimate):
            return ""
        return findings.said("still_shown", bound=bound)

    @property
    def policy_notes(self) -> tuple[str, ...]:
        """Notes on the table of policies."""
        first = self.policies[0]
        level, bound, at = numbers.percent(first.outcome.confidence, toward="down"), first.bound, ""
        if bound:
            at = f" Bounds on the training algorithm are {bound.adjacency}, at delta {bound.delta}."
        together = f"All {len(self.policies)} rows hold together at {level} confidence, each column by itself"
        rest = findings.said("on_policies")
        return f"{together}, so intervals are wider than elsewhere.{at} {rest}", LABEL_ONLY

    @cached_property
    def scores(self) -> tuple[ScoreRow, ...]:
        """The attacks by several scores of the records; empty if there is one score."""
        return score_rows(self.result)

    @property
    def score_note(self) -> str:
        """Note on the table of scores."""
        bound, data = find(self.result, ADAPTIVE), self.result.data
        learnt = bound is not None and bound.value is not None
        level = numbers.percent(data.get("confidence"), toward="down")
        values = {"level": level, "delta": numbers.as_stated(data.get("delta")), "bound": bound}
        reason = findings.said("scores_apart") if bound is None else numbers.sentence(bound.reason or "")
        return findings.said("scores_learnt" if learnt else "scores", **values, rest=reason)

    @cached_property
    def claims(self) -> tuple[ClaimLine, ...]:
        """Each claim beside its measurements, the stated claim first."""
        compared = [item.claim for item in self.result.comparisons]
        alone = [Comparison(item, "", None, "") for item in self.result.claims if item not in compared]
        as_made = self.result.claims[0] if self.result.claims else None
        ordered = sorted((*self.result.comparisons, *alone), key=lambda item: item.claim != as_made)
        words = (replace(item, reason=self.worded(item.reason)) for item in ordered)
        return tuple(ClaimLine(item, self.row(item.estimate)) for item in words)

    @cached_property
    def headline(self) -> Headline:
        """The leading number, and why it leads: the certified bound, which needs no fit and allows for chance.

        A bound on the training algorithm leads if the finding rests on it; after a failed validity check, the bound by
        estimated odds if it has a value.
        """
        bound = metrics.with_role(Role.CERTIFIED, self.result)
        odds = find(self.result, findings.PROPENSITY)
        if not self.invalid:
            behind = findings.bound_behind(self.result)
            return Headline(behind or bound, findings.said("finding_leads" if behind else "leads"))
        if odds is None or odds.value is None:
            return Headline(bound, findings.said("none_leads", lead="", other="number here"))
        lead = f"It holds if {condition(odds)}. "
        return Headline(odds, findings.said("none_leads", lead=lead, other="other number"))

    @cached_property
    def checks(self) -> tuple[CheckLine, ...]:
        """All checks, in the order of the result."""
        return tuple(CheckLine.of(item, self.result.data) for item in self.result.checks)

    @cached_property
    def to_read(self) -> tuple[CheckLine, ...]:
        """The checks that failed or warn, failures first."""
        loud = (item for item in self.checks if item.status in (Status.FAIL, Status.WARN))
        return tuple(sorted(loud, key=lambda item: item.rank))

    @property
    def not_made(self) -> str:
        """A sentence on the checks that could not be made; empty if there is none."""
        names = [item.title.lower() for item in self.checks if item.status is Status.UNKNOWN]
        if not names:
            return ""
        return f"{len(names)} of {len(self.checks)} checks could not be made: {', '.join(names)}."

    @property
    def short(self) -> Statement:
        """The finding in its first two sentences."""
        first = ". ".join(self.finding.sentence.split(". ")[:2]).rstrip(".")
        return self.finding._replace(sentence=f"{first}.")

    @property
    def brief(self) -> tuple[str, ...]:
        """The main numbers and the checks, a line each."""
        places = {name: place for place, name in enumerate(_FIRST)}
        rows = sorted(self.numbers, key=lambda row: places.get(row.name, _BRIEF))
        main = [row for row in rows if row.has_value][:_BRIEF]
        sure = next((row for row in main if row.estimate.confidence), None)
        level = f"At {sure.level} confidence: " if sure else ""
        parts = []
        for status, words in _OUTCOMES.items():
            names = [item.title.lower() for item in self.checks if item.status is status]
            listed = f" ({', '.join(names)})" if status is not Status.OK else ""
            parts += [f"{len(names)} {words}{listed}"] if names else []
        leading = level + "   ".join(row.brief for row in main)
        return leading, f"Checks: {'; '.join(parts)}" if parts else ""

    def row(self, name: str) -> Row | None:
        """Return the row of that estimate, or None; without a finding, it is marked if it exceeds guessing only individually."""
        estimate = find(self.result, name)
        quiet = findings.states(self.result, self.finding)[-1] in ("nothing", "small")
        if estimate is None:
            return None
        return Row(estimate, quiet and metrics.beyond_guessing(estimate), self.subject)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Every number, in the order of the result."""
        return tuple(Row(item, subject=self.subject) for item in self.result.estimates)

    @cached_property
    def groups(self) -> tuple[tuple[str, tuple[Row, ...]], ...]:
        """Every number, grouped by subject, with a note on each group."""
        apart = {
            self.worded(note): tuple(row for row in self.rows if row.estimate.subject is subject)
            for subject, note in _NOTES.items()
        }
        return tuple((note, rows) for note, rows in apart.items() if rows)

    @property
    def in_order(self) -> tuple[Row, ...]:
        """Every number, in the order of the groups."""
        return tuple(row for _, result in self.groups for row in result)

    @property
    def lead(self) -> Row | None:
        """The leading number, or None."""
        estimate = self.headline.estimate
        return None if estimate is None else self.row(estimate.name)

    @cached_property
    def tiles(self) -> tuple[Row, ...]:
        """The two large numbers at the top of a page beside the one that leads."""
        result = [find(self.result, item.name) for item in metrics.METRICS if item.tile]
        lead = self.headline.estimate
        if lead is not None and lead.name == findings.PROPENSITY:  # no other number measures leakage
            return ()
        others = (item for item in result if item is not None and item is not lead and _tells(item))
        # No tile may seem to deny the finding.
        leaks = findings.states(self.result, self.finding)[-1] == "leak"
        rows = (self.row(item.name) for item in others if not leaks or metrics.beyond_guessing(item))
        return tuple(filter(None, rows))[:_TILES]

    @cached_property
    def numbers(self) -> tuple[Row, ...]:
        """The main numbers, the leading one first; all numbers of other kinds of documents."""
        if self.result.kind is not None:
            return self.rows
        estimates, lead = self.result.estimates, self.headline.estimate
        judged = bool(self.result.claims or self.result.comparisons)
        together = shown_by(self.result)
        stated = {
            getattr(metrics.judging(self.result), "name", None),
            *(together["names"] if together else ()),
        }
        main = [
            item
            for item in estimates
            if item.name in stated or (metrics.metric(item.name).main and (judged or _tells(item)))
        ]
        ordered = sorted(main or estimates[:_MOST], key=lambda item: item is not lead)
        return tuple(filter(None, (self.row(item.name) for item in ordered)))

    @property
    def exposed(self) -> tuple[TopRecord, ...]:
        """The training records that look most exposed, by id."""
        return tuple(self.result.top_records[:_MOST_EXPOSED])

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of those records that differ from their ids."""
        return tuple(
            name
            for name in ("group", "person")
            if any(getattr(item, name) not in (None, item.id) for item in self.exposed)
        )

    @cached_property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """The provenance of the numbers: records, delta, confidence, input, release."""
        data, origin, several = self.result.data, self.result.provenance, self.result.kind == "instances"
        versions = origin.get("versions") or {}
        result = (
            ("Runs with the canary", numbers.count(data.get("n_with"))),
            ("Runs without it", numbers.count(data.get("n_without"))),
            ("Models", numbers.count(data.get("n_instances"))),
            ("Steps", numbers.count(data.get("steps"))),
            ("Training records scored", numbers.count(None if several else data.get("n_member"))),
            ("Training records with labels", numbers.count(data.get("n_records"))),
            ("Records that D was learnt from", numbers.count(data.get("n_reference"))),
            ("Other records scored", numbers.count(None if several else data.get("n_nonmember"))),
            ("Counted as one unit", unit_words(data)),
            ("How membership was decided", data.get("split")),
            ("Delta", numbers.as_stated(data.get("delta"))),
            ("Confidence", numbers.percent(data.get("confidence"))),
            ("Claim", None if data.get("claim") is None else numbers.tidy(data["claim"])),
            ("Source", origin.get("source")),
            ("Input SHA-256", origin.get("input_sha256")),
            ("Created", origin.get("created")),
            ("Release of auditor", versions.get("privacy-auditor") or versions.get("auditor")),
        )
        return tuple(
            (title, str(value)) for title, value in result if value not in (None, "", numbers.MISSING)
        )

    @cached_property
    def sha256(self) -> str:
        """The hash of the content of the result."""
        return str(self.result.to_dict()["provenance"][CONTENT_HASH])

    @property
    def filed(self) -> str:
        """A short identification of the result."""
        return f"{self.first.sign.word}; {self.result.provenance.get('created') or 'not dated'}; SHA-256 {self.sha256[:16]}"

    @cached_property
    def filing(self) -> list[tuple[str, str]]:
        """The filing block: decision, model, owner, data, date, version, command and hash."""
        facts, stated = dict(self.facts), self.result.data.get("context") or {}
        wanted = (
            ("Decision", f"{self.decision.sign.word}. {self.decision.sentence}"),
            (self.subject.capitalize(), self.model),
            ("Release", stated.get("release") or _NOT_STATED),
            ("Owner", stated.get("owner") or _NOT_STATED),
            ("Data", facts.get("Source") or _NOT_STATED),
            ("Created", facts.get("Created") or _NOT_STATED),
            ("Version", facts.get("Release of auditor") or _NOT_STATED),
            ("Command", self.result.provenance.get("command") or _NOT_STATED),
            ("SHA-256 of the result", self.sha256),
        )
        return [(title, str(value)) for title, value in wanted]


_OUTCOMES = {
    Status.OK: "passed",
    Status.FAIL: "failed",
    Status.WARN: "warn",
    Status.UNKNOWN: "could not be made",
}
_NOTES = {
    Subject.MODEL: "The difference between this model's losses on its training records and on others.",
    Subject.MECHANISM: "The leakage of the training algorithm about any one record, which a claimed epsilon limits.",
}


LABEL_ONLY = findings.said("label_only")
_GUESSING = 0.5


def exposure(one: Slice) -> float:
    """Return the lower limit of the AUC of a slice, 0 if it has none."""
    row = find(one, "auc")
    return 0.0 if row is None or row.lower is None else row.lower


def _tells(item: Estimate) -> bool:
    """Whether a number is worth a place: the bound on the algorithm only if it has a value."""
    return item.value is not None or metrics.metric(item.name).role is not Role.JUDGE


# --- Settings from a configuration file ---


def settings_sentence(result: Document) -> str:
    """Return the settings from a configuration file, as names and values; empty if there is none."""
    config = result.provenance.get("config")
    if not isinstance(config, Mapping):
        return "" if config is None else str(config)
    pairs = (config.get("settings") or {}).items()
    settings = ", ".join(
        f"{key} = {json.dumps(item, ensure_ascii=False, default=str)}" for key, item in pairs
    )
    return f"{config.get('table') or 'settings'} of {config.get('file') or 'a file'}: {settings or 'nothing set'}"
