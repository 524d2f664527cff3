"""The registry of analyses: functions by name. Nothing is imported until a name is looked up."""

from collections.abc import Callable
from typing import Any

from workbench.settings.registry import Registry

HOMES = {
    name: f"analyses.{name}"
    for name in (
        *("logit_lens", "bridge_alignment", "gate_maps", "realignment", "stage_collapse"),
        *("attention", "realigned_answer", "training_curves", "answers", "compute_frontier"),
        *("convergence", "gradient_highway", "reached_set", "shortcuts", "graph_states"),
        *("memory_retention", "concept_probe", "ablation", "thought_count"),
        *("thought_search_tree", "stage_curve", "compare", "cost"),
    )
}
ANALYSES: Registry[Callable[..., Any]] = Registry("analysis", "analyses", HOMES)
