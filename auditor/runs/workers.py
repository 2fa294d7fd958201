"""How many processes run at once: as many as there are cores, cases and memory for."""

from auditor import _validate
from auditor.errors import InputError

__all__ = ["number_of_workers"]


def number_of_workers(
    *, cases: int, workers: int | None, memory: float | None, memory_per_worker: float | None
) -> int:
    """Return the number of processes.

    Args:
        cases: Runs to be made.
        workers: At most so many; the machine's cores by default.
        memory: Bytes for all of them.
        memory_per_worker: Bytes that one of them needs at most, as measured by the caller.

    Raises:
        InputError: One of the two amounts of memory without the other, or less memory than one process needs.

    >>> number_of_workers(cases=100, workers=8, memory=6e9, memory_per_worker=1.5e9)
    4
    """
    if workers is None:
        import joblib

        most = int(joblib.cpu_count())
    else:
        most = _validate.at_least("workers", workers, least=1)
    if (memory is None) != (memory_per_worker is None):
        raise InputError(
            "memory and memory_per_worker must be given together, got one of them; both are in bytes."
        )
    if memory is not None and memory_per_worker is not None:
        most = min(most, _fitting(memory, memory_per_worker))
    return max(1, min(most, cases))


def _fitting(memory: float, each: float) -> int:
    memory, each = _validate.positive("memory", memory), _validate.positive("memory_per_worker", each)
    if memory < each:
        raise InputError(
            f"memory must hold at least one worker, got {memory:,.0f} bytes for workers of {each:,.0f}; give more memory"
            " or make the runs smaller."
        )
    return int(memory // each)
