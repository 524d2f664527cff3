"""Graphs against paths found independently, and what a guess without paths can know of them."""

from collections import Counter, deque

import numpy as np
import pytest
import torch

from workbench.settings.config import ConfigError
from workbench.tasks import build_task
from workbench.tasks.reachability.graphs import draw_twins, draw_unreachable, path_lengths
from workbench.tasks.reachability.rules import fit_rule

SMALL = dict(n_train=240, n_valid=40, n_test=40)


@pytest.fixture(scope="module", params=["paper", "matched"])
def task(request):
    return build_task("reachability", version=request.param, **SMALL)


@pytest.fixture(scope="module")
def matched():
    return build_task("reachability", version="matched", **SMALL)


def rows(batch):
    """Each row as names of its nodes, named edges, source, target, and distances by name."""
    found = []
    for row in range(len(batch)):
        names = [chr(64 + token) for token in batch.tokens[row].tolist() if token]
        ends = batch.adjacency[row].nonzero().tolist()
        found.append(
            (
                frozenset(names),
                frozenset((names[u], names[v]) for u, v in ends),
                names[int(batch.source_at[row])],
                names[int(batch.target_at[row])],
                dict(zip(names, batch.distance[row].tolist(), strict=False)),
            )
        )
    return found


def walked(names, edges, source):
    """Distances from the source, by breadth-first search over a list of edges."""
    found, queue = {source: 0}, deque([source])
    while queue:
        node = queue.popleft()
        for first, second in edges:
            if first == node and second not in found:
                found[second] = found[node] + 1
                queue.append(second)
    return {name: found.get(name, -1) for name in names}


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_distances_and_answers_are_those_of_a_search(task, split):
    batch = task.split(split)
    for row, (names, edges, source, target, given) in enumerate(rows(batch)):
        found = walked(names, edges, source)
        assert given == found
        assert bool(batch.answer[row]) == (found[target] >= 0)
        if found[target] >= 0:
            assert found[target] == int(batch.hops[row])


def test_padding_has_no_edges_no_token_and_no_distance(task):
    batch = task.split("train")
    assert batch.tokens.shape[1] == task.n_ctx == 20
    assert torch.equal((batch.tokens > 0).sum(1), batch.length)
    pad = batch.is_pad
    assert not batch.tokens[pad].any() and (batch.distance[pad] == -1).all()
    assert not batch.adjacency[pad].any() and not batch.adjacency.transpose(1, 2)[pad].any()
    assert not batch.adjacency.diagonal(dim1=1, dim2=2).any()


def test_half_of_every_test_bucket_is_reachable_and_its_graphs_have_the_papers_sizes(task):
    batch = task.split("test")
    assert batch.hops.unique().tolist() == [1, 2, 3, 4, 6, 8, 10, 12]
    for hops in batch.hops.unique().tolist():
        bucket = batch[batch.hops == hops]
        assert len(bucket) == 40 and int(bucket.answer.sum()) == 20
        assert int(bucket.length.min()) >= max(hops + 2, 10)
        assert int(bucket.length.max()) <= min(max(hops + 6, 16), 20)


def test_training_rows_come_from_its_ranges(task):
    batch = task.split("train")
    assert len(batch) == 240 and task.majority_rate("train") == 0.5
    assert batch.hops.unique().tolist() == [1, 2, 3, 4, 5]
    assert int(batch.length.min()) >= 8 and int(batch.length.max()) <= 16
    assert task.trained_difficulty == (1, 5) and task.default_split == "test"


def test_letters_are_any_of_the_alphabet_and_in_no_order(task):
    tokens = task.split("train").tokens
    assert tokens[tokens > 0].unique().tolist() == list(range(1, 27))
    rising = (tokens[:, :8].diff(dim=1) > 0).all(1)
    assert not rising.any()


def test_the_model_reads_the_answer_at_the_target(task):
    batch = task.split("train")
    assert torch.equal(batch.read_at, batch.target_at)
    assert batch.bridge.shape == batch.bridge_at.shape == (len(batch), 0)
    assert task.answers == ("unreachable", "reachable")
    assert batch.inputs["adjacency"] is batch.adjacency


def test_no_question_stands_twice(task):
    every = [row[:4] for batch in task.splits.values() for row in rows(batch)]
    assert len(set(every)) == len(every)


def test_questions_that_would_stand_twice_get_other_letters():
    # one edge more or less on three nodes: nearly every graph is drawn many times
    task = build_task(
        "reachability", n_train=600, train_hops_max=1, nodes_min=3, nodes_max=3, test_hops=[1]
    )
    batch = task.split("train")
    assert len({row[:4] for row in rows(batch)}) == 600


