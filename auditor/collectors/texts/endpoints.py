"""A language model behind an OpenAI-compatible completions endpoint."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, chain
from typing import Any, ClassVar, NamedTuple

import numpy as np

from auditor.collectors.base.records import Records
from auditor.collectors.served.transport import Connection, Request, StatusError, Transport
from auditor.collectors.texts.scores import Passage, ScoredText, checked_log_probabilities, passages, shared
from auditor.collectors.texts.secrets import Secret
from auditor.core import Floats, InputError, shown_place, validate

# --- Query of a completions endpoint for the log-probabilities of a prompt, and the required content of its answer ---
#
# `EchoedPrompt` is OpenAI's protocol: the prompt comes back in front of the generated text, with one log-probability for
# each token. Servers differ: choices in any order, a token generated although none was
# requested, a special token in front, log-probabilities of the generated token only. `PromptLogProbs` is vLLM's extension.


_CLAMPED = -9999.0  # vLLM's value for the log of 0, which JSON does not have
_MOST = 2**53  # of a count: a server may write a number without end
_ONE_BY_ONE = "send one prompt at a time with max_request_records=1"
_NOT_EVALUABLE = (
    "texts are not evaluable at this endpoint; use a completions endpoint that gives the log-probabilities of the prompt"
    " (echo with logprobs, or prompt_logprobs), such as vLLM's, or load the model into this process"
)

_Choice = Mapping[str, Any]


@dataclass(frozen=True)
class EchoedPrompt:
    """The prompt comes back with the log-probability of each token: ``echo`` with ``logprobs``.

    Attributes:
        generated: Tokens to generate, 0, or 1 for a server that demands at least one; generated tokens are dropped.

    >>> EchoedPrompt().request(["a text"], model="m")
    {'model': 'm', 'prompt': ['a text'], 'max_tokens': 0, 'echo': True, 'logprobs': 1}
    """

    generated: int = 0

    def __post_init__(self) -> None:
        if validate.at_least("generated", self.generated, least=0) > 1:
            raise InputError(
                f"generated must be 0 or 1, got {self.generated!r}: generated tokens are dropped."
            )

    def request(self, texts: Sequence[str], *, model: str) -> dict[str, Any]:
        """Return the request, for JSON."""
        counted = {"model": model, "prompt": list(texts), "max_tokens": self.generated}
        return {**counted, "echo": True, "logprobs": 1}

    def logs(self, answer: Any, *, texts: Sequence[str], records: Records) -> list[Floats]:
        """Return the log-probabilities of every token but the first of each text.

        Args:
            answer: Answer of the server, from JSON.
            texts: The prompts.
            records: The records of these texts, for error sentences.

        Raises:
            InputError: An answer without them; the sentence names the first record.
        """
        rows = _rows(answer, texts=texts, records=records)
        values = [row.echoed() for row in rows]
        counts = self._prompt_tokens(answer.get("usage"), rows, [len(logs) for logs in values])
        return [row.numbers(logs[:count]) for row, logs, count in zip(rows, values, counts, strict=True)]

    def names(self, choice: _Choice) -> list[Any]:
        """Return the tokens but the first of a choice that was read; an empty list where the server does not say."""
        tokens = choice["logprobs"].get("tokens")
        return tokens[1:] if isinstance(tokens, list) else []

    def _prompt_tokens(self, usage: Any, rows: "Sequence[_Row]", totals: list[int]) -> list[int]:
        """Return how many of the tokens of each choice are the prompt's; the others were generated.

        The usage says so where it counts all tokens returned, or all but one for each prompt, or those of one prompt.
        Otherwise nothing was generated where none was to be and the text is the prompt. Where it is not, and the usage counts
        another number of generated tokens than requested, the names of the tokens behind the prompt say so:
        llama-cpp-python counts a special token in front that it leaves out of the list.
        """
        of_prompts = _count(usage.get("prompt_tokens") if isinstance(usage, dict) else None)
        extra = None if of_prompts is None else sum(totals) - of_prompts
        unchanged = not self.generated and all(row.choice["text"] == row.text for row in rows)
        named = [row.named(total) for row, total in zip(rows, totals, strict=True)]
        if not unchanged and None not in named and not (self.generated and extra == len(totals)):
            return [count for count in named if count is not None]
        if (extra == 0 and not (self.generated and any(row.behind() for row in rows))) or unchanged:
            return totals
        if extra is None or extra <= 0 or (extra != self.generated * len(totals) and len(totals) > 1):
            words = "tokens that were generated, and usage.prompt_tokens does not say which"
            raise rows[0].unread(f"with {words}; {_ONE_BY_ONE}")
        return [total - extra // len(totals) for total in totals]


@dataclass(frozen=True)
class PromptLogProbs:
    """The log-probabilities of the prompt come in a field of their own: ``prompt_logprobs`` of vLLM.

    >>> PromptLogProbs().request(["a text"], model="m")
    {'model': 'm', 'prompt': ['a text'], 'max_tokens': 1, 'prompt_logprobs': 0}
    """

    def request(self, texts: Sequence[str], *, model: str) -> dict[str, Any]:
        """Return the request, for JSON; 0 requests the prompt's own tokens without alternatives."""
        return {"model": model, "prompt": list(texts), "max_tokens": 1, "prompt_logprobs": 0}

    def logs(self, answer: Any, *, texts: Sequence[str], records: Records) -> list[Floats]:
        """Return the log-probabilities of every token but the first of each text."""
        return [row.numbers(row.entries()) for row in _rows(answer, texts=texts, records=records)]

    def names(self, choice: _Choice) -> list[Any]:
        """Return the tokens but the first of a choice that was read."""
        return [next(iter(entry.values())).get("decoded_token") for entry in choice["prompt_logprobs"][1:]]


