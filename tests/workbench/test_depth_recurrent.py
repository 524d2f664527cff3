"""Loop embeddings, the update gate, halting, and the parts that tasks name."""

import pytest
import torch

from workbench.components.perception import PERCEPTIONS
from workbench.components.readout import READOUTS
from workbench.models import build_model, model_config
from workbench.recurrence.base import Embedding, Passage
from workbench.recurrence.halting import AdaptiveHalting, Halt
from workbench.recurrence.update import LoopEmbed
from workbench.settings.config import ConfigError

PRE, POST = "recurrence.hook_state_pre", "recurrence.hook_state_post"
GATE, EMBED = "recurrence.gate.hook_post", "recurrence.hook_loop_embed"
TOKENS = torch.tensor([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]])

GRAPH = dict(
    d_vocab=27,
    n_ctx=20,
    d_model=128,
    n_heads=4,
    n_layers=1,
    d_mlp=256,
    act_fn="relu",
    normalization_type="LN",
    positional_embedding_type="none",
    perception="nodes",
    readout="node_pair",
)
TEXT = GRAPH | dict(
    n_ctx=128,
    d_model=256,
    n_heads=8,
    d_mlp=1024,
    act_fn="gelu",
    positional_embedding_type="rotary",
    layer_scale=1e-4,
    readout="cls",
)


def size(model):
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        (GRAPH | dict(family="depth_recurrent", max_loops=20), 205_441),
        (GRAPH | dict(family="universal", max_loops=20), 205_441 - 32_896),
        (
            TEXT | dict(family="depth_recurrent", d_vocab=9, max_loops=28, perception="expression"),
            998_145,
        ),
        (
            TEXT | dict(family="depth_recurrent", d_vocab=54, max_loops=20, perception="facts"),
            1_007_617,
        ),
        (GRAPH | dict(family="gnn", n_layers=6, d_mlp=128), 532_865),
    ],
)
def test_models_of_the_papers_shape_have_its_number_of_parameters(changes, wanted):
    assert size(build_model(model_config(changes))) == wanted


