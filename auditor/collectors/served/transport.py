"""How requests travel to a served model: where it is, how often it is asked again, and what can go wrong on the way."""

import contextlib
import dataclasses
import json
import os
import random
import re
import socket
import ssl
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import SplitResult, parse_qsl, urlsplit

from auditor.collectors.base.scorer import import_optional
from auditor.core import validate
from auditor.core.errors import InputError

# --- Where a served model is and how it may be asked: everything that asking needs and no number depends on ---


# --- The address of a server, and how it may be asked ---


_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SECRET_NAME = re.compile(
    r"access_token|api[-_]?key|auth|client_secret|code|key|pass|passwd|password|secret|sig|signature|subscription-key|token",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Connection:
    """An address, and how often, how fast and with which credentials it is asked.

    Attributes:
        url: Address of the server or of one model on it, http or https, without credentials.
        concurrency: Requests under way at a time, 1 or more.
        timeout: Seconds from sending a request to the last byte of its answer, above 0; then it is sent again.
        retries: How often a request is sent again after a time-out, a broken connection or answer, or a status of 429
            or 5xx.
        pause: Seconds before the first such repetition, about; it doubles each time, up to a minute. A server's
            Retry-After goes before.
        max_response_bytes: Largest answer that is read.
        token_variable: The environment variable that holds a bearer token. Its value is read when the first request is
            sent, and is kept out of everything written.
        header_variables: Further headers, each with the environment variable that holds its value.
        ca_file: Certificates (.pem) to verify the server by, instead of the public authorities.
        use_proxies: Whether the environment's proxies (``HTTPS_PROXY``, ``NO_PROXY``) are used.
        allow_plain_http: Whether credentials may be sent over http to another machine, where others can read them.

    Raises:
        InputError: A url that is none or holds credentials, or a number out of its range.

    >>> Connection("https://models.example/v2/models/income", token_variable="MODELS_TOKEN")
    Connection('https://models.example/v2/models/income', token_variable='MODELS_TOKEN')
    """

    url: str = field(kw_only=False)
    concurrency: int = 8
    timeout: float = 30.0
    retries: int = 5
    pause: float = 0.5
    max_response_bytes: int = 64_000_000
    token_variable: str | None = None
    header_variables: Mapping[str, str] | tuple[tuple[str, str], ...] = ()
    ca_file: str | Path | None = None
    use_proxies: bool = False
    allow_plain_http: bool = False

    def __post_init__(self) -> None:
        parts = _address(self.url)
        for name, least in (("concurrency", 1), ("retries", 0), ("max_response_bytes", 1)):
            object.__setattr__(self, name, validate.at_least(name, getattr(self, name), least=least))
        for name in ("timeout", "pause"):
            object.__setattr__(self, name, validate.positive(name, getattr(self, name)))
        given = self.header_variables
        pairs = tuple(sorted(given.items() if isinstance(given, Mapping) else given))
        object.__setattr__(self, "header_variables", pairs)
        secret = bool(pairs or self.token_variable)
        if (
            secret
            and parts.scheme == "http"
            and parts.hostname not in _LOOPBACK
            and not self.allow_plain_http
        ):
            raise InputError(
                f"url must be https where credentials are sent, got {self.shown!r}: over http others can read them; use"
                " https, or accept the risk with allow_plain_http=True."
            )

    def __repr__(self) -> str:
        """Show what differs from the defaults; the query of the address is left out."""
        changed = [
            f"{item.name}={getattr(self, item.name)!r}"
            for item in dataclasses.fields(self)
            if item.name != "url" and getattr(self, item.name) != item.default
        ]
        return f"{type(self).__name__}({', '.join([repr(self.shown), *changed])})"

    @property
    def shown(self) -> str:
        """The address as it may be written down: without its query."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}{parts.path}"

    @property
    def origin(self) -> str:
        """The server: scheme, host and port."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def path(self) -> str:
        """The path of the address, without a slash at its end."""
        return urlsplit(self.url).path.rstrip("/")

    @property
    def query(self) -> str:
        """What follows the path, with its question mark, or nothing."""
        query = urlsplit(self.url).query
        return f"?{query}" if query else ""

    @property
    def variables(self) -> list[str]:
        """The environment variables that hold credentials."""
        own = [] if self.token_variable is None else [self.token_variable]
        return own + list(dict(self.header_variables).values())

    def secrets(self) -> dict[str, str]:
        """Return the headers that hold credentials, read from the environment.

        Raises:
            InputError: A variable that is not set, or holds what no header can.
        """
        headers = {
            str(header): _value(str(variable)) for header, variable in dict(self.header_variables).items()
        }
        if self.token_variable is not None:
            headers["Authorization"] = f"Bearer {_value(self.token_variable)}"
        return headers


def _address(url: object) -> SplitResult:
    """Return the parts of an address; a wrong one is not shown, for it may hold a password."""
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        good = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname)
        good = good and parts is not None and (parts.port is None or parts.port > 0)
    except ValueError:
        parts, good = None, False
    if parts is None or not good or not isinstance(url, str) or any(sign <= " " for sign in url):
        raise InputError(
            "url must be the address of a served model, such as https://host:8080/v2/models/income, got"
            f" {'something else' if isinstance(url, str) else type(url).__name__}."
        )
    named = [name for name, _ in parse_qsl(parts.query) if _SECRET_NAME.fullmatch(name)]
    if named or "@" in parts.netloc:
        what = f"the parameter {named[0]!r}" if named else "a user or a password before the host"
        raise InputError(
            f"url must hold no credentials, got {what}; put them into an environment variable and name it with"
            " token_variable= or header_variables=."
        )
    return parts


