"""A task: sums of several numbers modulo p, whose partial sums are the bridges.

    workbench --plugin examples/modular_sum.py data modular_sum --n 3

A question `3 5 6` is answered `0` for p = 7. Training shows sums of up to `train_terms` numbers,
test_id further ones of these lengths, and test_ood longer ones.
"""

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import torch

from workbench import TASKS
from workbench.settings.config import StrictModel
from workbench.tasks.base import Task
from workbench.tasks.batch import NONE, PAD, Batch
from workbench.words.vocabulary import WordVocabulary


class ModularSumConfig(StrictModel):
    """Sizes of the task."""

    modulus: int = 23
    train_terms: int = 4
    test_terms: int = 6
    n_train: int = 10_000
    n_test: int = 1_000


@TASKS.register("modular_sum", example={"modulus": 7, "n_train": 40, "n_test": 10})
class ModularSum(Task):
    """Sums modulo p; difficulty counts additions."""

    Config = ModularSumConfig
    cfg: ModularSumConfig
    unit = "additions"

    def __init__(self, cfg: ModularSumConfig, seed: int) -> None:
        super().__init__(cfg, seed)
        self.vocabulary = WordVocabulary(["<pad>", *map(str, range(cfg.modulus))])

    @property
    def n_ctx(self) -> int:
        return self.cfg.test_terms

    @cached_property
    def splits(self) -> Mapping[str, Batch]:
        cfg = self.cfg
        short = self._draw(0, range(2, cfg.train_terms + 1), cfg.n_train + cfg.n_test)
        long = self._draw(1, range(cfg.train_terms + 1, cfg.test_terms + 1), cfg.n_test)
        rows = {"train": short[: cfg.n_train], "test_id": short[cfg.n_train :], "test_ood": long}
        return {split: self._batch(terms) for split, terms in rows.items()}

    def shortcuts(self, split: str) -> dict[str, float]:
        """Guess the last number: right if the others add up to 0."""
        rows = self.splits[split]
        last = rows.tokens.gather(1, rows.read_at[:, None])[:, 0]
        return {"the last number": float((last == rows.answer).float().mean())}

    def question(self, text: str) -> Batch:
        tokens = self.vocabulary.encode(text)
        if not 2 <= len(tokens) <= self.n_ctx:
            raise ValueError(f"{text!r} has {len(tokens)} numbers; a sum has 2 to {self.n_ctx}")
        return self._batch([tuple(token - 1 for token in tokens)]).trimmed()

    def _draw(self, stream: int, lengths: range, n: int) -> list[tuple[int, ...]]:
        """Different sums, in an order drawn from the task's seed."""
        rng = np.random.default_rng([self.seed, stream])
        if n > sum(self.cfg.modulus**length for length in lengths) // 2:
            raise ValueError(f"there are not {n} different sums of {list(lengths)} numbers")
        found: dict[tuple[int, ...], None] = {}
        while len(found) < n:
            terms = rng.integers(self.cfg.modulus, size=rng.choice(lengths))
            found[tuple(terms.tolist())] = None
        return list(found)

    def _batch(self, sums: list[tuple[int, ...]]) -> Batch:
        width = self.n_ctx
        tokens = np.full((len(sums), width), PAD)
        partial = np.full((len(sums), width), NONE)
        for row, terms in enumerate(sums):
            tokens[row, : len(terms)] = np.array(terms) + 1
            partial[row, : len(terms)] = np.cumsum(terms) % self.cfg.modulus + 1
        length = torch.tensor([len(terms) for terms in sums])
        answer = torch.from_numpy(partial).gather(1, length[:, None] - 1)[:, 0]
        inner = torch.arange(width) < length[:, None] - 1  # of the last number it is the answer
        bridge = torch.from_numpy(partial).where(inner, torch.tensor(NONE))[:, 1:-1]
        at = torch.arange(1, width - 1).expand_as(bridge).where(bridge >= 0, torch.tensor(NONE))
        words = torch.from_numpy(tokens)
        return Batch(words, length, length - 1, answer, length - 1, bridge, at)
