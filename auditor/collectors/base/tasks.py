"""Tasks: the quantity that a model predicts, and its loss on one record.

Classification
    The negative log-odds of the true class.
MultiLabel
    Each label is a problem of two classes; the negative log-odds of the true side are summed over the labels.
SquaredError, GaussianLogLoss
    The model predicts numbers.
Confidence
    Classes without labels: the doubt of the model's own answer.

In every one of them a smaller loss means a better prediction.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from auditor.collectors.base.outputs import (
    Output,
    checked_outputs,
    decimals,
    resolution,
    shaped_outputs,
    sorted_hint,
)
from auditor.collectors.base.records import Codes, Records, count_records, plain_labels
from auditor.core import Array, Booleans, Floats, InputError, LossScale, OutputPolicy, validate

Names = Sequence[Any] | None  # of the classes, one for each output column, where they are known
Policies = Sequence[OutputPolicy]

# --- Losses of one batch of records, as they leave the model, and the place that saturated ones get in the end ---


@dataclass(frozen=True, eq=False)
class BatchLosses:
    """Losses of some records, in the order of the records.

    Attributes:
        loss: Shape (n,), float64; -inf or +inf where a probability was exactly 1 or 0 and no place can be given yet.
        saturated: Shape (n,), which losses come from a probability of exactly 0 or 1.
        eps: The spacing near 1 of the floats that the model returned.
        hard: Whether all probabilities were 0 or 1: the model returned labels.
        more: Other scores of the same records by name, each smaller for records that look more like members, such as
            ``loss.label`` under an `OutputPolicy`; of a classification also ``correct``, whether the largest output is the
            true class's.
        shortest: Number of classes in the shortest answer, if some name only some; else 0.
    """

    loss: Floats
    saturated: Booleans
    eps: float = float(np.finfo(np.float64).eps)
    hard: bool = False
    more: Mapping[str, Array] = field(default_factory=dict)
    shortest: int = 0


def concatenated(parts: Sequence[BatchLosses]) -> BatchLosses:
    """Return the batches of one group as one."""
    return BatchLosses(
        loss=np.concatenate([part.loss for part in parts]),
        saturated=np.concatenate([part.saturated for part in parts]),
        eps=max(part.eps for part in parts),
        hard=all(part.hard for part in parts),
        more={name: np.concatenate([part.more[name] for part in parts]) for name in parts[0].more},
        shortest=min((part.shortest for part in parts if part.shortest), default=0),
    )


def largest_log_odds(eps: float) -> float:
    """Return the log-odds of a probability one spacing of floats from 1."""
    return float(np.log1p(-eps) - np.log(eps))


def clip_saturated(loss: Floats, *, eps: float, low: float, high: float) -> Floats:
    """Return finite losses: infinite ones at the end of the scale, strictly beyond all others.

    Each is placed at logit(eps) of the source type, or beyond the most extreme finite loss on its side where that is
    further out, so that the model's exact 0 never ties with a probability above it.

    Args:
        loss: Shape (n,).
        eps: The spacing near 1 of the floats of the model, the largest over both groups.
        low: The smallest finite loss of both groups, at most 0.
        high: The largest, at least 0.
    """
    end = largest_log_odds(eps)

    def beyond(extreme: float) -> float:
        # One nat and a hundredth beyond a loss that is further out: bins of a summary still separate them.
        return end if extreme < end else min(1 + 1.01 * extreme, float(np.finfo(np.float64).max))

    return np.clip(loss, -beyond(-low), beyond(high))


def finite_pair(member: BatchLosses, nonmember: BatchLosses) -> tuple[Floats, Floats]:
    """Return both groups' losses, finite, on one scale."""
    eps = max(member.eps, nonmember.eps)
    finite = np.concatenate([part.loss[np.isfinite(part.loss)] for part in (member, nonmember)])
    low, high = float(finite.min(initial=0.0)), float(finite.max(initial=0.0))
    first, second = (clip_saturated(part.loss, eps=eps, low=low, high=high) for part in (member, nonmember))
    return first, second


