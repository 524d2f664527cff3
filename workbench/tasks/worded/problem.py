"""A question in words, the steps of its solution and its answer; and reading such rows from files.

Rows are numbered from 1 in errors, as a text editor numbers lines.
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
    """Data that is not as it should be; the sentence names file and row."""


@dataclass(frozen=True)
class Problem:
    """One worded question."""

    question: str
    steps: tuple[str, ...]
    """The data's own solution, step by step; may be empty."""
    answer: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What else is known: the graph, the number, the supporting facts …"""


def read_lines(path: Path) -> Iterator[tuple[str, str]]:
    """Every line of a text file, with what it is called in an error's sentence.

    Raises:
        ProblemError: The file or one of its lines is empty.
        FileError: The file is missing or no text.
    """
    # Not splitlines: a question may hold other characters that end a line in Unicode
    lines = [line.removesuffix("\r") for line in read_text(path).rstrip().split("\n")]
    if lines == [""]:
        raise ProblemError(f"{path} is empty; it should hold one problem a line")
    for number, line in enumerate(lines, 1):
        where = f"row {number} of {path}"
        if not line.strip():
            raise ProblemError(f"{where} is empty; it should hold a problem")
        yield where, line


def read_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every object of a JSON file that holds a list of them, with what it is called in an error.

    Raises:
        ProblemError: The file is no JSON, no list, an empty one, or holds something else.
        FileError: The file is missing or no text.
    """
    rows = from_json(read_text(path), str(path))
    if not isinstance(rows, list) or not rows:
        raise ProblemError(f"{path} should hold a list of problems and does not")
    yield from named_rows(rows, str(path))


def named_rows(rows: Iterable[Any], source: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Rows with what each is called in an error's sentence.

    Raises:
        ProblemError: A row is no object.
    """
    for number, row in enumerate(rows, 1):
        where = f"row {number} of {source}"
        if not isinstance(row, Mapping):
            raise ProblemError(f"{where} should be an object with fields; it is {row!r:.60}")
        yield where, row


def from_json(text: str, where: str) -> Any:
    """What a text in JSON says.

    Raises:
        ProblemError: It is no JSON.
    """
    try:
        return parse_json(text, where)
    except FileError as error:
        raise ProblemError(str(error)) from None


def value_of(row: Mapping[str, Any], name: str, kind: type[Value], where: str) -> Value:
    """A field of a row.

    Raises:
        ProblemError: The field is missing, of another kind, or an empty text.
    """
    if name not in row:
        raise ProblemError(f"{where} lacks the field {name!r}; {nearest(name, map(str, row))}")
    value = row[name]
    # True and False are whole numbers to Python
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ProblemError(f"{where}: {name} should be {KINDS[kind]}; it is {value!r:.60}")
    if isinstance(value, str) and not value.strip():
        raise ProblemError(f"{where}: {name} is empty")
    return value


def texts_of(row: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    """A field of a row that holds a list of texts.

    Raises:
        ProblemError: It does not.
    """
    return tuple(checked_texts(value_of(row, name, list, where), name, where))


def checked_texts(values: Any, name: str, where: str) -> list[str]:
    """A list of texts, if it is one.

    Raises:
        ProblemError: It is not.
    """
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ProblemError(f"{where}: {name} should be a list of texts; it is {values!r:.60}")
    return values
