"""Thoughts with a key-value cache against one full forward pass per thought."""

from collections.abc import Callable, Iterator

import torch

from benchmarks.row import Row, ratio_row
from benchmarks.timing import interleave
from workbench.kinds import thought_model
from workbench.models import build_model, model_config
from workbench.models.thoughts.thought import ThoughtModel

# GPT-2 small with 4 of its 12 layers
SHAPE = dict(
    family="coconut",
    d_vocab=50_261,
    n_ctx=1_024,
    d_model=768,
    n_heads=12,
    n_layers=4,
    d_mlp=3_072,
    act_fn="gelu_new",
    normalization_type="LN",
    positional_embedding_type="standard",
    embed_std=0.02,
    logit_scale=1.0,
    latent_token=50_257,
)
PROMPT, THOUGHTS, ANSWER, ROWS = 128, 6, 16, 8
NEW = 32  # tokens to generate
ROUNDS = 3  # few, because a full forward pass per thought takes seconds


def measure() -> Iterator[Row]:
    """Measure a training step and generation."""
    torch.manual_seed(0)
    model = build_model(model_config(SHAPE))
    model = thought_model(model)
    words = torch.randint(0, 50_000, (ROWS, PROMPT + THOUGHTS + ANSWER))
    words[:, PROMPT : PROMPT + THOUGHTS] = model.cfg.latent_token
    case = f"{ROWS} prompts of {PROMPT} tokens, {THOUGHTS} thoughts"
    seconds = interleave(dict(_steps(model, words)), ROUNDS, warm_up=1)
    name = "training step / full forward a thought"
    yield ratio_row(name, case, seconds, "cache", ["recomputed"], target=1 / 3)
    # Recomputing takes minutes, so one round; the calls that gauge the speed warm up
    contenders = dict(_speeches(model, words[:, : PROMPT + THOUGHTS]))
    seconds = interleave(contenders, rounds=1, warm_up=0)
    name = f"generating {NEW} tokens / recomputing"
    yield ratio_row(name, case, seconds, "cache", ["recomputed"], target=1 / 8)


def _steps(model: ThoughtModel, words: torch.Tensor) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield training steps (forward, backward, update) with logits at the answer positions only."""
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    at = torch.arange(PROMPT + THOUGHTS - 1, words.shape[1] - 1).expand(ROWS, -1)
    wanted = words[:, PROMPT + THOUGHTS :]

    def step(recompute: bool) -> None:
        logits = model(words, logits_at=at, recompute=recompute)
        torch.nn.functional.cross_entropy(logits.movedim(-1, 1), wanted).backward()
        optimizer.step()
        optimizer.zero_grad()

    yield "cache", lambda: step(False)
    yield "recomputed", lambda: step(True)


def _speeches(
    model: ThoughtModel, prompt: torch.Tensor
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield greedy generation after the thoughts, with and without the cache."""
    yield "cache", lambda: model.generate(prompt, NEW)
    yield "recomputed", lambda: model.generate(prompt, NEW, recompute=True)
