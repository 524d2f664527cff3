"""YAML as users expect it: `1e-4` is a number, and duplicate keys are errors."""

import re
from typing import Any

import yaml

from workbench.settings.config import ConfigError


class _Twice(yaml.YAMLError):
    """An error for a duplicate key in a mapping."""

    def __init__(self, key: Any, line: int) -> None:
        super().__init__(f"the key {key!r} stands a second time in its group at line {line}")


class _Refused(yaml.YAMLError):
    """An error for valid YAML that this loader does not accept."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(f"{what} at line {line} is not read here; write the value out")


class _Loader(yaml.SafeLoader):
    """A loader of YAML 1.1 with YAML 1.2 floats, without duplicate keys, aliases and dates."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for named, _ in node.value:
            key = self.construct_object(named, deep=True)
            if not isinstance(key, str | int | float | bool | None):
                raise _Refused("a key that is not a word", named.start_mark.line + 1)
            if key in seen:
                raise _Twice(key, named.start_mark.line + 1)
            seen.add(key)
        return super().construct_mapping(node, deep)

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            # A few lines of nested aliases can expand to more data than fits in memory
            raise _Refused("an alias (*name)", self.peek_event().start_mark.line + 1)
        return super().compose_node(parent, index)


def _float(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float:
    return float(str(loader.construct_scalar(node)))


class _Dumper(yaml.SafeDumper):
    """A dumper that quotes strings which `_Loader` would read as numbers."""


# In YAML 1.1 a float must contain a dot: 1e-4 would be a string
for side in (_Loader, _Dumper):
    side.add_implicit_resolver(
        "!exponent", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
    )
_Loader.add_constructor("!exponent", _float)
# 2024-01-31 stays a string, because no recipe field holds a date
_Loader.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
    for first, pairs in _Loader.yaml_implicit_resolvers.items()
}
LONGEST = 1_000_000  # largest YAML text that is read, in characters


def parse_yaml(text: str, where: str) -> Any:
    """Parse YAML text to plain data.

    Raises:
        ConfigError: The text is not YAML, is too long, or has a duplicate key or an alias.
    """
    if len(text) > LONGEST:
        raise ConfigError(f"{where} has {len(text):,} characters; at most {LONGEST:,} are read")
    try:
        return yaml.load(text, _Loader)
    except (_Twice, _Refused) as error:
        raise ConfigError(f"{where}: {error}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" at line {mark.line + 1}" if mark else ""
        problem = str(getattr(error, "problem", None) or error).partition("\n")[0]
        raise ConfigError(f"{where} is no valid YAML{line}: {problem}") from None
    except RecursionError:
        raise ConfigError(f"{where} is nested too deep to be read") from None
    except (ValueError, OverflowError) as error:  # for example a number with too many digits
        raise ConfigError(f"{where} is no valid YAML: {error}") from None


def write_yaml(data: Any) -> str:
    """Return plain data as YAML text, with keys in the given order."""
    return str(yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100))
