"""Which nodes does a model mark as reachable after each loop, by probes and by its readout?"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from analyses.graphs.node_probe import NodeProbe, real_nodes
from analyses.kit.declare import Example, analysis
from analyses.kit.labels import loop_label
from analyses.kit.parts import in_parts
from analyses.kit.result import Result
from analyses.kit.spread import bootstrap
from analyses.kit.trained import Trained
from analyses.read.graph_attention import node_names
from workbench.capabilities import CanLoop
from workbench.tasks.batch import Batch, GraphBatch

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

STATE = "recurrence.hook_state_post"
WAYS = ("probe: within r edges", "probe: reachable", "readout, node by node")


@dataclass(frozen=True, eq=False)
class ReachedSet(Result):
    """Nodes that are predicted to be reached from the source, after each loop.

    Two linear probes read each node's state. One predicts whether the node is at most r edges from
    the source after loop r, the other whether it is reachable at all. The readout is applied to
    each node as if it were the target, on the states of the single run in which another node was
    the target. The source itself is left out. The probes' control is fitted on shuffled labels; the
    readout's control gives each node another node's answer.
    """

    accuracy: Float[Tensor, "end way loop"]
    """Share of a graph's nodes predicted right, for held-out graphs; `end` is mean, low, high."""
    control: Float[Tensor, "way loop"]
    said: Float[Tensor, "way loop group"]
    """Share of the nodes at each distance that are predicted to be reached; the last group is the
    unreachable nodes."""
    n_nodes: Int[Tensor, " group"]
    groups: tuple[str, ...]
    reached: Bool[Tensor, "way loop node"]
    """Predictions for the nodes of the first graph."""
    adjacency: Bool[Tensor, "node node"]
    """Edges of the first graph."""
    distance: Int[Tensor, " node"]
    """Edges from the source in the first graph; −1 if unreachable."""
    source_at: int
    target_at: int
    labels: tuple[str, ...]
    """Names of the first graph's nodes."""
    n: int
    n_fitted: int
    """Number of graphs that the probes were fitted on; none of them is among the `n` tested."""

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        rows = []
        for w, way in enumerate(WAYS):
            for loop in range(self.said.shape[1]):
                mean, low, high = self.accuracy[:, w, loop].tolist()
                for g, group in enumerate(self.groups):
                    rows.append(
                        {
                            "way": way,
                            "state": loop_label(loop),
                            "distance": group,
                            "said_reached": float(self.said[w, loop, g]),
                            "nodes": int(self.n_nodes[g]),
                            "accuracy": mean,
                            "low": low,
                            "high": high,
                            "control": float(self.control[w, loop]),
                        }
                    )
        return pd.DataFrame(rows)

    def figure(self) -> "go.Figure":
        import plotly.graph_objects as go
        from plotly.subplots import make_subplots

        from analyses.kit.style import COLOURS, band, legend_line, styled

        titles = [*WAYS, "accuracy"]
        figure = make_subplots(1, 4, subplot_titles=titles, horizontal_spacing=0.05)
        loops = list(range(1, self.said.shape[1] + 1))
        for w, way in enumerate(WAYS):
            heat = {"x": loops, "y": list(self.groups), "coloraxis": "coloraxis"}
            z = self.said[w].T.tolist()
            figure.add_trace(go.Heatmap(z=z, **heat, zhoverformat=".3f"), row=1, col=w + 1)
            mean, low, high = (values[w].tolist() for values in self.accuracy)
            line = {"color": COLOURS[w], "width": 3}
            figure.add_trace(band(loops, low, high, COLOURS[w]), row=1, col=4)
            figure.add_scatter(x=loops, y=mean, name=way, line=line, row=1, col=4)
            dotted = {"color": COLOURS[w], "dash": "dot"}
            values = self.control[w].tolist()
            figure.add_scatter(x=loops, y=values, line=dotted, showlegend=False, row=1, col=4)
            figure.update_yaxes(type="category", showticklabels=w == 0, row=1, col=w + 1)
        legend_line(figure, "control: shuffled labels, another node", "dot")
        figure.update_yaxes(title="edges from the source", row=1, col=1)
        figure.update_yaxes(range=[0, 1.02], row=1, col=4)
        figure.update_xaxes(title="after loop", dtick=max(1, len(loops) // 6))
        scale = {"colorscale": "Viridis", "cmin": 0, "cmax": 1}
        figure.update_layout(coloraxis=scale | {"colorbar_title": "said<br>reached"})
        title = f"Which nodes are held to be reached after each loop ({self.n} held-out graphs)"
        return styled(figure, title, height=480)

    def summary(self) -> str:
        parts = []
        for w, way in enumerate(WAYS):
            mean, low, high = self.accuracy[:, w, -1].tolist()
            parts.append(
                f"{way} {mean:.3f} [{low:.3f}, {high:.3f}], control {self.control[w, -1]:.3f}"
            )
        return (
            f"right about a graph's nodes after loop {self.said.shape[1]}: {'; '.join(parts)} "
            f"(n={self.n} graphs, probes fitted on {self.n_fitted} others)"
        )


@analysis(given=("n_loops", "trained"), example=Example(run="graphs"))
@torch.no_grad()
def reached_set(
    model: CanLoop,
    batch: Batch,
    *,
    n_loops: int | None = None,
    trained: Trained | None = None,
    n_fit: int = 300,
) -> ReachedSet:
    """Compute what the probes and the readout predict for every node after every loop.

    Args:
        model: A model whose readout answers for a pair of nodes; active hooks apply.
        batch: Graphs.
        n_loops: Loops to run; by default the model's own number.
        trained: Source of training graphs for the probes; without it, they are fitted on the first
            half of the batch and tested on the rest.
        n_fit: Most graphs to fit the probes on.

    Raises:
        ValueError: The rows are not graphs, the readout does not take a pair of nodes, or there is
            a single graph and no others for the probes.
    """
    if not isinstance(batch, GraphBatch) or model.cfg.readout != "node_pair":
        raise ValueError(
            "reached sets need graphs and a readout of a pair of nodes; this model has perception "
            f"{model.cfg.perception!r} and readout {model.cfg.readout!r}"
        )
    others, rows = _fit_and_test(batch, trained, n_fit, model)
    fitting, tested = _states(model.twin(), others, n_loops), _states(model, rows, n_loops)
    truth = _truth(rows, len(tested))  # [way loop batch node]
    counted = real_nodes(rows)
    said, control = [], []
    for way, wanted in enumerate(_truth(others, len(fitting))[:2]):
        said.append(NodeProbe.fit(fitting, others, wanted).predict(tested))
        guess = NodeProbe.fit(fitting, others, wanted, shuffled=True).predict(tested)
        control.append(_right(guess, truth[way], counted))
    said.append(_asked(model, rows, tested))
    control.append(_right(_of_other_nodes(said[-1], counted), truth[2], counted))
    reached = torch.stack(said)  # [way loop batch node]
    right = torch.stack([_right(*each, counted) for each in zip(reached, truth, strict=True)])
    shares, n_nodes, groups = _by_distance(reached, rows, counted)
    return ReachedSet(
        accuracy=torch.stack(bootstrap(right)),
        control=torch.stack(control).nanmean(-1),
        said=shares,
        n_nodes=n_nodes,
        groups=groups,
        reached=reached[:, :, 0, : int(rows.length[0])],
        **_first_graph(model, rows),
        n=len(rows),
        n_fitted=len(others),
    )


def _first_graph(model: CanLoop, batch: GraphBatch) -> dict[str, Any]:
    size = int(batch.length[0])
    return {
        "adjacency": batch.adjacency[0, :size, :size].cpu(),
        "distance": batch.distance[0, :size].cpu(),
        "source_at": int(batch.source_at[0]),
        "target_at": int(batch.target_at[0]),
        "labels": tuple(node_names(model, batch)),
    }


def _fit_and_test(
    batch: GraphBatch, trained: Trained | None, n_fit: int, model: CanLoop
) -> tuple[GraphBatch, GraphBatch]:
    """Return graphs to fit the probes on and graphs to test on; they never overlap."""
    if trained is not None:
        names = [name for name in trained.task.splits if "train" in name]
        others = trained.task.batch(names[0], n_fit).to(model.device)
        return cast(GraphBatch, others), batch
    half = min(len(batch) // 2, n_fit)
    if not half:
        raise ValueError("one graph gives no others to fit probes on; give several, or `trained`")
    return batch[:half], batch[half:]


def _states(
    model: CanLoop, batch: GraphBatch, n_loops: int | None
) -> Float[Tensor, "loop batch node d_model"]:
    found = []
    for rows in in_parts(model, batch, 256):
        _, cache = model.run_with_cache(**rows.inputs, n_loops=n_loops, names_filter=STATE)
        found.append(cache[STATE].float().cpu())
    return torch.cat(found, dim=1)


def _truth(batch: GraphBatch, n_loops: int) -> Bool[Tensor, "way loop batch node"]:
    """Return the labels: within r edges after loop r; reachable (for probe and for readout)."""
    distance = batch.distance.cpu()
    reachable = (distance >= 0).expand(n_loops, *distance.shape)
    edges = torch.arange(1, n_loops + 1)[:, None, None]
    return torch.stack((reachable & (distance <= edges), reachable, reachable))


def _asked(
    model: CanLoop, batch: GraphBatch, states: Float[Tensor, "loop batch node d_model"]
) -> Bool[Tensor, "loop batch node"]:
    """Return whether the readout answers "reachable" for each node as the target."""
    inputs = {key: value for key, value in batch.inputs.items() if key != "target_at"}
    found = []
    for state in states.to(model.device):
        nodes = [torch.full_like(batch.target_at, node) for node in range(state.shape[1])]
        logits = [model.readout(state, **inputs, target_at=node) for node in nodes]
        found.append(torch.stack(logits, dim=1).argmax(-1) == 1)
    return torch.stack(found).cpu()


def _of_other_nodes(
    said: Bool[Tensor, "loop batch node"], counted: Bool[Tensor, "batch node"]
) -> Bool[Tensor, "loop batch node"]:
    """Give each node the prediction for another node of its graph, drawn at random."""
    rng = np.random.default_rng(0)
    found = said.clone()
    for row, nodes in enumerate(counted):
        at = nodes.nonzero()[:, 0]
        found[:, row, at] = said[:, row, at[torch.from_numpy(rng.permutation(len(at)))]]
    return found


def _right(
    said: Tensor, truth: Tensor, counted: Bool[Tensor, "batch node"]
) -> Float[Tensor, "loop batch"]:
    """Return the share of a graph's nodes for which the prediction is right."""
    return ((said == truth) & counted).sum(-1) / counted.sum(-1)


def _by_distance(
    reached: Bool[Tensor, "way loop batch node"], batch: GraphBatch, counted: Tensor
) -> tuple[Float[Tensor, "way loop group"], Int[Tensor, " group"], tuple[str, ...]]:
    """Return the share of nodes predicted to be reached, by distance and for unreachable nodes."""
    distance = batch.distance.cpu()
    steps = [step for step in distance[counted].unique().tolist() if step >= 0]
    inside = [counted & (distance == step) for step in [*steps, -1]]
    shares = torch.stack([reached[..., nodes].float().mean(-1) for nodes in inside], dim=-1)
    n_nodes = torch.stack([nodes.sum() for nodes in inside])
    return shares, n_nodes, (*map(str, steps), "unreachable")
