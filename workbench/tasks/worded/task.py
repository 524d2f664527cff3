"""Base class of the worded tasks: problems become token sequences according to a layout."""

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

FILE = "file"  # name of the additional split that `with_file` adds
OWN = ("<|pad|>", "<|end|>", *SPECIALS, ANSWER)  # first words of every vocabulary of words

Self = TypeVar("Self", bound="WordedTask")


class WordedConfig(StrictModel):
    """Config fields of all worded tasks."""

    # Folder, Hub id or GGUF file of a tokenizer; with `words`, each word of the task is a token
    tokenizer: str = "words"


class WordedTask(Task):
    """Questions in words with the steps of a solution; `layout` sets the form of the sequences.

    A new task uses the chain-of-thought layout. A run's task uses the layout at the end of its
    training.
    """

    unit: ClassVar[str] = "steps"
    kind: ClassVar[Kind] = THOUGHTS

    cfg: WordedConfig

    def __init__(self, cfg: StrictModel, seed: int) -> None:
        super().__init__(cfg, seed)
        self.layout: Layout = COT
        self.left_out: dict[str, int] = {}  # too-long problems of each split read so far
        self.left_out_why: dict[str, int] = {}  # problems left out of the `file` split, by reason

    # -- defined by each task

    @property
    @abstractmethod
    def split_names(self) -> Sequence[str]:
        """Names of the splits."""

    @abstractmethod
    def read_problems(self, split: str) -> list[Problem]:
        """Generate or read the problems of a split."""

    @abstractmethod
    def typed(self, text: str) -> Problem:
        """Parse a typed question into a problem, with its answer if it can be derived.

        Raises:
            ValueError: The text is empty or not a question of this task.
        """

    def question(self, text: str) -> Batch:
        return lay_out([self.encode(self.typed(text))], [self.layout], self.specials, [0])

    @abstractmethod
    def score(self, problem: Problem, said: str) -> Score:
        """Score an answer."""

    @abstractmethod
    def own_words(self) -> WordVocabulary:
        """Return the task's own words, which are its tokens if no tokenizer is set."""

    @cached_property
    def vocabulary(self) -> Vocabulary:  # type: ignore[override]
        """The tokens of question, solution and answer.

        Raises:
            ConfigError: The tokenizer is missing, or has no end-of-text token.
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
        """Return the text before the answer's deciding word, that word, and the wrong word.

        The wrong word is the other choice if the question offers two, and empty if any other answer
        is possible.
        """
        return "", problem.answer, ""

    def bridges(self, problem: Problem) -> Sequence[str]:
        """Return the word that each step leads to, except for the last step."""
        return ()

    def names(self, problem: Problem) -> Sequence[str]:
        """Return all words that a step of the problem may lead to, to tell a bridge from others."""
        return ()

    def from_file(self, path: Path) -> tuple[list[Problem], dict[str, int]]:
        """Read an official file in the task's own words; also count left-out problems by reason.

        Raises:
            ConfigError: The task cannot read files.
        """
        raise ConfigError(f"the task {type(self).__name__} reads no files")

    @property
    def shape(self) -> dict[str, Any]:
        return super().shape | {"latent_token": self.specials.latent}

    def as_taught(self: Self, curriculum: CurriculumConfig | None) -> Self:
        """Return the task with the layout of a curriculum's last stage.

        Raises:
            ConfigError: There is no curriculum.
        """
        if curriculum is None:
            raise ConfigError("training.curriculum is missing; a worded task needs one")
        from workbench.tasks.worded.curriculum import (
            Curriculum,  # imported here because it uses this module's layouts
        )

        return self.laid_out(Curriculum(curriculum).final())

    def with_file(self: Self, path: Path, n_ctx: int) -> Self:
        """Return the task with one more split, `file`: the problems of a file that fit the model.

        `left_out` counts the other problems.

        Args:
            path: The file.
            n_ctx: Number of positions of the model.

        Raises:
            ConfigError: The task cannot read files, or no problem of the file fits.
            ProblemError: The file or a row is malformed.
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
        """Return the problems of a split.

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
        """Return the problems of a split as token ids."""
        if split not in self._encoded:
            self._encoded[split] = [self.encode(problem) for problem in self.problems(split)]
        return self._encoded[split]

    def unsayable(self, split: str) -> int:
        """Count problems whose answer has an unknown word, so that no model can answer right."""
        unknown = self.vocabulary.unknown_token
        if unknown is None:
            return 0
        return sum(unknown in encoded.answer for encoded in self.encoded(split))

    def encode(self, problem: Problem) -> Encoded:
        """Encode a problem as token ids.

        Raises:
            ProblemError: One of its texts contains a special token.
        """
        names = self.names(problem)
        return encoded(
            self.vocabulary, problem, self.decides(problem), self.bridges(problem), names
        )

    @property
    def specials(self) -> Specials:
        """Ids of the special tokens that layouts insert."""
        start, end, latent, pause = map(self.vocabulary.special, SPECIALS)
        return Specials(start, end, latent, pause, self.vocabulary.end)

    # -- sequences

    def laid_out(self: Self, layout: Layout) -> Self:
        """Return the same task with another layout."""
        other = copy.copy(self)
        other.layout = layout
        other.__dict__.pop("splits", None)
        return other

    def lay_out(
        self, split: str, numbers: Sequence[int], layouts: Layout | Sequence[Layout] | None = None
    ) -> WordedBatch:
        """Lay out some problems of a split as sequences.

        Args:
            split: The split.
            numbers: Indices of the problems in the split.
            layouts: One layout for all problems, or one for each. The task's own by default.
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
        """Lay out problems of any split, or typed ones; `number` counts them from 0.

        Args:
            problems: The problems.
            layout: Their layout; the task's own by default.
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
        """Number of positions of the longest problem with all its steps and the fillers."""
        longest = (e.n_tokens + 3 for split in self.split_names for e in self.encoded(split))
        return max(longest) + self.layout.n_fillers

    def commonest(self, split: str) -> str:
        """Return the most common answer of a split."""
        answers = Counter(problem.answer for problem in self.problems(split))
        return answers.most_common(1)[0][0]

    def majority_rate(self, split: str) -> float:
        """Return the accuracy of always giving the split's most common answer."""
        commonest = self.commonest(split)
        right = [self.score(problem, commonest).right for problem in self.problems(split)]
        return sum(right) / len(right)

    @property
    def trained_difficulty(self) -> tuple[int, int]:
        steps = [len(problem.steps) for problem in self.problems("train")]
        return min(steps), max(steps)

    def examples(self, batch: Batch) -> list[dict[str, object]]:
        """Return rows in words.

        `question` can be typed in again, `given` is the whole prompt, and `answer` is the text that
        follows it.
        """
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
        """Return the question's tokens of a prompt: all but thoughts, pauses and their markers."""
        put_in = {*self.specials[:-1]}
        return [token for token in tokens if token not in put_in]

    def answer_in(self, said: str) -> str:
        """Return the answer in a model's output: the text after the last answer mark."""
        return said.rpartition(ANSWER)[2].strip()


class LazySplits(Mapping[str, Batch]):
    """Mapping of splits that are laid out on first access."""

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
    """Build a vocabulary of whole words that includes the tokens that layouts insert."""
    return WordVocabulary([*OWN, *words], split)
