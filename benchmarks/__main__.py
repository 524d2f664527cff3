"""Run the benchmarks and print their table, each row with its target and whether it is met."""

import argparse
import json
import platform
import sys
import warnings
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

BENCHMARKS = {
    "listeners": "what hook points and caches cost",
    "training": "a training step against two peers",
    "thoughts": "thoughts with the cache of keys and values against one full forward each",
    "startup": "the command's help and the task's data",
    "utilisation": "whether a small run is bound by its arithmetic",
}
LIBRARIES = ("torch", "transformer-lens", "x-transformers")


def main() -> int:
    """Run the selected benchmarks on one thread."""
    names = "\n".join(f"  {name:<12} {about}" for name, about in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        epilog=f"benchmarks:\n{names}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", choices=BENCHMARKS, metavar="NAME", help="one benchmark")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers here as well")
    args = parser.parse_args()

    import torch

    from benchmarks.row import table

    warnings.simplefilter("ignore")  # the peers warn at every construction
    torch.set_num_threads(1)
    rows = []
    for name in [args.only] if args.only else BENCHMARKS:
        for row in import_module(f"benchmarks.{name}").measure():
            print(*row.cells(), sep=" · ", file=sys.stderr)
            rows.append(row)
    rows.sort(key=lambda row: row.benchmark)
    print(table(rows))
    if args.json:
        machine = {
            "machine": platform.platform(),
            "threads": torch.get_num_threads(),
            "python": platform.python_version(),
            "versions": {library: version(library) for library in LIBRARIES},
        }
        text = json.dumps(machine | {"rows": [row.to_dict() for row in rows]}, indent=2)
        args.json.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
