"""Accuracy of a run as one plain object, which is the public format of `evaluate --json`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from workbench.edits import Edit, Watch, patched_from, to_plain
from workbench.instruments import read
from workbench.instruments.finite import finite_hooks
from workbench.instruments.speaking import hear
from workbench.kinds import one_of_both, worded_batch, worded_task
from workbench.models.loops.depth import DepthModel
from workbench.models.thoughts.thought import ThoughtModel
from workbench.runs import Run
from workbench.settings.config import MOST_LOOPS, ConfigError
from workbench.tasks import Task
from workbench.tasks.batch import Batch
from workbench.tasks.worded.rows import WordedBatch
from workbench.tasks.worded.scoring import Score
from workbench.tasks.worded.task import FILE, WordedTask

FAR = 10  # multiple of n_ctx; up to it, the error names the row that does not fit
ROWS = 8_192  # rows per forward pass
SHOWN = 10  # most numbers in a line of text
GUESSES = 3  # most shortcuts in a line of text, the best ones


def evaluate(
    run: Run,
    *,
    step: int | None = None,
    split: str | None = None,
    loops: int | None = None,
    thoughts: int | None = None,
    edits: Sequence[Edit] = (),
    n: int | None = None,
    seed: int = 0,
    file: str | Path | None = None,
    n_loops: int | None = None,
) -> dict[str, Any]:
    """Compute the accuracy of a run on a split after each loop or thought, with a 95 % interval.

    Args:
        run: The run.
        step: A saved step; the final weights by default.
        split: The split to answer; by default the task's test split.
        loops: Number of loops; by default as many as in training.
        thoughts: Number of thoughts; by default as many as at the end of training.
        edits: Interventions to apply.
        n: Number of rows to draw; by default the whole split.
        seed: Seed of the draw.
        file: A file of official questions to use instead of a split: ProsQA, GSM8K or HotpotQA, for
            a run on that task. ProsQA questions are put in the run's own words and wording.
        n_loops: Another name for `loops`.

    Raises:
        ConfigError: Step or split does not exist, or an option or edit does not fit the model.
        ProblemError: The file or one of its rows is malformed.
    """
    if seed < 0:
        raise ConfigError(f"--seed {seed} must be at least 0")
    step = run.loaded_step(step)
    model = run.model if step is None else run.model_at(step)
    if file is not None and split is not None:
        raise ConfigError("--split and --file both name the questions; give one of the two")
    task = run.task if file is None else run.task.with_file(Path(file), model.cfg.n_ctx)
    if split is None:
        split = task.default_split if file is None else FILE
    watch = Watch(edits)
    guard = model.hooks(fwd_hooks=finite_hooks(model), must_fire=False)
    loops = one_of_both(loops, n_loops)
    model.kind.refuse_other(loops, thoughts)
    with guard:
        found = model.kind.evaluated(run, task, model, split, loops, thoughts, watch, n, seed)
    touched = watch.finish()
    where = {
        "run": run.name,
        "recipe": run.recipe.name,
        "step": run.final_step if step is None else step,
        "weights": run.weights_hash(step),
        "precision": run.precision(step),
        "split": split,
        "edits": to_plain(edits),
        "touched": touched,
        "patched_from": patched_from(edits),
    }
    if file is not None:
        gone = worded_task(task)
        where |= {"file": str(file), "left_out": gone.left_out[FILE]}
        where |= {"left_out_why": gone.left_out_why}
    rates = {
        "majority_rate": task.majority_rate(split),
        "shortcuts": task.shortcuts(split),
    }
    return where | found | rates


def by_loops(
    task: Task,
    trained: int,
    model: DepthModel,
    split: str,
    n_loops: int | None,
    watch: Watch,
    n: int | None,
    seed: int,
) -> dict[str, Any]:
    """Evaluate a model that loops: its answer is read after each loop."""
    if n_loops is not None and n_loops < 1:
        raise ConfigError(f"--loops {n_loops} must be at least 1")
    check_loops(n_loops)
    batch = task.split(split) if n is None else task.batch(split, n, seed)
    right = []
    for start in range(0, len(batch), ROWS):
        rows: Batch = batch[start : start + ROWS].trimmed().to(model.device)
        with model.hooks(fwd_hooks=watch.hooks(model, rows)):
            right.append(read(model, rows, n_loops).right.cpu())
    correct = torch.cat(right, dim=1)  # [loop batch]
    return {"loops": len(correct), "trained_loops": trained} | _shares(correct, batch.difficulty)


def check_loops(n_loops: int | None) -> None:
    """Refuse an absurdly large number of loops, before any rows are drawn."""
    if n_loops is not None and n_loops > MOST_LOOPS:
        raise ConfigError(f"--loops {n_loops:,} must be at most {MOST_LOOPS:,}")


def check_thoughts(thoughts: int | None, model: ThoughtModel) -> None:
    """Refuse a number of thoughts far above the model's n_ctx, before any rows are laid out."""
    if thoughts is None:
        return
    if thoughts < 0:
        raise ConfigError(f"--thoughts {thoughts} must be at least 0")
    if thoughts > FAR * model.cfg.n_ctx:
        raise ConfigError(f"--thoughts {thoughts:,} do not fit the model's n_ctx={model.cfg.n_ctx}")


