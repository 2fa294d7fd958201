"""What an ONNX file says about its classes, read from its bytes (protocol buffers) without another package.

Only what is needed is decoded: ModelProto.graph (field 7), GraphProto.node (1), NodeProto.op_type (4), attribute (5)
and domain (7), AttributeProto.name (1), ints (8) and strings (9).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["Graph", "fields", "read_graph"]

_VARINT, _FIXED64, _BYTES, _GROUP, _END_GROUP, _FIXED32 = range(6)
_LABELS = ("classlabels_strings", "classlabels_int64s", "classlabels_ints")
_DOMAIN = b"ai.onnx.ml"
_CLASSIFIERS = (b"LinearClassifier", b"SVMClassifier", b"TreeEnsembleClassifier")
_MOST = 10**6  # labels


@dataclass(frozen=True)
class Graph:
    """What is known of a graph.

    Attributes:
        classes: The labels that its last classifier names, in the order of the scores; none where none does.
        classifies: Whether a classifier of the machine-learning operators is in it, which gives two scores for two classes.
    """

    classes: tuple[Any, ...] | None = None
    classifies: bool = False


def read_graph(content: bytes) -> Graph:
    """Return what a model's bytes say; nothing where they cannot be read."""
    classes: tuple[Any, ...] | None = None
    classifies = False
    try:
        for graph in _all(content, 7):
            for node in _all(graph, 1):
                if next(_all(node, 7), b"") != _DOMAIN:
                    continue
                classifies = classifies or next(_all(node, 4), b"") in _CLASSIFIERS
                classes = _labels(node) or classes
    except (IndexError, UnicodeDecodeError, ValueError):
        return Graph()
    return Graph(classes, classifies)


def _labels(node: bytes) -> tuple[Any, ...] | None:
    """Return the class labels among a node's attributes."""
    for attribute in _all(node, 5):
        if bytes(next(_all(attribute, 1), b"")).decode() not in _LABELS:
            continue
        strings: tuple[Any, ...] = tuple(item.decode() for item in _all(attribute, 9))
        found = strings or tuple(_integers(attribute, 8))
        if 0 < len(found) <= _MOST:
            return found
    return None


def _all(message: bytes, wanted: int) -> Iterator[bytes]:
    """Yield the byte strings in a field."""
    for field, value in fields(message):
        if field == wanted and isinstance(value, bytes):
            yield value


def _integers(message: bytes, wanted: int) -> Iterator[int]:
    """Yield the integers of a repeated field, packed or not."""
    for field, value in fields(message):
        if field != wanted:
            continue
        if isinstance(value, int):
            yield _signed(value)
            continue
        place = 0
        while place < len(value):
            number, place = _varint(value, place)
            yield _signed(number)


def fields(message: bytes | memoryview) -> Iterator[tuple[int, bytes | memoryview | int]]:
    """Yield the numbers and values of a message's fields: integers and byte strings.

    Raises:
        ValueError: What is no message.
        IndexError: A message that is cut short.
    """
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        kind = key & 7
        if kind == _VARINT:
            value, place = _varint(message, place)
            yield key >> 3, value
        elif kind == _BYTES:
            size, place = _varint(message, place)
            if place + size > len(message):
                raise ValueError("cut short")
            yield key >> 3, message[place : place + size]
            place += size
        elif kind in (_FIXED64, _FIXED32):
            place += 8 if kind == _FIXED64 else 4
        elif kind not in (_GROUP, _END_GROUP):  # what is in a group of old is read as if it were outside
            raise ValueError("unknown")


def _varint(message: bytes | memoryview, place: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = message[place]
        place += 1
        result |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return result, place
        if shift > 63:  # noqa: PLR2004
            raise ValueError("too long")


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
