"""A causal language model in this process: a network, its tokenizer, and what happens to texts that are too long."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from auditor import _validate
from auditor.collectors.records import Records
from auditor.collectors.texts.encoding import Encoded, Encoder, encoder
from auditor.collectors.texts.networks import Network
from auditor.collectors.texts.tokens import ScoredText, plain_texts, settled_logs
from auditor.errors import AuditorError, InputError
from auditor.values import Floats

__all__ = ["CausalModel", "LongTexts", "causal_model"]

_AT_ONCE = 256  # texts of a batch
_CHECKED = 1024  # texts encoded at a time when only looked at
_LEAST = 2  # tokens of a text, because the first has no log-probability


class LongTexts(StrEnum):
    """What happens to texts of more tokens than the model takes.

    >>> LongTexts("cut") is LongTexts.CUT
    True
    """

    REFUSE = "refuse"
    CUT = "cut"


def causal_model(
    model: Any, *, tokenizer: Any, longest: int | None = None, long_texts: LongTexts = LongTexts.REFUSE
) -> "CausalModel":
    """Return a causal language model of PyTorch as what reads texts.

    Args:
        model: A causal model of transformers, or any module from token ids of shape (n, T) to logits of shape (n, T, V).
        tokenizer: Its tokenizer (see `encoder`). Special tokens are those that it adds by itself.
        longest: The most tokens of a text, 2 or more; default what the model and the tokenizer say.
        long_texts: Whether longer texts are refused or cut after that many tokens.

    Raises:
        InputError: No causal model or no tokenizer.
        MissingExtraError: PyTorch is not installed.
    """
    choice = LongTexts(_validate.known("long_texts", long_texts, [str(item) for item in LongTexts]))
    network = Network(model)
    found = encoder(tokenizer)
    if longest is not None:
        longest = _validate.at_least("longest", longest, least=_LEAST)
    known = [item for item in (longest, network.longest, found.longest) if item is not None]
    return CausalModel(network=network, encoder=found, longest=min(known, default=None), long_texts=choice)


@dataclass(frozen=True, eq=False)
class CausalModel:
    """A network with its tokenizer.

    Attributes:
        network: From token ids to log-probabilities.
        encoder: From texts to token ids.
        longest: The most tokens of a text; none where there is no limit.
        long_texts: What happens to longer ones.
    """

    network: Network
    encoder: Encoder
    longest: int | None = None
    long_texts: LongTexts = LongTexts.REFUSE

    @property
    def source(self) -> str:
        """Whose log-probabilities they are."""
        limit = f", texts cut after {self.longest:,} tokens" if self.cuts else ""
        return f"{self.network.name} (PyTorch){limit}"

    @cached_property
    def identity(self) -> str | None:
        """A hash of the weights, the settings, the tokenizer and the limit."""
        parts = (self.network.identity, self.encoder.identity)
        return (
            None if None in parts else "-".join((*map(str, parts), str(self.longest), str(self.long_texts)))
        )

    @property
    def records_at_once(self) -> int:
        """How many texts should be asked for in one call; of these, as many run at once as memory allows."""
        return _AT_ONCE

    @property
    def eps(self) -> float:
        """The spacing near 1 of the floats of the logits."""
        return self.network.eps

    @property
    def cuts(self) -> bool:
        """Whether long texts are cut."""
        return self.long_texts is LongTexts.CUT and self.longest is not None

    @property
    def knows_text(self) -> bool:
        """Whether it is known what the scored tokens make up, also where a text was cut."""
        return self.encoder.has_ends or not self.cuts

    def check(self, records: Records) -> int:
        """Refuse texts that are too short or too long; return how many will be cut."""
        cut = 0
        for start in range(0, len(records), _CHECKED):
            part = records.part(start, start + _CHECKED)
            found = self._encoded(part, plain_texts(part))
            cut += sum(self._too_long(tokens) for tokens in found)
        return cut

    def read(self, records: Records) -> list[ScoredText]:
        """Return the texts with the log-probabilities of their tokens, in the order of the records."""
        texts = plain_texts(records)
        kept = [
            self._kept(text, tokens)
            for text, tokens in zip(texts, self._encoded(records, texts), strict=True)
        ]
        logs: dict[int, Floats] = {}
        for rows in self._batches([len(ids) for ids, _ in kept]):
            found = self._run(records, [kept[row][0] for row in rows])
            logs |= dict(zip(rows, found, strict=True))
        return [
            ScoredText(settled_logs(logs[row], records=records, row=row), text)
            for row, (_, text) in enumerate(kept)
        ]

    def _run(self, records: Records, batch: list[Sequence[int]]) -> list[Floats]:
        try:
            return self.network.log_probabilities(batch)
        except AuditorError:
            raise
        except Exception as error:
            reason = ": ".join(filter(None, (type(error).__name__, _validate.one_line(error))))
            raise InputError(f"{self.network.name} failed on the {records.name} texts: {reason}.") from error

    def _batches(self, lengths: list[int]) -> Iterator[list[int]]:
        """Texts of like length together, as many as keep their logits within the limit."""
        order = sorted(range(len(lengths)), key=lambda row: -lengths[row])
        while order:
            room = max(1, self.network.room // (lengths[order[0]] * self.network.vocabulary))
            yield order[:room]
            order = order[room:]

    def _encoded(self, records: Records, texts: list[str]) -> list[Encoded]:
        found = self.encoder.encode(texts)
        for row, tokens in enumerate(found):
            self._refuse(tokens, place=f"{records.name} text ({records.row(row)})")
        return found

    def _refuse(self, tokens: Encoded, *, place: str) -> None:
        count = len(tokens.ids)
        if count < _LEAST:
            raise InputError(
                f"{place} must have at least 2 tokens, got {count}: the first token has no log-probability; leave that"
                " record out, or use a tokenizer that begins every text with a special token."
            )
        if self._too_long(tokens) and not self.cuts:
            raise InputError(
                f"{place} must have at most {self.longest:,} tokens, which is what the model takes, got {count:,}; leave"
                " that record out, or cut long texts with long_texts=LongTexts.CUT."
            )
        low, high = min(tokens.ids), max(tokens.ids)
        if low < 0 or high >= self.network.vocabulary:
            raise InputError(
                f"{place} has the token id {low if low < 0 else high}, but the model knows ids from 0 to"
                f" {self.network.vocabulary - 1}; use the model's own tokenizer."
            )

    def _too_long(self, tokens: Encoded) -> bool:
        return len(tokens.ids) > (math.inf if self.longest is None else self.longest)

    def _kept(self, text: str, tokens: Encoded) -> tuple[Sequence[int], str]:
        """The tokens that are scored and the text that they make up."""
        if not self._too_long(tokens):
            return tokens.ids, text
        beginning = text if tokens.ends is None else text[: max(tokens.ends[: self.longest])]
        return tokens.ids[: self.longest], beginning
