"""Another name of `analyses.read.attention`, kept for programs that import it."""

import sys

from analyses.read import attention

sys.modules[__name__] = attention
