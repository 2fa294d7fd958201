"""Scores of a text from the log-probabilities of its tokens; in every one a smaller score looks more like a member.

With l_2, ..., l_T the log-probability of each token given those before it (the first token has none), or of the tokens of
the responses alone::

    MeanTokenLoss   -(l_2 + ... + l_T) / (T - 1)
    SumTokenLoss    -(l_2 + ... + l_T), the negative log of the text's probability given its first token
    MinK(k)         -(mean of the k% lowest of l_2, ..., l_T), of at least one token (Shi et al. 2024)
    ZlibRatio       SumTokenLoss / the length in bytes of the text compressed by zlib (Carlini et al. 2021)
"""

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditor.collectors.base.records import Records, is_frame
from auditor.core import Floats, InputError, LossScale, explained, validate, with_kind
from auditor.records.labels import is_missing

# --- Texts of a batch of records, and a language model's log-probabilities of their tokens ---


_ROUNDING = 1e-6  # a log-probability just above 0 is a rounding error of a probability of 1


@dataclass(frozen=True, eq=False)
class ScoredText:
    """A text and the log-probabilities of its tokens.

    Attributes:
        log_probabilities: Of every scored token given those before it, in nats; 0 or less. The first token of a text has none.
        text: The text of the scored tokens.
    """

    log_probabilities: Floats
    text: str


_Render = Callable[..., str]  # from chat messages to the text of their template


@dataclass(frozen=True)
class Passage:
    """A text, and the parts of it that are scored.

    Attributes:
        text: The whole text.
        responses: The first character of each part that a model wrote, and the one after it; None: all of the text is scored.
        is_chat: Whether the text comes from a chat template, which writes the special tokens itself.
    """

    text: str
    responses: tuple[tuple[int, int], ...] | None = None
    is_chat: bool = False

    @property
    def scored(self) -> str:
        """The parts that are scored."""
        parts = ((0, len(self.text)),) if self.responses is None else self.responses
        return "".join(self.text[start:stop] for start, stop in parts)


def cells(records: Records) -> list[Any]:
    """Return each record of a list, a column or a table: a text, a pair (prompt, completion), or a list of chat messages.

    >>> cells(Records("member", [{"prompt": "1 + 1 = ", "completion": "2"}, {"text": "3"}], np.zeros(2)))
    [('1 + 1 = ', '2'), '3']
    """
    features = records.features
    if is_frame(features):
        names = _chosen(features.columns) or tuple(features.columns)
        if len(names) == len(_PAIR):
            return list(zip(*(features[name] for name in names), strict=True))
        features = features[names[0]] if len(names) == 1 else features
    column = features if isinstance(features, list | tuple) else np.asarray(features, dtype=object)
    if isinstance(column, np.ndarray):
        column = column[:, 0] if column.ndim == 2 and column.shape[1] == 1 else column  # noqa: PLR2004
        if column.ndim != 1:
            raise InputError(
                f"{records.name} texts must be one column of strings, got shape {column.shape}; name the column of the texts, or those of"
                " the prompts and the completions."
            )
    return [_cell(value) for value in column]


_PAIR = ("prompt", "completion")
_TEXTS = (("messages",), _PAIR, ("text",))  # columns of texts, of which the first that are there are scored


def _chosen(names: Iterable[str]) -> tuple[str, ...]:
    return next((columns for columns in _TEXTS if set(columns) <= set(names)), ())


def _cell(value: Any) -> Any:
    if isinstance(value, Mapping):
        names = _chosen(value) or _PAIR
        value = value[names[0]] if len(names) == 1 else tuple(value.get(name) for name in names)
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return value.tolist() if isinstance(value, np.ndarray) else value


def is_passage(value: Any) -> bool:
    """Return whether a value is one text, pair or chat, or a dictionary of one, and not several in a list or by column.

    >>> is_passage("a"), is_passage({"text": "a"}), is_passage(["a", "b"]), is_passage({"text": ["a", "b"]})
    (True, True, False, False)
    """
    match cell := _cell(value):
        case str() | [{"role": _}, *_]:
            return True
        case (str(), str()):
            return isinstance(cell, tuple)
    return False


