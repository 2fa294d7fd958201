"""A served model, described: where it is, what it speaks, how records are sent to it and what comes back."""

import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from auditor.collectors.base.outputs import Output
from auditor.collectors.base.records import Records
from auditor.collectors.base.scorer import Predictor
from auditor.collectors.base.tasks import Classification, Task
from auditor.collectors.served import protocols
from auditor.collectors.served.payload import Payload, UnusableError, as_float32_if_rounded, json_payload
from auditor.collectors.served.protocols import Target, Template, Wire
from auditor.collectors.served.transport import (
    Connection,
    Request,
    StatusError,
    Transport,
    printable,
    run_in_order,
)
from auditor.core import validate
from auditor.core.errors import InputError

# Protocols by their short names, as the command line spells them; a template needs more than a name.
PROTOCOLS: Final = {"v2": protocols.KServeV2, "v1": protocols.KServeV1, "mlflow": protocols.MLflow}
_LEAST_BYTES = 1000  # of a request: names and brackets alone take some hundreds


@dataclass(frozen=True, kw_only=True, repr=False)
class Endpoint(Connection):
    """A model that is served, to be passed to `auditor.collect` like any model.

    Beside the following it has the attributes of `Connection`: ``url``, ``concurrency``, ``timeout``, ``retries``,
    ``pause``, ``max_response_bytes``, ``token_variable``, ``header_variables``, ``ca_file``, ``use_proxies`` and
    ``allow_plain_http``.

    Attributes:
        protocol: `KServeV2()`, `KServeV1()`, `MLflow()` or `Template(request, response)`; default found out from the
            address, or from what the server tells about itself.
        model: The name of the model on the server, where the address has none and the server has several.
        output: What the server returns; default probabilities.
        output_name: Which of several outputs to use; default one that is called after probabilities.
        labels: The classes, for a server that answers with labels and cannot be made to return probabilities; what is
            collected is then the weaker 0/1 loss.
        columns: The names of the columns of an array, for a server that wants names.
        by_name: Whether cells are sent with the names of their columns; default where the model needs them.
        max_request_bytes: Largest request; a larger batch is sent as several.
        max_request_records: Most records in one request.

    Raises:
        InputError: A url that is none or holds credentials, or a value out of its range.

    >>> Endpoint("https://models.example/v2/models/income", token_variable="MODELS_TOKEN", concurrency=16)
    Endpoint('https://models.example/v2/models/income', concurrency=16, token_variable='MODELS_TOKEN')
    """

    protocol: protocols.KServeV2 | protocols.KServeV1 | protocols.MLflow | Template | None = None
    model: str | None = None
    output: Output | None = None
    output_name: str | None = None
    labels: Sequence[Any] | None = None
    columns: Sequence[str] | None = None
    by_name: bool | None = None
    max_request_bytes: int = 1_000_000
    max_request_records: int = 500

    def __post_init__(self) -> None:
        super().__post_init__()
        kinds = (*PROTOCOLS.values(), Template)
        if self.protocol is not None and not isinstance(self.protocol, kinds):
            names = ", ".join(f"{kind.__name__}(...)" for kind in kinds)
            raise InputError(f"protocol must be one of {names}, got {self.protocol!r}.")
        if self.output is not None:
            output = validate.known("output", self.output, [str(item) for item in Output])
            object.__setattr__(self, "output", Output(output))
        for name in ("labels", "columns"):
            object.__setattr__(self, name, _distinct(name, getattr(self, name)))
        least = {"max_request_bytes": _LEAST_BYTES, "max_request_records": 1}
        for name, smallest in least.items():
            object.__setattr__(self, name, validate.at_least(name, getattr(self, name), least=smallest))


def _distinct(name: str, values: Any) -> tuple[Any, ...] | None:
    if values is None:
        return None
    if isinstance(values, str) or np.ndim(values) != 1:
        raise InputError(f"{name} must be a list of different names, got {values!r}.")
    listed = tuple(np.asarray(values, dtype=np.object_).tolist())
    if len(set(listed)) != len(listed) or len(listed) == 0:
        raise InputError(f"{name} must be a list of different names, got {list(listed)!r}.")
    return listed


# --- Answers that are predicted labels: named as such, or taken as certain probabilities where the caller accepts that ---


def _as_probabilities(
    outputs: npt.NDArray[Any], *, labels: Sequence[Any] | None, probabilities: bool, fix: str
) -> npt.NDArray[Any]:
    """Return probabilities as they are, and labels as rows of 0 and a single 1.

    Labels are text, or one whole number for each record that is no probability. A column of 0 and 1 alone could be
    either; it stays as it is, for both mean the same loss.

    Args:
        outputs: What the server answered, one row for each record.
        labels: The classes, where the caller accepts labels.
        probabilities: Whether the outputs are said to be probabilities; otherwise whole numbers may be logits.
        fix: What makes the server return probabilities.

    Raises:
        UnusableError: Labels that the caller did not accept, or that are none of those accepted.

    >>> _as_probabilities(np.array(["b", "a"]), labels=("a", "b"), probabilities=True, fix="")
    array([[0., 1.],
           [1., 0.]])
    >>> _as_probabilities(np.array([0.25, 1.0]), labels=None, probabilities=True, fix="")
    array([0.25, 1.  ])
    """
    text = outputs.dtype.kind in "US"
    whole = not text and outputs.ndim == 1 and probabilities and bool(np.all(outputs == np.round(outputs)))
    beyond = whole and bool(np.any((outputs != 0) & (outputs != 1)))
    if not (text or beyond or (whole and labels is not None)):
        return outputs
    answered = outputs.tolist()
    if labels is None:
        shown = ", ".join(repr(_shown(label)) for label in list(dict.fromkeys(answered))[:3])
        raise UnusableError(
            f"answered with predicted labels ({shown}) instead of probabilities",
            fix=f"{fix}, or accept a weaker 0/1-loss audit by listing the classes with labels=",
        )
    place = {label: position for position, label in enumerate(labels)}
    unknown = next((label for label in answered if label not in place), None)
    if unknown is not None:
        raise UnusableError(
            f"answered with the label {_shown(unknown)!r}, which is not in labels=",
            fix="list all classes there",
        )
    found = np.zeros((len(answered), len(labels)))
    found[np.arange(len(answered)), [place[label] for label in answered]] = 1
    return found


