"""Recipes: everything that defines a run, in one strictly checked YAML file."""

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
    """Config of AdamW with warm-up and gradient clipping."""

    lr: float = 1e-3
    weight_decay: float = 0.1  # of the weights W_* in blocks and recurrence
    decay_embeddings: bool = False  # also decay W_E, W_pos, W_U, W_loop, W_role
    betas: list[float] = Field(default=[0.9, 0.98], min_length=2, max_length=2)
    warmup: int = 200  # steps of the linear increase from 0 to lr
    schedule: Literal["constant", "cosine"] = "constant"  # after the warm-up
    clip: float = 1.0  # maximum norm of the gradient

    @model_validator(mode="after")
    def _check(self) -> "OptimizerConfig":
        self.check_at_least(0, "lr", "weight_decay", "warmup")
        if self.clip <= 0:
            raise ValueError(f"clip={self.clip} must be above 0")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas={self.betas} must lie between 0 and 1")
        return self


class ObjectiveConfig(StrictModel):
    """Config of the loss.

    (1 − a)·loss of the final loop + a·mean loss over the loops + w·ponder cost.
    """

    intermediate: float = 0.0  # a; 0 is silent thinking (VCoT): the final loop only
    ponder: float = 0.01  # w, for models that halt; the cost is N + R, averaged over real positions

    @model_validator(mode="after")
    def _check(self) -> "ObjectiveConfig":
        if not 0 <= self.intermediate <= 1:
            raise ValueError(f"intermediate={self.intermediate} must lie between 0 and 1")
        self.check_at_least(0, "ponder")
        return self


class MeasureConfig(StrictModel):
    """Config of the measurements in training: how often, on how many rows, on which splits."""

    every: int = 500  # steps
    n: int = 1_000  # rows per split
    splits: list[str] | None = None  # None: all splits of the task

    @model_validator(mode="after")
    def _check(self) -> "MeasureConfig":
        self.check_at_least(1, "every", "n")
        return self


class CurriculumConfig(StrictModel):
    """Config of a curriculum from steps in words to thoughts, stage by stage.

    The published keys keep their published names.

    cot              all steps in words
    no_cot           no steps: the answer follows the question
    pause            no steps, but pause tokens in their place from the start
    icot             each epoch omits `tokens_per_epoch` more tokens of the steps
    coconut          in stage k, k·c_thought thoughts replace the first k steps
    no_thought       as coconut, but nothing replaces the steps
    pause_as_thought as coconut, but with pause tokens instead of thoughts
    """

    method: Literal[
        "cot", "no_cot", "pause", "icot", "coconut", "no_thought", "pause_as_thought"
    ] = "coconut"
    c_thought: int = 1  # fillers per step
    epochs_per_stage: int = 3
    max_latent_stage: int = 3  # most steps replaced; the stage after drops all others
    # Thoughts of a row with fewer steps than the stage: as many as the stage has (True), or only
    # those for its own steps (False)
    pad_latent_to_max: bool = True
    uniform_prob: float = 0.0  # share of rows whose stage is drawn at random from all
    reset_optimizer: bool = True  # when the stage changes
    first_stage: int = 0  # the first stage, for a model that starts from another run
    tokens_per_epoch: int = 8  # for icot
    smoothing: float = 4.0  # for icot: omit o more tokens with probability ∝ exp(−smoothing·o)

    @model_validator(mode="after")
    def _check(self) -> "CurriculumConfig":
        self.check_at_least(1, "c_thought", "epochs_per_stage", "tokens_per_epoch")
        self.check_at_least(0, "max_latent_stage", "first_stage", "smoothing")
        if not 0 <= self.uniform_prob <= 1:
            raise ValueError(f"uniform_prob={self.uniform_prob} must lie between 0 and 1")
        return self


class SaveConfig(StrictModel):
    """Config of the steps whose weights are saved: dense at first, then sparse.

    The first and the last step are always saved.
    """

    dense_every: int = 500
    dense_until: int = 5_000
    every: int = 5_000
    resume_every: int = 2_000  # steps between the checkpoints from which a killed run resumes

    @model_validator(mode="after")
    def _check(self) -> "SaveConfig":
        self.check_at_least(1, "dense_every", "every", "resume_every")
        return self


class TrainingConfig(StrictModel):
    """Config of the training of a model."""

    steps: int
    batch_size: int = 512
    # Share of each split in every batch; by default proportional to the sizes of the splits
    mixture: dict[str, float] | None = None
    # Loops that a row runs in training: the model's own number; one per hop of the row; or
    # [least, most], from which one number is drawn per batch. With `hops` a fact is answered
    # after loop 1, and is therefore stored where a first hop needs it.
    loops: Literal["model", "hops"] | list[int] = "model"
    objective: ObjectiveConfig = ObjectiveConfig()
    curriculum: CurriculumConfig | None = None  # for worded tasks, which require one
    start_from: str | None = None  # a run whose weights initialise the model
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
    """The full config of a run; a stored recipe also records the versions that trained it."""

    name: str = Field(pattern=r"^\w[\w.-]*$")  # also the name of the run's folder
    about: str = ""  # the purpose of the run, in one sentence
    seed: int = 0  # for data, weights and order
    task: dict[str, Any]  # its `name` and its sizes
    model: dict[str, Any]  # its `family` and its config; d_vocab and n_ctx come from the task
    training: TrainingConfig
    versions: dict[str, str] | None = None  # of the libraries that trained a stored run
    commit: str | None = None  # of the code that trained a stored run
    threads: int | None = None  # of torch; the last bits of a resumed run depend on it

    @model_validator(mode="after")
    def _check(self) -> "Recipe":
        self.check_at_least(0, "seed")
        self.check_at_most(2**32 - 1, "seed")  # numpy accepts no larger seed
        return self

    def to_yaml(self) -> str:
        """Return the recipe as YAML text, with every value written out."""
        return write_yaml(self.model_dump(exclude_none=True))


def recipe_names() -> list[str]:
    """Return the names of the recipes that ship with the package."""
    folder = files("workbench.recipes")
    names = (entry.name for entry in folder.iterdir())
    return sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml"))


def load_recipe(name_or_path: str | Path, changes: Sequence[str] = ()) -> Recipe:
    """Load a recipe from a file or by the name of a shipped one, with `a.b=c` changes applied.

    Raises:
        ConfigError: The recipe does not exist or is invalid.
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
    # A run's recipe is always called recipe.yaml, so only its folder identifies the run
    where = f"recipe {path.name if path.name != 'recipe.yaml' else path}"
    data = parse_yaml(text, where)
    if not isinstance(data, dict):
        raise ConfigError(f"{where} holds no keys; a recipe has task, model, training")
    for change in changes:
        _apply(data, change)
    return parse(Recipe, data, where)


def _apply(data: dict[str, Any], change: str) -> None:
    """Set one value in place, for example `training.optimizer.lr=1e-4`."""
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
    """Return the versions of the libraries on which a run's numbers depend."""
    from importlib.metadata import version

    libraries = ("torch", "transformer-lens", "accelerate", "numpy")
    return {library: version(library) for library in libraries}


def commit() -> str | None:
    """Return the commit of the running code, with a mark if there are uncommitted changes.

    Return None if the code does not run from its own git checkout, or if git is not installed.
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
