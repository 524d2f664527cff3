"""The concept stream against numbers worked by hand, and what each gate does."""

import itertools
import math

import pytest
import torch

from workbench.edits import edit_hooks, parse_edits
from workbench.recurrence.concept_stream import BIASES, SHUT, ConceptStream
from workbench.settings.config import ConfigError

TOKENS = torch.tensor([[1, 2, 10, 10, 10, 3]])
THOUGHT, STREAM, RAW = (f"recurrence.hook_{name}" for name in ("thought", "stream", "state_pre"))
OPEN = -SHUT


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def followed(stream, states):
    """Thoughts and memories of successive states."""
    kept = torch.zeros(1, stream.ln_state.w.shape[0])
    found = []
    for state in states:
        thought, kept = stream(torch.tensor([state]), kept)
        found.append((thought[0].tolist(), kept[0].tolist()))
    return found


def test_it_has_as_many_parameters_as_the_paper_says():
    # 3 (768² + 768) of the gates, 2 · 2 · 768 of the two norms
    assert sum(p.numel() for p in ConceptStream(768).parameters()) == 1_774_848


@pytest.mark.parametrize("name", BIASES)
def test_at_the_start_the_gates_are_what_their_biases_say(name):
    stream = ConceptStream(4, BIASES[name])
    normed = torch.randn(3, 4)
    for gate, bias in zip((stream.read, stream.forget, stream.write), BIASES[name], strict=True):
        torch.testing.assert_close(gate(normed), torch.full((3, 4), sigmoid(bias)))


def test_the_published_shares():
    shares = {name: [round(sigmoid(b), 2) for b in biases] for name, biases in BIASES.items()}
    assert shares["gsm8k"] == shares["hotpotqa"] == [0.43, 0.27, 0.18]
    assert shares["prosqa"] == [0.43, 0.18, 0.43]


def test_three_thoughts_by_hand():
    # Gates of zero weights and biases are 1/2 each. LN of a pair (a, b) with a > b is (1, -1) but
    # for eps: the mean is (a+b)/2, the standard deviation (a-b)/2.
    #   h1 = (4, 2), c0 = (0, 0):   h1' = (2, 1);      c1 = LN((1, 0.5)) = (1, -1)
    #   h2 = (0, 2):                h2' = (0, 1) + (0.5, -0.5) = (0.5, 0.5)
    #                               c2 = LN((1, -1) + (0.25, 0.25)) = (1, -1)
    #   h3 = (-8, 0):               h3' = (-4, 0) + (0.5, -0.5) = (-3.5, -0.5)
    #                               c3 = LN((1, -1) + (-1.75, -0.25)) = LN((-0.75, -1.25)) = (1, -1)
    stream = ConceptStream(2, (0.0, 0.0, 0.0))
    found = followed(stream, [[4.0, 2.0], [0.0, 2.0], [-8.0, 0.0]])
    wanted = [
        ([2.0, 1.0], [1.0, -1.0]),
        ([0.5, 0.5], [1.0, -1.0]),
        ([-3.5, -0.5], [1.0, -1.0]),
    ]
    for got, right in zip(found, wanted, strict=True):
        torch.testing.assert_close(torch.tensor(got), torch.tensor(right), atol=2e-4, rtol=0)


def test_gates_read_the_normed_state_channel_by_channel():
    # LN((4, 2)) = (1, -1). W_read takes the first channel to both: logits (1, 1)·2 = (2, 2);
    # write's weight takes the second channel to the first: logits (-3, 0); forget stays at bias 0.
    #   c = (3, 1): h' = (2, 1) + sigmoid(2)·(3, 1)
    stream = ConceptStream(2, (0.0, 0.0, 0.0))
    with torch.no_grad():
        stream.read.W_gate.copy_(torch.tensor([[2.0, 2.0], [0.0, 0.0]]))
        stream.write.W_gate.copy_(torch.tensor([[0.0, 0.0], [3.0, 0.0]]))
        stream.ln_stream.w.copy_(torch.tensor([2.0, 2.0]))
        stream.ln_stream.b.copy_(torch.tensor([0.5, 0.0]))
    thought, kept = stream(torch.tensor([[4.0, 2.0]]), torch.tensor([[3.0, 1.0]]))
    r = sigmoid(2)
    torch.testing.assert_close(thought[0], torch.tensor([2 + 3 * r, 1 + r]), atol=1e-4, rtol=0)
    # c + w·h' = (3 + sigmoid(-3)·h'_0, 1 + h'_1/2) = (3.22, 1.94): the first is the larger, so
    # that LN is (1, -1), times 2 and shifted
    torch.testing.assert_close(kept[0], torch.tensor([2.5, -2.0]), atol=1e-3, rtol=0)


@pytest.mark.parametrize(
    ("read", "forget", "wanted"),
    [
        (SHUT, SHUT, [4.0, 2.0]),  # h as it is
        (OPEN, SHUT, [7.0, 3.0]),  # h + c
        (SHUT, OPEN, [0.0, 0.0]),  # h is erased, nothing is read
        (OPEN, OPEN, [3.0, 1.0]),  # c alone
    ],
)
def test_each_gate_does_what_its_name_says(read, forget, wanted):
    stream = ConceptStream(2, (read, forget, 0.0))
    thought, _ = stream(torch.tensor([[4.0, 2.0]]), torch.tensor([[3.0, 1.0]]))
    torch.testing.assert_close(thought[0], torch.tensor(wanted), atol=1e-3, rtol=0)


