"""The order of training data: batch i is a pure function of (seed, i)."""

import zlib
from collections.abc import Mapping

import numpy as np
import torch

from workbench.settings.config import ConfigError, nearest
from workbench.tasks.base import Task
from workbench.tasks.batch import Batch


class BatchStream:
    """Batches that hold a fixed number of rows of each split.

    The rows of each split are shuffled separately, and anew for every epoch. All rows stay on one
    device; nothing is loaded during training.
    """

    def __init__(
        self,
        task: Task,
        mixture: Mapping[str, float] | None,
        batch_size: int,
        seed: int,
        device: str | torch.device = "cpu",
    ) -> None:
        shares = mixture or proportional(task)
        for split in shares:
            if split not in task.splits:
                raise ConfigError(f"mixture: no split {split!r}; {nearest(split, task.splits)}")
        self.seed = seed
        self.rows = {split: task.split(split).to(device) for split in shares}
        self.counts = _whole(shares, batch_size)
        self.orders = {
            split: Order(split, len(rows), seed, device) for split, rows in self.rows.items()
        }

    def batch(self, number: int) -> Batch:
        """Return the rows of one step, one split after the other."""
        parts = []
        for split, count in self.counts.items():
            places = self.orders[split].places(number * count, count)
            parts.append(self.rows[split][places])
        return Batch.cat(parts)

    def loops(self, number: int, least: int, most: int) -> int:
        """Return the number of loops of batch `number`, uniform from `least` to `most`."""
        rng = np.random.default_rng([self.seed, zlib.crc32(b"loops"), number])
        return int(rng.integers(least, most + 1))

    def epoch(self, number: int) -> float:
        """Return how often the rows of the main split have been seen before batch `number`."""
        split = self.main_split
        return number * self.counts[split] / len(self.rows[split])

    @property
    def main_split(self) -> str:
        """The split whose passes count as epochs: `train_id` (chains) if used, else the first."""
        return "train_id" if "train_id" in self.counts else next(iter(self.counts))


class Order:
    """Training order of the rows of a split, shuffled anew for every epoch."""

    def __init__(
        self, split: str, size: int, seed: int, device: str | torch.device = "cpu"
    ) -> None:
        self.split = split
        self.size = size
        self.seed = seed
        self.device = device
        self._present: tuple[int, torch.Tensor] | None = None  # the current epoch and its order

    def places(self, start: int, count: int) -> torch.Tensor:
        """Return rows start … start+count of the concatenated orders of all epochs."""
        parts = []
        while count:
            epoch, offset = divmod(start, self.size)
            part = self._order(epoch)[offset : offset + count]
            parts.append(part)
            start, count = start + len(part), count - len(part)
        return torch.cat(parts)

    def _order(self, epoch: int) -> torch.Tensor:
        if self._present is None or self._present[0] != epoch:
            rng = np.random.default_rng([self.seed, zlib.crc32(self.split.encode()), epoch])
            order = torch.from_numpy(rng.permutation(self.size))
            self._present = epoch, order.to(self.device)
        return self._present[1]


def proportional(task: Task) -> dict[str, float]:
    """Return the share of every training split, in proportion to its size."""
    sizes = {name: len(rows) for name, rows in task.splits.items() if name.startswith("train")}
    return {name: size / sum(sizes.values()) for name, size in sizes.items()}


def _whole(shares: Mapping[str, float], total: int) -> dict[str, int]:
    """Turn shares into counts that add up to the total; the largest remainders are rounded up."""
    counts = {split: int(share * total) for split, share in shares.items()}
    left = total - sum(counts.values())
    by_remainder = sorted(shares, key=lambda split: counts[split] - shares[split] * total)
    for split in by_remainder[:left]:
        counts[split] += 1
    return {split: count for split, count in counts.items() if count}
