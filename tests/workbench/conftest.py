"""A pretrained transformer to begin with: a random GPT-2 of width 16, as transformers writes it."""

import pytest


def write_tokenizer(folder, **specials):
    """A tokenizer of single bytes, as GPT-2's without its merges."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    ids = {letter: token for token, letter in enumerate(letters)}
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **specials).save_pretrained(folder)


@pytest.fixture(scope="session")
def gpt2(tmp_path_factory):
    """The folder of the model, with its tokenizer."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    folder = tmp_path_factory.mktemp("gpt2")
    write_tokenizer(folder, eos_token="<|endoftext|>")
    shape = dict(vocab_size=257, n_embd=16, n_head=2, n_layer=1, n_positions=2048)
    torch.manual_seed(0)
    twin = AutoModelForCausalLM.from_config(AutoConfig.for_model("gpt2", **shape))
    twin.save_pretrained(folder)
    return str(folder)


@pytest.fixture
def endless(tmp_path):
    """A folder with a model and a tokenizer that names no end of a text."""
    from transformers import AutoConfig

    write_tokenizer(tmp_path)
    AutoConfig.for_model("gpt2", vocab_size=256).save_pretrained(tmp_path)
    return str(tmp_path)