def test_a_loop_replaces_the_gates_share_of_what_it_started_from(build):
    model = build("depth_recurrent")
    _, cache = model.run_with_cache(TOKENS, n_loops=3)
    old, share = cache[PRE] - cache[EMBED], cache[GATE]
    wanted = share * cache["resid_post", -1] + (1 - share) * old
    torch.testing.assert_close(cache[POST], wanted, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(old[1:], cache[POST][:-1], atol=1e-5, rtol=1e-4)


def test_a_fresh_gate_lets_through_what_its_bias_says(cfg):
    model = build_model(cfg("depth_recurrent", gate_bias=-2.0))
    with torch.no_grad():
        model.recurrence.gate.W_gate.zero_()
    _, cache = model.run_with_cache(TOKENS, n_loops=2)
    torch.testing.assert_close(cache[GATE], torch.full_like(cache[GATE], 0.11920292))


def test_a_shut_gate_keeps_the_state(build):
    model = build("depth_recurrent")
    with model.hooks([(GATE, lambda tensor, hook: tensor * 0)]):
        _, cache = model.run_with_cache(TOKENS, n_loops=3)
    states = cache[POST]
    torch.testing.assert_close(states[0], states[2], atol=1e-5, rtol=1e-4)


def test_a_patched_start_leaves_nothing_of_the_old_state(build):
    model = build("depth_recurrent")
    other = model.run_with_cache(TOKENS.flip(1), n_loops=3)[1]

    def patch(tensor, hook):
        return other[PRE][1] if model.clock.loop == 1 else None

    patched = model.run_with_hooks(TOKENS, n_loops=3, fwd_hooks=[(PRE, patch)])
    torch.testing.assert_close(patched, model(TOKENS.flip(1), n_loops=3), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(("beyond", "wanted"), [("own", 3), ("last", 1), ("zero", None)])
def test_loops_beyond_the_trained_ones_follow_the_stated_rule(beyond, wanted):
    table = LoopEmbed(d_model=4, max_loops=5, trained=2, beyond=beyond)
    row = torch.zeros(4) if wanted is None else table.W_loop[wanted]
    assert torch.equal(table(3), row)
    assert torch.equal(table(1), table.W_loop[1])


@pytest.mark.parametrize("family", ["depth_recurrent", "universal"])
def test_more_loops_than_the_table_has_rows_are_refused(build, family):
    model = build(family, max_loops=4)
    with pytest.raises(ValueError, match=r"n_loops=5 is more than the loop embedding has rows"):
        model(TOKENS, n_loops=5)
    with pytest.raises(ValueError, match="must be at least 1"):
        model(TOKENS, n_loops=0)


def test_a_config_with_more_loops_than_rows_is_refused(cfg):
    with pytest.raises(ConfigError, match="n_loops=9 is more than the loop embedding has rows"):
        cfg("depth_recurrent", n_loops=9, max_loops=8)


def test_logits_of_every_loop_are_what_shorter_runs_say(build):
    model = build("depth_recurrent")
    every = model(TOKENS, n_loops=3, every_loop=True)
    for loop in range(3):
        torch.testing.assert_close(every[loop], model(TOKENS, n_loops=loop + 1))


class Mute:
    """A vocabulary that no halting recurrence asks."""

    W_E = torch.zeros(1, 1)

    def decode(self, state):
        raise AssertionError("not asked")


def test_halting_worked_by_hand():
    # p = .5, .3, .4: the third loop is the last, with the remainder 1 − .8 = .2; N + R = 3.2.
    # The second position stops after the first loop: p = .995 > 1 − .01; N + R = 1 + 1.
    halt = Halt(d_model=1, bias=0.0)
    recurrence = AdaptiveHalting(LoopEmbed(1, 3, None, "own"), halt, eps=0.01)
    with torch.no_grad():
        recurrence.loop_embed.W_loop.zero_()
    probabilities = torch.tensor([[[0.5], [0.995]], [[0.3], [0.1]], [[0.4], [0.1]]])
    states = torch.tensor([[[1.0], [7.0]], [[10.0], [8.0]], [[100.0], [9.0]]])
    said, ponder = [], []
    halt.hook_post.add_hook(lambda tensor, hook: probabilities[len(said)][None])
    halt.hook_ponder.add_hook(lambda tensor, hook: ponder.append(tensor[0, :, 0].tolist()))
    passage = Passage(Embedding(states[:1], None), Mute())
    state = torch.zeros(1, 2, 1)
    for loop in range(3):
        start = recurrence.begin(state, loop, passage)
        post = recurrence.finish(start, states[loop][None], loop, passage)
        said.append(post[0, :, 0].tolist())
        state = recurrence(post, passage)
    assert said[0] == pytest.approx([1.0, 7.0])  # as if the first were the last
    assert said[1] == pytest.approx([0.5 * 1 + 0.5 * 10, 7.0])
    assert said[2] == pytest.approx([0.5 * 1 + 0.3 * 10 + 0.2 * 100, 7.0])
    assert ponder[0] == pytest.approx([1 + 1, 1 + 1])
    assert ponder[1] == pytest.approx([2 + 0.5, 2.0])
    assert ponder[2] == pytest.approx([3 + 0.2, 2.0])
    assert state[0, :, 0].tolist() == [100.0, 7.0]  # who has stopped keeps the state


def graph_inputs(n=5):
    """Two graphs of five nodes: 0→1→2→3 with 4 apart, and the same backwards."""
    adjacency = torch.zeros(2, n, n, dtype=torch.bool)
    for node in range(3):
        adjacency[0, node, node + 1] = True
        adjacency[1, node + 1, node] = True
    ends = torch.tensor([0, 3])
    return {
        "tokens": TOKENS,
        "adjacency": adjacency,
        "source_at": ends,
        "target_at": ends.flip(0),
    }


@pytest.fixture(params=["depth_recurrent", "universal", "transformer", "looped", "gnn"])
def graph_model(request, build):
    return build(
        request.param,
        perception="nodes",
        readout="node_pair",
        positional_embedding_type="none",
        normalization_type="LN",
        n_layers=1,
    )


def test_readout_of_the_last_state_of_a_graph_is_the_logits(graph_model):
    logits, cache = graph_model.run_with_cache(**graph_inputs())
    assert logits.shape == (2, 2)
    assert not logits[:, 0].any()  # the logit of no is 0
    torch.testing.assert_close(graph_model.readout(cache[POST][-1], **graph_inputs()), logits)


def test_a_loop_carries_a_node_one_edge_and_no_further(graph_model):
    inputs = graph_inputs()
    inputs["tokens"] = inputs["tokens"].clone()
    before = graph_model.run_with_cache(**inputs, n_loops=1)[1][POST][0]
    inputs["tokens"][0, 0] = 9
    after = graph_model.run_with_cache(**inputs, n_loops=1)[1][POST][0]
    moved = (before != after).any(-1)
    assert moved.tolist() == [[True, True, False, False, False], [False] * 5]


def test_a_graph_with_padding_equals_that_graph_alone(graph_model):
    inputs = graph_inputs()
    wide = {
        "tokens": torch.nn.functional.pad(inputs["tokens"], (0, 2)),
        "adjacency": torch.nn.functional.pad(inputs["adjacency"], (0, 2, 0, 2)),
        "attention_mask": torch.tensor([[1, 1, 1, 1, 1, 0, 0]] * 2),
    }
    torch.testing.assert_close(graph_model(**inputs | wide), graph_model(**inputs))


def test_the_order_of_nodes_does_not_matter(graph_model):
    inputs = graph_inputs()
    order = torch.tensor([3, 0, 4, 2, 1])
    place = order.argsort()
    turned = {
        "tokens": inputs["tokens"][:, order],
        "adjacency": inputs["adjacency"][:, order][:, :, order],
        "source_at": place[inputs["source_at"]],
        "target_at": place[inputs["target_at"]],
    }
    torch.testing.assert_close(graph_model(**turned), graph_model(**inputs), atol=1e-5, rtol=1e-4)


def test_a_missing_or_misspelt_input_is_named(graph_model):
    inputs = graph_inputs()
    with pytest.raises(TypeError, match=r"no input 'adjacenzy'; did you mean 'adjacency'?"):
        graph_model(**inputs, adjacenzy=inputs["adjacency"])
    del inputs["adjacency"]
    with pytest.raises(ValueError, match="needs the input 'adjacency'"):
        graph_model(**inputs)


@pytest.mark.parametrize("kind", [torch.long, torch.float32])
def test_edges_may_be_written_as_numbers(graph_model, kind):
    inputs = graph_inputs()
    numbers = inputs | {"adjacency": inputs["adjacency"].to(kind)}
    assert torch.equal(graph_model(**numbers), graph_model(**inputs))


def test_edges_of_another_number_of_nodes_are_refused(graph_model):
    inputs = graph_inputs()
    with pytest.raises(ValueError, match=r"of shape \[\d+, 4, 4\] does not fit \d+ graphs of 5"):
        graph_model(**inputs | {"adjacency": inputs["adjacency"][:, :4, :4]})


@pytest.mark.parametrize("name", ["source_at", "target_at"])
@pytest.mark.parametrize("at", [-1, 5])
def test_a_node_that_is_not_there_is_not_asked_about(graph_model, name, at):
    inputs = graph_inputs()
    with pytest.raises(ValueError) as error:
        graph_model(**inputs | {name: torch.tensor([0, at])})
    assert str(error.value) == f"{name} holds {at}; the 5 positions are numbered from 0 to 4"


def test_a_readout_without_the_nodes_asked_about_says_so(graph_model):
    inputs = graph_inputs()
    _, cache = graph_model.run_with_cache(**inputs)
    with pytest.raises(ValueError, match="needs the input 'source_at'"):
        graph_model.readout(cache[POST][-1])


def test_a_loop_that_no_pass_runs_is_not_iterated(build):
    model = build("depth_recurrent", max_loops=4)
    said = torch.zeros(2, 5, 16)
    with pytest.raises(ValueError, match=r"n_loops=5 is more than .*max_loops=4"):
        model.iterate(said, 4, tokens=TOKENS)
    with pytest.raises(ValueError, match="loop=-1 must be at least 0"):
        model.iterate(said, -1, tokens=TOKENS)


def test_a_yes_or_no_model_says_that_it_has_no_vocabulary(graph_model):
    for ask in (
        lambda: graph_model.W_U,
        lambda: graph_model.decode(torch.zeros(1, 16)),
        lambda: graph_model.generate(TOKENS),
    ):
        with pytest.raises(ValueError, match="answers yes or no by its readout 'node_pair'"):
            ask()


def test_cls_sees_and_is_read_from_the_whole_text(build):
    model = build(perception="expression", readout="cls")
    changed = TOKENS.clone()
    changed[:, -1] = 2
    assert not torch.allclose(model(TOKENS), model(changed))
    logits, cache = model.run_with_cache(TOKENS)
    torch.testing.assert_close(model.readout(cache[POST][-1]), logits)


@pytest.mark.parametrize(
    ("field", "word", "nearest"),
    [("perception", "node", "nodes"), ("readout", "node_pairs", "node_pair")],
)
def test_an_unknown_part_is_answered_with_the_nearest(cfg, field, word, nearest):
    with pytest.raises(ConfigError, match=f"no {field} '{word}'; did you mean '{nearest}'?"):
        build_model(cfg(**{field: word}))


def test_every_part_builds(cfg):
    for perception in PERCEPTIONS:
        for readout in READOUTS:
            build_model(cfg(perception=perception, readout=readout))


def test_dropout_acts_while_training_only(build):
    model = build("depth_recurrent", dropout=0.5)
    assert torch.equal(model(TOKENS), model(TOKENS))
    model.train()
    assert not torch.equal(model(TOKENS), model(TOKENS))
