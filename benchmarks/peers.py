"""The same two-layer transformer from three libraries: ours, x-transformers and TransformerLens.

All three have learned positions, LayerNorm before each sublayer and at the end, GELU, an MLP of
four times the width, and an untied unembedding with a bias; all compute logits at every position.
x-transformers has no biases in attention and norms, which is slightly less work than ours.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workbench.models import build_model, model_config

D_VOCAB = 1_051  # vocabulary of the two-hop task at the paper's size
N_LAYERS = 2


@dataclass(frozen=True)
class Shape:
    """Sizes shared by all contenders: the model and the batch."""

    d_model: int
    n_heads: int
    n_batch: int
    n_pos: int
    answer_alone: bool  # loss at the last position only; otherwise at all positions


def ours(shape: Shape) -> nn.Module:
    """Build a transformer of the workbench: one loop, no recurrence."""
    return build_model(
        model_config(
            {
                "family": "transformer",
                "d_vocab": D_VOCAB,
                "n_ctx": shape.n_pos,
                "d_model": shape.d_model,
                "n_heads": shape.n_heads,
                "n_layers": N_LAYERS,
                "d_mlp": 4 * shape.d_model,
                "normalization_type": "LN",
                "positional_embedding_type": "standard",
                "tie_embeddings": False,
            }
        )
    )


def x_transformers(shape: Shape) -> nn.Module:
    """Build a decoder as in the README of x-transformers, which recommends `attn_flash=True`."""
    from x_transformers import Decoder, TransformerWrapper

    layers = Decoder(
        dim=shape.d_model,
        depth=N_LAYERS,
        heads=shape.n_heads,
        attn_dim_head=shape.d_model // shape.n_heads,
        attn_flash=True,
    )
    return TransformerWrapper(
        num_tokens=D_VOCAB,
        max_seq_len=shape.n_pos,
        attn_layers=layers,
        to_logits=nn.Linear(shape.d_model, D_VOCAB),  # the default has no bias
    )


def transformer_lens(shape: Shape) -> nn.Module:
    """Build a bridge with `boot_native`, TransformerLens 4's way to define a custom model."""
    from transformer_lens import TransformerBridge, TransformerBridgeConfig

    return TransformerBridge.boot_native(
        TransformerBridgeConfig(
            d_model=shape.d_model,
            d_head=shape.d_model // shape.n_heads,
            n_heads=shape.n_heads,
            n_layers=N_LAYERS,
            n_ctx=shape.n_pos,
            d_vocab=D_VOCAB,
            d_mlp=4 * shape.d_model,
            act_fn="gelu",
            normalization_type="LN",
            positional_embedding_type="standard",
            device="cpu",
        )
    )


CONTENDERS: dict[str, Callable[[Shape], nn.Module]] = {
    "ours": ours,
    "x-transformers": x_transformers,
    "transformer-lens": transformer_lens,
}


def training_steps(shape: Shape) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield each contender's training step on the same batch: forward, backward, fused AdamW."""
    torch.manual_seed(0)
    tokens = torch.randint(D_VOCAB, (shape.n_batch, shape.n_pos))
    targets = torch.randint(D_VOCAB, (shape.n_batch, 1 if shape.answer_alone else shape.n_pos))
    sizes = {}
    for name, build in CONTENDERS.items():
        model = build(shape).train()
        sizes[name] = sum(parameter.numel() for parameter in model.parameters())
        yield name, _step(model, tokens, targets)
    if max(sizes.values()) > 1.02 * min(sizes.values()):
        raise RuntimeError(f"the contenders differ in size: {sizes}")


def _step(model: nn.Module, tokens: Tensor, targets: Tensor) -> Callable[[], None]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step() -> None:
        logits = model(tokens)[:, -targets.shape[1] :]
        F.cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()

    return step
