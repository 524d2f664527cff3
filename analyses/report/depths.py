"""Report on yes-or-no runs: the frontier, what guessing reaches, and whether the states settle."""

from collections.abc import Iterator
from typing import cast

from analyses.analyse import analyse
from analyses.measure.compute_frontier import ComputeFrontier
from analyses.measure.shortcuts import Shortcuts
from workbench.models.loops.depth import DepthModel
from workbench.recurrence.base import Recurrence
from workbench.runs import Run

ROWS = 16_000  # more than any test split has
FEW = 100  # for analyses that make many passes over the same rows
SHOWN = (1, 2, 3, 5, 8, 12, 15, 20)  # loops that a table shows


def sections(runs: list[Run]) -> Iterator[str]:
    """Yield the lines on runs that answer yes or no."""
    yield from _frontiers(runs)
    yield from _shortcuts(runs)
    yield from _loops(runs)


def _recurrence(run: Run) -> Recurrence:
    return cast(DepthModel, run.model).recurrence


def _frontiers(runs: list[Run]) -> Iterator[str]:
    yield (
        "\n## Depth: accuracy by difficulty and loops\n\n"
        f"`workbench analyse compute_frontier RUN --n {ROWS}`, on every row of the test split. "
        "`guess` is the best that does not reason: a boosted tree on the local features of the "
        "training rows, measured on the same test rows. Difficulties trained on are in bold.\n"
    )
    looped = [run for run in runs if _recurrence(run).has_loop_embedding]
    found = {
        run.path: analyse("compute_frontier", run, n=ROWS, n_loops=None if run in looped else 1)
        for run in runs
    }
    for run in runs:
        frontier = found[run.path].result
        assert isinstance(frontier, ComputeFrontier)
        yield from _grid(run, frontier)
    yield "\nIn one line each (95 % bootstrap over questions):\n"
    yield from (f"- `{run.name}`: {found[run.path].summary()}" for run in looped)


def _grid(run: Run, found: ComputeFrontier) -> Iterator[str]:
    loops = [loop for loop in SHOWN if loop <= found.n_loops]
    heads = [f"after {loop}" for loop in loops]
    yield f"\n`{run.name}` ({run.task.unit}):\n"
    yield f"| {run.task.unit} | {' | '.join(heads)} | guess |\n|{' --- |' * (len(loops) + 2)}"
    low, high = found.trained_difficulty or (0, -1)
    for i, level in enumerate(found.levels.tolist()):
        cells = [f"{found.accuracy[i, loop - 1]:.3f}" for loop in loops]
        name = f"**{level}**" if low <= level <= high else str(level)
        yield f"| {name} | {' | '.join(cells)} | {found.shortcut[i]:.3f} |"


def _shortcuts(runs: list[Run]) -> Iterator[str]:
    yield "\n## Depth: without reasoning\n\n`workbench analyse shortcuts RUN`, both versions.\n"
    for run in {str(run.recipe.task["name"]): run for run in reversed(runs)}.values():
        found = analyse("shortcuts", run).result
        assert isinstance(found, Shortcuts)
        yield f"- `{run.recipe.task['name']}` (by `{run.name}`): {found.summary()}"


def _loops(runs: list[Run]) -> Iterator[str]:
    looped = [run for run in runs if _recurrence(run).has_loop_embedding]
    # A recurrence that halts keeps more than its state, so it has no state that could settle
    looped = [run for run in looped if _recurrence(run).state_is_all]
    yield f"\n## Depth: do the states settle?\n\n`workbench analyse convergence RUN --n {FEW}`\n"
    yield from (f"- `{run.name}`: {analyse('convergence', run, n=FEW).summary()}" for run in looped)
    gated = [run for run in runs if _recurrence(run).has_gate]
    yield "\n## Depth: the update gate\n\n`workbench analyse gate_maps RUN --split test`\n"
    for run in gated:
        found = analyse("gate_maps", run, split=run.task.default_split)
        yield f"- `{run.name}`: {found.summary()}"
    yield f"\n## Depth: gradients by loop\n\n`workbench analyse gradient_highway RUN --n {FEW}`\n"
    for run in gated:
        yield f"- `{run.name}`: {analyse('gradient_highway', run, n=FEW).summary()}"
