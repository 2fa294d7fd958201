"""One audit as every output shows it: what was found, the verdict, the number that leads, its rows and its checks.

Page, terminal, Markdown, card, JUnit and SARIF are written from the same `View`, and nothing in it is worked out twice.
Every text in it is plain and may hold anything: whoever writes it out escapes it.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from types import MappingProxyType
from typing import Any

from auditor.core import numbers, values
from auditor.core.errors import ExitCode
from auditor.core.options import Disclosure
from auditor.core.registry import Role, entries
from auditor.curves.cells import FEWEST
from auditor.report import findings
from auditor.report.findings import Headline, Statement
from auditor.report.rows import CheckLine, ClaimLine, PolicyRow, Row, policy_rows
from auditor.report.words import (
    PROMISED,
    VERDICT,
    Sign,
    Units,
    unit_words,
    units,
)
from auditor.results import metrics
from auditor.results.document import Document, Slice, SliceKind, TopRecord, detail, find
from auditor.risk.slices import stands_out
from auditor.verdicts.gates import GateOutcome
from auditor.verdicts.judging import failed_validity

_TILES = 2
_MOST = 8  # numbers, where a result has none of the main ones
_MOST_EXPOSED = 100  # records that a reader looks through


@cache
def texts(name: str) -> Mapping[str, Any]:
    """Return the tables of ``texts/NAME.toml`` by their keys, in their order."""
    return MappingProxyType(entries("auditor.report", f"texts/{name}.toml"))


_INSIDERS = Sign("For insiders only", "!", "caution")


@dataclass(frozen=True, eq=False)
class View:
    """An audit in the words that every output shows, each made when first asked for.

    Attributes:
        result: What the audit found.
    """

    result: Any

    @cached_property
    def model(self) -> str:
        """Name of the model."""
        return " ".join(str(self.result.data["model"]).split()) if self.is_named else "Unnamed model"

    @property
    def heading(self) -> str:
        """What stands above everything else."""
        return f"Privacy audit: {self.model}"

    @property
    def is_named(self) -> bool:
        """Whether the model was given a name."""
        return bool(str(self.result.data.get("model") or "").strip())

    @property
    def audience(self) -> str:
        """Whom the result is for, where that is not everybody; else nothing."""
        if self.result.data.get("disclosure") != Disclosure.INSIDERS:
            names = getattr(self.result, "top_records", ())
            return "It names records by id: it is for the data's owner alone." if names else ""
        return (
            "Every digit is kept, and records of the audit can be recognised in these numbers. Audit without disclosure insiders to"
            " share the result."
        )

    @property
    def is_small(self) -> bool:
        """Whether a group has too few records for a shared result to show how they are spread."""
        sizes = [self.result.data.get(name) or math.inf for name in ("n_member", "n_nonmember")]
        return bool(self.result.data.get("disclosure") == Disclosure.PUBLIC and min(sizes) < FEWEST)

    @cached_property
    def units(self) -> Units:
        """What one unit of the audit is called."""
        return units(self.result.data)

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
        return Statement(VERDICT[self.result.verdict], findings.verdict_sentence(self.result))

    @property
    def claimed(self) -> bool:
        """Whether anything was claimed."""
        return bool(self.result.claims or self.result.comparisons or self.result.data.get("claim"))

    @property
    def opening(self) -> tuple[Statement, ...]:
        """What every output says first: the finding and the verdict, that one first where there is a claim."""
        result = (self.verdict, self.finding) if self.claimed else (self.finding, self.verdict)
        return (*result, *([Statement(_INSIDERS, self.audience)] if self.audience else []))

    @cached_property
    def now(self) -> tuple[str, ...]:
        """What to do now, in three lines: where a claim was judged and the model leaks, two on the claim and one on that."""
        if self.lead is not None and self.lead.name == findings.PROPENSITY:
            return self.advice("audit", "estimated")
        states = findings.states(self.result, self.finding)
        first, last = (self.advice("audit", states[place]) for place in (0, -1))
        result = (*first[:2], last[0]) if states[1:] == ("leak",) else first
        if states == ("leak",):
            result = (first[0], self._answers, first[1])
        if states[-1] == "leak" and self.stands_out:
            result = (*result[:-1], f"{result[-1]} Begin with {self.group_name}.")
        return result

    def advice(self, kind: str, state: str) -> tuple[str, ...]:
        """Return the lines for that state; an audit by coins, which canaries have, has some of its own."""
        lines = texts("what_now")[kind]
        coins = f"{state}_coins" if self.result.data.get("split") == "bernoulli" else state
        return tuple(lines.get(coins, lines[state]))

    @property
    def _answers(self) -> str:
        """What the model should answer until it is trained again: as measured, or as its outputs allow."""
        lines, best = texts("what_now")["answers"], self._best_policy
        if best is not None:
            return str(lines["helps" if best[-1] else "does_not_help"]).format(answer=best[0].words)
        masked = any(detail(check, "masked") == "labels" for check in self.result.checks)
        by_class = self.result.data.get("scale") == values.LossScale.LOG_ODDS and not masked
        return str(lines["classes" if by_class else "other"])

    @cached_property
    def stands_out(self) -> Slice | None:
        """The class or group that surely leaks more than the others; null where none does."""
        result = (
            one for one in self.by_group if exposure(one) > _GUESSING and stands_out(one, self.by_group)
        )
        return None if self.invalid else next(result, None)

    @property
    def group_name(self) -> str:
        """What that class or group is called; of several words it is quoted, so that it does not read as our own words."""
        if self.stands_out is None:
            return ""
        label = numbers.tidy(self.stands_out.label)
        kind = "" if self.stands_out.kind is SliceKind.GROUP else f"{self.stands_out.kind} "
        return kind + (numbers.quoted(label) if len(label.split()) > 1 else label)

    @cached_property
    def most_exposed(self) -> str:
        """Which class or group stands out, or that none does; nothing where there are no two to compare."""
        one, kinds = self.stands_out, [str(item.kind) for item in self.by_group if exposure(item)]
        if self.invalid or (one is None and len(kinds) == len(set(kinds))):
            return ""
        if one is None:
            return f"No {' or '.join(sorted(set(kinds)))} stands out."
        level = numbers.percent(one.confidence, toward="down")
        whole = self.row("auc")
        beside = f" (all {self.units.many}: {whole.value} observed)" if whole and whole.has_value else ""
        least = f"AUC at least {numbers.number(exposure(one), toward='down')} at about {level} confidence"
        return f"Most exposed: {self.group_name}, {least}{beside}."

    @cached_property
    def by_group(self) -> tuple[Slice, ...]:
        """The slices by class or group, the most exposed first."""
        slices: tuple[Slice, ...] = getattr(self.result, "slices", ())
        result = (one for one in slices if one.kind is not SliceKind.PERCENTILE)
        return tuple(sorted(result, key=exposure, reverse=True))

    @cached_property
    def policies(self) -> tuple[PolicyRow, ...]:
        """What was found where the model answers less, the full outputs first; empty where no policy was scored."""
        return policy_rows(self.result)

    @cached_property
    def _best_policy(self) -> tuple[PolicyRow, Row, Row, bool] | None:
        """The policy that helps most, the AUC under it and with the full outputs, and whether it surely helps; null where none is known."""
        options = [(item, item.auc) for item in self.policies if item.auc is not None]
        if self.invalid or len(options) <= 1 or options[0][0].found.policy != values.OutputPolicy.FULL:
            return None
        (_, before), *others = options
        item, after = min(others, key=lambda pair: pair[1].estimate.upper or 0.0)
        return item, after, before, (after.estimate.upper or 0.0) < (before.estimate.lower or 0.0)

    @cached_property
    def less(self) -> str:
        """What the policy that helps most would help, for who decides; nothing where that cannot be said."""
        if self._best_policy is None:
            return ""
        item, after, before, helps = self._best_policy
        level, even = numbers.percent(item.found.confidence, toward="down"), ""
        then, now = (f"{row.value} ({row.ends})" for row in (after, before))
        would = f"with {item.words} the AUC would be {then}"
        if not metrics.beyond_guessing(before.estimate):
            words = f"With the full outputs the AUC is {now}: there is nothing that answering less is seen to help."
        elif helps:
            words = f"{would[:1].upper()}{would[1:]} instead of {now}."
            if (item.found.at_least.get("advantage") or 0.0) > 0:
                even = f" Even then the best attacker's advantage is {item.best}{self._of_training(item)}."
        else:
            words = f"Answering less is not shown to help: {would}, with the full outputs it is {now}."
        held = f"Each of these holds for all policies at once at about {level} confidence"
        return f"{words}{even} {held}; an attack that goes by more than the loss may do better."

    def _of_training(self, item: PolicyRow) -> str:
        """What such answers show of the training algorithm, as the end of a sentence; nothing where they show nothing."""
        bound = item.bound
        if bound is None or not metrics.beyond_guessing(bound.estimate):
            return ""
        return (
            f", and such answers still show an epsilon of the training algorithm of at least {bound.value} ({bound.adjacency}, delta"
            f" {bound.delta})"
        )

    @property
    def policy_notes(self) -> tuple[str, ...]:
        """What to know of the table of policies."""
        first = self.policies[0]
        level, bound, at = numbers.percent(first.found.confidence, toward="down"), first.bound, ""
        if bound:
            at = f" Bounds on the training algorithm are {bound.adjacency}, at delta {bound.delta}."
        together = f"All {len(self.policies)} rows hold together at {level} confidence, each column by itself"
        rest = findings.said("on_policies")
        return f"{together}, so intervals are wider than elsewhere.{at} {rest}", LABEL_ONLY

    @cached_property
    def claims(self) -> tuple[ClaimLine, ...]:
        """Each claim beside the measurements, the claim as it was made first."""
        compared = [item.claim for item in self.result.comparisons]
        alone = [values.Comparison(item, "", None, "") for item in self.result.claims if item not in compared]
        as_made = self.result.claims[0] if self.result.claims else None
        ordered = sorted((*self.result.comparisons, *alone), key=lambda item: item.claim != as_made)
        return tuple(ClaimLine(item, self.row(item.estimate)) for item in ordered)

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
        loud = (item for item in self.checks if item.status in (values.Status.FAIL, values.Status.WARN))
        return tuple(sorted(loud, key=lambda item: item.rank))

    @property
    def not_made(self) -> str:
        """Which checks could not be made, so that nothing is known of what they look for; nothing where all were."""
        names = [item.title.lower() for item in self.checks if item.status is values.Status.UNKNOWN]
        if not names:
            return ""
        return f"{len(names)} of {len(self.checks)} checks could not be made: {', '.join(names)}."

    def row(self, name: str) -> Row | None:
        """Return the row of that estimate beside the finding, or null: where nothing was found, what is beyond guessing only alone is marked."""
        estimate = find(self.result, name)
        quiet = findings.states(self.result, self.finding)[-1] in ("nothing", "small")
        return None if estimate is None else Row(estimate, quiet and metrics.beyond_guessing(estimate))

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Every number, in the order of the result."""
        return tuple(map(Row, self.result.estimates))

    @cached_property
    def groups(self) -> tuple[tuple[str, tuple[Row, ...]], ...]:
        """Every number, those about this model and those about the training algorithm apart, with what such say."""
        apart = (
            (note, tuple(row for row in self.rows if row.estimate.subject is subject))
            for subject, note in _SAY
        )
        return tuple((note, result) for note, result in apart if result)

    @property
    def in_order(self) -> tuple[Row, ...]:
        """Every number, in the order of those groups."""
        return tuple(row for _, result in self.groups for row in result)

    @property
    def lead(self) -> Row | None:
        """The number that leads, or null where there is none."""
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
        # Beside a finding no number stands that seems to deny it.
        leaks = findings.states(self.result, self.finding)[-1] == "leak"
        kept = (self.row(item.name) for item in others if not leaks or metrics.beyond_guessing(item))
        return tuple(filter(None, kept))[:_TILES]

    @cached_property
    def numbers(self) -> tuple[Row, ...]:
        """The few numbers of a summary, the one that leads first; of other documents than an audit all."""
        if self.result.kind is not None:
            return self.rows
        estimates, lead = self.result.estimates, self.headline.estimate
        judged = bool(self.result.claims or self.result.comparisons)
        main = [item for item in estimates if metrics.metric(item.name).main and (judged or _tells(item))]
        ordered = sorted(main or estimates[:_MOST], key=lambda item: item is not lead)
        return tuple(filter(None, (self.row(item.name) for item in ordered)))

    @property
    def exposed(self) -> tuple[TopRecord, ...]:
        """The training records that look most exposed, by id."""
        return tuple(self.result.top_records[:_MOST_EXPOSED])

    @property
    def labels(self) -> tuple[str, ...]:
        """Which labels of those records say more than their ids."""
        names = ("group", "person")
        return tuple(
            name for name in names if any(getattr(item, name) not in (None, item.id) for item in self.exposed)
        )

    @cached_property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """Where the numbers come from: records, delta, confidence, input, release."""
        data, origin, several = self.result.data, self.result.provenance, self.result.kind == "instances"
        versions = origin.get("versions") or {}
        result = (
            ("Runs with the canary", numbers.count(data.get("n_with"))),
            ("Runs without it", numbers.count(data.get("n_without"))),
            ("Models", numbers.count(data.get("n_instances"))),
            ("Training records scored", numbers.count(None if several else data.get("n_member"))),
            ("Training records with labels", numbers.count(data.get("n_records"))),
            ("Records that D was learnt from", numbers.count(data.get("n_reference"))),
            ("Other records scored", numbers.count(None if several else data.get("n_nonmember"))),
            ("Counted as one unit", unit_words(data)),
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
            (title, str(value)) for title, value in result if value not in (None, "", numbers.MISSING)
        )


