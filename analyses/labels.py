"""Another name of `analyses.kit.labels`, kept for programs that import it."""

import sys

from analyses.kit import labels

sys.modules[__name__] = labels
