"""The card of a run: a readable summary of what it is and what was measured."""

from pathlib import Path

from workbench.models.base import LatentModel
from workbench.runs.history import read_history
from workbench.settings.files import write_text
from workbench.settings.recipe import Recipe
from workbench.tasks.base import Task
from workbench.tasks.worded.curriculum import chosen_step


def write_card(folder: Path, recipe: Recipe, task: Task, model: LatentModel) -> None:
    """Write `card.md` from the recipe and the last measurements of the history."""
    records = read_history(folder / "history.jsonl")
    chosen = None if recipe.training.curriculum is None else chosen_step(records)
    at = records[-1]["step"] if chosen is None else chosen
    last = [record for record in records if record["step"] == at]
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    minutes = records[-1]["seconds"] / 60
    rows = [_row(record, task) for record in last]
    write_text(
        folder / "card.md",
        f"# {recipe.name}\n\n{_purpose(recipe)}"
        f"A `{recipe.model['family']}` model of {n_parameters:,} parameters on "
        f"`{recipe.task['name']}`, seed {recipe.seed}, {recipe.training.steps:,} steps of "
        f"{recipe.training.batch_size} rows ({minutes:.0f} minutes of training)."
        f"{_left_out(task)}{_unsayable(task)}\n\n"
        f"Measured at {_when(chosen)} on up to {recipe.training.measure.n:,} rows of each "
        "split:\n\n"
        "| split | accuracy | after each loop | bridge probability | bridge cosine | majority |\n"
        "| --- | --- | --- | --- | --- | --- |\n" + "\n".join(rows) + "\n\n"
        "Make it again, by the recipe beside this page: "
        "`workbench train recipe.yaml --out FOLDER`.\n",
    )


def _purpose(recipe: Recipe) -> str:
    """Return the recipe's own description of its purpose; the results are in the table."""
    return f"What the recipe is for: {recipe.about}\n\n" if recipe.about else ""


def _left_out(task: Task) -> str:
    """Return a sentence on how many problems were too long, if any."""
    gone = task.left_out
    told = ", ".join(f"{n:,} of {split}" for split, n in gone.items() if n)
    return f" Left out as too long: {told} problems." if told else ""


def _unsayable(task: Task) -> str:
    """Return a sentence on how many answers contain words missing from the vocabulary, if any."""
    counts = {split: task.unsayable(split) for split in task.split_names}
    told = ", ".join(f"{n:,} of {split}" for split, n in counts.items() if n)
    return (
        f" Answers with words that the vocabulary lacks: {told}; they count as wrong."
        if told
        else ""
    )


def _when(chosen: int | None) -> str:
    """Describe the step that the weights come from."""
    if chosen is None:
        return "the last step"
    return f"step {chosen:,}, the best of the last stage on valid, whose weights these are,"


def _row(record: dict[str, object], task: Task) -> str:
    split = str(record["split"])
    cells = [split, f"{record['accuracy']:.3f}"]
    for key in ("accuracy_by_loop", "bridge_probability_by_loop", "bridge_cosine_by_loop"):
        values = record.get(key)  # models with thoughts have no such fields
        cells.append("; ".join(f"{v:.3f}" for v in values) if isinstance(values, list) else "–")
    return "| " + " | ".join([*cells, f"{task.majority_rate(split):.3f}"]) + " |"
