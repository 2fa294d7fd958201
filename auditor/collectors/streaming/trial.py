"""Trial on a few records before many are scored: whether it works, and whether to trust the answers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from auditor.collectors.base import tasks
from auditor.collectors.base.named import joined
from auditor.collectors.base.outputs import NAME_SCORES, Output, fall, shaped_outputs
from auditor.collectors.base.records import Codes, Records, spread
from auditor.collectors.base.scorer import ModelScorer, Scorer, batch_results, differences
from auditor.collectors.served.endpoint import ServedModel
from auditor.collectors.texts.scorer import TextScorer
from auditor.core import Array, Floats, InputError, LossScale

# --- A few records scored on trial: outputs and losses ---


@dataclass(frozen=True, eq=False)
class Answer:
    """Outputs, if any, and losses of some records."""

    records: Records
    outputs: Array | None
    losses: tasks.BatchLosses


def _tried(scorer: Scorer, *groups: Records, batch_size: int | None) -> Iterator[Answer]:
    """Yield one answer of a scorer about each group, without averaging, in batches as the collection will have them."""
    once = replace(scorer, repeats=1) if isinstance(scorer, ModelScorer) else scorer
    answers = batch_results(once, groups, partial(_answer, once), size=batch_size)
    for records, parts in zip(groups, answers, strict=True):
        outputs = [part.outputs for part in parts if part.outputs is not None]
        losses = tasks.concatenated([part.losses for part in parts])
        yield Answer(records, joined(outputs) if outputs else None, losses)


def _answer(scorer: Scorer, records: Records) -> Answer:
    if not isinstance(scorer, ModelScorer):
        return Answer(records, None, scorer.score(records))
    answer = scorer.answer(records)
    return Answer(records, shaped_outputs(answer, records), scorer.losses(answer, records))


def _server(scorer: Scorer) -> ServedModel | None:
    """Return the served model that a scorer uses, if any."""
    served = scorer.predictor.predict if isinstance(scorer, ModelScorer) else None
    return served if isinstance(served, ServedModel) else None


def _gap(first: tasks.BatchLosses, second: tasks.BatchLosses, scale: LossScale) -> float | None:
    """Return how far an answer is from an earlier one about these records and others, or none if by a rounding."""
    n, eps = second.loss.size, max(first.eps, second.eps)
    saturated = first.saturated[:n] | second.saturated
    apart = differences(first.loss[:n], second.loss, eps=eps, scale=scale, saturated=saturated)
    return float(apart.max()) if apart.any() else None


# --- Results of the trial ---


_FEW = 10  # records that are scored twice
_ALIKE = 1e-3  # relative, between two answers about a record
_DIFFERENT = 3  # answers that do not change places by chance
_SOME = 200  # records of all groups on which the order of the labels is judged
_SORTED = 30  # records whose scores all fall from left to right, so that they look sorted
_SURPLUS = 1.5  # three standard errors of a share, at most, times the root of the records
_LOOKED = 250  # records of a group whose outputs are at hand on which the order of the labels is judged
_SUM = 1e-5  # a sum of probabilities further from 1 says that they were rounded


@dataclass(frozen=True)
class Preflight:
    """Results of the trial on a few records.

    Attributes:
        deterministic: Whether the same records, scored again, had the same losses.
        warnings: Warnings for readers of the losses, a sentence each.
        provisional: Warnings from these records alone, for the caller; the history has those of all records.
        answer: The outputs and losses of the first of them, to be compared in the end.
    """

    deterministic: bool
    warnings: tuple[str, ...]
    provisional: tuple[str, ...] = ()
    answer: Answer | None = field(default=None, repr=False)


def preflight(
    scorer: Scorer, groups: Sequence[Records], *, batch_size: int | None = None, whole: bool = False
) -> Preflight:
    """Try a scorer on a few records of each group: ten of them, and then all.

    If the ten have the same losses among all, these depend neither on chance nor on the batch. Otherwise, and always from a
    server, the ten are scored again and one of them alone. A server also gets the ten in another order and in two batches:
    its answers must follow them.

    Args:
        scorer: Scorer of the groups.
        groups: Records of members and of non-members, at least one; 200 in all are used, spread over each group, since
            a group may be sorted and a model may know only its members.
        batch_size: Records for each call of the model, at most; default as the model requires.
        whole: Whether all records are used, whose outputs the scorer keeps.

    Returns:
        The findings, with the losses of the first ten.

    Raises:
        InputError: Whatever scoring these records raises, or labels of text and nothing that says which output column
            is which class.

    >>> from auditor.collectors.streaming.scorers import predictor
    >>> model = predictor(lambda x: np.stack([1 - x, x], axis=1), task=tasks.Classification())
    >>> result = preflight(ModelScorer(model), [Records("member", np.linspace(0.1, 0.9, 20), np.arange(20) // 10)])
    >>> result.deterministic, result.warnings, result.provisional
    (True, (), ())
    """
    share = _SOME // len(groups)
    some = groups if whole else spread(groups, most=share, least=share)
    tried = partial(_tried, scorer, batch_size=batch_size)
    few = some[0].take(slice(0, _FEW))  # never the group itself, whose outputs may be kept
    more = isinstance(scorer, ModelScorer) and sum(map(len, some)) > len(few)
    [first] = tried(few)
    split = np.array_split(np.arange(len(few))[::-1], 2) if _server(scorer) and len(few) > 1 else []
    checks = [few, few.part(0, 1), *map(few.take, split)]
    if _server(scorer) or not more:
        again, alone, *others = tried(*checks, *(some if more else ()))
    else:
        others = [*tried(*some)]
        same = len(some[0]) > len(few) and _gap(others[0].losses, first.losses, scorer.scale) is None
        again, alone = (first, first) if same else tried(*checks)
    back_again, most = others[: len(split)], others[len(split) :] or [first]
    of_texts = scorer.trial(some[0]) if isinstance(scorer, TextScorer) else ()
    apart = _gap(first.losses, again.losses, scorer.scale)
    if split:
        _refuse_other_rows(first, back_again)
    by_batch = apart is None and _gap(first.losses, alone.losses, scorer.scale) is not None
    warned = _columns(scorer, [(item.records, item.outputs) for item in most])
    hard = tasks.concatenated([answer.losses for answer in most]).hard
    return Preflight(
        deterministic=apart is None,
        warnings=(*of_texts, *_warnings(scorer, apart=apart, by_batch=by_batch), *warned),
        provisional=tuple(_provisional(scorer, sum(len(answer.records) for answer in most))) if hard else (),
        answer=first,
    )


def _refuse_other_rows(first: Answer, again: Sequence[Answer]) -> None:
    """Refuse a server whose answers do not follow their records, sent again in the other order and in two batches.

    Its answers are then those of before, in another order than the records: three different ones at least have moved, for
    fewer, such as labels drawn at random, may move by chance.
    """
    n = len(first.records)
    outputs = first.outputs, joined([answer.outputs for answer in again if answer.outputs is not None])
    before, after = (np.asarray(values, dtype=np.float64).reshape(n, -1) for values in outputs)
    same = np.all(np.isclose(before[:, None], after[None, ::-1], rtol=_ALIKE, atol=_ALIKE**2), axis=2)
    moved = ~np.diagonal(same)
    if same.any(axis=0).all() and len(np.unique(before[moved], axis=0)) >= _DIFFERENT:
        raise InputError(
            f"{first.records.name} answers must follow their records, got those of other records for the same {n} in another"
            f" order and batch (first for {first.records.row(int(np.argmax(moved)))}); have the server answer in the order"
            " of the request, or send one record at a time with max_request_records=1."
        )


def _columns(scorer: Scorer, answers: Sequence[tuple[Records, Any]]) -> list[str]:
    """Return warnings for readers: of rounded probabilities, and of columns that another order explains far better.

    Raises:
        InputError: Scores that are sorted without their classes.
    """
    if not isinstance(scorer, ModelScorer) or not isinstance(scorer.task, tasks.Classification):
        return []
    outputs, warned = joined([result for _, result in answers]), []
    named = getattr(outputs, "classes", ())
    options = named or scorer.classes
    names = range(outputs.shape[1] if outputs.ndim > 1 else 2) if options is None else options
    codes = np.concatenate([records.codes(names) for records, _ in answers])
    with np.errstate(over="ignore"):  # logits beyond the doubles
        probabilities = tasks.class_probabilities(outputs.astype(np.float64), scorer.output)
    loose = not (scorer.predictor.fixed_columns or named)
    if loose and np.ptp(codes) and (fall(outputs, least=_SORTED) or _of_winners(probabilities, codes)):
        raise InputError(
            "outputs must be in the order of the classes, got scores that look sorted, or are those of the predicted classes"
            f" alone, for each of {codes.size} records; {NAME_SCORES}, also where this order is right."
        )
    if outputs.ndim > 1 and scorer.output is Output.PROBABILITIES:
        off_one = float(np.abs(probabilities.sum(axis=1) - 1).max())
        if off_one > _SUM:
            warned.append(
                f"the probabilities of a record sum to one only within {off_one:.1g}: they are rounded, and so are the"
                " losses; have the model return all digits."
            )
    if tasks.misordered(probabilities, codes=codes):
        fix = "check classes= (--classes)"
        if scorer.predictor.classes is not None:
            fix = "the model itself says its order, so check how the labels were encoded"
        elif named:
            fix = "the names of the columns say their order, so check how the labels were encoded"
        warned.append(
            "the labels look as if the output columns were in another order of the classes, which explains them far better:"
            f" {fix}."
        )
    return warned


def _of_winners(probabilities: Floats, codes: Codes) -> bool:
    """Return whether one of two classes always has the larger probability, and far fewer labels than that says.

    So it is with sorted probabilities, and where the probability of the predicted class is all that a server gives.
    """
    column = int(probabilities[0, 1] > probabilities[0, 0])
    larger = probabilities[:, column]
    surplus = float(larger.mean() - (codes == column).mean())
    two = probabilities.shape[1] == 2 and np.ptp(larger) > 0 and larger.min() >= 0.5  # noqa: PLR2004
    return bool(two and larger.size >= _SORTED and surplus > _SURPLUS / larger.size**0.5)


def caching(scorer: ModelScorer, groups: Sequence[Records]) -> ModelScorer:
    """Return a scorer that calls its model once for each of these groups, as a whole, and keeps the outputs."""
    outputs: dict[int, Any] = {}

    def predict(records: Records) -> Any:
        place = next((place for place, group in enumerate(groups) if group is records), None)
        if place is None:
            return scorer.predictor.predict(records)
        if place not in outputs:
            outputs[place] = scorer.predictor.predict(records)
        return outputs[place]

    return replace(scorer, predictor=replace(scorer.predictor, predict=predict))


def columns_noticed(scorer: ModelScorer, groups: Sequence[Records]) -> Preflight:
    """Return the findings about the columns from the outputs of whole groups, which are cached and were scored.

    Raises:
        InputError: Scores that are sorted without their classes.
    """
    answers = []
    for group in groups:
        outputs = shaped_outputs(scorer.answer(group), group)
        [some] = spread([replace(group, features=np.arange(len(group)))], most=_LOOKED, least=_LOOKED)
        answers.append((some, outputs[some.features]))
    return Preflight(deterministic=True, warnings=tuple(_columns(scorer, answers)))


def _warnings(scorer: Scorer, *, apart: float | None, by_batch: bool) -> Iterator[str]:
    """Yield warnings for readers of the losses."""
    if apart is not None:
        repeats = scorer.repeats if isinstance(scorer, ModelScorer) else 1
        then = "average several answers (repeats), or switch the randomness off"
        if repeats > 1:
            then = f"each loss is that of the average of {repeats} answers"
        yield (
            f"the model answers differently on repeat: the losses of the same records differed by up to {apart:.2g};"
            f" {then}."
        )
    if by_batch:
        yield (
            "the model answers differently about a record alone than among others, so that losses depend on the batch;"
            " check that it is not in training mode and that nothing is normalised over the batch."
        )


def _provisional(scorer: Scorer, tried: int) -> Iterator[str]:
    """Yield warnings that hold on the records of the trial, whose outputs are all labels."""
    served = _server(scorer)
    # Named labels are accepted, and the history explains them.
    if served is None or served.endpoint.labels is None:
        fix = served.fix if served else "have the model return probabilities or logits"
        yield (
            f"all outputs for {tried} records are exactly 0 or 1, as of a model that returns labels, which leaves"
            f" a weaker 0/1-loss audit; {fix}."
        )
