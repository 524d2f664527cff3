"""Drawn graphs against ways found independently, the numbers published, and what looks alike."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from workbench.settings.config import ConfigError
from workbench.tasks.worded.prosqa.concept_graph import n_shortest_paths, neighbours, swapped
from workbench.tasks.worded.prosqa.drawing import OFFICIAL, GraphSettings, draw_graphs
from workbench.tasks.worded.prosqa.edges import FILE, PRINTED, ancestor_counts, draw_edges
from workbench.tasks.worded.prosqa.invented import CONCEPTS, PEOPLE
from workbench.tasks.worded.prosqa.parsing import prosqa_problem

N = 400


@pytest.fixture(scope="module", params=["paper", "matched"])
def version(request):
    return request.param


@pytest.fixture(scope="module")
def graphs(version):
    return draw_graphs(N, 3, GraphSettings(version=version))


def powers(graph):
    """How many ways of k edges lead from one node to another: powers of the matrix of edges."""
    matrix = np.zeros((len(graph.names),) * 2, dtype=np.int64)
    for a, b in graph.edges:
        matrix[a, b] += 1
    ways = [np.eye(len(matrix), dtype=np.int64)]
    while ways[-1].any():
        ways.append(ways[-1] @ matrix)
    return np.stack(ways)


def test_the_root_leads_to_the_target_alone_and_the_other_root_to_the_wrong_concept_alone(graphs):
    for graph in graphs:
        reached = powers(graph).any(0)
        assert reached[graph.root, graph.target] and not reached[graph.root, graph.wrong]
        assert reached[graph.other_root, graph.wrong]
        assert not reached[graph.other_root, graph.target]


def test_steps_are_a_shortest_way_of_as_many_hops_as_asked_for(graphs):
    for graph in graphs:
        ways = powers(graph)[:, graph.root, graph.target]
        problem = prosqa_problem(graph, "arrows")
        ends = [tuple(step.split()[:2]) for step in problem.steps]
        stated = {(graph.names[a], graph.names[b]) for a, b in graph.edges}
        assert ends[0][0] == graph.names[graph.root]
        assert ends[-1][1] == graph.names[graph.target] == problem.answer
        assert all(one[1] == next_one[0] for one, next_one in pairwise(ends))
        assert set(ends) <= stated
        assert len(ends) == ways.nonzero()[0][0] == graph.hops
        assert 3 <= graph.hops <= 6
        assert n_shortest_paths(graph) == ways[graph.hops]


def test_neighbours_are_the_nodes_on_shortest_ways(graphs):
    for graph in graphs[:100]:
        ways, hops = powers(graph), graph.hops
        for k, nodes in enumerate(neighbours(graph)):
            on = ways[k, graph.root] * ways[hops - k, :, graph.target]
            assert nodes == set(np.flatnonzero(on).tolist())


def test_graphs_are_well_formed(graphs):
    for graph in graphs:
        assert len(set(graph.edges)) == len(graph.edges)
        assert len(set(graph.names)) == len(graph.names)
        assert {node for edge in graph.edges for node in edge} == set(range(len(graph.names)))
        assert not powers(graph)[1:].diagonal(axis1=1, axis2=2).any()  # no circles
        assert {graph.target, graph.wrong} & {a for a, _ in graph.edges} == set()  # leaves
        for node, name in enumerate(graph.names):
            assert name in (PEOPLE if node in graph.people else CONCEPTS)


def test_no_two_questions_are_equal(graphs):
    assert len({prosqa_problem(graph).question for graph in graphs}) == N


def test_options_come_in_a_random_order(graphs):
    first = [graph.target_first for graph in graphs]
    assert abs(np.mean(first) - 0.5) < 4 * 0.5 / N**0.5


def test_path_lengths_occur_as_often_as_in_the_official_files(graphs):
    found = Counter(graph.hops for graph in graphs)
    for hops, n in OFFICIAL.items():
        share = n / sum(OFFICIAL.values())
        assert abs(found[hops] / N - share) < 4 * (share * (1 - share) / N) ** 0.5


def test_lengths_may_be_balanced():
    cfg = GraphSettings(n_nodes=14, hops=(2, 3), lengths="balanced")
    assert cfg.shares == {2: 0.5, 3: 0.5}
    graphs = draw_graphs(N, 0, cfg)
    assert abs(np.mean([graph.hops == 2 for graph in graphs]) - 0.5) < 0.1
    assert max(len(graph.names) for graph in graphs) <= 14


def test_the_statistics_are_the_published_ones():
    graphs = draw_graphs(N, 0)
    nodes, edges = ([len(x) for x in ends] for ends in zip(*map(sizes, graphs), strict=True))
    assert abs(np.mean(nodes) - 23.0) < 0.5
    assert abs(np.mean(edges) - 36.0) < 1.0
    assert abs(np.mean([graph.hops for graph in graphs]) - 3.8) < 0.15
    assert abs(np.mean([n_shortest_paths(graph) for graph in graphs]) - 1.61) < 0.2


def sizes(graph):
    return graph.names, graph.edges


def test_the_target_is_no_nearer_to_its_root_than_the_wrong_concept_in_the_papers_version():
    assert all(swapped(graph).hops <= graph.hops for graph in draw_graphs(N, 0))


def test_equal_seeds_draw_equal_graphs(version, graphs):
    assert draw_graphs(N, 3, GraphSettings(version=version)) == graphs
    assert draw_graphs(20, 4, GraphSettings(version=version)) != graphs[:20]


def test_matched_candidates_look_alike():
    for graph in draw_graphs(N, 5, GraphSettings(version="matched")):
        ways = powers(graph)
        looks = []
        for root, node in ((graph.root, graph.target), (graph.other_root, graph.wrong)):
            to_node = ways[:, :, node] > 0
            within = [int(to_node[1 : k + 1].any(0).sum()) for k in (1, 2, 3, len(ways))]
            looks.append((int(ways[:, root, node].nonzero()[0][0]), *within))
        assert looks[0] == looks[1]
        assert swapped(graph).hops == graph.hops


def test_a_coin_decides_which_of_the_matched_candidates_is_the_target():
    graphs = draw_graphs(N, 5, GraphSettings(version="matched"))
    assert abs(np.mean([graph.root < graph.other_root for graph in graphs]) - 0.5) < 0.1


@pytest.mark.parametrize("law", [FILE, PRINTED])
def test_labels_say_from_which_root_a_node_descends(law):
    edges, label = draw_edges(np.random.default_rng(0), 200, 20, law)
    reached = edges | np.eye(20, dtype=bool)
    for _ in range(5):
        reached = reached @ reached
    assert (label == reached[:, 0] + 2 * reached[:, 1]).all()
    assert not np.tril(edges).any()
    assert abs(edges.any(1)[:, 10:].mean() - (1 - np.exp(-1.5))) < 0.03  # Poisson(1.5) is not 0


def test_shares_of_the_kinds_of_parents_are_as_the_law_says():
    _, label = draw_edges(np.random.default_rng(0), 4_000, 3, PRINTED)
    # Node 2 has the first root as its only parent, drawn so or drawn from both
    one, other = (float((label[:, 2] == number).mean()) for number in (1, 2))
    has_parents = 1 - np.exp(-1.5)
    alone = np.exp(-1.5) * 1.5 / 2  # one parent of two that may be
    assert one == pytest.approx(0.35 * has_parents + 0.3 * alone, abs=0.03)
    assert other == pytest.approx(one, abs=0.03)


def test_ancestors_are_counted_as_by_hand():
    edges = np.zeros((1, 5, 5), dtype=bool)
    for a, b in ((0, 2), (1, 2), (2, 3), (3, 4), (0, 4)):
        edges[0, a, b] = True
    one, two, three, every = (counts[0].tolist() for counts in ancestor_counts(edges))
    assert one == [0, 0, 2, 1, 2]
    assert two == [0, 0, 2, 3, 3]
    assert three == every == [0, 0, 2, 3, 4]


def test_made_up_words_are_many_and_different():
    assert len(set(CONCEPTS)) == len(CONCEPTS) >= 60
    assert len(set(PEOPLE)) == len(PEOPLE) == 20


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (dict(version="match"), "version='match': did you mean 'matched'"),
        (dict(lengths="even"), "lengths='even': there is balanced, official"),
        (dict(law="printd"), "law='printd': did you mean 'printed'"),
        (dict(hops=(0, 3)), r"hops=\(0, 3\): the fewest must be at least 1"),
        (dict(hops=(4, 3)), "the most no fewer"),
        (dict(hops=(2, 4)), "3 to 6 hops; for others, lengths='balanced' is right"),
        (dict(n_nodes=7), "n_nodes=7 must lie between 8, two paths of 3 hops, and 60"),
        (dict(n_nodes=61), "n_nodes=61 must lie between"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes, sentence):
    with pytest.raises(ConfigError, match=sentence):
        GraphSettings(**changes)


def test_graphs_that_are_never_found_are_an_error(monkeypatch):
    monkeypatch.setattr("workbench.tasks.worded.prosqa.drawing.TRIES", 2)
    with pytest.raises(ConfigError, match="no matched graph of 8 nodes with a path of 6 hops was"):
        draw_graphs(5, 0, GraphSettings(n_nodes=8, version="matched", hops=(3, 6)))
    with pytest.raises(ConfigError, match="more names leave more room"):
        draw_graphs(5, 0, GraphSettings(concepts=CONCEPTS[:4]))
