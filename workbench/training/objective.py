"""The training loss of models that loop: final loop, all loops, and ponder cost."""

from collections.abc import Callable
from contextlib import nullcontext

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from workbench.hooks import HookPoint
from workbench.models.loops.depth import DepthModel
from workbench.recurrence.halting import PONDER
from workbench.settings.recipe import ObjectiveConfig
from workbench.tasks.batch import Batch


class Objective:
    """(1 − a)·CE of the final loop + a·mean CE over the loops, + w·(N + R) if positions halt.

    The term a is the ablation of intermediate supervision in VCoT (arXiv 2603.21676); N + R is the
    ponder cost of Graves 2016.
    """

    def __init__(
        self, cfg: ObjectiveConfig, model: DepthModel, prepared: Callable[..., Tensor]
    ) -> None:
        self.cfg = cfg
        self.model = model
        self.prepared = prepared  # the same model, wrapped for training
        self.halts = PONDER in model.hook_dict

    def __call__(
        self, batch: Batch, n_loops: int | Int[Tensor, " batch"] | None
    ) -> Float[Tensor, ""]:
        """Return the loss, summed over the rows."""
        a = self.cfg.intermediate
        cost: dict[str, Tensor] = {}

        def note(tensor: Tensor, /, *, hook: HookPoint) -> None:
            cost["ponder"] = tensor  # overwritten by each loop, so that the last one stays

        with self.model.hooks(fwd_hooks=[(PONDER, note)]) if self.halts else nullcontext():
            logits = self.prepared(
                **batch.inputs, n_loops=n_loops, logits_at=batch.read_at, every_loop=a > 0
            )
        by_loop = logits.float() if a > 0 else logits.float()[None]
        answers = batch.answer.expand(len(by_loop), -1)
        losses = F.cross_entropy(by_loop.movedim(-1, 1), answers, reduction="none").sum(1)
        loss = (1 - a) * losses[-1] + a * losses.mean()
        if self.halts:
            real = ~batch.is_pad
            by_row = (cost["ponder"][..., 0] * real).sum(1) / real.sum(1)
            loss = loss + self.cfg.ponder * by_row.sum()
        return loss
