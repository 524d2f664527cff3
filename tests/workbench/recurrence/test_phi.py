"""Φ by hand: a vocabulary of three tokens whose logits are the state's own first three numbers."""

import math

import pytest
import torch

from workbench.recurrence.phi import Phi

EMBEDDINGS = torch.tensor([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 4.0]])


class Identity:
    """A vocabulary in which the state is its own logits."""

    W_E = EMBEDDINGS

    def decode(self, state):
        return state


def phi(decoding, numbers, tau=1.0, top_k=None):
    state = torch.tensor([[numbers]], requires_grad=True)
    return state, Phi(decoding, tau, top_k)(state, Identity())


def test_soft_decoding_is_the_mean_embedding_under_the_distribution():
    # logits ln 2, 0, ln 5: probabilities 2/8, 1/8, 5/8
    _, decoded = phi("soft", [math.log(2), 0.0, math.log(5)])
    torch.testing.assert_close(decoded, torch.tensor([[[2 / 8, 2 / 8, 20 / 8]]]))


def test_a_temperature_divides_the_logits():
    # logits 2 ln 2, 0, 0 at temperature 2: weights 2, 1, 1
    _, decoded = phi("soft", [2 * math.log(2), 0.0, 0.0], tau=2.0)
    torch.testing.assert_close(decoded, torch.tensor([[[2 / 4, 2 / 4, 4 / 4]]]))


def test_hard_decoding_is_the_likeliest_embedding():
    _, decoded = phi("hard", [0.0, 3.0, 1.0])
    assert decoded.tolist() == [[[0.0, 2.0, 0.0]]]


def test_hard_decoding_passes_no_gradient():
    _, decoded = phi("hard", [0.0, 3.0, 1.0])
    assert not decoded.requires_grad


def test_straight_through_is_hard_on_the_way_forward():
    _, decoded = phi("straight_through", [0.0, 3.0, 1.0])
    torch.testing.assert_close(decoded, torch.tensor([[[0.0, 2.0, 0.0]]]))


def test_straight_through_is_soft_on_the_way_back():
    soft_state, soft = phi("soft", [0.0, 3.0, 1.0])
    state, decoded = phi("straight_through", [0.0, 3.0, 1.0])
    soft.sum().backward()
    decoded.sum().backward()
    torch.testing.assert_close(state.grad, soft_state.grad)
    assert state.grad.any()


def test_the_likeliest_two_share_the_whole_probability():
    # of logits ln 2, 0, ln 6 the first and the last stay: weights 2/8 and 6/8
    _, decoded = phi("soft", [math.log(2), 0.0, math.log(6)], top_k=2)
    torch.testing.assert_close(decoded, torch.tensor([[[2 / 8, 0.0, 24 / 8]]]))


@pytest.mark.parametrize("top_k", [3, 20])
def test_a_top_k_of_the_whole_vocabulary_or_more_is_all_of_it(top_k):
    numbers = [0.3, -1.0, 0.7]
    assert torch.equal(phi("soft", numbers, top_k=top_k)[1], phi("soft", numbers)[1])


@pytest.mark.parametrize("decoding", ["soft", "straight_through"])
def test_the_likeliest_one_alone_is_hard_decoding(decoding):
    numbers = [0.3, -1.0, 0.7]
    torch.testing.assert_close(phi(decoding, numbers, top_k=1)[1], phi("hard", numbers)[1])


def test_a_temperature_near_zero_is_hard_decoding():
    numbers = [0.3, -1.0, 0.7]
    torch.testing.assert_close(phi("soft", numbers, tau=1e-3)[1], phi("hard", numbers)[1])


def test_a_models_states_are_decoded_as_its_readout_does(build):
    model = build("discoloop", decoding="hard")
    tokens = torch.tensor([[1, 2, 3]])
    _, cache = model.run_with_cache(tokens, n_loops=2)
    said = model.readout(cache["recurrence.hook_state_post"][0]).argmax(-1)
    assert torch.equal(cache["recurrence.hook_decoded"][0], model.W_E[said])
