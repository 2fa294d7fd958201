"""The ``auditor`` command, and ``python -m auditor``: it can be interrupted at any moment, also while modules load."""

import atexit
import os
import signal
from typing import Any

from auditor.core.errors import INTERRUPTED


def main() -> None:
    """Run the command line on the process's own arguments."""
    heard = (
        signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )  # else whoever started it wants none
    code: list[Any] = []
    # Registered first and so run last: Python would end itself by a signal where it noticed the interruption.
    atexit.register(lambda: os._exit(INTERRUPTED) if INTERRUPTED in code else None)
    if heard:
        signal.signal(signal.SIGINT, _stop)
    from auditor.cli.app import main as command

    if heard:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        command()
    except KeyboardInterrupt:
        _stop()
    except SystemExit as end:
        code.append(end.code)
        raise
    finally:
        if heard:
            signal.signal(signal.SIGINT, _stop)


def _stop(*_: Any) -> None:
    """End at once: nothing was begun yet, or all is done that a command does when it is interrupted."""
    os.write(2, b"interrupted.\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
