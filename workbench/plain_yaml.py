"""YAML as people mean it: `1e-4` is a number, and no key stands twice."""

import re
from typing import Any

import yaml

from workbench.config import ConfigError


class _Twice(yaml.YAMLError):
    """A key that its group already has."""

    def __init__(self, key: Any, line: int) -> None:
        super().__init__(f"the key {key!r} stands a second time in its group at line {line}")


class _Loader(yaml.SafeLoader):
    """YAML 1.1 with the floats of YAML 1.2, and without duplicate keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = []
        for named, _ in node.value:
            key = self.construct_object(named, deep=True)
            if key in seen:
                raise _Twice(key, named.start_mark.line + 1)
            seen.append(key)
        return super().construct_mapping(node, deep)


def _float(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float:
    return float(str(loader.construct_scalar(node)))


class _Dumper(yaml.SafeDumper):
    """Puts words in quotes that `_Loader` would take for numbers."""


# YAML 1.1 takes a number for a float only if it has a dot: 1e-4 would be a string
for side in (_Loader, _Dumper):
    side.add_implicit_resolver(
        "!exponent", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
    )
_Loader.add_constructor("!exponent", _float)


def parse_yaml(text: str, where: str) -> Any:
    """Plain data from YAML text.

    Raises:
        ConfigError: The text is no YAML, or a key stands twice.
    """
    try:
        return yaml.load(text, _Loader)
    except _Twice as error:
        raise ConfigError(f"{where}: {error}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" at line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or error
        raise ConfigError(f"{where} is no valid YAML{line}: {problem}") from None


def write_yaml(data: Any) -> str:
    """YAML text of plain data, keys in the order given."""
    return str(yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100))
