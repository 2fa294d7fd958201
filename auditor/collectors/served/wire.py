"""A wire: how records are written into the requests of one model on one server, and its answers read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt

from auditor.collectors.served.payload import Payload
from auditor.collectors.served.transport import Transport

__all__ = ["ServingProtocol", "Target", "Wire"]


@dataclass(frozen=True)
class Target:
    """One model on a server, and what is wanted of it.

    Attributes:
        base: The path before what the protocol adds, without a slash at its end.
        model: The name of the model, where it is known.
        version: Its version, where one is named.
        output_name: Which of several outputs is wanted, where the caller said so.
        probabilities: Whether class probabilities are wanted; a regression wants what there is.
        by_name: Whether cells are sent with the names of their columns; none where the wire decides.
        path: The whole path as it was given.
    """

    base: str
    model: str | None
    version: str | None
    output_name: str | None
    probabilities: bool
    by_name: bool | None
    path: str


class Wire(Protocol):
    """The requests of one model."""

    @property
    def path(self) -> str:
        """Where requests go."""
        ...

    @property
    def single(self) -> bool:
        """Whether a request holds one record only."""
        ...

    @property
    def fix(self) -> str:
        """What makes this kind of server return probabilities instead of labels."""
        ...

    def texts(self, payload: Payload) -> list[str]:
        """Return the JSON of each record, as it stands in a request (or of about the size that it takes there)."""
        ...

    def body(self, payload: Payload, texts: Sequence[str]) -> bytes:
        """Return a request for some records, whose texts are given too."""
        ...

    def array(self, answer: Any, *, n: int) -> npt.NDArray[Any]:
        """Return the outputs for ``n`` records.

        Raises:
            UnusableError: An answer without them.
        """
        ...

    def plainer(self) -> "Wire | None":
        """Return a wire that asks for less, to be tried where a server does not take the first request."""
        ...


class ServingProtocol(Protocol):
    """What kind of server it is: `KServeV2`, `KServeV1`, `MLflow` or `Template`."""

    def opened(self, target: Target, *, transport: Transport) -> Wire:
        """Return the wire to a model, after reading what the server tells about it.

        Raises:
            InputError: No such model, or no name for it.
        """
        ...
