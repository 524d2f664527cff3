"""Text, JSON and JSON lines as people hand them in: plain data, or a sentence on what is wrong.

Every loader of the project reads through here and through `plain_yaml`, so that whatever a file
holds ends in data or in a FileError.
"""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from workbench.settings.config import FileError

LONGEST = 100_000_000  # bytes of a text file that is read at once


def is_file(path: Path) -> bool:
    """Whether there is such a file; a name that no file system takes names none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def read_text(path: Path) -> str:
    """A text file whole, without a byte-order mark.

    Raises:
        FileError: The file is missing, too large or not text in UTF-8.
    """
    if not is_file(path):
        raise FileError(f"{path!s:.400} does not exist")
    try:
        if path.stat().st_size > LONGEST:
            raise FileError(f"{path} is larger than {LONGEST // 10**6} MB, the most that is read")
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise FileError(f"{path} is not text in UTF-8") from None
    except OSError as error:
        raise FileError(f"{path} cannot be read ({error.strerror})") from None


def parse_json(text: str, where: str) -> Any:
    """Plain data from a text in JSON.

    Args:
        text: The text.
        where: What it is called in an error's sentence.

    Raises:
        FileError: It is not JSON, is nested too deep, or holds a number that is none.
    """
    try:
        return json.loads(text, parse_float=_finite, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise FileError(
            f"{where} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    except RecursionError:
        raise FileError(f"{where} is nested too deep to be read") from None
    except ValueError as error:  # a whole number of too many digits, and what `_finite` refuses
        raise FileError(f"{where} is not JSON: {str(error).partition(';')[0]}") from None


def json_lines(text: str, where: str, growing: bool = False) -> Iterator[tuple[str, Any]]:
    """Each line of a text in JSON lines, with what it is called in an error's sentence.

    Args:
        text: The text.
        where: What it is called.
        growing: Whether the last line may be half-written, and is left out then.

    Raises:
        FileError: A line is not JSON.
    """
    lines = text.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    for number, line in enumerate(lines, 1):
        name = f"{where}, line {number}"
        try:
            yield name, parse_json(line, name)
        except FileError:
            if not (growing and number == len(lines)):
                raise


def fields_of(record: Any, kinds: Mapping[str, Any], where: str) -> dict[str, Any]:
    """An object whose named fields are all there and of the kinds given.

    Args:
        record: Plain data.
        kinds: A field's name, and a test of its value with words for what it should be.
        where: What the object is called in an error's sentence.

    Raises:
        FileError: It is not an object, or a field is missing or of another kind.
    """
    if not isinstance(record, dict):
        raise FileError(f"{where} should be an object with fields; it is {record!r:.60}")
    for name, (test, words) in kinds.items():
        if name not in record:
            raise FileError(f"{where} lacks the field {name!r}")
        if not test(record[name]):
            raise FileError(f"{where}: {name} should be {words}; it is {record[name]!r:.60}")
    return record


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number from 0 on."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_number(value: Any) -> bool:
    """Whether a value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_numbers(value: Any) -> bool:
    """Whether a value is a list of numbers, of which some may be missing."""
    return isinstance(value, list) and all(v is None or is_number(v) for v in value)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is too large for a number")
    return number


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number in JSON")
