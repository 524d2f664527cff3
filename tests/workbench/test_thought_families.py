"""The contract that every family that thinks keeps, in several shapes."""

import copy

import pytest
import torch

from workbench.hooks import at_loop, at_position
from workbench.models import FAMILIES
from workbench.models.thoughts.thought import ThoughtModel

T = 10  # the token in whose places thoughts stand
RAW, THOUGHT = "recurrence.hook_state_pre", "recurrence.hook_thought"
ATTN, PATTERN = "blocks.0.hook_attn_out", "blocks.0.attn.hook_pattern"
SCORES, RESID = "blocks.0.attn.hook_attn_scores", "blocks.1.hook_resid_post"
ROWS = [  # three thoughts together, one, none, two apart
    [1, 2, T, T, T, 3, 4],
    [5, 6, 7, T, 8],
    [1, 3, 5, 7, 9, 2],
    [4, T, 6, T, 5, 8, 9, 1],
]
GPT = dict(
    normalization_type="LN",
    positional_embedding_type="standard",
    tie_embeddings=False,
    act_fn="gelu_new",
)
THINKING = [name for name, cls in FAMILIES.items() if issubclass(cls, ThoughtModel)]
CASES = {
    **{name: (name, {}) for name in THINKING},
    **{f"{name}, other shape": (name, GPT) for name in THINKING},
    "coconut, distances": ("coconut", {"positional_embedding_type": "relative"}),
    "agclr, no memory": ("agclr", {"memory": "reset"}),
}
CLOSE = dict(atol=1e-5, rtol=1e-4)


@pytest.fixture(params=CASES)
def model(request, thinker):
    name, changes = CASES[request.param]
    return thinker(name, **changes)


