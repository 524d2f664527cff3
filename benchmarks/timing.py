"""Time contenders side by side: on a shared machine only a ratio within one moment means much."""

from collections.abc import Callable, Mapping
from statistics import median
from time import process_time

ROUNDS = 7
SECONDS = 0.2  # that one round spends on each contender; at least three calls each
SLOW = 2.0  # seconds above which one call a round is enough
WARM_UP = 3  # calls of each contender before anything is timed

Seconds = dict[str, list[float]]  # by contender, one number a round


def interleave(
    contenders: Mapping[str, Callable[[], object]], rounds: int = ROUNDS, warm_up: int = WARM_UP
) -> Seconds:
    """Processor time of a call: for each round, the median of calls that take turns.

    The contenders alternate call by call, so that other jobs on the machine slow all alike.
    Processor time does not count the moments in which another job had the core; as torch runs on
    one thread here, it is the wall time of an idle machine.
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
    """Median over the rounds of our time through theirs in the same round."""
    return median(a / b for a, b in zip(ours, theirs, strict=True))


def _seconds(run: Callable[[], object]) -> float:
    began = process_time()
    run()
    return process_time() - began
