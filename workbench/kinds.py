"""Loops and thoughts: the only file that distinguishes the two kinds of recurrence.

Every model and every task has a `kind`, `LOOPS` or `THOUGHTS`. The kind names the unit that is
counted and implements everything that differs: evaluation, training and planning. Code that works
for one kind only narrows a model, task or batch with the functions at the end of this file. They
raise a ConfigError for the other kind.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from workbench.settings.config import ConfigError

if TYPE_CHECKING:
    from workbench.capabilities import CanRecord
    from workbench.edits import Watch
    from workbench.models.base import LatentModel
    from workbench.models.loops.depth import DepthModel
    from workbench.models.thoughts.thought import ThoughtModel
    from workbench.runs import Run
    from workbench.settings.recipe import TrainingConfig
    from workbench.tasks.base import Task
    from workbench.tasks.batch import Batch
    from workbench.tasks.worded.rows import WordedBatch
    from workbench.tasks.worded.task import WordedTask
    from workbench.training.lessons import Lessons
    from workbench.training.plan import Amount


class Kind(ABC):
    """Everything that differs between models that loop and models that think."""

    unit: ClassVar[str]
    """The unit that is counted: `loop` or `thought`."""
    verb: ClassVar[str]
    """The verb for models of this kind in error messages: `loop` or `think`."""
    option: ClassVar[str]
    """The command-line option that changes the number of loops or thoughts."""
    in_passes: ClassVar[bool]
    """Whether each position runs in one pass only; hooks on the sequence then have no loop axis."""

    @abstractmethod
    def check_number(self, model: "CanRecord", n_loops: int | None, thoughts: int | None) -> None:
        """Check that the model can run the given number of loops or thoughts.

        Raises:
            ConfigError: The number is of the other kind, or out of range.
        """

    @abstractmethod
    def evaluated(
        self,
        run: "Run",
        task: "Task",
        model: "LatentModel",
        split: str,
        n_loops: int | None,
        thoughts: int | None,
        watch: "Watch",
        n: int | None,
        seed: int,
    ) -> dict[str, Any]:
        """Measure accuracy after each loop or thought; return fields for `evaluate`'s result."""

    @abstractmethod
    def lessons(
        self,
        cfg: "TrainingConfig",
        task: "Task",
        model: "LatentModel",
        prepared: Callable[..., Tensor],
        seed: int,
    ) -> "Lessons":
        """Return the object that makes the training batches and computes their loss."""

    @abstractmethod
    def amount(
        self, cfg: "TrainingConfig", task: "Task", model: "LatentModel", seed: int
    ) -> "Amount":
        """Estimate the cost of training with this config."""

    @abstractmethod
    def asked(self, task: "Task", n_loops: int | None, thoughts: int | None) -> "Task":
        """Return the task with its questions laid out for the given number of thoughts."""

    @abstractmethod
    def most_thoughts(self, model: "CanRecord", batch: "Batch") -> int:
        """Return the largest number of thoughts in any row of the batch; 0 for models that loop."""

    @abstractmethod
    def trained_loops(self, run: "Run") -> int | None:
        """Return the number of loops that the run was trained with; None for models that think."""

    def refuse_other(self, n_loops: int | None, thoughts: int | None) -> None:
        """Check that no number of the other kind is given.

        Raises:
            ConfigError: A number of the other kind is given.
        """
        given = {LOOPS.option: n_loops, THOUGHTS.option: thoughts}
        other = THOUGHTS if self is LOOPS else LOOPS
        if given[other.option] is not None:
            raise ConfigError(
                f"{other.option} is for models that {other.verb}; this one has {self.option}"
            )


class Loops(Kind):
    """Depth recurrence: the same blocks run repeatedly on the same positions."""

    unit, verb, option, in_passes = "loop", "loop", "--loops", False

    def check_number(self, model: "CanRecord", n_loops: int | None, thoughts: int | None) -> None:
        from workbench.runs.evaluation import check_loops

        self.refuse_other(n_loops, thoughts)
        check_loops(n_loops)

    def evaluated(
        self,
        run: "Run",
        task: "Task",
        model: "LatentModel",
        split: str,
        n_loops: int | None,
        thoughts: int | None,
        watch: "Watch",
        n: int | None,
        seed: int,
    ) -> dict[str, Any]:
        from workbench.runs.evaluation import by_loops

        trained = run.trained_loops
        return by_loops(task, trained, depth_model(model), split, n_loops, watch, n, seed)

    def lessons(
        self,
        cfg: "TrainingConfig",
        task: "Task",
        model: "LatentModel",
        prepared: Callable[..., Tensor],
        seed: int,
    ) -> "Lessons":
        from workbench.training.lessons import LoopLessons

        return LoopLessons(cfg, task, depth_model(model), prepared, seed)

    def amount(
        self, cfg: "TrainingConfig", task: "Task", model: "LatentModel", seed: int
    ) -> "Amount":
        from workbench.training.plan import of_loops

        return of_loops(cfg, task, depth_model(model), seed)

    def asked(self, task: "Task", n_loops: int | None, thoughts: int | None) -> "Task":
        return task

    def most_thoughts(self, model: "CanRecord", batch: "Batch") -> int:
        return 0

    def trained_loops(self, run: "Run") -> int | None:
        return run.trained_loops


