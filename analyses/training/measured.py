"""A run's history by split, for the analyses of training."""

from collections.abc import Mapping, Sequence
from typing import Any

Record = Mapping[str, Any]


def curves_by_split(history: Sequence[Record]) -> dict[str, list[Record]]:
    """Group the measurements by split, up to the last step that all splits have.

    While a run is training, its last step may be incomplete: not all splits are written yet.
    """
    curves: dict[str, list[Record]] = {}
    for record in history:
        curves.setdefault(record["split"], []).append(record)
    n_steps = min(map(len, curves.values()), default=0)
    return {split: records[:n_steps] for split, records in curves.items()}