def _value(variable: str) -> str:
    value = os.environ.get(variable, "").strip()
    if not value:
        raise InputError(
            f"environment variable {variable!r} must hold the credentials of the endpoint, and it is not set; set it"
            " before the collection begins."
        )
    if not (value.isascii() and value.isprintable()):
        raise InputError(
            f"environment variable {variable!r} must hold printable ASCII, got other signs; set it again."
        )
    return value


# --- Work done by several threads at a time, with results in the order of the items ---


Item = TypeVar("Item")
Result = TypeVar("Result")


class _GivenUp(Exception):  # noqa: N818 - not an error: other work failed, and this was given up
    """Raised by work that was waiting when it was told to stop."""


def run_in_order(
    work: Callable[[Item, threading.Event], Result], items: Sequence[Item], *, concurrency: int
) -> list[Result]:
    """Return the results of all items; at the first failure nothing new is begun, and the first of the list is raised.

    Args:
        work: From an item, and an event that is set when the work is to be given up, to a result.
        items: What is worked on; begun in this order.
        concurrency: How many at a time.
    """
    results: dict[int, Result] = {}
    failures: dict[int, BaseException] = {}
    stop, lock, waiting = threading.Event(), threading.Lock(), iter(enumerate(items))

    def worker() -> None:
        while not stop.is_set():
            with lock:
                taken = next(waiting, None)
            if taken is None:
                return
            position, item = taken
            try:
                results[position] = work(item, stop)
            except _GivenUp:
                return
            except BaseException as error:  # noqa: BLE001 - raised again below, in the caller's thread
                failures[position] = error
                stop.set()

    threads = [threading.Thread(target=worker, daemon=True) for _ in range(min(concurrency, len(items)))]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        stop.set()  # an interrupt leaves requests to their time-outs; daemon threads do not delay the exit
    if failures:
        raise failures[min(failures)]
    return [results[position] for position in range(len(items))]


# --- What a server says about a failed request, as one short line that is safe to print ---


_LONGEST = 200
_KEYS = ("error", "message", "detail", "msg", "error_message")


def printable(text: str, *, secrets: Iterable[str] = (), longest: int = _LONGEST) -> str:
    r"""Return text from a server on one printable line, without what must not be seen.

    >>> printable("wrong token \x1b[31mabc\n at line 1", secrets=["abc"])
    'wrong token ?[31m*** at line 1'
    """
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, "***")
    words = " ".join(text.split())
    kept = words if len(words) <= longest else f"{words[: longest - 3]}..."
    return "".join(sign if sign.isprintable() else "?" for sign in kept).rstrip(".")


