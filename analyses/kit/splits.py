"""Batches by split, for analyses that compare splits."""

from collections.abc import Mapping

from workbench.tasks.batch import Batch

Batches = Batch | Mapping[str, Batch]


def by_split(batch: Batches) -> dict[str, Batch]:
    """Return batches by split name; a single batch gets a name too."""
    if isinstance(batch, Batch):
        return {"this question" if len(batch) == 1 else "batch": batch}
    return dict(batch)


def of_tests(values: Mapping[str, float]) -> float:
    """Return the highest value over test splits, which an accuracy on any of them has to beat."""
    return max((v for split, v in values.items() if split.startswith("test")), default=0.0)


def with_bridges(batch: Batches) -> dict[str, Batch]:
    """Return the splits in which some row has a bridge.

    Raises:
        ValueError: No split has one.
    """
    found = {
        split: rows for split, rows in by_split(batch).items() if bool((rows.bridge >= 0).any())
    }
    if not found:
        raise ValueError(
            "no row has a bridge; chains of words have one, facts and graphs have none"
        )
    return found
