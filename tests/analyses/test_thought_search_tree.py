"""Values of next concepts in a model whose next words are planted, and kinds of nodes by hand."""

import pytest
import torch

END = "<|end-latent|>"


@pytest.fixture
def words():
    """Two people and three concepts of drawn questions."""
    from workbench.tasks.worded.prosqa.invented import CONCEPTS, PEOPLE

    return *PEOPLE[:2], *CONCEPTS[:3]


@pytest.fixture
def planted(plant_words, words):
    """After thoughts: Tom .7, a .2, an answer .1; after Tom a .9, c .1; after a b .6, c .4."""
    tom, _, a, b, c = words
    return plant_words(
        "planted",
        {
            END: {tom: 0.7, a: 0.2, "###": 0.1},
            tom: {a: 0.9, c: 0.1},
            a: {b: 0.6, c: 0.4},
            b: {"###": 1.0},
            "###": {b: 1.0},
        },
    )


@pytest.fixture
def question(words):
    tom, eve, a, b, c = words
    return f"{tom} {a} . {a} {b} . {eve} {c} . ? {tom} {b} {c}"


def test_values_are_products_of_the_planted_shares(planted, question, words):
    from analyses import analyse

    found = analyse("thought_search_tree", planted, question=question).result
    at = [found.names.index(word) for word in words]
    ends = torch.tensor([0, 0, 0.63, 0.12, 0.07 + 0.08])
    for k in range(3):
        torch.testing.assert_close(found.value[k, 0, at], ends / 0.9, atol=1e-5, rtol=1e-4)
        assert float(found.said[k, 0]) == pytest.approx(0.9, abs=1e-5)


def test_mass_falls_on_the_kinds_that_it_was_planted_on(planted, question):
    from analyses import analyse

    found = analyse("thought_search_tree", planted, question=question).result
    # No thought: next is a; elsewhere on the path Tom and b; out of reach Eve and c
    wanted = torch.tensor([0.63, 0.12, 0, 0.15]) / 0.9
    torch.testing.assert_close(found.mass[0], wanted, atol=1e-5, rtol=1e-4)
    # One thought: next is b. Two: the path is at its end
    assert float(found.mass[1, 0]) == pytest.approx(0.12 / 0.9, abs=1e-4)
    assert found.mass[2].isnan().all()
    torch.testing.assert_close(found.top[0], torch.tensor([0.63, 0.78, 0.9]) / 0.9)
    torch.testing.assert_close(found.mass_even[0], torch.tensor([0.2, 0.4, 0, 0.4]))


def test_steps_are_valued_by_where_they_begin_if_asked(planted, question, words):
    from analyses import analyse

    found = analyse("thought_search_tree", planted, question=question, part="start").result
    at = [found.names.index(word) for word in words]
    starts = torch.tensor([0.7, 0, 0.2, 0, 0]) / 0.9
    torch.testing.assert_close(found.value[0, 0, at], starts, atol=1e-5, rtol=1e-4)
    assert float(found.mass[0, 0]) == pytest.approx(0.7 / 0.9, abs=1e-4)  # Tom is next


def test_in_a_model_that_knows_nothing_no_kind_stands_out(plant_words):
    """The planted model spreads evenly over all words, whoever is asked about."""
    from analyses import analyse
    from workbench.tasks.worded.prosqa.invented import CONCEPTS, PEOPLE

    even = dict.fromkeys((*PEOPLE, *CONCEPTS), 1 / len((*PEOPLE, *CONCEPTS)))
    run = plant_words("even", {"": even})
    found = analyse("thought_search_tree", run, n=20).result
    concepts = found.mass[0, 0] / found.mass_even[0, 0]
    # Steps end at concepts only, so that each has a little more than a share of all nodes
    assert 1 < float(concepts) < 1.5
    assert float(found.mass[0, 0]) < float(found.mass[0, 3]) + float(found.mass[0, 2])


def test_paths_that_are_said_are_classed(plant_words, words, question):
    from analyses import analyse
    from workbench.tasks.worded.prosqa.paths import CLASSES

    _tom, _, a, b, _c = words
    shares = {END: {a: 1.0}, a: {b: 1.0}, b: {".": 0.6, "<|end|>": 0.4}}
    shares |= {".": {"###": 1.0}, "###": {b: 1.0}}
    found = analyse("thought_search_tree", plant_words("path", shares), question=question).result
    assert found.words[0].startswith(f"{a} {b} . ### {b} .")
    assert float(found.paths[0, CLASSES.index("correct path")]) == 1.0


def test_heights_and_frontiers_are_those_of_a_graph_made_by_hand():
    from analyses.graphs.search_nodes import nodes_of
    from workbench.tasks.worded.prosqa.concept_graph import Graph

    names = ("Tom", "Eve", "a", "b", "c", "d", "f")
    edges = ((0, 2), (0, 3), (2, 4), (4, 5), (1, 6))
    graph = Graph(names, edges, root=0, other_root=1, target=5, wrong=6, target_first=True)
    nodes = nodes_of([graph], [1, 2])
    assert nodes.height[0].tolist() == [1, 1, 2, 0, 1, 0, 0]
    assert nodes.distance[0].tolist() == [0, -1, 1, 1, 2, 3, -1]
    assert nodes.kind[0, 0].tolist() == [1, 3, 0, 2, 1, 1, 3]
    assert nodes.kind[1, 0].tolist() == [1, 3, 1, 2, 0, 1, 3]
    assert nodes.frontier[0, 0].nonzero()[:, 0].tolist() == [2, 3]
    assert nodes.is_open.all()


@pytest.mark.parametrize("wording", ["arrows", "sentences"])
def test_a_step_is_as_probable_as_its_tokens_in_a_whole_forward(make_staged_run, wording):
    from analyses.graphs.next_steps import NextSteps

    run = make_staged_run(f"task.wording={wording}")
    batch = run.task.batch("test", 3)
    graphs = [run.task.graphs("test")[n] for n in batch.number.tolist()]
    found = NextSteps(run.task, graphs).probabilities(run.model, batch)
    graph, prompt = graphs[1], batch.tokens[1, : batch.prompt[1]]
    (a, b), people = graph.edges[-1], graph.people
    names = graph.names
    text = f"{names[a]} {names[b]}"
    if wording == "sentences":
        text = f"{'' if a in people else 'Every '}{names[a]} is a {names[b]}"
    said = torch.tensor(run.task.vocabulary.encode(text))
    with torch.no_grad():
        logs = run.model(torch.cat((prompt, said))[None]).log_softmax(-1)[0]
    places = torch.arange(len(said)) + len(prompt) - 1
    torch.testing.assert_close(found[1, a, b], logs[places, said].sum().exp(), rtol=1e-4, atol=0)


def test_other_tasks_are_refused(make_staged_run):
    from analyses.graphs.thought_search_tree import thought_search_tree
    from workbench.tasks import TASKS

    run = make_staged_run()
    other = object.__new__(TASKS["gsm8k"])
    batch = run.task.batch("test", 2)
    with pytest.raises(ValueError, match="only questions of prosqa have a graph"):
        thought_search_tree(run.model, batch, task=other, problems=[])
