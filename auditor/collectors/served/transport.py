"""Transport of requests to a served model: its address, retries and failures."""

import asyncio
import contextlib
import dataclasses
import itertools
import json
import os
import random
import re
import ssl
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import KW_ONLY, dataclass, field
from email.utils import parsedate_to_datetime
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from auditor.collectors.base.records import Records
from auditor.core import InputError, errors, import_optional, validate

# --- The address of a server, and all that a request needs and no number depends on ---


_SECRET_NAME = re.compile(
    r"access_token|api[-_]?key|auth|client_secret|code|key|pass|passwd|password|secret|sig|signature|subscription-key|token",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Connection:
    """An address, and how often, how fast and with which credentials requests are sent.

    Attributes:
        url: Address of the server or of one model on it, http or https, without user and password. A value of six or more
            characters in its query counts as a credential: it is sent by https alone, and never shown.
        concurrency: Requests under way at a time, 1 or more.
        timeout: Seconds from sending a request to the last byte of its answer, above 0; then it is sent again.
        retries: Number of times that a request is sent again after a time-out, a broken connection or answer, or a status of 429
            or 5xx.
        pause: Seconds before the first such repetition, about; it doubles each time, up to a minute. A server's
            Retry-After goes before.
        max_response_bytes: Largest answer that is read.
        max_request_bytes: Largest request; a larger batch is sent as several.
        max_request_records: Most records in one request.
        token_variable: The environment variable that holds a bearer token. Its value is read when the first request is
            sent, and is kept out of everything written.
        header_variables: Further headers, each with the environment variable that holds its value.
        ca_file: Certificates (.pem) to verify the server by, instead of the public authorities.
        use_proxies: Whether the environment's proxies (``HTTPS_PROXY``, ``NO_PROXY``) are used; requests to this machine are always
            sent without one.
        allow_plain_http: Whether credentials may be sent over http to another machine, where others can read them.

    Raises:
        InputError: A url that is none or holds credentials; credentials over http; or a number out of its range.

    >>> Connection("https://models.example/v2/models/income", token_variable="MODELS_TOKEN")
    Connection('https://models.example/v2/models/income', token_variable='MODELS_TOKEN')
    """

    url: str = field(kw_only=False)
    concurrency: int = 8
    timeout: float = 30.0
    retries: int = 5
    pause: float = 0.5
    max_response_bytes: int = 64_000_000
    max_request_bytes: int = 1_000_000
    max_request_records: int = 500
    token_variable: str | None = None
    header_variables: Mapping[str, str] | tuple[tuple[str, str], ...] = ()
    ca_file: str | Path | None = None
    use_proxies: bool = False
    allow_plain_http: bool = False

    def __post_init__(self) -> None:
        _check_address(self.url)
        counts = ("concurrency", "max_response_bytes", "max_request_bytes", "max_request_records")
        for name in (*counts, "retries"):
            least = 0 if name == "retries" else 1
            object.__setattr__(self, name, validate.at_least(name, getattr(self, name), least=least))
        for name in ("timeout", "pause"):
            object.__setattr__(self, name, validate.positive(name, getattr(self, name)))
        object.__setattr__(self, "header_variables", tuple(sorted(dict(self.header_variables).items())))
        sent = self.variables or errors.credentials(self.url)
        if sent and errors.elsewhere(self.url, "http") and (self.use_proxies or not self.allow_plain_http):
            fix = "accept the risk with allow_plain_http=True"
            if self.allow_plain_http:
                fix = "leave out use_proxies="
            raise InputError(
                "url must be https where credentials are sent, as any value of six or more characters in it may be, got"
                f" {self.display_url!r}: over http others can read them; use https, or {fix}."
            )

    def __repr__(self) -> str:
        """Show the settings that differ from the defaults; the query of the address is left out."""
        changed = [
            f"{item.name}={getattr(self, item.name)!r}"
            for item in dataclasses.fields(self)
            if item.name != "url" and getattr(self, item.name) != item.default
        ]
        return f"{type(self).__name__}({', '.join([repr(self.display_url), *changed])})"

    @property
    def records_at_once(self) -> int:
        """Records of a batch, which are kept once they are answered: 100, or the next number that fills whole requests."""
        return -(-_LEAST_BATCH // self.max_request_records) * self.max_request_records

    @property
    def display_url(self) -> str:
        """The address for display: without its query."""
        return self.at(urlsplit(self.url).path)

    @property
    def path(self) -> str:
        """The path of the address, without a slash at its end."""
        return urlsplit(self.url).path.rstrip("/")

    def at(self, path: str, *, query: str = "") -> str:
        """Return the address of a path of the server."""
        return urlsplit(self.url)._replace(path=path, query=query, fragment="").geturl()

    @property
    def variables(self) -> list[str]:
        """The environment variables that hold credentials."""
        own = [] if self.token_variable is None else [self.token_variable]
        return own + [str(variable) for variable in dict(self.header_variables).values()]

    def secrets(self) -> dict[str, str]:
        """Return the headers that hold credentials, read from the environment.

        Raises:
            InputError: A variable that is not set, or holds characters that no header can.
        """
        headers = {str(name): _value(str(variable)) for name, variable in dict(self.header_variables).items()}
        if self.token_variable is not None:
            headers["Authorization"] = f"Bearer {_value(self.token_variable)}"
        return headers


def _check_address(url: object) -> None:
    """Refuse an invalid address without showing it, because it may hold a password; and one that holds credentials by name."""
    try:
        parts = urlsplit(str(url))
        good = isinstance(url, str) and all(sign > " " for sign in url) and parts.port != 0
        good = good and parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        good = False
    if not good:
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


def _value(variable: str) -> str:
    value = os.environ.get(variable, "").strip()
    if not value or not (value.isascii() and value.isprintable()):
        raise InputError(
            f"environment variable {variable!r} must hold the credentials of the endpoint in printable ASCII, got"
            f" {'other signs' if value else 'nothing'}; set it before the collection begins."
        )
    return value


# --- Failures of a server; its own words are quoted only if no credential is sent, because it may repeat one ---


_LONGEST = 200  # characters of a server's words in a sentence
_NOT_QUOTED = "(not quoted, for credentials are sent)"
_TELLING = 6  # characters of a credential that give it away; fewer may be those of a word


@dataclass(eq=False)
class UnusableError(Exception):
    """Server response that cannot be used.

    Attributes:
        words: Description of the failure, with ``{said}`` for the server's own words.
        fix: Fix.
        said: Its own words, which `Transport.refused` quotes or leaves out.
        passes: Whether a repetition may help.
        wait: The seconds that the server asks to wait.
        by_status: Whether it was reached and does not take this request.
    """

    words: str
    _: KW_ONLY
    fix: str
    said: str = ""
    passes: bool = False
    wait: float | None = None
    by_status: bool = False


class StatusError(InputError):
    """The server was reached and does not take this request."""


# --- Meaning of an unsuccessful answer ---
#
#     2xx, whole JSON                      parsed (NaN and Infinity are numbers, as TF Serving writes them)
#     429, 5xx, no or a broken answer      sent again after a pause, `Connection.retries` times; then one sentence
#     401, 403, any other 4xx              one sentence with the server's message
#     3xx                                  one sentence: redirects are not followed, not even on the same host, because
#                                          a POST would become a GET, and records and credentials could go elsewhere
#     more bytes than allowed              one sentence, as soon as they are more
#     compressed (any Content-Encoding)    one sentence: a few bytes could become more than there is memory for
#     not whole in time                    the connection is cut, and the request sent again
#
# Requests go to the named server alone: proxies of the environment are not used unless the connection says so.


_LONGEST_WAIT = 600.0  # seconds that a server may ask for
_TOO_MANY = 429
_SERVER = 500  # and above: the server's fault, which may pass
_CLIENT = 400  # and above, below 500: the request's fault
_FIX_SERVER = "look into the server's log, and check that the features are those the model was trained on"
_FIX_REQUEST = "check that the features are those the model was trained on, and the protocol"
_FIXES: Final = {
    404: "check the address and the name of the model",
    405: "check the address and the name of the model",
    413: "lower max_request_bytes=",
    415: "name the protocol with protocol=",
    _TOO_MANY: "lower concurrency=, or raise retries=",
}


def _of_status(response: Any, body: bytearray, *, variables: Sequence[str]) -> UnusableError:
    """Return the meaning of an unsuccessful answer."""
    status = int(response.status_code)
    if status in (401, 403):
        fix = "put a token into an environment variable and name that with token_variable="
        if variables:
            fix = f"put valid ones into the environment variable {' or '.join(variables)}"
        return UnusableError(f"refused the credentials ({status})", fix=fix)
    if status < _CLIENT:
        # Without a user, a password and a query, which may be secrets of somebody else.
        target = re.split(r"[?#]", response.headers.get("Location", ""), maxsplit=1)[0].rpartition("@")[2]
        words = f"redirects ({status}) to '{{said}}', which is not followed"
        return UnusableError(words, said=target, fix="give that address yourself if you trust it")
    said = body.decode("utf-8", errors="replace")
    words = f"answered {status}: '{{said}}'" if said.strip() else f"answered {status}"
    if status != _TOO_MANY and status < _SERVER:
        return UnusableError(words, said=said, fix=_FIXES.get(status, _FIX_REQUEST), by_status=True)
    wait = _seconds(response.headers.get("Retry-After", ""))
    if wait is not None and wait > _LONGEST_WAIT:
        return UnusableError(f"answered {status} and asks to wait {wait:.0f} s", fix="begin again then")
    fix = _FIXES.get(status, _FIX_SERVER)
    return UnusableError(words, said=said, fix=fix, passes=True, wait=wait, by_status=True)


def _seconds(header: str) -> float | None:
    """Return the wait that Retry-After requests: seconds, or a date."""
    try:
        if header.strip().isdecimal():
            return float(header)
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _unreached(error: Exception, *, httpx: ModuleType) -> UnusableError:
    """Return the meaning of an error of the transport."""
    said = str(error) or type(error).__name__
    if "CERTIFICATE_VERIFY_FAILED" in said:
        words, fix = "has a certificate that cannot be verified", "name those of its authority with ca_file="
        return UnusableError(f"{words} ({{said}})", said=said, fix=fix)
    words, fix = "cannot be queried", "check the address"
    passing = isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError | httpx.ProxyError)
    if isinstance(error, httpx.ConnectError):
        words, fix = "cannot be reached", "check the address, and that the server runs"
    elif passing:
        words, fix = "broke off", "look into the server's log, or lower concurrency="
    return UnusableError(f"{words} ({{said}})", said=said, fix=fix, passes=passing)


# --- All requests to one server, of which some are under way at a time ---


_LONGEST_PAUSE = 60.0  # seconds between repetitions, unless the server asks for more
_ERROR_BYTES = 100_000  # read of the body of an error
_LEAST_BATCH = 100  # records
_WINDOW = 8  # times the concurrency: requests that are sent or answered while an earlier one is awaited

_JSON = "application/json"
_Body = Callable[[int, int], bytes]  # from the records between two places to a request


@dataclass(frozen=True)
class Request:
    """One request.

    Attributes:
        body: JSON or CSV; None for GET.
        place: Records of the request, for error sentences: "member rows 0 to 99, counting from 0".
        path: The path on the server, where it is not that of the connection's address.
        read: Function from the parsed answer to the wanted part, by default all of it; raises
            `UnusableError` where it is not there.
        media: Type of the body.
    """

    body: bytes | None
    place: str = ""
    path: str | None = None
    read: Callable[[Any], Any] | None = None
    media: str = _JSON


class Transport:
    """Sends requests to the server of a connection and returns its JSON answers.

    Requests are sent from a thread of its own, with connections that stay open in between; it ends when the transport
    is forgotten.

    Args:
        connection: Address and settings.

    Raises:
        InputError: A credential that is not set, or a file of certificates that cannot be read.
        MissingExtraError: httpx is not installed.
    """

    def __init__(self, connection: Connection) -> None:
        self._httpx = import_optional("httpx", purpose="collecting from a served model", extra="http")
        self.connection = connection
        secrets = connection.secrets()
        # Without the scheme in front, such as Bearer.
        words = [word for value in secrets.values() for word in value.split()[1:] or [value]]
        self._credentials = [*words, *errors.credentials(connection.url)]
        errors.keep_from_logs()
        self._client = self._httpx.AsyncClient(
            headers={"Accept": _JSON, "Accept-Encoding": "identity", **secrets},
            timeout=None,  # each request has one, as a whole
            limits=self._httpx.Limits(max_keepalive_connections=connection.concurrency),
            follow_redirects=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # no answer depends on the one before
            trust_env=connection.use_proxies and errors.elsewhere(connection.url),
            verify=_certificates(connection),
        )
        self._random = random.SystemRandom()
        self._resume = 0.0  # no request before this time, when the server requested a wait
        self._free = asyncio.Semaphore(connection.concurrency)
        self._begun: dict[Records | None, list[Future[list[Any]]]] = {}
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=_run, args=(self._loop, self._client), daemon=True).start()
        weakref.finalize(self, self._loop.call_soon_threadsafe, self._loop.stop)

    def get(self, path: str) -> bytes | None:
        """Return the content at a path of the server, or None if the server has none (4xx).

        Raises:
            InputError: The server is down or wants other credentials.
        """
        content: bytes | None = self.many([Request(None, path=path)])[0]
        return content

    def many(self, requests: Iterable[Request], *, about: Records | None = None) -> list[Any]:
        """Return the parsed answers, in order, with as many requests under way as the connection allows.

        Args:
            requests: The requests.
            about: The batch that they are about; where `begin` sent them, the answers are those to that set.

        Raises:
            InputError: The first failure, in one sentence that names the server, the place and the fix; nothing more of these
                requests is sent then, and those under way are given up.
        """
        begun = self._begun.pop(about, [])
        work = begun.pop(0) if begun else self._sent(list(requests))
        if begun:
            self._begun[about] = begun
        try:
            return work.result()
        finally:
            work.cancel()  # where the caller is interrupted

    def begin(self, records: Records, *sets: Iterable[Request]) -> float:
        """Send all requests about a batch whose turn comes later, in the sets that `many` returns one after another.

        Returns:
            The share of the window that they take; all of it where there is something to raise first.
        """
        with contextlib.suppress(InputError):  # raised when it is the batch's turn
            listed = [list(requests) for requests in sets]
            self._begun.setdefault(records, []).extend(map(self._sent, listed))
            return sum(map(len, listed)) / (_WINDOW * self.connection.concurrency)
        return 1.0

    def drop(self, *batches: Records) -> None:
        """Give up the requests about these batches that `begin` sent, or about all batches."""
        for records in batches or list(self._begun):
            for work in self._begun.pop(records, ()):
                work.cancel()

    def requests(
        self,
        records: Records,
        path: str,
        *,
        most: int,
        body: _Body,
        read: Callable[..., Any],
        media: str = _JSON,
    ) -> Iterator[Request]:
        """Yield the requests about some records, in order.

        Args:
            records: The records.
            path: The path on the server.
            most: Records in one request; where they are too many bytes, they are halved.
            body: From the records between two places to a request.
            read: Function from such places and the answer to the wanted part, as in `Request`.
            media: Type of the requests.

        Raises:
            InputError: A record that is larger than a request may be.
        """
        largest = self.connection.max_request_bytes
        waiting = [(start, min(start + most, len(records))) for start in range(0, len(records), most)][::-1]
        while waiting:
            start, stop = waiting.pop()
            place = records.stretch(start, stop)
            try:
                content = body(start, stop)
            except UnusableError as error:
                raise self.refused(error, place=place, path=path) from None
            if len(content) <= largest:
                yield Request(content, place, path, partial(read, start, stop), media)
            elif stop - start > 1:
                half = (start + stop) // 2
                waiting += [(half, stop), (start, half)]
            else:
                raise InputError(
                    f"{records.name} X must fit into requests of {largest:,} bytes, got {len(content):,} (first at"
                    f" {records.row(start)}); raise max_request_bytes=."
                )

    def refused(
        self, trouble: UnusableError, *, place: str = "", path: str | None = None, times: int = 1
    ) -> InputError:
        """Return the sentence about the failure; if credentials are sent it holds no word from the server."""
        connection, quoted = self.connection, validate.one_line(Exception(trouble.said), longest=_LONGEST)
        if self._credentials:
            path, quoted = None, _NOT_QUOTED
        address = connection.display_url if path is None else connection.at(path)
        words = trouble.words.replace("{said}", quoted)
        words += f" ({times} times)" if times > 1 else ""
        words += f" for {place}" if place else ""
        kind = StatusError if trouble.by_status else InputError
        return kind(f"endpoint {address!r} {words}; {trouble.fix}.")

    def repeats_credential(self, text: str) -> bool:
        """Return whether a text holds a credential that is sent, or is a part of one, of six characters or more."""
        return any(
            min(len(secret), len(text)) >= _TELLING and (secret in text or text in secret)
            for secret in self._credentials
        )

    def _sent(self, requests: Sequence[Request]) -> Future[list[Any]]:
        return asyncio.run_coroutine_threadsafe(self._all(requests), self._loop)

    async def _all(self, requests: Iterable[Request]) -> list[Any]:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._answer(request)) for request in requests]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _answer(self, request: Request) -> Any:
        """Return the parsed answer to a request, which is repeated if that may help."""
        async with self._free:
            for done in itertools.count(1):
                await asyncio.sleep(max(0.0, self._resume - self._loop.time()))
                try:
                    return await self._once(request)
                except UnusableError as error:
                    trouble = error
                if not trouble.passes or done > self.connection.retries:
                    break
                await asyncio.sleep(self._pause(done, trouble))
        raise self.refused(trouble, place=request.place, path=request.path, times=done)

    async def _once(self, request: Request) -> Any:
        connection, method = self.connection, "GET" if request.body is None else "POST"
        path = connection.path if request.path is None else request.path
        address = connection.at(path, query=urlsplit(connection.url).query)
        headers = {"Content-Type": request.media} if method == "POST" else {}
        sent = self._client.stream(method, address, content=request.body, headers=headers)
        try:
            async with asyncio.timeout(connection.timeout), sent as response:
                body = await self._body(response)
        except TimeoutError:
            words, fix = "gave no whole answer within", "raise timeout=, or lower max_request_records="
            raise UnusableError(f"{words} {connection.timeout:g} s", fix=fix, passes=True) from None
        except (self._httpx.TransportError, self._httpx.InvalidURL) as error:
            raise _unreached(error, httpx=self._httpx) from None
        if response.is_success:
            answer = bytes(body) if method == "GET" else _parsed(body)
            return answer if request.read is None else request.read(answer)
        if method == "GET" and response.is_client_error and response.status_code not in (401, 403, 429):
            return None
        raise _of_status(response, body, variables=connection.variables)

    async def _body(self, response: Any) -> bytearray:
        """Return a body that is not too large, or the beginning of that of an error; nothing that is compressed."""
        good, encoding = response.is_success, response.headers.get("Content-Encoding", "").strip()
        if encoding.lower() not in ("", "identity"):
            words = "answered with a compression that was not requested ('{said}')"
            fix = "turn compression off in the server or the proxy before it"
            if good:
                raise UnusableError(words, said=encoding, fix=fix)
            return bytearray()
        most, body = self.connection.max_response_bytes if good else _ERROR_BYTES, bytearray()
        async for part in response.aiter_raw():
            body += part
            if len(body) > most:
                break
        if good and len(body) > most:
            fix = "raise max_response_bytes=, or lower max_request_records="
            raise UnusableError(f"answered with more than {most:,} bytes", fix=fix)
        return body

    def _pause(self, done: int, trouble: UnusableError) -> float:
        """Return the seconds before the next attempt: doubled each time, and spread so that requests do not meet."""
        if trouble.wait is not None:
            # The server means everybody: requests that were not sent yet wait too.
            self._resume = max(self._resume, self._loop.time() + trouble.wait)
            return trouble.wait
        longest = min(self.connection.pause * 2.0 ** (done - 1), _LONGEST_PAUSE)
        return longest * self._random.uniform(0.5, 1.0)


