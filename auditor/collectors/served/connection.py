"""Where a served model is and how it may be asked: everything that asking needs and no number depends on."""

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, urlsplit

from auditor import _validate
from auditor.errors import InputError

__all__ = ["Connection"]

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SECRET_NAMES = (
    *(
        "access_token",
        "api-key",
        "api_key",
        "apikey",
        "auth",
        "client_secret",
        "code",
        "key",
        "pass",
        "passwd",
    ),
    *("password", "secret", "sig", "signature", "subscription-key", "token"),
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
            object.__setattr__(self, name, _validate.at_least(name, getattr(self, name), least=least))
        for name in ("timeout", "pause"):
            object.__setattr__(self, name, _validate.positive(name, getattr(self, name)))
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
    named = [name for name, _ in parse_qsl(parts.query) if name.casefold() in _SECRET_NAMES]
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
