import pytest
import torch

from workbench.words.vocabulary import WordVocabulary

WORDS = WordVocabulary(["<pad>", "A1", "r1", "r2"])


def test_a_text_comes_back_from_its_tokens():
    assert WORDS.decode(WORDS.encode("A1 r1 r2")) == "A1 r1 r2"


def test_no_start_token_is_added():
    assert WORDS.encode("A1") == [1]


def test_spaces_of_any_number_stand_between_words():
    assert WORDS.encode("  A1   r1 ") == [1, 2]


def test_an_unknown_word_is_answered_with_the_nearest():
    words = WordVocabulary(["<pad>", "A100", "r100"])
    with pytest.raises(ValueError, match=r"unknown word 'r10'; did you mean 'r100'?"):
        words.encode("A100 r10")


@pytest.mark.parametrize("text", ["", "   "])
def test_an_empty_text_is_refused(text):
    with pytest.raises(ValueError, match="the question is empty; it needs at least one word"):
        WORDS.encode(text)


def test_a_model_without_words_says_so(build):
    with pytest.raises(ValueError, match="this model has no vocabulary"):
        build().to_tokens("A1 r1")


def test_a_model_turns_words_into_tokens_and_back(speaker):
    model = speaker()
    tokens = model.to_tokens(["A1 r1 r2", "B0 r0 r3"])
    assert tokens.shape == (2, 3)
    assert model.to_string(tokens) == ["A1 r1 r2", "B0 r0 r3"]
    assert model.to_string(tokens[0]) == "A1 r1 r2"
    assert model.to_str_tokens("A1 r1") == ["A1", "r1"]
    assert model.to_single_token("r0") == tokens[1, 1]


def test_texts_of_unequal_length_do_not_make_one_tensor(speaker):
    with pytest.raises(ValueError, match="texts of 2, 3 words do not fit one tensor"):
        speaker().to_tokens(["A1 r1", "A1 r1 r2"])


def test_directions_are_columns_of_the_unembedding(speaker):
    model = speaker()
    tokens = torch.tensor([3, 5])
    assert torch.equal(model.tokens_to_residual_directions(tokens), model.W_U[:, [3, 5]].T)
