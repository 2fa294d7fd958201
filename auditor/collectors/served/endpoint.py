"""Description of a served model: address, protocol, requests and answers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from auditor.collectors.base.named import NamedOutputs
from auditor.collectors.base.outputs import Output
from auditor.collectors.base.records import Records
from auditor.collectors.base.scorer import Predictor, distinct_classes
from auditor.collectors.base.tasks import Classifier, Task
from auditor.collectors.served import protocols
from auditor.collectors.served.payload import Wanted, answer_rows, joined_answers, json_payload, unanswered
from auditor.collectors.served.transport import Connection, Request, StatusError, Transport, UnusableError
from auditor.core import Array, InputError, chosen


@dataclass(frozen=True, kw_only=True, repr=False)
class Endpoint(Connection):
    """A model that is served, to be passed to `auditor.collect` like any model.

    Beside the following it has the attributes of `Connection`: ``url``, ``concurrency``, ``timeout``, ``retries``,
    ``pause``, ``max_response_bytes``, ``max_request_bytes``, ``max_request_records``, ``token_variable``, ``header_variables``, ``ca_file``, ``use_proxies`` and
    ``allow_plain_http``.

    Attributes:
        protocol: `KServeV2()`, `KServeV1()`, `MLflow()` or `Template(request, response)`, or a name: ``v2``, ``v1``,
            ``mlflow``, ``torchserve``, ``sagemaker`` or ``sagemaker-csv``; default as the path of the address says.
        model: The name of the model on the server, where the address has none.
        output: Kind of output that the server returns; default probabilities.
        output_name: Output to use, of several; default one that is named after probabilities.
        labels: The classes, for a server that answers with labels and cannot be made to return probabilities; what is
            collected is then the weaker 0/1 loss.

    Raises:
        InputError: A url that is none or holds credentials, or a value out of its range.

    >>> Endpoint("https://models.example/v2/models/income", token_variable="MODELS_TOKEN", concurrency=16)
    Endpoint('https://models.example/v2/models/income', concurrency=16, token_variable='MODELS_TOKEN')
    """

    protocol: protocols.Protocol | None = None
    model: str | None = None
    output: Output | None = None
    output_name: str | None = None
    labels: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        protocol = chosen("protocol", self.protocol, protocols.PROTOCOLS, optional=True)
        object.__setattr__(self, "protocol", protocol)
        if self.output is not None:
            object.__setattr__(self, "output", Output.named(self.output))
        if self.labels is not None:
            object.__setattr__(self, "labels", tuple(distinct_classes("labels", self.labels)))


# --- Answers that are predicted labels: named as such, or taken as certain probabilities where the caller accepts that ---


def _as_probabilities(
    outputs: Array, *, labels: Sequence[Any] | None, probabilities: bool, fix: str
) -> Array:
    """Return probabilities as they are, and labels as rows of 0 and a single 1.

    Labels are text, or one whole number for each record that is no probability. A column of 0 and 1 alone could be
    either; it stays as it is, for both mean the same loss.

    Args:
        outputs: Answer of the server, one row for each record.
        labels: The classes, where the caller accepts labels.
        probabilities: Whether the outputs are said to be probabilities; otherwise whole numbers may be logits.
        fix: How to make the server return probabilities.

    Raises:
        UnusableError: Labels that the caller did not accept, or that are none of those accepted.

    >>> _as_probabilities(np.array(["b", "a"], dtype=object), labels=("a", "b"), probabilities=True, fix="")
    array([[0., 1.],
           [1., 0.]])
    >>> _as_probabilities(np.array([0.25, 1.0]), labels=None, probabilities=True, fix="")
    array([0.25, 1.  ])
    """
    text = outputs.dtype.kind == "O"
    whole = not text and outputs.ndim == 1 and probabilities and bool(np.all(outputs == np.round(outputs)))
    beyond = whole and bool(np.any((outputs != 0) & (outputs != 1)))
    if not (text or beyond or (whole and labels is not None)):
        return outputs
    answered = outputs.tolist()
    if labels is None:
        raise UnusableError(
            "answered with predicted labels ({said}) instead of probabilities",
            said=", ".join(map(_quoted, list(dict.fromkeys(answered))[:3])),
            fix=f"{fix}, or accept a weaker 0/1-loss audit by listing the classes with labels=",
        )
    place = {label: position for position, label in enumerate(labels)}
    unknown = next((label for label in answered if label not in place), None)
    if unknown is not None:
        words = "answered with the label {said}, which is not in labels="
        raise UnusableError(words, said=_quoted(unknown), fix="list all classes there")
    return np.eye(len(labels))[[place[label] for label in answered]]


def _quoted(label: str | float) -> str:
    return f"'{label}'" if isinstance(label, str) else f"{label:g}"


# --- A served model as a predictor: batches become requests, and answers become outputs in the order of the records ---


class ServedModel:
    """The model at an endpoint; calling it sends records and returns their outputs.

    Args:
        endpoint: The endpoint.
        task: Task that the model was trained for.
        output: Kind of its outputs; default as declared by the endpoint.

    Attributes:
        endpoint: The endpoint, with the number of records in one request that its protocol allows.
        fix: How to make the server return probabilities instead of labels.

    Raises:
        InputError: A server that is down, refuses the credentials, or does not say which protocol it speaks.
    """

    def __init__(self, endpoint: Endpoint, *, task: Task, output: Output | None) -> None:
        self.output = (output or endpoint.output or Output.PROBABILITIES) if task.has_output else None
        self._classifies = isinstance(task, Classifier)
        self._wanted = Wanted(endpoint.output_name, probabilities=task.has_output)
        self._transport = Transport(endpoint)
        target = protocols.located(self._transport, self._wanted, model=endpoint.model)
        protocol = endpoint.protocol or protocols.detected(target)
        self.protocol_name = type(protocol).__name__
        self._wire: protocols.Wire = protocol.opened(target)
        self.fix = self._wire.fix
        self.endpoint = replace(endpoint, max_request_records=1) if self._wire.single else endpoint

    def __call__(self, records: Records) -> Array | NamedOutputs:
        """Return the outputs of a batch.

        Raises:
            InputError: Features that JSON cannot carry, or an answer that cannot be used; the sentence names the rows.
        """
        wire = self._wire
        try:
            arrays, self._wire = self._answers(records, wire), replace(wire, fallback=None)
        except StatusError:
            if wire.fallback is None:
                raise
            arrays, self._wire = self._answers(records, wire.fallback), wire.fallback
        try:
            return self._joined(arrays)
        except UnusableError as error:
            place = records.stretch(0, len(records))
            raise self._transport.refused(error, place=place, path=wire.path) from None

    def begin(self, records: Records) -> float:
        """Send the requests about a batch whose turn comes later; return the share of the window that they take."""
        if self._wire.fallback is not None:  # the first answer decides how the others are requested
            return 1.0
        return self._transport.begin(records, self._requests(records, self._wire))

    def drop(self, records: Records) -> None:
        """Give up the requests about a batch that `begin` sent."""
        self._transport.drop(records)

    def _answers(self, records: Records, wire: protocols.Wire) -> list[Array]:
        return self._transport.many(self._requests(records, wire), about=records)

    def _requests(self, records: Records, wire: protocols.Wire) -> Iterator[Request]:
        payload = json_payload(records)

        def body(start: int, stop: int) -> bytes:
            return wire.body(payload.part(start, stop))

        def read(start: int, stop: int, answer: Any) -> Array:
            outputs, n = wire.outputs(answer, self._wanted), stop - start
            row = unanswered(outputs, n=n)
            if row is not None:
                raise InputError(
                    f"{records.name} records must each have outputs in the server's answer, got none (first at"
                    f" {records.row(start + row)}); leave that record out, or look into the server's log."
                )
            return answer_rows(outputs, n=n)

        most, send = self.endpoint.max_request_records, self._transport.requests
        yield from send(records, wire.path, most=most, body=body, read=read, media=wire.media)

    def _joined(self, arrays: Sequence[Array]) -> Array | NamedOutputs:
        outputs = joined_answers(arrays)
        if isinstance(outputs, NamedOutputs) and any(
            self._transport.repeats_credential(str(name)) for name in outputs.names
        ):
            raise UnusableError("answered with a credential as the name of a class", fix="repair the server")
        if not self._classifies or isinstance(outputs, NamedOutputs):
            return outputs
        probabilities = self.output is Output.PROBABILITIES
        return _as_probabilities(
            outputs, labels=self.endpoint.labels, probabilities=probabilities, fix=self.fix
        )


def predictor(endpoint: Endpoint, *, task: Task, output: Output | None) -> Predictor:
    """Return a served model as the collectors see it.

    Raises:
        InputError: A server that cannot be queried.
    """
    model = ServedModel(endpoint, task=task, output=output)
    return Predictor(
        predict=model,
        sender=model,
        source=f"the {model.output or 'predictions'} that an endpoint returned ({model.protocol_name.replace('V', ' V')})",
        output=model.output,
        classes=None if endpoint.labels is None else tuple(endpoint.labels),
        records_at_once=model.endpoint.records_at_once,
        fixed_columns=endpoint.labels is not None,
    )
