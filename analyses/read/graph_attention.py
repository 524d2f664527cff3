"""Where does each head attend on a graph? Attention along edges, by loop and by node."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from analyses.kit.labels import loop_label
from analyses.kit.parts import in_parts
from analyses.kit.result import Result
from analyses.kit.spread import bootstrap
from workbench.capabilities import CanLoop
from workbench.tasks.batch import GraphBatch

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go


@dataclass(frozen=True, eq=False)
class GraphAttention(Result):
    """Attention of nodes at each distance from the source to the parents one step nearer to it.

    Attention runs against the edges: a node attends to its parents and to itself. The nodes that
    lead to a node at distance d are its parents at distance d − 1. In loop d they are the frontier,
    which was reached one loop before. The control attends uniformly to a node's parents and itself,
    with weight 1/(in-degree + 1) for each of them.
    """

    toward: Float[Tensor, "loop layer head distance"]
    """Weight on the parents at distance d − 1, mean over the nodes of a graph and over graphs."""
    uniform: Float[Tensor, " distance"]
    """The same weight under uniform attention."""
    frontier: Float[Tensor, "end loop layer head"]
    """`toward` of the nodes at distance r in loop r; ends: mean, low, high. NaN if there are none.
    """
    along_edges: Float[Tensor, "end loop layer head"]
    """Weight that is not on the node itself, mean over nodes that have parents."""
    along_uniform: float
    pattern: Float[Tensor, "loop layer head query_pos key_pos"]
    """Attention pattern of the first graph only."""
    adjacency: Bool[Tensor, "node node"]
    """Adjacency of the first graph only."""
    distance: Int[Tensor, " node"]
    """Distance from the source in the first graph only."""
    labels: tuple[str, ...]
    """Names of the first graph's nodes."""
    n: int

    @property
    def frontier_uniform(self) -> Float[Tensor, " loop"]:
        """Weight of uniform attention on the frontier in each loop; NaN if no node is that far."""
        n_loops, n_steps = self.toward.shape[0], len(self.uniform)
        spare = self.uniform.new_full((max(n_loops - n_steps, 0),), torch.nan)
        return torch.cat((self.uniform, spare))[:n_loops]

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        rows = []
        for at in torch.cartesian_prod(*(torch.arange(n) for n in self.toward.shape)).tolist():
            loop, layer, head, step = at
            mean, low, high = self.along_edges[:, loop, layer, head].tolist()
            rows.append(
                {
                    "state": loop_label(loop),
                    "layer": layer,
                    "head": head,
                    "distance": step + 1,
                    "toward_source": float(self.toward[tuple(at)]),
                    "uniform": float(self.uniform[step]),
                    "is_frontier": step == loop,
                    "along_edges": mean,
                    "along_edges_low": low,
                    "along_edges_high": high,
                    "along_edges_uniform": self.along_uniform,
                }
            )
        return pd.DataFrame(rows)

    def figure(self) -> "go.Figure":
        from plotly.subplots import make_subplots

        from analyses.kit.style import styled

        n_layers, n_heads = self.toward.shape[1:3]
        names = [
            f"layer {layer}, head {head}" if n_layers > 1 else f"head {head}"
            for layer in range(n_layers)
            for head in range(n_heads)
        ]
        titles = [*names, "frontier, by loop"]
        figure = make_subplots(1, len(titles), subplot_titles=titles, horizontal_spacing=0.035)
        self._draw_heads(figure)
        self._draw_frontier(figure, names)
        figure.update_layout(
            coloraxis={"colorscale": "RdBu_r", "cmid": 0, "colorbar_title": "above<br>even"}
        )
        title = "Attention to the parents one step nearer the source; framed: the frontier"
        return styled(figure, f"{title} (mean of {self.n} graphs)", height=480)

    def _draw_heads(self, figure: "go.Figure") -> None:
        """Draw loop × distance for each head: the weight above that of uniform attention."""
        import plotly.graph_objects as go

        n_loops, n_steps = self.toward.shape[0], self.toward.shape[3]
        excess = (self.toward - self.uniform).flatten(1, 2)  # [loop head distance]
        axes = {"x": list(range(1, n_steps + 1)), "y": list(range(1, n_loops + 1))}
        heat = axes | {"coloraxis": "coloraxis", "zhoverformat": ".3f"}
        for column, values in enumerate(excess.unbind(1), 1):
            figure.add_trace(go.Heatmap(z=values.tolist(), **heat), row=1, col=column)
            for step in range(min(n_loops, n_steps)):
                ends = {"x0": step + 0.5, "x1": step + 1.5, "y0": step + 0.5, "y1": step + 1.5}
                figure.add_shape(**ends, line={"color": "black", "width": 1.5}, row=1, col=column)
            figure.update_xaxes(title="distance", dtick=2, row=1, col=column)
            figure.update_yaxes(autorange="reversed", dtick=1, row=1, col=column)
            figure.update_yaxes(showticklabels=column == 1, row=1, col=column)
        figure.update_yaxes(title="loop", row=1, col=1)

    def _draw_frontier(self, figure: "go.Figure", names: list[str]) -> None:
        """Draw each head's weight on the frontier by loop, beside that of uniform attention."""
        from analyses.kit.style import COLOURS, CONTROL

        last = {"row": 1, "col": len(names) + 1}
        loops = list(range(1, self.toward.shape[0] + 1))
        for i, name in enumerate(names):
            mean, low, high = self.frontier.flatten(2)[:, :, i]
            error = {"array": (high - mean).tolist(), "arrayminus": (mean - low).tolist()}
            line = {"color": COLOURS[i % len(COLOURS)], "width": 3}
            trace = {"error_y": error | {"type": "data", "thickness": 1}, "line": line}
            figure.add_scatter(x=loops, y=mean.tolist(), name=name, **trace, **last)
        line = {"color": CONTROL, "width": 3, "dash": "dash"}
        even = self.frontier_uniform.tolist()
        figure.add_scatter(x=loops, y=even, name="looking evenly", line=line, **last)
        figure.update_yaxes(range=[0, 1.02], **last)
        figure.update_xaxes(title="loop", **last)

    def summary(self) -> str:
        known = self.frontier_uniform.isfinite() & self.frontier[0].isfinite().all(2).all(1)
        if not bool(known.any()):
            return f"no node is reached in any of {len(known)} loops (n={self.n})"
        excess = self.frontier[0] - self.frontier_uniform[:, None, None]
        excess = excess.where(known[:, None, None], -torch.inf)
        loop, layer, head = (int(i) for i in torch.unravel_index(excess.argmax(), excess.shape))
        mean, low, high = self.frontier[:, loop, layer, head].tolist()
        edges = self.along_edges[0].mean()
        return (
            f"most at the frontier: layer {layer}, head {head} in loop {loop + 1} with {mean:.2f} "
            f"[{low:.2f}, {high:.2f}], evenly {self.frontier_uniform[loop]:.2f}; along edges "
            f"{edges:.2f}, evenly {self.along_uniform:.2f} (n={self.n})"
        )


