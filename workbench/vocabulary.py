"""Alias of `workbench.words.vocabulary`, kept for programs that import it by this name."""

import sys

from workbench.words import vocabulary

sys.modules[__name__] = vocabulary
