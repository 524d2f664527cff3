"""Model families, looked up by name."""

from collections.abc import Mapping
from typing import Any

from workbench.models.base import LatentModel
from workbench.models.fresh import fresh
from workbench.registries import FAMILIES
from workbench.settings.config import ConfigError, ModelConfig, parse

__all__ = ["FAMILIES", "LatentModel", "build_model", "family", "model_config"]
_CLASSES = {
    "Agclr": "agclr",
    "Coconut": "coconut",
    "DepthRecurrent": "depth_recurrent",
    "DiscoLoop": "discoloop",
    "Gnn": "gnn",
    "Looped": "looped",
    "Ponder": "ponder",
    "Transformer": "transformer",
    "Universal": "universal",
}


def __getattr__(name: str) -> Any:
    """Return the class of one of this project's families, imported on first use."""
    if name not in _CLASSES:
        raise AttributeError(f"module 'workbench.models' has no attribute {name!r}")
    return FAMILIES[_CLASSES[name]]


def family(name: str) -> type[LatentModel]:
    """Return the model class of a family.

    Raises:
        ConfigError: The family does not exist.
    """
    return FAMILIES.find(name)


def model_config(data: Mapping[str, Any], where: str = "model") -> ModelConfig:
    """Build a family's config from plain data, with strict checks.

    Raises:
        ConfigError: The family or a field is unknown, missing or of the wrong type.
    """
    if "family" not in data:
        raise ConfigError(f"{where} lacks the field 'family'; there is {', '.join(FAMILIES)}")
    return parse(family(str(data["family"])).Config, data, where)


def build_model(cfg: ModelConfig) -> LatentModel:
    """Build a model with fresh weights, drawn from torch's current random state."""
    return fresh(lambda: family(cfg.family)(cfg))
