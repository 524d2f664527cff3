"""GSM8K: sums in words with their worked solutions, from files or from rows of the hub.

    official    JSON lines (Cobbe et al. 2021): question, and answer of worked lines with calculator
                marks <<48/2=24>>, whose last line is "#### 24"
    augmented   text lines (Deng et al. 2023): question||<<48/2=24>> <<48+24=72>> #### 72

The steps are the calculator marks, or (official format) the worked lines without their marks. In
both formats a few solutions have no mark, and then no steps.
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
STEP = re.compile(r"<<[^<>]*>>|\S+")  # whatever is no mark is a step too, so that nothing is lost
FINAL = "####"
BARS = "||"
FORMATS = {".jsonl": "official", ".txt": "augmented"}


def load_gsm8k(path: Path, steps: str = "marks") -> list[Problem]:
    """The problems of a file: official if its name ends in .jsonl, augmented if in .txt.

    `facts` holds the answer as a number. The augmented format has the same steps either way.

    Raises:
        ProblemError: The name says neither, or a row is not as it should be.
        FileError: The file is missing or no text.
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
    """The problems of rows with question and answer, as the hub gives them.

    Raises:
        ProblemError: A row is not as it should be; the sentence names `source` and row.
    """
    return [gsm8k_row(row, where, steps) for where, row in named_rows(rows, source)]


def gsm8k_row(row: Mapping[str, Any], where: str, steps: str = "marks") -> Problem:
    """The problem of one row in the official form; `where` names it in errors.

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
    """The problem of one line in the augmented form; `where` names it in errors.

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
    """What stands before the answer, and the answer."""
    worked, final, number = solution.rpartition(FINAL)
    if not final:
        raise ProblemError(f"{where} has no {FINAL} before its answer")
    return worked, number.strip()


def _problem(question: str, steps: list[str], answer: str, where: str) -> Problem:
    number = only_number_in(answer)
    if number is None:
        raise ProblemError(f"{where}: the answer {answer!r} after {FINAL} is not one number")
    return Problem(question.strip(), tuple(steps), answer.replace(",", ""), {"number": number})
