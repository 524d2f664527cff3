"""Floating-point operations of a forward, counted from shapes: 2 for a product and its sum."""

from workbench.components.products import weights_in_products
from workbench.models.thoughts.thought import ThoughtModel


def forward_flops(model: ThoughtModel, n_positions: int, n_thoughts: int, n_read: int) -> float:
    """Operations of running one sequence once, keys and values carried from pass to pass.

    Every weight of a layer is used once a position, the gates of a recurrence once a thought, the
    unembedding once a position whose next token is read. The position after k others looks at
    k + 1 keys, and both its scores and what it takes from the values cost a product with each. What
    grows with the width alone, as norms do, is not counted, nor are rotations and softmaxes.

    Args:
        model: The model.
        n_positions: Positions that are run: question, thoughts, and what is said but its last
            token.
        n_thoughts: Thoughts among them.
        n_read: Tokens that are said.
    """
    cfg = model.cfg
    keys = n_positions * (n_positions + 1) / 2
    attention = cfg.n_layers * 2 * cfg.n_heads * cfg.d_head * keys
    products = weights_in_products(model.blocks) * n_positions + cfg.d_vocab * cfg.d_model * n_read
    return 2.0 * (products + attention) + model.recurrence.flops(n_thoughts)
