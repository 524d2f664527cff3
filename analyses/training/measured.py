"""A run's history by split, as analyses of training read it."""

from collections.abc import Mapping, Sequence
from typing import Any

Record = Mapping[str, Any]


def curves_by_split(history: Sequence[Record]) -> dict[str, list[Record]]:
    """The measurements of each split, up to the last step that all splits have.

    Of a run in training the last step may be in the making: some splits are written, some not yet.
    """
    curves: dict[str, list[Record]] = {}
    for record in history:
        curves.setdefault(record["split"], []).append(record)
    n_steps = min(map(len, curves.values()), default=0)
    return {split: records[:n_steps] for split, records in curves.items()}