def _server_words(body: bytes, *, secrets: Iterable[str] = ()) -> str:
    """Return what the body of an error says, in the forms that servers use; nothing where it says nothing.

    >>> _server_words(b'{"error_code": "BAD_REQUEST", "message": "no such column: age"}')
    'no such column: age'
    >>> _server_words(b'{"detail": [{"loc": ["body"], "msg": "field required"}]}')
    'field required'
    """
    text = body[:100_000].decode("utf-8", errors="replace")
    try:
        found = _message(json.loads(text))
    except (ValueError, RecursionError):
        found = None
    return printable(text if found is None else found, secrets=secrets)


def _message(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value:
        return _message(value[0])
    if isinstance(value, dict):
        for key in _KEYS:
            found = _message(value.get(key))
            if found:
                return found
    return None


# --- Requests to one server: bounded, repeated where that may help, and never sent anywhere else ---
#
# What happens to a request, by its answer::
#
#     2xx, whole JSON                      parsed (NaN and Infinity are numbers, as TF Serving writes them)
#     429, 5xx, no or a broken answer      sent again after a pause, `Connection.retries` times; then one sentence
#     401, 403, any other 4xx              one sentence with what the server says
#     3xx                                  one sentence: redirects are not followed, not even on the same host, because
#                                          a POST would become a GET, and records and credentials could go elsewhere
#     more bytes than allowed              one sentence, as soon as they are more
#     compressed (any Content-Encoding)    one sentence: a few bytes could become more than there is memory for
#     not whole in time                    the connection is cut, and the request sent again
#
# Nothing but the named server is asked: proxies of the environment are not used unless the connection says so.


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


# --- What can go wrong between a request and its answer: whether trying again may help, and the sentence if it does not ---


_LONGEST_WAIT = 600.0  # seconds that a server may ask for
_TOO_MANY = 429
_SERVER = 500  # and above: the server's fault, which may pass
_CLIENT = 400  # and above, below 500: the request's fault
_FIX_SERVER = "look into the server's log, and check that the features are those the model was trained on"
_FIX_REQUEST = "check that the features are those the model was trained on, and the protocol"
_FIXES = {
    404: "check the address and the name of the model",
    405: "check that the address is that of a model",
    413: "lower max_request_bytes=",
    415: "name the protocol with protocol=",
    _TOO_MANY: "lower concurrency=, or raise retries=",
}


class _Retry(Exception):  # noqa: N818 - a reason to try again
    """A failure that may pass.

    Args:
        words: What happened.
        fix: What helps if it does not pass.
        wait: The seconds that the server asks to wait.
        kind: The error that it becomes when it does not pass.
    """

    def __init__(
        self, words: str, *, fix: str, wait: float | None = None, kind: type[InputError] = InputError
    ) -> None:
        super().__init__(words)
        self.words, self.fix, self.wait, self.kind = words, fix, wait, kind


class StatusError(InputError):
    """The server was reached and does not take this request."""


class _Failures:
    """Words for the failures of one connection, without its credentials.

    Args:
        connection: The connection.
        secrets: Values that must not appear, should the server repeat them.
        httpx: The module, whose exceptions are told apart.
    """

    def __init__(self, connection: Connection, *, secrets: list[str], httpx: Any) -> None:
        self._connection, self._secrets, self._httpx = connection, secrets, httpx

    def given_up(self, trouble: _Retry, *, times: int, request: Request) -> InputError:
        """Return the sentence about a failure that did not pass."""
        words = f"{trouble.words} ({times} times)" if times > 1 else trouble.words
        return self.refused(words, request=request, fix=trouble.fix, kind=trouble.kind)

    def refused(
        self, words: str, *, request: Request, fix: str, kind: type[InputError] = InputError
    ) -> InputError:
        """Return the sentence about a request that cannot succeed."""
        shown = self._connection.shown if request.path is None else f"{self._connection.origin}{request.path}"
        return kind(f"endpoint {shown!r} {words}{f' for {request.place}' if request.place else ''}; {fix}.")

    def status(self, response: Any, body: bytes, *, request: Request) -> Exception:
        """Return what an answer without success means."""
        status = int(response.status_code)
        words = _server_words(body, secrets=self._secrets)
        said = f"answered {status}{f': {words!r}' if words else ''}"
        if status == _TOO_MANY or status >= _SERVER:
            wait = _seconds(response.headers.get("Retry-After"))
            if wait is not None and wait > _LONGEST_WAIT:
                words = f"answered {status} and asks to wait {wait:.0f} s"
                return self.refused(words, request=request, fix="begin again then")
            return _Retry(said, fix=_FIXES.get(status, _FIX_SERVER), wait=wait, kind=StatusError)
        if status < _CLIENT:
            return self._redirected(response, request=request)
        if status in (401, 403):
            return self.refused(
                f"refused the credentials ({status})", request=request, fix=self._credentials_fix()
            )
        fix = _FIXES.get(status, _FIX_REQUEST)
        return self.refused(said, request=request, fix=fix, kind=StatusError)

    def unreached(self, error: Exception, *, request: Request) -> Exception:
        """Return what an error of the transport means."""
        httpx, reason = self._httpx, printable(str(error), secrets=self._secrets) or type(error).__name__
        if isinstance(error, httpx.TimeoutException):
            return self.late()
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            words = f"has a certificate that cannot be verified ({reason})"
            return self.refused(
                words, request=request, fix="name the certificates of its authority with ca_file="
            )
        if isinstance(error, httpx.ConnectError):
            return _Retry(f"cannot be reached ({reason})", fix="check the address, and that the server runs")
        if isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError | httpx.ProxyError):
            return _Retry(f"broke off ({reason})", fix="look into the server's log, or lower concurrency=")
        return self.refused(f"cannot be asked ({reason})", request=request, fix="check the address")

    def late(self) -> _Retry:
        """Return that no whole answer came in time."""
        return _Retry(
            f"gave no whole answer within {self._connection.timeout:g} s",
            fix="raise timeout=, or send fewer records at a time with max_request_records=",
        )

    def large(self, most: int, *, request: Request) -> InputError:
        """Return that an answer is larger than allowed."""
        return self.refused(
            f"answered with more than {most:,} bytes",
            request=request,
            fix="send fewer records at a time with max_request_records=, or raise max_response_bytes=",
        )

    def encoded(self, encoding: str, *, request: Request) -> InputError:
        """Return that an answer is compressed, which was not asked for."""
        shown = printable(encoding, secrets=self._secrets, longest=40)
        return self.refused(
            f"answered with a compression that was not asked for ({shown!r})",
            request=request,
            fix="turn compression off in the server or the proxy before it",
        )

    def no_json(self, body: bytes) -> _Retry:
        """Return that an answer is cut off, or something else altogether."""
        start = printable(body[:200].decode("utf-8", errors="replace"), secrets=self._secrets, longest=40)
        return _Retry(
            f"answered with what is no whole JSON (it begins with {start!r})",
            fix="check that the address is that of the model, and look into the server's log",
        )

    def _redirected(self, response: Any, *, request: Request) -> InputError:
        target = urlsplit(response.headers.get("Location", ""))
        host = target.netloc.rpartition("@")[2]  # with the port, without a user and a password
        same = not host or target.netloc == urlsplit(self._connection.url).netloc
        where = printable(
            f"{target.scheme}://{host}{target.path}" if host else target.path, secrets=self._secrets
        )
        kind = "another path" if same else "another host"
        return self.refused(
            f"redirects ({response.status_code}) to {kind}, {where!r}, which is not followed",
            request=request,
            fix="give that address yourself if you trust it",
        )

    def _credentials_fix(self) -> str:
        if self._connection.variables:
            return f"put valid ones into the environment variable {' or '.join(self._connection.variables)}"
        return "put a token into an environment variable and name that with token_variable="


