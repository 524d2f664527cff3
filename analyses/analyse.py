"""`analyse`: run an analysis by name on a run, and record where its numbers came from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from analyses.kit.analysed import Analysed, Provenance
from analyses.kit.declare import ANALYSES, Declared, declared
from analyses.kit.result import Result
from analyses.kit.splits import Batches
from analyses.kit.trained import Trained
from workbench.capabilities import NEEDED, CanRecord, has
from workbench.edits import Edit, Watch, parse_edits, patched_from, to_plain
from workbench.instruments.finite import finite_hooks
from workbench.kinds import one_of_both, worded_batch, worded_task
from workbench.models.base import LatentModel
from workbench.runs import Run, load_run
from workbench.runs.overview import state
from workbench.settings.config import ConfigError, nearest
from workbench.tasks import Task
from workbench.tasks.batch import Batch

ROWS = 500  # rows of each split by default


def find(name: str) -> Callable[..., Result]:
    """Return an analysis by name.

    Raises:
        ConfigError: There is no such analysis.
    """
    return ANALYSES.find(name)


def analyse(
    name: str,
    run: Run | str | Path,
    *,
    step: int | None = None,
    split: str | None = None,
    question: str | None = None,
    n: int | None = None,
    seed: int = 0,
    loops: int | None = None,
    thoughts: int | None = None,
    edits: Sequence[Edit | Mapping[str, Any]] = (),
    model: CanRecord | None = None,
    n_loops: int | None = None,
    **options: Any,
) -> Analysed:
    """Run an analysis on a run.

    Args:
        name: The analysis, one of `ANALYSES`.
        run: A run, its folder or its name.
        step: A saved step; by default the final weights.
        split: The split to draw rows from; by default test_ood if there is one, else the split that
            the task is judged on. Some analyses use every split by default.
        question: A typed question instead of a split.
        n: Number of rows to draw from each split; 500 by default.
        seed: Seed of the draw.
        loops: Loops to run; by default as many as in training.
        thoughts: Thoughts to run; by default as many as at the end of training.
        edits: Interventions on the model. The untrained control runs without them.
        model: A twin of the run's model, used instead of loading it.
        n_loops: Alias of `loops`.
        **options: The analysis's own options.

    Raises:
        ConfigError: A name, step, split, option or edit does not exist or does not fit.
    """
    analysis = declared(name)
    run = run if isinstance(run, Run) else load_run(run)
    loops = one_of_both(loops, n_loops)
    asked = Call(analysis, run, step, split, question, n, seed, loops, thoughts, edits, options)
    asked.check()
    if analysis.on == "run":
        return _of_a_run(asked)
    return _of_rows(asked, asked.loaded() if model is None else model)


@dataclass(frozen=True)
class Call:
    """The arguments of one call of `analyse`."""

    analysis: Declared
    run: Run
    step: int | None
    split: str | None
    question: str | None
    n: int | None
    seed: int
    loops: int | None
    thoughts: int | None
    edits: Sequence[Edit | Mapping[str, Any]]
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.analysis.name

    @cached_property
    def made(self) -> list[Edit]:
        """The edits as objects; error messages give an edit's number in the list."""
        plain = [to_plain([e])[0] if isinstance(e, Edit) else dict(e) for e in self.edits]
        parsed = parse_edits(plain)
        return [e if isinstance(e, Edit) else p for e, p in zip(self.edits, parsed, strict=True)]

    @cached_property
    def loaded_step(self) -> int | None:
        """The step whose weights are used; None for the final ones."""
        return self.run.loaded_step(self.step)

    def loaded(self) -> LatentModel:
        """Return the run's model at the step."""
        step = self.loaded_step
        return self.run.model if step is None else self.run.model_at(step)

    def check(self) -> None:
        """Check that the analysis has all given options and uses all given arguments.

        Raises:
            ConfigError: The analysis lacks an option, or would not use an argument.
        """
        _check_options(self.name, self.analysis.options, self.options)
        if self.split is not None and self.question is not None:
            raise ConfigError("split and question both choose the rows; give one of the two")
        if self.analysis.on != "run":
            return
        unused: dict[str, Any] = {"step": self.step, "question": self.question, "n": self.n}
        unused |= {"loops": self.loops, "thoughts": self.thoughts, "edits": self.edits or None}
        if "split" not in self.analysis.given:
            unused["split"] = self.split
        given = [key for key, value in unused.items() if value is not None]
        if given:
            do = "does" if len(given) == 1 else "do"
            raise ConfigError(
                f"{self.name} looks at a run as a whole, which {', '.join(given)} {do} not change"
            )