def test_different_seeds_give_different_graphs(task):
    other = build_task("reachability", seed=1, **task.cfg.model_dump())
    assert not torch.equal(other.split("train").adjacency, task.split("train").adjacency)


def test_the_test_split_is_the_same_however_much_is_trained_on(task):
    more = build_task("reachability", **task.cfg.model_dump() | {"n_train": 300})
    assert torch.equal(more.split("test").tokens, task.split("test").tokens)


def test_a_paths_bucket_holds_no_shorter_way_though_edges_were_attempted_anywhere():
    batch = build_task("reachability", **SMALL).split("test")
    reachable = batch[batch.answer == 1]
    spare = reachable.adjacency.sum((1, 2)) - reachable.hops
    assert int(spare.min()) >= 0 and float(spare.double().mean()) > 5


def test_a_graph_whose_every_pair_is_joined_is_drawn_anew_in_two_parts():
    # with two nodes and 1 … 4 attempts, half the graphs are a node to and fro and back
    nodes = np.full(400, 2)
    graphs = draw_unreachable(np.random.default_rng(0), nodes, 3)
    found = path_lengths(graphs.edges, graphs.source)[np.arange(400), graphs.target]
    assert (found == -1).all()
    assert (graphs.source != graphs.target).all() and graphs.edges.any((1, 2)).any()


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_each_matched_row_has_a_twin_of_the_other_answer_with_the_same_features(matched, split):
    batch = matched.split(split)
    features = matched.local_features(batch)
    every = np.stack([*features.values(), batch.hops.numpy()], 1)
    alike = [Counter(map(tuple, every[batch.answer.numpy() == answer])) for answer in (0, 1)]
    assert alike[0] == alike[1]


def test_twins_have_the_same_edges_in_and_out_at_every_node():
    hops = np.repeat([1, 2, 3, 5, 8, 12], 20)
    one, other = draw_twins(np.random.default_rng(0), hops, np.full(len(hops), 16), 20)
    assert (one.edges.sum(1) == other.edges.sum(1)).all()
    assert (one.edges.sum(2) == other.edges.sum(2)).all()
    assert ((one.edges != other.edges).sum((1, 2)) == 4).all()  # one exchange: two gone, two new
    assert (one.source == other.source).all() and (one.target == other.target).all()


def test_of_long_paths_twins_have_the_same_surroundings():
    hops = np.repeat([5, 7, 12], 20)
    one, other = draw_twins(np.random.default_rng(1), hops, np.full(len(hops), 16), 16)
    below = path_lengths(one.edges, one.source)
    above = path_lengths(one.edges.transpose(0, 2, 1), one.target)
    for row, number in enumerate(hops):
        radius = (number - 1) // 2
        near = (below[row] >= 0) & (below[row] < radius)
        assert (one.edges[row, near] == other.edges[row, near]).all()
        near = (above[row] >= 0) & (above[row] < radius)
        assert (one.edges[row, :, near] == other.edges[row, :, near]).all()


def test_without_room_for_a_twin_the_task_says_so(monkeypatch):
    monkeypatch.setattr("workbench.tasks.reachability.graphs.TRIES", 3)
    sizes = dict(train_hops_max=1, nodes_min=3, nodes_max=3, n_train=20)
    task = build_task("reachability", version="matched", **SMALL | sizes)
    with pytest.raises(
        ValueError, match="no graph of 3 nodes with a path of 1 hops has an unreach"
    ):
        task.split("train")


def test_guessing_from_one_feature_works_in_the_papers_version_alone(task):
    found = task.shortcuts("test")
    if task.cfg.version == "matched":
        assert set(found.values()) == {0.5}
    else:
        assert 0.7 < found["parents of target"] < 0.85
        assert 0.8 < found["edges out of source and into target"] < 0.93
        assert task.best_shortcut("test") == max(found.values())


def test_features_count_what_lies_around_source_and_target():
    task = build_task("reachability", **SMALL)
    batch = task.question("A>B B>C C>D C>B E>D A>F E>F D>A G : A D")
    found = {name: int(values[0]) for name, values in task.local_features(batch).items()}
    assert found == {
        "nodes": 7,
        "edges": 8,
        "edges both ways": 1,
        "edge target → source": 1,
        "target → source within 2": 1,
        "children of both": 0,
        "parents of both": 0,
        "children of source": 2,
        "parents of source": 1,
        "descendants of source within 2": 3,
        "ancestors of source within 2": 3,
        "children of target": 1,
        "parents of target": 2,
        "descendants of target within 2": 3,
        "ancestors of target within 2": 3,
        "nodes with 0 parents": 2,
        "nodes with 1 parents": 2,
        "nodes with 2 parents": 3,
        "nodes with 0 children": 2,
        "nodes with 1 children": 2,
        "nodes with 2 children": 3,
    }


