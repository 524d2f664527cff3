"""Questions of one cell of a compute frontier, with the model's answers and the right ones."""

from typing import Any

from analyses.read.answers import Answers
from workbench.tasks import Task
from workbench.tasks.batch import Batch


def items(task: Task, batch: Batch, found: Answers, level: int, loop: int) -> list[dict[str, Any]]:
    """List the questions of one difficulty with one loop's answers, wrong answers first.

    Args:
        task: The task of the batch.
        batch: The questions that `found` answers.
        found: The answers of each loop.
        level: The difficulty.
        loop: The loop, numbered from 0.
    """
    chosen = (batch.difficulty.cpu() == level).nonzero()[:, 0]
    rows = [
        {
            "verdict": "right" if found.right[loop, row] else "wrong",
            "says": task.answers[int(found.likeliest[loop, row])],
            "true": example["answer"],
            "P(true)": float(found.probability[loop, row]),
            "question": str(example["question"]),
        }
        for row, example in zip(chosen.tolist(), task.examples(batch[chosen]), strict=True)
    ]
    return sorted(rows, key=lambda row: (row["verdict"] == "right", row["P(true)"]))
