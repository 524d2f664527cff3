"""One line of the table: a number, what it should be, and what it was made from."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Literal

from benchmarks.timing import Seconds, ratio


@dataclass(frozen=True)
class Row:
    """A measured number and its target."""

    benchmark: str
    case: str
    value: float
    unit: Literal["x", "s", "%"]
    target: float | None  # None: stated, not judged
    better: Literal["below", "above"] = "below"
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Median seconds of each contender, for scale; the value is no quotient of these."""

    @property
    def met(self) -> bool:
        """Whether the target is met; true without one."""
        if self.target is None:
            return True
        if self.better == "below":
            return self.value <= self.target
        return self.value >= self.target

    def to_dict(self) -> dict[str, Any]:
        """The row as plain data, with its verdict."""
        return asdict(self) | {"met": self.met}

    def cells(self) -> list[str]:
        """The row as text, for the table."""
        sign = "≤" if self.better == "below" else "≥"
        target = "none" if self.target is None else f"{sign} {self.target:g}"
        times = ", ".join(f"{name} {_short(taken)}" for name, taken in self.seconds.items())
        verdict = "stated" if self.target is None else "met" if self.met else "missed"
        return [self.benchmark, self.case, f"{self.value:.3g}", self.unit, target, verdict, times]


HEAD = ["benchmark", "case", "value", "unit", "target", "verdict", "median times"]


def ratio_row(
    benchmark: str, case: str, seconds: Seconds, ours: str, peers: list[str], target: float
) -> Row:
    """Our time through the fastest peer's, where the fastest is that of the whole run."""
    peer = min(peers, key=lambda name: median(seconds[name]))
    value = ratio(seconds[ours], seconds[peer])
    times = {name: median(taken) for name, taken in seconds.items()}
    return Row(benchmark, case, value, "x", target, seconds=times)


def table(rows: list[Row]) -> str:
    """The rows in Markdown, columns aligned."""
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
