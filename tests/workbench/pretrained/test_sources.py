"""Where pretrained models come from, and the sentences for what is missing or broken."""

import json
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from workbench.pretrained import PretrainedError, from_pretrained
from workbench.settings.config import ConfigError

TOKENS = torch.randint(53, (2, 10), generator=torch.Generator().manual_seed(1))
IN_A_LAYER = {  # of the llama in a GGUF file, as llama.cpp names them
    "attn_norm": (16,),
    "attn_q": (16, 16),
    "attn_k": (8, 16),
    "attn_v": (8, 16),
    "attn_output": (16, 16),
    "ffn_norm": (16,),
    "ffn_gate": (24, 16),
    "ffn_up": (24, 16),
    "ffn_down": (16, 24),
}


def refusal(source, **options):
    """The sentence with which a source is refused."""
    with pytest.raises(PretrainedError) as error:
        from_pretrained(str(source), **options)
    message = str(error.value)
    assert "\n" not in message
    return message


def rewrite(folder, change):
    """Change the weights of a saved twin."""
    path = Path(folder) / "model.safetensors"
    save_file(change(load_file(path)), path, metadata={"format": "pt"})


def reconfigure(folder, **changes):
    """Change the config of a saved twin."""
    path = Path(folder) / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def write_gguf(path, settings=(), tensors=()):
    """A llama of random weights in a GGUF file, with further settings and tensors."""
    from gguf import GGUFWriter

    writer = GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(16)
    writer.add_block_count(2)
    writer.add_feed_forward_length(24)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(53)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([*map(chr, range(65, 116)), "<|endoftext|>", "AB"])
    writer.add_token_merges(["A B"])
    writer.add_eos_token_id(51)
    for name, value in ({"llama.rope.freq_base": 500.0} | dict(settings)).items():
        add = {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
        add[type(value)](name, value)
    drawn = torch.Generator().manual_seed(0)
    shapes = {"token_embd": (53, 16), "output": (53, 16), "output_norm": (16,)}
    for layer in range(2):
        shapes |= {f"blk.{layer}.{name}": shape for name, shape in IN_A_LAYER.items()}
    for name, shape in shapes.items():
        numbers = 1 - len(shape) // 2 + 0.3 * torch.randn(shape, generator=drawn)
        writer.add_tensor(f"{name}.weight", numbers.numpy())
    for name, tensor in dict(tensors).items():
        writer.add_tensor(name, tensor.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture
def gguf(tmp_path):
    return write_gguf(tmp_path / "tiny.gguf")


def test_a_gguf_file_says_what_transformers_makes_of_it(gguf):
    from transformers import AutoModelForCausalLM

    theirs = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, dtype=torch.float32
    ).eval()
    with torch.no_grad():
        wanted = theirs(TOKENS).logits
    for source in (gguf, gguf.parent):
        model = from_pretrained(str(source))
        torch.testing.assert_close(model(TOKENS), wanted, atol=1e-4, rtol=0)
    assert model.cfg.n_key_value_heads == 2 and model.cfg.rotary_base == 500.0
    assert model.tokenizer.encode("CDE") == [2, 3, 4]


def test_a_folder_of_several_gguf_files_asks_which(gguf):
    other = gguf.with_name("other.gguf")
    other.write_bytes(gguf.read_bytes())
    assert refusal(gguf.parent) == (
        f"{gguf.parent} holds several models; say which with gguf_file: other.gguf, tiny.gguf"
    )
    assert from_pretrained(str(gguf.parent), gguf_file="tiny.gguf").cfg.d_model == 16
    message = refusal(gguf.parent, gguf_file="tinny.gguf")
    assert message == f"{gguf.parent} has no 'tinny.gguf'; did you mean 'tiny.gguf'?"


@pytest.mark.parametrize("size", [0, 10, 200, -100])
def test_a_cut_gguf_file_is_named(gguf, size):
    gguf.write_bytes(gguf.read_bytes()[:size])
    assert re.match(f"the (config|tokenizer|weights) of '{gguf}' cannot be read", refusal(gguf))


def test_a_missing_folder_is_answered_with_its_neighbour(tmp_path, monkeypatch):
    (tmp_path / "smollm").mkdir()
    wanted = f"there is no 'smolm' in {tmp_path}; did you mean 'smollm'?"
    assert refusal(tmp_path / "smolm") == wanted
    assert refusal(tmp_path / "a" / "b").startswith(f"there is no 'b' and no folder {tmp_path}/a")
    monkeypatch.chdir(tmp_path.parent)  # a folder that is here is no owner on the Hub
    assert refusal(f"{tmp_path.name}/smolm").endswith("did you mean 'smollm'?")


def test_a_folder_without_a_model_says_what_it_holds(tmp_path):
    assert refusal(tmp_path).endswith("neither config.json nor a GGUF file, nothing at all")
    (tmp_path / "notes.txt").touch()
    assert refusal(tmp_path).endswith("neither config.json nor a GGUF file, only notes.txt")
    assert refusal(tmp_path / "notes.txt").endswith(
        "is no GGUF file; give the folder that it lies in"
    )


def test_a_name_on_the_hub_is_the_only_one_that_is_looked_up(monkeypatch):
    import transformers

    def unreachable(name, **options):
        raise OSError(f"{name} is out of reach\nand more")

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", unreachable)
    assert refusal("owner/name") == (
        "the config of 'owner/name' on the Hub cannot be read (OSError: owner/name is out of reach)"
    )


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("gpt_neo", "there is gpt2, llama, qwen2, qwen3"),
        ("qwen3_moe", "did you mean 'qwen3'?"),
    ],
)
def test_another_architecture_is_answered_with_the_nearest(tmp_path, name, end):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": name}))
    assert refusal(tmp_path) == f"models of the architecture {name!r} cannot be loaded; {end}"