# --- The loss of one record: the negative log-odds of its true class, computed so that nothing saturates ---
#
# With f_y the model's probability of the true class y (Negoescu et al. 2024, footnote 1)::
#
#     several classes   loss = -(log f_y - log(1 - f_y))
#     two classes       loss = (1 - 2y) (log f - log(1 - f)),  f the probability of class 1
#
# 1 - f_y is never computed by subtraction where the other classes are known: it is the sum of their probabilities.
# From logits z the normaliser cancels, loss = -(z_y - logsumexp of the other z), exact at any confidence.
#
# Edge cases, with eps the spacing of floats near 1 in the type the model *returned* (float32: 1.2e-7):
#     f_y = 0 or its log is -inf           loss +inf here, saturated
#     f_y = 0 of rounded probabilities     the loss under the policy of as many digits, saturated
#     the others sum to 0 or to log -inf   loss -inf here, saturated
# Everything is computed in float64. A record is saturated only when the returned numbers say exactly 0 or 1: a model
# that computed in float32 and returned float64 is taken at its word. `clip_saturated` gives saturated records a finite
# place.


_BLOCK = 2**20  # numbers converted to float64 at a time, so that a wide output is never copied whole


def true_class_loss(
    outputs: Array, *, codes: Codes, output: Output, records: Records, policies: Policies = ()
) -> BatchLosses:
    """Return the negative log-odds of each record's true class.

    Args:
        outputs: Shape (n, K), or (n,) for class 1 of two; see `Output` for their kinds.
        codes: Shape (n,), the column of the true class of each record.
        output: Kind of the outputs.
        records: Records of the outputs, for the error sentence.
        policies: Under which the records are scored too.

    Returns:
        The losses in nats; -inf or +inf where saturated.

    Raises:
        InputError: Outputs that contradict ``output``, or NaN; the sentence names the first row.

    >>> logits, records = np.array([[1e4, 0.0], [0.0, 1e4]]), Records("member", [], np.zeros(2))
    >>> true_class_loss(logits, codes=np.array([0, 0]), output=Output.LOGITS, records=records).loss
    array([-10000.,  10000.])
    """
    step = max(1, _BLOCK // (outputs.shape[1] if outputs.ndim > 1 else 1))
    loss = np.empty(outputs.shape[0])
    correct = np.empty(loss.size, dtype=np.bool_)
    under = {policy: np.empty(loss.size) for policy in policies}
    saturated, eps = np.zeros(loss.size, dtype=np.bool_), resolution(outputs)
    hard = output is not Output.LOGITS
    for start in range(0, loss.size, step):
        part = slice(start, start + step)
        values = checked_outputs(outputs[part], output=output, records=records, start=start)
        rounded = _rounding(values, outputs[part]) if output is Output.PROBABILITIES else None
        scored = None if rounded is None else _loss_under(rounded, values, codes[part], output)
        hard = hard and _all_hard(values, output)
        for policy, coarse in under.items():
            coarse[part] = _loss_under(policy, values, codes[part], output)
        if values.ndim == 1:
            loss[part] = _two_class_losses(values, codes[part], output)
            correct[part] = loss[part] < 0
        else:
            correct[part] = values.argmax(axis=1) == codes[part]
            loss[part] = _several_class_losses(values, codes[part], output)  # which overwrites the values
        if rounded is not None and scored is not None:
            saturated[part], loss[part] = np.isinf(loss[part]), scored
            # Of which the logit is that of a quarter of the last decimal to 1.
            eps = max(eps, 1 / (1 + 10.0**rounded.number / _QUARTER))
    must = "outputs must separate the true class from the others"
    records.refuse(np.isnan(loss), must, got=loss, fix="return logits that are not infinite for both")
    under |= {policy: np.where(correct, 0.0, 1.0) for policy in policies if policy.kind == "label"}
    more = {"correct": correct, **{policy.column: coarse for policy, coarse in under.items()}}
    return BatchLosses(loss, saturated | np.isinf(loss), eps=eps, hard=hard, more=more)


def _all_hard(values: Floats, output: Output) -> bool:
    certain, excluded = (1.0, 0.0) if output is Output.PROBABILITIES else (0.0, -np.inf)
    return bool(np.all((values == certain) | (values == excluded)))


def _two_class_losses(values: Floats, codes: Codes, output: Output) -> Floats:
    """Return losses of the second of two classes; infinite where its probability is exactly 0 or 1."""
    with np.errstate(divide="ignore"):
        if output is Output.LOGITS:
            logit = values
        elif output is Output.PROBABILITIES:
            logit = np.log(values) - np.log1p(-values)
        else:
            logit = values - np.log(-np.expm1(values))
    return np.where(codes == 1, -logit, logit)


def _several_class_losses(values: Floats, codes: Codes, output: Output) -> Floats:
    rows = np.arange(codes.size)
    own = values[rows, codes]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if values.shape[1] == 2:  # noqa: PLR2004 - the same as below, three times as quick
            other = values[rows, 1 - codes]
            return np.asarray(np.log(other) - np.log(own) if output is Output.PROBABILITIES else other - own)
        if output is Output.PROBABILITIES:
            values[rows, codes] = 0
            return np.asarray(np.log(values.sum(axis=1)) - np.log(own))
        values[rows, codes] = -np.inf
        top = values.max(axis=1)
        shift = np.where(np.isinf(top), 0, top)  # an infinite logit is its own sum
        return np.asarray(shift + np.log(np.exp(values - shift[:, None]).sum(axis=1)) - own)


# --- The loss under restricted answers: the log-odds of the true class for an attacker who sees the answer ---
#
#     digits=N   every probability rounded to N decimals; one of 0 counts as a quarter of the last decimal
#     topK       the K largest; the rest to 1 spread evenly over the others, of which nothing is known
#     label      1 for a wrong label and 0 for a right one
#
# Each is finite, and a function of the answer and the true class alone, so that the best attacker learns no more from it
# than from the full outputs. Of two classes ``top1`` says all that these say.


_QUARTER = 0.25


def _loss_under(policy: OutputPolicy, values: Floats, codes: Codes, output: Output) -> Floats:
    """Return the loss of the true class under a policy; that of a label is known already."""
    if policy.kind == "label":
        return np.zeros(codes.size)
    if policy.of_score:
        return _DOUBTS[policy.of_score][1](class_probabilities(values, output))
    answer, rows = class_probabilities(values, output), np.arange(codes.size)
    if policy.kind == "digits":
        # Counted in units of the last decimal: sums of whole numbers are exact, and equal answers tie.
        answer, least = np.rint(answer * 10.0**policy.number), _QUARTER
    else:
        top, rest = np.split(np.argsort(-answer, axis=1, kind="stable"), [policy.number], axis=1)
        if rest.size:  # from what is shown alone, so that nothing of the others leaks
            left = 1 - np.take_along_axis(answer, top, axis=1).sum(axis=1, keepdims=True)
            np.put_along_axis(answer, rest, np.maximum(left, 0) / rest.shape[1], axis=1)
        least = float(np.finfo(np.float64).eps)
    own = answer[rows, codes]
    answer[rows, codes] = 0
    return np.asarray(np.log(np.maximum(answer.sum(axis=1), least)) - np.log(np.maximum(own, least)))


def _rounding(values: Floats, outputs: Array) -> OutputPolicy | None:
    """Return the policy of probabilities of several classes that were rounded, as sums other than 1 show."""
    places = decimals(outputs) if values.ndim > 1 and values.shape[1] > 2 else None  # noqa: PLR2004
    off = np.abs(values.sum(axis=1) - 1) > 4 * values.shape[1] * resolution(outputs) if places else False
    return OutputPolicy(f"digits={places}") if np.any(off) else None


def class_probabilities(values: Floats, output: Output) -> Floats:
    """Return a fresh table of the probability of each class."""
    from scipy.special import expit

    if values.ndim == 1 and output is Output.LOGITS:
        return np.stack([expit(-values), expit(values)], axis=1)
    if values.ndim == 1 and output is Output.LOG_PROBABILITIES:
        return np.stack([-np.expm1(values), np.exp(values)], axis=1)
    if values.ndim == 1:
        return np.stack([1 - values, values], axis=1)
    if output is Output.PROBABILITIES:
        return values.copy()
    top = values.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):  # an infinite logit is the largest, or leaves nothing to the others
        shares = np.exp(np.where(values == top, 0.0, values - top))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


