"""One analysis of one run by name, with a record of where its numbers came from."""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pydantic import TypeAdapter, ValidationError

from analyses.answers import answers
from analyses.attention import attention
from analyses.bridge_alignment import bridge_alignment
from analyses.compute_frontier import compute_frontier
from analyses.convergence import convergence
from analyses.export import page
from analyses.gate_maps import gate_maps
from analyses.gradient_highway import gradient_highway
from analyses.graph_states import graph_states
from analyses.labels import literal
from analyses.logit_lens import logit_lens
from analyses.reached_set import reached_set
from analyses.realigned_answer import realigned_answer
from analyses.realignment import realignment
from analyses.result import Result
from analyses.stage_collapse import stage_collapse
from analyses.trained import Trained
from analyses.training_curves import training_curves
from workbench.config import ConfigError, nearest
from workbench.edits import Edit, edit_hooks, parse_edits, to_plain
from workbench.files import FileError, write_text
from workbench.models.depth import DepthModel
from workbench.runs import Run, load_run
from workbench.tasks.batch import Batch

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

ANALYSES: dict[str, Callable[..., Result]] = {
    "logit_lens": logit_lens,
    "bridge_alignment": bridge_alignment,
    "gate_maps": gate_maps,
    "realignment": realignment,
    "stage_collapse": stage_collapse,
    "attention": attention,
    "realigned_answer": realigned_answer,
    "training_curves": training_curves,
    "answers": answers,
    "compute_frontier": compute_frontier,
    "convergence": convergence,
    "gradient_highway": gradient_highway,
    "reached_set": reached_set,
    "graph_states": graph_states,
}
OF_SPLITS = {
    "bridge_alignment",
    "gate_maps",
    "realignment",
}  # given every split unless one is named
OF_DEFAULT = {"compute_frontier"}  # given the split that a run is judged on
SUPPLIED = ("n_loops", "trained")  # keyword arguments that are no options


@dataclass(frozen=True)
class Provenance:
    """Which run, weights, rows and interventions a result is of."""

    run: str
    step: int | None
    split: str | list[str] | None
    loops: int | None
    edits: list[dict[str, Any]]
    n: int | None
    seed: int
    options: dict[str, Any]

    def line(self) -> str:
        """In a few words, as plotly shows them literally."""
        parts = [self.run, "final weights" if self.step is None else f"step {self.step}"]
        if self.split is not None:
            parts.append(self.split if isinstance(self.split, str) else ", ".join(self.split))
        if self.n is not None:
            parts.append(f"n ≤ {self.n}, seed {self.seed}")
        if self.loops is not None:
            parts.append(f"{self.loops} loops")
        if self.edits:
            parts.append(f"{len(self.edits)} edits")
        return literal(" · ".join(parts))

    def arguments(self, name: str, run: str | None = None) -> list[str]:
        """What `analyse` is to be given for the same result, as Python."""
        is_question = self.n is None and isinstance(self.split, str)
        given = {
            "step": self.step,
            "question": self.split if is_question else None,
            "split": self.split if isinstance(self.split, str) and not is_question else None,
            "n": self.n,
            "seed": self.seed if self.n is not None else None,
            "n_loops": self.loops,
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
        """The result's figure with its provenance below the title."""
        from analyses.style import subtitled

        return subtitled(self.result.figure(), self.provenance.line())

    def shown(self, **view: Any) -> "Analysed":
        """The same numbers with another picture; `view` are options that only the figure heeds."""
        result = replace(cast(Any, self.result), **view)
        options = self.provenance.options | view
        return replace(self, result=result, provenance=replace(self.provenance, options=options))

    def to_frame(self) -> "pd.DataFrame":
        """The result's numbers as a tidy table."""
        return self.result.to_frame()

    def summary(self) -> str:
        """The result's finding in one line."""
        return self.result.summary()

    def code(self, run: str | None = None) -> str:
        """Lines of Python that make the figure; `run` is a folder, if the name is not enough."""
        return (
            "from analyses import analyse\n"
            f"found = analyse({', '.join(self.provenance.arguments(self.name, run))})\n"
            "found.figure().show()"
        )

    def to_plain(self) -> dict[str, Any]:
        """The result's fields and the provenance, as data for JSON."""
        return {"analysis": self.name} | asdict(self.provenance) | self.result.to_plain()

    def write(self, folder: Path) -> list[Path]:
        """Write NAME.csv, NAME.html and NAME.json; returns their paths."""
        if folder.exists() and not folder.is_dir():
            raise FileError(f"--out {folder} is a file; the results go into a folder")
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / f"{self.name}.{end}" for end in ("csv", "html", "json")]
        write_text(paths[0], self.result.to_frame().to_csv(index=False))
        write_text(paths[1], page(self.figure()))
        write_text(paths[2], json.dumps(self.to_plain(), allow_nan=False))
        return paths


