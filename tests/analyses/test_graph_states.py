"""One graph loop by loop, and how it is drawn."""

import numpy as np
import pytest
import torch

QUESTION = "A>B B>C D>A C>E F>G : A E"


@pytest.fixture(scope="module")
def found(make_graph_run):
    from analyses import analyse

    return analyse("graph_states", make_graph_run(), question=QUESTION)


def test_truth_is_the_distance_from_the_source(found):
    result = found.result
    assert result.labels == ("A", "B", "C", "D", "E", "F", "G")
    assert result.distance.tolist() == [0, 1, 2, -1, 3, -1, -1]
    within = result.true[0, :, 1:].tolist()
    assert within[0] == [True, False, False, False, False, False]
    assert within[2] == [True, True, False, True, False, False]
    assert torch.equal(result.true[1], result.true[2])


def test_a_batch_shows_its_first_graph_as_if_it_were_typed(make_graph_run, found):
    from analyses import analyse

    run = make_graph_run()
    many = analyse("graph_states", run, split="test", n=4).result
    text = run.task.texts(run.task.batch("test", 4))[0]
    alone = analyse("graph_states", run, question=text).result
    assert many.said == alone.said or torch.allclose(
        torch.tensor([p for _, p in many.said]), torch.tensor([p for _, p in alone.said])
    )
    assert int(many.reached.sum()) == int(alone.reached.sum())


def test_another_picture_changes_no_number(found):
    shown = found.shown(loop=0, probe="reachable", head=1)
    assert shown.to_frame().equals(found.to_frame())
    assert "after loop 1 it answers" in shown.summary()
    assert "loop=0, probe='reachable', head=1" in shown.code()
    assert "After loop 1" in shown.figure().layout.title.text


def test_a_loop_or_head_that_is_none_is_refused(found):
    with pytest.raises(ValueError, match="loop=3 is no loop"):
        found.shown(loop=3)
    with pytest.raises(ValueError, match="head=2 must be from 0 to 1"):
        found.shown(head=2)


def test_edges_are_as_wide_as_their_attention(found):
    heads = found.result.pattern[-1].mean((0, 1))
    assert torch.allclose(found.result.weight, heads.T)
    arrows = [t for t in found.figure().data if t.mode == "lines+markers"]
    assert len(arrows) == 2 * int(found.result.adjacency.sum())
    first = float(found.result.weight[0, 1])
    assert arrows[0].line.width == pytest.approx(1 + 7 * first)


def test_nodes_stand_in_layers_and_never_on_each_other():
    from analyses.graphs.graph_drawing import layers, places

    edges = np.zeros((7, 7), bool)
    for first, second in ((0, 1), (1, 2), (3, 0), (2, 4), (5, 6)):
        edges[first, second] = True
    distance = np.array([0, 1, 2, -1, 3, -1, -1])
    columns = layers(edges, distance, 4)
    assert columns == [[0], [1], [2], [4], [5, 6], [3]]
    at = places(edges, columns)
    assert len({tuple(place) for place in at.tolist()}) == 7
    assert at[:, 0].tolist() == [0, 1, 2, 5, 3, 4, 4]
    assert (places(edges, columns) == at).all()


def test_a_lens_of_a_model_without_words_is_refused(make_graph_run):
    from analyses import analyse

    with pytest.raises(ValueError, match="do not decode into words"):
        analyse("logit_lens", make_graph_run(), question=QUESTION)


def test_attention_of_a_model_that_sees_all_is_even_over_all(build, world):
    from analyses import attention

    model = build("looped", d_vocab=world.d_vocab, n_ctx=world.n_ctx, perception="expression")
    found = attention(model, world.batch("test_id", 3))
    n_pos = len(found.labels)
    assert torch.allclose(found.uniform, torch.full((n_pos, n_pos), 1 / n_pos))
    assert len(found.to_frame()) == found.pattern.numel()
