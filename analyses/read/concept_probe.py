"""Which vocabulary words are nearest to a thought model's vectors after each thought?

There are two measures. `cosine` compares a vector with the rows of W_E, as AGCLR's stream was
probed (arXiv 2606.07720). The rows of one vocabulary have much in common, so a high cosine alone is
weak evidence. The share of questions whose target word is among the nearest is therefore compared
with the share for target words of another question. `readout` unembeds states and thoughts as the
model unembeds its last layer. The stream does not lead to the unembedding, so only its cosine is
measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from analyses.kit.declare import Example, analysis
from analyses.kit.labels import thought_label, visible
from analyses.kit.result import Result
from analyses.kit.spread import bootstrap
from analyses.read.thought_states import STATE, STREAM, THOUGHT, thought_states
from workbench.capabilities import CanThink
from workbench.tasks.worded.rows import WordedBatch
from workbench.tasks.worded.task import WordedTask

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

THINGS = ("the step's concept", "the target", "the wrong concept")
NONE = -1


@dataclass(frozen=True, eq=False)
class ConceptProbe(Result):
    """Nearest words of the first question, and how often target words are among them over all.

    The control uses the target words of another question: each question takes those of the one
    before it. The axis `ends` holds the mean and the low and high end of its 95 % interval over
    questions. Values are NaN where no question has such a word or thought.
    """

    found: Float[Tensor, "view thing ends thought"]
    """Share of questions with the target word among the nearest."""
    shuffled: Float[Tensor, "view thing ends thought"]
    n: Int[Tensor, "thing thought"]
    """Number of questions that have the word and the thought."""
    words: tuple[tuple[tuple[str, ...], ...], ...]
    """The first question's nearest words by view and thought, nearest first."""
    values: Float[Tensor, "view thought nearest"]
    """Their cosines, or their probabilities if the view is a readout."""
    views: tuple[str, ...]
    things: tuple[str, ...]
    n_vocab: int
    """Number of words in the vocabulary."""
    n_questions: int

    @property
    def nearest(self) -> int:
        """Number of words that count as the nearest."""
        return self.values.shape[2]

    def to_frame(self) -> "pd.DataFrame":
        import pandas as pd

        rows = []
        for i, view in enumerate(self.views):
            for thought in range(self.values.shape[1]):
                where = {"view": view, "thought": thought_label(thought)}
                for rank, word in enumerate(self.words[i][thought]):
                    value = float(self.values[i, thought, rank])
                    entry = {"rank": rank + 1, "word": word, "value": value}
                    rows.append(where | {"what": "first question"} | entry)
                for j, thing in enumerate(self.things):
                    n = int(self.n[j, thought])
                    if n:
                        share, low, high = self.found[i, j, :, thought].tolist()
                        numbers = {"value": share, "low": low, "high": high}
                        numbers["shuffled"] = float(self.shuffled[i, j, 0, thought])
                        rows.append(where | {"what": thing} | numbers | {"n": n})
        return pd.DataFrame(rows)

    def figure(self) -> "go.Figure":
        from analyses.read.concept_figure import concept_figure

        return concept_figure(self)

    def summary(self) -> str:
        last = self.values.shape[1] - 1
        if self.n_questions == 1:
            said = [f"{v} {self.words[i][last][0]}" for i, v in enumerate(self.views)]
            return f"nearest words after thought {last + 1}: {'; '.join(said)}"
        parts = []
        for i, view in enumerate(self.views):
            for j in (0, 1):
                shares = self.found[i, j, 0].nan_to_num(-1.0)
                best = int(shares.argmax())
                if shares[best] >= 0:
                    parts.append(
                        f"{view}: {self.things[j]} {shares[best]:.3f} after thought {best + 1} "
                        f"(shuffled {self.shuffled[i, j, 0, best]:.3f})"
                    )
        return (
            f"among the {self.nearest} nearest of {self.n_vocab} words: "
            f"{'; '.join(parts) or 'no word is wanted'}; n={self.n_questions}"
        )


