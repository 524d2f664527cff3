"""Rows in the official form and in the hub's, on invented paragraphs."""

import json
from pathlib import Path

import pytest

from workbench.tasks.worded.hotpotqa.paragraphs import hotpotqa_problems, load_hotpotqa
from workbench.tasks.worded.problem import ProblemError

PATH = Path(__file__).parents[3] / "data" / "worded" / "hotpotqa_invented.json"
ROWS = json.loads(PATH.read_text(encoding="utf-8"))


def as_on_the_hub(row):
    """The same row with pairs as two lists, as the hub has them."""
    facts, context = row["supporting_facts"], row["context"]
    return {
        "id": row["_id"],
        **{name: row[name] for name in ("question", "answer", "type", "level")},
        "supporting_facts": {"title": [t for t, _ in facts], "sent_id": [n for _, n in facts]},
        "context": {"title": [t for t, _ in context], "sentences": [s for _, s in context]},
    }


def test_supporting_facts_are_the_steps_in_their_order():
    first = load_hotpotqa(PATH)[0]
    assert first.steps == (
        "It was designed by Ilsa Brandeck.",
        "Ilsa Brandeck (1881–1947) was an architect born in Tarvinia.",
    )
    assert first.answer == "Tarvinia"
    assert first.question == ROWS[0]["question"]
    assert first.facts == {
        "supporting": (("Velmora Lighthouse", 1), ("Ilsa Brandeck", 0)),
        "missing": 0,
        "id": ROWS[0]["_id"],
        "type": "bridge",
        "level": "medium",
    }


@pytest.mark.parametrize("context", ["none", "supporting", "all"])
def test_both_forms_say_the_same(context):
    assert load_hotpotqa(PATH, context) == hotpotqa_problems(
        [as_on_the_hub(row) for row in ROWS], "hub", context
    )


def test_yes_and_no_are_answers():
    assert [problem.answer for problem in load_hotpotqa(PATH)[1:3]] == ["yes", "no"]


def test_a_fact_that_no_paragraph_holds_is_left_out_and_counted():
    problems = load_hotpotqa(PATH)
    assert [problem.facts["missing"] for problem in problems] == [0, 0, 0, 1, 0, 1]
    assert problems[3].facts["supporting"] == (("Nils Aberlow", 1), ("Harrow Bridge", 0))
    assert len(problems[3].steps) == 2
    assert problems[5].facts["supporting"] == (("Salt and Thyme", 0), ("Aldermere", 1))


def test_a_negative_index_is_no_sentence():
    row = ROWS[0] | {"supporting_facts": [["Ilsa Brandeck", -1]]}
    (problem,) = hotpotqa_problems([row], "hub")
    assert (problem.steps, problem.facts["missing"]) == ((), 1)


def test_paragraphs_come_before_the_question():
    lines = {
        context: load_hotpotqa(PATH, context)[0].question.split("\n")
        for context in ("none", "supporting", "all")
    }
    assert [len(lines[context]) for context in ("none", "supporting", "all")] == [1, 3, 4]
    assert lines["supporting"][0] == (
        "Velmora Lighthouse: Velmora Lighthouse stands on the Grey Cape. It was designed by Ilsa "
        "Brandeck."
    )
    assert {shown[-1] for shown in lines.values()} == {ROWS[0]["question"]}
    assert lines["all"][2] == "Grey Cape: The Grey Cape is a headland."


def without(name):
    return {key: value for key, value in ROWS[0].items() if key != name}


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (without("answer"), "row 2 of rows lacks the field 'answer'"),
        (without("context"), "row 2 of rows lacks the field 'context'"),
        (ROWS[0] | {"answer": ""}, "row 2 of rows: answer is empty"),
        (ROWS[0] | {"supporting_facts": [["a", "b"]]}, "by number; 'a' has 'b'"),
        (ROWS[0] | {"supporting_facts": [["a"]]}, "a title and one more; it is"),
        (ROWS[0] | {"context": [["a", "b"]]}, "sentences should be a list of texts; it is 'b'"),
        (ROWS[0] | {"context": {"title": ["a"], "sentences": []}}, "1 titles for 0 others"),
        (ROWS[0] | {"context": "a"}, "context should be a list; it is 'a'"),
        ("text", "row 2 of rows should be an object"),
    ],
)
def test_a_wrong_row_is_named(row, sentence):
    with pytest.raises(ProblemError, match=sentence):
        hotpotqa_problems([ROWS[1], row], "rows")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{}", "should hold a list of problems"),
        ("[]", "should hold a list of problems"),
        ("[1", "is not JSON: .* at line 1, column 3"),
    ],
)
def test_a_wrong_file_is_named(tmp_path, text, sentence):
    path = tmp_path / "hotpot.json"
    path.write_text(text)
    with pytest.raises(ProblemError, match=rf"hotpot.json {sentence}"):
        load_hotpotqa(path)


def test_another_context_is_refused():
    with pytest.raises(ProblemError, match="no context 'support'; did you mean 'supporting'"):
        load_hotpotqa(PATH, "support")
