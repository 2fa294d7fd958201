"""How far a set of runs has come, told at most once a second."""

import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Progress", "Reporter"]

_SECOND, _MINUTE, _HOUR = 1.0, 60, 3600


@dataclass(frozen=True)
class Progress:
    """How far a set of runs has come.

    Attributes:
        done: Runs that are finished, those of earlier calls included.
        total: All runs.
        resumed: Runs of earlier calls, which were read from the folder.
        elapsed: Seconds since this call began.
        remaining: Seconds that the rest will take at the pace of this call; null before its first run is done.

    >>> str(Progress(done=12, total=40, resumed=3, elapsed=80.0, remaining=249.0))
    '12 of 40 runs done (3 from earlier) after 1 min 20 s, about 4 min 9 s to go.'
    """

    done: int
    total: int
    resumed: int
    elapsed: float
    remaining: float | None

    def __str__(self) -> str:
        """Return the same as a sentence."""
        earlier = f" ({self.resumed:,} from earlier)" if self.resumed else ""
        left = self.total - self.done
        rest = f", about {_duration(self.remaining)} to go" if left and self.remaining is not None else ""
        return f"{self.done:,} of {self.total:,} runs done{earlier} after {_duration(self.elapsed)}{rest}."


class Reporter:
    """Counts runs, and tells how far they have come at most once a second and at the end."""

    def __init__(self, tell: Callable[[Progress], object] | None, *, total: int, resumed: int) -> None:
        """Start the clock."""
        self._tell, self._total, self._resumed = tell, total, resumed
        self._done, self._start = resumed, time.monotonic()
        self._told = self._start
        if resumed == total:
            self.add(0)

    def add(self, runs: int) -> None:
        """Count so many more finished runs."""
        self._done += runs
        now = time.monotonic()
        if self._tell is None or (now - self._told < _SECOND and self._done < self._total):
            return
        self._told = now
        elapsed, new = now - self._start, self._done - self._resumed
        remaining = elapsed / new * (self._total - self._done) if new else None
        self._tell(Progress(self._done, self._total, self._resumed, elapsed, remaining))


def _duration(seconds: float | None) -> str:
    whole = round(seconds or 0.0)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"
