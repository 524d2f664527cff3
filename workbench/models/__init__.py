"""The families of models, by name."""

from collections.abc import Mapping
from typing import Any

from workbench.config import ConfigError, ModelConfig, nearest, parse
from workbench.models.agclr import Agclr
from workbench.models.base import LatentModel
from workbench.models.coconut import Coconut
from workbench.models.depth_recurrent import DepthRecurrent
from workbench.models.discoloop import DiscoLoop
from workbench.models.fresh import fresh
from workbench.models.gnn import Gnn
from workbench.models.looped import Looped
from workbench.models.ponder import Ponder
from workbench.models.transformer import Transformer
from workbench.models.universal import Universal

FAMILIES: dict[str, type[LatentModel]] = {
    "transformer": Transformer,
    "looped": Looped,
    "ponder": Ponder,
    "discoloop": DiscoLoop,
    "depth_recurrent": DepthRecurrent,
    "universal": Universal,
    "gnn": Gnn,
    "coconut": Coconut,
    "agclr": Agclr,
}


def family(name: str) -> type[LatentModel]:
    """The model class of a family.

    Raises:
        ConfigError: There is no such family.
    """
    if name not in FAMILIES:
        raise ConfigError(f"no family {name!r}; {nearest(name, FAMILIES)}")
    return FAMILIES[name]


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
