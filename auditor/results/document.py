"""The results of audits: every number that a report shows, with nothing left to recompute and no raw losses.

The JSON form holds the content of the page. Infinite numbers are the strings ``inf`` and ``-inf``; missing ones are null.
"""

import datetime as dt
import hashlib
import json
import math
import os
import platform
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar, cast

from auditor._version import __version__
from auditor.core import numbers, validate
from auditor.core.errors import InputError, import_optional
from auditor.core.fields import Confidence, Count, Keys, Must, Number, OrInfinite
from auditor.core.files import saved
from auditor.core.numbers import plain
from auditor.core.values import Check, Claim, Comparison, Estimate, Losses, Verdict, weighted
from auditor.curves.views import Histogram, NamedCurve
from auditor.results.data import (
    AuditData,
    InstancesData,
    LabelsData,
    PointData,
    Provenance,
    ProvenanceOfInstances,
    RunsData,
    ShownData,
    TrainingData,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from auditor.core.facts import Decision
    from auditor.report import Gates


SCHEMA_VERSION = "3"


@dataclass(frozen=True)
class TopRecord:
    """One of the training records with the largest odds of membership; the result does not hold its loss.

    Attributes:
        rank: Rank among all audited records, 1 for the highest odds; records with equal odds share a rank.
        id: Id of the record in the table; the person where one score stands for all records of a person.
        group: Group of the record in the table, or None.
        person: Person of the record in the table, or None.
        odds: Estimated odds that a record with this loss is a training record, if half of all records are.
        shared: Number of training records with the same odds, this one included: the choice among them is arbitrary. None
            in a result of an older release.
    """

    rank: Annotated[int, Must(ge=1)]
    id: str
    group: str | None
    person: str | None
    odds: Annotated[float, OrInfinite(least=0.0)]
    shared: Count | None = None


class SliceKind(StrEnum):
    """The property that the records of a slice share."""

    CLASS = "class"
    GROUP = "group"
    PERCENTILE = "percentile"


@dataclass(frozen=True)
class Slice:
    """A subset of the audited records, with its estimates.

    Attributes:
        kind: A label in ``Losses.group``, or a band of loss percentiles of all records.
        label: Name of the group or band; in brackets where it stands for several groups or for records without a label.
        n_member: Number of members.
        n_nonmember: Number of non-members.
        confidence: Simultaneous confidence of each quantity over all compared slices.
        compared: Number of slices that share the error; the estimates' own confidence is 1 - (1 - confidence)/compared.
        estimates: For a group ``epsilon_bound.clopper_pearson``, ``auc`` and ``advantage``; for a band ``member_share``.
    """

    kind: SliceKind
    label: str
    n_member: Count
    n_nonmember: Count
    confidence: Confidence
    compared: Count
    estimates: Annotated[tuple[Estimate, ...], Must(min_length=1)]

    def __post_init__(self) -> None:
        if not self.estimates:
            raise InputError(f"slice {reprlib.repr(self.label)} has no estimates.")

    @property
    def reason(self) -> str | None:
        """Reason why this slice has no numbers, or None."""
        return self.estimates[0].reason

    def estimate(self, name: str) -> Estimate:
        """Return the estimate with this name.

        Raises:
            InputError: The name does not exist; the message suggests the nearest one.
        """
        return named("estimate", name, self.estimates)

    def row(self) -> dict[str, Any]:
        """Return the slice as one flat row: the names of the estimates, with ``_lower`` and ``_upper`` for their intervals."""
        row: dict[str, Any] = {"kind": str(self.kind)}
        row |= {name: getattr(self, name) for name in ("label", "n_member", "n_nonmember")}
        for item in self.estimates:
            row[item.name] = item.value
            if item.name == "epsilon_bound.clopper_pearson":
                row["ceiling"] = item.details.get("ceiling")
            else:
                row |= {f"{item.name}_lower": item.lower, f"{item.name}_upper": item.upper}
        if self.kind is SliceKind.PERCENTILE:
            row["lift"] = self.estimates[0].details.get("lift")
        return row | {"confidence": self.confidence, "compared": self.compared, "reason": self.reason}


@dataclass(frozen=True)
class PolicyFound:
    """One output policy, and the success of the same attacker on the same records under it.

    Attributes:
        policy: ``full`` outputs, ``digits=N`` decimals, the ``topK`` largest probabilities, or the ``label``.
        confidence: Simultaneous confidence of each quantity over all policies.
        compared: Number of policies that share the error; the estimates' own confidence is 1 - (1 - confidence)/compared.
        estimates: ``auc``, ``advantage``, ``tpr_at_fpr.*``, and ``epsilon_bound.one_run`` where the split allows.
        at_least: Lower limits for the best attacker, by the name of an estimate: the largest over this policy and the
            policies whose answers can be computed from its answers.
    """

    policy: str
    confidence: Confidence
    compared: Count
    estimates: Annotated[tuple[Estimate, ...], Must(min_length=1)]
    at_least: Mapping[str, Number]


# --- The results: of one model, of several models, of many runs, and the promise of a training run ---


Item = TypeVar("Item", Estimate, Check)


def named(kind: str, name: str, items: Iterable[Item]) -> Item:
    """Return the item with this name; of several, the last.

    Raises:
        InputError: The name does not exist; the message suggests the nearest one.
    """
    by_name = {item.name: item for item in items}
    several = [option for option in by_name if option.startswith(str(name))]
    if name not in by_name and len(several) > 1:
        raise InputError(
            f"{kind} {name!r} could be {', '.join(map(repr, several))}; give one of these names."
        )
    return by_name[validate.one_of(kind, name, by_name)]


class Saved:
    """A result that can be written in several formats."""

    def save(self, path: str | os.PathLike[str], **more: Any) -> str:
        """Write the result in the format of the file extension, completely or not at all, and return the path.

        Args:
            path: Ending in ``.json``, ``.html``, ``.md``, ``.xml`` (JUnit) or ``.sarif``.
            more: Further arguments of the method of that format, such as ``gates``.

        Raises:
            InputError: The path has another extension.
            OutputError: The path cannot be written.
        """
        makers = {ending: name for ending, name in _FORMS.items() if hasattr(type(self), name)}
        suffix = Path(str(path)).suffix.lower()
        if suffix not in makers:
            raise InputError(f"path must end in {', '.join(makers)}, got {str(path)!r}; rename the file.")
        result: str = getattr(self, makers[suffix])(path, **more)
        return result


_FORMS = {
    ".json": "to_json",
    ".html": "to_html",
    ".md": "to_markdown",
    ".xml": "to_junit",
    ".sarif": "to_sarif",
}


@dataclass(frozen=True, eq=False, repr=False)
class Document(Saved):
    """The result of an audit, with its display methods, which load `auditor.report` when they are called.

    Attributes:
        data: Description of the audited model, including the declared facts.
        estimates: Estimates, in the order of the report.
        claims: The promises that follow from the training description.
        comparisons: Comparison of each claim with the estimates.
        checks: Checks of whether the numbers are reliable.
        verdict: Verdict on the claim; None without a claim.
        provenance: Versions, input hashes, seed, command line, time.
        curves: Curves of the trade-off plot, thinned.
    """

    kind: ClassVar[str | None] = None  # its name in JSON
    keys: ClassVar[tuple[str, ...]]  # keys of the JSON, in order

    data: Mapping[str, Any]
    estimates: tuple[Estimate, ...]
    claims: tuple[Claim, ...]
    comparisons: tuple[Comparison, ...]
    checks: tuple[Check, ...]
    verdict: Verdict | None
    provenance: Annotated[Mapping[str, Any], Keys(Provenance)]
    curves: tuple[NamedCurve, ...]

    @property
    def altered(self) -> bool:
        """Whether the file was altered after it was written; the mark remains when the result is written again."""
        return any(item.name == ALTERED for item in self.checks)

    @property
    def decision(self) -> "Decision | None":
        """Decision on a release by the policy and the gates of the result; None without limits."""
        from auditor import report

        return report.view_of(self).decided

    def with_policy(
        self, policy: str | None = None, gates: "Gates" = (), *, severity: Sequence[float] | str | None = None
    ) -> Self:
        """Return the same result with the limits for a release; every output shows them.

        Args:
            policy: Conditions that must hold, separated by semicolons, such as ``"advantage.upper < 0.1; no group above
                0.2; claim not refuted"``.
            gates: Conditions that must not hold; see `auditor.check_gates`.
            severity: Cut points for the lower limit of the advantage, from which a leak is slight, marked and severe.

        Raises:
            InputError: A condition cannot be parsed, or names a number that this audit does not have.
        """
        from auditor import report

        result: Self = report.with_limits(self, policy, gates, severity=severity)
        return result

    def estimate(self, name: str) -> Estimate:
        """Return the estimate with this name.

        Raises:
            InputError: The name does not exist; the message suggests the nearest one.
        """
        return named("estimate", name, self.estimates)

    def check(self, name: str) -> Check:
        """Return the check with this name.

        Raises:
            InputError: The name does not exist; the message suggests the nearest one.
        """
        return named("check", name, self.checks)

    def __getattr__(self, name: str) -> Estimate:
        """Return the estimate with this name, as in ``result.auc``; use ``result[...]`` for a name with a dot."""
        if name.startswith("_") or "estimates" not in vars(self):  # for example during a copy
            raise AttributeError(name)
        options = [option for option in self if option.startswith(name)]
        if name in options:
            return self.estimate(name)
        meant = validate.did_you_mean(validate.nearest(name, [*self, *dir(type(self))]))
        if options:
            meant = f"; it could be {', '.join(map(repr, options))}, as in result[{options[0]!r}]."
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{meant}")

    def to_frame(self) -> "pd.DataFrame":
        """Return the estimates as a pandas DataFrame, one row each, indexed by name."""
        import pandas as pd

        columns = ["value", "lower", "upper", "confidence", "delta", "adjacency", "subject", "method"]
        rows = [{name: getattr(item, name) for name in columns} for item in self.estimates]
        index = pd.Index([item.name for item in self.estimates], name="name")
        return pd.DataFrame(rows, columns=columns, index=index)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form as plain dictionaries, lists, numbers and strings."""
        kind = {} if self.kind is None else {"kind": self.kind}
        result = {**kind, **{name: plain(getattr(self, name)) for name in self.keys}}
        return {**result, "provenance": {**result["provenance"], CONTENT_HASH: content_hash(result)}}

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the JSON text; with a path, write it there completely or not at all, and return the path.

        Raises:
            InputError: The path is neither a string nor a path.
            OutputError: The path cannot be written.
        """
        return saved(json.dumps(self.to_dict(), indent=2, allow_nan=False, ensure_ascii=False) + "\n", path)

    def to_html(self, path: str | os.PathLike[str] | None = None, *, gates: "Gates" = ()) -> str:
        """Return the report as one offline HTML page; with a path, write it there completely or not at all, and return the path.

        Args:
            path: File to write.
            gates: Conditions that the page shows with their outcomes; see `auditor.check_gates`.

        Raises:
            InputError: A gate cannot be parsed, or names a number that audits do not have.
            OutputError: The path cannot be written.
        """
        from auditor import report

        return saved(report.render([report.with_limits(self, gates=gates)]), path)

    def to_markdown(self, path: str | os.PathLike[str] | None = None, *, gates: "Gates" = ()) -> str:
        """Return a summary for a pull request in GitHub-flavoured Markdown; with a path, write it there and return the path.

        Args:
            path: File to write, completely or not at all.
            gates: Conditions to judge the audit by; see `auditor.check_gates`.

        Raises:
            InputError: A gate cannot be parsed, or names a number that audits do not have.
            OutputError: The path cannot be written.
        """
        from auditor import report

        return saved(report.markdown(report.with_limits(self, gates=gates)), path)

    def to_junit(self, path: str | os.PathLike[str] | None = None, *, gates: "Gates" = ()) -> str:
        """Return the claim, the gates and the checks as JUnit XML for build servers; with a path, write it there and return the path.

        Args:
            path: File to write, completely or not at all.
            gates: Conditions to judge the audit by; see `auditor.check_gates`.

        Raises:
            InputError: A gate cannot be parsed, or names a number that audits do not have.
            OutputError: The path cannot be written.
        """
        from auditor import report

        return saved(report.junit(report.with_limits(self, gates=gates)), path)

    def to_sarif(self, path: str | os.PathLike[str] | None = None, *, gates: "Gates" = ()) -> str:
        """Return the findings that need review as SARIF 2.1.0 for code hosts; with a path, write them there and return the path.

        Args:
            path: File to write, completely or not at all.
            gates: Conditions to judge the audit by; see `auditor.check_gates`.

        Raises:
            InputError: A gate cannot be parsed, or names a number that audits do not have.
            OutputError: The path cannot be written.
        """
        from auditor import report

        return saved(report.sarif(report.with_limits(self, gates=gates)), path)

    def __str__(self) -> str:
        """Return the summary for the terminal."""
        from auditor import report

        return str(report.audit_text(self, full=False))

    def __repr__(self) -> str:
        """Return the model and the verdict in one line."""
        from auditor import report

        view = report.view_of(self)
        return f"{type(self).__name__}({numbers.clean(view.model)!r}: {view.first.sign.word})"

    def __getitem__(self, name: str) -> Estimate:
        """Return the estimate with this name, such as ``result["auc"]``.

        Raises:
            InputError: The name does not exist; the message suggests the nearest one.
        """
        return self.estimate(name)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the estimates, so that ``"auc" in result`` tests for an estimate."""
        return (item.name for item in self.estimates)

    def plot(self, name: str | None = None) -> "Figure | None":
        """Return a figure of the report, by default the first available one; see `figure`."""
        return self.figure(name) if name is not None else next(iter(self.figures().values()), None)

    def log_to_mlflow(self, *, folder: str = "privacy") -> None:
        """Log the numbers and their limits as metrics, and the JSON and the page as artifacts, to the active MLflow run.

        Args:
            folder: Folder of the artifacts, and prefix of the metrics and of the verdict tag.

        Raises:
            MissingExtraError: MLflow is not installed.
        """
        mlflow = import_optional("mlflow", purpose="logging to MLflow", extra="mlflow")
        metrics = {
            f"{folder}.{item.name}{'' if end == 'value' else f'.{end}'}": number
            for item in self.estimates
            for end in ("value", "lower", "upper")
            if (number := getattr(item, end)) is not None and math.isfinite(number)
        }
        mlflow.log_metrics(metrics)
        mlflow.set_tag(f"{folder}.verdict", self.verdict or "no claim")
        mlflow.log_text(self.to_json(), f"{folder}/result.json")
        mlflow.log_text(self.to_html(), f"{folder}/report.html")

    def figure(self, name: str) -> "Figure | None":
        """Return a figure of the report as a matplotlib ``Figure``, or None where this audit has no data for it.

        Args:
            name: One of `auditor.report.figures.FIGURES`, such as ``tradeoff-log`` or ``losses``.

        Raises:
            InputError: The figure does not exist; the message suggests the nearest name.
        """
        from auditor.report import figures

        return figures.figure(self, name)

    def figures(self) -> "dict[str, Figure]":
        """Return every figure that this audit has data for, by name, in the order of the report."""
        from auditor.report.figures import FIGURES

        return {name: drawn for name in FIGURES if (drawn := self.figure(name)) is not None}

    def _repr_html_(self) -> str:
        """Return the card for a notebook."""
        from auditor import report

        return str(report.card(self))


@dataclass(frozen=True, eq=False, repr=False)
class AuditResult(Document):
    """The result of an audit of one model.

    Attributes:
        data: Numbers of records, training size, delta, confidence, declared facts, and the meaning of the losses.
        estimates: Estimates, in the order of the report.
        claims: The promises that follow from the training description.
        comparisons: Comparison of each claim with the estimates.
        checks: Checks of whether the numbers are reliable.
        slices: The audit by group and by loss percentile, with simultaneous confidence.
        curves: Curves of the trade-off plot, thinned.
        histograms: Binned losses.
        verdict: Verdict on the claim; None without a claim.
        provenance: Versions, input hash, seed, command line, time.
        top_records: The most exposed training records, by id; empty where the records have no ids.
        policies: The effect of less detailed outputs, the full outputs first; empty where no policy was scored.
    """

    keys = (
        *("schema_version", "verdict", "data", "estimates", "claims", "comparisons", "checks"),
        *("slices", "top_records", "policies", "curves", "histograms", "provenance"),
    )

    data: Annotated[Mapping[str, Any], Keys(AuditData)]
    histograms: tuple[Histogram, ...]
    schema_version: str = SCHEMA_VERSION
    slices: tuple[Slice, ...] = ()
    top_records: tuple[TopRecord, ...] = ()
    policies: tuple[PolicyFound, ...] = ()

    @property
    def by_slice(self) -> list[tuple[str, Estimate]]:
        """Every estimate with the name of its slice: first the estimates for all records, with an empty name."""
        parts = [(f"{one.kind}: {one.label}", one.estimates) for one in self.slices]
        return [(label, item) for label, items in (("", self.estimates), *parts) for item in items]

    def to_model_card(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the audit as part of a model card for the Hugging Face Hub; with a path, write it there and return the path.

        It consists of the metadata (``model-index``) for the top of the card and a section in Markdown.

        Args:
            path: File to write, completely or not at all.

        Raises:
            OutputError: The path cannot be written.
        """
        from auditor import report

        return saved(report.model_card(self), path)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class InstancesResult(Document):
    """The joint result for several models of one training algorithm.

    Attributes:
        data: Numbers of instances and records, delta, confidence, the declared facts and the claim.
        estimates: ``epsilon_bound.instances``, ``epsilon_bar`` and ``epsilon_bar.log_mean_exp``.
        claims: The promises that follow from the training description.
        comparisons: Comparison of the claim, in the form that is judged, with the certified bound.
        verdict: Verdict on the claim; None without a claim.
        provenance: Versions, input hashes, seed, time.
        checks: The worst outcome of each check over the models.
        curves: Average rates over the models, and the claimed curve, thinned.
    """

    kind = "instances"
    keys = (
        *("schema_version", "verdict", "data", "estimates", "claims", "comparisons", "checks", "curves"),
        "provenance",
    )

    data: Annotated[Mapping[str, Any], Keys(InstancesData)]
    provenance: Annotated[Mapping[str, Any], Keys(ProvenanceOfInstances)]
    schema_version: str = SCHEMA_VERSION
    checks: tuple[Check, ...] = ()
    curves: tuple[NamedCurve, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RunsResult(Document):
    """The result for many runs of one training algorithm.

    Attributes:
        data: Numbers of runs, the threshold and its counts, delta, confidence, the declared facts and the claim.
        estimates: ``epsilon_bound.order_statistics`` or ``epsilon_bound.sequential``, which alone judges the claim; for
            comparison, at one threshold, ``epsilon_bound.clopper_pearson`` and ``epsilon_bound.gdp``.
        claims: The promises that follow from the training description.
        comparisons: Comparison of the claim, in the form that is judged, with the estimate that judges it.
        checks: Checks of the scores: their resolution, and their independence.
        verdict: Verdict on the claim; None without a claim.
        provenance: Versions, input hash, seed, time.
        curves: The measured curve, with its band where the number of runs was fixed, and the claimed curve, thinned.
    """

    kind = "runs"
    keys = InstancesResult.keys

    data: Annotated[Mapping[str, Any], Keys(RunsData)]
    schema_version: str = SCHEMA_VERSION
    curves: tuple[NamedCurve, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class TrainingResult(Document):
    """The result of an audit from inside one training (white-box).

    Attributes:
        data: Numbers of steps, canaries and parameters, the parameter tensors, the growth of the evidence and the sampler.
        estimates: ``noise_ratio``, the certified limit of noise over claim, ``step_mu``, the same as the mu of one step, and
            ``epsilon_implied`` of the whole run, if every step leaks as much.
        claims: The promises that follow from the training description, or the claimed noise.
        comparisons: Comparison of the claimed noise with the evidence.
        checks: Empty.
        verdict: Refuted or not refuted: such an audit acquits nothing.
        provenance: Versions, hash of the evidence, time.
        curves: Empty.
    """

    kind = "training"
    keys = InstancesResult.keys

    data: Annotated[Mapping[str, Any], Keys(TrainingData)]
    schema_version: str = SCHEMA_VERSION
    checks: tuple[Check, ...] = ()
    curves: tuple[NamedCurve, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LabelsResult(Document):
    """The result of an audit of the training labels of a model.

    Attributes:
        data: Numbers of records and labels, the label distribution D, accuracies of D and of the model, confidence.
        estimates: ``epsilon_bound.labels``, which holds if D is the distribution of labels given features, and the bound under
            an error of D: ``epsilon_bound.labels.off_0.25`` if its odds are wrong by a factor of e^0.25.
        claims: Empty: a bound that is conditional on D judges no claim.
        comparisons: Empty.
        checks: Checks of the label frequencies under D, and of the model.
        verdict: None.
        provenance: Versions, hash of D and the labels, seed, command line, time.
        curves: Empty.
    """

    kind = "labels"
    keys = InstancesResult.keys

    data: Annotated[Mapping[str, Any], Keys(LabelsData)]
    schema_version: str = SCHEMA_VERSION


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ClaimResult(Document):
    """The promise of a training run; it holds no measurement.

    Attributes:
        data: Description of the training run, delta, and a note on each curve.
        description: The training run.
        delta: Delta of the stated epsilon.
        prior: Prior probability of membership for the success rates.
        estimates: The best number for each quantity and adjacency, such as ``epsilon.add-remove``; gates use these names.
        claims: Each quantity by every method, for both adjacencies.
        in_words: The claims in sentences, with the protected unit first.
        curves: The complete trade-off curve for each adjacency, where one is available.
        provenance: Versions and time.
    """

    kind = "claim"
    keys = (
        *("schema_version", "data", "description", "delta", "prior", "estimates", "claims", "in_words"),
        *("curves", "provenance"),
    )

    description: Mapping[str, Any]
    delta: Number
    prior: Number
    in_words: tuple[str, ...]
    schema_version: str = SCHEMA_VERSION
    comparisons: tuple[Comparison, ...] = ()
    checks: tuple[Check, ...] = ()
    verdict: Verdict | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, with the status of each claim."""
        result = super().to_dict()
        for row, claim in zip(result["claims"], self.claims, strict=True):
            row["status"] = claim.status
        result |= {"checks": plain(self.checks)} if self.checks else {}
        result["provenance"][CONTENT_HASH] = content_hash(result)
        return result


# --- Access to parts of a result that may be missing ---


def find(result: "Document | Slice | PolicyFound", name: str) -> Estimate | None:
    """Return the estimate with this name, or None where the audit or the slice does not have it."""
    return next((item for item in result.estimates if item.name == name), None)


def detail(of: Estimate | Check | None, *path: str) -> Any:
    """Return the value at this place in the details, or None."""
    result: Any = None if of is None else of.details
    for key in path:
        result = None if result is None else result.get(key)
    return result


def furthest_point(result: "Document") -> PointData | None:
    """Return the strongest pair of simultaneous rates, or None; see `auditor.estimators.band.furthest`."""
    headline = shown_by(result)
    return None if headline is None else headline.get("point")


def shown_by(result: "Document") -> ShownData | None:
    """Return the simultaneous limits behind the headline, or None in a result of an older release."""
    outcome = result.data.get("shown")
    return cast("ShownData", outcome) if isinstance(outcome, dict) and "names" in outcome else None


def ceiling(estimate: Estimate | None) -> float | None:
    """Return the largest bound that this audit could certify."""
    result: float | None = detail(estimate, "ceiling")
    return result


def ceiling_of_score(estimate: Estimate | None) -> float | None:
    """Return the largest bound by the guesses of this score with any number of records; None if not below the ceiling."""
    top, score = ceiling(estimate), detail(estimate, "ceiling_of_score")
    return None if top is None or score is None or score >= top else float(score)


def powerless(estimate: Estimate | None) -> bool:
    """Whether this audit has too few records to certify a positive bound for any leak."""
    top = ceiling(estimate)
    return top is not None and top <= 0


# --- Provenance: versions, a hash of the losses, the seed, the command line and the time ---


_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "matplotlib", "statsmodels")


CONTENT_HASH = "content_sha256"
# Failed check of a result whose content does not match its hash.
ALTERED = "altered_since_it_was_written"


def content_hash(raw: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the canonical JSON of a result, without the hash itself; see `canonical`.

    It proves that the result is unchanged since it was written. It does not prove who wrote it.

    >>> content_hash({"provenance": {"content_sha256": "is left out"}})[:12]
    '838f379653ad'
    """
    origin = {key: item for key, item in raw["provenance"].items() if key != CONTENT_HASH}
    return hashlib.sha256(canonical({**raw, "provenance": origin}).encode()).hexdigest()


def canonical(raw: Mapping[str, Any]) -> str:
    """Return the JSON text for the hash: sorted keys, no whitespace, ASCII, floats as Python prints them."""
    return json.dumps(raw, sort_keys=True, separators=(",", ":"))


def take_hash(raw: Mapping[str, Any]) -> Any:
    """Remove the content hash of a result and return it; the word ``none`` if it was removed before."""
    origin = raw.get("provenance")
    return (origin.pop(CONTENT_HASH, None) or "none") if isinstance(origin, dict) else None


def provenance(losses: Losses, *, seed: int, **more: Any) -> dict[str, Any]:
    """Return the provenance of an audit of these losses, with further entries; the time is UTC."""
    return {**made_now(), "input_sha256": input_hash(losses), "seed": seed, **more}


def made_now() -> dict[str, Any]:
    """Return the provenance of a result that is made now: the time in UTC, and the versions."""
    versions = {"privacy-auditor": __version__, "python": platform.python_version(), **_versions()}
    return {"created": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"), "versions": versions}


def made_at(provenance: Mapping[str, Any]) -> dt.datetime | None:
    """Return the time of an audit in UTC, or None if it is unknown; a time without a zone is in UTC.

    >>> made_at({"created": "2026-02-03T10:11:12+01:00"})
    datetime.datetime(2026, 2, 3, 9, 11, 12, tzinfo=datetime.timezone.utc)
    """
    try:
        made = dt.datetime.fromisoformat(str(provenance.get("created")))
        return made.astimezone(dt.UTC) if made.tzinfo else made.replace(tzinfo=dt.UTC)
    except (ValueError, OverflowError):
        return None


def input_hash(losses: Losses) -> str:
    """Return the SHA-256 of the losses as little-endian float64, members first, with the group sizes; for a summary, of its bins."""
    digest = hashlib.sha256(f"{losses.n_member},{losses.n_nonmember};".encode())
    for group in (losses.member, losses.nonmember):
        values, counts = weighted(group)
        digest.update(values.astype("<f8", copy=False).data)
        if counts is not None:
            digest.update(counts.astype("<i8", copy=False).data)
    return digest.hexdigest()


@cache
def _versions() -> dict[str, str]:
    return {name: metadata.version(name) for name in _PACKAGES}