def test_a_broken_config_is_named(tmp_path):
    (tmp_path / "config.json").write_text("{")
    assert refusal(tmp_path).startswith(f"the config of '{tmp_path}' cannot be read (OSError: ")


@pytest.mark.parametrize(
    ("architecture", "changes", "what"),
    [
        ("llama", {"mlp_bias": True}, "biases of the perceptron (mlp_bias)"),
        (
            "llama",
            {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}},
            "rotary positions of type 'linear'",
        ),
        (
            "qwen2",
            {"use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1},
            "attention within a window (sliding_attention)",
        ),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scores scaled by layer"),
    ],
)
def test_what_our_models_lack_is_named(save_twin, architecture, changes, what):
    _, folder = save_twin(architecture, **changes)
    wanted = f"this {architecture} requires {what}, which our models lack"
    assert refusal(folder) == wanted


def test_an_activation_that_is_not_here_is_named(save_twin):
    _, folder = save_twin("llama")
    reconfigure(folder, hidden_act="gelu_fast")
    assert refusal(folder).startswith("no activation 'gelu_fast'; did you mean 'gelu'?")


def test_a_missing_weight_is_named(save_twin):
    _, folder = save_twin("llama")
    name = "model.layers.1.mlp.up_proj.weight"
    rewrite(folder, lambda weights: {n: t for n, t in weights.items() if n != name})
    assert refusal(folder) == f"{folder} lacks the weights {name}"


def test_a_weight_without_a_place_is_named(save_twin):
    _, folder = save_twin("gpt2")
    rewrite(folder, lambda weights: weights | {"transformer.h.0.gate": torch.ones(1)})
    assert "holds weights without a place: transformer.h.0.gate" in refusal(folder)


def test_truncated_weights_are_named(save_twin):
    _, folder = save_twin("llama")
    path = Path(folder) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])
    assert refusal(folder).startswith(f"the weights of '{folder}' cannot be read (")


def test_pickled_weights_are_not_read(save_twin):
    _, folder = save_twin("llama")
    path = Path(folder) / "model.safetensors"
    torch.save(load_file(path), Path(folder) / "pytorch_model.bin")
    path.unlink()
    assert refusal(folder).startswith(f"the weights of '{folder}' cannot be read (")


def test_a_changed_shape_is_refused_by_name(save_twin):
    _, folder = save_twin("llama")
    assert refusal(folder, d_mlp=32).startswith("blocks.0.mlp.W_gate is [16, 24] in the checkpoint")
    with pytest.raises(ConfigError, match="has no field 'n_loop'; did you mean 'n_loops'"):
        from_pretrained(folder, "looped", n_loop=3)
    with pytest.raises(ConfigError, match="no family 'coconutt'; did you mean 'coconut'"):
        from_pretrained(folder, "coconutt")


def test_layers_must_be_those_of_the_checkpoint(save_twin):
    _, folder = save_twin("llama")
    assert refusal(folder, family="looped", n_prelude=1, n_layers=1) == (
        "n_prelude=1, n_layers=1 and n_coda=0 must be at least one layer in the loop and 3 in all, "
        "as many as the checkpoint has"
    )


def test_a_model_of_other_parts_has_no_place_for_the_weights(save_twin):
    _, folder = save_twin("llama")
    assert refusal(folder, family="gnn").startswith("the checkpoint lacks blocks.0.W_in, ")
    assert refusal(folder, gated_mlp=False).startswith("this model has no place for")


# -- what a file holds against what a config says


