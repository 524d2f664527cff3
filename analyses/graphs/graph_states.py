"""One graph, loop by loop: which nodes does the model mark as reached, and where do they attend?"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from analyses.graphs.reached_set import WAYS, reached_set
from analyses.kit.declare import Example, analysis
from analyses.kit.labels import loop_label
from analyses.kit.result import Result
from analyses.kit.trained import Trained
from analyses.read.answers import loop_answers
from analyses.read.graph_attention import graph_attention
from workbench.capabilities import CanLoop
from workbench.tasks.batch import Batch, GraphBatch

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

PATTERN = "blocks.0.attn.hook_pattern"
Probe = Literal["within r edges", "reachable"]
PROBES: tuple[Probe, ...] = ("within r edges", "reachable")
READOUT = 2  # index in `WAYS`


@dataclass(frozen=True, eq=False)
class GraphStates(Result):
    """Predictions of probes and readout for the nodes of a batch's first graph, after each loop.

    The figure shows one loop. Nodes are coloured by their prediction. An edge is as wide as the
    attention from its end to its start, so that a node's wide incoming edges come from the nodes
    that it attends to. `loop`, `probe` and `head` only choose what the figure shows; they do not
    change any number. The probes' control is fitted on shuffled labels, and the readout's control
    is another node's answer. Both are in the table and the summary.
    """

    reached: Bool[Tensor, "way loop node"]
    true: Bool[Tensor, "way loop node"]
    """The right prediction of each way: within r edges after loop r; reachable; reachable."""
    control: Float[Tensor, "way loop"]
    """Share of the nodes for which the control is right."""
    pattern: Float[Tensor, "loop layer head query_pos key_pos"] | None
    """Attention pattern; None if the model has no attention."""
    adjacency: Bool[Tensor, "node node"]
    distance: Int[Tensor, " node"]
    """Edges from the source; −1 if unreachable."""
    labels: tuple[str, ...]
    source_at: int
    target_at: int
    said: tuple[tuple[str, float], ...]
    """Each loop's answer and its probability."""
    answer: str
    """The right answer."""
    n_fitted: int
    """Number of graphs that the probes were fitted on."""
    loop: int | None = None
    """Loop that the figure shows, numbered from 0; None for the last."""
    probe: Probe = "within r edges"
    head: int | None = None
    """Head whose attention the figure shows; None for the mean of all heads."""

    def __post_init__(self) -> None:
        n_loops = self.reached.shape[1]
        if self.loop is not None and not 0 <= self.loop < n_loops:
            raise ValueError(
                f"loop={self.loop} is no loop of this run; they go from 0 to {n_loops - 1}"
            )
        if self.head is not None and self.pattern is None:
            raise ValueError(f"head={self.head}: this model has no attention")
        if self.head is not None and not 0 <= self.head < self.n_heads:
            raise ValueError(f"head={self.head} must be from 0 to {self.n_heads - 1}")

    @property
    def n_heads(self) -> int:
        """Number of attention heads; 0 without attention."""
        return 0 if self.pattern is None else self.pattern.shape[2]

    @property
    def shown_loop(self) -> int:
        """The loop that the figure shows."""
        return self.reached.shape[1] - 1 if self.loop is None else self.loop

    @property
    def ways(self) -> tuple[int, int]:
        """Indices in `WAYS` of the two ways that the figure shows."""
        return PROBES.index(self.probe), READOUT

    @property
    def weight(self) -> Float[Tensor, "node node"] | None:
        """Attention in the loop shown, as [node attended to, node that attends]."""
        if self.pattern is None:
            return None
        heads = self.pattern[self.shown_loop].mean(0)  # [head query_pos key_pos]
        return (heads.mean(0) if self.head is None else heads[self.head]).T

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        rows = []
        for w, way in enumerate(WAYS):
            for loop in range(self.reached.shape[1]):
                for node, name in enumerate(self.labels):
                    if node != self.source_at:
                        rows.append(
                            {
                                "way": way,
                                "state": loop_label(loop),
                                "node": name,
                                "distance": int(self.distance[node]),
                                "said_reached": bool(self.reached[w, loop, node]),
                                "true": bool(self.true[w, loop, node]),
                                "control": float(self.control[w, loop]),
                            }
                        )
        return pd.DataFrame(rows)

    def figure(self) -> "go.Figure":
        from analyses.graphs.graph_figure import graph_figure

        return graph_figure(self)

    def summary(self) -> str:
        loop = self.shown_loop
        word, share = self.said[loop]
        others = [node for node in range(len(self.labels)) if node != self.source_at]
        parts = []
        for way in self.ways:
            said = [self.labels[node] for node in others if self.reached[way, loop, node]]
            right = (self.reached[way, loop] == self.true[way, loop])[others].sum()
            parts.append(
                f"{WAYS[way]}: {', '.join(said) or 'none'} ({int(right)} of {len(others)} nodes "
                f"right; control {self.control[way, loop]:.2f})"
            )
        return (
            f"{loop_label(loop)} it answers {word} ({share:.2f}), the truth is {self.answer}; "
            f"{'; '.join(parts)}; probes fitted on {self.n_fitted} training graphs"
        )


@analysis(given=("n_loops", "trained"), example=Example(run="graphs"))
@torch.no_grad()
def graph_states(
    model: CanLoop,
    batch: Batch,
    *,
    n_loops: int | None = None,
    trained: Trained | None = None,
    loop: int | None = None,
    probe: Probe = "within r edges",
    head: int | None = None,
) -> GraphStates:
    """Predict each node of the first graph after each loop, and record the attention.

    Args:
        model: A model whose readout answers for a pair of nodes; active hooks apply.
        batch: Graphs.
        n_loops: Loops to run; by default the model's own number.
        trained: Source of training graphs for the probes; without it, other graphs of the batch
            are used.
        loop: Loop that the figure shows, numbered from 0; by default the last.
        probe: Which of the two probes the figure shows.
        head: Head whose attention the figure shows; by default the mean of all layers and heads.

    Raises:
        ValueError: The rows are not graphs, there are none for the probes, or the loop or head does
            not exist.
    """
    first = batch if trained is None else batch[:1]
    found = reached_set(model, first, n_loops=n_loops, trained=trained)
    shown = cast(
        GraphBatch, batch[:1] if trained is not None else batch[len(batch) - found.n :][:1]
    )
    said = loop_answers(model, shown, n_loops=n_loops)
    has_attention = PATTERN in model.hook_dict
    n_done = torch.arange(1, found.reached.shape[1] + 1)[:, None]
    reachable = (found.distance >= 0).expand(len(n_done), -1)
    return GraphStates(
        reached=found.reached,
        true=torch.stack((reachable & (found.distance <= n_done), reachable, reachable)),
        control=found.control,
        pattern=graph_attention(model, shown, n_loops).pattern if has_attention else None,
        adjacency=found.adjacency,
        distance=found.distance,
        labels=found.labels,
        source_at=found.source_at,
        target_at=found.target_at,
        said=said.said,
        answer=said.true,
        n_fitted=found.n_fitted,
        loop=loop,
        probe=probe,
        head=head,
    )
