"""The views of other kinds of documents: audits of a training algorithm, audits of labels, and promises."""

from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from auditor.core import Verdict, numbers
from auditor.report import findings
from auditor.report.findings import Headline, Statement
from auditor.report.rows import Row
from auditor.report.view import View, texts
from auditor.report.words import LESS_PRIVATE, NOT_REACHED, NOT_SHOWN, PROMISED
from auditor.results.data import TensorsData
from auditor.results.document import Document


class Evidence(NamedTuple):
    """The evidence against a claim, and the amount that refutes it, in words."""

    title: str
    value: str
    note: str

    @classmethod
    def as_odds(cls, e_value: float, alpha: float) -> "Evidence":
        """Return an e-value as odds against the claim, beside those that refute it at this error."""
        odds, needed = numbers.number(e_value, toward="down"), numbers.as_stated(round(1 / alpha, 9))
        return cls("Evidence against the claim", f"{odds} to 1", f"{needed} to 1 refutes it")


class TrainingView(View):
    """The view of an audit of a training algorithm, by several models or by many runs."""

    @cached_property
    def now(self) -> tuple[str, ...]:
        """Advice in at most three lines."""
        result = findings.states(self.result, self.finding)[-1]
        state = result if result == "reversed" else str(self.result.verdict or "no_claim")
        return self.advice(self.result.kind, state)

    @property
    def who(self) -> str:
        """The people whom the result is about."""
        shown = findings.states(self.result, self.finding)[-1] == "leak"
        return str(texts("findings")["who"]["training" if shown else "untested"])

    @cached_property
    def model(self) -> str:
        """The claim or else the file of the scores, with the kind of audit."""
        claim, source = self.result.data.get("claim"), self.result.provenance.get("source")
        named = numbers.tidy(" ".join(str(claim or source or "One training algorithm").split()))
        kind = "many runs" if self.result.kind == "runs" else "several models"
        return f"{'Training that claims ' if claim else ''}{named}: {kind}"

    @cached_property
    def evidence(self) -> Evidence | None:
        """The evidence against a claim that the whole curve of runs judges; None for other audits."""
        judged = next((item for item in self.result.comparisons if item.p_value is not None), None)
        confidence = self.result.data.get("confidence")
        if self.result.kind != "runs" or judged is None or confidence is None:
            return None
        alpha = 1 - confidence
        if self.result.data.get("test") == "Sequential" and judged.e_value is not None:
            return Evidence.as_odds(judged.e_value, alpha)
        p_value, most = numbers.number(judged.p_value, toward="up"), numbers.as_stated(round(alpha, 9))
        return Evidence("p-value of the claim", p_value, f"at most this; {most} or less refutes it")

    @property
    def brief(self) -> tuple[str, ...]:
        """The evidence against the claim, the main numbers and the checks, a line each."""
        item = self.evidence
        return (*([f"{item.title}: {item.value} ({item.note})"] if item else []), *super().brief)

    @cached_property
    def headline(self) -> Headline:
        """The number that judges a claim, which is the first."""
        by = ", by its whole curve" if self.result.kind == "runs" else ""
        words = f"The first number judges a claim{by}; the others are informative."
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
        """The counts of the audit, in sentences."""
        data, whole = self.result.data, numbers.count
        about = f"delta {numbers.as_stated(data.get('delta'))}"
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
        values = {"threshold": numbers.number(-data["threshold"] if higher else data["threshold"])}
        names, sizes = ("true_positives", "false_positives"), (*(data.get("judged") or ()), None, None)
        counts = zip(names, sizes, strict=False)
        hits, alarms = (f"{whole(data.get(name))} of {whole(of)}" for name, of in counts)
        values |= {"judged": judged, "chosen": chosen, "hits": hits, "alarms": alarms}
        return findings.said("at_threshold", end="least" if higher else "most", **values)


