"""Analyses of latent-recurrent models: f(model, batch, *, options) -> Result.

`ANALYSES` maps names to functions. A Result has `.figure()`, `.to_frame()` and `.summary()`.
`analyse` runs one by name on a run and keeps where its numbers came from.

Names below are loaded when they are first used, so that importing the package costs nothing.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from analyses.names import ANALYSES, HOMES

if TYPE_CHECKING:
    from analyses.ablation import ablation
    from analyses.analyse import analyse, find
    from analyses.analysed import Analysed
    from analyses.answers import answers
    from analyses.attention import attention
    from analyses.bridge_alignment import bridge_alignment
    from analyses.compare import compare
    from analyses.compute_frontier import compute_frontier
    from analyses.concept_probe import concept_probe
    from analyses.convergence import convergence
    from analyses.cost import cost
    from analyses.declare import Example, analysis
    from analyses.gate_maps import gate_maps
    from analyses.gradient_highway import gradient_highway
    from analyses.graph_states import graph_states
    from analyses.logit_lens import logit_lens
    from analyses.memory_retention import memory_retention
    from analyses.reached_set import reached_set
    from analyses.realigned_answer import realigned_answer
    from analyses.realignment import realignment
    from analyses.result import Result
    from analyses.shortcuts import shortcuts
    from analyses.stage_collapse import stage_collapse
    from analyses.stage_curve import stage_curve
    from analyses.thought_count import thought_count
    from analyses.thought_search_tree import thought_search_tree
    from analyses.training_curves import training_curves

_HOME = HOMES | {
    "Analysed": "analyses.analysed",
    "Example": "analyses.declare",
    "Result": "analyses.result",
    "analyse": "analyses.analyse",
    "analysis": "analyses.declare",
    "find": "analyses.analyse",
}
__all__ = [
    "ANALYSES",
    "Analysed",
    "Example",
    "Result",
    "ablation",
    "analyse",
    "analysis",
    "answers",
    "attention",
    "bridge_alignment",
    "compare",
    "compute_frontier",
    "concept_probe",
    "convergence",
    "cost",
    "find",
    "gate_maps",
    "gradient_highway",
    "graph_states",
    "logit_lens",
    "memory_retention",
    "reached_set",
    "realigned_answer",
    "realignment",
    "shortcuts",
    "stage_collapse",
    "stage_curve",
    "thought_count",
    "thought_search_tree",
    "training_curves",
]


class _Package(ModuleType):
    """The package, whose names are functions even where a module bears the same one.

    Importing the module `analyses.attention` would otherwise put it in place of the function.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in _HOME):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'analyses' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
