"""What does each loop predict at each position? The readout of the state after every loop."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor

from analyses.kit.declare import analysis
from analyses.kit.labels import literal, loop_labels, position_labels, visible
from analyses.kit.result import Result
from analyses.kit.spread import bootstrap
from workbench.capabilities import CanDecode
from workbench.tasks.batch import Batch

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

STATE_IN = "recurrence.hook_state_in"
STATE = "recurrence.hook_state_post"


@dataclass(frozen=True, eq=False)
class LogitLens(Result):
    """Decoded tokens and probabilities; row 0 is the input, row r + 1 the state after loop r.

    The model's final norm normalises every row by the row's own statistics. The last row equals the
    model's output.
    """

    token: Int[Tensor, "batch row pos top"]
    """Likeliest tokens, the likeliest first."""
    probability: Float[Tensor, "batch row pos top"]
    answer_probability: Float[Tensor, "batch row pos"]
    """NaN at padding."""
    bridge_probability: Float[Tensor, "batch row pos hop"]
    """NaN where a row has no such bridge, and at padding."""
    entropy: Float[Tensor, "batch row pos"]
    """Entropy of the decoded distribution, in nats."""
    control_answer: Float[Tensor, "row pos"]
    """Mean probability of the answer in the logit lens of an untrained twin."""
    control_bridge: Float[Tensor, "row pos"]
    """Mean probability of the bridges in the logit lens of an untrained twin."""
    answer_at: Int[Tensor, " batch"]
    words: tuple[str, ...]
    questions: tuple[tuple[str, ...], ...]
    answer: Int[Tensor, " batch"]
    bridge: Int[Tensor, "batch hop"]
    """−1 where a row has no such bridge."""

    @property
    def rows(self) -> list[str]:
        """Labels of the rows."""
        return loop_labels(self.token.shape[1] - 1, with_input=True)

    @property
    def said(self) -> list[tuple[str, float]]:
        """The model's answer to each question, and its probability."""
        rows = torch.arange(len(self.answer_at))
        tokens, shares = (t[rows, -1, self.answer_at, 0] for t in (self.token, self.probability))
        return [(self.words[t], p) for t, p in zip(tokens.tolist(), shares.tolist(), strict=True)]

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        found = []
        for example, words in enumerate(self.questions):
            for row, label in enumerate(self.rows):
                for pos, word in enumerate(words):
                    at = (example, row, pos)
                    found.append(
                        {
                            "question": " ".join(words),
                            "state": label,
                            "position": pos,
                            "word": word,
                            "decoded": self.words[int(self.token[at][0])],
                            "probability": float(self.probability[at][0]),
                            "answer_probability": float(self.answer_probability[at]),
                            "bridge_probability": float(self.bridge_probability[at].nansum())
                            if self.bridge_probability[at].isfinite().any()
                            else float("nan"),
                            "entropy": float(self.entropy[at]),
                        }
                    )
        return pd.DataFrame(found)

    def figure(self) -> "go.Figure":
        return self._figure_of_one() if len(self.questions) == 1 else self._figure_of_many()

    def _figure_of_one(self) -> "go.Figure":
        """Draw the grid of decoded words for one question."""
        import plotly.graph_objects as go

        from analyses.kit.style import styled

        words = self.questions[0]
        top = self.probability[0, :, : len(words), 0]
        text = [
            [self.words[int(self.token[0, row, pos, 0])] for pos in range(len(words))]
            for row in range(len(self.rows))
        ]
        hover = [[self._hover(row, pos) for pos in range(len(words))] for row in range(len(text))]
        shown = [
            [f"{literal(text[r][p])}<br>{top[r, p]:.2f}" for p in range(len(words))]
            for r in range(len(self.rows))
        ]
        figure = go.Figure(
            go.Heatmap(
                z=top.tolist(),
                text=shown,
                texttemplate="%{text}",
                customdata=hover,
                hovertemplate="%{customdata}<extra></extra>",
                colorscale="Blues",
                zmin=0,
                zmax=1,
                colorbar={"title": "probability"},
            )
        )
        figure.update_xaxes(
            tickvals=list(range(len(words))),
            ticktext=[literal(label) for label in position_labels(words)],
            title="position",
        )
        figure.update_yaxes(tickvals=list(range(len(self.rows))), ticktext=self.rows)
        figure.update_yaxes(autorange="reversed")
        self._frame_known(figure, len(words))
        title = f"What each loop predicts: {literal(' '.join(words))}"
        return styled(figure, title, height=200 + 74 * len(self.rows))

    def _hover(self, row: int, pos: int) -> str:
        """Return the hover text of one cell: its decoded words and their probabilities."""
        found = zip(self.token[0, row, pos], self.probability[0, row, pos], strict=True)
        return "<br>".join(f"{literal(self.words[int(t)])} {float(p):.3f}" for t, p in found)

    def _frame_known(self, figure: "go.Figure", n_pos: int) -> None:
        """Frame the cells that decode to a bridge or to the answer."""
        from analyses.kit.style import legend_line

        known = {"answer": ([int(self.answer[0])], "#D55E00", "solid")}
        if bool((self.bridge[0] >= 0).any()):
            known = {"bridge": (self.bridge[0].tolist(), "#E69F00", "dot")} | known
        for name, (tokens, colour, dash) in known.items():
            line = {"color": colour, "width": 4, "dash": dash}
            for row in range(len(self.rows)):
                for pos in range(n_pos):
                    if int(self.token[0, row, pos, 0]) in tokens:
                        x0, x1, y0, y1 = pos - 0.48, pos + 0.48, row - 0.46, row + 0.46
                        figure.add_shape(x0=x0, x1=x1, y0=y0, y1=y1, line=line)
            legend_line(figure, f"decodes to the {name}", dash, colour, width=4)

    def _figure_of_many(self) -> "go.Figure":
        """Draw mean probability of bridge and answer by row and position, and of the twin."""
        import plotly.graph_objects as go
        from plotly.subplots import make_subplots

        from analyses.kit.style import styled

        bridge = self.bridge_probability.nansum(3)
        bridge = bridge.where(self.bridge_probability.isfinite().any(3), torch.nan)
        found = {"bridge": bridge, "answer": self.answer_probability}
        spread = {name: bootstrap(values.movedim(0, -1)) for name, values in found.items()}
        panels: dict[str, tuple[Tensor, ...]] = {
            **spread,
            "bridge, untrained twin": (self.control_bridge,),
            "answer, untrained twin": (self.control_answer,),
        }
        space = {"vertical_spacing": 0.16, "horizontal_spacing": 0.05}
        figure = make_subplots(2, 2, subplot_titles=list(panels), shared_yaxes=True, **space)
        for number, (mean, *ends) in enumerate(panels.values()):
            heat = go.Heatmap(
                z=mean.tolist(),
                x=[f"position {pos}" for pos in range(mean.shape[1])],
                y=self.rows,
                text=_intervals(*ends) if ends else None,
                texttemplate="%{z:.2f}<br>%{text}" if ends else "%{z:.2f}",
                coloraxis="coloraxis",
                zhoverformat=".3f",
            )
            figure.add_trace(heat, row=number // 2 + 1, col=number % 2 + 1)
        figure.update_yaxes(autorange="reversed")
        figure.update_layout(
            coloraxis={"colorscale": "Blues", "cmin": 0, "cmax": 1, "colorbar_title": "probability"}
        )
        title = f"Logit lens after each loop, mean of {len(self.questions)} questions"
        return styled(figure, title, height=560)

    def summary(self) -> str:
        last = self.answer_probability.shape[1] - 1
        rows = torch.arange(len(self.answer_at))
        answer = self.answer_probability[rows, last, self.answer_at]
        mean, low, high = bootstrap(answer)
        interval = f" [{low:.3f}, {high:.3f}]" if len(rows) > 1 else ""
        parts = [f"P(answer) after loop {last} is {mean:.3f}{interval}"]
        if bool(self.bridge_probability.isfinite().any()) and last:
            bridge = self.bridge_probability[:, 1].nanmean(0).nan_to_num().amax()
            parts.append(f"P(bridge) after loop 1 is {bridge:.3f} at its best position")
        untrained = self.control_answer.nan_to_num().max()
        return f"{'; '.join(parts)} (n={len(rows)}; untrained at most {untrained:.3f})"


@analysis(given=("n_loops",))
@torch.no_grad()
def logit_lens(
    model: CanDecode, batch: Batch, *, n_loops: int | None = None, top: int = 5
) -> LogitLens:
    """Decode the state after every loop at every position.

    Args:
        model: The model; hooks that are active on it apply.
        batch: The questions.
        n_loops: Loops to run; by default as many as the model was trained with.
        top: Number of decoded tokens to keep; at most the size of the vocabulary.

    Raises:
        ValueError: The model answers yes or no.
        RuntimeError: The readout of the last state differs from the model's output, so the lens
            would not show the model's predictions.
    """
    model.check_vocabulary()
    probabilities = _decoded(model, batch, n_loops, check=True)  # [batch row pos token]
    twin = model.untrained()
    control = _decoded(twin, batch, n_loops, check=False)
    answer, bridge = _of(probabilities, batch)
    control_answer, control_bridge = _of(control, batch)
    best = probabilities.topk(min(top, probabilities.shape[-1]), dim=-1)
    words = _vocabulary(model)
    return LogitLens(
        token=best.indices.cpu(),
        probability=best.values.cpu(),
        answer_probability=answer.cpu(),
        bridge_probability=bridge.cpu(),
        entropy=torch.special.entr(probabilities.cpu()).sum(-1),
        control_answer=control_answer.nanmean(0).cpu(),
        control_bridge=control_bridge.nanmean(3).nanmean(0).cpu(),
        answer_at=batch.read_at.cpu(),
        words=words,
        questions=tuple(
            tuple(words[token] for token in tokens[:length])
            for tokens, length in zip(batch.tokens.tolist(), batch.length.tolist(), strict=True)
        ),
        answer=batch.answer.cpu(),
        bridge=batch.bridge.cpu(),
    )


def _decoded(
    model: CanDecode, batch: Batch, n_loops: int | None, check: bool
) -> Float[Tensor, "batch row pos d_vocab"]:
    """Decode the input and each state to token probabilities."""
    logits, cache = model.run_with_cache(
        **batch.inputs, n_loops=n_loops, names_filter=[STATE_IN, STATE]
    )
    states = [cache[STATE_IN][0], *cache[STATE]]
    read = torch.stack([model.readout(state, **batch.inputs) for state in states], dim=1)
    if check and not torch.allclose(read[:, -1], logits, rtol=1e-4, atol=1e-4):
        raise RuntimeError(
            "the readout of the last state is not the model's output; is a hook open on ln_final?"
        )
    return read.float().softmax(-1)


def _of(probabilities: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """Select the probabilities of answer [batch row pos] and bridges [batch row pos hop].

    They are NaN at padding, and for absent bridges.
    """
    shape = probabilities.shape[:3]
    answer = batch.answer[:, None, None, None].expand(*shape, 1)
    bridge = batch.bridge.clamp(min=0)[:, None, None].expand(*shape, -1)
    pad = batch.is_pad[:, None, :, None]
    absent = (batch.bridge < 0)[:, None, None] | pad
    found = probabilities.gather(3, bridge).masked_fill(absent, torch.nan)
    return probabilities.gather(3, answer).masked_fill(pad, torch.nan)[..., 0], found


def _intervals(low: Float[Tensor, "row pos"], high: Float[Tensor, "row pos"]) -> list[list[str]]:
    """Format the ends of each cell's 95 % interval as text."""
    return [
        [f"[{float(a):.2f}, {float(b):.2f}]" for a, b in zip(lows, highs, strict=True)]
        for lows, highs in zip(low, high, strict=True)
    ]


def _vocabulary(model: CanDecode) -> tuple[str, ...]:
    if model.tokenizer is None:
        return tuple(str(token) for token in range(model.cfg.d_vocab))
    return tuple(map(visible, model.tokenizer.words))
