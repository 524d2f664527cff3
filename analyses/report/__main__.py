"""`python -m analyses.report FOLDER`: write FOLDER/README.md."""

import sys
from pathlib import Path

import torch

from analyses.report import report
from workbench.settings.files import write_text

torch.set_num_threads(1)
target = Path(sys.argv[1])
write_text(target / "README.md", report(target))
print(target / "README.md")
