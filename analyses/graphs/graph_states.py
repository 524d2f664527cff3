"""One graph, loop by loop: which nodes are held to be reached, and where each one looks."""

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
READOUT = 2  # of `WAYS`


@dataclass(frozen=True, eq=False)
class GraphStates(Result):
    """The first graph of a batch after each loop: what probes and readout say of its nodes.

    The figure shows one loop: nodes by what is said of them, edges as wide as the attention that
    runs against them, so that a node's wide edges come from where it looks. `loop`, `probe` and
    `head` choose what the figure shows and change no number. The control of the probes, fitted on
    shuffled labels, and that of the readout, another node's answer, stand in table and summary.
    """

    reached: Bool[Tensor, "way loop node"]
    true: Bool[Tensor, "way loop node"]
    """What each way would have to say: within r edges after loop r; reachable; reachable."""
    control: Float[Tensor, "way loop"]
    """Share of the nodes that the control is right about."""
    pattern: Float[Tensor, "loop layer head query_pos key_pos"] | None
    """Attention; None where the model has none."""
    adjacency: Bool[Tensor, "node node"]
    distance: Int[Tensor, " node"]
    """Edges from the source; −1 is out of reach."""
    labels: tuple[str, ...]
    source_at: int
    target_at: int
    said: tuple[tuple[str, float], ...]
    """Each loop's answer and its probability."""
    answer: str
    """The right answer."""
    n_fitted: int
    """Training graphs that the probes were fitted on."""
    loop: int | None = None
    """Loop that the figure shows, numbered from 0; None is the last."""
    probe: Probe = "within r edges"
    head: int | None = None
    """Head whose attention the figure shows; None is the mean of all."""

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
        """Heads whose attention there is; 0 without attention."""
        return 0 if self.pattern is None else self.pattern.shape[2]

    @property
    def shown_loop(self) -> int:
        """The loop that the figure shows."""
        return self.reached.shape[1] - 1 if self.loop is None else self.loop

    @property
    def ways(self) -> tuple[int, int]:
        """The two of `WAYS` that the figure shows."""
        return PROBES.index(self.probe), READOUT

    @property
    def weight(self) -> Float[Tensor, "node node"] | None:
        """Attention in the loop shown, from the node looked at to the node that looks."""
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
    """What is said of each node of the first graph after each loop, and where each one looks.

    Args:
        model: A model that answers by a pair of nodes; hooks that are open on it act.
        batch: Graphs.
        n_loops: Loops to run; by default as many as the model runs by itself.
        trained: Gives training graphs for the probes; without it other graphs of the batch do.
        loop: Loop that the figure shows, numbered from 0; by default the last.
        probe: Which of the two probes the figure shows.
        head: Head whose attention it shows; by default the mean of all layers and heads.

    Raises:
        ValueError: The rows are no graphs, there are none for the probes, or there is no such loop
            or head.
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