def padded(side="right", spare=2, rows=ROWS):
    """Rows with padding on a side, and the mask."""
    width = max(map(len, rows)) + spare
    tokens = torch.zeros(len(rows), width, dtype=torch.long)
    mask = torch.zeros_like(tokens)
    for row, words in enumerate(rows):
        start = {"right": 0, "left": width - len(words), "both": (width - len(words)) // 2}[side]
        tokens[row, start : start + len(words)] = torch.tensor(words)
        mask[row, start : start + len(words)] = 1
    return {"tokens": tokens, "attention_mask": mask}


@pytest.fixture(params=["right", "left", "both"])
def inputs(request):
    return padded(request.param)


def zero(tensor, hook):
    return torch.zeros_like(tensor)


def plain(tensor, hook):
    return None


def test_every_row_equals_that_row_alone(model, inputs):
    logits, cache = model.run_with_cache(**inputs)
    for row, words in enumerate(ROWS):
        alone, own = model.run_with_cache(torch.tensor([words]))
        real = inputs["attention_mask"][row].bool()
        torch.testing.assert_close(logits[row, real], alone[0], **CLOSE)
        torch.testing.assert_close(cache[RESID][row, real], own[RESID][0], **CLOSE)
        n = words.count(T)
        if n:
            torch.testing.assert_close(cache[THOUGHT][:n, row], own[THOUGHT][:, 0], **CLOSE)


def test_pass_by_pass_equals_the_full_recomputation(model, inputs):
    real = inputs["attention_mask"].bool()
    logits, cache = model.run_with_cache(**inputs)
    slow, whole = model.run_with_cache(**inputs, recompute=True)
    torch.testing.assert_close(logits[real], slow[real], **CLOSE)
    assert list(cache) == list(whole)
    for name in cache:
        ours, wanted = cache[name], whole[name]
        if name in model.looped_places:
            ours, wanted = ours[cache.valid], wanted[cache.valid]
        elif name.endswith(("hook_pattern", "hook_attn_scores")):
            ours, wanted = ours.transpose(1, 2)[real], wanted.transpose(1, 2)[real]
        else:
            ours, wanted = ours[real], wanted[real]
        torch.testing.assert_close(ours, wanted, **CLOSE, msg=lambda text, n=name: f"{n}: {text}")


def test_gradients_equal_those_of_the_full_recomputation(model, inputs):
    found = []
    for recompute in (False, True):
        model.zero_grad()
        logits = model(**inputs, recompute=recompute)
        loss = logits.log_softmax(-1)[..., 1][inputs["attention_mask"].bool()].sum()
        loss.backward()
        given = {name: p.grad for name, p in model.named_parameters()}
        found.append({n: torch.zeros(1) if g is None else g.clone() for n, g in given.items()})
    for name, gradient in found[0].items():
        torch.testing.assert_close(gradient, found[1][name], atol=2e-4, rtol=1e-3)
        reset = getattr(model.cfg, "memory", "") == "reset"  # what is read is nothing
        unused = reset and name.startswith(
            ("recurrence.ln_stream", "recurrence.read", "recurrence.wr")
        )
        assert unused or name.endswith("b_K") or gradient.any(), name


def test_caching_equals_a_plain_forward(model, inputs):
    logits, _ = model.run_with_cache(**inputs, names_filter=[RAW, THOUGHT, ATTN])
    assert torch.equal(logits, model(**inputs))


def test_an_intervention_at_a_position_keeps_the_cache(model):
    inputs = padded()
    hooks = [(ATTN, at_position(zero, [1, 3])), (PATTERN, at_position(zero, 4))]
    with model.hooks(hooks):
        assert not model.wants_whole
        ours, cache = model.run_with_cache(**inputs)
        slow = model(**inputs, recompute=True)
    real = inputs["attention_mask"].bool()
    torch.testing.assert_close(ours[real], slow[real], **CLOSE)
    nothing = (cache[ATTN] == 0).all(-1) & real
    assert nothing.nonzero()[:, 1].tolist() == [1, 3] * 4


def test_a_plain_hook_on_a_block_sees_the_whole_sequence(model):
    inputs, widths = padded(), []

    def fifth(tensor, hook):
        widths.append(tensor.shape[1])
        tensor = tensor.clone()
        tensor[:, 5] = 0
        return tensor

    with model.hooks([(ATTN, fifth)]):
        assert model.wants_whole
        _, cache = model.run_with_cache(**inputs)
    assert widths == [10] * 4
    assert not cache[ATTN][:, 5].any()
    with model.hooks([(ATTN, at_position(zero, 5))]):
        _, quick = model.run_with_cache(**inputs)
    real = inputs["attention_mask"].bool()
    torch.testing.assert_close(cache[RESID][real], quick[RESID][real], **CLOSE)


def test_hooks_between_passes_keep_the_cache(model):
    inputs = padded()
    with model.hooks([(THOUGHT, at_loop(zero, 1))]):
        assert not model.wants_whole
        ours, cache = model.run_with_cache(**inputs)
        slow = model(**inputs, recompute=True)
    real = inputs["attention_mask"].bool()
    torch.testing.assert_close(ours[real], slow[real], **CLOSE)
    assert not cache[THOUGHT][1].any() and cache[THOUGHT][0].any()


def test_every_position_is_run_once(model):
    inputs, ran = padded(), []

    def see(tensor, hook):
        ran.append((model.clock.columns >= 0).sum())

    see.by_pass = True
    with model.hooks([(ATTN, see)]):
        model(**inputs)
    assert len(ran) == 4 and sum(ran) == inputs["attention_mask"].sum()


def test_the_axes_of_the_cache(model):
    inputs = padded()
    _, cache = model.run_with_cache(**inputs)
    for name in model.looped_places:
        assert cache[name].shape == (3, 4, 16), name
    assert cache[ATTN].shape == (4, 10, 16)
    assert cache["blocks.0.attn.hook_z"].shape == (4, 10, 2, 8)
    assert cache["pattern", 0].shape == (4, 2, 10, 10)
    assert cache["resid_post", -1].shape == (4, 10, 16)
    for thought in range(3):
        one = cache.loop(thought)
        assert torch.equal(one[THOUGHT], cache[THOUGHT][thought])
        assert torch.equal(one[RESID], cache[RESID])


def test_patterns_are_in_the_order_of_the_sequence(model, inputs):
    _, cache = model.run_with_cache(**inputs, names_filter=PATTERN)
    real = inputs["attention_mask"].bool()
    pattern = cache[PATTERN].transpose(1, 2)[real]  # [query head key]
    torch.testing.assert_close(pattern.sum(-1), torch.ones(pattern.shape[:2]))
    assert not cache[PATTERN].triu(1).any()
    keys = real[:, None].expand(-1, real.shape[1], -1)[real]
    assert not (pattern * ~keys[:, None]).any()


def test_a_finished_row_repeats_its_last_thought(model, inputs):
    _, cache = model.run_with_cache(**inputs)
    assert cache.valid[:3].int().sum(0).tolist() == [3, 1, 0, 2]
    assert torch.equal(cache[THOUGHT][1:, 1], cache[THOUGHT][:1, 1].expand(2, -1))
    assert torch.equal(cache[THOUGHT][2, 3], cache[THOUGHT][1, 3])
    assert all(t.isfinite().all() for name, t in cache.items() if name[-6:] != "scores")


def test_a_thought_fills_its_place(model):
    inputs = padded()
    _, cache = model.run_with_cache(**inputs)
    assert torch.equal(cache["hook_embed"][0, 2:5], cache[THOUGHT][:, 0])
    assert torch.equal(cache["hook_embed"][3, [1, 3]], cache[THOUGHT][:2, 3])


def test_a_thought_is_made_of_the_state_before_it(model):
    inputs = padded()
    logits, cache = model.run_with_cache(**inputs)
    for thought, row, position in ((0, 0, 1), (2, 0, 3), (0, 1, 2), (1, 3, 2)):
        said = model.readout(cache[RAW][thought, row])
        torch.testing.assert_close(said, logits[row, position], **CLOSE)
        state = model.decode(cache[RESID][row, position])
        torch.testing.assert_close(state, logits[row, position], **CLOSE)


def test_without_thoughts_it_is_a_transformer(model, build):
    from workbench.models import model_config

    fields = model.cfg.model_dump()
    for own in ("latent_token", "biases", "memory", "shut"):
        fields.pop(own, None)
    twin = build("transformer", **{k: v for k, v in fields.items() if k != "family"})
    assert model_config(fields | {"family": "transformer"}) == twin.cfg
    weights = model.state_dict()
    twin.load_state_dict({k: v for k, v in weights.items() if not k.startswith("recurrence.")})
    tokens = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])
    ours, cache = model.run_with_cache(tokens)
    torch.testing.assert_close(ours, twin(tokens), atol=1e-6, rtol=1e-5)
    assert THOUGHT not in cache


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("stop_at", [None, 3])
def test_generating_equals_recomputing(model, inputs, recompute, stop_at):
    said = model.generate(**inputs, max_new_tokens=4, stop_at=stop_at, recompute=recompute)
    for row, words in enumerate(ROWS):
        words = list(words)
        for new in said[row, inputs["tokens"].shape[1] :].tolist():
            logits = model(torch.tensor([words]))[0, -1]
            logits[T] = -torch.inf
            stopped = stop_at is not None and stop_at in words[len(ROWS[row]) :]
            assert new == (stop_at if stopped else int(logits.argmax()))
            words.append(new)


