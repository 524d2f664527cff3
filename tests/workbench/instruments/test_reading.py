"""What the instruments must say of batches and states made by hand."""

import pytest
import torch
import torch.nn.functional as F

from workbench.instruments import Reading, read
from workbench.instruments.reading import answer_logits, at_positions, read_bridges
from workbench.tasks.batch import Batch

POST, SHARE = "recurrence.hook_state_post", "recurrence.gate.hook_post"
NAN = float("nan")


@pytest.fixture
def batch(world):
    return world.split("test_id")


def reading(**fields):
    """A reading of two loops and two rows of which the second has no bridge."""
    made = dict(
        right=torch.tensor([[True, False], [True, True]]),
        loss=torch.tensor([0.5, 1.5]),
        bridge_probability=torch.tensor([[[0.25], [NAN]], [[0.75], [NAN]]]),
        bridge_cosine=torch.tensor([[[0.0], [NAN]], [[1.0], [NAN]]]),
        gates={},
    )
    return Reading(**made | fields)


def test_accuracy_is_the_share_of_right_answers_after_each_loop():
    assert reading().accuracy_by_loop == [0.5, 1.0]


def test_bridges_are_averaged_over_the_rows_that_have_them():
    made = reading()
    assert made.bridge_by_loop(made.bridge_probability) == [0.25, 0.75]


def test_without_any_bridge_there_is_no_average():
    assert reading().bridge_by_loop(torch.full((2, 2, 1), NAN)) is None


def test_gates_are_summed_up_by_loop():
    gate = torch.tensor([[[[0.0]], [[1.0]]], [[[0.5]], [[0.5]]]])  # [between batch pos share]
    assert reading(gates={"g": gate}).gate_statistics() == {
        "g": {"mean": [0.5, 0.5], "sd": [0.5, 0.0]}
    }


def test_states_are_taken_at_each_rows_own_positions():
    states = torch.arange(2 * 2 * 3 * 1.0).view(2, 2, 3, 1)  # [loop batch pos d_model]
    picked = at_positions(states, torch.tensor([[2], [0]]))
    assert picked[..., 0].tolist() == [[[2.0], [3.0]], [[8.0], [9.0]]]


def test_the_last_loop_is_right_where_the_model_is(speaker, batch):
    model = speaker(n_loops=3)
    said = model(**batch.inputs, logits_at=batch.read_at)
    made = read(model, batch)
    assert torch.equal(made.right[-1], said.argmax(-1) == batch.answer)
    torch.testing.assert_close(made.loss, F.cross_entropy(said, batch.answer, reduction="none"))


def test_an_earlier_loop_is_right_where_a_shorter_run_is(speaker, batch):
    model = speaker(n_loops=3)
    said = model(**batch.inputs, n_loops=1, logits_at=batch.read_at)
    assert torch.equal(read(model, batch).right[0], said.argmax(-1) == batch.answer)


def test_a_state_that_holds_the_answer_is_right(speaker, batch):
    model = speaker()
    state = torch.zeros(len(batch), 3, 16)
    state[torch.arange(len(batch)), batch.read_at] = F.one_hot(batch.answer % 16, 16).float()
    with torch.no_grad():
        model.embed.W_E.copy_(F.one_hot(torch.arange(17) % 16, 16).float())
        model.ln_final.w.fill_(1.0)
    assert torch.equal(answer_logits(model, state, batch).argmax(-1), batch.answer)


def test_a_state_that_is_the_bridges_embedding_has_cosine_1(speaker, batch):
    model = speaker()
    states = torch.zeros(1, len(batch), 3, 16)
    states[0, :, 1] = 3 * model.W_E[batch.bridge[:, 0]]
    probability, cosine = read_bridges(model, states, batch)
    torch.testing.assert_close(cosine, torch.ones(1, len(batch), 1))
    wanted = model.decode(states[0, :, 1]).softmax(-1)[torch.arange(len(batch)), batch.bridge[:, 0]]
    torch.testing.assert_close(probability[0, :, 0], wanted)


def test_an_absent_bridge_is_not_a_number(speaker, world):
    made = read(speaker(), world.split("train_atom"))
    assert made.bridge_probability.isnan().all() and made.bridge_cosine.isnan().all()
    assert made.bridge_by_loop(made.bridge_cosine) is None


def test_gates_are_read_where_there_are_any(speaker, batch):
    assert read(speaker("discoloop", n_loops=3), batch).gates[SHARE].shape == (2, len(batch), 3, 1)
    assert read(speaker("looped"), batch).gates == {}


def test_a_single_loop_has_no_gates_to_read(speaker, batch):
    made = read(speaker("discoloop"), batch, n_loops=1)
    assert made.gates == {} and len(made.accuracy_by_loop) == 1


def test_open_hooks_act_before_the_reading(speaker, batch):
    model = speaker()
    with model.hooks([(POST, lambda tensor, hook: torch.zeros_like(tensor))]):
        made = read(model, batch)
    assert not made.bridge_cosine.any()


def test_reading_draws_no_random_numbers_and_leaves_no_gradient(speaker, batch):
    model = speaker()
    before = torch.random.get_rng_state()
    made = read(model, batch)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert not made.loss.requires_grad


def test_gates_at_padding_count_not():
    gate = torch.tensor([[[[0.0], [1.0]], [[0.5], [NAN]]]])  # [between batch pos share]
    assert reading(gates={"g": gate}).gate_statistics()["g"]["mean"] == [0.5]


def test_gates_are_not_read_at_padding(speaker, world):
    facts, chains = world.split("train_atom")[:2], world.split("test_id")[:2]
    mixed = Batch.cat([facts, chains])
    gates = read(speaker(), mixed).gates[SHARE][0, ..., 0]
    assert torch.equal(gates.isnan(), mixed.is_pad)