class Thoughts(Kind):
    """Thought recurrence: a last-layer state becomes the input at the next position."""

    unit, verb, option, in_passes = "thought", "think", "--thoughts", True

    def check_number(self, model: "CanRecord", n_loops: int | None, thoughts: int | None) -> None:
        from workbench.runs.evaluation import check_thoughts

        self.refuse_other(n_loops, thoughts)
        check_thoughts(thoughts, thought_model(model))

    def evaluated(
        self,
        run: "Run",
        task: "Task",
        model: "LatentModel",
        split: str,
        n_loops: int | None,
        thoughts: int | None,
        watch: "Watch",
        n: int | None,
        seed: int,
    ) -> dict[str, Any]:
        from workbench.runs.evaluation import by_thoughts

        asked = worded_task(task)
        return by_thoughts(asked, thought_model(model), split, thoughts, watch, n, seed)

    def lessons(
        self,
        cfg: "TrainingConfig",
        task: "Task",
        model: "LatentModel",
        prepared: Callable[..., Tensor],
        seed: int,
    ) -> "Lessons":
        from workbench.training.lessons import WordedLessons

        return WordedLessons(cfg, worded_task(task), thought_model(model), prepared, seed)

    def amount(
        self, cfg: "TrainingConfig", task: "Task", model: "LatentModel", seed: int
    ) -> "Amount":
        from workbench.training.plan import of_thoughts

        return of_thoughts(cfg, worded_task(task), thought_model(model), seed)

    def asked(self, task: "Task", n_loops: int | None, thoughts: int | None) -> "Task":
        if thoughts is None:
            return task
        worded = worded_task(task)
        return worded.laid_out(worded.layout.with_fillers(thoughts))

    def most_thoughts(self, model: "CanRecord", batch: "Batch") -> int:
        latent = thought_model(model).cfg.latent_token
        return int((batch.tokens == latent).sum(1).max())

    def trained_loops(self, run: "Run") -> int | None:
        return None


LOOPS, THOUGHTS = Loops(), Thoughts()


def one_of_both(loops: int | None, n_loops: int | None) -> int | None:
    """Return the number of loops, given under either name.

    Raises:
        ConfigError: Both are given and differ.
    """
    if None not in (loops, n_loops) and loops != n_loops:
        raise ConfigError(f"loops={loops} and n_loops={n_loops} are two names of one number")
    return n_loops if loops is None else loops


def depth_model(model: "CanRecord", what: str = "this") -> "DepthModel":
    """Return the model, narrowed to a `DepthModel`.

    Args:
        model: Any model.
        what: What requires a model that loops; the error message begins with it.

    Raises:
        ConfigError: The model does not loop.
    """
    from workbench.models.loops.depth import DepthModel

    if isinstance(model, DepthModel):
        return model
    raise ConfigError(_other(what, LOOPS, model))


def thought_model(model: "CanRecord", what: str = "this") -> "ThoughtModel":
    """Return the model, narrowed to a `ThoughtModel`.

    Args:
        model: Any model.
        what: What requires a model that thinks; the error message begins with it.

    Raises:
        ConfigError: The model does not think.
    """
    from workbench.models.thoughts.thought import ThoughtModel

    if isinstance(model, ThoughtModel):
        return model
    raise ConfigError(_other(what, THOUGHTS, model))


def worded_task(task: "Task") -> "WordedTask":
    """Return the task, narrowed to one whose answers are generated in words.

    Raises:
        ConfigError: The task is of another type.
    """
    from workbench.tasks.worded.task import WordedTask

    if isinstance(task, WordedTask):
        return task
    raise ConfigError(f"{type(task).__name__} is not a task of questions and answers in words")


def worded_batch(batch: "Batch") -> "WordedBatch":
    """Return the batch, narrowed to rows of a worded task.

    Raises:
        ConfigError: The batch comes from another task.
    """
    from workbench.tasks.worded.rows import WordedBatch

    if isinstance(batch, WordedBatch):
        return batch
    raise ConfigError("these rows are not of a task of questions and answers in words")


def _other(what: str, wanted: Kind, model: "CanRecord") -> str:
    has = model.kind
    return f"{what} is for models that {wanted.verb}; those of family {model.cfg.family} {has.verb}"
