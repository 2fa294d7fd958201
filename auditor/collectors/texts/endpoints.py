"""A language model behind an OpenAI-compatible completions endpoint."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from auditor.collectors.base.records import Records
from auditor.collectors.served.transport import Connection, Request, Transport
from auditor.collectors.texts.scores import ScoredText, checked_log_probabilities, plain_texts
from auditor.core import validate
from auditor.core.errors import InputError
from auditor.core.values import Floats

# --- How a completions endpoint is asked for the log-probabilities of a prompt, and what its answer must hold ---
#
# `EchoedPrompt` is OpenAI's protocol: the prompt comes back in front of what is generated, with one log-probability for
# each token. Servers differ in what they make of it: choices in any order, a token generated although none was asked
# for, a special token in front, log-probabilities of the generated token only. `PromptLogProbs` is what vLLM adds.


_CLAMPED = -9999.0  # what vLLM writes for the log of 0, which JSON does not have

_Choice = Mapping[str, Any]


@dataclass(frozen=True)
class EchoedPrompt:
    """The prompt comes back with the log-probability of each token: ``echo`` with ``logprobs``.

    Attributes:
        generated: Tokens to generate, 0, or 1 for a server that demands at least one; what it generates is dropped.

    >>> EchoedPrompt().request(["a text"], model="m")
    {'model': 'm', 'prompt': ['a text'], 'max_tokens': 0, 'echo': True, 'logprobs': 1}
    """

    generated: int = 0

    def __post_init__(self) -> None:
        if validate.at_least("generated", self.generated, least=0) > 1:
            raise InputError(
                f"generated must be 0 or 1, got {self.generated!r}: what is generated is dropped."
            )

    def request(self, texts: Sequence[str], *, model: str) -> dict[str, Any]:
        """Return what is asked, for JSON."""
        asked = {"model": model, "prompt": list(texts), "max_tokens": self.generated}
        return {**asked, "echo": True, "logprobs": 1}

    def logs(self, answer: Any, *, texts: Sequence[str], records: Records) -> list[Floats]:
        """Return the log-probabilities of every token but the first of each text.

        Args:
            answer: What came back, from JSON.
            texts: What was asked.
            records: The records of these texts, for error sentences.

        Raises:
            InputError: An answer without them; the sentence names the first record.
        """
        choices = _choices(answer, records=records)
        values = [
            _echoed(choice, text=text, place=_place(records, row))
            for row, (choice, text) in enumerate(zip(choices, texts, strict=True))
        ]
        counts = self._prompt_tokens(answer, choices=choices, texts=texts, records=records)
        return [
            _numbers(found[:count], records=records, row=row)
            for row, (found, count) in enumerate(zip(values, counts, strict=True))
        ]

    def _prompt_tokens(
        self, answer: Any, *, choices: Sequence[_Choice], texts: Sequence[str], records: Records
    ) -> list[int]:
        """Return how many tokens of each choice are the prompt's; the others were generated.

        The usage says so where it counts all tokens returned, or all but one for each prompt. Otherwise nothing was
        generated where none was asked for and the text is the prompt, and else the offsets of the tokens say which
        begin behind the prompt. (Offsets come last: a server may count a special token in front.)
        """
        totals = [len(choice["logprobs"]["token_logprobs"]) for choice in choices]
        known = _count((answer.get("usage") or {}).get("prompt_tokens"))
        extra = None if known is None else sum(totals) - known
        if extra == 0:
            return totals
        if self.generated and extra == len(totals):
            return [total - 1 for total in totals]
        if not self.generated and all(
            choice["text"] == text for choice, text in zip(choices, texts, strict=True)
        ):
            return totals
        found = [_before(choice, end=len(text)) for choice, text in zip(choices, texts, strict=True)]
        counts = [count for count in found if count is not None]
        if len(counts) < len(found) or (
            extra is not None and 0 < extra < len(totals) and sum(counts) != known
        ):
            row = found.index(None) if None in found else 0
            raise InputError(
                f"{_place(records, row)} came back with tokens that were generated, and neither usage.prompt_tokens nor"
                " text_offset in the answer says which; ask for one prompt at a time with max_request_records=1."
            )
        return counts


@dataclass(frozen=True)
class PromptLogProbs:
    """The log-probabilities of the prompt come in a field of their own: ``prompt_logprobs`` of vLLM.

    >>> PromptLogProbs().request(["a text"], model="m")
    {'model': 'm', 'prompt': ['a text'], 'max_tokens': 1, 'prompt_logprobs': 0}
    """

    def request(self, texts: Sequence[str], *, model: str) -> dict[str, Any]:
        """Return what is asked, for JSON; 0 asks for the prompt's own tokens without alternatives."""
        return {"model": model, "prompt": list(texts), "max_tokens": 1, "prompt_logprobs": 0}

    def logs(self, answer: Any, *, texts: Sequence[str], records: Records) -> list[Floats]:  # noqa: ARG002 - the form's
        """Return the log-probabilities of every token but the first of each text."""
        return [
            _numbers(self._own(choice, place=_place(records, row)), records=records, row=row)
            for row, choice in enumerate(_choices(answer, records=records))
        ]

    @staticmethod
    def _own(choice: _Choice, *, place: str) -> list[Any]:
        entries = choice.get("prompt_logprobs")
        if not isinstance(entries, list) or not entries:
            raise _not_evaluable(place, "came back without prompt_logprobs")
        found: list[Any] = []
        for entry in entries:
            if isinstance(entry, dict) and len(entry) > 1:
                raise InputError(
                    f"{place} came back with {len(entry)} alternatives for a token, and which is its own is not said;"
                    " use EchoedPrompt()."
                )
            only = next(iter(entry.values())) if isinstance(entry, dict) and entry else None
            found.append(only.get("logprob") if isinstance(only, dict) else None)
        return found