def _check_room(rows: WordedBatch, model: ThoughtModel) -> None:
    """Refuse rows that exceed n_ctx with all thoughts, before the model runs."""
    row = int(rows.length.argmax())
    if int(rows.length[row]) > model.cfg.n_ctx:
        raise ConfigError(
            f"row {row} has {int(rows.length[row])} positions, {int(rows.n_thoughts[row])} of them "
            f"thoughts; the model's n_ctx is {model.cfg.n_ctx}"
        )


def by_thoughts(
    task: WordedTask,
    model: ThoughtModel,
    split: str,
    thoughts: int | None,
    watch: Watch,
    n: int | None,
    seed: int,
) -> dict[str, Any]:
    """Evaluate a model with thoughts: it answers after 0, 1, … and all of its thoughts."""
    check_thoughts(thoughts, model)
    most = task.layout.n_fillers if thoughts is None else thoughts
    numbers = list(range(len(task.problems(split))))
    if n is not None:
        numbers = worded_batch(task.batch(split, n, seed)).number.tolist()
    _check_room(task.lay_out(split, numbers, task.layout.with_fillers(most)), model)
    problems = [task.problems(split)[number] for number in numbers]
    right: list[Tensor] = []
    scores: Sequence[Score] = ()
    for count in range(most + 1):
        layout = task.layout.with_fillers(count)
        rows = task.lay_out(split, numbers, layout).to(model.device)
        # With fewer thoughts, an edit of a later thought may have nothing to change
        counted = watch if count == most else Watch(watch.edits)
        hooks = counted.hooks(model, rows)
        with model.hooks(fwd_hooks=hooks, must_fire=count == most):
            scores = hear(model, task, problems, rows).scores
        right.append(torch.tensor([score.right for score in scores]))
    overlaps = [score.f1 for score in scores if score.f1 is not None]
    return (
        {"thoughts": most, "trained_thoughts": task.layout.n_fillers}
        | _shares(torch.stack(right), rows.difficulty.cpu())
        | {"answered": sum(score.answered for score in scores) / len(scores)}
        | ({"f1": sum(overlaps) / len(overlaps)} if overlaps else {})
    )


def _shares(right: Bool[Tensor, "step batch"], difficulty: Tensor) -> dict[str, Any]:
    """Return the accuracy at the end, after every loop or thought, and for each difficulty."""
    by_step = right.double().mean(1).tolist()
    levels = difficulty.unique().tolist()
    return {
        "n": right.shape[1],
        "accuracy": by_step[-1],
        "accuracy_interval": list(wilson(int(right[-1].sum()), right.shape[1])),
        "accuracy_by_loop": by_step,
        "accuracy_by_difficulty": {
            str(level): float(right[-1, difficulty == level].double().mean()) for level in levels
        },
        "n_by_difficulty": {str(level): int((difficulty == level).sum()) for level in levels},
    }


