"""The loss of the final loop, of every loop, and of pondering; loops drawn by batch."""

import pytest
import torch
import torch.nn.functional as F

from workbench.settings.config import ConfigError
from workbench.settings.recipe import ObjectiveConfig
from workbench.training.objective import Objective
from workbench.training.stream import BatchStream
from workbench.training.trainer import Trainer

K = 3


@pytest.fixture
def batch(world):
    return world.batch("train_id", 6)


def loss(model, batch, n_loops=K, **cfg):
    return Objective(ObjectiveConfig(**cfg), model, model)(batch, n_loops)


def by_loop(model, batch):
    """Cross-entropy after each loop, by as many shorter runs."""
    return torch.stack(
        [
            F.cross_entropy(
                model(**batch.inputs, n_loops=n, logits_at=batch.read_at),
                batch.answer,
                reduction="sum",
            )
            for n in range(1, K + 1)
        ]
    )


@pytest.mark.parametrize("family", ["discoloop", "depth_recurrent", "universal"])
@pytest.mark.parametrize("a", [0.0, 0.25, 1.0])
def test_intermediate_supervision_mixes_the_final_loss_with_the_mean(speaker, batch, family, a):
    model = speaker(family)
    losses = by_loop(model, batch)
    wanted = (1 - a) * losses[-1] + a * losses.mean()
    torch.testing.assert_close(loss(model, batch, intermediate=a), wanted)


def test_silent_thinking_sends_no_gradient_through_earlier_readouts(speaker, batch):
    model = speaker("looped")
    said = []
    with model.hooks([("ln_final.hook_normalized", lambda tensor, hook: said.append(tensor))]):
        loss(model, batch)
    assert len(said) == 1


def test_the_ponder_cost_is_added_for_models_that_halt(speaker, batch):
    model = speaker("universal", halting="act")
    _, cache = model.run_with_cache(**batch.inputs, n_loops=K)
    cost = cache["recurrence.halt.hook_ponder"][-1, ..., 0].mean(1).sum()
    free, dear = loss(model, batch, ponder=0.0), loss(model, batch, ponder=2.0)
    torch.testing.assert_close(dear - free, 2 * cost)
    dear.backward()
    assert model.recurrence.halt.w.grad.any()


def test_padding_does_not_ponder(speaker, world):
    mixed = type(world.split("train_id")).cat(
        [world.split("train_atom")[:2], world.split("train_id")[:2]]
    )
    model = speaker("universal", halting="act")
    alone = sum(loss(model, rows.trimmed()) for rows in (mixed[:2], mixed[2:]))
    torch.testing.assert_close(loss(model, mixed), alone)


def test_loops_of_a_batch_depend_on_seed_and_number_alone(world):
    drawn = [
        [BatchStream(world, None, 8, seed).loops(number, 2, 4) for number in range(200)]
        for seed in (0, 0, 1)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert set(drawn[0]) == {2, 3, 4}


def test_a_recipe_may_draw_loops_from_a_range(recipe, tmp_path):
    ranged = recipe(
        loops=[2, 4], model_changes={"family": "depth_recurrent", "alpha": None}, steps=2
    )
    trainer = Trainer(ranged, tmp_path / "run", quiet=True)
    assert trainer.recipe.model["trained_loops"] == 4
    ran = []
    trainer.model.add_hook(
        "recurrence.hook_state_post", lambda t, hook: ran.append(hook.clock.loop)
    )
    for number in range(6):
        ran.clear()
        trainer._loss(number)
        assert max(ran) + 1 == trainer.lessons.stream.loops(number, 2, 4)


@pytest.mark.parametrize("loops", [[0, 2], [3, 2], [1], [1, 2, 3]])
def test_a_range_that_is_none_is_refused(recipe, loops):
    with pytest.raises(ConfigError, match=r"must be \[least, most\]"):
        recipe(loops=loops)


def test_a_share_above_one_is_refused(recipe):
    with pytest.raises(ConfigError, match=r"intermediate=1.5 must lie between 0 and 1"):
        recipe(objective={"intermediate": 1.5})
