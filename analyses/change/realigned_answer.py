"""What does the model answer when the bridge's state is moved by α towards an embedding?

The edit is that of `realignment`, applied to single questions. The result is what is decoded where
the answer is read, before and after, and the true answer's probability over α.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from analyses.change.realignment import ALPHAS, CONTROL_DASH, DASHES, NAMES, Target
from analyses.kit.declare import analysis
from analyses.kit.labels import literal, visible
from analyses.kit.result import Result
from workbench.capabilities import CanDecode
from workbench.edits import Realign
from workbench.tasks.batch import PAD, Batch

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

KNOWN: tuple[Target, ...] = ("decoded", "phi", "bridge")
CONTROL = "another word (control)"
OTHERS = 16  # words that a single question's control averages over


@dataclass(frozen=True, eq=False)
class RealignedAnswer(Result):
    """Probabilities where the answer is read, with and without realignment."""

    token: Int[Tensor, "batch top"]
    """The likeliest words before or after the edit, the likeliest first."""
    before: Float[Tensor, "batch top"]
    after: Float[Tensor, "batch top"]
    said_before: Int[Tensor, " batch"]
    said_after: Int[Tensor, " batch"]
    answer: Int[Tensor, " batch"]
    answer_before: Float[Tensor, " batch"]
    answer_after: Float[Tensor, " batch"]
    curve: Float[Tensor, "target share batch"]
    """Probability of the true answer over `alphas`: decoded word, Φ, true bridge."""
    control: Float[Tensor, "share batch"]
    """The same with the embedding of another word at equal norm, averaged over such words."""
    alphas: tuple[float, ...]
    alpha: float
    scale: str
    target: str
    words: tuple[str, ...]

    @property
    def said(self) -> list[dict[str, str | float]]:
        """Each question's true answer, its probability and the model's answer, before and after."""
        return [
            {
                "answer": self.words[int(self.answer[i])],
                "before": self.words[int(self.said_before[i])],
                "after": self.words[int(self.said_after[i])],
                "answer_before": float(self.answer_before[i]),
                "answer_after": float(self.answer_after[i]),
            }
            for i in range(len(self.answer))
        ]

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        rows = []
        for i, answer in enumerate(self.answer.tolist()):
            for values, target in zip(
                (*self.curve, self.control), (*KNOWN, "control"), strict=True
            ):
                for alpha, value in zip(self.alphas, values[:, i].tolist(), strict=True):
                    rows.append((i, target, alpha, self.words[answer], value))
            for token, before, after in zip(
                self.token[i].tolist(), self.before[i].tolist(), self.after[i].tolist(), strict=True
            ):
                rows.append((i, self.target, 0.0, self.words[token], before))
                rows.append((i, self.target, self.alpha, self.words[token], after))
        columns = ["question", "target", "alpha", "word", "probability"]
        return pd.DataFrame(rows, columns=columns).drop_duplicates(columns[:4])

    def figure(self) -> "go.Figure":
        from plotly.subplots import make_subplots

        from analyses.kit.style import CONTROL as GREY
        from analyses.kit.style import INK, styled

        titles = ["answers before and after", "probability of the true answer"]
        figure = make_subplots(
            1, 2, subplot_titles=titles, column_widths=[0.42, 0.58], horizontal_spacing=0.1
        )
        if len(self.answer) == 1:
            self._draw_answers(figure)
        for values, target in zip(self.curve, KNOWN, strict=True):
            width = 3 if target == self.target else 1.5
            line = {"color": "#0072B2", "dash": DASHES[target], "width": width}
            self._draw_curve(figure, values, NAMES[target], line)
        self._draw_curve(figure, self.control, CONTROL, {"color": GREY, "dash": CONTROL_DASH})
        figure.add_vline(x=self.alpha, line_color=INK, line_width=1, row=1, col=2)
        figure.update_xaxes(title="α", row=1, col=2)
        figure.update_xaxes(title="probability", range=[0, 1.1], row=1, col=1)
        figure.update_yaxes(range=[-0.02, 1.05], row=1, col=2)
        return styled(figure, f"Realigning the bridge's state by α = {self.alpha:g}", height=420)

    def _draw_answers(self, figure: "go.Figure") -> None:
        """Draw bars of the likeliest answers to one question; the true one is marked."""
        right = int(self.answer[0])
        words = {token: literal(self.words[token]) for token in self.token[0].tolist()}
        labels = [f"<b>{word}</b> (true)" if t == right else word for t, word in words.items()]
        for values, name, colour in (
            (self.before, "before", "#B8B8B8"),
            (self.after, "after", "#0072B2"),
        ):
            figure.add_bar(
                y=labels,
                x=values[0].tolist(),
                name=name,
                orientation="h",
                marker_color=colour,
                texttemplate="%{x:.2f}",
                textposition="outside",
                cliponaxis=False,
                row=1,
                col=1,
            )
        figure.update_yaxes(autorange="reversed", type="category", row=1, col=1)

    def _draw_curve(
        self, figure: "go.Figure", values: Tensor, name: str, line: Mapping[str, object]
    ) -> None:
        mean = values.mean(1).tolist()
        figure.add_scatter(x=self.alphas, y=mean, name=name, mode="lines", line=line, row=1, col=2)

    def summary(self) -> str:
        n = len(self.answer)
        said = ""
        if n == 1:
            before, after = (self.words[int(t)] for t in (self.said_before[0], self.said_after[0]))
            said = f"answers {before} before and {after} after; "
        at = min(range(len(self.alphas)), key=lambda k: abs(self.alphas[k] - self.alpha))
        return (
            f"α={self.alpha:g}, {NAMES.get(self.target, self.target)}: {said}P(true answer) "
            f"{self.answer_before.mean():.3f} → {self.answer_after.mean():.3f} (another word at "
            f"α={self.alphas[at]:g}: {self.control[at].mean():.3f}; n={n})"
        )


@analysis(given=("n_loops", "bridge_words"))
@torch.no_grad()
def realigned_answer(
    model: CanDecode,
    batch: Batch,
    *,
    n_loops: int | None = None,
    alpha: float = 0.5,
    scale: Literal["rms", "state"] = "rms",
    target: Literal["decoded", "phi", "bridge"] = "decoded",
    alphas: Sequence[float] = ALPHAS,
    top: int = 5,
    bridge_words: Sequence[int] | None = None,
) -> RealignedAnswer:
    """Compute the answers to single questions with the bridge's state realigned between loops.

    Args:
        model: A model with at least two loops; hooks that are active on it apply first.
        batch: Questions; those without a bridge are left out.
        n_loops: Loops to run; by default as many as the model was trained with.
        alpha: Share of the embedding for the answers shown.
        scale: The norm of the embedding: √d_model (rms) or the norm of the state (state).
        target: The word that the embedding belongs to.
        alphas: Shares of the embedding for the curve.
        top: Number of answers to keep; at most the size of the vocabulary.
        bridge_words: Token ids that the control draws from; by default the bridges of the batch, or
            any word if they are all the same. `analyse` passes those of the run's task.

    Raises:
        ValueError: There is only one loop, or no question has a bridge.
    """
    if (n_loops or model.n_loops) < 2:
        raise ValueError("realignment acts between loops; this model runs one loop")
    batch = batch[(batch.bridge >= 0).any(1)]
    if not len(batch):
        raise ValueError(
            "a question without a bridge has nothing to realign; chains of two hops or more on "
            "words have one"
        )
    before = _answers(model, batch, n_loops, None)
    after = _answers(model, batch, n_loops, Realign(alpha=alpha, scale=scale, target=target))
    token = torch.maximum(before, after).topk(min(top, before.shape[-1])).indices
    wrong = _with_other_bridges(batch, bridge_words or _words_for_bridges(model, batch))
    moves = [{"alpha": share, "scale": scale} for share in alphas]
    control = _curve(model, wrong, n_loops, "bridge", moves)
    return RealignedAnswer(
        token=token.cpu(),
        before=before.gather(1, token).cpu(),
        after=after.gather(1, token).cpu(),
        said_before=before.argmax(-1).cpu(),
        said_after=after.argmax(-1).cpu(),
        answer=batch.answer.cpu(),
        answer_before=_of_answer(before, batch).cpu(),
        answer_after=_of_answer(after, batch).cpu(),
        curve=torch.stack([_curve(model, batch, n_loops, aim, moves) for aim in KNOWN]).cpu(),
        control=control.unflatten(1, (len(batch), -1)).mean(2).cpu(),
        alphas=tuple(alphas),
        alpha=alpha,
        scale=scale,
        target=target,
        words=tuple(map(visible, model.tokenizer.words))
        if model.tokenizer
        else tuple(map(str, range(len(model.W_E)))),
    )


def _words(model: CanDecode) -> tuple[str, ...]:
    """Return the label of each token; its id if the model has no tokenizer."""
    if model.tokenizer is None:
        return tuple(map(str, range(len(model.W_E))))
    return tuple(map(visible, model.tokenizer.words))


def _curve(
    model: CanDecode,
    batch: Batch,
    n_loops: int | None,
    target: Target,
    moves: Sequence[Mapping[str, Any]],
) -> Float[Tensor, "share batch"]:
    """Compute the true answer's probability after each move towards the target's embedding."""
    edits = [Realign(target=target, **move) for move in moves]
    return torch.stack([_of_answer(_answers(model, batch, n_loops, e), batch) for e in edits])


def _answers(
    model: CanDecode, batch: Batch, n_loops: int | None, edit: Realign | None
) -> Float[Tensor, "batch d_vocab"]:
    """Compute the token probabilities where the answer is read."""
    with model.hooks(fwd_hooks=edit.hooks(model, batch) if edit else []):
        logits = model(**batch.inputs, n_loops=n_loops, logits_at=batch.read_at)
    return torch.as_tensor(logits).float().softmax(-1)


def _of_answer(probabilities: Float[Tensor, "batch d_vocab"], batch: Batch) -> Tensor:
    return probabilities.gather(1, batch.answer[:, None])[:, 0]


def _words_for_bridges(model: CanDecode, batch: Batch) -> list[int]:
    found = batch.bridge[batch.bridge >= 0].unique().tolist()
    return found if len(found) > 1 else list(range(PAD + 1, model.cfg.d_vocab))


def _with_other_bridges(batch: Batch, words: Sequence[int]) -> Batch:
    """Repeat each row, replacing each bridge by another of the words, drawn at random."""
    copies = max(1, OTHERS // len(batch))
    rows = batch[torch.arange(len(batch), device=batch.tokens.device).repeat_interleave(copies)]
    generator = torch.Generator().manual_seed(0)
    chance = torch.rand(*rows.bridge.shape, len(words), generator=generator).to(rows.tokens.device)
    pool = torch.tensor(words, device=rows.tokens.device)
    itself = pool == rows.bridge[..., None]
    other = pool[chance.masked_fill(itself, -1).argmax(-1)]
    return replace(rows, bridge=other.where(rows.bridge >= 0, rows.bridge))