class _Row(NamedTuple):
    """One choice of an answer, and the record that it is of."""

    choice: _Choice
    text: str
    records: Records
    row: int

    def unread(self, words: str) -> InputError:
        """Return the sentence about a choice that cannot be used."""
        return InputError(f"{self.records.name} text ({self.records.row(self.row)}) came back {words}.")

    def echoed(self) -> list[Any]:
        """Return the log-probabilities of the tokens of a choice that holds the prompt."""
        logs = self.choice.get("logprobs")
        values = logs.get("token_logprobs") if isinstance(logs, dict) else None
        if not isinstance(values, list) or (len(values) != 1 and all(value is None for value in values)):
            raise self.unread(f"without token_logprobs, so {_NOT_EVALUABLE}")
        if not isinstance(self.choice.get("text"), str) or self.text.strip() not in self.choice["text"]:
            words = (
                "as another text: the endpoint ignores echo, and its log-probabilities are of other tokens"
            )
            raise self.unread(f"{words}, so {_NOT_EVALUABLE}")
        return values

    def behind(self) -> str:
        """Return the text behind the prompt, which `echoed` found there; servers may strip it."""
        shown: str = self.choice["text"]
        own = next(form for form in (self.text, self.text.lstrip(), self.text.strip()) if form in shown)
        return shown[shown.find(own) + len(own) :]

    def named(self, total: int) -> int | None:
        """Return how many of the tokens are the prompt's, where the names of the last ones are the text behind it."""
        names, behind = self.choice["logprobs"].get("tokens"), self.behind()
        if not isinstance(names, list) or {*map(type, names)} != {str} or len(names) != total:
            return None
        joined, starts = "".join(names), [*accumulate(map(len, names), initial=0)]
        start = len(joined) - len(behind)
        return starts.index(start) if joined.endswith(behind) and starts.count(start) == 1 else None

    def entries(self) -> list[Any]:
        """Return the log-probability of each token by vLLM: an entry by the token's number, and none for the first."""
        entries = self.choice.get("prompt_logprobs")
        if not isinstance(entries, list) or not entries:
            raise self.unread(f"without prompt_logprobs, so {_NOT_EVALUABLE}")
        tokens = [list(entry.values()) if isinstance(entry, dict) else [] for entry in entries]
        if (most := max(map(len, tokens))) > 1:
            words = "alternatives for a token, and which is its own is not said"
            raise self.unread(f"with {most} {words}; use EchoedPrompt()")
        return [token[0].get("logprob") if token and isinstance(token[0], dict) else None for token in tokens]

    def numbers(self, values: Sequence[Any]) -> Floats:
        """Return the log-probabilities of all tokens but the first, which has none."""
        if len(values) == 1 and len(self.text.split()) > 1:
            words = "with one value for several words: the server computes no log-probabilities of the prompt"
            raise self.unread(f"{words}, so {_NOT_EVALUABLE}")
        if len(values) < 2:  # noqa: PLR2004
            raise InputError(
                f"{self.records.name} text ({self.records.row(self.row)}) must have at least 2 tokens, got {len(values)}: the"
                " first token has no log-probability; leave that record out."
            )
        for place, value in enumerate(values[1:], start=1):
            if not isinstance(value, float) and _count(value) is None:
                got = "null" if value is None else type(value).__name__
                words = f"with {got} for token {place}, counting from 0, and only the first may have no log-probability"
                raise self.unread(f"{words}; leave that record out or ask the server's operator")
        logs = np.array(values[1:], dtype=np.float64)
        logs = checked_log_probabilities(logs, records=self.records, row=self.row)
        return np.where(logs <= _CLAMPED, -np.inf, logs)


