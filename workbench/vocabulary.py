"""Another name of `workbench.words.vocabulary`, kept for programs that import it."""

import sys

from workbench.words import vocabulary

sys.modules[__name__] = vocabulary
