"""The `@analysis` decorator: it declares an analysis's rows, given arguments and options.

    @analysis(given=("n_loops",), example=Example("chains"))
    def my_analysis(
        model: Looped, batch: Batch, *, n_loops: int | None = None, top: int = 5
    ) -> MyResult:

The type of `model` is the capability that a model must have. Keyword-only parameters are either
`given` by `analyse` or options of the analysis (on the command line `--set top=3`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import Any, Literal, TypeVar

from analyses.kit.listing import ANALYSES
from analyses.kit.result import Result
from workbench.settings.config import ConfigError

Function = TypeVar("Function", bound=Callable[..., Result])
On = Literal["hardest", "judged", "every", "run"]
GIVEN = ("n_loops", "trained", "bridge_words", "split", "task", "problems")


@dataclass(frozen=True)
class Example:
    """A fast call of an analysis for the conformance tests.

    Args:
        run: Which tiny run: `chains` and `graphs` are of looped models, `thoughts` and `stages` of
            thought models; `history` is a run with an artificial history.
        n: Number of rows of each split.
        options: Options of the analysis.
    """

    run: Literal["chains", "graphs", "thoughts", "stages", "history"] = "chains"
    n: int = 10
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Declared:
    """The properties of an analysis that `analyse` needs in order to call it."""

    name: str
    on: On
    given: tuple[str, ...]
    options: Mapping[str, Any]
    """Types of the options, by name."""
    needs: type
    """The capability that the model must have; `object` for an analysis of a run."""


def analysis(
    *, given: str | tuple[str, ...] = (), on: On = "hardest", example: Example | None = None
) -> Callable[[Function], Function]:
    """Register a function as an analysis, under its own name.

    Args:
        given: Keyword parameters that `analyse` fills in: `n_loops`; `trained`, what the run was
            trained on; `task`; `split`, the name of the rows' split; `problems`, the rows of a
            worded task; `bridge_words`, the tokens that are a bridge in some row.
        on: The default rows: those of the hardest split, of the split that the run is judged on, or
            of every split as a dict; or the run as a whole.
        example: A call for the conformance tests; by default on a tiny run on chains of facts.

    Raises:
        ConfigError: A parameter has no type, or a name in `given` does not exist.
    """

    def declare(function: Function) -> Function:
        name = function.__name__
        names = (given,) if isinstance(given, str) else given
        declared = _declared(name, function, names, on)
        function.__declared__ = declared  # type: ignore[attr-defined]
        added: Function = ANALYSES.register(name, example or Example())(function)
        return added

    return declare


def declared(name: str) -> Declared:
    """Return the declaration of an analysis.

    Raises:
        ConfigError: There is no such analysis, or it was registered without `analysis`.
    """
    function = ANALYSES.find(name)
    found = getattr(function, "__declared__", None)
    if found is None:
        raise ConfigError(f"{function.__module__}: decorate {name} with @analysis(…)")
    assert isinstance(found, Declared)
    return found


def _declared(
    name: str, function: Callable[..., Result], given: tuple[str, ...], on: On
) -> Declared:
    parameters = signature(function).parameters.values()
    untyped = [p.name for p in parameters if p.annotation is Parameter.empty]
    if untyped:
        such_as = {"model": "CanLoop", "batch": "Batch", "run": "Run"}.get(untyped[0], "int")
        raise ConfigError(
            f"analysis {name}: give {untyped[0]!r} a type, such as {untyped[0]}: {such_as}"
        )
    keywords = {p.name: p.annotation for p in parameters if p.kind is Parameter.KEYWORD_ONLY}
    for wanted in given:
        if wanted not in GIVEN:
            raise ConfigError(f"analysis {name}: nothing gives {wanted!r}; {', '.join(GIVEN)} are")
        if wanted not in keywords:
            raise ConfigError(
                f"analysis {name}: {wanted!r} is given, but no keyword-only parameter"
            )
    options = {option: kind for option, kind in keywords.items() if option not in given}
    first = next(iter(parameters), None)
    needs = object if on == "run" or first is None else first.annotation
    if not isinstance(needs, type):
        raise ConfigError(f"analysis {name}: the type of its model must be a class, not {needs}")
    return Declared(name, on, given, options, needs)
