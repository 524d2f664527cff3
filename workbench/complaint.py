"""Another name of `workbench.settings.errors`, kept for programs that import it."""

import sys

from workbench.settings import errors

sys.modules[__name__] = errors
