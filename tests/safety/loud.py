"""Output that a model can make its library write while it is loaded or scored: every way to the terminal, and texts that must not arrive."""

import ctypes
import logging
import os
import sys
import threading

from safety.texts import ORDERS

RAW = f"{ORDERS}\x1b[2J\x1b]0;title\x07\r{{"


def _native(place, text):
    os.write(place, text.encode())


def _held_back(text):
    """As C programs print, which the C library writes when its buffer is full, or at the end of the process."""
    libc = ctypes.CDLL(None)
    libc.printf(b"%s", text.replace("\x00", "").encode())


def _logger(text):
    """As loggers of Python write, which keep the stream that they found first."""
    own = logging.getLogger("loud")
    own.handlers = [logging.StreamHandler(sys.stderr)]
    own.error("%s", text)


def _thread(text):
    one = threading.Thread(target=_native, args=(2, text))
    one.start()
    one.join()


def _child(text):
    """As a process that was forked writes."""
    if (child := os.fork()) == 0:
        _native(1, text)
        os._exit(0)
    os.waitpid(child, 0)


def _printed(text):
    print(text, end="")  # noqa: T201 - as libraries do, and the buffer keeps it


WAYS = {
    "descriptor 1": lambda text: _native(1, text),
    "descriptor 2": lambda text: _native(2, text),
    "print": _printed,
    "standard error": lambda text: print(text, file=sys.stderr),  # noqa: T201 - as libraries do
    "C": _held_back,
    "logger": _logger,
    "thread": _thread,
    "child": _child,
    "large": lambda text: _native(1, text + "x" * 3_000_000),
}


def speak(features):
    """Return features as they are, and write hostile text in the ways that the environment names."""
    for way in os.environ["LOUD"].split(","):
        WAYS[way](f"{RAW}{way}\n")
    return features


def crash(features):
    """End the process as a fault in a library does, after some words."""
    os.write(2, b"the last words\n")
    os.abort()
    return features
