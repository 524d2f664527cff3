"""Report on worded problems: accuracies on shared questions, stages, thoughts and their gates."""

from collections.abc import Iterator

from analyses.analyse import analyse
from analyses.kit.labels import level_label
from analyses.measure.compare import Compare
from workbench.kinds import THOUGHTS, worded_task
from workbench.runs import Run

FEW = 200  # questions, for analyses that answer each one many times


def sections(runs: list[Run]) -> Iterator[str]:
    """Yield the lines on runs that answer in words."""
    runs = sorted(runs, key=lambda run: (not _speaks(run), run.name))
    yield from _compared(runs)
    thinking = [run for run in runs if thinks(run)]
    if thinking:
        yield from _lines("stage_curve", thinking, "accuracy of each stage's best weights")
        yield from _lines("thought_count", thinking, "how many thoughts it takes", n=FEW)
        yield from _lines("ablation", thinking, "thoughts and gates taken away", n=FEW)
        yield from _lines("memory_retention", thinking, "is the first state still there", n=FEW)
        yield from _lines("concept_probe", thinking, "what thoughts are near to", n=FEW)
        yield from _lines("thought_search_tree", thinking, "what comes next", n=FEW)
    gated = [run for run in thinking if run.recipe.model["family"] == "agclr"]
    if gated:
        yield from _lines("gate_maps", gated, "the gates", n=FEW)


def thinks(run: Run) -> bool:
    """Return whether a run's training ended with thoughts."""
    task = run.task
    if task.kind is not THOUGHTS:
        return False
    task = worded_task(task)
    return task.layout.filler == "latent" and task.layout.n_fillers > 0


def _lines(name: str, runs: list[Run], about: str, n: int | None = None) -> Iterator[str]:
    rows = "" if n is None else f" --n {n}"
    yield f"\n## Thoughts: {about}\n\n`workbench analyse {name} RUN{rows}`\n"
    for run in runs:
        yield f"- `{run.name}`: {analyse(name, run, n=n).summary()}"


def _speaks(run: Run) -> bool:
    """Return whether a run writes out all its steps, as the baseline for its task's other runs."""
    curriculum = run.recipe.training.curriculum
    return curriculum is not None and curriculum.method == "cot"


def _compared(runs: list[Run]) -> Iterator[str]:
    """Yield a table for each set of questions."""
    yield (
        "\n## Thoughts: accuracy on the same questions\n\n"
        "Answers said greedily; intervals are Wilson's, differences are to the table's first run "
        "with McNemar's exact p. `swapped` asks about the other person, so that the answer flips; "
        "`both` counts questions right both ways, of which a guess that never looks at who is "
        "asked about gets none. The best such guess stands last."
    )
    alike: dict[str, list[Run]] = {}
    for run in runs:
        alike.setdefault(f"{run.recipe.task} {run.recipe.seed}", []).append(run)
    for group in alike.values():
        yield from _table(group)


def _table(runs: list[Run]) -> Iterator[str]:
    beside = [str(run.path) for run in runs[1:]]
    found = analyse("compare", runs[0], beside=beside).result
    assert isinstance(found, Compare)
    names = ", ".join(run.name for run in runs[1:])
    others = f" --set 'beside=[{names}]'" if names else ""
    yield (
        f"\n`workbench analyse compare {runs[0].name}{others}`, "
        f"{found.right.shape[1]:,} test questions:\n"
    )
    levels = " | ".join(level_label(level, found.unit) for level in found.levels)
    yield f"| run | test | {levels} | difference | p | swapped | both |"
    yield "| --- |" + " --- |" * (len(found.levels) + 5)
    for i, run in enumerate(found.runs):
        whole = f"{found.accuracy[i]:.3f} [{found.low[i]:.3f}, {found.high[i]:.3f}]"
        by_level = " | ".join(f"{share:.3f}" for share in found.by_level[i].tolist())
        change = f"{found.difference[i]:+.3f} | {found.p_value[i]:.2g}" if i else "| "
        twins = f"{found.swapped[i]:.3f} | {found.both[i]:.3f}"
        yield f"| `{run}` | {whole} | {by_level} | {change} | {twins} |"
    yield f"| {found.guess} | {found.guess_accuracy:.3f} |" + " |" * (len(found.levels) + 4)
