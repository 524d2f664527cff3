"""One analysis of one run by name, with a record of where its numbers came from."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast, get_type_hints

from pydantic import TypeAdapter, ValidationError

from analyses.ablation import ablation
from analyses.analysed import Analysed, Provenance
from analyses.answers import answers
from analyses.attention import attention
from analyses.bridge_alignment import bridge_alignment
from analyses.compare import compare
from analyses.compute_frontier import compute_frontier
from analyses.concept_probe import concept_probe
from analyses.convergence import convergence
from analyses.cost import cost
from analyses.gate_maps import gate_maps
from analyses.gradient_highway import gradient_highway
from analyses.graph_states import graph_states
from analyses.logit_lens import logit_lens
from analyses.memory_retention import memory_retention
from analyses.reached_set import reached_set
from analyses.realigned_answer import realigned_answer
from analyses.realignment import realignment
from analyses.result import Result
from analyses.shortcuts import shortcuts
from analyses.stage_collapse import stage_collapse
from analyses.stage_curve import stage_curve
from analyses.thought_count import thought_count
from analyses.thought_search_tree import thought_search_tree
from analyses.trained import Trained
from analyses.training_curves import training_curves
from workbench.config import ConfigError, nearest
from workbench.edits import Edit, Watch, parse_edits, patched_from, to_plain
from workbench.evaluation import check_loops, check_thoughts
from workbench.instruments.finite import finite_hooks
from workbench.models.base import LatentModel
from workbench.models.thought import ThoughtModel
from workbench.overview import state
from workbench.runs import Run, load_run
from workbench.tasks import Task
from workbench.tasks.batch import Batch
from workbench.tasks.worded.batch import WordedBatch
from workbench.tasks.worded.task import WordedTask

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
    "shortcuts": shortcuts,
    "graph_states": graph_states,
    "memory_retention": memory_retention,
    "concept_probe": concept_probe,
    "ablation": ablation,
    "thought_count": thought_count,
    "thought_search_tree": thought_search_tree,
    "stage_curve": stage_curve,
    "compare": compare,
    "cost": cost,
}
OF_SPLITS = {
    "bridge_alignment",
    "gate_maps",
    "realignment",
}  # given every split unless one is named
OF_DEFAULT = {"compute_frontier"}  # given the split that a run is judged on
ROWS = 500  # of each split, unless it is said how many
# Keyword arguments that are no options
SUPPLIED = ("n_loops", "trained", "bridge_words", "split", "task", "problems")


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
    n: int | None = None,
    seed: int = 0,
    n_loops: int | None = None,
    thoughts: int | None = None,
    edits: Sequence[Edit | Mapping[str, Any]] = (),
    model: LatentModel | None = None,
    **options: Any,
) -> Analysed:
    """Run an analysis on a run.

    Args:
        name: The analysis, one of `ANALYSES`.
        run: A run, its folder or its name.
        step: A saved step; the final weights by default.
        split: Whose rows to look at; by default every split; where one is wanted, test_ood or the
            split that the task is judged on.
        question: One typed question in place of a split.
        n: Rows of each split to draw; by default 500.
        seed: Of the draw.
        n_loops: Loops to run; by default as many as the run was trained with.
        thoughts: Thoughts to think; by default as many as the run's training ended with.
        edits: Interventions to make.
        model: A twin of the run's model to use instead of loading it.
        **options: The analysis's own options.

    Raises:
        ConfigError: A name, step, split, option or edit does not exist or does not fit.
    """
    function = find(name)
    run = run if isinstance(run, Run) else load_run(run)
    _check_options(name, function, options)
    if split is not None and question is not None:
        raise ConfigError("split and question both say which rows to look at; give one of the two")
    if _is_of_a_run(function):
        unused: dict[str, Any] = {"step": step, "question": question, "n": n}
        unused |= {"loops": n_loops, "thoughts": thoughts, "edits": edits or None}
        return _of_a_run(name, function, run, split, unused, seed, options)
    n = ROWS if n is None else n
    step = run.loaded_step(step)
    if model is None:
        model = run.model if step is None else run.model_at(step)
    task = _checked_task(name, function, model, run, n_loops, thoughts)
    made = _made(edits)
    several = name in OF_SPLITS and not isinstance(task, WordedTask)
    if split is None and question is None and not several:
        split = _default_split(name, run)
    batches = _batches(task, split, question, n, seed, model)
    if isinstance(batches, dict) and made:
        raise ConfigError(f"edits are of one batch; name a --split for {name}")
    rows = next(iter(batches.values())) if isinstance(batches, dict) else batches
    where = list(batches) if isinstance(batches, dict) else split
    watch = Watch(made)
    with (
        model.hooks(fwd_hooks=watch.hooks(model, rows)),
        model.hooks(fwd_hooks=finite_hooks(model), must_fire=False),
    ):
        supplied = _supplied(function, run, where)
        if isinstance(task, WordedTask):
            supplied |= _of_words(function, task, batches, split, question)
        else:
            supplied["n_loops"] = n_loops
        result = function(model, batches, **supplied, **options)
    provenance = Provenance(
        run=run.name,
        recipe=run.recipe.name,
        step=step,
        split=where,
        question=question,
        loops=n_loops,
        edits=to_plain(made),
        n=None if question else n,
        seed=seed,
        options=options,
        thoughts=thoughts,
        touched=watch.finish(),
        patched_from=patched_from(made),
        weights=run.weights_hash(step),
        precision=run.precision(step),
        trained_loops=None if isinstance(model, ThoughtModel) else run.trained_loops,
        state=state(run),
    )
    return Analysed(name, result, provenance)


def _made(edits: Sequence[Edit | Mapping[str, Any]]) -> list[Edit]:
    """Edits as objects; errors call each by its number in the list."""
    plain = [to_plain([e])[0] if isinstance(e, Edit) else dict(e) for e in edits]
    parsed = parse_edits(plain)
    return [e if isinstance(e, Edit) else p for e, p in zip(edits, parsed, strict=True)]


def _checked_task(
    name: str,
    function: Callable[..., Result],
    model: LatentModel,
    run: Run,
    n_loops: int | None,
    thoughts: int | None,
) -> Task:
    """The run's task, with the thoughts that are asked for.

    Raises:
        ConfigError: The analysis is of another kind of model, or the option is.
    """
    kind = get_type_hints(function)["model"]
    if not isinstance(model, kind):
        of = "think" if kind is ThoughtModel else "loop"
        raise ConfigError(f"{name} is of models that {of}; family {model.cfg.family} does not")
    if not isinstance(model, ThoughtModel):
        if thoughts is not None:
            raise ConfigError("--thoughts is for models that think; this one has --loops")
        check_loops(n_loops)
        return run.task
    if n_loops is not None:
        raise ConfigError("--loops is for models that loop; this one has --thoughts")
    task = cast(WordedTask, run.task)
    if thoughts is None:
        return task
    check_thoughts(thoughts, model)
    return task.laid_out(task.layout.with_fillers(thoughts))


def _of_words(
    function: Callable[..., Result],
    task: WordedTask,
    batches: Batch | dict[str, Batch],
    split: str | None,
    question: str | None,
) -> dict[str, Any]:
    """What an analysis of worded problems asks for beside its rows: the task, the problems."""
    asked = inspect.signature(function).parameters
    given = {"task": task, "split": split}
    found: dict[str, Any] = {name: value for name, value in given.items() if name in asked}
    if "problems" in asked:
        assert isinstance(batches, WordedBatch)
        if question is not None:
            found["problems"] = [task.typed(question)]
        else:
            known = task.problems(cast(str, split))
            found["problems"] = [known[number] for number in batches.number.tolist()]
    return found


def _of_a_run(
    name: str,
    function: Callable[..., Result],
    run: Run,
    split: str | None,
    unused: dict[str, Any],
    seed: int,
    options: dict[str, Any],
) -> Analysed:
    """An analysis that looks at a run as a whole, at one split of its task at most."""
    takes_a_split = "split" in inspect.signature(function).parameters
    _refuse_unused(name, unused if takes_a_split else unused | {"split": split})
    where = (split or run.task.default_split) if takes_a_split else None
    result = function(run, **({"split": where} if takes_a_split else {}), **options)
    provenance = Provenance(
        run=run.name,
        recipe=run.recipe.name,
        split=where,
        seed=seed,
        options=options,
        weights=run.weights_hash() if run.is_finished else None,
        state=state(run),
    )
    return Analysed(name, result, provenance)


def _supplied(
    function: Callable[..., Result], run: Run, where: str | list[str] | None
) -> dict[str, Any]:
    """What an analysis asks of the run beside its model and rows."""
    asked = inspect.signature(function).parameters
    found: dict[str, Any] = {}
    if "bridge_words" in asked:
        found["bridge_words"] = run.task.bridge_words
    if "trained" in asked:
        found["trained"] = Trained.of(run, where if isinstance(where, str) else None)
    return found


def _refuse_unused(name: str, unused: Mapping[str, Any]) -> None:
    """Refuse what an analysis of a whole run would not look at."""
    given = [key for key, value in unused.items() if value is not None]
    if given:
        do = "does" if len(given) == 1 else "do"
        raise ConfigError(
            f"{name} looks at a run as a whole, which {', '.join(given)} {do} not change"
        )


def _batches(
    task: Task,
    split: str | None,
    question: str | None,
    n: int,
    seed: int,
    model: LatentModel,
) -> Batch | dict[str, Batch]:
    if question is not None:
        return task.question(question).to(model.device)
    if split is None:
        bridged = [s for s, rows in task.splits.items() if bool((rows.bridge >= 0).any())]
        splits = bridged or list(task.splits)
        return {s: task.batch(s, n, seed).to(model.device) for s in splits}
    return task.batch(split, n, seed).to(model.device)


def _default_split(name: str, run: Run) -> str:
    """The split that is looked at if none is named: the hardest one, if it is told apart."""
    if name not in OF_DEFAULT and "test_ood" in run.task.splits:
        return "test_ood"
    return run.task.default_split


def _is_of_a_run(function: Callable[..., Result]) -> bool:
    """Whether an analysis asks a run as a whole rather than a model about some rows."""
    return "run" in inspect.signature(function).parameters


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
