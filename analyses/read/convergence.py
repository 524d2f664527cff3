"""Do the states converge? Step sizes, distance to the last state, and the loop's Jacobian."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from analyses.kit.declare import analysis
from analyses.kit.labels import loop_label
from analyses.kit.parts import in_parts, most_loops
from analyses.kit.result import Result
from analyses.kit.spread import bootstrap
from workbench.capabilities import CanIterate
from workbench.hooks import is_heard
from workbench.tasks.batch import Batch

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

STATE = "recurrence.hook_state_post"
TURNS = 80  # power iterations
COUNTED = 40  # the radius is the mean growth of the last ones: complex pairs make single ones swing
SETTLED = 0.01  # a state has settled when a step is a smaller share of it than this


@dataclass(frozen=True, eq=False)
class Convergence(Result):
    """Distances between states and spectral radius of the loop's Jacobian, mean over questions.

    Distances are relative and cover all non-padding positions of a question. The state after the
    last loop run serves as the fixed point. A radius below 1 means that the loop, with its loop
    embedding held fixed, contracts nearby states. The control is an untrained twin.
    """

    step: Float[Tensor, "end loop"]
    """‖s[r] − s[r−1]‖ / ‖s[r−1]‖ for all loops but the first; ends: mean, low, high."""
    to_last: Float[Tensor, "end loop"]
    """‖s[r] − s[last]‖ / ‖s[last]‖ for all loops but the last."""
    radius: Float[Tensor, "end at"]
    step_untrained: Float[Tensor, "end loop"]
    to_last_untrained: Float[Tensor, "end loop"]
    radius_untrained: Float[Tensor, "end at"]
    at: tuple[int, ...]
    """Loops, from 0, whose Jacobian is taken: at their output, with their own loop embedding."""
    n: int
    n_radius: int
    n_default: int
    """Loops that the model runs by default."""

    @property
    def settled(self) -> int | None:
        """First loop, numbered from 0, that changes the state by less than 1 %."""
        small = (self.step[0] < SETTLED).nonzero()
        return int(small[0]) + 1 if len(small) else None

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        rows = []
        for measure, found, untrained, loops in self._measures():
            for i, loop in enumerate(loops):
                mean, low, high = found[:, i].tolist()
                rows.append(
                    {
                        "measure": measure,
                        "state": loop_label(loop),
                        "mean": mean,
                        "low": low,
                        "high": high,
                        "untrained": float(untrained[0, i]),
                        "n": self.n_radius if measure == "spectral radius" else self.n,
                    }
                )
        return pd.DataFrame(rows)

    def _measures(self) -> list[tuple[str, Tensor, Tensor, list[int]]]:
        n_steps = self.step.shape[1]
        return [
            ("step from the loop before", self.step, self.step_untrained, [*range(1, n_steps + 1)]),
            ("distance to the last state", self.to_last, self.to_last_untrained, [*range(n_steps)]),
            ("spectral radius", self.radius, self.radius_untrained, list(self.at)),
        ]

    def figure(self) -> "go.Figure":
        from plotly.subplots import make_subplots

        from analyses.kit.style import COLOURS, CONTROL, LOG_TICKS, band, styled

        titles = [measure for measure, *_ in self._measures()]
        figure = make_subplots(1, 3, subplot_titles=titles, horizontal_spacing=0.07)
        for column, (_, found, untrained, loops) in enumerate(self._measures(), 1):
            shown = [loop + 1 for loop in loops]
            pair = ((untrained, "untrained twin", CONTROL), (found, "trained", COLOURS[0]))
            for values, name, colour in pair:
                mean, low, high = values.tolist()
                at = {"row": 1, "col": column}
                trace: dict[str, Any] = {"x": shown, "y": mean, "name": name}
                if column == 3:  # markers without a line: the loops between are not measured
                    ends = {
                        "array": (values[2] - values[0]).tolist(),
                        "arrayminus": (values[0] - values[1]).tolist(),
                    }
                    trace |= {"mode": "markers", "marker": {"color": colour, "size": 10}}
                    trace |= {"error_y": ends | {"type": "data"}, "showlegend": False}
                else:
                    figure.add_trace(band(shown, low, high, colour), **at)
                    trace |= {"mode": "lines+markers", "line": {"color": colour, "width": 3}}
                    trace |= {"showlegend": column == 1}
                figure.add_scatter(**trace, **at)
            if column < 3:
                figure.update_yaxes(**LOG_TICKS, row=1, col=column)
        figure.add_vline(x=self.n_default, line={"dash": "dash", "color": CONTROL})
        figure.add_hline(y=1, line={"dash": "dot", "color": CONTROL}, row=1, col=3)
        figure.update_xaxes(title="after loop", dtick=max(1, self.step.shape[1] // 5))
        figure.update_yaxes(rangemode="tozero", row=1, col=3)
        title = f"Do the states settle? {self.step.shape[1] + 1} loops; dashed: loops by default"
        return styled(figure, title)

    def summary(self) -> str:
        mean, low, high = self.radius[:, -1].tolist()
        n_loops = self.step.shape[1] + 1
        when = "in none" if self.settled is None else f"first in loop {self.settled + 1}"
        return (
            f"a loop changes the state by less than {SETTLED:.0%} {when} of {n_loops}; the last by "
            f"{self.step[0, -1]:.3f}; spectral radius after loop {self.at[-1] + 1} {mean:.3f} "
            f"[{low:.3f}, {high:.3f}] (untrained {self.radius_untrained[0, -1]:.3f}; n={self.n}, "
            f"radius {self.n_radius})"
        )


@analysis(given=("n_loops",))
def convergence(
    model: CanIterate,
    batch: Batch,
    *,
    n_loops: int | None = None,
    radius_rows: int = 64,
    at: list[int] | None = None,
) -> Convergence:
    """Measure how far states move in each loop, and whether the loop contracts around them.

    Args:
        model: A looped model without halting; hooks that are active on it apply.
        batch: The questions.
        n_loops: Loops to run; by default as many as the loop embedding has, or three times the
            model's default.
        radius_rows: Number of questions for the spectral radius; all of them if hooks are active.
        at: Loops, numbered from 0, whose output states the Jacobian is taken at; by default the
            first loop, the model's last default loop, and the last loop run. Each Jacobian uses
            the loop's own loop embedding.

    Raises:
        ValueError: There is only one loop, a loop in `at` is not run, or the model halts.
    """
    loops = most_loops(model, 3.0) if n_loops is None else n_loops
    places = _looked_at(model, loops, at)
    heard = is_heard(*model.hook_points())  # an edit may target certain rows, so it needs them all
    few = batch if heard else batch[:radius_rows].trimmed()
    found = []
    for each in (model, model.untrained()):
        step, to_last = _distances(each, batch, loops)
        radius = _radii(each, few, loops, places)
        found += [torch.stack(bootstrap(values)) for values in (step, to_last, radius)]
    names = ("step", "to_last", "radius")
    every = [*names, *(f"{name}_untrained" for name in names)]
    numbers: dict[str, Any] = dict(zip(every, found, strict=True))
    rows: dict[str, Any] = {"n": len(batch), "n_radius": len(few), "n_default": model.n_loops}
    return Convergence(**numbers, at=tuple(places), **rows)


def _looked_at(model: CanIterate, n_loops: int, at: list[int] | None) -> list[int]:
    """Return the loops whose Jacobian is taken.

    Raises:
        ValueError: There is only one loop, or one of these loops is not run.
    """
    if n_loops < 2:
        raise ValueError("distances between loops need two; this model runs one loop")
    places = sorted({0, min(model.n_loops, n_loops) - 1, n_loops - 1}) if at is None else at
    for loop in places:
        if not 0 <= loop < n_loops:
            raise ValueError(f"at={loop} is no loop of this run; they go from 0 to {n_loops - 1}")
    return places


@torch.no_grad()
def _distances(
    model: CanIterate, batch: Batch, n_loops: int
) -> tuple[Float[Tensor, "step batch"], Float[Tensor, "step batch"]]:
    """Return each loop's step relative to the state before it, and the distance to the last state.

    The distance is relative to the last state.
    """
    steps, rests = [], []
    for rows in in_parts(model, batch, 256):
        _, cache = model.run_with_cache(**rows.inputs, n_loops=n_loops, names_filter=STATE)
        states = cache[STATE].float().masked_fill(rows.is_pad[..., None], 0.0).flatten(2)
        size = states.norm(dim=-1)  # [loop batch]
        steps.append((states[1:] - states[:-1]).norm(dim=-1) / size[:-1])
        rests.append((states[:-1] - states[-1]).norm(dim=-1) / size[-1])
    return torch.cat(steps, dim=1).cpu(), torch.cat(rests, dim=1).cpu()


def _radii(
    model: CanIterate, batch: Batch, n_loops: int, at: list[int]
) -> Float[Tensor, "at batch"]:
    """Compute the spectral radius of each row's Jacobian at the output states of some loops."""
    with torch.no_grad():
        _, cache = model.run_with_cache(**batch.inputs, n_loops=n_loops, names_filter=STATE)
    return torch.stack([spectral_radius(model, batch, cache[STATE][loop], loop) for loop in at])


def spectral_radius(
    model: CanIterate, batch: Batch, state: Float[Tensor, "batch pos d_model"], loop: int
) -> Float[Tensor, " batch"]:
    """Compute the largest absolute eigenvalue of the loop's Jacobian per row, by power iteration.

    Rows are independent, so one vector-Jacobian product serves all rows. Products use the
    transpose, which has the same eigenvalues: they need one forward pass in all and one backward
    pass per iteration.
    """
    with torch.enable_grad():
        state = state.detach().requires_grad_()
        said = model.iterate(state, loop, **batch.inputs)
        draw = torch.Generator().manual_seed(0)
        vector = torch.randn(state.shape, generator=draw).to(state)
        vector = vector.masked_fill(batch.is_pad[..., None], 0.0)
        growth = []
        for _ in range(TURNS):
            size = vector.flatten(1).norm(dim=1).clamp(min=1e-30)
            vector = vector / size[:, None, None]
            (vector,) = torch.autograd.grad(said, state, vector, retain_graph=True)
            growth.append(vector.flatten(1).norm(dim=1).clamp(min=1e-30).log())
    return torch.stack(growth[-COUNTED:]).mean(0).exp().detach().cpu()
