"""Fitting a model to a task, with the measurements built in."""

from workbench.training.trainer import Trainer, TrainingDiverged, train

__all__ = ["Trainer", "TrainingDiverged", "train"]
