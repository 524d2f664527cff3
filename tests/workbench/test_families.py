"""The contract that every family that loops keeps, in several shapes."""

import copy

import pytest
import torch

from workbench.instruments import GradientByLoop
from workbench.models import FAMILIES, build_model, family
from workbench.models.loops.depth import DepthModel
from workbench.recurrence.base import Embedding, Passage
from workbench.settings.config import ConfigError

PRE, POST = "recurrence.hook_state_pre", "recurrence.hook_state_post"


def is_pattern(name):
    return name.endswith("hook_pattern")


K = 3
TOKENS = torch.tensor([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]])
SHORT = torch.tensor([[6, 7, 8]])
OTHER_SHAPE = dict(
    normalization_type="LN",
    positional_embedding_type="standard",
    tie_embeddings=False,
    n_prelude=1,
    n_coda=1,
    act_fn="relu",
)
LOOPING = [name for name, cls in FAMILIES.items() if issubclass(cls, DepthModel)]
CASES = {
    **{name: (name, {}) for name in LOOPING},
    **{f"{name}, other shape": (name, OTHER_SHAPE) for name in LOOPING},
    "discoloop, learned gate": ("discoloop", {"alpha": "learned"}),
    "discoloop, straight through": ("discoloop", {"decoding": "straight_through"}),
    "ponder, Φ alone": ("ponder", {"keep_input": False, "top_k": 3}),
    "looped, normed states": ("looped", {"state_norm": "rms"}),
    "looped, distances": ("looped", {"positional_embedding_type": "relative"}),
    "universal, halting": ("universal", {"halting": "act"}),
    "depth_recurrent, layer scale": (
        "depth_recurrent",
        {"layer_scale": 1e-4, "trained_loops": 2, "loops_beyond": "last"},
    ),
    "looped, no positions": ("looped", {"positional_embedding_type": "none"}),
}


WITH_ATTENTION = [case for case in CASES if case != "gnn"]
NEVER_HALTING = [case for case in CASES if "halting" not in case]
UNGATED = [case for case in CASES if "depth_recurrent" not in case and "halting" not in case]


@pytest.fixture(params=CASES)
def model(request, build):
    name, changes = CASES[request.param]
    return build(name, **changes)


def padded(left, right):
    """SHORT between pads, beside a longer row, with the mask."""
    row = torch.cat((torch.zeros(1, left), SHORT, torch.zeros(1, right)), 1).long()
    tokens = torch.cat((row, torch.arange(1, row.shape[1] + 1)[None]))
    mask = torch.ones_like(tokens)
    mask[0, :left] = 0
    mask[0, left + SHORT.shape[1] :] = 0
    return {"tokens": tokens, "attention_mask": mask}


def test_readout_of_the_last_state_is_the_logits(model):
    logits, cache = model.run_with_cache(TOKENS, n_loops=K)
    torch.testing.assert_close(model.readout(cache[POST][-1]), logits)


def test_readout_of_an_earlier_state_is_what_a_shorter_run_says(model):
    _, cache = model.run_with_cache(TOKENS, n_loops=K, names_filter=POST)
    torch.testing.assert_close(model.readout(cache[POST][0]), model(TOKENS, n_loops=1))


