"""A recipe of a curriculum: three stages of one epoch, of three steps each."""

import pytest


@pytest.fixture(scope="session")
def staged():
    """Build a recipe of 9 steps on worded graphs; keyword arguments override groups' fields."""
    from workbench.settings.config import parse
    from workbench.settings.recipe import Recipe

    # 12 rows, 4 in each batch; questions of one and two steps
    task = dict(name="prosqa", n_train=12, n_valid=6, n_test=6, n_nodes=8, hops=[1, 2])
    task |= dict(lengths="balanced", wording="arrows")
    model = dict(family="coconut", d_model=16, n_heads=2, n_layers=1, d_mlp=32)
    groups = {
        "curriculum": {"epochs_per_stage": 1, "max_latent_stage": 1},
        "optimizer": {"warmup": 2, "lr": 1e-2},
        "measure": {"every": 1, "n": 6, "splits": ["valid"]},
        "save": {"dense_every": 1000, "every": 1000, "resume_every": 2},
    }

    def staged(seed=0, task_changes=None, model_changes=None, steps=9, **changes):
        training = {"steps": steps, "batch_size": 4} | {
            group: fields | changes.pop(group, {}) for group, fields in groups.items()
        }
        data = {
            "name": "tiny",
            "seed": seed,
            "task": task | (task_changes or {}),
            "model": model | (model_changes or {}),
            "training": training | changes,
        }
        return parse(Recipe, data, "recipe tiny")

    return staged
