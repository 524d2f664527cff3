"""Questions in words with the steps of their solution: ProsQA, GSM8K and HotpotQA.

The names below only concern the data: drawing, loading and scoring. Every source yields `Problem`s.
Each name is imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.tasks.worded.gsm8k.sums import gsm8k_problems, load_gsm8k
    from workbench.tasks.worded.hotpotqa.paragraphs import hotpotqa_problems, load_hotpotqa
    from workbench.tasks.worded.problem import Problem, ProblemError
    from workbench.tasks.worded.prosqa.concept_graph import Graph, frontier, neighbours, swapped
    from workbench.tasks.worded.prosqa.drawing import GraphSettings, draw_graphs
    from workbench.tasks.worded.prosqa.entity_blind import entity_blind_features
    from workbench.tasks.worded.prosqa.parsing import load_prosqa, prosqa_problem, words
    from workbench.tasks.worded.scoring import Score, score_gsm8k, score_hotpotqa, score_prosqa

_HOME = {
    "Graph": "prosqa.concept_graph",
    "GraphSettings": "prosqa.drawing",
    "Problem": "problem",
    "ProblemError": "problem",
    "Score": "scoring",
    "draw_graphs": "prosqa.drawing",
    "entity_blind_features": "prosqa.entity_blind",
    "frontier": "prosqa.concept_graph",
    "gsm8k_problems": "gsm8k.sums",
    "hotpotqa_problems": "hotpotqa.paragraphs",
    "load_gsm8k": "gsm8k.sums",
    "load_hotpotqa": "hotpotqa.paragraphs",
    "load_prosqa": "prosqa.parsing",
    "neighbours": "prosqa.concept_graph",
    "prosqa_problem": "prosqa.parsing",
    "score_gsm8k": "scoring",
    "score_hotpotqa": "scoring",
    "score_prosqa": "scoring",
    "swapped": "prosqa.concept_graph",
    "words": "prosqa.parsing",
}
__all__ = [
    "Graph",
    "GraphSettings",
    "Problem",
    "ProblemError",
    "Score",
    "draw_graphs",
    "entity_blind_features",
    "frontier",
    "gsm8k_problems",
    "hotpotqa_problems",
    "load_gsm8k",
    "load_hotpotqa",
    "load_prosqa",
    "neighbours",
    "prosqa_problem",
    "score_gsm8k",
    "score_hotpotqa",
    "score_prosqa",
    "swapped",
    "words",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
