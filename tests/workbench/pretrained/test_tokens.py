"""Pretrained tokenizers as vocabularies, and tokens added to a pretrained model."""

import copy

import pytest
import torch

from workbench.pretrained import PretrainedError, from_pretrained
from workbench.words.tokenizer import SPECIALS, PretrainedVocabulary

TEXT = "the capital of France is Paris"


@pytest.fixture
def vocabulary(tokenizer):
    return PretrainedVocabulary(tokenizer())


@pytest.fixture
def folder(save_twin, tokenizer):
    """Save a twin with a tokenizer; one row of its embedding for each token by default."""

    def folder(architecture="llama", extra=0, **changes):
        made = tokenizer()
        return save_twin(architecture, made, vocab_size=len(made) + extra, **changes)[1]

    return folder


def test_a_text_comes_back_from_its_tokens(vocabulary):
    tokens = vocabulary.encode(TEXT)
    assert vocabulary.decode(tokens) == TEXT
    assert len(tokens) == 8  # "the" has no blank before it: its letters stand alone


def test_no_start_token_is_added(tokenizer):
    from tokenizers.processors import TemplateProcessing

    made = tokenizer(bos_token="<|begin|>")
    begin = ("<|begin|>", made.bos_token_id)
    made.backend_tokenizer.post_processor = TemplateProcessing(
        single="<|begin|> $A", special_tokens=[begin]
    )
    assert made.encode(" is")[0] == made.bos_token_id
    assert PretrainedVocabulary(made).encode(" is") == made.encode(" is")[1:]


def test_words_are_the_literal_texts_of_tokens(vocabulary):
    words = [vocabulary.words[token] for token in vocabulary.encode(" France is Paris!")]
    assert words == [" France", " is", " Paris", "!"]
    assert vocabulary.ids[" Paris"] == vocabulary.encode(" Paris")[0]
    assert len(vocabulary.words) == len(vocabulary)


def test_a_blank_that_a_tokenizer_marks_is_a_blank():
    from tokenizers import Tokenizer, decoders, models
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.WordLevel({"▁is": 0, "is": 1, "?": 2}, unk_token="?"))
    made.decoder = decoders.Metaspace()
    vocabulary = PretrainedVocabulary(PreTrainedTokenizerFast(tokenizer_object=made))
    assert vocabulary.words == (" is", "is", "?")


def test_an_empty_text_is_refused(vocabulary):
    with pytest.raises(ValueError, match="the question is empty; it needs at least one word"):
        vocabulary.encode("")


def test_rows_without_a_token_have_words_too(tokenizer):
    vocabulary = PretrainedVocabulary(tokenizer(), size=500)
    assert len(vocabulary) == len(vocabulary.words) == 500
    assert vocabulary.words[499] == "<|unused-499|>"
    is_ = vocabulary.encode(" is")
    assert vocabulary.decode([*is_, 499, *is_]) == " is<|unused-499|> is"


def test_padding_is_the_end_where_there_is_none_of_its_own(tokenizer):
    vocabulary = PretrainedVocabulary(tokenizer())
    assert vocabulary.pad == vocabulary.end == vocabulary.special("<|end|>")
    vocabulary = PretrainedVocabulary(tokenizer(pad_token="<|pad|>"))
    assert vocabulary.pad == vocabulary.special("<|pad|>") != vocabulary.end


def test_a_tokenizer_without_an_end_says_so(tokenizer):
    with pytest.raises(ValueError, match="names no token for the end of a text"):
        _ = PretrainedVocabulary(tokenizer(eos_token=None)).end


def test_special_tokens_are_added_once_and_found_by_name(tokenizer):
    made = tokenizer()
    n_before = len(made)
    for _ in range(2):
        vocabulary = PretrainedVocabulary(made, add_specials=True)
        assert len(vocabulary) == n_before + 4
    ids = [vocabulary.special(name) for name in SPECIALS]
    assert ids == list(range(n_before, n_before + 4))
    assert vocabulary.encode(" is<|latent|><|latent|> Paris")[1:3] == [ids[2]] * 2
    assert vocabulary.words[ids[3]] == "<|pause|>"


def test_a_tokenizer_that_lacks_special_tokens_names_them(vocabulary):
    vocabulary.add(["<|pause|>"])
    with pytest.raises(ValueError) as error:
        vocabulary.special("<|latent|>")
    assert str(error.value) == (
        "this tokenizer lacks the special tokens <|start-latent|>, <|end-latent|>, <|latent|>; "
        "load the model with add_tokens=workbench.words.tokenizer.SPECIALS"
    )
    with pytest.raises(ValueError, match=r"no token '<\|latnt\|>'; did you mean '<\|latent\|>'\?"):
        vocabulary.special("<|latnt|>")


def test_copies_of_a_model_share_its_words(folder):
    model = from_pretrained(folder())
    assert copy.deepcopy(model).tokenizer is model.twin().tokenizer is model.tokenizer


def test_a_pretrained_model_reads_writes_and_goes_on(folder):
    model = from_pretrained(folder())
    tokens = model.to_tokens(" France is")
    assert model.to_string(tokens) == [" France is"]
    assert model.to_str_tokens(" France is") == [" France", " is"]
    assert model.to_single_token(" Paris") == model.tokenizer.ids[" Paris"]
    longer = model.generate(" France is", max_new_tokens=3)
    assert longer.shape == (1, 5) and torch.equal(longer[:, :2], tokens)
    with pytest.raises(ValueError, match="'Paris' is 5 tokens"):
        model.to_single_token("Paris")


