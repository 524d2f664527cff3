"""GSM8K: word problems with worked solutions, from files or from rows of the Hub.

    official    JSON lines (Cobbe et al. 2021): question, and an answer of worked lines with
                calculator marks <<48/2=24>>; its last line is "#### 24"
    augmented   text lines (Deng et al. 2023): question||<<48/2=24>> <<48+24=72>> #### 72

The steps are the calculator marks, or (official format) the worked lines without their marks. In
both formats a few solutions have no marks and therefore no steps.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from workbench.settings.config import nearest
from workbench.tasks.worded.problem import (
    Problem,
    ProblemError,
    from_json,
    named_rows,
    read_lines,
    value_of,
)
from workbench.tasks.worded.scoring import only_number_in

STEPS = ("marks", "lines")
MARK = re.compile(r"<<[^<>]*>>")
STEP = re.compile(r"<<[^<>]*>>|\S+")  # other words are steps too, so that nothing is lost
FINAL = "####"
BARS = "||"
FORMATS = {".jsonl": "official", ".txt": "augmented"}


def load_gsm8k(path: Path, steps: str = "marks") -> list[Problem]:
    """Read the problems of a file: official if its name ends in .jsonl, augmented if in .txt.

    `facts` holds the answer as a number. For the augmented format, `steps` makes no difference.

    Raises:
        ProblemError: The file has another suffix, or a row is malformed.
        FileError: The file is missing or not a text file.
    """
    if path.suffix not in FORMATS:
        raise ProblemError(
            f"{path} ends in {path.suffix!r}; {nearest(path.suffix, FORMATS)} (.jsonl is the "
            "official format, .txt the augmented one)"
        )
    if FORMATS[path.suffix] == "augmented":
        return [augmented_line(line, where) for where, line in read_lines(path)]
    return [_json_line(line, where, steps) for where, line in read_lines(path)]


def gsm8k_problems(rows: Iterable[Any], source: str, steps: str = "marks") -> list[Problem]:
    """Convert rows with question and answer, in the format of the Hub, to problems.

    Raises:
        ProblemError: A row is malformed; the message names `source` and the row.
    """
    return [gsm8k_row(row, where, steps) for where, row in named_rows(rows, source)]


def gsm8k_row(row: Mapping[str, Any], where: str, steps: str = "marks") -> Problem:
    """Convert one row in the official format to a problem; `where` names the row in errors.

    Raises:
        ProblemError: A field is missing, or the answer has no line that starts with ####.
    """
    if steps not in STEPS:
        raise ProblemError(f"no steps {steps!r}; {nearest(steps, ('marks', 'lines'))}")
    question = value_of(row, "question", str, where)
    worked, number = _split(value_of(row, "answer", str, where), where)
    if steps == "marks":
        found = MARK.findall(worked)
    else:
        found = [MARK.sub("", line).strip() for line in worked.split("\n") if line.strip()]
    return _problem(question, found, number, where)


def augmented_line(line: str, where: str) -> Problem:
    """Convert one line in the augmented format to a problem; `where` names the line in errors.

    Raises:
        ProblemError: There are no bars after the question, or no #### before the answer.
    """
    question, bars, rest = line.partition(BARS)
    if not bars:
        raise ProblemError(f"{where} has no {BARS} between question and steps")
    if not question.strip():
        raise ProblemError(f"{where}: question is empty")
    worked, number = _split(rest, where)
    return _problem(question, STEP.findall(worked), number, where)


def _json_line(line: str, where: str, steps: str) -> Problem:
    row = from_json(line, where)
    if not isinstance(row, dict):
        raise ProblemError(f"{where} should be an object with fields; it is {row!r:.60}")
    return gsm8k_row(row, where, steps)


def _split(solution: str, where: str) -> tuple[str, str]:
    """Split a solution into the text before the answer, and the answer."""
    worked, final, number = solution.rpartition(FINAL)
    if not final:
        raise ProblemError(f"{where} has no {FINAL} before its answer")
    return worked, number.strip()


def _problem(question: str, steps: list[str], answer: str, where: str) -> Problem:
    number = only_number_in(answer)
    if number is None:
        raise ProblemError(f"{where}: the answer {answer!r} after {FINAL} is not one number")
    return Problem(question.strip(), tuple(steps), answer.replace(",", ""), {"number": number})
