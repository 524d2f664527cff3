"""Alias of `workbench.settings.files`, kept for programs that import it by this name."""

import sys

from workbench.settings import files

sys.modules[__name__] = files
