"""Families, tasks, edits and analyses by name, from this project and from other packages.

There are three ways to add one without changing a file of the project:

    @TASKS.register("my_task", example={"n_train": 20})   # in a module that is imported
    [project.entry-points."latent_workbench.tasks"]       # in the pyproject.toml of a package
    workbench --plugin my_module.py VERB …                # or $WORKBENCH_PLUGINS

The project's own modules are imported when one of their names is first looked up.
"""

import ast
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from typing import Any, Generic, TypeVar

from workbench.settings.config import ConfigError, nearest

Thing = TypeVar("Thing")
PLUGINS = "WORKBENCH_PLUGINS"
"""Environment variable that lists modules or files to import, separated as in $PATH."""
_plugged: dict[str, str] = {}  # module names, keyed by the argument of `plug`


def plug(module: str) -> None:
    """Import a plugin once, so that what it registers can be looked up.

    Args:
        module: A module's name, or the path of a Python file.

    Raises:
        ConfigError: The module or file does not exist, or importing it fails.
    """
    if module in _plugged:
        return
    path = Path(module)
    if path.is_dir() and os.sep in module:
        raise ConfigError(f"plugin {module} is a folder; name a Python file or a module")
    is_path = path.suffix == ".py"
    _plugged[module] = path.stem if is_path else module
    try:
        if is_path:
            _import_file(path)
        else:
            import_module(module)
    except Exception as error:
        del _plugged[module]
        line = "".join(f" (line {n})" for n in _last_line(error, path))
        raise ConfigError(f"plugin {module}{line}: {type(error).__name__}: {error}") from error


def _last_line(error: Exception, path: Path) -> list[int]:
    """Return the last line of a file in a traceback, if the file is in it."""
    frames = [f for f in extract_tb(error.__traceback__) if Path(f.filename).name == path.name]
    return [frame.lineno for frame in frames[-1:] if frame.lineno is not None]


def plugged() -> set[str]:
    """Return the top-level names of the modules that were imported as plugins."""
    return {name.partition(".")[0] for name in _plugged.values()}


def plug_environment() -> None:
    """Import the plugins that `$WORKBENCH_PLUGINS` names."""
    for module in os.environ.get(PLUGINS, "").split(os.pathsep):
        if module:
            plug(module)


def _import_file(path: Path) -> None:
    name = path.stem
    other = None if name in sys.modules else find_spec(name)
    is_other = other is not None and Path(str(other.origin)).resolve() != path.resolve()
    if name in sys.modules or is_other:
        raise ImportError(f"there is another module {name!r}; rename the file")
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    # Processes that load data find it by its name
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


class Registry(Mapping[str, Thing], Generic[Thing]):
    """A map of things of one kind by name; those of other packages are found on first use."""

    def __init__(self, kind: str, plural: str, homes: Mapping[str, str]) -> None:
        """Create a registry.

        Args:
            kind: The word for one of them in error messages.
            plural: The last part of the entry-point group `latent_workbench.PLURAL`.
            homes: For each name, the module of this project that registers it.
        """
        self.kind = kind
        self.group = f"latent_workbench.{plural}"
        self.homes = dict(homes)
        self._things: dict[str, Thing] = {}
        self._examples: dict[str, Any] = {}
        self._entry_points: dict[str, EntryPoint] | None = None

    def register(self, name: str, example: Any = None) -> Callable[[Any], Any]:
        """Return a decorator that adds a class or a function under a name.

        Args:
            name: The name in recipes, on the command line and on the page.
            example: The arguments with which the conformance tests build it; see CONTRIBUTING.md.

        Raises:
            ConfigError: Something else is registered under the name.
        """

        def add(thing: Any) -> Any:
            home = _module_of(thing)
            owner = self.homes.get(name)
            present = self._things.get(name)
            if present is not None:  # a module that runs again may replace its own things
                owner = _module_of(present)
            if owner is not None and owner != home:
                raise ConfigError(
                    f"{home} registers the {self.kind} {name!r}, which {owner} has; rename it"
                )
            self._things[name] = thing
            if example is not None:
                self._examples[name] = example
            return thing

        return add

    def find(self, name: str) -> Thing:
        """Return the thing registered under a name.

        Raises:
            ConfigError: The name is unknown, or its package cannot be imported.
        """
        if name not in self:
            near = nearest(str(name), self)
            others = "" if near.endswith("?") else "; --plugin adds those of other packages"
            raise ConfigError(f"no {self.kind} {name!r:.200}; {near}{others}")
        return self[name]

    def example(self, name: str) -> Any:
        """Return the arguments for the conformance tests; None if it needs none."""
        self[name]  # importing its module registers the example
        return self._examples.get(name)

    def about(self, name: str) -> str:
        """Return the first line of the docstring of the module that registers it.

        Modules of the project are read as text, because importing them would import torch.
        """
        if name in self._things:
            thing = self._things[name]
            text = sys.modules[_module_of(thing)].__doc__ or thing.__doc__
        elif name in self.homes:
            spec = find_spec(self.homes[name])
            source = Path(str(spec and spec.origin)).read_text(encoding="utf-8")
            text = ast.get_docstring(ast.parse(source))
        else:
            return f"of the package {self._found()[name].value}"
        return (text or "").strip().partition("\n")[0]

    def __getitem__(self, name: str) -> Thing:
        if name not in self._things:
            self._load(name)
        return self._things[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self.homes, *self._found(), *self._things]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return name in self._things or name in self.homes or name in {*iter(self)}

    def _load(self, name: str) -> None:
        if name in self.homes:
            import_module(self.homes[name])
        elif name in self._found() and name not in self._things:
            point = self._found()[name]
            try:
                thing = point.load()
            except Exception as error:
                raise ConfigError(
                    f"the {self.kind} {name!r} of {point.value} cannot be imported: "
                    f"{type(error).__name__}: {error}"
                ) from error
            self._things.setdefault(name, thing)

    def _found(self) -> dict[str, EntryPoint]:
        """Return the entry points of installed packages; also import `$WORKBENCH_PLUGINS`."""
        if self._entry_points is None:
            plug_environment()
            points = entry_points(group=self.group)
            self._entry_points = {p.name: p for p in points if p.name not in self.homes}
        return self._entry_points


def _module_of(thing: Any) -> str:
    return str(thing.__module__)
