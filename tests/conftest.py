"""Shared fixtures: models, tasks and recipes small enough that a test takes milliseconds.

Modules of the project are imported inside the fixtures: pytest reads this file before jaxtyping's
import hook is there to check their shapes.
"""

import os
from pathlib import Path

import pytest
import torch

# The examples, and plugins of yours, stand beside the built-in families, tasks, edits and analyses
# in every test that goes through a registry
EXAMPLES = sorted(Path(__file__).parents[1].glob("examples/*.py"))
YOURS = filter(None, os.environ.get("WORKBENCH_PLUGINS", "").split(os.pathsep))
os.environ["WORKBENCH_PLUGINS"] = os.pathsep.join(dict.fromkeys([*map(str, EXAMPLES), *YOURS]))

GRAPHS = dict(n_train=40, n_valid=10, n_test=8, test_hops=[1, 2, 4])
DEPTHS = dict(train_depths=[1, 2], valid_depths=[2], test_depths=[1, 2, 3], max_length=24)
PATHS = dict(name="prosqa", n_train=16, n_valid=8, n_test=8, n_nodes=10, hops=[3, 4])
PATHS |= dict(wording="arrows")
THOUGHT = dict(curriculum=dict(method="coconut", epochs_per_stage=1, max_latent_stage=2))
FEW = dict(n_train=20, n_valid=6, n_test=6)
SHAPE = dict(d_vocab=11, n_ctx=8, d_model=16, n_heads=2, n_layers=2, d_mlp=32)
WORLD = dict(n_entities=6, n_relations=4, out_degree=3, n_train=12, n_test_id=6, n_test_ood=6)


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture
def cfg():
    """Build a config of 2 layers of width 16; keyword arguments override fields.

    Models that think do so where token 10 stands.
    """
    from workbench.models import FAMILIES, model_config

    def cfg(family="looped", **changes):
        thinks = "latent_token" in FAMILIES[family].Config.model_fields
        data = SHAPE | ({"latent_token": 10} if thinks else {})
        return model_config({"family": family} | data | changes)

    return cfg


@pytest.fixture
def build(cfg):
    """Build a model of that config, every parameter random, so that none goes unnoticed."""
    from workbench.models import build_model

    def build(family="looped", **changes):
        model = build_model(cfg(family, **changes)).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 0.3 * torch.randn_like(parameter)
        return model

    return build


@pytest.fixture
def thinker(build):
    """Build a model of that shape that thinks, in up to 16 positions."""
    return lambda family="agclr", **changes: build(family, **({"n_ctx": 16} | changes))


@pytest.fixture(scope="session")
def world():
    """A two-hop task of 6 entities in each graph and 3 relations for each of them."""
    from workbench.tasks import build_task

    return build_task("two_hop", **WORLD)


@pytest.fixture
def speaker(build, world):
    """Build a model that knows the words of `world`."""

    def speaker(family="discoloop", **changes):
        model = build(family, d_vocab=world.d_vocab, n_ctx=world.n_ctx, **changes)
        model.tokenizer = world.vocabulary
        return model

    return speaker


@pytest.fixture(scope="session")
def recipe():
    """Build a recipe of 6 steps on `world`; keyword arguments override groups' fields."""
    from workbench.settings.config import parse
    from workbench.settings.recipe import Recipe

    model = dict(family="discoloop", alpha="learned", d_model=16, n_heads=2, n_layers=1, d_mlp=32)
    groups = {
        "optimizer": {"warmup": 2},
        "measure": {"every": 2, "n": 8},
        "save": {"dense_every": 2, "dense_until": 4, "every": 3, "resume_every": 2},
    }

    def recipe(seed=0, task=None, model_changes=None, steps=6, **changes):
        training = {"steps": steps, "batch_size": 8} | {
            group: fields | changes.pop(group, {}) for group, fields in groups.items()
        }
        shape = model | (model_changes or {})
        return parse(
            Recipe,
            {
                "name": "tiny",
                "seed": seed,
                "task": {"name": "two_hop"} | WORLD | (task or {}),
                "model": {k: v for k, v in shape.items() if v is not None},
                "training": training | changes,
            },
            "recipe tiny",
        )

    return recipe


@pytest.fixture(scope="session")
def page_folder(tmp_path_factory):
    """A folder with runs for the page: three families of 20 steps, and one still in training.

    Two more, of 4 steps, answer yes or no: one is asked about graphs, one about expressions. The
    last two, of 4 steps, think: with a gated stream, and without.
    """
    import shutil

    from workbench.settings.config import parse
    from workbench.settings.recipe import Recipe
    from workbench.training import train

    folder = tmp_path_factory.mktemp("page")
    world = WORLD | dict(n_entities=12, n_train=60, n_test_id=20, n_test_ood=20)
    shape = dict(d_model=16, n_heads=2, n_layers=1, d_mlp=32)
    training = {
        "steps": 20,
        "batch_size": 32,
        "measure": {"every": 4, "n": 20},
        "save": {"dense_every": 10, "dense_until": 20},
    }
    for family in ("discoloop", "looped", "transformer"):
        data = {
            "name": f"tiny-{family}",
            "task": {"name": "two_hop"} | world,
            "model": {"family": family} | shape,
            "training": training,
        }
        train(parse(Recipe, data, family), folder / "runs" / f"tiny-{family}", quiet=True)
    recurrent = {"family": "depth_recurrent", "n_loops": 3, "max_loops": 6} | shape
    short = {"steps": 4, "batch_size": 8, "measure": {"every": 1, "n": 8}}
    for name, task, positions in (
        ("graphs", {"name": "reachability"} | GRAPHS, "none"),
        (
            "boolean",
            {"name": "boolean"} | DEPTHS | FEW,
            "rotary",
        ),
    ):
        data = {
            "name": f"tiny-{name}",
            "task": task,
            "model": recurrent | {"positional_embedding_type": positions},
            "training": short | {"loops": [2, 3]},
        }
        train(parse(Recipe, data, name), folder / "runs" / f"tiny-{name}", quiet=True)
    for family in ("agclr", "coconut"):
        data = {"name": f"tiny-{family}", "task": PATHS, "model": {"family": family} | shape}
        data["training"] = short | THOUGHT
        train(parse(Recipe, data, family), folder / "runs" / f"tiny-{family}", quiet=True)
    shutil.copytree(folder / "runs" / "tiny-looped", folder / "runs" / "tiny-unfinished")
    (folder / "runs" / "tiny-unfinished" / "model.safetensors").unlink()
    return folder
