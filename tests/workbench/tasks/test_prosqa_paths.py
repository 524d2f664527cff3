"""Which class a path belongs to that is said of a graph made by hand."""

import pytest


@pytest.fixture
def graph():
    """Tom → a → b → d, a longer way a → c → e → d, and Eve → f; a → g is a dead end."""
    from workbench.tasks.worded.prosqa.concept_graph import Graph

    names = ("Tom", "Eve", "a", "b", "c", "d", "e", "f", "g")
    edges = ((0, 2), (2, 3), (3, 5), (2, 4), (4, 6), (6, 5), (1, 7), (2, 8))
    return Graph(names, edges, root=0, other_root=1, target=5, wrong=7, target_first=True)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Tom a . a b . b d .", "correct path"),
        ("Tom is a a . Every a is a b . Every b is a d .", "correct path"),
        ("a b . b d .", "correct path"),  # a thought has stood for the first step
        ("b d .", "correct path"),
        ("Tom a . a c . c e . e d .", "longer path"),
        ("e d .", "longer path"),  # e is three steps off already
        ("Tom a . a g .", "wrong target"),
        ("Tom a . a b .", "wrong target"),
        ("Tom a . a d .", "hallucinated edge"),
        ("Tom a . b d .", "hallucinated edge"),  # breaks off
        ("Eve f .", "hallucinated edge"),  # begins where the root does not lead
        ("Tom zz .", "hallucinated edge"),
        ("Tom a b . b d .", "unreadable"),
        ("Tom a . a", "unreadable"),
        (".", "unreadable"),
        ("", "correct label"),
    ],
)
def test_a_path_is_what_it_was_made_to_be(graph, said, expected):
    from workbench.tasks.worded.prosqa.paths import CLASSES, path_class

    assert expected in CLASSES
    assert path_class(graph, said, True) == expected


def test_a_wrong_label_alone_is_incorrect(graph):
    from workbench.tasks.worded.prosqa.paths import path_class

    assert path_class(graph, " ", False) == "incorrect label"


@pytest.mark.parametrize("wording", ["sentences", "arrows"])
def test_the_datas_own_solutions_are_correct_paths(wording):
    from workbench.tasks import build_task
    from workbench.tasks.worded.prosqa.paths import path_class

    task = build_task("prosqa", n_train=1, n_valid=1, n_test=20, n_nodes=14, wording=wording)
    for problem, encoded in zip(task.problems("test"), task.encoded("test"), strict=True):
        for skipped in range(len(problem.steps)):
            said = " ".join(task.vocabulary.decode(step) for step in encoded.steps[skipped:])
            assert path_class(problem.facts["graph"], said, False) == "correct path"


def test_splits_hold_the_same_questions_in_whatever_order_they_are_asked_for():
    from workbench.tasks import build_task

    sizes = dict(n_train=30, n_valid=6, n_test=8, n_nodes=10, hops=[3, 3])
    first, second = (build_task("prosqa", **sizes) for _ in range(2))
    wanted = {split: first.graphs(split) for split in ("train", "valid", "test")}
    assert wanted == {split: second.graphs(split) for split in ("test", "valid", "train")}
    assert len({graph for graphs in wanted.values() for graph in graphs}) == 44


def test_a_drawn_question_can_be_typed():
    from workbench.tasks import build_task

    task = build_task("prosqa", n_train=1, n_valid=1, n_test=8, n_nodes=10, wording="arrows")
    drawn = task.draw("test", 3)
    known = {problem.question: problem for problem in task.problems("test")}
    assert task.typed(drawn).answer == known[drawn].answer
    assert task.draw("test", 3) == drawn
