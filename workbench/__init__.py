"""A workbench for latent-recurrent transformers: train them, hook them, take them apart.

The names below are loaded on first use, so importing the package is almost free.
"""

from importlib import import_module
from typing import Any

_HOME = {
    "EDITS": "workbench.registries",
    "FAMILIES": "workbench.registries",
    "LoopCache": "workbench.hooks.cache",
    "Run": "workbench.runs",
    "TASKS": "workbench.registries",
    "at_loop": "workbench.hooks",
    "at_position": "workbench.hooks",
    "build_model": "workbench.models",
    "build_task": "workbench.tasks",
    "from_pretrained": "workbench.pretrained",
    "load_run": "workbench.runs",
    "model_config": "workbench.models",
}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'workbench' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
