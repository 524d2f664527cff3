import pytest
import torch
from transformer_lens import ActivationCache

from workbench.hooks import at_loop
from workbench.hooks.cache import UnknownHook

TOKENS = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])
ATTN, POST = "blocks.0.hook_attn_out", "recurrence.hook_state_post"
DECODED, SHARE = "recurrence.hook_decoded", "recurrence.gate.hook_post"
LOGIT = "recurrence.gate.hook_pre"


@pytest.fixture
def model(build):
    return build("discoloop", alpha="learned", n_loops=3, positional_embedding_type="standard")


@pytest.fixture
def cache(model):
    return model.run_with_cache(TOKENS)[1]


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("hook_embed", (2, 4, 16)),
        ("hook_pos_embed", (2, 4, 16)),
        ("blocks.0.hook_resid_pre", (3, 2, 4, 16)),
        ("blocks.1.attn.hook_q", (3, 2, 4, 2, 8)),
        ("blocks.1.attn.hook_z", (3, 2, 4, 2, 8)),
        ("blocks.0.attn.hook_pattern", (3, 2, 2, 4, 4)),
        ("blocks.0.ln1.hook_scale", (3, 2, 4, 1)),
        ("blocks.0.mlp.hook_post", (3, 2, 4, 32)),
        ("recurrence.hook_state_pre", (3, 2, 4, 16)),
        (POST, (3, 2, 4, 16)),
        (DECODED, (2, 2, 4, 16)),
        (LOGIT, (2, 2, 4, 1)),
        (SHARE, (2, 2, 4, 1)),
        ("ln_final.hook_normalized", (2, 4, 16)),
    ],
)
def test_the_loop_is_the_first_axis(cache, name, shape):
    assert cache[name].shape == shape


def test_blocks_before_and_after_the_loop_have_no_loop_axis(build):
    model = build("looped", n_prelude=1, n_coda=1)
    _, cache = model.run_with_cache(TOKENS)
    assert cache["prelude.0.hook_resid_post"].shape == (2, 4, 16)
    assert cache["coda.0.attn.hook_pattern"].shape == (2, 2, 4, 4)


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (("resid_post", -1), "blocks.1.hook_resid_post"),
        (("pattern", 0), "blocks.0.attn.hook_pattern"),
        (("scale", 1, "ln2"), "blocks.1.ln2.hook_scale"),
        ("k1", "blocks.1.attn.hook_k"),
        ("embed", "hook_embed"),
    ],
)
def test_shorthand_means_the_full_name(cache, key, name):
    assert cache[key] is cache[name]
    assert key in cache
    assert cache.has_loop_axis(key) == cache.has_loop_axis(name)


@pytest.mark.parametrize("loop", [0, 1, 2, -1])
def test_one_loop_is_an_ordinary_activation_cache(cache, loop):
    one = cache.loop(loop)
    assert isinstance(one, ActivationCache)
    assert torch.equal(one["resid_post", 1], cache["resid_post", 1][loop])
    assert torch.equal(one["hook_embed"], cache["hook_embed"])


def test_transformer_lens_decomposes_one_loop(cache):
    parts, labels = cache.loop(1).decompose_resid(return_labels=True)
    # what the loop itself wrote, beside the embeddings that TransformerLens counts in
    written = parts[[label not in ("embed", "pos_embed") for label in labels]].sum(0)
    torch.testing.assert_close(
        written + cache["recurrence.hook_state_pre"][1], cache["resid_post", -1][1]
    )


def test_the_last_loop_has_no_record_of_what_comes_between(cache):
    assert DECODED in cache.loop(1)
    assert DECODED not in cache.loop(2)


@pytest.mark.parametrize("loop", [3, -4])
def test_a_loop_that_was_not_run_is_refused(cache, loop):
    with pytest.raises(IndexError, match=f"loop {loop} of a cache with 3 loops, numbered 0 to 2"):
        cache.loop(loop)


def test_every_record_of_equal_loops_is_valid(cache):
    assert cache.valid.tolist() == [[True, True]] * 3


def test_records_after_a_rows_last_loop_are_not_valid(model):
    _, cache = model.run_with_cache(TOKENS, n_loops=torch.tensor([1, 2]))
    assert cache.valid.tolist() == [[True, True], [False, True]]


def test_places_between_loops_are_absent_from_a_single_loop(model):
    _, cache = model.run_with_cache(TOKENS, n_loops=1)
    assert DECODED not in cache
    assert cache[POST].shape[0] == 1


def test_an_unknown_name_is_answered_with_the_nearest(cache):
    with pytest.raises(
        UnknownHook,
        match=r"no activation 'blocks\.0\.atn\.hook_patern' in this "
        r"cache of \d+; nearest: blocks\.0\.attn\.hook_pattern",
    ):
        cache["blocks.0.atn.hook_patern"]


def test_the_error_of_an_unknown_name_reads_as_a_sentence(cache):
    with pytest.raises(UnknownHook) as error:
        cache["nonsense"]
    assert str(error.value).startswith("no activation ")


def test_an_unknown_name_is_not_in_the_cache(cache):
    assert "nonsense" not in cache
    assert ("resid_post", 7) not in cache


def test_a_name_in_the_filter_that_is_no_place_is_refused(model):
    with pytest.raises(UnknownHook, match=r"no hook 'recurrence.hook_stat_post'"):
        model.run_with_cache(TOKENS, names_filter="recurrence.hook_stat_post")


