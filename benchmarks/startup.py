"""Startup time: the command's help, and building a task's data."""

import subprocess
import sys
from collections.abc import Iterator
from statistics import median
from time import perf_counter

from benchmarks.row import Row
from benchmarks.timing import ROUNDS
from workbench.tasks import build_task

HELP = "import sys; sys.argv = ['workbench', '--help']; from workbench.cli import main; main()"


def measure() -> Iterator[Row]:
    """Measure wall-clock seconds of a fresh process and of building the data."""
    python, command, data = [], [], []
    for seed in range(ROUNDS):
        python.append(_process("pass"))
        command.append(_process(HELP))
        began = perf_counter()
        _ = build_task("two_hop", seed=seed).splits
        data.append(perf_counter() - began)
    times = {"workbench --help": median(command), "python alone": median(python)}
    yield Row("startup", "workbench --help", median(command), "s", 0.5, seconds=times)
    yield Row("startup", "two-hop data, paper size", median(data), "s", 2.0)


def _process(code: str) -> float:
    began = perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    return perf_counter() - began
