"""The exception tree: everything this package raises on purpose.

>>> issubclass(InputError, ValueError) and issubclass(InputError, AuditorError)
True
"""

INTERRUPTED = 130  # the exit code: 128 and the number of the signal


class AuditorError(Exception):
    """The root of every error that this package raises on purpose."""


class InputError(AuditorError, ValueError):
    """An argument or a file that cannot be used; the message names it, the place and the fix."""


class OutputError(AuditorError, OSError):
    """A place where a result should be written and cannot be."""


class MissingExtraError(AuditorError, ImportError):
    """An optional package is missing; the message holds the command that installs it."""
