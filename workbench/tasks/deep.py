"""What VCoT's tasks on sequences share: splits by depth, and guesses without reasoning.

    train   rows of the depths trained on
    valid   other rows of some of these depths
    test    rows of depths trained on and deeper ones, told apart by `batch.depth`

No row of one split stands in another. The first position holds <cls>, where the answer is read.
"""

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Bool, Int, Num
from pydantic import model_validator

from workbench.settings.config import StrictModel
from workbench.tasks.base import Task
from workbench.tasks.batch import Batch, DeepBatch

SPLITS = ("train", "valid", "test")

Tokens = Int[np.ndarray, "batch pos"]
Rows = Int[np.ndarray, " batch"]


class DeepConfig(StrictModel):
    """Depths of each split and rows of each depth; the longest row, its <cls> included."""

    train_depths: list[int]
    valid_depths: list[int]
    test_depths: list[int]
    n_train: int
    n_valid: int
    n_test: int
    max_length: int = 128
    # `matched` rows come in pairs that answer differently and look alike to whoever counts words
    version: Literal["paper", "matched"] = "paper"

    @model_validator(mode="after")
    def _check_depths(self) -> "DeepConfig":
        self.check_at_least(1, "n_train", "n_valid", "n_test", "max_length")
        self.check_at_most(10_000, "max_length")
        for split in SPLITS:
            depths = getattr(self, f"{split}_depths")
            if not depths or min(depths) < 1 or len(set(depths)) < len(depths):
                raise ValueError(
                    f"{split}_depths={depths} must be one or more different depths from 1"
                )
        return self

    def rows(self, split: str) -> dict[int, int]:
        """Rows of a split by their depth."""
        return dict.fromkeys(getattr(self, f"{split}_depths"), getattr(self, f"n_{split}"))


class DeepTask(Task):
    """Questions answered by yes or no, as hard as they are deep."""

    cfg: DeepConfig
    readout = "cls"
    unit = "depth"
    no_and_yes: ClassVar[tuple[str, str]]

    @cached_property
    @abstractmethod
    def splits(self) -> Mapping[str, DeepBatch]: ...

    @abstractmethod
    def local_features(self, batch: Batch) -> dict[str, Num[np.ndarray, " batch"]]:
        """What can be said of each question without reasoning, by name; a number for each row."""

    @abstractmethod
    def guesses(self, batch: Batch) -> dict[str, Rows]:
        """Answers by rules that do not reason, fitted on the train split, by their names."""

    @property
    def n_ctx(self) -> int:
        return self.cfg.max_length

    @property
    def answers(self) -> Sequence[str]:
        return self.no_and_yes

    def shortcuts(self, split: str) -> dict[str, float]:
        """Accuracy of each rule of `guesses`, and of the commonest answer of the train split."""
        if split not in self._shortcuts:
            batch = self.split(split)
            guesses = self.guesses(batch) | {"commonest answer": np.full(len(batch), self._usual)}
            right = {rule: guess == batch.answer.numpy() for rule, guess in guesses.items()}
            self._shortcuts[split] = {rule: float(hit.mean()) for rule, hit in right.items()}
        return self._shortcuts[split]

    @cached_property
    def _shortcuts(self) -> dict[str, dict[str, float]]:
        return {}

    @cached_property
    def _usual(self) -> int:
        """The commonest answer of the train split; no where both are as common."""
        return int(self.splits["train"].answer.double().mean() > 0.5)

    def _check_length(self, n_tokens: int) -> None:
        if n_tokens > self.cfg.max_length:
            raise ValueError(
                f"the question takes {n_tokens} tokens with its <cls>; max_length is "
                f"{self.cfg.max_length}"
            )


class Table:
    """The commonest answer of all rows that look alike; one answer for looks never seen."""

    def __init__(self, seen: Int[np.ndarray, "row feature"], answer: Rows, otherwise: int) -> None:
        self.otherwise = otherwise
        looks, row = np.unique(seen, axis=0, return_inverse=True)
        ayes = np.bincount(row.reshape(-1), answer, len(looks))
        of_all = np.bincount(row.reshape(-1), minlength=len(looks))
        # where both are as common, the one for looks never seen
        guess = np.where(2 * ayes == of_all, otherwise, 2 * ayes > of_all)
        self.guess: dict[Hashable, int] = dict(
            zip(map(tuple, looks.tolist()), map(int, guess), strict=True)
        )

    def __call__(self, seen: Int[np.ndarray, "row feature"]) -> Rows:
        guesses = [self.guess.get(tuple(look), self.otherwise) for look in seen.tolist()]
        return np.array(guesses, dtype=np.int64)


def deep_batch(
    tokens: Tokens,
    length: Rows,
    answer: Rows,
    depth: Rows,
    asked: tuple[Rows, Rows] | None = None,
) -> DeepBatch:
    """Rows that pass through no entity between question and answer, read at their first token."""
    nowhere = np.zeros(len(tokens), np.int64)
    nothing = np.zeros((len(tokens), 0), np.int64)
    source_at, target_at = asked or (nowhere, nowhere)
    every = {
        "tokens": tokens,
        "length": length,
        "read_at": nowhere,
        "answer": answer,
        "difficulty": depth,
        "bridge": nothing,
        "bridge_at": nothing,
        "source_at": source_at,
        "target_at": target_at,
    }
    kinds = {name: np.ascontiguousarray(values, np.int64) for name, values in every.items()}
    return DeepBatch(**{name: torch.from_numpy(values) for name, values in kinds.items()})


def widened(tokens: Tokens, width: int) -> Int[np.ndarray, "batch width"]:
    """The same rows with padding up to a width."""
    return np.pad(tokens, ((0, 0), (0, width - tokens.shape[1])))


def firsts(tokens: Tokens) -> Bool[np.ndarray, " batch"]:
    """Which rows are the first of all that equal them."""
    narrow = np.ascontiguousarray(tokens, np.uint8)
    rows = narrow.view(np.dtype((np.void, narrow.shape[1])))[:, 0]
    first = np.zeros(len(tokens), bool)
    first[np.unique(rows, return_index=True)[1]] = True
    return first
