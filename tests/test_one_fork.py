"""Loops and thoughts are told apart in one file."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FORK = "workbench/kinds.py"
KINDS = {"DepthModel", "ThoughtModel", "WordedTask", "WordedBatch", "LoopEmbedded"}
FILES = [
    str(path.relative_to(ROOT))
    for package in ("workbench", "analyses", "app", "benchmarks", "examples")
    for path in sorted((ROOT / package).rglob("*.py"))
]


def told_apart(source):
    """Lines that ask whether something is of one of the kinds' classes."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        if node.func.id in ("isinstance", "issubclass"):
            names = {n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name)}
            if names & KINDS:
                yield node.lineno


@pytest.mark.parametrize("file", [file for file in FILES if file != FORK])
def test_no_other_file_tells_loops_from_thoughts_by_class(file):
    assert list(told_apart((ROOT / file).read_text())) == []


def test_the_fork_itself_is_seen():
    assert list(told_apart((ROOT / FORK).read_text()))