def _run(loop: asyncio.AbstractEventLoop, client: Any) -> None:
    """Do the work of a transport until it is forgotten."""
    with contextlib.closing(loop):
        loop.run_forever()
        loop.run_until_complete(client.aclose())


def _parsed(body: bytearray) -> Any:
    """Return the parsed body, which is emptied: bytes, text and values at once would take too much memory."""
    text = ""
    try:
        text = body.decode(json.detect_encoding(body), "surrogatepass")
        body.clear()
        return json.loads(text)
    except (ValueError, RecursionError):
        said = text[:_ERROR_BYTES] or body[:_ERROR_BYTES].decode("utf-8", errors="replace")
        fix = "check that the address is that of the model, and look into the server's log"
        raise UnusableError(
            "answered with incomplete JSON ('{said}')", said=said, fix=fix, passes=True
        ) from None


def _certificates(connection: Connection) -> ssl.SSLContext | bool:
    """Return the certificates that verify the server, or true for the public authorities, which take a while to be read.

    Over http nothing is verified, nor passes as verified.
    """
    if urlsplit(connection.url).scheme == "http":
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        return connection.ca_file is None or ssl.create_default_context(cafile=str(connection.ca_file))
    except OSError as error:  # exceptions of ssl are among them
        raise InputError(
            f"ca_file must be a file of certificates (.pem), got {str(connection.ca_file)!r}:"
            f" {error.strerror or 'it holds none'}; name the right file."
        ) from None
