"""How much does the state after pass k still resemble the state after the first pass?

A cosine of 1 means that two states point in the same direction. It does not measure information: a
state may rotate and lose nothing, or stay close while its decoded output changes. States of
transformers share directions across all questions, so even states of different questions have
cosines well above 0. Compare the curve with the control, which is the cosine of pass k of one
question with the first pass of another. Only the part above the control is specific to the
question. Even that part may come from the architecture, so the curve of an untrained twin, which
remembers nothing useful, is shown too. `ablation` measures whether answers depend on what is kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from analyses.kit.declare import Example, analysis
from analyses.kit.result import Result
from analyses.kit.spread import bootstrap
from analyses.read.thought_states import STATE, STREAM, THOUGHT, thought_states
from workbench.capabilities import CanThink
from workbench.tasks.worded.rows import WordedBatch

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

NAMES = {STATE: "raw state h", THOUGHT: "gated state h'", STREAM: "stream c"}


@dataclass(frozen=True, eq=False)
class MemoryRetention(Result):
    """Cosine of pass k with the first pass, within a question and between questions.

    The axis `kind` is what is compared: state, gated state or stream. The axis `ends` holds the
    mean and the low and high end of the mean's 95 % interval over questions.
    """

    same: Float[Tensor, "kind ends thought"]
    """Pass k with the first pass of the same question."""
    same_sd: Float[Tensor, "kind thought"]
    """Standard deviation between questions."""
    other: Float[Tensor, "kind ends thought"]
    """The control: pass k of one question with the first pass of each other question."""
    other_sd: Float[Tensor, "kind thought"]
    """Standard deviation over questions of their mean cosine with all others."""
    above: Float[Tensor, "kind ends thought"]
    """`same` minus `other`, paired by question."""
    untrained: Float[Tensor, "kind thought"]
    """Mean of `same` in a model of the same shape with fresh weights."""
    kinds: tuple[str, ...]
    n: Int[Tensor, " thought"]
    """Number of questions that have such a thought; the others are ignored."""
    centred: bool
    """Whether the mean state of each pass was subtracted first."""

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        rows = []
        for i, kind in enumerate(self.kinds):
            for thought in range(self.same.shape[2]):
                row: dict[str, object] = {"kind": kind, "thought": thought + 1}
                for name in ("same", "other", "above"):
                    ends = getattr(self, name)[i, :, thought].tolist()
                    row |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
                row["same_sd"] = float(self.same_sd[i, thought])
                row["other_sd"] = float(self.other_sd[i, thought])
                row["untrained"] = float(self.untrained[i, thought])
                rows.append(row | {"centred": self.centred, "n": int(self.n[thought])})
        return pd.DataFrame(rows)

    def figure(self) -> "go.Figure":
        from plotly.subplots import make_subplots

        from analyses.kit.style import CONTROL, legend_line, styled

        figure = make_subplots(
            1, len(self.kinds), subplot_titles=list(self.kinds), shared_yaxes=True
        )
        for column, kind in enumerate(range(len(self.kinds)), 1):
            for trace in self._traces(kind):
                figure.add_trace(trace, row=1, col=column)
        legend_line(figure, "control: first pass of another question", "dash", CONTROL)
        legend_line(figure, "untrained twin", "dot", CONTROL)
        figure.add_hline(y=0, line={"color": CONTROL, "width": 1})
        figure.update_xaxes(title="after pass", dtick=max(1, self.same.shape[2] // 8))
        figure.update_yaxes(title="cosine with the first pass", col=1)
        of = "centred states" if self.centred else "states"
        title = f"Do {of} stay like the first? band: ± sd over questions; bars: 95 % of the mean"
        return styled(figure, title, 440)

    def _traces(self, kind: int) -> "Iterator[go.Scatter]":
        """Yield the traces of mean, interval and spread by pass, those of the controls first."""
        import plotly.graph_objects as go

        from analyses.kit.style import COLOURS, CONTROL, band

        passes = [thought + 1 for thought in range(self.same.shape[2])]
        line = {"color": CONTROL, "dash": "dot"}
        twin = self.untrained[kind].tolist()
        yield go.Scatter(x=passes, y=twin, mode="lines", line=line, showlegend=False)
        pairs = (
            (self.other[kind], self.other_sd[kind], CONTROL, "dash", "another question"),
            (self.same[kind], self.same_sd[kind], COLOURS[kind], "solid", self.kinds[kind]),
        )
        for ends, sd, colour, dash, name in pairs:
            mean, low, high = ends
            if not bool(mean.isfinite().any()):
                continue
            yield band(passes, (mean - sd).tolist(), (mean + sd).tolist(), colour)
            bars = {"array": (high - mean).tolist(), "arrayminus": (mean - low).tolist()}
            yield go.Scatter(
                x=passes,
                y=mean.tolist(),
                name=name,
                mode="lines+markers",
                line={"color": colour, "dash": dash},
                error_y=bars | {"type": "data"},
                showlegend=colour != CONTROL,
            )

    def summary(self) -> str:
        last = self.same.shape[2] - 1
        of = "cosine of centred states" if self.centred else "cosine"
        parts = []
        for i, kind in enumerate(self.kinds):
            mean, low, high = self.same[i, :, last].tolist()
            beside = f"untrained {self.untrained[i, last]:.3f}"
            if bool(self.other[i, 0, last].isfinite()):
                beside = f"another question {self.other[i, 0, last]:.3f}, {beside}"
            parts.append(f"{kind} {mean:.3f} [{low:.3f}, {high:.3f}] ({beside})")
        return f"{of} of pass {last + 1} with pass 1: {'; '.join(parts)}; n={int(self.n[last])}"


@analysis(example=Example(run="thoughts", n=4))
def memory_retention(
    model: CanThink, batch: WordedBatch, *, centred: bool = False
) -> MemoryRetention:
    """Compute the cosine of each pass's vectors with the first pass's, and with other questions'.

    Args:
        model: The model; hooks that are active on it apply first.
        batch: The questions; a single question has no control.
        centred: Subtract each pass's mean over questions before the cosines, which removes what all
            questions share; needs three questions or more. The control is then near
            −1 / (questions − 1), as for any vectors whose mean is subtracted.

    Raises:
        ValueError: No question has a thought, or there are too few to subtract their mean.
    """
    # CoCoNuT's thought is its state, so one curve is enough
    places = (STATE, THOUGHT, STREAM) if STREAM in model.hook_dict else (STATE,)
    found = thought_states(model, batch, places)
    n = found[STATE].isfinite().all(-1).sum(1)
    if centred and int(n[0]) < 3:
        raise ValueError(
            f"centred=true needs 3 questions or more that have thoughts; there are {int(n[0])}"
        )
    pairs = [cosines(found[place], centred) for place in places]
    fresh = thought_states(model.untrained(), batch, places)
    untrained = [cosines(fresh[place], centred)[0].nanmean(1) for place in places]
    same, other = (torch.stack(parts) for parts in zip(*pairs, strict=True))
    return MemoryRetention(
        same=torch.stack(bootstrap(same), dim=1),
        same_sd=_sd(same),
        other=torch.stack(bootstrap(other), dim=1),
        other_sd=_sd(other),
        above=torch.stack(bootstrap(same - other), dim=1),
        untrained=torch.stack(untrained),
        kinds=tuple(NAMES[place] for place in places),
        n=n,
        centred=centred,
    )


def cosines(
    states: Float[Tensor, "thought batch d_model"], centred: bool = False
) -> tuple[Float[Tensor, "thought batch"], Float[Tensor, "thought batch"]]:
    """Return each pass's cosine with the first pass of its row, and the mean over other rows'."""
    states = states.double()
    if centred:
        states = states - states.nanmean(1, keepdim=True)
    unit = F.normalize(states, dim=-1)
    first = unit[0]
    same = (unit * first).sum(-1)
    n_first = first.isfinite().all(-1).sum()
    # Every row with a later thought has the first one too, so it is among the `n_first` rows
    total = unit @ first.nan_to_num(0.0).sum(0)
    other = (total - same) / (n_first - 1) if n_first > 1 else torch.full_like(same, torch.nan)
    return same.float(), other.float()


def _sd(values: Float[Tensor, "kind thought batch"]) -> Float[Tensor, "kind thought"]:
    mean = values.nanmean(-1, keepdim=True)
    return (values - mean).pow(2).nanmean(-1).sqrt()
