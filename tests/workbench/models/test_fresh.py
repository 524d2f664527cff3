from concurrent.futures import ThreadPoolExecutor

import torch

from workbench.models.fresh import fresh


def drawn(seed):
    return fresh(lambda: torch.nn.Linear(64, 64), seed).weight


def test_a_seed_of_its_own_leaves_the_random_state_alone():
    before = torch.random.get_rng_state()
    drawn(3)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_equal_seeds_give_equal_weights_in_many_threads_at_once():
    wanted = {seed: drawn(seed) for seed in range(4)}
    with ThreadPoolExecutor(8) as pool:
        for seed, weight in zip([0, 1, 2, 3] * 20, pool.map(drawn, [0, 1, 2, 3] * 20), strict=True):
            assert torch.equal(weight, wanted[seed])


def test_without_a_seed_the_present_random_state_draws():
    torch.manual_seed(5)
    first = drawn(None)
    assert not torch.equal(drawn(None), first)
    torch.manual_seed(5)
    assert torch.equal(drawn(None), first)