def logits_of(twin, tokens=TOKENS):
    with torch.no_grad():
        return twin(tokens).logits


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3", "gpt2"])
def test_a_head_in_the_file_wins_over_a_config_that_ties(save_twin, architecture):
    from transformers import AutoModelForCausalLM

    _, folder = save_twin(architecture, tie_word_embeddings=False)
    reconfigure(folder, tie_word_embeddings=True)
    theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    model = from_pretrained(folder)
    assert not model.cfg.tie_embeddings
    torch.testing.assert_close(model(TOKENS), logits_of(theirs), atol=1e-4, rtol=0)
    with pytest.raises(PretrainedError, match=r"no place for the checkpoint's unembed.W_U"):
        from_pretrained(folder, tie_embeddings=True)


def test_rotary_factors_in_a_gguf_file_are_those_of_llama_3(tmp_path):
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    rope = {
        "rope_type": "llama3",
        "rope_theta": 1e9,  # so large that the second frequency turns once in 200,000 tokens
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    base = rope["rope_theta"]
    plain = tmp_path / "plain.gguf"
    write_gguf(plain, {"llama.rope.freq_base": base})
    config = AutoConfig.from_pretrained(tmp_path, gguf_file="plain.gguf")
    config.rope_parameters = rope
    scaled, _ = ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")
    unscaled = 1 / base ** (torch.arange(2) / 2)
    factors = unscaled / scaled
    assert factors.max() == 8
    theirs = AutoModelForCausalLM.from_pretrained(
        tmp_path, gguf_file="plain.gguf", config=config, dtype=torch.float32
    ).eval()
    folder = tmp_path / "with"
    folder.mkdir()
    write_gguf(
        folder / "scaled.gguf", {"llama.rope.freq_base": base}, {"rope_freqs.weight": factors}
    )
    model = from_pretrained(str(folder))
    assert model.cfg.rotary_scaling.factor == 8.0
    torch.testing.assert_close(model(TOKENS), logits_of(theirs), atol=1e-4, rtol=0)
    other = write_gguf(tmp_path / "other.gguf", {}, {"rope_freqs.weight": torch.tensor([1.0, 3.0])})
    assert refusal(other).startswith(f"{other} scales the rotary frequencies (rope_freqs.weight)")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"llama.rope.scaling.factor": 4.0}, "requires llama.rope.scaling.factor=4.0"),
        ({"llama.rope.scaling.type": "yarn"}, "requires llama.rope.scaling.type='yarn'"),
        ({"llama.attention.sliding_window": 32}, "requires llama.attention.sliding_window=32"),
        ({"llama.something_new": 1}, "requires llama.something_new=1"),
        ({"llama.rope.dimension_count": 2, "llama.attention.key_length": 4}, "of several widths"),
        ({"split.count": 3}, "one of 3 parts of a model"),
    ],
)
def test_a_setting_that_transformers_does_not_read_is_refused(tmp_path, settings, says):
    assert says in refusal(write_gguf(tmp_path / "tiny.gguf", settings))


def test_a_setting_that_asks_for_nothing_is_no_matter(tmp_path):
    idle = {"llama.rope.scaling.factor": 1.0, "llama.rope.dimension_count": 4}
    path = write_gguf(tmp_path / "tiny.gguf", idle, {"rope_freqs.weight": torch.ones(2)})
    plain = write_gguf(tmp_path / "plain.gguf")
    assert torch.equal(from_pretrained(str(path))(TOKENS), from_pretrained(str(plain))(TOKENS))


@pytest.mark.parametrize(
    "name",
    [
        *("blk.0.attn_q.bias", "blk.1.attn_k_norm.weight", "blk.0.ffn_up.bias", "cls.weight"),
        *("output.bias", "output_norm.bias", "position_embd.weight"),
    ],
)
def test_a_tensor_that_transformers_drops_is_refused(tmp_path, name):
    path = write_gguf(tmp_path / "tiny.gguf", {}, {name: torch.randn(16)})
    assert refusal(path) == f"{path} holds weights without a place: {name}"


def test_weights_that_are_not_finite_are_named(save_twin):
    _, folder = save_twin("llama")
    rewrite(folder, lambda weights: weights | {"model.norm.weight": torch.full((16,), torch.inf)})
    assert "holds weights that are not finite in torch.float32: model.norm.weight" in refusal(
        folder
    )


def test_code_of_a_model_folder_is_not_run(save_twin, tmp_path, monkeypatch):
    _, folder = save_twin("llama")
    marker = tmp_path / "marker"
    code = f"open({str(marker)!r}, 'w').close()\nclass Config: pass\nclass Model: pass\n"
    (tmp_path / "theirs.py").write_text(code)
    reconfigure(
        folder,
        model_type="theirs",
        auto_map={"AutoConfig": "theirs.Config", "AutoModelForCausalLM": "theirs.Model"},
    )
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    assert refusal(folder).endswith(
        "brings code of its own (auto_map in its config), which is not run here"
    )
    assert not marker.exists()