@torch.no_grad()
def graph_attention(
    model: CanLoop, batch: GraphBatch, n_loops: int | None = None
) -> GraphAttention:
    """Measure the attention of the looped blocks over a batch of graphs.

    Args:
        model: A model whose positions are the nodes of a graph; hooks that are active on it apply.
        batch: The graphs.
        n_loops: Loops to run; by default the model's default number.
    """
    farthest = max(int(batch.distance.max()), 1)
    parts = [_of_part(model, rows, n_loops, farthest) for rows in in_parts(model, batch, 128)]
    weights = torch.cat([part.weight for part in parts], dim=3)
    uniform = torch.cat([part.uniform for part in parts]).nanmean(0)
    toward = weights[..., :-1]  # [loop layer head batch distance]
    steps = torch.arange(min(len(toward), farthest))
    diagonal = torch.full_like(toward[..., 0], torch.nan)
    diagonal[steps] = toward[steps, :, :, :, steps]
    size = int(batch.length[0])
    return GraphAttention(
        toward=toward.nanmean(3),
        uniform=uniform[:-1],
        frontier=torch.stack(bootstrap(diagonal)),
        along_edges=torch.stack(bootstrap(weights[..., -1])),
        along_uniform=float(uniform[-1]),
        pattern=parts[0].first[..., :size, :size],
        adjacency=batch.adjacency[0, :size, :size].cpu(),
        distance=batch.distance[0, :size].cpu(),
        labels=tuple(node_names(model, batch)),
        n=len(batch),
    )