@pytest.mark.parametrize("architecture", ["llama", "gpt2"])
@pytest.mark.parametrize("tied", [True, False])
def test_added_tokens_get_rows_and_leave_the_others_as_they_were(folder, architecture, tied):
    path = folder(architecture, tie_word_embeddings=tied)
    plain, grown = from_pretrained(path), from_pretrained(path, add_tokens=SPECIALS)
    n = plain.cfg.d_vocab
    assert grown.cfg.d_vocab == len(grown.tokenizer) == n + 4
    assert torch.equal(grown.W_E[:n], plain.W_E) and torch.equal(grown.W_U[:, :n], plain.W_U)
    tokens = plain.to_tokens(TEXT)
    torch.testing.assert_close(grown(tokens)[..., :n], plain(tokens), atol=1e-5, rtol=1e-4)
    for own, old in ((grown.W_E[n:], plain.W_E), (grown.W_U.T[n:], plain.W_U.T)):
        off = (own - old.mean(0)) / old.std(0)
        assert 0.05 < off.std() < 0.2
        assert not torch.equal(own[0], own[1])
    again = from_pretrained(path, add_tokens=SPECIALS)
    assert torch.equal(again.W_E, grown.W_E)


def test_added_tokens_may_start_as_another(folder):
    model = from_pretrained(folder(), add_tokens=SPECIALS, tokens_like="<<")
    like = model.W_E[model.to_single_token("<<")]
    assert all(torch.equal(model.W_E[model.tokenizer.special(name)], like) for name in SPECIALS)


def test_a_start_of_several_tokens_is_refused(folder):
    with pytest.raises(PretrainedError, match=r"tokens_like='Paris' must be one token; .* makes 5"):
        from_pretrained(folder(), add_tokens=SPECIALS, tokens_like="Paris")


def test_added_tokens_take_spare_rows_first(folder):
    path = folder(extra=6)
    plain, grown = from_pretrained(path), from_pretrained(path, add_tokens=SPECIALS)
    first = grown.tokenizer.special(SPECIALS[0])
    assert grown.cfg.d_vocab == plain.cfg.d_vocab == first + 6
    new = range(first, first + 4)
    assert not any(torch.equal(grown.W_E[row], plain.W_E[row]) for row in new)
    assert torch.equal(grown.W_E[first + 4 :], plain.W_E[first + 4 :])


def test_tokens_that_no_embedding_is_for_are_named(folder):
    path = folder(extra=-1)
    with pytest.raises(PretrainedError, match=r"no embedding for, <\|end\|>; name them in add_tok"):
        from_pretrained(path)
    model = from_pretrained(path, add_tokens=["<|end|>"])
    assert model.cfg.d_vocab == len(model.tokenizer)


def test_tokens_need_a_tokenizer_to_go_to(save_twin):
    _, path = save_twin("llama")
    with pytest.raises(PretrainedError, match=r"has no tokenizer that <\|a\|> could go to"):
        from_pretrained(path, add_tokens=["<|a|>"])
    with pytest.raises(ValueError, match="this model has no vocabulary"):
        from_pretrained(path).to_tokens("a")


@pytest.mark.parametrize("family", ["coconut", "agclr"])
def test_a_pretrained_model_thinks_where_the_tokenizers_latent_token_stands(folder, family):
    path = folder("qwen3", head_dim=8)
    model = from_pretrained(path, family, add_tokens=SPECIALS)
    assert model.cfg.latent_token == model.tokenizer.special("<|latent|>")
    tokens = model.to_tokens(" France is<|latent|><|latent|> Paris")
    logits, cache = model.run_with_cache(tokens)
    assert cache["recurrence.hook_thought"].shape == (2, 1, 16)
    assert cache["blocks.0.attn.hook_k"].shape == (1, 5, 2, 8)
    whole = model(tokens, recompute=True)
    torch.testing.assert_close(logits, whole, atol=1e-5, rtol=1e-4)
    plain = from_pretrained(path)
    words = plain.to_tokens(" France is")
    torch.testing.assert_close(
        model(words)[..., : plain.cfg.d_vocab], plain(words), atol=1e-5, rtol=1e-4
    )


def test_a_model_that_thinks_needs_the_latent_token(folder, save_twin):
    with pytest.raises(ValueError, match=r"lacks the special tokens .*<\|latent\|>.*add_tokens="):
        from_pretrained(folder(), "coconut")


def test_a_model_that_thinks_needs_a_tokenizer_or_a_token(save_twin):
    _, path = save_twin("llama")
    with pytest.raises(PretrainedError, match="the family 'coconut' needs latent_token"):
        from_pretrained(path, "coconut")
    assert from_pretrained(path, "coconut", latent_token=5).cfg.latent_token == 5


def test_a_folder_of_a_tokenizer_needs_no_model(tokenizer, tmp_path):
    from workbench.words.tokenizer import load_vocabulary

    saved = tokenizer(eos_token="<|endoftext|>")
    saved.save_pretrained(tmp_path)
    assert not (tmp_path / "config.json").exists()
    assert load_vocabulary(str(tmp_path)).encode("the capital") == saved.encode("the capital")
