"""Requests to one server: bounded, repeated where that may help, and never sent anywhere else.

What happens to a request, by its answer::

    2xx, whole JSON                      parsed (NaN and Infinity are numbers, as TF Serving writes them)
    429, 5xx, no or a broken answer      sent again after a pause, `Connection.retries` times; then one sentence
    401, 403, any other 4xx              one sentence with what the server says
    3xx                                  one sentence: redirects are not followed, not even on the same host, because
                                         a POST would become a GET, and records and credentials could go elsewhere
    more bytes than allowed              one sentence, as soon as they are more
    compressed (any Content-Encoding)    one sentence: a few bytes could become more than there is memory for
    not whole in time                    the connection is cut, and the request sent again

Nothing but the named server is asked: proxies of the environment are not used unless the connection says so.
"""

import json
import random
import ssl
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from auditor.collectors.extras import needed
from auditor.collectors.served.connection import Connection
from auditor.collectors.served.failures import Again, Failures
from auditor.collectors.served.line import Line
from auditor.collectors.served.workers import Stopped, in_order
from auditor.errors import InputError

__all__ = ["Request", "Transport"]

_LONGEST_PAUSE = 60.0  # seconds between repetitions, unless the server asks for more
_ERROR_BYTES = 100_000  # read of the body of an error


@dataclass(frozen=True)
class Request:
    """One request.

    Attributes:
        body: JSON.
        place: Whose request it is, in words, for error sentences: "member rows 0 to 99, counting from 0".
        path: The path on the server, where it is not that of the connection's address.
    """

    body: bytes
    place: str = ""
    path: str | None = None


