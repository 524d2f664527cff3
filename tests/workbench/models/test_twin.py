"""Several people at one model: each works on a twin, and none sees the others' hooks."""

from concurrent.futures import ThreadPoolExecutor

import torch

from workbench.hooks import at_loop

TOKENS = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])
POST, ATTN = "recurrence.hook_state_post", "blocks.0.hook_attn_out"
SESSIONS = [  # loops, and the share to which attention is scaled in loop 1
    (2, 1.0),
    (5, 0.0),
    (3, 0.5),
    (4, 2.0),
]


def work(twin, n_loops, share):
    """What one session computes."""
    scale = (ATTN, at_loop(lambda tensor, hook: tensor * share, 1))
    with torch.no_grad(), twin.hooks([scale]):
        logits, cache = twin.run_with_cache(TOKENS, n_loops=n_loops, names_filter=POST)
    return logits, cache[POST]


def test_sessions_at_once_compute_what_each_computes_alone(build):
    model = build("discoloop", alpha="learned")
    alone = [work(model.twin(), *session) for session in SESSIONS]
    with ThreadPoolExecutor(4) as pool:
        at_once = list(pool.map(lambda session: work(model.twin(), *session), SESSIONS * 10))
    for got, wanted in zip(at_once, alone * 10, strict=True):
        assert torch.equal(got[0], wanted[0]) and torch.equal(got[1], wanted[1])


def test_the_model_itself_stays_bare(build):
    model = build("discoloop")
    clean = model(TOKENS)
    work(model.twin(), 3, 0.0)
    assert torch.equal(model(TOKENS), clean)
    assert not any(point._forward_hooks for point in model.hook_points())


def test_training_the_model_trains_its_twin(build):
    model = build("looped")
    twin = model.twin()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1
    assert torch.equal(twin(TOKENS), model(TOKENS))


def test_a_twin_keeps_the_words(speaker):
    assert speaker().twin().to_tokens("A1 r1").shape == (1, 2)


def test_a_twin_takes_no_record_along(build):
    model = build("looped")
    _, cache = model.run_with_cache(TOKENS)
    twin = model.twin()
    twin(TOKENS, n_loops=5)
    assert (model.clock.n_loops, twin.clock.n_loops) == (2, 5)
    assert cache.n_loops == 2


def test_sixty_four_loops_of_fresh_weights_stay_finite(cfg):
    from workbench.models import FAMILIES, build_model
    from workbench.models.loops.depth import DepthModel

    for family in (name for name, cls in FAMILIES.items() if issubclass(cls, DepthModel)):
        has_table = "max_loops" in FAMILIES[family].Config.model_fields
        model = build_model(cfg(family, **({"max_loops": 64} if has_table else {})))
        logits = model(TOKENS, n_loops=64)
        logits.sum().backward()
        assert logits.isfinite().all()
        assert all(p.grad.isfinite().all() for p in model.parameters()), family
