"""Training a model on a task, with built-in measurements."""

from workbench.training.trainer import Trainer, TrainingDiverged, train

__all__ = ["Trainer", "TrainingDiverged", "train"]