def test_a_shut_write_gate_lets_nothing_new_in():
    stream = ConceptStream(4, (0.0, 0.0, SHUT))
    memory = torch.tensor([[3.0, 1.0, -1.0, 2.0]])
    one, other = (stream(torch.randn(1, 4) * 5, memory)[1] for _ in range(2))
    torch.testing.assert_close(one, other, atol=2e-3, rtol=0)
    torch.testing.assert_close(one, stream.ln_stream(memory), atol=2e-3, rtol=0)


def test_an_open_write_gate_lets_the_thought_in():
    stream = ConceptStream(4, (0.0, 0.0, OPEN))
    state, memory = torch.randn(1, 4), torch.randn(1, 4)
    thought, kept = stream(state, memory)
    torch.testing.assert_close(kept, stream.ln_stream(memory + thought), atol=1e-3, rtol=0)


def test_a_known_memory_is_followed_for_three_thoughts():
    # Forget and read open: every thought is what was kept before it, the state forgotten
    stream = ConceptStream(4, (OPEN, OPEN, 0.0))
    found = followed(stream, torch.randn(3, 4).tolist())
    assert max(map(abs, found[0][0])) < 1e-3  # nothing is kept yet
    for (_, kept), (thought, _) in itertools.pairwise(found):
        torch.testing.assert_close(torch.tensor(thought), torch.tensor(kept), atol=1e-3, rtol=0)


def test_an_empty_stream_at_every_thought_is_no_memory():
    torch.manual_seed(1)
    kept, reset = ConceptStream(4), ConceptStream(4, memory="reset")
    states = torch.randn(3, 4).tolist()
    remembered, forgotten = followed(kept, states), followed(reset, states)
    assert remembered[0] == forgotten[0]
    assert remembered[2] != forgotten[2]
    assert forgotten[2] == followed(reset, states[2:])[0]
    assert sum(p.numel() for p in kept.parameters()) == sum(p.numel() for p in reset.parameters())


# -- in a model


@pytest.fixture
def pair(thinker):
    """An AGCLR and a CoCoNuT of the same weights."""
    agclr, coconut = thinker("agclr"), thinker("coconut")
    weights = agclr.state_dict()
    coconut.load_state_dict({k: v for k, v in weights.items() if not k.startswith("recurrence.")})
    return agclr, coconut


def put(gate, share):
    return {"do": "clamp", "place": f"recurrence.{gate}.hook_post", "low": share, "high": share}


def run(model, *edits):
    from workbench.tasks.batch import Batch

    one = torch.tensor([1])
    batch = Batch(TOKENS, torch.tensor([6]), one, one, one, *[torch.empty(1, 0).long()] * 2)
    with torch.no_grad(), model.hooks(edit_hooks(parse_edits(list(edits)), model, batch)):
        return model.run_with_cache(TOKENS)


def test_read_and_forget_shut_by_hand_leave_coconut_bit_for_bit(pair):
    agclr, coconut = pair
    logits, _ = run(agclr, put("read", 0.0), put("forget", 0.0))
    assert torch.equal(logits, run(coconut)[0])
    assert not torch.allclose(run(agclr)[0], logits)


def test_the_papers_knock_out_is_near_to_it(pair):
    agclr, coconut = pair
    with torch.no_grad():
        for gate in (agclr.recurrence.read, agclr.recurrence.forget):
            gate.W_gate.zero_()
            gate.b_gate.fill_(SHUT)
    shut, wanted = agclr(TOKENS), coconut(TOKENS)
    torch.testing.assert_close(shut, wanted, atol=1e-2, rtol=1e-2)


def test_forget_1_leaves_what_is_read_of_the_stream(pair):
    _, cache = run(pair[0], put("forget", 1.0))
    read = cache["recurrence.read.hook_post"]
    assert not cache[THOUGHT][0].any()
    assert torch.equal(cache[THOUGHT][1:], read[1:] * cache[STREAM][:-1])


@pytest.mark.parametrize("gate", ["read", "forget", "write"])
def test_overriding_a_gate_moves_that_gate_alone(pair, gate):
    _, clean = run(pair[0])
    _, cache = run(pair[0], put(gate, 1.0) | {"loops": [0]})
    for other in ("read", "forget", "write"):
        place = f"recurrence.{other}.hook_post"
        assert torch.equal(cache[place][0], clean[place][0]) == (other != gate)
        assert torch.equal(cache[place.replace("post", "pre")][0].sigmoid(), clean[place][0])


def test_shares_lie_between_0_and_1(pair):
    _, cache = run(pair[0])
    for gate in ("read", "forget", "write"):
        share = cache[f"recurrence.{gate}.hook_post"]
        assert share.shape == (3, 1, 16) and ((share > 0) & (share < 1)).all()


def test_the_number_of_biases_is_three(cfg):
    with pytest.raises(ConfigError, match="biases"):
        cfg("agclr", latent_token=10, biases=[0.0, 1.0])