class TrainingView(View):
    """The audit of a training algorithm, by several models or by many runs, in the same words."""

    @cached_property
    def now(self) -> tuple[str, ...]:
        """What to do now, in at most three lines."""
        result = findings.states(self.result, self.finding)[-1]
        state = result if result == "reversed" else str(self.result.verdict or "no_claim")
        return self.advice(self.result.kind, state)

    @cached_property
    def model(self) -> str:
        """What was claimed of the training, or else the file of its scores, and how it was audited."""
        words = self.result.data.get("claim") or self.result.provenance.get("source")
        named = numbers.tidy(" ".join(str(words or "One training algorithm").split()))
        return f"{named}: {'many runs' if self.result.kind == 'runs' else 'several models'}"

    @cached_property
    def finding(self) -> Statement:
        """What was found, and what was counted."""
        result = super().finding
        return result._replace(sentence=f"{result.sentence} {self.counted}")

    @cached_property
    def headline(self) -> Headline:
        """The number that judges a claim, which is the first."""
        by = ", by its whole curve" if self.result.kind == "runs" else ""
        words = f"The first number judges a claim{by}; the others are for reading."
        return Headline(next(iter(self.result.estimates), None), words)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The number that judges a claim, and the others that have a value."""
        first, others = self.result.estimates[:1], self.result.estimates[1:]
        return tuple(map(Row, (*first, *(item for item in others if item.value is not None))))

    @property
    def left_out(self) -> tuple[Row, ...]:
        """The others, which have no value."""
        return tuple(Row(item) for item in self.result.estimates[1:] if item.value is None)

    @cached_property
    def groups(self) -> tuple[tuple[str, tuple[Row, ...]], ...]:
        """Every number, those about the training algorithm first."""
        return super().groups[::-1]

    @cached_property
    def counted(self) -> str:
        """What was counted, in sentences."""
        data, whole = self.result.data, numbers.count
        about = f"delta {numbers.given(data.get('delta'))}"
        if self.result.kind != "runs":
            return f"{whole(data.get('n_instances'))} models of one training algorithm, {about}."
        with_it, without = (whole(data.get(name)) for name in ("n_with", "n_without"))
        judged = f"{with_it} runs with the canary and {without} without are judged, {about}, {data.get('adjacency')}."
        if data.get("threshold") is None:
            return f"{judged} The thresholds are at ranks fixed in advance."
        chosen = "fixed in advance"
        if data.get("chosen_on"):
            words = *map(whole, data["chosen_on"]), ""
            chosen = f"chosen on {words[0]} other runs with it and {words[1]} without"
        # Scores that are larger with the canary were negated when they were read, and so is the threshold.
        higher = bool(data.get("higher_is_member"))
        threshold = numbers.number(-data["threshold"] if higher else data["threshold"])
        counts = zip(
            ("true_positives", "false_positives"), (*(data.get("judged") or ()), None, None), strict=False
        )
        hits, alarms = (f"{whole(data.get(name))} of {whole(of)}" for name, of in counts)
        return (
            f"{judged} At one threshold, {threshold}, {chosen}: {hits} with it and {alarms} without have a score of at"
            f" {'least' if higher else 'most'} that."
        )


class LabelsView(View):
    """The audit of a model's training labels, in the same words."""

    @property
    def now(self) -> tuple[str, ...]:
        """What to do now."""
        lead = self.lead
        return tuple(texts("what_now")["labels"]["leak" if lead and lead.estimate.lower else "nothing"])

    @cached_property
    def finding(self) -> Statement:
        """What was found, and what it is not about."""
        result = super().finding
        about = "The audit says nothing of who was in the training data, or of features."
        return result._replace(sentence=f"{result.sentence} {about}")

    @cached_property
    def headline(self) -> Headline:
        """The number that holds if D is the law of the labels, which is the first."""
        words = "The first number holds if D is the law of the labels; the others if its odds are off by at most that factor."
        return Headline(next(iter(self.result.estimates), None), words)

    @cached_property
    def groups(self) -> tuple[tuple[str, tuple[Row, ...]], ...]:
        """Every number: all are about the training algorithm."""
        return (("What the way of training gives away about the label of any one record.", self.rows),)

    @cached_property
    def counted(self) -> str:
        """What was counted and observed, in sentences."""
        data, whole = self.result.data, numbers.count
        other = data.get("n_reference")
        law = "D was given." if other is None else f"D was learnt from {whole(other)} other records."
        words = [
            findings.said(
                "predicts",
                who=who,
                accuracy=numbers.percent(result.get("accuracy")),
                log_loss=numbers.number(result.get("log_loss")),
            )
            for who, result in (("D", data.get("of_law") or {}), ("the model", data.get("of_model") or {}))
        ]
        counts = {name: whole(data.get(f"n_{name}")) for name in ("records", "classes", "drawn", "changed")}
        return findings.said("counted_labels", law=law, who=" and ".join(words), **counts)


