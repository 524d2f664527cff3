"""Alias of `workbench.settings.errors`, kept for programs that import it by this name."""

import sys

from workbench.settings import errors

sys.modules[__name__] = errors