def test_generating_under_a_plain_hook_recomputes(model, inputs):
    with model.hooks(fwd_hooks=[(ATTN, lambda tensor, hook: tensor * 0.5)]):
        said = model.generate(**inputs, max_new_tokens=3)
        slow = model.generate(**inputs, max_new_tokens=3, recompute=True)
    see = lambda tensor, hook: tensor * 0.5  # noqa: E731
    see.by_pass = True
    with model.hooks(fwd_hooks=[(ATTN, see)]):
        quick = model.generate(**inputs, max_new_tokens=3)
    assert torch.equal(said, slow) and torch.equal(said, quick)
    assert model.clock.given is None and not any(p._forward_hooks for p in model.hook_points())


def test_logits_at_some_positions_are_those_taken_from_all(model, inputs):
    logits, rows = model(**inputs), torch.arange(4)
    one, several = torch.tensor([1, 4, 2, 7]), torch.tensor([[1, 4], [0, 3], [2, 2], [7, 6]])
    torch.testing.assert_close(model(**inputs, logits_at=one), logits[rows, one])
    got = model(**inputs, logits_at=several)
    torch.testing.assert_close(got, logits[rows[:, None], several])


def test_what_is_cached_can_be_narrowed(model):
    tokens = torch.tensor([ROWS[0]])
    _, cache = model.run_with_cache(tokens)
    _, some = model.run_with_cache(
        tokens, names_filter=[ATTN, THOUGHT, PATTERN], remove_batch_dim=True, pos_slice=-1
    )
    assert set(some) == {ATTN, THOUGHT, PATTERN}
    torch.testing.assert_close(some[THOUGHT], cache[THOUGHT][:, 0], **CLOSE)
    torch.testing.assert_close(some[ATTN], cache[ATTN][0, -1:], **CLOSE)
    torch.testing.assert_close(some[PATTERN], cache[PATTERN][0, :, -1:], **CLOSE)
    with pytest.raises(ValueError, match="remove_batch_dim needs a batch of one row"):
        model.run_with_cache(**padded(), remove_batch_dim=True)


def test_copies(model):
    tokens = torch.tensor([ROWS[0]])
    clean, twin, deep = model(tokens), model.twin(), copy.deepcopy(model)
    with model.hooks([(THOUGHT, zero)]):
        assert torch.equal(twin(tokens), clean) and torch.equal(deep(tokens), clean)
        assert not torch.equal(model(tokens), clean)
    assert twin.W_E.data_ptr() == model.W_E.data_ptr() != deep.W_E.data_ptr()
    assert all(point.clock is twin.clock is not model.clock for point in twin.hook_points())
    fresh = model.untrained()
    assert fresh.cfg == model.cfg and not torch.equal(fresh(tokens), clean)


def test_what_cannot_be_run_is_refused(model):
    tokens = torch.tensor([[1] * 18, [1] + [T] * 2 + [2] * 15])
    mask = torch.ones_like(tokens)
    mask[0, 3:] = 0
    with pytest.raises(ValueError, match=r"row 1 has 18 positions, 2 of them thoughts; .* is 16"):
        model(tokens, attention_mask=mask)
    with pytest.raises(ValueError, match="row 1 begins with a thought"):
        model(torch.tensor([[1, T], [T, 1]]))
    with pytest.raises(ValueError, match="hold nothing to run"):
        model(torch.ones(1, 0, dtype=torch.long))
    with pytest.raises(ValueError, match="14 tokens and 3 new ones do not fit the model's n_ctx"):
        model.generate(torch.ones(1, 14, dtype=torch.long), max_new_tokens=3)
    model(torch.tensor([ROWS[0]]))
    assert model.clock.loop is None and model.clock.columns is None
