"""The history of a run: one measurement per line, with the required fields checked."""

from pathlib import Path
from typing import Any

from workbench.settings.plain_json import (
    fields_of,
    is_number,
    is_numbers,
    is_whole,
    json_lines,
    read_text,
)

NEEDED = {
    "step": (is_whole, "a whole number"),
    "split": (lambda value: isinstance(value, str), "a text"),
    "accuracy": (is_number, "a number"),
}
KNOWN = {
    "epoch": (lambda value: value is None or is_number(value), "a number"),
    "stage": (lambda value: value is None or is_whole(value), "a whole number"),
    "loss": (lambda value: value is None or is_number(value), "a number"),
    "seconds": (is_number, "a number"),
    "learning_rate": (lambda value: value is None or is_number(value), "a number"),
    "gradient_norm": (lambda value: value is None or is_number(value), "a number"),
    "gates": (lambda value: value is None or isinstance(value, dict), "an object"),
}
BY_LOOP = "_by_loop"  # fields with this suffix are lists of numbers


def read_history(path: Path) -> list[dict[str, Any]]:
    """Read all measurements of a history file; none if there is no file yet.

    While a run is in training, the last line may be half-written; it is then left out.

    Raises:
        FileError: A line is not JSON, lacks a field or has one of the wrong type.
    """
    if not path.exists():
        return []
    lines = json_lines(read_text(path), str(path), growing=True)
    return [checked(record, where) for where, record in lines]


def checked(record: Any, where: str) -> dict[str, Any]:
    """Check one measurement and return it.

    Raises:
        FileError: It lacks a field, or has one of the wrong type.
    """
    found = fields_of(record, NEEDED, where)
    there = {name: kind for name, kind in KNOWN.items() if name in found}
    by_loop = {
        name: (lambda value: value is None or is_numbers(value), "a list of numbers")
        for name in found
        if name.endswith(BY_LOOP)
    }
    return fields_of(found, there | by_loop, where)
