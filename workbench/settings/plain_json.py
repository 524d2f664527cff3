"""Text, JSON and JSON lines from users, parsed to plain data or rejected with a clear error.

All loaders of the project read files through this module and `plain_yaml`. Whatever a file
contains, the result is plain data or a FileError.
"""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from workbench.settings.config import FileError

LONGEST = 100_000_000  # largest text file that is read, in bytes


def is_file(path: Path) -> bool:
    """Return whether the file exists; False for a name that the file system cannot hold."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def read_text(path: Path) -> str:
    """Return the content of a text file, without a byte-order mark.

    Raises:
        FileError: The file is missing, too large or not UTF-8 text.
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
    """Parse JSON text to plain data.

    Args:
        text: The JSON text.
        where: The name of the text in error messages.

    Raises:
        FileError: The text is not JSON, is nested too deeply, or has an invalid number (NaN,
            infinite or too large).
    """
    try:
        return json.loads(text, parse_float=_finite, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise FileError(
            f"{where} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    except RecursionError:
        raise FileError(f"{where} is nested too deep to be read") from None
    except ValueError as error:  # an integer with too many digits, or an error of `_finite`
        raise FileError(f"{where} is not JSON: {str(error).partition(';')[0]}") from None


def json_lines(text: str, where: str, growing: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield the value of each line of JSON-lines text, with the name of the line in error messages.

    Args:
        text: The JSON-lines text.
        where: The name of the text in error messages.
        growing: Whether the last line may be half-written; it is then skipped.

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
    """Return the record after checking that the given fields are present and valid.

    Args:
        record: Plain data.
        kinds: For each field, a test of its value and a description of valid values.
        where: The name of the record in error messages.

    Raises:
        FileError: The record is not an object, or a field is missing or fails its test.
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
    """Return whether a value is a non-negative integer."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_number(value: Any) -> bool:
    """Return whether a value is a number (not a bool)."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_numbers(value: Any) -> bool:
    """Return whether a value is a list of numbers, some of which may be None."""
    return isinstance(value, list) and all(v is None or is_number(v) for v in value)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is too large for a number")
    return number


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number in JSON")
