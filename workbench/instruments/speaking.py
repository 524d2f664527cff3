"""What a model that thinks says to a question, and whether it is right."""

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
SPARE = 8  # tokens that a model may say beyond the longest solution
ROWS = 256  # that speak at once


@dataclass(frozen=True, eq=False)
class Heard:
    """What was said to a batch of questions."""

    said: Sequence[str]
    """All words up to the end, of each row."""
    scores: Sequence[Score]
    loss: Float[Tensor, " batch"]
    """Cross-entropy of the data's own solution and answer, summed over their tokens, in nats."""
    gates: Mapping[str, Float[Tensor, "thought batch d_model"]]
    """Shares that the gates let through, by place; NaN where a row has no such thought."""

    def gate_statistics(self) -> dict[str, dict[str, list[float]]]:
        """Mean and standard deviation of each gate over rows and channels, by thought."""
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
    """Let a model answer greedily, and score its answers by the task's rules.

    Args:
        model: The model; hooks that are open on it act.
        task: Whose rules and vocabulary hold.
        problems: The rows' problems.
        batch: The rows as they are put to the model.
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
    """How many of n rows to run at once: all under hooks, which may be of certain rows."""
    return n if is_heard(*model.hook_points()) else ROWS


def speak(model: CanThink, task: WordedTask, batch: WordedBatch) -> list[str]:
    """The words that a model says to each row, up to the end."""
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
    """Loss of the data's own solution, and what the gates let through meanwhile."""
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
    """Rows of several batches, of which some may have fewer thoughts."""
    most = max(len(part) for part in parts)
    padded = [F.pad(part, (0, 0, 0, 0, 0, most - len(part)), value=torch.nan) for part in parts]
    return torch.cat(padded, dim=1)
