"""What every simulation of a level or a coverage shares."""

from scipy import stats

ALPHA = 0.05


def at_most(misses, runs, level=ALPHA):
    """Whether so many misses are compatible with the level: their tail probability is not below 1e-3."""
    return stats.binom.sf(misses - 1, runs, level) > 1e-3


def runs_for(request, short, long):
    """Numbers of repetitions, by the size asked for."""
    return long if request.config.getoption("--long") else short
