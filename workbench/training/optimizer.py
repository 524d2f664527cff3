"""AdamW and its learning rate, as a recipe specifies them."""

import math

import torch

from workbench.models.base import LatentModel
from workbench.settings.recipe import OptimizerConfig

EMBEDDINGS = ("W_E", "W_pos", "W_U", "W_loop", "W_role")


def make_optimizer(model: LatentModel, cfg: OptimizerConfig) -> torch.optim.AdamW:
    """Build a fused AdamW.

    Weight decay applies to weight matrices (W_*, _W_*), to embeddings only if `decay_embeddings` is
    set, and never to biases and gains.
    """
    decayed: list[torch.nn.Parameter] = []
    kept: list[torch.nn.Parameter] = []
    for name, parameter in model.named_parameters():
        weight = name.rsplit(".", 1)[-1]
        wanted = (
            cfg.decay_embeddings if weight in EMBEDDINGS else weight.lstrip("_").startswith("W_")
        )
        (decayed if wanted else kept).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": cfg.weight_decay},
        {"params": kept, "weight_decay": 0.0},
    ]
    betas = (cfg.betas[0], cfg.betas[1])
    return torch.optim.AdamW([g for g in groups if g["params"]], cfg.lr, betas, fused=True)


def learning_rate(cfg: OptimizerConfig, step: int, n_steps: int) -> float:
    """Return the learning rate of the update that leads from `step` to `step` + 1."""
    if step < cfg.warmup:
        return cfg.lr * (step + 1) / cfg.warmup
    if cfg.schedule == "constant":
        return cfg.lr
    done = (step - cfg.warmup) / max(n_steps - cfg.warmup, 1)
    return cfg.lr * 0.5 * (1 + math.cos(math.pi * done))
