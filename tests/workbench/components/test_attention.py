"""Attention against sums written out query by query."""

import pytest
import torch

from workbench.components.attention import SHORT, Attention, context
from workbench.components.grouped import GroupedAttention, make_attention

MASK = torch.tensor([[0, 1, 1, 1, 0], [1, 1, 1, 1, 1]])
TOKENS = torch.ones(2, 5, dtype=torch.long)
EVERY = ["standard", "rotary", "relative", "none"]
# Shapes beside that of one key for each query: keys shared by two and by all, wide and narrow heads
SHAPES = [
    dict(n_heads=4, n_key_value_heads=2),
    dict(n_heads=4, n_key_value_heads=1, head_width=6),
    dict(head_width=12),
    dict(n_heads=4, n_key_value_heads=2, use_qk_norm=True),
]


@pytest.fixture
def make(cfg):
    def make(positions, **changes):
        made = make_attention(cfg(positional_embedding_type=positions, **changes))
        for parameter in made.parameters():
            parameter.data += 0.3 * torch.randn_like(parameter)
        return made

    return make


def turned(x, position):
    """One head's vector turned to its position, pair by pair."""
    half = len(x) // 2
    out = x.clone()
    for pair in range(half):
        angle = torch.tensor(position * 10_000.0 ** (-2 * pair / len(x)))
        first, second = x[pair], x[pair + half]
        out[pair] = first * angle.cos() - second * angle.sin()
        out[pair + half] = second * angle.cos() + first * angle.sin()
    return out


def normed(x, norm):
    """One head's vector, over its root mean square where a norm asks for it."""
    return x if norm is None else x / (x.square().mean() + norm.eps).sqrt() * norm.w


def by_hand(attention, x, real):
    """What every real query gets: one row, one head and one key at a time."""
    out = torch.zeros_like(x)
    for row in range(len(x)):
        places = real[row].nonzero()[:, 0].tolist()
        for query, at in enumerate(places):
            total = attention.b_O.clone()
            for head in range(len(attention.W_Q)):
                raw = x[row, at] @ attention.W_Q[head] + attention.b_Q[head]
                scores, values = [], []
                for key, there in enumerate(places[: query + 1]):
                    k = x[row, there] @ attention.W_K[head] + attention.b_K[head]
                    q, k = normed(raw, attention.q_norm), normed(k, attention.k_norm)
                    rotary = attention.rotary is not None
                    q_at, k_at = (turned(q, query), turned(k, key)) if rotary else (q, k)
                    score = q_at @ k_at / len(q) ** 0.5
                    if attention.rel_pos_bias is not None:
                        score = score + attention.rel_pos_bias.b[head, query - key]
                    scores.append(score)
                    values.append(x[row, there] @ attention.W_V[head] + attention.b_V[head])
                z = (torch.stack(scores).softmax(0)[:, None] * torch.stack(values)).sum(0)
                total = total + z @ attention.W_O[head]
            out[row, at] = total
    return out


@pytest.mark.parametrize("positions", EVERY)
@pytest.mark.parametrize("heard", [False, True])
def test_both_paths_give_what_the_sums_give(make, positions, heard):
    attention, x = make(positions), torch.randn(2, 5, 16)
    if heard:
        attention.hook_pattern.add_hook(lambda tensor, hook: None)
    for mask in (None, MASK):
        real = torch.ones(2, 5).bool() if mask is None else mask.bool()
        out = attention(x, context(TOKENS, mask))
        wanted = by_hand(attention, x, real)
        torch.testing.assert_close(out[real], wanted[real], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("heard", [False, True])
@pytest.mark.parametrize("n_pos", [2, 5])
def test_heads_of_every_shape_give_what_the_sums_give(make, shape, heard, n_pos):
    attention, x = make("rotary", **shape), torch.randn(2, n_pos, 16)
    if heard:
        attention.hook_pattern.add_hook(lambda tensor, hook: None)
    out = attention(x, context(TOKENS[:, :n_pos], None))
    wanted = by_hand(attention, x, torch.ones(2, n_pos).bool())
    torch.testing.assert_close(out, wanted, atol=1e-5, rtol=1e-4)


def test_grouped_keys_are_held_once_and_shown_for_every_head(make):
    made = make("rotary", n_heads=4, n_key_value_heads=2)
    assert isinstance(made, GroupedAttention)
    assert made._W_K.shape == made._W_V.shape == (2, 16, 4)
    assert torch.equal(made.W_V, made._W_V[[0, 0, 1, 1]])
    assert torch.equal(made.b_K, made._b_K[[0, 0, 1, 1]])
    assert "W_K" not in made.state_dict()


@pytest.mark.parametrize("n_pos", range(1, SHORT + 3))
@pytest.mark.parametrize("positions", EVERY)
def test_the_explicit_path_is_right_at_every_length(make, positions, n_pos):
    attention, x = make(positions), torch.randn(2, n_pos, 16)
    attention.hook_pattern.add_hook(lambda tensor, hook: None)
    out = attention(x, context(TOKENS[:, :n_pos], None))
    wanted = by_hand(attention, x, torch.ones(2, n_pos).bool())
    torch.testing.assert_close(out, wanted, atol=1e-5, rtol=1e-4)


def test_positions_count_real_tokens_only():
    assert context(TOKENS, MASK).positions.tolist() == [[0, 0, 1, 2, 2], [0, 1, 2, 3, 4]]
    assert context(TOKENS, None).positions.tolist() == [[0, 1, 2, 3, 4]]


def test_a_pad_sees_itself_and_no_real_token_sees_a_pad():
    allowed = context(TOKENS, MASK).allowed[0, 0]
    assert allowed[0].tolist() == [True, False, False, False, False]
    assert allowed[3].tolist() == [False, True, True, True, False]
    assert allowed[:, 0].tolist() == [True, False, False, False, False]


@pytest.mark.parametrize("positions", EVERY)
def test_an_edited_pattern_is_what_mixes_the_values(make, positions):
    attention, x = make(positions), torch.randn(1, 5, 16)
    itself = torch.eye(5).expand(1, 2, 5, 5)
    attention.hook_pattern.add_hook(lambda tensor, hook: itself)
    values = torch.einsum("bpd,hdk->bphk", x, attention.W_V) + attention.b_V
    wanted = torch.einsum("bphk,hkd->bpd", values, attention.W_O) + attention.b_O
    out = attention(x, context(TOKENS[:1], None))
    torch.testing.assert_close(out, wanted, atol=1e-5, rtol=1e-4)


def test_a_distance_bias_starts_flat_and_falls_by_the_slope(cfg):
    attention = Attention(cfg(positional_embedding_type="relative", relative_slope=0.5, n_ctx=4))
    assert attention.rel_pos_bias.b.tolist() == [[0.0, 0.0, -0.5, -1.0]] * 2


def test_the_first_position_is_not_turned(make):
    attention = make("rotary")
    q = torch.randn(1, 3, 2, 8)
    angles = attention.rotary(torch.arange(3)[None])
    assert torch.equal(angles.turn(q)[:, 0], q[:, 0])


def test_a_rotated_score_depends_on_the_distance_alone(make):
    attention = make("rotary")
    q, k = torch.randn(8), torch.randn(8)
    rows = torch.stack((q, k))[None, :, None]
    near, far = (
        attention.rotary(torch.tensor([pair])).turn(rows)[0, :, 0] for pair in ([3, 1], [7, 5])
    )
    torch.testing.assert_close(near[0] @ near[1], far[0] @ far[1], atol=1e-5, rtol=1e-4)
