"""What a recipe would do, before it does it."""

from pathlib import Path

from workbench.instruments.flops import weights_in_products
from workbench.models import build_model, model_config
from workbench.models.depth import DepthModel
from workbench.recipe import Recipe
from workbench.recurrence.discrete import MixDecoded, Reembed
from workbench.recurrence.update import GatedUpdate
from workbench.training.resolve import resolve
from workbench.training.stream import BatchStream
from workbench.training.trainer import is_saved


def plan(recipe: Recipe, folder: Path) -> str:
    """The resolved recipe, and what it amounts to: parameters, operations, epochs, bytes."""
    task, resolved = resolve(recipe)
    model = build_model(model_config(resolved.model))
    assert isinstance(model, DepthModel)
    cfg = resolved.training
    stream = BatchStream(task, cfg.mixture, cfg.batch_size, resolved.seed)
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    saved = sum(is_saved(cfg.save, step) for step in range(cfg.steps)) + 1
    megabytes = (saved * 2 + 4) * n_parameters / 1e6
    tokens = int(stream.batch(0).length.sum())
    loops = sum(cfg.loops) / 2 if isinstance(cfg.loops, list) else None
    flops = cfg.steps * tokens * flops_per_token(model, loops)
    rows = "; ".join(f"{split} {len(batch):,}" for split, batch in task.splits.items())
    return (
        f"{resolved.to_yaml()}\n"
        f"# writes to      {folder}\n"
        f"# parameters     {n_parameters:,}\n"
        f"# rows           {rows}\n"
        f"# epochs         {stream.epoch(cfg.steps):.0f} of {stream.main_split}\n"
        f"# operations     {flops:.2e}, forward and backward\n"
        f"# saved weights  {saved} steps, {megabytes:.1f} MB in all"
    )


def flops_per_token(model: DepthModel, n_loops: float | None = None) -> float:
    """Of the matrix products of one token's forward and backward pass (3 × 2 × weights used).

    Products whose number grows with the square of the length, as attention's, are not counted.
    """
    loops = model.n_loops if n_loops is None else n_loops
    in_loop = weights_in_products(model.blocks)
    if isinstance(model.recurrence, GatedUpdate):
        in_loop += weights_in_products(model.recurrence.gate)
    around = weights_in_products(model.prelude) + weights_in_products(model.coda)
    # A yes or no is read once a row, which is little; a word at about every second token
    vocabulary = model.cfg.d_vocab * model.cfg.d_model if model.head is None else 0
    # Φ is two products with W_E, state to tokens and back
    decodes = isinstance(model.recurrence, MixDecoded | Reembed)
    decodings = 2 * vocabulary * (loops - 1) * decodes
    return 6.0 * (in_loop * loops + around + decodings + vocabulary / 2)
