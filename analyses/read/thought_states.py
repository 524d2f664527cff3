"""Recorded activations of a thought model between its passes: states, thoughts, stream, gates."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from analyses.kit.parts import in_parts
from workbench.capabilities import CanThink
from workbench.tasks.worded.rows import WordedBatch

STATE = "recurrence.hook_state_pre"
THOUGHT = "recurrence.hook_thought"
STREAM = "recurrence.hook_stream"
ROWS = 256  # rows that are run at once


@torch.no_grad()
def thought_states(
    model: CanThink, batch: WordedBatch, places: Sequence[str]
) -> dict[str, Float[Tensor, "thought batch d_model"]]:
    """Record places of the recurrence at each thought; NaN where a row has no such thought.

    Args:
        model: The model; hooks that are active on it apply first.
        batch: The rows.
        places: Names of hooks that fire once a thought.

    Raises:
        ValueError: No row has a thought.
    """
    most = int(batch.n_thoughts.max())
    if not most:
        raise ValueError("the rows hold no thoughts; ask for one or more with --thoughts")
    parts: dict[str, list[Tensor]] = {place: [] for place in places}
    for rows in in_parts(model, batch, ROWS):
        if not bool(rows.n_thoughts.any()):
            absent = torch.full((most, len(rows), model.cfg.d_model), torch.nan)
            for place in places:
                parts[place].append(absent)
            continue
        _, cache = model.run_with_cache(
            **rows.inputs, logits_at=rows.read_at, names_filter=list(places)
        )
        for place in places:
            known = cache[place].masked_fill(~cache.valid[..., None], torch.nan).float().cpu()
            short = most - len(known)
            parts[place].append(F.pad(known, (0, 0, 0, 0, 0, short), value=torch.nan))
    return {place: torch.cat(found, dim=1) for place, found in parts.items()}
