"""Weights that enter matrix products, from which operations are counted."""

from torch import nn


def weights_in_products(layers: nn.Module) -> int:
    """Number of weights of the maps `W_*` in some layers; biases and gains are not counted."""
    names = ((name.rpartition(".")[2], weight) for name, weight in layers.named_parameters())
    return sum(w.numel() for name, w in names if name.lstrip("_").startswith("W_"))
