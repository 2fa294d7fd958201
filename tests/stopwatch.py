"""The stopwatch of every benchmark: processor time, all threads counted, the best of several tries."""

import time


def best_time(action, tries):
    """The least processor time of several runs, in seconds."""
    spent = []
    for _ in range(tries):
        start = time.process_time()
        action()
        spent.append(time.process_time() - start)
    return min(spent)
