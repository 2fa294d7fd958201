"""A batch of records, cut into requests: each as large as allowed."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from auditor.collectors.records import Records
from auditor.collectors.served.payload import Payload
from auditor.collectors.served.wire import Wire
from auditor.errors import InputError

__all__ = ["Part", "parts", "rows"]


@dataclass(frozen=True, eq=False)
class Part:
    """Some records of a batch that go in one request.

    Attributes:
        payload: Their features.
        texts: The JSON of each.
        place: Which records they are, in words.
    """

    payload: Payload
    texts: Sequence[str]
    place: str


def parts(records: Records, whole: Payload, *, wire: Wire, most_bytes: int, most_records: int) -> list[Part]:
    """Return the requests of a batch, in its order.

    Raises:
        InputError: A record that is larger than a request may be.
    """
    texts = wire.texts(whole)
    frame = len(wire.body(whole.part(0, 1), texts[:1])) - len(texts[0])
    most, room = 1 if wire.single else most_records, most_bytes - frame
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
        Part(whole.part(start, stop), texts[start:stop], rows(records, start, stop))
        for start, stop in itertools.pairwise([*edges, len(texts)])
    ]


def rows(records: Records, start: int, stop: int) -> str:
    """Return in words which records of a batch these are."""
    first, last = records.first_row + start, records.first_row + stop - 1
    named = f"row {first}" if first == last else f"rows {first} to {last}"
    return f"{records.name} {named}, counting from 0"
