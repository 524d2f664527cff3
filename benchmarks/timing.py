"""Side-by-side timing: on a shared machine, only ratios of simultaneous times mean much."""

from collections.abc import Callable, Mapping
from statistics import median
from time import process_time

ROUNDS = 7
SECONDS = 0.2  # time of the slowest contender in one round; at least three calls each
SLOW = 2.0  # seconds per call from which one call per round is enough
WARM_UP = 3  # untimed calls of each contender at the start

Seconds = dict[str, list[float]]  # by contender, one number per round


def interleave(
    contenders: Mapping[str, Callable[[], object]], rounds: int = ROUNDS, warm_up: int = WARM_UP
) -> Seconds:
    """Return the processor time of a call: for each contender and round, the median of its calls.

    The contenders alternate call by call, so that other jobs on the machine slow all of them alike.
    Processor time excludes the moments in which another job had the core. Because torch runs on one
    thread here, it equals the wall-clock time of an idle machine.
    """
    for run in contenders.values():
        for _ in range(warm_up):
            run()
    slowest = max(_seconds(run) for run in contenders.values())
    turns = max(3 if slowest < SLOW else 1, int(SECONDS / slowest))
    seconds: Seconds = {name: [] for name in contenders}
    for _ in range(rounds):
        calls: Seconds = {name: [] for name in contenders}
        for _ in range(turns):
            for name, run in contenders.items():
                calls[name].append(_seconds(run))
        for name, taken in calls.items():
            seconds[name].append(median(taken))
    return seconds


def ratio(ours: list[float], theirs: list[float]) -> float:
    """Return the median over rounds of our time divided by theirs in the same round."""
    return median(a / b for a, b in zip(ours, theirs, strict=True))


def _seconds(run: Callable[[], object]) -> float:
    began = process_time()
    run()
    return process_time() - began