class StepsView(TrainingView):
    """The view of an audit from inside one training."""

    @cached_property
    def now(self) -> tuple[str, ...]:
        """Advice in three lines."""
        only_sampler = self._said("sampler_refuted") and not self._said("noise_refuted")
        judged = self.result.verdict in (Verdict.REFUTED, Verdict.NOT_REFUTED)
        state = str(self.result.verdict if judged else Verdict.INCONCLUSIVE)
        return self.advice("training", "sampler" if only_sampler else state)

    def _said(self, name: str) -> Any:
        """Return a value of the data, None where a file from elsewhere has none of its kind."""
        return self.result.data.get(name)

    def _level(self, name: str) -> str:
        """Return the confidence beside this share of the error, as the start of a sentence."""
        share = self._said(name)
        return "" if share is None else f"At {numbers.percent(1 - share, toward='down')} confidence"

    @cached_property
    def model(self) -> str:
        """The claim, as the name of the training."""
        return f"Training that claims {numbers.tidy(str(self._said('claim')))}: from inside"

    @cached_property
    def evidence(self) -> Evidence | None:
        """The evidence of the steps against the claimed noise, or of the batches if they alone refute."""
        judged = next(iter(self.result.comparisons), None)
        by_batches = judged is not None and judged.claim.metric == "sampling_rate"
        alpha = self._said("error_of_sampler" if by_batches else "error_of_steps")
        if judged is None or judged.e_value is None or not alpha:
            return None
        return Evidence.as_odds(judged.e_value, alpha)

    @cached_property
    def finding(self) -> Statement:
        """The evidence of steps and batches, and the scope of the audit."""
        if self.result.altered:
            return super().finding
        words, sign = texts("findings")["steps"], LESS_PRIVATE
        sentences: list[str] = []
        if self._said("noise_refuted"):
            sentences += self._of_steps()
        if self._said("sampler_refuted"):
            sentences.append(words["sampler"].format(level=self._level("error_of_sampler")))
        if not sentences:
            blunt = self.result.verdict is Verdict.INCONCLUSIVE
            sign = NOT_REACHED if blunt else NOT_SHOWN
            sentences = [words["blunt"] if blunt else self._quiet()]
        return Statement(sign, " ".join([*sentences, words["scope"]]))

    @cached_property
    def tensors(self) -> list[dict[str, Any]]:
        """The measurements of each parameter tensor; empty where a file from elsewhere lacks some."""
        columns = self._said("tensors") or {}
        names = TensorsData.__annotations__
        if any(columns.get(name) is None for name in names):
            return []
        return [dict(zip(names, row, strict=True)) for row in zip(*map(columns.get, names), strict=False)]

    @property
    def _most(self) -> float | None:
        """The certified ratio of noise to claim."""
        estimate = self.headline.estimate
        return None if estimate is None else estimate.upper

    @property
    def _noise(self) -> dict[str, str]:
        """The words for the certified ratio and its confidence."""
        return {"level": self._level("error_of_steps"), "most": numbers.number(self._most, toward="up")}

    def _of_steps(self) -> Iterator[str]:
        """Yield what the steps show against the claim: less noise, where it is, and a lack of clipping."""
        words, most = texts("findings")["steps"], self._most
        low = [item["name"] for item in self.tensors if (item["at_most"] or 1) < 1]
        where = f", in {', '.join(map(numbers.quoted, low))}" if 0 < len(low) < len(self.tensors) else ""
        less = most is not None and most < 1
        yield words["noise" if less else "leak"].format(where=where, **self._noise)
        seen = [item for item in self.tensors if item["contribution"] is not None]
        total = sum(item["canaries"] for item in seen)
        mean = sum(item["contribution"] * item["canaries"] for item in seen) / max(total, 1)
        if mean > _CLIPPED:
            yield words["clipping"].format(contribution=numbers.number(mean))

    def _quiet(self) -> str:
        words = texts("findings")["steps"]["few" if self._most is None else "quiet"]
        return str(words.format(**self._noise))

    @property
    def who(self) -> str:
        """The people whom the result is about."""
        keys = {Verdict.REFUTED: "training", Verdict.NOT_REFUTED: "nothing"}
        return str(texts("findings")["who"][keys.get(self.result.verdict, "untested")])

    @cached_property
    def headline(self) -> Headline:
        """The certified noise, beside the evidence."""
        words = "The evidence judges the claim; the other numbers follow from it, at the same confidence."
        return Headline(next(iter(self.result.estimates), None), words)

    @cached_property
    def counted(self) -> str:
        """The counts of the audit, and the batches, in sentences."""
        words, batches = texts("findings")["steps"], self._said("sampler")
        nuisance = numbers.number(self._said("nuisance"))
        rest = words["rest" if self._said("centred") else "with_batch"].format(nuisance=nuisance)
        counts = {name: numbers.count(self._said(name)) for name in ("steps", "canaries", "parameters")}
        scale = numbers.number(self._said("scale"))
        result = [words["counted"].format(scale=scale, rest=rest, **counts), *(self._said("notes") or ())]
        needed = self._said("error_of_sampler")
        if batches is not None and needed:
            records, rate = batches.get("records"), batches.get("rate")
            known = records is not None and rate is not None
            shown = {name: numbers.count(batches.get(name)) for name in ("batches", "records", "empty")}
            result.append(
                words["batches"].format(
                    mean=numbers.number(batches.get("mean")),
                    variance=numbers.number(batches.get("variance")),
                    expected=numbers.number(records * rate if known else None),
                    spread=numbers.number(records * rate * (1 - rate) if known else None),
                    evidence=numbers.number(batches.get("e_value"), toward="down"),
                    needed=numbers.as_stated(round(1 / needed, 9)),
                    **shown,
                )
            )
        return " ".join(result)


