"""Scorers, which turn a batch of records into their losses; every way of collecting runs one."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol, TypeVar

import numpy as np

from auditor.checks.carried import contents
from auditor.collectors.base import tasks
from auditor.collectors.base.named import NamedOutputs, in_order
from auditor.collectors.base.outputs import Output, Widened, in_range, sum_tolerance
from auditor.collectors.base.records import Batch, Records, listed, places
from auditor.collectors.base.tasks import BatchLosses, Classification, Classifier, Names, Policies, Task
from auditor.core import Attack, Attacks, AttackState, CarriedRows, InputError, Released, about, validate
from auditor.core.values import Array, Booleans, Floats, Losses, LossScale, OutputPolicy, PerGroup, Status

_Result = TypeVar("_Result")

# --- A model as the collectors see it: features in, outputs out, and the kind of the outputs ---


class Sender(Protocol):
    """Sends the requests about batches to a server before they are scored."""

    def begin(self, records: Records) -> float:
        """Send the requests about a batch whose turn comes later; return the share of the window that they take."""

    def drop(self, records: Records) -> None:
        """Give up the requests about a batch that `begin` sent."""


@dataclass(frozen=True, eq=False)
class Predictor:
    """Common interface of every supported kind of model.

    Attributes:
        predict: From a batch of records to an array of outputs with one row for each, of shape (n,) or (n, K). What
            goes wrong in it is raised as an `InputError` that names the batch (`Records.name`).
        source: Description of the outputs, for the history of the losses: "logits of Net (PyTorch)".
        output: Kind of output; None for a regression.
        classes: The label of each output column, where the model knows.
        records_at_once: Preferred number of records in one call; None if it makes no difference.
        fixed_columns: Whether each column is of the same class for every record; a function or a server may sort its scores.
        sender: Sends the requests about batches to come, where the model is served.
        carried: Training records that the model carries; None where that is not known.
    """

    predict: Callable[[Records], Any]
    source: str
    output: Output | None = None
    classes: tuple[Any, ...] | None = None
    records_at_once: int | None = None
    fixed_columns: bool = True
    sender: Sender | None = None
    carried: tuple[CarriedRows, ...] | None = None


class Scorer(Protocol):
    """Batches of records in, losses out."""

    @property
    def words(self) -> str:
        """Description of the losses and their source, for the history."""

    @property
    def scale(self) -> LossScale:
        """Scale of the loss."""

    @property
    def identity(self) -> str | None:
        """A hash of the files or the address of the model; None of one in memory."""

    @property
    def records_at_once(self) -> int | None:
        """Preferred number of records in a batch; None if it makes no difference."""

    def check(self, records: Records) -> object:
        """Refuse records that cannot be scored, as far as that is known without the model."""

    def score(self, records: Records) -> BatchLosses:
        """Return the losses of a batch.

        Raises:
            InputError: Records or outputs that cannot be scored; the sentence names the first.
        """


@dataclass(frozen=True, eq=False)
class ModelScorer:
    """Scores records by a model's outputs.

    Attributes:
        predictor: The model.
        task: Task that it was trained for.
        classes: The label of each output column; default those that the model knows. None: the column numbers.
        repeats: Calls of the model for each batch; the outputs are averaged, for a model that answers at random.
        policies: Restricted answers, under which the same outputs are scored too.
        identity: A hash of the files or the address of the model; None of one in memory.

    Raises:
        InputError: The classes that the model knows, in another order; or policies that the task does not have.
    """

    predictor: Predictor
    task: Task = Classification()  # noqa: RUF009 - a frozen value
    classes: Names = None
    repeats: int = 1
    policies: tuple[OutputPolicy, ...] = ()
    identity: str | None = None

    def __post_init__(self) -> None:
        refuse_other_order(self.classes, own=self.predictor.classes)
        object.__setattr__(self, "classes", self.predictor.classes if self.classes is None else self.classes)
        refuse_policies(self.policies, kinds=self.task.answers, what=self.task.words, repeats=self.repeats)

    @property
    def words(self) -> str:
        """Description of the losses and their source."""
        mean = f", averaged over {self.repeats} answers" if self.repeats > 1 else ""
        return f"{self.task.words} from {self.predictor.source}{mean}"

    @property
    def scale(self) -> LossScale:
        """Scale of the loss."""
        return self.task.scale

    @property
    def attacks(self) -> Attacks:
        """The search of the model's file, if it was made, and the attacks that need a model that generates records."""
        generates = dict.fromkeys((Attack.EXTRACTION, Attack.SYNTHETIC), AttackState.NOT_APPLICABLE)
        return generates | ({} if self.predictor.carried is None else {Attack.FILE: AttackState.RUN})

    @property
    def released(self) -> Released:
        """The training records that the model carries."""
        return Released(rows=self.predictor.carried or ())

    @property
    def records_at_once(self) -> int | None:
        """Batch size that the model requires."""
        return self.predictor.records_at_once

    @property
    def senders(self) -> Sequence[Sender]:
        """The sender of a served model, once for each answer."""
        return () if self.predictor.sender is None else (self.predictor.sender,) * self.repeats

    def check(self, records: Records) -> None:
        """Refuse labels that the model's classes do not have."""
        self.task.check(records, classes=self.classes)

    def score(self, records: Records) -> BatchLosses:
        """Return the losses of a batch."""
        return self.losses(self.outputs(records), records)

    def losses(self, outputs: Any, records: Records) -> BatchLosses:
        """Return the losses of a batch from the model's outputs and the labels of the records."""
        return self.task.losses(
            outputs, records=records, output=self.output, classes=self.classes, policies=self.policies
        )

    @property
    def output(self) -> Output:
        """Kind of output that the model returns, if it returns any."""
        return self.predictor.output or Output.PROBABILITIES

    def answer(self, records: Records) -> Any:
        """Return one answer of the model about a batch; columns with names in the order of the classes."""
        outputs, classes = self.predictor.predict(records), self.classes
        if not self.task.needs_labels and isinstance(outputs, NamedOutputs) and not np.any(outputs.absent):
            classes = outputs.names if classes is None else classes  # in any order
        return in_order(outputs, records=records, classes=classes, output=self.predictor.output)

    def outputs(self, records: Records) -> Any:
        """Return the outputs of the model for a batch, averaged over its answers."""
        first = self.answer(records)
        if self.repeats == 1:
            return first
        # The exponentials of logs are averaged, without being formed.
        logs = self.predictor.output is Output.LOG_PROBABILITIES
        outputs = first if isinstance(first, Widened) else np.asarray(validate.detached(first))
        total = outputs.astype(np.float64)
        for _ in range(self.repeats - 1):
            again = np.asarray(validate.detached(self.answer(records))).astype(np.float64)
            total = np.logaddexp(total, again) if logs else total + again
        mean = total - np.log(self.repeats) if logs else total / self.repeats
        return mean.astype(outputs.dtype) if outputs.dtype.kind == "f" else mean