# --- Classes without labels: the doubt of the model's own answer, for an attacker who does not know the true class ---
#
#     largest    -max p
#     entropy    -(p_1 log p_1 + ... + p_K log p_K), in nats
#     margin     -(the largest p - the second largest)
#
# Probabilities that round to 1 are ties of the first and the last; the entropy separates them.


def _entropies(probabilities: Floats) -> Floats:
    from scipy.special import entr

    return np.asarray(entr(probabilities).sum(axis=1))


_DOUBTS: dict[str, tuple[str, Callable[[Floats], Floats]]] = {
    "largest": ("minus the largest probability", lambda p: -p.max(axis=1)),
    "entropy": ("entropy of the probabilities", _entropies),
    "margin": (
        "minus the margin between the two largest probabilities",
        lambda p: -np.diff(np.partition(p, -2, axis=1)[:, -2:])[:, 0],
    ),
}


# --- Tasks: the meaning of the labels, and the loss from outputs and labels; each has the same attributes and methods ---
#
# scale        Scale of the loss.
# words        The loss in words, for the history.
# needs_labels Whether the loss depends on the labels.
# has_output   Whether the model returns one of the kinds of `Output` (a regression returns plain numbers).
# labels       The labels of a group as an array with one row for each record, checked as far as they can be alone.
# check        Refuses labels that the classes do not have, before the model spends any time.
# losses       The losses of a batch from the model's outputs, and under policies.
# answers      The kinds of policies, or the names of other scores, under which it has a loss.