def in_words(found: Mapping[str, Any], unit: str) -> str:
    """Format the result of `evaluate` as lines of text.

    Args:
        found: The result.
        unit: The unit of the task's difficulty, such as `hops`.
    """
    low, high = found["accuracy_interval"]
    lines = [
        f"{found['run']} on {found['split']}: {found['accuracy']:.4f} [{low:.4f}, {high:.4f}] "
        f"of {found['n']}",
        f"{_after(found)}: {_ends(found['accuracy_by_loop'])}",
    ]
    if "file" in found:
        why = "; ".join(f"{n:,} with {reason}" for reason, n in found["left_out_why"].items())
        lines.append(
            f"asked from {found['file']}, left out {found['left_out']:,} ({why or 'none'})"
        )
    if found.get("precision", "float32") != "float32":
        lines.append(f"weights kept in {found['precision']}, measured in float32")
    if "f1" in found:
        lines.append(
            f"F1 (words in common, by HotpotQA's rule) {found['f1']:.4f}; "
            f"{found['answered']:.4f} answered"
        )
    lines += [f"edit {n}: {line}" for n, line in enumerate(touched_lines(found))]
    levels = found["accuracy_by_difficulty"]
    if len(levels) > 1:
        counts = found.get("n_by_difficulty", {})
        shares = "; ".join(
            f"{level}: {share:.4f}" + (f" of {counts[level]}" if level in counts else "")
            for level, share in levels.items()
        )
        lines.append(f"by {unit}: {shares}")
    best = sorted(found["shortcuts"].items(), key=lambda item: -item[1])[:GUESSES]
    guesses = "; ".join(f"{name} {share:.4f}" for name, share in best)
    lines.append(f"commonest answer {found['majority_rate']:.4f}; at most, {guesses}")
    return "\n".join(lines)


def touched_lines(found: Mapping[str, Any]) -> list[str]:
    """Describe each edit of a result, and what it touched, in one line."""
    pairs = zip(found["edits"], found["touched"], strict=True)
    return [f"{_done(edit)} touched {_touched(touch)}" for edit, touch in pairs]


def _done(edit: Mapping[str, Any]) -> str:
    place = f" at {edit['place']}" if edit.get("place") else ""
    return f"{edit['do']}{place}"


def _touched(touch: Mapping[str, Any]) -> str:
    parts = [f"{touch['rows']:,} rows"]
    for what in ("loops", "positions"):
        numbers = touch[what]
        if numbers:
            parts.append(f"{what} {_ends_of(numbers)}")
    return ", ".join(parts)


def _ends_of(numbers: Sequence[int]) -> str:
    """Format whole numbers in a line; of many, only the first and the last."""
    if len(numbers) > SHOWN:
        return f"{numbers[0]} to {numbers[-1]} ({len(numbers)} of them)"
    return ", ".join(map(str, numbers))


def _after(found: Mapping[str, Any]) -> str:
    """Describe what each accuracy in the list was measured after."""
    unit = "thoughts" if "thoughts" in found else "loops"
    asked = found[unit]
    trained = found.get(f"trained_{unit}", asked)
    beside = "" if trained == asked else f" (trained with {trained})"
    if unit == "thoughts":
        return f"after 0 to {asked} thoughts{beside}"
    return f"after each loop{beside}"


def _ends(shares: Sequence[float]) -> str:
    """Format shares in a line; of many, only the first few and the last."""
    words = [f"{share:.4f}" for share in shares]
    if len(words) > SHOWN:
        words[SHOWN - 2 : -1] = ["…"]
    return ", ".join(words)


def wilson(right: int, n: int, z: float = 1.959964) -> tuple[float, float]:
    """Return the 95 % score interval of a proportion (Wilson 1927)."""
    share = right / n
    middle = share + z * z / (2 * n)
    half = z * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)
