"""What the worded tasks share: problems become sequences as the task's layout says."""

import copy
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from workbench.kinds import THOUGHTS, Kind, worded_batch
from workbench.settings.config import ConfigError, StrictModel, nearest
from workbench.settings.recipe import CurriculumConfig
from workbench.tasks.base import Task
from workbench.tasks.batch import Batch
from workbench.tasks.worded.encoding import ANSWER, encoded
from workbench.tasks.worded.layout import COT, Encoded, Layout, Specials, lay_out
from workbench.tasks.worded.problem import Problem
from workbench.tasks.worded.rows import WordedBatch
from workbench.tasks.worded.scoring import Score
from workbench.words.tokenizer import SPECIALS, Vocabulary, load_vocabulary
from workbench.words.vocabulary import WordVocabulary

FILE = "file"  # what the problems of a file are called that is asked beside the splits
OWN = ("<|pad|>", "<|end|>", *SPECIALS, ANSWER)  # what a vocabulary of words begins with

Self = TypeVar("Self", bound="WordedTask")


class WordedConfig(StrictModel):
    """What all worded tasks are asked."""

    # Folder, Hub id or GGUF file of a tokenizer; with `words` a token is a word of the task's own
    tokenizer: str = "words"


class WordedTask(Task):
    """Questions in words with the steps of a solution; `layout` says how they are put to a model.

    A fresh task is laid out as chain of thought; a run's task as its training left it.
    """

    unit: ClassVar[str] = "steps"
    kind: ClassVar[Kind] = THOUGHTS

    cfg: WordedConfig

    def __init__(self, cfg: StrictModel, seed: int) -> None:
        super().__init__(cfg, seed)
        self.layout: Layout = COT
        self.left_out: dict[str, int] = {}  # problems of a split that are too long, once it is read
        self.left_out_why: dict[str, int] = {}  # of a file that is asked beside the splits

    # -- what a task says

    @property
    @abstractmethod
    def split_names(self) -> Sequence[str]:
        """The splits that there are."""

    @abstractmethod
    def read_problems(self, split: str) -> list[Problem]:
        """The problems of a split, generated or read."""

    @abstractmethod
    def typed(self, text: str) -> Problem:
        """A typed question as a problem; its answer where it can be found out.

        Raises:
            ValueError: The text is empty or no question of this task.
        """

    def question(self, text: str) -> Batch:
        return lay_out([self.encode(self.typed(text))], [self.layout], self.specials, [0])

    @abstractmethod
    def score(self, problem: Problem, said: str) -> Score:
        """Whether an answer is right."""

    @abstractmethod
    def own_words(self) -> WordVocabulary:
        """The task's words, which are its tokens where no tokenizer is named."""

    @cached_property
    def vocabulary(self) -> Vocabulary:  # type: ignore[override]
        """The tokens of question, solution and answer.

        Raises:
            ConfigError: The tokenizer is missing, or has no token that ends a text.
        """
        if self.cfg.tokenizer == "words":
            return self.own_words()
        found = load_vocabulary(self.cfg.tokenizer, add_specials=True)
        try:
            _ = found.end
        except ValueError as error:
            raise ConfigError(f"tokenizer {self.cfg.tokenizer}: {error}") from None
        return found

    def decides(self, problem: Problem) -> tuple[str, str, str]:
        """The answer in three parts: what precedes its deciding word, the word, another one.

        The other one is the wrong choice where there are two, and empty where any may be.
        """
        return "", problem.answer, ""

    def bridges(self, problem: Problem) -> Sequence[str]:
        """A word for what each step leads to, the last one left out."""
        return ()

    def names(self, problem: Problem) -> Sequence[str]:
        """The words that a step of the problem may lead to, from which a bridge is told."""
        return ()

    def from_file(self, path: Path) -> tuple[list[Problem], dict[str, int]]:
        """The problems of an official file in the task's own words; how many are left out, by why.

        Raises:
            ConfigError: The task reads no files.
        """
        raise ConfigError(f"the task {type(self).__name__} reads no files")

    @property
    def shape(self) -> dict[str, Any]:
        return super().shape | {"latent_token": self.specials.latent}

    def as_taught(self: Self, curriculum: CurriculumConfig | None) -> Self:
        """Return the task laid out as the last stage of a curriculum has it.

        Raises:
            ConfigError: There is no curriculum.
        """
        if curriculum is None:
            raise ConfigError("training.curriculum is missing; a worded task needs one")
        from workbench.tasks.worded.curriculum import (
            Curriculum,  # which is written in this module's layouts
        )

        return self.laid_out(Curriculum(curriculum).final())

    def with_file(self: Self, path: Path, n_ctx: int) -> Self:
        """The task with one split more, `file`: the problems of a file that a model has room for.

        `left_out` counts the others.

        Args:
            path: The file.
            n_ctx: Positions that the model has.

        Raises:
            ConfigError: The task reads no files, or no problem of it fits.
            ProblemError: The file or a row is not as it should be.
        """
        problems, left_out = self.from_file(path)
        room = n_ctx - 3 - self.layout.n_fillers
        encoded = [self.encode(problem) for problem in problems]
        fits = [one.n_tokens <= room for one in encoded]
        if not all(fits):
            left_out = left_out | {
                f"more tokens than the model's {n_ctx} positions": fits.count(False)
            }
        if not any(fits):
            why = "; ".join(f"{n:,} have {reason}" for reason, n in left_out.items())
            raise ConfigError(f"no problem of {path} fits this run ({why or 'it holds none'})")
        other = copy.copy(self)
        other.__dict__.pop("splits", None)
        kept = [p for p, fit in zip(problems, fits, strict=True) if fit]
        other.__dict__["_problems"] = self._problems | {FILE: kept}
        kept_encoded = [e for e, fit in zip(encoded, fits, strict=True) if fit]
        other.__dict__["_encoded"] = self._encoded | {FILE: kept_encoded}
        other.left_out = self.left_out | {FILE: sum(left_out.values())}
        other.left_out_why = left_out
        return other

    # -- problems, encoded once

    def problems(self, split: str) -> list[Problem]:
        """The problems of a split.

        Raises:
            ValueError: There is no such split.
        """
        if split not in self.split_names and split not in self._problems:
            raise ValueError(f"no split {split!r}; {nearest(split, self.split_names)}")
        if split not in self._problems:
            self._problems[split] = self.read_problems(split)
        return self._problems[split]

    @cached_property
    def _problems(self) -> dict[str, list[Problem]]:
        return {}

    @cached_property
    def _encoded(self) -> dict[str, list[Encoded]]:
        return {}

    def encoded(self, split: str) -> list[Encoded]:
        """The problems of a split as token ids."""
        if split not in self._encoded:
            self._encoded[split] = [self.encode(problem) for problem in self.problems(split)]
        return self._encoded[split]

    def unsayable(self, split: str) -> int:
        """Problems of a split whose answer holds a word that the vocabulary lacks: never right."""
        unknown = self.vocabulary.unknown_token
        if unknown is None:
            return 0
        return sum(unknown in encoded.answer for encoded in self.encoded(split))

    def encode(self, problem: Problem) -> Encoded:
        """A problem as token ids.

        Raises:
            ProblemError: A text of it spells out a special token.
        """
        names = self.names(problem)
        return encoded(
            self.vocabulary, problem, self.decides(problem), self.bridges(problem), names
        )

    @property
    def specials(self) -> Specials:
        """Token ids of what layouts put in."""
        start, end, latent, pause = map(self.vocabulary.special, SPECIALS)
        return Specials(start, end, latent, pause, self.vocabulary.end)

    # -- sequences

    def laid_out(self: Self, layout: Layout) -> Self:
        """The same problems, put to a model in another way."""
        other = copy.copy(self)
        other.layout = layout
        other.__dict__.pop("splits", None)
        return other

    def lay_out(
        self, split: str, numbers: Sequence[int], layouts: Layout | Sequence[Layout] | None = None
    ) -> WordedBatch:
        """Some problems of a split as sequences.

        Args:
            split: The split.
            numbers: Which of its problems.
            layouts: How; one for all or one for each. The task's own by default.
        """
        layouts = self.layout if layouts is None else layouts
        if isinstance(layouts, Layout):
            layouts = [layouts] * len(numbers)
        encoded = self.encoded(split)
        numbers = list(numbers)
        return lay_out([encoded[n] for n in numbers], layouts, self.specials, numbers)

    def lay_out_problems(
        self, problems: Sequence[Problem], layout: Layout | None = None
    ) -> WordedBatch:
        """Problems of any split, or typed ones, as sequences; `number` counts them from 0.

        Args:
            problems: The problems.
            layout: How they are put; the task's own by default.
        """
        layouts = [self.layout if layout is None else layout] * len(problems)
        numbers = list(range(len(problems)))
        return lay_out([self.encode(p) for p in problems], layouts, self.specials, numbers)

    @cached_property
    def splits(self) -> "LazySplits":
        return LazySplits(self)

    def batch(self, split: str, n: int, seed: int = 0) -> Batch:
        if n < 1:
            raise ValueError(f"n={n} must be at least 1")
        if seed < 0:
            raise ValueError(f"seed={seed} must be at least 0")
        chosen = np.random.default_rng(seed).permutation(len(self.problems(split)))[:n]
        return self.lay_out(split, chosen.tolist())

    def draw(self, split: str, seed: int) -> str:
        rows = self.batch(split, 1, seed)
        return self.problems(split)[int(worded_batch(rows).number[0])].question

    @property
    def n_ctx(self) -> int:
        """Positions of the longest problem with all its steps, and the layout's fillers."""
        longest = (e.n_tokens + 3 for split in self.split_names for e in self.encoded(split))
        return max(longest) + self.layout.n_fillers

    def commonest(self, split: str) -> str:
        """The answer that most problems of a split have."""
        answers = Counter(problem.answer for problem in self.problems(split))
        return answers.most_common(1)[0][0]

    def majority_rate(self, split: str) -> float:
        """Accuracy of always giving the split's commonest answer."""
        commonest = self.commonest(split)
        right = [self.score(problem, commonest).right for problem in self.problems(split)]
        return sum(right) / len(right)

    @property
    def trained_difficulty(self) -> tuple[int, int]:
        steps = [len(problem.steps) for problem in self.problems("train")]
        return min(steps), max(steps)

    def examples(self, batch: Batch) -> list[dict[str, object]]:
        """Rows in words: the question, which can be asked again; all that is given; the answer."""
        batch = worded_batch(batch)
        rows = []
        for row in range(len(batch)):
            prompt, length = int(batch.prompt[row]), int(batch.length[row])
            tokens = batch.tokens[row].tolist()
            rows.append(
                {
                    "question": self.vocabulary.decode(self._asked_tokens(tokens[:prompt])),
                    "given": self.vocabulary.decode(tokens[:prompt]),
                    "answer": self.vocabulary.decode(tokens[prompt:length]),
                    "bridges": [self.vocabulary.words[b] for b in batch.bridge[row] if b >= 0],
                    self.unit: int(batch.difficulty[row]),
                }
            )
        return rows

    def _asked_tokens(self, tokens: list[int]) -> list[int]:
        """What of a prompt is the question: all but thoughts, pauses and their markers."""
        put_in = {*self.specials[:-1]}
        return [token for token in tokens if token not in put_in]

    def answer_in(self, said: str) -> str:
        """The answer in what a model says: what follows the last mark."""
        return said.rpartition(ANSWER)[2].strip()


class LazySplits(Mapping[str, Batch]):
    """Splits that are laid out when they are asked for."""

    def __init__(self, task: WordedTask) -> None:
        self.task = task
        self.done: dict[str, Batch] = {}

    def __getitem__(self, split: str) -> Batch:
        if split not in self.task.split_names and split not in self.task._problems:
            raise KeyError(split)
        if split not in self.done:
            everything = range(len(self.task.problems(split)))
            self.done[split] = self.task.lay_out(split, everything)
        return self.done[split]

    def __iter__(self) -> Iterator[str]:
        return iter(self.task.split_names)

    def __len__(self) -> int:
        return len(self.task.split_names)


def word_vocabulary(
    words: Sequence[str], split: Callable[[str], list[str]] = str.split
) -> WordVocabulary:
    """A vocabulary of whole words that holds the tokens that layouts put in."""
    return WordVocabulary([*OWN, *words], split)
