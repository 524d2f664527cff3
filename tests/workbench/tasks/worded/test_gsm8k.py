"""Sums in both formats, and rows that are none."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

from workbench.settings.files import FileError
from workbench.tasks.worded.gsm8k.sums import gsm8k_problems, load_gsm8k
from workbench.tasks.worded.problem import Problem, ProblemError

DATA = Path(__file__).parents[3] / "data" / "worded"
ROW = {
    "question": "Tom saws 48 boards and half as many more. How many?",
    "answer": "He saws 48/2=<<48/2=24>>24 more.\nThat makes <<48+24=72>>72.\n#### 1,072",
}


def test_marks_or_lines_are_the_steps():
    (marks,), (lines,) = gsm8k_problems([ROW], "hub"), gsm8k_problems([ROW], "hub", "lines")
    assert marks == Problem(
        ROW["question"], ("<<48/2=24>>", "<<48+24=72>>"), "1072", {"number": Decimal(1072)}
    )
    assert lines.steps == ("He saws 48/2=24 more.", "That makes 72.")


def test_an_excerpt_of_the_official_file():
    problems = load_gsm8k(DATA / "gsm8k_excerpt.jsonl")
    assert len(problems) == 8
    assert problems[0].steps == ("<<16-3-4=9>>", "<<9*2=18>>")
    assert problems[0].answer == "18"
    assert problems[-1].steps == ()
    assert load_gsm8k(DATA / "gsm8k_excerpt.jsonl", "lines")[-1].steps


def test_an_excerpt_of_the_augmented_file():
    problems = load_gsm8k(DATA / "gsm8k_augmented_excerpt.txt")
    assert len(problems) == 8
    assert problems[0].steps == ("<<4-2=2>>", "<<2/.5=4>>", "<<12/4=3>>", "<<100*3=300>>")
    assert problems[0].facts["number"] == 300
    assert problems[-1].steps == ()


def test_what_is_no_mark_is_a_step_of_its_own(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("How many?||<<1 + 1=2>> 2+2=4 #### 4\n")
    assert load_gsm8k(path)[0].steps == ("<<1 + 1=2>>", "2+2=4")


def test_an_odd_line_end_inside_a_question_is_no_line_end(tmp_path):
    path = tmp_path / "a.jsonl"
    row = ROW | {"question": "How\u2028many?"}
    path.write_text(json.dumps(row, ensure_ascii=False) + "\r\n", encoding="utf-8")
    assert load_gsm8k(path)[0].question == "How\u2028many?"


@pytest.mark.parametrize(
    ("name", "second", "sentence"),
    [
        ("a.jsonl", "{", "row 2 of .*a.jsonl is not JSON"),
        ("a.jsonl", "[1]", r"row 2 of .* should be an object with fields; it is \[1\]"),
        ("a.jsonl", '{"question": "?"}', "row 2 of .* lacks the field 'answer'"),
        ("a.jsonl", '{"question": "?", "answer": "72"}', "row 2 of .* has no #### before"),
        ("a.jsonl", '{"question": "?", "answer": "#### x"}', "'x' after #### is not one number"),
        ("a.jsonl", '{"question": " ", "answer": "#### 1"}', "row 2 of .*: question is empty"),
        ("a.jsonl", '{"question": 3, "answer": "#### 1"}', "question should be a text; it is 3"),
        ("a.txt", "How many? <<1+1=2>> #### 2", r"row 2 of .*a.txt has no \|\| between"),
        ("a.txt", "How many?||<<1+1=2>> 2", "row 2 of .*a.txt has no ####"),
        ("a.txt", "||<<1+1=2>> #### 2", "row 2 of .*: question is empty"),
        ("a.txt", "", "row 2 of .*a.txt is empty"),
    ],
)
def test_a_wrong_row_is_named(tmp_path, name, second, sentence):
    good = json.dumps(ROW) if name.endswith("l") else "How many?||<<1+1=2>> #### 2"
    path = tmp_path / name
    path.write_text("\n".join([good, second, good]) + "\n")
    with pytest.raises(ProblemError, match=sentence):
        load_gsm8k(path)


def test_a_wrong_file_is_named(tmp_path):
    with pytest.raises(FileError, match=r"none.jsonl does not exist"):
        load_gsm8k(tmp_path / "none.jsonl")
    (tmp_path / "a.jsonl").write_text("\n")
    with pytest.raises(ProblemError, match=r"a.jsonl is empty"):
        load_gsm8k(tmp_path / "a.jsonl")
    with pytest.raises(ProblemError, match=r"ends in '.jsonn'; did you mean '.jsonl'"):
        load_gsm8k(tmp_path / "a.jsonn")


def test_a_wrong_row_of_the_hub_is_named_by_its_source():
    with pytest.raises(ProblemError, match="row 2 of gsm8k/main should be an object"):
        gsm8k_problems([ROW, "text"], "gsm8k/main")


def test_other_steps_are_refused():
    with pytest.raises(ProblemError, match="no steps 'mark'; did you mean 'marks'"):
        gsm8k_problems([ROW], "hub", "mark")
