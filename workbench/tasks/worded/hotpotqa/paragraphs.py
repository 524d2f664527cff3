"""HotpotQA: questions over several paragraphs, from the official files or from rows of the Hub.

HotpotQA has no annotated reasoning steps. This project uses its supporting facts as steps: these
are sentences of the paragraphs, in the order in which a row lists them.

    context   none         only the question
              supporting   the paragraphs with a supporting fact, then the question
              all          all paragraphs, then the question

A paragraph is one line: its title, a colon and its sentences. A few rows list a supporting fact
whose sentence index is out of range. Such a fact is not used as a step and is counted in `missing`.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from workbench.settings.config import nearest
from workbench.tasks.worded.problem import (
    Problem,
    ProblemError,
    checked_texts,
    named_rows,
    read_rows,
    texts_of,
    value_of,
)

Paragraph = tuple[str, list[str]]
SupportingFact = tuple[str, int]
CONTEXTS = ("none", "supporting", "all")


def load_hotpotqa(path: Path, context: str = "none") -> list[Problem]:
    """Read the problems of an official file, a JSON list.

    Raises:
        ProblemError: The file or a row is malformed; the message names both.
        FileError: The file is missing or not a text file.
    """
    return [hotpotqa_row(row, where, context) for where, row in read_rows(path)]


def hotpotqa_problems(rows: Iterable[Any], source: str, context: str = "none") -> list[Problem]:
    """Convert rows in the format of the Hub or of the official files to problems.

    Raises:
        ProblemError: A row is malformed; the message names `source` and the row.
    """
    return [hotpotqa_row(row, where, context) for where, row in named_rows(rows, source)]


def hotpotqa_row(row: Mapping[str, Any], where: str, context: str = "none") -> Problem:
    """Convert one row in either format to a problem; `where` names the row in errors.

    `facts` holds `supporting` (title and index of each sentence that is a step), `missing` (the
    number of listed facts that no paragraph holds), `id`, `type` and `level` (None if the row lacks
    them).

    Raises:
        ProblemError: A field is missing or malformed.
    """
    if context not in CONTEXTS:
        raise ProblemError(f"no context {context!r}; {nearest(context, CONTEXTS)}")
    question, answer = (value_of(row, name, str, where).strip() for name in ("question", "answer"))
    paragraphs = _paragraphs(row, where)
    sentences: dict[SupportingFact, str] = {
        (title, number): sentence.strip()
        for title, lines in reversed(paragraphs)  # the first of two paragraphs with one title wins
        for number, sentence in enumerate(lines)
    }
    listed = _supporting(row, where)
    held = tuple(fact for fact in listed if fact in sentences)
    titles = {title for title, _ in held}
    shown = [p for p in paragraphs if context == "all" or (context != "none" and p[0] in titles)]
    return Problem(
        question="\n".join([*map(_line, shown), question]),
        steps=tuple(sentences[fact] for fact in held),
        answer=answer,
        facts={
            "supporting": held,
            "missing": len(listed) - len(held),
            "id": row.get("_id", row.get("id")),
            "type": row.get("type"),
            "level": row.get("level"),
        },
    )


def _line(paragraph: Paragraph) -> str:
    title, sentences = paragraph
    return f"{title}: {' '.join(sentence.strip() for sentence in sentences)}"


def _paragraphs(row: Mapping[str, Any], where: str) -> list[Paragraph]:
    """Read title and sentences of each paragraph: a list of pairs (official) or two lists (Hub)."""
    context = row.get("context")
    if isinstance(context, Mapping):
        titles = texts_of(context, "title", f"{where}, context")
        lists = value_of(context, "sentences", list, f"{where}, context")
        pairs = _pairs(titles, lists, "context", where)
    else:
        pairs = [_pair(item, "context", where) for item in value_of(row, "context", list, where)]
    return [(title, checked_texts(lines, "sentences", where)) for title, lines in pairs]


def _supporting(row: Mapping[str, Any], where: str) -> list[SupportingFact]:
    """Read title and index of each supporting fact: a list of pairs (official), two lists (Hub)."""
    facts = row.get("supporting_facts")
    if isinstance(facts, Mapping):
        titles = texts_of(facts, "title", f"{where}, supporting_facts")
        numbers = value_of(facts, "sent_id", list, f"{where}, supporting_facts")
        pairs = _pairs(titles, numbers, "supporting_facts", where)
    else:
        listed = value_of(row, "supporting_facts", list, where)
        pairs = [_pair(item, "supporting_facts", where) for item in listed]
    for title, number in pairs:
        if type(number) is not int:
            raise ProblemError(
                f"{where}: supporting_facts should name sentences by number; {title!r} has "
                f"{number!r:.60}"
            )
    return pairs


def _pairs(titles: tuple[str, ...], others: list[Any], name: str, where: str) -> list[Any]:
    if len(titles) != len(others):
        raise ProblemError(f"{where}: {name} has {len(titles)} titles for {len(others)} others")
    return list(zip(titles, others, strict=True))


def _pair(item: Any, name: str, where: str) -> tuple[str, Any]:
    if not isinstance(item, list | tuple) or len(item) != 2 or not isinstance(item[0], str):
        raise ProblemError(f"{where}: {name} should hold a title and one more; it is {item!r:.60}")
    return item[0], item[1]
