"""One loop of the family `transformer` is a HookedTransformer of transformer-lens 3.9.

`tests/data/golden/make_golden.py` made the files.
"""

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open

from workbench.models import build_model, model_config
from workbench.pretrained.convert import from_transformer_lens
from workbench.settings.config import ModelConfig

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
CASES = sorted(path.stem for path in GOLDEN.glob("*.safetensors"))
CLOSE = dict(atol=1e-5, rtol=1e-4)


class Golden:
    """What HookedTransformer computed, and our model with its weights."""

    def __init__(self, case):
        with safe_open(GOLDEN / f"{case}.safetensors", framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            theirs = json.loads(file.metadata()["cfg"])
        fields = theirs.keys() & ModelConfig.model_fields.keys()
        self.cfg = model_config(
            {"family": "transformer", "tie_embeddings": False} | {f: theirs[f] for f in fields}
        )
        self.tokens, self.logits = tensors["tokens"], tensors["logits"]
        self.weights = self.below(tensors, "weights/")
        self.cache = self.below(tensors, "cache/")
        self.model = build_model(self.cfg).eval()
        self.model.load_state_dict(from_transformer_lens(self.weights, self.cfg))

    @staticmethod
    def below(tensors, prefix):
        return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}


@pytest.fixture(params=CASES)
def golden(request):
    return Golden(request.param)


def test_the_cases_cover_both_norms_and_both_positions():
    cfgs = [Golden(case).cfg for case in CASES]
    kinds = {(cfg.normalization_type, cfg.positional_embedding_type) for cfg in cfgs}
    assert kinds == {
        (norm, positions) for norm in ("LN", "RMS") for positions in ("standard", "rotary")
    }


def test_weights_are_equal_after_loading(golden):
    own = golden.model.state_dict()
    assert own.keys() == golden.weights.keys()
    assert all(torch.equal(own[name], golden.weights[name]) for name in own)


def test_logits_agree(golden):
    torch.testing.assert_close(golden.model(golden.tokens), golden.logits, **CLOSE)


def test_every_shared_activation_agrees(golden):
    _, cache = golden.model.run_with_cache(golden.tokens)
    for name in golden.cache.keys() & set(cache):
        ours = cache[name][0] if cache.has_loop_axis(name) else cache[name]
        torch.testing.assert_close(ours, golden.cache[name], **CLOSE)


def test_no_place_is_missing(golden):
    _, cache = golden.model.run_with_cache(golden.tokens)
    assert golden.cache.keys() <= set(cache)


def test_only_the_recurrences_places_are_new(golden):
    _, cache = golden.model.run_with_cache(golden.tokens)
    new = set(cache) - golden.cache.keys()
    assert new == {f"recurrence.hook_state_{at}" for at in ("in", "pre", "post")}