class _Part(NamedTuple):
    """Weights of some graphs: toward the source by the node's distance, then along all edges."""

    weight: Float[Tensor, "loop layer head batch measure"]
    uniform: Float[Tensor, "batch measure"]
    first: Float[Tensor, "loop layer head query_pos key_pos"]


def _of_part(model: CanLoop, batch: GraphBatch, n_loops: int | None, farthest: int) -> _Part:
    places = [f"blocks.{layer}.attn.hook_pattern" for layer in range(model.cfg.n_layers)]
    _, cache = model.run_with_cache(**batch.inputs, n_loops=n_loops, names_filter=places)
    patterns = torch.stack([cache[place].float() for place in places], dim=1)
    leads, allowed = _leads(batch)[:, None], _may_look(batch)
    evenly = (allowed / allowed.sum(-1, keepdim=True))[None, None, :, None]
    by_distance = [batch.distance == step for step in range(1, farthest + 1)]
    has_parents = [batch.adjacency.any(1) & ~batch.is_pad]
    weight, uniform = (
        torch.cat(
            (
                _over_nodes((weights * leads).sum(-1), by_distance),
                _over_nodes(1 - weights.diagonal(dim1=-2, dim2=-1), has_parents),
            ),
            dim=-1,
        ).cpu()
        for weights in (patterns, evenly)
    )
    return _Part(weight, uniform[0, 0, 0], patterns[:, :, 0].cpu())


def node_names(model: CanLoop, batch: GraphBatch, row: int = 0) -> list[str]:
    """Return the names of the nodes of one graph."""
    tokens = batch.tokens[row, : int(batch.length[row])]
    if model.tokenizer is None:
        return [str(token) for token in tokens.tolist()]
    return model.to_str_tokens(tokens)


def _may_look(batch: GraphBatch) -> Float[Tensor, "batch query_pos key_pos"]:
    """Return 1 where a node may attend: to its parents and to itself; elsewhere 0."""
    itself = torch.eye(batch.tokens.shape[1], dtype=torch.bool, device=batch.tokens.device)
    return (batch.adjacency.transpose(1, 2) | itself).float()


def _leads(batch: GraphBatch) -> Float[Tensor, "batch query_pos key_pos"]:
    """Return 1 where the key is a parent of the query and one step nearer the source; else 0."""
    nearer = batch.distance[:, None, :] == batch.distance[:, :, None] - 1
    reached = batch.distance[:, None, :] >= 0
    return (batch.adjacency.transpose(1, 2) & nearer & reached).float()


def _over_nodes(
    values: Float[Tensor, "loop layer batch head query_pos"],
    nodes: list[Bool[Tensor, "batch query_pos"]],
) -> Float[Tensor, "loop layer head batch group"]:
    """Average over each graph's nodes in a group; NaN where a graph has none."""
    found = []
    for inside in nodes:
        weight = inside.to(values)[:, None]
        found.append((values * weight).sum(-1) / weight.sum(-1))
    return torch.stack(found, dim=-1).transpose(2, 3)
