"""Tokenizers of every kind as one: texts in, token ids out, with the place in the text where each token ends."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from auditor import _validate
from auditor.errors import AuditorError, InputError

__all__ = ["Encoded", "Encoder", "encoder"]

_MOST = 10**9  # transformers writes 1e30 where a tokenizer knows no limit


@dataclass(frozen=True)
class Encoded:
    """One text as tokens.

    Attributes:
        ids: The number of each token, special ones that the tokenizer adds included.
        ends: Where in the text each token ends, 0 for special ones; none where the tokenizer does not say.
    """

    ids: Sequence[int]
    ends: Sequence[int] | None = None


@dataclass(frozen=True, eq=False)
class Encoder:
    """A tokenizer as the collectors see it.

    Attributes:
        encode: From texts to tokens, whole and without padding.
        has_ends: Whether it says where tokens end.
        longest: The most tokens of a text, where the tokenizer knows.
        identity: A hash of everything that decides the tokens; none where it cannot be known.
    """

    encode: Callable[[list[str]], list[Encoded]]
    has_ends: bool = False
    longest: int | None = None
    identity: str | None = None


def encoder(tokenizer: Any) -> Encoder:
    """Return a tokenizer as the collectors see it.

    Args:
        tokenizer: Of transformers or of tokenizers, or a callable from a list of texts to a list of lists of token ids.

    Raises:
        InputError: Something else.

    >>> letters = encoder(lambda texts: [[ord(letter) for letter in text] for text in texts])
    >>> letters.encode(["ab"])
    [Encoded(ids=[97, 98], ends=None)]
    """
    libraries = {kind.__module__.partition(".")[0] for kind in type(tokenizer).__mro__}
    if "transformers" in libraries and hasattr(tokenizer, "convert_tokens_to_ids"):
        return _of_transformers(tokenizer)
    if hasattr(tokenizer, "encode_batch") and hasattr(tokenizer, "to_str"):
        return _of_tokenizers(tokenizer)
    if callable(tokenizer) and not isinstance(tokenizer, type):
        return Encoder(encode=_guarded(lambda texts: [Encoded(_ids(row)) for row in tokenizer(texts)]))
    raise InputError(
        "tokenizer must be one of transformers or tokenizers, or a callable from a list of texts to a list of lists of"
        f" token ids, got {type(tokenizer).__name__}."
    )


def _of_transformers(tokenizer: Any) -> Encoder:
    fast = bool(getattr(tokenizer, "is_fast", False))
    known = getattr(tokenizer, "model_max_length", None)

    def encode(texts: list[str]) -> list[Encoded]:
        found = tokenizer(
            texts,
            padding=False,
            truncation=False,
            return_offsets_mapping=fast,
            return_tensors=None,
            verbose=False,
        )
        if not fast:
            return [Encoded(_ids(row)) for row in found["input_ids"]]
        pairs = zip(found["input_ids"], found["offset_mapping"], strict=True)
        return [Encoded(_ids(row), [end for _, end in places]) for row, places in pairs]

    return Encoder(
        encode=_guarded(encode),
        has_ends=fast,
        longest=int(known) if known is not None and 0 < known < _MOST else None,
        identity=_hash(tokenizer.backend_tokenizer.to_str(), tokenizer) if fast else None,
    )


def _of_tokenizers(tokenizer: Any) -> Encoder:
    own = type(tokenizer).from_str(
        tokenizer.to_str()
    )  # a copy, whose padding and truncation are switched off
    own.no_padding()
    own.no_truncation()

    def encode(texts: list[str]) -> list[Encoded]:
        return [Encoded(found.ids, [end for _, end in found.offsets]) for found in own.encode_batch(texts)]

    return Encoder(encode=_guarded(encode), has_ends=True, identity=_hash(own.to_str(), own))


def _hash(description: str, tokenizer: Any) -> str:
    """Return a hash of what decides the tokens; padding and truncation, which calls change, do not."""
    settings = {
        key: value for key, value in json.loads(description).items() if key not in {"padding", "truncation"}
    }
    words = json.dumps([type(tokenizer).__name__, settings], sort_keys=True)
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()


def _ids(row: Any) -> list[int]:
    array = np.asarray(row)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(
            "tokenizer must return a list of whole token ids for each text, got"
            f" {type(row).__name__} of shape {array.shape} and type {array.dtype}."
        )
    return [int(item) for item in array.tolist()]


def _guarded(encode: Callable[[list[str]], list[Encoded]]) -> Callable[[list[str]], list[Encoded]]:
    """Return what encodes texts; whatever it raises becomes one sentence, and another number of rows is refused."""

    def encoded(texts: list[str]) -> list[Encoded]:
        try:
            found = encode(texts)
        except AuditorError:
            raise
        except Exception as error:
            reason = ": ".join(filter(None, (type(error).__name__, _validate.one_line(error))))
            raise InputError(f"the tokenizer failed on {len(texts)} texts: {reason}.") from error
        if len(found) != len(texts):
            raise InputError(
                f"tokenizer must return one list of token ids for each of {len(texts)} texts, got {len(found)}."
            )
        return found

    return encoded
