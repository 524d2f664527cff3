"""The tasks, by name."""

from collections.abc import Mapping
from typing import Any

from workbench.config import ConfigError, nearest, parse
from workbench.tasks.base import Task
from workbench.tasks.boolean import Boolean
from workbench.tasks.gsm8k import Gsm8k
from workbench.tasks.hops import ThreeHop, TwoHop
from workbench.tasks.hotpotqa import Hotpotqa
from workbench.tasks.kinship import Kinship
from workbench.tasks.prosqa import Prosqa
from workbench.tasks.reachability import Reachability

TASKS: dict[str, type[Task]] = {
    "two_hop": TwoHop,
    "three_hop": ThreeHop,
    "reachability": Reachability,
    "boolean": Boolean,
    "kinship": Kinship,
    "prosqa": Prosqa,
    "gsm8k": Gsm8k,
    "hotpotqa": Hotpotqa,
}


def build_task(name: str, seed: int = 0, **sizes: Any) -> Task:
    """A task by name, with its sizes; the paper's where none are given.

    Raises:
        ConfigError: There is no such task, or a size is unknown or wrong.
    """
    if name not in TASKS:
        raise ConfigError(f"no task {name!r}; {nearest(name, TASKS)}")
    cls = TASKS[name]
    return cls(parse(cls.Config, sizes, "task"), seed)


def task_from(data: Mapping[str, Any], seed: int) -> Task:
    """A task from plain data that holds its `name` and its sizes."""
    if "name" not in data:
        raise ConfigError(f"task lacks the field 'name'; there is {', '.join(TASKS)}")
    return build_task(seed=seed, **data)
