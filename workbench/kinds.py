"""Loops and thoughts: the one file that tells the two kinds of recurrence apart.

A model and a task have a `kind`, `LOOPS` or `THOUGHTS`. It holds what is counted and does what
differs: how rows are answered, taught and planned. Code that works for one kind only narrows a
model, task or batch with the functions at the end, which refuse the other kind in a sentence.
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
    """What differs between models that loop and models that think."""

    unit: ClassVar[str]
    """What is counted: loop or thought."""
    verb: ClassVar[str]
    """What such a model does."""
    option: ClassVar[str]
    """The command line's option for another number of them."""
    in_passes: ClassVar[bool]
    """Whether each position runs in one pass only, so that places of the sequence have no loops."""

    @abstractmethod
    def check_number(self, model: "CanRecord", n_loops: int | None, thoughts: int | None) -> None:
        """Refuse a number of loops or thoughts that the model cannot run.

        Raises:
            ConfigError: It is a number of the other kind, or out of range.
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
        """Measure accuracy after each loop or thought; fields of `evaluate`'s object."""

    @abstractmethod
    def lessons(
        self,
        cfg: "TrainingConfig",
        task: "Task",
        model: "LatentModel",
        prepared: Callable[..., Tensor],
        seed: int,
    ) -> "Lessons":
        """Return the batches that training shows, and their loss."""

    @abstractmethod
    def amount(
        self, cfg: "TrainingConfig", task: "Task", model: "LatentModel", seed: int
    ) -> "Amount":
        """Estimate what training by a recipe takes."""

    @abstractmethod
    def asked(self, task: "Task", n_loops: int | None, thoughts: int | None) -> "Task":
        """Return the task with its questions laid out for another number of thoughts."""

    @abstractmethod
    def most_thoughts(self, model: "CanRecord", batch: "Batch") -> int:
        """Count the thoughts of the batch's row that has most; 0 for models that loop."""

    @abstractmethod
    def trained_loops(self, run: "Run") -> int | None:
        """Return how many loops the run was trained with; None for models that think."""

    def refuse_other(self, n_loops: int | None, thoughts: int | None) -> None:
        """Refuse a number of the other kind.

        Raises:
            ConfigError: One is given.
        """
        given = {LOOPS.option: n_loops, THOUGHTS.option: thoughts}
        other = THOUGHTS if self is LOOPS else LOOPS
        if given[other.option] is not None:
            raise ConfigError(
                f"{other.option} is for models that {other.verb}; this one has {self.option}"
            )


class Loops(Kind):
    """Depth recurrence: the same blocks again and again on the same positions."""

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
    """Thought recurrence: a state of the last layer becomes the input at the next position."""

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
    """Return the number of loops under either name.

    Raises:
        ConfigError: Both are given and differ.
    """
    if None not in (loops, n_loops) and loops != n_loops:
        raise ConfigError(f"loops={loops} and n_loops={n_loops} are two names of one number")
    return n_loops if loops is None else loops


def depth_model(model: "CanRecord", what: str = "this") -> "DepthModel":
    """The model, as one that loops.

    Args:
        model: A model.
        what: What needs it to be, as the error's sentence begins.

    Raises:
        ConfigError: It thinks.
    """
    from workbench.models.loops.depth import DepthModel

    if isinstance(model, DepthModel):
        return model
    raise ConfigError(_other(what, LOOPS, model))


def thought_model(model: "CanRecord", what: str = "this") -> "ThoughtModel":
    """The model, as one that thinks.

    Args:
        model: A model.
        what: What needs it to be, as the error's sentence begins.

    Raises:
        ConfigError: It loops.
    """
    from workbench.models.thoughts.thought import ThoughtModel

    if isinstance(model, ThoughtModel):
        return model
    raise ConfigError(_other(what, THOUGHTS, model))


def worded_task(task: "Task") -> "WordedTask":
    """The task, as one of questions in words whose answers are generated.

    Raises:
        ConfigError: It is another.
    """
    from workbench.tasks.worded.task import WordedTask

    if isinstance(task, WordedTask):
        return task
    raise ConfigError(f"{type(task).__name__} is not a task of questions and answers in words")


def worded_batch(batch: "Batch") -> "WordedBatch":
    """The batch, as rows of a worded task.

    Raises:
        ConfigError: It is of another task.
    """
    from workbench.tasks.worded.rows import WordedBatch

    if isinstance(batch, WordedBatch):
        return batch
    raise ConfigError("these rows are not of a task of questions and answers in words")


def _other(what: str, wanted: Kind, model: "CanRecord") -> str:
    has = model.kind
    return f"{what} is for models that {wanted.verb}; those of family {model.cfg.family} {has.verb}"
