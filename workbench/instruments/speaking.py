"""Answers that a thinking model generates, with their scores, loss and gate values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from workbench.capabilities import CanThink
from workbench.hooks import is_heard
from workbench.tasks.worded.problem import Problem
from workbench.tasks.worded.rows import WordedBatch
from workbench.tasks.worded.scoring import Score
from workbench.tasks.worded.task import WordedTask

GATES = tuple(f"recurrence.{gate}.hook_post" for gate in ("read", "forget", "write"))
SPARE = 8  # extra tokens to generate beyond the longest solution
ROWS = 256  # maximum batch size, unless hooks are open


@dataclass(frozen=True, eq=False)
class Heard:
    """Measurements of a model's generated answers to a batch of questions."""

    said: Sequence[str]
    """Generated text of each row, up to the end token."""
    scores: Sequence[Score]
    loss: Float[Tensor, " batch"]
    """Cross-entropy of the data's solution and answer, summed over their tokens, in nats."""
    gates: Mapping[str, Float[Tensor, "thought batch d_model"]]
    """Values of the gates, by hook name; NaN where a row does not have that thought."""

    def gate_statistics(self) -> dict[str, dict[str, list[float]]]:
        """Return each gate's mean and standard deviation over rows and channels, by thought."""
        found = {}
        for place, gate in self.gates.items():
            real = [shares[shares.isfinite()] for shares in gate]
            found[place] = {
                "mean": [float(shares.mean()) for shares in real],
                "sd": [float(shares.std(correction=0)) for shares in real],
            }
        return found


@torch.no_grad()
def hear(
    model: CanThink, task: WordedTask, problems: Sequence[Problem], batch: WordedBatch
) -> Heard:
    """Generate answers greedily and score them by the task's rules.

    Args:
        model: The model; hooks that are open on it apply.
        task: Task that provides the scoring rules and the vocabulary.
        problems: Problems of the rows.
        batch: The rows as model inputs.
    """
    said = speak(model, task, batch)
    answers = [task.answer_in(words) for words in said]
    scores = [task.score(p, answer) for p, answer in zip(problems, answers, strict=True)]
    losses, gates = [], []
    size = rows_at_once(model, len(batch))
    for start in range(0, len(batch), size):
        rows = batch[start : start + size].trimmed()
        loss, shares = _solution(model, rows)
        losses.append(loss)
        gates.append(shares)
    joined = {place: _join([part[place] for part in gates]) for place in gates[0]}
    return Heard(said, scores, torch.cat(losses), joined)


def rows_at_once(model: CanThink, n: int) -> int:
    """Return how many of n rows to run at once: all if hooks are open, as they may address rows."""
    return n if is_heard(*model.hook_points()) else ROWS


def speak(model: CanThink, task: WordedTask, batch: WordedBatch) -> list[str]:
    """Generate the model's text for each row, up to the end token."""
    said = []
    stop = task.vocabulary.end
    longest = int(batch.scored.sum(1).max()) + SPARE
    size = rows_at_once(model, len(batch))
    for start in range(0, len(batch), size):
        rows = batch[start : start + size]
        given = rows.prompts()
        room = model.cfg.n_ctx - int(rows.prompt.max())
        n_new = max(min(longest, room), 1)
        mask = given["attention_mask"]
        tokens = model.generate(given["tokens"], n_new, attention_mask=mask, stop_at=stop)
        for row in tokens[:, mask.shape[1] :].tolist():
            end = row.index(stop) if stop in row else len(row)
            said.append(task.vocabulary.decode(row[:end]))
    return said


def _solution(model: CanThink, batch: WordedBatch) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the loss on the data's solution, and the gate values in that forward pass."""
    places = [p for p in GATES if p in model.hook_dict] if bool(batch.n_thoughts.any()) else []
    at, _ = batch.said_at()
    if places:
        logits, cache = model.run_with_cache(**batch.inputs, logits_at=at - 1, names_filter=places)
        absent = ~cache.valid[..., None]
        gates = {place: cache[place].masked_fill(absent, torch.nan) for place in places}
    else:
        logits, gates = model(**batch.inputs, logits_at=at - 1), {}
    return batch.said_losses(logits).sum(1), gates


def _join(parts: Sequence[Tensor]) -> Tensor:
    """Concatenate the rows of several batches, padding with NaN to the most thoughts."""
    most = max(len(part) for part in parts)
    padded = [F.pad(part, (0, 0, 0, 0, 0, most - len(part)), value=torch.nan) for part in parts]
    return torch.cat(padded, dim=1)
