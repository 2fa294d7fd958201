"""What a server says about a failed request, as one short line that is safe to print."""

import json
from collections.abc import Iterable
from typing import Any

__all__ = ["server_line", "short"]

_LONGEST = 200
_KEYS = ("error", "message", "detail", "msg", "error_message")


def short(text: str, *, secrets: Iterable[str] = (), longest: int = _LONGEST) -> str:
    r"""Return text from a server on one printable line, without what must not be seen.

    >>> short("wrong token \x1b[31mabc\n at line 1", secrets=["abc"])
    'wrong token ?[31m*** at line 1'
    """
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, "***")
    words = " ".join(text.split())
    kept = words if len(words) <= longest else f"{words[: longest - 3]}..."
    return "".join(sign if sign.isprintable() else "?" for sign in kept).rstrip(".")


def server_line(body: bytes, *, secrets: Iterable[str] = ()) -> str:
    """Return what the body of an error says, in the forms that servers use; nothing where it says nothing.

    >>> server_line(b'{"error_code": "BAD_REQUEST", "message": "no such column: age"}')
    'no such column: age'
    >>> server_line(b'{"detail": [{"loc": ["body"], "msg": "field required"}]}')
    'field required'
    """
    text = body[:100_000].decode("utf-8", errors="replace")
    try:
        found = _message(json.loads(text))
    except (ValueError, RecursionError):
        found = None
    return short(text if found is None else found, secrets=secrets)


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
