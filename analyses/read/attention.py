"""Where does each head attend in each loop?"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from torch import Tensor

from analyses.kit.declare import analysis
from analyses.kit.labels import literal, loop_label, position_labels
from analyses.kit.result import Result
from analyses.read.graph_attention import GraphAttention, graph_attention
from workbench.capabilities import CanLoop
from workbench.tasks.batch import Batch, GraphBatch

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

MANY = 10  # with more positions than this, a cell has no room for its number


@dataclass(frozen=True, eq=False)
class Attention(Result):
    """Attention patterns by loop, layer and head: the mean over the questions of a batch.

    The control attends uniformly to all positions that a query may see.
    """

    pattern: Float[Tensor, "loop layer head query_pos key_pos"]
    sd: Float[Tensor, "loop layer head query_pos key_pos"]
    """Standard deviation between questions."""
    uniform: Float[Tensor, "query_pos key_pos"]
    labels: tuple[str, ...]
    n: int

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        rows = []
        for at in torch.cartesian_prod(*(torch.arange(n) for n in self.pattern.shape)).tolist():
            loop, layer, head, query, key = at
            if self.uniform[query, key] > 0:
                rows.append(
                    {
                        "state": loop_label(loop),
                        "layer": layer,
                        "head": head,
                        "query": self.labels[query],
                        "key": self.labels[key],
                        "weight": float(self.pattern[tuple(at)]),
                        "sd": float(self.sd[tuple(at)]),
                        "uniform": float(self.uniform[query, key]),
                    }
                )
        return pd.DataFrame(rows)

    def figure(self) -> "go.Figure":
        import plotly.graph_objects as go
        from plotly.subplots import make_subplots

        from analyses.kit.style import styled

        n_loops, n_layers, n_heads = self.pattern.shape[:3]
        n_rows = n_loops * n_layers
        height = 150 + 200 * n_rows
        figure = make_subplots(
            n_rows,
            n_heads,
            column_titles=[f"head {head}" for head in range(n_heads)],
            vertical_spacing=24 / height,
            horizontal_spacing=min(0.03, 0.3 / n_heads),
            shared_xaxes=True,
            shared_yaxes=True,
        )
        unseen = self.uniform == 0
        numbers = {"texttemplate": "%{z:.2f}"} if len(self.labels) <= MANY else {}
        for panel, pattern in enumerate(self.pattern.flatten(0, 2)):
            shown = [
                [None if hidden else weight for weight, hidden in zip(*row, strict=True)]
                for row in zip(pattern.tolist(), unseen.tolist(), strict=True)
            ]
            heat = go.Heatmap(z=shown, coloraxis="coloraxis", zhoverformat=".3f", **numbers)
            figure.add_trace(heat, row=panel // n_heads + 1, col=panel % n_heads + 1)
        words = list(map(literal, self.labels))
        ticks = {"tickvals": list(range(len(words))), "ticktext": words}
        figure.update_xaxes(**ticks, showgrid=False, zeroline=False)
        figure.update_yaxes(**ticks, showgrid=False, zeroline=False, autorange="reversed")
        for row in range(n_rows):
            loop, layer = divmod(row, n_layers)
            name = f"loop {loop + 1}" + f", layer {layer}" * (n_layers > 1)
            figure.update_yaxes(title=name, row=row + 1, col=1)
        figure.update_layout(
            coloraxis={"colorscale": "Purples", "cmin": 0, "cmax": 1, "colorbar_title": "weight"}
        )
        return styled(figure, "Where each head looks, from row to column", height)

    def summary(self) -> str:
        loop, layer, head = (
            int(x)
            for x in torch.unravel_index(
                self._sharpness().flatten().argmax(), self._sharpness().shape
            )
        )
        return (
            f"sharpest at the last position: layer {layer}, head {head} in loop {loop + 1}, which "
            f"looks at {self.labels[int(self.pattern[loop, layer, head, -1].argmax())]} with "
            f"{self.pattern[loop, layer, head, -1].max():.2f} (evenly it would be "
            f"{self.uniform[-1, 0]:.2f}; n={self.n})"
        )

    def _sharpness(self) -> Float[Tensor, "loop layer head"]:
        return self.pattern[..., -1, :].amax(-1)


@analysis(given=("n_loops",))
@torch.no_grad()
def attention(
    model: CanLoop, batch: Batch, *, n_loops: int | None = None
) -> Attention | GraphAttention:
    """Compute the attention patterns of the looped blocks in each loop; for graphs, along edges.

    Args:
        model: The model; hooks that are active on it apply.
        batch: Questions; padding positions of shorter questions are ignored.
        n_loops: Loops to run; by default as many as the model was trained with.

    Raises:
        ValueError: The model's blocks have no attention.
    """
    if "blocks.0.attn.hook_pattern" not in model.hook_dict:
        raise ValueError(f"the blocks of family {model.cfg.family} have no attention to look at")
    if isinstance(batch, GraphBatch):
        return graph_attention(model, batch, n_loops)
    places = [f"blocks.{layer}.attn.hook_pattern" for layer in range(model.cfg.n_layers)]
    _, cache = model.run_with_cache(**batch.inputs, n_loops=n_loops, names_filter=places)
    patterns = torch.stack([cache[place].float() for place in places], dim=1)
    padding = torch.arange(patterns.shape[-1], device=patterns.device) >= batch.length[:, None]
    patterns = patterns.masked_fill(padding[:, None, :, None], torch.nan)
    mean = patterns.nanmean(2, keepdim=True)
    n_pos = patterns.shape[-1]
    seen = torch.ones(n_pos, n_pos)
    if model.cfg.perception == "causal":
        seen = seen.tril()
    uniform = seen / seen.sum(1, keepdim=True)
    words = (
        model.to_str_tokens(batch.tokens[0])
        if len(batch) == 1 and model.tokenizer is not None
        else [""] * n_pos
    )
    return Attention(
        pattern=mean[:, :, 0].cpu(),
        sd=(patterns - mean).pow(2).nanmean(2).sqrt().cpu(),
        uniform=uniform,
        labels=tuple(label.strip() for label in position_labels(words)),
        n=len(batch),
    )