def test_each_loop_starts_from_what_the_recurrence_makes_of_the_last(model):
    _, cache = model.run_with_cache(TOKENS, n_loops=K)
    positions = cache.get("hook_pos_embed", None)
    start = cache["recurrence.hook_state_in"][0]
    if len(model.prelude):
        start = cache[f"prelude.{len(model.prelude) - 1}.hook_resid_post"]
    passage = Passage(Embedding(cache["hook_embed"], positions), model, start)
    halting = "recurrence.hook_state" in cache
    for loop in range(K - 1):
        if halting:
            passage.memory["state"] = cache["recurrence.hook_state"][loop]
        state = model.recurrence(cache[POST][loop], passage)
        if getattr(model.cfg, "state_norm", "none") == "rms":
            state = state / (state.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
        start = model.recurrence.begin(state, loop + 1, passage)
        torch.testing.assert_close(start, cache[PRE][loop + 1])


def test_the_first_block_starts_from_the_state(model):
    _, cache = model.run_with_cache(TOKENS, n_loops=K)
    assert torch.equal(cache["resid_pre", 0], cache[PRE])


@pytest.mark.parametrize("model", UNGATED, indirect=True)
def test_without_a_gate_the_last_block_leaves_the_state(model):
    _, cache = model.run_with_cache(TOKENS, n_loops=K)
    assert torch.equal(cache["resid_post", -1], cache[POST])


def test_names_of_places_do_not_depend_on_the_loops(model):
    few, many = (model.run_with_cache(TOKENS, n_loops=n)[1] for n in (2, 5))
    assert list(few) == list(many)


def test_every_place_fires_as_often_as_it_says(model):
    fired = {name: [] for name in model.hook_dict}
    with model.hooks(
        [(lambda name: True, lambda t, hook: fired[hook.name].append(model.clock.loop))]
    ):
        model(TOKENS, n_loops=K)
    for name, loops in fired.items():
        if name in model.between_places:
            assert loops == [0, 1], name
        elif name in model.looped_places:
            assert loops == [0, 1, 2], name
        else:
            assert loops == [None], name


def test_caching_the_states_changes_no_logits(model):
    logits, _ = model.run_with_cache(TOKENS, n_loops=K, names_filter=[PRE, POST])
    assert torch.equal(logits, model(TOKENS, n_loops=K))


def test_caching_everything_changes_no_logits(model):
    logits, _ = model.run_with_cache(TOKENS, n_loops=K)
    torch.testing.assert_close(logits, model(TOKENS, n_loops=K), atol=1e-5, rtol=1e-4)


def test_records_equal_those_of_a_longer_run(model):
    _, two = model.run_with_cache(TOKENS, n_loops=2)
    _, eight = model.run_with_cache(TOKENS, n_loops=8)
    for name in model.looped_places:
        assert torch.equal(two[name], eight[name][: len(two[name])]), name


@pytest.mark.parametrize("model", NEVER_HALTING, indirect=True)
def test_records_of_different_loops_differ(model):
    _, cache = model.run_with_cache(TOKENS, n_loops=8, names_filter=POST)
    states = cache[POST].flatten(1)
    assert len(torch.unique(states, dim=0)) == 8


def test_rows_with_different_loops_equal_each_row_alone(model):
    loops = torch.tensor([3, 1])
    logits, cache = model.run_with_cache(TOKENS, n_loops=loops)
    for row, n_loops in enumerate(loops.tolist()):
        alone, own = model.run_with_cache(TOKENS[row : row + 1], n_loops=n_loops)
        torch.testing.assert_close(logits[row], alone[0])
        torch.testing.assert_close(cache[POST][:n_loops, row], own[POST][:, 0])


def test_rows_with_equal_loops_are_a_plain_run(model):
    loops = torch.tensor([K, K])
    assert torch.equal(model(TOKENS, n_loops=loops), model(TOKENS, n_loops=K))


def test_a_finished_row_carries_its_last_state_on(model):
    _, cache = model.run_with_cache(TOKENS, n_loops=torch.tensor([3, 1]))
    assert cache.valid.tolist() == [[True, True], [True, False], [True, False]]
    assert torch.equal(cache[POST][1:, 1], cache[POST][:1, 1].expand(2, -1, -1))
    assert all(tensor.isfinite().all() for name, tensor in cache.items() if "scores" not in name)


@pytest.mark.parametrize(("left", "right"), [(0, 1), (1, 0), (3, 0), (0, 5), (2, 3)])
def test_a_padded_row_equals_that_row_alone(model, left, right):
    real = slice(left, left + SHORT.shape[1])
    logits, cache = model.run_with_cache(**padded(left, right), n_loops=K)
    alone, own = model.run_with_cache(SHORT, n_loops=K)
    torch.testing.assert_close(logits[0, real], alone[0], atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(cache[POST][:, 0, real], own[POST][:, 0], atol=1e-5, rtol=1e-4)


def test_padding_leaves_every_number_finite(model):
    _, cache = model.run_with_cache(**padded(3, 2), n_loops=K)
    assert all(tensor.isfinite().all() for name, tensor in cache.items() if "scores" not in name)


def test_readout_of_padded_rows_takes_the_batch_inputs(model):
    inputs = padded(2, 2)
    logits, cache = model.run_with_cache(**inputs, n_loops=K, names_filter=POST)
    torch.testing.assert_close(model.readout(cache[POST][-1], **inputs), logits)


def test_a_later_token_does_not_reach_back(model):
    changed = TOKENS.clone()
    changed[:, -1] = 1
    before, after = model(TOKENS, n_loops=K), model(changed, n_loops=K)
    torch.testing.assert_close(before[:, :-1], after[:, :-1])
    assert not torch.allclose(before[:, -1], after[:, -1])


def test_an_earlier_token_reaches_forward(model):
    changed = TOKENS.clone()
    changed[:, 0] = 10
    assert not torch.allclose(model(TOKENS)[:, -1], model(changed)[:, -1])


def test_batch_of_four_equals_four_batches_of_one(model):
    tokens = torch.cat((TOKENS, TOKENS.flip(1)))
    together = model(tokens, n_loops=K)
    alone = torch.cat([model(row[None], n_loops=K) for row in tokens])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("model", WITH_ATTENTION, indirect=True)
def test_fused_and_explicit_attention_agree(model):
    with model.hooks([(is_pattern, lambda tensor, hook: None)]):
        explicit = model(TOKENS, n_loops=K)
    torch.testing.assert_close(explicit, model(TOKENS, n_loops=K), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("model", WITH_ATTENTION, indirect=True)
def test_fused_and_explicit_attention_agree_on_padded_rows(model):
    with model.hooks([(is_pattern, lambda tensor, hook: None)]):
        explicit = model(**padded(2, 1), n_loops=K)
    torch.testing.assert_close(explicit, model(**padded(2, 1), n_loops=K), atol=1e-5, rtol=1e-4)


def test_logits_at_a_position_equal_those_taken_from_all(model):
    at = torch.tensor([1, 4])
    wanted = model(TOKENS, n_loops=K)[torch.arange(2), at]
    torch.testing.assert_close(model(TOKENS, n_loops=K, logits_at=at), wanted)


@pytest.mark.parametrize("model", NEVER_HALTING, indirect=True)
def test_gradient_passes_every_loop_and_reaches_every_parameter(model):
    gradient = GradientByLoop()
    with gradient.watch(model):
        loss = model(TOKENS, n_loops=K).log_softmax(-1)[:, :, 1].sum()
    loss.backward()
    assert len(gradient.norms) == K
    assert all(norm > 0 for norm in gradient.norms)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        # a key's bias shifts all scores of a query alike, so softmax ignores it
        assert name.endswith("b_K") or parameter.grad.any(), name


def test_the_clock_stops_with_the_forward(model):
    model(TOKENS, n_loops=K)
    assert model.clock.loop is None


def test_a_twin_shares_every_weight(model):
    twin = model.twin()
    own = {name: tensor.data_ptr() for name, tensor in model.named_parameters()}
    assert {name: tensor.data_ptr() for name, tensor in twin.named_parameters()} == own


def test_a_twin_has_hooks_and_clock_of_its_own(model):
    clean = model(TOKENS, n_loops=K)
    with model.hooks([(POST, lambda tensor, hook: tensor + 1)]):
        twin = model.twin()
        assert torch.equal(twin(TOKENS, n_loops=K), clean)
        assert not torch.equal(model(TOKENS, n_loops=K), clean)
    assert twin.clock is not model.clock
    assert all(point.clock is twin.clock for point in twin.hook_points())


def test_a_hook_on_a_twin_leaves_the_model_alone(model):
    clean = model(TOKENS, n_loops=K)
    with model.twin().hooks([(POST, lambda tensor, hook: tensor + 1)]):
        assert torch.equal(model(TOKENS, n_loops=K), clean)


def test_a_deep_copy_has_a_clock_and_weights_of_its_own(model):
    twin = copy.deepcopy(model)
    assert all(point.clock is twin.clock for point in twin.hook_points())
    assert twin.clock is not model.clock
    assert twin.W_E.data_ptr() != model.W_E.data_ptr()
    assert torch.equal(twin(TOKENS, n_loops=K), model(TOKENS, n_loops=K))


def test_an_untrained_twin_has_other_weights_and_the_same_shape(model):
    state = torch.random.get_rng_state()
    fresh = model.untrained()
    assert torch.equal(torch.random.get_rng_state(), state)
    assert fresh.cfg == model.cfg
    assert not torch.equal(fresh.W_E, model.W_E)
    assert torch.equal(fresh.W_E, model.untrained().W_E)


def test_one_token_is_enough(model):
    assert model(TOKENS[:, :1], n_loops=1).shape == (2, 1, 11)


def test_more_positions_than_the_context_are_refused(model):
    with pytest.raises(ValueError, match="9 positions do not fit the model's n_ctx=8"):
        model(torch.ones(1, 9, dtype=torch.long))


@pytest.mark.parametrize("token", [-1, 11])
def test_a_token_that_does_not_exist_is_refused(model, token):
    with pytest.raises(ValueError) as error:
        model(torch.tensor([[1, token]]))
    assert str(error.value) == f"tokens holds {token}; the 11 words are numbered from 0 to 10"


def test_no_tokens_are_refused(model):
    with pytest.raises(ValueError, match="hold nothing to run"):
        model(torch.ones(1, 0, dtype=torch.long))


@pytest.mark.parametrize("n_loops", [0, -1, torch.tensor([2, 0])])
def test_less_than_one_loop_is_refused(model, n_loops):
    with pytest.raises(ValueError, match="must be at least 1"):
        model(TOKENS, n_loops=n_loops)


def test_equal_seeds_give_equal_weights(model):
    models = []
    for _ in range(2):
        torch.manual_seed(7)
        models.append(build_model(model.cfg))
    first, second = (made.state_dict() for made in models)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_generate_appends_the_likeliest_token(model):
    longer = model.generate(TOKENS[:, :3], max_new_tokens=2)
    assert torch.equal(longer[:, :3], TOKENS[:, :3])
    for position in (3, 4):
        likeliest = model(longer[:, :position])[:, -1].argmax(-1)
        assert torch.equal(longer[:, position], likeliest)


def test_a_family_without_a_name_is_answered_with_the_nearest():
    with pytest.raises(ConfigError, match=r"no family 'discolop'; did you mean 'discoloop'?"):
        family("discolop")
