"""Tasks for the tests of many runs: in a module of its own, so that worker processes can import it."""

import os
import signal
import time
from dataclasses import dataclass, field

import numpy as np

from auditor.many import training_runs

LATE = training_runs.seed_of(11, 0)  # the seed of run 11


def threads(with_canary, seed):  # noqa: ARG001 - as every training
    """How many threads the linear algebra of a run may use."""
    from threadpoolctl import threadpool_info

    return max((item["num_threads"] for item in threadpool_info()), default=1)


def both(losses):
    """The scores of both worlds."""
    return losses.member.tolist(), losses.nonmember.tolist()


def noisy_count(with_canary, seed):
    """A count with normal noise: epsilon 4.377 at delta 1e-5."""
    return -(float(with_canary) + np.random.default_rng(seed).normal())


def broken(with_canary, seed):
    """A training that fails now and then."""
    if seed % 2:
        raise RuntimeError("out of memory")
    return float(with_canary)


def fails_late(with_canary, seed):
    """A training that fails in run 11."""
    if seed == LATE:
        raise ValueError("the loss is\nNaN")
    return noisy_count(with_canary, seed)


def dies_late(with_canary, seed):
    """A training whose process ends in run 11."""
    if seed == LATE:
        os._exit(1)
    return noisy_count(with_canary, seed)


def undefined(with_canary, seed):  # noqa: ARG001 - as every training
    """A training that diverges with the canary."""
    return float("nan") if with_canary else 1.0


def count_in_its_time(with_canary, seed):  # noqa: ARG001 - as every training
    """A score without any canary in it; a run whose score is high takes longer."""
    score = noisy_count(False, seed)
    time.sleep(0.06 * (score > 0))
    return score


def diverging(with_canary, seed):
    """A score, or in a third of the runs an error, and in another third none."""
    if seed % 3 == 0:
        raise FloatingPointError("the loss\nis infinite")
    return float("nan") if seed % 3 == 1 else noisy_count(with_canary, seed)


def deadly(with_canary, seed):  # noqa: ARG001 - as every training
    """A training that kills its process."""
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Below:
    """Stop when so many more runs without the canary than with it have a score below 0, or the other way round.

    Attributes:
        more: How many.
        killed: The pair at which the caller is interrupted, if at any.
    """

    more: int
    killed: int = -1

    def watch(self):
        """Return a fresh watcher."""
        return Tally(self.more, self.killed)


class Tally:
    """The difference so far."""

    def __init__(self, more, killed):
        self.more, self.killed, self.difference, self.pairs = more, killed, 0, []

    def add(self, with_canary, without):
        """Take a pair."""
        if len(self.pairs) == self.killed:
            raise KeyboardInterrupt
        self.pairs.append((with_canary, without))
        self.difference += (without < 0) - (with_canary < 0)
        return abs(self.difference) >= self.more

    def in_words(self):
        """Say where it is."""
        return f"difference {abs(self.difference)} of {self.more}"


@dataclass(frozen=True)
class InDisorder:
    """An engine that finishes units in an order of chance.

    Attributes:
        seed: Of the order.
        begun: The first runs of the units that were begun, in their order.
    """

    seed: int
    begun: list = field(default_factory=list)

    def results(self, work, units):
        """Yield what comes of them."""
        for place in np.random.default_rng(self.seed).permutation(len(units)):
            self.begun.append(units[place].first)
            yield work(units[place])