def refuse_other_order(classes: Names, *, own: Names) -> None:
    """Refuse the classes that a model knows (its own), if there are any, in another order than its own."""
    if classes is None or own is None or len(classes) != len(own):
        return
    order, same = places(classes, own), list(range(len(own)))
    if order != same and sorted(order) == same:
        raise InputError(
            f"classes must be in the order of the output columns, which the model itself says is {listed(own)}, got"
            f" {listed(classes)}; leave classes= (--classes) out."
        )


def refuse_policies(policies: Policies, *, kinds: Sequence[str], what: str, repeats: int = 1) -> None:
    """Refuse policies of other kinds than those under which something is scored."""
    bad = next((item for item in policies if not {item.kind, item.name} & {*kinds}), None)
    if bad is not None:
        scores = [name for name in kinds if name.startswith("score=")]
        fix = "name only numbers of digits" if kinds else "leave policies= (--policies) out"
        fix = f"the scores are {', '.join(scores)}" if scores else fix
        raise InputError(
            f"policies must be of a kind that this score has, which is {what!r}, got {bad.name!r}; {fix}."
        )
    if policies and repeats > 1:
        raise InputError(
            f"policies must be left out where answers are averaged, got repeats={repeats}: each answer alone would be made"
            " coarser, and an average of them reveals more; leave repeats out."
        )


def in_batches(scorer: Scorer, groups: Iterable[Records], *, size: int | None) -> Generator[BatchLosses]:
    """Yield the losses of each group, in order, scored in batches of that size; see `batch_results`."""
    with closing(batch_results(scorer, groups, scorer.score, size=size)) as results:
        yield from map(tasks.concatenated, results)


def batch_results(
    scorer: Scorer, groups: Iterable[Records], result: Callable[[Records], _Result], *, size: int | None
) -> Generator[list[_Result]]:
    """Yield the results for the batches of each group, in order, while a server is answering about the batches after them.

    Of a served model at least two batches are under way, and further ones while their requests fit into the window: a slow
    answer does not hold up the others, and no more than these wait for it.

    Args:
        scorer: The scorer.
        groups: The groups.
        result: Function of a batch, such as the scorer's ``score``.
        size: Records in a batch; default as the scorer requires, or all.
    """
    senders: Sequence[Sender] = getattr(scorer, "senders", ())
    waiting, results = deque[tuple[Records, bool, float]](), list[_Result]()

    def batches() -> Iterator[tuple[Records, bool]]:
        for records in groups:
            step = size or scorer.records_at_once or len(records)
            for start in range(0, len(records), step):
                yield records.part(start, start + step), start + step >= len(records)

    try:
        for item in chain(batches(), (None,)):
            if item is not None:
                waiting.append((*item, sum(sender.begin(item[0]) for sender in senders)))
            while waiting and (
                item is None or not senders or (len(waiting) > 1 and sum(share for *_, share in waiting) >= 1)
            ):
                batch, last, _ = waiting[0]
                results.append(result(batch))
                waiting.popleft()
                if last:
                    yield results
                    results = []
    finally:
        for batch, _, _ in waiting:
            for sender in senders:
                sender.drop(batch)


