"""Small twins of pretrained models: transformers' own classes with random weights, no download."""

import pytest
import torch

LLAMA = dict(
    vocab_size=53,
    hidden_size=16,
    intermediate_size=24,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    rms_norm_eps=1e-5,
    tie_word_embeddings=True,
)
GPT2 = dict(vocab_size=53, n_embd=16, n_head=4, n_layer=3, n_positions=64)


def make_twin(architecture, **changes):
    """A model of transformers in which every parameter matters, gains and biases too."""
    from transformers import AutoConfig, AutoModelForCausalLM

    shape = GPT2 if architecture == "gpt2" else LLAMA
    config = AutoConfig.for_model(architecture, **(shape | changes))
    twin = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return twin


@pytest.fixture
def save_twin(tmp_path):
    """Write a twin as transformers writes a model: the twin and its folder."""

    def save(architecture, tokenizer=None, **changes):
        twin = make_twin(architecture, **changes)
        twin.save_pretrained(tmp_path)
        if tokenizer is not None:
            tokenizer.save_pretrained(tmp_path)
        return twin, str(tmp_path)

    return save


@pytest.fixture
def tokenizer():
    """Build a tokenizer of 275 tokens; keyword arguments name special ones."""
    return make_tokenizer


def make_tokenizer(words=("the", "capital", "of", "France", "is", "Paris", "<<"), **specials):
    """A tokenizer of bytes, as GPT-2's, that has merged some words with the blank before them."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    ids = {letter: token for token, letter in enumerate(letters)}
    merges = []
    for word in words:
        piece = "Ġ" if word != "<<" else "<"
        for letter in word if word != "<<" else "<":
            merges.append((piece, letter))
            piece += letter
            ids.setdefault(piece, len(ids))
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=list(dict.fromkeys(merges))))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, **({"eos_token": "<|end|>"} | specials)
    )
