"""Going on from a prompt in several ways gives what whole forwards give."""

import pytest
import torch

LATENT = 10
TOKENS = torch.tensor([[1, 2, LATENT, LATENT, 3, 0], [4, 5, 6, LATENT, 7, 8]])
MASK = torch.tensor([[1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1]])
WORDS = torch.tensor([[1, 2, 3], [4, 0, 0]])
REAL = torch.tensor([[True, True, True], [True, False, False]])


@pytest.fixture(params=["coconut", "agclr"])
def model(build, request):
    return build(request.param, n_ctx=12, latent_token=LATENT)


def whole(model):
    """Logits after each real word, by one forward a row without any padding."""
    rows = []
    for row in range(2):
        prompt = TOKENS[row][MASK[row].bool()]
        tokens = torch.cat((prompt, WORDS[row][REAL[row]]))[None]
        rows.append(model(tokens)[0, len(prompt) - 1 :])
    return rows


@torch.no_grad()
def test_every_way_on_equals_a_whole_forward(model):
    from workbench.models.thoughts.continuation import Continuation

    begun = Continuation(model, TOKENS, MASK)
    begun.after(WORDS + 1, REAL)  # another way, which leaves nothing behind
    for _ in range(2):
        after = begun.after(WORDS, REAL)
        for row, wanted in enumerate(whole(model)):
            torch.testing.assert_close(begun.logits[row], wanted[0], atol=1e-5, rtol=1e-5)
            found = after[row, REAL[row]]
            torch.testing.assert_close(found, wanted[1:], atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_a_plain_hook_on_a_block_is_obeyed(model):
    from workbench.models.thoughts.continuation import Continuation

    hooks = [("blocks.0.hook_attn_out", lambda t, hook: t * 2)]
    with model.hooks(fwd_hooks=hooks):
        after = Continuation(model, TOKENS, MASK).after(WORDS, REAL)
        for row, wanted in enumerate(whole(model)):
            found = after[row, REAL[row]]
            torch.testing.assert_close(found, wanted[1:], atol=1e-5, rtol=1e-5)


def test_more_words_than_the_model_holds_are_refused(model):
    from workbench.models.thoughts.continuation import Continuation

    begun = Continuation(model, TOKENS, MASK)
    words = torch.ones(2, 7, dtype=torch.long)
    with pytest.raises(ValueError, match="are 13 tokens; the model's n_ctx is 12"):
        begun.after(words, words.bool())