class PromiseView(View):
    """What a training promises, of which nothing was measured, in the same words."""

    @property
    def now(self) -> tuple[str, ...]:
        """What to do now."""
        return tuple(texts("what_now")["claim"]["promise"])

    @cached_property
    def model(self) -> str:
        """The training."""
        return numbers.tidy(" ".join(str(self.result.data.get("claim") or "A training").split()))

    @cached_property
    def finding(self) -> Statement:
        """What is promised, in the first words on an attacker."""
        if self.result.altered:
            return super().finding
        return Statement(PROMISED, " ".join([self.promise, *self.result.in_words[:2]]))

    @cached_property
    def promise(self) -> str:
        """Epsilon for both kinds of neighbours, as far as there is one."""
        shown = [row for row in self.rows if row.name == "epsilon" and row.has_value]
        words = " and ".join(f"{row.value} at delta {row.delta} ({row.adjacency})" for row in shown)
        return (
            f"Epsilon at most {words}, if the training is as described."
            if words
            else "No epsilon can be told."
        )

    @cached_property
    def verdict(self) -> Statement:
        """The same: nothing was measured that could judge it."""
        return self.finding

    @property
    def opening(self) -> tuple[Statement, ...]:
        """What every output says first."""
        return (self.finding,)

    @property
    def heading(self) -> str:
        """What stands above everything else."""
        return f"Privacy claim: {self.model}"

    @property
    def headline(self) -> Headline:
        """No number leads."""
        return Headline(None, "Nothing here was measured: it holds if the training is as described.")


