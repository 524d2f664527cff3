"""Report that measures runs and shows the numbers beside the commands that print them.

`python -m analyses.report checkpoints` writes `checkpoints/README.md` from the runs in that folder.
The text around the tables comes from `checkpoints/about.md`.
"""

from collections.abc import Iterator
from pathlib import Path

from analyses.report import depths, hops, thoughts
from workbench.kinds import THOUGHTS
from workbench.runs import Run, load_run
from workbench.tasks.hops import HopTask

SECTIONS = {"hops": hops.sections, "yes or no": depths.sections, "words": thoughts.sections}


def report(folder: Path) -> str:
    """Build the whole page as Markdown."""
    runs = [load_run(path.parent) for path in sorted(folder.glob("*/recipe.yaml"))]
    about = (folder / "about.md").read_text().rstrip()
    parts = [about]
    for kind, sections in SECTIONS.items():
        chosen = [run for run in runs if kind_of(run) == kind]
        if chosen:
            parts += sections(chosen)
    return "\n".join([*parts, *_made(runs)]) + "\n"


def kind_of(run: Run) -> str:
    """Return which kind of question a run answers."""
    if isinstance(run.task, HopTask):
        return "hops"
    return "words" if run.task.kind is THOUGHTS else "yes or no"


def _made(runs: list[Run]) -> Iterator[str]:
    yield "\n## How each was made\n\n`workbench train RUN`, on one thread of a CPU.\n"
    yield "| run | parameters | steps | minutes | saved steps | megabytes |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for run in runs:
        size = sum(f.stat().st_size for f in run.path.rglob("*.safetensors")) / 1e6
        count = sum(parameter.numel() for parameter in run.model.parameters())
        minutes = run.history[-1]["seconds"] / 60
        yield (
            f"| `{run.name}` | {count:,} | {run.recipe.training.steps:,} | {minutes:.0f} | "
            f"{len(run.steps)} | {size:.1f} |"
        )
