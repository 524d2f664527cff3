"""Resolution of recipes: the task fills in what a recipe leaves open; misfits are refused."""

from typing import Any

import torch

from workbench.components.perception import PERCEPTIONS
from workbench.components.readout import READOUTS
from workbench.models import FAMILIES, family, model_config
from workbench.models.base import part
from workbench.settings.config import ConfigError, ModelConfig, nearest
from workbench.settings.recipe import Recipe, commit, versions
from workbench.tasks import Task, task_from
from workbench.training.start import PRETRAINED, start_shape


def resolve(recipe: Recipe) -> tuple[Task, Recipe]:
    """Return the task of a recipe, and the recipe with every value written out."""
    task = task_from(recipe.task, recipe.seed)
    check_kind(task, recipe)
    task = task.as_taught(recipe.training.curriculum)
    given = task.shape
    if task.kind.in_passes:
        given |= backbone(recipe, given)
    shape = given | {"perception": task.perception, "readout": task.readout} | recipe.model
    cfg = model_config(shape)
    if cfg.d_vocab < task.d_vocab or cfg.n_ctx < task.n_ctx:
        raise ConfigError(
            f"the task needs d_vocab={task.d_vocab} and n_ctx={task.n_ctx}; the recipe has "
            f"{cfg.d_vocab} and {cfg.n_ctx}{task.too_long}"
        )
    check_splits(recipe, task)
    check_parts(cfg, task)
    cfg = cfg.trained_with(recipe.training.loops)
    sizes = {"name": recipe.task["name"]} | task.cfg.model_dump()
    return task, recipe.model_copy(
        update={
            "task": sizes,
            "model": cfg.model_dump(),
            "versions": dict(versions()),
            "commit": commit(),
            "threads": torch.get_num_threads(),
        }
    )


def backbone(recipe: Recipe, needed: dict[str, int]) -> dict[str, Any]:
    """Return the shape of the model that a recipe starts from, at least as large as the task needs.

    It is empty if there is no such model, or if the recipe starts from a run and sets `d_model`:
    the recipe then specifies the whole shape.
    """
    start = recipe.training.start_from
    if start is None or ("d_model" in recipe.model and not start.startswith(PRETRAINED)):
        return {}
    shape = start_shape(start)
    shape["d_vocab"] = max(shape["d_vocab"], needed["d_vocab"])
    if not start.startswith(PRETRAINED):
        shape["n_ctx"] = max(shape["n_ctx"], needed["n_ctx"])
    return shape


def check_kind(task: Task, recipe: Recipe) -> None:
    """Refuse a family that cannot give the task's answers.

    Raises:
        ConfigError: The task needs answers in words and the family does not generate any, or the
            answers are read after each loop and the family does not loop.
    """
    name = str(recipe.model.get("family"))
    if "family" not in recipe.model or family(name).kind is task.kind:
        return
    fitting = [n for n, cls in FAMILIES.items() if cls.kind is task.kind]
    does = "say its answers in words" if task.kind.in_passes else "answer after each loop"
    raise ConfigError(f"family {name!r} does not {does}; {' and '.join(fitting)} do")


def check_parts(cfg: ModelConfig, task: Task) -> None:
    """Refuse a perception and readout that do not fit the task or each other."""
    perception, own_perception = (
        part(PERCEPTIONS, name, "perception") for name in (cfg.perception, task.perception)
    )
    readout, own_readout = (part(READOUTS, name, "readout") for name in (cfg.readout, task.readout))
    if perception.takes != own_perception.takes:
        raise ConfigError(
            f"perception {cfg.perception!r} does not take this task's questions; "
            f"{task.perception!r} does"
        )
    if (readout is None) != (own_readout is None):
        answers = "with a word" if own_readout is None else "with yes or no"
        raise ConfigError(
            f"the task answers {answers}, which readout {cfg.readout!r} does not give; "
            f"{task.readout!r} does"
        )
    if cfg.perception == "causal" and cfg.readout == "cls":
        raise ConfigError(
            "readout 'cls' reads the first position, which sees no other under perception "
            f"'causal'; {task.perception!r} lets it see all"
        )


def check_splits(recipe: Recipe, task: Task) -> None:
    """Refuse training or measurement splits that the task does not have."""
    cfg = recipe.training
    for field, splits in (("measure.splits", cfg.measure.splits), ("mixture", cfg.mixture)):
        for split in splits or ():
            if split not in task.splits:
                near = nearest(split, task.splits)
                raise ConfigError(f"training.{field}: the task has no split {split!r}; {near}")
