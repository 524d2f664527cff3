"""The tasks, by name."""

from collections.abc import Mapping
from typing import Any

from workbench.config import ConfigError, StrictModel, nearest, parse
from workbench.tasks.base import Task
from workbench.tasks.boolean import Boolean
from workbench.tasks.gsm8k import Gsm8k
from workbench.tasks.hops import ThreeHop, TwoHop
from workbench.tasks.hotpotqa import Hotpotqa
from workbench.tasks.kinship import Kinship
from workbench.tasks.prosqa import Prosqa
from workbench.tasks.reachability import Reachability

MOST = 10_000_000  # of any size
MOST_NUMBERS = 100  # in a list

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
        raise ConfigError(f"no task {name!r:.200}; {nearest(name, TASKS)}")
    cls = TASKS[name]
    cfg = parse(cls.Config, sizes, "task")
    _check_sizes(cfg)
    return cls(cfg, seed)


def _check_sizes(cfg: StrictModel) -> None:
    """Refuse sizes that nothing could hold, before anything is drawn."""
    for field, value in cfg:
        numbers = value if isinstance(value, list) else [value]
        whole = [n for n in numbers if isinstance(n, int)]
        if len(numbers) > MOST_NUMBERS or max(map(abs, whole), default=0) > MOST:
            raise ConfigError(
                f"task: {field}={value!r:.60} is too much: at most {MOST:,}, in a list of at most "
                f"{MOST_NUMBERS}"
            )


def task_from(data: Mapping[str, Any], seed: int) -> Task:
    """A task from plain data that holds its `name` and its sizes."""
    if "name" not in data:
        raise ConfigError(f"task lacks the field 'name'; there is {', '.join(TASKS)}")
    if not isinstance(data["name"], str):
        raise ConfigError(f"task: name should be a text; it is {data['name']!r:.60}")
    return build_task(seed=seed, **data)
