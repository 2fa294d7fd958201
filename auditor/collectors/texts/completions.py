"""A language model behind an OpenAI-compatible completions endpoint."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from auditor import _validate
from auditor.collectors.records import Records
from auditor.collectors.served.connection import Connection
from auditor.collectors.served.transport import Request, Transport
from auditor.collectors.texts.answers import EchoedPrompt, PromptForm, PromptLogProbs
from auditor.collectors.texts.tokens import ScoredText, plain_texts
from auditor.errors import InputError
from auditor.values import Floats

__all__ = ["CompletionsEndpoint", "ServedModel"]

_ROUNDS = 4  # of requests in a batch: a batch is what is lost when a collection is interrupted


@dataclass(frozen=True, kw_only=True, repr=False)
class CompletionsEndpoint(Connection):
    """The address of an OpenAI-compatible completions endpoint, such as vLLM's, and how it is asked.

    A base address that ends in ``/v1`` gets ``/completions``. The options of the connection (credentials from the
    environment, time-outs, retries, concurrency) are those of every served model.

    Attributes:
        model: The name of the model on the server.
        form: How the log-probabilities of the prompt are asked for: `EchoedPrompt` (default), with ``generated=1`` for
            servers that demand a token to generate, or `PromptLogProbs` of vLLM.
        max_request_records: Texts in one request at most, 1 or more.
        max_request_bytes: Bytes of texts in one request at most, 1 or more; a longer text is sent alone.

    Raises:
        InputError: An address that is none, holds credentials or is of chats; an empty name.

    >>> CompletionsEndpoint("http://localhost:8000/v1", model="tiny", max_request_records=4)
    CompletionsEndpoint('http://localhost:8000/v1', model='tiny', max_request_records=4)
    """

    model: str
    form: PromptForm = EchoedPrompt()  # noqa: RUF009 - a frozen value
    max_request_records: int = 16
    max_request_bytes: int = 1_000_000

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.model, str) or not self.model.strip():
            raise InputError(f"model must be the name of the model on the server, got {self.model!r}.")
        _validate.instance("form", self.form, (EchoedPrompt, PromptLogProbs))
        for name in ("max_request_records", "max_request_bytes"):
            object.__setattr__(self, name, _validate.at_least(name, getattr(self, name), least=1))
        if urlsplit(self.url).path.rstrip("/").endswith("/chat/completions"):
            raise InputError(
                f"url must be of completions, got {self.shown!r}, where texts are not evaluable: a chat gives no"
                " log-probabilities of what it is told; name the address that ends in /v1/completions."
            )

    @property
    def path(self) -> str:
        """The path of the completions."""
        own = urlsplit(self.url).path.rstrip("/")
        if not own:
            return "/v1/completions"
        return f"{own}/completions" if own.endswith("/v1") else own


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A completions endpoint as what reads texts.

    Attributes:
        endpoint: Where and how.
    """

    endpoint: CompletionsEndpoint

    @property
    def source(self) -> str:
        """Whose log-probabilities they are."""
        return f"{self.endpoint.model} (completions endpoint)"

    @property
    def identity(self) -> str | None:
        """Nothing: a server may change its model under the same name."""
        return None

    @property
    def records_at_once(self) -> int:
        """How many texts should be asked for in one call: some rounds of all requests that may be under way."""
        return self.endpoint.max_request_records * self.endpoint.concurrency * _ROUNDS

    @property
    def eps(self) -> float:
        """The spacing of float32, in which servers compute."""
        return float(np.finfo(np.float32).eps)

    @property
    def knows_text(self) -> bool:
        """True: nothing is cut."""
        return True

    def check(self, records: Records) -> int:
        """Refuse what is no text, or an empty one; no text is cut."""
        for row, text in enumerate(plain_texts(records)):
            if not text:
                raise InputError(
                    f"{records.name} text ({records.row(row)}) must have at least 2 tokens, got an empty text; leave"
                    " that record out."
                )
        return 0

    def read(self, records: Records) -> list[ScoredText]:
        """Return the texts with the log-probabilities of their tokens, in the order of the records."""
        self.check(records)
        parts = [records.part(start, stop) for start, stop in self._stretches(plain_texts(records))]
        texts = [plain_texts(part) for part in parts]
        requests = [self._request(part, asked) for part, asked in zip(parts, texts, strict=True)]
        answers = self._transport.many(requests)
        return [
            ScoredText(log_probabilities, text)
            for part, asked, answer in zip(parts, texts, answers, strict=True)
            for text, log_probabilities in zip(asked, self._logs(answer, asked, part), strict=True)
        ]

    def _stretches(self, texts: list[str]) -> Iterator[tuple[int, int]]:
        """Where each request begins and ends, so that none has too many texts or bytes."""
        start = size = 0
        for place, text in enumerate(texts):
            more = len(text.encode())
            full = place - start == self.endpoint.max_request_records
            if full or (place > start and size + more > self.endpoint.max_request_bytes):
                yield start, place
                start, size = place, 0
            size += more
        yield start, len(texts)

    def _request(self, records: Records, texts: list[str]) -> Request:
        body = json.dumps(self.endpoint.form.request(texts, model=self.endpoint.model)).encode()
        last = records.first_row + len(records) - 1
        rows = f"row {last}" if len(records) == 1 else f"rows {records.first_row} to {last}"
        return Request(body, place=f"{records.name} {rows}, counting from 0")

    def _logs(self, answer: Any, texts: list[str], records: Records) -> list[Floats]:
        return self.endpoint.form.logs(answer, texts=texts, records=records)

    @cached_property
    def _transport(self) -> Transport:
        return Transport(self.endpoint)

    def __getstate__(self) -> dict[str, Any]:
        return {"endpoint": self.endpoint}  # open connections stay in their process