def passages(records: Records, *, render: _Render | None = None) -> list[Passage]:
    """Return the features of records as texts, all of one kind, with the parts that are scored.

    Args:
        records: Records whose features are texts, prompts with completions, or chats; see `cells`.
        render: Renders chat messages; None where there is no chat template.

    >>> passages(Records("member", [("1 + 1 = ", "2")], np.zeros(1)))
    [Passage(text='1 + 1 = 2', responses=((8, 9),), is_chat=False)]
    """
    result: list[Passage] = []
    for row, value in enumerate(cells(records)):
        match value:
            case str():
                item = Passage(str(value))
            case (str(prompt), str(completion)):
                item = Passage(prompt + completion, ((len(prompt), len(prompt) + len(completion)),))
            case [{"role": str(), "content": _}, *_] as messages:
                item = _chat(messages, render, place=f"{records.name} chat ({records.row(row)})")
            case _:
                got = "a missing value" if is_missing(value) else type(value).__name__
                fix = "leave that record out or name the column of the texts"
                if isinstance(value, list):
                    fix += '; a chat is a list of {"role": ..., "content": ...}'
                raise unread(records, row, "be strings", got=got, fix=fix)
        if validate.SURROGATE.search(item.text):
            fix = "read the file in its own encoding"
            raise unread(records, row, "be valid Unicode", got="half of a surrogate pair", fix=fix)
        result.append(item)
        if (item.responses is None, item.is_chat) != (result[0].responses is None, result[0].is_chat):
            fix = "score one kind at a time"
            raise unread(records, row, "be of one kind", got="another", fix=fix)
    return result


def unread(records: Records, row: int, must: str, *, got: str, fix: str) -> InputError:
    """Return the sentence about a text that cannot be scored."""
    return InputError(f"{records.name} texts must {must}, got {got} ({records.row(row)}); {fix}.")


def _chat(messages: Sequence[Any], render: _Render | None, *, place: str) -> Passage:
    """Return a chat as its template renders it; a response goes from the template's prompt to the end of the turn."""
    if render is None:
        raise InputError(
            f"{place} needs a tokenizer of transformers with a chat template, in this process; give each prompt and its"
            " completion as text."
        )
    turns = [{name: value for name, value in item.items() if value is not None} for item in messages]
    with explained(f"{place} must suit the tokenizer's chat template, which refused it", reason=with_kind):
        text = render(turns, add_generation_prompt=False)
        ends = [
            (
                render(turns[:at], add_generation_prompt=True),
                render(turns[: at + 1], add_generation_prompt=False),
            )
            for at, turn in enumerate(turns)
            if turn.get("role") == "assistant"
        ]
    if not ends:
        raise InputError(f"{place} must have a turn of the assistant, got none; leave that record out.")
    if not all(text.startswith(end) for pair in ends for end in pair):
        raise InputError(
            f"{place} must begin as its first turns alone do, but the chat template writes them differently; give one response,"
            " as a prompt and its completion."
        )
    return Passage(text, tuple((len(before), len(after)) for before, after in ends), is_chat=True)


def shared(first: Sequence[Any], second: Sequence[Any]) -> int:
    """Return with how many equal items two sequences begin.

    >>> shared([1, 2, 3], [1, 2, 4, 5])
    2
    """
    both = zip(first, second, strict=False)
    return next((at for at, (a, b) in enumerate(both) if a != b), min(len(first), len(second)))


def checked_log_probabilities(values: Floats, *, records: Records, row: int) -> Floats:
    """Return the log-probabilities of one text, none above 0; NaN is refused with its token."""
    bad = np.isnan(values) | (values > _ROUNDING)
    if bad.any():
        place = int(np.argmax(bad))
        raise InputError(
            f"{records.name} text ({records.row(row)}) must have token log-probabilities of 0 or less, got"
            f" {values[place]:.6g} for token {place + 1}, counting from 0; fix the model."
        )
    return np.minimum(values, 0.0)