def _rows(answer: Any, *, texts: Sequence[str], records: Records) -> list[_Row]:
    """Return one choice for each prompt, in the order of the prompts."""
    choices = answer.get("choices") if isinstance(answer, dict) else None
    first = _Row({}, "", records, 0)
    if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
        raise first.unread("without choices; is this the address of a completions endpoint?")
    if any("message" in choice for choice in choices):
        raise first.unread(f"as a chat, so {_NOT_EVALUABLE}")
    by_place = {_count(choice.get("index", place)): choice for place, choice in enumerate(choices)}
    if len(choices) != len(records) or set(by_place) != set(range(len(records))):
        counts = f"{len(choices)} choices, which must be 0 to {len(records) - 1}, one for each prompt"
        raise first.unread(f"in {counts}; {_ONE_BY_ONE}")
    return [_Row(by_place[row], text, records, row) for row, text in enumerate(texts)]


def _count(value: Any) -> int | None:
    """Return a whole number that is not a truth value, and not too large to be counted."""
    return value if type(value) is int and abs(value) <= _MOST else None


# --- Are they the values of these tokens? The prompt is cut before its last word, and the server generates a token there ---
#
# With q the law of the next token after the cut, a greedy server generates the most likely one: its log-probability is
# g = max log q. In the prompt that goes on with that token it must have g, and in the text no token there can have more.


_TRIED = 8  # texts
_APART = 0.5  # nats: servers of half precision compute prompts and new tokens in other batches
_LAST_WORD = re.compile(r"(?s)(.*\S) \S+\s*")
_UNCHECKED = "the server does not say enough to check that the log-probabilities of the prompt are those of its tokens."
_Function = Callable[..., Any]


class _Queries(NamedTuple):
    """Texts of records, and the functions that request something of them and read it."""

    records: Records
    texts: Sequence[str]
    request: _Function
    read: _Function


def _greedy(texts: Sequence[str], *, model: str) -> dict[str, Any]:
    """Return the request for the most likely next token of each prompt with its log-probability."""
    return {"model": model, "prompt": list(texts), "max_tokens": 1, "temperature": 0, "logprobs": 1}


def _generated(answer: Any, *, texts: Sequence[str], records: Records) -> list[tuple[str, str, float]]:
    """Return the generated text after each text, its one token and the log-probability; an empty text if unknown.

    Only the start of a word counts: behind the text it is that token again, whatever the tokenizer.
    """
    new = []
    for row in _rows(answer, texts=texts, records=records):
        match row.choice:
            case {"text": str(text), "logprobs": {"tokens": [str(token)], "token_logprobs": [float(value)]}}:
                new.append((text if text[:1].isspace() else "", token, value))
            case _:
                new.append(("", "", 0.0))
    return new


# --- The endpoint, and how it reads texts ---


@dataclass(frozen=True, kw_only=True, repr=False)
class CompletionsEndpoint(Connection):
    """The address of an OpenAI-compatible completions endpoint, such as vLLM's, and how it is queried.

    A base address that ends in ``/v1`` gets ``/completions``. The options of the connection (credentials from the
    environment, time-outs, retries, concurrency) are those of every served model.

    Attributes:
        model: The name of the model on the server.
        form: How the log-probabilities of the prompt are requested: `EchoedPrompt` (default), with ``generated=1`` for
            servers that demand a token to generate, or `PromptLogProbs` of vLLM.
        max_request_records: Most texts in one request.

    Raises:
        InputError: An address that is none, holds credentials or is of chats; an empty name.

    >>> CompletionsEndpoint("http://localhost:8000/v1", model="tiny", max_request_records=4)
    CompletionsEndpoint('http://localhost:8000/v1', max_request_records=4, model='tiny')
    """

    model: str
    form: EchoedPrompt | PromptLogProbs = EchoedPrompt()
    max_request_records: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.model, str) or not self.model.strip():
            raise InputError(f"model must be the name of the model on the server, got {self.model!r}.")
        validate.instance("form", self.form, (EchoedPrompt, PromptLogProbs))
        if super().path.endswith(("/chat/completions", "/api/chat", "/api/generate", "/completion")):
            raise InputError(
                f"url must be of completions, got {self.display_url!r}, where texts are not evaluable: it gives no"
                " log-probabilities of its input; name the address that ends in /v1/completions."
            )

    @property
    def path(self) -> str:
        """The path of the completions."""
        own = super().path or "/v1"
        return f"{own}/completions" if own.endswith("/v1") else own