def test_a_rule_gives_each_value_its_commonest_answer_and_new_ones_the_nearests():
    rule = fit_rule(np.array([0, 0, 0, 4, 4, 10]), np.array([1, 1, 0, 0, 0, 1]))
    assert rule.guess(np.array([-3, 0, 1, 3, 4, 6, 8, 99])).tolist() == [1, 1, 1, 0, 0, 0, 1, 1]


def test_a_rule_sorts_many_values_into_bins():
    numbers = np.linspace(0, 1, 1_000)
    rule = fit_rule(numbers, (numbers > 0.5).astype(np.int64))
    assert len(rule.values) <= 64
    assert rule.guess(np.array([0.1, 0.45, 0.55, 0.9])).tolist() == [0, 0, 1, 1]


def test_a_typed_row_is_the_same_question(task):
    batch = task.batch("test", 60)
    for row, text in zip(rows(batch), task.texts(batch), strict=True):
        (typed,) = rows(task.question(text))
        assert typed[:4] == row[:4] and typed[4] == row[4]


def test_a_typed_question_knows_its_answer_and_hops(task):
    batch = task.question("A>B B>C D>E F : A C")
    assert batch.tokens.tolist() == [[1, 2, 3, 4, 5, 6]]
    assert (int(batch.answer), int(batch.hops), int(batch.length)) == (1, 2, 6)
    assert batch.distance.tolist() == [[0, 1, 2, -1, -1, -1]]
    lost = task.question("A>B B>C D>E F : C A")
    assert (int(lost.answer), int(lost.hops)) == (0, 0)


def test_examples_are_questions_in_words(task):
    batch = task.split("test")[:6]
    for row, example in enumerate(task.examples(batch)):
        typed = task.question(str(example["question"]))
        assert example["answer"] == task.answers[int(typed.answer)]
        assert example["hops"] == int(batch.hops[row]) and example["bridges"] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the question is empty"),
        ("A>B B>C", "'A>B B>C' asks about no nodes; a question reads like 'A>B B>C D>E : A C'"),
        ("A>B : A C", "node C is not in the graph, which has A, B"),
        ("A>B : A Q1", "unknown node 'Q1'; did you mean 'Q'?"),
        ("A>b : A B", "unknown node 'b'; did you mean 'B'?"),
        ("A>B : A", "'A' names 1 nodes; a question asks about two"),
        ("A>B : A A", "A is both source and target"),
        ("A>B> : A B", "'A>B>' is no edge; an edge reads like 'A>B'"),
        (">B A : A B", "'>B' is no edge"),
        ("A>A B : A B", "'A>A' leads from a node to itself"),
        ("A B : A B", "'A B : A B' has no edges"),
        (" ".join(f"A>{c}" for c in "BCDEFGHIJKLMNOPQRSTU") + " : A B", "the graph has 21 nodes"),
    ],
)
def test_what_is_no_question_is_refused(task, text, message):
    with pytest.raises(ValueError) as error:
        task.question(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"version": "machted"}, "version='machted': Input should be 'paper' or 'matched'"),
        ({"n_train": 7}, "n_train=7 must be even: half is reachable"),
        ({"train_hops_max": 0}, "train_hops_max=0 must be at least 1"),
        ({"nodes_max": 6}, "nodes_max=6 must be at least 8"),
        ({"nodes_max": 21}, "nodes_max=21 must be at most 20"),
        ({"train_hops_max": 15}, "train_hops_max=15 needs graphs of 17 nodes; nodes_max=16"),
        ({"test_hops": [1, 19]}, "test_hops=[1, 19] must be numbers from 1 to 18"),
        ({"test_hops": [3, 3]}, "test_hops=[3, 3] names a number of hops twice"),
    ],
)
def test_wrong_sizes_are_refused(sizes, message):
    with pytest.raises(ConfigError) as error:
        build_task("reachability", **SMALL | sizes)
    assert message in str(error.value)


def test_a_task_without_features_says_so(world):
    with pytest.raises(ValueError, match="TwoHop names no features that can be told without"):
        world.local_features(world.split("test_id"))
