"""The ``auditor`` command, and ``python -m auditor``: it can be stopped at any moment, also while modules load."""

import atexit
import os
import signal
import time
from contextlib import suppress
from typing import Any

from auditor.core.errors import INTERRUPTED

_OWN = os.getpid()
_AT_ONCE = 1.0  # seconds within which signals are one, as those of a terminal that closes
_came: dict[str, Any] = {"number": signal.SIGINT, "at": -_AT_ONCE}


def main() -> None:
    """Run the command line on the process's own arguments."""
    code: list[Any] = []
    # Registered first and so run last: Python would end itself by a signal where it noticed the interruption.
    atexit.register(lambda: os._exit(128 + _came["number"]) if INTERRUPTED in code else None)
    options = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    # Other signals are for the parent process, or ignored, as under ``nohup``.
    default = (signal.default_int_handler, signal.SIG_DFL)
    heard = [number for number in options if signal.getsignal(number) in default]
    _answer(heard, _stop)
    from auditor.cli.app import main as command

    _answer(heard, _unwind)
    if signal.SIGINT in heard:  # libraries look for Python's own handler
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        command()
    except KeyboardInterrupt:
        _stop()
    except SystemExit as end:
        code.append(end.code)
        raise
    finally:
        _answer(heard, _stop)


def _answer(heard: list[Any], handler: Any) -> None:
    for number in heard:
        signal.signal(number, handler)


def _unwind(number: int, _: Any) -> None:
    """Interrupt the command as Ctrl-C does, so that it leaves nothing half-written."""
    if os.getpid() != _OWN:  # a process that was forked ends as if this was not installed
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
    again = time.monotonic() - _came["at"] < _AT_ONCE
    _came.update(number=number, at=time.monotonic())
    if not again:
        raise KeyboardInterrupt


def _stop(*number: Any) -> None:
    """End at once: nothing has begun yet, or the interrupted command has cleaned up."""
    with suppress(OSError):  # the terminal is closed
        os.write(2, b"interrupted.\n")
    os._exit(128 + (number or (_came["number"],))[0])


if __name__ == "__main__":
    main()