_CLIPPED = 1.5  # clipping norms, in the mean over all canaries


class LabelsView(View):
    """The view of an audit of a model's training labels."""

    @property
    def now(self) -> tuple[str, ...]:
        """Advice in at most three lines."""
        lead = self.lead
        return tuple(texts("what_now")["labels"]["leak" if lead and lead.estimate.lower else "nothing"])

    @property
    def who(self) -> str:
        """The people whom the result is about."""
        lead = self.lead
        return str(texts("findings")["who"]["label" if lead and lead.estimate.lower else "nothing"])

    @cached_property
    def finding(self) -> Statement:
        """The finding, and its scope."""
        result = super().finding
        about = "The audit says nothing about membership in the training data, or about features."
        return result._replace(sentence=f"{result.sentence} {about} {findings.verdict_sentence(self.result)}")

    @cached_property
    def headline(self) -> Headline:
        """The number that holds if D is the law of the labels, which is the first."""
        words = "The first number holds if D is the label distribution; the others if its odds are off by at most their factor."
        return Headline(next(iter(self.result.estimates), None), words)

    @cached_property
    def groups(self) -> tuple[tuple[str, tuple[Row, ...]], ...]:
        """Every number: all are about the training algorithm."""
        return (("The leakage of the training algorithm about the label of any one record.", self.rows),)

    @cached_property
    def counted(self) -> str:
        """The counts and the accuracies of the audit, in sentences."""
        data, whole = self.result.data, numbers.count
        other = data.get("n_reference")
        law = "D was given." if other is None else f"D was learnt from {whole(other)} other records."
        words = []
        for who, name in (("D", "of_law"), ("the model", "of_model")):
            result = data.get(name) or {}
            accuracy, loss = numbers.percent(result.get("accuracy")), numbers.number(result.get("log_loss"))
            words.append(findings.said("predicts", who=who, accuracy=accuracy, log_loss=loss))
        counts = {name: whole(data.get(f"n_{name}")) for name in ("records", "classes", "drawn", "changed")}
        return findings.said("counted_labels", law=law, who=" and ".join(words), **counts)


class PromiseView(View):
    """The view of a promise of a training, without a measurement."""

    @property
    def now(self) -> tuple[str, ...]:
        """Advice in at most three lines."""
        return tuple(texts("what_now")["claim"]["promise"])

    @cached_property
    def model(self) -> str:
        """The name of the training."""
        return numbers.tidy(" ".join(str(self.result.data.get("claim") or "A training").split()))

    @cached_property
    def finding(self) -> Statement:
        """The promised epsilon, and the first sentences on an attacker."""
        if self.result.altered:
            return super().finding
        return Statement(PROMISED, " ".join([self.promise, *self.result.in_words[:2]]))

    @property
    def beside(self) -> tuple[str, ...]:
        """A third sentence on an attacker, and the status of the numbers."""
        return *self.result.in_words[2:3], "Nothing here was measured."

    @property
    def who(self) -> str:
        """The people whom the promise is about."""
        return str(texts("findings")["who"]["promise"])

    @cached_property
    def promise(self) -> str:
        """Epsilon for both adjacencies, if it is finite."""
        rows = [row for row in self.rows if row.name == "epsilon" and row.has_value]
        words = " and ".join(f"{row.value} at delta {row.delta} ({row.adjacency})" for row in rows)
        known = f"Epsilon at most {words}, if the training is as described."
        return known if words else "No finite epsilon is known."

    @cached_property
    def verdict(self) -> Statement:
        """The promise: without a measurement there is no verdict."""
        return self.finding

    @property
    def opening(self) -> tuple[Statement, ...]:
        """The first statement of every output."""
        return (self.finding,)

    @property
    def heading(self) -> str:
        """The title of every output."""
        return f"Privacy claim: {self.model}"

    @property
    def headline(self) -> Headline:
        """No number leads."""
        return Headline(None, "Nothing was measured: the promise holds if the training is as described.")


@lru_cache(maxsize=8)
def view_of(result: Document) -> View:
    """Return the view of a result, which all its outputs share."""
    views = {None: View, "claim": PromiseView, "labels": LabelsView, "training": StepsView}
    return views.get(result.kind, TrainingView)(result)
