"""Analyses of latent-recurrent models: f(model, batch, *, options) -> Result.

`ANALYSES` maps names to functions. A Result has `.figure()`, `.to_frame()` and `.summary()`.
`analyse` runs an analysis by name on a run and records where its numbers came from.

The names below are loaded on first use, so importing the package is cheap.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from analyses.kit.listing import ANALYSES, HOMES

if TYPE_CHECKING:
    from analyses.analyse import analyse, find
    from analyses.change.ablation import ablation
    from analyses.change.realigned_answer import realigned_answer
    from analyses.change.realignment import realignment
    from analyses.change.thought_count import thought_count
    from analyses.graphs.graph_states import graph_states
    from analyses.graphs.reached_set import reached_set
    from analyses.graphs.thought_search_tree import thought_search_tree
    from analyses.kit.analysed import Analysed
    from analyses.kit.declare import Example, analysis
    from analyses.kit.result import Result
    from analyses.measure.compare import compare
    from analyses.measure.compute_frontier import compute_frontier
    from analyses.measure.cost import cost
    from analyses.measure.shortcuts import shortcuts
    from analyses.read.answers import answers
    from analyses.read.attention import attention
    from analyses.read.bridge_alignment import bridge_alignment
    from analyses.read.concept_probe import concept_probe
    from analyses.read.convergence import convergence
    from analyses.read.gate_maps import gate_maps
    from analyses.read.gradient_highway import gradient_highway
    from analyses.read.logit_lens import logit_lens
    from analyses.read.memory_retention import memory_retention
    from analyses.training.stage_collapse import stage_collapse
    from analyses.training.stage_curve import stage_curve
    from analyses.training.training_curves import training_curves

_HOME = HOMES | {
    "Analysed": "analyses.kit.analysed",
    "Example": "analyses.kit.declare",
    "Result": "analyses.kit.result",
    "analyse": "analyses.analyse",
    "analysis": "analyses.kit.declare",
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
    """The package module; its public names stay functions even if a module has the same name.

    Otherwise, importing the module `analyses.read.attention` would replace the function.
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
