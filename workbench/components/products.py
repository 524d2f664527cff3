"""The count of weights used in matrix products, from which operations are estimated."""

from torch import nn


def weights_in_products(layers: nn.Module) -> int:
    """Count the weights of all `W_*` parameters in a module, without biases and gains."""
    names = ((name.rpartition(".")[2], weight) for name, weight in layers.named_parameters())
    return sum(w.numel() for name, w in names if name.lstrip("_").startswith("W_"))
