"""Cost of answering questions after some thoughts, or after a chain of words that is cut short."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from workbench.capabilities import CanThink
from workbench.instruments.flops import forward_flops
from workbench.instruments.speaking import ROWS, SPARE
from workbench.kinds import thought_model
from workbench.tasks.worded.layout import Layout
from workbench.tasks.worded.rows import WordedBatch
from workbench.tasks.worded.task import ANSWER, WordedTask

ALL = -1  # as a number of words: no limit

Said = list[int]


@dataclass(frozen=True, eq=False)
class Spent:
    """Correctness and cost of one way of answering some questions."""

    right: Bool[Tensor, " question"]
    positions: Float[Tensor, " question"]
    """Token positions that are run: question, thoughts, and all output tokens but the last."""
    passes: Float[Tensor, " question"]
    """Passes that must run one after another: one per thought and one per generated token."""
    flops: Float[Tensor, " question"]
    prompts: list[Said]
    n_said: list[int]


class Speaker:
    """A model that answers the same questions with more or fewer thoughts or words."""

    def __init__(
        self, model: CanThink, task: WordedTask, split: str, numbers: Sequence[int]
    ) -> None:
        self.model, self.task, self.split, self.numbers = model, task, split, list(numbers)
        self.mark = task.vocabulary.encode(ANSWER)
        known = task.encoded(split)
        self.ends = {step[-1] for number in self.numbers for step in known[number].steps}

    def after_thoughts(self, layout: Layout) -> Spent:
        """Answer in a layout, with no limit on the words before the answer."""
        rows = self.task.lay_out(self.split, self.numbers, layout).to(self.model.device)
        return self._spent(_prompts(rows), self.whole(layout), [0] * len(rows))

    def after_words(self, layout: Layout, most: int) -> Spent:
        """Answer after a chain of at most `most` tokens.

        A longer chain is cut after the last step that is complete by then, and the answer mark is
        put there. A chain that has reached its answer by then is left unchanged.
        """
        rows = self.task.lay_out(self.split, self.numbers, layout).to(self.model.device)
        prompts, whole = _prompts(rows), self.whole(layout)
        cut = [n for n, said in enumerate(whole) if self.chain(said) > most]
        begun = [self._finished(whole[n][:most]) + self.mark for n in cut]
        given = [prompts[n] + words for n, words in zip(cut, begun, strict=True)]
        said, forced = list(whole), [0] * len(whole)
        answers = self._say(given, SPARE)
        for n, words, answer in zip(cut, begun, answers, strict=True):
            said[n], forced[n] = words + answer, len(self.mark)
        return self._spent(prompts, said, forced)

    def whole(self, layout: Layout) -> list[Said]:
        """Generate the uncut output for each question, including the end token."""
        rows = self.task.lay_out(self.split, self.numbers, layout).to(self.model.device)
        return self._say(_prompts(rows), int(rows.scored.sum(1).max()) + SPARE)

    def chain(self, said: Said) -> int:
        """Count the tokens before the answer mark; all tokens if there is no mark."""
        width = len(self.mark)
        starts = (n for n in range(len(said)) if said[n : n + width] == self.mark)
        return next(starts, len(said))

    def _finished(self, words: Said) -> Said:
        """Return a chain without its last, incomplete step."""
        whole = (n for n in range(len(words), 0, -1) if words[n - 1] in self.ends)
        return words[: next(whole, 0)]

    def _say(self, prompts: list[Said], n_new: int) -> list[Said]:
        found: list[Said] = []
        end = self.task.vocabulary.end
        for start in range(0, len(prompts), ROWS):
            tokens, mask = _padded(prompts[start : start + ROWS], self.model.device)
            room = max(self.model.cfg.n_ctx - tokens.shape[1], 1)
            new = self.model.generate(tokens, min(n_new, room), attention_mask=mask, stop_at=end)
            said = new[:, tokens.shape[1] :].tolist()
            found += [row[: row.index(end) + 1] if end in row else row for row in said]
        return found

    def _spent(self, prompts: list[Said], said: list[Said], forced: list[int]) -> Spent:
        known, vocabulary = self.task.problems(self.split), self.task.vocabulary
        right, costs = [], []
        latent = self.model.cfg.latent_token
        for number, prompt, words, put in zip(self.numbers, prompts, said, forced, strict=True):
            text = vocabulary.decode([token for token in words if token != vocabulary.end])
            right.append(self.task.score(known[number], self.task.answer_in(text)).right)
            thoughts, read = prompt.count(latent), len(words) - put
            positions = len(prompt) + len(words) - 1
            flops = forward_flops(thought_model(self.model), positions, thoughts, read)
            costs.append((positions, thoughts + read, flops))
        positions_, passes, flops_ = torch.tensor(costs, dtype=torch.float64).unbind(-1)
        n_said = [len(words) - put for words, put in zip(said, forced, strict=True)]
        return Spent(torch.tensor(right), positions_, passes, flops_, prompts, n_said)


def latencies(
    speakers: Sequence[CanThink], ways: Sequence[Spent], questions: int, repeats: int
) -> list[list[float]]:
    """Measure the seconds that each way takes for a single question, once per repetition.

    All ways take turns in every repetition, so that other load on the machine affects them alike. A
    repetition's time is the median over its questions. The first round is a warm-up and is left
    out.
    """
    found: list[list[float]] = [[] for _ in ways]
    for round_ in range(repeats + 1):
        for kept, model, way in zip(found, speakers, ways, strict=True):
            times = [_seconds(model, way, n) for n in range(min(questions, len(way.prompts)))]
            if round_:
                kept.append(median(times))
    return found


def _seconds(model: CanThink, way: Spent, number: int) -> float:
    """Time the generation of as many tokens as the model generated for a question."""
    tokens, mask = _padded([way.prompts[number]], model.device)
    _wait(model.device)
    start = time.perf_counter()
    model.generate(tokens, max(way.n_said[number], 1), attention_mask=mask)
    _wait(model.device)
    return time.perf_counter() - start


def _wait(device: torch.device) -> None:
    """Wait until a device has finished its queued work."""
    if device.type in ("cuda", "mps"):
        getattr(torch, device.type).synchronize()


def _prompts(rows: WordedBatch) -> list[Said]:
    pairs = zip(rows.tokens.tolist(), rows.prompt.tolist(), strict=True)
    return [tokens[:length] for tokens, length in pairs]


def _padded(prompts: list[Said], device: torch.device) -> tuple[Tensor, Tensor]:
    width = max(map(len, prompts))
    tokens = torch.tensor([[*p, *[0] * (width - len(p))] for p in prompts], device=device)
    lengths = torch.tensor([len(p) for p in prompts], device=device)
    return tokens, (torch.arange(width, device=device) < lengths[:, None]).long()
