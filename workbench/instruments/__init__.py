"""Measurements that training and analyses share: tensors in, tensors out, read through hooks."""

from workbench.instruments.gradients import GradientByLoop
from workbench.instruments.reading import Reading, read

__all__ = ["GradientByLoop", "Reading", "read"]