def _shown(label: Any) -> Any:
    if isinstance(label, float) and label.is_integer():
        return int(label)
    return printable(label, longest=60) if isinstance(label, str) else label


# --- A batch of records, cut into requests: each as large as allowed ---


@dataclass(frozen=True, eq=False)
class _Part:
    """Some records of a batch that go in one request.

    Attributes:
        payload: Their features.
        texts: The JSON of each.
        place: Which records they are, in words.
    """

    payload: Payload
    texts: Sequence[str]
    place: str


def _parts(records: Records, endpoint: Endpoint, wire: Wire) -> list[_Part]:
    """Return the requests of a batch, in its order.

    Raises:
        InputError: A record that is larger than a request may be.
    """
    whole, most_bytes = json_payload(records, columns=endpoint.columns), endpoint.max_request_bytes
    texts = wire.texts(whole)
    frame = len(wire.body(whole.part(0, 1), texts[:1])) - len(texts[0])
    most, room = 1 if wire.single else endpoint.max_request_records, most_bytes - frame
    edges, used = [0], 0
    for row, text in enumerate(texts):
        if len(text) > room:
            raise InputError(
                f"{records.name} X must fit into requests of {most_bytes:,} bytes, got {len(text) + frame:,} (first at"
                f" {records.row(row)}); raise max_request_bytes=."
            )
        if row - edges[-1] == most or (row > edges[-1] and used + len(text) > room):
            edges.append(row)
            used = 0
        used += len(text) + 1  # and a comma
    return [
        _Part(whole.part(start, stop), texts[start:stop], records.stretch(start, stop))
        for start, stop in itertools.pairwise([*edges, len(texts)])
    ]


# --- A served model as a predictor: batches become requests, and answers become outputs in the order of the records ---


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
        self._is_certain = self._wire.fallback() is None
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
            return protocols.detected_protocol(target, transport=self._transport)
        return endpoint.protocol, protocols.protocol_of_path(target)[1]

    @property
    def fix(self) -> str:
        """What makes the server return probabilities instead of labels."""
        return self._wire.fix

    def __call__(self, records: Records) -> npt.NDArray[Any]:
        """Return the outputs of a batch.

        Raises:
            InputError: Features that JSON cannot carry, or an answer that cannot be used; the sentence names the rows.
        """
        asked = _parts(records, self.endpoint, self._wire)
        done = [] if self._is_certain else [self._first_answer(asked[0])]
        rest = run_in_order(self._ask, asked[len(done) :], concurrency=self.endpoint.concurrency)
        arrays = [*done, *rest]
        place = records.stretch(0, len(records))
        if len({array.shape[1:] for array in arrays}) > 1:
            raise self._refused(
                "answered with rows of different lengths", place, "look into the server's log"
            )
        outputs = as_float32_if_rounded(np.concatenate(arrays))
        if not self._classifies:
            return outputs
        probabilities = self.output is Output.PROBABILITIES
        try:
            return _as_probabilities(
                outputs, labels=self.endpoint.labels, probabilities=probabilities, fix=self.fix
            )
        except UnusableError as error:
            raise self._refused(error.words, place, error.fix) from None

    def _per_request(self, sample: Sequence[Records]) -> int:
        """Return how many records fit into one request, by the size of some."""
        if self._wire.single:
            return 1
        first = [records.part(0, _SAMPLE) for records in sample if len(records)]
        sizes = [
            len(text) + 1
            for records in first
            for part in _parts(records, self.endpoint, self._wire)
            for text in part.texts
        ]
        fits = self.endpoint.max_request_bytes * len(sizes) // max(1, sum(sizes))
        return max(1, min(self.endpoint.max_request_records, fits)) if sizes else 1

    def _ask(self, part: _Part, stop: threading.Event) -> npt.NDArray[Any]:
        return self._answer(self._wire, part, stop)

    def _answer(self, wire: Wire, part: _Part, stop: threading.Event) -> npt.NDArray[Any]:
        request = Request(wire.body(part.payload, part.texts), place=part.place, path=wire.path)
        answer = self._transport.post(request, stop=stop)
        try:
            return wire.array(answer, n=len(part.texts))
        except UnusableError as error:
            raise self._refused(error.words, part.place, error.fix) from None

    def _first_answer(self, part: _Part) -> npt.NDArray[Any]:
        """Ask for probabilities by a guessed name, and if the server does not know it, for whatever there is."""
        fallback = self._wire.fallback()
        try:
            found = self._answer(self._wire, part, threading.Event())
        except StatusError:
            if fallback is None:
                raise
            found = self._answer(fallback, part, threading.Event())
            self._wire = fallback
        self._is_certain = True
        return found

    def _refused(self, words: str, place: str, fix: str) -> InputError:
        return self._transport.refused(Request(b"", place=place, path=self._wire.path), words, fix=fix)


# --- Served models among the kinds of models that are scored ---


def accepts(model: Any) -> bool:
    """Return whether this is an `Endpoint`."""
    return isinstance(model, Endpoint)


def predictor(
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