def test_a_filter_that_matches_nothing_is_refused(model):
    with pytest.raises(UnknownHook, match="matches no hook"):
        model.run_with_cache(TOKENS, names_filter=lambda name: "nothing" in name)


def test_a_place_between_loops_asked_of_a_single_loop_is_an_error(model):
    with pytest.raises(RuntimeError, match="hook_decoded never fired in 1 loops"):
        model.run_with_cache(TOKENS, n_loops=1, names_filter=DECODED)


@pytest.mark.parametrize(
    "names", [ATTN, [ATTN, POST], {ATTN}, lambda name: name.endswith("hook_attn_out")]
)
def test_a_filter_keeps_what_it_names(model, cache, names):
    _, some = model.run_with_cache(TOKENS, names_filter=names)
    assert ATTN in some and "hook_embed" not in some
    for name in some:
        torch.testing.assert_close(some[name], cache[name], atol=1e-5, rtol=1e-4)


def test_records_carry_no_gradient(cache):
    assert not any(tensor.requires_grad for tensor in cache.values())


def test_logits_still_carry_theirs(model):
    logits, _ = model.run_with_cache(TOKENS)
    assert logits.requires_grad


@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.parametrize("name", ["hook_embed", POST])
def test_a_record_is_the_value_before_a_later_edit_in_place(model, cache, device, name):
    seen = []
    with model.hooks([(name, lambda tensor, hook: seen.append(tensor.detach()))]):
        _, some = model.run_with_cache(TOKENS, names_filter=name, device=device)
    for tensor in seen:
        tensor.add_(10)
    torch.testing.assert_close(some[name], cache[name], atol=1e-5, rtol=1e-4)


def test_a_device_is_where_the_records_are(model):
    _, cache = model.run_with_cache(TOKENS, device="meta", names_filter=["hook_embed", POST])
    assert {tensor.device.type for tensor in cache.values()} == {"meta"}
    assert cache.valid.device.type == "meta"


def test_the_batch_axis_of_one_row_can_go(model, cache):
    _, one = model.run_with_cache(TOKENS[:1], remove_batch_dim=True)
    assert one[POST].shape == (3, 4, 16)
    assert one["blocks.0.attn.hook_pattern"].shape == (3, 2, 4, 4)
    assert one["hook_embed"].shape == (4, 16)
    torch.testing.assert_close(one[POST], cache[POST][:, 0], atol=1e-5, rtol=1e-4)


def test_the_batch_axis_of_two_rows_stays(model):
    with pytest.raises(ValueError, match="remove_batch_dim needs a batch of one row"):
        model.run_with_cache(TOKENS, remove_batch_dim=True)


def test_pos_slice_keeps_some_positions_of_every_place(model, cache):
    _, some = model.run_with_cache(TOKENS, pos_slice=(1, 3))
    assert torch.equal(some[POST], cache[POST][:, :, 1:3])
    assert torch.equal(some["q", 0], cache["q", 0][:, :, 1:3])
    assert torch.equal(some["pattern", 0], cache["pattern", 0][:, :, :, 1:3])
    assert torch.equal(some[SHARE], cache[SHARE][:, :, 1:3])


def test_pos_slice_of_one_position_keeps_the_axis_as_transformer_lens_does(model, cache):
    _, one = model.run_with_cache(TOKENS, pos_slice=-1)
    assert torch.equal(one[POST], cache[POST][:, :, -1:])
    assert torch.equal(one["z", 1], cache["z", 1][:, :, -1:])


@pytest.mark.parametrize("refused", [{"incl_bwd": True}, {"reset_hooks_end": False}])
def test_what_a_cache_with_loops_cannot_do_is_refused(model, refused):
    with pytest.raises(
        ValueError,
        match=next(iter(refused)) if "incl_bwd" in refused else "always removes its hooks",
    ):
        model.run_with_cache(TOKENS, **refused)


def test_two_loops_are_the_first_two_of_eight(model):
    _, two = model.run_with_cache(TOKENS, n_loops=2)
    _, eight = model.run_with_cache(TOKENS, n_loops=8)
    assert torch.equal(two[POST], eight[POST][:2])
    assert torch.equal(two[DECODED], eight[DECODED][:1])


def test_a_cache_holds_each_loop_as_the_hook_saw_it(model):
    seen = []
    with model.hooks([(ATTN, lambda tensor, hook: seen.append(tensor.detach().clone()))]):
        _, cache = model.run_with_cache(TOKENS, names_filter=ATTN)
    assert torch.equal(cache[ATTN], torch.stack(seen))


def test_an_edit_in_one_loop_leaves_the_records_before_it(model, cache):
    with model.hooks([(POST, at_loop(lambda tensor, hook: tensor + 10, 1))]):
        _, edited = model.run_with_cache(TOKENS)
    assert torch.equal(edited[POST][0], cache[POST][0])
    torch.testing.assert_close(edited[POST][1], cache[POST][1] + 10)


def test_a_cache_says_how_many_loops_and_bytes_it_holds(model):
    _, cache = model.run_with_cache(TOKENS, names_filter=["hook_embed", POST])
    assert repr(cache) == "LoopCache(3 loops, 1 looped + 1 once)"
    assert cache.nbytes == 4 * (2 * 4 * 16 + 3 * 2 * 4 * 16)
