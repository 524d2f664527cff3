"""Measurements shared by training and analyses, made with hooks: tensors in, tensors out."""

from workbench.instruments.gradients import GradientByLoop
from workbench.instruments.reading import Reading, read

__all__ = ["GradientByLoop", "Reading", "read"]
