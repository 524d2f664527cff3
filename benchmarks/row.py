"""Rows of the benchmark table: a measured number, its target, and the times behind it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Literal

from benchmarks.timing import Seconds, ratio


@dataclass(frozen=True)
class Row:
    """One row of the table: a measured number and its target."""

    benchmark: str
    case: str
    value: float
    unit: Literal["x", "s", "%"]
    target: float | None  # None: reported without a verdict
    better: Literal["below", "above"] = "below"
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Median seconds of each contender, for scale; `value` is not the ratio of these medians."""

    @property
    def met(self) -> bool:
        """Whether the target is met; true if there is none."""
        if self.target is None:
            return True
        if self.better == "below":
            return self.value <= self.target
        return self.value >= self.target

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain data, with its verdict."""
        return asdict(self) | {"met": self.met}

    def cells(self) -> list[str]:
        """Return the cells of the row as text, for the table."""
        sign = "≤" if self.better == "below" else "≥"
        target = "none" if self.target is None else f"{sign} {self.target:g}"
        times = ", ".join(f"{name} {_short(taken)}" for name, taken in self.seconds.items())
        verdict = "stated" if self.target is None else "met" if self.met else "missed"
        return [self.benchmark, self.case, f"{self.value:.3g}", self.unit, target, verdict, times]


HEAD = ["benchmark", "case", "value", "unit", "target", "verdict", "median times"]


def ratio_row(
    benchmark: str, case: str, seconds: Seconds, ours: str, peers: list[str], target: float
) -> Row:
    """Build a row of our time over the fastest peer's (the one with the lowest median overall)."""
    peer = min(peers, key=lambda name: median(seconds[name]))
    value = ratio(seconds[ours], seconds[peer])
    times = {name: median(taken) for name, taken in seconds.items()}
    return Row(benchmark, case, value, "x", target, seconds=times)


def table(rows: list[Row]) -> str:
    """Format the rows as a Markdown table with aligned columns."""
    lines = [HEAD, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |"
        for line in lines
    )


def _short(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"