@dataclass(frozen=True)
class RowsOfCall:
    """The rows that an analysis runs on, and where they come from."""

    task: Task
    batches: Batches
    where: str | list[str] | None
    """The split or splits; None for a typed question."""

    @classmethod
    def drawn(cls, asked: Call, model: CanRecord) -> "RowsOfCall":
        """Draw the rows that the call specifies."""
        run = asked.run
        task = model.kind.asked(run.task, asked.loops, asked.thoughts)
        if asked.question is not None:
            return cls(task, task.question(asked.question).to(model.device), None)
        n = ROWS if asked.n is None else asked.n
        split = asked.split
        if split is None and asked.analysis.on == "every" and not task.kind.in_passes:
            bridged = [s for s, rows in task.splits.items() if bool((rows.bridge >= 0).any())]
            splits = bridged or list(task.splits)
            several = {s: task.batch(s, n, asked.seed).to(model.device) for s in splits}
            return cls(task, several, splits)
        if split is None:
            split = run.task.default_split
            if asked.analysis.on != "judged" and "test_ood" in run.task.splits:
                split = "test_ood"
        return cls(task, task.batch(split, n, asked.seed).to(model.device), split)

    @property
    def first(self) -> Batch:
        """The batch, or the first split's batch."""
        return (
            self.batches if isinstance(self.batches, Batch) else next(iter(self.batches.values()))
        )

    @property
    def split(self) -> str | None:
        """The split if there is exactly one, else None."""
        return self.where if isinstance(self.where, str) else None


def _of_rows(asked: Call, model: CanRecord) -> Analysed:
    """Run an analysis of a model on the rows that the call specifies."""
    _check_model(asked, model)
    rows = RowsOfCall.drawn(asked, model)
    if asked.made and not isinstance(rows.batches, Batch):
        raise ConfigError(f"edits are of one batch; name a --split for {asked.name}")
    watch = Watch(asked.made)
    with (
        model.hooks(fwd_hooks=watch.hooks(model, rows.first)),
        model.hooks(fwd_hooks=finite_hooks(model), must_fire=False),
    ):
        given = {name: GIVE[name](asked, rows) for name in asked.analysis.given}
        result = _result(asked, model, rows.batches, **given)
    run, step = asked.run, asked.loaded_step
    provenance = Provenance(
        run=run.name,
        recipe=run.recipe.name,
        step=step,
        split=rows.where,
        question=asked.question,
        loops=asked.loops,
        edits=to_plain(asked.made),
        n=None if asked.question else ROWS if asked.n is None else asked.n,
        seed=asked.seed,
        options=dict(asked.options),
        thoughts=asked.thoughts,
        touched=watch.finish(),
        patched_from=patched_from(asked.made),
        weights=run.weights_hash(step),
        precision=run.precision(step),
        trained_loops=model.kind.trained_loops(run),
        state=state(run),
    )
    return Analysed(asked.name, result, provenance)


def _of_a_run(asked: Call) -> Analysed:
    """Run an analysis of a run as a whole, on at most one split."""
    run = asked.run
    where, given = None, {}
    if "split" in asked.analysis.given:
        where = asked.split or run.task.default_split
        given["split"] = where
    result = _result(asked, run, **given)
    provenance = Provenance(
        run=run.name,
        recipe=run.recipe.name,
        split=where,
        seed=asked.seed,
        options=dict(asked.options),
        weights=run.weights_hash() if run.is_finished else None,
        state=state(run),
    )
    return Analysed(asked.name, result, provenance)


def _result(call: Call, *what: Any, **given: Any) -> Result:
    """Call the analysis.

    Raises:
        ConfigError: It does not return a Result.
    """
    found = find(call.name)(*what, **given, **call.options)
    if not isinstance(found, Result):
        raise ConfigError(
            f"{call.name} returned an object of class {type(found).__name__}, which is not an "
            "analyses.Result"
        )
    return found


def _problems(asked: Call, rows: RowsOfCall) -> Sequence[Any]:
    """Return the rows' problems in words if the task's answers are generated, else nothing."""
    if not rows.task.kind.in_passes:
        return ()
    task = worded_task(rows.task)
    if asked.question is not None:
        return [task.typed(asked.question)]
    known = task.problems(str(rows.split))
    return [known[number] for number in worded_batch(rows.first).number.tolist()]


GIVE: dict[str, Callable[[Call, RowsOfCall], Any]] = {
    "n_loops": lambda asked, rows: asked.loops,
    "trained": lambda asked, rows: Trained.of(asked.run, rows.split),
    "bridge_words": lambda asked, rows: asked.run.task.bridge_words,
    "split": lambda asked, rows: rows.split,
    "task": lambda asked, rows: rows.task,
    "problems": _problems,
}
"""How to compute the value of each name in `analysis(given=…)`."""


def _check_model(asked: Call, model: CanRecord) -> None:
    """Check that the model has what the analysis needs and can run the loops or thoughts.

    Raises:
        ConfigError: The model lacks the capability, or cannot run that number.
    """
    needs = asked.analysis.needs
    if not has(model, needs):
        fitting = [n for n in ANALYSES if can_run(declared(n), model)]
        raise ConfigError(
            f"{asked.name} needs {NEEDED.get(needs, needs.__name__)}, which family "
            f"{model.cfg.family} does not have; these analyses run: {', '.join(fitting)}"
        )
    model.kind.check_number(model, asked.loops, asked.thoughts)


def can_run(analysis: Declared, model: object) -> bool:
    """Return whether an analysis takes models and this model has the capability it needs."""
    return analysis.on != "run" and has(model, analysis.needs)


def _check_options(name: str, kinds: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    for option, value in options.items():
        if option not in kinds:
            raise ConfigError(f"{name} has no option {option!r}; {nearest(option, kinds)}")
        try:
            TypeAdapter(kinds[option]).validate_python(value)
        except ValidationError as error:
            message = error.errors()[0]["msg"]
            raise ConfigError(f"{name}: {option}={value!r}: {message}") from None
