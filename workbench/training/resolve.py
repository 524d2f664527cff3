"""A recipe with every value written out, checked against its task."""

from workbench.config import ConfigError, nearest
from workbench.models import model_config
from workbench.models.depth_recurrent import LoopTableConfig
from workbench.recipe import Recipe, commit, versions
from workbench.tasks import Task, task_from


def resolve(recipe: Recipe) -> tuple[Task, Recipe]:
    """The task of a recipe, and the recipe with every value written out."""
    task = task_from(recipe.task, recipe.seed)
    given = {"d_vocab": task.d_vocab, "n_ctx": task.n_ctx}
    shape = given | {"perception": task.perception, "readout": task.readout} | recipe.model
    if shape["d_vocab"] < task.d_vocab or shape["n_ctx"] < task.n_ctx:
        raise ConfigError(
            f"the task needs d_vocab={task.d_vocab} and n_ctx={task.n_ctx}; the recipe has "
            f"{shape['d_vocab']} and {shape['n_ctx']}"
        )
    check_splits(recipe, task)
    cfg = model_config(shape)
    if isinstance(cfg, LoopTableConfig) and cfg.trained_loops is None:
        loops = recipe.training.loops
        most = max(loops) if isinstance(loops, list) else cfg.n_loops
        cfg = model_config(cfg.model_dump() | {"trained_loops": most})
    sizes = {"name": recipe.task["name"]} | task.cfg.model_dump()
    return task, recipe.model_copy(
        update={
            "task": sizes,
            "model": cfg.model_dump(),
            "versions": dict(versions()),
            "commit": commit(),
        }
    )


def check_splits(recipe: Recipe, task: Task) -> None:
    """Refuse splits to train on or to measure that the task lacks."""
    cfg = recipe.training
    for field, splits in (("measure.splits", cfg.measure.splits), ("mixture", cfg.mixture)):
        for split in splits or ():
            if split not in task.splits:
                near = nearest(split, task.splits)
                raise ConfigError(f"training.{field}: the task has no split {split!r}; {near}")
