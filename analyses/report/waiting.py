"""Why does a run's search on graphs slow down beyond the loops that it was trained with?

`python -m analyses.report.waiting RUN` edits a trained run to separate three causes:

    told      which row of the loop embedding later loops get: their own, which was never trained;
              the last trained one; or zero
    gate      the gate's share at nodes that the search reached long ago and at nodes that it never
              reaches
    held      whether each node keeps its first state until as many loops have run as it is edges
              from the source, so that it does not wait. An unreachable node is released in the loop
              in which its row's target would be due; the answers for unreachable targets are the
              control
"""

import sys
from collections.abc import Callable, Iterator
from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from analyses.kit.parts import in_parts
from workbench.hooks import HookPoint, loop_of
from workbench.models.loops.depth import DepthModel
from workbench.recurrence.update import Beyond, GatedUpdate
from workbench.runs import Run, load_run
from workbench.runs.evaluation import wilson
from workbench.tasks.batch import GraphBatch

STATE_IN, GATE = "recurrence.hook_state_in", "recurrence.gate.hook_post"
HOPS = (8, 10, 12)  # more than in training
SHOWN = (8, 10, 12, 14, 16, 20)  # loops
NEAR = 3  # nodes within this many edges of the source were reached long ago
TOLD: tuple[Beyond, ...] = ("own", "last", "zero")

Hooks = list[tuple[str, Callable[..., Tensor | None]]]


def hold(batch: GraphBatch) -> Hooks:
    """Return a hook that keeps nodes in their first state until the search is due at them."""
    due = torch.where(batch.distance < 0, batch.hops[:, None], batch.distance)
    first: list[Tensor] = []

    def held(state: Tensor, hook: HookPoint) -> Tensor | None:
        loop = cast(int, loop_of(hook))
        if loop == 0:
            first[:] = [state]
            return None
        return torch.where((due > loop)[..., None], first[0], state)

    return [(STATE_IN, held)]


def answered(
    model: DepthModel, batch: GraphBatch, n_loops: int, is_held: bool
) -> Bool[Tensor, "loop batch"]:
    """Return which rows are right after each loop."""
    found = []
    for rows in in_parts(model, batch, 100):
        hooks = hold(rows) if is_held else []
        with torch.no_grad(), model.hooks(fwd_hooks=hooks):
            logits = model(**rows.inputs, n_loops=n_loops, every_loop=True)
        found.append(logits.argmax(-1) == rows.answer)
    return torch.cat(found, 1)


def gate_shares(model: DepthModel, batch: GraphBatch, n_loops: int) -> Float[Tensor, "2 loop"]:
    """Return the gate's mean share at nodes near the source and at unreachable nodes."""
    shares: list[Float[Tensor, "batch pos"]] = []
    with (
        torch.no_grad(),
        model.hooks(fwd_hooks=[(GATE, lambda z, hook: shares.append(z.mean(-1)))]),
    ):
        model(**batch.inputs, n_loops=n_loops)
    away: Int[Tensor, "batch pos"] = batch.distance
    groups = ((away > 0) & (away <= NEAR), (away < 0) & ~batch.is_pad)
    return torch.stack([torch.stack([z[group].mean() for z in shares]) for group in groups])


def lines(run: Run, n_loops: int = 20) -> Iterator[str]:
    """Yield a table of accuracies and a sentence on the gate."""
    model = cast(DepthModel, run.model).twin()
    recurrence = cast(GatedUpdate, model.recurrence)
    test = cast(GraphBatch, run.task.split("test"))
    loops = [loop for loop in SHOWN if loop <= n_loops]
    heads = [
        "hops",
        "told",
        "held",
        *(f"after {loop}" for loop in loops),
        "unreachable, at the end",
    ]
    yield f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}"
    for hops in HOPS:
        rows = test[test.hops == hops].trimmed()
        for told in TOLD:
            recurrence.loop_embed.beyond = told
            for is_held in (False, True):
                right = answered(model, rows, n_loops, is_held)
                cells = [_share(right[loop - 1]) for loop in loops]
                cells.append(_share(right[-1, rows.answer == 0]))
                held = "yes" if is_held else "no"
                yield f"| {hops} | {told} | {held} | {' | '.join(cells)} |"
    recurrence.loop_embed.beyond = "own"
    near, never = gate_shares(model, test[test.hops == max(HOPS)][:100].trimmed(), n_loops)
    yield (
        f"\ngate: mean share at nodes 1 to {NEAR} edges from the source, and at unreachable ones: "
        + (
            ", ".join(
                f"loop {loop} {near[loop - 1]:.2f} and {never[loop - 1]:.2f}"
                for loop in (1, *loops)
            )
        )
    )


def _share(right: Bool[Tensor, " row"]) -> str:
    low, high = wilson(int(right.sum()), len(right))
    return f"{right.float().mean():.3f} [{low:.2f}, {high:.2f}]"


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(*lines(load_run(sys.argv[1])), sep="\n")