_SAY = (
    (
        values.Subject.MODEL,
        "How far this model's losses on its training records differ from its losses on others.",
    ),
    (
        values.Subject.MECHANISM,
        "What the way of training gives away about any one record: what a claimed epsilon promises.",
    ),
)


LABEL_ONLY = findings.said("label_only")
_GUESSING = 0.5


def exposure(one: Slice) -> float:
    """The lower limit of the AUC of a slice, 0 where it has none."""
    row = find(one, "auc")
    return 0.0 if row is None or row.lower is None else row.lower


def _tells(item: values.Estimate) -> bool:
    """Whether a number has something to say: the bound on the algorithm only where it has a value."""
    return item.value is not None or metrics.metric(item.name).role is not Role.JUDGE


@lru_cache(maxsize=8)
def view_of(result: Document) -> View:
    """Return what every output shows of an audit; the outputs of one audit share it."""
    return {None: View, "claim": PromiseView, "labels": LabelsView}.get(result.kind, TrainingView)(result)


def gates_first(outcomes: Sequence[GateOutcome]) -> str:
    """Return how many gates stopped the pipeline, for the first lines of an output; nothing where all passed.

    >>> gates_first([])
    ''
    """
    failed = sum(item.code is ExitCode.FAILED for item in outcomes)
    undecided = sum(not item.passed for item in outcomes) - failed
    stopped, many = failed + undecided, len(outcomes)
    if not stopped:
        return ""
    which = "The gate stops" if many == 1 else f"{stopped} of {many} gates stop{'s' if stopped == 1 else ''}"
    kinds = {"failed": failed, "could not be evaluated": undecided}
    text = [f"{'it' if stopped == 1 else count} {words}" for words, count in kinds.items() if count]
    return f"{which} the pipeline: {' and '.join(text)}."


# --- What a configuration file set ---


def settings_sentence(result: Document) -> str:
    """Return what a file set for the audit, as names and values; nothing where none did."""
    config = result.provenance.get("config")
    if not isinstance(config, Mapping):
        return "" if config is None else str(config)
    outcome = config.get("settings")
    pairs = outcome.items() if isinstance(outcome, Mapping) else ()
    settings = ", ".join(f"{key} = {_spelled(item)}" for key, item in pairs)
    return f"{config.get('table') or 'settings'} of {config.get('file') or 'a file'}: {settings or 'nothing set'}"


def _spelled(x: object) -> str:
    """A setting as its file spells it, or nearly so."""
    try:
        return json.dumps(x, ensure_ascii=False)
    except (TypeError, ValueError):
        return str(x)