class Transport:
    """Sends requests to the server of a connection and returns what its JSON answers say.

    Several threads may use it. Its connections stay open between requests, and are closed when it is forgotten.

    Args:
        connection: Where and how.

    Raises:
        InputError: A credential that is not set, or a file of certificates that cannot be read.
        MissingExtraError: httpx is not installed.
    """

    def __init__(self, connection: Connection) -> None:
        self._httpx = needed("httpx", purpose="asking a served model", extra="http")
        self.connection = connection
        headers = connection.secrets()
        secrets = [value.removeprefix("Bearer ") for value in headers.values()]
        self._failures = Failures(connection, secrets=secrets, httpx=self._httpx)
        self._resume = 0.0  # no request before this time, when the server asked to wait
        self._random = random.SystemRandom()
        self._headers = {"Accept": "application/json", "Accept-Encoding": "identity", **headers}
        self._certificates = _certificates(connection, httpx=self._httpx)
        self._lines: list[Line] = []
        self._free: deque[Line] = deque()
        weakref.finalize(self, _close, self._lines)

    def get(self, path: str) -> bytes | None:
        """Return what is at a path of the server, or nothing where the server has nothing there (4xx).

        Raises:
            InputError: The server is down or wants other credentials.
        """
        request = Request(b"", path=path)
        body: bytes | None = self._repeated(
            lambda: self._once("GET", request), request, stop=threading.Event()
        )
        return body

    def post(self, request: Request, *, stop: threading.Event | None = None) -> Any:
        """Return the parsed JSON answer to a request.

        Args:
            request: What is asked.
            stop: When set, the request is not repeated any more.

        Raises:
            InputError: No answer, in one sentence that names the server, the place and the fix.
        """
        return self._repeated(lambda: self._answer(request), request, stop=stop or threading.Event())

    def many(self, requests: Sequence[Request]) -> list[Any]:
        """Return the answers to all requests, in their order, with as many under way as the connection allows.

        Raises:
            InputError: The first request that got no answer.
        """
        return in_order(
            lambda request, stop: self.post(request, stop=stop),
            requests,
            concurrency=self.connection.concurrency,
        )

    def refused(self, request: Request, words: str, *, fix: str) -> InputError:
        """Return the sentence about an answer that cannot be used: what the server did, and what helps."""
        return self._failures.refused(words, place=request.place, path=request.path, fix=fix)

    def _repeated(self, attempt: Callable[[], Any], request: Request, *, stop: threading.Event) -> Any:
        """Return what an attempt returns, repeated where it may help."""
        allowed = self.connection.retries + 1
        for done in range(1, allowed + 1):
            if stop.wait(max(0.0, self._resume - time.monotonic())):
                raise Stopped
            try:
                return attempt()
            except Again as trouble:
                last = trouble
            if done < allowed and stop.wait(self._pause(done, last)):
                raise Stopped
        raise self._failures.given_up(last, times=allowed, place=request.place, path=request.path)

    def _answer(self, request: Request) -> Any:
        body = self._once("POST", request)
        try:
            return json.loads(body or b"")
        except (ValueError, RecursionError):
            raise self._failures.no_json(body or b"") from None

    def _once(self, method: str, request: Request) -> bytes | None:
        """Return the body of one answer."""
        place, path, httpx = request.place, request.path, self._httpx
        headers = {"Content-Type": "application/json"} if method == "POST" else {}
        with self._line() as line:
            try:
                with line.answer(
                    method, self._address(request), content=request.body, headers=headers
                ) as response:
                    good = response.is_success
                    body = self._read(response, request) if good else self._start(response)
            except (httpx.TransportError, httpx.InvalidURL) as error:
                late = line.late
                raise (
                    self._failures.late() if late else self._failures.unreached(error, place=place, path=path)
                ) from None
            if line.late:  # the end of a body that has no length looks like its being cut
                raise self._failures.late()
        if good:
            return body
        missing = method == "GET" and response.is_client_error and response.status_code not in (401, 403, 429)
        if missing:
            return None
        raise self._failures.status(response, body, place=place, path=path)

    @contextmanager
    def _line(self) -> Iterator[Line]:
        """Yield a line that nobody else uses meanwhile, the one that was used last if there is any."""
        try:
            line = self._free.pop()
        except IndexError:
            line = self._opened()
        try:
            yield line
        finally:
            self._free.append(line)

    def _opened(self) -> Line:
        connection = self.connection
        client = self._httpx.Client(
            headers=self._headers,
            timeout=connection.timeout,
            limits=self._httpx.Limits(max_connections=1, max_keepalive_connections=1),
            follow_redirects=False,
            trust_env=connection.use_proxies,
            verify=self._certificates,
        )
        line = Line(client, seconds=connection.timeout)
        self._lines.append(line)
        return line

    def _read(self, response: Any, request: Request) -> bytes:
        """Read a body that is not too large."""
        encoding = _encoding(response)
        if encoding:
            raise self._failures.encoded(encoding, place=request.place, path=request.path)
        parts, size, most = [], 0, self.connection.max_response_bytes
        for part in response.iter_raw():
            size += len(part)
            parts.append(part)
            if size > most:
                raise self._failures.large(most, place=request.place, path=request.path)
        return b"".join(parts)

    @staticmethod
    def _start(response: Any) -> bytes:
        """Read the beginning of a body, nothing of one that is compressed."""
        start = b""
        if _encoding(response):
            return start
        for part in response.iter_raw():
            start += part
            if len(start) > _ERROR_BYTES:
                break
        return start

    def _pause(self, done: int, trouble: Again) -> float:
        """Return the seconds before the next attempt: doubled each time, and spread so that requests do not meet."""
        if trouble.wait is not None:
            # The server means everybody: requests that were not sent yet wait too.
            self._resume = max(self._resume, time.monotonic() + trouble.wait)
            return trouble.wait
        longest = min(self.connection.pause * 2.0 ** (done - 1), _LONGEST_PAUSE)
        return longest * self._random.uniform(0.5, 1.0)

    def _address(self, request: Request) -> str:
        connection = self.connection
        path = connection.path if request.path is None else request.path
        return f"{connection.origin}{path}{connection.query}"


def _close(lines: Sequence[Line]) -> None:
    for line in lines:
        line.close()


def _encoding(response: Any) -> str | None:
    """Return how a body is compressed, or nothing where it is not."""
    named = response.headers.get("Content-Encoding", "")
    return None if named.strip().lower() in ("", "identity") else str(named)


def _certificates(connection: Connection, *, httpx: Any) -> ssl.SSLContext:
    """Return what verifies the server, for all lines: it takes a while to read."""
    if connection.ca_file is None:
        context: ssl.SSLContext = httpx.create_ssl_context(trust_env=connection.use_proxies)
        return context
    try:
        return ssl.create_default_context(cafile=str(connection.ca_file))
    except OSError as error:  # what ssl raises is one of them
        raise InputError(
            f"ca_file must be a file of certificates (.pem), got {str(connection.ca_file)!r}:"
            f" {error.strerror or 'it holds none'}; name the right file."
        ) from None
