"""Pretrained models say what transformers' own say."""

import pytest
import torch

from workbench.pretrained import from_pretrained

SCALED = dict(
    rope_type="llama3",
    rope_theta=100.0,
    factor=8.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=40,  # a pair of each kind: as it was, between, slowed,
)
# Name: architecture, and what is unlike the shapes above
TWINS = {
    "llama": ("llama", {}),
    "llama untied": ("llama", dict(tie_word_embeddings=False, vocab_size=47)),
    "llama with a key for each query": ("llama", dict(num_key_value_heads=4)),
    "llama with one key for all": ("llama", dict(num_key_value_heads=1)),
    "llama of wide heads": ("llama", dict(head_dim=6)),
    "llama scaled": ("llama", dict(rope_parameters=SCALED, head_dim=8)),
    "llama with biases": ("llama", dict(attention_bias=True)),
    "qwen2": ("qwen2", {}),
    "qwen2 untied": ("qwen2", dict(tie_word_embeddings=False, vocab_size=61)),
    "qwen3": ("qwen3", dict(head_dim=8)),
    "qwen3 untied": ("qwen3", dict(head_dim=8, tie_word_embeddings=False, num_key_value_heads=4)),
    "gpt2": ("gpt2", {}),
    "gpt2 with a wide perceptron": ("gpt2", dict(n_inner=24, activation_function="gelu")),
    "gpt2 untied": ("gpt2", dict(tie_word_embeddings=False)),
}
CLOSE = dict(atol=1e-4, rtol=0)
TOKENS = torch.randint(47, (3, 40), generator=torch.Generator().manual_seed(1))


def logits_of(twin, tokens, **inputs):
    with torch.no_grad():
        return twin(tokens, **inputs).logits


@pytest.fixture(params=TWINS)
def pair(request, save_twin):
    architecture, changes = TWINS[request.param]
    twin, folder = save_twin(architecture, **changes)
    return twin, from_pretrained(folder)


def test_logits_are_those_of_transformers(pair):
    twin, model = pair
    wanted = logits_of(twin, TOKENS)
    assert wanted.std() > 0.3  # else all would agree
    torch.testing.assert_close(model(TOKENS), wanted, **CLOSE)


def test_every_parameter_of_a_twin_matters(pair):
    twin, _model = pair
    twin(TOKENS).logits.square().sum().backward()
    for name, parameter in twin.named_parameters():
        key_bias = name.endswith("k_proj.bias")  # shifts all scores of a query alike, unless turned
        assert key_bias or parameter.grad.abs().max() > 1e-4, name


def test_the_explicit_path_says_the_same(pair):
    twin, model = pair
    logits, cache = model.run_with_cache(TOKENS)
    torch.testing.assert_close(logits, logits_of(twin, TOKENS), **CLOSE)
    assert cache["pattern", 0].shape == (1, 3, 4, 40, 40)


def test_states_and_patterns_are_those_of_transformers(pair):
    twin, model = pair
    with torch.no_grad():
        theirs = twin(TOKENS, output_hidden_states=True, output_attentions=True)
    _, cache = model.run_with_cache(TOKENS)
    for layer in range(3):
        torch.testing.assert_close(
            cache["resid_pre", layer][0], theirs.hidden_states[layer], **CLOSE
        )
        torch.testing.assert_close(cache["pattern", layer][0], theirs.attentions[layer], **CLOSE)


def test_padded_rows_equal_those_rows_alone(pair):
    _, model = pair
    mask = torch.ones_like(TOKENS)
    mask[0, :5], mask[1, 30:] = 0, 0
    logits = model(TOKENS, attention_mask=mask)
    torch.testing.assert_close(logits[0, 5:], model(TOKENS[:1, 5:])[0], **CLOSE)
    torch.testing.assert_close(logits[1, :30], model(TOKENS[1:2, :30])[0], **CLOSE)


@pytest.mark.parametrize("name", ["llama", "gpt2 untied", "qwen3"])
def test_weights_come_in_the_precision_asked_for(save_twin, name):
    architecture, changes = TWINS[name]
    twin, folder = save_twin(architecture, **changes)
    model = from_pretrained(folder, dtype=torch.bfloat16)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16}
    logits, _ = model.run_with_cache(TOKENS)
    assert logits.dtype == torch.bfloat16
    close = torch.nn.functional.cosine_similarity(logits.float(), logits_of(twin, TOKENS), dim=-1)
    assert close.min() > 0.95


