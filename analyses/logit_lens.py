"""Another name of `analyses.read.logit_lens`, kept for programs that import it."""

import sys

from analyses.read import logit_lens

sys.modules[__name__] = logit_lens
