"""Any other server: a request with a place for the records, and a path to the outputs in the answer."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from auditor.collectors.served.answers import UnusableError, numbers, rows_of
from auditor.collectors.served.messages import short
from auditor.collectors.served.payload import Payload, written
from auditor.collectors.served.transport import Transport
from auditor.collectors.served.wire import Target, Wire
from auditor.errors import InputError

__all__ = ["Template"]

_PLACE = re.compile(r'"?\{\{\s*(rows|row|records|record)\s*\}\}"?')


@dataclass(frozen=True)
class Template:
    r"""A request as JSON text with one placeholder, and a path to the outputs in the answer.

    Attributes:
        request: JSON with one of ``{{rows}}`` (a list of lists of cells), ``{{records}}`` (a list of objects by column
            name), ``{{row}}`` or ``{{record}}`` (one record for each request), quoted or not.
        response: Names and positions separated by dots ("outputs.0.scores"), or a JSON pointer ("/outputs/0/scores");
            ``*`` goes through a list ("results.*.probs"). Empty is the whole answer. It leads to one output for each
            record of the request, in their order.

    Raises:
        InputError: A request that is no JSON or has no placeholder or several.

    >>> Template('{"data": {{rows}}}', "scores.*.probability").response
    'scores.*.probability'
    """

    request: str
    response: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.request, str) or not isinstance(self.response, str):
            raise InputError("request_template and response_path must be text.")
        found = _PLACE.findall(self.request)
        if len(found) != 1:
            raise InputError(
                "request_template must hold one of {{rows}}, {{records}}, {{row}} and {{record}}, once, got"
                f" {len(found)} of them."
            )
        try:
            json.loads(_PLACE.sub("null", self.request))
        except ValueError as error:
            raise InputError(f"request_template must be JSON around its placeholder: {error}.") from None

    @property
    def kind(self) -> str:
        """Which placeholder it is."""
        return str(_PLACE.findall(self.request)[0])

    @property
    def steps(self) -> list[str]:
        """The names and positions that lead to the outputs."""
        if self.response.startswith("/"):
            return [step.replace("~1", "/").replace("~0", "~") for step in self.response[1:].split("/")]
        return [step for step in self.response.removeprefix("$").strip(".").split(".") if step]

    def opened(self, target: Target, *, transport: Transport) -> Wire:  # noqa: ARG002 - nothing to ask
        """Return the wire to the address as it was given."""
        return _Wire(target.path, target, self)


@dataclass(frozen=True)
class _Wire:
    path: str
    target: Target
    protocol: Template
    fix = "let the server return a probability for each class"

    @property
    def single(self) -> bool:
        return self.protocol.kind in ("row", "record")

    def texts(self, payload: Payload) -> list[str]:
        objects = self.protocol.kind in ("records", "record")
        if objects and payload.columns is None:
            raise InputError(
                "columns must name the features where the request asks for {{records}}, got an array without names; give"
                " columns=, or use {{rows}}."
            )
        return [written(row) for row in (payload.objects() if objects else payload.rows)]

    def body(self, payload: Payload, texts: Sequence[str]) -> bytes:  # noqa: ARG002 - the texts say all
        value = texts[0] if self.single else f"[{','.join(texts)}]"
        return _PLACE.sub(lambda _: value, self.protocol.request).encode()

    def array(self, answer: Any, *, n: int) -> npt.NDArray[Any]:
        value = _followed(answer, self.protocol.steps, self.protocol.response)
        value = rows_of(value, wanted=self.target.output_name, probabilities=self.target.probabilities)
        if self.single and not (isinstance(value, list) and len(value) == 1 and isinstance(value[0], list)):
            value = [value]  # the outputs of the one record, without a list of records around them
        return numbers(value, n=n)

    def plainer(self) -> Wire | None:
        return None


def _followed(answer: Any, steps: Sequence[str], path: str) -> Any:
    for place, step in enumerate(steps):
        if step == "*" and isinstance(answer, list):
            return [_followed(item, steps[place + 1 :], path) for item in answer]
        if isinstance(answer, dict) and step in answer:
            answer = answer[step]
        elif isinstance(answer, list) and step.isdecimal() and int(step) < len(answer):
            answer = answer[int(step)]
        else:
            there = (
                ", ".join(list(map(str, answer))[:5]) if isinstance(answer, dict) else type(answer).__name__
            )
            raise UnusableError(
                f"answered without {step!r} of the path {path!r} (there is {short(there) or 'nothing'})",
                fix="correct response_path=",
            )
    return answer
