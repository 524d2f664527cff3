"""Questions in words with the steps of their solution: ProsQA, GSM8K and HotpotQA.

Here is the data side alone: drawing, loading and scoring. Every source gives `Problem`s.
"""

from workbench.tasks.worded.gsm8k import gsm8k_problems, load_gsm8k
from workbench.tasks.worded.hotpotqa import hotpotqa_problems, load_hotpotqa
from workbench.tasks.worded.problem import Problem, ProblemError
from workbench.tasks.worded.prosqa import load_prosqa, prosqa_problem, words
from workbench.tasks.worded.prosqa_draw import GraphSettings, draw_graphs
from workbench.tasks.worded.prosqa_graph import Graph, frontier, neighbours, swapped
from workbench.tasks.worded.prosqa_shortcuts import entity_blind_features
from workbench.tasks.worded.scoring import Score, score_gsm8k, score_hotpotqa, score_prosqa

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
