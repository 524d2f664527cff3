"""How often a run answers right: one plain object, the public contract of `evaluate --json`."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from workbench.config import ConfigError
from workbench.edits import Edit, edit_hooks, to_plain
from workbench.instruments import read
from workbench.runs import Run
from workbench.tasks.batch import Batch

ROWS = 8_192  # rows that are run at once
SHOWN = 10  # numbers that a line of text lists at most
GUESSES = 3  # guesses without reasoning that a line of text lists at most, the best ones


def evaluate(
    run: Run,
    *,
    step: int | None = None,
    split: str | None = None,
    n_loops: int | None = None,
    edits: Sequence[Edit] = (),
    n: int | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Accuracy of a run on a split, after each loop, with a 95 % interval.

    Args:
        run: The run.
        step: A saved step; the final weights by default.
        split: The split to answer; by default the one that the task is judged on.
        n_loops: Loops to run; by default as many as it was trained with.
        edits: Interventions to make.
        n: Rows to draw; the whole split by default.
        seed: Of the draw.

    Raises:
        ConfigError: Step or split does not exist, or an edit does not fit.
    """
    step = run.loaded_step(step)
    model = run.model if step is None else run.model_at(step)
    if n_loops is not None and n_loops < 1:
        raise ConfigError(f"--loops {n_loops} must be at least 1")
    split = run.task.default_split if split is None else split
    batch = run.task.split(split) if n is None else run.task.batch(split, n, seed)
    right = []
    for start in range(0, len(batch), ROWS):
        rows: Batch = batch[start : start + ROWS].trimmed().to(model.device)
        with model.hooks(fwd_hooks=edit_hooks(edits, model, rows)):
            right.append(read(model, rows, n_loops).right.cpu())
    correct = torch.cat(right, dim=1)  # [loop batch]
    by_loop = correct.double().mean(1).tolist()
    by_difficulty = {
        str(level): float(correct[-1, batch.difficulty == level].double().mean())
        for level in batch.difficulty.unique().tolist()
    }
    return {
        "run": run.name,
        "recipe": run.recipe.name,
        "step": run.recipe.training.steps if step is None else step,
        "split": split,
        "loops": len(correct),
        "edits": to_plain(edits),
        "n": len(batch),
        "accuracy": by_loop[-1],
        "accuracy_interval": list(wilson(int(correct[-1].sum()), len(batch))),
        "accuracy_by_loop": by_loop,
        "accuracy_by_difficulty": by_difficulty,
        "majority_rate": run.task.majority_rate(split),
        "shortcuts": run.task.shortcuts(split),
    }


def in_words(found: Mapping[str, Any], unit: str) -> str:
    """What `evaluate` found, as lines of text.

    Args:
        found: Its object.
        unit: What the task's difficulty counts, `hops` for one.
    """
    low, high = found["accuracy_interval"]
    lines = [
        f"{found['run']} on {found['split']}: {found['accuracy']:.4f} [{low:.4f}, {high:.4f}] "
        f"of {found['n']}",
        f"after each loop: {_ends(found['accuracy_by_loop'])}",
    ]
    levels = found["accuracy_by_difficulty"]
    if len(levels) > 1:
        shares = "; ".join(f"{level}: {share:.4f}" for level, share in levels.items())
        lines.append(f"by {unit}: {shares}")
    best = sorted(found["shortcuts"].items(), key=lambda item: -item[1])[:GUESSES]
    guesses = "; ".join(f"{name} {share:.4f}" for name, share in best)
    lines.append(f"commonest answer {found['majority_rate']:.4f}; at most, {guesses}")
    return "\n".join(lines)


def _ends(shares: Sequence[float]) -> str:
    """Numbers in a line; of many, the first few and the last."""
    words = [f"{share:.4f}" for share in shares]
    if len(words) > SHOWN:
        words[SHOWN - 2 : -1] = ["…"]
    return ", ".join(words)


def wilson(right: int, n: int, z: float = 1.959964) -> tuple[float, float]:
    """The 95 % score interval of a share (Wilson 1927)."""
    share = right / n
    middle = share + z * z / (2 * n)
    half = z * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)
