"""The `workbench` command: `app` lies above this package, so it is looked up by name."""

import sys
from importlib import import_module

command_line = import_module("app.command_line")
if __name__ == "__main__":
    sys.exit(command_line.main())
sys.modules[__name__] = command_line
