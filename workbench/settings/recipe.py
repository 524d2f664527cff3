"""A recipe: everything that makes a run, in one YAML file, strictly checked."""

import subprocess
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from workbench.settings.config import ConfigError, StrictModel, nearest, parse
from workbench.settings.plain_json import is_file, read_text
from workbench.settings.plain_yaml import parse_yaml, write_yaml


class OptimizerConfig(StrictModel):
    """AdamW with warm-up and clipping."""

    lr: float = 1e-3
    weight_decay: float = 0.1  # of the maps W_* in blocks and recurrence
    decay_embeddings: bool = False  # decay W_E, W_pos, W_U, W_loop, W_role as well
    betas: list[float] = Field(default=[0.9, 0.98], min_length=2, max_length=2)
    warmup: int = 200  # steps from 0 to lr, linear
    schedule: Literal["constant", "cosine"] = "constant"  # after the warm-up
    clip: float = 1.0  # largest norm of the gradient

    @model_validator(mode="after")
    def _check(self) -> "OptimizerConfig":
        self.check_at_least(0, "lr", "weight_decay", "warmup")
        if self.clip <= 0:
            raise ValueError(f"clip={self.clip} must be above 0")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas={self.betas} must lie between 0 and 1")
        return self


class ObjectiveConfig(StrictModel):
    """(1 − a)·loss of the final loop + a·mean loss over the loops, + w·ponder cost."""

    intermediate: float = 0.0  # a; 0 is silent thinking (VCoT): the final loop alone
    ponder: float = 0.01  # w, for models that halt: of N + R, averaged over real positions

    @model_validator(mode="after")
    def _check(self) -> "ObjectiveConfig":
        if not 0 <= self.intermediate <= 1:
            raise ValueError(f"intermediate={self.intermediate} must lie between 0 and 1")
        self.check_at_least(0, "ponder")
        return self


class MeasureConfig(StrictModel):
    """When and on how much the measurements run."""

    every: int = 500  # steps
    n: int = 1_000  # rows of each split
    splits: list[str] | None = None  # all that the task has

    @model_validator(mode="after")
    def _check(self) -> "MeasureConfig":
        self.check_at_least(1, "every", "n")
        return self


class CurriculumConfig(StrictModel):
    """From steps in words to thoughts, stage by stage; the published keys under their names.

    cot              all steps in words
    no_cot           no steps: the answer follows the question
    pause            no steps, pause tokens in their place from the start
    icot             `tokens_per_epoch` tokens of the steps are left out more with every epoch
    coconut          in stage k the first k steps give way to k·c_thought thoughts
    no_thought       as coconut, with nothing in the steps' place
    pause_as_thought as coconut, with pause tokens in the place of thoughts
    """

    method: Literal[
        "cot", "no_cot", "pause", "icot", "coconut", "no_thought", "pause_as_thought"
    ] = "coconut"
    c_thought: int = 1  # fillers for each step
    epochs_per_stage: int = 3
    max_latent_stage: int = 3  # steps that give way at most; in the stage after, all others go too
    # Thoughts of a row with fewer steps than the stage: the stage's number, or its own
    pad_latent_to_max: bool = True
    uniform_prob: float = 0.0  # share of rows that are shown in a stage drawn from all
    reset_optimizer: bool = True  # when the stage changes
    first_stage: int = 0  # where a model begins that starts from another run
    tokens_per_epoch: int = 8  # of icot
    smoothing: float = 4.0  # of icot: o tokens more with probability ∝ exp(−smoothing·o)

    @model_validator(mode="after")
    def _check(self) -> "CurriculumConfig":
        self.check_at_least(1, "c_thought", "epochs_per_stage", "tokens_per_epoch")
        self.check_at_least(0, "max_latent_stage", "first_stage", "smoothing")
        if not 0 <= self.uniform_prob <= 1:
            raise ValueError(f"uniform_prob={self.uniform_prob} must lie between 0 and 1")
        return self


class SaveConfig(StrictModel):
    """At which steps the weights are kept: densely at first, then spaced.

    The first and the last step are always among them.
    """

    dense_every: int = 500
    dense_until: int = 5_000
    every: int = 5_000
    resume_every: int = 2_000  # steps between the points a killed run goes on from

    @model_validator(mode="after")
    def _check(self) -> "SaveConfig":
        self.check_at_least(1, "dense_every", "every", "resume_every")
        return self