def find(name: str) -> Callable[..., Result]:
    """An analysis by name.

    Raises:
        ConfigError: There is no such analysis.
    """
    if name not in ANALYSES:
        raise ConfigError(f"no analysis {name!r}; {nearest(name, ANALYSES)}")
    return ANALYSES[name]


def analyse(
    name: str,
    run: Run | str | Path,
    *,
    step: int | None = None,
    split: str | None = None,
    question: str | None = None,
    n: int = 500,
    seed: int = 0,
    n_loops: int | None = None,
    edits: Sequence[Edit | Mapping[str, Any]] = (),
    model: DepthModel | None = None,
    **options: Any,
) -> Analysed:
    """Run an analysis on a run.

    Args:
        name: The analysis, one of `ANALYSES`.
        run: A run, its folder or its name.
        step: A saved step; the final weights by default.
        split: Whose rows to look at; by default every split, or one where one is wanted: test_ood,
            or else the split that runs are judged on.
        question: One typed question in place of a split.
        n: Rows of each split to draw.
        seed: Of the draw.
        n_loops: Loops to run; by default as many as the run was trained with.
        edits: Interventions to make.
        model: A twin of the run's model to use instead of loading it.
        **options: The analysis's own options.

    Raises:
        ConfigError: A name, step, split, option or edit does not exist or does not fit.
    """
    function = find(name)
    run = run if isinstance(run, Run) else load_run(run)
    _check_options(name, function, options)
    if "run" in inspect.signature(function).parameters:
        plain = Provenance(run.name, None, None, None, [], None, seed, options)
        return Analysed(name, function(run, **options), plain)
    step = run.loaded_step(step)
    if model is None:
        model = run.model if step is None else run.model_at(step)
    made = [e if isinstance(e, Edit) else parse_edits([dict(e)])[0] for e in edits]
    batches = _batches(name, run, split, question, n, seed, model)
    if isinstance(batches, dict) and made:
        raise ConfigError(f"edits are of one batch; name a --split for {name}")
    rows = next(iter(batches.values())) if isinstance(batches, dict) else batches
    where = _where(name, run, split, question, batches)
    supplied = dict(options)
    if "trained" in inspect.signature(function).parameters:
        supplied["trained"] = Trained.of(run, where if question is None else None)
    with model.hooks(fwd_hooks=edit_hooks(made, model, rows)):
        result = function(model, batches, n_loops=n_loops, **supplied)
    count = None if question else n
    return Analysed(
        name,
        result,
        Provenance(run.name, step, where, n_loops, to_plain(made), count, seed, options),
    )


def _batches(
    name: str,
    run: Run,
    split: str | None,
    question: str | None,
    n: int,
    seed: int,
    model: DepthModel,
) -> Batch | dict[str, Batch]:
    if question is not None:
        return run.task.question(question).to(model.device)
    if split is None and name in OF_SPLITS:
        bridged = [s for s, rows in run.task.splits.items() if bool((rows.bridge >= 0).any())]
        splits = bridged or list(run.task.splits)
        return {s: run.task.batch(s, n, seed).to(model.device) for s in splits}
    return run.task.batch(split or _default_split(name, run), n, seed).to(model.device)


def _default_split(name: str, run: Run) -> str:
    """The split that is looked at if none is named: the hardest one, if it is told apart."""
    if name not in OF_DEFAULT and "test_ood" in run.task.splits:
        return "test_ood"
    return run.task.default_split


def _where(
    name: str, run: Run, split: str | None, question: str | None, batches: Batch | dict[str, Batch]
) -> str | list[str]:
    if isinstance(batches, dict):
        return list(batches)
    return split or question or _default_split(name, run)


def _check_options(name: str, function: Callable[..., Result], options: Mapping[str, Any]) -> None:
    kinds = {
        parameter.name: parameter.annotation
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name not in SUPPLIED
    }
    for option, value in options.items():
        if option not in kinds:
            raise ConfigError(f"{name} has no option {option!r}; {nearest(option, kinds)}")
        try:
            TypeAdapter(kinds[option]).validate_python(value)
        except ValidationError as error:
            message = error.errors()[0]["msg"]
            raise ConfigError(f"{name}: {option}={value!r}: {message}") from None
