"""Analyses of latent-recurrent models: f(model, batch, *, options) -> Result.

`ANALYSES` maps names to functions. A Result has `.figure()`, `.to_frame()` and `.summary()`.
`analyse` runs one by name on a run and keeps where its numbers came from.
"""

from analyses.ablation import ablation
from analyses.analyse import ANALYSES, Analysed, analyse, find
from analyses.answers import answers
from analyses.attention import attention
from analyses.bridge_alignment import bridge_alignment
from analyses.compare import compare
from analyses.compute_frontier import compute_frontier
from analyses.concept_probe import concept_probe
from analyses.convergence import convergence
from analyses.cost import cost
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

__all__ = [
    "ANALYSES",
    "Analysed",
    "Result",
    "ablation",
    "analyse",
    "answers",
    "attention",
    "bridge_alignment",
    "compare",
    "compute_frontier",
    "concept_probe",
    "convergence",
    "cost",
    "gradient_highway",
    "graph_states",
    "reached_set",
    "find",
    "gate_maps",
    "logit_lens",
    "memory_retention",
    "realigned_answer",
    "realignment",
    "shortcuts",
    "stage_collapse",
    "thought_count",
    "stage_curve",
    "thought_search_tree",
    "training_curves",
]
