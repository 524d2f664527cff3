"""Runs: folders with a recipe, a history, the weights of many steps and a card; no pickles.

recipe.yaml · history.jsonl · model.safetensors · steps/{step}.safetensors · card.md · resume/
"""

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from workbench.models import build_model, model_config
from workbench.models.base import LatentModel
from workbench.runs.history import read_history
from workbench.settings.config import ConfigError, nearest
from workbench.settings.files import FileError, count_numbers, kept_hash, read_dtypes, read_tensors
from workbench.settings.plain_json import is_file
from workbench.settings.recipe import Recipe, load_recipe
from workbench.tasks import Task, task_from
from workbench.tasks.worded.curriculum import chosen_step

SHIPPED = Path(__file__).parents[2] / "checkpoints"

STRANGER = "uploaded"  # marker file in the folder of a run that was uploaded
PRECISIONS = {"F32": "float32", "BF16": "bfloat16", "F16": "float16", "F64": "float64"}
LONGEST_NAME = 1_000  # characters; a longer string is not tried as a path


class Run:
    """One trained model with its task and the record of its training.

    `name` is the name of the folder, or `hub:owner/name`; `recipe.name` is that of the recipe.
    """

    def __init__(
        self, path: Path, device: str | torch.device = "cpu", name: str | None = None
    ) -> None:
        self.path = path
        self.device = device
        # Not the recipe's name: one recipe may have made several runs. A symlink keeps its own name
        self.name = name or os.path.basename(os.path.abspath(path))
        self.recipe: Recipe = load_recipe(path / "recipe.yaml")

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    @cached_property
    def task(self) -> Task:
        """The task with the run's data; worded problems are laid out as at the end of training."""
        if self.is_a_strangers:
            self._check_confined()
        task = task_from(self.recipe.task, self.recipe.seed)
        curriculum = self.recipe.training.curriculum
        return task if curriculum is None else task.as_taught(curriculum)

    @property
    def is_a_strangers(self) -> bool:
        """Whether the run was uploaded or fetched, so that its recipe must not name files."""
        return self.name.startswith("hub:") or (self.path / STRANGER).exists()

    def _check_confined(self) -> None:
        """Refuse a foreign recipe that names anything outside the run's folder.

        `training.start_from` is allowed: it only records where training began and is not read.
        """
        task = self.recipe.task
        named = [key for key, value in task.items() if key.endswith("_file") and value]
        named += [key for key in ("hub", "hub_name") if task.get(key)]
        named += ["tokenizer"] if task.get("tokenizer", "words") != "words" else []
        if named:
            fields = ", ".join(f"task.{key}" for key in named)
            raise FileError(
                f"the recipe of {self.name} names {fields}; a run that was uploaded or fetched may "
                "read nothing outside its folder"
            )

    @cached_property
    def model(self) -> LatentModel:
        """The final model, or that of the latest saved step while the run is still in training."""
        return self._load(self.weights_path())

    @property
    def history(self) -> list[dict[str, Any]]:
        """All measurements so far, one per measured step and split."""
        return read_history(self.path / "history.jsonl")

    @property
    def steps(self) -> list[int]:
        """Steps whose weights were saved, in ascending order."""
        return sorted(
            int(path.stem)
            for path in (self.path / "steps").glob("*.safetensors")
            if path.stem.isdigit()
        )

    @property
    def is_finished(self) -> bool:
        """Whether training has finished."""
        return (self.path / "model.safetensors").exists()

    @property
    def final_step(self) -> int:
        """The step of the final weights: the last one, or the one chosen under a curriculum."""
        chosen = None if self.recipe.training.curriculum is None else chosen_step(self.history)
        return self.recipe.training.steps if chosen is None else chosen

    @property
    def n_parameters(self) -> int | None:
        """Parameter count, read from the safetensors header; None if no weights are saved yet."""
        final = self.path / "model.safetensors"
        steps = [self.path / "steps" / f"{step}.safetensors" for step in self.steps]
        found = next((path for path in (final, *reversed(steps)) if path.exists()), None)
        return None if found is None else count_numbers(found)

    def weights_path(self, step: int | None = None) -> Path:
        """Return the file with the weights of a saved step; by default, the final weights.

        While training is unfinished, the default is the latest saved step.

        Raises:
            FileError: There are no weights yet.
            ConfigError: The weights of that step were not saved.
        """
        step = self.loaded_step(step)
        if step is None:
            if not self.is_finished:
                raise FileError(f"{self.path} holds no weights yet")
            return self.path / "model.safetensors"
        if step not in self.steps:
            near = min(self.steps, key=lambda kept: abs(kept - step), default=None)
            raise ConfigError(f"{self.name} keeps no step {step}; the nearest it keeps is {near}")
        return self.path / "steps" / f"{step}.safetensors"

    def weights_hash(self, step: int | None = None) -> str:
        """Return the first 16 hex digits of a SHA-256 over the tensors of a step.

        The default step is that of `weights_path`.
        """
        return kept_hash(self.weights_path(step))

    def precision(self, step: int | None = None) -> str:
        """Return the number format in which a step's weights are stored, such as `bfloat16`."""
        kinds = {
            PRECISIONS.get(kind, kind) for kind in read_dtypes(self.weights_path(step)).values()
        }
        return ", ".join(sorted(kinds))

    @property
    def trained_loops(self) -> int:
        """The largest number of loops in training; 1 for a model without recurrence."""
        loops = self.recipe.training.loops
        if isinstance(loops, list):
            return int(loops[1])
        cfg = model_config(self.recipe.model)
        return int(getattr(cfg, "n_loops", 1))

    def loaded_step(self, step: int | None) -> int | None:
        """Return the step whose weights are loaded for `step`; None for the final weights."""
        if step is None and not self.is_finished and self.steps:
            return self.steps[-1]
        return step

    def model_at(self, step: int) -> LatentModel:
        """Return the model as it was after `step` steps.

        Raises:
            ConfigError: The weights of that step were not saved.
        """
        return self._load(self.weights_path(step))

    def push_to_hub(self, repo_id: str) -> str:
        """Upload the run's folder, without its resume point, to the Hugging Face Hub."""
        from huggingface_hub import HfApi

        api = HfApi()
        api.create_repo(repo_id, exist_ok=True)
        return str(
            api.upload_folder(
                repo_id=repo_id,
                folder_path=self.path,
                ignore_patterns=["resume*/**", "*.unfinished", ".lock", STRANGER],
            )
        )

    def _load(self, path: Path) -> LatentModel:
        model = build_model(model_config(self.recipe.model, f"recipe of {self.path.name}"))
        load_weights(model, read_tensors(path), path)
        model.tokenizer = self.task.vocabulary
        model.answers = tuple(self.task.answers)
        task = self.task
        model.reader = lambda text: task.question(text).inputs
        return model.to(self.device).eval()