class TrainingConfig(StrictModel):
    """How a model is fitted."""

    steps: int
    batch_size: int = 512
    # Share of each split in every batch; by default in proportion to their sizes
    mixture: dict[str, float] | None = None
    # Loops that a row runs while training: the model's own number; one for each of its hops; or
    # [least, most], one number drawn for each batch. With `hops` a fact is answered after loop 1,
    # and so is stored where a first hop needs it.
    loops: Literal["model", "hops"] | list[int] = "model"
    objective: ObjectiveConfig = ObjectiveConfig()
    curriculum: CurriculumConfig | None = None  # of worded tasks, which need one
    start_from: str | None = None  # a run whose weights the model begins with
    precision: Literal["no", "bf16"] = "no"
    optimizer: OptimizerConfig = OptimizerConfig()
    measure: MeasureConfig = MeasureConfig()
    save: SaveConfig = SaveConfig()

    @model_validator(mode="after")
    def _check(self) -> "TrainingConfig":
        self.check_at_least(1, "steps", "batch_size")
        self.check_at_most(10**9, "steps")
        self.check_at_most(10**7, "batch_size")
        if isinstance(self.loops, list):
            least, most = self.loops if len(self.loops) == 2 else (0, 0)
            if not 1 <= least <= most:
                raise ValueError(f"loops={self.loops} must be [least, most], least from 1 on")
        if self.mixture is not None and abs(sum(self.mixture.values()) - 1) > 1e-6:
            total = sum(self.mixture.values())
            raise ValueError(f"the shares of mixture add up to {total:g}; they must add up to 1")
        if self.mixture is not None and min(self.mixture.values()) < 0:
            raise ValueError("the shares of mixture must be at least 0")
        return self


class Recipe(StrictModel):
    """A run before it is made; a stored one also says what made it."""

    name: str = Field(pattern=r"^\w[\w.-]*$")  # also of the run's folder
    about: str = ""  # what the run is for, in a sentence
    seed: int = 0  # of data, weights and order alike
    task: dict[str, Any]  # its `name`, and its sizes
    model: dict[str, Any]  # its `family`, and its shape; d_vocab and n_ctx come from the task
    training: TrainingConfig
    versions: dict[str, str] | None = None  # of the libraries that trained a stored run
    commit: str | None = None  # of the code that trained a stored run
    threads: int | None = None  # of torch, on which a resumed run's last bits depend

    @model_validator(mode="after")
    def _check(self) -> "Recipe":
        self.check_at_least(0, "seed")
        self.check_at_most(2**32 - 1, "seed")  # numpy takes no larger one
        return self

    def to_yaml(self) -> str:
        """The recipe as text, every value written out."""
        return write_yaml(self.model_dump(exclude_none=True))


def recipe_names() -> list[str]:
    """Names of the recipes that ship."""
    folder = files("workbench.recipes")
    names = (entry.name for entry in folder.iterdir())
    return sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml"))


def load_recipe(name_or_path: str | Path, changes: Sequence[str] = ()) -> Recipe:
    """A recipe by file or by the name of a shipped one, with `a.b=c` changes applied.

    Raises:
        ConfigError: There is no such recipe, or it says something wrong.
    """
    path = Path(name_or_path)
    if is_file(path):
        text = read_text(path)
    elif str(name_or_path) in recipe_names():
        text = files("workbench.recipes").joinpath(f"{name_or_path}.yaml").read_text("utf-8")
    else:
        raise ConfigError(
            f"no recipe {str(name_or_path)!r:.200}, neither as a file nor among those that ship; "
            f"{nearest(str(name_or_path), recipe_names())}"
        )
    # A run's recipe is always called recipe.yaml; its folder says whose it is
    where = f"recipe {path.name if path.name != 'recipe.yaml' else path}"
    data = parse_yaml(text, where)
    if not isinstance(data, dict):
        raise ConfigError(f"{where} holds no keys; a recipe has task, model, training")
    for change in changes:
        _apply(data, change)
    return parse(Recipe, data, where)


def _apply(data: dict[str, Any], change: str) -> None:
    """Set one value in place, `training.optimizer.lr=1e-4` for one."""
    path, equals, value = change.partition("=")
    if not equals or not path:
        raise ConfigError(f"--set {change!r} is not of the form a.b=c")
    *parents, last = path.split(".")
    for parent in parents:
        data = data.setdefault(parent, {})
        if not isinstance(data, dict):
            raise ConfigError(f"--set {change!r}: {parent} is a value, not a group of fields")
    data[last] = parse_yaml(value, f"--set {change}")


def versions() -> Mapping[str, str]:
    """Of the libraries on which a run's numbers depend."""
    from importlib.metadata import version

    libraries = ("torch", "transformer-lens", "accelerate", "numpy")
    return {library: version(library) for library in libraries}


def commit() -> str | None:
    """The commit of the code that is running, marked if it was changed since.

    None if it does not run from a checkout of its own, or if there is no git.
    """
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    words = [
        "git",
        "-C",
        str(root),
        "describe",
        "--always",
        "--dirty",
        "--abbrev=40",
        "--exclude=*",
    ]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
