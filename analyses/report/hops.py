"""Report on chains of facts: accuracies, bridges, realignment, the change during training."""

from collections.abc import Iterator
from typing import cast

from analyses.analyse import analyse
from analyses.read.bridge_alignment import BridgeAlignment
from workbench.models.loops.depth import DepthModel
from workbench.runs import Run
from workbench.runs.evaluation import evaluate

SPLITS = ("train_atom", "train_id", "test_id", "test_ood")
ROWS = 2_000  # of each split, for the analyses


def sections(runs: list[Run]) -> Iterator[str]:
    """Yield the lines on runs that answer questions of several hops."""
    yield from _accuracies(runs)
    yield from _bridges(runs)
    yield from _realignments(runs)
    yield from _changes(runs)


def _accuracies(runs: list[Run]) -> Iterator[str]:
    yield (
        "\n## Chains: accuracy\n\n`workbench evaluate RUN --split SPLIT`, with 95 % Wilson "
        "intervals. Every row runs all of the model's loops, also where training ran fewer.\n"
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
        "\n## Chains: the bridge after loop 1\n\n"
        f"`workbench analyse bridge_alignment RUN --n {ROWS}`: "
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
        "\n## Chains: realignment without training\n\n"
        f"`workbench analyse realignment RUN --n {ROWS}`: "
        "accuracy at α = 0, and at the α with the highest accuracy; the control mixes another "
        "row's bridge in, the oracle the true one.\n"
    )
    for run in runs:
        if cast(DepthModel, run.model).n_loops > 1:
            yield f"- `{run.name}`: {analyse('realignment', run, n=ROWS).summary()}"
            if run.recipe.model["family"] == "looped":
                both = analyse("realignment", run, n=ROWS, where="bridge and answer")
                yield f"- `{run.name}`, `--set 'where=bridge and answer'`: {both.summary()}"


def _changes(runs: list[Run]) -> Iterator[str]:
    yield "\n## Chains: when composing begins\n\n`workbench analyse stage_collapse RUN`\n"
    for run in runs:
        if cast(DepthModel, run.model).n_loops > 1:
            yield f"- `{run.name}`: {analyse('stage_collapse', run).summary()}"
    gated = [run for run in runs if run.recipe.model.get("alpha") == "learned"]
    if gated:
        yield f"\n## Chains: the learned gate\n\n`workbench analyse gate_maps RUN --n {ROWS}`\n"
    for run in gated:
        yield f"- `{run.name}`: {analyse('gate_maps', run, n=ROWS).summary()}"