def _seconds(header: str | None) -> float | None:
    """Return what Retry-After asks for: seconds, or a date."""
    if header is None:
        return None
    if header.strip().isdecimal():
        return float(header)
    try:
        then = parsedate_to_datetime(header)
    except (TypeError, ValueError):
        return None
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    return max(0.0, (then - datetime.now(tz=UTC)).total_seconds())


# --- One connection to the server, which is cut when an answer takes too long ---
#
# The time-outs of httpx hold for each read, so that a server that sends a byte now and then would be waited for without end.


class _TimedConnection:
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


# --- All requests to one server ---


_LONGEST_PAUSE = 60.0  # seconds between repetitions, unless the server asks for more
_ERROR_BYTES = 100_000  # read of the body of an error


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
        self._httpx = import_optional("httpx", purpose="asking a served model", extra="http")
        self.connection = connection
        headers = connection.secrets()
        secrets = [value.removeprefix("Bearer ") for value in headers.values()]
        self._failures = _Failures(connection, secrets=secrets, httpx=self._httpx)
        self._resume = 0.0  # no request before this time, when the server asked to wait
        self._random = random.SystemRandom()
        self._headers = {"Accept": "application/json", "Accept-Encoding": "identity", **headers}
        self._certificates = _certificates(connection, httpx=self._httpx)
        self._connections: list[_TimedConnection] = []
        self._free: deque[_TimedConnection] = deque()
        weakref.finalize(self, _close, self._connections)

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
        return run_in_order(
            lambda request, stop: self.post(request, stop=stop),
            requests,
            concurrency=self.connection.concurrency,
        )

    def refused(self, request: Request, words: str, *, fix: str) -> InputError:
        """Return the sentence about an answer that cannot be used: what the server did, and what helps."""
        return self._failures.refused(words, request=request, fix=fix)

    def _repeated(self, attempt: Callable[[], Any], request: Request, *, stop: threading.Event) -> Any:
        """Return what an attempt returns, repeated where it may help."""
        allowed = self.connection.retries + 1
        for done in range(1, allowed + 1):
            if stop.wait(max(0.0, self._resume - time.monotonic())):
                raise _GivenUp
            try:
                return attempt()
            except _Retry as trouble:
                last = trouble
            if done < allowed and stop.wait(self._pause(done, last)):
                raise _GivenUp
        raise self._failures.given_up(last, times=allowed, request=request)

    def _answer(self, request: Request) -> Any:
        body = self._once("POST", request)
        try:
            return json.loads(body or b"")
        except (ValueError, RecursionError):
            raise self._failures.no_json(body or b"") from None

    def _once(self, method: str, request: Request) -> bytes | None:
        """Return the body of one answer."""
        httpx = self._httpx
        headers = {"Content-Type": "application/json"} if method == "POST" else {}
        with self._borrowed() as timed:
            try:
                with timed.answer(
                    method, self._address(request), content=request.body, headers=headers
                ) as response:
                    good = response.is_success
                    body = self._read(response, request) if good else self._start(response)
            except (httpx.TransportError, httpx.InvalidURL) as error:
                failures = self._failures
                raise (
                    failures.late() if timed.late else failures.unreached(error, request=request)
                ) from None
            if timed.late:  # the end of a body that has no length looks like its being cut
                raise self._failures.late()
        if good:
            return body
        missing = method == "GET" and response.is_client_error and response.status_code not in (401, 403, 429)
        if missing:
            return None
        raise self._failures.status(response, body, request=request)

    @contextmanager
    def _borrowed(self) -> Iterator[_TimedConnection]:
        """Yield a connection that nobody else uses meanwhile, the one that was used last if there is any."""
        try:
            timed = self._free.pop()
        except IndexError:
            timed = self._opened()
        try:
            yield timed
        finally:
            self._free.append(timed)

    def _opened(self) -> _TimedConnection:
        connection = self.connection
        client = self._httpx.Client(
            headers=self._headers,
            timeout=connection.timeout,
            limits=self._httpx.Limits(max_connections=1, max_keepalive_connections=1),
            follow_redirects=False,
            trust_env=connection.use_proxies,
            verify=self._certificates,
        )
        timed = _TimedConnection(client, seconds=connection.timeout)
        self._connections.append(timed)
        return timed

    def _read(self, response: Any, request: Request) -> bytes:
        """Read a body that is not too large."""
        encoding = _encoding(response)
        if encoding:
            raise self._failures.encoded(encoding, request=request)
        parts, size, most = [], 0, self.connection.max_response_bytes
        for part in response.iter_raw():
            size += len(part)
            parts.append(part)
            if size > most:
                raise self._failures.large(most, request=request)
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

    def _pause(self, done: int, trouble: _Retry) -> float:
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


def _close(connections: Sequence[_TimedConnection]) -> None:
    for connection in connections:
        connection.close()


def _encoding(response: Any) -> str | None:
    """Return how a body is compressed, or nothing where it is not."""
    named = response.headers.get("Content-Encoding", "")
    return None if named.strip().lower() in ("", "identity") else str(named)


def _certificates(connection: Connection, *, httpx: Any) -> ssl.SSLContext:
    """Return what verifies the server, for all connections: it takes a while to read."""
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
