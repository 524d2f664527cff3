"""Cost of hook points: with no hooks against a bare twin, and with a cache against no hooks."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from benchmarks.bare import bare_twin
from benchmarks.row import Row, ratio_row
from benchmarks.timing import interleave
from workbench.hooks.cache import LoopCache
from workbench.models import build_model, model_config
from workbench.models.loops.discoloop import DiscoLoop

STATE = "recurrence.hook_state_post"
LOOPS = (1, 4, 12)
BATCHES = {"one question": 1, "512 questions": 512}
MODEL = {
    "family": "discoloop",
    "d_vocab": 121,  # 50 entities in each of two graphs, 20 relations, one pad token
    "n_ctx": 3,
    "d_model": 128,
    "n_heads": 4,
    "n_layers": 2,
    "d_mlp": 512,
}


def measure() -> Iterator[Row]:
    """Measure all rows on hook points."""
    torch.manual_seed(0)
    model = build_model(model_config(MODEL)).eval()
    assert isinstance(model, DiscoLoop)
    for size, n_batch in BATCHES.items():
        tokens = torch.randint(model.cfg.d_vocab, (n_batch, model.cfg.n_ctx))
        for n_loops in LOOPS:
            with torch.no_grad():
                yield from _rows(model, tokens, n_loops, f"{size}, {n_loops} loops")


def _rows(model: DiscoLoop, tokens: Tensor, n_loops: int, case: str) -> list[Row]:
    twin = bare_twin(model)
    kept: dict[str, LoopCache] = {}

    def cache(names: str | None) -> None:
        # Keep the last cache until the next one is made, as in a notebook. Otherwise the allocator
        # returns its memory to the system, and the next cache pays for mapping it again
        _, kept[str(names)] = model.run_with_cache(tokens, n_loops=n_loops, names_filter=names)

    contenders: dict[str, Callable[[], object]] = {
        "bare": lambda: twin(tokens, n_loops=n_loops),
        "unheard": lambda: model(tokens, n_loops=n_loops),
        "one place": lambda: cache(STATE),
        "everything": lambda: cache(None),
    }
    if not torch.equal(model(tokens, n_loops=n_loops), twin(tokens, n_loops=n_loops)):
        raise RuntimeError("the bare twin computes something else")
    seconds = interleave(contenders)
    pairs = {
        "no listener / bare twin": ("unheard", "bare", 1.05),
        "cache one place / no listener": ("one place", "unheard", 1.05),
        "cache everything / no listener": ("everything", "unheard", 1.5),
    }
    return [
        ratio_row(name, case, {k: seconds[k] for k in (ours, theirs)}, ours, [theirs], target)
        for name, (ours, theirs, target) in pairs.items()
    ]
