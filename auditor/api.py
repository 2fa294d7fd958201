"""The audit of one model from its losses or from the model; gates as assertions; and stored results."""

import inspect
import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from auditor import report
from auditor.core.errors import InputError, without_credentials
from auditor.core.options import Coverage
from auditor.core.values import Losses, Verdict
from auditor.core.verb import alike, with_options
from auditor.estimators.setting import AuditOptions, Inputs
from auditor.records import labels
from auditor.results.document import AuditResult, Document
from auditor.verdicts.gates import Gates
from auditor.verdicts.limits import outcomes, parse_policy, with_limits

if TYPE_CHECKING:
    import numpy.typing as npt

    from auditor.collectors.streaming.summaries import Summary

AnyResult = Document


@dataclass(frozen=True, eq=False)
class _Audited(AuditOptions):
    """The records to audit, and the settings of the audit.

    Attributes:
        nonmembers: Losses of the non-members, if ``losses`` contains only the losses of the members. With a model: records
            that the model has not seen, in a form that `collect` accepts.
        members: With a model: the training records.
        label: With tables of records: the column of true labels.
        task: With a model: its task, such as ``regression``; see `collect`.
        classes: With a model: the label of each output column.
        output: With a model: the kind of its outputs, such as ``logits``.
        policy: Conditions that a release must keep, such as ``"advantage.upper < 0.1; no group above 0.2; claim not refuted"``.
    """

    nonmembers: Any = None
    _: KW_ONLY
    members: Any = None
    label: str | Sequence[str] | None = None
    task: Any = None
    classes: Sequence[Any] | None = None
    output: Any = None
    policy: str | None = None


_SCORING = ("label", "task", "classes", "output")


@alike
@with_options(_Audited)
def audit(losses: "Losses | Summary | npt.ArrayLike | Any" = None, options: Any = None) -> AuditResult:
    """Audit a model from its losses, or from the model and two groups of records.

    Args:
        losses: Per-record losses, where a smaller loss is more typical of a member: `Losses`; or the losses of the members,
            with the losses of the non-members as ``nonmembers``; or a table with the columns ``loss`` and ``member``, or its
            path, see `read_losses`; or a `Summary`, or its path. With ``members`` and ``nonmembers``: a model that `collect`
            accepts, or its path; its losses are collected first.

    Raises:
        InputError: An argument is invalid; the message states which one and why.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> losses = Losses(member=rng.normal(-1, 1, 1000), nonmember=rng.normal(0, 1, 1000))
    >>> result = audit(losses, delta=1e-5)
    >>> 0 < result["epsilon_bound.clopper_pearson"].lower < 4.38
    True
    """
    if options.policy is not None:
        parse_policy(options.policy)  # before any work
    settings = {name: getattr(options, name) for name in inspect.signature(AuditOptions).parameters}
    if losses is None and not isinstance(options.model, str | None):
        losses, settings["model"] = options.model, None
    scoring = {name: value for name in _SCORING if (value := getattr(options, name)) is not None}
    if losses is not None and options.members is not None:
        settings["model"] = settings["model"] or _name_of(losses)
        losses = _collected(losses, options, scoring)
    elif scoring:
        raise InputError(
            f"{', '.join(scoring)} must go with a model, members and nonmembers, got fewer; give all three, or the losses alone."
        )
    else:
        losses = _losses_of(options.members if losses is None else losses, options.nonmembers)
    result: AuditResult = with_limits(audit_of(losses, AuditOptions(**settings)), options.policy)
    return result


def _collected(model: Any, options: _Audited, scoring: Mapping[str, Any]) -> Losses:
    """Return the losses of a model on the records of both groups."""
    from auditor.collectors import collect

    if isinstance(options.members, get_args(Coverage)):
        raise InputError(
            "members must be records that the model was trained on; the share of scored members is called 'coverage'."
        )
    return collect(model, options.members, options.nonmembers, **scoring)


def _name_of(model: Any) -> str:
    """Return the name of a model for the report: the name of its file or of its class."""
    if isinstance(model, str | os.PathLike):
        return Path(without_credentials(os.fspath(model))).name
    return str(getattr(model, "__name__", type(model).__name__))


def audit_of(losses: Losses, options: AuditOptions) -> AuditResult:
    """Audit a model from its losses, with the options as one value; see `audit`."""
    from auditor import pipeline

    labels.forget()
    return pipeline.audit(Inputs(losses, options))


