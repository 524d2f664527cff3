"""Alias of `workbench.runs.evaluation`, kept for programs that import it by this name."""

import sys

from workbench.runs import evaluation

sys.modules[__name__] = evaluation