@dataclass(frozen=True, eq=False)
class CompletionsReader:
    """A completions endpoint as a reader of texts.

    Attributes:
        endpoint: Where and how.
        secret: Part of each text that is scored; default all, or the responses.
        eps: The spacing of float32, in which servers compute.
        cuts: False: nothing is cut.
    """

    endpoint: CompletionsEndpoint
    secret: Secret | None = None
    eps: ClassVar[float] = float(np.finfo(np.float32).eps)
    cuts: ClassVar[bool] = False
    _alone: ClassVar[bool] = False  # true of one whose server refused a list of prompts, and took one

    @property
    def source(self) -> str:
        """The source of the log-probabilities; servers may call a model by its path."""
        model = self.endpoint.model
        return f"{shown_place(model) if model.startswith('/') else model} (completions endpoint)"

    @property
    def records_at_once(self) -> int:
        """Preferred number of texts in one call, in whole requests."""
        return self.endpoint.records_at_once

    def check(self, records: Records) -> int:
        """Refuse a value that is not a text, or an empty text; no text is cut."""
        for row, text in enumerate(self._passages(records)):
            if self.secret is not None and text.responses and not text.responses[0][0]:
                raise InputError(
                    f"{records.name} text ({records.row(row)}) must have text before its secret, got none; leave that record out."
                )
            if not text.scored:
                raise InputError(
                    f"{records.name} text ({records.row(row)}) must have at least 2 tokens, got an empty text; leave"
                    " that record out."
                )
        return 0

    def read(self, records: Records) -> list[ScoredText]:
        """Return the texts with the log-probabilities of their tokens, in the order of the records."""
        self.check(records)
        texts = self._passages(records)
        logs, *prompts = (self._answers(queries, about=records) for queries in self._queries(records))
        if prompts:
            both = enumerate(zip(logs, *prompts, strict=True))
            logs = [self._of_response(records, row, *parts) for row, parts in both]
        elif self.secret is not None:
            logs = [self._of_secret(records, row, own) for row, own in enumerate(logs)]
        return [ScoredText(own, text.scored) for own, text in zip(logs, texts, strict=True)]

    def _passages(self, records: Records) -> list[Passage]:
        texts = passages(records)
        return texts if self.secret is None else self.secret.in_all(texts, records)

    def _of_secret(self, records: Records, row: int, logs: Floats) -> Floats:
        """Return the log-probabilities of the tokens of a secret that follows a number of tokens; the first has none."""
        place = f"{records.name} text ({records.row(row)})"
        tokens = None if self.secret is None else self.secret.tokens(logs.size + 1, place=place)
        return logs if tokens is None else logs[tokens.start - 1 : tokens.stop - 1]

    def begin(self, records: Records) -> float:
        """Send the requests about a batch whose turn comes later; return the share of the window that they take."""
        return self._transport.begin(records, *map(self._requests, self._queries(records)))

    def drop(self, records: Records) -> None:
        """Give up the requests about a batch that `begin` sent."""
        self._transport.drop(records)

    def _queries(self, records: Records) -> list[_Queries]:
        """Return the texts of a batch with all that is wanted of them, and of responses their prompts alone."""
        texts, request = self._passages(records), self.endpoint.form.request
        whole = [text.text for text in texts]
        if texts[0].responses is None:
            return [_Queries(records, whole, request, self.endpoint.form.logs)]
        prompts = [text.text[:start] for text in texts for start, _ in text.responses or ()]
        alone = replace(records, name=f"{records.name} prompt's")
        return [_Queries(*group, request, self._echoed) for group in ((records, whole), (alone, prompts))]

    def _of_response(self, records: Records, row: int, whole: list[Any], prompt: list[Any]) -> Floats:
        """Return the log-probabilities of the tokens of a text that do not begin its prompt, which was sent alone."""
        names = [[name for name, _ in tokens] for tokens in (whole, prompt)]
        logs = [value for _, value in whole[shared(*names) :]]
        if not (logs and all(isinstance(name, str) for name in chain(*names))):
            words = "without the names of its tokens, or without a token of the response"
            raise _Row({}, "", records, row).unread(f"{words}; leave that record out, or score whole texts")
        return np.array(logs)

    def trial(self, records: Records) -> tuple[str, ...]:
        """Check on a few texts that the log-probabilities of the prompt are those of its tokens.

        Returns:
            Warnings for readers, a sentence each: that the server does not say enough to check it.

        Raises:
            InputError: Values that cannot be those of the tokens, as of a server that shifts them by one.
        """
        whole = [text.text for text in self._passages(records)]
        matches = [_LAST_WORD.fullmatch(text) for text in whole]
        rows = np.array([row for row, match in enumerate(matches) if match][:_TRIED], dtype=np.intp)
        some, cuts = records.take(rows), [match[1] for match in matches if match][:_TRIED]
        try:
            new = self._answers(_Queries(some, cuts, _greedy, _generated))
        except StatusError:  # a server that generates nothing
            new = []
        if not any(added for added, _, _ in new):
            return (_UNCHECKED,)
        longer = [cut + added for cut, (added, _, _) in zip(cuts, new, strict=True)]
        asking = self.endpoint.form.request
        echoes = [
            self._answers(_Queries(some, texts, asking, self._echoed))
            for texts in (longer, [whole[row] for row in rows])
        ]
        checked = False
        for row, ((added, token, most), after, text) in enumerate(zip(new, *echoes, strict=True)):
            names = [name for name, _ in after]
            if not added or names[-1:] != [token]:  # cut into other tokens
                continue
            checked, at = True, len(names) - 1
            there = text[at : at + 1] if [name for name, _ in text[:at]] == names[:-1] else []
            for name, value in (after[-1], *there):
                # The names are the server's words, which no sentence repeats.
                if value > most + _APART or (name == token and value < most - _APART):
                    words = (
                        f"with a log-probability of {value:.4g} where the server generates its most likely token with"
                        f" {most:.4g}: these are values of other tokens (some servers shift them by one)"
                    )
                    raise _Row({}, "", some, row).unread(f"{words}, so {_NOT_EVALUABLE}")
        return () if checked else (_UNCHECKED,)

    def _echoed(self, answer: Any, *, texts: Sequence[str], records: Records) -> list[Any]:
        """Return every token but the first of each text with its log-probability; an empty list where the server does not say."""
        form, rows = self.endpoint.form, _rows(answer, texts=texts, records=records)
        logs = form.logs(answer, texts=texts, records=records)
        return [
            list(zip(form.names(row.choice), own, strict=False)) for row, own in zip(rows, logs, strict=True)
        ]

    def _requests(self, queries: _Queries, *, alone: bool = False) -> Iterator[Request]:
        """Yield the requests: lists of texts or, for a server that refuses lists, one at a time."""
        records, texts, request, read = queries
        most = 1 if alone or self._alone else self.endpoint.max_request_records

        def part(start: int, stop: int, answer: Any) -> Any:
            return read(answer, texts=texts[start:stop], records=records.part(start, stop))

        def body(start: int, stop: int) -> bytes:
            content = request(texts[start:stop], model=self.endpoint.model)
            return json.dumps(content | {"prompt": texts[start]} if most == 1 else content).encode()

        yield from self._transport.requests(records, self.endpoint.path, most=most, body=body, read=part)

    def _answers(self, queries: _Queries, *, about: Records | None = None) -> list[Any]:
        """Return the parsed answers, one for each text; those to the requests that were sent about a batch, if any."""
        try:
            answers = self._transport.many(self._requests(queries), about=about)
        except StatusError:
            if self._alone or self.endpoint.max_request_records == 1:
                raise
            self._transport.drop()  # they are lists too
            answers = self._transport.many(self._requests(queries, alone=True))
            self.__dict__["_alone"] = True
        return list(chain.from_iterable(answers))

    @cached_property
    def _transport(self) -> Transport:
        return Transport(self.endpoint)

    def __getstate__(self) -> dict[str, Any]:
        return {"endpoint": self.endpoint, "secret": self.secret}  # open connections stay in their process
