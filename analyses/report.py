"""Measure runs and lay the numbers out beside the commands that print them.

`python -m analyses.report checkpoints` writes `checkpoints/README.md` from its runs; the words
around the tables stand in `checkpoints/about.md`.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from analyses.analyse import analyse
from analyses.bridge_alignment import BridgeAlignment
from workbench.evaluation import evaluate
from workbench.files import write_text
from workbench.runs import Run, load_run

SPLITS = ("train_atom", "train_id", "test_id", "test_ood")
ROWS = 2_000  # of each split, for the analyses


def report(folder: Path) -> str:
    """The whole page, as Markdown."""
    runs = [load_run(path.parent) for path in sorted(folder.glob("*/recipe.yaml"))]
    about = (folder / "about.md").read_text().rstrip()
    parts = [about, *_accuracies(runs), *_bridges(runs), *_realignments(runs), *_changes(runs)]
    return "\n".join([*parts, *_made(runs)]) + "\n"


def _accuracies(runs: list[Run]) -> Iterator[str]:
    yield (
        "\n## Accuracy\n\n`workbench evaluate RUN --split SPLIT`, with 95 % Wilson intervals. "
        "Every row runs all of the model's loops, also where it was trained with fewer.\n"
    )
    yield f"| run | {' | '.join(SPLITS)} |\n|{' --- |' * (len(SPLITS) + 1)}"
    measured = {run.path: {split: evaluate(run, split=split) for split in SPLITS} for run in runs}
    for run in runs:
        cells = [
            "{:.3f} [{:.3f}, {:.3f}]".format(f["accuracy"], *f["accuracy_interval"])
            for f in measured[run.path].values()
        ]
        yield f"| `{run.name}` | {' | '.join(cells)} |"
    yield "\nRead after loop 1 alone (Stage-1; `accuracy_by_loop` of `--json -`), and by hops:\n"
    yield f"| run | {' | '.join(SPLITS)} | by hops, test_ood |\n|{' --- |' * (len(SPLITS) + 2)}"
    for run in runs:
        found = measured[run.path]
        cells = [f"{f['accuracy_by_loop'][0]:.3f}" for f in found.values()]
        hops = found["test_ood"]["accuracy_by_difficulty"].items()
        by_hops = "; ".join(f"{n}: {share:.3f}" for n, share in hops)
        yield f"| `{run.name}` | {' | '.join(cells)} | {by_hops} |"
    yield "\nWithout reasoning (the same commands print it), at most:\n"
    yield "| run's data | split | commonest answer | best guess from part of the question |"
    yield "| --- | --- | --- | --- |"
    for run in _one_for_each_task(runs):
        for split in SPLITS[1:]:
            guesses = measured[run.path][split]["shortcuts"].items()
            best = "; ".join(f"{name} {share:.3f}" for name, share in guesses)
            rate = measured[run.path][split]["majority_rate"]
            yield f"| `{run.recipe.task['name']}` | {split} | {rate:.3f} | {best} |"


def _one_for_each_task(runs: list[Run]) -> list[Run]:
    return list({str(run.recipe.task): run for run in reversed(runs)}.values())


def _bridges(runs: list[Run]) -> Iterator[str]:
    yield (
        f"\n## The bridge after loop 1\n\n`workbench analyse bridge_alignment RUN --n {ROWS}`: "
        "probability of the bridge and cosine with its embedding, mean [95 % bootstrap]; in "
        "brackets behind it another row's bridge.\n"
    )
    yield "| run | split | probability | cosine |\n| --- | --- | --- | --- |"
    for run in runs:
        found = analyse("bridge_alignment", run, n=ROWS).result
        assert isinstance(found, BridgeAlignment)
        for i, split in enumerate(found.splits):
            cells = [
                f"{found.mean[i, m, 0, 0]:.3f} [{found.low[i, m, 0, 0]:.3f}, "
                f"{found.high[i, m, 0, 0]:.3f}] ({found.control[i, m, 0, 0]:.3f})"
                for m in range(2)
            ]
            yield f"| `{run.name}` | {split} | {' | '.join(cells)} |"


def _realignments(runs: list[Run]) -> Iterator[str]:
    yield (
        f"\n## Realignment without training\n\n`workbench analyse realignment RUN --n {ROWS}`: "
        "accuracy at α = 0, and at the α with the highest accuracy; the control mixes another "
        "row's bridge in, the oracle the true one.\n"
    )
    for run in runs:
        if run.model.n_loops > 1:
            yield f"- `{run.name}`: {analyse('realignment', run, n=ROWS).summary()}"
            if run.recipe.model["family"] == "looped":
                both = analyse("realignment", run, n=ROWS, where="bridge and answer")
                yield f"- `{run.name}`, `--set 'where=bridge and answer'`: {both.summary()}"


def _changes(runs: list[Run]) -> Iterator[str]:
    yield "\n## When composing begins\n\n`workbench analyse stage_collapse RUN`\n"
    for run in runs:
        if run.model.n_loops > 1:
            yield f"- `{run.name}`: {analyse('stage_collapse', run).summary()}"
    gated = [run for run in runs if run.recipe.model.get("alpha") == "learned"]
    if gated:
        yield f"\n## The learned gate\n\n`workbench analyse gate_maps RUN --n {ROWS}`\n"
    for run in gated:
        yield f"- `{run.name}`: {analyse('gate_maps', run, n=ROWS).summary()}"


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


if __name__ == "__main__":
    torch.set_num_threads(1)
    target = Path(sys.argv[1])
    write_text(target / "README.md", report(target))
    print(target / "README.md")
