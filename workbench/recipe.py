"""Alias of `workbench.settings.recipe`, kept for programs that import it by this name."""

import sys

from workbench.settings import recipe

sys.modules[__name__] = recipe
