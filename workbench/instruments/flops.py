"""Floating-point operations of a forward pass, counted from shapes: 2 per multiply-add."""

from workbench.components.products import weights_in_products
from workbench.models.thoughts.thought import ThoughtModel


def forward_flops(model: ThoughtModel, n_positions: int, n_thoughts: int, n_read: int) -> float:
    """Count the operations for one sequence, with a key-value cache across passes.

    Every weight of a layer is used once per position, the gates of a recurrence once per thought,
    and the unembedding once per position whose next token is read. A position with k positions
    before it attends to k + 1 keys; its scores and its weighted sum of values each cost one product
    per key. Operations that grow only with the width, such as norms, are not counted, and neither
    are rotary embeddings and softmaxes.

    Args:
        model: The model.
        n_positions: Positions that are run: the question, the thoughts, and the generated tokens
            except the last.
        n_thoughts: Number of thoughts among the positions.
        n_read: Number of generated tokens.
    """
    cfg = model.cfg
    keys = n_positions * (n_positions + 1) / 2
    attention = cfg.n_layers * 2 * cfg.n_heads * cfg.d_head * keys
    products = weights_in_products(model.blocks) * n_positions + cfg.d_vocab * cfg.d_model * n_read
    return 2.0 * (products + attention) + model.recurrence.flops(n_thoughts)
