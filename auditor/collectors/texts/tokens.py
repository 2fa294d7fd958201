"""Texts of a batch of records, and what a language model says of their tokens."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from auditor.collectors.records import Records
from auditor.errors import InputError
from auditor.values import Floats

__all__ = ["ScoredText", "TokenReader", "plain_texts", "settled_logs"]

_ROUNDING = 1e-6  # a log-probability just above 0 is a rounding error of a probability of 1


@dataclass(frozen=True, eq=False)
class ScoredText:
    """A text and the log-probabilities of its tokens.

    Attributes:
        log_probabilities: Shape (T - 1,), of every token but the first given those before it, in nats; 0 or less.
        text: What these tokens make up: the text, or its beginning where it was cut.
    """

    log_probabilities: Floats
    text: str


class TokenReader(Protocol):
    """A causal language model, near or far: texts in, log-probabilities of their tokens out."""

    @property
    def source(self) -> str:
        """Whose log-probabilities they are, for the history: "GPT2LMHeadModel (PyTorch)"."""
        ...

    @property
    def identity(self) -> str | None:
        """A hash of everything that decides them; none where it cannot be known."""
        ...

    @property
    def records_at_once(self) -> int | None:
        """How many texts should be asked for in one call."""
        ...

    @property
    def eps(self) -> float:
        """The spacing near 1 of the floats that the model computes in."""
        ...

    @property
    def knows_text(self) -> bool:
        """Whether it is known what the scored tokens make up, also where a text was cut."""
        ...

    def check(self, records: Records) -> int:
        """Refuse texts that cannot be scored, as far as that is known without the model; return how many will be cut."""
        ...

    def read(self, records: Records) -> list[ScoredText]:
        """Return the texts with the log-probabilities of their tokens.

        Raises:
            InputError: Texts or answers that cannot be scored; the sentence names the first.
        """
        ...


def plain_texts(records: Records) -> list[str]:
    """Return the features of records as texts: a list, an array or a column of strings, or a table of one column.

    >>> plain_texts(Records("member", np.array([["one"], ["two"]]), np.zeros(2)))
    ['one', 'two']
    """
    column = _one_column(records)
    listing = next((name for name in ("tolist", "to_pylist") if hasattr(column, name)), None)
    values = list(column) if listing is None else getattr(column, listing)()
    for row, value in enumerate(values):
        if not isinstance(value, str):
            got = "a missing value" if _missing(value) else type(value).__name__
            raise InputError(
                f"{records.name} texts must be strings, got {got} ({records.row(row)}); leave that record out or"
                " name the column of the texts."
            )
        if not _encodable(value):
            raise InputError(
                f"{records.name} texts must be valid Unicode, got half of a surrogate pair ({records.row(row)});"
                " read the file in its own encoding."
            )
    return [str(value) for value in values]


def _missing(value: Any) -> bool:
    return value is None or type(value).__name__ == "NAType" or (value != value) is True  # noqa: PLR0124 - NaN


def _one_column(records: Records) -> Any:
    features = records.features
    if isinstance(features, str | bytes):
        raise InputError(
            f"{records.name} texts must be a list of strings, got one {type(features).__name__}."
        )
    shape = np.shape(features) if not hasattr(features, "shape") else tuple(features.shape)
    if len(shape) == 1:
        return features
    if len(shape) == 2 and shape[1] == 1:  # noqa: PLR2004
        return features.iloc[:, 0] if hasattr(features, "iloc") else np.asarray(features)[:, 0]
    raise InputError(
        f"{records.name} texts must be one column of strings, got shape {shape}; name the column of the texts."
    )


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def settled_logs(values: Floats, *, records: Records, row: int) -> Floats:
    """Return the log-probabilities of one text, none above 0; NaN is refused with its token."""
    bad = np.isnan(values) | (values > _ROUNDING)
    if bad.any():
        place = int(np.argmax(bad))
        raise InputError(
            f"{records.name} text ({records.row(row)}) must have token log-probabilities of 0 or less, got"
            f" {values[place]:.6g} for token {place + 1}, counting from 0; mend the model."
        )
    return np.minimum(values, 0.0)
