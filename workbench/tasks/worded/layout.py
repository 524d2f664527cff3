"""Layouts of a question, thoughts, the remaining steps and the answer in one sequence.

    question  [start] filler × n [end]  remaining steps  answer  end

CoCoNuT (arXiv 2412.06769, section 3) replaces the first steps with thoughts. Pause tokens (Goyal et
al. 2024) are fillers that use an ordinary token embedding.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import torch

from workbench.tasks.batch import NONE, PAD
from workbench.tasks.worded.rows import WordedBatch

Filler = Literal["latent", "pause"]
ALL = 1_000_000  # number of steps to leave out that exceeds every problem's


class Encoded(NamedTuple):
    """A problem as token ids."""

    question: list[int]
    steps: list[list[int]]
    answer: list[int]
    decides: int
    """Index of the answer's token that tells it from other answers."""
    bridges: list[int]
    """Token ids of what each step leads to, one per step, without the answer."""
    candidates: tuple[int, int]
    """Right and wrong token at the deciding position; −1 without a single wrong candidate."""

    @property
    def n_tokens(self) -> int:
        """Number of tokens of question, steps and answer."""
        return len(self.question) + sum(map(len, self.steps)) + len(self.answer)


@dataclass(frozen=True)
class Layout:
    """Specifies what stands between question and answer."""

    filler: Filler = "latent"
    n_fillers: int = 0
    marked: bool = True
    """Whether start and end tokens enclose the fillers, even if there are no fillers."""
    skipped: int = 0
    """Number of leading steps that are left out."""
    skipped_tokens: int = 0
    """Number of leading tokens of the remaining steps that are left out."""
    thoughts_per_step: int = 1
    """Number of fillers that replace one step."""
    capped: bool = False
    """Whether a problem gets at most as many fillers as replace all of its own steps."""

    def with_fillers(self, n: int) -> "Layout":
        """Return the layout with `n` fillers; if `n` is larger than before, the cap is lifted."""
        return replace(self, n_fillers=n, capped=self.capped and n <= self.n_fillers)

    def fillers_of(self, n_steps: int) -> int:
        """Return the fillers of a problem with `n_steps` steps; uncapped if it has no steps."""
        most = n_steps * self.thoughts_per_step if self.capped and n_steps else self.n_fillers
        return min(self.n_fillers, most)


class Specials(NamedTuple):
    """Ids of the special tokens that a layout inserts."""

    start: int
    end: int
    latent: int
    pause: int
    stop: int


COT = Layout(marked=False)
NO_COT = Layout(marked=False, skipped=ALL)


def lay_out(
    problems: Sequence[Encoded], layouts: Sequence[Layout], specials: Specials, numbers: list[int]
) -> WordedBatch:
    """Lay out problems as sequences, each with its own layout, padded on the right.

    Args:
        problems: The problems.
        layouts: One layout for each problem.
        specials: The tokens to insert.
        numbers: Index of each problem in its split.
    """
    rows = [_Row.of(*pair, specials) for pair in zip(problems, layouts, strict=True)]
    width = max(len(row.tokens) for row in rows)
    most = max(max((len(row.bridges) for row in rows), default=0), 1)

    def padded(lists: list[list[int]], size: int, fill: int) -> torch.Tensor:
        return torch.tensor([values + [fill] * (size - len(values)) for values in lists])

    lengths = torch.tensor([len(row.tokens) for row in rows])
    prompts = torch.tensor([row.prompt for row in rows])
    columns = torch.arange(width)
    scored = (columns >= prompts[:, None]) & (columns < lengths[:, None])
    answers_at = torch.tensor([row.decides_at for row in rows])
    tokens = padded([row.tokens for row in rows], width, PAD)
    return WordedBatch(
        tokens=tokens,
        length=lengths,
        read_at=answers_at - 1,
        answer=tokens.gather(1, answers_at[:, None])[:, 0],
        difficulty=torch.tensor([len(problem.steps) for problem in problems]),
        bridge=padded([row.bridges for row in rows], most, NONE),
        bridge_at=padded([row.bridges_at for row in rows], most, NONE),
        scored=scored,
        prompt=prompts,
        n_thoughts=(tokens == specials.latent).sum(1),
        candidates=torch.tensor([problem.candidates for problem in problems]),
        number=torch.tensor(numbers),
    )


class _Row(NamedTuple):
    """One sequence, and the positions of its parts."""

    tokens: list[int]
    prompt: int  # number of given tokens; the rest is the target output
    decides_at: int
    bridges: list[int]
    bridges_at: list[int]

    @classmethod
    def of(cls, problem: Encoded, layout: Layout, specials: Specials) -> "_Row":
        filler = specials.latent if layout.filler == "latent" else specials.pause
        before = [*problem.question, *([specials.start] if layout.marked else [])]
        n_fillers = layout.fillers_of(len(problem.steps))
        given = before + [filler] * n_fillers + ([specials.end] if layout.marked else [])
        left = [token for step in problem.steps[layout.skipped :] for token in step]
        left = left[layout.skipped_tokens :]
        said = left + problem.answer + [specials.stop]
        # The last thought of a step is the state computed at the position before it
        in_thought = n_fillers if layout.filler == "latent" else 0
        slots = range(0, in_thought, layout.thoughts_per_step)
        at = [len(before) + slot + layout.thoughts_per_step - 2 for slot in slots]
        n = len(problem.bridges)
        at = (at + [NONE] * n)[:n]
        decides_at = len(given) + len(left) + problem.decides
        return cls(given + said, len(given), decides_at, problem.bridges, at)
