"""The secret in a text, and the chance that a model which is sampled from writes it.

Sampling writes token t with probability q(t | tokens before it), q the model's law by the rules of sampling. So one sample
that is given the text before a secret writes its tokens with probability exp(-(l_1 + ... + l_T)), l the negative logs of q:
nothing need be generated. Other tokens may spell the same secret, so this is at most the chance that a sample contains it.

Source: Hayes et al. 2025 (probabilistic extraction), Section 3.
"""

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from auditor.collectors.base.records import Records
from auditor.collectors.texts.scores import Passage, unread
from auditor.core import InputError, validate


@dataclass(frozen=True, kw_only=True)
class Secret:
    r"""The part of each text that an attacker lets a model write, given the text before it, and the rules of sampling.

    With neither a pattern, marks nor a prefix the secrets are the completions of pairs, or the last responses of chats.

    Attributes:
        pattern: Regular expression of the secret, the first match in a text; if it has a group, the first group.
        marks: Text before the secret and text after it, a pair; neither is scored.
        prefix: Number of tokens at the beginning of a text that the attacker gives; the secret are the tokens after them.
        suffix: Number of tokens of the secret after a prefix.
        context: The most characters before the secret that the attacker gives; default all.
        temperature: Of sampling; 0 for greedy decoding, which always writes the most likely token.
        top_k: Number of most likely tokens that are sampled from, after the temperature; default all.
        top_p: Least probability of the most likely tokens that are sampled from, after top-k; 1 for all.
        space: Number of secrets that a template allows, of one length and drawn uniformly, such as 10**9 for nine digits: a
            model that saw none of them writes one with probability 1/space on average, at most.

    Raises:
        InputError: A value out of its range, an invalid pattern, or two ways to find the secret.

    >>> Secret.from_text(r"pattern:id (\d+)").found(Passage("my id 123, thanks"))
    Passage(text='my id 123', responses=((6, 9),), is_chat=False)
    """

    pattern: str | None = None
    marks: tuple[str, str] | None = None
    prefix: int | None = None
    suffix: int | None = None
    context: int | None = None
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    space: int | None = None

    @classmethod
    def from_text(cls, text: Any, **rules: Any) -> "Secret":
        """Return the secret that a text describes; a `Secret` as it is.

        Args:
            text: ``completion``, ``pattern:EXPRESSION``, ``marks:BEFORE,AFTER`` or ``tokens:PREFIX,SUFFIX``.
            rules: The other fields.
        """
        if isinstance(text, cls):
            return text
        kind, _, rest = str(text).partition(":")
        first, _, second = rest.partition(",")
        match kind:
            case "completion" if not rest:
                return cls(**rules)
            case "pattern" if rest:
                return cls(pattern=rest, **rules)
            case "marks" if first and second:
                return cls(marks=(first, second), **rules)
            case "tokens" if first.strip().isdecimal() and second.strip().isdecimal():
                return cls(prefix=int(first), suffix=int(second), **rules)
        raise InputError(
            "secret must be 'completion', 'pattern:EXPRESSION', 'marks:BEFORE,AFTER' or 'tokens:PREFIX,SUFFIX', got"
            f" {text!r:.80}."
        )

    def __post_init__(self) -> None:
        for name in ("prefix", "suffix", "context", "top_k", "space"):
            if (value := getattr(self, name)) is not None:
                vars(self)[name] = validate.at_least(name, value, least=1)
        if (self.prefix is None) != (self.suffix is None):
            raise InputError("prefix and suffix must be given together, got one of them; add the other.")
        ways = [name for name in ("pattern", "marks", "prefix") if getattr(self, name) is not None]
        if len(ways) > 1:
            raise InputError(
                f"secret must be found in one way, got {' and '.join(ways)}; leave all but one out."
            )
        if self.prefix is not None and self.context is not None:
            raise InputError(
                "context must be left out with prefix, which is the number of tokens before the secret."
            )
        match self.marks:
            case None | (str(), str()) if self.marks is None or all(self.marks):
                pass
            case _:
                raise InputError(f"marks must be a pair of texts that are not empty, got {self.marks!r:.80}.")
        vars(self)["temperature"] = validate.number("temperature", self.temperature)
        if self.temperature < 0:
            raise InputError(f"temperature must be 0 (greedy decoding) or more, got {self.temperature:g}.")
        vars(self)["top_p"] = validate.number("top_p", self.top_p)
        if not 0 < self.top_p <= 1:
            raise InputError(f"top_p must lie in (0, 1], got {self.top_p:g}.")
        _ = self._expression

    @cached_property
    def _expression(self) -> re.Pattern[str] | None:
        try:
            return None if self.pattern is None else re.compile(self.pattern)
        except (re.error, TypeError) as error:
            raise InputError(
                f"pattern must be a regular expression, got {self.pattern!r:.80} ({error})."
            ) from error

    @property
    def is_plain(self) -> bool:
        """Whether tokens are sampled by the model's own probabilities."""
        return self.temperature == 1 and self.top_k is None and self.top_p == 1

    def tokens(self, count: int, *, place: str) -> slice | None:
        """Return the places of the secret's tokens in a text of so many; None where the text shows its secret."""
        if self.prefix is None or self.suffix is None:
            return None
        last = self.prefix + self.suffix
        if count < last:
            raise InputError(
                f"{place} must have at least {last:,} tokens, a prefix and a secret, got {count:,}; leave that record out, or"
                " give a smaller prefix or suffix."
            )
        return slice(self.prefix, last)

    @property
    def words(self) -> str:
        """The rules of sampling in words."""
        if self.temperature == 0:
            return "greedy decoding"
        rules = [f"temperature {self.temperature:g}"]
        rules += [] if self.top_k is None else [f"top-k {self.top_k:,}"]
        rules += [] if self.top_p == 1 else [f"top-p {self.top_p:g}"]
        return ", ".join(rules)

    def in_all(self, passages: list[Passage], records: Records) -> list[Passage]:
        """Return each text up to the end of its secret, as `found` does.

        Raises:
            InputError: A text without a secret; the sentence names the record.
        """
        found = [self.found(item) for item in passages]
        if None in found:
            fix = "leave that record out, or describe the secret in another way"
            raise unread(records, found.index(None), "have a secret", got="a text without it", fix=fix)
        return [item for item in found if item is not None]

    def found(self, passage: Passage) -> Passage | None:
        """Return a text up to the end of its secret, which is the part that is scored; None where it has none.

        A secret that follows a number of tokens is found by the tokenizer: the text then comes back as it is, to be scored whole.
        """
        text, start, stop = passage.text, 0, 0
        if self.prefix is not None:
            return replace(passage, responses=None)
        if self._expression is not None:
            match = self._expression.search(text)
            start, stop = match.span(min(1, self._expression.groups)) if match else (0, 0)
        elif self.marks is not None:
            before, _, rest = text.partition(self.marks[0])
            secret, after, _ = rest.partition(self.marks[1])
            text, start = before + secret, len(before)
            stop = start + len(secret) if after else start
        elif passage.responses:
            start, stop = passage.responses[-1]
        if start >= stop:
            return None
        first = 0 if self.context is None else max(0, start - self.context)
        return replace(passage, text=text[first:stop], responses=((start - first, stop - first),))