_TABLE = 2  # dimensions
_FINITE = "outputs must give finite losses"
_RESCALE = "rescale y, or fix the model's outputs"


@dataclass(frozen=True)
class Classifier:
    """Each record has one class of two or more; the model returns a score for each class."""

    has_output = True

    def labels(self, name: str, target: Any) -> Array:
        """Return one label for each record."""
        labels = plain_labels(name, target)
        if labels.ndim != 1:
            fix = "name the task MultiLabel() if all are 0 or 1, or score one column at a time"
            if labels.ndim == _TABLE and np.isin(labels, (0, 1)).all() and (labels.sum(axis=1) == 1).all():
                fix = "each row is one-hot: pass np.argmax(y, 1), the class of each record, or the names of the classes"
            raise InputError(f"{name} y must be one label for each record, got shape {labels.shape}; {fix}.")
        return labels


@dataclass(frozen=True)
class Classification(Classifier):
    """Each record has one true class of two or more.

    >>> Classification().words
    'negative log-odds of the true class'
    """

    scale = LossScale.LOG_ODDS
    words = "negative log-odds of the true class"
    needs_labels = True
    answers = ("digits", "top", "label", *(f"score={name}" for name in _DOUBTS))

    def check(self, records: Records, *, classes: Names) -> None:
        """Refuse labels that are no class."""
        if classes is not None:
            records.codes(classes)

    def losses(
        self, outputs: Any, *, records: Records, output: Output, classes: Names, policies: Policies = ()
    ) -> BatchLosses:
        """Return the negative log-odds of each record's class."""
        raw = shaped_outputs(outputs, records)
        width = 2 if raw.ndim == 1 else raw.shape[1]
        classes = getattr(raw, "classes", ()) or classes
        _refuse_width(classes, width, hint=sorted_hint(raw))
        if classes is None and raw.ndim == 1:
            # Predicted labels passed for probabilities are named before labels are looked up.
            checked_outputs(raw, output=output, records=records)
        codes = records.codes(range(width) if classes is None else classes)
        batch = true_class_loss(raw, codes=codes, output=output, records=records, policies=policies)
        return replace(batch, shortest=getattr(raw, "shortest", 0))


