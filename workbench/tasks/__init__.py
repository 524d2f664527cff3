"""The tasks, by name."""

from collections.abc import Mapping
from typing import Any

from workbench.registries import TASKS
from workbench.settings.config import ConfigError, StrictModel, parse
from workbench.tasks.base import Task

MOST = 10_000_000  # largest value of any size
MOST_NUMBERS = 100  # longest list of sizes

__all__ = ["MOST", "MOST_NUMBERS", "TASKS", "Task", "build_task", "task_from"]
_CLASSES = {
    "Boolean": "boolean",
    "Gsm8k": "gsm8k",
    "Hotpotqa": "hotpotqa",
    "Kinship": "kinship",
    "Prosqa": "prosqa",
    "Reachability": "reachability",
    "ThreeHop": "three_hop",
    "TwoHop": "two_hop",
}


def __getattr__(name: str) -> Any:
    """Return the class of a built-in task, loaded on first use."""
    if name not in _CLASSES:
        raise AttributeError(f"module 'workbench.tasks' has no attribute {name!r}")
    return TASKS[_CLASSES[name]]


def build_task(name: str, seed: int = 0, **sizes: Any) -> Task:
    """Build a task by name with the given sizes; sizes default to the paper's.

    Raises:
        ConfigError: There is no such task, or a size is unknown or invalid.
    """
    cls = TASKS.find(name)
    cfg = parse(cls.Config, sizes, "task")
    _check_sizes(cfg)
    return cls(cfg, seed)


def _check_sizes(cfg: StrictModel) -> None:
    """Reject sizes that are far too large, before anything is drawn."""
    for field, value in cfg:
        numbers = value if isinstance(value, list) else [value]
        whole = [n for n in numbers if isinstance(n, int)]
        if len(numbers) > MOST_NUMBERS or max(map(abs, whole), default=0) > MOST:
            raise ConfigError(
                f"task: {field}={value!r:.60} is too much: at most {MOST:,}, in a list of at most "
                f"{MOST_NUMBERS}"
            )


def task_from(data: Mapping[str, Any], seed: int) -> Task:
    """Build a task from plain data that holds its `name` and its sizes."""
    if "name" not in data:
        raise ConfigError(f"task lacks the field 'name'; there is {', '.join(TASKS)}")
    if not isinstance(data["name"], str):
        raise ConfigError(f"task: name should be a text; it is {data['name']!r:.60}")
    return build_task(seed=seed, **data)
