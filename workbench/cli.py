"""The `workbench` command.

`app` sits above this package in the layering, so it is imported by name.
"""

import sys
from importlib import import_module

command_line = import_module("app.command_line")
if __name__ == "__main__":
    sys.exit(command_line.main())
sys.modules[__name__] = command_line
