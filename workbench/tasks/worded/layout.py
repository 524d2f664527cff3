"""How a question, thoughts, the steps that are left and the answer stand in one sequence.

    question  [start] filler × n [end]  steps that are left  answer  end

CoCoNuT (arXiv 2412.06769, section 3) puts thoughts in the place of the first steps; pause tokens
(Goyal et al. 2024) are fillers that are looked up as other tokens are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import torch

from workbench.tasks.batch import NONE, PAD
from workbench.tasks.worded.rows import WordedBatch

Filler = Literal["latent", "pause"]
ALL = 1_000_000  # steps to leave out: however many there are


class Encoded(NamedTuple):
    """A problem as token ids."""

    question: list[int]
    steps: list[list[int]]
    answer: list[int]
    decides: int
    """Which token of the answer tells it from other answers."""
    bridges: list[int]
    """Tokens of what the steps lead through, one a step, the answer left out."""
    candidates: tuple[int, int]
    """Right and wrong token where the answer is decided; the wrong one −1 if any may be."""

    @property
    def n_tokens(self) -> int:
        """Tokens of question, steps and answer."""
        return len(self.question) + sum(map(len, self.steps)) + len(self.answer)


@dataclass(frozen=True)
class Layout:
    """What stands between question and answer."""

    filler: Filler = "latent"
    n_fillers: int = 0
    marked: bool = True
    """Whether start and end tokens stand around the fillers, be there any or not."""
    skipped: int = 0
    """Steps that are left out, from the first on."""
    skipped_tokens: int = 0
    """Tokens of the steps that are left out, from the first on."""
    thoughts_per_step: int = 1
    """Fillers that stand in a step's place."""
    capped: bool = False
    """Whether a problem is given no more fillers than stand for all of its own steps."""

    def with_fillers(self, n: int) -> "Layout":
        """The same with another number of fillers; more than before are for every problem alike."""
        return replace(self, n_fillers=n, capped=self.capped and n <= self.n_fillers)

    def fillers_of(self, n_steps: int) -> int:
        """Fillers of a problem with so many steps; all of them where steps are not known."""
        most = n_steps * self.thoughts_per_step if self.capped and n_steps else self.n_fillers
        return min(self.n_fillers, most)


class Specials(NamedTuple):
    """Token ids that a layout puts in."""

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
    """Sequences of problems, each with a layout of its own, padded on the right.

    Args:
        problems: What is laid out.
        layouts: How, one for each problem.
        specials: The tokens put in.
        numbers: What number each problem has in its split.
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
    """One sequence, and where in it things stand."""

    tokens: list[int]
    prompt: int  # tokens that are given; the next ones are to be said
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
        # The thought that stands for a step is made of the position before it
        in_thought = n_fillers if layout.filler == "latent" else 0
        slots = range(0, in_thought, layout.thoughts_per_step)
        at = [len(before) + slot + layout.thoughts_per_step - 2 for slot in slots]
        n = len(problem.bridges)
        at = (at + [NONE] * n)[:n]
        decides_at = len(given) + len(left) + problem.decides
        return cls(given + said, len(given), decides_at, problem.bridges, at)