@analysis(given=("task",), example=Example(run="thoughts", n=4))
@torch.no_grad()
def concept_probe(
    model: CanThink, batch: WordedBatch, *, task: WordedTask, top: int = 5
) -> ConceptProbe:
    """Find the words nearest to stream, state and thought after every thought.

    Args:
        model: The model; hooks that are active on it apply first.
        batch: The questions; the words of the first one are listed.
        task: The task; it gives the vocabulary, and its layout the step that a thought replaces.
        top: Number of words that count as the nearest; at most the size of the vocabulary.

    Raises:
        ValueError: No question has a thought, or `top` is below 1.
    """
    if top < 1:
        raise ValueError(f"top={top} must be at least 1")
    places = [STATE, THOUGHT, STREAM] if STREAM in model.hook_dict else [STATE]
    states = thought_states(model, batch, places)
    top = min(top, model.cfg.d_vocab)
    wanted = _wanted(batch.to("cpu"), len(states[STATE]), task.layout.thoughts_per_step)
    others = torch.stack([torch.stack([_of_others(w) for w in thing]) for thing in wanted])
    names = {STATE: "state h", THOUGHT: "thought h'", STREAM: "stream c"}
    views, found, shuffled, words, values = [], [], [], [], []
    for place in places:
        for by in ("cosine", "readout") if place != STREAM else ("cosine",):
            views.append(f"{names[place]}, {by}")
            value, word = nearest_words(model, states[place], by, top)
            found.append(torch.stack(bootstrap(_hits(word, wanted)), dim=1))
            shuffled.append(torch.stack(bootstrap(_hits(word, others)), dim=1))
            words.append(tuple(_shown(task, ids) for ids in word[:, 0].tolist()))
            values.append(value[:, 0])
    return ConceptProbe(
        found=torch.stack(found),
        shuffled=torch.stack(shuffled),
        n=(wanted >= 0).sum(2),
        words=tuple(words),
        values=torch.stack(values),
        views=tuple(views),
        things=THINGS,
        n_vocab=model.cfg.d_vocab,
        n_questions=len(batch),
    )


def _shown(task: WordedTask, tokens: Sequence[int]) -> tuple[str, ...]:
    return tuple(visible(task.vocabulary.words[token]) for token in tokens)


def nearest_words(
    model: CanThink, states: Float[Tensor, "thought batch d_model"], by: str, top: int
) -> tuple[Float[Tensor, "thought batch top"], Int[Tensor, "thought batch top"]]:
    """Return values and token ids of the nearest words, by cosine or by the model's readout."""
    values, words = [], []
    for vectors in states:  # one thought at a time to save memory
        vectors = vectors.to(model.W_E).nan_to_num(0.0)
        if by == "cosine":
            words_of = F.normalize(model.W_E.float(), dim=-1)
            near = F.normalize(vectors.float(), dim=-1) @ words_of.T
        else:
            near = model.readout(vectors).float().softmax(-1)
        value, word = near.float().topk(top, dim=-1)
        values.append(value.cpu())
        words.append(word.cpu())
    absent = states.isnan().any(-1, keepdim=True)
    return torch.stack(values).masked_fill(absent, torch.nan), torch.stack(words)


def _wanted(
    batch: WordedBatch, n_thoughts: int, per_step: int
) -> Int[Tensor, "thing thought batch"]:
    """Return the target words of each thought; −1 where a row has no such word or thought."""
    present = torch.arange(n_thoughts)[:, None] < batch.n_thoughts
    bridge = batch.bridge.T  # [hop batch]
    steps = torch.full((n_thoughts, len(batch)), NONE)
    for thought in range(n_thoughts):
        if thought // per_step < len(bridge):
            steps[thought] = bridge[thought // per_step]
    right, wrong = batch.candidates.T
    things = torch.stack([steps, right.expand_as(steps), wrong.expand_as(steps)])
    return things.where(present, NONE)


def _of_others(wanted: Int[Tensor, " batch"]) -> Int[Tensor, " batch"]:
    """Give each row the previous row's word, among the rows that have one; −1 if only one has."""
    other = torch.full_like(wanted, NONE)
    rows = (wanted >= 0).nonzero()[:, 0]
    if len(rows) > 1:
        other[rows] = wanted[rows.roll(1)]
    return other


def _hits(
    words: Int[Tensor, "thought batch top"], wanted: Int[Tensor, "thing thought batch"]
) -> Float[Tensor, "thing thought batch"]:
    """Return 1 where the target word is among the nearest, else 0; NaN where there is no target."""
    hit = (words == wanted[..., None]).any(-1).float()
    return hit.masked_fill(wanted < 0, torch.nan)
