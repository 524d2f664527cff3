"""A question in words with solution steps and answer, and functions to read such rows from files.

Error messages number rows from 1, as a text editor numbers lines.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from workbench.settings.config import ConfigError, FileError, nearest
from workbench.settings.plain_json import parse_json, read_text

Value = TypeVar("Value")
KINDS = {
    str: "a text",
    int: "a whole number",
    list: "a list",
    dict: "an object",
}


class ProblemError(ConfigError):
    """Malformed data; the message names the file and the row."""


@dataclass(frozen=True)
class Problem:
    """One worded question."""

    question: str
    steps: tuple[str, ...]
    """The data set's own solution, step by step; may be empty."""
    answer: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Further data: the graph, the number, the supporting facts …"""


def read_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each line of a text file, preceded by its name for error messages.

    Raises:
        ProblemError: The file or one of its lines is empty.
        FileError: The file is missing or not a text file.
    """
    # Not splitlines: a question may contain other Unicode line separators
    lines = [line.removesuffix("\r") for line in read_text(path).rstrip().split("\n")]
    if lines == [""]:
        raise ProblemError(f"{path} is empty; it should hold one problem a line")
    for number, line in enumerate(lines, 1):
        where = f"row {number} of {path}"
        if not line.strip():
            raise ProblemError(f"{where} is empty; it should hold a problem")
        yield where, line


def read_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each object of a JSON list in a file, preceded by its name for error messages.

    Raises:
        ProblemError: The file is not JSON, not a list, empty, or an item is not an object.
        FileError: The file is missing or not a text file.
    """
    rows = from_json(read_text(path), str(path))
    if not isinstance(rows, list) or not rows:
        raise ProblemError(f"{path} should hold a list of problems and does not")
    yield from named_rows(rows, str(path))


def named_rows(rows: Iterable[Any], source: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each row, preceded by its name for error messages.

    Raises:
        ProblemError: A row is not an object.
    """
    for number, row in enumerate(rows, 1):
        where = f"row {number} of {source}"
        if not isinstance(row, Mapping):
            raise ProblemError(f"{where} should be an object with fields; it is {row!r:.60}")
        yield where, row


def from_json(text: str, where: str) -> Any:
    """Parse a JSON text.

    Raises:
        ProblemError: The text is not JSON.
    """
    try:
        return parse_json(text, where)
    except FileError as error:
        raise ProblemError(str(error)) from None


def value_of(row: Mapping[str, Any], name: str, kind: type[Value], where: str) -> Value:
    """Return a field of a row, after checking its type.

    Raises:
        ProblemError: The field is missing, has another type, or is an empty text.
    """
    if name not in row:
        raise ProblemError(f"{where} lacks the field {name!r}; {nearest(name, map(str, row))}")
    value = row[name]
    # bool is a subclass of int
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ProblemError(f"{where}: {name} should be {KINDS[kind]}; it is {value!r:.60}")
    if isinstance(value, str) and not value.strip():
        raise ProblemError(f"{where}: {name} is empty")
    return value


def texts_of(row: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    """Return a field of a row that holds a list of texts.

    Raises:
        ProblemError: The field is missing or not a list of texts.
    """
    return tuple(checked_texts(value_of(row, name, list, where), name, where))


def checked_texts(values: Any, name: str, where: str) -> list[str]:
    """Return the values if they are a list of texts.

    Raises:
        ProblemError: They are not.
    """
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ProblemError(f"{where}: {name} should be a list of texts; it is {values!r:.60}")
    return values