def score_batches(
    scorer: Scorer, batches: Iterable[Batch], *, size: int | None
) -> Generator[tuple[Batch, BatchLosses]]:
    """Yield each batch with its losses, as `in_batches`; its fingerprints are computed while the model computes, and kept."""
    read = deque[tuple[Batch, Future[Any]]]()
    with ThreadPoolExecutor(1) as beside:

        def groups() -> Iterator[Records]:
            for batch in batches:
                read.append((batch, beside.submit(getattr, batch, "fingerprint")))
                yield batch.records

        with closing(in_batches(scorer, groups(), size=size)) as scored:
            for losses in scored:
                batch, hashed = read.popleft()
                hashed.result()
                yield batch, losses


# --- Losses of batches become `Losses`, with warnings for readers ---


_HARD = "the outputs are hard labels (only 0 and 1), so this is a weaker 0/1-loss audit"


def losses_of(
    scorer: Scorer,
    member: BatchLosses,
    nonmember: BatchLosses,
    *,
    labels: dict[str, Any],
    noticed: Sequence[str] = (),
    aside: str = "",
) -> Losses:
    """Return the losses of members and non-members with warnings for readers, including the ``noticed`` sentences."""
    saturated = (int(member.saturated.sum()), int(nonmember.saturated.sum()))
    both = tasks.concatenated((member, nonmember))
    correct = [side.more["correct"] for side in (member, nonmember) if "correct" in side.more]
    under = {
        policy: PerGroup(member.more[column], nonmember.more[column])
        for column, policy in OutputPolicy.columns_among(member.more).items()
    }
    first, second = tasks.finite_pair(member, nonmember)
    return Losses(
        member=first,
        nonmember=second,
        **labels,
        **facts_of(scorer, both, saturated=saturated, noticed=noticed, aside=aside),
        correct=PerGroup(*correct) if correct else None,
        policies=under,
    )


def facts_of(
    scorer: Scorer, both: BatchLosses, *, saturated: tuple[int, int], noticed: Sequence[str], aside: str = ""
) -> dict[str, Any]:
    """Return the scale of the losses of both groups, their source and the limits of their outputs, and which attack they are.

    Raises:
        InputError: Labels alone where the score is the model's confidence, which is then the same for all records.
    """
    hard, shortest = both.hard, both.shortest
    if hard and isinstance(scorer, ModelScorer) and not scorer.task.needs_labels:
        raise InputError(
            "outputs must be probabilities or logits for the task confidence, got only 0 and 1, as of a model that returns labels:"
            " every answer is equally confident; have the model return probabilities, or score it with the true labels."
        )
    some = (
        f"some answers name only some of the classes, {shortest} at least, and are scored as under the policy top{shortest}: what"
        " is left of 1 is spread evenly over the others"
    )
    notes = [sentence for sentence, holds in ((_HARD, hard), (some, shortest)) if holds]
    steps = [f"{scorer.words}{aside}", *notes]
    if any(saturated) and not hard:  # else all are saturated
        steps.append(
            f"{about(saturated[0])} member and {about(saturated[1])} non-member probabilities were exactly 0 or 1 and were placed"
            " at the end of the scale"
        )
    attacks = getattr(scorer, "attacks", {})
    return {
        "scale": scorer.scale,
        "saturated": saturated,
        "history": (*steps, *noticed),
        "notes": (*notes, *noticed),
        "attacks": attacks | ({Attack.LABEL: AttackState.RUN} if hard else {}),
        "released": getattr(scorer, "released", Released()),
    }


def file_warnings(facts: Any) -> tuple[str, ...]:
    """Return the warning of training records in the model's file, if there are any, from losses or their metadata.

    It is not among the notes of the losses, which are right whatever the file holds.
    """
    check = contents(facts.attacks, facts.released.rows)
    return () if check is None or check.status is not Status.WARN else (check.message,)


def distinct_classes(name: str, classes: Sequence[Any]) -> list[Any]:
    """Return the classes, an argument of that name, as a list of different labels."""
    try:
        flat = np.ndim(classes) == 1
    except ValueError:  # rows of different lengths
        flat = False
    if not flat:
        raise InputError(f"{name} must be a list of labels, one for each output column, got {classes!r}.")
    names = list(np.asarray(classes).tolist())
    if len(set(names)) != len(names):
        raise InputError(f"{name} must be distinct, got {names!r}.")
    return names