@dataclass(frozen=True)
class Confidence(Classifier):
    """Each record has one class of two or more, and the labels are not at hand: a record with a confident answer looks like a member.

    Attributes:
        score: ``largest`` (minus the largest probability), ``entropy`` (in nats), or ``margin`` (minus the difference of the
            two largest probabilities).

    Source: Salem et al. 2019, Section V, for the first two.

    >>> Confidence("entropy").words
    'entropy of the probabilities'
    """

    score: str = "largest"
    scale = LossScale.UNKNOWN
    needs_labels = False
    answers = ()

    def __post_init__(self) -> None:
        validate.one_of("score", self.score, _DOUBTS)

    @property
    def words(self) -> str:
        """The loss in words."""
        return _DOUBTS[self.score][0]

    def check(self, records: Records, *, classes: Names) -> None:
        """Accept any labels: the loss does not depend on them."""

    def losses(
        self, outputs: Any, *, records: Records, output: Output, classes: Names, policies: Policies = ()
    ) -> BatchLosses:
        """Return the doubt of each answer."""
        raw = shaped_outputs(outputs, records)
        width = 2 if raw.ndim == 1 else raw.shape[1]
        _refuse_width(getattr(raw, "classes", ()) or classes, width)
        step, parts, hard = max(1, _BLOCK // width), [], output is not Output.LOGITS
        for start in range(0, len(raw), step):
            part = checked_outputs(raw[start : start + step], output=output, records=records, start=start)
            hard = hard and _all_hard(part, output)
            parts.append(_DOUBTS[self.score][1](class_probabilities(part, output)))
        batch = _finite_losses(np.concatenate(parts), records)
        return replace(batch, eps=resolution(raw), hard=hard, shortest=getattr(raw, "shortest", 0))


@dataclass(frozen=True)
class MultiLabel:
    """Each record has several labels of 0 or 1, a column for each; the model returns a column for each.

    >>> MultiLabel().words
    'sum over the labels of the negative log-odds of the true side'
    """

    scale = LossScale.UNKNOWN
    words = "sum over the labels of the negative log-odds of the true side"
    needs_labels = True
    has_output = True
    answers = ("digits",)

    def labels(self, name: str, target: Any) -> Array:
        """Return the labels as a table of booleans, shape (n, K)."""
        dense = target.toarray() if hasattr(target, "toarray") else target
        labels = _columns(plain_labels(name, dense))
        if labels.ndim != _TABLE or labels.dtype.kind not in "fiub" or not np.isin(labels, (0, 1)).all():
            raise InputError(
                f"{name} y must be a table of 0 and 1 with a column for each label, got shape {labels.shape} of type"
                f" {labels.dtype}."
            )
        return labels.astype(np.bool_)

    def check(self, records: Records, *, classes: Names) -> None:
        """Refuse a table with another number of columns than there are classes."""
        _refuse_width(classes, records.labels.shape[1])

    def losses(
        self, outputs: Any, *, records: Records, output: Output, classes: Names, policies: Policies = ()
    ) -> BatchLosses:
        """Return the sum of the labels' losses, each between the ends that `_label_loss_range` gives the model's type of floats."""
        raw = _columns(shaped_outputs(outputs, records))
        truth = records.labels
        if raw.shape != truth.shape:
            raise InputError(
                f"{records.name} outputs must have a column for each of {truth.shape[1]} labels, got {raw.shape[1]}"
                " columns; give the labels in the order of the model's outputs."
            )
        low, high = _label_loss_range(raw, output)
        total, saturated, hard = np.zeros(len(records)), np.zeros(len(records), dtype=np.bool_), True
        under = {policy: np.zeros(len(records)) for policy in policies}
        for column in range(truth.shape[1]):
            values = checked_outputs(raw[:, column], output=output, records=records)
            loss = _two_class_losses(values, truth[:, column], output)
            infinite = np.isinf(loss) & (output is not Output.LOGITS)
            hard = hard and bool(infinite.all())
            saturated |= infinite
            total += np.clip(loss, low, high)
            for policy, sums in under.items():
                np.add(sums, _loss_under(policy, values, truth[:, column].astype(np.intp), output), out=sums)
        records.refuse(~np.isfinite(total), _FINITE, got=total, fix=_RESCALE)
        more = {policy.column: batch for policy, batch in under.items()}
        return BatchLosses(loss=total, saturated=saturated, eps=resolution(raw), hard=hard, more=more)


def _columns(values: Array) -> Array:
    """Return a table, of one column where the values are a vector."""
    return values[:, None] if values.ndim == 1 else values


def _label_loss_range(raw: Array, output: Output) -> tuple[float, float]:
    """Return the smallest and the largest loss that one label counts with, by which saturated ones get their place.

    With t the smallest number above 0 of the type, eps its spacing near 1, p the probability of the true side:
        probabilities        p = 1 at -logit(1 - eps), as far as it goes when 1 is returned for a label that is there;
                             p = 0 at -log t, as far as it goes when t is.
        log-probabilities    p = 1 at log t, for -t is as close to log 1 as they come; p = 0 at -log t of float64.
        logits               No ends.
    Losses beyond are drawn in, so that one that is saturated never looks less extreme than one that is not, and a label
    that is there counts as one that is not. The ends are the same for every batch.
    """
    if output is Output.LOGITS:
        return -np.inf, np.inf
    short = raw.dtype.kind == "f" and raw.dtype.itemsize < np.dtype(np.float64).itemsize
    widest = _smallest_log(np.dtype(np.float64))
    own = _smallest_log(raw.dtype) if short else widest
    if output is Output.LOG_PROBABILITIES:
        return own, -widest
    end = largest_log_odds(resolution(raw))
    return -end, max(end, -own)


def _smallest_log(dtype: np.dtype[Any]) -> float:
    """Return the logarithm of the smallest number above 0, computed where that number may be flushed to 0."""
    limits = np.finfo(dtype)
    return float((limits.minexp - limits.nmant) * np.log(2))


def _refuse_width(classes: Names, width: int, *, hint: str = "") -> None:
    if classes is not None and len(classes) != width:
        raise InputError(
            f"classes must name each of the model's {width} output columns, got {len(classes)} names"
            f"{hint and f'; {hint}'}."
        )


# --- Regressions: the loss on one record when the model predicts numbers ---
#
# SquaredError
#     (y - f)^2, summed over the outputs where there are several.
# GaussianLogLoss
#     ((y - f) / s)^2 / 2 + log s + log(2 pi) / 2, summed over the outputs; s is given, or the model's second output.


@dataclass(frozen=True)
class _Regression:
    """Each record has one number or more to predict."""

    scale = LossScale.UNKNOWN
    needs_labels = True
    has_output = False
    answers = ("digits",)

    def labels(self, name: str, target: Any) -> Array:
        """Return the numbers to predict, shape (n, d)."""
        labels = _columns(plain_labels(name, target))
        if labels.ndim != _TABLE or labels.dtype.kind not in "fiub":
            raise InputError(
                f"{name} y must be one number to predict for each record, got shape {labels.shape} of type {labels.dtype}."
            )
        values = labels.astype(np.float64)
        fix = "leave such records out"
        Records(name, values, values).refuse(~np.isfinite(values), "y must be finite", got=values, fix=fix)
        return values

    def check(self, records: Records, *, classes: Names) -> None:
        """Refuse classes: there are none."""
        if classes is not None:
            raise InputError("classes must be left out of a regression, which has none.")

    def losses(
        self, outputs: Any, *, records: Records, output: Output, classes: Names, policies: Policies = ()
    ) -> BatchLosses:
        """Return the losses, and those of the numbers rounded."""
        width = records.labels.shape[1]
        values = _predictions(outputs, records, width=self.width(width))
        with np.errstate(over="ignore"):
            batch = _finite_losses(self.loss_of(values, records), records)
            under = {
                item.column: self.loss_of(_rounded(values, item.number, width), records) for item in policies
            }
        return replace(batch, more={name: _finite_losses(loss, records).loss for name, loss in under.items()})

    def width(self, labels: int) -> int:
        """Return how many columns the model returns for so many numbers to predict."""
        return labels

    def loss_of(self, values: Floats, records: Records) -> Floats:
        """Return the loss of each record from the model's outputs."""
        raise NotImplementedError


@dataclass(frozen=True)
class SquaredError(_Regression):
    """Each record has one number or more to predict; the loss is the squared error, in squared units of y.

    >>> SquaredError().words
    'squared error'
    """

    words = "squared error"

    def loss_of(self, values: Floats, records: Records) -> Floats:
        """Return the squared errors, summed over the outputs."""
        return np.asarray(((records.labels - values) ** 2).sum(axis=1))


@dataclass(frozen=True)
class GaussianLogLoss(_Regression):
    """Each record has one number or more to predict, with normal noise; the loss is the negative log-likelihood, in nats.

    Attributes:
        standard_deviation: Standard deviation of the noise, above 0, in units of y; None if the model returns it itself: a table of
            the means followed by as many standard deviations.

    >>> GaussianLogLoss(2.0).words
    'Gaussian log loss with standard deviation 2'
    """

    standard_deviation: float | None = None

    def __post_init__(self) -> None:
        if self.standard_deviation is not None:
            value = validate.positive("standard_deviation", self.standard_deviation)
            object.__setattr__(self, "standard_deviation", value)

    @property
    def words(self) -> str:
        """The loss in words."""
        if self.standard_deviation is None:
            return "Gaussian log loss with the standard deviation that the model returned"
        return f"Gaussian log loss with standard deviation {self.standard_deviation:g}"

    def width(self, labels: int) -> int:
        """Return how many columns the model returns."""
        return labels if self.standard_deviation is not None else 2 * labels

    def loss_of(self, values: Floats, records: Records) -> Floats:
        """Return the negative log-likelihoods, summed over the outputs."""
        width = records.labels.shape[1]
        predicted, deviation = values[:, :width], values[:, width:]
        if self.standard_deviation is None:
            must = "outputs must hold standard deviations above 0 after the means"
            records.refuse(deviation <= 0, must, got=deviation, fix="return deviations, not their logarithms")
        else:
            deviation = np.full((1, width), self.standard_deviation)
        loss = ((records.labels - predicted) / deviation) ** 2 / 2 + np.log(deviation)
        return np.asarray((loss + math.log(2 * math.pi) / 2).sum(axis=1))


def _predictions(outputs: Any, records: Records, *, width: int) -> Floats:
    raw = _columns(shaped_outputs(outputs, records))
    values = np.asarray(raw).astype(np.float64)
    if values.shape[1] != width:
        raise InputError(
            f"{records.name} outputs must have {width} column{'s' if width > 1 else ''}, got {values.shape[1]};"
            " return one number for each number to predict"
            " (and its standard deviation, if the task needs it)."
        )
    records.refuse(~np.isfinite(values), "outputs must be finite", got=values, fix="fix the model's input")
    return values


def _rounded(values: Floats, decimals: int, width: int) -> Floats:
    """Return predictions to so many decimals; deviations, which come after them, of at least a quarter of the last one."""
    coarse = np.round(values, decimals)
    coarse = np.where(np.isfinite(coarse), coarse, values)  # too large to be rounded
    coarse[:, width:] = np.maximum(coarse[:, width:], _QUARTER * 10.0**-decimals)
    return coarse


def _finite_losses(loss: Floats, records: Records) -> BatchLosses:
    records.refuse(~np.isfinite(loss), _FINITE, got=loss, fix=_RESCALE)
    return BatchLosses(loss=loss, saturated=np.zeros(loss.size, dtype=np.bool_))


Task = Classification | MultiLabel | SquaredError | GaussianLogLoss | Confidence


# --- Are the output columns in the order of the classes? Labels that another order explains far better say no ---


_CHANCE = 1e-6  # of a false alarm, at most, with a model that means its probabilities
_DOUBT = 0.1  # share of the uniform distribution mixed in, so that no single record decides
_LEAST_GAIN = 0.2  # nats for each record
_LEAST_SEEN = 2  # classes


def misordered(probabilities: Floats, *, codes: Codes) -> bool:
    """Return whether another order of the columns explains the labels far better.

    With q the model's probabilities, a tenth of them spread evenly, the best assignment s of columns to classes is the
    one of the largest likelihood, sum over the records of log q[s(label)]. Were the given order true and labels drawn
    from q, each other order would have an expected likelihood ratio of 1, so by Markov's inequality any of the K! / (K - m)!
    orders of the m classes seen is ahead by more than log(K! / (K - m)!) + log(1e6) with a chance below 1e-6. Only then,
    and if the gain is 0.2 nats a record at least, the given order is doubted.

    Rows of a sorted table are no such draw: they may be of few classes, or of one. So the order is only doubted where two
    classes at least were seen, and where it gives one of them the column of a class that was not, all but the class that
    gains most must have such a gain too: a single column can stand for one class alone.

    Args:
        probabilities: Shape (n, K).
        codes: Shape (n,), the column of each label in the given order.

    >>> swapped = np.tile([[0.95, 0.05], [0.05, 0.95]], (20, 1))
    >>> misordered(swapped, codes=np.tile([1, 0], 20)), misordered(swapped, codes=np.tile([0, 1], 20))
    (True, False)
    """
    from scipy.optimize import linear_sum_assignment

    n, width = probabilities.shape
    logs = np.log((1 - _DOUBT) * probabilities + _DOUBT / width)
    total = np.zeros((width, width))
    np.add.at(total, codes, logs)  # row: class, column: output column
    seen = np.unique(codes)
    _, columns = linear_sum_assignment(total[seen], maximize=True)
    gains = total[seen, columns] - total[seen, seen]
    gain = gains.sum()
    orders = math.lgamma(width + 1) - math.lgamma(width - seen.size + 1)
    if gain < max(orders - math.log(_CHANCE), _LEAST_GAIN * n) or seen.size < _LEAST_SEEN:
        return False
    most = int(np.argmax(gains))
    others = n - int((codes == seen[most]).sum())
    return bool(np.isin(columns, seen).all() or gain - gains[most] >= _LEAST_GAIN * others)


def records_of(name: str, argument: str, pair: Any, task: Task, *, least: int = 2) -> Records:
    """Return the records of a pair (X, y)."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:  # noqa: PLR2004
        fix = "with a table give label=, its column of true labels"
        fix += "" if task.needs_labels else ", or without labels (X, None)"
        raise InputError(f"{argument} must be a pair (X, y), got {type(pair).__name__}; {fix}.")
    features, target = pair
    if target is None and task.needs_labels:
        fix = 'give them, or score the model without labels with task="confidence" (--task confidence)'
        raise InputError(f"{argument} must hold the true labels y beside X, got None; {fix}.")
    labels = np.zeros(count_records(name, features)) if target is None else task.labels(name, target)
    validate.same_length((f"{name} X", f"{name} y"), (count_records(name, features), labels.shape[0]))
    if labels.shape[0] < least:
        raise InputError(f"{argument} must hold at least {least} records, got {labels.shape[0]}; is X empty?")
    return Records(name=name, features=features, labels=labels)


TASKS = {
    "classification": Classification,
    "multi-label": MultiLabel,
    "regression": SquaredError,
    "gaussian": GaussianLogLoss,
    "confidence": Confidence,
}