# --- Scores: a number for a text each, with the name of its column, its description, and its scale as a loss ---


_WHOLE = 100  # percent


@dataclass(frozen=True)
class MeanTokenLoss:
    """The mean of the tokens' log-losses: the logarithm of the perplexity.

    >>> MeanTokenLoss().of(np.array([-1.0, -3.0]), text="a b c")
    2.0
    """

    name = "mean_token_loss"
    words = "mean token log-loss"
    scale = LossScale.UNKNOWN  # the exponential is a mean of probabilities, and the probability of nothing

    def of(self, log_probabilities: Floats, *, text: str) -> float:  # noqa: ARG002 - every score has the same method
        """Return the score, in nats for each token."""
        return float(-log_probabilities.mean())


@dataclass(frozen=True)
class SumTokenLoss:
    """The sum of the tokens' log-losses: the negative log-probability of the text, given its first token.

    >>> SumTokenLoss().of(np.array([-1.0, -3.0]), text="a b c")
    4.0
    """

    name = "sum_token_loss"
    words = "sum of the token log-losses"
    scale = LossScale.CROSS_ENTROPY

    def of(self, log_probabilities: Floats, *, text: str) -> float:  # noqa: ARG002 - as above
        """Return the score, in nats."""
        return float(-log_probabilities.sum())


@dataclass(frozen=True)
class MinK:
    """The mean log-loss of the least likely tokens: a text that was seen has few tokens that surprise.

    Attributes:
        percent: Share of the tokens, in (0, 100]; rounded down to whole tokens, and one at least.

    Source: Shi et al. 2024, Section 3 (min-k% prob), negated.

    >>> MinK(percent=50).of(np.array([-1.0, -3.0, -2.0, -5.0]), text="a b c d e")
    4.0
    """

    percent: float = 20
    scale = LossScale.UNKNOWN

    def __post_init__(self) -> None:
        share = validate.number("percent", self.percent)
        if not 0 < share <= _WHOLE:
            raise InputError(f"percent must lie in (0, 100], got {share:g}.")

    @property
    def name(self) -> str:
        """The name of its column."""
        return f"min_{self.percent:g}_percent"

    @property
    def words(self) -> str:
        """Description of the score."""
        return f"mean log-loss of the {self.percent:g}% least likely tokens"

    def of(self, log_probabilities: Floats, *, text: str) -> float:  # noqa: ARG002 - as above
        """Return the score, in nats for each token."""
        lowest = max(1, int(log_probabilities.size * self.percent / _WHOLE))
        return float(-np.sort(log_probabilities)[:lowest].mean())


@dataclass(frozen=True)
class ZlibRatio:
    """The sum of the tokens' log-losses over the text's length in bytes when compressed: a measure against repetition.

    The compressed length is that of this machine's zlib at its usual level; another implementation may differ by a few
    bytes, the same for members and non-members.

    Source: Carlini et al. 2021, Section 5.2.

    >>> ZlibRatio().of(np.array([-10.0, -12.0]), text="one two three")  # 21 bytes when compressed
    1.0476190476190477
    """

    name = "zlib_ratio"
    words = "sum of the token log-losses over the compressed length of the text"
    scale = LossScale.UNKNOWN

    def of(self, log_probabilities: Floats, *, text: str) -> float:
        """Return the score, in nats for each byte."""
        return float(-log_probabilities.sum() / len(zlib.compress(text.encode())))


TextScore = MeanTokenLoss | SumTokenLoss | MinK | ZlibRatio

# Scores computed beside the chosen one by default, by name; they cost next to nothing.
SCORES: dict[str, type[TextScore]] = {
    "mean": MeanTokenLoss,
    "sum": SumTokenLoss,
    "min-k": MinK,
    "zlib": ZlibRatio,
}