# --- Are two losses of a record the same answer? They may differ by some roundings of the model's floats ---


_ROUNDING = 1e-6  # relative
_ROUNDINGS = 4  # of a float, that the same model may differ by in another batch


def differences(
    first: Floats, second: Floats, *, eps: float, scale: LossScale, saturated: Booleans | None = None
) -> Floats:
    """Return how far the losses of two answers are apart, 0 where rounding explains it.

    A log-odds loss l from a probability p of rounding eps is known to eps / (p (1 - p)) = eps (2 + e^l + e^-l), and a
    loss on any other scale, whose own size the floats round, to eps (1 + |l|). Four such roundings are allowed.

    Args:
        first: Losses of the records, shape (n,).
        second: Again, shape (n,).
        eps: The spacing near 1 of the floats that the model returned.
        scale: Scale of the losses.
        saturated: Mask of the losses at the end of the scale; default the infinite ones.

    >>> nats = np.array([3.0])
    >>> differences(nats, nats + 2**-6, eps=2**-7, scale=LossScale.CROSS_ENTROPY)
    array([0.])
    >>> differences(nats, nats + 2**-6, eps=2**-23, scale=LossScale.CROSS_ENTROPY)
    array([0.015625])
    """
    end = tasks.largest_log_odds(eps)
    beyond = np.isinf(first) | np.isinf(second)
    if saturated is not None:
        beyond |= saturated
    a, b = (np.where(beyond, np.clip(loss, -end, end), loss) for loss in (first, second))
    size = np.maximum(np.abs(a), np.abs(b))
    room = 2 + np.exp(np.minimum(size, end)) if scale is LossScale.LOG_ODDS else 1 + size
    apart = np.abs(a - b)
    return np.asarray(np.where(apart <= _ROUNDING * (1 + np.abs(a)) + _ROUNDINGS * eps * room, 0.0, apart))


# --- The kind of a network's outputs, judged by some of their values: networks do not declare logits or probabilities ---
#
# Labels (whole numbers)                       probabilities, which later refuse all but 0 and 1
# All in [0, 1], and rows that sum to 1        probabilities
# All in [0, 1], and rows that do not          refused: as likely sigmoids of several labels as logits
# None above 0, and exponentials that do       log-probabilities
# Anything else                                logits
#
# For one column, or several labels, there is no sum to go by: all values in [0, 1] are taken for probabilities, and the
# history says so. If that was a mistake, the first value outside is refused with its row when it comes.


def recognised_output(
    answers: Sequence[Array], *, task: Task, output: Output | None = None
) -> tuple[Output | None, str]:
    """Return the kind of these outputs, None for a regression, and the history's sentence about how it is known.

    Args:
        answers: Shape (n, K), or (n,), of some records each.
        task: Task that the model was trained for.
        output: Kind of output that the caller declares.

    Raises:
        InputError: Scores of classes that could be of either kind.

    >>> recognised_output([np.array([[0.25, 0.75], [0.5, 0.5]])], task=Classification())
    (<Output.PROBABILITIES: 'probabilities'>, '')
    >>> recognised_output([np.array([[0.25, 0.75], [0.5, 1.5]])], task=Classification())
    (<Output.LOGITS: 'logits'>, '')
    >>> recognised_output([np.array([0.25, 0.75])], task=Classification())[1]
    ' (taken for probabilities, since all lie in [0, 1])'
    """
    if output is not None or not task.has_output:
        return (output if task.has_output else None), ""
    outputs = np.concatenate(answers)
    values = outputs.astype(np.float64)
    if np.isnan(values).any():
        return Output.LOGITS, ""
    classes, tolerance = values.ndim > 1 and isinstance(task, Classifier), sum_tolerance(outputs)
    labels = outputs.dtype.kind in "iub" or (values.ndim == 1 and bool(np.all(values == np.round(values))))
    if in_range(values):
        sums = values.sum(axis=1) if classes and not labels else np.ones(1)
        if (bad := np.abs(sums - 1) > tolerance).any():
            raise InputError(
                "model outputs must be distinguishable from probabilities, got values that all lie in [0, 1] in rows that do"
                f" not sum to 1 (the first such sum is {sums[int(np.argmax(bad))]:.6g}); pass output=Output.LOGITS (--output"
                " logits) if they are logits, or task=MultiLabel() (--task multi-label) if each column is a label of its own."
            )
        return Output.PROBABILITIES, "" if classes else " (taken for probabilities, since all lie in [0, 1])"
    if labels:
        return Output.PROBABILITIES, ""
    if classes and np.all(values <= 0) and np.all(np.abs(np.exp(values).sum(axis=1) - 1) <= tolerance):
        return Output.LOG_PROBABILITIES, ""
    return Output.LOGITS, ""