def load_weights(model: torch.nn.Module, weights: dict[str, Tensor], path: Path) -> None:
    """Load weights into a model, or name the tensors that do not fit.

    Raises:
        FileError: A tensor is missing, unexpected, of another shape or not finite.
    """
    check_fits(model, {name: tensor.shape for name, tensor in weights.items()}, path)
    for name, tensor in weights.items():
        if not bool(torch.isfinite(tensor).all()):
            raise FileError(f"{path}: {name} holds numbers that are not finite; the run diverged")
    model.load_state_dict(weights)


def check_fits(model: torch.nn.Module, shapes: Mapping[str, torch.Size], path: Path | str) -> None:
    """Refuse weights whose names or shapes differ from the model's.

    Raises:
        FileError: A tensor is missing, unexpected or of another shape.
    """
    own = model.state_dict()
    missing, unexpected = sorted(own.keys() - shapes.keys()), sorted(shapes.keys() - own.keys())
    if missing or unexpected:
        parts = [f"lacks {', '.join(missing)}"] if missing else []
        parts += [f"holds {', '.join(unexpected)} besides"] if unexpected else []
        raise FileError(f"{path} {' and '.join(parts)}; it belongs to another model")
    for name, shape in shapes.items():
        if shape != own[name].shape:
            raise FileError(
                f"{path}: {name} is {list(shape)}; the recipe's model has {list(own[name].shape)}"
            )


def run_roots() -> list[Path]:
    """Return the folders that are searched for runs, in order of precedence."""
    named = os.environ.get("WORKBENCH_RUNS")
    return [Path("runs"), *([Path(named)] if named else []), SHIPPED]


def where_runs_are() -> str:
    """Describe where runs are searched for, and how to get some if none are shipped."""
    looked = f"looked in {', '.join(map(str, run_roots()))}"
    if SHIPPED.is_dir():
        return looked
    return (
        f"{looked}; this installation ships no runs: get checkpoints/ of the repository and let "
        "the environment variable WORKBENCH_RUNS name it"
    )


def run_folders() -> dict[str, Path]:
    """Return all runs by name; for equal names, the first root wins (see `run_roots`)."""
    found: dict[str, Path] = {}
    for root in reversed(run_roots()):
        for recipe in sorted(root.glob("*/recipe.yaml")):
            found[recipe.parent.name] = recipe.parent
    return dict(sorted(found.items()))


def load_run(path_or_name: str | Path, device: str | torch.device = "cpu") -> Run:
    """Load a run by its folder, its name, or `hub:owner/name`.

    Raises:
        FileError: There is no such run.
    """
    text = str(path_or_name)
    if text.startswith("hub:"):
        return Run(_from_hub(text.removeprefix("hub:")), device, text)
    path = Path(path_or_name)
    if is_file(path / "recipe.yaml"):
        return Run(path, device)
    known = run_folders()
    if text in known:
        return Run(known[text], device)
    if len(text) < LONGEST_NAME and path.is_dir():
        raise FileError(f"{path} is no run: it lacks recipe.yaml")
    # If no runs are shipped, the name may well be right
    reason = nearest(text, known) if known and SHIPPED.is_dir() else where_runs_are()
    raise FileError(f"no run {text!r:.200}; {reason}")


def _from_hub(repo_id: str) -> Path:
    """Download a run from the Hub and return its folder; only files of a run are fetched."""
    from huggingface_hub import snapshot_download

    kinds = ["*.yaml", "*.jsonl", "*.safetensors", "*.md"]
    try:
        return Path(snapshot_download(repo_id, allow_patterns=kinds))
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise FileError(f"no run 'hub:{repo_id}': {reason}") from None
