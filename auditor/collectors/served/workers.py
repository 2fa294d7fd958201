"""Work done by several threads at a time, with results in the order of the items."""

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["Stopped", "in_order"]

Item = TypeVar("Item")
Result = TypeVar("Result")


class Stopped(Exception):  # noqa: N818 - not an error: other work failed, and this was given up
    """Raised by work that was waiting when it was told to stop."""


def in_order(
    work: Callable[[Item, threading.Event], Result], items: Sequence[Item], *, concurrency: int
) -> list[Result]:
    """Return the results of all items; at the first failure nothing new is begun, and the first of the list is raised.

    Args:
        work: From an item, and an event that is set when the work is to be given up, to a result.
        items: What is worked on; begun in this order.
        concurrency: How many at a time.
    """
    results: dict[int, Result] = {}
    failures: dict[int, BaseException] = {}
    stop, lock, waiting = threading.Event(), threading.Lock(), iter(enumerate(items))

    def worker() -> None:
        while not stop.is_set():
            with lock:
                taken = next(waiting, None)
            if taken is None:
                return
            position, item = taken
            try:
                results[position] = work(item, stop)
            except Stopped:
                return
            except BaseException as error:  # noqa: BLE001 - raised again below, in the caller's thread
                failures[position] = error
                stop.set()

    threads = [threading.Thread(target=worker, daemon=True) for _ in range(min(concurrency, len(items)))]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        stop.set()  # an interrupt leaves requests to their time-outs; daemon threads do not delay the exit
    if failures:
        raise failures[min(failures)]
    return [results[position] for position in range(len(items))]
