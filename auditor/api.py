"""The audit of one model, from what a caller has; gates as assertions; and stored results."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from auditor import report
from auditor.core.errors import InputError
from auditor.core.values import Losses, Verdict
from auditor.core.verb import with_options
from auditor.estimators.setting import AuditOptions, Inputs
from auditor.results.document import AuditResult, Document
from auditor.verdicts.gates import Gates, check_gates, standing

if TYPE_CHECKING:
    import numpy.typing as npt

    from auditor.collectors.streaming.summaries import Summary

AnyResult = Document


@with_options(AuditOptions, members="coverage")
def audit(losses: "Losses | Summary | npt.ArrayLike | Any", options: AuditOptions) -> AuditResult:
    """Audit a model from its losses.

    Args:
        losses: Per-record losses, smaller meaning more like a member: `Losses`; or the losses of the members, with those of
            the others as ``nonmember``; or a table with the columns ``loss`` and ``member``, or its path, as `read_losses`
            takes them; or a `Summary`, or the path of its file.

    Raises:
        InputError: An argument that cannot be used; the message says which and why.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> losses = Losses(member=rng.normal(-1, 1, 1000), nonmember=rng.normal(0, 1, 1000))
    >>> result = audit(losses, delta=1e-5)
    >>> 0 < result.estimate("epsilon_bound.clopper_pearson").lower < 4.38
    True
    """
    return audit_of(_losses_of(losses, options.nonmember), options)


def audit_of(losses: Losses, options: AuditOptions) -> AuditResult:
    """Audit a model from its losses and options that are at hand as a value; see `audit`."""
    from auditor import pipeline

    return pipeline.audit(Inputs(losses, options))


def _losses_of(given: Any, nonmember: Any) -> Losses:
    """What people hand to an audit first, as `Losses`, where it can mean one thing only."""
    if nonmember is None:
        if isinstance(given, Losses):
            return given
        from auditor.collectors.streaming.summaries import Summary, is_summary

        if isinstance(given, Summary) or is_summary(given):
            return (given if isinstance(given, Summary) else Summary.read(given)).losses
        if (
            isinstance(given, str | os.PathLike | Mapping)
            or hasattr(given, "columns")
            or hasattr(given, "schema")
        ):
            from auditor.collectors.tables.reading import read_losses

            return read_losses(given)
    elif not isinstance(given, Losses):
        for name, group in (("member", given), ("nonmember", nonmember)):
            if getattr(group, "ndim", 1) > 1:
                fix = "probabilities and logits become losses by auditor.losses_from_probabilities"
                if hasattr(group, "columns"):
                    fix = "of a table give its column of losses"
                raise InputError(
                    f"{name} losses must be one number for each record, got shape {group.shape}; {fix}."
                )
        return _told_apart(Losses(member=given, nonmember=nonmember))
    raise InputError(
        "losses must be auditor.Losses(member=..., nonmember=...), the losses of members and of non-members as two arrays, or"
        " a table with the columns loss and member or its path (auditor.read_losses takes other names, auditor.collectors.from_columns"
        f" arrays), got one {type(given).__name__}{' and another argument' if nonmember is not None else ''}."
    )


def _told_apart(losses: Losses) -> Losses:
    """Refuse one column of losses beside one of membership: the most natural mistake, and its numbers would mean nothing."""
    coded = {
        name: bool(((group == 0) | (group == 1)).all() and 0 < group.sum() < group.size)
        for name, group in (("member", losses.member), ("nonmember", losses.nonmember))
    }
    if losses.n_member == losses.n_nonmember and sum(coded.values()) == 1:
        name = next(name for name, result in coded.items() if result)
        raise InputError(
            f"{name} losses must be losses, got only 0 and 1, as many as the others, as a column of membership has; give"
            " auditor.collectors.from_columns(loss, member=...), or auditor.Losses(member=..., nonmember=...) if they are losses."
        )
    return losses


def assert_gates(result: "AnyResult", gates: Gates = (), *, allow_unjudged: bool = False) -> None:
    """Raise an ``AssertionError`` where a gate, or a claim that is refuted or could not be judged, stops the pipeline.

    Args:
        result: Of an audit of whatever kind.
        gates: As `auditor.check_gates` takes them, such as ``["advantage > 0.3", "auc.lower > 0.6"]``: each stops when its
            condition is true, and also when it cannot be evaluated.
        allow_unjudged: Whether a claim that could not be judged (not evaluable, inconclusive) passes.

    Raises:
        AssertionError: With a sentence for each reason.
        InputError: A gate cannot be read, or names nothing that an audit has.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> assert_gates(audit(rng.normal(-1, 1, 1000), rng.normal(0, 1, 1000), delta=1e-5), "auc > 0.7")
    Traceback (most recent call last):
        ...
    AssertionError: auc > 0.7: ...
    """
    outcomes = (*check_gates(result, gates), *standing(result, allow_unjudged=allow_unjudged))
    stopped = [f"{item.gate.text}: {item.sentence}" for item in outcomes if item.code]
    if result.verdict is Verdict.REFUTED:
        stopped.insert(0, f"The claim is refuted. {report.verdict_sentence(result)}")
    if stopped:
        raise AssertionError("\n".join(stopped))


def read_result(path: str | os.PathLike[str]) -> AnyResult:
    """Read a result that its `to_json` wrote, in this release or an earlier one: of one model, several, or many runs.

    Args:
        path: A JSON file of at most 64 MB. It may come from anyone: nothing in it is executed.

    Raises:
        InputError: The file is missing or no ordinary file, is not JSON, is larger than any result, or is not a whole
            result of a known schema version.

    >>> import auditor, tempfile
    >>> result = auditor.audit(auditor.Losses(member=[0.1, 0.2, 0.3] * 4, nonmember=[0.2, 0.4, 0.9] * 4))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = result.to_json(f"{folder}/result.json")
    ...     read_result(f"{folder}/result.json").to_json() == text
    True
    """
    from auditor.results import reading as room

    result: AnyResult = room.read_result(path, kinds=room.KINDS)
    return result
