"""Graphs as questions in both wordings, and official rows, right and wrong."""

import json
from pathlib import Path

import pytest

from workbench.tasks.worded.problem import Problem, ProblemError
from workbench.tasks.worded.prosqa.concept_graph import (
    Graph,
    frontier,
    n_shortest_paths,
    neighbours,
    shortest_path,
    swapped,
)
from workbench.tasks.worded.prosqa.parsing import load_prosqa, prosqa_problem, prosqa_row, words

PATH = Path(__file__).parents[3] / "data" / "worded" / "prosqa_excerpt.json"
ROWS = json.loads(PATH.read_text())
# Ada → dropus → {flipus, gapus} → hupus; Bob → kepus → lopus; Ada → nipus leads nowhere
GRAPH = Graph(
    names=("Ada", "Bob", "dropus", "flipus", "gapus", "hupus", "kepus", "lopus", "nipus"),
    edges=((6, 7), (3, 5), (0, 2), (2, 4), (1, 6), (4, 5), (2, 3), (0, 8)),
    root=0,
    other_root=1,
    target=5,
    wrong=7,
    target_first=False,
)


def test_a_question_in_the_official_wording():
    assert prosqa_problem(GRAPH) == Problem(
        question=(
            "Every kepus is a lopus. Every flipus is a hupus. Ada is a dropus. Every dropus is a "
            "gapus. Bob is a kepus. Every gapus is a hupus. Every dropus is a flipus. Ada is a "
            "nipus. Is Ada a lopus or hupus?"
        ),
        steps=("Ada is a dropus.", "Every dropus is a gapus.", "Every gapus is a hupus."),
        answer="Ada is a hupus.",
        facts={"graph": GRAPH, "hops": 3},
    )


def test_a_question_as_arrows():
    problem = prosqa_problem(GRAPH, "arrows")
    assert problem.question.startswith("kepus lopus . flipus hupus . Ada dropus . ")
    assert problem.question.endswith("Ada nipus . ? Ada lopus hupus")
    assert problem.steps == ("Ada dropus .", "dropus gapus .", "gapus hupus .")
    assert problem.answer == "hupus"


def test_words_part_periods_and_question_marks():
    assert words("Is Ada a lopus or hupus?") == ["Is", "Ada", "a", "lopus", "or", "hupus", "?"]
    assert words("Ada dropus . dropus gapus.") == ["Ada", "dropus", ".", "dropus", "gapus", "."]


def test_an_unknown_wording_is_refused():
    with pytest.raises(ProblemError, match="no wording 'arrow'; did you mean 'arrows'"):
        prosqa_problem(GRAPH, "arrow")


def test_ways_through_the_graph():
    assert shortest_path(GRAPH) == (0, 2, 4, 5)
    assert n_shortest_paths(GRAPH) == 2
    assert neighbours(GRAPH) == [{0}, {2}, {3, 4}, {5}]
    assert frontier(GRAPH) == [{0}, {2, 8}, {3, 4}, {5}]
    assert GRAPH.people == {0, 1}


def test_the_other_root_has_the_other_answer_to_the_same_words():
    other = prosqa_problem(swapped(GRAPH))
    assert other.question == prosqa_problem(GRAPH).question.replace("Is Ada a", "Is Bob a")
    assert other.answer == "Bob is a lopus."
    assert other.steps == ("Bob is a kepus.", "Every kepus is a lopus.")
    assert swapped(swapped(GRAPH)) == GRAPH


def test_an_excerpt_of_the_official_file_is_worded_as_we_do():
    problems = load_prosqa(PATH)
    assert len(problems) == 6
    for problem, row in zip(problems, ROWS, strict=True):
        ours = prosqa_problem(problem.facts["graph"])
        assert (ours.question, ours.answer) == (problem.question, problem.answer)
        assert (problem.question, problem.steps) == (row["question"], tuple(row["steps"]))
        assert len(ours.steps) == problem.facts["hops"]
        assert [*problem.facts["neighbor_k"]] == neighbours(problem.facts["graph"])
        assert problem.facts["graph"].other_root == 1 - row["root"]