def _losses_of(losses: Any, nonmember: Any) -> Losses:
    """Return the first arguments of an audit as `Losses`, if they are unambiguous."""
    if nonmember is None:
        if isinstance(losses, Losses):
            return losses
        from auditor.collectors.streaming.summaries import Summary, is_summary

        if isinstance(losses, Summary) or is_summary(losses):
            return (losses if isinstance(losses, Summary) else Summary.read(losses)).losses
        if (
            isinstance(losses, str | os.PathLike | Mapping)
            or hasattr(losses, "columns")
            or hasattr(losses, "schema")
        ):
            from auditor.collectors.tables.reading import read_losses

            return read_losses(losses)
    elif not isinstance(losses, Losses):
        for name, group in (("member", losses), ("nonmember", nonmember)):
            if getattr(group, "ndim", 1) > 1:
                fix = "probabilities and logits become losses by auditor.losses_from_probabilities"
                if hasattr(group, "columns"):
                    fix = "pass the column of losses of the table"
                raise InputError(
                    f"{name} losses must be one number for each record, got shape {group.shape}; {fix}."
                )
        return _unswapped(Losses(member=losses, nonmember=nonmember))
    raise InputError(
        "losses must be auditor.Losses(member=..., nonmember=...), the losses of members and of non-members as two arrays, or"
        " a table with the columns loss and member or its path (auditor.read_losses takes other names, auditor.collectors.from_columns"
        " arrays), or a model with members=(X, y) and nonmembers=(X, y), got"
        f" one {type(losses).__name__}{' and another argument' if nonmember is not None else ''}."
    )


def _unswapped(losses: Losses) -> Losses:
    """Refuse a column of losses with a column of membership, a common mistake that makes the numbers meaningless."""
    coded = {
        name: bool(((group == 0) | (group == 1)).all() and 0 < group.sum() < group.size)
        for name, group in (("member", losses.member), ("nonmember", losses.nonmember))
    }
    if losses.n_member == losses.n_nonmember and sum(coded.values()) == 1:
        name = next(name for name, result in coded.items() if result)
        raise InputError(
            f"{name} losses must be losses, got only 0 and 1, like a column of membership; give"
            " auditor.collectors.from_columns(loss, member=...), or auditor.Losses(member=..., nonmember=...) if they are losses."
        )
    return losses


def assert_gates(
    result: "AnyResult", gates: Gates = (), *, policy: str | None = None, allow_unjudged: bool = False
) -> None:
    """Raise an ``AssertionError`` if a limit is exceeded, or a claim is refuted or could not be judged.

    Args:
        result: Result of an audit.
        gates: Conditions that must not hold, such as ``["advantage > 0.3", "auc.lower > 0.6"]``; see `auditor.check_gates`. A
            gate that cannot be evaluated raises too.
        policy: Conditions that must hold, such as ``"advantage.upper < 0.1; no group above 0.2; claim not refuted"``.
        allow_unjudged: Whether a claim that could not be judged (not evaluable or inconclusive) passes.

    Raises:
        AssertionError: A limit or a claim fails; the message has a sentence for each reason.
        InputError: A condition cannot be parsed, or names a number that audits do not have.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> assert_gates(audit(rng.normal(-1, 1, 1000), rng.normal(0, 1, 1000), delta=1e-5), "auc > 0.7")
    Traceback (most recent call last):
        ...
    AssertionError: auc > 0.7: ...
    """
    limited = with_limits(result, policy, gates, allow_unjudged=allow_unjudged)
    stopped = [f"{item.gate.text}: {item.sentence}" for item in outcomes(limited) if item.code]
    if result.verdict is Verdict.REFUTED:
        stopped.insert(0, f"The claim is refuted. {report.verdict_sentence(result)}")
    if stopped:
        raise AssertionError("\n".join(stopped))


def read_result(path: str | os.PathLike[str]) -> AnyResult:
    """Read a result that `to_json` wrote, in this release or an earlier one.

    Args:
        path: A JSON file of at most 64 MB. Nothing in it is executed, so that the file may come from anyone.

    Raises:
        InputError: The file is missing, is not a regular file, is not JSON, is too large, or is not a complete result of a
            supported schema version.

    >>> import auditor, tempfile
    >>> result = auditor.audit(auditor.Losses(member=[0.1, 0.2, 0.3] * 4, nonmember=[0.2, 0.4, 0.9] * 4))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = result.save(f"{folder}/result.json")
    ...     read_result(path).to_json() == result.to_json()
    True
    """
    from auditor.results import reading as room

    result: AnyResult = room.read_result(path, kinds=room.KINDS)
    return result
