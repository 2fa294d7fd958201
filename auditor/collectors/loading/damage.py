"""Sentences about files of models that cannot be read."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from auditor import _validate
from auditor.errors import AuditorError, InputError

__all__ = ["named", "readable"]


def named(path: Path) -> str:
    """Return a file as sentences call it: by its name, for its place is nobody's business."""
    return f"{'folder' if path.is_dir() else 'file'} {path.name!r}"


@contextmanager
def readable(path: Path, *, kind: str) -> Iterator[None]:
    """Let whatever a reader raises become one sentence, with the cause kept."""
    try:
        yield
    except AuditorError:
        raise
    except Exception as error:
        reason = _validate.one_line(error) or type(error).__name__
        for place in (str(path.resolve()), str(path)):
            reason = reason.replace(place, path.name)
        raise InputError(
            f"{named(path)} must be {kind}, but it cannot be read: {reason}; is it complete?"
        ) from error