def test_a_row_without_neighbor_k_has_none():
    row = {name: value for name, value in ROWS[0].items() if name != "neighbor_k"}
    assert prosqa_row(row, "row").facts["neighbor_k"] is None


FIRST = ROWS[0]  # Is Tom a lempus or scrompus? Tom is a lempus.


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"question": FIRST["question"].rstrip("?")}, "no question mark at its end"),
        ({"question": "Tom is a terpus. Who?"}, "ends in 'Who', not in Is … a … or …"),
        ({"question": FIRST["question"].replace("Is Tom", "Is Alex")}, "asks about Alex, "),
        ({"question": FIRST["question"].replace("Every terpus is", "A terpus is")}, "'A terpus"),
        ({"edges": FIRST["edges"][1:]}, "states 1 facts that are no edges, and 0 edges"),
        ({"edges": [*FIRST["edges"], [0, 1]]}, "states 0 facts that are no edges, and 1 edges"),
        ({"edges": [[0, 99]]}, "edges holds 99, which is no index of the 18 names"),
        ({"edges": [[0]]}, "edges should be a list of pairs"),
        ({"target": 18}, "target holds 18, which is no index of the 18 names"),
        ({"neg_target": -1}, "neg_target holds -1, which is no index"),
        ({"target": "16"}, "target should be a whole number; it is '16'"),
        ({"target": True}, "target should be a whole number; it is True"),
        ({"answer": "Tom is a terpus."}, "answer 'Tom is a terpus.' is neither scrompus nor|nor"),
        ({"answer": "Tom is a scrompus."}, "the answer is scrompus, but the target is lempus"),
        ({"answer": ""}, "answer is empty"),
        ({"answer": "."}, "is neither lempus nor scrompus"),
        ({"steps": []}, "steps is empty"),
        ({"steps": [3]}, "steps should be a list of texts"),
        (
            {"target": 13, "neg_target": 16, "answer": "Tom is a scrompus."},
            "no edges lead from Tom",
        ),
        ({"idx_to_symbol": ["Tom"] * 18}, "names two nodes alike"),
        ({"neighbor_k": {"1": [1]}}, "should have the keys 0, 1, 2 …; it has"),
        ({"neighbor_k": {"0": [18]}}, "neighbor_k holds 18, which is no index"),
    ],
)
def test_a_wrong_row_is_named(tmp_path, changes, sentence):
    path = tmp_path / "prosqa.json"
    path.write_text(json.dumps([ROWS[1], FIRST | changes]))
    with pytest.raises(ProblemError, match=f"row 2 of .*prosqa.json: .*{sentence}"):
        load_prosqa(path)


@pytest.mark.parametrize("name", ["question", "answer", "steps", "edges", "root", "idx_to_symbol"])
def test_a_missing_field_is_named(name):
    row = {key: value for key, value in FIRST.items() if key != name}
    with pytest.raises(ProblemError, match=f"row 7 of x lacks the field '{name}'"):
        prosqa_row(row, "row 7 of x")


def test_a_target_that_the_wrong_concept_shares_is_refused():
    also = [*FIRST["edges"], [1, 13]]
    question = "Tom is a scrompus. " + FIRST["question"]
    with pytest.raises(ProblemError, match="edges lead from Tom to the wrong concept scrompus"):
        prosqa_row(FIRST | {"edges": also, "question": question}, "row")


def test_a_wrong_concept_of_nobody_else_is_refused():
    graph_row = {
        "question": "Ada is a dropus. Every dropus is a hupus. Is Ada a hupus or lopus?",
        "answer": "Ada is a hupus.",
        "steps": ["Ada is a dropus.", "Every dropus is a hupus."],
        "idx_to_symbol": ["Ada", "dropus", "hupus", "lopus"],
        "edges": [[0, 1], [1, 2]],
        "root": 0,
        "target": 2,
        "neg_target": 3,
    }
    with pytest.raises(ProblemError, match="row: nobody is a lopus without being a hupus too"):
        prosqa_row(graph_row, "row")