def _choices(answer: Any, *, records: Records) -> list[_Choice]:
    """Return one choice for each prompt, in the order of the prompts."""
    listed = answer.get("choices") if isinstance(answer, dict) else None
    if not isinstance(listed, list) or not all(isinstance(choice, dict) for choice in listed):
        raise InputError(
            f"{_place(records, 0)} must come back in an answer with a list of choices, got"
            f" {'no choices' if isinstance(answer, dict) else type(answer).__name__}; is this the address of a"
            " completions endpoint?"
        )
    if any("message" in choice for choice in listed):
        raise _not_evaluable(_place(records, 0), "came back as a chat")
    found = {_count(choice.get("index", place)): choice for place, choice in enumerate(listed)}
    wanted = len(records)
    if len(listed) != wanted or set(found) != set(range(wanted)):
        raise InputError(
            f"{_place(records, 0)} was asked with {wanted} prompts at once, which must come back as choices 0 to"
            f" {wanted - 1}, got {len(listed)} with the indices {sorted(map(str, found))[:10]}; ask for fewer with"
            " max_request_records=1."
        )
    return [found[place] for place in range(wanted)]


def _echoed(choice: _Choice, *, text: str, place: str) -> list[Any]:
    """Return the log-probabilities of the tokens of a choice that begins with the prompt."""
    logs = choice.get("logprobs")
    values = logs.get("token_logprobs") if isinstance(logs, dict) else None
    if not isinstance(values, list) or (len(values) != 1 and all(value is None for value in values)):
        raise _not_evaluable(place, "came back without token_logprobs")
    if not isinstance(choice.get("text"), str) or text.strip() not in choice["text"]:
        raise _not_evaluable(
            place,
            "did not come back: the endpoint ignores echo, and its log-probabilities are of other tokens",
        )
    return values


def _before(choice: _Choice, *, end: int) -> int | None:
    """Return how many tokens begin before the end of the prompt; none where the offsets are not what they should be."""
    logs = choice["logprobs"]
    offsets = logs.get("text_offset")
    if not isinstance(offsets, list) or len(offsets) != len(logs["token_logprobs"]):
        return None
    places = [_count(offset) for offset in offsets]
    known = [place for place in places if place is not None]
    if len(known) < len(places) or not known or known[0] != 0 or known != sorted(known):
        return None
    return sum(place < end for place in known)


def _numbers(values: Sequence[Any], *, records: Records, row: int) -> Floats:
    """Return the log-probabilities of all tokens but the first, which has none."""
    if len(values) < 2:  # noqa: PLR2004
        raise InputError(
            f"{_place(records, row)} must have at least 2 tokens, got {len(values)}: the first token has no"
            " log-probability; leave that record out."
        )
    scored = values[1:]
    for place, value in enumerate(scored, start=1):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(
                f"{_place(records, row)} must come back with a log-probability for every token but the first, got"
                f" {'null' if value is None else type(value).__name__} for token {place}, counting from 0; leave that"
                " record out or ask the server's operator."
            )
    found = checked_log_probabilities(np.array(scored, dtype=np.float64), records=records, row=row)
    return np.where(found <= _CLAMPED, -np.inf, found)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _place(records: Records, row: int) -> str:
    return f"{records.name} text ({records.row(row)})"


def _not_evaluable(place: str, reason: str) -> InputError:
    return InputError(
        f"{place} {reason}, so texts are not evaluable at this endpoint; use a completions endpoint that gives the"
        " log-probabilities of the prompt (echo with logprobs, or prompt_logprobs)."
    )


# --- The endpoint, and how it reads texts ---


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
    form: EchoedPrompt | PromptLogProbs = EchoedPrompt()
    max_request_records: int = 16
    max_request_bytes: int = 1_000_000

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.model, str) or not self.model.strip():
            raise InputError(f"model must be the name of the model on the server, got {self.model!r}.")
        validate.instance("form", self.form, (EchoedPrompt, PromptLogProbs))
        for name in ("max_request_records", "max_request_bytes"):
            object.__setattr__(self, name, validate.at_least(name, getattr(self, name), least=1))
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
class CompletionsReader:
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
        return Request(body, place=records.stretch(0, len(records)))

    def _logs(self, answer: Any, texts: list[str], records: Records) -> list[Floats]:
        return self.endpoint.form.logs(answer, texts=texts, records=records)

    @cached_property
    def _transport(self) -> Transport:
        return Transport(self.endpoint)

    def __getstate__(self) -> dict[str, Any]:
        return {"endpoint": self.endpoint}  # open connections stay in their process
