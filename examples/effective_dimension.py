"""How many dimensions do the states of a batch fill, loop by loop?

workbench --plugin examples/effective_dimension.py analyse effective_dimension RUN
"""

from dataclasses import dataclass

import pandas as pd
import plotly.express as px
import plotly.graph_objects as go
import torch
from jaxtyping import Float
from torch import Tensor

from analyses import Result, analysis
from analyses.kit.labels import loop_labels
from analyses.kit.tidy import tidy
from workbench.capabilities import CanLoop
from workbench.tasks.batch import Batch

STATE = "recurrence.hook_state_post"


@dataclass(frozen=True, eq=False)
class EffectiveDimension(Result):
    """Participation ratio (Σλ)² / Σλ² of the states' covariance, where answers are read."""

    ratio: Float[Tensor, "model loop"]
    """Of the model and of an untrained twin, the control."""
    n: int

    def to_frame(self) -> pd.DataFrame:
        """One row for each model and loop."""
        axes = {"model": ("trained", "untrained"), "state": loop_labels(self.ratio.shape[1])}
        return tidy({"dimension": self.ratio}, axes, n=self.n)

    def figure(self) -> go.Figure:
        """A line for each model."""
        title = f"Effective dimension of {self.n} states"
        return px.line(self.to_frame(), x="state", y="dimension", color="model", title=title)

    def summary(self) -> str:
        """The model and its twin, after the last loop."""
        trained, untrained = self.ratio[:, -1].tolist()
        return f"{trained:.1f} dimensions at the end (untrained {untrained:.1f}; n={self.n})"


@analysis(given=("n_loops",))
@torch.no_grad()
def effective_dimension(
    model: CanLoop, batch: Batch, *, n_loops: int | None = None
) -> EffectiveDimension:
    """Measure the states of each loop, and those of an untrained twin."""
    found = []
    for each in (model, model.untrained()):
        _, cache = each.run_with_cache(**batch.inputs, n_loops=n_loops, names_filter=STATE)
        read = cache[STATE][:, torch.arange(len(batch)), batch.read_at]  # [loop batch d_model]
        variance = torch.linalg.svdvals(read - read.mean(1, keepdim=True)) ** 2
        found.append(variance.sum(-1) ** 2 / (variance**2).sum(-1))
    return EffectiveDimension(torch.stack(found).cpu(), len(batch))
