"""Does the gradient reach the first loop, with or without a gate, gate bias and LayerScale?"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from analyses.kit.declare import analysis
from analyses.kit.labels import loop_label
from analyses.kit.result import Result
from analyses.kit.spread import bootstrap
from analyses.kit.tidy import tidy
from workbench.capabilities import CanLoop
from workbench.instruments import GradientByLoop
from workbench.kinds import depth_model
from workbench.models import family, model_config
from workbench.models.fresh import fresh
from workbench.settings.config import ModelConfig
from workbench.tasks.batch import Batch

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

GATES: dict[str, dict[str, Any]] = {
    "gate, b = −2": {"family": "depth_recurrent", "gate_bias": -2.0},
    "gate, b = 0": {"family": "depth_recurrent", "gate_bias": 0.0},
    "no gate": {"family": "universal"},
}
SCALES = {"": None, ", LayerScale 1e-4": 1e-4}
# Share of the largest gradient below which the last loop's counts as none (e.g. all have halted)
FAINT = 1e-6
KINDS = {
    gate + scale: changes | {"layer_scale": factor}
    for scale, factor in SCALES.items()
    for gate, changes in GATES.items()
}


@dataclass(frozen=True, eq=False)
class GradientHighway(Result):
    """Norm of the loss's gradient at each loop's state, relative to that at the last loop's.

    The models are freshly initialised and share one shape, with several seeds of each kind. The
    control is the kind without gate and LayerScale. The model itself is drawn beside them. A flat
    curve at 1 is a gradient highway: the loops leave the gradient's norm unchanged. Dropout is off.
    """

    share: Float[Tensor, "kind loop"]
    """Geometric mean over seeds."""
    low: Float[Tensor, "kind loop"]
    high: Float[Tensor, "kind loop"]
    norm: Float[Tensor, "kind loop"]
    """Absolute norms, geometric mean over seeds."""
    trained: Float[Tensor, " loop"]
    trained_norm: Float[Tensor, " loop"]
    kinds: tuple[str, ...]
    family: str
    n: int
    n_seeds: int

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        state = [loop_label(loop) for loop in range(self.share.shape[1])]
        columns = {"share": self.share, "low": self.low, "high": self.high, "norm": self.norm}
        fresh = tidy(columns, {"kind": self.kinds, "state": state}, n=self.n_seeds)
        own = {"share": self.trained[None], "norm": self.trained_norm[None]}
        return pd.concat(
            [fresh, tidy(own, {"kind": ["this model"], "state": state}, n=1)], ignore_index=True
        )

    def figure(self) -> "go.Figure":
        import plotly.graph_objects as go

        from analyses.kit.style import COLOURS, CONTROL, INK, LOG_TICKS, band, styled

        figure = go.Figure()
        loops = list(range(1, self.share.shape[1] + 1))
        colours = [COLOURS[0], COLOURS[1], COLOURS[2]]
        for i, kind in enumerate(self.kinds):
            colour, dash = colours[i % len(GATES)], "solid" if i < len(GATES) else "dash"
            figure.add_trace(band(loops, self.low[i].tolist(), self.high[i].tolist(), colour))
            line = {"color": colour, "dash": dash, "width": 3}
            figure.add_scatter(x=loops, y=self.share[i].tolist(), name=kind, line=line)
        name = f"this model ({self.family})"
        line = {"color": INK, "width": 4}
        figure.add_scatter(x=loops, y=self.trained.tolist(), name=name, line=line)
        figure.add_hline(y=1, line={"dash": "dot", "color": CONTROL})
        name = "gradient, relative to the last loop's"
        figure.update_yaxes(**LOG_TICKS, title=name)
        figure.update_xaxes(title="at the state after loop", dtick=max(1, len(loops) // 10))
        title = f"Does the gradient reach the first loop? Fresh models, {self.n_seeds} seeds each"
        return styled(figure, title, height=500)

    def summary(self) -> str:
        parts = [
            f"{kind} {self.share[i, 0]:.3g} [{self.low[i, 0]:.3g}, {self.high[i, 0]:.3g}]"
            for i, kind in enumerate(self.kinds)
        ]
        known = bool(self.trained[0].isfinite())
        own = f"{self.trained[0]:.3g}" if known else "none, for its last loop gets no gradient"
        return (
            f"gradient after loop 1 relative to loop {self.share.shape[1]}: {'; '.join(parts)}; "
            f"this model {own} ({self.n_seeds} seeds; n={self.n})"
        )


@analysis(given=("n_loops",))
def gradient_highway(
    model: CanLoop, batch: Batch, *, n_loops: int | None = None, n_seeds: int = 5
) -> GradientHighway:
    """Measure the gradient norm by loop for the model and for fresh models of its shape.

    Args:
        model: The model; hooks that are active on it do not apply to the fresh models.
        batch: Questions; the loss is that of the last loop's output.
        n_loops: Loops to run; by default the model's default number.
        n_seeds: Number of fresh models of each kind.

    Raises:
        ValueError: There is only one loop, or fewer than two seeds.
    """
    loops = model.n_loops if n_loops is None else n_loops
    if loops < 2:
        raise ValueError("a gradient by loop needs two loops; this model runs one loop")
    if n_seeds < 2:
        raise ValueError(f"n_seeds={n_seeds} must be at least 2, or there is no interval")
    norms = torch.stack(
        [
            torch.stack([_norms(_fresh(model, of, loops, s), batch, loops) for s in range(n_seeds)])
            for of in KINDS.values()
        ]
    ).log()  # [kind seed loop]
    share = (norms - norms[..., -1:]).transpose(1, 2)  # [kind loop seed]
    mean, low, high = (ends.exp() for ends in bootstrap(share))
    own = _norms(model, batch, loops)
    return GradientHighway(
        share=mean,
        low=low,
        high=high,
        norm=norms.mean(1).exp(),
        trained=(own / own[-1]).where(own[-1] > FAINT * own.max(), torch.nan),
        trained_norm=own,
        kinds=tuple(KINDS),
        family=model.cfg.family,
        n=len(batch),
        n_seeds=n_seeds,
    )


def _fresh(model: CanLoop, changes: dict[str, Any], loops: int, seed: int) -> CanLoop:
    """Build an untrained model of the same shape, except for these config changes."""
    shape = {name: getattr(model.cfg, name) for name in ModelConfig.model_fields}
    cfg = model_config(shape | changes | {"n_loops": loops, "max_loops": loops})
    made = fresh(lambda: family(cfg.family)(cfg), seed).to(model.device).eval()
    return depth_model(made)


def _norms(model: CanLoop, batch: Batch, n_loops: int) -> Float[Tensor, " loop"]:
    """Compute the norm of the loss's gradient at each loop's state; leave parameters' `.grad`."""
    gradient = GradientByLoop()
    with torch.enable_grad(), gradient.watch(model):
        logits = model(**batch.inputs, n_loops=n_loops, logits_at=batch.read_at)
        torch.autograd.grad(F.cross_entropy(logits.float(), batch.answer), depth_model(model).W_E)
    return torch.tensor(gradient.norms).clamp(min=1e-30)
