"""A served model as a predictor: batches become requests, and answers become outputs in the order of the records."""

import threading
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from auditor.collectors.outputs import Output
from auditor.collectors.predictor import Predictor
from auditor.collectors.records import Records
from auditor.collectors.served.answers import UnusableError, narrowed
from auditor.collectors.served.detect import found_protocol, located
from auditor.collectors.served.endpoint import Endpoint
from auditor.collectors.served.failures import StatusError
from auditor.collectors.served.labels import as_probabilities
from auditor.collectors.served.parts import Part, parts, rows
from auditor.collectors.served.payload import payload
from auditor.collectors.served.transport import Request, Transport
from auditor.collectors.served.wire import Target, Wire
from auditor.collectors.served.workers import in_order
from auditor.collectors.tasks import Classification, Task
from auditor.errors import InputError

__all__ = ["ServedModel", "served_predictor"]

_SAMPLE = 100  # records whose size says how many go into a request
_LEAST_BATCH = 100  # records between two checkpoints, where few are under way at once


class ServedModel:
    """The model at an endpoint; calling it sends records and returns their outputs.

    Args:
        endpoint: The endpoint.
        task: What the model was trained to predict.
        output: What its outputs are; default what the endpoint says.
        sample: Some records, whose size says how many go into one request.

    Attributes:
        records_per_request: About how many records go into one request.

    Raises:
        InputError: A server that is down, refuses the credentials, or does not say which protocol it speaks.
    """

    def __init__(
        self, endpoint: Endpoint, *, task: Task, output: Output | None, sample: Sequence[Records]
    ) -> None:
        self.endpoint = endpoint
        self.output = (output or endpoint.output or Output.PROBABILITIES) if task.has_output else None
        self._classifies = isinstance(task, Classification)
        self._transport = Transport(endpoint)
        protocol, target = self._located(probabilities=task.has_output)
        self.protocol_name = type(protocol).__name__
        self._wire: Wire = protocol.opened(target, transport=self._transport)
        self._settled = self._wire.plainer() is None
        self.records_per_request = self._per_request(sample)

    def _located(self, *, probabilities: bool) -> tuple[Any, Target]:
        endpoint = self.endpoint
        target = Target(
            base=endpoint.path,
            model=None if endpoint.model is None else quote(endpoint.model, safe=""),
            version=None,
            output_name=endpoint.output_name,
            probabilities=probabilities,
            by_name=endpoint.by_name,
            path=endpoint.path,
        )
        if endpoint.protocol is None:
            return found_protocol(target, transport=self._transport)
        return endpoint.protocol, located(target)[1]

    @property
    def fix(self) -> str:
        """What makes the server return probabilities instead of labels."""
        return self._wire.fix

    def __call__(self, records: Records) -> npt.NDArray[Any]:
        """Return the outputs of a batch.

        Raises:
            InputError: Features that JSON cannot carry, or an answer that cannot be used; the sentence names the rows.
        """
        asked = self._parts(records)
        done = [] if self._settled else [self._settle(asked[0])]
        rest = in_order(self._ask, asked[len(done) :], concurrency=self.endpoint.concurrency)
        arrays = [*done, *rest]
        place = rows(records, 0, len(records))
        if len({array.shape[1:] for array in arrays}) > 1:
            raise self._refused(
                "answered with rows of different lengths", place, "look into the server's log"
            )
        outputs = narrowed(np.concatenate(arrays))
        if not self._classifies:
            return outputs
        probabilities = self.output is Output.PROBABILITIES
        try:
            return as_probabilities(
                outputs, labels=self.endpoint.labels, probabilities=probabilities, fix=self.fix
            )
        except UnusableError as error:
            raise self._refused(error.words, place, error.fix) from None

    def _parts(self, records: Records) -> list[Part]:
        endpoint = self.endpoint
        return parts(
            records,
            payload(records, columns=endpoint.columns),
            wire=self._wire,
            most_bytes=endpoint.max_request_bytes,
            most_records=endpoint.max_request_records,
        )

    def _per_request(self, sample: Sequence[Records]) -> int:
        """Return how many records fit into one request, by the size of some."""
        if self._wire.single:
            return 1
        first = [records.part(0, _SAMPLE) for records in sample if len(records)]
        sizes = [len(text) + 1 for records in first for part in self._parts(records) for text in part.texts]
        fits = self.endpoint.max_request_bytes * len(sizes) // max(1, sum(sizes))
        return max(1, min(self.endpoint.max_request_records, fits)) if sizes else 1

    def _ask(self, part: Part, stop: threading.Event) -> npt.NDArray[Any]:
        return self._answer(self._wire, part, stop)

    def _answer(self, wire: Wire, part: Part, stop: threading.Event) -> npt.NDArray[Any]:
        request = Request(wire.body(part.payload, part.texts), place=part.place, path=wire.path)
        answer = self._transport.post(request, stop=stop)
        try:
            return wire.array(answer, n=len(part.texts))
        except UnusableError as error:
            raise self._refused(error.words, part.place, error.fix) from None

    def _settle(self, part: Part) -> npt.NDArray[Any]:
        """Ask for probabilities by a guessed name, and if the server does not know it, for whatever there is."""
        plainer = self._wire.plainer()
        try:
            found = self._answer(self._wire, part, threading.Event())
        except StatusError:
            if plainer is None:
                raise
            found = self._answer(plainer, part, threading.Event())
            self._wire = plainer
        self._settled = True
        return found

    def _refused(self, words: str, place: str, fix: str) -> InputError:
        return self._transport.refused(Request(b"", place=place, path=self._wire.path), words, fix=fix)


def served_predictor(
    endpoint: Endpoint, *, task: Task, output: Output | None, sample: Sequence[Records]
) -> Predictor:
    """Return a served model as the collectors see it.

    Args:
        endpoint: The endpoint.
        task: What the model was trained to predict.
        output: What its outputs are, where the caller knows.
        sample: Some records, whose size says how many go into one request.

    Raises:
        InputError: A server that cannot be asked.
    """
    model = ServedModel(endpoint, task=task, output=output, sample=sample)
    # One round of requests: what is lost when the server dies is what was under way.
    batch = max(_LEAST_BATCH, endpoint.concurrency * model.records_per_request)
    return Predictor(
        predict=model,
        source=f"the {model.output or 'predictions'} that endpoint {endpoint.shown!r} returned ({model.protocol_name})",
        output=model.output,
        classes=None if endpoint.labels is None else tuple(endpoint.labels),
        records_at_once=_round(batch),
    )


def _round(count: int) -> int:
    """Return a count of two digits, so that it does not hang on a byte of the sample."""
    unit: int = 10 ** max(0, len(str(count)) - 2)
    return count // unit * unit
