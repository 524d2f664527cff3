"""A result with a record of where its numbers came from."""

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any, cast

from analyses.kit.export import page
from analyses.kit.labels import literal
from analyses.kit.result import Result
from workbench.settings.files import FileError, make_folder, write_text
from workbench.settings.plain_json import is_file

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

LONGEST = 60  # characters of a question that fit below a figure's title


@dataclass(frozen=True)
class Provenance:
    """The run, weights, rows and interventions that a result comes from."""

    run: str
    recipe: str
    """Name of the run's recipe."""
    step: int | None = None
    split: str | list[str] | None = None
    question: str | None = None
    """The typed question, if it is used instead of a split."""
    loops: int | None = None
    edits: list[dict[str, Any]] = field(default_factory=list)
    n: int | None = None
    seed: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    thoughts: int | None = None
    """Number of thoughts, if requested; None means as many as at the end of the run's training."""
    touched: list[dict[str, Any]] = field(default_factory=list)
    """Rows, loops and positions that each edit changed."""
    patched_from: dict[str, str] = field(default_factory=dict)
    """Hash of the weights of each run that an edit patches from."""
    weights: str | None = None
    """Hash of the weights."""
    precision: str | None = None
    """Number format in which the weights are stored."""
    trained_loops: int | None = None
    state: str = "finished"
    """State of the run: finished, in training or stopped."""

    def line(self) -> str:
        """Summarise the provenance in one line, escaped so that plotly shows it literally."""
        run = self.run if self.run == self.recipe else f"{self.run} (recipe {self.recipe})"
        parts = [run, self._weights()]
        if self.question is not None:
            parts.append(shorten(self.question, LONGEST, placeholder=" …"))
        if self.split is not None:
            parts.append(self.split if isinstance(self.split, str) else ", ".join(self.split))
        if self.n is not None:
            parts.append(f"n ≤ {self.n}, seed {self.seed}")
        if self.loops is not None:
            trained = self.trained_loops
            beside = "" if trained in (None, self.loops) else f", trained with {trained}"
            parts.append(f"{self.loops} loops{beside}")
        if self.thoughts is not None:
            parts.append(f"{self.thoughts} thoughts, not as trained")
        if self.edits:
            rows = ", ".join(f"{touch['rows']:,}" for touch in self.touched)
            n = len(self.edits)
            unit = "row" if rows == "1" else "rows"
            parts.append(f"{n} edit{'s' if n > 1 else ''} (touched {rows} {unit})")
        return literal(" · ".join(parts))

    def _weights(self) -> str:
        """Describe the weights: their step, and their precision if it is not float32."""
        if self.step is not None:
            which = f"step {self.step}"
        else:
            which = "final weights" if self.state == "finished" else f"run {self.state}"
        kept = "" if self.precision in (None, "float32") else f" (kept in {self.precision})"
        return which + kept

    def arguments(self, name: str, run: str | None = None) -> list[str]:
        """Return the arguments of `analyse` that reproduce the result, as Python source."""
        given = {
            "step": self.step,
            "question": self.question,
            "split": self.split if isinstance(self.split, str) else None,
            "n": self.n,
            "seed": self.seed if self.n is not None else None,
            "loops": self.loops,
            "thoughts": self.thoughts,
            "edits": self.edits or None,
        } | self.options
        named = [f"{key}={value!r}" for key, value in given.items() if value is not None]
        return [repr(name), repr(run or self.run), *named]


@dataclass(frozen=True, eq=False)
class Analysed:
    """A result and its provenance."""

    name: str
    result: Result
    provenance: Provenance

    def figure(self) -> "go.Figure":
        """Draw the result's figure with its provenance below the title."""
        from analyses.kit.style import subtitled

        return subtitled(self.result.figure(), self.provenance.line())

    def shown(self, **view: Any) -> "Analysed":
        """Return the same numbers with another figure; `view` holds options of the figure alone."""
        result = replace(cast(Any, self.result), **view)
        options = self.provenance.options | view
        return replace(self, result=result, provenance=replace(self.provenance, options=options))

    def to_frame(self) -> "pd.DataFrame":
        """Return the result's numbers as a tidy table."""
        return self.result.to_frame()

    def summary(self) -> str:
        """Return the result's finding in one line."""
        return self.result.summary()

    def code(self, run: str | None = None) -> str:
        """Return Python code that makes the figure; `run` is a folder if the name is not enough."""
        return (
            "from analyses import analyse\n"
            f"found = analyse({', '.join(self.provenance.arguments(self.name, run))})\n"
            "found.figure().show()"
        )

    def to_plain(self) -> dict[str, Any]:
        """Return the result's fields and the provenance as JSON-compatible data."""
        return {"analysis": self.name} | asdict(self.provenance) | self.result.to_plain()

    def write(self, folder: Path) -> list[Path]:
        """Write NAME.csv, NAME.html and NAME.json, and return their paths."""
        if is_file(folder):
            raise FileError(f"--out {folder} is a file; the results go into a folder")
        texts = {  # all of them first, so that an error leaves the files of an earlier result alone
            "csv": self.result.to_frame().to_csv(index=False),
            "html": page(self.figure()),
            "json": json.dumps(self.to_plain(), allow_nan=False),
        }
        make_folder(folder)
        for end, text in texts.items():
            write_text(folder / f"{self.name}.{end}", text)
        return [folder / f"{self.name}.{end}" for end in texts]
