"""The registries of the package: `FAMILIES`, `TASKS` and `EDITS`, by name.

This module imports none of them; a name's module is imported when the name is first looked up.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from workbench.settings.registry import Registry

if TYPE_CHECKING:
    from workbench.edits.base import Edit
    from workbench.models.base import LatentModel
    from workbench.recurrence.base import Recurrence
    from workbench.settings.config import LoopedConfig
    from workbench.tasks.base import Task


class Families(Registry[type["LatentModel"]]):
    """The registry of model classes, keyed by family name."""

    def register_recurrence(
        self,
        name: str,
        make: "Callable[[Any], Recurrence]",
        config: "type[LoopedConfig] | None" = None,
        example: dict[str, Any] | None = None,
    ) -> "type[LatentModel]":
        """Register a family of looped models, given its recurrence.

        Args:
            name: The family's name in recipes.
            make: Builds the recurrence from the model's config.
            config: The family's config class; `LoopedConfig` by default.
            example: Config fields that the conformance tests use.

        Raises:
            ConfigError: The family is already registered.
        """
        from workbench.models.loops.depth import DepthModel
        from workbench.settings.config import LoopedConfig

        def make_recurrence(model: DepthModel) -> "Recurrence":
            return make(model.cfg)

        body = {
            "__module__": make.__module__,
            "__doc__": make.__doc__,
            "Config": config or LoopedConfig,
            "make_recurrence": make_recurrence,
        }
        made: type[LatentModel] = type(name, (DepthModel,), body)
        self.register(name, example)(made)
        return made


class Edits(Registry[type["Edit"]]):
    """Edit classes by what they do."""

    def register(self, name: str, example: Any = None) -> Callable[[Any], Any]:
        """Return a decorator that adds an edit class.

        Args:
            name: The value of the field `do`.
            example: Fields of an edit of a two-layer model of width 16, for the conformance tests.

        Raises:
            ConfigError: The class has another `do`, or the example is missing or invalid.
        """

        def add(edit: Any) -> Any:
            from workbench.settings.config import ConfigError, parse

            do = edit.model_fields.get("do")
            if do is None or do.default != name:
                field = f"do: Literal[{name!r}] = {name!r}"
                raise ConfigError(f"edit {name}: give its class the field {field}")
            if example is None:
                raise ConfigError(f"edit {name}: register it with an example, a dict of its fields")
            parse(edit, {"do": name} | example, f"the example of the edit {name!r}")
            return super(Edits, self).register(name, example)(edit)

        return add


def _homes(package: str, **modules: str) -> dict[str, str]:
    """Map each registered name to the module that registers it."""
    return {
        name: f"{package}.{module}" for module, names in modules.items() for name in names.split()
    }


_LOOPS = "transformer looped ponder discoloop depth_recurrent universal gnn"
FAMILIES = Families(
    "family",
    "families",
    {name: f"workbench.models.loops.{name}" for name in _LOOPS.split()}
    | {name: f"workbench.models.thoughts.{name}" for name in ("coconut", "agclr")},
)
TASKS: "Registry[type[Task]]" = Registry(
    "task",
    "tasks",
    _homes(
        "workbench.tasks",
        hops="two_hop three_hop",
        reachability="reachability",
        boolean="boolean",
        kinship="kinship",
    )
    | _homes("workbench.tasks.worded", prosqa="prosqa", gsm8k="gsm8k", hotpotqa="hotpotqa"),
)
EDITS = Edits(
    "edit",
    "edits",
    _homes(
        "workbench.edits",
        values="zero mean add scale clamp freeze",
        patch="patch",
        between="realign skip",
        mix="mix",
        order="repeat swap",
    ),
)
