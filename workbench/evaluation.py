"""Another name of `workbench.runs.evaluation`, kept for programs that import it."""

import sys

from workbench.runs import evaluation

sys.modules[__name__] = evaluation
