"""The families of models, by name."""

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
    """The class of a family of this project, loaded when it is first used."""
    if name not in _CLASSES:
        raise AttributeError(f"module 'workbench.models' has no attribute {name!r}")
    return FAMILIES[_CLASSES[name]]


def family(name: str) -> type[LatentModel]:
    """The model class of a family.

    Raises:
        ConfigError: There is no such family.
    """
    return FAMILIES.find(name)


def model_config(data: Mapping[str, Any], where: str = "model") -> ModelConfig:
    """A family's config from plain data, strictly checked.

    Raises:
        ConfigError: Family or field is unknown, missing or of the wrong kind.
    """
    if "family" not in data:
        raise ConfigError(f"{where} lacks the field 'family'; there is {', '.join(FAMILIES)}")
    return parse(family(str(data["family"])).Config, data, where)


def build_model(cfg: ModelConfig) -> LatentModel:
    """A model with fresh weights, drawn from torch's present random state."""
    return fresh(lambda: family(cfg.family)(cfg))
