"""What can go wrong between a request and its answer: whether trying again may help, and the sentence if it does not."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from auditor.collectors.served.connection import Connection
from auditor.collectors.served.messages import server_line, short
from auditor.errors import InputError

__all__ = ["Again", "Failures", "StatusError"]

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


class Again(Exception):  # noqa: N818 - a reason to try again
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


class Failures:
    """Words for the failures of one connection, without its credentials.

    Args:
        connection: The connection.
        secrets: Values that must not appear, should the server repeat them.
        httpx: The module, whose exceptions are told apart.
    """

    def __init__(self, connection: Connection, *, secrets: list[str], httpx: Any) -> None:
        self._connection, self._secrets, self._httpx = connection, secrets, httpx

    def given_up(self, trouble: Again, *, times: int, place: str, path: str | None) -> InputError:
        """Return the sentence about a failure that did not pass."""
        words = f"{trouble.words} ({times} times)" if times > 1 else trouble.words
        return self.refused(words, place=place, path=path, fix=trouble.fix, kind=trouble.kind)

    def refused(
        self, words: str, *, place: str, path: str | None, fix: str, kind: type[InputError] = InputError
    ) -> InputError:
        """Return the sentence about a request that cannot succeed."""
        shown = self._connection.shown if path is None else f"{self._connection.origin}{path}"
        return kind(f"endpoint {shown!r} {words}{f' for {place}' if place else ''}; {fix}.")

    def status(self, response: Any, body: bytes, *, place: str, path: str | None) -> Exception:
        """Return what an answer without success means."""
        status = int(response.status_code)
        words = server_line(body, secrets=self._secrets)
        said = f"answered {status}{f': {words!r}' if words else ''}"
        if status == _TOO_MANY or status >= _SERVER:
            wait = _seconds(response.headers.get("Retry-After"))
            if wait is not None and wait > _LONGEST_WAIT:
                return self.refused(
                    f"answered {status} and asks to wait {wait:.0f} s",
                    place=place,
                    path=path,
                    fix="begin again then",
                )
            return Again(said, fix=_FIXES.get(status, _FIX_SERVER), wait=wait, kind=StatusError)
        if status < _CLIENT:
            return self._redirected(response, place=place, path=path)
        if status in (401, 403):
            return self.refused(
                f"refused the credentials ({status})", place=place, path=path, fix=self._credentials_fix()
            )
        fix = _FIXES.get(status, _FIX_REQUEST)
        return self.refused(said, place=place, path=path, fix=fix, kind=StatusError)

    def unreached(self, error: Exception, *, place: str, path: str | None) -> Exception:
        """Return what an error of the transport means."""
        httpx, reason = self._httpx, short(str(error), secrets=self._secrets) or type(error).__name__
        if isinstance(error, httpx.TimeoutException):
            return self.late()
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            words = f"has a certificate that cannot be verified ({reason})"
            return self.refused(
                words, place=place, path=path, fix="name the certificates of its authority with ca_file="
            )
        if isinstance(error, httpx.ConnectError):
            return Again(f"cannot be reached ({reason})", fix="check the address, and that the server runs")
        if isinstance(error, httpx.NetworkError | httpx.RemoteProtocolError | httpx.ProxyError):
            return Again(f"broke off ({reason})", fix="look into the server's log, or lower concurrency=")
        return self.refused(f"cannot be asked ({reason})", place=place, path=path, fix="check the address")

    def late(self) -> Again:
        """Return that no whole answer came in time."""
        return Again(
            f"gave no whole answer within {self._connection.timeout:g} s",
            fix="raise timeout=, or send fewer records at a time with max_request_records=",
        )

    def large(self, most: int, *, place: str, path: str | None) -> InputError:
        """Return that an answer is larger than allowed."""
        return self.refused(
            f"answered with more than {most:,} bytes",
            place=place,
            path=path,
            fix="send fewer records at a time with max_request_records=, or raise max_response_bytes=",
        )

    def encoded(self, encoding: str, *, place: str, path: str | None) -> InputError:
        """Return that an answer is compressed, which was not asked for."""
        shown = short(encoding, secrets=self._secrets, longest=40)
        return self.refused(
            f"answered with a compression that was not asked for ({shown!r})",
            place=place,
            path=path,
            fix="turn compression off in the server or the proxy before it",
        )

    def no_json(self, body: bytes) -> Again:
        """Return that an answer is cut off, or something else altogether."""
        start = short(body[:200].decode("utf-8", errors="replace"), secrets=self._secrets, longest=40)
        return Again(
            f"answered with what is no whole JSON (it begins with {start!r})",
            fix="check that the address is that of the model, and look into the server's log",
        )

    def _redirected(self, response: Any, *, place: str, path: str | None) -> InputError:
        target = urlsplit(response.headers.get("Location", ""))
        host = target.netloc.rpartition("@")[2]  # with the port, without a user and a password
        same = not host or target.netloc == urlsplit(self._connection.url).netloc
        where = short(
            f"{target.scheme}://{host}{target.path}" if host else target.path, secrets=self._secrets
        )
        kind = "another path" if same else "another host"
        return self.refused(
            f"redirects ({response.status_code}) to {kind}, {where!r}, which is not followed",
            place=place,
            path=path,
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
