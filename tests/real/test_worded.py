"""The official files of ProsQA and GSM8K, whole."""

from collections import Counter

import numpy as np
import pytest


@pytest.fixture(params=[("prosqa_valid.json", 300), ("prosqa_valid_graph.json", 257)])
def prosqa(request, find):
    from workbench.tasks.worded import load_prosqa

    name, rows = request.param
    problems = load_prosqa(find(name))
    assert len(problems) == rows
    return problems


def test_our_wording_is_the_official_one(prosqa):
    from workbench.tasks.worded import prosqa_problem

    for problem in prosqa:
        ours = prosqa_problem(problem.facts["graph"])
        assert (ours.question, ours.answer) == (problem.question, problem.answer)
        assert len(ours.steps) == len(problem.steps) == problem.facts["hops"]
        assert ours.steps[-1].split()[-1] == problem.steps[-1].split()[-1]


def test_the_other_root_is_one_of_the_first_two_nodes(prosqa):
    for problem in prosqa:
        graph = problem.facts["graph"]
        assert {graph.root, graph.other_root} == {0, 1}


def test_neighbor_k_is_what_lies_on_shortest_ways(find):
    from workbench.tasks.worded import load_prosqa, neighbours

    for problem in load_prosqa(find("prosqa_valid_graph.json")):
        assert [*problem.facts["neighbor_k"]] == neighbours(problem.facts["graph"])


def test_drawn_graphs_have_the_statistics_of_the_official_ones(find):
    from workbench.tasks.worded import draw_graphs, load_prosqa
    from workbench.tasks.worded.prosqa.concept_graph import n_shortest_paths

    official = [p.facts["graph"] for p in load_prosqa(find("prosqa_valid.json"))]
    ours = draw_graphs(3_000, seed=0)
    for measure in (
        lambda graph: len(graph.names),
        lambda graph: len(graph.edges),
        lambda graph: len(graph.people),
        lambda graph: graph.hops,
        n_shortest_paths,
    ):
        theirs, drawn = (np.array([measure(g) for g in graphs]) for graphs in (official, ours))
        error = (theirs.var() / len(theirs) + drawn.var() / len(drawn)) ** 0.5
        assert abs(theirs.mean() - drawn.mean()) < 3 * error


@pytest.mark.parametrize("steps", ["marks", "lines"])
def test_every_official_sum_loads_and_is_right_as_its_own_answer(find, steps):
    from workbench.tasks.worded import load_gsm8k, score_gsm8k

    problems = load_gsm8k(find("gsm8k_test.jsonl"), steps)
    assert len(problems) == 1_319
    assert all(score_gsm8k(f"#### {p.answer}", p.answer).right for p in problems)
    without = Counter(not p.steps for p in problems)
    assert without[True] == (18 if steps == "marks" else 0)


def test_every_augmented_sum_loads(find):
    from workbench.tasks.worded import load_gsm8k

    problems = load_gsm8k(find("gsm8k_cot_valid.txt"))
    assert len(problems) == 500
    assert sum(not p.steps for p in problems) == 6