def test_places_and_weights_bear_transformerlens_names(save_twin):
    _, folder = save_twin("qwen3", head_dim=8)
    model = from_pretrained(folder)
    _, cache = model.run_with_cache(TOKENS)
    shapes = {
        "hook_q": (1, 3, 40, 4, 8),
        "hook_k": (1, 3, 40, 2, 8),
        "hook_v": (1, 3, 40, 2, 8),
        "hook_rot_q": (1, 3, 40, 4, 8),
        "hook_rot_k": (1, 3, 40, 2, 8),
        "hook_z": (1, 3, 40, 4, 8),
        "q_norm.hook_scale": (1, 3, 40, 4, 1),
        "k_norm.hook_normalized": (1, 3, 40, 2, 8),
    }
    assert {name: tuple(cache[f"blocks.1.attn.{name}"].shape) for name in shapes} == shapes
    for name in ("hook_pre", "hook_pre_linear", "hook_post"):
        assert cache[f"blocks.1.mlp.{name}"].shape == (1, 3, 40, 24)
    names = {name.removeprefix("blocks.0.") for name in model.state_dict() if ".0." in name}
    assert {"attn._W_K", "attn._b_V", "attn.q_norm.w", "mlp.W_gate", "mlp.b_in"} <= names
    assert model.W_K.shape == model.W_Q.shape == (3, 4, 16, 8)
    assert torch.equal(model.W_K[:, 0], model.W_K[:, 1])  # heads 0 and 1 share a key
    assert not torch.equal(model.W_K[:, 1], model.W_K[:, 2])
    assert model.W_gate.shape == (3, 16, 24)


def test_cut_positions_of_heads_are_positions(save_twin):
    _, folder = save_twin("qwen3", head_dim=8)
    model = from_pretrained(folder)
    name = "blocks.0.attn.q_norm.hook_normalized"
    _, whole = model.run_with_cache(TOKENS, names_filter=name)
    _, last = model.run_with_cache(TOKENS, names_filter=name, pos_slice=-1)
    assert torch.equal(last[name], whole[name][:, :, -1:])


def test_layers_of_a_looped_family_are_prelude_blocks_and_coda_in_order(save_twin):
    twin, folder = save_twin("llama")
    model = from_pretrained(folder, family="looped", n_loops=1, n_prelude=1, n_coda=1)
    assert (model.cfg.n_prelude, model.cfg.n_layers, model.cfg.n_coda) == (1, 1, 1)
    torch.testing.assert_close(model(TOKENS), logits_of(twin, TOKENS), **CLOSE)


def test_what_a_family_adds_starts_fresh_and_the_seed_says_how(save_twin):
    _, folder = save_twin("gpt2")
    one, same, other = (
        from_pretrained(folder, family="depth_recurrent", n_loops=2, seed=seed)
        for seed in (0, 0, 1)
    )
    assert torch.isfinite(one(TOKENS)).all()
    name = "recurrence.loop_embed.W_loop"
    weights = [model.state_dict()[name] for model in (one, same, other)]
    assert torch.equal(weights[0], weights[1]) and not torch.equal(weights[0], weights[2])


def test_a_tied_checkpoint_may_be_untied(save_twin):
    twin, folder = save_twin("llama")
    model = from_pretrained(folder, tie_embeddings=False)
    assert not model.cfg.tie_embeddings
    torch.testing.assert_close(model(TOKENS), logits_of(twin, TOKENS), **CLOSE)


def test_a_shorter_context_keeps_the_first_positions(save_twin):
    twin, folder = save_twin("gpt2")
    model = from_pretrained(folder, n_ctx=40)
    assert model.W_pos.shape == (40, 16)
    torch.testing.assert_close(model(TOKENS), logits_of(twin, TOKENS), **CLOSE)


def test_no_weight_is_drawn_only_to_be_overwritten(save_twin, monkeypatch):
    _, folder = save_twin("llama")
    drawn = []
    randn = torch.randn

    def counted(*args, **kwargs):
        tensor = randn(*args, **kwargs)
        drawn.append(0 if tensor.is_meta else tensor.numel())
        return tensor

    monkeypatch.setattr(torch, "randn", counted)
    model = from_pretrained(folder)
    assert drawn and sum(drawn) == 0
    assert not any(parameter.is_meta for parameter in model.parameters())
