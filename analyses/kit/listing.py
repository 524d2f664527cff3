"""The registry of analyses by name; an analysis is imported when its name is first looked up."""

from collections.abc import Callable
from typing import Any

from workbench.settings.registry import Registry

_ROOMS = {
    "read": "logit_lens bridge_alignment gate_maps attention answers convergence gradient_highway "
    "memory_retention concept_probe",
    "change": "realignment realigned_answer ablation thought_count",
    "measure": "compute_frontier shortcuts compare cost",
    "graphs": "reached_set graph_states thought_search_tree",
    "training": "training_curves stage_collapse stage_curve",
}
HOMES = {
    name: f"analyses.{room}.{name}" for room, names in _ROOMS.items() for name in names.split()
}
ANALYSES: Registry[Callable[..., Any]] = Registry("analysis", "analyses", HOMES)
