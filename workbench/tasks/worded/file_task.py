"""Worded tasks whose problems come from files or from the Hub, for any tokenizer."""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic import model_validator

from workbench.settings.config import ConfigError
from workbench.tasks.worded.detokenize import join_words, split_words
from workbench.tasks.worded.problem import Problem
from workbench.tasks.worded.task import WordedConfig, WordedTask, word_vocabulary
from workbench.words.vocabulary import WordVocabulary

UNKNOWN = "<|unknown|>"
SPLITS = ("train", "valid", "test")


class FileTaskConfig(WordedConfig):
    """Sources of the problems; a split without a file comes from `hub`, or does not exist."""

    train_file: str | None = None
    valid_file: str | None = None
    test_file: str | None = None
    hub: str | None = None  # id of a data set
    hub_name: str | None = None  # name of one of its configurations
    n_train: int | None = None  # take the first n rows of each split; all rows by default
    n_valid: int | None = None
    n_test: int | None = None
    # Limit for question, steps and answer together; longer problems do not count towards n_*
    most_tokens: int | None = None

    @model_validator(mode="after")
    def _check_source(self) -> "FileTaskConfig":
        if self.most_tokens is not None and self.most_tokens < 1:
            raise ValueError(f"most_tokens={self.most_tokens} must be at least 1")
        if self.most_tokens is not None and self.tokenizer == "words":
            raise ValueError(
                "most_tokens is for a tokenizer's model with a context of its own; a model of "
                "tokenizer 'words' is made as long as its task needs"
            )
        if self.hub is None and self.train_file is None and self.test_file is None:
            raise ValueError("say where the problems are: train_file, test_file or hub")
        for split in SPLITS:
            n = getattr(self, f"n_{split}")
            if n is not None and n < 1:
                raise ValueError(f"n_{split}={n} must be at least 1")
        return self


class FileTask(WordedTask):
    """Base class of tasks with problems from existing data sets."""

    too_long: ClassVar[str] = "; task.most_tokens leaves longer problems out"
    cfg: FileTaskConfig
    hub_splits: ClassVar[Mapping[str, str]]
    """Name of each split on the Hub."""

    @abstractmethod
    def load(self, path: Path) -> list[Problem]:
        """Read the problems of a file."""

    @abstractmethod
    def from_rows(self, rows: Iterable[Mapping[str, Any]], source: str) -> list[Problem]:
        """Convert rows of a Hub data set to problems."""

    @property
    def split_names(self) -> Sequence[str]:
        if self.cfg.hub is None:
            return [s for s in SPLITS if getattr(self.cfg, f"{s}_file") is not None]
        own = {s for s in SPLITS if getattr(self.cfg, f"{s}_file") is not None}
        return [s for s in SPLITS if s in self.hub_splits or s in own]

    @property
    def default_split(self) -> str:
        return next(s for s in ("test", "valid", "train") if s in self.split_names)

    def read_problems(self, split: str) -> list[Problem]:
        path = getattr(self.cfg, f"{split}_file")
        n = getattr(self.cfg, f"n_{split}")
        found = self._of_hub(split) if path is None else self.load(Path(path))
        most = self.cfg.most_tokens
        return found[:n] if most is None else self._short(split, found, n, most)

    def from_file(self, path: Path) -> tuple[list[Problem], dict[str, int]]:
        return self.load(path), {}

    def _short(
        self, split: str, found: Sequence[Problem], n: int | None, most: int
    ) -> list[Problem]:
        """Return the first n problems with at most `most` tokens.

        Raises:
            ConfigError: All problems are longer.
        """
        kept: list[Problem] = []
        too_long = 0
        for problem in found:
            if len(kept) == n:
                break
            if self.encode(problem).n_tokens <= most:
                kept.append(problem)
            else:
                too_long += 1
        if not kept:
            raise ConfigError(f"all {too_long:,} problems of {split} have more than {most} tokens")
        self.left_out[split] = too_long
        return kept

    def _of_hub(self, split: str) -> list[Problem]:
        from datasets import load_dataset

        name = self.hub_splits[split]
        source = f"{self.cfg.hub}, split {name}"
        try:
            rows = load_dataset(str(self.cfg.hub), self.cfg.hub_name, split=name)
        except Exception as error:  # network and Hub errors have many types
            reason = str(error).partition("\n")[0]
            raise ConfigError(f"no data set {source}: {reason}") from None
        return self.from_rows(rows, source)

    def own_words(self) -> WordVocabulary:
        """Return the words of the training problems; one token stands for all other words."""
        first = "train" if "train" in self.split_names else self.split_names[0]
        found: dict[str, None] = {}
        for problem in self.problems(first):
            for text in (problem.question, *problem.steps, problem.answer):
                found.update(dict.fromkeys(split_words(text)))
        known = word_vocabulary([UNKNOWN, *sorted(found)]).words
        return WordVocabulary(list(dict.fromkeys(known)), split_words, UNKNOWN, join_words)

    def shortcuts(self, split: str) -> dict[str, float]:
        """Return the accuracy of always giving the most common answer of training."""
        if "train" not in self.split_names:
            return {"commonest answer": self.majority_rate(split)}
        commonest = self.commonest("train")
        right = [self.score(p, commonest).right for p in self.problems(split)]
        return {"commonest answer of training": sum(right) / len(right)}

    def typed(self, text: str) -> Problem:
        """Return a typed question as a problem without a known answer."""
        if not text.strip():
            raise ValueError("the question is empty; it needs at least one word")
        return Problem(text.strip(), (), "?")
