"""The public functions that make results: signatures and docstrings."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from auditor import report
from auditor.comparison.compare import AuditsComparison
from auditor.core import options
from auditor.core.errors import InputError
from auditor.core.values import Losses, Verdict
from auditor.core.verb import with_options
from auditor.estimators.setting import AuditOptions, Inputs
from auditor.results.document import (
    AuditResult,
    Document,
    InstancesResult,
    LabelsResult,
    RunsResult,
)
from auditor.verdicts.gates import Gates, check_gates, standing

if TYPE_CHECKING:
    from auditor.collectors.base.outputs import Output
    from auditor.collectors.streaming.summaries import Summary
    from auditor.collectors.tables.opening import RecordTable
    from auditor.mechanism.whole_curve import RunsTest

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
        " a table with the columns loss and member or its path (auditor.read_losses takes other names, auditor.from_columns"
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
            " auditor.from_columns(loss, member=...), or auditor.Losses(member=..., nonmember=...) if they are losses."
        )
    return losses


def audit_instances(
    instances: Sequence[Losses | AuditResult],
    *,
    delta: float,
    confidence: float = 0.95,
    looks: int = 1,
    split: options.MembershipSplit = options.UnknownSplit(),  # noqa: B008 - a frozen value
    claim: options.TrainingClaim | None = None,
    together: options.IndependentRuns | None = None,
    seed: int = 0,
    disclosure: options.Disclosure | str = options.Disclosure.PUBLIC,
) -> InstancesResult:
    """Audit a training mechanism from several models that it trained.

    Args:
        instances: One per model: its losses, or the result of its audit. Every model needs its own training run and
            its own fresh split, drawn independently of the others.
        delta: In [0, 1). With a claim, the bound that is judged is stated at the claim's own delta, or at the one that
            follows from it for replaced records.
        confidence: In (0, 1).
        looks: Declared number of such audits, which share the error; see `audit`.
        split: How membership was decided in each instance. Without ``together`` only `RandomSplit` supports a statement
            about the mechanism; then it is about replaced records.
        claim: What is claimed of the mechanism: `DPSGD` or `StatedClaim`.
        together: `IndependentRuns` declares that the models were trained apart: then their pairs, or their inclusion
            coins, are one audit together, which certifies far more, and judges a claim's whole curve.
        seed: Of the bootstrap and the pairs; the same seed gives the same result.
        disclosure: Who may read the result: see `audit`. Results among the instances must be for insiders.

    Raises:
        InputError: An argument that cannot be used, an instance given twice, or a result without rank curves.

    Source: Negoescu et al. 2024, Theorem 2 and Eq. 18 to 21, at attacks of known error rate (see
    `auditor.estimators.fixed_ranks`).

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> models = [Losses(member=rng.random(100), nonmember=rng.random(100) + 2) for _ in range(3)]
    >>> audit_instances(models, delta=1e-5).estimate("epsilon_bar").reason[:46]
    'it was not declared how membership was decided'
    """
    values = locals()  # every argument by its name, and nothing else yet
    from auditor.mechanism import instances as room

    return room.audit_instances(**values)


def audit_runs(
    losses: Losses | None = None,
    *,
    counts: Sequence[int] | None = None,
    delta: float,
    confidence: float = 0.95,
    looks: int = 1,
    adjacency: options.Adjacency | str = options.Adjacency.ADD_REMOVE,
    claim: options.TrainingClaim | None = None,
    threshold: options.ThresholdRule = options.Split(),  # noqa: B008 - a frozen value
    threshold_runs: Losses | None = None,
    test: "RunsTest | None" = None,
) -> RunsResult:
    """Audit a training mechanism from the scores of many independent runs, with a canary and without.

    A claim is judged by its whole trade-off curve, at every threshold on the score at once (`FixedNumber`) or by bets that
    hold whenever they are looked at (`Sequential`), with all runs: none is spent on choosing a threshold. The result names
    the point of the curve that was contradicted. With `FixedNumber` fix the number of runs before you look: a test that is
    looked at again and again until it refutes no longer holds at its confidence.

    Beside it, for reading: one threshold guesses the world of a run, chosen on runs that it does not judge, because the
    best threshold of the judged runs themselves makes every bound too high. Its two error rates bound epsilon from below
    in both directions, by four methods.

    Args:
        losses: One score for each run, smaller meaning more like a run with the canary: of runs with it (``member``) and
            without it (``nonmember``), as `collect_runs` makes them.
        counts: In place of them what was counted at one threshold fixed in advance, as publications report it: true
            positives, runs with the canary, false positives, runs without it, such as ``(4922, 100_000, 174, 100_000)``.
        delta: In [0, 1). With a claim, all rows are stated at the claim's own delta, or at the one that follows from it
            for replaced records.
        confidence: In (0, 1).
        looks: Declared number of such audits, which share the error; see `audit`.
        adjacency: What the two worlds differ by: the canary is there or not (``"add-remove"``), or there is another record
            in its place (``"replace-one"``).
        claim: What is claimed of the mechanism: `DPSGD`, or `StatedClaim` and its forms.
        threshold: `Split` (default) chooses it on one part of the runs and judges the rest; `FixedThreshold` takes one that
            was chosen without any of them; `RankGrid` has no single threshold, and only the certified row.
        threshold_runs: Other runs of the same kind, which choose the threshold; then all of ``losses`` are judged.
            Collect them with another seed: with the same one, `collect_runs` makes the same runs again.
        test: How the number of runs came about: `FixedNumber` (default) or `Sequential`, for which the runs must be in
            the order of their numbers and pairs share nothing with other pairs.

    Raises:
        InputError: Arguments that cannot be used, or too few runs.

    Source: the joint test, the exact test and the bets are [own], derived in `auditor.estimators.joint_test`, `exact_test`
    and `betting`; Jagielski et al. 2020 and Nasr et al. 2021 (Clopper-Pearson), Lu et al. 2022 (Katz), Zanella-Beguelin et
    al. 2023 (Bayesian), Nasr et al. 2023 (Gaussian).

    >>> import numpy as np
    >>> from auditor import StatedClaim
    >>> rng = np.random.default_rng(0)
    >>> runs = Losses(member=rng.normal(-3, 1, 2000), nonmember=rng.normal(0, 1, 2000))
    >>> result = audit_runs(runs, delta=1e-5, claim=StatedClaim(epsilon=1.0, delta=1e-5))
    >>> str(result.verdict), result.estimate("epsilon_bound.clopper_pearson").value > 3
    ('refuted', True)
    """
    values = locals()  # every argument by its name, and nothing else yet
    from auditor.mechanism import runs as room

    return room.audit_runs(**values)


def audit_labels(
    model: Any,
    records: "tuple[Any, npt.ArrayLike] | RecordTable",
    *,
    reference: "tuple[Any, npt.ArrayLike] | RecordTable | None" = None,
    probabilities: npt.ArrayLike | None = None,
    classes: Sequence[Any] | None = None,
    output: "Output | None" = None,
    repeats: int = 1,
    batch_size: int | None = None,
    confidence: float = 0.95,
    looks: int = 1,
    seed: int = 0,
    model_name: str | None = None,
    disclosure: options.Disclosure | str = options.Disclosure.PUBLIC,
) -> LabelsResult:
    """Audit what a model gives away about the labels it was trained on: no record is needed that it was not trained on.

    For each record a fair coin shows its real label or one drawn from D, a law of the label given the features; the model's
    probabilities say which. So many right guesses bound the epsilon of the training algorithm where one label is replaced
    (label privacy), at delta 0. It says nothing of who was in the training data, and nothing of features.

    The bound holds if D is the law of every audited label, which no audit can check: D is wrong where the features lack something,
    and, where it was learnt, also where the classifier missed what they tell. Without any leak, the odds of at least one label are
    off by a factor of e^epsilon or more. So it judges no claim. If the odds of D are off
    by a factor of at most e^0.25, the row ``epsilon_bound.labels.off_0.25`` holds; likewise 0.1, 0.5 and 1.

    Args:
        model: Any classifier that `collect` takes and that gives probabilities; for probabilities at hand ``np.asarray``, with
            these as the X of the records and D given.
        records: Training records with the labels they were trained with: the pair (X, y), or a `RecordTable`.
        reference: Other records of the same population, likewise, from which D is learnt; none of the audited ones among them.
        probabilities: Or D itself, made without these labels: shape (n, K), a column for each class, rows that sum to 1.
        classes: The label of each output column; default those that the model knows, or else 0, 1, ...
        output: What the model returns; default found out.
        repeats: Calls for each batch, whose outputs are averaged.
        batch_size: Records for each call of the model.
        confidence: Of the bounds, in (0, 1).
        looks: Declared number of such audits, which share the error; see `audit`.
        seed: Of the coins and the labels drawn. Fix it before you look.
        model_name: A name for the model, shown in the report.
        disclosure: Who may read the result: see `audit`.

    Raises:
        InputError: A model or records that cannot be used, neither or both of ``reference`` and ``probabilities``, labels that
            are all the same, a reference that holds audited records, or a law that gives a label no chance which a record has.

    Source: the odds of right guesses are [own], derived in `auditor.mechanism.label_audit`; after Steinke, Nasr and Jagielski
    2023.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 2, 1000)
    >>> remembered = np.where(labels[:, None] == [0, 1], 0.99, 0.01)
    >>> found = audit_labels(np.asarray, (remembered, labels), probabilities=np.full((1000, 2), 0.5))
    >>> found["epsilon_bound.labels"].value > 3
    True
    """
    values = locals()  # every argument by its name, and nothing else yet
    from auditor.mechanism import label_audit as room

    return room.audit_labels(**values)


def compare_audits(
    results: Iterable[AuditResult | str | os.PathLike[str]] | AuditResult | str | os.PathLike[str],
    *more: AuditResult | str | os.PathLike[str],
    about: Any = None,
    baseline: Any = None,
    measure: str | None = None,
    losses: Iterable[Losses] = (),
) -> AuditsComparison:
    """Set several audits beside each other, against their utility, and against a baseline.

    Args:
        results: Two or more results, or paths of result files; or the first of them.
        more: The others then.
        about: What the results do not say themselves: the path of a ``.csv`` or ``.parquet`` file, a DataFrame, or a
            dictionary of columns. Column ``result`` names the result (its file, its model, or its number from 1); any of
            ``utility``, ``utility_name``, ``higher_is_better``, ``strategy``, ``category`` and ``model`` say more.
        baseline: The result that the others are set against: the result itself, its file, its model, or its number
            from 1. By default the first of exactly two; none where there are more.
        measure: Name of the estimate on the privacy axis. By default ``advantage``, whose interval holds for any law and
            puts the audits in an order as far as they are shown to differ.
        losses: What the results were made of, in any order, where all audits are of the same records with the same
            membership, by id: then each is compared with the baseline record by record, which sees far smaller changes. A
            result keeps a hash of its losses, so that no others are taken for them.

    Raises:
        InputError: Fewer than two results, one of them twice, a table, baseline or measure that cannot be used, or losses
            of other audits or of other records.

    >>> import numpy as np
    >>> from auditor import Losses, Utility, audit
    >>> rng = np.random.default_rng(0)
    >>> others = rng.normal(size=5000)
    >>> old, new = (
    ...     audit(
    ...         Losses(member=rng.normal(-shift, 1, 5000), nonmember=others),
    ...         model=name, utility=Utility(accuracy, "test accuracy"),
    ...     )
    ...     for name, shift, accuracy in (("v1", 0.1, 0.84), ("v2", 1.0, 0.85))
    ... )
    >>> found = compare_audits([old, new])
    >>> found.got_worse, [item.name for item in found.frontier]
    (True, ['v1', 'v2'])
    """
    values = locals()  # every argument by its name, and nothing else yet
    from auditor.comparison import compare as room

    if more := values.pop("more"):
        values["results"] = [results, *more]
    return room.compare_audits(**values)


compare = compare_audits  # as the command is called


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
