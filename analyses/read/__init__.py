"""Analyses that read a model's states, answers, gates and attention after each loop."""
