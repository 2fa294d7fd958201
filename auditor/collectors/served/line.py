"""One connection to a server, which is cut when an answer takes too long.

The time-outs of httpx hold for each read, so that a server that sends a byte now and then would be waited for without end.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

__all__ = ["Line"]


class Line:
    """Sends one request at a time, over a connection that stays open in between.

    Args:
        client: An ``httpx.Client`` that keeps at most one connection, and that nothing else uses.
        seconds: For each request, from its start to the last byte of its answer.
    """

    def __init__(self, client: Any, *, seconds: float) -> None:
        self._client, self._seconds = client, seconds
        self._lock = threading.Lock()
        self._stream: Any = None  # of the connection that was opened last
        self._running: object | None = None
        self.late = False

    @contextmanager
    def answer(
        self, method: str, address: str, *, content: bytes, headers: Mapping[str, str]
    ) -> Iterator[Any]:
        """Yield the answer to a request, its body unread; after the time ``late`` is true, and all reading ends.

        Raises:
            httpx.TransportError: No answer, or a late one.
        """
        turn = object()
        self._running, self.late = turn, False
        watchdog = threading.Timer(self._seconds, self._cut, [turn])
        watchdog.daemon = True
        watchdog.start()
        try:
            with self._client.stream(
                method, address, content=content or None, headers=headers, extensions={"trace": self._watch}
            ) as response:
                yield response
        finally:
            watchdog.cancel()
            with self._lock:
                self._running = None

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _watch(self, _event: str, found: Mapping[str, Any]) -> None:
        """Keep the stream of each connection that is opened, and of each step of it to TLS."""
        stream = found.get("return_value")
        if hasattr(stream, "get_extra_info"):
            with self._lock:
                self._stream = stream
                if self.late:  # before there was one
                    self._shut()

    def _cut(self, turn: object) -> None:
        with self._lock:
            if self._running is turn:  # and not the next request
                self.late = True
                self._shut()

    def _shut(self) -> None:
        """Wake whoever reads or writes; closing the socket would not."""
        found = None if self._stream is None else self._stream.get_extra_info("socket")
        if isinstance(found, socket.socket):
            with contextlib.suppress(OSError):
                # Not the method of TLS sockets, which would let the reader go on without TLS.
                socket.socket.shutdown(found, socket.SHUT_RDWR)
