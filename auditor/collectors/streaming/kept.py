"""Whatever ends a collection early says what is kept of it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from auditor.collectors.streaming.merge import ChangedDataError
from auditor.collectors.streaming.probe import ChangedModelError
from auditor.errors import InputError, OutputError

__all__ = ["kept"]


@contextmanager
def kept(scored: Callable[[], int], *, total: int, folder: str) -> Iterator[None]:
    """Add to an interrupt or a refusal how many records are scored, and that the same call goes on, if it can.

    Args:
        scored: How many, as asked at the end.
        total: Of how many.
        folder: The name of the folder that they are in.
    """

    def how_to_go_on() -> str:
        return (
            f"{scored():,} of {total:,} records are scored and kept in {folder!r}, and the same call, of the same model"
            " and tables, goes on from there"
        )

    try:
        yield
    except KeyboardInterrupt as error:
        raise KeyboardInterrupt(f"interrupted: {how_to_go_on()}.") from error
    except (InputError, OutputError) as error:
        if not scored() or isinstance(error, ChangedDataError | ChangedModelError):
            raise
        kind = InputError if isinstance(error, InputError) else OutputError
        raise kind(f"{str(error).rstrip('.')}; {how_to_go_on()}.") from error
