"""Another name of `workbench.settings.recipe`, kept for programs that import it."""

import sys

from workbench.settings import recipe

sys.modules[__name__] = recipe
